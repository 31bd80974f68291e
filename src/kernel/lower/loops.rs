//! Loops over states that contain arrays, and choices between arrays. In a work-item they are loops
//! and branches, and so is a loop with a known number of steps in a work-group (`group_loop`). Otherwise the
//! host runs them, and their bodies are kernels.

use super::dest::Dest;
use super::lowerer::Lowerer;
use super::memory::Storage;
use super::view::{Shape, Step, View, stop};
use crate::calculus::scalar::Lit;
use crate::calculus::term::{Space, Term};
use crate::diag::Code;
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::{Control, ElemTy, Expr, Mem, Stmt, Times};
use crate::lang::types::ScalarType;

/// Longest loop of the host in which copying the state before and after takes a share of the time.
const SHORT: i64 = 64;

impl Lowerer {
    /// `foldSeq` on the host: each iteration writes the next state to a second buffer, and the host
    /// then exchanges both buffers. In a short loop, the first iteration reads the initial state where
    /// it is and the last one writes the result where it belongs, by kernels of their own.
    pub fn host_fold(&mut self, f: &Term, x: &View, dest: &Dest) -> Step<()> {
        let n = self.views.size(&f.sizes()[0])?;
        let shape = self.views.shape(&f.ty().cod)?;
        if n == 1 {
            return self.fold_step(f, x, &Index::from(0), &x.fst()?, dest);
        }
        if !(2..=SHORT).contains(&n) {
            let last = self.state_after_fold(f, x)?;
            return self.copy(&last, dest, &shape);
        }
        let state = self.allocate(&shape, Some(Space::Global))?;
        self.fold_step(f, x, &Index::from(0), &x.fst()?, &state.dest)?;
        if n > 2 {
            self.fold_steps(f, x, (1, n - 1), &state)?;
        }
        self.fold_step(f, x, &Index::from(n - 1), &state.view, dest)
    }

    /// Returns the result of `foldSeq` on the host, for kernels that read it.
    pub fn host_fold_value(&mut self, f: &Term, x: &View) -> Step<View> {
        if !(1..=SHORT).contains(&self.views.size(&f.sizes()[0])?) {
            return self.state_after_fold(f, x);
        }
        let shape = self.views.shape(&f.ty().cod)?;
        let out = self.allocate(&shape, Some(Space::Global))?;
        self.host_fold(f, x, &out.dest)?;
        Ok(out.view)
    }

    /// Runs all iterations on a copy of the initial state.
    fn state_after_fold(&mut self, f: &Term, x: &View) -> Step<View> {
        let shape = self.views.shape(&f.ty().cod)?;
        let state = self.allocate(&shape, Some(Space::Global))?;
        self.copy(&x.fst()?, &state.dest, &shape)?;
        self.fold_steps(f, x, (0, self.views.size(&f.sizes()[0])?), &state)?;
        Ok(state.view)
    }

    /// Emits a loop of the host over the iterations in a range.
    fn fold_steps(
        &mut self,
        f: &Term,
        x: &View,
        (from, to): (i64, i64),
        state: &Storage,
    ) -> Step<()> {
        let shape = self.views.shape(&f.ty().cod)?;
        let (id, name) = self.host_names.name("step");
        let counter = Var { id, name, lo: 0, hi: (to - from - 1).max(0) };
        let number = Index::from(counter.clone()).plus(from);
        let begin = Control::Repeat(Times::Known(to - from), counter);
        self.repeated(begin, &shape, state, &mut |me, from, to| {
            me.fold_step(f, x, &number, from, to)
        })
    }

    fn fold_step(
        &mut self,
        f: &Term,
        x: &View,
        number: &Index,
        from: &View,
        to: &Dest,
    ) -> Step<()> {
        let element = x.snd()?.at(number)?;
        self.write(&f.args()[0].chain(), &View::pair(from.clone(), element), to)
    }

    /// `loopWhile` on the host: the condition is computed on the device and read back before each
    /// iteration. Returns the last state.
    pub fn host_while(&mut self, f: &Term, x: &View) -> Step<View> {
        let shape = self.views.shape(&f.ty().cod)?;
        let (p, body, besides) = (f.args()[0].chain(), f.args()[1].chain(), x.snd()?);
        let truth = Shape::Elem(ElemTy::scalar(ScalarType::Bool));
        let flag = self.allocate(&truth, Some(Space::Global))?;
        let Dest::Mem(Mem::Global(at), ..) = &flag.dest else {
            return stop(Code::Internal, "a condition of the host outside global memory");
        };
        let at = *at;
        if !self.choices.is_empty() {
            // If the choices around the loop select the other side, none of its kernels runs,
            // including the one that computes the condition. Clear the flag first, so that the loop
            // does not begin.
            let choices = std::mem::take(&mut self.choices);
            let no = View::Elem(Expr::Lit(Lit::int(ScalarType::Bool, 0)));
            let cleared = self.copy(&no, &flag.dest, &truth);
            self.open = None;
            self.choices = choices;
            cleared?;
        }
        let state = self.allocate(&shape, Some(Space::Global))?;
        self.copy(&x.fst()?, &state.dest, &shape)?;
        self.repeated(Control::While, &shape, &state, &mut |me, from, to| {
            let arg = View::pair(from.clone(), besides.clone());
            me.write(&p, &arg, &flag.dest)?;
            me.control(Control::Check(at));
            me.write(&body, &arg, to)
        })?;
        Ok(state.view)
    }

    /// Repeats a body that reads a state and writes the next one.
    fn repeated(
        &mut self,
        begin: Control,
        shape: &Shape,
        state: &Storage,
        body: &mut dyn FnMut(&mut Lowerer, &View, &Dest) -> Step<()>,
    ) -> Step<()> {
        let next = self.allocate(shape, Some(Space::Global))?;
        self.control(begin);
        self.states.push(state.owned.clone());
        let done = body(self, &state.view, &next.dest);
        self.states.pop();
        done?;
        for (a, b) in state.owned.buffers().zip(next.owned.buffers()) {
            self.control(Control::Swap(a, b));
        }
        self.control(Control::End);
        Ok(())
    }

    /// Appends a step of the host that is not a launch. Kernels before and after it cannot be
    /// merged.
    fn control(&mut self, c: Control) {
        self.open = None;
        self.program.control.push(c);
    }

    /// A choice on the host: the condition is computed first, and the kernels of both sides test
    /// it.
    pub fn host_choice(&mut self, f: &Term, x: &View, dest: &Dest) -> Step<()> {
        let args = f.args();
        let truth = Shape::Elem(ElemTy::scalar(ScalarType::Bool));
        let flag = self.allocate(&truth, Some(Space::Global))?;
        self.write(&args[0].chain(), x, &flag.dest)?;
        let c = flag.view.expr()?;
        for (side, arg) in [(true, &args[1]), (false, &args[2])] {
            self.open = None;
            self.choices.push((c.clone(), side));
            let done = self.write(&arg.chain(), x, dest);
            self.choices.pop();
            self.open = None;
            done?;
        }
        Ok(())
    }

    /// Returns the code of a kernel, guarded by the host's choices around it.
    pub fn chosen(&self, body: Vec<Stmt>) -> Vec<Stmt> {
        self.choices.iter().rev().fold(body, |body, (c, side)| {
            let (yes, no) = if *side { (body, vec![]) } else { (vec![], body) };
            vec![Stmt::Branch(c.clone(), yes, no)]
        })
    }
}
