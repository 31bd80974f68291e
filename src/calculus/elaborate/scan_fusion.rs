//! Sequential scans compute what is made of their results, element by element.
//!
//! In a function of a map one work-item runs a scan. If a map, another scan or a fold goes through the results, the work-item would
//! store the whole row and load it again. So
//!
//! ```text
//! map2 h (scanSeq f y xs) zs    = map snd (scanSeq (\((s, _), (x, z)) -> let s' = f s x in (s', h s' z)) (y, any) (zip xs zs))
//! scanSeq g z (scanSeq f y xs)  = map snd (scanSeq (\((s, t), x) -> let s' = f s x in (s', g t s')) (y, z) xs)
//! reduce g z (scanSeq f y xs)   = snd (reduceSeq (\((s, t), x) -> let s' = f s x in (s', g t s')) (y, z) xs)
//! ```
//!
//! Several scans among the arrays become one. Scans outside of functions stay as they are: many work-items can share what is made of
//! their results. So do scans of arrays, scans whose results are used more than once, and reductions and loops for each result.

use super::again::loops;
use super::capture::any;
use super::core::{Ex, Kind, Lambda, Layout, Var};
use super::interchange::{is_scalar_step, named};
use crate::calculus::ty::Ty;
use crate::lang::typed::{Prim, ScanKind};

/// Returns the expression with its scans fused.
pub(super) fn fused(mut e: Ex, fresh: &mut dyn FnMut() -> Var) -> Ex {
    walk(&mut e, false, fresh);
    e
}

/// Fuses the scans of an expression, the inner ones first. `inside` says that it is in a function of a map.
fn walk(e: &mut Ex, inside: bool, fresh: &mut dyn FnMut() -> Var) {
    let in_functions = match &e.kind {
        Kind::Map(prim, ..) => inside || *prim == Prim::Map,
        _ => inside,
    };
    match &mut e.kind {
        Kind::Map(_, f, args) => {
            walk(&mut f.body, in_functions, fresh);
            args.iter_mut().for_each(|a| walk(a, inside, fresh));
        }
        _ => e.parts_mut().into_iter().for_each(|part| walk(part, inside, fresh)),
    }
    if !inside {
        return;
    }
    if let Kind::Let(Layout::Var(v, _), value, body) = &mut e.kind
        && Run::is_one(value)
        && body.uses(*v) == 1
    {
        let (v, value) = (*v, (**value).clone());
        *e = (**body).clone();
        e.put(v, &value);
        return walk(e, inside, fresh);
    }
    if let Some(one) = with_scans(e, fresh) {
        *e = one;
    }
}

/// Returns a pattern over results of scans as one scan or fold; `None` if there is none.
fn with_scans(e: &Ex, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let mut run = Run::default();
    match &e.kind {
        // What only selects from the states costs nothing.
        Kind::Map(Prim::Map, f, _) if f.body.is_free_of_cost() => None,
        Kind::Map(Prim::Map, f, args) if is_of_element(&f.body) => {
            let out = any(&f.body.ty, e.span)?;
            run.elements(&f.params, args, fresh)?;
            run.states.push((named(&out.ty, fresh), out, (*f.body).clone()));
            run.scanned(e, fresh)
        }
        Kind::Prim(Prim::Scan(ScanKind::Seq), fs, _, args) => {
            run.fold(fs, args, fresh)?;
            run.scanned(e, fresh)
        }
        Kind::Prim(Prim::Reduce | Prim::ReduceComm | Prim::ReduceSeq, fs, _, args) => {
            run.fold(fs, args, fresh)?;
            run.folded()
        }
        _ => None,
    }
}

/// Whether an expression is a scalar that takes few operations. Many work-items can share what takes more, for many elements at once.
fn is_of_element(e: &Ex) -> bool {
    is_scalar_step(e) && !loops(e)
}

/// Scans that are one: what each step computes, and from which elements.
#[derive(Default)]
struct Run {
    /// A name, the initial value and the next value of each component of the state.
    states: Vec<(Layout, Ex, Ex)>,
    /// The values of a step before the last state, in order.
    lets: Vec<(Layout, Ex)>,
    /// Names of what has another name.
    same: Vec<(Var, Ex)>,
    /// The arrays and the names of their elements.
    arrays: Vec<(Layout, Ex)>,
    scans: usize,
}

impl Run {
    /// Whether an expression is a scan of scalars, or a map over one.
    fn is_one(e: &Ex) -> bool {
        match &e.kind {
            Kind::Map(Prim::Map, f, args) => {
                is_of_element(&f.body) && matches!(args.as_slice(), [a] if Run::is_one(a))
            }
            Kind::Prim(Prim::Scan(ScanKind::Seq), fs, ..) => {
                fs.iter().all(|f| is_of_element(&f.body))
            }
            _ => false,
        }
    }

    /// Takes the operator of a scan or a fold as the last state.
    fn fold(&mut self, fs: &[Lambda], args: &[Ex], fresh: &mut dyn FnMut() -> Var) -> Option<()> {
        let ([f], [first, xs]) = (fs, args) else { return None };
        let [acc, x] = f.params.as_slice() else { return None };
        is_of_element(&f.body).then_some(())?;
        self.elements(std::slice::from_ref(x), std::slice::from_ref(xs), fresh)?;
        self.states.push((acc.clone(), first.clone(), (*f.body).clone()));
        Some(())
    }

    /// Names the elements of arrays; `None` if no scan is among the arrays.
    fn elements(
        &mut self,
        names: &[Layout],
        arrays: &[Ex],
        fresh: &mut dyn FnMut() -> Var,
    ) -> Option<()> {
        for (name, array) in names.iter().zip(arrays) {
            let value = self.element(array, fresh)?;
            self.name(name.clone(), value);
        }
        (self.scans > 0).then_some(())
    }

    /// Returns an element of an array.
    fn element(&mut self, array: &Ex, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
        match &array.kind {
            _ if Run::is_one(array) => self.result(array, fresh),
            Kind::Prim(Prim::Zip, _, _, args) if args.len() == 2 => {
                Some(Ex::pair(self.element(&args[0], fresh)?, self.element(&args[1], fresh)?))
            }
            _ => {
                if let Some((name, _)) = self.arrays.iter().find(|(_, a)| a == array) {
                    return Some(name.value(array.span));
                }
                let name = Layout::Var(fresh(), array.element_type()?);
                self.arrays.push((name.clone(), array.clone()));
                Some(name.value(array.span))
            }
        }
    }

    /// Returns the result of a step of a scan, or of a function of it.
    fn result(&mut self, scan: &Ex, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
        match &scan.kind {
            Kind::Map(_, f, args) => {
                let value = self.result(args.first()?, fresh)?;
                self.name(f.params.first()?.clone(), value);
                Some((*f.body).clone())
            }
            Kind::Prim(_, fs, _, args) => {
                let ([f], [first, xs]) = (fs.as_slice(), args.as_slice()) else { return None };
                let [acc, x] = f.params.as_slice() else { return None };
                let value = self.element(xs, fresh)?;
                self.name(x.clone(), value);
                self.scans += 1;
                let next = named(&acc.ty(), fresh);
                self.lets.push((next.clone(), (*f.body).clone()));
                self.states.push((acc.clone(), first.clone(), next.value(scan.span)));
                Some(next.value(scan.span))
            }
            _ => None,
        }
    }

    /// Gives a value a name in the steps.
    fn name(&mut self, name: Layout, value: Ex) {
        match (name, value.kind) {
            (Layout::Pair(a, b), Kind::Pair(x, y)) => {
                self.name(*a, *x);
                self.name(*b, *y);
            }
            (Layout::Var(v, _), kind @ Kind::Var(_)) => {
                self.same.push((v, Ex { kind, ..value }));
            }
            (name, kind) => self.lets.push((name, Ex { kind, ..value })),
        }
    }

    /// Returns the first state, the step and the array of a scan or fold of everything; the last state is the second component.
    fn one(self) -> Option<(Ex, Lambda, Ex)> {
        let mut states = self.states.into_iter();
        let (mut acc, mut first, mut next) = states.next()?;
        for (a, z, n) in states {
            acc = Layout::Pair(Box::new(acc), Box::new(a));
            (first, next) = (Ex::pair(first, z), Ex::pair(next, n));
        }
        let mut arrays = self.arrays.into_iter();
        let (mut x, mut xs) = arrays.next()?;
        for (name, array) in arrays {
            x = Layout::Pair(Box::new(x), Box::new(name));
            xs = xs.zip(array)?;
        }
        let mut body = next.after(self.lets);
        self.same.iter().rev().for_each(|(v, value)| body.put(*v, value));
        Some((first, Lambda { params: vec![acc, x], body: Box::new(body) }, xs))
    }

    /// Returns the array of the last state after each step.
    fn scanned(self, e: &Ex, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
        let (first, step, xs) = self.one()?;
        let (n, states) = (e.length()?, named(&first.ty, fresh));
        let ty = Ty::array(n, &first.ty);
        let kind = Kind::Prim(Prim::Scan(ScanKind::Seq), vec![step], vec![], vec![first, xs]);
        let scan = Ex::new(kind, ty, e.span);
        let body = Box::new(states.value(e.span).proj(true)?);
        let f = Lambda { params: vec![states], body };
        Some(Ex::new(Kind::Map(Prim::Map, f, vec![scan]), e.ty.clone(), e.span))
    }

    /// Returns the last state after all steps.
    fn folded(self) -> Option<Ex> {
        let (first, step, xs) = self.one()?;
        let (ty, span) = (first.ty.clone(), xs.span);
        let kind = Kind::Prim(Prim::ReduceSeq, vec![step], vec![], vec![first, xs]);
        Ex::new(kind, ty, span).proj(true)
    }
}
