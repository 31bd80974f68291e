//! Lowers scalar leaves to expressions, and to statements for loops and shared values.

use super::known::{constant, decided, of_literals, small_exponent};
use super::lane_checks;
use super::view::{Step, View, Views, stop};
use crate::calculus::scalar::{Lit, SExpr, ScalarFn};
use crate::diag::Code;
use crate::kernel::analysis::arithmetic::on_indices;
use crate::kernel::ir::facts::Facts;
use crate::kernel::ir::{Block, Check, ElemTy, Expr, Reg, Stmt};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use std::rc::Rc;
use std::sync::Arc;

/// Maximum cost, in operations, of both sides of a conditional that becomes an expression, which
/// may evaluate an unused side.
const CHEAP: usize = 4;

/// A place for the statements of a leaf.
pub trait Emit {
    /// Sizes and parameters.
    fn views(&self) -> Rc<Views>;
    /// A new register, declared with this first value.
    fn declare(&mut self, ty: ElemTy, init: Option<Expr>) -> Step<Reg>;
    /// Appends a statement.
    fn emit(&mut self, s: Stmt) -> Step<()>;
    /// Begins a nested block.
    fn begin(&mut self);
    /// Ends the nested block.
    fn end(&mut self) -> Block;
    /// Whether leaves are evaluated on vectors.
    fn in_vector(&self) -> bool;
    /// Whether statements cannot be emitted here.
    fn in_view(&self) -> bool {
        false
    }
}

/// Any place for statements, for use without a type parameter.
pub type Sink = dyn Emit;

/// Returns the result of a leaf that is applied inside of a view. Its statements are collected, if anyone wants them
/// ([`Views::inside`]). Otherwise [`SExpr::inlines`] must hold: nothing else takes a statement.
pub fn inline(f: &ScalarFn, arg: &View, views: &Rc<Views>) -> Step<View> {
    struct InView(Rc<Views>);
    impl Emit for InView {
        fn views(&self) -> Rc<Views> {
            self.0.clone()
        }
        fn declare(&mut self, ty: ElemTy, init: Option<Expr>) -> Step<Reg> {
            let reg = self.0.inside.borrow_mut().as_mut().map(|inside| inside.names.reg(ty));
            let Some(reg) = reg else { return stop(Code::Internal, "a register inside a view") };
            self.emit(Stmt::Decl(reg.clone(), init))?;
            Ok(reg)
        }
        fn emit(&mut self, s: Stmt) -> Step<()> {
            let mut inside = self.0.inside.borrow_mut();
            match inside.as_mut().and_then(|inside| inside.blocks.last_mut()) {
                Some(block) => {
                    block.push(s);
                    Ok(())
                }
                None => stop(Code::Internal, "a statement inside a view"),
            }
        }
        fn begin(&mut self) {
            self.0.inside.borrow_mut().iter_mut().for_each(|inside| inside.blocks.push(vec![]));
        }
        fn end(&mut self) -> Block {
            let mut inside = self.0.inside.borrow_mut();
            inside.as_mut().and_then(|inside| inside.blocks.pop()).unwrap_or_default()
        }
        fn in_vector(&self) -> bool {
            false
        }
        fn in_view(&self) -> bool {
            self.0.inside.borrow().is_none()
        }
    }
    let mut cx = InView(views.clone());
    if cx.in_view() {
        return Leaf { cx: &mut cx, arg: arg.clone(), vars: vec![] }.eval(&f.body);
    }
    lower(f, arg, &mut cx)
}

/// Returns the result of a leaf. Components of the argument that it uses more than once are bound
/// to registers.
pub fn lower(f: &ScalarFn, arg: &View, cx: &mut Sink) -> Step<View> {
    let arg = share(&f.body, &[], arg, cx)?;
    Leaf { cx, arg, vars: vec![] }.eval(&f.body)
}

/// Binds every component that is not trivial to a register.
pub fn bind<C: Emit + ?Sized>(v: &View, cx: &mut C) -> Step<View> {
    Ok(match v {
        View::Elem(e) if !e.is_trivial() => {
            View::Elem(Expr::Reg(cx.declare(e.ty(), Some(e.clone()))?))
        }
        View::Unit | View::Elem(_) | View::Array(_) => v.clone(),
        View::Pair(a, b) => View::pair(bind(a, cx)?, bind(b, cx)?),
    })
}

/// Binds the components of the argument at `path` that the body uses more than once.
fn share(body: &SExpr, path: &[bool], arg: &View, cx: &mut Sink) -> Step<View> {
    Ok(match arg {
        View::Pair(a, b) => View::pair(
            share(body, &[path, &[false]].concat(), a, cx)?,
            share(body, &[path, &[true]].concat(), b, cx)?,
        ),
        View::Elem(e) if !e.is_trivial() && uses(body, path) > 1 => bind(arg, cx)?,
        View::Unit | View::Elem(_) | View::Array(_) => arg.clone(),
    })
}

/// Returns how often the component of the argument at `path` is used. Uses of the whole argument
/// count. A use in a loop, or as an operand of `sign`, `pow` or `ctz`, counts twice.
fn uses(e: &SExpr, path: &[bool]) -> usize {
    if let Some(p) = arg_path(e) {
        return usize::from(path.starts_with(&p));
    }
    match e {
        SExpr::Arg | SExpr::Lit(_) | SExpr::Input(..) | SExpr::Size(..) | SExpr::Var(..) => 0,
        SExpr::Proj(e, _) => uses(e, path),
        SExpr::Op(ScalarOp::Sign | ScalarOp::Pow | ScalarOp::Ctz, _, es) => {
            es.iter().map(|e| uses(e, path)).sum::<usize>() * 2
        }
        SExpr::Op(_, _, es) => es.iter().map(|e| uses(e, path)).sum(),
        SExpr::If(a, b, c) => uses(a, path) + uses(b, path) + uses(c, path),
        SExpr::Pair(a, b) | SExpr::Let(a, b) => uses(a, path) + uses(b, path),
        SExpr::For(a, b, c) => uses(a, path) + uses(b, path) + 2 * uses(c, path),
        SExpr::While(a, b, c) => uses(a, path) + 2 * (uses(b, path) + uses(c, path)),
    }
}

/// Returns the path of a component of the argument.
pub fn arg_path(e: &SExpr) -> Option<Vec<bool>> {
    match e {
        SExpr::Arg => Some(vec![]),
        SExpr::Proj(e, second) => {
            let mut p = arg_path(e)?;
            p.push(*second);
            Some(p)
        }
        _ => None,
    }
}

fn cost(v: &View) -> usize {
    match v {
        View::Unit | View::Array(_) => 0,
        View::Pair(a, b) => cost(a) + cost(b),
        View::Elem(e) => {
            let mut n = 0;
            e.visit(&mut |e| {
                n += match e {
                    Expr::Load(..) | Expr::Guarded(..) => CHEAP,
                    Expr::Op(op, ..) if op.is_dear() => CHEAP + 1,
                    Expr::Op(..) | Expr::Checked(..) | Expr::If(..) => 1,
                    _ => 0,
                }
            });
            n
        }
    }
}

/// Selects between two computed values of the same type.
pub fn choose(c: &Expr, a: &View, b: &View) -> Step<View> {
    Ok(match (a, b) {
        (View::Elem(a), View::Elem(b)) => {
            let w = c.ty().width.max(a.ty().width).max(b.ty().width);
            let (a, b) = (a.clone().widen(w), b.clone().widen(w));
            View::Elem(if w == 1 {
                Expr::If(Arc::new(c.clone()), Arc::new(a), Arc::new(b))
            } else {
                let ty = a.ty();
                Expr::Op(ScalarOp::Select, ty, vec![c.clone().widen(w), a, b])
            })
        }
        (View::Pair(a1, a2), View::Pair(b1, b2)) => {
            View::pair(choose(c, a1, b1)?, choose(c, a2, b2)?)
        }
        (View::Unit, View::Unit) => View::Unit,
        _ => return stop(Code::Internal, "branches of two types"),
    })
}

/// Declares registers of the types of this value, without first values.
fn blank<C: Emit + ?Sized>(v: &View, cx: &mut C) -> Step<View> {
    Ok(match v {
        View::Elem(e) => View::Elem(Expr::Reg(cx.declare(e.ty(), None)?)),
        View::Pair(a, b) => View::pair(blank(a, cx)?, blank(b, cx)?),
        View::Unit | View::Array(_) => v.clone(),
    })
}

/// Declares registers with these first values.
fn variable<C: Emit + ?Sized>(v: &View, cx: &mut C) -> Step<View> {
    Ok(match v {
        View::Elem(e) => View::Elem(Expr::Reg(cx.declare(e.ty(), Some(e.clone()))?)),
        View::Pair(a, b) => View::pair(variable(a, cx)?, variable(b, cx)?),
        View::Unit | View::Array(_) => v.clone(),
    })
}

fn assign<C: Emit + ?Sized>(to: &View, from: &View, cx: &mut C) -> Step<()> {
    match (to, from) {
        (View::Elem(Expr::Reg(r)), View::Elem(e)) => {
            cx.emit(Stmt::Set(r.clone(), e.clone().widen(r.ty.width)))
        }
        (View::Pair(a, b), View::Pair(x, y)) => {
            assign(a, x, cx)?;
            assign(b, y, cx)
        }
        (View::Unit, View::Unit) => Ok(()),
        _ => stop(Code::Internal, "an assignment between two types"),
    }
}

/// Lowers a conditional: to an expression if both sides are cheap, else to a statement.
pub fn conditional<C: Emit + ?Sized>(
    c: &Expr,
    then: &mut dyn FnMut(&mut C) -> Step<View>,
    otherwise: &mut dyn FnMut(&mut C) -> Step<View>,
    cx: &mut C,
) -> Step<View> {
    if c.is_true() {
        return then(cx);
    }
    if c.is_false() {
        return otherwise(cx);
    }
    if c.ty().width > 1 || cx.in_vector() {
        // Both sides are evaluated. If the condition differs by lane, each lane uses its value
        // again, so bind it.
        let a = where_only(c, true, then, cx)?;
        let a = if c.is_decision() { bind(&a, cx)? } else { a };
        let b = where_only(c, false, otherwise, cx)?;
        return pick(c, &a, &b);
    }
    cx.begin();
    let a = then(cx);
    let mut left = cx.end();
    let a = a?;
    cx.begin();
    let b = otherwise(cx);
    let mut right = cx.end();
    let b = b?;
    let chosen = c.is_decision() || cx.in_view() || cost(&a) + cost(&b) <= CHEAP;
    if left.is_empty() && right.is_empty() && chosen {
        return pick(c, &a, &b);
    }
    let out = blank(&a, cx)?;
    let fill = |block: &mut Block, v: &View, cx: &mut C| -> Step<()> {
        cx.begin();
        let done = assign(&out, v, cx);
        block.extend(cx.end());
        done
    };
    fill(&mut left, &a, cx)?;
    fill(&mut right, &b, cx)?;
    cx.emit(match c {
        // A condition on indices alone becomes an `If`, so that the loops around it can be split
        // where the condition changes.
        Expr::Guarded(g, t, f) if t.is_true() && f.is_false() => Stmt::If(g.clone(), left, right),
        _ => Stmt::Branch(c.clone(), left, right),
    })?;
    Ok(out)
}

/// Evaluates `branch`, with its checks restricted to the lanes where the condition is `truth`.
fn where_only<C: Emit + ?Sized>(
    c: &Expr,
    truth: bool,
    branch: &mut dyn FnMut(&mut C) -> Step<View>,
    cx: &mut C,
) -> Step<View> {
    if !cx.views().checked {
        return branch(cx);
    }
    cx.begin();
    let value = branch(cx);
    let mut block = cx.end();
    let mut value = value?;
    if lane_checks::any(&block, &value) {
        let mut c = bind(&View::Elem(c.clone()), cx)?.expr()?;
        if !truth {
            c = Expr::Op(ScalarOp::Not, c.ty(), vec![c]);
        }
        lane_checks::only_where(&c, &mut block, &mut value);
    }
    block.into_iter().try_for_each(|s| cx.emit(s))?;
    Ok(value)
}

/// Selects between two values. Guards in the condition stay guards.
fn pick(c: &Expr, a: &View, b: &View) -> Step<View> {
    fn expr(c: &Expr, a: &Expr, b: &Expr) -> Expr {
        match c {
            c if c.is_true() => a.clone(),
            c if c.is_false() => b.clone(),
            Expr::Guarded(g, t, f) => {
                Expr::Guarded(g.clone(), Arc::new(expr(t, a, b)), Arc::new(expr(f, a, b)))
            }
            Expr::Splat(c, _) if c.is_decision() => expr(c, a, b),
            Expr::Vector(lanes) if c.is_decision() => Expr::vector(
                lanes.iter().enumerate().map(|(k, c)| expr(c, &a.lane(k), &b.lane(k))).collect(),
            ),
            c => Expr::If(Arc::new(c.clone()), Arc::new(a.clone()), Arc::new(b.clone())),
        }
    }
    if !c.is_decision() {
        return choose(c, a, b);
    }
    Ok(match (a, b) {
        (View::Pair(a1, a2), View::Pair(b1, b2)) => View::pair(pick(c, a1, b1)?, pick(c, a2, b2)?),
        (View::Elem(a), View::Elem(b)) => {
            let w = c.ty().width.max(a.ty().width).max(b.ty().width);
            View::Elem(expr(c, &a.clone().widen(w), &b.clone().widen(w)))
        }
        _ => return choose(c, a, b),
    })
}

fn branch(e: &SExpr, arg: &View, vars: &[View], cx: &mut Sink) -> Step<View> {
    Leaf { cx, arg: arg.clone(), vars: vars.to_vec() }.eval(e)
}

/// Returns the check that the second operand of an operation needs if it is not a constant.
fn check(op: ScalarOp, t: ScalarType) -> Option<Check> {
    match op {
        ScalarOp::Div | ScalarOp::Rem if t.is_integer() => Some(Check::Divisor),
        ScalarOp::Pow if t.is_integer() && t.is_signed() => Some(Check::Exponent),
        _ => None,
    }
}

/// Whether the form of an operand shows that it passes its check, and that it cannot cause an
/// overflow.
fn is_harmless(e: &Expr, check: Check) -> bool {
    let fine = |x: i128| match check {
        Check::Divisor => x != 0 && x != -1,
        Check::Index(_) | Check::Exponent => x >= 0,
    };
    match e {
        Expr::Lit(l) => l.as_int().is_some_and(fine),
        Expr::Index(i, _) => i.range().0 > 0,
        Expr::Splat(e, _) => is_harmless(e, check),
        Expr::Vector(es) => es.iter().all(|e| is_harmless(e, check)),
        _ => false,
    }
}

/// Returns the quotient or the remainder of a number that is not negative by a power of two, whose exponent is not known, as a shift or
/// a mask: a division takes many operations.
fn by_power_of_two(op: ScalarOp, t: ScalarType, a: &Expr, b: &Expr, width: usize) -> Option<Expr> {
    let natural = || !t.is_signed() || a.values().is_some_and(|(least, _)| least >= 0);
    if !matches!(op, ScalarOp::Div | ScalarOp::Rem) || !t.is_integer() || !natural() {
        return None;
    }
    let bits = i64::try_from(t.bits()).ok()? - i64::from(t.is_signed());
    let (exponent, _) = exponent_of(b, bits)?;
    let ty = ElemTy { scalar: t, width };
    let [a, b, exponent] = [a, b, &exponent].map(|e| e.clone().widen(width));
    Some(match op {
        ScalarOp::Div => Expr::Op(ScalarOp::Shr, ty, vec![a, exponent]),
        _ => {
            let one = Expr::Lit(Lit::int(t, 1)).widen(width);
            let mask = Expr::Op(ScalarOp::Sub, ty, vec![b, one]);
            Expr::Op(ScalarOp::BitAnd, ty, vec![a, mask])
        }
    })
}

/// Returns the exponent of a power of two, and the greatest value that it has, if all of them are less than `bits`.
fn exponent_of(e: &Expr, bits: i64) -> Option<(Expr, i64)> {
    let number = |e: &Expr| match e {
        Expr::Lit(l) => l.as_int().filter(|n| *n > 0 && n.count_ones() == 1),
        _ => None,
    };
    let Expr::Op(op, ty, es) = e else { return None };
    let [x, y] = es.as_slice() else { return None };
    let (power, exponent, most) = match op {
        ScalarOp::Shl => {
            let (least, most) = y.values()?;
            (number(x)?, y.clone(), (least >= 0).then_some(most)?)
        }
        ScalarOp::Mul => {
            let (power, other) = match (number(x), number(y)) {
                (Some(power), _) => (power, y),
                (_, Some(power)) => (power, x),
                _ => return None,
            };
            let (exponent, most) = exponent_of(other, bits)?;
            (power, exponent, most)
        }
        _ => return None,
    };
    let more = i64::from(power.trailing_zeros());
    let most = most.checked_add(more).filter(|most| *most < bits)?;
    if more == 0 {
        return Some((exponent, most));
    }
    let more = Expr::Lit(Lit::int(ty.scalar, more.into())).widen(ty.width);
    Some((Expr::Op(ScalarOp::Add, *ty, vec![exponent, more]), most))
}

/// Whether evaluating an expression may fail.
fn may_fail(e: &SExpr) -> bool {
    match e {
        SExpr::Arg | SExpr::Lit(_) | SExpr::Input(..) | SExpr::Size(..) | SExpr::Var(..) => false,
        SExpr::Proj(e, _) => may_fail(e),
        SExpr::Op(op, t, es) => check(*op, *t).is_some() || es.iter().any(may_fail),
        SExpr::Pair(a, b) | SExpr::Let(a, b) => may_fail(a) || may_fail(b),
        SExpr::If(a, b, c) | SExpr::For(a, b, c) | SExpr::While(a, b, c) => {
            may_fail(a) || may_fail(b) || may_fail(c)
        }
    }
}

struct Leaf<'a> {
    cx: &'a mut Sink,
    arg: View,
    vars: Vec<View>,
}

impl Leaf<'_> {
    fn eval(&mut self, e: &SExpr) -> Step<View> {
        Ok(match e {
            SExpr::Arg => self.arg.clone(),
            SExpr::Proj(e, second) => {
                let v = self.eval(e)?;
                if *second { v.snd()? } else { v.fst()? }
            }
            SExpr::Lit(l) => View::Elem(Expr::Lit(*l)),
            SExpr::Input(name, k, t) => View::Elem(self.cx.views().scalar_input(name, *k, *t)?),
            SExpr::Size(s, t) => View::Elem(self.cx.views().size_lit(s, *t)?),
            SExpr::Op(op @ (ScalarOp::And | ScalarOp::Or), t, es)
                if self.cx.views().checked && es.iter().skip(1).any(may_fail) =>
            {
                // The second operand is evaluated only if it is needed, so that the checks of an
                // unused operand do not fail.
                let known = SExpr::Lit(Lit::int(*t, i128::from(*op == ScalarOp::Or)));
                let [c, more] = es.as_slice() else {
                    return stop(Code::Internal, "a conjunction of other than two");
                };
                let (yes, no) = if *op == ScalarOp::And { (more, &known) } else { (&known, more) };
                let (c, yes, no) = (c.clone(), yes.clone(), no.clone());
                self.eval(&SExpr::If(Arc::new(c), Arc::new(yes), Arc::new(no)))?
            }
            SExpr::Op(op, t, es) => {
                let es = es.iter().map(|e| self.eval(e)?.expr()).collect::<Step<Vec<_>>>()?;
                View::Elem(self.operation(*op, *t, es)?)
            }
            SExpr::If(c, a, b) => {
                let c = self.eval(c)?.expr()?;
                let (arg, vars) = (self.arg.clone(), self.vars.clone());
                conditional(
                    &c,
                    &mut |cx: &mut Sink| branch(a, &arg, &vars, cx),
                    &mut |cx: &mut Sink| branch(b, &arg, &vars, cx),
                    self.cx,
                )?
            }
            SExpr::Pair(a, b) => View::pair(self.eval(a)?, self.eval(b)?),
            SExpr::Let(v, body) => {
                let v = self.eval(v)?;
                let v = bind(&v, self.cx)?;
                self.scoped(&[v], body)?
            }
            SExpr::Var(level, _) => match self.vars.get(*level as usize) {
                Some(v) => v.clone(),
                None => return stop(Code::BadTerm, "an unbound variable in a scalar function"),
            },
            SExpr::For(init, bound, body) => {
                self.no_vector()?;
                let init = self.eval(init)?;
                let bound = self.eval(bound)?;
                let bound = bind(&bound, self.cx)?.expr()?;
                let acc = variable(&init, self.cx)?;
                let ty = bound.ty();
                let zero = Expr::Lit(Lit::int(ty.scalar, 0));
                let counter = self.cx.declare(ty, Some(zero))?;
                let i = Expr::Reg(counter.clone());
                let cond = Expr::Op(
                    ScalarOp::Lt,
                    ElemTy::scalar(ScalarType::Bool),
                    vec![i.clone(), bound],
                );
                self.cx.begin();
                let stepped = self.step(&acc, &[View::Elem(i.clone()), acc.clone()], body);
                let one = Expr::Lit(Lit::int(ty.scalar, 1));
                let next = Expr::Op(ScalarOp::Add, ty, vec![i, one]);
                let counted = self.cx.emit(Stmt::Set(counter, next));
                let block = self.cx.end();
                stepped.and(counted)?;
                self.cx.emit(Stmt::While(vec![], cond, block))?;
                acc
            }
            SExpr::While(init, cond, body) => {
                self.no_vector()?;
                let init = self.eval(init)?;
                let acc = variable(&init, self.cx)?;
                self.cx.begin();
                let cond = self.scoped(std::slice::from_ref(&acc), cond).and_then(|v| v.expr());
                let head = self.cx.end();
                let cond = cond?;
                self.cx.begin();
                let stepped = self.step(&acc, std::slice::from_ref(&acc), body);
                let block = self.cx.end();
                stepped?;
                self.cx.emit(Stmt::While(head, cond, block))?;
                acc
            }
        })
    }

    /// Evaluates the body with these variables bound.
    fn scoped(&mut self, vars: &[View], body: &SExpr) -> Step<View> {
        let depth = self.vars.len();
        self.vars.extend_from_slice(vars);
        let v = self.eval(body);
        self.vars.truncate(depth);
        v
    }

    /// Emits one iteration. All components of the accumulator change at the same time.
    fn step(&mut self, acc: &View, vars: &[View], body: &SExpr) -> Step<()> {
        let next = self.scoped(vars, body)?;
        let next = match next {
            View::Pair(..) => variable(&next, self.cx)?,
            v => v,
        };
        assign(acc, &next, self.cx)
    }

    fn no_vector(&self) -> Step<()> {
        if self.cx.in_vector() {
            return stop(Code::KernelLimit, "a scalar function with a loop has no vector form");
        }
        Ok(())
    }

    /// The second, third or fourth power.
    fn power(&mut self, x: Expr, k: i64, t: ScalarType) -> Step<Expr> {
        let ty = ElemTy { scalar: t, width: x.ty().width };
        let product = |a: &Expr, b: &Expr| Expr::Op(ScalarOp::Mul, ty, vec![a.clone(), b.clone()]);
        if k == 1 {
            return Ok(x);
        }
        let x = bind(&View::Elem(x), self.cx)?.expr()?;
        let root = self.power(x.clone(), k / 2, t)?;
        let root = if k < 4 { root } else { bind(&View::Elem(root), self.cx)?.expr()? };
        let square = product(&root, &root);
        Ok(if k % 2 == 0 { square } else { product(&square, &x) })
    }

    /// A shift. C leaves open what happens if the number of places is negative, or not less than the number of bits.
    fn shift(&mut self, op: ScalarOp, x: &Expr, places: Expr) -> Step<Expr> {
        let ty = x.ty();
        let bits = i128::try_from(ty.scalar.bits()).unwrap_or_default();
        let number = |n: i128| Expr::Lit(Lit::int(ty.scalar, n)).widen(ty.width);
        let shifted = |places: Expr| Expr::Op(op, ty, vec![x.clone(), places]);
        let fills_with_sign = op == ScalarOp::Shr && ty.scalar.is_signed();
        if let Some(k) = constant(&places) {
            return Ok(match (0..bits).contains(&k) {
                true => shifted(places),
                false if fills_with_sign => shifted(number(bits - 1)),
                false => number(0),
            });
        }
        if places.values().is_some_and(|(lo, hi)| lo >= 0 && i128::from(hi) < bits) {
            return Ok(shifted(places));
        }
        let places = match self.cx.in_view() {
            true => places,
            false => bind(&View::Elem(places), self.cx)?.expr()?,
        };
        // The number of bits is a power of two: no higher bits are set, the sign included.
        let higher = Expr::Op(ScalarOp::BitAnd, ty, vec![places.clone(), number(-bits)]);
        let truth = ElemTy { scalar: ScalarType::Bool, ..ty };
        let inside = Expr::Op(ScalarOp::Eq, truth, vec![higher, number(0)]);
        let chosen = |a: Expr, b: Expr| Expr::Op(ScalarOp::Select, ty, vec![inside, a, b]);
        Ok(match fills_with_sign {
            true => shifted(chosen(places, number(bits - 1))),
            false => chosen(shifted(places), number(0)),
        })
    }

    fn operation(&mut self, op: ScalarOp, t: ScalarType, es: Vec<Expr>) -> Step<Expr> {
        let width = es.iter().map(|e| e.ty().width).max().unwrap_or(1);
        if let (ScalarOp::Pow, [x, exponent]) = (op, es.as_slice())
            && !self.cx.in_view()
            && let Some(k) = small_exponent(exponent)
        {
            return self.power(x.clone().widen(width), k, t);
        }
        if let Some(known) = of_literals(op, t, &es) {
            return Ok(known);
        }
        if let [a, b] = es.as_slice()
            && let Some(quick) = by_power_of_two(op, t, a, b, width)
        {
            return Ok(quick);
        }
        let mut es: Vec<Expr> = es.into_iter().map(|e| e.widen(width)).collect();
        if self.cx.views().checked
            && let Some(check) = check(op, t)
            && let [a, b] = es.as_mut_slice()
            && !is_harmless(b, check)
        {
            if check == Check::Divisor && !self.cx.in_view() && !matches!(a, Expr::Load(..)) {
                // The operation and its check both use the value. Equal loads are shared later.
                *a = bind(&View::Elem(a.clone()), self.cx)?.expr()?;
            }
            let operands = match check {
                Check::Divisor => vec![b.clone(), a.clone()],
                Check::Index(_) | Check::Exponent => vec![b.clone()],
            };
            *b = Expr::Checked(check, operands);
        }
        if let Some(i) = on_indices(op, t, &es, &Facts::default()) {
            return Ok(match i.as_constant() {
                Some(n) => Expr::Lit(Lit::int(t, i128::from(n))),
                None => Expr::Index(i, t),
            });
        }
        if let Some(known) = decided(op, &es) {
            return Ok(known);
        }
        if let (ScalarOp::Shl | ScalarOp::Shr, [x, places]) = (op, es.as_slice()) {
            return self.shift(op, x, places.clone());
        }
        Ok(Expr::Op(op, ElemTy { scalar: t, width }, es))
    }
}
