//! Checks whether the operators of a program keep the laws that its patterns rely on.
//!
//! `reduce`, `reducePart`, `scan` and `histogram` need an associative operator with its neutral element;
//! `reduce_comm` and `histogram` need a commutative one as well. Rewriting regroups and pads, so a wrong operator would silently
//! give a wrong result. Laws of operators that are built of the language's own operations are proved
//! ([`decide`]). Other operators are tried in the interpreter, on elements that the program itself makes of
//! random inputs, so that `reduce max 0` is fine if every element is an absolute value; captured variables
//! have the values that they have there. If a program makes no elements (an index out of bounds, a division
//! by zero), random values of the elements' type are used. The constants that an operator compares with may
//! lie far from every random number: inputs are also taken from around its own constants.
//!
//! Floats are compared as results of kernels are: two groupings may differ by rounding errors of up to 64
//! units of the magnitudes that went into them. So sums pass and differences do not. A grouping that
//! overflows says nothing, and neither do elements that are no numbers. The tests use numbers of several magnitudes, equal numbers, and numbers near one
//! another. Passing is no proof.

mod constants;
mod decide;
mod find;
mod slice;
mod start;

use crate::calculus::interp::{self, Sizes};
use crate::calculus::sample::{self, Style};
use crate::calculus::value::{Tolerance, Value, compare_values};
use crate::diag::{Code, Diagnostic, Label, Span};
use crate::lang::typed::{Entry, Expr, ExprKind, Fun, Param, VarId};
use crate::lang::types::Type;
use constants::Constants;
pub(in crate::calculus) use decide::unit_of;
use find::{Site, relies};
use rand::RngExt;
use slice::{Sample, Slice, Values, expr, small_sizes};
pub use start::{Begins, begin, begins};

/// Runs of a program for each operator, on values of every style; as many again on values around its
/// constants, if any.
const RUNS: u64 = 60;
/// Triples of elements that are tested in each run.
const TRIPLES: usize = 4;

/// A law of an operator, in the order in which violations are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Law {
    /// `(a . b) . c = a . (b . c)`
    Associative,
    /// `z . a = a`
    LeftNeutral,
    /// `a . z = a`
    RightNeutral,
    /// `a . b = b . a`
    Commutative,
}

/// Tries the operators of an entry that are not proved to keep their laws. Returns diagnostics with spans but
/// no source: errors for broken laws, and warnings for operators on which no values could be tried.
pub fn check(entry: &Entry, sizes: &Sizes) -> Vec<Diagnostic> {
    let sites = find::sites(entry);
    sites.iter().enumerate().filter_map(|(i, site)| site_check(entry, sizes, site, i)).collect()
}

/// What trying an operator on values has shown.
struct Tried<'a> {
    /// Whether it had a value on any.
    any: bool,
    /// The first of the laws that it breaks.
    broken: Option<(Law, Case)>,
    trial: Trial<'a>,
}

fn site_check(entry: &Entry, given: &Sizes, site: &Site, number: usize) -> Option<Diagnostic> {
    let Tried { any, broken, trial } = tried(entry, given, site, number);
    if let Some((law, case)) = broken {
        return Some(trial.diagnostic(&trial.shrink(case, law), law));
    }
    if any {
        return None;
    }
    let text = format!("the operator of `{}` cannot be tested", site.name());
    let mut d = Diagnostic::warning(Code::OperatorUntested, text);
    d.labels.push(Label { span: site.op.body.span, text: "this operator".into(), primary: true });
    Some(d.note("no random values were found on which it has a value").help(
        "it is taken to be associative, with the neutral element as given; `--trust-laws` says so without a warning",
    ))
}

/// Tries the operator of a site on elements that the program makes, or on random ones if it makes none.
fn tried<'a>(entry: &'a Entry, given: &Sizes, site: &'a Site, number: usize) -> Tried<'a> {
    let made = tried_on(entry, given, site, number, true);
    if made.any { made } else { tried_on(entry, given, site, number, false) }
}

/// As [`tried`]; `own` says whether the program makes the elements.
fn tried_on<'a>(
    entry: &'a Entry,
    given: &Sizes,
    site: &'a Site,
    number: usize,
    own: bool,
) -> Tried<'a> {
    let name = format!("{}.{number}", entry.name);
    // An operator that breaks several laws is reported for the first of them.
    let mut broken: Option<(Law, Case)> = None;
    let slice = Slice::of(entry, site, own);
    let trial = Trial::new(entry, site, &slice);
    let mut any = false;
    let mut constants = Constants::of(entry, site);
    for run in 0..2 * RUNS {
        let rng = &mut sample::rng(u64::from(own), &name, run);
        let sizes = small_sizes(rng, entry, given);
        let styles = [Style::Small, Style::Few, Style::Real, Style::Near, Style::Count];
        let style = styles[usize::try_from(run).unwrap_or(0) % styles.len()];
        let values = match run < RUNS {
            true => Values::Of(style),
            false if constants.is_empty() => break,
            false => Values::Around(constants.list()),
        };
        let Ok(Some(sample)) = slice.run(rng, &sizes, values) else { continue };
        let Sample { sizes, captured, z, elements: mut pool } = sample;
        // A captured variable may well be a constant of the operator.
        captured.iter().for_each(|v| constants.add(v));
        // Kernels pad with the initial value, so it is combined with itself.
        if !pool.is_empty() {
            pool.push(z.clone());
        }
        for _ in 0..TRIPLES {
            if pool.is_empty() {
                break;
            }
            let [a, b, c] = [(); 3].map(|()| pool[rng.random_range(0..pool.len())].clone());
            if [&a, &b, &c].into_iter().any(has_nan) {
                continue;
            }
            let at =
                Case { sizes: sizes.clone(), captured: captured.clone(), z: z.clone(), a, b, c };
            let Some(results) = trial.results(&at) else { continue };
            any = true;
            // Partial results are possible arguments too.
            pool.extend([results.ab.clone(), results.bc.clone()]);
            if let Some(law) = trial.broken(&at, &results)
                && broken.as_ref().is_none_or(|(first, _)| law < *first)
            {
                broken = Some((law, at));
            }
        }
        if matches!(broken, Some((Law::Associative, _))) {
            break;
        }
    }
    Tried { any, broken, trial }
}

/// The arguments for one test of an operator.
#[derive(Clone)]
struct Case {
    sizes: Sizes,
    captured: Vec<Value>,
    z: Value,
    a: Value,
    b: Value,
    c: Value,
}

/// The results of an operator on the arguments of a case.
struct Results {
    ab_c: Value,
    a_bc: Value,
    za: Value,
    az: Value,
    ab: Value,
    bc: Value,
    ba: Value,
}

/// An operator as an entry that computes everything that the laws compare.
struct Trial<'a> {
    entry: Entry,
    source: &'a Entry,
    site: &'a Site<'a>,
    captured: Vec<(VarId, Type)>,
    element: Type,
}

impl<'a> Trial<'a> {
    fn new(source: &'a Entry, site: &'a Site<'a>, slice: &Slice) -> Trial<'a> {
        let element = &slice.element;
        let mut entry = Entry { params: vec![], divides: vec![], ..source.clone() };
        let fresh = |entry: &mut Entry, name: &str| {
            entry.names.push(name.to_owned());
            VarId(u32::try_from(entry.names.len() - 1).unwrap_or(u32::MAX))
        };
        let mut params = slice.captured.clone();
        let [z, a, b, c, ab, bc] = ["z", "a", "b", "c", "ab", "bc"].map(|n| fresh(&mut entry, n));
        params.extend([z, a, b, c].map(|v| (v, element.clone())));
        let var = |v: VarId| expr(ExprKind::Var(v), element.clone());
        let both = |x: VarId, y: VarId| applied(site.op, var(x), var(y));
        let parts =
            vec![both(ab, c), both(a, bc), both(z, a), both(a, z), var(ab), var(bc), both(b, a)];
        let ty = Type::Tuple(parts.iter().map(|e| e.ty.clone()).collect());
        let tuple = expr(ExprKind::Tuple(parts), ty.clone());
        let bound = |v: VarId, value: Expr, body: Expr| {
            expr(ExprKind::Let(v, Box::new(value), Box::new(body)), ty.clone())
        };
        entry.body = bound(ab, both(a, b), bound(bc, both(b, c), tuple));
        for (var, ty) in params {
            let name = entry.names.get(var.0 as usize).cloned().unwrap_or_default();
            entry.params.push(Param { name, var, ty, labels: vec![], span: Span::default() });
        }
        let (captured, element) = (slice.captured.clone(), element.clone());
        Trial { entry, source, site, captured, element }
    }

    /// Returns the results; `None` if the operator has no value.
    fn results(&self, case: &Case) -> Option<Results> {
        let mut inputs = case.captured.clone();
        inputs.extend([&case.z, &case.a, &case.b, &case.c].map(Value::clone));
        let out = interp::run(&self.entry, &case.sizes, &inputs).ok()?;
        let width = interp::shape(&self.element, &case.sizes).ok()?.width();
        let part = |i: usize| out.part(i * width..(i + 1) * width);
        let [ab_c, a_bc, za, az, ab, bc, ba] = std::array::from_fn(part);
        Some(Results { ab_c, a_bc, za, az, ab, bc, ba })
    }

    fn broken(&self, case: &Case, r: &Results) -> Option<Law> {
        let finite = |v: &Value| v.to_floats().iter().all(|x| x.is_finite());
        let differ = |x: &Value, y: &Value| {
            let near = |x: &Value, y: &Value| compare_values(x, y, |t| Tolerance::of(t, 4)).ok;
            !near(x, y) && !near(y, x)
        };
        // An overflow in one grouping says nothing about associativity, but one with the neutral element
        // breaks the law.
        let apart = |x: &Value, y: &Value| finite(x) && finite(y) && differ(x, y);
        if apart(&r.ab_c, &r.a_bc) {
            Some(Law::Associative)
        } else if finite(&case.a) && differ(&r.za, &case.a) {
            Some(Law::LeftNeutral)
        } else if finite(&case.a) && differ(&r.az, &case.a) {
            Some(Law::RightNeutral)
        } else if self.site.commutes && apart(&r.ab, &r.ba) {
            Some(Law::Commutative)
        } else {
            None
        }
    }

    /// Returns a case that is easier to read and breaks the same law.
    fn shrink(&self, mut case: Case, law: Law) -> Case {
        let breaks = |c: &Case| self.results(c).and_then(|r| self.broken(c, &r)) == Some(law);
        let step = |case: &Case| -> Option<Case> {
            let own = [&case.a, &case.b, &case.c];
            let mut next: Vec<Case> = vec![];
            for (i, v) in own.into_iter().enumerate() {
                for simple in sample::simpler(v) {
                    let mut with = case.clone();
                    *[&mut with.a, &mut with.b, &mut with.c][i] = simple;
                    next.push(with);
                }
            }
            for (i, v) in case.captured.iter().enumerate() {
                for simple in sample::simpler(v) {
                    let mut with = case.clone();
                    with.captured[i] = simple;
                    next.push(with);
                }
            }
            next.into_iter().find(breaks)
        };
        // Each step makes some element simpler, but there may be many steps.
        for _ in 0..200 {
            match step(&case) {
                Some(simpler) => case = simpler,
                None => break,
            }
        }
        case
    }

    fn diagnostic(&self, case: &Case, law: Law) -> Diagnostic {
        let name = self.site.name();
        let show = |ty: &Type, v: &Value| -> String {
            interp::shape(ty, &case.sizes).map_or_else(|_| v.to_string(), |s| s.show(v))
        };
        let value = |v: &Value| show(&self.element, v);
        let (operator, unit) = (self.site.op.body.span, self.site.z.span);
        let (text, at, label) = match law {
            Law::Associative => {
                (format!("the operator of `{name}` is not associative"), operator, "this operator")
            }
            Law::Commutative => {
                (format!("the operator of `{name}` is not commutative"), operator, "this operator")
            }
            Law::LeftNeutral | Law::RightNeutral => (
                format!("the initial value of `{name}` is not a neutral element of its operator"),
                unit,
                "this value",
            ),
        };
        let mut d = Diagnostic::error(Code::OperatorLaw, text);
        d.labels.push(Label { span: at, text: label.into(), primary: true });
        if at != self.site.span {
            let text = format!("of this `{name}`");
            d.labels.push(Label { span: self.site.span, text, primary: false });
        }
        for ((v, t), x) in self.captured.iter().zip(&case.captured) {
            let name = self.source.names.get(v.0 as usize).map_or("?", String::as_str);
            d = d.note(format!("with {name} = {}", show(t, x)));
        }
        let (a, b, c, z) = (value(&case.a), value(&case.b), value(&case.c), value(&case.z));
        let Some(r) = self.results(case) else { return d };
        d = match law {
            Law::Associative => d
                .note(format!("a = {a}, b = {b}, c = {c}"))
                .note(format!("op (op a b) c = {}", value(&r.ab_c)))
                .note(format!("op a (op b c) = {}", value(&r.a_bc))),
            Law::Commutative => d
                .note(format!("a = {a}, b = {b}"))
                .note(format!("op a b = {}", value(&r.ab)))
                .note(format!("op b a = {}", value(&r.ba))),
            Law::LeftNeutral => {
                d.note(format!("z = {z}, a = {a}")).note(format!("op z a = {}", value(&r.za)))
            }
            Law::RightNeutral => {
                d.note(format!("z = {z}, a = {a}")).note(format!("op a z = {}", value(&r.az)))
            }
        };
        let way = match law {
            Law::Associative if name.starts_with("scan") => {
                "`scanSeq` goes from the left and asks nothing of its operator; the steps `x -> a * x + b` are composed by the associative operator `\\(a, b) (c, d) -> (c * a, c * b + d)`"
            }
            Law::Associative => "`reduceSeq` folds from the left and asks nothing of its operator",
            Law::Commutative => "`reduce` keeps the order of the elements",
            Law::LeftNeutral | Law::RightNeutral => {
                "the initial value may be taken any number of times: combine it with the result instead"
            }
        };
        d.help(way).help("`--trust-laws` takes the law for granted, whatever the values")
    }
}

/// Returns whether a part of a value is no number. Comparisons with it are false, so an operator that chooses the greater of two
/// elements depends on its order; a program whose elements have one has no other result to be compared with.
fn has_nan(v: &Value) -> bool {
    v.to_floats().iter().any(|x| x.is_nan())
}

/// `op x y`.
fn applied(op: &Fun, x: Expr, y: Expr) -> Expr {
    let mut out = (*op.body).clone();
    for ((v, _), value) in op.params.iter().zip([x, y]).rev() {
        let ty = out.ty.clone();
        out = expr(ExprKind::Let(*v, Box::new(value), Box::new(out)), ty);
    }
    out
}

#[cfg(test)]
mod tests;
