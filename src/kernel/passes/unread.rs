//! Elements of temporaries that no kernel reads are not computed.
//!
//! A product whose results are needed below the diagonal alone, such as the scores of causal attention, is one of whole matrices
//! for the rules. The conditions under which its elements are read, as conditions on their places, say which work-groups have
//! anything to do, and which elements are stored.

use crate::kernel::analysis::masks::{Read, conditions, most, or};
use crate::kernel::ir::facts::Guard;
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::{Block, BufferRole, Control, Expr, Kernel, LoopKind, Mem, Program, Stmt};
use rustc_hash::{FxHashMap, FxHashSet};

/// Most stores of a kernel that get conditions of their own: many become vectors, which have no room for conditions.
const STORES: usize = 4;

/// Most loads from a temporary that are looked at.
const READS: usize = 32;

/// The reads of each buffer; `None` if nothing limits one of them.
type Reads = FxHashMap<usize, Option<Vec<Read>>>;

/// Leaves out what is stored to temporaries and not read.
pub fn leave_out(p: &mut Program) {
    if p.kernels.len() < 2 || !p.control.iter().all(|c| matches!(c, Control::Launch(_))) {
        return;
    }
    let mut reads = Reads::default();
    for (b, buffer) in p.buffers.iter().enumerate() {
        if buffer.role == BufferRole::Temp {
            reads.insert(b, Some(vec![]));
        }
    }
    for k in &p.kernels {
        collect(&k.body, &[], &mut reads);
    }
    reads.retain(|b, reads| {
        let m = Mem::Global(*b);
        let storing = |k: &&Kernel| k.body.iter().any(|s| touches(s, m));
        reads.as_ref().is_some_and(|all| !all.is_empty())
            && p.kernels.iter().filter(storing).count() == 1
    });
    if reads.is_empty() {
        return;
    }
    for k in &mut p.kernels {
        let (mut groups, mut checks, mut stores) = (FxHashSet::default(), false, 0);
        for s in &k.body {
            s.visit(&mut |s| {
                s.exprs(&mut |e| checks |= e.has_check());
                stores += usize::from(matches!(s, Stmt::Store(Mem::Global(_), ..)));
            });
        }
        // A check that fails is reported in any case.
        if checks {
            continue;
        }
        if let Some(when) = of_group(&k.body, &reads, &mut groups)
            && let Some(body) = innermost(&mut k.body)
        {
            if when.iter().any(|c| c.range().0 < 0) {
                let all = std::mem::take(body);
                body.push(Stmt::If(Guard(when), all, vec![]));
            } else if stores <= STORES {
                guard_stores(body, &reads);
            }
        }
    }
}

/// Whether a statement stores to a buffer, or uses it in another way than loading an element.
fn touches(s: &Stmt, m: Mem) -> bool {
    let mut found = false;
    s.visit(&mut |s| {
        found |= matches!(s, Stmt::Store(to, ..) | Stmt::Atomic(_, to, ..) if *to == m);
    });
    found
}

/// Adds the reads in a block, where conditions hold.
fn collect(b: &Block, when: &[Index], out: &mut Reads) {
    let with = |more: Vec<Index>| [when, &more[..]].concat();
    for s in b {
        s.exprs(&mut |e| collect_expr(e, when, out));
        match s {
            Stmt::If(g, yes, no) => {
                collect(yes, &with(g.0.clone()), out);
                let fails = match &g.0[..] {
                    [one] => vec![one.times(-1).plus(-1)],
                    _ => vec![],
                };
                collect(no, &with(fails), out);
            }
            Stmt::Branch(c, yes, no) => {
                collect(yes, &with(conditions(c, true)), out);
                collect(no, &with(conditions(c, false)), out);
            }
            Stmt::Loop { var, lo, hi, body, .. } => {
                let i = Index::from(var.clone());
                let bounds = [i.sub(lo), hi.sub(&i).plus(-1)];
                collect(body, &with(bounds.into_iter().filter(|b| b.range().0 < 0).collect()), out);
            }
            // What an atomic operation reads has no limit.
            Stmt::Atomic(_, Mem::Global(b), ..) => _ = out.remove(b),
            s => s.blocks().into_iter().for_each(|b| collect(b, when, out)),
        }
    }
}

fn collect_expr(e: &Expr, when: &[Index], out: &mut Reads) {
    match e {
        Expr::If(c, yes, no) if c.ty().width == 1 => {
            collect_expr(c, when, out);
            collect_expr(yes, &[when, &conditions(c, true)[..]].concat(), out);
            collect_expr(no, &[when, &conditions(c, false)[..]].concat(), out);
        }
        Expr::Guarded(g, yes, no) => {
            collect_expr(yes, &[when, &g.0[..]].concat(), out);
            collect_expr(no, when, out);
        }
        Expr::Load(Mem::Global(b), t, at) => {
            if let Some(all) = out.get_mut(b)
                && let Some(reads) = all
            {
                let hi = i64::try_from(t.width).unwrap_or(i64::MAX) - 1;
                let lane = Index::from(Var { id: u32::MAX, name: "lane".into(), lo: 0, hi });
                match Read::of(&at.add(&lane), when) {
                    Some(read) if reads.len() < READS => reads.push(read),
                    _ => *all = None,
                }
            }
            at.visit_data(&mut |e| collect_expr(e, when, out));
        }
        Expr::Op(_, _, es) | Expr::Checked(_, es) | Expr::Vector(es) | Expr::Products(_, es) => {
            es.iter().for_each(|e| collect_expr(e, when, out));
        }
        Expr::If(c, yes, no) => [c, yes, no].into_iter().for_each(|e| collect_expr(e, when, out)),
        Expr::Splat(e, _) | Expr::Lane(e, _) | Expr::Matrices(_, e) => collect_expr(e, when, out),
        Expr::Index(i, _) | Expr::Load(_, _, i) => {
            i.visit_data(&mut |e| collect_expr(e, when, out));
        }
        Expr::Lit(_) | Expr::Arg(..) | Expr::Reg(_) => {}
    }
}

/// Returns the conditions under which an element at a place of a buffer is read.
fn needed(reads: &[Read], place: &Index) -> Vec<Index> {
    let each = reads.iter().map(|r| r.at(place));
    each.reduce(|a, b| or(&a, &b)).unwrap_or_default()
}

/// Returns the conditions under which some element that a work-group stores is read; `None` if none are known, or nothing is
/// stored. `groups` has the numbers of the group around the block.
fn of_group(b: &Block, reads: &Reads, groups: &mut FxHashSet<u32>) -> Option<Vec<Index>> {
    let mut out: Option<Vec<Index>> = None;
    for s in b {
        let when = match s {
            Stmt::Store(Mem::Global(b), at, e) => {
                let Some(Some(reads)) = reads.get(b) else { return None };
                let hi = i64::try_from(e.ty().width).unwrap_or(i64::MAX) - 1;
                let lane = Index::from(Var { id: u32::MAX, name: "lane".into(), lo: 0, hi });
                let inside = |v: &Var| !groups.contains(&v.id);
                let all = needed(reads, &at.add(&lane)).into_iter();
                let known = all.filter_map(|c| most(&c, &inside)).filter(|c| !c.has_data());
                Some(known.collect())
            }
            Stmt::Atomic(_, Mem::Global(_), ..) => return None,
            s => {
                if let Stmt::Loop { kind: LoopKind::Wrg(_), var, .. } = s {
                    groups.insert(var.id);
                }
                let mut stores = false;
                s.visit(&mut |s| {
                    stores |= matches!(s, Stmt::Store(Mem::Global(_), ..) | Stmt::Atomic(..));
                });
                if !stores {
                    continue;
                }
                let mut all: Option<Vec<Index>> = None;
                for b in s.blocks().into_iter().filter(|b| !b.is_empty()) {
                    let mut stores = false;
                    b.iter().for_each(|s| {
                        s.visit(&mut |s| stores |= matches!(s, Stmt::Store(Mem::Global(_), ..)));
                    });
                    if stores {
                        let when = of_group(b, reads, groups)?;
                        all = Some(all.map_or_else(|| when.clone(), |all| or(&all, &when)));
                    }
                }
                all
            }
        };
        let Some(when) = when else { continue };
        out = Some(out.map_or_else(|| when.clone(), |all| or(&all, &when)));
    }
    out
}

/// Returns the body of the loops over work-groups, if there is nothing beside them.
fn innermost(b: &mut Block) -> Option<&mut Block> {
    match b.as_mut_slice() {
        [Stmt::Loop { kind: LoopKind::Wrg(_), body, .. }] => {
            let nested = matches!(&body[..], [Stmt::Loop { kind: LoopKind::Wrg(_), .. }]);
            if nested { innermost(body) } else { Some(body) }
        }
        _ => None,
    }
}

/// Stores only what is read.
fn guard_stores(b: &mut Block, reads: &Reads) {
    for s in b {
        s.blocks_mut().into_iter().for_each(|b| guard_stores(b, reads));
        let Stmt::Store(Mem::Global(b), at, e) = s else { continue };
        let Some(Some(reads)) = reads.get(b) else { continue };
        let hi = i64::try_from(e.ty().width).unwrap_or(i64::MAX) - 1;
        let lane = Index::from(Var { id: u32::MAX, name: "lane".into(), lo: 0, hi });
        let all = needed(reads, &at.add(&lane)).into_iter();
        let when: Vec<Index> = all.filter_map(|c| most(&c, &|v| v.id == u32::MAX)).collect();
        let when: Vec<Index> = when.into_iter().filter(|c| c.range().0 < 0).collect();
        if !when.is_empty() {
            let store = std::mem::replace(s, Stmt::Once(vec![]));
            *s = Stmt::If(Guard(when), vec![store], vec![]);
        }
    }
}
