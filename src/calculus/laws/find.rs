//! Finds the operators of a program that must keep laws, each with the variables in scope.

use super::decide::keeps_laws;
use crate::diag::Span;
use crate::lang::typed::{Entry, Expr, ExprKind, Fun, Prim, ScanKind, VarId};
use crate::lang::types::Type;

/// The meaning of a variable in scope.
#[derive(Clone, Copy, Debug)]
pub(super) enum Binding<'a> {
    /// The variable has this value.
    Let(VarId, &'a Expr),
    /// The variable is an element of this array; variables with the same `index` are elements at the same
    /// position.
    Element { var: VarId, array: &'a Expr, index: usize },
    /// The variable counts from 0.
    Counter(VarId, &'a Type),
    /// The first type is that of an `iterate`'s parameter, with its own size; the second is the type that it
    /// is matched with.
    Sizes(&'a Type, &'a Type),
}

/// A pattern that relies on laws of its operator.
#[derive(Clone, Debug)]
pub(super) struct Site<'a> {
    pub prim: Prim,
    /// The span of the whole pattern.
    pub span: Span,
    /// The operator, on two elements.
    pub op: &'a Fun,
    /// Its neutral element.
    pub z: &'a Expr,
    /// The elements.
    pub xs: &'a Expr,
    /// Whether the elements may come in any order.
    pub commutes: bool,
    /// The bindings in scope, outermost first.
    pub scope: Vec<Binding<'a>>,
}

impl Site<'_> {
    /// Returns the name of the pattern in programs.
    pub(super) fn name(&self) -> &'static str {
        self.prim.name()
    }
}

/// Returns the operator of a pattern that relies on its laws, the initial value, and whether the elements may
/// come in any order.
pub(super) fn relies<'a>(
    prim: Prim,
    funs: &'a [Fun],
    args: &'a [Expr],
) -> Option<(&'a Fun, &'a Expr, bool)> {
    let commutes = match prim {
        Prim::Reduce | Prim::ReducePart | Prim::Scan(ScanKind::Assoc | ScanKind::Exclusive) => {
            false
        }
        Prim::ReduceComm | Prim::Histogram => true,
        _ => return None,
    };
    let ([op], [z, ..]) = (funs, args) else { return None };
    Some((op, z, commutes))
}

/// Every site of an entry whose operator is not proved to keep its laws.
pub(super) fn sites(entry: &Entry) -> Vec<Site<'_>> {
    let mut walk = Walk { scope: vec![], indices: 0, found: vec![] };
    walk.expr(&entry.body);
    walk.found
}

struct Walk<'a> {
    scope: Vec<Binding<'a>>,
    indices: usize,
    found: Vec<Site<'a>>,
}

impl<'a> Walk<'a> {
    fn under(&mut self, bindings: Vec<Binding<'a>>, e: &'a Expr) {
        let depth = self.scope.len();
        self.scope.extend(bindings);
        self.expr(e);
        self.scope.truncate(depth);
    }

    fn index(&mut self) -> usize {
        self.indices += 1;
        self.indices
    }

    fn expr(&mut self, e: &'a Expr) {
        match &e.kind {
            ExprKind::Lit(_) | ExprKind::Var(_) | ExprKind::Size(_) => {}
            ExprKind::Proj(a, _) => self.expr(a),
            ExprKind::Index(a, b) => [a, b].into_iter().for_each(|e| self.expr(e)),
            ExprKind::Tuple(es) | ExprKind::Scalar(_, es) => es.iter().for_each(|e| self.expr(e)),
            ExprKind::If(a, b, c) => [a, b, c].into_iter().for_each(|e| self.expr(e)),
            ExprKind::Let(v, a, b) => {
                self.expr(a);
                self.under(vec![Binding::Let(*v, a)], b);
            }
            ExprKind::LoopFor { acc, init, index, bound, body } => {
                self.expr(init);
                self.expr(bound);
                let counter = Binding::Counter(*index, &bound.ty);
                self.under(vec![Binding::Let(*acc, init), counter], body);
            }
            ExprKind::LoopWhile { acc, init, cond, body } => {
                self.expr(init);
                for e in [cond, body] {
                    self.under(vec![Binding::Let(*acc, init)], e);
                }
            }
            ExprKind::Prim { prim, funs, args, .. } => {
                args.iter().for_each(|a| self.expr(a));
                self.site(e, *prim, funs, args);
                for f in funs {
                    let bindings = self.parameters(*prim, f, args);
                    self.under(bindings, &f.body);
                }
            }
        }
    }

    fn site(&mut self, e: &'a Expr, prim: Prim, funs: &'a [Fun], args: &'a [Expr]) {
        let (Some((op, z, commutes)), Some(xs)) = (relies(prim, funs, args), args.last()) else {
            return;
        };
        if !keeps_laws(op, z, commutes) {
            let scope = self.scope.clone();
            self.found.push(Site { prim, span: e.span, op, z, xs, commutes, scope });
        }
    }

    /// Returns the meaning of the parameters of a pattern's function; a parameter without a binding may be
    /// anything of its type.
    fn parameters(&mut self, prim: Prim, f: &'a Fun, args: &'a [Expr]) -> Vec<Binding<'a>> {
        let element = |p: &(VarId, Type), array: &'a Expr, index: usize| Binding::Element {
            var: p.0,
            array,
            index,
        };
        match prim {
            Prim::Map
            | Prim::MapWrg(_)
            | Prim::MapLcl(_)
            | Prim::MapGlb(_)
            | Prim::MapSeq
            | Prim::MapUnroll
            | Prim::MapWarp
            | Prim::MapLane => {
                let index = self.index();
                f.params.iter().zip(args).map(|(p, xs)| element(p, xs, index)).collect()
            }
            Prim::Generate => f.params.iter().map(|(v, t)| Binding::Counter(*v, t)).collect(),
            Prim::ToGlobal | Prim::ToLocal | Prim::ToPrivate => {
                let parts = f.params.iter().zip(args);
                parts.map(|((v, _), a)| Binding::Let(*v, a)).collect()
            }
            Prim::Iterate | Prim::IterateSeq => match (f.params.as_slice(), args) {
                ([(v, t)], [x]) => {
                    vec![Binding::Sizes(t, &x.ty), Binding::Let(*v, x)]
                }
                _ => vec![],
            },
            Prim::Reduce
            | Prim::ReduceComm
            | Prim::ReducePart
            | Prim::Scan(ScanKind::Assoc | ScanKind::Exclusive)
            | Prim::Histogram => match args.last() {
                Some(xs) => {
                    let parts = f.params.iter();
                    parts.map(|p| element(p, xs, self.index())).collect()
                }
                None => vec![],
            },
            Prim::ReduceSeq | Prim::ReduceUnroll | Prim::Scan(ScanKind::Seq) => {
                match (f.params.as_slice(), args) {
                    ([(acc, _), x], [z, xs]) => {
                        vec![Binding::Let(*acc, z), element(x, xs, self.index())]
                    }
                    _ => vec![],
                }
            }
            _ => vec![],
        }
    }
}

/// Adds the variables that an expression mentions and does not bind, with their types, in order.
pub(super) fn free(e: &Expr, out: &mut Vec<(VarId, Type)>) {
    let mut bound = vec![];
    free_in(e, &mut bound, out);
}

/// As [`free`], for a function.
pub(super) fn free_of(f: &Fun, out: &mut Vec<(VarId, Type)>) {
    let mut bound = f.params.iter().map(|p| p.0).collect();
    free_in(&f.body, &mut bound, out);
}

fn free_in(e: &Expr, bound: &mut Vec<VarId>, out: &mut Vec<(VarId, Type)>) {
    let depth = bound.len();
    match &e.kind {
        ExprKind::Lit(_) | ExprKind::Size(_) => {}
        ExprKind::Var(v) => {
            if !bound.contains(v) && !out.iter().any(|(known, _)| known == v) {
                out.push((*v, e.ty.clone()));
            }
        }
        ExprKind::Proj(a, _) => free_in(a, bound, out),
        ExprKind::Index(a, b) => [a, b].into_iter().for_each(|e| free_in(e, bound, out)),
        ExprKind::Tuple(es) | ExprKind::Scalar(_, es) => {
            es.iter().for_each(|e| free_in(e, bound, out));
        }
        ExprKind::If(a, b, c) => [a, b, c].into_iter().for_each(|e| free_in(e, bound, out)),
        ExprKind::Let(v, a, b) => {
            free_in(a, bound, out);
            bound.push(*v);
            free_in(b, bound, out);
        }
        ExprKind::LoopFor { acc, init, index, bound: end, body } => {
            [init, end].into_iter().for_each(|e| free_in(e, bound, out));
            bound.extend([*acc, *index]);
            free_in(body, bound, out);
        }
        ExprKind::LoopWhile { acc, init, cond, body } => {
            free_in(init, bound, out);
            bound.push(*acc);
            [cond, body].into_iter().for_each(|e| free_in(e, bound, out));
        }
        ExprKind::Prim { funs, args, .. } => {
            args.iter().for_each(|a| free_in(a, bound, out));
            for f in funs {
                bound.extend(f.params.iter().map(|p| p.0));
                free_in(&f.body, bound, out);
                bound.truncate(depth);
            }
        }
    }
    bound.truncate(depth);
}
