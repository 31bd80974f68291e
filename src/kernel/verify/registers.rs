//! Checks that each register is declared where it is used.

use crate::kernel::ir::{Block, Expr, Reg, Stmt};
use rustc_hash::FxHashSet;

/// Returns a register that code uses outside of the block that declares it, or before.
pub fn undeclared(b: &Block) -> Option<Reg> {
    let mut scope = Scope { declared: FxHashSet::default(), missing: None };
    scope.block(b);
    scope.missing
}

struct Scope {
    /// Registers of the blocks around.
    declared: FxHashSet<u32>,
    missing: Option<Reg>,
}

impl Scope {
    fn block(&mut self, b: &Block) {
        let new = self.stmts(b);
        self.leave(new);
    }

    /// Returns the registers that the statements declare.
    fn stmts(&mut self, b: &Block) -> Vec<u32> {
        let mut new = vec![];
        for s in b {
            // The condition and the body of such a loop see what the head declares.
            if let Stmt::While(head, go_on, body) = s {
                let of_head = self.stmts(head);
                self.expr(go_on);
                self.block(body);
                self.leave(of_head);
                continue;
            }
            s.exprs(&mut |e| self.expr(e));
            match s {
                Stmt::Decl(r, _) => {
                    if self.declared.insert(r.id) {
                        new.push(r.id);
                    }
                }
                Stmt::Set(r, _) => self.used(r),
                Stmt::Atomic(update, ..) => {
                    update.register().into_iter().for_each(|r| self.used(r));
                }
                s => s.blocks().into_iter().for_each(|b| self.block(b)),
            }
        }
        new
    }

    fn leave(&mut self, new: Vec<u32>) {
        for r in new {
            self.declared.remove(&r);
        }
    }

    fn expr(&mut self, e: &Expr) {
        e.visit(&mut |e| {
            if let Expr::Reg(r) = e {
                self.used(r);
            }
        });
    }

    fn used(&mut self, r: &Reg) {
        if self.missing.is_none() && !self.declared.contains(&r.id) {
            self.missing = Some(r.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::undeclared;
    use crate::calculus::scalar::Lit;
    use crate::kernel::ir::{ElemTy, Expr, Reg, Stmt};
    use crate::lang::types::ScalarType;

    #[test]
    fn registers_end_with_their_blocks() {
        let r = Reg { id: 0, name: "t0".into(), ty: ElemTy::scalar(ScalarType::I32) };
        let flag = Expr::Lit(Lit::int(ScalarType::Bool, 1));
        let declares = || Stmt::Decl(r.clone(), None);
        let sets = || Stmt::Set(r.clone(), Expr::Lit(Lit::int(ScalarType::I32, 1)));
        let branch = |b| Stmt::Branch(flag.clone(), b, vec![]);
        let while_true = |head, body| Stmt::While(head, flag.clone(), body);
        let found = |b| undeclared(&b).is_some();
        assert!(!found(vec![declares(), branch(vec![sets()]), sets()]));
        assert!(found(vec![branch(vec![sets()]), declares()]));
        assert!(found(vec![branch(vec![declares(), sets()]), sets()]));
        assert!(!found(vec![while_true(vec![declares()], vec![sets()])]));
        assert!(found(vec![while_true(vec![sets()], vec![declares()])]));
    }
}
