//! Checks that the low-level patterns are nested as the device hierarchy allows ([`crate::lang::hierarchy`]).
//!
//! The algorithmic patterns are not restricted, since they are not yet mapped to the hierarchy.

use super::builtins::pattern_name;
use crate::diag::{Code, Diagnostic, Source, Span};
use crate::lang::hierarchy::{Place, Rule, Step};
use crate::lang::typed::{Expr, ExprKind, Fun, Prim, ScanKind};
use std::sync::Arc;

/// Returns the errors of nesting in an entry's body.
pub fn check(source: &Arc<Source>, body: &Expr) -> Vec<Diagnostic> {
    let mut walk = Walk { source, path: vec![], found: vec![] };
    walk.expr(body, Place::PROGRAM);
    walk.found
}

struct Walk<'s> {
    source: &'s Arc<Source>,
    /// The parallel maps around the current expression, outermost first.
    path: Vec<(Prim, Span)>,
    found: Vec<Diagnostic>,
}

/// Returns what a pattern asks of the hierarchy; `None` if it may stand anywhere.
fn step(prim: Prim) -> Option<Step> {
    Some(match prim {
        Prim::MapGlb(d) => Step::Glb(d),
        Prim::MapWrg(d) => Step::Wrg(d),
        Prim::MapLcl(d) => Step::Lcl(d),
        Prim::MapWarp => Step::Warp,
        Prim::MapLane => Step::Lane,
        Prim::MapSeq
        | Prim::MapUnroll
        | Prim::ReduceSeq
        | Prim::ReduceUnroll
        | Prim::Scan(ScanKind::Seq) => Step::Loop,
        Prim::ToLocal => Step::Local,
        _ => return None,
    })
}

/// Returns the name of a pattern with its dimension.
fn spelling(prim: Prim) -> String {
    let name = pattern_name(prim, 1);
    match prim {
        Prim::MapWrg(d) | Prim::MapLcl(d) | Prim::MapGlb(d) => format!("`{name} {d}`"),
        _ => format!("`{name}`"),
    }
}

/// What the function of a map over a dimension does with low-level patterns.
#[derive(Clone, Copy, Default)]
struct Stages {
    /// It maps over further dimensions of the same kind.
    akin: bool,
    /// It computes outside these maps.
    other: bool,
}

impl Stages {
    fn of(e: &Expr, outer: Step) -> Stages {
        let mut all = Stages::default();
        let mut add = |e: &Expr| {
            let part = Stages::of(e, outer);
            all = Stages { akin: all.akin || part.akin, other: all.other || part.other };
        };
        e.parts().for_each(&mut add);
        let ExprKind::Prim { prim, funs, .. } = &e.kind else { return all };
        match step(*prim) {
            // What a further dimension reads is computed between the dimensions.
            Some(s) if s.is_akin(outer) => Stages { other: all.akin || all.other, akin: true },
            Some(Step::Local) => {
                funs.iter().for_each(|f| add(&f.body));
                all
            }
            Some(_) => Stages { other: true, ..all },
            None => all,
        }
    }
}

impl Walk<'_> {
    fn fail(&mut self, prim: Prim, step: Step, span: Span, rule: Rule) {
        let d = Diagnostic::error(Code::IllNested, format!("{} {rule}", spelling(prim)))
            .at(self.source, span, "")
            .help(rule.advice());
        let blamed =
            |(p, _): &&(Prim, Span)| self::step(*p).is_some_and(|around| rule.blames(step, around));
        self.found.push(match self.path.iter().find(blamed) {
            Some((p, at)) if *at != span => d.also(*at, format!("inside this {}", spelling(*p))),
            Some(_) | None => d,
        });
    }

    fn expr(&mut self, e: &Expr, at: Place) {
        e.parts().for_each(|part| self.expr(part, at));
        let ExprKind::Prim { prim, funs, .. } = &e.kind else { return };
        let Some(step) = step(*prim) else {
            return funs.iter().for_each(|f| self.expr(&f.body, at));
        };
        let inside = at.enter(step).unwrap_or_else(|rule| {
            self.fail(*prim, step, e.span, rule);
            at
        });
        if step.is_parallel() {
            self.path.push((*prim, e.span));
        }
        for Fun { body, .. } in funs {
            let stages = Stages::of(body, step);
            let between = stages.akin && stages.other;
            self.expr(body, if between { inside.settled() } else { inside });
        }
        if step.is_parallel() {
            self.path.pop();
        }
    }
}
