//! Checks kernels a second time, on inputs with small whole numbers.
//!
//! The tolerance of a long sum of floats is larger than one of its elements. Sums and products of small whole numbers
//! are exact in every order, so an element that is lost, counted twice or misplaced always shows. Every float of the
//! inputs becomes a small whole number of the same sign, and zeros remain. If the sums could exceed what the type
//! holds exactly, most elements become 0. The values need not be sensible inputs for the program: results that are not
//! exact are compared within the tolerance of rounding, for errors that do not cancel.

use super::Session;
use super::program::{Program, Sizes};
use crate::calculus::interp;
use crate::calculus::value::{Comparison, Value};
use crate::device::DeviceInfo;
use crate::diag::{Limits, Result};
use crate::lang::types::ScalarType;
use crate::opencl::host::{HostArray, Inputs, Slot};
use crate::tune::event::Observer;
use crate::tune::reference::Reference;
use crate::tune::variant::Variant;
use crate::tune::worker::WorkerError;
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::sync::Arc;

/// The largest of the whole numbers.
const LARGEST: u64 = 3;

/// The second check may take the interpreter this fraction (a divisor) of the operations of the first one.
const SHARE: u64 = 4;

/// The second check of one program: its inputs and the reference result.
pub(super) struct Whole {
    inputs: Arc<Inputs>,
    reference: Reference,
}

impl Whole {
    /// Whether kernels are compared with each other, because the interpreter would take minutes.
    pub(super) fn is_deferred(&self) -> bool {
        self.reference.is_deferred()
    }
}

impl Session {
    /// Prepares the check of a program on inputs like these. Returns `None` if there are no floats among the inputs,
    /// loops may not end on other inputs, or the program has no value on the whole numbers.
    pub(super) fn on_whole_numbers(
        &self,
        program: &Program,
        sizes: &Sizes,
        inputs: &Inputs,
        observer: &dyn Observer,
    ) -> Result<Option<Whole>> {
        let entry = &program.entry;
        let own = |slot: &Slot| entry.params.iter().any(|p| p.name == slot.param);
        let mut arrays = inputs.0.iter().filter(|(slot, _)| own(slot));
        let floats = arrays.any(|(_, array)| array.ty().is_float());
        if !floats || interp::may_not_end(entry) {
            return Ok(None);
        }
        let inputs = whole(inputs, interp::terms(entry, sizes), own);
        let mut values = vec![];
        for param in &entry.params {
            let shape = program.placed(interp::shape(&param.ty, sizes))?;
            let buffers: Vec<&[u8]> = (0..shape.width())
                .filter_map(|k| Some(inputs.get(&param.name, k)?.bytes()))
                .collect();
            let Ok(value) = Value::from_bytes(&shape, &buffers) else { return Ok(None) };
            values.push(value);
        }
        let operations = self.limits.reference_operations / SHARE;
        let limits = Limits { reference_operations: operations, ..self.limits.clone() };
        let mut reference =
            Reference::for_search(entry, sizes, &values, &limits).with_like_errors();
        drop(values);
        // With whole numbers, an index may be out of range or a divisor 0.
        let ready = reference.wait(|| !observer.stop()).unwrap_or(false);
        Ok(ready.then_some(Whole { inputs: Arc::new(inputs), reference }))
    }

    /// Runs kernels on whole numbers, and returns the comparison if their result is wrong.
    pub(super) fn wrong_on_whole_numbers(
        &self,
        device: &DeviceInfo,
        variant: &Variant,
        whole: &mut Whole,
        observer: &dyn Observer,
    ) -> Result<Option<Comparison>> {
        let mut worker = self.start_worker(device, whole.inputs.clone());
        let answer = worker.prepare(variant.plan.clone()).and_then(|(id, _)| worker.check(id));
        let outputs = match answer {
            Ok((_, outputs)) => outputs,
            Err(WorkerError::Worker(failure)) => return Err(failure),
            // The kernels ran on the actual inputs, so a failure on these inputs does not count as wrong.
            Err(WorkerError::Candidate(_) | WorkerError::Interrupted) => return Ok(None),
        };
        let reference = &mut whole.reference;
        if reference.is_disputed(&outputs) && !reference.wait(|| !observer.stop()).unwrap_or(false)
        {
            return Ok(None);
        }
        let verdict = reference.compare(outputs).ok().flatten();
        let wrong = verdict.filter(|v| !v.comparison.ok && !v.undecided);
        Ok(wrong.map(|v| v.comparison).map(|wrong| Comparison {
            first: wrong.first.map(|text| format!("with whole numbers for inputs: {text}")),
            ..wrong
        }))
    }
}

/// Returns the inputs with whole numbers in place of floats, for sums of up to `terms` terms.
fn whole(inputs: &Inputs, terms: u64, own: impl Fn(&Slot) -> bool) -> Inputs {
    let mut rng = SmallRng::seed_from_u64(terms);
    let mut out = Inputs::default();
    for (slot, array) in inputs.0.iter().filter(|(slot, _)| own(slot)) {
        // Half of the largest range of exact integers. Each term may be a product of two numbers.
        let exact: u64 = match array.ty() {
            ScalarType::F16 => 1 << 10,
            ScalarType::BF16 => 1 << 7,
            ScalarType::F32 => 1 << 23,
            _ => 1 << 52,
        };
        let one_in = (terms.saturating_mul(LARGEST * LARGEST) / exact).max(1);
        let mut number = |x: f64| -> f64 {
            let n = rng.random_range(1..=LARGEST) as f64;
            let kept = one_in == 1 || rng.random_range(0..one_in) == 0;
            if x == 0.0 || !kept { 0.0 } else { n.copysign(x) }
        };
        let array = match array.ty() {
            ScalarType::F16 => {
                let xs = array.to_vec::<half::f16>().unwrap_or_default();
                let new = |x: half::f16| half::f16::from_f64(number(x.to_f64()));
                HostArray::from_slice(&xs.into_iter().map(new).collect::<Vec<_>>())
            }
            ScalarType::BF16 => {
                let xs = array.to_vec::<half::bf16>().unwrap_or_default();
                let new = |x: half::bf16| half::bf16::from_f64(number(x.to_f64()));
                HostArray::from_slice(&xs.into_iter().map(new).collect::<Vec<_>>())
            }
            ScalarType::F32 => {
                let xs = array.to_vec::<f32>().unwrap_or_default();
                #[expect(clippy::cast_possible_truncation, reason = "rounded to the type")]
                let new = |x: f32| number(f64::from(x)) as f32;
                HostArray::from_slice(&xs.into_iter().map(new).collect::<Vec<_>>())
            }
            ScalarType::F64 => {
                let xs = array.to_vec::<f64>().unwrap_or_default();
                HostArray::from_slice(&xs.into_iter().map(number).collect::<Vec<_>>())
            }
            _ => array.clone(),
        };
        out.insert(&slot.param, slot.component, array);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Source;
    use crate::lang::check_entry;

    fn inputs(xs: &[f32]) -> Inputs {
        let mut out = Inputs::default();
        out.insert("xs", 0, HostArray::from_slice(xs));
        out
    }

    #[test]
    fn signs_and_zeros_remain_and_long_sums_are_exact() {
        let xs: Vec<f32> = (0..1000).map(|i| (i % 7) as f32 * 0.3 - 0.9).collect();
        let few = whole(&inputs(&xs), 1000, |_| true);
        let few = few.get("xs", 0).and_then(HostArray::to_vec::<f32>).expect("floats");
        for (x, y) in xs.iter().zip(&few) {
            assert!(y.fract() == 0.0 && y.abs() <= 3.0);
            assert_eq!(y.abs() > 0.0, *x != 0.0);
            assert!(x * y >= 0.0);
        }
        let many = whole(&inputs(&xs), 1 << 24, |_| true);
        let many = many.get("xs", 0).and_then(HostArray::to_vec::<f32>).expect("floats");
        let left = many.iter().filter(|x| **x != 0.0).count();
        assert!((20..200).contains(&left), "{left}");
    }

    #[test]
    fn one_lost_element_of_a_long_sum_shows() {
        let text = "entry f [n] (xs: [n]f32) : f32 = reduce (+) 0 xs";
        let entry = check_entry(&Source::new("f.pat", text), None).expect("a program");
        let n = 200_000;
        let sizes = Sizes::from([("n".to_owned(), n as u64)]);
        let judged = |inputs: &Inputs, off: f32| {
            let xs = inputs.get("xs", 0).and_then(HostArray::to_vec::<f32>).expect("floats");
            #[expect(clippy::cast_possible_truncation, reason = "rounded to the type")]
            let sum = xs.iter().map(|x| f64::from(*x)).sum::<f64>() as f32;
            let value = Value::floats(
                ScalarType::F32,
                &[n],
                &xs.iter().map(|x| f64::from(*x)).collect::<Vec<_>>(),
            );
            let mut reference = Reference::start(&entry, &sizes, &[value], &Limits::default());
            assert!(reference.wait(|| true).expect("a sum"));
            let verdict = reference.compare(vec![HostArray::from_slice(&[sum - off])]);
            verdict.expect("an answer").expect("a verdict").comparison.ok
        };
        let any = inputs(&vec![0.7f32; n]);
        // The lost element is within the tolerance of floats, which is why the second check exists.
        assert!(judged(&any, 0.7));
        let whole = whole(&any, n as u64, |_| true);
        assert!(judged(&whole, 0.0) && !judged(&whole, 1.0));
    }
}
