//! Register pressure: the bytes of registers and of small private arrays that are live at once.
//!
//! A value is live from where it is computed to its last use, as in Appel, Modern Compiler Implementation, chapter 10. In a loop,
//! what the loop takes from outside is live all the time. A compiler may move code so that less is live, and what it makes for
//! addresses is not counted, so this is an estimate.

use super::trip_count::Trips;
use crate::kernel::ir::{Block, Expr, Kernel, LoopKind, Mem, Stmt};
use std::collections::{BTreeMap, BTreeSet};

/// What is live: a register, by its number, or a private array.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Reg(u32),
    Array(usize),
}

/// Bytes by which the numbers of live bytes are told apart where registers are read.
const STEP: usize = 64;

/// What is live at once in a kernel.
pub(super) struct Pressure {
    /// The most bytes that are live at once in a block and how often a work-item runs the block, for those blocks that no other one
    /// exceeds in both.
    pub(super) blocks: Vec<(usize, f64)>,
    /// The bytes of registers that a work-item reads while so many bytes are live.
    pub(super) reads: Vec<(usize, f64)>,
}

/// Returns what is live at once in a kernel. `spilled` are the private arrays that are not in registers.
pub(super) fn of(kernel: &Kernel, spilled: &BTreeMap<Mem, f64>, trips: &Trips) -> Pressure {
    let mut walk = Walk {
        kernel,
        spilled,
        trips,
        live: BTreeMap::new(),
        left: BTreeMap::new(),
        found: vec![],
        reads: BTreeMap::new(),
    };
    walk.left = walk.touched(&kernel.body);
    walk.block(&kernel.body, 1.0);
    let mut found = walk.found;
    found.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
    let mut most = 0.0;
    found.retain(|(_, times)| {
        let more = *times > most;
        most = most.max(*times);
        more
    });
    Pressure { blocks: found, reads: walk.reads.into_iter().collect() }
}

struct Walk<'a> {
    kernel: &'a Kernel,
    spilled: &'a BTreeMap<Mem, f64>,
    trips: &'a Trips,
    /// The bytes of what is live after the statement at hand.
    live: BTreeMap<Value, usize>,
    /// How often each array is touched in front of the statement at hand.
    left: BTreeMap<Value, usize>,
    found: Vec<(usize, f64)>,
    reads: BTreeMap<usize, f64>,
}

impl Walk<'_> {
    /// Goes through a block from its end. `times` is how often a work-item runs it.
    fn block(&mut self, b: &Block, times: f64) {
        let mut most = self.bytes();
        for s in b.iter().rev() {
            self.stmt(s, times);
            most = most.max(self.bytes());
        }
        self.found.push((most, times));
    }

    fn bytes(&self) -> usize {
        self.live.values().sum()
    }

    fn stmt(&mut self, s: &Stmt, times: f64) {
        match s {
            Stmt::Decl(r, _) | Stmt::Set(r, _) => {
                self.live.remove(&Value::Reg(r.id));
            }
            Stmt::Loop { kind, lo, hi, body, .. } => {
                let trips = self.trips.of_loop(lo, hi, body);
                let group: usize = self.kernel.group.iter().product();
                let trips = match kind {
                    LoopKind::Seq => trips,
                    LoopKind::Lcl(_) => (trips / group.max(1) as f64).ceil(),
                    _ => 1.0,
                };
                self.hold(body);
                self.block(body, times * trips);
            }
            Stmt::While(first, _, second) => {
                let times = times * self.trips.of_while(second);
                self.hold(first);
                self.hold(second);
                self.block(second, times);
                self.block(first, times);
            }
            _ if s.blocks().is_empty() => {}
            _ => {
                let after = self.live.clone();
                let mut before = BTreeMap::new();
                for b in s.blocks() {
                    self.live.clone_from(&after);
                    self.block(b, times);
                    before.append(&mut self.live);
                }
                self.live = after;
                self.live.append(&mut before);
            }
        }
        let mut read = 0;
        s.exprs(&mut |e| {
            let mut used = vec![];
            e.visit(&mut |e| {
                if let Some(value) = self.read_by(e) {
                    used.push(value);
                    read += e.ty().bytes();
                }
            });
            self.touch(used);
        });
        if read > 0 {
            let live = self.bytes().next_multiple_of(STEP);
            *self.reads.entry(live).or_default() += times * read as f64;
        }
        if let Stmt::Store(m, ..) = s {
            self.touch(self.array(*m));
        }
    }

    /// Takes values as live. An array is live between the first and the last place where it is touched.
    fn touch(&mut self, values: impl IntoIterator<Item = (Value, usize)>) {
        for (value, bytes) in values {
            match self.left.get_mut(&value) {
                Some(left) if *left <= 1 => {
                    *left = 0;
                    self.live.remove(&value);
                }
                Some(left) => {
                    *left -= 1;
                    self.live.insert(value, bytes);
                }
                None => {
                    self.live.insert(value, bytes);
                }
            }
        }
    }

    /// Takes what a loop needs from outside as live.
    fn hold(&mut self, body: &Block) {
        let (mut own, mut used) = (BTreeSet::new(), BTreeMap::new());
        body.iter().for_each(|s| {
            s.visit(&mut |s| {
                match s {
                    Stmt::Decl(r, _) => {
                        own.insert(Value::Reg(r.id));
                    }
                    Stmt::Set(r, _) => {
                        used.insert(Value::Reg(r.id), r.ty.bytes());
                    }
                    Stmt::Store(m, ..) => used.extend(self.array(*m)),
                    _ => {}
                }
                s.exprs(&mut |e| e.visit(&mut |e| used.extend(self.read_by(e))));
            });
        });
        // An array that only the loop touches may be new in each iteration.
        for (value, times) in self.touched(body) {
            if self.left.get(&value) == Some(&times) && !self.live.contains_key(&value) {
                used.remove(&value);
            }
        }
        used.retain(|value, _| !own.contains(value));
        self.live.append(&mut used);
    }

    /// Returns how often a block touches each array, as written.
    fn touched(&self, b: &Block) -> BTreeMap<Value, usize> {
        let mut out: BTreeMap<Value, usize> = BTreeMap::new();
        let mut add = |found: Option<(Value, usize)>| {
            if let Some((value @ Value::Array(_), _)) = found {
                *out.entry(value).or_default() += 1;
            }
        };
        b.iter().for_each(|s| {
            s.visit(&mut |s| {
                if let Stmt::Store(m, ..) = s {
                    add(self.array(*m));
                }
                s.exprs(&mut |e| e.visit(&mut |e| add(self.read_by(e))));
            });
        });
        out
    }

    /// Returns the value that an expression reads, without its parts.
    fn read_by(&self, e: &Expr) -> Option<(Value, usize)> {
        match e {
            Expr::Reg(r) => Some((Value::Reg(r.id), r.ty.bytes())),
            Expr::Load(m, ..) => self.array(*m),
            _ => None,
        }
    }

    /// Returns an array, if it is in registers.
    fn array(&self, m: Mem) -> Option<(Value, usize)> {
        let Mem::Private(i) = m else { return None };
        let array = &self.kernel.privates[i];
        let bytes = array.len * array.scalar.bytes();
        (!self.spilled.contains_key(&m)).then_some((Value::Array(i), bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::scalar::Lit;
    use crate::kernel::ir::index::{Index, Var};
    use crate::kernel::ir::testing::kernel;
    use crate::kernel::ir::{ElemTy, Reg};
    use crate::lang::typed::ScalarOp;
    use crate::lang::types::ScalarType;

    const F32: ElemTy = ElemTy::scalar(ScalarType::F32);

    fn reg(id: u32) -> Reg {
        Reg { id, name: format!("t{id}").into(), ty: F32 }
    }

    fn pressure(body: Block) -> Vec<(usize, f64)> {
        of(&kernel(body), &BTreeMap::new(), &Trips::default()).blocks
    }

    fn sum(a: u32, b: u32) -> Expr {
        Expr::Op(ScalarOp::Add, F32, vec![Expr::Reg(reg(a)), Expr::Reg(reg(b))])
    }

    fn load(r: u32, at: i64) -> Stmt {
        Stmt::Decl(reg(r), Some(Expr::Load(Mem::Global(0), F32, Index::from(at))))
    }

    #[test]
    fn values_live_until_their_last_use() {
        let store = |e| Stmt::Store(Mem::Global(1), Index::from(0), e);
        // 0 and 1 are live at once, then 2 alone.
        let chain = vec![
            load(0, 0),
            load(1, 1),
            Stmt::Decl(reg(2), Some(sum(0, 1))),
            store(Expr::Reg(reg(2))),
        ];
        assert_eq!(pressure(chain), [(8, 1.0)]);
        let all =
            vec![load(0, 0), load(1, 1), load(2, 2), store(sum(0, 1)), store(Expr::Reg(reg(2)))];
        assert_eq!(pressure(all), [(12, 1.0)]);
    }

    #[test]
    fn what_a_loop_needs_is_live_in_it() {
        let var = Var { id: 9, name: "i".into(), lo: 0, hi: 7 };
        let zero = Expr::Lit(Lit::float(ScalarType::F32, 0.0));
        let step = vec![load(2, 0), Stmt::Set(reg(1), sum(1, 2))];
        let body = vec![
            load(0, 0),
            Stmt::Decl(reg(1), Some(zero)),
            Stmt::Loop {
                kind: LoopKind::Seq,
                var,
                lo: Index::from(0),
                hi: Index::from(8),
                body: step,
            },
            Stmt::Store(Mem::Global(1), Index::from(0), sum(0, 1)),
        ];
        // The loop runs eight times with 1 and 2, and 0 is used after it.
        assert_eq!(pressure(body), [(12, 8.0)]);
    }
}
