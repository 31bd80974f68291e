//! Leaves out the first and the last steps of reductions if they change nothing: a mask makes what they add zero.
//!
//! A sum of values that are weighted by a softmax of masked scores goes through all values, though weights are zero behind the
//! end of a sequence, or after the present place. With bounds that the mask gives, the loop loads only what counts.

use super::masked::is_neutral;
use crate::kernel::analysis::masks::{Masks, conditions, most, or};
use crate::kernel::ir::index::Index;
use crate::kernel::ir::{Block, Expr, LoopKind, Mem, Program, Stmt};
use rustc_hash::{FxHashMap, FxHashSet};

/// Fewest steps of a loop for which bounds pay.
const STEPS: i64 = 32;

/// The bounds of loops, by their counters.
type Bounds = FxHashMap<u32, (Index, Index)>;

/// Gives loops the bounds that masks give. Arithmetic must be relaxed.
pub fn leave_out(p: &mut Program) {
    let masks = Masks::of(p);
    let mut found: Vec<Bounds> = vec![];
    for (k, kernel) in p.kernels.iter().enumerate() {
        let mut bounds = Bounds::default();
        find(&kernel.body, &masks, k, &mut bounds);
        found.push(bounds);
    }
    for (kernel, bounds) in p.kernels.iter_mut().zip(&found) {
        if !bounds.is_empty() {
            set(&mut kernel.body, bounds);
        }
    }
}

fn set(b: &mut Block, bounds: &Bounds) {
    for s in b {
        if let Stmt::Loop { var, lo, hi, .. } = s
            && let Some(found) = bounds.get(&var.id)
        {
            (*lo, *hi) = found.clone();
        }
        s.blocks_mut().into_iter().for_each(|b| set(b, bounds));
    }
}

/// Finds the bounds of the loops in a block of a kernel.
fn find(b: &Block, masks: &Masks, k: usize, out: &mut Bounds) {
    for s in b {
        if let Stmt::Loop { kind: LoopKind::Seq, var, lo, hi, body } = s
            && hi.sub(lo).as_constant().is_some_and(|n| n >= STEPS)
            && loads(body)
            && let Some(when) = effective(body, masks, k)
        {
            let own = declared(body);
            let (mut least, mut end) = (lo.clone(), hi.clone());
            // What every effect needs. One condition for each side: proofs go through all minima and maxima.
            for c in when.into_iter().reduce(|a, b| or(&a, &b)).unwrap_or_default() {
                let Some((n, rest)) = c.linear_in(var.id) else { continue };
                if mentions(&c, &own) || rest.has_division() {
                    continue;
                }
                // A quotient is one of natural numbers.
                let natural = |i: Index, n: i64| {
                    if n == 1 { i } else { i.plus(n - 1).greater(&0.into()).div(n) }
                };
                if n < 0 && end == *hi {
                    end = end.lesser(&natural(rest.plus(1), -n));
                } else if n > 0 && least == *lo {
                    least = least.greater(&natural(rest.times(-1), n));
                }
            }
            if (&least, &end) != (lo, hi) {
                out.insert(var.id, (least, end));
            }
        }
        s.blocks().into_iter().for_each(|b| find(b, masks, k, out));
    }
}

/// Returns the conditions under which statements have an effect, for each of them that may have one; `None` if there is one of
/// which nothing is known.
fn effective(b: &Block, masks: &Masks, k: usize) -> Option<Vec<Vec<Index>>> {
    let mut out = vec![];
    for s in b {
        match s {
            Stmt::Decl(_, e) if !e.as_ref().is_some_and(Expr::has_check) => {}
            Stmt::Set(r, Expr::Op(op, t, es)) if t.width == 1 => {
                let is_old = |e: &Expr| *e == Expr::Reg(r.clone());
                let x = match &es[..] {
                    [a, x] if is_old(a) => x,
                    [x, a] if is_old(a) => x,
                    _ => return None,
                };
                let known = masks.value(Some(k), x)?;
                if x.has_check() || !is_neutral(*op, known.value, true) {
                    return None;
                }
                out.push(known.unless);
            }
            Stmt::Loop { kind, var, lo, hi, body } if !matches!(kind, LoopKind::Wrg(_)) => {
                if lo.has_data() || hi.has_data() {
                    return None;
                }
                let inner = effective(body, masks, k)?.into_iter();
                let over = |c: &Index| most(c, &|v| v.id == var.id);
                out.extend(inner.map(|all| all.iter().filter_map(over).collect()));
            }
            Stmt::Branch(c, yes, no) if no.is_empty() && !c.has_check() => {
                let when = conditions(c, true);
                let inner = effective(yes, masks, k)?.into_iter();
                out.extend(inner.map(|all| [&all[..], &when[..]].concat()));
            }
            Stmt::If(g, yes, no) if no.is_empty() && !g.0.iter().any(Index::has_data) => {
                let inner = effective(yes, masks, k)?.into_iter();
                out.extend(inner.map(|all| [&all[..], &g.0[..]].concat()));
            }
            _ => return None,
        }
    }
    Some(out)
}

/// Whether a block loads from global memory.
fn loads(b: &Block) -> bool {
    let mut found = false;
    for s in b {
        s.visit(&mut |s| {
            s.exprs(&mut |e| {
                e.visit(&mut |e| found |= matches!(e, Expr::Load(Mem::Global(_), ..)));
            });
        });
    }
    found
}

/// The registers that a block sets, and the counters of its loops.
fn declared(b: &Block) -> FxHashSet<u32> {
    let mut found = FxHashSet::default();
    for s in b {
        s.visit(&mut |s| {
            found.extend(s.assigned().map(|r| r.id));
            match s {
                Stmt::Decl(r, _) => _ = found.insert(r.id),
                Stmt::Loop { var, .. } => _ = found.insert(var.id),
                _ => {}
            }
        });
    }
    found
}

/// Whether an index mentions registers or counters among these.
fn mentions(i: &Index, these: &FxHashSet<u32>) -> bool {
    let mut found = false;
    i.visit_vars(&mut |v| found |= these.contains(&v.id));
    i.visit_data(&mut |e| {
        e.visit(&mut |e| found |= matches!(e, Expr::Reg(r) if these.contains(&r.id)));
    });
    found
}
