//! Common subexpression elimination: loads, and values that are worth a register, are computed
//! once.
//!
//! The pass numbers values: expressions get the same number if they apply the same operation to
//! equally numbered parts. A register gets a new number whenever its value may change. The number
//! of a load depends on how often its memory may have changed, either by a store of this work-item
//! or at a barrier, where stores of other work-items become visible. A value is shared from the
//! place where it is computed unconditionally with all later statements of the same block and of
//! its nested blocks. A value that a guard protects is never computed outside that guard, and a
//! value that is used once gets no register.

use crate::calculus::op::products::Products;
use crate::calculus::scalar::Lit;
use crate::kernel::ir::facts::Guard;
use crate::kernel::ir::index::Index;
use crate::kernel::ir::walk::{
    Effects, Fresh, Weight, changed, parts, rebuild, rebuilt, rebuilt_index,
};
use crate::kernel::ir::{Block, Check, ElemTy, Expr, Kernel, Mem, Reg, Stmt};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use rustc_hash::{FxHashMap, FxHashSet};

/// Shares the common subexpressions of a kernel.
pub fn share(k: &mut Kernel, fresh: &mut Fresh) {
    let written = Effects::of(&k.body);
    let mut finder = Finder {
        written: written.stored,
        changed: changed(&k.body),
        values: FxHashMap::default(),
        next: 0,
        regs: FxHashMap::default(),
        epochs: FxHashMap::default(),
        meetings: 0,
        visible: FxHashMap::default(),
        seen: vec![],
        open: vec![],
        uses: vec![],
    };
    finder.block(&k.body);
    if !finder.seen.iter().any(|s| s.count > 1) {
        return;
    }
    let mut sharer = Sharer { seen: finder.seen, uses: finder.uses.into_iter(), fresh };
    k.body = sharer.block(std::mem::take(&mut k.body));
}

/// Number of a value.
type Value = u32;

/// Operation of an expression. Two expressions are equal if their keys and the numbers of their
/// parts are.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Lit(Lit),
    Arg(usize, ScalarType),
    Index(Index, ScalarType),
    /// The last field identifies the state of the memory: the number of stores to it, and of
    /// barriers passed.
    Load(Mem, ElemTy, Index, (u32, u32)),
    Op(ScalarOp, ElemTy),
    Checked(Check),
    If,
    Guarded(Guard),
    Splat(usize),
    Vector,
    Products(Products),
    Matrices(bool),
    Lane(usize),
}

/// A subexpression, in the order of [`parts`].
struct Node {
    value: Value,
    /// Number of nodes in the subexpression, including itself.
    size: usize,
    worth: bool,
}

/// A value that is computed unconditionally when its block runs.
struct Seen {
    value: Value,
    /// Number of uses.
    count: usize,
    /// Register that holds the value.
    holder: Option<Reg>,
}

/// What the rewriting walk does with an expression.
#[derive(Clone, Copy)]
enum Use {
    /// Leaves it in place.
    Here,
    /// Computes it into a register first, if it is used again.
    First(usize),
    /// Reads the register that already holds it.
    Again(usize),
}

struct Finder {
    /// Memories that the kernel stores to; the others do not change while it runs.
    written: FxHashSet<Mem>,
    /// Registers that are set after their declaration.
    changed: FxHashSet<u32>,
    values: FxHashMap<(Key, Vec<Value>), Value>,
    next: Value,
    /// Current value of each register.
    regs: FxHashMap<u32, Value>,
    /// Number of times that each memory may have been stored to.
    epochs: FxHashMap<Mem, u32>,
    /// Number of times that work-items may have synchronised.
    meetings: u32,
    /// For each value that can be shared here, its position in `seen`.
    visible: FxHashMap<Value, usize>,
    seen: Vec<Seen>,
    /// Values that became visible, in order. They are removed at the end of their block.
    open: Vec<Value>,
    uses: Vec<Use>,
}

impl Finder {
    fn new_value(&mut self) -> Value {
        self.next += 1;
        self.next
    }

    fn forget(&mut self, e: &Effects) {
        for r in &e.regs {
            let v = self.new_value();
            self.regs.insert(*r, v);
        }
        for m in &e.stored {
            *self.epochs.entry(*m).or_insert(0) += 1;
        }
        self.meetings += u32::from(e.meets);
    }

    /// Processes a nested block. The values that it computes are not visible after it.
    fn nested(&mut self, b: &Block) {
        let before = self.open.len();
        self.block(b);
        for v in self.open.drain(before..) {
            self.visible.remove(&v);
        }
    }

    fn block(&mut self, b: &Block) {
        for s in b {
            self.stmt(s);
        }
    }

    fn stmt(&mut self, s: &Stmt) {
        if let Stmt::While(head, c, body) = s {
            let mut effects = Effects::default();
            effects.add(s);
            self.forget(&effects);
            self.nested(head);
            // The condition is evaluated again in each iteration, so nothing in it can be shared
            // with later code.
            self.expr(c, true, None);
            self.nested(body);
            self.forget(&effects);
            return;
        }
        let holder = match s {
            Stmt::Decl(r, Some(e)) if !self.changed.contains(&r.id) && r.ty == e.ty() => Some(r),
            _ => None,
        };
        let mut value = None;
        s.exprs(&mut |e| value = Some(self.expr(e, false, holder)));
        match s {
            Stmt::Decl(r, _) | Stmt::Set(r, _) => {
                let v = match value {
                    Some(v) if holder.is_some() => v,
                    _ => self.new_value(),
                };
                self.regs.insert(r.id, v);
            }
            Stmt::Store(m, ..) | Stmt::Atomic(_, m, ..) => {
                *self.epochs.entry(*m).or_insert(0) += 1;
                if let Some(r) = s.assigned() {
                    let v = self.new_value();
                    self.regs.insert(r.id, v);
                }
            }
            Stmt::Barrier { .. } => self.meetings += 1,
            Stmt::Loop { .. } | Stmt::If(..) | Stmt::Branch(..) | Stmt::Once(_) => {
                let effects = s.blocks().into_iter().map(Effects::of).collect::<Vec<_>>();
                if matches!(s, Stmt::Loop { .. }) {
                    effects.iter().for_each(|e| self.forget(e));
                }
                for (b, e) in s.blocks().into_iter().zip(&effects) {
                    self.nested(b);
                    // Neither the other branch nor the code after the statement can rely on the
                    // state that this block leaves.
                    self.forget(e);
                }
            }
            Stmt::While(..) => {}
        }
    }

    /// Numbers an expression of a statement and counts its uses. `lazy` says that the expression
    /// must not be evaluated ahead of the statement.
    fn expr(&mut self, e: &Expr, lazy: bool, holder: Option<&Reg>) -> Value {
        let mut nodes = vec![];
        self.number(e, &mut nodes);
        self.count(e, lazy, holder, &nodes);
        nodes[0].value
    }

    fn number(&mut self, e: &Expr, out: &mut Vec<Node>) -> Weight {
        let at = out.len();
        out.push(Node { value: 0, size: 0, worth: false });
        let mut weight = Weight::default();
        let mut places = vec![];
        parts(e, &mut |part, _| {
            places.push(out.len());
            weight.add(self.number(part, out));
        });
        let weight = Weight::of(e, weight);
        let operands: Vec<Value> = places.iter().map(|p| out[*p].value).collect();
        let key = match e {
            Expr::Reg(r) => {
                let known = self.regs.get(&r.id).copied();
                let value = known.unwrap_or_else(|| {
                    let v = self.new_value();
                    self.regs.insert(r.id, v);
                    v
                });
                out[at] = Node { value, size: 1, worth: false };
                return weight;
            }
            Expr::Lit(l) => Key::Lit(*l),
            Expr::Arg(i, t) => Key::Arg(*i, *t),
            Expr::Index(i, t) => Key::Index(by_value(i, &operands), *t),
            Expr::Load(m, t, i) => {
                let epoch = if self.written.contains(m) {
                    let shared = !matches!(m, Mem::Private(_));
                    let meetings = if shared { self.meetings } else { 0 };
                    (self.epochs.get(m).copied().unwrap_or(0), meetings)
                } else {
                    (0, 0)
                };
                Key::Load(*m, *t, by_value(i, &operands), epoch)
            }
            Expr::Op(op, t, _) => Key::Op(*op, *t),
            Expr::Checked(check, _) => Key::Checked(*check),
            Expr::If(..) => Key::If,
            Expr::Guarded(g, ..) => Key::Guarded(g.clone()),
            Expr::Splat(_, w) => Key::Splat(*w),
            Expr::Vector(_) => Key::Vector,
            Expr::Products(of, _) => Key::Products(*of),
            Expr::Matrices(turned, _) => Key::Matrices(*turned),
            Expr::Lane(_, k) => Key::Lane(*k),
        };
        let next = &mut self.next;
        let value = *self.values.entry((key, operands)).or_insert_with(|| {
            *next += 1;
            *next
        });
        out[at] = Node { value, size: out.len() - at, worth: weight.worth };
        weight
    }

    fn count(&mut self, e: &Expr, lazy: bool, holder: Option<&Reg>, nodes: &[Node]) {
        let Node { value, worth, .. } = nodes[0];
        if worth {
            if let Some(place) = self.visible.get(&value) {
                self.seen[*place].count += 1;
                self.uses.push(Use::Again(*place));
                return;
            }
            if !lazy {
                let place = self.seen.len();
                self.seen.push(Seen { value, count: 1, holder: holder.cloned() });
                self.uses.push(Use::First(place));
                self.count_parts(e, lazy, nodes);
                // The parts are computed before the whole, so the whole becomes visible only after
                // them.
                self.visible.insert(value, place);
                self.open.push(value);
                return;
            }
        }
        self.uses.push(Use::Here);
        self.count_parts(e, lazy, nodes);
    }

    fn count_parts(&mut self, e: &Expr, lazy: bool, nodes: &[Node]) {
        let mut at = 1;
        parts(e, &mut |part, sometimes| {
            let size = nodes[at].size;
            self.count(part, lazy || sometimes, None, &nodes[at..at + size]);
            at += size;
        });
    }
}

/// Returns an index with the numbers of the values in it in place of their text: two registers may hold one value.
fn by_value(i: &Index, values: &[Value]) -> Index {
    let mut values = values.iter();
    rebuilt_index(i, &mut |e| {
        let value = values.next().expect("invariant: a number for each value");
        Expr::Arg(*value as usize, e.ty().scalar)
    })
}

struct Sharer<'a> {
    seen: Vec<Seen>,
    uses: std::vec::IntoIter<Use>,
    fresh: &'a mut Fresh,
}

impl Sharer<'_> {
    fn block(&mut self, b: Block) -> Block {
        let mut out = vec![];
        for mut s in b {
            if let Stmt::While(head, c, body) = s {
                let head = self.block(head);
                let c = self.expr(&c, None, &mut out);
                out.push(Stmt::While(head, c, self.block(body)));
                continue;
            }
            let own = match &s {
                Stmt::Decl(r, _) => Some(r.id),
                _ => None,
            };
            rebuild(&mut s, &mut |e| self.expr(e, own, &mut out));
            for b in s.blocks_mut() {
                *b = self.block(std::mem::take(b));
            }
            out.push(s);
        }
        out
    }

    /// Rewrites an expression, and emits the registers that it needs before it. `own` is the
    /// register that the statement declares, if any.
    fn expr(&mut self, e: &Expr, own: Option<u32>, out: &mut Block) -> Expr {
        match self.uses.next() {
            Some(Use::Again(place)) => {
                let seen = &self.seen[place];
                debug_assert!(seen.holder.is_some(), "value {} has no register", seen.value);
                seen.holder.clone().map_or_else(|| e.clone(), Expr::Reg)
            }
            Some(Use::First(place)) if self.seen[place].count > 1 => {
                let inner = rebuilt(e, &mut |e, _| self.expr(e, None, out));
                let holder = &self.seen[place].holder;
                if own.is_some() && holder.as_ref().map(|r| r.id) == own {
                    return inner;
                }
                let r = self.fresh.reg(e.ty());
                out.push(Stmt::Decl(r.clone(), Some(inner)));
                self.seen[place].holder = Some(r.clone());
                Expr::Reg(r)
            }
            _ => rebuilt(e, &mut |e, _| self.expr(e, None, out)),
        }
    }
}
