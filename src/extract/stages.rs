//! Stages of a program, each with tile sizes of its own.
//!
//! A rule names the tile of a size `n` by `n` alone, so that one e-class serves every place. A product and
//! the row operation after it would therefore have to agree on one value. If the array between two kernels
//! has a length that mentions no tile, the two need not agree: the symbols of the later stages are renamed,
//! `n.t0` to `n'1.t0`. An array whose order depends on a tile ties its stages together, although its length does not.

use crate::calculus::size::{Size, SizeEnv, Sym};
use crate::calculus::term::{MapKind, Op, Term, TypeError};
use crate::calculus::ty::Ty;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// A term whose stages share no symbol.
pub(super) struct Staged {
    /// The whole term, not expanded.
    pub compact: Term,
    /// The stages that have symbols of their own.
    pub parts: Vec<Term>,
}

/// Returns a term with its stages taken out, and the stages as they stand in it, in the order of [`Staged::parts`].
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn frame(compact: &Term) -> Result<(Term, Vec<Term>), TypeError> {
    let mut parts: Vec<Term> = vec![];
    let frame = walk(compact, &mut |factors, _, _| {
        let part = Term::of_chain(factors)?;
        let hole = format!("{HOLE}{}", parts.len());
        let tys = vec![part.ty().dom.clone(), part.ty().cod.clone()];
        parts.push(part);
        Ok(vec![Term::new(Op::Input(hole.into()), vec![], tys, vec![])?])
    })?;
    Ok((frame, parts))
}

/// What a stage reads and what it gives: the names of these values, as functions of the argument of the chain in which the stage
/// stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Passed {
    /// `None` for the argument itself.
    pub read: Option<String>,
    /// The result.
    pub given: String,
}

impl fmt::Display for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.read {
            Some(read) => write!(f, "{read} to {}", self.given),
            None => f.write_str(&self.given),
        }
    }
}

/// Returns what each stage of [`frame`] reads and what it gives, as functions of the argument of the chain that it stands in.
/// The first stage of a chain reads the argument itself (`None`).
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn values(compact: &Term) -> Result<Vec<(Option<Term>, Term)>, TypeError> {
    let mut values = vec![];
    walk(compact, &mut |factors, given, read| {
        values.push((read.cloned(), given.clone()));
        Ok(factors.to_vec())
    })?;
    Ok(values)
}

/// Returns what each stage of [`frame`] reads, as a term without an argument: the program's inputs and views of them as they
/// are, and an input of its own for each computed array.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn sources(compact: &Term) -> Result<Vec<Term>, TypeError> {
    let mut sources = vec![];
    walk(compact, &mut |factors, _, read| {
        let ty = factors.last().map_or(&Ty::Unit, |f| &f.ty().dom);
        let before = read.map(Term::chain).unwrap_or_default();
        sources.push(source(&Chain { factors: &before, before: None }, ty, &mut 0)?);
        Ok(factors.to_vec())
    })?;
    Ok(sources)
}

/// Factors that are applied after others, the last first.
#[derive(Clone, Copy)]
struct Chain<'a> {
    factors: &'a [Term],
    before: Option<&'a Chain<'a>>,
}

impl<'a> Chain<'a> {
    /// Returns the last factor, and what is applied before it.
    fn split(&self) -> Option<(&'a Term, Chain<'a>)> {
        match self.factors {
            [f, factors @ ..] => Some((f, Chain { factors, ..*self })),
            [] => self.before?.split(),
        }
    }
}

/// Returns what a chain of factors gives, of type `ty`; `count` is the number of inputs so far.
fn source(chain: &Chain<'_>, ty: &Ty, count: &mut usize) -> Result<Term, TypeError> {
    let Some((f, before)) = chain.split() else { return stored(ty, count) };
    let both = |a: Term, b: Term| Term::new(Op::Fork, vec![], vec![], vec![a, b]);
    match f.op() {
        Op::Id => source(&before, ty, count),
        Op::Input(_) => Term::new(f.op().clone(), vec![], vec![Ty::Unit, ty.clone()], vec![]),
        Op::Fork => {
            let mut part = |a: &Term| {
                let of = Chain { factors: &a.chain(), before: Some(&before) };
                source(&of, &a.ty().cod, count)
            };
            both(part(&f.args()[0])?, part(&f.args()[1])?)
        }
        Op::Bimap => {
            let argument = source(&before, &f.ty().dom, count)?;
            let views = f.args().iter().all(|f| f.is_view() && !f.is_chosen());
            match (argument.op(), f.args(), argument.args()) {
                (Op::Fork, [f, g], [a, b]) if views => {
                    let after =
                        |f: &Term, a: &Term| Term::of_chain(&[f.chain(), a.chain()].concat());
                    both(after(f, a)?, after(g, b)?)
                }
                _ => stored(ty, count),
            }
        }
        _ if f.is_view() && !f.is_chosen() => {
            // The argument is a chain that is nested to the right.
            Term::of_chain(&[f.clone(), source(&before, &f.ty().dom, count)?])
        }
        _ => stored(ty, count),
    }
}

/// Returns inputs of this type, one for each component.
pub(super) fn stored(ty: &Ty, count: &mut usize) -> Result<Term, TypeError> {
    match ty {
        Ty::Unit => Ok(Term::id(&Ty::Unit)),
        Ty::Pair(a, b) => {
            let args = vec![stored(a, count)?, stored(b, count)?];
            Term::new(Op::Fork, vec![], vec![], args)
        }
        ty => {
            let name = format!("%read{count}");
            *count += 1;
            Term::new(Op::Input(name.into()), vec![], vec![Ty::Unit, ty.clone()], vec![])
        }
    }
}

/// Returns a frame in which stages that follow each other are one, and the numbers of the stages of each, the last that runs
/// first.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn collapsed(frame: &Term) -> Result<(Term, Vec<Vec<usize>>), TypeError> {
    fn walk(t: &Term, runs: &mut Vec<Vec<usize>>) -> Result<Term, TypeError> {
        let mut factors: Vec<Term> = vec![];
        let mut goes_on = false;
        for f in t.chain() {
            let own = match f.op() {
                Op::Input(name) => number(name),
                _ => None,
            };
            let Some(own) = own else {
                let args = f.args().iter().map(|a| walk(a, runs)).collect::<Result<Vec<_>, _>>()?;
                factors.push(f.with_args(args)?);
                goes_on = false;
                continue;
            };
            let outermost = if goes_on { factors.pop() } else { None };
            match (&outermost, runs.last_mut()) {
                (Some(_), Some(run)) => run.push(own),
                _ => runs.push(vec![own]),
            }
            let cod = outermost.map_or_else(|| f.ty().cod.clone(), |o| o.ty().cod.clone());
            let hole = format!("{HOLE}{}", runs.len() - 1);
            let tys = vec![f.ty().dom.clone(), cod];
            factors.push(Term::new(Op::Input(hole.into()), vec![], tys, vec![])?);
            goes_on = true;
        }
        Term::of_chain(&factors)
    }
    let mut all = vec![];
    Ok((walk(frame, &mut all)?, all))
}

/// Returns the term of a [`frame`] with these stages.
///
/// # Errors
/// When a stage has another type than the one that was taken out.
pub(super) fn framed(frame: &Term, parts: &[&Term]) -> Result<Term, TypeError> {
    let mut factors = vec![];
    for f in frame.chain() {
        let part = match f.op() {
            Op::Input(name) => number(name).and_then(|k| parts.get(k)),
            _ => None,
        };
        if let Some(part) = part {
            factors.extend(part.chain());
            continue;
        }
        let args = f.args().iter().map(|a| framed(a, parts)).collect::<Result<Vec<_>, _>>()?;
        factors.push(f.with_args(args)?);
    }
    Term::of_chain(&factors)
}

/// Returns the numbers of the stages of a [`frame`] in the order in which the host runs them first: what is applied first comes
/// first, and of a fork its first side. `None` if the host chooses between some of them.
pub(super) fn order(frame: &Term) -> Option<Vec<usize>> {
    let mut out = vec![];
    for f in frame.chain().iter().rev() {
        match f.op() {
            Op::Input(name) => out.extend(number(name)),
            Op::Cond => {
                if f.args().iter().any(|a| order(a).is_none_or(|stages| !stages.is_empty())) {
                    return None;
                }
            }
            _ => {
                for a in f.args() {
                    out.extend(order(a)?);
                }
            }
        }
    }
    Some(out)
}

/// Returns how often the host runs each stage of a [`frame`]. A loop that ends by a condition runs `iterations` times.
pub(super) fn runs(frame: &Term, dims: &SizeEnv, iterations: f64) -> Vec<f64> {
    fn walk(t: &Term, times: f64, dims: &SizeEnv, iterations: f64, out: &mut Vec<(usize, f64)>) {
        let times = match t.op() {
            Op::Input(name) => {
                out.extend(number(name).map(|k| (k, times)));
                return;
            }
            Op::Fold => {
                times * t.sizes().first().and_then(|n| n.eval(dims).ok()).map_or(1.0, |n| n as f64)
            }
            Op::While => times * iterations,
            _ => times,
        };
        t.args().iter().for_each(|a| walk(a, times, dims, iterations, out));
    }
    let mut out = vec![];
    walk(frame, 1.0, dims, iterations, &mut out);
    out.sort_by_key(|(k, _)| *k);
    out.into_iter().map(|(_, times)| times).collect()
}

/// Returns the number of the stage that an input stands for.
fn number(name: &str) -> Option<usize> {
    name.strip_prefix(HOLE)?.parse().ok()
}

/// What the names of stages that were taken out begin with. No input of a program has such a name.
const HOLE: &str = "%stage";

/// Stages as they stand at places, by the number of the place. Most stages of a term are also those of many others.
#[derive(Default)]
pub(super) struct Placed(Mutex<HashMap<(Term, usize), Term>>);

impl Placed {
    /// Renames the symbols of all stages but one, so that no two stages share a symbol.
    ///
    /// # Errors
    /// Never for a well-typed term; building the parts repeats the type checks.
    pub fn apart(&self, compact: &Term) -> Result<Staged, TypeError> {
        let mut parts: Vec<Term> = vec![];
        let mut number = 0;
        let compact = walk(compact, &mut |factors, _, _| {
            let own = factors.iter().map(|f| self.at(f, number)).collect::<Result<Vec<_>, _>>()?;
            number += usize::from(factors.iter().any(Term::is_chosen));
            parts.push(Term::of_chain(&own)?);
            Ok(own)
        })?;
        Ok(Staged { compact, parts })
    }

    /// Returns a factor of a stage as it stands at a place.
    fn at(&self, factor: &Term, number: usize) -> Result<Term, TypeError> {
        if number == 0 || !factor.is_chosen() {
            return Ok(factor.clone());
        }
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (factor.clone(), number);
        if let Some(known) = known().get(&key) {
            return Ok(known.clone());
        }
        let name = |s: &Sym| s.is_chosen().then(|| Size::sym(numbered(s, number)));
        let made = factor.with_chosen_sizes(&name)?;
        known().insert(key, made.clone());
        Ok(made)
    }
}

/// Returns the number under which each stage has its symbols in a whole term: see [`Placed`]. Stages without symbols do not count.
pub(super) fn numbers(parts: &[Term]) -> Vec<usize> {
    let count = |number: &mut usize, part: &Term| {
        let own = *number;
        *number += usize::from(part.is_chosen());
        Some(own)
    };
    parts.iter().scan(0, count).collect()
}

/// Returns the name of a chosen symbol of a stage at a place.
pub(super) fn numbered(s: &Sym, number: usize) -> Sym {
    if number == 0 { s.clone() } else { renamed(s, number) }
}

/// Returns the values of the chosen symbols in a stage, given the values of the symbols at a place.
pub(super) fn values_at(part: &Term, number: usize, env: &SizeEnv) -> SizeEnv {
    let mut own = SizeEnv::default();
    part.visit_chosen(&mut |t| {
        for s in t.sizes() {
            s.visit(&mut |sym| {
                if let (true, Some(value)) = (sym.is_chosen(), env.get(&numbered(sym, number))) {
                    own.insert(sym.clone(), *value);
                }
            });
        }
    });
    own
}

/// Returns `dims` extended by the dimensions that later stages have for themselves (`n'1`), which have the values of the common
/// ones.
pub(super) fn with_aliases(term: &Term, dims: &SizeEnv) -> SizeEnv {
    let mut out = dims.clone();
    // Only the symbols whose values tuning chooses belong to one stage, and what they are made of.
    term.visit_chosen(&mut |t| {
        for s in t.sizes() {
            s.visit(&mut |sym| {
                if !dims.contains_key(sym)
                    && let Some(Ok(value)) = sym.common().map(|common| common.eval(dims))
                {
                    out.insert(sym.clone(), value);
                }
            });
        }
    });
    out
}

/// Gives the factors that take the place of those of a stage; also gets what the stage gives and what it reads, as [`values`].
type Replace<'a> = &'a mut dyn FnMut(&[Term], &Term, Option<&Term>) -> Result<Vec<Term>, TypeError>;

/// Replaces the stages: whatever computes and is no host control.
fn walk(t: &Term, replace: Replace<'_>) -> Result<Term, TypeError> {
    let factors = t.chain();
    // The parts of a chain that is nested to the right are what its factors give.
    let mut given = if t.is_flat() { Some(t.clone()) } else { Some(Term::of_chain(&factors)?) };
    let mut stages: Vec<(Term, Vec<Term>)> = vec![];
    for f in factors {
        let Some(own) = given else { break };
        given = if *own.op() == Op::Compose { Some(own.args()[1].clone()) } else { None };
        match stages.last_mut() {
            Some((_, stage)) if !ends_before(stage, &f) => stage.push(f),
            _ => stages.push((own, vec![f])),
        }
    }
    let mut factors = vec![];
    for (k, (given, own)) in stages.iter().enumerate() {
        let read = stages.get(k + 1).map(|(read, _)| read);
        factors.extend(stage(own, given, read, replace)?);
    }
    Term::of_chain(&factors)
}

/// Whether factor `f` begins a new stage, given the factors of the stage before it, outermost first.
fn ends_before(stage: &[Term], f: &Term) -> bool {
    let alone = holds_stages(f) || stage.first().is_some_and(holds_stages);
    !orders(f)
        && !tied(stage)
        && !f.ty().cod.is_chosen()
        && (alone || (stage.iter().any(Term::is_chosen) && f.is_chosen()))
}

/// Whether a factor changes the order of elements, or of the elements of rows, by a chosen symbol. Another factor, with the
/// same symbol, restores the order.
fn orders(f: &Term) -> bool {
    match f.op() {
        Op::Stride | Op::Transpose => f.sizes().iter().any(Size::is_chosen),
        Op::Map(_) => f.is_view() && f.args()[0].chain().iter().any(orders),
        _ => false,
    }
}

/// Whether factors keep the order of what they read.
fn passes(f: &Term) -> bool {
    f.is_view() || matches!(f.op(), Op::Map(_))
}

/// Whether the order in which the factors of a stage read their argument may matter to their result: they order it, and
/// nothing that reads all of it stands between.
fn tied(stage: &[Term]) -> bool {
    stage.iter().rev().take_while(|f| passes(f)).any(orders)
}

/// Whether the order of a function's result may depend on a chosen symbol.
fn gives_order(t: &Term) -> bool {
    t.chain().iter().take_while(|f| passes(f)).any(orders)
}

/// Whether the arguments of a factor have stages of their own: the factor only passes values on, or the host runs it as a
/// loop over kernels.
fn holds_stages(t: &Term) -> bool {
    match t.op() {
        Op::Fork | Op::Bimap => true,
        Op::Fold | Op::While => {
            let mut parallel = false;
            t.visit(&mut |t| {
                parallel |= matches!(t.op(), Op::Map(MapKind::Glb(_) | MapKind::Wrg(_)));
            });
            parallel
        }
        _ => false,
    }
}

fn stage(
    factors: &[Term],
    given: &Term,
    read: Option<&Term>,
    replace: Replace<'_>,
) -> Result<Vec<Term>, TypeError> {
    if let [t] = factors
        && holds_stages(t)
        && t.args()
            .iter()
            .all(|a| !a.ty().dom.is_chosen() && !a.ty().cod.is_chosen() && !gives_order(a))
    {
        let mut args = vec![];
        for a in t.args() {
            args.push(walk(a, replace)?);
        }
        return Ok(vec![t.with_args(args)?]);
    }
    match factors.iter().all(Term::is_view) {
        true => Ok(factors.to_vec()),
        false => replace(factors, given, read),
    }
}

fn renamed(s: &Sym, number: usize) -> Sym {
    let of = |of: &Size| match of.as_constant() {
        Some(n) => Size::sym(Sym::of_stage(&n.to_string(), number)),
        None => of.substitute(&|s| Some(Size::sym(renamed(s, number)))),
    };
    match s {
        Sym::Dim(name) => Sym::of_stage(name, number),
        Sym::Tile(n) => Sym::Tile(of(n)),
        Sym::Width(n) => Sym::Width(of(n)),
        Sym::Round(n) => Sym::Round(of(n)),
        Sym::Meta(name) => Sym::Meta(name.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::text::{Context, read_term};
    use crate::diag::Source;
    use crate::lang::types::ScalarType;

    fn term(text: &str) -> Term {
        let xs = Ty::array(&Size::dim("n"), &Ty::Scalar(ScalarType::F32));
        let context = Context { inputs: [("xs".to_owned(), xs)].into(), variables: None };
        read_term(&Source::new("t", text), &Ty::Unit, &context).expect("a term")
    }

    fn apart(t: &Term) -> Result<Staged, TypeError> {
        Placed::default().apart(t)
    }

    const MAP: &str = "join . mapGlb 0 (mapSeq abs) . split n.t0";

    #[test]
    fn stages_have_tiles_of_their_own() {
        let last = r"map (\(a, b) -> a * b) . distr";
        let t = term(&format!("{last} . fork ({MAP}) (reduceSeq (+) 0.0 . {MAP}) . {MAP} . xs"));
        let staged = apart(&t).expect("well-typed");
        let text = staged.compact.to_string();
        // The last one has no tiles.
        assert_eq!(staged.parts.len(), 4, "{text}");
        assert_eq!(numbers(&frame(&t).expect("well-typed").1), [0, 0, 1, 2]);
        for tile in ["split n.t0", "split n'1.t0", "split n'2.t0"] {
            assert_eq!(text.matches(tile).count(), 1, "{text}");
        }
        // The renamed term can be printed and read again, and its dimensions have values.
        assert_eq!(term(&text), staged.compact);
        let dims = SizeEnv::from_iter([(Sym::Dim("n".into()), 12)]);
        let all = with_aliases(&staged.compact, &dims);
        assert_eq!((all.len(), all.get(&Sym::Dim("n'2".into()))), (3, Some(&12)));
    }

    /// The tile of a number has no dimension that can be renamed.
    #[test]
    fn tiles_of_numbers_are_of_one_stage() {
        let each = "map (take 5) . mapGlb 0 (join . mapSeq (mapSeq abs) . split 5.t0 . padLast 5^)";
        let t = term(&format!("{each} . {each} . slide 5 1 (n - 4) . xs"));
        let staged = apart(&t).expect("well-typed");
        let text = staged.compact.to_string();
        for tile in ["split 5.t0", "split 5'1.t0", "padLast 5'1^"] {
            assert_eq!(text.matches(tile).count(), 1, "{text}");
        }
        assert_eq!(term(&text), staged.compact);
        let all = with_aliases(&staged.compact, &SizeEnv::default());
        assert_eq!(all.get(&Sym::of_stage("5", 1)), Some(&5));
    }

    #[test]
    fn stages_are_known_by_what_they_read_and_give() {
        let t = term(
            &format!("{MAP} . fork ({MAP}) id . xs")
                .replace("abs) . split n.t0 . fork", "fst) . split n.t0 . zip . fork"),
        );
        let values = values(&t).expect("well-typed");
        let (_, parts) = frame(&t).expect("well-typed");
        assert_eq!(values.len(), parts.len());
        let text = |t: &Term| t.to_string();
        // The last stage gives the whole; the one within the fork reads the argument of the fork.
        assert_eq!(text(&values[0].1), text(&t));
        assert_eq!(values[0].0.as_ref().map(text), Some(format!("fork ({MAP}) id . xs")));
        assert_eq!((values[1].0.as_ref(), text(&values[1].1)), (None, MAP.to_owned()));
    }

    #[test]
    fn stages_run_from_the_inside_out() {
        let ordered = |text: &str| order(&frame(&term(text)).expect("well-typed").0);
        let last = r"map (\(a, b) -> a * b) . distr";
        let forked = format!("{last} . fork ({MAP}) (reduceSeq (+) 0.0 . {MAP}) . {MAP} . xs");
        assert_eq!(ordered(&forked), Some(vec![3, 1, 2, 0]));
    }

    #[test]
    fn orders_that_depend_on_tiles_tie_stages() {
        for text in [
            format!(
                "reorderStride (n/n.t0) . join . transpose . mapGlb 0 (mapSeq abs) . split n.t0 . {MAP} . xs"
            ),
            format!(
                "join . transpose . mapGlb 0 (mapSeq abs) . split n.t0 . reorderStride (n/n.t0) . {MAP} . xs"
            ),
            format!("reorderStride (n/n.t0) . zip . fork (reorderStride n.t0 . {MAP}) id . xs"),
            // What meets in a zip has one order.
            format!(
                "reduceSeq (\\(c, (a, b)) -> c + a * b) 0.0 . zip . fork (reorderStride n.t0 . {MAP}) (reorderStride n.t0 . {MAP}) . xs"
            ),
            format!(
                "the . map (reorderStride (n/n.t0) . join . transpose) . wrap . mapGlb 0 (mapSeq abs) . split n.t0 . {MAP} . xs"
            ),
        ] {
            let t = term(&text);
            assert_eq!(apart(&t).expect("well-typed").compact, t, "{text}");
        }
        // Nothing restores the order behind the last map: there it does not matter.
        let t = term(&format!("{MAP} . {MAP} . reorderStride n.t0 . xs"));
        assert_eq!(apart(&t).expect("well-typed").parts.len(), 2);
    }

    #[test]
    fn stages_that_pass_on_partial_results_agree() {
        let t = term("reduceSeq (+) 0.0 . mapGlb 0 (reduceSeq (+) 0.0) . split n.t0 . xs");
        let staged = apart(&t).expect("well-typed");
        assert_eq!((staged.compact, staged.parts.len()), (t.clone(), 1));
    }
}
