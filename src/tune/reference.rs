//! The reference for results: the interpreter's result, computed on a thread of its own while kernels are generated
//! and built.
//!
//! For a program that would take the interpreter too long, it computes only a [`sample`](super::sample) of the
//! result. The first kernel that agrees with the sample becomes the *witness*, and every other kernel must agree
//! with the witness in all elements. If one does not, the interpreter computes some of the disputed elements and
//! decides which kernel is wrong.
//!
//! Where even the smallest sample would take the interpreter minutes, as for one number that depends on a product of
//! large matrices, a search defers it: the first kernel is the witness without a comparison, and only if two kernels
//! disagree does the interpreter compute the result.
//!
//! The number of operations does not bound the time: values in doubt take many times as long as others. So a search
//! waits for [`Limits::reference_time`] at most. The interpreter computes a much smaller sample first, which is the
//! reference if the larger one is not ready in time. Without such a sample, the interpreter is deferred.
//!
//! A search gives all disagreements together [`Limits::dispute_time`]. Where rounding grows, as in the solution of an
//! ill-conditioned system, right kernels disagree, too, and every element may take minutes. After that time the witness
//! stands, and a kernel that disagrees with it is [undecided](Verdict::undecided).

use super::sample::{only, places, sample};
use super::worker::{FailureClass, digest};
use crate::calculus::interp::{self, Choice, Compiled};
use crate::calculus::value::{Cell, Comparison, Leaf, Tolerance, Value, agree, compare_at};
use crate::diag::{
    Code, Diagnostic, Failure, Interrupt, Limits, Result, STACK_BYTES, no_thread, on_own_stack,
};
use crate::lang::typed::Entry;
use crate::opencl::host::HostArray;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which a wait polls whether to go on.
const POLL: Duration = Duration::from_millis(50);

/// A search defers the interpreter if it would take this many times the operations that it may take.
const PATIENCE: f64 = 20.0;

/// The sample that is computed first takes this fraction (a divisor) of the operations of the sample that is wanted.
const FIRST: f64 = 64.0;

/// Number of disputed elements of one component that the interpreter computes when two kernels disagree.
const JUDGED: usize = 8;

/// The expected result, with which every kernel's result is compared.
pub struct Reference {
    pending: Option<Receiver<Result<Answer>>>,
    answer: Option<Answer>,
    terms: u64,
    budget: f64,
    /// The longest time that a search waits, and the request that ends the interpreter's work after it.
    most: Option<Duration>,
    late: Interrupt,
    /// The time that is left for disagreements in a search.
    dispute: Option<Duration>,
    /// A result that was found right; with a sample, the witness's. Equal bytes need no second comparison.
    right: Option<Right>,
    /// The witness while the interpreter computes the result because another kernel disagreed with it.
    doubted: Option<Right>,
    agreed: usize,
    overturned: usize,
    /// Whether the witness was given up for the interpreter's result, and no result was compared since.
    was_disputed: bool,
}

/// A result that was found right.
struct Right {
    outputs: Vec<HostArray>,
    digest: String,
    comparison: Comparison,
}

impl Right {
    fn new(outputs: Vec<HostArray>, comparison: &Comparison) -> Right {
        Right { digest: digest(&outputs), outputs, comparison: comparison.clone() }
    }
}

/// The interpreter's answer.
struct Answer {
    compiled: Compiled,
    /// The indices of the sample; `None` if the whole result was computed.
    choice: Option<Choice>,
    /// The sample or the whole result, if the interpreter was not deferred; then the elements computed since then
    /// to settle disagreements.
    known: Vec<Known>,
    /// Whether the interpreter was deferred.
    deferred: bool,
}

/// Elements that the interpreter computed, and their positions in each component.
struct Known {
    value: Value,
    places: Vec<(Vec<usize>, Option<Vec<usize>>)>,
}

/// An element of a result, as the interpreter computed it.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Its position in its component, row-major.
    pub index: usize,
    /// Its value.
    pub cell: Cell,
    /// Largest permitted error of a float.
    pub slack: f64,
}

/// The judgement on a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// How it compares with what the interpreter computed, and with the witness.
    pub comparison: Comparison,
    /// Whether the witness was found wrong, so that results accepted before must be compared again.
    pub overturned: bool,
    /// Whether the result differs from the witness, and the interpreter could not decide between them in time. The
    /// comparison is not `ok`.
    pub undecided: bool,
}

impl Verdict {
    /// The class of the failure, if the comparison is not `ok`.
    pub fn class(&self) -> FailureClass {
        if self.undecided { FailureClass::Undecided } else { FailureClass::Wrong }
    }
}

/// How results were checked when the interpreter computed only a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// Elements that the interpreter computed.
    pub elements: usize,
    /// Number of elements in the result.
    pub of_elements: usize,
    /// Number of rows of the outermost dimension that these elements are in.
    pub rows: usize,
    /// Number of rows in the result.
    pub of_rows: usize,
    /// Number of successful comparisons of all elements with another kernel's.
    pub agreed: usize,
    /// Number of kernels that were taken for right and that the interpreter later found wrong.
    pub overturned: usize,
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.elements == 0 {
            write!(f, "not by the reference interpreter, which would take long; ")?;
            return match self.agreed {
                0 => write!(f, "there is no other kernel to compare with"),
                _ => write!(f, "all elements against another kernel"),
            };
        }
        write!(f, "{} of {} rows", self.rows, self.of_rows)?;
        // Only some of each row.
        if self.elements as u128 * (self.of_rows as u128)
            < self.of_elements as u128 * self.rows as u128
        {
            write!(f, ", in them {} of {} elements", self.elements, self.of_elements)?;
        }
        write!(f, " by the reference interpreter, ")?;
        match self.agreed {
            0 => write!(f, "the others unchecked: there is no other kernel to compare with")?,
            _ => write!(f, "all elements against another kernel")?,
        }
        match self.overturned {
            0 => Ok(()),
            1 => {
                write!(
                    f,
                    "; one kernel that others were compared with was wrong, so they were checked again"
                )
            }
            n => write!(
                f,
                "; {n} kernels that others were compared with were wrong, so they were checked again"
            ),
        }
    }
}

impl Answer {
    /// Computes the result, or a sample of it if the whole exceeds `budget` operations. Computes nothing if even
    /// that exceeds `most` operations. If it is `late` before that is done, the answer is a smaller sample, or nothing.
    fn find(compiled: Compiled, budget: f64, most: f64, late: &Interrupt) -> Result<Answer> {
        let choice = sample(&compiled, budget);
        let wanted = choice.clone().unwrap_or_else(|| compiled.whole());
        if compiled.operations(&wanted) > most {
            return Ok(Answer { compiled, choice, known: vec![], deferred: true });
        }
        let answer = Answer::first(compiled, budget, &wanted, late)?;
        answer.grown(choice, &wanted, late)
    }

    /// Computes a sample that is much smaller than the one that is wanted, if there is such a sample.
    fn first(compiled: Compiled, budget: f64, wanted: &Choice, late: &Interrupt) -> Result<Answer> {
        let small =
            |choice: &Choice| 2.0 * compiled.operations(choice) < compiled.operations(wanted);
        let choice = sample(&compiled, budget / FIRST).filter(small);
        let known = choice.as_ref().map(|choice| Known::compute(&compiled, choice, late));
        let known = in_time(known.transpose(), late)?.flatten();
        let deferred = known.is_none();
        Ok(Answer { compiled, choice, known: known.into_iter().collect(), deferred })
    }

    /// Computes what is wanted, a choice or everything. Keeps what there is if that is not ready before it is `late`.
    fn grown(self, choice: Option<Choice>, wanted: &Choice, late: &Interrupt) -> Result<Answer> {
        let all = Known::compute(&self.compiled, wanted, late);
        Ok(match in_time(all, late)? {
            Some(all) => Answer { choice, known: vec![all], deferred: false, ..self },
            None => self,
        })
    }

    /// Returns the sample or the whole result; `None` if the interpreter was deferred.
    fn initial(&self) -> Option<&Known> {
        self.known.first().filter(|_| !self.deferred)
    }

    /// Returns whether there may be elements that the interpreter did not compute.
    fn is_partial(&self) -> bool {
        self.deferred || self.choice.is_some()
    }

    fn checked(&self) -> Option<Checked> {
        let count = |shape: &[usize]| shape.iter().product::<usize>();
        let of_elements = self.compiled.shape().components().iter().map(|c| count(&c.1)).sum();
        if self.deferred {
            let parts = self.compiled.parts().into_iter();
            let of_rows = parts.filter_map(|p| p.lengths.first().copied()).max().unwrap_or(1);
            return Some(Checked { of_elements, of_rows, ..Checked::default() });
        }
        let choice = self.choice.as_ref()?;
        let places = self.initial()?.places.iter();
        let elements = places.map(|(shape, at)| at.as_ref().map_or(count(shape), Vec::len)).sum();
        // If there are several parts, the one with most rows is reported.
        let parts = self.compiled.parts().into_iter().zip(choice);
        let rows = parts.filter_map(|(part, axes)| {
            let n = *part.lengths.first()?;
            Some((n, axes.first().and_then(Option::as_ref).map_or(n, |at| at.len())))
        });
        let (of_rows, rows) = rows.max().unwrap_or_default();
        Some(Checked { elements, of_elements, rows, of_rows, agreed: 0, overturned: 0 })
    }
}

/// Returns what was computed; `None` if the work was stopped because it was `late`.
fn in_time<T>(computed: Result<T>, late: &Interrupt) -> Result<Option<T>> {
    match computed {
        Err(_) if late.requested() => Ok(None),
        computed => computed.map(Some),
    }
}

/// Starts the interpreter on a thread of its own. Returns where its answer arrives.
fn on_its_own(work: impl FnOnce() -> Result<Answer> + Send + 'static) -> Receiver<Result<Answer>> {
    let (send, pending) = mpsc::channel();
    let failed = send.clone();
    let work = move || {
        // Sending fails if the search was stopped and nobody listens any more; that is fine.
        let _ = send.send(work());
    };
    if let Err(e) = thread::Builder::new().stack_size(STACK_BYTES).spawn(work) {
        let _ = failed.send(Err(no_thread(&e)));
    }
    pending
}

/// Reports that the interpreter ended without a result, presumably by a panic.
fn gone() -> Failure {
    Diagnostic::error(Code::Internal, "the interpreter ended without a result").into()
}

impl Known {
    fn compute(compiled: &Compiled, choice: &Choice, stop: &Interrupt) -> Result<Known> {
        let value = compiled.run_until(choice, stop)?;
        let shapes: Vec<Vec<usize>> =
            compiled.shape().components().into_iter().map(|c| c.1).collect();
        let mut places_of: Vec<_> = shapes.into_iter().map(|shape| (shape, None)).collect();
        for (part, axes) in compiled.parts().into_iter().zip(choice) {
            for (shape, at) in &mut places_of[part.components] {
                *at = places(shape, axes);
            }
        }
        Ok(Known { value, places: places_of })
    }

    fn compare(&self, outputs: &[HostArray], terms: u64) -> Comparison {
        let bytes: Vec<&[u8]> = outputs.iter().map(HostArray::bytes).collect();
        compare_at(&self.value, &self.places, &bytes, terms)
    }
}

/// Returns the elements of each component of a result: all of them, or a sample if all would take the interpreter
/// too long.
///
/// # Errors
/// When the program has no value on these inputs.
pub fn wanted(
    entry: &Entry,
    sizes: &IndexMap<String, u64>,
    inputs: &[Value],
    limits: &Limits,
) -> Result<Vec<Vec<Wanted>>> {
    let budget = limits.reference_operations as f64;
    let find = || {
        Compiled::new(entry, sizes, inputs)
            .and_then(|c| Answer::find(c, budget, f64::INFINITY, &Interrupt::NEVER))
    };
    let answer = on_own_stack(find)??;
    let known = answer.known.first().ok_or_else(gone)?;
    let terms = interp::terms(entry, sizes);
    let leaves = known.value.leaves().iter().zip(&known.places);
    Ok(leaves
        .map(|(leaf, (_, at))| {
            let (mut out, tolerance) = (vec![], Tolerance::of(leaf.ty(), terms));
            let mut k = 0;
            leaf.for_each(&mut |cell| {
                let index = at.as_ref().map_or(k, |at| at.get(k).copied().unwrap_or_default());
                k += 1;
                // An integer that depends on rounding has no single expected value.
                if leaf.ty().is_float() || !cell.is_doubtful() {
                    out.push(Wanted { index, cell, slack: tolerance.slack(leaf.ty(), &cell) });
                }
            });
            out
        })
        .collect())
}

impl Reference {
    /// Starts the interpreter on a thread of its own.
    pub fn start(
        entry: &Entry,
        sizes: &IndexMap<String, u64>,
        inputs: &[Value],
        limits: &Limits,
    ) -> Reference {
        Reference::begin(entry, sizes, inputs, limits, None)
    }

    /// Starts the interpreter on a thread of its own, unless it would take minutes. Then it runs only if
    /// [`Reference::is_disputed`]. A [wait](Reference::wait) for it ends after [`Limits::reference_time`], with what it
    /// has until then.
    pub fn for_search(
        entry: &Entry,
        sizes: &IndexMap<String, u64>,
        inputs: &[Value],
        limits: &Limits,
    ) -> Reference {
        Reference::begin(entry, sizes, inputs, limits, Some(PATIENCE))
    }

    fn begin(
        entry: &Entry,
        sizes: &IndexMap<String, u64>,
        inputs: &[Value],
        limits: &Limits,
        patience: Option<f64>,
    ) -> Reference {
        let budget = limits.reference_operations as f64;
        let (of, at, on) = (entry.clone(), sizes.clone(), inputs.to_vec());
        let most = patience.map_or(f64::INFINITY, |patience| patience * budget);
        let late = if patience.is_some() { Interrupt::default() } else { Interrupt::NEVER };
        let stop = late.clone();
        let work = move || Answer::find(Compiled::new(&of, &at, &on)?, budget, most, &stop);
        Reference {
            pending: Some(on_its_own(work)),
            answer: None,
            terms: interp::terms(entry, sizes),
            budget,
            most: patience.map(|_| limits.reference_time),
            late,
            dispute: patience.map(|_| limits.dispute_time),
            right: None,
            doubted: None,
            agreed: 0,
            overturned: 0,
            was_disputed: false,
        }
    }

    /// Allows half a unit for each term, not for each root: the worst case of rounding. On inputs with few different
    /// values, a long sum rounds the same way again and again, so that errors do not cancel: sums of squares of 8192
    /// centred whole numbers are off by up to 900 units, those of normal numbers by 30. Exact results stay exact.
    #[must_use]
    pub fn with_like_errors(self) -> Reference {
        Reference { terms: self.terms.saturating_mul(self.terms), ..self }
    }

    /// Returns whether the result is available.
    pub fn is_ready(&self) -> bool {
        self.answer.is_some()
    }

    /// Returns whether the interpreter was deferred, and has not run since.
    pub fn is_deferred(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| answer.deferred)
    }

    /// Waits for the result. Returns `false` if `go_on` returned `false` before the result was available. In a search,
    /// the wait is short: then the interpreter is to end with what it has.
    ///
    /// # Errors
    /// When the program has no value on these inputs.
    pub fn wait(&mut self, go_on: impl Fn() -> bool) -> Result<bool> {
        let begun = Instant::now();
        while self.answer.is_none() {
            if self.most.is_some_and(|most| begun.elapsed() > most) {
                self.late.request();
            }
            let Some(pending) = &self.pending else { return Err(gone()) };
            match pending.recv_timeout(POLL) {
                Ok(result) => {
                    self.pending = None;
                    self.answer = Some(result?);
                    self.spend(begun);
                }
                Err(RecvTimeoutError::Timeout) if go_on() => {}
                Err(RecvTimeoutError::Timeout) => return Ok(false),
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
            }
        }
        Ok(true)
    }

    /// Returns how results were checked so far; `None` unless the interpreter computed only a sample.
    pub fn checked(&self) -> Option<Checked> {
        let checked = self.answer.as_ref()?.checked()?;
        Some(Checked { agreed: self.agreed, overturned: self.overturned, ..checked })
    }

    /// Returns the [`digest`] of a result known to be right. Outputs with this digest need no comparison:
    /// [`Reference::same`] gives the verdict on them.
    pub fn right(&self) -> Option<&str> {
        self.right.as_ref().map(|right| right.digest.as_str())
    }

    /// Returns the verdict on outputs identical to those known to be right; `None` if no outputs are.
    pub fn same(&mut self) -> Option<Verdict> {
        let comparison = self.right.as_ref()?.comparison.clone();
        self.agreed += 1;
        Some(Verdict { comparison, overturned: false, undecided: false })
    }

    /// Returns whether outputs differ from the witness's and the interpreter was deferred. The interpreter is then
    /// started, and one must [wait](Reference::wait) for it before the outputs are compared.
    pub fn is_disputed(&mut self, outputs: &[HostArray]) -> bool {
        let late = if self.dispute.is_some() { Interrupt::default() } else { Interrupt::NEVER };
        self.is_disputed_until(late, outputs)
    }

    /// The same, with what tells the interpreter that it is late.
    fn is_disputed_until(&mut self, late: Interrupt, outputs: &[HostArray]) -> bool {
        let (Some(answer), Some(right)) = (&self.answer, &self.right) else { return false };
        let witness = &right.outputs;
        if !answer.deferred
            || self.dispute == Some(Duration::ZERO)
            || answer.disagreements(witness, outputs, self.terms).0 == 0
        {
            return false;
        }
        let Some(answer) = self.answer.take() else { return false };
        let budget = self.budget;
        self.most = self.dispute;
        let stop = late.clone();
        self.late = late;
        // Without the result, nobody can say which kernel is wrong.
        let work = move || Answer::find(answer.compiled, budget, f64::INFINITY, &stop);
        self.pending = Some(on_its_own(work));
        self.doubted = self.right.take();
        true
    }

    /// Takes the time since `begun` from what is left for disagreements, if the interpreter's answer was to settle one.
    /// Without a result, the witness stands.
    fn spend(&mut self, begun: Instant) {
        let Some(doubted) = self.doubted.take() else { return };
        let unknown = self.is_deferred();
        self.dispute = self.dispute.map(|left| match unknown {
            true => Duration::ZERO,
            false => left.saturating_sub(begun.elapsed()),
        });
        if unknown {
            self.right = Some(doubted);
        } else {
            self.was_disputed = true;
        }
    }

    /// Compares a kernel's outputs with the reference; `None` if the result is not available yet.
    ///
    /// # Errors
    /// When the program has no value at an element where two kernels disagree.
    pub fn compare(&mut self, outputs: Vec<HostArray>) -> Result<Option<Verdict>> {
        let Some(answer) = &mut self.answer else { return Ok(None) };
        let terms = self.terms;
        let disputed = std::mem::take(&mut self.was_disputed);
        let verdict = |comparison, overturned| {
            let overturned = overturned || disputed;
            Ok(Some(Verdict { comparison, overturned, undecided: false }))
        };
        if let Some(right) = &self.right
            && right.outputs == outputs
        {
            return Ok(self.same());
        }
        let mut comparison: Option<Comparison> = None;
        for known in &answer.known {
            let more = known.compare(&outputs, terms);
            if !more.ok {
                return verdict(more, false);
            }
            comparison = Some(match comparison {
                Some(c) if c.max_rel_err >= more.max_rel_err => c,
                _ => more,
            });
        }
        let comparison = comparison.unwrap_or_else(Comparison::clean);
        let witness = match &self.right {
            Some(right) if answer.is_partial() => &right.outputs,
            _ => {
                self.right = Some(Right::new(outputs, &comparison));
                return verdict(comparison, false);
            }
        };
        let (count, elements) = answer.disagreements(witness, &outputs, terms);
        let begun = Instant::now();
        let judged = answer.judge(&elements, self.budget, self.dispute)?;
        self.dispute = self.dispute.map(|left| left.saturating_sub(begun.elapsed()));
        if judged.is_empty() && count > 0 {
            let text = "they differ from another kernel's, and the interpreter could not compute one of them in time";
            let first = Some(text.to_owned());
            let comparison = Comparison { ok: false, mismatches: count, first, ..comparison };
            return Ok(Some(Verdict { comparison, overturned: disputed, undecided: true }));
        }
        let (mut wrong, mut overturned) = (None, false);
        for known in judged {
            overturned |= !known.compare(witness, terms).ok;
            let own = known.compare(&outputs, terms);
            if !own.ok {
                wrong.get_or_insert(Comparison { mismatches: count, ..own });
            }
            answer.known.push(known);
        }
        if overturned {
            self.right = None;
            self.overturned += 1;
            self.agreed = 0;
        }
        match wrong {
            Some(wrong) => verdict(wrong, overturned),
            None => {
                match &self.right {
                    Some(_) => self.agreed += 1,
                    None => self.right = Some(Right::new(outputs, &comparison)),
                }
                verdict(comparison, overturned)
            }
        }
    }
}

impl Answer {
    /// Returns how many elements of two results differ by more than the tolerance, and the component and index of
    /// some of them. Magnitudes are not known outside the sample, so the least magnitude in the sample stands for
    /// them, or the results themselves: this reports too many differences rather than too few.
    fn disagreements(
        &self,
        left: &[HostArray],
        right: &[HostArray],
        terms: u64,
    ) -> (usize, Vec<(usize, usize)>) {
        let (mut count, mut elements) = (0, vec![]);
        let sampled = self.initial().map_or(&[][..], |known| known.value.leaves());
        for (i, (a, b)) in left.iter().zip(right).enumerate() {
            let ty = a.ty();
            let relative = Tolerance::of(ty, terms).relative(ty);
            let least = sampled.get(i).map_or(0.0, Leaf::least_magnitude);
            let found = agree(ty, a.bytes(), b.bytes(), relative, least, JUDGED);
            count += found.count;
            elements.extend(found.elements.into_iter().map(|e| (i, e)));
        }
        (count, elements)
    }

    /// Computes the given elements until the budget is spent, but at least the first, or until the time is over.
    fn judge(
        &self,
        elements: &[(usize, usize)],
        budget: f64,
        time: Option<Duration>,
    ) -> Result<Vec<Known>> {
        let compute = |late: &Interrupt| {
            let (mut spent, mut out) = (0.0, vec![]);
            for (component, index) in elements {
                let choice = only(&self.compiled, *component, *index);
                spent += self.compiled.operations(&choice);
                if late.requested() || spent > budget && !out.is_empty() {
                    break;
                }
                let known = Known::compute(&self.compiled, &choice, late);
                out.extend(in_time(known, late)?);
            }
            Ok(out)
        };
        let Some(time) = time.filter(|_| !elements.is_empty()) else {
            return compute(&Interrupt::NEVER);
        };
        let (late, (done, ended)) = (Interrupt::default(), mpsc::channel::<()>());
        if time.is_zero() {
            return Ok(vec![]);
        }
        thread::scope(|threads| {
            let of_clock = late.clone();
            threads.spawn(move || {
                if ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                    of_clock.request();
                }
            });
            let computed = compute(&late);
            drop(done);
            computed
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Source;
    use crate::lang::check_entry;
    use crate::lang::types::ScalarType::F32;

    const PRODUCT: &str = "entry f [n] (A: [n][n]f32) (B: [n][n]f32) : [n][n]f32 =
        map (\\row -> map (\\col -> reduce (+) 0 (map2 (*) row col)) (transpose B)) A";
    const N: usize = 48;

    /// Returns a matrix product, its sizes and inputs.
    fn of_product() -> (Entry, IndexMap<String, u64>, [Value; 2]) {
        let entry = check_entry(&Source::new("f.pat", PRODUCT), None).expect("a program");
        let numbers: Vec<f64> = (0..N * N).map(|i| ((i * 7919 % 31) as f64 - 15.0) * 0.1).collect();
        let matrix = || Value::floats(F32, &[N, N], &numbers);
        (entry, IndexMap::from([("n".to_owned(), N as u64)]), [matrix(), matrix()])
    }

    /// Returns the right result of a product.
    fn right_of((entry, sizes, inputs): &(Entry, IndexMap<String, u64>, [Value; 2])) -> Vec<f32> {
        let right = interp::run(entry, sizes, inputs).expect("a result").to_floats();
        #[expect(clippy::cast_possible_truncation, reason = "they are of this type")]
        right.into_iter().map(|x| x as f32).collect()
    }

    /// Returns the reference for a matrix product, and the right result.
    fn product(operations: u64) -> (Reference, Vec<f32>) {
        let program = of_product();
        let right = right_of(&program);
        let (entry, sizes, inputs) = program;
        let limits = Limits { reference_operations: operations, ..Limits::default() };
        let mut reference = Reference::start(&entry, &sizes, &inputs, &limits);
        assert!(reference.wait(|| true).expect("a reference"));
        (reference, right)
    }

    fn judged(reference: &mut Reference, xs: &[f32]) -> Verdict {
        let verdict = reference.compare(vec![HostArray::from_slice(xs)]);
        verdict.expect("an answer").expect("a verdict")
    }

    /// Returns two elements outside the sample, and one inside.
    fn outside(reference: &Reference) -> (usize, usize, usize) {
        let answer = reference.answer.as_ref().expect("an answer");
        let places = |known: &Known| known.places[0].1.clone().expect("a sample");
        let at: Vec<usize> = answer.initial().map(places).unwrap_or_default();
        let mut free = (0..N * N).filter(|i| !at.contains(i));
        let first = free.next().expect("an element outside the sample");
        let last = free.next_back().expect("another element outside it");
        (first, last, at[at.len() / 2])
    }

    fn with(xs: &[f32], i: usize, off: f32) -> Vec<f32> {
        let mut out = xs.to_vec();
        out[i] += off;
        out
    }

    #[test]
    fn elements_are_wanted_where_they_are() {
        let (entry, sizes, inputs) = of_product();
        let of = |operations| {
            let limits = Limits { reference_operations: operations, ..Limits::default() };
            wanted(&entry, &sizes, &inputs, &limits).expect("a result").remove(0)
        };
        let (all, some) = (of(u64::MAX), of(100_000));
        assert!(all.len() == N * N && (1..N * N).contains(&some.len()));
        assert!(all.iter().enumerate().all(|(i, w)| w.index == i));
        for w in &some {
            assert_eq!((w.cell.bits, w.slack), (all[w.index].cell.bits, all[w.index].slack));
            assert!(w.slack > 0.0);
        }
        assert_eq!(some.last().map(|w| w.index), Some(N * N - 1));
    }

    #[test]
    fn like_errors_add_up() {
        let (entry, sizes, inputs) = of_product();
        let all = wanted(&entry, &sizes, &inputs, &Limits::default()).expect("a result").remove(0);
        let (mut reference, right) = product(u64::MAX);
        #[expect(clippy::cast_possible_truncation, reason = "it is of this type")]
        let off = with(&right, 7, (1.15 * all[7].slack) as f32);
        assert!(!judged(&mut reference, &off).comparison.ok);
        let (reference, _) = product(u64::MAX);
        let mut reference = reference.with_like_errors();
        assert!(judged(&mut reference, &off).comparison.ok);
        assert!(!judged(&mut reference, &with(&right, 7, 1.0)).comparison.ok);
    }

    #[test]
    fn small_results_are_computed_whole() {
        let (mut reference, right) = product(u64::MAX);
        assert!(judged(&mut reference, &right).comparison.ok);
        let verdict = judged(&mut reference, &with(&right, 77, 1.0));
        assert_eq!(verdict.comparison.mismatches, 1);
        assert_eq!(reference.checked(), None);
    }

    #[test]
    fn a_wrong_candidate_is_found_outside_the_sample() {
        let (mut reference, right) = product(100_000);
        let (free, other, inside) = outside(&reference);
        assert!(!judged(&mut reference, &with(&right, inside, 1.0)).comparison.ok);
        assert!(judged(&mut reference, &right).comparison.ok);
        assert_eq!(reference.checked().expect("a sample was computed").agreed, 0);
        let wrong = judged(&mut reference, &with(&with(&right, free, 1.0), other, f32::NAN));
        assert!(!wrong.comparison.ok && !wrong.overturned);
        assert_eq!(wrong.comparison.mismatches, 2);
        let text = wrong.comparison.first.expect("a place");
        let place = format!("result 0, element {free} [{}, {}]", free / N, free % N);
        assert!(text.starts_with(&place), "{text}");
        // Rounding due to a different order of summation is not a disagreement.
        let near: Vec<f32> = right.iter().map(|x| x * (1.0 + f32::EPSILON)).collect();
        assert!(judged(&mut reference, &near).comparison.ok);
        let checked = reference.checked().expect("a sample was computed");
        assert_eq!((checked.agreed, checked.overturned, checked.of_rows), (1, 0, N));
        // A digest is enough to recognise the same bytes.
        assert_eq!(reference.right(), Some(digest(&[HostArray::from_slice(&right)]).as_str()));
        assert_eq!(reference.same(), Some(judged(&mut reference, &right)));
        assert_eq!(reference.checked().expect("a sample was computed").agreed, 3);
        assert!(checked.elements < checked.of_elements && checked.of_elements == N * N);
    }

    #[test]
    fn a_deferred_interpreter_decides_a_dispute() {
        let (entry, sizes, inputs) = of_product();
        let (_, right) = product(u64::MAX);
        let limits = Limits { reference_operations: 10, ..Limits::default() };
        let begin = || {
            let mut reference = Reference::for_search(&entry, &sizes, &inputs, &limits);
            assert!(reference.wait(|| true).expect("nothing to compute"));
            reference
        };
        let outputs = |xs: &[f32]| [HostArray::from_slice(xs)];
        // Kernels that agree are believed.
        let mut reference = begin();
        assert!(judged(&mut reference, &right).comparison.ok);
        assert!(!reference.is_disputed(&outputs(&right)));
        assert!(judged(&mut reference, &right).comparison.ok);
        let checked = reference.checked().expect("a deferred interpreter");
        assert_eq!((checked.elements, checked.of_elements, checked.agreed), (0, N * N, 1));
        assert!(checked.to_string().contains("which would take long"), "{checked}");
        // A wrong witness is found by the next kernel, and a wrong kernel after it too.
        let mut reference = begin();
        let wrong = with(&right, 7, 1.0);
        assert!(judged(&mut reference, &wrong).comparison.ok);
        assert!(reference.is_disputed(&outputs(&right)) && !reference.is_ready());
        assert!(reference.wait(|| true).expect("a result"));
        let verdict = judged(&mut reference, &right);
        assert!(verdict.comparison.ok && verdict.overturned);
        let verdict = judged(&mut reference, &wrong);
        assert!(!verdict.comparison.ok && !verdict.overturned);
    }

    /// A dispute that takes the interpreter too long leaves the witness, and calls no kernel wrong.
    #[test]
    fn a_dispute_without_a_decision_leaves_the_witness() {
        let program = of_product();
        let right = right_of(&program);
        let (entry, sizes, inputs) = program;
        let other = with(&right, 7, 1.0);
        let outputs = |xs: &[f32]| [HostArray::from_slice(xs)];
        // A deferred interpreter is started, and is late from the beginning.
        let late = Interrupt::default();
        late.request();
        let limits = Limits {
            reference_operations: 10,
            dispute_time: Duration::from_nanos(1),
            ..Limits::default()
        };
        let mut reference = Reference::for_search(&entry, &sizes, &inputs, &limits);
        assert!(reference.wait(|| true).expect("nothing to compute"));
        assert!(judged(&mut reference, &right).comparison.ok);
        assert!(reference.is_disputed_until(late, &outputs(&other)));
        assert!(reference.wait(|| true).expect("no result"));
        assert!(reference.is_deferred());
        let verdict = judged(&mut reference, &other);
        assert!(!verdict.comparison.ok && verdict.undecided && !verdict.overturned);
        assert_eq!(verdict.class(), FailureClass::Undecided);
        // There is no time for another dispute, and the witness is still believed.
        assert!(!reference.is_disputed(&outputs(&other)));
        assert!(judged(&mut reference, &right).comparison.ok);
        // With a sample, the disputed elements are what takes too long.
        let (entry, sizes, inputs) = of_product();
        let (_, right) = product(u64::MAX);
        let limits = Limits {
            reference_operations: 40_000,
            dispute_time: Duration::ZERO,
            ..Limits::default()
        };
        let mut reference = Reference::for_search(&entry, &sizes, &inputs, &limits);
        assert!(reference.wait(|| true).expect("a sample"));
        let (elsewhere, _, _) = outside(&reference);
        assert!(judged(&mut reference, &right).comparison.ok);
        let verdict = judged(&mut reference, &with(&right, elsewhere, 1.0));
        assert!(!verdict.comparison.ok && verdict.undecided);
        assert!(judged(&mut reference, &right).comparison.ok);
    }

    /// However long the interpreter takes, a search begins: with a small sample if there is one.
    #[test]
    fn a_late_interpreter_answers_with_what_it_has() {
        let (entry, sizes, inputs) = of_product();
        let (late, budget) = (Interrupt::default(), 100_000.0);
        let compiled = || Compiled::new(&entry, &sizes, &inputs).expect("a program");
        let elements = |answer: &Answer| answer.checked().expect("a sample").elements;
        let all = Answer::find(compiled(), budget, f64::INFINITY, &late).expect("a sample");
        let wanted = all.choice.clone().expect("a sample");
        let small = Answer::first(compiled(), budget, &wanted, &late).expect("a small sample");
        let of_small = elements(&small);
        assert!((1..elements(&all)).contains(&of_small));
        late.request();
        let kept = small.grown(Some(wanted), &all.choice.expect("a sample"), &late);
        assert_eq!(elements(&kept.expect("the small sample")), of_small);
        // The request comes before anything is there.
        let nothing = Answer::find(compiled(), budget, f64::INFINITY, &late);
        assert!(nothing.expect("nothing to compute").deferred);
        // A wait makes the request itself.
        let limits = Limits { reference_time: Duration::ZERO, ..Limits::default() };
        let mut reference = Reference::for_search(&entry, &sizes, &inputs, &limits);
        assert!(reference.wait(|| true).expect("an answer") && reference.late.requested());
    }

    #[test]
    fn a_wrong_witness_is_overturned() {
        let (mut reference, right) = product(100_000);
        let (free, other, _) = outside(&reference);
        let wrong = with(&right, free, 1.0);
        assert!(judged(&mut reference, &wrong).comparison.ok);
        let verdict = judged(&mut reference, &right);
        assert!(verdict.comparison.ok && verdict.overturned);
        // A result accepted for agreeing with the overturned witness is now wrong, without further computation.
        let again = judged(&mut reference, &wrong);
        assert!(!again.comparison.ok && !again.overturned);
        assert!(!judged(&mut reference, &with(&right, other, 1.0)).comparison.ok);
        assert!(judged(&mut reference, &right).comparison.ok);
        assert_eq!(reference.checked().expect("a sample was computed").overturned, 1);
    }

    #[test]
    fn both_may_be_wrong() {
        let (mut reference, right) = product(100_000);
        let (free, other, _) = outside(&reference);
        assert!(judged(&mut reference, &with(&right, free, 1.0)).comparison.ok);
        let verdict = judged(&mut reference, &with(&right, other, f32::NAN));
        assert!(!verdict.comparison.ok && verdict.overturned);
        assert!(!judged(&mut reference, &with(&right, other, 2.0)).comparison.ok);
        assert!(judged(&mut reference, &right).comparison.ok);
    }
}
