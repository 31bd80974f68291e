//! Checks that the low-level patterns are nested as the device hierarchy allows.
//!
//! Work-groups contain local work-items (or warps, which contain lanes). Global work-items may not be inside
//! work-groups. Each dimension may be distributed only once on a path. The algorithmic patterns are not restricted,
//! since they are not yet mapped to the hierarchy.

use super::builtins::pattern_name;
use crate::diag::{Code, Diagnostic, Source, Span};
use crate::lang::typed::{Expr, ExprKind, Fun, Prim};
use std::sync::Arc;

/// Returns the errors of nesting in an entry's body.
pub fn check(source: &Arc<Source>, body: &Expr) -> Vec<Diagnostic> {
    let mut walk = Walk { source, path: vec![], found: vec![] };
    walk.expr(body);
    walk.found
}

struct Walk<'s> {
    source: &'s Arc<Source>,
    /// The parallel maps around the current expression, outermost first.
    path: Vec<(Prim, Span)>,
    found: Vec<Diagnostic>,
}

/// Returns the name of a parallel map with its dimension.
fn spelling(prim: Prim) -> String {
    let name = pattern_name(prim, 1);
    match prim {
        Prim::MapWrg(d) | Prim::MapLcl(d) | Prim::MapGlb(d) => format!("`{name} {d}`"),
        _ => format!("`{name}`"),
    }
}

impl Walk<'_> {
    fn inside(&self, wanted: fn(Prim) -> bool) -> Option<(Prim, Span)> {
        self.path.iter().copied().find(|(p, _)| wanted(*p))
    }

    fn fail(&mut self, prim: Prim, span: Span, why: &str, help: &str, outer: Option<(Prim, Span)>) {
        let d = Diagnostic::error(Code::IllNested, format!("{} {why}", spelling(prim)))
            .at(self.source, span, "")
            .help(help);
        self.found.push(match outer {
            Some((p, at)) if at != span => d.also(at, format!("inside this {}", spelling(p))),
            Some(_) | None => d,
        });
    }

    /// Checks a pattern against its path. Returns whether it is a parallel map.
    fn place(&mut self, prim: Prim, span: Span) -> bool {
        let wrg = self.inside(|p| matches!(p, Prim::MapWrg(_)));
        let glb = self.inside(|p| matches!(p, Prim::MapGlb(_)));
        let lcl = self.inside(|p| matches!(p, Prim::MapLcl(_)));
        let warp = self.inside(|p| p == Prim::MapWarp);
        let parallel = match prim {
            Prim::MapWrg(_) => {
                let inner = lcl.or(glb).or(warp);
                if inner.is_some() {
                    self.fail(
                        prim,
                        span,
                        "inside a map over work-items",
                        "work-groups are outermost",
                        inner,
                    );
                }
                true
            }
            Prim::MapGlb(_) => {
                let outer = wrg.or(lcl).or(warp);
                if outer.is_some() {
                    let help = "inside `mapWrg`, distribute over the work-group with `mapLcl`";
                    self.fail(prim, span, "inside a work-group", help, outer);
                }
                true
            }
            Prim::MapLcl(_) => {
                if wrg.is_none() {
                    let help = "put it inside the function of a `mapWrg`, or use `mapGlb`";
                    self.fail(prim, span, "outside `mapWrg`", help, glb);
                } else if warp.is_some() {
                    self.fail(
                        prim,
                        span,
                        "inside `mapWarp`",
                        "distribute over a warp with `mapLane`",
                        warp,
                    );
                }
                true
            }
            Prim::MapWarp => {
                if wrg.is_none() {
                    self.fail(
                        prim,
                        span,
                        "outside `mapWrg`",
                        "put it inside the function of a `mapWrg`",
                        glb,
                    );
                } else if lcl.is_some() {
                    self.fail(
                        prim,
                        span,
                        "inside `mapLcl`",
                        "use either warps or local work-items",
                        lcl,
                    );
                }
                true
            }
            Prim::MapLane => {
                if warp.is_none() {
                    self.fail(
                        prim,
                        span,
                        "outside `mapWarp`",
                        "put it inside the function of a `mapWarp`",
                        None,
                    );
                }
                true
            }
            Prim::ToLocal => {
                if wrg.is_none() {
                    let help = "local memory belongs to a work-group: put it inside the function of a `mapWrg`";
                    self.fail(prim, span, "that no `mapWrg` encloses", help, glb);
                }
                false
            }
            _ => false,
        };
        let twice = self.path.iter().copied().find(|(p, _)| *p == prim);
        if parallel && twice.is_some() {
            let help =
                "a dimension (or level) distributes once on a path: use another one, or `mapSeq`";
            self.fail(prim, span, "inside itself", help, twice);
        }
        parallel
    }

    fn fun(&mut self, fun: &Fun) {
        self.expr(&fun.body);
    }

    fn expr(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Lit(_) | ExprKind::Var(_) | ExprKind::Size(_) => {}
            ExprKind::Tuple(parts) | ExprKind::Scalar(_, parts) => {
                parts.iter().for_each(|p| self.expr(p));
            }
            ExprKind::Proj(x, _) => self.expr(x),
            ExprKind::Index(a, b) | ExprKind::Let(_, a, b) => {
                self.expr(a);
                self.expr(b);
            }
            ExprKind::If(c, a, b) => [c, a, b].into_iter().for_each(|x| self.expr(x)),
            ExprKind::LoopFor { init, bound, body, .. } => {
                [init, bound, body].into_iter().for_each(|x| self.expr(x));
            }
            ExprKind::LoopWhile { init, cond, body, .. } => {
                [init, cond, body].into_iter().for_each(|x| self.expr(x));
            }
            ExprKind::Prim { prim, funs, args, .. } => {
                args.iter().for_each(|a| self.expr(a));
                let parallel = self.place(*prim, e.span);
                if parallel {
                    self.path.push((*prim, e.span));
                }
                funs.iter().for_each(|f| self.fun(f));
                if parallel {
                    self.path.pop();
                }
            }
        }
    }
}
