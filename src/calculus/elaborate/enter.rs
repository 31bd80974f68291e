//! Translates the typed core into [`super::core`]: sizes and types are translated, tuples become pairs,
//! variables of tuple type are taken apart, `let`s that cost nothing are inlined, and iterates are unrolled.
//!
//! This step does not decide the shape of a term; [`super::bracket`] does.

use super::core::{Ex, Kind, Lambda, Layout, Var};
use super::counting::{self, Known};
use super::loops_out;
use super::sizes::{Sizes, nest};
use super::{inner_problem, problem};
use crate::calculus::scalar::Lit;
use crate::calculus::ty::Ty;
use crate::diag::{Code, Limits, Result, Span};
use crate::lang::typed::{self, Expr, ExprKind, Literal, Prim, ScalarOp, VarId};
use crate::lang::types::{ScalarType, Type};
use std::collections::HashMap;
use std::sync::Arc;

/// Longest `iterate` that is unrolled if its function keeps the type; longer ones become loops.
const MAX_STEPS: u64 = Limits::DEFAULT.copied_steps;
/// Longest `iterate` over arrays that is unrolled where the host can run a loop: kernels are generated once for all
/// its steps.
const MAX_ARRAY_STEPS: u64 = Limits::DEFAULT.copied_array_steps;
/// Longest `iterate` whose function changes the length; it must be unrolled.
const MAX_WRITTEN_OUT: u64 = Limits::DEFAULT.iterate_steps;
/// Largest expression that is inlined: nested views of one array would grow exponentially.
const MAX_COPIED: usize = Limits::DEFAULT.copied_expressions;
/// Most expressions of a program: nested iterates grow exponentially.
const MAX_EXPRESSIONS: usize = Limits::DEFAULT.elaborated_expressions;

/// Translates one entry.
pub(super) struct Enter<'s, 'a> {
    sizes: &'s mut Sizes<'a>,
    /// The expression for each variable of the entry.
    vars: HashMap<VarId, Ex>,
    /// The values of names for integers that are computed from sizes and numbers alone.
    known: Known,
    next: u32,
    /// Number of functions of patterns around the expression.
    inside: usize,
    /// Number of expressions translated; those of an `iterate` count once for each step.
    expressions: usize,
    /// The most elements of an array that counts as short ([`Prim::Few`]).
    few: u64,
    /// Whether there are arrays for which that could be decided otherwise.
    undecided: bool,
}

/// An array of so many elements always counts as short: registers hold it.
const ALWAYS_FEW: u64 = 32;

/// An array of at most so many elements counts as short in another form of a program: beyond, no device is so parallel that work on
/// all pairs of elements is worth it.
const PERHAPS_FEW: u64 = 4096;

impl<'s, 'a> Enter<'s, 'a> {
    /// Starts without variables in scope.
    pub(super) fn new(sizes: &'s mut Sizes<'a>) -> Self {
        Enter {
            sizes,
            vars: HashMap::new(),
            known: Known::new(),
            next: 0,
            inside: 0,
            expressions: 0,
            few: ALWAYS_FEW,
            undecided: false,
        }
    }

    /// Returns the expression where longer arrays count as short, too; `None` if there are no such arrays.
    pub(super) fn with_more_short(&mut self, e: &Expr) -> Result<Option<Ex>> {
        if !self.undecided {
            return Ok(None);
        }
        (self.few, self.expressions) = (PERHAPS_FEW, 0);
        self.expr(e).map(Some)
    }

    /// Decides [`Prim::Few`] for an array.
    fn few(&mut self, array: &Expr, span: Span) -> Result<bool> {
        let Ty::Array(n, _) = self.sizes.ty(&array.ty, span)? else {
            return Err(inner_problem("`few` of what is no array", span));
        };
        let n = n.eval(self.sizes.env()).unwrap_or(u64::MAX);
        self.undecided |= ALWAYS_FEW < n && n <= PERHAPS_FEW;
        Ok(n <= self.few)
    }

    /// Returns the number of variables used so far.
    pub(super) fn names(&self) -> u32 {
        self.next
    }

    fn fresh(&mut self) -> Var {
        self.next += 1;
        Var(self.next - 1)
    }

    /// Declares a parameter of the entry and returns its type.
    pub(super) fn input(&mut self, p: &typed::Param) -> Result<Ty> {
        let ty = self.sizes.ty(&p.ty, p.span)?;
        let name: Arc<str> = p.name.as_str().into();
        let value = if ty.is_scalar() {
            let mut component = 0;
            scalar_input(&name, &ty, &mut component, p.span)
        } else {
            Ex::new(Kind::Input(name), ty.clone(), p.span)
        };
        self.vars.insert(p.var, value);
        Ok(ty)
    }

    /// Makes a fresh variable for every component of `ty`.
    fn layout(&mut self, ty: &Ty) -> Layout {
        match ty {
            Ty::Unit => Layout::Unit,
            Ty::Pair(a, b) => {
                let a = self.layout(a);
                Layout::Pair(Box::new(a), Box::new(self.layout(b)))
            }
            Ty::Scalar(_) | Ty::Vector(..) | Ty::Array(..) | Ty::Meta(_) => {
                Layout::Var(self.fresh(), ty.clone())
            }
        }
    }

    /// Binds a variable to a fresh layout.
    fn declare(&mut self, v: VarId, ty: &Ty, span: Span) -> Layout {
        let layout = self.layout(ty);
        self.vars.insert(v, layout.value(span));
        layout
    }

    fn lambda(&mut self, f: &typed::Fun, span: Span) -> Result<Lambda> {
        let mut params = vec![];
        for (v, ty) in &f.params {
            let ty = self.sizes.ty(ty, span)?;
            params.push(self.declare(*v, &ty, span));
        }
        self.inside += 1;
        let body = self.expr(&f.body);
        self.inside -= 1;
        Ok(Lambda { params, body: Box::new(body?) })
    }

    /// Translates an expression.
    pub(super) fn expr(&mut self, e: &Expr) -> Result<Ex> {
        let span = e.span;
        self.expressions += 1;
        if self.expressions > MAX_EXPRESSIONS {
            let text = "the program is too large once its iterates are unrolled";
            return Err(problem(Code::KernelLimit, text, span)
                .note(format!("at most {MAX_EXPRESSIONS} expressions"))
                .into());
        }
        let made = |kind, ty| Ok(Ex::new(kind, ty, span));
        match &e.kind {
            ExprKind::Lit(l) => self.literal(*l, &e.ty, span),
            ExprKind::Var(v) => match self.vars.get(v) {
                // A parameter may be used as an array of another length with the same value.
                Some(value) => match (&value.kind, self.sizes.ty(&e.ty, span)?) {
                    (Kind::Input(_), ty) if ty != value.ty => {
                        made(Kind::Prim(Prim::Take, vec![], vec![], vec![value.clone()]), ty)
                    }
                    _ => Ok(value.clone()),
                },
                None => Err(inner_problem("a variable that nothing binds", span)),
            },
            ExprKind::Size(s) => {
                let ty = self.sizes.ty(&e.ty, span)?;
                made(Kind::Size(self.sizes.size(s, span)?), ty)
            }
            ExprKind::Tuple(es) => {
                let es = es.iter().map(|x| self.expr(x)).collect::<Result<Vec<_>>>()?;
                nest(es, Ex::pair).ok_or_else(|| inner_problem("an empty tuple", span))
            }
            ExprKind::Proj(t, i) => {
                let Type::Tuple(ts) = &t.ty else {
                    return Err(inner_problem("a component of what is no tuple", span));
                };
                let mut out = self.expr(t)?;
                let deep = i + 1 < ts.len();
                let path = std::iter::repeat_n(true, *i).chain(deep.then_some(false));
                for second in path {
                    out = out
                        .proj(second)
                        .ok_or_else(|| inner_problem("a component of what is no pair", span))?;
                }
                Ok(out)
            }
            ExprKind::Index(a, i) => {
                let ty = self.sizes.ty(&e.ty, span)?;
                let (a, i) = (self.expr(a)?, self.expr(i)?);
                made(Kind::Index(Box::new(a), Box::new(i)), ty)
            }
            ExprKind::Scalar(op, es) => {
                let ty = self.sizes.ty(&e.ty, span)?;
                let es = es.iter().map(|x| self.expr(x)).collect::<Result<_>>()?;
                made(Kind::Op(*op, es), ty)
            }
            ExprKind::If(c, t, f) if let ExprKind::Prim { prim: Prim::Few, args, .. } = &c.kind => {
                match args.as_slice() {
                    [xs] if self.few(xs, span)? => self.expr(t),
                    _ => self.expr(f),
                }
            }
            ExprKind::If(c, t, f) => {
                let ty = self.sizes.ty(&e.ty, span)?;
                let (c, t, f) = (self.expr(c)?, self.expr(t)?, self.expr(f)?);
                made(Kind::If(Box::new(c), Box::new(t), Box::new(f)), ty)
            }
            ExprKind::Let(v, value, body) => {
                let value = self.expr(value)?;
                let mut lets = vec![];
                let number = self.constant(&value);
                let name = self.keep(value, &mut lets);
                if let (Some(number), Kind::Var(v)) = (number, &name.kind) {
                    self.known.insert(*v, number);
                }
                self.vars.insert(*v, name);
                let body = self.expr(body)?;
                Ok(close(lets, body))
            }
            ExprKind::LoopFor { acc, init, index, bound, body } => {
                let (init, bound) = (self.expr(init)?, self.bound(bound)?);
                let index = self.declare(*index, &bound.ty, span);
                let acc = self.declare(*acc, &init.ty, span);
                let (body, ty) = (self.expr(body)?, init.ty.clone());
                made(Kind::For(Box::new(init), Box::new(bound), index, acc, Box::new(body)), ty)
            }
            ExprKind::LoopWhile { acc, init, cond, body } => {
                let init = self.expr(init)?;
                let acc = self.declare(*acc, &init.ty, span);
                let (cond, body, ty) = (self.expr(cond)?, self.expr(body)?, init.ty.clone());
                let (init, state, condition, body) = (&init, &acc, &cond, &body);
                let all = counting::Loop { init, state, condition, body, span };
                let (known, env, next) = (&self.known, self.sizes.env(), &mut self.next);
                let counted = all.counted(known, env, &mut || {
                    *next += 1;
                    Var(*next - 1)
                });
                match counted {
                    Some(e) => Ok(e),
                    None => {
                        let [init, cond, body] =
                            [init, condition, body].map(|e| Box::new(e.clone()));
                        made(Kind::While(init, acc, cond, body), ty)
                    }
                }
            }
            ExprKind::Prim { prim: Prim::Iterate | Prim::IterateSeq, funs, sizes, args } => {
                match (funs.as_slice(), sizes.as_slice(), args.as_slice()) {
                    ([f], [k], [x]) => self.iterate(f, k, x, span),
                    _ => Err(inner_problem("an iterate with other arguments", span)),
                }
            }
            ExprKind::Prim { prim, funs, sizes, args } => {
                let ty = self.sizes.ty(&e.ty, span)?;
                let args = args.iter().map(|x| self.expr(x)).collect::<Result<Vec<_>>>()?;
                let funs = funs.iter().map(|f| self.lambda(f, span)).collect::<Result<Vec<_>>>()?;
                let sizes =
                    sizes.iter().map(|s| self.sizes.size(s, span)).collect::<Result<Vec<_>>>()?;
                Self::prim(*prim, funs, sizes, args, ty, span)
            }
        }
    }

    /// Translates the bound of a loop. A bound computed from sizes and numbers alone becomes a size, so that
    /// the number of iterations is known.
    fn bound(&mut self, e: &Expr) -> Result<Ex> {
        let Some(poly) = as_size(e).filter(|_| matches!(e.kind, ExprKind::Scalar(..))) else {
            let mut bound = self.expr(e)?;
            if !matches!(bound.kind, Kind::Size(_))
                && let (Some(n), Ty::Scalar(t)) = (self.constant(&bound), &bound.ty)
            {
                bound.kind = Kind::Lit(Lit::int(*t, n));
            }
            return Ok(bound);
        };
        let ty = self.sizes.ty(&e.ty, e.span)?;
        let value = self.sizes.value(&poly, e.span).ok().map(i128::from);
        // A bound that is negative or wraps in its type is computed as written.
        match (value, &ty) {
            (Some(n), Ty::Scalar(t)) if Lit::int(*t, n).as_int() == Some(n) => {
                let size = self.sizes.size(&poly, e.span)?;
                Ok(Ex::new(Kind::Size(size), ty, e.span))
            }
            _ => self.expr(e),
        }
    }

    /// Returns the value of an expression over integers that is known.
    fn constant(&self, e: &Ex) -> Option<i128> {
        counting::constant(e, &self.known, self.sizes.env())
    }

    fn prim(
        prim: Prim,
        mut funs: Vec<Lambda>,
        sizes: Vec<crate::calculus::size::Size>,
        args: Vec<Ex>,
        ty: Ty,
        span: Span,
    ) -> Result<Ex> {
        if super::bracket::map_kind(prim).is_some() || prim == Prim::Generate {
            let (Some(f), true) = (funs.pop(), funs.is_empty()) else {
                return Err(inner_problem("a map without its function", span));
            };
            let args = match prim {
                Prim::Generate => {
                    let n = sizes.first().cloned();
                    let index = f.params.first().map(Layout::ty);
                    let (Some(n), Some(index)) = (n, index) else {
                        return Err(inner_problem("a generate without its arguments", span));
                    };
                    vec![Ex::iota(&n, &index, span)]
                }
                _ => args,
            };
            let prim = if prim == Prim::Generate { Prim::Map } else { prim };
            if f.params.len() != args.len() {
                return Err(inner_problem("a map with too few arrays", span));
            }
            return Ok(Ex::new(spread(prim, f, args), ty, span));
        }
        // What `slide` leaves out may be nothing at these sizes.
        if prim == Prim::Take && args.iter().all(|xs| xs.ty == ty) {
            let whole = args.into_iter().next();
            return whole.ok_or_else(|| inner_problem("a take of nothing", span));
        }
        if prim == Prim::Zip {
            let zipped = args.into_iter().rev().map(Some).reduce(|rest, first| first?.zip(rest?));
            return zipped.flatten().ok_or_else(|| inner_problem("a zip of nothing", span));
        }
        Ok(Ex::new(Kind::Prim(prim, funs, sizes, args), ty, span))
    }

    fn literal(&mut self, l: Literal, ty: &Type, span: Span) -> Result<Ex> {
        let ty = self.sizes.ty(ty, span)?;
        let element = match &ty {
            Ty::Scalar(s) => *s,
            Ty::Vector(_, t) => match &**t {
                Ty::Scalar(s) => *s,
                _ => return Err(inner_problem("a literal of no scalar type", span)),
            },
            _ => return Err(inner_problem("a literal of no scalar type", span)),
        };
        Ok(Ex::new(Kind::Lit(literal(l, element)), ty, span))
    }

    /// Returns the expression for a `let` variable: the value itself if it costs nothing, else a new
    /// variable.
    fn keep(&mut self, value: Ex, lets: &mut Vec<(Layout, Ex)>) -> Ex {
        if value.is_free_of_cost() && value.size() <= MAX_COPIED {
            return value;
        }
        match value.kind {
            Kind::Pair(a, b) => {
                let a = self.keep(*a, lets);
                Ex::pair(a, self.keep(*b, lets))
            }
            // The inner bindings come first, so that pairs inside them are seen.
            Kind::Let(p, v, b) => {
                lets.push((p, *v));
                self.keep(*b, lets)
            }
            _ => {
                let layout = self.layout(&value.ty);
                let known = layout.value(value.span);
                lets.push((layout, value));
                known
            }
        }
    }

    /// Translates `f (f (... x))`, each step with the length of its argument.
    fn iterate(
        &mut self,
        f: &typed::Fun,
        k: &crate::lang::size::Size,
        x: &Expr,
        span: Span,
    ) -> Result<Ex> {
        let steps = self.sizes.value(k, span)?;
        let Some((param, param_ty)) = f.params.first() else {
            return Err(inner_problem("an iterate of a function of nothing", span));
        };
        let keeps = f.body.ty == *param_ty;
        if steps > MAX_WRITTEN_OUT && !keeps {
            let text = format!("an iterate of {steps} steps that changes the length");
            return Err(problem(Code::NotYetCompiled, text, span)
                .note(format!("such iterates are written out, up to {MAX_WRITTEN_OUT} steps"))
                .into());
        }
        let name = match param_ty {
            Type::Array(n, _) => n.as_var().map(str::to_owned),
            _ => None,
        };
        let mut value = self.expr(x)?;
        let mut length = match &x.ty {
            Type::Array(n, _) => Some(self.sizes.closed(n)),
            _ => None,
        };
        // The steps of a long array may be kernels, even inside of a map.
        let arrays = match self.inside {
            0 => value.ty.has_array(),
            _ => loops_out::is_long(&value.ty, self.sizes.env()),
        };
        if keeps && steps > if arrays { MAX_ARRAY_STEPS } else { MAX_STEPS } {
            let before = name.as_ref().map(|n| (n, self.sizes.step(n, length)));
            let count = Ty::Scalar(ScalarType::I64);
            let bound = Kind::Lit(Lit::int(ScalarType::I64, i128::from(steps)));
            let bound = Ex::new(bound, count.clone(), span);
            let index = self.layout(&count);
            let acc = self.declare(*param, &value.ty, span);
            let (body, ty) = (self.expr(&f.body)?, value.ty.clone());
            if let Some((n, old)) = before {
                self.sizes.step(n, old);
            }
            let kind = Kind::For(Box::new(value), Box::new(bound), index, acc, Box::new(body));
            return Ok(Ex::new(kind, ty, span));
        }
        let mut lets = vec![];
        for _ in 0..steps {
            let before = name.as_ref().map(|n| (n, self.sizes.step(n, length.clone())));
            let known = self.keep(value, &mut lets);
            self.vars.insert(*param, known);
            value = self.expr(&f.body)?;
            length = match &f.body.ty {
                Type::Array(n, _) => Some(self.sizes.closed(n)),
                _ => None,
            };
            if let Some((n, old)) = before {
                self.sizes.step(n, old);
            }
        }
        Ok(close(lets, value))
    }
}

/// Returns an expression over sizes and integers as a size.
fn as_size(e: &Expr) -> Option<crate::lang::size::Size> {
    match &e.kind {
        ExprKind::Size(s) => Some(s.clone()),
        ExprKind::Lit(Literal::Int(n)) => {
            i64::try_from(*n).ok().map(crate::lang::size::Size::constant)
        }
        ExprKind::Scalar(op, es) => match (op, es.as_slice()) {
            (ScalarOp::Add, [a, b]) => Some(as_size(a)?.add(&as_size(b)?)),
            (ScalarOp::Sub, [a, b]) => Some(as_size(a)?.sub(&as_size(b)?)),
            (ScalarOp::Mul, [a, b]) => Some(as_size(a)?.mul(&as_size(b)?)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the components of a scalar parameter.
fn scalar_input(name: &Arc<str>, ty: &Ty, next: &mut usize, span: Span) -> Ex {
    if let Ty::Pair(a, b) = ty {
        let a = scalar_input(name, a, next, span);
        return Ex::pair(a, scalar_input(name, b, next, span));
    }
    let i = *next;
    *next += 1;
    Ex::new(Kind::ScalarInput(name.clone(), i), ty.clone(), span)
}

/// Whether an expression uses a variable only to read elements of it.
fn only_reads_elements(e: &Ex, v: Var) -> bool {
    match &e.kind {
        Kind::Var(w) => *w != v,
        Kind::Index(array, at) if array.kind == Kind::Var(v) => only_reads_elements(at, v),
        _ => e.parts().iter().all(|(_, part)| only_reads_elements(part, v)),
    }
}

/// Puts `let`s around a body; a variable that is used at most once, and not repeatedly, is inlined, and so is a row of which only
/// elements are read.
fn close(lets: Vec<(Layout, Ex)>, mut body: Ex) -> Ex {
    for (layout, value) in lets.into_iter().rev() {
        let vars = layout.vars();
        if let Layout::Var(v, _) = layout {
            match body.uses(v) {
                0 => continue,
                1 => {
                    body.put(v, &value);
                    continue;
                }
                _ if value.is_row_at_place() && only_reads_elements(&body, v) => {
                    body.put(v, &value);
                    continue;
                }
                _ => {}
            }
        } else if vars.iter().all(|(v, _)| body.uses(*v) == 0) {
            continue;
        }
        body = body.bound(layout, value);
    }
    body
}

/// Returns a map over zipped arrays as a map over the arrays, without those whose elements are not used. A map to the same value everywhere
/// needs none.
fn spread(prim: Prim, f: Lambda, args: Vec<Ex>) -> Kind {
    let mut pairs = vec![];
    for (p, a) in f.params.into_iter().zip(args) {
        unzip(p, a, &mut pairs);
    }
    let free = f.body.free();
    if pairs.iter().any(|(p, _)| p.meets(&free)) {
        pairs.retain(|(p, _)| p.meets(&free));
    } else if let (Prim::Map, true, Some((_, Ex { ty: Ty::Array(n, _), .. }))) =
        (prim, f.body.is_free_of_cost(), pairs.first())
    {
        return Kind::Prim(Prim::Replicate, vec![], vec![n.clone()], vec![*f.body]);
    } else {
        pairs.truncate(1);
    }
    let (params, args) = pairs.into_iter().unzip();
    Kind::Map(prim, Lambda { params, body: f.body }, args)
}

fn unzip(param: Layout, arg: Ex, out: &mut Vec<(Layout, Ex)>) {
    match (param, arg) {
        (Layout::Pair(p, q), Ex { kind: Kind::Prim(Prim::Zip, _, _, mut args), .. })
            if args.len() == 2 =>
        {
            let second = args.pop();
            let first = args.pop();
            if let (Some(a), Some(b)) = (first, second) {
                unzip(*p, a, out);
                unzip(*q, b, out);
            }
        }
        (param, arg) => out.push((param, arg)),
    }
}

/// Returns a literal of a scalar type.
pub(super) fn literal(l: Literal, ty: ScalarType) -> Lit {
    match l {
        Literal::Float(x) => Lit::float(ty, x),
        Literal::Int(x) => Lit::int(ty, x),
        Literal::Bool(x) => Lit::int(ty, i128::from(x)),
    }
}
