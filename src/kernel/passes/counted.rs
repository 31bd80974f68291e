//! Loops of the host that count up to a number that the host knows.
//!
//! Lowering lets a kernel compute the condition of a loop, and the host reads it back before each iteration. If the condition
//! compares a counter with a scalar argument or a constant, the host itself knows how often the loop repeats. It then launches
//! the kernels of the body alone, without waiting for them, and passes the number of the iteration to those that read the
//! counter.

use super::forward_copies::{buffers, names};
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::walk::{Fresh, rebuild_all, rebuilt};
use crate::kernel::ir::{BufferRole, Control, Expr, Kernel, Mem, Program, Stmt, Times};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;

/// Gives a number of iterations to each loop whose condition compares a counter with what the host knows.
pub fn loops(p: &mut Program, fresh: &mut Fresh) {
    let mut at = 0;
    while at < p.control.len() {
        if p.control[at] == Control::While
            && let Some(found) = Counted::of(p, at)
        {
            found.repeat(p, at, fresh);
        }
        at += 1;
    }
}

/// A loop that the host can count.
struct Counted {
    /// The kernel that computes the condition.
    condition: usize,
    /// What the counter is compared with.
    bound: Bound,
    /// Type of the counter.
    scalar: ScalarType,
    /// The buffers of the counter's present value and of its next value.
    state: (usize, usize),
    /// Value of the counter in the first iteration.
    first: i64,
    /// The kernels that set the first value and the next values.
    setters: [usize; 2],
    /// Whether nothing outside of the loop reads the counter.
    inner: bool,
}

/// A scalar argument, if there is one, plus a constant.
struct Bound {
    arg: Option<usize>,
    plus: i64,
    /// Whether the loop runs for the bound, too.
    included: bool,
}

impl Counted {
    /// Returns what is known of the loop that begins at a step of the host; `None` if the host cannot count it.
    fn of(p: &Program, begin: usize) -> Option<Counted> {
        let [Control::Launch(condition), Control::Check(flag), ..] = p.control[begin + 1..] else {
            return None;
        };
        let [Stmt::Store(Mem::Global(to), _, e)] = p.kernels[condition].body.as_slice() else {
            return None;
        };
        let (now, scalar, bound) = comparison(e)?;
        let used = |b: usize| (0..p.kernels.len()).filter(move |k| uses(&p.kernels[*k], b));
        if *to != flag || names(&p.control, flag) > 1 || used(flag).any(|k| k != condition) {
            return None;
        }
        let (steps, next) = own_steps(&p.control, begin, now)?;
        let temporary = |b: usize| p.buffers[b].role == BufferRole::Temp;
        let alone = |b: usize| temporary(b) && names(&p.control, b) == 1;
        if !alone(now) || !alone(next) {
            return None;
        }
        // One kernel before the loop sets the counter, and one in the loop itself counts.
        let (set, start) = only_store(p, now)?;
        let (count, sum) = only_store(p, next)?;
        let is_launch = |k: usize| move |c: &Control| *c == Control::Launch(k);
        let counts = steps.iter().any(|at| is_launch(count)(&p.control[*at]));
        let place = p.control[..begin].iter().position(is_launch(set))?;
        if !counts || !is_balanced(&p.control[place..begin]) || !is_next(sum, now) {
            return None;
        }
        let inside = p.control[begin..=*steps.last()?].iter();
        let inside: Vec<usize> = inside.filter_map(launched).collect();
        let inner = [now, next].into_iter().flat_map(used).all(|k| k == set || inside.contains(&k));
        let first = integer(start)?;
        Some(Counted {
            condition,
            bound,
            scalar,
            state: (now, next),
            first,
            setters: [set, count],
            inner,
        })
    }

    /// Makes the loop one with a number of iterations.
    fn repeat(&self, p: &mut Program, begin: usize, fresh: &mut Fresh) {
        let less = self.first.saturating_sub(i64::from(self.bound.included));
        let plus = self.bound.plus;
        let times = match self.bound.arg {
            Some(arg) => Times::Given { arg, plus, less },
            None => Times::Known(plus.saturating_sub(less).max(0)),
        };
        let (id, name) = fresh.name("step");
        let most = match times {
            Times::Known(n) => n,
            // No value of the counter is greater than its type allows.
            Times::Given { .. } => greatest(self.scalar).unwrap_or(i64::MAX).saturating_sub(less),
        };
        let hi = most.saturating_sub(1).clamp(0, i64::from(i32::MAX));
        let var = Var { id, name, lo: 0, hi };
        p.control[begin] = Control::Repeat(times, var.clone());
        p.control.remove(begin + 2);
        p.kernels[self.condition].body.clear();
        self.pass_number(p, &Index::from(var).plus(self.first));
        let mut changed = [self.condition, self.setters[0], self.setters[1]];
        changed.sort_unstable_by(|a, b| b.cmp(a));
        for k in changed {
            if p.kernels[k].body.is_empty() {
                p.remove_kernel(k);
            }
        }
    }

    /// Replaces the counter by the number of the iteration, if it is needed in the loop alone and always an `int`.
    fn pass_number(&self, p: &mut Program, number: &Index) {
        let (now, next) = self.state;
        let [set, count] = self.setters;
        let without = |k: usize, b: usize| -> Vec<Stmt> {
            let stores = |s: &&Stmt| !matches!(s, Stmt::Store(Mem::Global(to), ..) if *to == b);
            p.kernels[k].body.iter().filter(stores).cloned().collect()
        };
        let mut kernels = p.kernels.clone();
        kernels[set].body = without(set, now);
        kernels[count].body = without(count, next);
        let counted = kernels.iter().any(|k| uses(k, next));
        let read = kernels.iter().any(|k| uses(k, now));
        let is_int = self.first >= 0 && greatest(self.scalar).is_some_and(|n| n <= i32::MAX.into());
        if !self.inner || counted || read && !is_int {
            return;
        }
        let by = Expr::Index(number.clone(), self.scalar);
        for k in kernels.iter_mut().filter(|k| uses(k, now)) {
            replace(&mut k.body, now, &by);
        }
        p.kernels = kernels;
        p.control.retain(|c| *c != Control::Swap(now, next));
    }
}

/// Returns the counter of a condition, its type, and the bound.
fn comparison(e: &Expr) -> Option<(usize, ScalarType, Bound)> {
    let Expr::Op(op, _, operands) = e else { return None };
    let [a, b] = operands.as_slice() else { return None };
    let (counter, bound, included) = match op {
        ScalarOp::Lt => (a, b, false),
        ScalarOp::Le => (a, b, true),
        ScalarOp::Gt => (b, a, false),
        ScalarOp::Ge => (b, a, true),
        _ => return None,
    };
    let (arg, plus) = sum(bound)?;
    let ty = counter.ty();
    let integers = ty.width == 1 && ty.scalar.is_integer();
    integers.then_some((loaded(counter)?, ty.scalar, Bound { arg, plus, included }))
}

/// Returns the argument and the constant whose sum the expression is.
fn sum(e: &Expr) -> Option<(Option<usize>, i64)> {
    match e {
        Expr::Arg(arg, _) => Some((Some(*arg), 0)),
        Expr::Lit(_) => Some((None, integer(e)?)),
        Expr::Op(ScalarOp::Add, _, operands) => match operands.as_slice() {
            [Expr::Arg(arg, _), k] | [k, Expr::Arg(arg, _)] => Some((Some(*arg), integer(k)?)),
            _ => None,
        },
        Expr::Op(ScalarOp::Sub, _, operands) => match operands.as_slice() {
            [Expr::Arg(arg, _), k] => Some((Some(*arg), integer(k)?.checked_neg()?)),
            _ => None,
        },
        _ => None,
    }
}

fn integer(e: &Expr) -> Option<i64> {
    match e {
        Expr::Lit(l) => i64::try_from(l.as_int()?).ok(),
        _ => None,
    }
}

/// Returns the greatest value of an integer type, if it is an `i64`.
fn greatest(t: ScalarType) -> Option<i64> {
    let bits = t.bits() - usize::from(t.is_signed());
    i64::try_from(u64::MAX >> (64 - bits)).ok()
}

/// Returns the buffer whose first element the expression is.
fn loaded(e: &Expr) -> Option<usize> {
    match e {
        Expr::Load(Mem::Global(b), t, i) if t.width == 1 && i.as_constant() == Some(0) => Some(*b),
        _ => None,
    }
}

/// Whether a value is the first element of a buffer, and one more.
fn is_next(e: &Expr, counter: usize) -> bool {
    let Expr::Op(ScalarOp::Add, _, operands) = e else { return false };
    let [a, b] = operands.as_slice() else { return false };
    [(a, b), (b, a)].iter().any(|(x, k)| loaded(x) == Some(counter) && integer(k) == Some(1))
}

/// Whether a kernel touches a buffer.
fn uses(k: &Kernel, b: usize) -> bool {
    buffers(k, false).contains(&b)
}

fn launched(c: &Control) -> Option<usize> {
    match c {
        Control::Launch(k) => Some(*k),
        _ => None,
    }
}

/// Whether every loop that a part of the steps begins or ends lies in it.
fn is_balanced(steps: &[Control]) -> bool {
    let mut depth = 0;
    for c in steps {
        match c {
            Control::Repeat(..) | Control::While => depth += 1,
            Control::End if depth == 0 => return false,
            Control::End => depth -= 1,
            Control::Launch(_) | Control::Check(_) | Control::Swap(..) | Control::Together(_) => {}
        }
    }
    depth == 0
}

/// Returns the positions of the steps of a loop without those of inner loops, the last its end, and the buffer that the loop
/// exchanges with `state`; `None` if it checks a second condition.
fn own_steps(control: &[Control], begin: usize, state: usize) -> Option<(Vec<usize>, usize)> {
    let (mut own, mut depth, mut other, mut checks) = (vec![], 0, None, 0);
    for (at, c) in control.iter().enumerate().skip(begin + 1) {
        match c {
            Control::Repeat(..) | Control::While => depth += 1,
            Control::End if depth == 0 => {
                own.push(at);
                return (checks == 1).then_some((own, other?));
            }
            Control::End => depth -= 1,
            _ if depth > 0 => {}
            Control::Swap(old, new) if *old == state => other = Some(*new),
            Control::Check(_) => checks += 1,
            Control::Launch(_) | Control::Swap(..) | Control::Together(_) => own.push(at),
        }
    }
    None
}

/// Returns the kernel that stores to the first element of a buffer, and what it stores, if no other statement of the program
/// stores to the buffer, and a single work-item makes this store in any case.
fn only_store(p: &Program, b: usize) -> Option<(usize, &Expr)> {
    let mut storing = (0..p.kernels.len()).filter(|k| buffers(&p.kernels[*k], true).contains(&b));
    let (k, None) = (storing.next()?, storing.next()) else { return None };
    let mut stores = 0;
    for s in &p.kernels[k].body {
        s.visit(&mut |s| {
            let to = |m: &Mem| usize::from(*m == Mem::Global(b));
            if let Stmt::Store(m, ..) | Stmt::Atomic(_, m, ..) = s {
                stores += to(m);
            }
        });
    }
    let found = p.kernels[k].body.iter().find_map(|s| match s {
        Stmt::Store(Mem::Global(to), i, e) if *to == b && i.as_constant() == Some(0) => Some(e),
        _ => None,
    })?;
    (stores == 1 && p.kernels[k].global == [1; 3]).then_some((k, found))
}

/// Replaces the first element of a buffer.
fn replace(block: &mut [Stmt], counter: usize, by: &Expr) {
    fn value(e: &Expr, counter: usize, by: &Expr) -> Expr {
        match loaded(e) {
            Some(b) if b == counter => by.clone(),
            _ => rebuilt(e, &mut |e, _| value(e, counter, by)),
        }
    }
    rebuild_all(block, &mut |e| value(e, counter, by));
}

#[cfg(test)]
mod tests {
    use crate::calculus::size::SizeEnv;
    use crate::kernel::ir::{Control, Program, Times};
    use crate::kernel::lower;
    use crate::kernel::lower::testing::{options, term};

    /// A step that does not read the counter.
    const SHIFT: &str = "mapGlb 0 (+) . zip . fork id (rotate 1) . fst . fst";

    /// Returns the program of a loop over `x` and a counter that begins at 3.
    fn looped(result: &str, condition: &str, step: &str, count: &str) -> Program {
        let condition = format!("({condition}) . bimap snd id");
        let step = format!("fork ({step}) (({count}) . snd . fst)");
        let start = "fork (fork x 3) (fork steps m)";
        let text = format!("{result} . loopWhile ({condition}) ({step}) . {start}");
        let inputs = [("x", "[100]f32"), ("steps", "i32"), ("m", "i32")];
        lower(&term(&text, &inputs), &SizeEnv::default(), &options()).expect("lowers")
    }

    /// Returns how often the loop repeats, if the host knows, and the number of launches in it.
    fn times(p: &Program) -> (Option<Times>, usize) {
        let is_loop = |c: &Control| matches!(c, Control::Repeat(..) | Control::While);
        // Others before it only exchange buffers.
        let first = p.control.iter().rposition(is_loop).expect("a loop");
        let times = match &p.control[first] {
            Control::Repeat(times, _) => Some(*times),
            _ => None,
        };
        let step = p.control[first..].iter().take_while(|c| **c != Control::End);
        (times, step.filter(|c| matches!(c, Control::Launch(_))).count())
    }

    fn counted(condition: &str) -> (Option<Times>, usize) {
        times(&looped("fst", condition, SHIFT, "\\i -> i + 1"))
    }

    fn given(plus: i64, less: i64) -> (Option<Times>, usize) {
        (Some(Times::Given { arg: 0, plus, less }), 1)
    }

    #[test]
    fn counters_below_an_argument() {
        assert_eq!(counted("\\(i, (s, m)) -> i < s"), given(0, 3));
        assert_eq!(counted("\\(i, (s, m)) -> i <= s"), given(0, 2));
        assert_eq!(counted("\\(i, (s, m)) -> s - 2 > i"), given(-2, 3));
        assert_eq!(counted("\\(i, (s, m)) -> 1 + s >= i"), given(1, 2));
        assert_eq!(counted("\\(i, (s, m)) -> i < 8"), (Some(Times::Known(5)), 1));
        assert_eq!(counted("\\(i, (s, m)) -> i < 2"), (Some(Times::Known(0)), 1));
    }

    #[test]
    fn what_the_host_does_not_know_is_read_back() {
        for condition in
            ["i != s", "i > s", "i < s + m", "i < s % m", "i + 1 < s", "i < s && i < m"]
        {
            let found = counted(&format!("\\(i, (s, m)) -> {condition}"));
            assert_eq!(found, (None, 3), "{condition}");
        }
        let below = "\\(i, (s, m)) -> i < s";
        for count in ["\\i -> i + 2", "\\i -> i - 1", "\\i -> 1", "\\i -> i"] {
            assert_eq!(times(&looped("fst", below, SHIFT, count)).0, None, "{count}");
        }
    }

    #[test]
    fn the_number_of_the_iteration_is_passed() {
        let below = "\\(i, (s, m)) -> i < s";
        let step = "mapGlb 0 (\\(x, i) -> x * f32.i32 i) . distr . fst";
        let p = looped("fst", below, step, "\\i -> i + 1");
        assert_eq!(times(&p), given(0, 3));
        let Some(Control::Repeat(_, var)) = p.control.get(1) else { panic!("{p}") };
        assert_eq!((var.lo, var.hi), (0, i64::from(i32::MAX) - 4));
        assert!(p.kernels[1].to_string().contains(&format!("i32({} + 3)", var.name)), "{p}");
        // A counter that is read after the loop is counted by a kernel.
        let p = looped("id", below, step, "\\i -> i + 1");
        assert_eq!(times(&p), (given(0, 3).0, 2));
    }
}
