//! A form in which arrays that are computed element by element are functions of a place (pull arrays, or delayed arrays: Keller et
//! al., Regular, shape-polymorphic, parallel arrays in Haskell, ICFP 2010, section 4).
//!
//! A stencil of stencils, such as `let d = map2 (-) xs[1:] xs[:n] in map2 (-) d[1:] d[:n - 1]`, reads a computed array at several
//! shifted places. The rules fuse maps whose elements meet in order, and no others, so each such array is stored, and there are all the more
//! kernels the more dimensions the arrays have. Here the element of the result at place `i` is found by asking each array for its
//! element at a place, from the result back to the inputs: `(xs[i + 2] - xs[i + 1]) - (xs[i + 1] - xs[i])`. One nest of maps over
//! places computes all of it. What it reads twice is read once by the pass over kernels that finds common subexpressions.
//!
//! An array that is read at many places is computed again for each, so one that reads much, and is read much, is stored. So is one that
//! is read at places that data decide: its elements may be read far more often than there are elements.
//!
//! A deep nest of maps whose functions compute scalars in front of the inner maps is also computed so: the scalars then stand
//! in the innermost function, and work-items can share out all dimensions.

use super::again::put_each;
use super::core::{Ex, Kind, Lambda, Layout, Var, Vars};
use super::interchange::named;
use super::views::place_in;
use crate::calculus::scalar::Lit;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::lang::typed::{PadMode, Prim, ScalarOp};
use crate::lang::types::ScalarType;

/// Most reads of stored arrays for one element of the result.
const READS: usize = 64;

/// Most elements of a reduction that is written out, such as that of a window.
const SHORT: u64 = 8;

/// Most nodes of the function that computes an element.
const NODES: usize = 4000;

/// Fewest dimensions of a deep nest.
const DEEP: usize = 3;

/// Returns the program with elements of computed arrays as functions of the place; `None` if no array is read at
/// other places than those of its own elements, and no deep nest computes scalars between its maps.
pub(super) fn by_place(e: &Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let mut out = e.clone();
    let mut pull = Pull { env, fresh, shifted: false, reads: 0, data: Vars::new() };
    pull.arrays(&mut out).then_some(out)
}

struct Pull<'a> {
    env: &'a SizeEnv,
    fresh: &'a mut dyn FnMut() -> Var,
    /// Whether a computed array was read at other places than those of its elements.
    shifted: bool,
    /// Reads of stored arrays so far.
    reads: usize,
    /// Names of what was read of arrays, or computed of that.
    data: Vars,
}

impl Pull<'_> {
    /// Changes the arrays that no function computes. Returns whether there were any.
    fn arrays(&mut self, e: &mut Ex) -> bool {
        while let Kind::Let(Layout::Var(v, Ty::Array(..)), value, body) = &e.kind
            && self.stays_cheap(value, *v, body)
        {
            let mut inlined = (**body).clone();
            put_each(&mut inlined, *v, value, self.fresh);
            *e = inlined;
        }
        if let Some(nest) = self.nest(e) {
            *e = nest;
            return true;
        }
        let mut changed = false;
        for part in e.parts_outside_functions_mut() {
            changed |= self.arrays(part);
        }
        changed
    }

    /// Whether all uses of an array may compute it: it is a function of the place, and so is what uses it, with few reads.
    fn stays_cheap(&mut self, value: &Ex, v: Var, body: &Ex) -> bool {
        let Some(uses) = uses(body, v) else { return false };
        let Some((element, reads)) = self.element_of(value) else { return false };
        let gains = is_computed(value) || self.is_small(&value.ty);
        gains && reads * uses <= READS && element.size() * uses <= NODES
    }

    /// Whether an array has so few elements that a function of scalars can compute all of them, such as the channels of a pixel.
    fn is_small(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Array(n, of) => n.eval(self.env).is_ok_and(|n| n <= SHORT) && self.is_small(of),
            _ => true,
        }
    }

    /// Returns an element of an array at any place, and the number of reads that it takes.
    fn element_of(&mut self, array: &Ex) -> Option<(Ex, usize)> {
        let before = std::mem::take(&mut self.reads);
        let shifted = self.shifted;
        let axes = self.axes(&array.ty);
        let places: Vec<Ex> = axes.iter().map(|(_, p)| p.value(array.span)).collect();
        let element = self.element(array, &places);
        self.shifted = shifted;
        let reads = std::mem::replace(&mut self.reads, before);
        Some((element?, reads))
    }

    /// The dimensions of an array, each with a name for a place.
    fn axes(&mut self, mut ty: &Ty) -> Vec<(Size, Layout)> {
        let mut axes = vec![];
        while let Ty::Array(n, of) = ty {
            axes.push((n.clone(), named(&place_in(n, self.env), self.fresh)));
            ty = of;
        }
        axes
    }

    /// Returns a nest of maps over places that computes an array; `None` if it gains nothing.
    fn nest(&mut self, e: &Ex) -> Option<Ex> {
        if !is_computed(e) || !matches!(e.kind, Kind::Map(..) | Kind::Prim(Prim::Concat, ..)) {
            return None;
        }
        (self.shifted, self.reads) = (false, 0);
        let axes = self.axes(&e.ty);
        let places: Vec<Ex> = axes.iter().map(|(_, p)| p.value(e.span)).collect();
        let mut body = self.element(e, &places)?;
        let gains = self.shifted || axes.len() >= DEEP && computes_between_maps(e);
        if !gains || body.size() > NODES {
            return None;
        }
        for (n, place) in axes.iter().rev() {
            let iota = Ex::iota(n, &place.ty(), e.span);
            let ty = Ty::array(n, &body.ty);
            let f = Lambda { params: vec![place.clone()], body: Box::new(body) };
            body = Ex::new(Kind::Map(Prim::Map, f, vec![iota]), ty, e.span);
        }
        Some(body)
    }

    /// Returns the element of an expression at these places, one for each of its dimensions; `None` if it is no function of the place.
    fn element(&mut self, e: &Ex, at: &[Ex]) -> Option<Ex> {
        if !matches!(e.ty, Ty::Array(..)) {
            return if at.is_empty() { self.scalar(e) } else { None };
        }
        let (first, rest) = at.split_first()?;
        match &e.kind {
            Kind::Map(Prim::Map, f, args) => {
                let mut body = (*f.body).clone();
                let mut lets = vec![];
                for (p, array) in f.params.iter().zip(args) {
                    self.bind(p, array, first, &mut body, &mut lets)?;
                }
                body.rename(self.fresh);
                Some(self.element(&body, rest)?.after(lets))
            }
            Kind::Prim(prim, funs, _, args) if funs.is_empty() => self.of_view(*prim, e, args, at),
            Kind::Index(array, i) => {
                let i = self.place(array, i)?;
                let at: Vec<Ex> = std::iter::once(i).chain(at.iter().cloned()).collect();
                self.element(array, &at)
            }
            Kind::If(c, yes, no) => {
                let c = self.scalar(c)?;
                Some(Ex::choice(c, self.element(yes, at)?, self.element(no, at)?))
            }
            Kind::Let(Layout::Var(v, Ty::Array(..)), value, body) => {
                if !self.stays_cheap(value, *v, body) {
                    return None;
                }
                let mut inlined = (**body).clone();
                put_each(&mut inlined, *v, value, self.fresh);
                self.element(&inlined, at)
            }
            Kind::Let(p, value, body) if !value.ty.has_array() => {
                let (value, mut body) = (self.scalar(value)?, (**body).clone());
                let name = p.renamed(&mut body, self.fresh);
                self.names(&name, &value);
                Some(self.element(&body, at)?.bound(name, value))
            }
            Kind::Var(_) | Kind::Input(_) | Kind::Proj(..) if is_stored(e) => self.read(e, at),
            Kind::Proj(pair, second) => {
                let Kind::Prim(Prim::Unzip, _, _, args) = &pair.kind else { return None };
                self.element(args.first()?, at)?.proj(*second)
            }
            _ => None,
        }
    }

    /// Returns the element of a view of arrays, or of a constant array.
    fn of_view(&mut self, prim: Prim, e: &Ex, args: &[Ex], at: &[Ex]) -> Option<Ex> {
        let (first, rest) = at.split_first()?;
        let array = args.first();
        let n = |e: &Ex| e.length()?.eval(self.env).ok();
        let moved = |i: Ex, rest: &[Ex]| -> Vec<Ex> {
            std::iter::once(i).chain(rest.iter().cloned()).collect()
        };
        match prim {
            Prim::Iota => match &e.ty {
                Ty::Array(_, t) if **t == first.ty => Some(first.clone()),
                _ => None,
            },
            Prim::Replicate => self.element(array?, rest),
            Prim::Zip => Some(Ex::pair(self.element(array?, at)?, self.element(args.get(1)?, at)?)),
            Prim::Take => self.element(array?, at),
            Prim::Drop => {
                let cut = n(array?)?.checked_sub(n(e)?)?;
                self.shifts(array?);
                self.element(array?, &moved(with_one_number(first.further(cut)?), rest))
            }
            Prim::Rotate => {
                let Kind::Prim(_, _, sizes, _) = &e.kind else { return None };
                self.rotated(array?, sizes.first()?.eval(self.env).ok()?, at)
            }
            Prim::Reverse => {
                // Elements are rotated to the other side so.
                if let Kind::Prim(Prim::Rotate, _, sizes, rotated) = &array?.kind
                    && let Kind::Prim(Prim::Reverse, _, _, whole) = &rotated.first()?.kind
                {
                    let (k, n) = (sizes.first()?.eval(self.env).ok()?, n(e)?);
                    return self.rotated(whole.first()?, n - k.checked_rem(n)?, at);
                }
                let last = first.number(n(e)?.checked_sub(1)?)?;
                self.shifts(array?);
                self.element(array?, &moved(op(ScalarOp::Sub, last, first.clone()), rest))
            }
            Prim::Transpose => {
                let (second, rest) = rest.split_first()?;
                self.shifts(array?);
                self.element(array?, &[&[second.clone(), first.clone()], rest].concat())
            }
            Prim::Split => {
                let (second, rest) = rest.split_first()?;
                let Ty::Array(_, row) = &e.ty else { return None };
                let Ty::Array(m, _) = &**row else { return None };
                let m = first.number(m.eval(self.env).ok()?)?;
                let place = op(ScalarOp::Add, op(ScalarOp::Mul, first.clone(), m), second.clone());
                (first.ty == second.ty).then(|| self.element(array?, &moved(place, rest)))?
            }
            Prim::Slide => {
                let (second, rest) = rest.split_first()?;
                let Kind::Prim(_, _, sizes, _) = &e.kind else { return None };
                let begin = match sizes.get(1)?.eval(self.env).ok()? {
                    1 => first.clone(),
                    step => op(ScalarOp::Mul, first.clone(), first.number(step)?),
                };
                self.shifts(array?);
                let place = with_one_number(op(ScalarOp::Add, begin, second.clone()));
                (first.ty == second.ty).then(|| self.element(array?, &moved(place, rest)))?
            }
            Prim::Join => {
                let Kind::Lit(k) = &first.kind else { return None };
                let Ty::Array(m, _) = array?.element_type()? else { return None };
                let (k, m) = (u64::try_from(k.as_int()?).ok()?, m.eval(self.env).ok()?);
                let row = first.number(k.checked_div(m)?)?;
                let at = [&[row, first.number(k % m)?], rest].concat();
                self.element(array?, &at)
            }
            Prim::Concat => {
                let [a, b] = args else { return None };
                let before = n(a)?;
                if let Kind::Lit(i) = &first.kind {
                    let is_first = i.as_int()? < i128::from(before);
                    let behind =
                        first.number(u64::try_from(i.as_int()?).ok()?.saturating_sub(before))?;
                    return if is_first {
                        self.element(a, at)
                    } else {
                        self.element(b, &moved(behind, rest))
                    };
                }
                self.shifts(a);
                self.shifts(b);
                let is_first = Ex::op(
                    ScalarOp::Lt,
                    vec![first.clone(), first.number(before)?],
                    ScalarType::Bool,
                    e.span,
                );
                let behind = op(ScalarOp::Sub, first.clone(), first.number(before)?);
                Some(Ex::choice(
                    is_first,
                    self.element(a, at)?,
                    self.element(b, &moved(behind, rest))?,
                ))
            }
            Prim::Pad(PadMode::Clamp) => {
                let Kind::Prim(_, _, sizes, _) = &e.kind else { return None };
                let left = first.number(sizes.first()?.eval(self.env).ok()?)?;
                let last = first.number(n(array?)?.checked_sub(1)?)?;
                let place =
                    op(ScalarOp::Max, op(ScalarOp::Sub, first.clone(), left), first.number(0)?);
                self.shifts(array?);
                self.element(array?, &moved(op(ScalarOp::Min, place, last), rest))
            }
            Prim::Pad(mode @ (PadMode::Mirror | PadMode::Wrap)) => {
                let Kind::Prim(_, _, sizes, _) = &e.kind else { return None };
                let (left, n) = (sizes.first()?.eval(self.env).ok()?, n(array?)?);
                // The elements come again after so many places.
                let period = if mode == PadMode::Wrap { n } else { n.checked_mul(2)? };
                let before = period - left.checked_rem(period)?;
                let place = op(
                    ScalarOp::Rem,
                    with_one_number(first.further(before)?),
                    first.number(period)?,
                );
                self.shifts(array?);
                let place = match mode {
                    PadMode::Wrap => place,
                    _ => {
                        let back = op(ScalarOp::Sub, first.number(period - 1)?, place.clone());
                        op(ScalarOp::Min, place, back)
                    }
                };
                self.element(array?, &moved(place, rest))
            }
            Prim::Gather => {
                let i = self.element(args.get(1)?, std::slice::from_ref(first))?;
                if is_computed(array?) && self.is_data(&i) {
                    return None;
                }
                self.shifts(array?);
                self.element(array?, &moved(i, rest))
            }
            _ => None,
        }
    }

    /// Returns the element of an array that is rotated by `k` places.
    fn rotated(&mut self, array: &Ex, k: u64, at: &[Ex]) -> Option<Ex> {
        let (first, rest) = at.split_first()?;
        let n = array.length()?.eval(self.env).ok()?;
        let moved = with_one_number(first.further(k.checked_rem(n)?)?);
        let place = op(ScalarOp::Rem, moved, first.number(n)?);
        self.shifts(array);
        self.element(array, &[&[place], rest].concat())
    }

    /// Returns a place in an array. `None` if data decide it, and elements of the array are computed.
    fn place(&mut self, array: &Ex, i: &Ex) -> Option<Ex> {
        let i = self.scalar(i)?;
        (!is_computed(array) || !self.is_data(&i)).then_some(i)
    }

    /// Whether an expression depends on what was read of arrays.
    fn is_data(&self, e: &Ex) -> bool {
        match &e.kind {
            Kind::Index(..) => true,
            Kind::Var(v) => self.data.contains(v),
            _ => e.parts().iter().any(|(_, part)| self.is_data(part)),
        }
    }

    /// Notes what a name stands for.
    fn names(&mut self, name: &Layout, value: &Ex) {
        if self.is_data(value) {
            self.data.extend(name.vars().into_iter().map(|(v, _)| v));
        }
    }

    /// Notes that an array is not read at the places of its own elements.
    fn shifts(&mut self, array: &Ex) {
        self.shifted |= is_computed(array);
    }

    /// Gives what the parameter of a map takes from an array at a place to the map's function: a row as an expression, a scalar as a name.
    fn bind(
        &mut self,
        p: &Layout,
        array: &Ex,
        at: &Ex,
        body: &mut Ex,
        lets: &mut Vec<(Layout, Ex)>,
    ) -> Option<()> {
        match p {
            Layout::Unit => Some(()),
            _ if !p.ty().has_array() => {
                let name = p.renamed(body, self.fresh);
                let value = self.element(array, std::slice::from_ref(at))?;
                self.names(&name, &value);
                lets.push((name, value));
                Some(())
            }
            Layout::Var(v, _) => {
                body.put(*v, &array.element(at)?);
                Some(())
            }
            Layout::Pair(a, b) => match &array.kind {
                Kind::Prim(Prim::Zip, _, _, args) => {
                    self.bind(a, args.first()?, at, body, lets)?;
                    self.bind(b, args.get(1)?, at, body, lets)
                }
                _ => None,
            },
        }
    }

    /// Returns a scalar expression with the elements of computed arrays as functions of their places.
    fn scalar(&mut self, e: &Ex) -> Option<Ex> {
        match &e.kind {
            Kind::Index(array, i) => {
                let i = self.place(array, i)?;
                self.shifts(array);
                self.element(array, &[i])
            }
            Kind::Let(Layout::Var(_, Ty::Array(..)), ..) => {
                let Kind::Let(Layout::Var(v, _), value, body) = &e.kind else { return None };
                if !self.stays_cheap(value, *v, body) {
                    return None;
                }
                let mut inlined = (**body).clone();
                put_each(&mut inlined, *v, value, self.fresh);
                self.scalar(&inlined)
            }
            Kind::Prim(Prim::Reduce | Prim::ReduceComm, funs, _, args) => {
                self.reduced(funs.first()?, args.last()?)
            }
            Kind::Var(_) | Kind::ScalarInput(..) | Kind::Lit(_) | Kind::Size(_)
                if !e.ty.has_array() =>
            {
                Some(e.clone())
            }
            Kind::Pair(..) | Kind::Proj(..) | Kind::Op(..) | Kind::If(..) | Kind::Let(..)
                if !e.ty.has_array() =>
            {
                let mut out = e.clone();
                for part in out.parts_mut() {
                    *part = self.scalar(part)?;
                }
                Some(with_one_number(out))
            }
            _ => None,
        }
    }

    /// Returns a reduction of a short array, written out. What it begins with is neutral.
    fn reduced(&mut self, f: &Lambda, array: &Ex) -> Option<Ex> {
        let n = array.length()?;
        let length = n.eval(self.env).ok().filter(|n| (1..=SHORT).contains(n))?;
        let Ty::Scalar(t) = place_in(n, self.env) else { return None };
        let mut done: Option<Ex> = None;
        for k in 0..length {
            let place = Ex::new(Kind::Lit(Lit::int(t, k.into())), Ty::Scalar(t), array.span);
            let next = self.element(array, &[place])?;
            let Some(first) = done.take() else {
                done = Some(next);
                continue;
            };
            let (mut body, mut lets) = (f.body.refreshed(self.fresh), vec![]);
            for (p, value) in f.params.iter().zip([first, next]) {
                match p {
                    Layout::Var(v, _) if body.uses(*v) == 1 => body.put(*v, &value),
                    _ => lets.push((p.renamed(&mut body, self.fresh), value)),
                }
            }
            done = Some(body.after(lets));
        }
        done
    }

    /// Returns a read of a stored array; `None` if there are too many.
    fn read(&mut self, array: &Ex, at: &[Ex]) -> Option<Ex> {
        self.reads += 1;
        if self.reads > READS {
            return None;
        }
        at.iter().try_fold(array.clone(), |e, i| e.element(i))
    }
}

/// Returns how often an array is used, if all uses may be elements of a nest: none is in a loop or in the operator of a pattern.
fn uses(e: &Ex, v: Var) -> Option<usize> {
    if e.kind == Kind::Var(v) {
        return Some(1);
    }
    let functions_count = matches!(e.kind, Kind::Map(Prim::Map, ..) | Kind::Let(..));
    let mut n = 0;
    for (bound, part) in e.parts() {
        match uses(part, v)? {
            0 => {}
            _ if !bound.is_empty() && !functions_count => return None,
            k => n += k,
        }
    }
    Some(n)
}

/// Whether an expression is the name of an array in memory, or of a component of one.
fn is_stored(e: &Ex) -> bool {
    match &e.kind {
        Kind::Var(_) | Kind::Input(_) => true,
        Kind::Proj(pair, _) => is_stored(pair),
        _ => false,
    }
}

/// Whether the function of a map computes scalars in front of another map.
fn computes_between_maps(e: &Ex) -> bool {
    let Kind::Map(_, f, _) = &e.kind else { return false };
    let (mut body, mut computes) = (&*f.body, false);
    while let Kind::Let(_, value, rest) = &body.kind {
        computes |= !value.ty.has_array() && !value.is_free_of_cost();
        body = rest;
    }
    matches!(body.kind, Kind::Map(..)) && (computes || computes_between_maps(body))
}

/// Whether maps compute elements of an array.
fn is_computed(e: &Ex) -> bool {
    match &e.kind {
        Kind::Map(..) => !e.is_free_of_cost(),
        Kind::Let(..) => true,
        _ => e.ty.has_array() && e.parts().iter().any(|(_, part)| is_computed(part)),
    }
}

/// Returns an operation on places.
fn op(op: ScalarOp, a: Ex, b: Ex) -> Ex {
    let (ty, span) = (a.ty.clone(), a.span);
    Ex::new(Kind::Op(op, vec![a, b]), ty, span)
}

/// Returns `a + (k + l)` for `a + k + l`, which whole numbers allow, whatever overflows. So equal places have equal text.
fn with_one_number(e: Ex) -> Ex {
    let Ty::Scalar(t) = e.ty else { return e };
    let Some((a, k)) = moved(&e).filter(|_| !t.is_float()) else { return e };
    let Some((first, l)) = moved(a) else { return e };
    match k + l {
        0 => first.clone(),
        sum => {
            let sign = if sum < 0 { ScalarOp::Sub } else { ScalarOp::Add };
            let by = Ex::new(Kind::Lit(Lit::int(t, sum.abs())), e.ty.clone(), e.span);
            op(sign, first.clone(), by)
        }
    }
}

/// Returns the parts of a sum or a difference whose second part is a number.
fn moved(e: &Ex) -> Option<(&Ex, i128)> {
    let Kind::Op(op @ (ScalarOp::Add | ScalarOp::Sub), args) = &e.kind else { return None };
    let [a, Ex { kind: Kind::Lit(k), .. }] = &args[..] else { return None };
    let k = k.as_int()?;
    Some((a, if *op == ScalarOp::Add { k } else { -k }))
}
