//! The first or last few elements of a sorted array, without a sort of the others.
//!
//! `take k (argsort xs)`, the last element of a sort, or a beam search's best continuations need `k` elements of `n`. The array is cut
//! into chunks. An element among the `k` least lies in one of the `k` chunks whose least elements are least: otherwise `k` elements stood before it.
//! So the least elements of all chunks are computed, which reads the array once, the `k` chunks are selected in the same way, and then the `k`
//! elements from what these chunks hold. Of few elements, the place of each is the number of those that stand before it.
//!
//! Equal keys keep their order, as in the sort: chunks are in the order of their elements, and those that are selected are brought back
//! into it. All lengths are known, so that nothing depends on how the data are spread.

use super::core::{Ex, Kind, Lambda, Layout, Var};
use super::counting::{Known, constant};
use super::interchange::named;
use super::parts::dimension;
use super::views::place_in;
use crate::calculus::scalar::Lit;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::diag::Span;
use crate::lang::typed::{Prim, ScalarOp};
use crate::lang::types::ScalarType;

/// Most elements that are selected. The work for each chunk that is read again grows with their number.
const MOST: u64 = 64;

/// Elements for each that is selected, from which selecting takes less time than sorting.
const SHARE: u64 = 64;

/// Most elements that are compared with each other: by one function of a map, and by the whole device, where a further selection
/// would take several launches.
const COMPARED: [u64; 2] = [512, 4096];

/// Returns the program in which few elements of sorted arrays are selected, and decides that all others are sorted.
pub(super) fn of_sorted(mut e: Ex, env: &mut SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Ex {
    Pass { env, fresh, compared: COMPARED[1], lets: vec![] }.walk(&mut e);
    e
}

struct Pass<'a> {
    env: &'a mut SizeEnv,
    fresh: &'a mut dyn FnMut() -> Var,
    /// Most elements that are compared with each other here.
    compared: u64,
    /// Names of the selection that is being made.
    lets: Vec<(Layout, Ex)>,
}

/// Which elements of a sorted array are used.
#[derive(Clone, PartialEq)]
struct Part {
    /// How many.
    k: Size,
    /// Whether they are the last ones.
    last: bool,
}

/// Keys: a function of the elements of arrays of one length.
#[derive(Clone)]
struct Keys {
    of: Lambda,
    args: Vec<Ex>,
    ty: ScalarType,
    n: Size,
}

impl Pass<'_> {
    fn walk(&mut self, e: &mut Ex) {
        if let Some(other) = self.of_named(e).or_else(|| self.of_part(e)) {
            *e = other;
        }
        if let Kind::Prim(Prim::InOrder, _, _, args) = &mut e.kind {
            *e = args.pop().expect("invariant: the sorted array is an argument");
        }
        let was = self.compared;
        if matches!(e.kind, Kind::Map(..)) {
            self.compared = COMPARED[0];
        }
        e.parts_mut().into_iter().for_each(|part| self.walk(part));
        self.compared = was;
    }

    /// A part of a sorted array.
    fn of_part(&mut self, e: &Ex) -> Option<Ex> {
        let (array, part) = self.part(e)?;
        let selected = self.selected(array, &part)?;
        Self::read(e, selected, &part)
    }

    /// A sorted array with a name, of which the same part is used everywhere.
    fn of_named(&mut self, e: &Ex) -> Option<Ex> {
        let Kind::Let(Layout::Var(v, _), value, body) = &e.kind else { return None };
        let mut parts = vec![];
        if !is_ordered(value) || !self.parts(body, *v, &mut parts) {
            return None;
        }
        let part = parts.first()?.clone();
        if parts.iter().any(|p| *p != part) {
            return None;
        }
        let value = self.selected(value, &part)?;
        let name = named(&value.ty, self.fresh);
        let mut body = (**body).clone();
        self.put(&mut body, *v, &name.value(e.span))?;
        Some(body.bound(name, value))
    }

    /// Returns the array of which an expression is a part, and the part.
    fn part<'e>(&self, e: &'e Ex) -> Option<(&'e Ex, Part)> {
        let value = |n: &Size| n.eval(self.env).ok();
        Some(match &e.kind {
            Kind::Prim(Prim::Take, _, _, args) => {
                (args.first()?, Part { k: e.length()?.clone(), last: false })
            }
            Kind::Prim(Prim::Drop, _, _, args) => {
                (args.first()?, Part { k: e.length()?.clone(), last: true })
            }
            Kind::Index(array, at) => {
                let at = u64::try_from(constant(at, &Known::new(), self.env)?).ok()?;
                let behind = value(array.length()?)?.checked_sub(at)?;
                let k = Size::constant(behind.min(at + 1));
                (&**array, Part { k, last: behind <= at })
            }
            _ => return None,
        })
    }

    /// Returns what an expression is of the part that it uses.
    fn read(e: &Ex, part: Ex, of: &Part) -> Option<Ex> {
        match &e.kind {
            Kind::Index(_, at) => {
                let at = if of.last { at.number(0)? } else { (**at).clone() };
                part.element(&at)
            }
            _ => Some(part),
        }
    }

    /// Collects the parts of a name that are used. Returns whether it has no other uses.
    fn parts(&self, e: &Ex, v: Var, out: &mut Vec<Part>) -> bool {
        if let Some((array, part)) = self.part(e)
            && array.kind == Kind::Var(v)
        {
            out.push(part);
            return true;
        }
        e.kind != Kind::Var(v) && e.parts().iter().all(|(_, part)| self.parts(part, v, out))
    }

    /// Replaces the parts of a name.
    fn put(&self, e: &mut Ex, v: Var, by: &Ex) -> Option<()> {
        if let Some((array, part)) = self.part(e)
            && array.kind == Kind::Var(v)
        {
            *e = Self::read(e, by.clone(), &part)?;
            return Some(());
        }
        e.parts_mut().into_iter().try_for_each(|part| self.put(part, v, by))
    }

    /// Returns a part of a sorted array, or of what is made of one element by element.
    fn selected(&mut self, e: &Ex, part: &Part) -> Option<Ex> {
        let mut around = vec![];
        let mut inner = e;
        while let Kind::Let(p, value, body) = &inner.kind {
            around.push((p.clone(), (**value).clone()));
            inner = body;
        }
        let out = match &inner.kind {
            Kind::Prim(Prim::InOrder, _, _, args) => {
                let [keys, xs, _] = &args[..] else { return None };
                let keys = self.keys(keys, &around)?;
                let places = self.places(keys, part, e.span);
                let lets = std::mem::take(&mut self.lets);
                gathered(xs.clone(), places?)?.after(lets)
            }
            Kind::Prim(Prim::Sorted, _, _, args) => self.selected(args.get(1)?, part)?,
            Kind::Prim(Prim::Gather, _, _, args) => {
                let [xs, at] = &args[..] else { return None };
                gathered(xs.clone(), self.selected(at, part)?)?
            }
            Kind::Prim(Prim::Reverse, _, _, args) => {
                let other = Part { k: part.k.clone(), last: !part.last };
                self.selected(args.first()?, &other)?.reverse()?
            }
            Kind::Proj(pair, second) => match &pair.kind {
                Kind::Prim(Prim::Unzip, _, _, args) => {
                    let pairs = self.selected(args.first()?, part)?;
                    let pair = named(&pairs.element_type()?, self.fresh);
                    let one = pair.value(e.span).proj(*second)?;
                    Ex::map_of(one, [(&pair, &pairs)], self.fresh)?
                }
                _ => return None,
            },
            Kind::Map(prim, f, args) => {
                let [array] = &args[..] else { return None };
                let array = self.selected(array, part)?;
                let ty = Ty::array(&part.k, &inner.element_type()?);
                Ex::new(Kind::Map(*prim, f.clone(), vec![array]), ty, inner.span)
            }
            _ => return None,
        };
        Some(out.behind(around.iter(), self.fresh))
    }

    /// Returns keys as a function of arrays.
    fn keys(&mut self, keys: &Ex, around: &[(Layout, Ex)]) -> Option<Keys> {
        let (n, Ty::Scalar(ty)) = (keys.length()?.clone(), keys.element_type()?) else {
            return None;
        };
        let defined = |(p, value): &(Layout, Ex)| match (p, &keys.kind) {
            (Layout::Var(v, _), Kind::Var(w)) if v == w => Some(value.clone()),
            _ => None,
        };
        let value = around.iter().find_map(defined).unwrap_or_else(|| keys.clone());
        if let Kind::Map(Prim::Map, of, args) = value.kind
            && args.iter().all(Ex::is_free_of_cost)
        {
            return Some(Keys { of, args, ty, n });
        }
        Some(self.plain(keys.clone(), ty, n))
    }

    /// Keys that are the elements of an array.
    fn plain(&mut self, keys: Ex, ty: ScalarType, n: Size) -> Keys {
        let x = named(&Ty::Scalar(ty), self.fresh);
        let body = Box::new(x.value(keys.span));
        Keys { of: Lambda { params: vec![x], body }, args: vec![keys], ty, n }
    }

    /// Returns the places of a part of the elements in the order of their keys.
    fn places(&mut self, mut keys: Keys, part: &Part, span: Span) -> Option<Ex> {
        let [n, k] = [&keys.n, &part.k].map(|size| size.eval(self.env).ok());
        let (n, k) = (n?, k?);
        if k == 0 || k > MOST || n <= self.compared || n / k < SHARE {
            return None;
        }
        let place = place_in(&keys.n, self.env);
        if !part.last {
            return self.least(&keys, &part.k, &place, span);
        }
        // The last elements are the first ones of the opposite order.
        keys.args = keys.args.into_iter().map(Ex::reverse).collect::<Option<_>>()?;
        let t = keys.ty;
        let opposite = vec![highest(t, span), (*keys.of.body).clone()];
        *keys.of.body = Ex::op(ScalarOp::Sub, opposite, t, span);
        let places = self.least(&keys, &part.k, &place, span)?;
        let i = named(&place, self.fresh);
        let behind = i.value(span).number(n - 1)?;
        let forward = Ex::new(Kind::Op(ScalarOp::Sub, vec![behind, i.value(span)]), place, span);
        Ex::map_of(forward, [(&i, &places)], self.fresh)?.reverse()
    }

    /// Returns the places of the `k` least keys, in the order of the keys.
    fn least(&mut self, keys: &Keys, size: &Size, place: &Ty, span: Span) -> Option<Ex> {
        let (n, k) = (keys.n.eval(self.env).ok()?, size.eval(self.env).ok()?);
        if n <= self.compared.max(SHARE * k) {
            return self.compared(keys, size, place, span);
        }
        // The fewest elements are looked at again if there are as many chunks as elements in those that are selected.
        let c = 1 << ((n / k).ilog2() / 2);
        let c = u64::min(c, COMPARED[1] / k).max(2);
        let (chunks, rest) = (dimension(&keys.n, "chunks", n / c, self.env), n % c);
        let (length, word) = (Size::constant(c), Ty::Scalar(keys.ty));
        let cut = |array: &Ex| array.clone().take(&chunks.mul(&length))?.split(&chunks, &length);
        let rows = keys.args.iter().map(cut).collect::<Option<Vec<_>>>()?;
        let names: Vec<Layout> = rows
            .iter()
            .map(|r| Some(named(&r.element_type()?, self.fresh)))
            .collect::<Option<_>>()?;
        let of_row = self.mapped(keys, names.iter().map(|p| p.value(span)).collect(), &length);
        let least = self.reduced(ScalarOp::Min, highest(keys.ty, span), of_row);
        let f = Lambda { params: names, body: Box::new(least) };
        let firsts = Kind::Map(Prim::Map, f, rows.clone());
        let firsts = self.name(Ex::new(firsts, Ty::array(&chunks, &word), span));
        let firsts = self.plain(firsts, keys.ty, chunks.clone());
        let chosen = self.least(&firsts, size, place, span)?;
        let chosen = self.name(chosen);
        let chosen = self.ascending(&chosen, size, place)?;
        let chosen = self.name(chosen);
        // What the chunks hold, and what is left behind the last one.
        let (inside, all) = (size.mul(&length), k * c + rest);
        let total =
            if rest == 0 { inside.clone() } else { dimension(size, "chosen", all, self.env) };
        let left = dimension(&keys.n, "rest", rest, self.env);
        let mut args = vec![];
        for (row, array) in rows.into_iter().zip(&keys.args) {
            let mut held = gathered(row, chosen.clone())?.join()?;
            if rest > 0 {
                held = held.concat(array.clone().drop(&left)?, &total)?;
            }
            args.push(held);
        }
        let held = self.mapped(keys, args, &total);
        let held = self.name(held);
        let mut places = self.places_in(&chosen, &length, place)?;
        if rest > 0 {
            let i = named(place, self.fresh);
            let behind = i.value(span).further(n / c * c)?;
            let behind = Ex::map_of(behind, [(&i, &Ex::iota(&left, place, span))], self.fresh)?;
            places = places.concat(behind, &total)?;
        }
        let held = self.plain(held, keys.ty, total);
        let best = self.least(&held, size, place, span)?;
        gathered(places, best)
    }

    /// As [`Pass::least`]: the place of each element is the number of those that stand before it.
    fn compared(&mut self, keys: &Keys, size: &Size, place: &Ty, span: Span) -> Option<Ex> {
        let word = Ty::Scalar(keys.ty);
        let all = self.mapped(keys, keys.args.clone(), &keys.n);
        let all = self.name(all);
        let all_places = Ex::iota(&keys.n, place, span);
        let [i, j] = [(); 2].map(|()| named(place, self.fresh));
        let [a, b] = [(); 2].map(|()| named(&word, self.fresh));
        let test = |op, x: &Layout, y: &Layout| {
            Ex::op(op, vec![x.value(span), y.value(span)], ScalarType::Bool, span)
        };
        let both = |op, x, y| Ex::op(op, vec![x, y], ScalarType::Bool, span);
        let equal = both(ScalarOp::And, test(ScalarOp::Eq, &b, &a), test(ScalarOp::Lt, &j, &i));
        let before = both(ScalarOp::Or, test(ScalarOp::Lt, &b, &a), equal);
        let one = i.value(span).number(1)?;
        let counted = Ex::choice(before, one, i.value(span).number(0)?);
        let counted = Ex::map_of(counted, [(&j, &all_places), (&b, &all)], self.fresh)?;
        let count = self.reduced(ScalarOp::Add, i.value(span).number(0)?, counted);
        let to = Ex::map_of(count, [(&i, &all_places), (&a, &all)], self.fresh)?;
        Self::scattered(all_places, to, size)
    }

    /// Returns few different numbers in ascending order.
    fn ascending(&mut self, numbers: &Ex, size: &Size, ty: &Ty) -> Option<Ex> {
        if size.eval(self.env) == Ok(1) {
            return Some(numbers.clone());
        }
        let (span, Ty::Scalar(_)) = (numbers.span, ty) else { return None };
        let [a, b] = [(); 2].map(|()| named(ty, self.fresh));
        let less = Ex::op(ScalarOp::Lt, vec![b.value(span), a.value(span)], ScalarType::Bool, span);
        let counted = Ex::choice(less, a.value(span).number(1)?, a.value(span).number(0)?);
        let counted = Ex::map_of(counted, [(&b, numbers)], self.fresh)?;
        let count = self.reduced(ScalarOp::Add, a.value(span).number(0)?, counted);
        let to = Ex::map_of(count, [(&a, numbers)], self.fresh)?;
        Self::scattered(numbers.clone(), to, size)
    }

    /// Stores each value at its place, if that is one of the first.
    fn scattered(values: Ex, places: Ex, size: &Size) -> Option<Ex> {
        let Ty::Scalar(t) = values.element_type()? else { return None };
        let zero = Ex::new(Kind::Lit(Lit::int(t, 0)), Ty::Scalar(t), values.span);
        let (none, span) = (zero.replicate(size), values.span);
        let ty = none.ty.clone();
        let kind = Kind::Prim(Prim::Scatter, vec![], vec![], vec![none, places, values]);
        Some(Ex::new(kind, ty, span))
    }

    /// Returns the places of the elements of chunks.
    fn places_in(&mut self, chunks: &Ex, length: &Size, place: &Ty) -> Option<Ex> {
        let span = chunks.span;
        let [chunk, i] = [(); 2].map(|()| named(place, self.fresh));
        let times = vec![chunk.value(span), chunk.value(span).number(length.eval(self.env).ok()?)?];
        let first = Ex::new(Kind::Op(ScalarOp::Mul, times), place.clone(), span);
        let at = Ex::new(Kind::Op(ScalarOp::Add, vec![first, i.value(span)]), place.clone(), span);
        let all = Ex::map_of(at, [(&i, &Ex::iota(length, place, span))], self.fresh)?;
        Ex::map_of(all, [(&chunk, chunks)], self.fresh)?.join()
    }

    /// Returns the keys of the elements of arrays.
    fn mapped(&mut self, keys: &Keys, args: Vec<Ex>, n: &Size) -> Ex {
        let span = args[0].span;
        let f = Kind::Map(Prim::Map, keys.of.clone(), args);
        let all = Ex::new(f, Ty::array(n, &Ty::Scalar(keys.ty)), span);
        all.refreshed(self.fresh)
    }

    fn reduced(&mut self, op: ScalarOp, start: Ex, xs: Ex) -> Ex {
        let (ty, span) = (start.ty.clone(), xs.span);
        let [a, b] = [(); 2].map(|()| named(&ty, self.fresh));
        let body = Ex::new(Kind::Op(op, vec![a.value(span), b.value(span)]), ty.clone(), span);
        let op = Lambda { params: vec![a, b], body: Box::new(body) };
        Ex::new(Kind::Prim(Prim::Reduce, vec![op], vec![], vec![start, xs]), ty, span)
    }

    /// Gives an array a name.
    fn name(&mut self, e: Ex) -> Ex {
        if e.is_free_of_cost() {
            return e;
        }
        let name = named(&e.ty, self.fresh);
        let value = name.value(e.span);
        self.lets.push((name, e));
        value
    }
}

/// Whether an array is one that is in order, or is made of one element by element.
fn is_ordered(e: &Ex) -> bool {
    match &e.behind_lets().kind {
        Kind::Prim(Prim::InOrder, ..) => true,
        Kind::Prim(Prim::Sorted | Prim::Gather, _, _, args) => args.get(1).is_some_and(is_ordered),
        Kind::Prim(Prim::Reverse | Prim::Unzip, _, _, args) | Kind::Map(_, _, args) => {
            args.first().is_some_and(is_ordered)
        }
        Kind::Proj(pair, _) => is_ordered(pair),
        _ => false,
    }
}

/// Returns the elements at places.
fn gathered(xs: Ex, at: Ex) -> Option<Ex> {
    let (ty, span) = (Ty::array(at.length()?, &xs.element_type()?), at.span);
    Some(Ex::new(Kind::Prim(Prim::Gather, vec![], vec![], vec![xs, at]), ty, span))
}

/// The highest number of an unsigned type.
fn highest(t: ScalarType, span: Span) -> Ex {
    let bits = u32::try_from(8 * t.bytes()).unwrap_or(64);
    Ex::new(Kind::Lit(Lit::int(t, (1 << bits) - 1)), Ty::Scalar(t), span)
}
