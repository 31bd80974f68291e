//! Elements of short sorted arrays by sorting networks.
//!
//! A sort of an array of known, small length of which single elements are used, such as the median of a window, is a network of minima
//! and maxima without the parts that no used element needs (Knuth, The Art of Computer Programming, volume 3, section 5.3.4; the
//! network is that of Batcher's merge exchange, algorithm 5.2.2M). It is a function of scalars, so a median filter is a stencil as any
//! other. NaN is the greatest number of an order, and `min` and `max` prefer the other operand: infinity takes its place in the
//! network, and the results that belong to the last places are NaN, as many as there were.

use super::core::{Ex, Kind, Layout, Var};
use super::counting::{Known, constant};
use super::interchange::named;
use super::sizes::nest;
use crate::calculus::scalar::Lit;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::diag::Span;
use crate::lang::typed::{Prim, ScalarOp};
use crate::lang::types::ScalarType;

/// Longest array that is sorted by a network: its elements are in registers.
const LONGEST: u64 = 32;

/// Decides how each sorted array is computed.
pub(super) fn of_short_sorts(mut e: Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Ex {
    Pass { env, fresh }.walk(&mut e);
    e
}

struct Pass<'a> {
    env: &'a SizeEnv,
    fresh: &'a mut dyn FnMut() -> Var,
}

impl Pass<'_> {
    fn walk(&mut self, e: &mut Ex) {
        let other = self.of_named(e).or_else(|| self.of_element(e)).or_else(|| self.of_all(e));
        if let Some(other) = other {
            *e = other;
        }
        if let Kind::Prim(Prim::Sorted, _, _, args) = &mut e.kind {
            *e = args.pop().expect("invariant: the other way is an argument");
        }
        e.parts_mut().into_iter().for_each(|part| self.walk(part));
    }

    /// One element of a sorted array.
    fn of_element(&mut self, e: &Ex) -> Option<Ex> {
        let Kind::Index(array, at) = &e.kind else { return None };
        let (mut lets, mut array) = (vec![], &**array);
        while let Kind::Let(name, value, body) = &array.kind {
            lets.push((name.clone(), (**value).clone()));
            array = body;
        }
        let (n, t, xs) = sorted(array)?;
        let k = self.place(at, n)?;
        Some(self.network((n, t), xs, &[k], e.span).after(lets))
    }

    /// A sorted array with a name, of which elements at known places are used and nothing else.
    fn of_named(&mut self, e: &Ex) -> Option<Ex> {
        let Kind::Let(Layout::Var(v, _), value, body) = &e.kind else { return None };
        let (n, t, xs) = sorted(value)?;
        let mut places = vec![];
        if !self.places(body, *v, n, &mut places) {
            return None;
        }
        places.sort_unstable();
        places.dedup();
        let names: Vec<Layout> = places.iter().map(|_| named(&Ty::Scalar(t), self.fresh)).collect();
        let mut body = (**body).clone();
        self.put(&mut body, *v, n, &|k| {
            let at = places.binary_search(&k).unwrap_or(0);
            names[at].value(e.span)
        });
        let value = self.network((n, t), xs, &places, e.span);
        Some(body.bound(nest(names, pair)?, value))
    }

    /// A whole array.
    fn of_all(&mut self, e: &Ex) -> Option<Ex> {
        let (n, t, xs) = sorted(e)?;
        let places: Vec<usize> = (0..n).collect();
        let names: Vec<Layout> = places.iter().map(|_| named(&Ty::Scalar(t), self.fresh)).collect();
        let elements = names.iter().map(|name| {
            let one = Size::constant(1);
            let args = vec![name.value(e.span)];
            let ty = Ty::array(&one, &Ty::Scalar(t));
            Ex::new(Kind::Prim(Prim::Replicate, vec![], vec![one], args), ty, e.span)
        });
        let all = joined(elements.collect())?;
        let value = self.network((n, t), xs, &places, e.span);
        Some(all.bound(nest(names, pair)?, value))
    }

    fn place(&self, at: &Ex, n: usize) -> Option<usize> {
        let k = usize::try_from(constant(at, &Known::new(), self.env)?).ok()?;
        (k < n).then_some(k)
    }

    /// Collects the places of the elements that are used of a name. Returns whether the name has no other uses.
    fn places(&self, e: &Ex, v: Var, n: usize, out: &mut Vec<usize>) -> bool {
        match &e.kind {
            Kind::Var(x) => *x != v,
            Kind::Index(array, at) if array.kind == Kind::Var(v) => {
                self.place(at, n).map(|k| out.push(k)).is_some()
            }
            _ => e.parts().iter().all(|(_, part)| self.places(part, v, n, out)),
        }
    }

    /// Replaces the elements of a name.
    fn put(&self, e: &mut Ex, v: Var, n: usize, by: &dyn Fn(usize) -> Ex) {
        if let Kind::Index(array, at) = &e.kind
            && array.kind == Kind::Var(v)
            && let Some(k) = self.place(at, n)
        {
            *e = by(k);
            return;
        }
        e.parts_mut().into_iter().for_each(|part| self.put(part, v, n, by));
    }

    /// Returns the elements at these places of the sorted array, as nested pairs.
    fn network(
        &mut self,
        (n, t): (usize, ScalarType),
        xs: &Ex,
        places: &[usize],
        span: Span,
    ) -> Ex {
        let int = |x: usize| lit(Lit::int(ScalarType::I32, i128::try_from(x).unwrap_or(0)), span);
        let mut lets: Vec<(Layout, Ex)> = vec![];
        let mut name = |value: Ex, lets: &mut Vec<(Layout, Ex)>| {
            let name = named(&value.ty, self.fresh);
            let known = name.value(span);
            lets.push((name, value));
            known
        };
        let array = if xs.is_free_of_cost() { xs.clone() } else { name(xs.clone(), &mut lets) };
        let (mut numbers, mut nans): (Vec<Ex>, Option<Ex>) = (vec![], None);
        for i in 0..n {
            let at = Kind::Index(Box::new(array.clone()), Box::new(int(i)));
            let x = name(Ex::new(at, Ty::Scalar(t), span), &mut lets);
            numbers.push(if t.is_float() {
                let nan = Ex::op(ScalarOp::Ne, vec![x.clone(), x.clone()], ScalarType::Bool, span);
                let nan = name(nan, &mut lets);
                let one = Ex::choice(nan.clone(), int(1), int(0));
                nans = Some(match nans {
                    None => one,
                    Some(sum) => Ex::op(ScalarOp::Add, vec![sum, one], ScalarType::I32, span),
                });
                let infinity = lit(Lit::float(t, f64::INFINITY), span);
                name(Ex::choice(nan, infinity, x), &mut lets)
            } else {
                x
            });
        }
        for step in used(&exchanges(n), places, n) {
            let both = vec![numbers[step.low].clone(), numbers[step.high].clone()];
            let mut of = |op| name(Ex::op(op, both.clone(), t, span), &mut lets);
            if step.least {
                numbers[step.low] = of(ScalarOp::Min);
            }
            if step.greatest {
                numbers[step.high] = of(ScalarOp::Max);
            }
        }
        let nans = nans.map(|sum| name(sum, &mut lets));
        let results = places.iter().map(|k| match &nans {
            None => numbers[*k].clone(),
            Some(nans) => {
                let args = vec![nans.clone(), int(n - 1 - k)];
                let last = Ex::op(ScalarOp::Gt, args, ScalarType::Bool, span);
                Ex::choice(last, lit(Lit::float(t, f64::NAN), span), numbers[*k].clone())
            }
        });
        let all = nest(results.collect(), Ex::pair);
        all.expect("invariant: an element is used").after(lets)
    }
}

/// Returns arrays one after the other, in a balanced tree: an access makes few tests.
fn joined(mut parts: Vec<Ex>) -> Option<Ex> {
    if parts.len() < 2 {
        return parts.pop();
    }
    let n = Size::constant(u64::try_from(parts.len()).ok()?);
    let rest = parts.split_off(parts.len() / 2);
    joined(parts)?.concat(joined(rest)?, &n)
}

fn pair(a: Layout, b: Layout) -> Layout {
    Layout::Pair(Box::new(a), Box::new(b))
}

fn lit(l: Lit, span: Span) -> Ex {
    Ex::new(Kind::Lit(l), Ty::Scalar(l.ty), span)
}

/// Returns the length, the type of the elements, and the array before, if an expression is an array of few numbers that is sorted.
fn sorted(e: &Ex) -> Option<(usize, ScalarType, &Ex)> {
    let Kind::Prim(Prim::Sorted, _, _, args) = &e.kind else { return None };
    let Ty::Array(n, element) = &e.ty else { return None };
    let n = n.as_constant().filter(|n| *n <= LONGEST)?;
    let Ty::Scalar(t) = **element else { return None };
    Some((usize::try_from(n).ok()?, t, args.first()?))
}

/// A step of a network that orders two numbers, and which of its results are used.
struct Exchange {
    low: usize,
    high: usize,
    least: bool,
    greatest: bool,
}

/// Returns the pairs that Batcher's merge exchange orders, in order, for any number of elements.
fn exchanges(n: usize) -> Vec<(usize, usize)> {
    let mut out = vec![];
    let mut p = 1;
    while p < n {
        let mut k = p;
        while k >= 1 {
            let mut j = k % p;
            while j + k < n {
                for i in (j..j + k).take_while(|i| i + k < n) {
                    if i / (2 * p) == (i + k) / (2 * p) {
                        out.push((i, i + k));
                    }
                }
                j += 2 * k;
            }
            k /= 2;
        }
        p *= 2;
    }
    out
}

/// Returns the exchanges that the elements at some places need.
fn used(all: &[(usize, usize)], places: &[usize], n: usize) -> Vec<Exchange> {
    let mut needed = vec![false; n];
    places.iter().for_each(|k| needed[*k] = true);
    let mut out = vec![];
    for (low, high) in all.iter().rev().copied() {
        let (least, greatest) = (needed[low], needed[high]);
        if least || greatest {
            (needed[low], needed[high]) = (true, true);
            out.push(Exchange { low, high, least, greatest });
        }
    }
    out.reverse();
    out
}

#[cfg(test)]
mod tests {
    use super::{exchanges, used};

    /// By the zero-one principle (Knuth, theorem Z), a network that orders all zeros and ones orders all numbers; and so does what is
    /// left of it for one element.
    #[test]
    fn networks_sort() {
        for n in 1..=12 {
            let all = exchanges(n);
            for bits in 0..1u32 << n {
                let numbers: Vec<bool> = (0..n).map(|i| bits >> i & 1 == 1).collect();
                let ones = numbers.iter().filter(|x| **x).count();
                for k in 0..n {
                    let mut xs = numbers.clone();
                    for e in used(&all, &[k], n) {
                        let (a, b) = (xs[e.low], xs[e.high]);
                        xs[e.low] = if e.least { a & b } else { a };
                        xs[e.high] = if e.greatest { a | b } else { b };
                    }
                    assert_eq!(xs[k], k >= n - ones, "element {k} of {n}: {bits:b}");
                }
            }
        }
        assert_eq!(exchanges(16).len(), 63);
        let median: usize = used(&exchanges(9), &[4], 9)
            .iter()
            .map(|e| usize::from(e.least) + usize::from(e.greatest))
            .sum();
        assert!(median <= 42, "{median} operations");
    }
}
