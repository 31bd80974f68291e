//! Stores at computed places.

use super::apply::is_pure;
use super::dest::{Dest, Placed};
use super::host_copies::Flat;
use super::irregular::known;
use super::lowerer::{Body, Context, Lowerer, is_parallel};
use super::view::{Shape, Step, View, stop};
use crate::calculus::term::{MapKind, Op, Space, Term};
use crate::calculus::ty::Ty;
use crate::diag::Code;
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::{Expr, Mem};
use std::rc::Rc;

/// What a scatter stores: each of `m` values at its place in an array of `n` elements.
#[derive(Clone, Copy)]
pub struct Scattered<'a> {
    pub n: i64,
    pub m: i64,
    pub places: &'a View,
    pub values: &'a View,
    pub elem: &'a Shape,
}

impl Lowerer {
    /// Whether an update at computed places may have its result here. The work-items of a group make it in local memory, or in the
    /// buffer of a loop's state.
    pub fn has_scatter(&self, dest: &Dest) -> Step<bool> {
        match self.context {
            Context::Host | Context::Item => Ok(true),
            Context::Group => self.is_of_group(dest),
            Context::Nest | Context::Warp => Ok(false),
        }
    }

    /// Whether a group has a place for itself, behind barriers: in local memory, or in the state of its loop.
    fn is_of_group(&self, dest: &Dest) -> Step<bool> {
        Ok(match dest {
            Dest::Mem(m @ Mem::Global(_), ..) => {
                self.later.as_ref().is_some_and(|l| l.owned.has_memory(*m))
            }
            Dest::Mem(m, ..) => matches!(m, Mem::Local(_)),
            Dest::Pair(a, b) => self.is_of_group(a)? && self.is_of_group(b)?,
            Dest::Array(_) => self.is_of_group(&dest.at(&Index::from(0))?)?,
            Dest::Nowhere => true,
            Dest::Reg(_)
            | Dest::Lane(..)
            | Dest::Guarded(..)
            | Dest::Lanes(_)
            | Dest::Either(..)
            | Dest::Placed(..) => false,
        })
    }

    /// Copies the array, then stores each value at its place. Places outside the array are skipped. Outside kernels, each of
    /// the two steps is a kernel. If two places are equal, the program is in error.
    pub fn scatter(&mut self, f: &Term, x: &View, dest: &Dest) -> Step<()> {
        let new = self.apart_from_state(f, &x.snd()?, dest)?;
        self.copy(&x.fst()?, dest, &self.views.shape(&f.ty().cod)?)?;
        self.store_at_places(f, &new, dest)
    }

    /// As [`Lowerer::scatter`], if the scatter `f` follows the factors `rest`. If these compute its array, it is computed
    /// where the result goes, and not copied. Outside kernels, an array that is copied is copied before the values are
    /// computed: if one work-item computes and stores them, one kernel does both. Maps that compute places and values run
    /// where these are read. Returns false otherwise.
    pub fn scatter_computed(
        &mut self,
        f: &Term,
        rest: &[Term],
        x: &View,
        dest: &Dest,
    ) -> Step<bool> {
        let rest: Vec<Term> = rest.iter().flat_map(Term::chain).collect();
        let Some((both, before)) = rest.split_first() else { return Ok(false) };
        let is_pair = matches!(both.op(), Op::Fork | Op::Bimap);
        let copied = is_pair && is_pure(&both.args()[0]);
        if !is_pair {
            return Ok(false);
        }
        let x = if before.is_empty() { x.clone() } else { self.read(before, x)? };
        let (old, new) = match both.op() {
            Op::Fork => {
                let x = self.shared(&x)?;
                (x.clone(), x)
            }
            _ => (x.fst()?, x.snd()?),
        };
        let [array, values] = [0, 1].map(|k| both.args()[k].chain());
        if copied && self.context != Context::Host {
            let old = self.read(&array, &old)?;
            let new = self.places_and_values(&values, &new)?;
            self.scatter(f, &View::pair(old, new), dest)?;
            return Ok(true);
        }
        let in_state = self.may_change_state(f)?;
        let values = |me: &mut Lowerer| {
            let new = match me.context {
                Context::Host => me.fused_with(!in_state, &values, &new)?,
                _ => me.places_and_values(&values, &new)?,
            };
            me.apart_from_state(f, &new, dest)
        };
        if copied
            && !in_state
            && self.scatter_where_computed(f, &both.args()[1], &new, (&array, &old), dest)?
        {
            return Ok(true);
        }
        let new = if copied {
            self.write(&array, &old, dest)?;
            values(self)?
        } else {
            let new = values(self)?;
            self.write(&array, &old, dest)?;
            new
        };
        self.stage_of(f, |me| me.store_at_places(f, &new, dest))?;
        Ok(true)
    }

    /// Returns the pair of places and values that the factors compute, in a kernel. Places are computed where they are read if that
    /// takes an expression alone, such as those of a column.
    fn places_and_values(&mut self, factors: &[Term], x: &View) -> Step<View> {
        let [both] = factors else { return self.read(factors, x) };
        if *both.op() != Op::Fork {
            return self.read(factors, x);
        }
        let x = self.shared(x)?;
        let places = self.fused_with(false, &both.args()[0].chain(), &x)?;
        Ok(View::pair(places, self.read(&both.args()[1].chain(), &x)?))
    }

    /// Stores elements at their places where work-items compute one of these in parallel; the other is read there. Returns false if
    /// that is not possible.
    fn scatter_where_computed(
        &mut self,
        f: &Term,
        both: &Term,
        x: &View,
        array: (&[Term], &View),
        dest: &Dest,
    ) -> Step<bool> {
        let (Op::Fork, [places, values]) = (both.op(), both.args()) else { return Ok(false) };
        let Shape::Array(_, elem) = self.views.shape(&f.ty().cod)? else {
            return stop(Code::Internal, "a scatter gives an array");
        };
        let n = self.views.size(&f.sizes()[0])?;
        let by_place = is_parallel(places);
        let by_value = is_parallel(values) && matches!(*elem, Shape::Elem(_));
        // Work-items share each row, and one work-item makes all stores to a single element.
        if !(by_place || by_value) || !elem.is_element() || n == 1 {
            return Ok(false);
        }
        self.write(array.0, array.1, dest)?;
        let (last, other) = if by_place { (places, values) } else { (values, places) };
        let others = self.fused(&other.chain(), x)?;
        let to = Placed { all: dest.clone(), n, elem: *elem, by_place, others, index: 0.into() };
        let placed = Dest::array(move |i| {
            Ok(Dest::Placed(Rc::new(Placed { index: i.clone(), ..to.clone() })))
        });
        self.stage_of(f, |me| me.write(&last.chain(), x, &placed))?;
        Ok(true)
    }

    /// Stores a value at its place, one of which is `e`.
    pub fn store_placed(&mut self, e: Expr, p: &Placed) -> Step<()> {
        let e = View::Elem(e);
        let place = if p.by_place { e.clone() } else { self.emitted(|| p.others.at(&p.index))? };
        self.where_placed(&place, p.n, &mut |me, i| {
            let value = if p.by_place { me.emitted(|| p.others.at(&p.index))? } else { e.clone() };
            me.store(&value, &p.all.at(i)?, &p.elem)
        })
    }

    /// Stores each value at its place.
    fn store_at_places(&mut self, f: &Term, x: &View, dest: &Dest) -> Step<()> {
        let (n, m) = (self.views.size(&f.sizes()[0])?, self.views.size(&f.sizes()[1])?);
        let Shape::Array(_, elem) = self.views.shape(&f.ty().cod)? else {
            return stop(Code::Internal, "a scatter gives an array");
        };
        let (places, values) = (x.fst()?, x.snd()?);
        let scattered = Scattered { n, m, places: &places, values: &values, elem: &elem };
        if m > 0 && self.defers(dest)? {
            return self.scatter_later(scattered, dest);
        }
        if self.context == Context::Group {
            return self.store_in_group(scattered, dest);
        }
        let host = self.context == Context::Host;
        let only = m == 1 && (host || self.context == Context::Item);
        let at_place = |me: &mut Lowerer, j: &Index, body: Body| match only {
            true => me.at_only_place(&places, j, n, body),
            false => me.at_place(&places, j, n, body),
        };
        let store = &mut |me: &mut Lowerer, j: &Index| {
            at_place(me, j, &mut |me, i| {
                let value = me.emitted(|| values.at(j))?;
                me.store(&value, &dest.at(i)?, &elem)
            })
        };
        match &*elem {
            // Work-items share each row. Nothing in the index of a single row tells the verifier that the program chose it:
            // a work-item has the same part of all values.
            Shape::Array(..) if host && n == 1 => {
                let row = Flat::of(&elem);
                let store = &mut |me: &mut Lowerer, j: &Index, c: &Index| {
                    at_place(me, j, &mut |me, i| {
                        let value = me.emitted(|| row.element(&values.at(j)?, c))?;
                        me.store(&value, &row.place(&dest.at(i)?, c)?, row.element)
                    })
                };
                self.each(row.len(), &mut |me, c| me.repeat(m, false, &mut |me, j| store(me, j, c)))
            }
            Shape::Array(..) if host => self.in_kernel(&Term::id(&Ty::Unit), |me| {
                me.spread(MapKind::Glb(1), m, true, &mut |me, j| {
                    me.store_row(scattered, j, &at_place, dest)
                })
            }),
            _ if host && m == 1 => self.single(|me| store(me, &Index::from(0))),
            _ if n == 1 => self.each(1, &mut |me, _| me.repeat(m, false, store)),
            _ => self.each(m, store),
        }
    }

    /// Stores row `j` of the values of a scatter. A work-item stores some of its elements, as many at once as a vector has.
    fn store_row(
        &mut self,
        s: Scattered,
        j: &Index,
        at_place: &dyn Fn(&mut Lowerer, &Index, Body) -> Step<()>,
        dest: &Dest,
    ) -> Step<()> {
        let row = Flat::of(s.elem);
        let (len, any) = (row.len(), self.any(s.n));
        let from = |c: &Index| row.element(&s.values.at(j)?, c);
        let run = self.run_of(len, row.element, (&from, &|c| row.place(&dest.at(&any)?, c)))?;
        let items = self.items_of(len, run, s.m, row.element);
        self.spread(MapKind::Glb(0), items, false, &mut |me, i| {
            at_place(me, j, &mut |me, place| {
                me.elements_of(i, (len, run, items), &mut |me, c| {
                    let value = me.emitted(|| from(c))?;
                    me.store(&value, &row.place(&dest.at(place)?, c)?, row.element)
                })
            })
        })
    }

    /// Returns places and values of a scatter outside kernels. Those that are read from the state of a loop of the host are
    /// copied first if they are few, so that the stores can be made in that state. An element may be computed from what is at
    /// its place.
    fn apart_from_state(&mut self, f: &Term, x: &View, dest: &Dest) -> Step<View> {
        let m = self.views.size(&f.sizes()[1])?;
        if !self.may_change_state(f)? {
            return Ok(x.clone());
        }
        let Shape::Array(_, elem) = self.views.shape(&f.ty().cod)? else {
            return stop(Code::Internal, "a scatter gives an array");
        };
        let (places, values) = (x.fst()?, x.snd()?);
        let first = places.at(&Index::from(0))?;
        let only = known(&places, &Index::from(0)).filter(|_| m == 1);
        let stored = only.map(|place| dest.at(&place)).transpose()?;
        let kept = |of: Shape| Shape::Array(m, Box::new(of));
        let any = self.any(m);
        let read = self.reads_state(&values.at(&any)?, &elem, stored.as_ref())?;
        let values = if read { self.copied_first(&values, &kept(*elem))? } else { values };
        let place = Shape::Elem(first.expr()?.ty());
        let read = self.reads_state(&places.at(&any)?, &place, None)?;
        let places = if read { self.copied_first(&places, &kept(place))? } else { places };
        Ok(View::pair(places, values))
    }

    /// Whether a scatter may be made in the state of a loop of the host: one that stores few of the elements.
    fn may_change_state(&self, f: &Term) -> Step<bool> {
        let (n, m) = (self.views.size(&f.sizes()[0])?, self.views.size(&f.sizes()[1])?);
        let few = (1..=n / 2).contains(&m);
        Ok(self.context == Context::Host && !self.states.is_empty() && few)
    }

    fn copied_first(&mut self, v: &View, shape: &Shape) -> Step<View> {
        let kept = self.allocate(shape, Some(Space::Global))?;
        match shape.scalars() {
            1 => self.single(|me| me.store(v, &kept.dest, shape))?,
            _ => self.copy(v, &kept.dest, shape)?,
        }
        Ok(kept.view)
    }

    /// Any index below `n`, which is at least 1.
    pub fn any(&mut self, n: i64) -> Index {
        let (id, name) = self.fresh("any");
        Index::from(Var { id, name, lo: 0, hi: (n - 1).max(0) })
    }

    /// Whether a view reads the state of a loop of the host around at another place than the one that it is stored to.
    fn reads_state(&mut self, v: &View, shape: &Shape, stored: Option<&Dest>) -> Step<bool> {
        match shape {
            Shape::Unit => Ok(false),
            Shape::Elem(_) => {
                let mut found = false;
                v.expr()?.visit(&mut |e| {
                    if let Expr::Load(m, _, i) = e {
                        let here = matches!(stored, Some(Dest::Mem(_, _, at)) if at == i);
                        found |= !here && self.states.iter().any(|state| state.has_memory(*m));
                    }
                });
                Ok(found)
            }
            Shape::Pair(a, b) => {
                let side = |second| stored.map(|d| d.component(second)).transpose();
                Ok(self.reads_state(&v.fst()?, a, side(false)?.as_ref())?
                    || self.reads_state(&v.snd()?, b, side(true)?.as_ref())?)
            }
            Shape::Array(n, t) if *n > 0 => {
                let any = self.any(*n);
                let stored = stored.map(|d| d.at(&any)).transpose()?;
                self.reads_state(&v.at(&any)?, t, stored.as_ref())
            }
            Shape::Array(..) => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::calculus::size::SizeEnv;
    use crate::kernel::ir::BufferRole;
    use crate::kernel::lower;
    use crate::kernel::lower::testing::{options, term};

    const PLACES: (&str, &str) = ("is", "[96]i32");
    const VALUES: (&str, &str) = ("xs", "[96]f32");
    const CHOICE: &str = "\\i -> if i % 3 == 0 then i * i / 7 else i * 5 - i / 9";

    /// Returns the numbers of kernels and of arrays that are neither inputs nor results.
    fn kernels(text: &str) -> (usize, usize) {
        let term = term(text, &[PLACES, VALUES]);
        let program = lower(&term, &SizeEnv::default(), &options()).expect("lowers");
        let passed = |r: &BufferRole| !matches!(r, BufferRole::Input(..) | BufferRole::Output(_));
        (program.kernels.len(), program.buffers.iter().filter(|b| passed(&b.role)).count())
    }

    fn scatter(places: &str, values: &str) -> String {
        format!("scatter . fork (replicate 96 . 0.0) (fork ({places}) ({values}))")
    }

    #[test]
    fn work_items_store_where_they_compute_places() {
        // One kernel fills the array, and one stores.
        assert_eq!(kernels(&scatter("is", "xs")), (2, 0));
        assert_eq!(kernels(&scatter(&format!("mapGlb 0 ({CHOICE}) . is"), "xs")), (2, 0));
        let groups = format!("join . mapWrg 0 (mapLcl 0 ({CHOICE})) . split 32 . is");
        assert_eq!(kernels(&scatter(&groups, "xs")), (2, 0));
    }

    #[test]
    fn work_items_store_the_values_that_they_compute() {
        assert_eq!(kernels(&scatter("is", "mapGlb 0 (\\x -> x * 2.0) . xs")), (2, 0));
    }

    #[test]
    fn what_a_scan_gives_is_stored_where_it_belongs() {
        let parts = "join . mapWrg 0 (mapLcl 0 (\\i -> i - 1) . scanLcl 8 (+) 0 id . fork (0 . bang) id) . split 32 . is";
        assert_eq!(kernels(&scatter(parts, "xs")), (2, 0));
        // Both come from kernels of their own: one of them is stored first.
        let other = "join . mapWrg 0 (scanLcl 8 (+) 0.0 id . fork (0.0 . bang) id) . split 32 . xs";
        assert_eq!(kernels(&scatter(parts, other)), (3, 1));
    }

    #[test]
    fn bins_that_need_statements_are_computed_where_they_are_read() {
        let bins = format!("mapGlb 0 ({CHOICE}) . is");
        let text = format!("histogram 96 (+) 0 . fork ({bins}) is");
        let plain = kernels("histogram 96 (+) 0 . fork is is");
        assert_eq!(kernels(&text), plain);
    }
}
