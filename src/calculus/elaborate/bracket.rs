//! Bracket abstraction: turns an expression in an environment into a closed function of the environment.
//!
//! The environment is a nested pair of the variables in scope ([`Layout`]). Each part of an expression is
//! compiled as a function of the surrounding environment and projects the variables that it uses. A function
//! under a pattern gets its captured variables as the left component of its argument.

use super::build::{
    Built, apply, bang, bimap, compose, elements, fork, map, proj, scalar_const, view,
};
use super::core::{Ex, Kind, Lambda, Layout, Var, Vars};
use super::sizes::nest;
use super::{inner_problem, leaf, lift, problem};
use crate::calculus::scalar::{Lit, ScalarFn};
use crate::calculus::size::Size;
use crate::calculus::term::{MapKind, Op, Term, TypeError};
use crate::calculus::ty::Ty;
use crate::diag::{Code, Failure, Result, Span};
use crate::lang::typed::{Prim, ScalarOp};
use crate::lang::types::ScalarType;
use std::collections::HashMap;

/// Returns how a pattern maps, if it is a map.
pub(super) fn map_kind(prim: Prim) -> Option<MapKind> {
    Some(match prim {
        Prim::Map => MapKind::Plain,
        Prim::MapWrg(d) => MapKind::Wrg(d),
        Prim::MapLcl(d) => MapKind::Lcl(d),
        Prim::MapGlb(d) => MapKind::Glb(d),
        Prim::MapSeq => MapKind::Seq,
        Prim::MapUnroll => MapKind::Unroll,
        Prim::MapWarp => MapKind::Warp,
        Prim::MapLane => MapKind::Lane,
        _ => return None,
    })
}

/// Compiles expressions.
pub(super) struct Bracket {
    /// The next variable.
    pub(super) next: u32,
    /// Number of maps around the expression.
    depth: usize,
    /// The depth of each variable that a map or a `let` binds: the number of maps that change its value.
    depths: HashMap<Var, usize>,
}

/// Reports a term error, which means that the checker and the calculus disagree on a type.
pub(super) fn at(span: Span) -> impl Fn(TypeError) -> Failure {
    move |e| inner_problem(&format!("elaboration does not type-check: {e}"), span)
}

pub(super) fn not_yet(text: &str, span: Span) -> Failure {
    problem(Code::NotYetCompiled, text, span).into()
}

impl Bracket {
    /// Starts with this supply of variables.
    pub(super) fn new(next: u32) -> Self {
        Bracket { next, depth: 0, depths: HashMap::new() }
    }

    /// Compiles an expression to a function of the environment.
    pub(super) fn term(&mut self, e: &Ex, env: &Layout) -> Result<Term> {
        if e.ty.is_scalar() { self.scalar(e, env) } else { self.node(e, env) }
    }

    /// Compiles a scalar expression to one leaf after the terms that it needs.
    fn scalar(&mut self, e: &Ex, env: &Layout) -> Result<Term> {
        if leaf::only_arranges(e) {
            return self.node(e, env);
        }
        let mut next = self.next;
        let mut fresh = || {
            next += 1;
            Var(next - 1)
        };
        let mut holes = leaf::Holes::new(&mut fresh);
        let rest = leaf::take_out(e, &mut holes);
        let found = std::mem::take(&mut holes.found);
        self.next = next;
        if let (Kind::Var(v), [(hole, whole)]) = (&rest.kind, found.as_slice())
            && v == hole
        {
            // Use `whole`, not `e`: a lazy operator has become a conditional.
            return self.node(whole, env);
        }
        let built = at(e.span);
        if found.is_empty() && env.ty().is_scalar() {
            return leaf_of(&rest, env);
        }
        let mut used = rest.free();
        for (v, _) in &found {
            used.remove(v);
        }
        if found.is_empty() && used.is_empty() {
            let body = leaf::body(&rest, &Layout::Unit).ok_or_else(|| not_scalar(e.span))?;
            return scalar_const(&e.ty, &body, &env.ty()).map_err(built);
        }
        // The arguments of the leaf, in the order of the environment.
        let mut items: Vec<(usize, Layout, Term)> = vec![];
        for (v, hole) in &found {
            let term = self.node(hole, env)?;
            items.push((place(env, &hole.free()), Layout::Var(*v, hole.ty.clone()), term));
        }
        if !used.is_empty() {
            let projected = project(env, &used).map_err(&built)?;
            items.push((place(env, &used), env.restrict(&used), projected));
        }
        items.sort_by_key(|(place, ..)| *place);
        let (layouts, terms): (Vec<_>, Vec<_>) =
            items.into_iter().map(|(_, l, t)| (l, Ok(t))).unzip();
        let layout = nest(layouts, Layout::pair).unwrap_or(Layout::Unit);
        let unit = || bang(&env.ty());
        let argument = nest(terms, |a: Built, b: Built| fork(&a?, &b?)).unwrap_or_else(unit);
        let argument = argument.map_err(&built)?;
        compose(&leaf_of(&rest, &layout)?, &argument).map_err(built)
    }

    /// Returns the number of the innermost map that changes the value of an expression; 0 if none does.
    fn depth_of(&self, e: &Ex) -> usize {
        let of = |v: &Var| self.depths.get(v).copied().unwrap_or(self.depth);
        e.free().iter().map(of).max().unwrap_or(0)
    }

    /// Notes the depth of the variables of a layout.
    fn bind(&mut self, layout: &Layout, depth: usize) {
        self.depths.extend(layout.vars().into_iter().map(|(v, _)| (v, depth)));
    }

    /// Compiles the outermost construct, with its parts as functions of the environment.
    fn node(&mut self, e: &Ex, env: &Layout) -> Result<Term> {
        let built = at(e.span);
        let dom = env.ty();
        match &e.kind {
            Kind::Unit => bang(&dom).map_err(built),
            Kind::Var(v) => project(env, &Vars::from([*v])).map_err(built),
            Kind::Input(name) => {
                let tys = vec![dom, e.ty.clone()];
                Term::new(Op::Input(name.clone()), vec![], tys, vec![]).map_err(built)
            }
            Kind::Lit(_) if !e.ty.is_scalar() => {
                let Kind::Lit(lit) = &e.kind else {
                    return Err(not_scalar(e.span));
                };
                let scalar = Ex::new(Kind::Lit(*lit), Ty::Scalar(lit.ty), e.span);
                let scalar = self.term(&scalar, env)?;
                splat(&scalar, &e.ty).map_err(built)
            }
            Kind::Lit(_) | Kind::ScalarInput(..) | Kind::Size(_) => {
                let body = leaf::body(e, &Layout::Unit).ok_or_else(|| not_scalar(e.span))?;
                scalar_const(&e.ty, &body, &dom).map_err(built)
            }
            Kind::Pair(a, b) => {
                let (a, b) = (self.term(a, env)?, self.term(b, env)?);
                fork(&a, &b).map_err(built)
            }
            Kind::Proj(a, second) => {
                let a = self.term(a, env)?;
                let p = proj(&a.ty().cod, *second).map_err(&built)?;
                compose(&p, &a).map_err(built)
            }
            Kind::Index(a, i) => {
                let (a, i) = (self.term(a, env)?, self.term(i, env)?);
                let both = fork(&a, &i).map_err(&built)?;
                view(Op::Index, &both).map_err(built)
            }
            Kind::Op(_, es) => self.vector_op(e, es, env),
            Kind::If(c, t, f) => {
                let used = e.free();
                let inner = env.restrict(&used);
                let (c, t, f) =
                    (self.term(c, &inner)?, self.term(t, &inner)?, self.term(f, &inner)?);
                let cond = Term::new(Op::Cond, vec![], vec![], vec![c, t, f]).map_err(&built)?;
                compose(&cond, &project(env, &used).map_err(&built)?).map_err(built)
            }
            Kind::Let(p, v, b) => {
                let value = self.term(v, env)?;
                let mut used = b.free();
                for (v, _) in p.vars() {
                    used.remove(&v);
                }
                let inner = Layout::pair(env.restrict(&used), p.clone());
                self.bind(p, self.depth_of(v));
                let body = self.term(b, &inner)?;
                let argument = with(env, &used, &value).map_err(&built)?;
                compose(&body, &argument).map_err(built)
            }
            Kind::For(init, bound, index, acc, body) => {
                let step = Lambda { params: vec![acc.clone(), index.clone()], body: body.clone() };
                self.counted(init, bound, &step, e.span, env)
            }
            Kind::While(init, acc, cond, body) => {
                self.while_loop(init, acc, cond, body, env, e.span)
            }
            Kind::Map(prim, f, arrays) => self.map(*prim, f, arrays, e, env),
            Kind::Prim(..) => self.prim(e, env),
        }
    }

    fn map(&mut self, prim: Prim, f: &Lambda, arrays: &[Ex], e: &Ex, env: &Layout) -> Result<Term> {
        let built = at(e.span);
        let kind = map_kind(prim).ok_or_else(|| inner_problem("not a map", e.span))?;
        let (n, _) = elements(&e.ty).map_err(&built)?;
        let captured = f.captures();
        let terms = arrays.iter().map(|a| self.term(a, env)).collect::<Result<Vec<_>>>()?;
        let zipped = |ts: Vec<Term>| {
            nest(ts.into_iter().map(Ok).collect(), |a: Built, b: Built| {
                view(Op::Zip, &fork(&a?, &b?)?)
            })
            .unwrap_or_else(|| Err(TypeError("a map over nothing".to_owned())))
        };
        let layouts = |ls: Vec<Layout>| {
            nest(ls, |a, b| Layout::Pair(Box::new(a), Box::new(b))).unwrap_or(Layout::Unit)
        };
        let (layout, array) = if captured.is_empty() {
            (layouts(f.params.clone()), zipped(terms))
        } else {
            // Arrays that the map around this one does not change are paired with the captured variables, so
            // that the two can become a `cross`. The other arrays are zipped to them.
            let parts = f.params.iter().cloned().zip(terms).zip(arrays);
            let (fixed, varying): (Vec<_>, Vec<_>) = match meets_all(f, &captured) {
                true => (vec![], parts.collect()),
                false => {
                    parts.partition(|(_, a)| a.free().is_empty() || self.depth_of(a) < self.depth)
                }
            };
            let split = |ps: Vec<((Layout, Term), &Ex)>| -> (Vec<Layout>, Vec<Term>) {
                ps.into_iter().map(|(p, _)| p).unzip()
            };
            let ((fixed, fixed_terms), (varying, varying_terms)) = (split(fixed), split(varying));
            let held = |inner: Layout| Layout::pair(env.restrict(&captured), inner);
            let distributed =
                |ts| with(env, &captured, &zipped(ts)?).and_then(|both| view(Op::Distl, &both));
            match (fixed.is_empty(), varying.is_empty()) {
                (true, _) => (held(layouts(varying)), distributed(varying_terms)),
                (_, true) => (held(layouts(fixed)), distributed(fixed_terms)),
                (false, false) => {
                    let layout = Layout::pair(held(layouts(fixed)), layouts(varying));
                    let array = distributed(fixed_terms)
                        .and_then(|d| view(Op::Zip, &fork(&d, &zipped(varying_terms)?)?));
                    (layout, array)
                }
            }
        };
        let array = array.map_err(&built)?;
        self.depth += 1;
        f.params.iter().for_each(|p| self.bind(p, self.depth));
        let body = self.term(&f.body, &layout);
        self.depth -= 1;
        let body = body?;
        match kind {
            MapKind::Plain => lift::map_over(&n, &body, &array).map_err(built),
            _ => compose(&map(kind, &n, &body).map_err(&built)?, &array).map_err(built),
        }
    }

    /// Compiles a counted loop. A loop up to a known size is a fold over the counter; a loop up to a computed
    /// value is a `while` whose state includes the counter.
    fn counted(
        &mut self,
        init: &Ex,
        bound: &Ex,
        step: &Lambda,
        span: Span,
        env: &Layout,
    ) -> Result<Term> {
        let count = match &bound.kind {
            Kind::Size(n) => n.clone(),
            Kind::Lit(l) => {
                Size::constant(l.as_int().and_then(|n| u64::try_from(n).ok()).unwrap_or(0))
            }
            _ => {
                let counted = self.counting_while(init, bound, step, span)?;
                return self.node(&counted, env);
            }
        };
        let counter = Ex::iota(&count, &bound.ty, span);
        // The host runs a fold whose steps are kernels, but a reduction runs in one work-item.
        if !(init.ty.is_scalar() && init.free().is_empty()) || has_loops(&step.body) {
            return self.fold(step, init, &counter, env, span);
        }
        let args = vec![init.clone(), counter];
        let fold = Kind::Prim(Prim::ReduceSeq, vec![step.clone()], vec![], args);
        self.prim(&Ex::new(fold, init.ty.clone(), span), env)
    }

    /// Compiles a fold from the left whose initial value and operator may mention the environment.
    pub(super) fn fold(
        &mut self,
        op: &Lambda,
        init: &Ex,
        xs: &Ex,
        env: &Layout,
        span: Span,
    ) -> Result<Term> {
        let built = at(span);
        let [acc, x] = op.params.as_slice() else {
            return Err(inner_problem("a fold's operator with other than two parameters", span));
        };
        let (start, xs) = (self.term(init, env)?, self.term(xs, env)?);
        let (element, xs) = bringing(env, &op.captures(), x, &xs).map_err(&built)?;
        let step = self.term(&op.body, &Layout::Pair(Box::new(acc.clone()), Box::new(element)))?;
        let argument = fork(&start, &xs).map_err(&built)?;
        apply(Op::Fold, &[], vec![step], &argument).map_err(built)
    }

    /// Returns `let last = bound in (loop ((acc, i) = (init, 0)) while i < last do (step, i + 1)).0`.
    fn counting_while(&mut self, init: &Ex, bound: &Ex, step: &Lambda, span: Span) -> Result<Ex> {
        let (Ty::Scalar(t), [acc, index @ Layout::Var(i, _)]) = (&bound.ty, step.params.as_slice())
        else {
            return Err(not_scalar(span));
        };
        let int = |x| Ex::new(Kind::Lit(Lit::int(*t, x)), bound.ty.clone(), span);
        let counter = || Ex::new(Kind::Var(*i), bound.ty.clone(), span);
        let op = |op, a, b, ty| Ex::new(Kind::Op(op, vec![a, b]), ty, span);
        let last = Var(self.next);
        self.next += 1;
        let bound_var = Ex::new(Kind::Var(last), bound.ty.clone(), span);
        let cond = op(ScalarOp::Lt, counter(), bound_var, Ty::Scalar(ScalarType::Bool));
        let next = op(ScalarOp::Add, counter(), int(1), bound.ty.clone());
        let state = Layout::Pair(Box::new(acc.clone()), Box::new(index.clone()));
        let pair = Ex::pair((*step.body).clone(), next);
        let start = Ex::pair(init.clone(), int(0));
        let (ty, kind) =
            (start.ty.clone(), Kind::While(Box::new(start), state, Box::new(cond), Box::new(pair)));
        let counted = Ex::new(kind, ty, span);
        let result = Ex::new(Kind::Proj(Box::new(counted), false), init.ty.clone(), span);
        let layout = Layout::Var(last, bound.ty.clone());
        let whole = Kind::Let(layout, Box::new(bound.clone()), Box::new(result));
        Ok(Ex::new(whole, init.ty.clone(), span))
    }

    /// Compiles a `while` loop: its argument is the state, paired with the other variables that condition and
    /// body read.
    fn while_loop(
        &mut self,
        init: &Ex,
        acc: &Layout,
        cond: &Ex,
        body: &Ex,
        env: &Layout,
        span: Span,
    ) -> Result<Term> {
        let built = at(span);
        let mut used = cond.free();
        used.extend(body.free());
        for (v, _) in acc.vars() {
            used.remove(&v);
        }
        let besides = env.restrict(&used);
        let inner = Layout::Pair(Box::new(acc.clone()), Box::new(besides));
        let (p, f) = (self.term(cond, &inner)?, self.term(body, &inner)?);
        let start = self.term(init, env)?;
        let argument = fork(&start, &project(env, &used).map_err(&built)?).map_err(&built)?;
        apply(Op::While, &[], vec![p, f], &argument).map_err(built)
    }

    /// Compiles a function that may mention its parameters only.
    pub(super) fn closed(&mut self, f: &Lambda, what: &str, span: Span) -> Result<Term> {
        if !f.captures().is_empty() {
            let text = format!("{what} that mentions variables of an enclosing function");
            return Err(not_yet(&text, span));
        }
        let pair = |a, b| Layout::Pair(Box::new(a), Box::new(b));
        let layout = nest(f.params.clone(), pair).unwrap_or(Layout::Unit);
        self.term(&f.body, &layout)
    }

    /// Compiles a value that may mention inputs only.
    pub(super) fn initial(&mut self, z: &Ex) -> Result<Term> {
        if !z.free().is_empty() {
            let text = "an initial value that mentions variables of an enclosing function";
            return Err(not_yet(text, z.span));
        }
        self.term(z, &Layout::Unit)
    }

    /// Compiles `f x` with the variables that `f` captures: returns the function, and its argument from the
    /// environment.
    pub(super) fn applied(
        &mut self,
        f: &Lambda,
        args: &[Ex],
        env: &Layout,
        span: Span,
    ) -> Result<(Term, Term)> {
        let built = at(span);
        let captured = f.captures();
        let pair = |a, b| Layout::Pair(Box::new(a), Box::new(b));
        let params = nest(f.params.clone(), pair).unwrap_or(Layout::Unit);
        let body = self.term(&f.body, &Layout::pair(env.restrict(&captured), params))?;
        let terms = args.iter().map(|a| self.term(a, env)).collect::<Result<Vec<_>>>()?;
        let all = nest(terms.into_iter().map(Ok).collect(), |a: Built, b: Built| fork(&a?, &b?))
            .unwrap_or_else(|| bang(&env.ty()))
            .map_err(&built)?;
        let argument = with(env, &captured, &all).map_err(built)?;
        Ok((body, argument))
    }

    /// Compiles a scalar operation on vectors.
    fn vector_op(&mut self, e: &Ex, es: &[Ex], env: &Layout) -> Result<Term> {
        let built = at(e.span);
        let Ty::Vector(w, _) = &e.ty else {
            return Err(not_scalar(e.span));
        };
        // A scalar in place of a vector has been cast to its own type.
        if let (Kind::Op(ScalarOp::Cast(s), _), [x]) = (&e.kind, es)
            && x.ty == Ty::Scalar(*s)
        {
            return splat(&self.term(x, env)?, &e.ty).map_err(built);
        }
        let mut params = vec![];
        let mut scalars = vec![];
        let mut terms = vec![];
        for x in es {
            let element = x.ty.unvector(w).unwrap_or_else(|| x.ty.clone());
            let v = Var(self.next);
            self.next += 1;
            let term = self.term(x, env)?;
            let vector = Ty::vector(w, &element).ok_or_else(|| not_scalar(x.span))?;
            terms.push(if x.ty == vector { Ok(term) } else { splat(&term, &vector) });
            params.push(Layout::Var(v, element.clone()));
            scalars.push(Ex::new(Kind::Var(v), element, x.span));
        }
        let Kind::Op(op, _) = &e.kind else {
            return Err(not_scalar(e.span));
        };
        let result = e.ty.unvector(w).ok_or_else(|| not_scalar(e.span))?;
        let layout = nest(params, Layout::pair).unwrap_or(Layout::Unit);
        let f = leaf_of(&Ex::new(Kind::Op(*op, scalars), result, e.span), &layout)?;
        let argument = nest(terms, |a: Built, b: Built| fork(&a?, &b?))
            .unwrap_or_else(|| bang(&env.ty()))
            .map_err(&built)?;
        apply(Op::Vectorize, std::slice::from_ref(w), vec![f], &argument).map_err(built)
    }
}

/// Whether a map in the body of `f` goes through a captured array once for each of the elements of `f`, or for what is
/// computed of each: then all elements meet all of the array, and the array is to stay whole.
fn meets_all(f: &Lambda, captured: &Vars) -> bool {
    fn within(e: &Ex, captured: &Vars, own: &mut Vars) -> bool {
        let here = match &e.kind {
            Kind::Let(p, value, _) => {
                if !value.free().is_disjoint(own) {
                    own.extend(p.vars().into_iter().map(|(v, _)| v));
                }
                false
            }
            Kind::Map(_, g, arrays) => {
                let whole = |a: &Ex| {
                    let free = a.free();
                    !free.is_empty() && free.is_subset(captured)
                };
                arrays.iter().any(whole) && !g.captures().is_disjoint(own)
            }
            _ => false,
        };
        here || e.parts().iter().any(|(_, part)| within(part, captured, own))
    }
    within(&f.body, captured, &mut f.own())
}

pub(super) fn not_scalar(span: Span) -> Failure {
    inner_problem("a scalar operation on what is not scalar", span)
}

/// Compiles a pure scalar expression over a layout to a leaf, or to projections if it only arranges.
fn leaf_of(e: &Ex, layout: &Layout) -> Result<Term> {
    if leaf::only_arranges(e) {
        return arrange(e, layout).map_err(at(e.span));
    }
    let body = leaf::body(e, layout).ok_or_else(|| not_scalar(e.span))?;
    let (dom, cod) = (layout.ty(), e.ty.clone());
    Ok(Term::scalar(ScalarFn { dom, cod, body }))
}

fn arrange(e: &Ex, layout: &Layout) -> Built {
    match &e.kind {
        Kind::Var(v) => project(layout, &Vars::from([*v])),
        Kind::Pair(a, b) => fork(&arrange(a, layout)?, &arrange(b, layout)?),
        Kind::Proj(a, second) => {
            let a = arrange(a, layout)?;
            compose(&proj(&a.ty().cod, *second)?, &a)
        }
        _ => Err(TypeError("an arrangement that computes".to_owned())),
    }
}

/// Returns the projection of an environment to the variables in `used`.
pub(super) fn project(env: &Layout, used: &Vars) -> Built {
    match env {
        Layout::Unit => Ok(Term::id(&Ty::Unit)),
        Layout::Var(v, t) => {
            if used.contains(v) {
                Ok(Term::id(t))
            } else {
                bang(t)
            }
        }
        Layout::Pair(a, b) => match (a.meets(used), b.meets(used)) {
            (true, true) => bimap(&project(a, used)?, &project(b, used)?),
            (true, false) => compose(&project(a, used)?, &proj(&env.ty(), false)?),
            (false, true) => compose(&project(b, used)?, &proj(&env.ty(), true)?),
            (false, false) => bang(&env.ty()),
        },
    }
}

/// Returns the `fork` of the used part of the environment and a value; the value alone if nothing is used.
pub(super) fn with(env: &Layout, used: &Vars, value: &Term) -> Built {
    if env.meets(used) { fork(&project(env, used)?, value) } else { Ok(value.clone()) }
}

/// Pairs each element of an array with the used part of the environment: returns the layout of an element,
/// and the array.
pub(super) fn bringing(
    env: &Layout,
    used: &Vars,
    x: &Layout,
    xs: &Term,
) -> std::result::Result<(Layout, Term), TypeError> {
    if !env.meets(used) {
        return Ok((x.clone(), xs.clone()));
    }
    let element = Layout::Pair(Box::new(env.restrict(used)), Box::new(x.clone()));
    Ok((element, view(Op::Distl, &with(env, used, xs)?)?))
}

/// Returns the position of the first variable of `used`; `usize::MAX` when there is none.
fn place(env: &Layout, used: &Vars) -> usize {
    env.vars().iter().position(|(v, _)| used.contains(v)).unwrap_or(usize::MAX)
}

/// Puts a scalar in every lane of a vector type.
pub(super) fn splat(scalar: &Term, vector: &Ty) -> Built {
    let Some(w) = vector.width() else {
        return Err(TypeError(format!("`{vector}` is not a vector")));
    };
    apply(Op::Splat, std::slice::from_ref(w), vec![], scalar)
}

/// Whether an expression loops over arrays.
fn has_loops(e: &Ex) -> bool {
    let own = match &e.kind {
        Kind::Map(..) => true,
        Kind::Prim(..) => e.ty.is_scalar(),
        _ => false,
    };
    own || e.parts().iter().any(|(_, part)| has_loops(part))
}
