//! Unrolls loops whose iterations load the same elements.
//!
//! A work-item that computes several neighbouring results, each of a window, loads `a[i]`,
//! `a[i + 1]`, ... in step `i` of its loop over the windows, and all but one of them again in the
//! next step. Several steps written out load each element once, since equal loads become one
//! (`cse.rs`), and neighbours a vector (`wide_accesses.rs`). The order of operations stays.

use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::walk::{Fresh, parts, with_var, with_var_in};
use crate::kernel::ir::{Block, Expr, Kernel, LoopKind, Reg, Stmt};
use rustc_hash::{FxHashMap, FxHashSet};

/// Maximum number of steps that are written out.
const STEPS: i64 = 16;

/// Maximum number of statements that the steps become.
pub(super) const STATEMENTS: usize = 256;

/// Maximum number of elements that the steps load: each has a register.
const ELEMENTS: usize = 64;

/// Unrolls the loops of a kernel that gain by it.
pub fn unroll(k: &mut Kernel, fresh: &mut Fresh) {
    block(&mut k.body, fresh);
}

fn block(b: &mut Block, fresh: &mut Fresh) {
    let mut out = Vec::with_capacity(b.len());
    for mut s in b.drain(..) {
        s.blocks_mut().into_iter().for_each(|b| block(b, fresh));
        unrolled(s, fresh, &mut out);
    }
    *b = out;
}

fn unrolled(s: Stmt, fresh: &mut Fresh, out: &mut Block) {
    let Some((steps, var, (first, end), body)) = counted(&s).and_then(|(var, range, body)| {
        let trips = range.1 - range.0;
        let mut choices: Vec<i64> = [16, 8, 4, 2].into_iter().filter(|n| *n < trips).collect();
        if trips <= STEPS {
            choices.insert(0, trips);
        }
        let steps = choices.into_iter().find(|n| gains(var, range.0, *n, trips / n, body))?;
        Some((steps, var.clone(), range, body.clone()))
    }) else {
        out.push(s);
        return;
    };
    if let Some(rest) = written_out(&var, (first, end), steps, body, fresh, out) {
        unrolled(rest, fresh, out);
    }
}

/// Writes out so many steps of a loop at a time, one after the other. Returns the loop over the steps that are left.
pub(super) fn written_out(
    var: &Var,
    (first, end): (i64, i64),
    steps: i64,
    body: Block,
    fresh: &mut Fresh,
    out: &mut Block,
) -> Option<Stmt> {
    let rounds = (end - first) / steps;
    let counter = rounds_of(var, rounds);
    let mut all = vec![];
    for step in 0..steps {
        let mut copy = body.clone();
        with_var(&mut copy, var.id, &Index::from(counter.clone()).times(steps).plus(first + step));
        all.extend(if step == 0 { copy } else { renamed(copy, fresh) });
    }
    if rounds > 1 {
        let (lo, hi) = (Index::from(0), Index::from(rounds));
        out.push(Stmt::Loop { kind: LoopKind::Seq, var: counter, lo, hi, body: all });
    } else {
        append(out, all, fresh);
    }
    let done = first + rounds * steps;
    (done < end).then(|| {
        let body = if rounds > 0 { renamed(body, fresh) } else { body };
        let (lo, hi) = (Index::from(done), Index::from(end));
        Stmt::Loop { kind: LoopKind::Seq, var: var.clone(), lo, hi, body }
    })
}

/// The variable that counts rounds of several steps.
fn rounds_of(var: &Var, rounds: i64) -> Var {
    Var { lo: 0, hi: rounds - 1, ..var.clone() }
}

/// The variable, the bounds and the body of a loop that only sets registers, if its bounds are
/// known.
fn counted(s: &Stmt) -> Option<(&Var, (i64, i64), &Block)> {
    let Stmt::Loop { kind: LoopKind::Seq, var, lo, hi, body } = s else { return None };
    let range = (lo.as_constant()?, hi.as_constant()?);
    let sets = |s: &Stmt| matches!(s, Stmt::Decl(_, Some(_)) | Stmt::Set(..));
    (range.0 >= 0 && range.1 - range.0 > 1 && body.iter().all(sets)).then_some((var, range, body))
}

/// Whether so many steps load at most three quarters of the elements that they name, because some
/// name the same, and stay within the limits.
fn gains(var: &Var, first: i64, steps: i64, rounds: i64, body: &Block) -> bool {
    let count = usize::try_from(steps).unwrap_or(usize::MAX);
    let mut named: FxHashSet<Expr> = FxHashSet::default();
    for s in body {
        s.exprs(&mut |e| loads(e, &mut named));
    }
    // Without two loads that differ by a constant, no step loads what another one does.
    let all = named.len().saturating_mul(count);
    if named.len() < 2 || body.len().saturating_mul(count) > STATEMENTS {
        return false;
    }
    let counter = Index::from(rounds_of(var, rounds)).times(steps);
    let mut distinct: FxHashSet<Expr> = FxHashSet::default();
    for step in 0..steps {
        let at = counter.plus(first + step);
        distinct.extend(named.iter().map(|e| with_var_in(e, var.id, &at)));
    }
    distinct.len() <= ELEMENTS && distinct.len() * 4 <= all * 3
}

/// The loads of scalars that an expression makes unconditionally, at places that do not depend on
/// data.
fn loads(e: &Expr, found: &mut FxHashSet<Expr>) {
    if let Expr::Load(_, t, i) = e
        && t.width == 1
        && !i.has_data()
    {
        found.insert(e.clone());
    }
    parts(e, &mut |e, lazy| {
        if !lazy {
            loads(e, found);
        }
    });
}

/// Adds code that stood in a loop to a block. Loops for the interior and the border of an array declare the same registers: if the
/// block has them already, the code gets others.
pub(super) fn append(out: &mut Block, code: Block, fresh: &mut Fresh) {
    let declared = |s: &Stmt| if let Stmt::Decl(r, _) = s { Some(r.id) } else { None };
    let before: FxHashSet<u32> = out.iter().filter_map(declared).collect();
    let again = code.iter().filter_map(declared).any(|r| before.contains(&r));
    out.extend(if again { renamed(code, fresh) } else { code });
}

/// Gives the registers that a block and those inside it declare other names.
pub(super) fn renamed(mut b: Block, fresh: &mut Fresh) -> Block {
    fn each(b: &mut Block, f: &mut dyn FnMut(&mut Stmt)) {
        for s in b {
            f(s);
            s.blocks_mut().into_iter().for_each(|b| each(b, f));
        }
    }
    let mut names: FxHashMap<u32, Reg> = FxHashMap::default();
    each(&mut b, &mut |s| {
        if let Stmt::Decl(r, _) = s {
            let new = fresh.reg(r.ty);
            names.insert(std::mem::replace(r, new.clone()).id, new);
        }
    });
    let name = |r: &Reg| names.get(&r.id).unwrap_or(r).clone();
    each(&mut b, &mut |s| {
        s.map_regs(&name);
        if let Some(r) = s.assigned_mut() {
            *r = name(r);
        }
    });
    b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::scalar::Lit;
    use crate::kernel::ir::Mem;
    use crate::kernel::ir::testing::{FLOAT, reg};
    use crate::lang::typed::ScalarOp;
    use std::collections::BTreeSet;

    fn counter(hi: i64) -> Index {
        Index::from(Var { id: 1, name: "i".into(), lo: 0, hi: hi - 1 })
    }

    /// `for i < n { t0 = t0 + a[i]; ..; t3 = t3 + a[i + 3 * apart] }`
    fn sums(n: i64, apart: i64) -> Stmt {
        let add = |k: u32| {
            let x = Expr::Load(Mem::Global(0), FLOAT, counter(n).plus(apart * i64::from(k)));
            Stmt::Set(reg(k), Expr::Op(ScalarOp::Add, FLOAT, vec![Expr::Reg(reg(k)), x]))
        };
        let var = Var { id: 1, name: "i".into(), lo: 0, hi: n - 1 };
        let (lo, hi) = (Index::from(0), Index::from(n));
        let body = (0..4).map(add).collect();
        Stmt::Loop { kind: LoopKind::Seq, var, lo, hi, body }
    }

    /// Returns, for each loop or statement outside loops, its iterations and its loads, each once.
    fn shape(s: Stmt) -> Vec<(i64, usize)> {
        let mut b = vec![s];
        block(&mut b, &mut Fresh { next: 100, first: 0, reserved: BTreeSet::new() });
        let distinct = |b: &[Stmt]| {
            let mut found = FxHashSet::default();
            b.iter().for_each(|s| s.exprs(&mut |e| loads(e, &mut found)));
            found.len()
        };
        let mut out = vec![];
        for s in &b {
            match s {
                Stmt::Loop { hi, lo, body, .. } => {
                    out.push((hi.sub(lo).constant(), distinct(body)));
                }
                s => out.push((1, distinct(std::slice::from_ref(s)))),
            }
        }
        out
    }

    #[test]
    fn steps_that_load_the_same_are_written_out() {
        // Four sums in 16 steps name 64 elements, of which 19 differ.
        assert_eq!(shape(sums(64, 1)), [(4, 19)]);
        // What is left over.
        assert_eq!(shape(sums(36, 1))[..1], [(2, 19)]);
        assert_eq!(shape(sums(36, 1)).len(), 1 + 16);
        // All steps of a short loop.
        assert_eq!(shape(sums(5, 1)).len(), 20);
        // Steps that load different elements stay.
        assert_eq!(shape(sums(64, 64)), [(64, 4)]);
        assert_eq!(shape(sums(1, 1)), [(1, 4)]);
    }

    #[test]
    fn loops_that_end_up_in_one_block_declare_registers_of_their_own() {
        let Stmt::Loop { kind, var, lo, hi, body } = sums(5, 1) else { unreachable!() };
        let zero = Expr::Lit(Lit::float(FLOAT.scalar, 0.0));
        let start = Stmt::Decl(reg(9), Some(zero));
        let body = [vec![start], body].concat();
        let one = Stmt::Loop { kind, var, lo, hi, body };
        let mut b = vec![one.clone(), one];
        block(&mut b, &mut Fresh { next: 100, first: 0, reserved: BTreeSet::new() });
        let declared = |s: &Stmt| if let Stmt::Decl(r, _) = s { Some(r.id) } else { None };
        let all: Vec<u32> = b.iter().filter_map(declared).collect();
        let distinct: FxHashSet<u32> = all.iter().copied().collect();
        assert_eq!((all.len(), distinct.len()), (10, 10));
    }

    #[test]
    fn steps_have_registers_of_their_own() {
        let Stmt::Loop { kind, var, lo, hi, body } = sums(32, 1) else { unreachable!() };
        let double = |s: Stmt| match s {
            Stmt::Set(r, Expr::Op(op, t, es)) => {
                let x = Reg { id: r.id + 10, name: format!("x{}", r.id).into(), ty: FLOAT };
                let held = Stmt::Decl(x.clone(), Some(es[1].clone()));
                vec![held, Stmt::Set(r.clone(), Expr::Op(op, t, vec![Expr::Reg(r), Expr::Reg(x)]))]
            }
            s => vec![s],
        };
        let body = body.into_iter().flat_map(double).collect();
        let mut b = vec![Stmt::Loop { kind, var, lo, hi, body }];
        block(&mut b, &mut Fresh { next: 100, first: 0, reserved: BTreeSet::new() });
        let mut declared = vec![];
        b[0].visit(&mut |s| {
            if let Stmt::Decl(r, _) = s {
                declared.push(r.id);
            }
        });
        assert_eq!(declared.len(), 64);
        assert_eq!(declared.iter().collect::<FxHashSet<_>>().len(), 64);
    }
}
