//! Maps that are computed where their elements are read, for patterns that read each element once: what a histogram takes
//! needs no memory of its own.

use super::apply::{chooses, is_short};
use super::lowerer::{Context, Lowerer};
use super::view::{Shape, Step, View};
use crate::calculus::nesting::is_pure;
use crate::calculus::size::Size;
use crate::calculus::term::{MapKind, Op, Space, Term, TypeError};
use crate::calculus::ty::Ty;
use crate::kernel::ir::index::{Index, Var};

impl Lowerer {
    /// Returns the result of applying the factors to `x`, as [`Lowerer::read`] does. Its elements are computed where they are
    /// read ([`Lowerer::emitted`]), as far as scalar functions compute them.
    pub fn fused(&mut self, factors: &[Term], x: &View) -> Step<View> {
        self.fused_with(true, factors, x)
    }

    /// As [`Lowerer::fused`]. Elements are computed where they are read if that takes no statements, or if `statements` may be
    /// emitted there.
    pub fn fused_with(&mut self, statements: bool, factors: &[Term], x: &View) -> Step<View> {
        let factors: Vec<Term> = factors.iter().flat_map(Term::chain).collect();
        // What reads an element of the result reads it as a whole, so rows on the way to it are read then.
        let by_element = factors.first().is_some_and(|f| match &f.ty().cod {
            Ty::Array(_, t) => !t.has_array(),
            _ => false,
        });
        self.fused_chain((statements, by_element), &in_scalars(&factors), x)
    }

    /// `by_element` says that no reader keeps a row of the result of the whole chain.
    fn fused_chain(
        &mut self,
        (statements, by_element): (bool, bool),
        factors: &[Term],
        x: &View,
    ) -> Step<View> {
        let Some((f, rest)) = factors.split_first() else { return Ok(x.clone()) };
        if *f.op() == Op::Fork {
            // Two views of one array have one reader, which takes both from an element.
            let mid = match f.args().iter().all(is_pure) {
                true => self.fused_chain((statements, by_element), rest, x)?,
                false => self.computed_once(rest, x)?,
            };
            let [a, b] = [0, 1].map(|k| self.fused_with(statements, &f.args()[k].chain(), &mid));
            return Ok(View::pair(a?, b?));
        }
        // A single value is computed once. Between kernels, it is computed where it is read.
        let single = !matches!(f.ty().cod, Ty::Array(..)) && self.context != Context::Host;
        if single || !is_elementwise(f) {
            return self.read(factors, x);
        }
        // A choice between two elements would emit the statements of both, also of one that is outside of its array.
        let inner = self.fused_chain((statements && !chooses(f), by_element), rest, x)?;
        // A single value may need statements, and there is no kernel here for them.
        let Ok(fused) = self.views.apply(f, &inner) else { return self.read(factors, x) };
        let computed = match statements {
            true => self.has_elements(&fused, by_element),
            false => is_expressions(&fused),
        };
        if is_pure(f) || computed {
            return Ok(fused);
        }
        // The function needs statements that the reader does not emit, or that are in an inner array.
        let shape = self.views.shape(&f.ty().cod)?;
        if self.context == Context::Host
            && self.has_elements(&fused, false)
            && let Shape::Array(n, elem) = &shape
        {
            return self.stored_each(*n, elem, &fused);
        }
        let space = (self.context == Context::Host).then_some(Space::Global);
        let out = self.allocate(&shape, space)?;
        self.write(std::slice::from_ref(f), &inner, &out.dest)?;
        Ok(out.view)
    }

    /// Stores an array in global memory: a work-item computes each element.
    fn stored_each(&mut self, n: i64, elem: &Shape, v: &View) -> Step<View> {
        let out = self.allocate(&Shape::Array(n, Box::new(elem.clone())), Some(Space::Global))?;
        self.each(n, &mut |me, i| {
            let element = me.emitted(|| v.at(i))?;
            me.store(&element, &out.dest.at(i)?, elem)
        })?;
        Ok(out.view)
    }

    /// Returns the result of applying the factors to `x`, for two readers. Elements that functions compute are stored, as both
    /// readers would compute them. Outside kernels, a work-item stores each, as the maps may have been chosen for a reader that
    /// computes them.
    fn computed_once(&mut self, factors: &[Term], x: &View) -> Step<View> {
        let Some(last) = factors.first() else { return Ok(x.clone()) };
        let computes = factors.iter().take_while(|f| is_elementwise(f)).any(|f| !is_pure(f));
        let shape = self.views.shape(&last.ty().cod)?;
        let Shape::Array(n, elem) = &shape else { return self.read(factors, x) };
        if self.context != Context::Host || !computes {
            return self.read(factors, x);
        }
        let v = self.fused_chain((true, false), factors, x)?;
        self.stored_each(*n, elem, &v)
    }

    /// Whether the elements of a view can be computed where they are read ([`Lowerer::emitted`]). If `rows` is set, so are those of
    /// its rows.
    fn has_elements(&mut self, v: &View, rows: bool) -> bool {
        match v {
            View::Unit | View::Elem(_) => true,
            View::Pair(a, b) => self.has_elements(a, rows) && self.has_elements(b, rows),
            View::Array(a) => {
                // The first element may be simpler than the others.
                let any = self.any(a.len);
                let element = self.collected(|| v.at(&any)).0;
                let known = |e: View| match rows {
                    true => self.has_elements(&e, true),
                    false => is_expressions(&e),
                };
                a.len == 0 || element.is_ok_and(known)
            }
        }
    }
}

/// Whether a term rearranges, or maps scalar functions.
fn is_elementwise(t: &Term) -> bool {
    match t.op() {
        Op::Map(_) | Op::Compose | Op::Fork | Op::Bimap => t.args().iter().all(is_elementwise),
        Op::Scalar(f) => !f.body.has_loop(),
        Op::Vectorize => false,
        Op::Reduce(_) => is_short(t) && t.args().iter().all(is_elementwise),
        Op::ToMem(_) => t.args().iter().all(is_elementwise),
        _ => is_pure(t),
    }
}

/// Whether the elements of a view can be computed without statements.
fn is_expressions(v: &View) -> bool {
    match v {
        View::Unit | View::Elem(_) => true,
        View::Pair(a, b) => is_expressions(a) && is_expressions(b),
        View::Array(a) => {
            let any = Var { id: u32::MAX, name: "any".into(), lo: 0, hi: a.len - 1 };
            a.len == 0 || v.at(&Index::from(any)).is_ok_and(|e| is_expressions(&e))
        }
    }
}

/// Returns the factors with maps over vectors replaced by maps over their lanes: a view has no lane at a computed place. What
/// is computed where it is read is in no memory.
fn in_scalars(factors: &[Term]) -> Vec<Term> {
    let mut out = vec![];
    let mut rest = factors;
    while let Some((f, after)) = rest.split_first() {
        rest = after;
        if let (Op::AsScalar, [m, v, behind @ ..]) = (f.op(), after)
            && let (Op::Map(_), Op::AsVector) = (m.op(), v.op())
            && *m.args()[0].op() == Op::Vectorize
            && let Ok(map) = over_lanes(&f.sizes()[0].mul(&f.sizes()[1]), &m.args()[0].args()[0])
        {
            out.push(map);
            rest = behind;
        } else if matches!(f.op(), Op::ToMem(_)) && is_elementwise(&f.args()[0]) {
            out.extend(in_scalars(&f.args()[0].chain()));
        } else if let Op::Map(_) = f.op()
            && let Ok(inner) = Term::of_chain(&in_scalars(&f.args()[0].chain()))
            && let Ok(map) = f.with_args(vec![inner])
        {
            out.push(map);
        } else {
            out.push(f.clone());
        }
    }
    out
}

fn over_lanes(n: &Size, f: &Term) -> Result<Term, TypeError> {
    Term::new(Op::Map(MapKind::Seq), vec![n.clone()], vec![], vec![f.clone()])
}
