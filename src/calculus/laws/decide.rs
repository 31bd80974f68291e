//! Decides the laws of operators that are built of known ones.
//!
//! An operator on tuples falls into groups of components that depend only on each other. It keeps its laws if
//! every group does: a single component that is an operation of the language with its neutral element, or
//! components made of sums, differences and products. For the latter, each law is an equation between
//! polynomials, which holds for every value if both sides have the same terms (for floats, up to rounding).
//! Operators that are not proved here are tried on values.

use super::slice::expr;
use crate::calculus::scalar::Lit;
use crate::lang::typed::{Expr, ExprKind, Fun, Literal, Prim, ScalarOp, VarId};
use crate::lang::types::{ScalarType, Type};
use indexmap::IndexMap;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Most terms of a polynomial, and most factors of a term.
const TERMS: usize = 256;
const FACTORS: usize = 16;
/// Most components of an operator.
const COMPONENTS: usize = 64;

/// Whether an operator is proved to be associative, with `z` as its neutral element, and commutative if
/// `commutes` is true.
pub(super) fn keeps_laws(op: &Fun, z: &Expr, commutes: bool) -> bool {
    if let Some((inner, unit)) = element_wise(op, z) {
        return keeps_laws(inner, unit, commutes);
    }
    let (Some((types, parts)), Some(units)) = (components(op), constants(z)) else {
        return false;
    };
    let width = types.len();
    units.len() == width
        && groups(&parts, width).iter().all(|group| {
            let known = match group.as_slice() {
                [i] => operation(&parts[*i], *i, width)
                    .is_some_and(|op| unit_of(op, types[*i]) == Some(units[*i])),
                _ => false,
            };
            known || is_lawful(group, &parts, &units, width, commutes)
        })
}

/// Returns the neutral element of an operator whose components are operations of the language; `None` for
/// other operators.
pub(super) fn neutral(op: &Fun) -> Option<Expr> {
    let (_, t) = op.params.first()?;
    if let (Some(inner), Type::Array(n, _)) = (mapped(op), t) {
        let (prim, args) = (Prim::Replicate, vec![neutral(inner)?]);
        let kind = ExprKind::Prim { prim, funs: vec![], sizes: vec![n.clone()], args };
        return Some(expr(kind, t.clone()));
    }
    let (types, parts) = components(op)?;
    let width = types.len();
    let unit = |i: usize| unit_of(operation(&parts[i], i, width)?, types[i]);
    let mut units = (0..width).map(unit).collect::<Option<Vec<_>>>()?.into_iter();
    literal(t, &mut units)
}

/// Returns the value of a type that has these scalars.
fn literal(t: &Type, scalars: &mut impl Iterator<Item = Literal>) -> Option<Expr> {
    let kind = match t {
        Type::Scalar(_) => ExprKind::Lit(scalars.next()?),
        Type::Tuple(ts) => {
            ExprKind::Tuple(ts.iter().map(|t| literal(t, scalars)).collect::<Option<_>>()?)
        }
        _ => return None,
    };
    Some(expr(kind, t.clone()))
}

/// Returns the operator on elements, for an operator that is mapped over two arrays.
fn mapped(op: &Fun) -> Option<&Fun> {
    let ([(p, _), (q, _)], ExprKind::Prim { prim: Prim::Map, funs, args, .. }) =
        (op.params.as_slice(), &op.body.kind)
    else {
        return None;
    };
    let var = |e: &Expr| match e.kind {
        ExprKind::Var(v) => Some(v),
        _ => None,
    };
    let ([inner], [x, y]) = (funs.as_slice(), args.as_slice()) else { return None };
    // The arguments must be in this order: the operator on elements need not commute.
    let in_order = var(x) == Some(*p) && var(y) == Some(*q);
    (in_order && inner.params.len() == 2).then_some(inner)
}

/// Returns the operator on elements and its neutral element, for an operator that is mapped over two arrays.
fn element_wise<'a>(op: &'a Fun, z: &'a Expr) -> Option<(&'a Fun, &'a Expr)> {
    let ExprKind::Prim { prim: Prim::Replicate, args, .. } = &z.kind else { return None };
    Some((mapped(op)?, args.first()?))
}

/// Returns the scalars of an operator's result, with their types.
fn components(op: &Fun) -> Option<(Vec<ScalarType>, Vec<Rc<Node>>)> {
    let [(p, t), (q, _)] = op.params.as_slice() else { return None };
    let mut types = vec![];
    if !leaves(t, &mut types) {
        return None;
    }
    let mut next = 0;
    let first = parameter(t, &mut next);
    let second = parameter(t, &mut next);
    let mut parts = vec![];
    tree(&op.body, &mut IndexMap::from([(*p, first), (*q, second)]))?.flatten(&mut parts);
    (parts.len() == types.len()).then_some((types, parts))
}

/// A scalar in an operator's result.
#[derive(Debug, PartialEq)]
enum Node {
    /// A component of the arguments; those of the second argument come after those of the first.
    Part(usize),
    Constant(Literal),
    Operation(ScalarOp, Vec<Rc<Node>>),
}

#[derive(Clone, Debug)]
enum Tree {
    Leaf(Rc<Node>),
    Tuple(Rc<Vec<Tree>>),
}

impl Tree {
    /// Adds the scalars from left to right; stops beyond the number that an operator may have.
    fn flatten(&self, out: &mut Vec<Rc<Node>>) {
        match self {
            _ if out.len() > COMPONENTS => {}
            Tree::Leaf(node) => out.push(node.clone()),
            Tree::Tuple(parts) => parts.iter().for_each(|t| t.flatten(out)),
        }
    }

    fn leaf(self) -> Option<Rc<Node>> {
        match self {
            Tree::Leaf(node) => Some(node),
            Tree::Tuple(_) => None,
        }
    }
}

/// Adds the scalar types of a tuple; `false` for other types, and for too many.
fn leaves(t: &Type, out: &mut Vec<ScalarType>) -> bool {
    match t {
        Type::Scalar(s) => out.push(*s),
        Type::Tuple(ts) => return ts.iter().all(|t| leaves(t, out)),
        _ => return false,
    }
    out.len() <= COMPONENTS
}

fn parameter(t: &Type, next: &mut usize) -> Tree {
    match t {
        Type::Tuple(ts) => Tree::Tuple(Rc::new(ts.iter().map(|t| parameter(t, next)).collect())),
        _ => {
            *next += 1;
            Tree::Leaf(Rc::new(Node::Part(*next - 1)))
        }
    }
}

/// Returns an expression as a tree over its variables; `None` if it is not made of scalars by operations.
fn tree(e: &Expr, scope: &mut IndexMap<VarId, Tree>) -> Option<Tree> {
    let leaf = |node: Node| Some(Tree::Leaf(Rc::new(node)));
    match &e.kind {
        ExprKind::Lit(l) => leaf(Node::Constant(*l)),
        ExprKind::Var(v) => scope.get(v).cloned(),
        ExprKind::Proj(a, i) => match tree(a, scope)? {
            Tree::Tuple(parts) => parts.get(*i).cloned(),
            Tree::Leaf(_) => None,
        },
        ExprKind::Tuple(es) => {
            let parts = es.iter().map(|e| tree(e, scope)).collect::<Option<Vec<_>>>()?;
            Some(Tree::Tuple(Rc::new(parts)))
        }
        ExprKind::Let(v, a, b) => {
            let value = tree(a, scope)?;
            let outer = scope.insert(*v, value);
            let out = tree(b, scope);
            // A function that is inlined twice binds its variables twice.
            if let Some(outer) = outer {
                scope.insert(*v, outer);
            }
            out
        }
        // Only operations within one type of number: conversions are not analysed.
        ExprKind::Scalar(ScalarOp::Neg, es)
            if matches!(es[..], [Expr { kind: ExprKind::Lit(_), .. }]) =>
        {
            match es[0].kind {
                ExprKind::Lit(Literal::Int(x)) => {
                    leaf(Node::Constant(Literal::Int(x.checked_neg()?)))
                }
                ExprKind::Lit(Literal::Float(x)) => leaf(Node::Constant(Literal::Float(-x))),
                _ => None,
            }
        }
        ExprKind::Scalar(ScalarOp::BitNot, es)
            if matches!(es[..], [Expr { kind: ExprKind::Lit(Literal::Int(_)), .. }]) =>
        {
            let (ExprKind::Lit(Literal::Int(x)), Type::Scalar(t)) = (&es[0].kind, &e.ty) else {
                return None;
            };
            leaf(Node::Constant(Literal::Int(Lit::int(*t, !x).as_int()?)))
        }
        ExprKind::Scalar(op, es) if !matches!(op, ScalarOp::Cast(_)) => {
            let of = es.iter().map(|e| tree(e, scope)?.leaf()).collect::<Option<Vec<_>>>()?;
            leaf(Node::Operation(*op, of))
        }
        ExprKind::If(c, a, b) => {
            let (c, a, b) = (tree(c, scope)?, tree(a, scope)?, tree(b, scope)?);
            chosen(&*c.leaf()?, &a.leaf()?, &b.leaf()?).and_then(leaf)
        }
        _ => None,
    }
}

/// Returns a conditional that chooses the lesser or the greater of two, as `min` or `max`.
fn chosen(test: &Node, yes: &Rc<Node>, no: &Rc<Node>) -> Option<Node> {
    let Node::Operation(test, of) = test else { return None };
    let less = match test {
        ScalarOp::Lt | ScalarOp::Le => true,
        ScalarOp::Gt | ScalarOp::Ge => false,
        _ => return None,
    };
    let [x, y] = of.as_slice() else { return None };
    let straight = match (yes == x && no == y, yes == y && no == x) {
        (true, _) => true,
        (_, true) => false,
        _ => return None,
    };
    let op = if less == straight { ScalarOp::Min } else { ScalarOp::Max };
    Some(Node::Operation(op, vec![x.clone(), y.clone()]))
}

/// Returns the scalars of a literal value.
pub(super) fn constants(z: &Expr) -> Option<Vec<Literal>> {
    let mut parts = vec![];
    tree(z, &mut IndexMap::new())?.flatten(&mut parts);
    let literal = |n: &Rc<Node>| match **n {
        Node::Constant(l) => Some(l),
        _ => None,
    };
    parts.iter().map(literal).collect()
}

/// Returns the groups of components that depend on each other.
fn groups(parts: &[Rc<Node>], width: usize) -> Vec<Vec<usize>> {
    let mut group: Vec<usize> = (0..width).collect();
    for (i, part) in parts.iter().enumerate() {
        let mut used = vec![false; width];
        mentioned(part, width, &mut used, &mut vec![]);
        for j in (0..width).filter(|j| used[*j]) {
            let (from, to) = (group[j], group[i]);
            group.iter_mut().filter(|g| **g == from).for_each(|g| *g = to);
        }
    }
    let mut out: IndexMap<usize, Vec<usize>> = IndexMap::new();
    for (i, g) in group.into_iter().enumerate() {
        out.entry(g).or_default().push(i);
    }
    out.into_values().collect()
}

fn mentioned(n: &Rc<Node>, width: usize, used: &mut [bool], seen: &mut Vec<*const Node>) {
    match &**n {
        Node::Part(i) => used[i % width] = true,
        Node::Constant(_) => {}
        Node::Operation(_, of) => {
            let this = Rc::as_ptr(n);
            if !seen.contains(&this) {
                seen.push(this);
                of.iter().for_each(|n| mentioned(n, width, used, seen));
            }
        }
    }
}

/// Returns the operation, if component `i` is an operation of the language on the two values of that component.
fn operation(part: &Node, i: usize, width: usize) -> Option<ScalarOp> {
    let Node::Operation(op, of) = part else { return None };
    let [a, b] = of.as_slice() else { return None };
    let parts = [Node::Part(i), Node::Part(i + width)];
    let both = **a == parts[0] && **b == parts[1] || **a == parts[1] && **b == parts[0];
    both.then_some(*op)
}

/// Returns the neutral element of an operation that keeps its laws on a type.
pub(in crate::calculus) fn unit_of(op: ScalarOp, ty: ScalarType) -> Option<Literal> {
    use ScalarOp as O;
    let bits = ty.bits();
    let (highest, lowest) = match ty.is_signed() {
        true => ((1i128 << (bits - 1)) - 1, -(1i128 << (bits - 1))),
        false => ((1i128 << bits) - 1, 0),
    };
    let number =
        |float, int| Some(if ty.is_float() { Literal::Float(float) } else { Literal::Int(int) });
    match (op, ty) {
        (O::And | O::BitAnd | O::Min | O::Eq, ScalarType::Bool) => Some(Literal::Bool(true)),
        (O::Or | O::BitOr | O::BitXor | O::Max | O::Ne, ScalarType::Bool) => {
            Some(Literal::Bool(false))
        }
        (_, ScalarType::Bool) => None,
        (O::Add, _) => number(0.0, 0),
        (O::Mul, _) => number(1.0, 1),
        (O::Min, _) => number(f64::INFINITY, highest),
        (O::Max, _) => number(f64::NEG_INFINITY, lowest),
        (O::BitOr | O::BitXor, _) => Some(Literal::Int(0)),
        (O::BitAnd, _) => Some(Literal::Int(if ty.is_signed() { -1 } else { highest })),
        _ => None,
    }
}

/// Whether components made of sums and products keep the laws together.
fn is_lawful(
    group: &[usize],
    parts: &[Rc<Node>],
    units: &[Literal],
    width: usize,
    commutes: bool,
) -> bool {
    let polynomials = |of: &dyn Fn(usize) -> Option<Polynomial>| -> Option<Values> {
        group.iter().map(|i| Some((*i, of(*i)?))).collect()
    };
    let laws = || {
        let ops = polynomials(&|i| polynomial(&parts[i], &mut vec![]))?;
        // `from` is the first variable of a value; the variables of `a`, `b` and `c` follow each other.
        let value = |from: usize| polynomials(&|i| Some(Polynomial::variable(from + i)));
        let [a, b, c] = [value(0)?, value(width)?, value(2 * width)?];
        let z = polynomials(&|i| Polynomial::constant(units[i]))?;
        let both = |x: &Values, y: &Values| {
            let at = |v: usize| if v < width { x.get(&v) } else { y.get(&(v - width)) };
            polynomials(&|i| ops.get(&i)?.with(&|v| at(v).cloned()))
        };
        let associative = both(&both(&a, &b)?, &c)? == both(&a, &both(&b, &c)?)?;
        let neutral = both(&z, &a)? == a && both(&a, &z)? == a;
        Some(associative && neutral && (!commutes || both(&a, &b)? == both(&b, &a)?))
    };
    laws() == Some(true)
}

/// Polynomials of some components.
type Values = BTreeMap<usize, Polynomial>;

/// A sum of products: each sorted list of variables has its coefficient, which is never 0.
#[derive(Clone, Debug, Default, PartialEq)]
struct Polynomial(BTreeMap<Vec<usize>, i128>);

/// Returns a scalar as a polynomial in the arguments' components; `known` has the results so far.
fn polynomial(n: &Rc<Node>, known: &mut Vec<(*const Node, Polynomial)>) -> Option<Polynomial> {
    if let Some((_, p)) = known.iter().find(|(at, _)| *at == Rc::as_ptr(n)) {
        return Some(p.clone());
    }
    let out = match &**n {
        Node::Part(i) => Polynomial::variable(*i),
        Node::Constant(l) => Polynomial::constant(*l)?,
        Node::Operation(op, of) => {
            let of = of.iter().map(|n| polynomial(n, known)).collect::<Option<Vec<_>>>()?;
            match (op, of.as_slice()) {
                (ScalarOp::Add, [a, b]) => a.plus(b, 1)?,
                (ScalarOp::Sub, [a, b]) => a.plus(b, -1)?,
                (ScalarOp::Mul, [a, b]) => a.times(b)?,
                (ScalarOp::Fma, [a, b, c]) => a.times(b)?.plus(c, 1)?,
                (ScalarOp::Neg, [a]) => Polynomial::default().plus(a, -1)?,
                _ => return None,
            }
        }
    };
    known.push((Rc::as_ptr(n), out.clone()));
    Some(out)
}

impl Polynomial {
    fn variable(v: usize) -> Polynomial {
        Polynomial(BTreeMap::from([(vec![v], 1)]))
    }

    /// Returns the polynomial of a whole number; other floats would be rounded.
    fn constant(l: Literal) -> Option<Polynomial> {
        #[expect(clippy::cast_possible_truncation, reason = "whole and small")]
        let x = match l {
            Literal::Int(x) => x,
            Literal::Float(x) if x.fract() == 0.0 && x.abs() < 1e6 => x as i128,
            Literal::Float(_) | Literal::Bool(_) => return None,
        };
        Polynomial::default().plus(&Polynomial(BTreeMap::from([(vec![], x)])), 1)
    }

    fn plus(&self, other: &Polynomial, times: i128) -> Option<Polynomial> {
        let mut out = self.clone();
        for (term, k) in &other.0 {
            let sum = out.0.entry(term.clone()).or_default();
            *sum = sum.checked_add(k.checked_mul(times)?)?;
        }
        out.0.retain(|_, k| *k != 0);
        (out.0.len() <= TERMS).then_some(out)
    }

    fn times(&self, other: &Polynomial) -> Option<Polynomial> {
        let mut out = Polynomial::default();
        for (a, k) in &self.0 {
            let mut row = BTreeMap::new();
            for (b, l) in &other.0 {
                let mut term = [a.as_slice(), b].concat();
                term.sort_unstable();
                if term.len() > FACTORS {
                    return None;
                }
                row.insert(term, k.checked_mul(*l)?);
            }
            out = out.plus(&Polynomial(row), 1)?;
        }
        Some(out)
    }

    /// Returns the polynomial with polynomials for its variables.
    fn with(&self, value: &dyn Fn(usize) -> Option<Polynomial>) -> Option<Polynomial> {
        let mut out = Polynomial::default();
        for (term, k) in &self.0 {
            let mut product = Polynomial(BTreeMap::from([(vec![], *k)]));
            for v in term {
                product = product.times(&value(*v)?)?;
            }
            out = out.plus(&product, 1)?;
        }
        Some(out)
    }
}
