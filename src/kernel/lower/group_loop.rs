//! `foldSeq` and `loopWhile` in a work-group: its work-items run the steps together.
//!
//! Scalars of the state are in registers, where each work-item computes them for itself. Arrays are in local memory, or in a part
//! of a buffer if they do not all fit. An array whose elements at computed places change is updated where it is: the stores follow
//! all reads of the step. So is an array of which a work-item stores an element where it has read it, and no element is read
//! after that, as in an elimination: then stores of what stays as it is are left out. Of any other array, the work-items compute the
//! next one beside the present one; then both change places, so the loop has two steps in an iteration.

use super::dest::Dest;
use super::leaf::Emit;
use super::lowerer::Lowerer;
use super::memory::Storage;
use super::updated::{Part, parts};
use super::view::{Shape, Step, View};
use crate::calculus::term::{Op, Space, Term};
use crate::kernel::analysis::hazard::{Later, Owned};
use crate::kernel::ir::index::Index;
use crate::kernel::ir::{Block, Expr, Stmt};

/// Memory of the states before and after a step.
struct States {
    now: Storage,
    next: Storage,
    /// What is in the same memory in both, and whose stores follow all reads.
    common: Owned,
    /// Whether all of the state is in the same memory in both.
    single: bool,
}

impl States {
    /// The states of a pair.
    fn pair(a: States, b: States) -> States {
        let both = |a: Storage, b: Storage| Storage {
            view: View::pair(a.view, b.view),
            dest: Dest::pair(a.dest, b.dest),
            owned: a.owned.both(&b.owned),
        };
        States {
            now: both(a.now, b.now),
            next: both(a.next, b.next),
            common: a.common.both(&b.common),
            single: a.single && b.single,
        }
    }
}

/// A loop with the parts of its state as its steps make them.
struct Loop<'a> {
    f: &'a Term,
    parts: &'a Part,
    shape: Shape,
    states: States,
}

impl Lowerer {
    /// `foldSeq` or `loopWhile` in a work-group. `factors` give the pair of the first state and what the steps read besides.
    pub fn group_loop(&mut self, f: &Term, factors: &[Term], x: &View) -> Step<View> {
        let Some(step) = f.args().last() else { return super::lowerer::unlowered(f) };
        let parts = parts(&step.chain(), &f.ty().cod);
        let mut tries = vec![(&parts, false), (&Part::New, false)];
        tries.dedup();
        if parts.has_new() {
            tries.insert(0, (&parts, true));
        }
        for (parts, in_place) in tries {
            let mark = self.mark();
            self.begin();
            let done = self.on_trial(
                |done| matches!(done, Ok(Some(_))),
                |me| me.loop_with(f, factors, x, parts, in_place),
            );
            if let Ok(Some(v)) = done {
                let block = self.end();
                block.into_iter().try_for_each(|s| self.put(s))?;
                return Ok(v);
            }
            self.back_to(mark);
            done?;
        }
        // A store of the step would be read in the same step.
        super::lowerer::unlowered(f)
    }

    /// Emits the loop, if no step reads what it has updated.
    fn loop_with(
        &mut self,
        f: &Term,
        factors: &[Term],
        x: &View,
        parts: &Part,
        in_place: bool,
    ) -> Step<Option<View>> {
        let shape = self.views.shape(&f.ty().cod)?;
        let needed = if in_place { shape.clone() } else { memory(&shape, parts) };
        let rest = self.bytes_of_sorts(f);
        let space = if self.fits_beside(rest, &needed) { Space::Local } else { Space::Global };
        let states = self.states(&shape, parts, space, in_place)?;
        let xs = self.begin_loop(factors, x, &states.now.dest, &shape)?;
        let whole = Loop { f, parts, shape, states };
        match f.op() {
            Op::While => self.undeferred(|me| me.group_while(&whole, &xs)),
            _ => self.group_fold(&whole, &xs),
        }
    }

    fn group_fold(&mut self, l: &Loop, xs: &View) -> Step<Option<View>> {
        let n = self.views.size(&l.f.sizes()[0])?;
        let op = l.f.args()[0].chain();
        let States { now, next, .. } = &l.states;
        let mut updates = true;
        let mut step = |me: &mut Lowerer, i: &Index, from: &Storage, to: &Storage| {
            let arg = View::pair(from.view.clone(), xs.at(i)?);
            updates &= me.group_step(&op, &arg, to, &l.states)?;
            Ok(())
        };
        if l.states.single {
            self.repeat(n, false, &mut |me, i| step(me, i, now, now))?;
            return Ok(updates.then(|| now.view.clone()));
        }
        self.repeat(n / 2, false, &mut |me, i| {
            step(me, &i.times(2), now, next)?;
            step(me, &i.times(2).plus(1), next, now)
        })?;
        let odd = n % 2 != 0;
        if odd {
            step(self, &Index::from(n - 1), now, next)?;
        }
        Ok(updates.then(|| if odd { next.view.clone() } else { now.view.clone() }))
    }

    /// Emits a loop while a condition holds. All work-items of the group compute the same condition. Between the two steps
    /// of an iteration it is tested, too; if it does not hold, the last state goes to the place of the first one.
    fn group_while(&mut self, l: &Loop, besides: &View) -> Step<Option<View>> {
        let (p, op) = (l.f.args()[0].chain(), l.f.args()[1].chain());
        let States { now, next, single, .. } = &l.states;
        let arg = |from: &Storage| View::pair(from.view.clone(), besides.clone());
        if *single {
            self.begin();
            let c = self.read(&p, &arg(now)).and_then(|v| v.expr());
            let head = self.end();
            let c = c?;
            let mut updates = true;
            let mut step = |me: &mut Lowerer, arg: &View| {
                updates &= me.group_step(&op, arg, now, &l.states)?;
                Ok(())
            };
            if head.is_empty()
                && let Some(last) = self.counted_while(&c, now, besides, &mut step)?
            {
                return Ok(updates.then_some(last));
            }
        }
        let (head, go_on) = self.group_condition(&p, &arg(now))?;
        self.begin();
        let updates = self.group_step(&op, &arg(now), if *single { now } else { next }, &l.states);
        let mut block = self.end();
        let mut updates = updates?;
        if !*single {
            let (test, again) = self.group_condition(&p, &arg(next))?;
            block.extend(test);
            self.begin();
            let done = self.group_step(&op, &arg(next), now, &l.states);
            let step = self.end();
            updates &= done?;
            self.begin();
            let done = self.copy_new(&next.view, &now.dest, &l.shape, l.parts);
            let copy = self.end();
            done?;
            block.push(Stmt::Branch(again, step, copy));
        }
        self.emit(Stmt::While(head, go_on, block))?;
        Ok(updates.then(|| now.view.clone()))
    }

    /// Returns the code of a condition, and the register that holds it then.
    fn group_condition(&mut self, p: &[Term], arg: &View) -> Step<(Block, Expr)> {
        self.begin();
        let done = self.read(p, arg).and_then(|v| v.expr());
        let done = done.and_then(|c| self.declare(c.ty(), Some(c)));
        let block = self.end();
        Ok((block, Expr::Reg(done?)))
    }

    /// Emits a step; returns whether it reads nothing that it has updated.
    fn group_step(&mut self, op: &[Term], arg: &View, to: &Storage, all: &States) -> Step<bool> {
        let later = Later { owned: all.common.clone(), declared: vec![], stores: vec![] };
        let kept = if all.single { &to.owned } else { &all.common };
        self.update_with(op, arg, &to.dest, kept, Some(later))
    }

    /// Copies the parts that a step computes anew.
    fn copy_new(&mut self, v: &View, dest: &Dest, shape: &Shape, part: &Part) -> Step<()> {
        if let Shape::Pair(a, b) = shape {
            let (one, two) = (part.component(false), part.component(true));
            self.copy_new(&v.fst()?, &dest.component(false)?, a, one)?;
            return self.copy_new(&v.snd()?, &dest.component(true)?, b, two);
        }
        if part.is_new() { self.copy(v, dest, shape) } else { Ok(()) }
    }

    /// Stores the first state, and returns the elements.
    fn begin_loop(
        &mut self,
        factors: &[Term],
        x: &View,
        state: &Dest,
        shape: &Shape,
    ) -> Step<View> {
        let factors: Vec<Term> = factors.iter().flat_map(Term::chain).collect();
        match factors.split_first() {
            Some((both, before)) if *both.op() == Op::Fork => {
                let x = if before.is_empty() { x.clone() } else { self.read(before, x)? };
                self.write(&both.args()[0].chain(), &x, state)?;
                self.read(&both.args()[1].chain(), &x)
            }
            first => {
                let x = if first.is_some() { self.read(&factors, x)? } else { x.clone() };
                self.copy(&x.fst()?, state, shape)?;
                x.snd()
            }
        }
    }

    /// Allocates the states, with arrays in this space. `in_place` says that all of the state is updated where it is.
    fn states(
        &mut self,
        shape: &Shape,
        part: &Part,
        arrays: Space,
        in_place: bool,
    ) -> Step<States> {
        if let Shape::Pair(a, b) = shape {
            let a = self.states(a, part.component(false), arrays, in_place)?;
            return Ok(States::pair(a, self.states(b, part.component(true), arrays, in_place)?));
        }
        let space = if shape.is_element() { Space::Private } else { arrays };
        let now = self.allocate(shape, Some(space))?;
        Ok(match (part.is_new(), in_place) {
            (false, _) => {
                States { next: now.clone(), common: now.owned.clone(), now, single: true }
            }
            (true, true) => {
                States { next: now.clone(), common: Owned::default(), now, single: true }
            }
            (true, false) => States {
                next: self.allocate(shape, Some(space))?,
                common: Owned::default(),
                now,
                single: false,
            },
        })
    }
}

/// Returns what a loop has memory for: parts of the state that each step computes anew are there twice.
fn memory(shape: &Shape, part: &Part) -> Shape {
    let pair = |a, b| Shape::Pair(Box::new(a), Box::new(b));
    match shape {
        Shape::Pair(a, b) => {
            pair(memory(a, part.component(false)), memory(b, part.component(true)))
        }
        shape if part.is_new() => pair(shape.clone(), shape.clone()),
        shape => shape.clone(),
    }
}

#[cfg(test)]
mod tests {
    use crate::calculus::size::SizeEnv;
    use crate::kernel::analysis::race;
    use crate::kernel::ir::{Block, Stmt};
    use crate::kernel::lower;
    use crate::kernel::lower::testing::{options, term};

    /// Removes the barrier with this number; returns whether there is one.
    fn remove(b: &mut Block, number: &mut usize) -> bool {
        for at in 0..b.len() {
            if matches!(b[at], Stmt::Barrier { .. }) {
                if *number == 0 {
                    b.remove(at);
                    return true;
                }
                *number -= 1;
            }
            if b[at].blocks_mut().into_iter().any(|b| remove(b, number)) {
                return true;
            }
        }
        false
    }

    /// Lowers a loop of the rows of `xs` in work-groups. Returns the numbers of its barriers, of those without which there
    /// is a race, and of its arrays in local memory.
    fn barriers(text: &str) -> (usize, usize, usize) {
        let text = format!("mapWrg 0 ({text} . fork id bang) . xs");
        let term = term(&text, &[("xs", "[64][32]f32")]);
        let program = lower(&term, &SizeEnv::default(), &options()).expect("lowers");
        let [kernel] = program.kernels.as_slice() else { panic!("one kernel") };
        assert_eq!(race::find(&kernel.body), None);
        let (mut all, mut needed) = (0, 0);
        loop {
            let mut body = kernel.body.clone();
            if !remove(&mut body, &mut all.clone()) {
                return (all, needed, kernel.locals.len());
            }
            all += 1;
            needed += usize::from(race::find(&body).is_some());
        }
    }

    #[test]
    fn a_group_counts_loops() {
        let step = "bimap (mapLcl 0 (\\x -> 0.5 * x)) (\\j -> j + 1) . fst";
        let start = "fork (fork fst (0 . bang)) ((\\x -> i32.f32 x) . index . fork fst (0 . bang))";
        let text = format!("fst . loopWhile ((<) . bimap snd id) ({step}) . {start}");
        let term =
            term(&format!("mapWrg 0 ({text} . fork id bang) . xs"), &[("xs", "[64][32]f32")]);
        let program = lower(&term, &SizeEnv::default(), &options()).expect("lowers");
        let kernel = &program.kernels[0];
        assert_eq!(race::find(&kernel.body), None);
        let mut open = 0;
        kernel.body.iter().for_each(|s| {
            s.visit(&mut |s| open += usize::from(matches!(s, Stmt::While(..))));
        });
        assert_eq!(open, 0, "{kernel}");
    }

    #[test]
    fn work_items_store_what_they_have_read() {
        // Each element is divided by the first one, which all work-items read before.
        let first = "fork (index . fork fst (0 . bang)) fst";
        let step = format!("mapLcl 0 (\\(a, x) -> x / a) . distl . {first}");
        let all = format!("foldSeq ({step}) . fork fst (iota 8 i32 . bang)");
        let (_, _, arrays) = barriers(&all);
        // The first element is read when the work-items store.
        assert_eq!(arrays, 2);
        // An array that is computed first has places of its own.
        let column = "mapLcl 0 (\\x -> x + 1.0) . reverse . fst";
        let step = format!(
            "mapLcl 0 (\\(x, a) -> if x > a then x / a else x) . zip . fork fst ({column})"
        );
        let all = format!("foldSeq ({step}) . fork fst (iota 8 i32 . bang)");
        let (_, needed, arrays) = barriers(&all);
        assert_eq!((needed, arrays), (2, 2));
    }

    #[test]
    fn a_group_runs_loops_that_data_end() {
        // The condition reads the state, each step reads what other work-items stored.
        let condition = "(\\x -> x > 1.0) . index . fork fst (0 . bang)";
        let step = "mapLcl 0 (\\(x, y) -> 0.5 * x + 0.25 * y) . zip . fork id reverse . fst";
        assert_eq!(barriers(&format!("loopWhile ({condition}) ({step})")), (2, 2, 2));
        // Each work-item reads its own elements alone, and the condition the first ones.
        let own = "mapLcl 0 (\\x -> 0.5 * x) . fst";
        let (_, needed, _) = barriers(&format!("loopWhile ({condition}) ({own})"));
        assert!(needed >= 2);
    }
}
