//! Loops that fold become reductions.
//!
//! `loop acc = z for k < n do acc + xs[k] * ys[k]` is a sum, and so is `acc` in a loop that takes a maximum besides. As a loop, one
//! work-item computes it; as a reduction, many can, and a nest of such sums is a product of matrices. If the number of steps
//! depends on data, but never exceeds some number, as in `for k < i` under `map f (iota n)`, the reduction goes through as many elements
//! as there may be, of which those behind the end are neutral.
//!
//! This is another form of the program: a loop may stop early, and a hand-lowered program means its loops. Sums and products of floats
//! in another order hold up to rounding only (see [`Approx`]).

use super::approx::Approx;
use super::core::{Ex, Kind, Lambda, Layout, Var, Vars};
use super::enter;
use super::interchange::named;
use super::ranges::Ranges;
use super::recurrences::number_of_steps;
use super::shifts::{self, Shifted, Sum, Sums};
use super::sizes::nest;
use crate::calculus::laws;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::diag::Span;
use crate::lang::typed::{Prim, ScalarOp};
use crate::lang::types::ScalarType;

/// Fewest steps for which a reduction may pay: a short sum of floats may be one of a product of matrices.
const STEPS: u64 = 64;
const OF_FLOATS: u64 = 16;

/// Most steps of a loop whose number of steps is not known: a reduction goes through all of them.
const MOST: u64 = 1 << 24;

/// Returns the program with reductions in place of such loops; `None` if there are none.
pub(super) fn as_reductions(
    e: &Ex,
    env: &SizeEnv,
    approx: &mut Approx,
    fresh: &mut dyn FnMut() -> Var,
) -> Option<Ex> {
    let mut out = e.clone();
    let (ranges, names) = (Ranges::new(env), Sums::new());
    let mut folds = Folds { env, ranges, names, approx, fresh, changed: false };
    folds.walk(&mut out);
    folds.changed.then_some(out)
}

struct Folds<'a> {
    env: &'a SizeEnv,
    ranges: Ranges<'a>,
    /// What names of integers stand for.
    names: Sums,
    approx: &'a mut Approx,
    fresh: &'a mut dyn FnMut() -> Var,
    changed: bool,
}

/// The steps of a loop.
struct Steps<'e> {
    init: &'e Ex,
    acc: &'e Layout,
    /// The counter, or the element of an array, and all its values.
    element: Layout,
    array: Ex,
    body: Ex,
    /// Which of the values are those of steps, and the names that the condition uses.
    within: Option<(Ex, Vec<(Layout, Ex)>)>,
}

/// What a loop does to one component of its state.
struct Part {
    op: ScalarOp,
    /// What each step adds.
    element: Ex,
    unit: Ex,
}

impl Folds<'_> {
    fn walk(&mut self, e: &mut Ex) {
        self.ranges.enter(e);
        if let Kind::Let(Layout::Var(v, _), value, _) = &e.kind
            && let Some(sum) = Sum::of(value, &self.names)
        {
            self.names.insert(*v, sum);
        }
        match &e.kind {
            // The program itself has chosen what a low-level map computes.
            Kind::Map(prim, ..) if *prim != Prim::Map => return,
            _ => e.parts_mut().into_iter().for_each(|part| self.walk(part)),
        }
        if let Some(reduction) = self.fold(e, 1) {
            *e = reduction;
            self.changed = true;
        }
        self.elements(e);
    }

    /// Changes the short loops whose results a reduction combines by their own operation.
    fn elements(&mut self, e: &mut Ex) {
        let Some(op) = reduced_by(e) else { return };
        let Kind::Prim(_, _, _, args) = &mut e.kind else { return };
        let [_, Ex { kind: Kind::Map(Prim::Map, f, _), ty: Ty::Array(n, _), .. }] = &mut args[..]
        else {
            return;
        };
        if let Ok(n) = n.eval(self.env) {
            self.changed |= self.nested(&mut f.body, Some(op), n);
        }
    }

    /// Changes the loops in what each step of `around` steps gives, those that fold by `op` if it is known. Returns whether there were any.
    fn nested(&mut self, e: &mut Ex, op: Option<ScalarOp>, around: u64) -> bool {
        match &mut e.kind {
            Kind::Let(_, _, body) => self.nested(body, op, around),
            Kind::If(_, yes, no) => self.nested(yes, op, around) | self.nested(no, op, around),
            Kind::Pair(a, b) => self.nested(a, None, around) | self.nested(b, None, around),
            Kind::Op(of, args) if folds(*of) && op.is_none_or(|op| op == *of) => {
                let of = Some(*of);
                args.iter_mut().fold(false, |changed, a| changed | self.nested(a, of, around))
            }
            _ => {
                let reduction = self.fold(e, around).filter(|r| {
                    let reduced = match &r.kind {
                        Kind::Op(of, _) => Some(*of),
                        _ => reduced_by(r.behind_lets()),
                    };
                    op.is_none() || reduced == op
                });
                let changed = reduction.is_some();
                reduction.into_iter().for_each(|r| *e = r);
                changed
            }
        }
    }

    /// Returns the reduction that a loop computes, which all of `around` steps run.
    fn fold(&mut self, e: &Ex, around: u64) -> Option<Ex> {
        let span = e.span;
        let Steps { init, acc, element, array, mut body, within } = match &e.kind {
            Kind::For(init, bound, counter, acc, body) => match number_of_steps(bound) {
                Some(n) => {
                    let array = Ex::iota(&n, &counter.ty(), span);
                    let (element, body) = (counter.clone(), (**body).clone());
                    Steps { init, acc, element, array, body, within: None }
                }
                None => self.bounded(e)?,
            },
            Kind::Prim(Prim::ReduceSeq, f, _, args) => {
                let ([f], [init, xs]) = (&f[..], &args[..]) else { return None };
                let [acc, x] = &f.params[..] else { return None };
                let (element, body) = (x.clone(), (*f.body).clone());
                Steps { init, acc, element, array: xs.clone(), body, within: None }
            }
            _ => return None,
        };
        let Ty::Array(n, _) = &array.ty else { return None };
        let floats = acc.vars().iter().any(|(_, t)| scalar(t).is_some_and(ScalarType::is_float));
        let steps = n.eval(self.env).ok()?.saturating_mul(around);
        if !self.nested(&mut body, None, steps) && steps < if floats { OF_FLOATS } else { STEPS } {
            return None;
        }
        let (mut lets, mut result) = (vec![], &body);
        while let Kind::Let(p, value, inner) = &result.kind {
            lets.push((p.clone(), (**value).clone()));
            result = inner;
        }
        let own: Vars = acc.vars().into_iter().map(|(v, _)| v).collect();
        let mut parts = vec![];
        parts_of(acc, result, &mut parts)?;
        let mentions = |e: &Ex| !e.free().is_disjoint(&own);
        if lets.iter().any(|(_, value)| mentions(value))
            || parts.iter().any(|p| mentions(&p.element))
        {
            return None;
        }
        // A step that has an answer does not compute its own element.
        let is_lazy = |p: &Part| matches!(p.op, ScalarOp::And | ScalarOp::Or);
        if parts.iter().any(|p| is_lazy(p) && !self.ranges.cannot_fail(&p.element)) {
            return None;
        }
        let is_sum = |p: &Part| matches!(p.op, ScalarOp::Add | ScalarOp::Mul);
        let is_float = |p: &Part| scalar(&p.element.ty).is_some_and(ScalarType::is_float);
        if parts.iter().any(|p| is_sum(p) && is_float(p)) && !self.approx.use_it() {
            return None;
        }
        let elements = nest(parts.iter().map(|p| p.element.clone()).collect(), Ex::pair)?;
        let units = nest(parts.iter().map(|p| p.unit.clone()).collect(), Ex::pair)?;
        let mut of_step = elements.after(lets);
        let mut bounds = vec![];
        if let Some((condition, named)) = within {
            of_step = Ex::choice(condition, of_step, units.clone());
            bounds = named;
        }
        let mapped = Ex::map_of(of_step, [(&element, &array)], self.fresh)?;
        if units.ty != e.ty {
            return None;
        }
        let from_unit = *init == units;
        let operator = self.operator(&parts, &e.ty, span)?;
        let kind = Kind::Prim(Prim::Reduce, vec![operator], vec![], vec![units, mapped]);
        let reduced = Ex::new(kind, e.ty.clone(), span).after(bounds);
        if from_unit {
            return Some(reduced);
        }
        // The initial value need not be neutral: it takes part once.
        if let [part] = &parts[..] {
            let kind = Kind::Op(part.op, vec![init.clone(), reduced]);
            return Some(Ex { kind, ..e.clone() });
        }
        let Lambda { params, mut body } = self.operator(&parts, &e.ty, span)?;
        let [first, rest] = &params[..] else { return None };
        if !init.is_free_of_cost() {
            return Some(body.bound(rest.clone(), reduced).bound(first.clone(), init.clone()));
        }
        // A loop around this one folds each component, as it is named there.
        first.put_in(&mut body, init);
        Some(body.bound(rest.clone(), reduced))
    }

    /// Returns the steps of a loop whose number of steps is only known to have a bound.
    fn bounded<'e>(&mut self, e: &'e Ex) -> Option<Steps<'e>> {
        let Kind::For(init, bound, Layout::Var(counter, ty), acc, body) = &e.kind else {
            return None;
        };
        let (span, of) = (e.span, scalar(ty)?);
        let most = u64::try_from(self.ranges.greatest(bound)?).ok()?;
        let given = ((*counter, of), acc, &**bound, &**body);
        let shifted = shifts::shifted(given, most, &self.ranges, &self.names, self.fresh);
        let (counter, body, n, from, to) = match shifted {
            Some(Shifted { counter, body, n, from, to }) => (counter, body, n, Some(from), to),
            None => {
                let n = shifts::length_of_read(body, *counter, most, &self.ranges);
                let n = n.unwrap_or_else(|| Size::constant(most));
                let counter = Layout::Var(*counter, ty.clone());
                (counter, (**body).clone(), n, None, Some((**bound).clone()))
            }
        };
        if self.ranges.size(&n)? > MOST {
            return None;
        }
        let compared = |op, a, b| Ex::op(op, vec![a, b], ScalarType::Bool, span);
        // All steps have the same bound, which is computed once.
        let named = to.map(|to| (named(ty, self.fresh), to));
        let above = from.map(|from| compared(ScalarOp::Le, from, counter.value(span)));
        let below = named
            .iter()
            .map(|(name, _)| compared(ScalarOp::Lt, counter.value(span), name.value(span)));
        let both = |a, b| compared(ScalarOp::And, a, b);
        let within = above.into_iter().chain(below).reduce(both)?;
        let array = Ex::iota(&n, ty, span);
        let within = Some((within, named.into_iter().collect()));
        Some(Steps { init, acc, element: counter, array, body, within })
    }

    /// Returns the operator of a reduction by parts.
    fn operator(&mut self, parts: &[Part], ty: &Ty, span: Span) -> Option<Lambda> {
        let (a, b) = (named(ty, self.fresh), named(ty, self.fresh));
        let both = parts.iter().zip(a.vars()).zip(b.vars()).map(|((p, (a, t)), (b, _))| {
            let value = |v: Var| Ex::new(Kind::Var(v), t.clone(), span);
            Ex { kind: Kind::Op(p.op, vec![value(a), value(b)]), ty: t.clone(), span }
        });
        let body = nest(both.collect(), Ex::pair)?;
        Some(Lambda { params: vec![a, b], body: Box::new(body) })
    }
}

/// Adds what a step does to each component of the state; `None` if that is no fold.
fn parts_of(acc: &Layout, next: &Ex, out: &mut Vec<Part>) -> Option<()> {
    match (acc, &next.kind) {
        (Layout::Pair(a, b), Kind::Pair(x, y)) => {
            parts_of(a, x, out)?;
            parts_of(b, y, out)
        }
        (Layout::Var(v, _), _) => {
            let (op, element) = folded(next, *v)?;
            let unit = unit(op, &element)?;
            out.push(Part { op, element, unit });
            Some(())
        }
        _ => None,
    }
}

/// Returns the operation by which a step adds an element to a component of the state, and the element.
fn folded(next: &Ex, acc: Var) -> Option<(ScalarOp, Ex)> {
    let is_acc = |e: &Ex| e.kind == Kind::Var(acc);
    match &next.kind {
        Kind::Op(op, args) if folds(*op) => {
            let [a, b] = &args[..] else { return None };
            let (inner, other) = if b.uses(acc) == 0 { (a, b) } else { (b, a) };
            if other.uses(acc) > 0 {
                return None;
            }
            if is_acc(inner) {
                return Some((*op, other.clone()));
            }
            // `acc + a + b` adds `a + b`.
            let (of, element) = folded(inner, acc)?;
            let both = Kind::Op(*op, vec![element, other.clone()]);
            (of == *op).then(|| (of, Ex { kind: both, ..next.clone() }))
        }
        // A choice may leave the state as it is.
        Kind::If(c, yes, no) if c.uses(acc) == 0 => {
            let (step, is_first) = if is_acc(no) { (yes, true) } else { (no, false) };
            if !is_first && !is_acc(yes) {
                return None;
            }
            let (op, element) = folded(step, acc)?;
            let unit = unit(op, &element)?;
            let (yes, no) = if is_first { (element, unit) } else { (unit, element) };
            Some((op, Ex::choice((**c).clone(), yes, no)))
        }
        _ => None,
    }
}

/// Returns the operation of a reduction by one.
fn reduced_by(e: &Ex) -> Option<ScalarOp> {
    let Kind::Prim(Prim::Reduce | Prim::ReduceComm, funs, ..) = &e.kind else { return None };
    match funs.first().map(|f| &f.body.kind) {
        Some(Kind::Op(op, args)) if args.iter().all(|a| matches!(a.kind, Kind::Var(_))) => {
            Some(*op)
        }
        _ => None,
    }
}

/// Whether an operation is associative and commutative on the types that it has a neutral element for.
fn folds(op: ScalarOp) -> bool {
    use ScalarOp as O;
    matches!(
        op,
        O::Add | O::Mul | O::Min | O::Max | O::And | O::Or | O::BitAnd | O::BitOr | O::BitXor
    )
}

/// Returns the neutral element of an operation, for elements such as this one.
fn unit(op: ScalarOp, element: &Ex) -> Option<Ex> {
    let ty = scalar(&element.ty)?;
    let value = enter::literal(laws::unit_of(op, ty)?, ty);
    Some(Ex::new(Kind::Lit(value), element.ty.clone(), element.span))
}

/// Returns the type of a scalar.
fn scalar(ty: &Ty) -> Option<ScalarType> {
    match ty {
        Ty::Scalar(s) => Some(*s),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::texts::elaborated;

    /// Whether a form that is exact, and one that differs by rounding, has this text.
    fn has(text: &str, part: &str) -> (bool, bool) {
        let p = elaborated(100, text);
        let has = |forms: &[crate::calculus::term::Term]| {
            forms.iter().any(|t| t.to_string().contains(part))
        };
        assert!(!p.term.to_string().contains(part), "the program itself is as it is written");
        (has(&p.others), has(&p.relaxed))
    }

    #[test]
    fn loops_that_fold_are_reductions() {
        let dot = "entry f [n] [m] (xs: [n][m]f32) (ys: [m]f32) =
            map (\\r -> loop acc = 0f32 for k < m do acc + r[k] * ys[k]) xs";
        assert_eq!(has(dot, "reduce (+) 0.0 . map (*) . zip"), (false, true));
        let most = "entry f [n] (xs: [n]f32) = loop m = 0f32 for x in xs do max (abs x) m";
        assert_eq!(has(most, "reduce max (-f32.inf) . map abs"), (true, false));
        let count = "entry f [n] (xs: [n]f32) (t: f32) =
            loop (c, s) = (0i32, 0f32) for x in xs do (if x > t then c + 1 else c, s + x)";
        let both = "reduce (\\((a, b), (c, d)) -> (a + c, b + d)) (\\() -> (0, 0.0))";
        assert_eq!(has(count, both), (false, true));
    }

    #[test]
    fn loops_with_a_bound_that_is_known_from_above_are_masked() {
        let upto = "entry f [n] (xs: [n]i32) =
            map (\\i -> loop acc = 0i32 for k < i + 1 do acc + xs[k]) (iota n)";
        assert_eq!(has(upto, "reduce (+) 0 . map"), (true, false));
        let behind = "entry f [n] (xs: [n]i32) =
            map (\\i -> loop acc = 0i32 for k < n - 1 - i do acc + xs[k + 1 + i]) (iota n)";
        assert_eq!(has(behind, "reduce (+) 0 . map"), (true, false));
        let unsigned = "entry f [n] (xs: [n]i32) =
            map (\\i -> loop acc = 0i32 for k < i32.u32 (u32.i32 n - u32.i32 i) do acc + xs[k]) (iota n)";
        assert_eq!(has(unsigned, "reduce (+) 0 . map"), (false, false));
        // Counters of another type, and what is computed of them.
        let cast = "entry f [n] (xs: [n]i32) =
            loop t = 0i32 for d < n do
              let k = i32.i64 d % 90 + 1 in loop acc = t for j < k do max acc xs[j]";
        assert_eq!(has(cast, "reduce max"), (true, false));
        // What wraps around is not known.
        let wraps = "entry f [n] (xs: [n]i32) =
            map (\\i -> loop acc = 0i32 for k < 30000000 * i + 1 do acc + xs[k]) (iota n)";
        assert_eq!(has(wraps, "reduce"), (false, false));
        // Nothing is known of what data decide.
        let data = "entry f [n] (xs: [n]i32) =
            map (\\i -> loop acc = 0i32 for k < xs[i] do acc + k) (iota n)";
        assert_eq!(has(data, "reduce"), (false, false));
    }

    /// The steps of all loops of a nest count, however they accumulate.
    #[test]
    fn nested_short_loops_are_reductions() {
        let nest = |body: &str| {
            let head = "entry f [n] (xs: [n][3][2]f32) (ys: [n][3][2]f32) : f32 = ";
            has(&format!("{head}{body}"), "reduce (+) 0.0 . map (reduce (+) 0.0 . map (*) . join")
        };
        let loops = "loop s = 0 for a < n do loop s = s for b < 3 do loop s = s for c < 2 do
            s + xs[a, b, c] * ys[a, b, c]";
        assert_eq!(nest(loops), (false, true));
        let apart = "loop s = 0 for a < n do s + (loop t = 0 for b < 3 do
            t + (loop u = 0 for c < 2 do u + xs[a, b, c] * ys[a, b, c]))";
        assert_eq!(nest(apart), (false, true));
        let of_sum = "sum (map2 (\\x y -> loop t = 0 for b < 3 do
            loop t = t for c < 2 do t + x[b, c] * y[b, c]) xs ys)";
        assert_eq!(nest(of_sum), (false, true));
        let tested = "loop s = 0 for a < n do loop s = s for b < 3 do
            if a + b > 2 then loop s = s for c < 2 do s + xs[a, b, c] * ys[a, b, c] else s";
        let two = "reduce (+) 0.0 . map (reduce (+) 0.0 . map ((";
        let text = format!("entry f [n] (xs: [n][3][2]f32) (ys: [n][3][2]f32) : f32 = {tested}");
        assert_eq!(has(&text, two), (false, true));
        // Each component of a state is folded.
        let both = "entry f [n] (xs: [n][3]i32) : (i32, i32) =
            loop (s, m) = (0, 0) for a < n do loop (s, m) = (s, m) for b < 3 do
              (s + xs[a, b], max m xs[a, b])";
        let op = "reduce (\\((a, b), (c, d)) -> (a + c, max b d))";
        assert_eq!(has(both, op), (true, false));
        // A short loop by itself stays, and so does one whose results are combined by another operation.
        let short = "entry f [n] (xs: [n][3]f32) : [n]f32 =
            map (\\x -> loop s = 0 for b < 3 do s + x[b]) xs";
        assert_eq!(has(short, "reduce (+)"), (false, false));
        let other = "entry f [n] (xs: [n][3]i32) : i32 =
            loop m = 0 for a < n do max m (loop s = 0 for b < 3 do s + xs[a, b])";
        assert_eq!(has(other, "reduce (+)"), (false, false));
    }

    /// A counter that is used behind an offset counts from there, so that the elements are those of the array.
    #[test]
    fn loops_with_an_offset_read_whole_arrays() {
        let of = |bound: &str, place: &str, other: &str| {
            let text = format!(
                "entry f [n] [m] (A: [n][n]f32) (B: [n][m]f32) = map (\\i -> map (\\j ->
                   loop s = B[i, j] for d < {bound} do s + A[{place}, i] * B[{other}, j]) (iota m)) (iota n)"
            );
            has(&text, "reduce (+) 0.0 . map (*) . zip")
        };
        assert_eq!(of("n - 1 - i", "i + 1 + d", "i + 1 + d"), (false, true));
        assert_eq!(of("n - i", "d + i", "i + d"), (false, true));
        // A prefix goes through the whole array, too.
        assert_eq!(of("i", "d", "d"), (false, true));
        // Most of the array would be outside of a window. A counter that is used in two ways stays.
        assert_eq!(of("min 20 (n - i)", "i + d", "i + d"), (false, false));
        assert_eq!(of("n - i", "i + d", "d"), (false, false));
    }

    #[test]
    fn other_loops_stay() {
        let of = |step: &str| {
            let head = "entry f [n] (xs: [n]i32) = loop acc = 1i32 for x in xs do ";
            has(&format!("{head}{step}"), "reduce (")
        };
        assert_eq!(of("acc * 31 + x"), (false, false));
        assert_eq!(of("acc - x"), (false, false));
        assert_eq!(of("acc + x * acc"), (false, false));
        assert_eq!(of("if acc > 5 then acc + x else acc"), (false, false));
        assert_eq!(of("acc + x + 1"), (true, false));
        // The steps after the first false one read nothing.
        let all = |step: &str| {
            let head = "entry f [n] (xs: [n]bool) (is: [n]i32) = loop ok = true for i in is do ";
            has(&format!("{head}{step}"), "reduce (&&)")
        };
        assert_eq!(all("ok && xs[i]"), (false, false));
        assert_eq!(all("ok && i < 5"), (true, false));
        assert_eq!(of("if x > 5 then acc else x + acc"), (true, false));
    }
}
