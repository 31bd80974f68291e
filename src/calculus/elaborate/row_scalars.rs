//! Scalars that a function computes for each row, before it goes through the row, get an array of their own.
//!
//! ```text
//! map (\(i, r) -> let s = exp2 i in map (* s) r) (zip is rs) = map2 (\s r -> map (* s) r) (map exp2 is) rs
//! ```
//!
//! Between two maps, the scalar keeps the rules that share out nests from both of them: only the rows would be spread over
//! work-groups. In an inner function, each element would compute it. If the rows are many, the first form is good: so this is another
//! form, and for few rows only.

use super::core::{Ex, Kind, Lambda, Layout, Var, Vars, is_view};
use crate::calculus::size::SizeEnv;
use crate::lang::typed::Prim;

/// Most rows that may need more parallelism than they have.
const FEW: u64 = 1 << 14;

/// Fewest operations for which an array of results is better than computing them for each element of a row.
const WORTH: usize = 2;

/// Returns the program with arrays of such scalars; `None` if there are none.
pub(super) fn in_arrays(e: &Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let mut out = e.clone();
    let mut scalars = Scalars { env, fresh, front: vec![], of_rows: Vars::new(), changed: false };
    scalars.walk(&mut out, false);
    let Scalars { front, changed, .. } = scalars;
    changed.then(|| out.after(front))
}

struct Scalars<'a> {
    env: &'a SizeEnv,
    fresh: &'a mut dyn FnMut() -> Var,
    /// Arrays of functions inside others that are the same for all rows of these.
    front: Vec<(Layout, Ex)>,
    /// Names among the arrays of maps with few rows.
    of_rows: Vars,
    changed: bool,
}

impl Scalars<'_> {
    /// Gives the scalars of maps arrays of their own, the inner maps first. `inside` says that the expression is in a function or a loop.
    fn walk(&mut self, e: &mut Ex, inside: bool) {
        match &mut e.kind {
            Kind::Map(prim, f, args) => {
                if *prim == Prim::Map {
                    self.walk(&mut f.body, true);
                }
                args.iter_mut().for_each(|a| self.walk(a, inside));
            }
            Kind::Prim(_, _, _, args) => args.iter_mut().for_each(|a| self.walk(a, inside)),
            _ => {
                let inside = inside || matches!(e.kind, Kind::For(..) | Kind::While(..));
                e.parts_mut().into_iter().for_each(|part| self.walk(part, inside));
            }
        }
        if let Kind::Let(Layout::Var(v, _), array, _) = &mut e.kind
            && !inside
            && self.of_rows.contains(v)
            && let Some(scalars) = self.of_scalars(array, false)
        {
            **array = scalars;
            self.changed = true;
        }
        let Kind::Map(Prim::Map, f, args) = &mut e.kind else { return };
        let few = args[0].length().and_then(|n| n.eval(self.env).ok()).is_some_and(|n| n <= FEW);
        if !few || !has_pattern(&f.body) {
            return;
        }
        for array in args.iter_mut() {
            if let Kind::Var(v) = array.kind {
                self.of_rows.insert(v);
            } else if let Some(scalars) = self.of_scalars(array, inside) {
                *array = self.in_front(scalars, inside);
            }
        }
        loop {
            let fixed = |a: &Ex| !inside || a.free().is_empty();
            let params = f.params.iter().zip(args.iter()).filter(|(_, a)| fixed(a));
            let own = params.flat_map(|(p, _)| p.vars()).map(|(v, _)| v).collect();
            let Some((name, value)) = take(&mut f.body, &own, false, self.fresh) else { break };
            let params = f.params.iter().zip(args.iter());
            let Some(scalars) = in_global(value, params, self.fresh) else { break };
            f.params.push(name);
            args.push(self.in_front(scalars, inside));
        }
    }

    /// Returns an array that a map computes from scalars, in global memory.
    fn of_scalars(&mut self, array: &Ex, inside: bool) -> Option<Ex> {
        let Kind::Map(Prim::Map, f, args) = &array.kind else { return None };
        let here = !inside || array.free().is_empty();
        let computed = is_of(&f.body, &f.own()) && operations(&f.body) > 0;
        let params = f.params.iter().zip(args);
        (here && computed).then(|| in_global((*f.body).clone(), params, self.fresh))?
    }

    /// Returns an array of scalars, in front of the program if a function or a loop would compute it again.
    fn in_front(&mut self, scalars: Ex, inside: bool) -> Ex {
        self.changed = true;
        if !inside {
            return scalars;
        }
        let name = Layout::Var((self.fresh)(), scalars.ty.clone());
        let value = name.value(scalars.span);
        self.front.push((name, scalars));
        value
    }
}

/// Returns the array of what an expression gives for each of the elements of arrays, in global memory: otherwise the maps would become one
/// again.
pub(super) fn in_global<'a>(
    mut value: Ex,
    arrays: impl Iterator<Item = (&'a Layout, &'a Ex)>,
    fresh: &mut dyn FnMut() -> Var,
) -> Option<Ex> {
    let (free, span) = (value.free(), value.span);
    let mut used = arrays.filter(|(p, _)| p.meets(&free));
    let (first, array) = used.next()?;
    let (mut element, mut all) = (first.clone(), array.clone());
    for (p, array) in used {
        element = Layout::Pair(Box::new(element), Box::new(p.clone()));
        all = all.zip(array.clone())?;
    }
    let element = element.renamed(&mut value, fresh);
    let rows = Layout::Var(fresh(), all.ty.clone());
    let scalars = Ex::map_of(value, [(&element, &rows.value(span))], fresh)?;
    let ty = scalars.ty.clone();
    let f = Lambda { params: vec![rows], body: Box::new(scalars) };
    Some(Ex::new(Kind::Prim(Prim::ToGlobal, vec![f], vec![], vec![all]), ty, span))
}

/// Takes a scalar that depends on the variables of a function alone out of its body. `inner` says that the expression is in a function
/// inside the body.
fn take(
    e: &mut Ex,
    own: &Vars,
    inner: bool,
    fresh: &mut dyn FnMut() -> Var,
) -> Option<(Layout, Ex)> {
    if let Kind::Let(name @ Layout::Var(..), value, body) = &mut e.kind
        && is_of(value, own)
        && operations(value) > 0
    {
        let out = (name.clone(), (**value).clone());
        *e = (**body).clone();
        return Some(out);
    }
    if inner && is_of(e, own) && operations(e) >= WORTH {
        let name = Layout::Var(fresh(), e.ty.clone());
        let value = std::mem::replace(e, name.value(e.span));
        return Some((name, value));
    }
    match &mut e.kind {
        Kind::Map(Prim::Map, f, args) => {
            let found = args.iter_mut().find_map(|a| take(a, own, inner, fresh));
            found.or_else(|| take(&mut f.body, own, true, fresh))
        }
        Kind::Prim(_, fs, _, args) => {
            let found = args.iter_mut().find_map(|a| take(a, own, inner, fresh));
            found.or_else(|| fs.iter_mut().find_map(|f| take(&mut f.body, own, true, fresh)))
        }
        // The program itself chose where the functions of low-level maps run.
        Kind::Map(_, _, args) => args.iter_mut().find_map(|a| take(a, own, inner, fresh)),
        // A branch may not be taken, and a loop may not run.
        Kind::If(c, ..) => take(c, own, inner, fresh),
        Kind::For(init, ..) | Kind::While(init, ..) => take(init, own, inner, fresh),
        _ => e.parts_mut().into_iter().find_map(|part| take(part, own, inner, fresh)),
    }
}

/// Whether an expression is a scalar that depends on some of these variables, and on no others.
fn is_of(e: &Ex, own: &Vars) -> bool {
    let free = e.free();
    e.is_pure_scalar() && !free.is_empty() && free.is_subset(own)
}

/// Returns the number of operations in an expression.
fn operations(e: &Ex) -> usize {
    let here = usize::from(matches!(e.kind, Kind::Op(..) | Kind::If(..)));
    here + e.parts().iter().map(|(_, part)| operations(part)).sum::<usize>()
}

/// Whether an expression goes through arrays.
pub(super) fn has_pattern(e: &Ex) -> bool {
    match &e.kind {
        Kind::Map(..) => true,
        Kind::Prim(prim, ..) if !is_view(*prim) => true,
        _ => e.parts().iter().any(|(_, part)| has_pattern(part)),
    }
}
