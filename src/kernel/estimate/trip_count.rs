//! How often loops run.
//!
//! The number of steps of a loop may depend on the work-item, on counters of loops around it, and on scalar arguments of which a
//! value is expected. The integers that a kernel computes of these are known at a few places in the range of every counter, and the
//! steps of a `while` loop are counted there. What data decide is not known.

use super::features::signed;
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::{Block, Check, Expr, Stmt, Update};
use crate::lang::typed::ScalarOp;
use std::collections::{BTreeMap, BTreeSet};

/// Assumed number of iterations of a loop that ends by a condition.
pub const UNKNOWN: f64 = 16.0;

/// Assumed number of tries of a work-item that exchanges an element as one step: another work-item rarely changes it meanwhile.
const TRIES: f64 = 2.0;

/// Where the ranges of counters are looked at, as shares of the ranges. The mean over these places is that over the range for what
/// is linear in the counters, and near it for minima and maxima.
const PLACES: [f64; 4] = [0.125, 0.375, 0.625, 0.875];

/// Most steps that are counted one by one: those of loops whose counter is multiplied, and the like.
const COUNTED: usize = 256;

/// How often the loops of a kernel run.
#[derive(Default)]
pub struct Trips {
    /// By the address of the body. Other loops run as often as their bounds say.
    counts: BTreeMap<*const Stmt, f64>,
}

impl Trips {
    /// Returns how often the loops of a kernel with this body run. `arg` gives the expected values of scalar arguments.
    pub fn of(body: &Block, arg: &dyn Fn(usize) -> Option<f64>) -> Trips {
        let mut needed = false;
        for s in body {
            s.visit(&mut |s| {
                needed |= match s {
                    Stmt::Loop { lo, hi, .. } => lo.has_data() || hi.has_data(),
                    Stmt::While(..) => true,
                    _ => false,
                };
            });
        }
        let mut walk = Walk { arg, counts: BTreeMap::new(), known: BTreeMap::new() };
        if needed {
            walk.block(body);
        }
        Trips { counts: walk.counts }
    }

    /// Returns the trip count of a loop with these bounds and this body.
    pub fn of_loop(&self, lo: &Index, hi: &Index, body: &Block) -> f64 {
        self.counts.get(&body.as_ptr()).copied().unwrap_or_else(|| of_loop(&hi.sub(lo)))
    }

    /// Returns the trip count of a `while` loop with this body.
    pub fn of_while(&self, body: &Block) -> f64 {
        self.counts.get(&body.as_ptr()).copied().unwrap_or(UNKNOWN)
    }
}

/// Returns the trip count of a loop in the middle iteration of the loops around it. The shorter
/// bounds of the last tile matter little if there are many. If the loop has no iterations there, because most work-items
/// are idle, its count is that of the first: an idle work-item costs what a busy one costs.
fn of_loop(length: &Index) -> f64 {
    let middle = |v: &Var| Some(v.lo + (v.hi - v.lo) / 2);
    match length.eval(&middle) {
        Some(n) if n > 0 => signed(n),
        Some(_) => length.eval(&|v| Some(v.lo)).map_or(0.0, |n| signed(n.max(0))),
        None => {
            let (a, b) = length.range();
            f64::midpoint(signed(a.max(0)), signed(b.max(0)))
        }
    }
}

/// The values of registers at one of [`PLACES`].
type Values = BTreeMap<u32, f64>;

struct Walk<'a> {
    arg: &'a dyn Fn(usize) -> Option<f64>,
    counts: BTreeMap<*const Stmt, f64>,
    /// The values of registers at each of [`PLACES`].
    known: BTreeMap<u32, [f64; PLACES.len()]>,
}

impl Walk<'_> {
    fn block(&mut self, b: &Block) {
        b.iter().for_each(|s| self.stmt(s));
    }

    fn stmt(&mut self, s: &Stmt) {
        match s {
            Stmt::Decl(r, Some(e)) | Stmt::Set(r, e) => {
                let at = |k| Place { walk: self, k, own: &Values::new() }.value(e);
                match [at(0), at(1), at(2), at(3)] {
                    [Some(a), Some(b), Some(c), Some(d)] => {
                        self.known.insert(r.id, [a, b, c, d]);
                    }
                    _ => drop(self.known.remove(&r.id)),
                }
            }
            Stmt::Decl(r, None) => drop(self.known.remove(&r.id)),
            Stmt::Loop { lo, hi, body, .. } => {
                if lo.has_data() || hi.has_data() {
                    let length = |k| {
                        let place = Place { walk: self, k, own: &Values::new() };
                        Some((place.index(hi)? - place.index(lo)?).max(0.0))
                    };
                    // If the range of a loaded number is that of its type, it tells nothing.
                    let known = hi.sub(lo).range().1 < i64::from(i32::MAX) / 2;
                    if let Some(n) = mean(&length).or((!known).then_some(UNKNOWN)) {
                        self.counts.insert(body.as_ptr(), n);
                    }
                }
                self.inside(&[body]);
            }
            Stmt::While(head, go_on, body) => {
                let loop_ = Repeated { head, go_on, body, needed: needed(head, go_on, body) };
                let counted: Option<Vec<(f64, Values)>> =
                    (0..PLACES.len()).map(|k| loop_.count(self, k)).collect();
                let exchanges = |s: &Stmt| matches!(s, Stmt::Atomic(Update::Swap(_), ..));
                let trips = match &counted {
                    _ if body.iter().any(|s| any(s, &exchanges)) => TRIES,
                    Some(all) => mean(&|k| Some(all[k].0)).unwrap_or(UNKNOWN),
                    None => UNKNOWN,
                };
                self.counts.insert(body.as_ptr(), trips);
                self.forget(&[head, body]);
                // In the loop, counters have the values of some step.
                let mut counters: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
                for (_, values) in counted.iter().flatten() {
                    for (r, x) in values {
                        counters.entry(*r).or_default().push(*x);
                    }
                }
                for (r, values) in counters {
                    if let Ok(values) = values.try_into() {
                        self.known.insert(r, values);
                    }
                }
                self.block(head);
                self.block(body);
                self.forget(&[head, body]);
            }
            Stmt::If(_, a, b) | Stmt::Branch(_, a, b) => {
                a.iter().for_each(|s| self.stmt(s));
                self.inside(&[b]);
                self.forget(&[a]);
            }
            Stmt::Once(b) => self.inside(&[b]),
            Stmt::Atomic(update, ..) => {
                if let Some(r) = update.register() {
                    self.known.remove(&r.id);
                }
            }
            Stmt::Store(..) | Stmt::Barrier { .. } => {}
        }
    }

    /// Goes through blocks that may run any number of times.
    fn inside(&mut self, blocks: &[&Block]) {
        self.forget(blocks);
        blocks.iter().for_each(|b| self.block(b));
        self.forget(blocks);
    }

    /// Forgets the registers that blocks change.
    fn forget(&mut self, blocks: &[&Block]) {
        for s in blocks.iter().copied().flatten() {
            s.visit(&mut |s| {
                if let Some(r) = s.assigned() {
                    self.known.remove(&r.id);
                }
            });
        }
    }
}

/// A `while` loop.
struct Repeated<'a> {
    head: &'a Block,
    go_on: &'a Expr,
    body: &'a Block,
    /// The registers that decide when it ends.
    needed: BTreeSet<u32>,
}

impl Repeated<'_> {
    /// Returns the number of steps at one of [`PLACES`], and the values of counters in a step there; `None` if data decide.
    fn count(&self, walk: &Walk, k: usize) -> Option<(f64, Values)> {
        let mut own = Values::new();
        // What is known at the beginning of the first steps: the condition's margin and the values of registers.
        let mut begun: Vec<(f64, Values)> = vec![];
        let counter = |share: f64, begun: &[(f64, Values)]| -> Values {
            let [(_, first), (_, second), ..] = begun else { return Values::new() };
            let next = second.iter().filter_map(|(r, b)| Some((*r, *first.get(r)?, *b)));
            next.map(|(r, a, b)| (r, a + (b - a) * share.floor())).collect()
        };
        for step in 0..=COUNTED {
            self.run(self.head, walk, k, &mut own);
            let place = Place { walk, k, own: &own };
            let (margin, sure) = place.margin(&self.resolved())?;
            let most = if sure { f64::INFINITY } else { UNKNOWN };
            if margin <= 0.0 {
                let trips = (step as f64).min(most);
                return Some((trips, counter(trips * PLACES[k], &begun)));
            }
            let mut before = Values::new();
            for r in &self.needed {
                before.extend(place.register(*r).map(|x| (*r, x)));
            }
            begun.push((margin, before));
            if let [(a, _), (b, _), (c, _)] = begun[..]
                && a - b > 0.0
                && a - b == b - c
            {
                let trips = (a / (a - b)).ceil().min(most);
                return Some((trips, counter(trips * PLACES[k], &begun)));
            }
            self.run(self.body, walk, k, &mut own);
        }
        Some((COUNTED as f64, Values::new()))
    }

    /// Runs what decides when the loop ends.
    fn run(&self, b: &Block, walk: &Walk, k: usize, own: &mut Values) {
        for s in b {
            if let Stmt::Decl(r, Some(e)) | Stmt::Set(r, e) = s {
                if self.needed.contains(&r.id) {
                    // Not a number: this differs from what was known in front of the loop.
                    let value = Place { walk, k, own }.value(e).unwrap_or(f64::NAN);
                    own.insert(r.id, value);
                }
                continue;
            }
            s.visit(&mut |s| {
                if let Some(r) = s.assigned() {
                    own.insert(r.id, f64::NAN);
                }
            });
        }
    }

    /// Returns the condition, in place of a register that holds it.
    fn resolved(&self) -> Expr {
        let Expr::Reg(c) = self.go_on else { return self.go_on.clone() };
        let last = self.head.iter().rev().find_map(|s| match s {
            Stmt::Decl(r, Some(e)) | Stmt::Set(r, e) if r.id == c.id => Some(e.clone()),
            _ => None,
        });
        last.unwrap_or_else(|| self.go_on.clone())
    }
}

/// Returns the registers that decide when a loop ends.
fn needed(head: &Block, go_on: &Expr, body: &Block) -> BTreeSet<u32> {
    let mut out = BTreeSet::new();
    let add = |e: &Expr, out: &mut BTreeSet<u32>| {
        e.visit(&mut |e| {
            if let Expr::Reg(r) = e {
                out.insert(r.id);
            }
        });
    };
    add(go_on, &mut out);
    loop {
        let before = out.len();
        for s in head.iter().chain(body) {
            if let Stmt::Decl(r, Some(e)) | Stmt::Set(r, e) = s
                && out.contains(&r.id)
            {
                add(e, &mut out);
            }
        }
        if out.len() == before {
            return out;
        }
    }
}

/// One of [`PLACES`], with the values of registers that differ from what is known outside of a loop.
#[derive(Clone, Copy)]
struct Place<'a> {
    walk: &'a Walk<'a>,
    k: usize,
    own: &'a Values,
}

impl Place<'_> {
    fn register(self, r: u32) -> Option<f64> {
        let own = self.own.get(&r).copied();
        own.or_else(|| Some(self.walk.known.get(&r)?[self.k])).filter(|x| !x.is_nan())
    }

    /// Returns how far a condition is from being false, 0 or less if it is false, and whether that is all: other conditions may end a
    /// loop before. `None` if nothing is known.
    fn margin(self, c: &Expr) -> Option<(f64, bool)> {
        let Expr::Op(op, _, es) = c else { return Some((self.value(c)?, true)) };
        let difference =
            |more: usize, less: usize| Some(self.value(&es[more])? - self.value(&es[less])?);
        let whole = if es.iter().all(|e| e.ty().scalar.is_float()) { 0.0 } else { 1.0 };
        let margin = match op {
            ScalarOp::And => {
                return match (self.margin(&es[0]), self.margin(&es[1])) {
                    (Some(a), Some(b)) => Some((a.0.min(b.0), a.1 && b.1)),
                    (a, b) => a.or(b).map(|(margin, _)| (margin, false)),
                };
            }
            ScalarOp::Lt => difference(1, 0)?,
            ScalarOp::Gt => difference(0, 1)?,
            ScalarOp::Le => difference(1, 0)? + whole,
            ScalarOp::Ge => difference(0, 1)? + whole,
            ScalarOp::Ne => difference(0, 1)?.abs(),
            _ => self.value(c)?,
        };
        Some((margin, true))
    }

    /// Returns the value of an expression, in which nothing wraps around.
    fn value(self, e: &Expr) -> Option<f64> {
        if e.ty().width > 1 {
            return None;
        }
        let truth = |x: bool| if x { 1.0 } else { 0.0 };
        let is_float = |e: &Expr| e.ty().scalar.is_float();
        Some(match e {
            Expr::Lit(l) => l.as_float().or_else(|| Some(l.as_int()? as f64))?,
            Expr::Arg(k, _) => (self.walk.arg)(*k)?,
            Expr::Reg(r) => self.register(r.id)?,
            Expr::Index(i, _) => self.index(i)?,
            Expr::Checked(Check::Index(_), es) => self.value(es.first()?)?,
            Expr::If(c, a, b) => self.value(if self.value(c)? == 0.0 { b } else { a })?,
            Expr::Guarded(_, a, _) => self.value(a)?,
            Expr::Op(op, t, es) => {
                let of = |k: usize| self.value(es.get(k)?);
                match op {
                    ScalarOp::Cast(_) if t.scalar.is_float() => of(0)?,
                    ScalarOp::Cast(_) => of(0)?.trunc(),
                    ScalarOp::Add => of(0)? + of(1)?,
                    ScalarOp::Sub => of(0)? - of(1)?,
                    ScalarOp::Mul => of(0)? * of(1)?,
                    ScalarOp::Div | ScalarOp::Rem if !is_float(e) => {
                        let (a, b) = (of(0)?, of(1)?);
                        let whole = (a / b).trunc();
                        Some(whole)
                            .filter(|x| x.is_finite())
                            .map(|x| if *op == ScalarOp::Div { x } else { a - b * x })?
                    }
                    ScalarOp::Div => of(0)? / of(1)?,
                    ScalarOp::Min => of(0)?.min(of(1)?),
                    ScalarOp::Max => of(0)?.max(of(1)?),
                    ScalarOp::Neg => -of(0)?,
                    ScalarOp::Shl => of(0)? * of(1)?.exp2(),
                    ScalarOp::Shr => (of(0)? / of(1)?.exp2()).floor(),
                    ScalarOp::Lt => truth(of(0)? < of(1)?),
                    ScalarOp::Le => truth(of(0)? <= of(1)?),
                    ScalarOp::Gt => truth(of(0)? > of(1)?),
                    ScalarOp::Ge => truth(of(0)? >= of(1)?),
                    ScalarOp::Eq => truth(of(0)? == of(1)?),
                    ScalarOp::Ne => truth(of(0)? != of(1)?),
                    ScalarOp::And => truth(of(0)? != 0.0 && of(1)? != 0.0),
                    ScalarOp::Or => truth(of(0)? != 0.0 || of(1)? != 0.0),
                    ScalarOp::Not => truth(of(0)? == 0.0),
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    fn index(self, i: &Index) -> Option<f64> {
        // Places are as far from the least value as others are from the greatest one.
        #[expect(clippy::cast_possible_truncation, reason = "an estimate")]
        let at = |v: &Var| {
            let (share, range) = (PLACES[self.k], signed(v.hi - v.lo));
            Some(match share < 0.5 {
                true => v.lo + (range * share).floor() as i64,
                false => v.hi - (range * (1.0 - share)).floor() as i64,
            })
        };
        #[expect(clippy::cast_possible_truncation, reason = "an estimate")]
        let data = |e: &Expr| self.value(e).map(|x| x as i64);
        i.eval_with(&at, &data).map(signed)
    }
}

/// Returns the mean over [`PLACES`].
fn mean(at: &dyn Fn(usize) -> Option<f64>) -> Option<f64> {
    let all: Option<Vec<f64>> = (0..PLACES.len()).map(at).collect();
    Some(all?.into_iter().sum::<f64>() / PLACES.len() as f64)
}

fn any(s: &Stmt, holds: &dyn Fn(&Stmt) -> bool) -> bool {
    let mut found = false;
    s.visit(&mut |s| found |= holds(s));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::scalar::Lit;
    use crate::kernel::ir::{ElemTy, LoopKind, Reg};
    use crate::lang::types::ScalarType;

    const INT: ElemTy = ElemTy::scalar(ScalarType::I32);

    fn reg(id: u32) -> Reg {
        Reg { id, name: format!("t{id}").into(), ty: INT }
    }

    fn lit(n: i128) -> Expr {
        Expr::Lit(Lit::int(ScalarType::I32, n))
    }

    fn op(op: ScalarOp, a: Expr, b: Expr) -> Expr {
        Expr::Op(op, INT, vec![a, b])
    }

    fn var(n: i64) -> Index {
        Index::from(Var { id: 0, name: "i".into(), lo: 0, hi: n - 1 })
    }

    #[test]
    fn loaded_bounds_are_unknown() {
        let of = |range| {
            let hi = Index::data_within(Expr::Reg(reg(7)), range);
            let body = vec![Stmt::Set(reg(0), lit(1))];
            let var = Var { id: 0, name: "i".into(), lo: 0, hi: range.1 - 1 };
            let l = Stmt::Loop { kind: LoopKind::Seq, var, lo: Index::from(0), hi, body };
            let all = vec![l];
            let Some(Stmt::Loop { lo, hi, body, .. }) = all.first() else { return f64::NAN };
            Trips::of(&all, &|_| None).of_loop(lo, hi, body)
        };
        assert_eq!(of((0, i64::from(i32::MAX))).to_bits(), UNKNOWN.to_bits());
        assert_eq!(of((0, 100)).to_bits(), 50f64.to_bits());
    }

    /// The trip count of a loop whose counter, register 0, begins with `first`, behind these statements.
    fn of(before: Block, first: i128, go_on: Expr, next: Expr) -> f64 {
        let body = vec![Stmt::Set(reg(0), next)];
        let all = before
            .into_iter()
            .chain([Stmt::Decl(reg(0), Some(lit(first))), Stmt::While(vec![], go_on, body)]);
        let all: Block = all.collect();
        let Some(Stmt::While(_, _, body)) = all.last() else { return f64::NAN };
        Trips::of(&all, &|k| (k == 0).then_some(100.0)).of_while(body)
    }

    #[test]
    fn counted_loops_in_scalar_functions_have_their_trip_count() {
        let counter = || Expr::Reg(reg(0));
        let below = |bound| op(ScalarOp::Lt, counter(), bound);
        let next = || op(ScalarOp::Add, counter(), lit(1));
        let count = |bound| of(vec![], 0, below(bound), next());
        assert_eq!(count(lit(100)), 100.0);
        assert_eq!(count(lit(-1)), 0.0);
        assert_eq!(count(Expr::Arg(0, ScalarType::I32)), 100.0);
        assert_eq!(count(Expr::Arg(1, ScalarType::I32)), UNKNOWN);
        assert_eq!(count(Expr::Reg(reg(1))), UNKNOWN);
        // A bound that differs between work-items counts as its mean.
        let index = |i: Index| Expr::Index(i, ScalarType::I32);
        assert_eq!(count(index(var(101).plus(1))), 51.0);
        // It may be in a register, as the difference of unsigned numbers.
        let wrap =
            |e| Expr::Op(ScalarOp::Cast(ScalarType::I32), ElemTy::scalar(ScalarType::U32), vec![e]);
        let bound = op(ScalarOp::Sub, wrap(lit(100)), wrap(Expr::Reg(reg(1))));
        let row = Stmt::Decl(reg(1), Some(index(var(101))));
        assert_eq!(of(vec![row], 0, below(bound), next()), 50.0);
        // Other steps, other conditions, and several of them.
        assert_eq!(of(vec![], 5, below(lit(100)), op(ScalarOp::Add, counter(), lit(10))), 10.0);
        let down = op(ScalarOp::Sub, counter(), lit(1));
        assert_eq!(of(vec![], 40, op(ScalarOp::Ge, counter(), lit(0)), down), 41.0);
        assert_eq!(of(vec![], 1, below(lit(1000)), op(ScalarOp::Mul, counter(), lit(2))), 10.0);
        let data = || Expr::Load(crate::kernel::ir::Mem::Global(0), INT, Index::from(0));
        let both = |n| op(ScalarOp::And, below(lit(n)), data());
        assert_eq!(of(vec![], 0, both(5), next()), 5.0);
        assert_eq!(of(vec![], 0, both(500), next()), UNKNOWN);
        assert_eq!(of(vec![], 0, below(data()), next()), UNKNOWN);
        // Nothing is known of a counter that data change.
        assert_eq!(of(vec![], 0, below(lit(100)), op(ScalarOp::Add, counter(), data())), UNKNOWN);
    }

    #[test]
    fn the_counters_of_loops_around_have_values() {
        // for i < 100 do for k < i
        let below = |r, bound| op(ScalarOp::Lt, Expr::Reg(reg(r)), bound);
        let next = |r| Stmt::Set(reg(r), op(ScalarOp::Add, Expr::Reg(reg(r)), lit(1)));
        let inner = Stmt::While(vec![], below(1, Expr::Reg(reg(0))), vec![next(1)]);
        let body = vec![Stmt::Decl(reg(1), Some(lit(0))), inner, next(0)];
        let all =
            vec![Stmt::Decl(reg(0), Some(lit(0))), Stmt::While(vec![], below(0, lit(100)), body)];
        let trips = Trips::of(&all, &|_| None);
        let Stmt::While(_, _, body) = &all[1] else { panic!("a loop") };
        let Stmt::While(_, _, inner) = &body[1] else { panic!("a loop") };
        assert_eq!(trips.of_while(body), 100.0);
        assert!((trips.of_while(inner) - 50.0).abs() <= 1.0);
    }
}
