//! Makes loads rounds ahead: while a work-item computes the steps of a round, the loads of later rounds are under way.
//!
//! A kernel with few work-items waits for memory most of the time, since no others compute meanwhile. Each load at the beginning of a
//! round has a queue of registers, one for each round that is under way.

use crate::kernel::ir::facts::Guard;
use crate::kernel::ir::index::Index;
use crate::kernel::ir::walk::{Fresh, with_var_in};
use crate::kernel::ir::{Block, Expr, Kernel, LoopKind, Mem, Reg, Stmt};

/// A loop over rounds that loads at the beginning of each round what it needs of some memories.
#[derive(Debug, PartialEq, Eq)]
pub struct Ahead {
    /// The counter.
    pub var: u32,
    /// The number of rounds.
    pub count: i64,
    /// The number of rounds whose loads are under way.
    pub under_way: usize,
    /// The memories. No round stores where a later one loads.
    pub from: Vec<Mem>,
}

/// Changes these loops of a kernel.
pub fn load(k: &mut Kernel, loops: &[Ahead], fresh: &mut Fresh) {
    if !loops.is_empty() {
        block(&mut k.body, loops, fresh);
    }
}

fn block(b: &mut Block, loops: &[Ahead], fresh: &mut Fresh) {
    let mut out = Vec::with_capacity(b.len());
    for mut s in b.drain(..) {
        s.blocks_mut().into_iter().for_each(|b| block(b, loops, fresh));
        if let Stmt::Loop { kind: LoopKind::Seq, var, lo, hi, body } = &mut s
            && lo.as_constant() == Some(0)
            && let Some(ahead) =
                loops.iter().find(|a| a.var == var.id && Some(a.count) == hi.as_constant())
        {
            let counter = Index::from(var.clone());
            out.extend(queued(body, &counter, ahead, fresh));
        }
        out.push(s);
    }
    *b = out;
}

/// Gives the loads of a round queues. Returns the loads of the first rounds.
fn queued(body: &mut Block, counter: &Index, ahead: &Ahead, fresh: &mut Fresh) -> Block {
    let (mut before, mut now, mut next, mut rest) = (vec![], vec![], vec![], vec![]);
    let under_way = i64::try_from(ahead.under_way).unwrap_or(1);
    for s in body.drain(..) {
        match s {
            Stmt::Decl(r, Some(load)) if ahead.is_made(&load) => {
                let at = |place: &Index| with_var_in(&load, ahead.var, place);
                let queue: Vec<Reg> = (0..under_way).map(|_| fresh.reg(load.ty())).collect();
                for (round, q) in (0..).zip(&queue) {
                    before.push(Stmt::Decl(q.clone(), Some(at(&Index::from(round)))));
                }
                now.push(Stmt::Decl(r, queue.first().cloned().map(Expr::Reg)));
                for two in queue.windows(2) {
                    now.push(Stmt::Set(two[0].clone(), Expr::Reg(two[1].clone())));
                }
                let last = queue.last().cloned();
                next.extend(last.map(|q| Stmt::Set(q, at(&counter.plus(under_way)))));
            }
            s => rest.push(s),
        }
    }
    if !next.is_empty() {
        let exists = Guard::less(&counter.plus(under_way), &Index::from(ahead.count));
        now.push(Stmt::If(exists, next, vec![]));
    }
    now.append(&mut rest);
    *body = now;
    before
}

impl Ahead {
    /// Whether a value is a load that can be made rounds ahead.
    fn is_made(&self, e: &Expr) -> bool {
        matches!(e, Expr::Load(m, _, i) if self.from.contains(m) && !i.has_data() && i.mentions(self.var))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ir::ElemTy;
    use crate::kernel::ir::index::Var;
    use crate::lang::types::ScalarType::F32;
    use std::collections::BTreeSet;

    #[test]
    fn loads_have_queues() {
        let ty = ElemTy { scalar: F32, width: 4 };
        let reg = |id: u32| Reg { id, name: format!("t{id}").into(), ty };
        let var = Var { id: 1, name: "i".into(), lo: 0, hi: 9 };
        let place = Index::from(var.clone()).times(4);
        let load = |m: usize, i: &Index| Expr::Load(Mem::Global(m), ty, i.clone());
        let store = Stmt::Store(Mem::Global(2), place.clone(), Expr::Reg(reg(2)));
        let other = Stmt::Decl(reg(3), Some(load(1, &place)));
        let body = vec![Stmt::Decl(reg(2), Some(load(0, &place))), store.clone(), other.clone()];
        let (lo, hi) = (Index::from(0), Index::from(10));
        let mut b = vec![Stmt::Loop { kind: LoopKind::Seq, var, lo, hi, body }];
        let ahead = Ahead { var: 1, count: 10, under_way: 2, from: vec![Mem::Global(0)] };
        let mut fresh = Fresh { next: 10, first: 0, reserved: BTreeSet::new() };
        block(&mut b, &[ahead], &mut fresh);
        let [first, second, Stmt::Loop { body, .. }] = b.as_slice() else { panic!("{b:?}") };
        let begun = |id, at: i64| Stmt::Decl(reg(id), Some(load(0, &Index::from(at))));
        assert_eq!([first, second], [&begun(10, 0), &begun(11, 4)]);
        let Stmt::If(guard, next, _) = &body[2] else { panic!("{body:?}") };
        let i = Var { id: 1, name: "i".into(), lo: 0, hi: 9 };
        assert_eq!(*guard, Guard::less(&Index::from(i).plus(2), &Index::from(10)));
        assert_eq!(next[..], [Stmt::Set(reg(11), load(0, &place.plus(8)))]);
        let value = |id| Expr::Reg(reg(id));
        assert_eq!(body[0], Stmt::Decl(reg(2), Some(value(10))));
        assert_eq!(body[1], Stmt::Set(reg(10), value(11)));
        assert_eq!(body[3..], [store, other]);
    }
}
