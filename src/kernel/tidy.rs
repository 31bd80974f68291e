//! Declarations move to the first assignment of their register in the same block.

use super::ir::{Block, Expr, Kernel, Reg, Stmt};

/// Tidies a kernel.
pub fn declarations(k: &mut Kernel) {
    block(&mut k.body);
}

fn mentions(s: &Stmt, r: &Reg) -> bool {
    let mut found = false;
    s.visit(&mut |s| {
        found |= matches!(s, Stmt::Set(x, _) if x.id == r.id);
        s.exprs(&mut |e| e.visit(&mut |e| found |= matches!(e, Expr::Reg(x) if x.id == r.id)));
    });
    found
}

fn block(b: &mut Block) {
    for s in b.iter_mut() {
        match s {
            Stmt::Decl(..) | Stmt::Set(..) | Stmt::Store(..) | Stmt::Barrier { .. } => {}
            Stmt::Loop { body, .. } | Stmt::Once(body) => block(body),
            Stmt::If(_, x, y) | Stmt::Branch(_, x, y) | Stmt::While(x, _, y) => {
                block(x);
                block(y);
            }
        }
    }
    for at in (0..b.len()).rev() {
        let Stmt::Decl(r, None) = &b[at] else {
            continue;
        };
        let r = r.clone();
        let Some(first) = (at + 1..b.len()).find(|k| mentions(&b[*k], &r)) else {
            continue;
        };
        let Stmt::Set(x, e) = &b[first] else { continue };
        let mut reads_itself = false;
        e.visit(&mut |e| reads_itself |= matches!(e, Expr::Reg(y) if y.id == r.id));
        if x.id == r.id && !reads_itself {
            b[first] = Stmt::Decl(r, Some(e.clone()));
            b.remove(at);
        }
    }
}
