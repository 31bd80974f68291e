//! Moves reductions out of maps on whose elements they do not depend (loop-invariant code motion).
//!
//! In `map (\r -> map (\x -> x / reduce (+) 0 r) r) rs` the sum depends on `r` alone. It gets a name in front of the inner
//! map, and is computed once for each row. In `map (\q -> map (\k -> f q (norm k)) ks) qs` the norm depends on `k` alone,
//! and `ks` is the same for every `q`. The norms of all `ks` become an array in front of the outer map, and the inner map
//! goes through `ks` and this array.
//!
//! The largest expression with a reduction moves, so that the rows of a product are complete operands. Nothing moves out of
//! a branch, out of a loop, or out of a low-level map, whose place the program itself has chosen.

use super::core::{Ex, Kind, Lambda, Layout, Var, Vars};
use super::hoist;
use super::interchange::named;
use crate::calculus::ty::Ty;
use crate::lang::typed::Prim;
use std::collections::BTreeSet;

/// Returns the program with its reductions outside the maps on whose elements they do not depend.
pub(super) fn rows(mut body: Ex, fresh: &mut dyn FnMut() -> Var) -> Ex {
    // What has moved may contain maps of its own.
    for _ in 0..ROUNDS {
        let mut motion = Motion { frames: vec![], lets: vec![], arrays: vec![], moved: 0, fresh };
        motion.walk(&mut body);
        if motion.moved == 0 {
            break;
        }
    }
    body
}

/// Most passes over a program. Each moves expressions out of at least one map.
const ROUNDS: usize = 8;

/// The function of a map around the place of the walk.
struct Frame {
    /// The variables bound in the function, outside the functions of inner maps.
    bound: Vars,
    /// The parameters, each with its array. Those of arrays that were added come last.
    params: Vec<(Layout, Ex)>,
    /// What was moved to the beginning of the body.
    lets: Vec<(Layout, Ex)>,
}

/// A `let` around the place of the walk.
struct Binding {
    name: Layout,
    value: Ex,
    /// The number of the function in whose body it stands, outside of inner maps. `None` if its value moves out of there, with what
    /// uses it.
    stays: Option<usize>,
}

struct Motion<'f> {
    /// The functions around the place of the walk, outermost first.
    frames: Vec<Frame>,
    /// The `let`s of these functions.
    lets: Vec<Binding>,
    /// What was moved in front of the outermost map.
    arrays: Vec<(Layout, Ex)>,
    /// Number of expressions that were moved.
    moved: usize,
    fresh: &'f mut dyn FnMut() -> Var,
}

impl Motion<'_> {
    fn walk(&mut self, e: &mut Ex) {
        if !self.reduces(e) {
            return;
        }
        if let Some(name) = self.name(e) {
            *e = name;
            self.moved += 1;
            return;
        }
        let outside = self.frames.is_empty();
        match &mut e.kind {
            Kind::Map(Prim::Map, f, args) => {
                self.operands(f, args);
                args.iter_mut().for_each(|a| self.walk(a));
                self.function(f, args);
                if outside {
                    let arrays = std::mem::take(&mut self.arrays);
                    *e = taken(e).after(arrays);
                }
            }
            Kind::Map(_, _, args) | Kind::Prim(_, _, _, args) => {
                args.iter_mut().for_each(|a| self.walk(a));
            }
            Kind::Let(..) if !outside => self.binding(e),
            // A branch may not be taken, and the body of a loop may not run.
            Kind::If(c, ..) if !outside => self.walk(c),
            Kind::For(init, bound, ..) if !outside => {
                self.walk(init);
                self.walk(bound);
            }
            Kind::While(init, ..) if !outside => self.walk(init),
            _ => e.parts_mut().into_iter().for_each(|part| self.walk(part)),
        }
    }

    /// Walks the function of a map over `args`, and adds what its body needs.
    fn function(&mut self, f: &mut Lambda, args: &mut Vec<Ex>) {
        let params: Vec<(Layout, Ex)> = f.params.drain(..).zip(args.drain(..)).collect();
        let bound = params.iter().flat_map(|(p, _)| p.vars()).map(|(v, _)| v).collect();
        let count = params.len();
        self.frames.push(Frame { bound, params, lets: vec![] });
        self.walk(&mut f.body);
        let Some(Frame { mut params, lets, .. }) = self.frames.pop() else { return };
        *f.body = taken(&mut f.body).after(lets);
        if params.len() > count {
            // Of some rows, only what was computed of them may be left.
            let used = f.body.free();
            params.retain(|(p, _)| p.meets(&used));
        }
        (f.params, *args) = params.into_iter().unzip();
    }

    /// Takes what a map computes of the elements of one array alone, with a reduction of that array, out of the function of
    /// a map over several: `map2 (\x y -> (x - m) * y) q k` becomes `map2 (*) (map (\x -> x - m) q) k` if `m` is computed of
    /// `q`. The new array is an expression that can move.
    fn operands(&mut self, f: &mut Lambda, args: &mut [Ex]) {
        if args.len() < 2 || self.frames.is_empty() {
            return;
        }
        let mut all = f.own();
        for (p, array) in f.params.iter_mut().zip(args) {
            let of_array = self.around(&array.free());
            let own: Vars = p.vars().into_iter().map(|(v, _)| v).collect();
            let fits = |e: &Ex| {
                let (free, is_name) = (e.free(), matches!(e.kind, Kind::Var(_)));
                let rest: Vars = free.difference(&own).copied().collect();
                !is_name
                    && p.meets(&free)
                    && self.reduces(e)
                    && rest.is_disjoint(&all)
                    && self.around(&rest) == of_array
            };
            let Some(one) = largest(&f.body, &fits).cloned() else { continue };
            let name = named(&one.ty, self.fresh);
            let mut body = (*f.body).clone();
            body.replace(&one, &name.value(one.span));
            let Ty::Array(n, _) = &array.ty else { continue };
            // What is left must not need the array itself.
            if p.meets(&body.free()) {
                continue;
            }
            *f.body = body;
            all.extend(name.vars().into_iter().map(|(v, _)| v));
            let (ty, span) = (Ty::array(n, &one.ty), array.span);
            let of_one = Lambda { params: vec![p.clone()], body: Box::new(one) };
            let map = Kind::Map(Prim::Map, of_one, vec![taken(array)]);
            *array = Ex::new(map, ty, span);
            *p = name;
        }
    }

    /// Returns the numbers of the functions on whose parameters the values of `free` depend.
    fn around(&self, free: &Vars) -> BTreeSet<usize> {
        let mut on = Vars::new();
        self.depends(free, &mut on);
        on.iter().filter_map(|v| self.frame(*v)).collect()
    }

    /// Returns the number of the function that binds a variable.
    fn frame(&self, v: Var) -> Option<usize> {
        self.frames.iter().rposition(|f| f.bound.contains(&v))
    }

    /// Walks a `let` inside a function. If its value can move, it moves with what uses it, if that moves, too.
    fn binding(&mut self, e: &mut Ex) {
        let Kind::Let(p, value, body) = &mut e.kind else { return };
        let moves = self.target(value).is_some();
        if !moves {
            self.walk(value);
        }
        let stays = self.frames.len().checked_sub(1).filter(|_| !moves);
        let mut before = 0;
        if let Some(frame) = self.frames.last_mut() {
            frame.bound.extend(p.vars().into_iter().map(|(v, _)| v));
            before = frame.lets.len();
        }
        self.lets.push(Binding { name: p.clone(), value: (**value).clone(), stays });
        self.walk(body);
        self.lets.pop();
        if stays.is_some() {
            // What was moved and needs the name is computed behind it.
            let frame = self.frames.last_mut().expect("invariant: a `let` in a function");
            let mut needed: Vars = p.vars().into_iter().map(|(v, _)| v).collect();
            let (mut rest, mut behind) = (vec![], vec![]);
            for (name, value) in frame.lets.drain(before..) {
                if value.free().is_disjoint(&needed) {
                    rest.push((name, value));
                } else {
                    needed.extend(name.vars().into_iter().map(|(v, _)| v));
                    behind.push((name, value));
                }
            }
            frame.lets.append(&mut rest);
            **body = taken(body).after(behind);
        }
        if moves && p.meets(&body.free()) {
            self.walk(value);
        } else if moves {
            *e = taken(body);
        }
    }

    /// Moves an expression, if it can. Returns the name that takes its place.
    fn name(&mut self, e: &Ex) -> Option<Ex> {
        let name = match self.target(e)? {
            Target::Function(j) => {
                let value = self.with_lets(e.clone(), |b| b.stays != Some(j));
                let known = self.frames[j].lets.iter().find(|(_, v)| v.kind == value.kind);
                match known {
                    Some((name, _)) => name.clone(),
                    None => {
                        let name = named(&e.ty, self.fresh);
                        self.frames[j].lets.push((name.clone(), value));
                        self.bind(j, &name)
                    }
                }
            }
            Target::Array => self.array(e)?,
        };
        Some(name.value(e.span))
    }

    /// Returns an expression behind those of the `let`s around it that it needs and that move with it.
    fn with_lets(&self, e: Ex, moves: impl Fn(&Binding) -> bool) -> Ex {
        self.lets.iter().rev().filter(|b| moves(b)).fold(e, |e, b| match b.name.meets(&e.free()) {
            true => e.bound(b.name.clone(), b.value.clone()),
            false => e,
        })
    }

    /// Makes an array of what is computed of each element of the innermost map. Returns the variables of its elements.
    fn array(&mut self, e: &Ex) -> Option<Layout> {
        let k = self.frames.len() - 1;
        let value = with(&self.frames[k].lets, e.clone());
        let value = self.with_lets(value, |_| true);
        let arrays = self.frames[k].params.iter().map(|(p, array)| (p, array));
        let map = Ex::map_of(value, arrays, self.fresh)?;
        let ty = map.ty.clone();
        let v = (self.fresh)();
        self.arrays.push((Layout::Var(v, ty.clone()), map));
        let name = named(&e.ty, self.fresh);
        self.frames[k].params.push((name.clone(), Ex::new(Kind::Var(v), ty, e.span)));
        Some(self.bind(k, &name))
    }

    fn bind(&mut self, frame: usize, name: &Layout) -> Layout {
        self.frames[frame].bound.extend(name.vars().into_iter().map(|(v, _)| v));
        name.clone()
    }

    /// Returns where an expression can move.
    fn target(&self, e: &Ex) -> Option<Target> {
        let innermost = self.frames.len().checked_sub(1)?;
        if matches!(e.kind, Kind::Var(_)) || !self.reduces(e) {
            return None;
        }
        let mut on = Vars::new();
        self.depends(&e.free(), &mut on);
        let frames: BTreeSet<usize> = on.iter().filter_map(|v| self.frame(*v)).collect();
        let (first, last) = (*frames.first()?, *frames.last()?);
        if last < innermost {
            return Some(Target::Function(last));
        }
        // All maps around the innermost one would compute the same.
        let closed = |array: &Ex| array.free().iter().all(|v| self.frame(*v).is_none());
        let params = &self.frames[innermost].params;
        let alone = innermost > 0 && first == innermost;
        let same = params.iter().filter(|(p, _)| p.meets(&on)).all(|(_, array)| closed(array));
        (alone && same && is_small(&e.ty, params)).then_some(Target::Array)
    }

    /// Adds the variables of parameters on which the values of `free` depend.
    fn depends(&self, free: &Vars, out: &mut Vars) {
        for v in free {
            let one = Vars::from([*v]);
            let moved = self.frames.iter().flat_map(|f| &f.lets);
            let lets = self.lets.iter().map(|b| (&b.name, &b.value));
            match lets.chain(moved.map(|(p, value)| (p, value))).find(|(p, _)| p.meets(&one)) {
                Some((_, value)) => self.depends(&value.free(), out),
                None => {
                    out.insert(*v);
                }
            }
        }
    }

    /// Whether computing the value reduces an array, here or in a `let` that it names.
    fn reduces(&self, e: &Ex) -> bool {
        if let Kind::Var(v) = e.kind {
            let one = Vars::from([v]);
            return self.lets.iter().any(|b| b.name.meets(&one) && self.reduces(&b.value));
        }
        hoist::reduces(&e.kind) || e.parts().iter().any(|(_, part)| self.reduces(part))
    }
}

/// The place that an expression moves to.
enum Target {
    /// The beginning of the function with this number.
    Function(usize),
    /// An array in front of all maps.
    Array,
}

/// Whether an array of such values takes no more memory than arrays that the program has: each is a scalar, a row, or like
/// an element of the map.
fn is_small(ty: &Ty, params: &[(Layout, Ex)]) -> bool {
    let like = |dims: &[_]| {
        params.iter().any(|(p, _)| p.ty().components().iter().any(|(own, _)| own == dims))
    };
    ty.components().iter().all(|(dims, _)| dims.len() < 2 || like(dims))
}

/// Returns the largest part of an expression that fits, outside inner functions.
fn largest<'e>(e: &'e Ex, fits: &dyn Fn(&Ex) -> bool) -> Option<&'e Ex> {
    if fits(e) {
        return Some(e);
    }
    let parts = e.parts().into_iter().filter(|(bound, _)| bound.is_empty());
    parts.map(|(_, part)| part).find_map(|part| largest(part, fits))
}

/// Takes an expression out of its place.
fn taken(e: &mut Ex) -> Ex {
    let nothing = Ex::new(Kind::Unit, Ty::Unit, e.span);
    std::mem::replace(e, nothing)
}

/// Returns an expression behind those of the `let`s that it needs.
fn with(lets: &[(Layout, Ex)], e: Ex) -> Ex {
    lets.iter().rev().fold(e, |e, (p, value)| {
        if p.meets(&e.free()) { e.bound(p.clone(), value.clone()) } else { e }
    })
}
