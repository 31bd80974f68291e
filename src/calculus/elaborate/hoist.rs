//! Hoists loop-invariant reductions: a reduction, a scan, a sort or a loop through an array inside a pattern's function, that does
//! not depend on the function's variables, is computed once, in front of the program, or where the last name that it depends on
//! is bound.
//!
//! Only expressions that cost work move. Views of inputs stay where they are, because `cross` is found by
//! constants in place. Nothing moves out of a branch or of a loop's body, which may not run, or out of a low-level map, whose
//! place the program itself has chosen. Reductions that depend on the elements of an outer map are moved by [`super::invariant`].

use super::core::{Ex, Kind, Layout, Var, Vars};
use crate::lang::typed::{Prim, ScanKind};

/// Returns the program with its invariant reductions in front of the maps that they stand in.
pub(super) fn hoist(mut body: Ex, fresh: &mut dyn FnMut() -> Var) -> Ex {
    region(&mut body, fresh);
    body
}

/// Hoists within the program, a branch, or the body of a loop.
fn region(body: &mut Ex, fresh: &mut dyn FnMut() -> Var) {
    let scopes = vec![Scope::default()];
    let mut region =
        Region { scopes, inner: Vars::new(), lets: vec![], derived: Vars::new(), fresh };
    region.walk(body, false);
    region.close(body);
}

/// What follows the binding of names.
#[derive(Default)]
struct Scope {
    /// The names.
    bound: Vars,
    /// The reductions that are computed at its beginning.
    moved: Vec<(Var, Ex)>,
}

struct Region<'f> {
    /// The scopes around the place of the walk, outside the functions of patterns. The first one is the whole region.
    scopes: Vec<Scope>,
    /// Names that functions of patterns bind.
    inner: Vars,
    /// The `let`s in these functions whose values do not depend on the elements of a pattern, and their names.
    lets: Vec<(Layout, Ex)>,
    derived: Vars,
    fresh: &'f mut dyn FnMut() -> Var,
}

impl Region<'_> {
    /// Ends the innermost scope, which is this expression.
    fn close(&mut self, body: &mut Ex) {
        for (v, e) in self.scopes.pop().unwrap_or_default().moved.into_iter().rev() {
            let layout = Layout::Var(v, e.ty.clone());
            let unit = Ex::new(Kind::Unit, body.ty.clone(), body.span);
            *body = std::mem::replace(body, unit).bound(layout, e);
        }
    }

    /// Returns the name of a value that is computed outside the functions around it, with the `let`s that it needs.
    fn name(&mut self, e: &Ex) -> Option<Var> {
        let all = self.scopes.iter().flat_map(|s| &s.moved);
        if let Some((v, _)) = all.into_iter().find(|(_, m)| m.kind == e.kind) {
            return Some(*v);
        }
        if !self.is_fixed(e) {
            return None;
        }
        let e = e.clone().behind(self.lets.iter(), self.fresh);
        let free = e.free();
        let at = self.scopes.iter().rposition(|s| !free.is_disjoint(&s.bound)).unwrap_or(0);
        let v = (self.fresh)();
        self.scopes[at].moved.push((v, e));
        Some(v)
    }

    /// Whether a value does not depend on the elements of a pattern.
    fn is_fixed(&self, e: &Ex) -> bool {
        e.free().intersection(&self.inner).all(|v| self.derived.contains(v))
    }

    /// `inside` says whether the place is in the function of a pattern.
    fn walk(&mut self, e: &mut Ex, inside: bool) {
        if inside
            && works(e)
            && let Some(v) = self.name(e)
        {
            e.kind = Kind::Var(v);
            return;
        }
        let names = |p: &Layout| p.vars().into_iter().map(|(v, _)| v).collect::<Vars>();
        match &mut e.kind {
            Kind::Map(Prim::Map, f, args) => {
                self.inner.extend(f.params.iter().flat_map(names));
                self.walk(&mut f.body, true);
                args.iter_mut().for_each(|a| self.walk(a, inside));
            }
            // The program itself chose where the function of a low-level pattern runs.
            Kind::Map(_, _, args) | Kind::Prim(_, _, _, args) => {
                args.iter_mut().for_each(|a| self.walk(a, inside));
            }
            Kind::Let(p, value, body) => {
                self.walk(value, inside);
                if inside {
                    if self.is_fixed(value) {
                        self.derived.extend(names(p));
                        self.lets.push((p.clone(), (**value).clone()));
                    }
                    self.inner.extend(names(p));
                    self.walk(body, inside);
                } else {
                    self.scopes.push(Scope { bound: names(p), moved: vec![] });
                    self.walk(body, inside);
                    self.close(body);
                }
            }
            Kind::If(c, yes, no) => {
                self.walk(c, inside);
                region(yes, self.fresh);
                region(no, self.fresh);
            }
            Kind::For(init, bound, _, _, body) => {
                self.walk(init, inside);
                self.walk(bound, inside);
                region(body, self.fresh);
            }
            Kind::While(init, _, condition, body) => {
                self.walk(init, inside);
                region(condition, self.fresh);
                region(body, self.fresh);
            }
            _ => e.parts_mut().into_iter().for_each(|part| self.walk(part, inside)),
        }
    }
}

/// Whether an expression does work that is worth a place of its own: it goes through an array.
fn works(e: &Ex) -> bool {
    match &e.kind {
        Kind::Prim(
            Prim::ReduceSeq | Prim::Scan(ScanKind::Seq) | Prim::CountingSort | Prim::Scatter,
            ..,
        ) => true,
        Kind::For(..) => has_array(e),
        kind => reduces(kind),
    }
}

fn has_array(e: &Ex) -> bool {
    e.ty.has_array() || e.parts().iter().any(|(_, part)| has_array(part))
}

/// Whether an expression contains a reduction.
pub(super) fn contains_reduction(e: &Ex) -> bool {
    reduces(&e.kind) || e.parts().iter().any(|(_, part)| contains_reduction(part))
}

/// Whether an expression of this kind is a reduction or a scan.
pub(super) fn reduces(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Prim(
            Prim::Reduce
                | Prim::ReduceComm
                | Prim::ReducePart
                | Prim::Scan(ScanKind::Assoc | ScanKind::Exclusive)
                | Prim::Histogram,
            ..
        )
    )
}
