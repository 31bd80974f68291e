//! `loopWhile` in a work-item, and counted loops. If the condition of a loop compares a counter with a bound that the loop does not
//! change, it becomes a counted loop of the IR: indices that depend on the counter are then linear, their ranges are known, and a
//! loop with constant bounds can be unrolled, so that arrays it goes through stay in registers.

use super::leaf::{self, Emit};
use super::lowerer::Lowerer;
use super::memory::Storage;
use super::view::{Step, Stop, View};
use crate::calculus::scalar::Lit;
use crate::calculus::term::Term;
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::{Block, Expr, LoopKind, Reg, Stmt};
use crate::lang::typed::ScalarOp;
use std::cell::Cell;

/// Emits a step that updates the state, given the pair of the state and what the step reads besides.
pub type StepOf<'a> = &'a mut dyn FnMut(&mut Lowerer, &View) -> Step<()>;

/// A loop whose steps update their state where it is.
struct Loop<'a> {
    step: StepOf<'a>,
    state: &'a View,
    besides: &'a View,
}

/// A counter of the state: it begins with `lo`, and the loop ends when it is not less than `hi`.
struct Counter {
    reg: Reg,
    lo: Index,
    hi: Index,
}

impl Lowerer {
    /// `loopWhile` in a work-item.
    pub fn item_while(&mut self, f: &Term, x: &View) -> Step<View> {
        let shape = self.views.shape(&f.ty().cod)?;
        let (p, body) = (f.args()[0].chain(), f.args()[1].chain());
        let besides = x.snd()?;
        let state = self.allocate(&shape, None)?;
        self.store(&x.fst()?, &state.dest, &shape)?;
        let arg = View::pair(state.view.clone(), besides.clone());
        self.begin();
        let c = self.read(&p, &arg).and_then(|v| v.expr());
        let head = self.end();
        let c = c?;
        let mut step =
            |me: &mut Lowerer, arg: &View| me.update(&body, arg, &state.dest, &state.owned, &shape);
        if head.is_empty()
            && let Some(last) = self.counted_while(&c, &state, &besides, &mut step)?
        {
            return Ok(last);
        }
        self.begin();
        let done = step(self, &arg);
        let block = self.end();
        done?;
        self.emit(Stmt::While(head, c, block))?;
        Ok(state.view)
    }

    /// Emits a loop while a condition on its state holds as a counted loop, if it is one; returns the last state. The first state
    /// is stored.
    pub fn counted_while(
        &mut self,
        c: &Expr,
        state: &Storage,
        besides: &View,
        step: StepOf,
    ) -> Step<Option<View>> {
        let Some(counter) = self.counter(c, state)? else { return Ok(None) };
        self.counted(&mut Loop { step, state: &state.view, besides }, &counter)
    }

    /// Returns the counter of the state that the condition compares with a bound.
    fn counter(&mut self, c: &Expr, state: &Storage) -> Step<Option<Counter>> {
        let Expr::Op(op, _, sides) = c else { return Ok(None) };
        let ((ScalarOp::Lt, [Expr::Reg(reg), bound]) | (ScalarOp::Gt, [bound, Expr::Reg(reg)])) =
            (op, sides.as_slice())
        else {
            return Ok(None);
        };
        if !is_component(&state.view, reg) {
            return Ok(None);
        }
        let stored = self.blocks.last().and_then(|b| b.iter().rfind(|s| s.assigned() == Some(reg)));
        let Some(Stmt::Set(_, first)) = stored.cloned() else { return Ok(None) };
        if state.owned.is_read_by(bound) || reg.ty.width > 1 || !reg.ty.scalar.is_integer() {
            return Ok(None);
        }
        // Numbers that do not fit into 32 bits are not indices.
        let small = |i: &Index| {
            let (lo, hi) = i.range();
            lo >= i64::from(i32::MIN) && hi <= i64::from(i32::MAX)
        };
        let (Some(lo), Some(hi)) = (self.bound(first)?, self.bound(bound.clone())?) else {
            return Ok(None);
        };
        Ok((small(&lo) && small(&hi)).then(|| Counter { reg: reg.clone(), lo, hi }))
    }

    /// Returns a value as an index. What is computed of data is computed once, here.
    fn bound(&mut self, e: Expr) -> Step<Option<Index>> {
        Ok(match e {
            Expr::Lit(l) => l.as_int().and_then(|n| i64::try_from(n).ok()).map(Index::from),
            Expr::Index(i, _) if !i.has_data() => Some(i),
            e => match e.values() {
                Some(range) => {
                    let e = leaf::bind(&View::Elem(e), self)?.expr()?;
                    Some(Index::data_within(e, range))
                }
                None => None,
            },
        })
    }

    /// Emits the loop as a counted one; returns the last state. Returns `None`, and emits nothing, if the counter does not count, or
    /// if an index into registers would not become constant.
    fn counted(&mut self, l: &mut Loop, c: &Counter) -> Step<Option<View>> {
        let steps = c.hi.sub(&c.lo);
        let counts = Cell::new(true);
        let mark = self.mark();
        self.begin();
        let done = self.on_trial(
            |done: &Step<()>| done.is_ok() && counts.get(),
            |me| match steps.as_constant() {
                Some(n) => {
                    me.repeat(n, false, &mut |me, k| me.counted_step(l, c, &c.lo.add(k), &counts))
                }
                None => me.counted_from_to(l, c, &counts),
            },
        );
        match done {
            Ok(()) if counts.get() => {}
            // If a loop around is unrolled, the index is constant, or the loop is unrolled, too.
            Err(Stop::Dynamic(i)) if self.is_unrollable(&i) => return Err(Stop::Dynamic(i)),
            Err(Stop::Dynamic(_)) if self.is_unrollable(&steps) => {
                return Err(Stop::Dynamic(steps));
            }
            Ok(()) | Err(Stop::Dynamic(_)) => {
                self.back_to(mark);
                return Ok(None);
            }
            Err(e) => return Err(e),
        }
        let block = self.end();
        let unused = |s: &Stmt| matches!(s, Stmt::Decl(r, _) | Stmt::Set(r, _) if *r == c.reg);
        self.blocks.iter_mut().for_each(|b| b.retain(|s| !unused(s)));
        block.into_iter().try_for_each(|s| self.put(s))?;
        let last = number(&c.lo.greater(&c.hi), &c.reg);
        Ok(Some(with_counter(l.state, &c.reg, &last)))
    }

    /// Emits a loop whose number of steps is not constant.
    fn counted_from_to(&mut self, l: &mut Loop, c: &Counter, counts: &Cell<bool>) -> Step<()> {
        let (least, most) = (c.lo.range().0, c.hi.range().1 - 1);
        if most < least {
            return Ok(());
        }
        let (id, name) = self.fresh("i");
        let var = Var { id, name, lo: least, hi: most };
        self.begin();
        let done = self.undeferred(|me| {
            me.looped(LoopKind::Seq, (&var, most - least + 1), |me| {
                me.counted_step(l, c, &Index::from(var.clone()), counts)
            })
        });
        let body = self.end();
        done?;
        let (lo, hi) = (c.lo.clone(), c.hi.clone());
        self.put(Stmt::Loop { kind: LoopKind::Seq, var, lo, hi, body })
    }

    /// Emits a step in which the counter has this value.
    fn counted_step(
        &mut self,
        l: &mut Loop,
        c: &Counter,
        i: &Index,
        counts: &Cell<bool>,
    ) -> Step<()> {
        let state = with_counter(l.state, &c.reg, &number(i, &c.reg));
        let arg = View::pair(state, l.besides.clone());
        self.begin();
        let done = (l.step)(self, &arg);
        let mut block = self.end();
        done?;
        counts.set(counts.get() && take_next(&mut block, &c.reg) == Some(i.plus(1)));
        block.into_iter().try_for_each(|s| self.put(s))
    }

    /// Whether the index is constant if a sequential loop around is unrolled, and the loop is short.
    fn is_unrollable(&self, i: &Index) -> bool {
        let most = i64::try_from(self.options.unroll).unwrap_or(i64::MAX);
        let counters = &self.kernel.counters;
        counters.iter().any(|v| i.mentions(v.id) && v.hi - v.lo < most)
    }
}

/// Whether a component of the state that is no array is this register.
fn is_component(state: &View, reg: &Reg) -> bool {
    match state {
        View::Elem(Expr::Reg(r)) => r == reg,
        View::Pair(a, b) => is_component(a, reg) || is_component(b, reg),
        _ => false,
    }
}

/// Returns the state with another value in place of a register.
fn with_counter(state: &View, reg: &Reg, value: &Expr) -> View {
    match state {
        View::Elem(Expr::Reg(r)) if r == reg => View::Elem(value.clone()),
        View::Pair(a, b) => View::pair(with_counter(a, reg, value), with_counter(b, reg, value)),
        v => v.clone(),
    }
}

/// The value of a counter.
fn number(i: &Index, reg: &Reg) -> Expr {
    match i.as_constant() {
        Some(n) => Expr::Lit(Lit::int(reg.ty.scalar, i128::from(n))),
        None => Expr::Index(i.clone(), reg.ty.scalar),
    }
}

/// Removes the statement that gives the register its next value, and returns that value, if it is the only one, and an index.
fn take_next(block: &mut Block, reg: &Reg) -> Option<Index> {
    let mut sets = 0;
    for s in block.iter() {
        s.visit(&mut |s| sets += usize::from(s.assigned() == Some(reg)));
    }
    let at = block.iter().position(|s| s.assigned() == Some(reg)).filter(|_| sets == 1)?;
    let Stmt::Set(_, mut e) = block.remove(at) else { return None };
    // An update that is computed beside the old state is copied.
    for s in block[..at].iter().rev() {
        match (s, &e) {
            (Stmt::Set(r, value) | Stmt::Decl(r, Some(value)), Expr::Reg(of)) if r == of => {
                e = value.clone();
            }
            _ => {}
        }
    }
    match e {
        Expr::Index(i, _) => Some(i),
        Expr::Lit(l) => l.as_int().and_then(|n| i64::try_from(n).ok()).map(Index::from),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::calculus::size::SizeEnv;
    use crate::kernel::ir::Stmt;
    use crate::kernel::lower;
    use crate::kernel::lower::testing::{options, term};

    /// Returns the numbers of `while` loops, of counted loops, and of arrays in memory in a kernel that applies `f` to elements.
    fn loops(f: &str, input: &str) -> (usize, usize, usize) {
        let term = term(&format!("mapGlb 0 ({f}) . u"), &[("u", input)]);
        let program = lower(&term, &SizeEnv::default(), &options()).expect("lowers");
        let [kernel] = program.kernels.as_slice() else { panic!("one kernel") };
        let (mut open, mut counted) = (0, 0);
        let [Stmt::Loop { body, .. }] = kernel.body.as_slice() else { panic!("a parallel loop") };
        for s in body {
            s.visit(&mut |s| match s {
                Stmt::While(..) => open += 1,
                Stmt::Loop { .. } => counted += 1,
                _ => {}
            });
        }
        (open, counted, kernel.privates.len())
    }

    /// A loop from 1 while the counter is less than the bound, of which each step makes the counter what `next` says.
    fn to(bound: &str, next: &str) -> String {
        let step = format!("(\\((s, j), e) -> (s * 2.0, {next}))");
        let start = format!("fork (fork (1.0 . bang) (1 . bang)) ({bound})");
        format!("loopWhile ((<) . bimap snd id) ({step}) . {start}")
    }

    #[test]
    fn loops_that_count_are_counted() {
        assert_eq!(loops(&to("id", "j + 1"), "[64]i32"), (0, 1, 0));
        assert_eq!(loops(&to("9 . bang", "j + 1"), "[64]i32"), (0, 1, 0));
        // No step at all, and a single one.
        assert_eq!(loops(&to("1 . bang", "j + 1"), "[64]i32"), (0, 0, 0));
        assert_eq!(loops(&to("2 . bang", "j + 1"), "[64]i32"), (0, 0, 0));
    }

    #[test]
    fn other_loops_test_their_condition() {
        assert_eq!(loops(&to("id", "j * 2"), "[64]i32"), (1, 0, 0));
        assert_eq!(loops(&to("id", "j + e"), "[64]i32"), (1, 0, 0));
    }

    #[test]
    fn arrays_of_unrolled_loops_are_registers() {
        // Substitution with a triangle: the inner loop ends at the counter of the outer one.
        let inner = "fst . loopWhile ((<) . bimap snd snd) ((\\((s, j), x) -> (s - x, j + 1)) . \
                     fork fst (index . fork (fst . snd) (snd . fst))) . \
                     fork (fork index (0 . bang)) id";
        let op = format!("scatter . fork fst (fork (replicate 1 . snd) (replicate 1 . {inner}))");
        let all = format!("foldSeq ({op}) . fork id (iota 4 i32 . bang)");
        assert_eq!(loops(&all, "[64][4]f32"), (0, 0, 0));
    }
}
