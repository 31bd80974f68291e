//! Resolves guards: removes those that ranges decide, and moves the others out of loops.
//!
//! A sequential loop whose body is guarded by conditions that are affine in the loop variable is
//! split. In the main part, every such condition is known to hold; the parts before and after it
//! keep their guards. Conditions that do not change in the loop are tested once, outside.
//!
//! A work-item whose code is near the border of a padded array for a few work-items only, in several dimensions or outside
//! loops, has two versions of its code: one for the interior, in which every guard and every clamped index is known, and one
//! for the border, which keeps them. Split loops would multiply with each dimension.

use crate::kernel::ir::facts::{Facts, Guard};
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::walk::{rebuild, rebuilt};
use crate::kernel::ir::{Block, Expr, Kernel, LoopKind, Stmt};
use crate::lang::typed::ScalarOp;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Resolves the guards of a kernel.
pub fn resolve(k: &mut Kernel) {
    k.body.iter_mut().for_each(|s| clamp(s, &mut vec![]));
    let cx = Cx {
        facts: Facts::default(),
        scope: BTreeSet::new(),
        remainder: false,
        version: Version::Only,
        shared: false,
    };
    k.body = cx.block(&k.body);
}

/// Replaces a guarded load of a padded array, `i <= last ? a[i] : a[last]`, by one load with a
/// clamped index, `a[min(i, last)]`, if `i` does not change in the enclosing sequential loops. The
/// loops then need not be split for the guard, and the load can be hoisted.
fn clamp(s: &mut Stmt, loops: &mut Vec<u32>) {
    if !loops.is_empty() && matches!(s, Stmt::Decl(..) | Stmt::Set(..) | Stmt::Store(..)) {
        rebuild(s, &mut |e| clamped(e, loops));
    }
    let var = match s {
        Stmt::Loop { kind: LoopKind::Seq, var, .. } => Some(var.id),
        _ => None,
    };
    loops.extend(var);
    s.blocks_mut().into_iter().flatten().for_each(|s| clamp(s, loops));
    if var.is_some() {
        loops.pop();
    }
}

fn clamped(e: &Expr, loops: &[u32]) -> Expr {
    if let Expr::Guarded(g, a, b) = e
        && let (Expr::Load(m, t, i), Expr::Load(n, u, last)) = (&**a, &**b)
        && (m, t) == (n, u)
        && t.width == 1
        && !i.has_data()
        && !loops.iter().any(|v| i.mentions(*v))
        && *g == Guard::not_negative(&last.sub(i))
    {
        return Expr::Load(*m, *t, i.lesser(last));
    }
    // Leave the lanes of a vector alone, so that they stay neighbours in memory.
    rebuilt(e, &mut |e, _| match e {
        Expr::Vector(_) => e.clone(),
        e => clamped(e, loops),
    })
}

#[derive(Clone)]
struct Cx {
    facts: Facts,
    /// Variables of the enclosing loops.
    scope: BTreeSet<u32>,
    /// Whether the code is in the guarded part of a split loop. There, only innermost loops are
    /// split again, so that the code does not grow exponentially with the depth of a nest.
    remainder: bool,
    version: Version,
    /// Whether the code is inside a loop over the work-items of a group.
    shared: bool,
}

/// The version of the code, of those for a padded array.
#[derive(Clone, Copy, PartialEq)]
enum Version {
    /// The only one so far.
    Only,
    /// The version for the interior, where clamped indices are resolved.
    Interior,
    /// The version for the border, whose guards stay.
    Border,
}

/// Maximum number of expressions in code that gets a second version.
const EXPRESSIONS: usize = 4096;

/// Code inside a loop gets two versions, and not the loop, if it is at the border in less than this share of the loop's
/// executions at the border.
const DEEPER: f64 = 0.5;

/// Fewest of the work-items, as a share, that must be in the interior for a second version of the code.
const INTERIOR: f64 = 0.75;

impl Cx {
    fn knowing(&self, g: &Guard) -> Cx {
        Cx { facts: self.facts.with(g), ..self.clone() }
    }

    fn denying(&self, g: &Guard) -> Cx {
        Cx { facts: self.facts.without(g), ..self.clone() }
    }

    fn block(&self, b: &Block) -> Block {
        let mut out = vec![];
        for s in b {
            self.stmt(s, &mut out);
        }
        out
    }

    fn stmt(&self, s: &Stmt, out: &mut Block) {
        match s {
            Stmt::Decl(r, e) => out.push(Stmt::Decl(r.clone(), e.as_ref().map(|e| self.expr(e)))),
            Stmt::Set(r, e) => out.push(Stmt::Set(r.clone(), self.expr(e))),
            Stmt::Store(m, i, e) => {
                out.push(Stmt::Store(*m, self.resolved(i), self.expr(e)));
            }
            Stmt::Atomic(update, m, i, e) => {
                out.push(Stmt::Atomic(update.clone(), *m, i.clone(), self.expr(e)));
            }
            Stmt::Barrier { .. } => out.push(s.clone()),
            Stmt::Once(b) => out.push(Stmt::Once(self.block(b))),
            Stmt::Branch(c, a, b) => match self.expr(c) {
                c if c.is_true() => out.extend(self.block(a)),
                c if c.is_false() => out.extend(self.block(b)),
                c => out.push(Stmt::Branch(c, self.block(a), self.block(b))),
            },
            Stmt::While(a, c, b) => {
                out.push(Stmt::While(self.block(a), self.expr(c), self.block(b)));
            }
            Stmt::If(g, a, b) => match self.facts.decide(g) {
                Some(true) => out.extend(self.block(a)),
                Some(false) => out.extend(self.block(b)),
                None => {
                    let (a, b) = (self.knowing(g).block(a), self.denying(g).block(b));
                    if !(a.is_empty() && b.is_empty()) {
                        out.push(Stmt::If(g.clone(), a, b));
                    }
                }
            },
            Stmt::Loop { kind, var, lo, hi, body } => {
                let l = Loop { kind: *kind, var, body };
                if *kind == LoopKind::Seq {
                    self.sequential(&l, lo, hi, out);
                } else {
                    out.extend(self.part(&l, lo, hi, &Guard::default()));
                }
            }
        }
    }

    fn expr(&self, e: &Expr) -> Expr {
        let go = |e: &Arc<Expr>| Arc::new(self.expr(e));
        match e {
            Expr::Index(..) | Expr::Load(..) if e.has_check() => {
                rebuilt(e, &mut |e, _| self.expr(e))
            }
            Expr::Index(i, t) => Expr::Index(self.resolved(i), *t),
            Expr::Load(m, t, i) => Expr::Load(*m, *t, self.resolved(i)),
            Expr::Lit(_) | Expr::Arg(..) | Expr::Reg(_) => e.clone(),
            Expr::Op(op, t, es) => Expr::Op(*op, *t, es.iter().map(|e| self.expr(e)).collect()),
            Expr::Checked(check, es) => {
                Expr::Checked(*check, es.iter().map(|e| self.checked(e)).collect())
            }
            Expr::Vector(es) => Expr::vector(es.iter().map(|e| self.expr(e)).collect()),
            Expr::Products(of, es) => {
                Expr::Products(*of, es.iter().map(|e| self.expr(e)).collect())
            }
            Expr::If(c, a, b) => Expr::If(go(c), go(a), go(b)),
            Expr::Splat(e, w) => Expr::Splat(go(e), *w),
            Expr::Lane(e, k) => self.expr(e).lane(*k),
            Expr::Matrices(turned, e) => Expr::Matrices(*turned, go(e)),
            Expr::Guarded(g, a, b) => match self.facts.decide(g) {
                Some(true) => self.expr(a),
                Some(false) => self.expr(b),
                None => Expr::Guarded(
                    g.clone(),
                    Arc::new(self.knowing(g).expr(a)),
                    Arc::new(self.denying(g).expr(b)),
                ),
            },
        }
    }

    /// Simplifies an operand of a check. If the check is known to be needed, its condition is
    /// dropped.
    fn checked(&self, e: &Expr) -> Expr {
        match self.expr(e) {
            Expr::Op(ScalarOp::Select, _, es) if es[0].is_true() => es[1].clone(),
            e => e,
        }
    }

    /// Returns the loop over a part of its range, in which `known` holds.
    fn part(&self, l: &Loop<'_>, lo: &Index, hi: &Index, known: &Guard) -> Option<Stmt> {
        if let (Some(a), Some(b)) = (lo.as_constant(), hi.as_constant())
            && a >= b
        {
            return None;
        }
        let mut inside =
            Cx { facts: self.facts.with_loop(l.var, lo, hi).with(known), ..self.clone() };
        inside.scope.insert(l.var.id);
        inside.shared |= matches!(l.kind, LoopKind::Lcl(_));
        let body = inside.versions(l.kind, l.body);
        (!body.is_empty()).then(|| Stmt::Loop {
            kind: l.kind,
            var: l.var.clone(),
            lo: lo.clone(),
            hi: hi.clone(),
            body,
        })
    }

    /// Returns the body of a loop, in two versions if that pays.
    fn versions(&self, kind: LoopKind, body: &Block) -> Block {
        let Some((g, missing)) = self.interior(kind, body) else { return self.block(body) };
        if self.versions_of(body).is_some_and(|deeper| deeper < DEEPER * missing) {
            return self.block(body);
        }
        let inner = Cx { version: Version::Interior, ..self.knowing(&g) };
        let outer = Cx { version: Version::Border, ..self.clone() };
        vec![Stmt::If(g, inner.block(body), outer.block(body))]
    }

    /// Returns the condition for the interior of padded arrays, if code with this body of a loop can have two versions, and
    /// the share of its executions that are at the border.
    fn interior(&self, kind: LoopKind, body: &Block) -> Option<(Guard, f64)> {
        if self.version != Version::Only || (kind == LoopKind::Seq && !self.shared) {
            return None;
        }
        let (mut sides, mut count, mut parallel) = (BTreeSet::new(), 0, false);
        for s in body {
            s.visit(&mut |s| {
                parallel |= matches!(s, Stmt::Loop { kind, .. } if *kind != LoopKind::Seq);
                if let Stmt::Store(_, i, _) = s {
                    extremes(i, &mut sides);
                }
                s.exprs(&mut |e| {
                    e.visit(&mut |e| {
                        count += 1;
                        match e {
                            Expr::Load(_, _, i) | Expr::Index(i, _) => extremes(i, &mut sides),
                            Expr::Guarded(g, ..) => {
                                sides.extend(g.0.iter().map(|c| [c.clone(), c.clone()]));
                            }
                            _ => {}
                        }
                    });
                });
            });
        }
        if parallel || sides.is_empty() || count > EXPRESSIONS {
            return None;
        }
        // What an extreme contains is known before the extreme itself.
        let mut sides: Vec<[Index; 2]> = sides.into_iter().collect();
        sides.sort_by_cached_key(|[a, _]| {
            let mut inner = 0;
            a.visit_extremes(&mut |_, _| inner += 1);
            inner
        });
        let (mut g, mut missing) = (Guard::default(), 0.0_f64);
        for side in sides {
            let known = self.facts.with(&g);
            let [a, b] = side.map(|c| c.resolved(&|x| known.prove(x)));
            let decided = |c: &Index| known.decide(&Guard(vec![c.clone()])).is_some();
            if a.has_data() || decided(&a) || decided(&b) {
                continue;
            }
            let least = [a, b].into_iter().filter_map(|c| self.least(&c)).collect::<Vec<_>>();
            // A guard inside a window, which is the same everywhere.
            if least.iter().all(|c| c.as_constant().is_some()) {
                continue;
            }
            let (share, most) = least
                .into_iter()
                .map(|c| {
                    let (lo, hi) = c.range();
                    ((hi as f64 + 1.0) / (hi as f64 - lo as f64 + 1.0), c)
                })
                .max_by(|(a, _), (b, _)| a.total_cmp(b))
                .filter(|(share, _)| *share >= INTERIOR)?;
            missing += 1.0 - share;
            g = g.and(&Guard::not_negative(&most));
        }
        let of_dimension = |c: &Index| {
            let mut vars = BTreeSet::new();
            c.visit_vars(&mut |v| {
                vars.insert(v.id);
            });
            vars
        };
        let dimensions: BTreeSet<BTreeSet<u32>> = g.0.iter().map(of_dimension).collect();
        let several = dimensions.len() > 1 || !body.iter().any(has_loop);
        (several && g.0.len() > 1).then_some((g, missing))
    }

    /// Returns the least share at the border of the code inside a loop that can have two versions.
    fn versions_inside(&self, l: &Loop<'_>, lo: &Index, hi: &Index) -> Option<f64> {
        let mut inside = Cx { facts: self.facts.with_loop(l.var, lo, hi), ..self.clone() };
        inside.scope.insert(l.var.id);
        inside.shared |= matches!(l.kind, LoopKind::Lcl(_));
        let here = inside.interior(l.kind, l.body).map(|(_, missing)| missing);
        here.into_iter().chain(inside.versions_of(l.body)).min_by(f64::total_cmp)
    }

    /// As [`Cx::versions_inside`], of the loops of a block.
    fn versions_of(&self, b: &Block) -> Option<f64> {
        let of_loop = |s: &Stmt| match s {
            Stmt::Loop { kind, var, lo, hi, body } => {
                self.versions_inside(&Loop { kind: *kind, var, body }, lo, hi)
            }
            _ => None,
        };
        b.iter().filter_map(of_loop).min_by(f64::total_cmp)
    }

    /// Returns an index; in the interior, without minima and maxima.
    fn resolved(&self, i: &Index) -> Index {
        match self.version {
            Version::Interior => i.resolved(&|x| self.facts.prove(x)),
            Version::Only | Version::Border => i.clone(),
        }
    }

    fn sequential(&self, l: &Loop<'_>, lo: &Index, hi: &Index, out: &mut Block) {
        if self.version == Version::Border || self.versions_inside(l, lo, hi).is_some() {
            out.extend(self.part(l, lo, hi, &Guard::default()));
            return;
        }
        let inside = self.facts.with_loop(l.var, lo, hi);
        let mut conditions = BTreeSet::new();
        conditions_of(l.body, &mut conditions);
        let innermost = !l.body.iter().any(has_loop);
        let (mut fixed, mut moving) = (Guard::default(), Guard::default());
        let mut exact = true;
        for c in &conditions {
            let g = Guard(vec![c.clone()]);
            if inside.decide(&g).is_some() {
                continue;
            }
            let Some((k, rest)) = c.linear_in(l.var.id) else {
                continue;
            };
            let Some(least) = self.least(&rest) else {
                continue;
            };
            if k == 0 {
                if least == rest {
                    fixed = fixed.and(&g);
                }
                continue;
            }
            exact &= least == rest;
            let worst = least.add(&Index::from(l.var.clone()).times(k));
            moving = moving.and(&Guard(vec![worst]));
        }
        if !fixed.0.is_empty() {
            let (mut yes, mut no) = (vec![], vec![]);
            self.knowing(&fixed).sequential(l, lo, hi, &mut yes);
            let cx = self.denying(&fixed);
            // If one of several conditions fails, others may still hold: keep the guards.
            if fixed.0.len() == 1 {
                cx.sequential(l, lo, hi, &mut no);
            } else {
                no.extend(cx.part(l, lo, hi, &Guard::default()));
            }
            out.push(Stmt::If(fixed, yes, no));
            return;
        }
        if moving.0.is_empty() || (self.remainder && !innermost) {
            out.extend(self.part(l, lo, hi, &Guard::default()));
            return;
        }
        let (mut first, mut last) = (lo.clone(), hi.clone());
        for c in &moving.0 {
            let Some((k, rest)) = c.linear_in(l.var.id) else {
                continue;
            };
            if k < 0 {
                // -|k| v + rest >= 0
                last = last.lesser(&rest.div(-k).plus(1));
            } else {
                first = first.greater(&rest.times(-1).plus(k - 1).div(k));
            }
        }
        let first = first.lesser(hi);
        let rest = Cx { remainder: true, ..self.clone() };
        if first != *lo {
            out.extend(rest.part(l, lo, &first, &Guard::default()));
        }
        out.extend(self.part(l, &first, &last, &moving));
        // A loop whose end is before its start does nothing, so the remaining part starts after
        // both.
        let last = last.greater(&first);
        if last != *hi {
            // After the main part, the condition is known to fail if it is the only one and its
            // bound is exact.
            let fails = match moving.0.as_slice() {
                [c] if exact && first == *lo => Guard(vec![c.times(-1).plus(-1)]),
                _ => Guard::default(),
            };
            out.extend(rest.part(l, &last, hi, &fails));
        }
    }

    /// Returns the index with each term that is not in scope replaced by its minimum; `None` if
    /// there is none.
    fn least(&self, x: &Index) -> Option<Index> {
        let mut out = Index::from(x.constant());
        for (a, _) in x.terms() {
            let one = x.part(a);
            let mut visible = !one.has_data();
            one.visit_vars(&mut |v: &Var| visible &= self.scope.contains(&v.id));
            if visible {
                out = out.add(&one);
            } else if one.has_data() {
                return None;
            } else {
                out = out.plus(one.range().0);
            }
        }
        Some(out)
    }
}

/// Adds the two differences of the sides of every minimum and maximum in an index: one of them is not negative.
fn extremes(i: &Index, sides: &mut BTreeSet<[Index; 2]>) {
    i.visit_extremes(&mut |x, y| {
        sides.insert([x.sub(y), y.sub(x)]);
    });
}

struct Loop<'a> {
    kind: LoopKind,
    var: &'a Var,
    body: &'a Block,
}

fn has_loop(s: &Stmt) -> bool {
    let mut found = false;
    s.visit(&mut |s| found |= matches!(s, Stmt::Loop { .. }));
    found
}

/// Collects every condition that guards code in the block.
fn conditions_of(b: &Block, out: &mut BTreeSet<Index>) {
    for s in b {
        s.visit(&mut |s| {
            if let Stmt::If(g, ..) = s {
                out.extend(g.0.iter().cloned());
            }
            s.exprs(&mut |e| {
                e.visit(&mut |e| {
                    if let Expr::Guarded(g, ..) = e {
                        out.extend(g.0.iter().cloned());
                    }
                });
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::calculus::size::SizeEnv;
    use crate::kernel::ir::{Block, Expr, Stmt};
    use crate::kernel::lower;
    use crate::kernel::lower::testing::{options, term};

    /// Number of guarded expressions, and of minima and maxima in the places of loads.
    fn tests_of(b: &Block) -> usize {
        let mut n = 0;
        for s in b {
            s.visit(&mut |s| {
                s.exprs(&mut |e| {
                    e.visit(&mut |e| match e {
                        Expr::Guarded(..) => n += 1,
                        Expr::Load(_, _, i) => i.visit_extremes(&mut |_, _| n += 1),
                        _ => {}
                    });
                });
            });
        }
        n
    }

    /// Returns the numbers of tests of the two versions of each code that has two.
    fn versions(text: &str) -> Vec<(usize, usize)> {
        let term = term(text, &[("u", "[64][512]f32")]);
        let program = lower(&term, &SizeEnv::default(), &options()).expect("lowers");
        let mut found = vec![];
        for s in &program.kernels[0].body {
            s.visit(&mut |s| {
                if let Stmt::If(_, a, b) = s {
                    found.push((tests_of(a), tests_of(b)));
                }
            });
        }
        found
    }

    #[test]
    fn the_interior_of_padded_arrays_tests_nothing() {
        let windows = "map transpose . slide 3 1 64 . map (slide 3 1 512) . padClamp 1 66 . \
            map (padClamp 1 514) . u";
        let sums = "reduceSeq (+) 0.0 . join";
        let found = versions(&format!("mapWrg 0 (mapLcl 0 ({sums})) . {windows}"));
        assert!(matches!(found.as_slice(), [(0, border)] if *border > 0), "{found:?}");
        // A work-item that goes through rows and columns: its loops are split, and their main parts test nothing.
        let found = versions(&format!("mapGlb 0 (mapSeq ({sums})) . {windows}"));
        assert!(found.iter().all(|(inside, _)| *inside == 0), "{found:?}");
    }
}
