//! Measures arithmetic: rates by type and vector width, the cost of expensive operations, the latency of a
//! multiply-add, and the independent chains that hide this latency.

use super::Bench;
use super::lab::{Answer, Reading, Trial};
use crate::diag::Result;
use crate::lang::types::ScalarType;
use crate::opencl::probe::compute::{Shape, Step, arithmetic};
use crate::opencl::probe::{Count, Fleet};

/// Independent vectors in each work-item: enough to hide a latency of four cycles in two units.
const CHAINS: usize = 8;

/// A width is good enough for copies when no other width is faster by this factor.
pub const GAIN: f64 = 1.05;

/// A width counts as fast as the best one when it reaches this share of the best rate.
const NEAR: f64 = 0.9;

/// A rate with the width of vectors that reaches it.
type Best = (usize, Reading);

pub fn measure(b: &mut Bench) -> Result<()> {
    let fleet = b.crowd();
    let step = multiply_add(b, ScalarType::F32, fleet)?;
    let single = rates(b, step, ScalarType::F32, &[1, 2, 4, 8, 16], fleet)?;
    let best = fastest(&single);
    floats(b, &single, best.as_ref(), fleet);
    others(b, fleet)?;
    let Ok((width, fma)) = best else { return Ok(()) };
    dear(b, width, fma, fleet)?;
    waiting(b, step, width, fleet)
}

/// Returns the faster form of a multiply-add: `fma` or `mad`.
fn multiply_add(b: &mut Bench, ty: ScalarType, fleet: Fleet) -> Result<Step> {
    let shape = Shape { ty, width: 4, chains: CHAINS };
    let trial = |step| Trial::growing(Count::power(4), move |n| arithmetic(step, shape, fleet, n));
    let answers = b.lab.compare(&[trial(Step::Fma), trial(Step::Mad)])?;
    let ns = |a: &Answer| a.as_ref().map_or(f64::INFINITY, |r| r.ns);
    let fused = matches!(&answers[..], [fma, mad] if ns(fma) <= ns(mad));
    Ok(if fused { Step::Fma } else { Step::Mad })
}

/// Measures the rate of each width; a width that fails has the reason in place of its rate.
fn rates(
    b: &mut Bench,
    step: Step,
    ty: ScalarType,
    widths: &[usize],
    fleet: Fleet,
) -> Result<Vec<(usize, Answer)>> {
    let trials: Vec<Trial> = widths
        .iter()
        .map(|&width| {
            let shape = Shape { ty, width, chains: CHAINS };
            Trial::growing(Count::power(6), move |n| arithmetic(step, shape, fleet, n))
        })
        .collect();
    Ok(widths.iter().copied().zip(b.lab.compare(&trials)?).collect())
}

/// Returns the narrowest width that is about as fast as the fastest, with its reading.
fn fastest(rates: &[(usize, Answer)]) -> std::result::Result<Best, String> {
    let readings: Vec<Best> =
        rates.iter().filter_map(|(w, a)| Some((*w, *a.as_ref().ok()?))).collect();
    let top = readings.iter().map(|(_, r)| r.rate()).fold(0.0, f64::max);
    let near = readings.into_iter().find(|(_, r)| r.rate() >= NEAR * top);
    near.ok_or_else(|| rates.iter().find_map(|(_, a)| a.clone().err()).unwrap_or_default())
}

/// Lists the rate of each width as text.
pub fn listed(rates: &[(usize, Answer)]) -> String {
    let of = |(w, a): &(usize, Answer)| Some(format!("{w}: {:.3e}", a.as_ref().ok()?.rate() * 1e9));
    rates.iter().filter_map(of).collect::<Vec<_>>().join(", ")
}

fn floats(
    b: &mut Bench,
    single: &[(usize, Answer)],
    best: std::result::Result<&Best, &String>,
    fleet: Fleet,
) {
    let across = b.across();
    let (r, c) = (&mut b.record, &mut b.model.compute);
    let operations = "10^9 operations/s";
    let Ok(&(width, fma)) = best else {
        let why = best.err().map_or("", String::as_str);
        c.f32_gflops = r.kept("compute.f32_gflops", operations, c.f32_gflops, why);
        return;
    };
    let how = format!(
        "fused multiply-adds, {CHAINS} independent vectors of {width} in each of {} work-items; operations/s by \
         width: {}",
        fleet.items(),
        listed(single)
    );
    c.f32_gflops = r.measured("compute.f32_gflops", operations, fma.rate(), fma.spread, how);
    if across {
        let why = "OpenCL has no name for it";
        r.kept("compute.simd_width", "lanes", f64::from(c.simd_width), why);
    } else {
        let how = "the narrowest vector of floats that is about as fast as the fastest";
        r.measured("compute.simd_width", "lanes", width as f64, fma.spread, how);
        c.simd_width = u32::try_from(width).unwrap_or(u32::MAX);
    }
    let scalar = single.iter().find(|(w, _)| *w == 1).and_then(|(_, a)| a.as_ref().ok());
    if let Some(s) = scalar {
        let share = (s.rate() / fma.rate()).min(1.0);
        let how = "the same without vectors, as a share of it";
        c.scalar_efficiency = r.measured("compute.scalar_efficiency", "", share, s.spread, how);
    }
    let why = "no probe distinguishes registers from the memory behind them";
    r.kept("compute.register_bytes_per_item", "bytes", c.register_bytes_per_item as f64, why);
}

/// Doubles, halves and integers.
fn others(b: &mut Bench, fleet: Fleet) -> Result<()> {
    let unit = "10^9 operations/s";
    let kinds = [
        (ScalarType::F64, "compute.f64_gflops", b.info.fp64),
        (ScalarType::F16, "compute.f16_gflops", b.info.fp16),
        (ScalarType::I32, "compute.integer_gops", true),
    ];
    for (ty, key, there) in kinds {
        let step = match ty {
            ScalarType::I32 => Step::Integer,
            _ if there => multiply_add(b, ty, fleet)?,
            _ => Step::Mad,
        };
        let rates = if there { rates(b, step, ty, &[1, 2, 4, 8, 16], fleet)? } else { vec![] };
        let best = fastest(&rates);
        let what = if ty == ScalarType::I32 { "sums and exclusive ors" } else { "as f32_gflops" };
        let how = format!("{what}, of {ty}; operations/s by width: {}", listed(&rates));
        let c = &mut b.model.compute;
        let old = match ty {
            ScalarType::F64 => Some(c.f64_gflops),
            ScalarType::I32 => Some(c.integer_gops),
            _ => c.f16_gflops,
        };
        let value = match (best, old) {
            (Ok((_, r)), _) => Some(b.record.measured(key, unit, r.rate(), r.spread, how)),
            (Err(why), Some(old)) => {
                let why = if there { why } else { "the device has none".into() };
                Some(b.record.kept(key, unit, old, &why))
            }
            (Err(_), None) => None,
        };
        match (ty, value) {
            (ScalarType::F64, Some(v)) => c.f64_gflops = v,
            (ScalarType::I32, Some(v)) => c.integer_gops = v,
            (_, v) => c.f16_gflops = v,
        }
    }
    Ok(())
}

/// Measures divisions, square roots and transcendental functions, in multiply-adds.
fn dear(b: &mut Bench, width: usize, fma: Reading, fleet: Fleet) -> Result<()> {
    let shape = Shape { ty: ScalarType::F32, width, chains: 4 };
    let steps = [Step::Divide, Step::Sqrt, Step::Exp, Step::Log, Step::Sin];
    let trials: Vec<Trial> = steps
        .iter()
        .map(|&step| Trial::growing(Count::power(2), move |n| arithmetic(step, shape, fleet, n)))
        .collect();
    let answers = b.lab.compare(&trials)?;
    let cost = |r: &Reading| r.ns / fma.ns;
    let [divide, root, special @ ..] = &answers[..] else { return Ok(()) };
    let (r, c) = (&mut b.record, &mut b.model.compute);
    let unit = "operations";
    let how =
        format!("the time of a division of vectors of {width}, divided by that of an operation");
    c.divide_flops = r.answer(("compute.divide_flops", unit), c.divide_flops, divide, cost, &how);
    let how = format!("a square root of vectors of {width}, likewise");
    c.sqrt_flops = r.answer(("compute.sqrt_flops", unit), c.sqrt_flops, root, cost, &how);
    let costs: Vec<&Reading> = special.iter().flatten().collect();
    if let Some(first) = costs.first() {
        let mean = costs.iter().map(|r| cost(r).ln()).sum::<f64>() / costs.len() as f64;
        let each: Vec<String> = ["exp", "log", "sin"]
            .iter()
            .zip(special)
            .filter_map(|(name, a)| Some(format!("{name} {:.1}", cost(a.as_ref().ok()?))))
            .collect();
        let how = format!("the geometric mean of {}, likewise", each.join(", "));
        let spread = costs.iter().map(|r| r.spread).fold(first.spread, f64::max);
        c.special_flops = r.measured("compute.special_flops", unit, mean.exp(), spread, how);
    } else {
        let why = special.iter().find_map(|a| a.clone().err()).unwrap_or_default();
        r.kept("compute.special_flops", unit, c.special_flops, &why);
    }
    Ok(())
}

/// Measures the latency of a multiply-add, and how many independent chains hide it.
fn waiting(b: &mut Bench, step: Step, width: usize, fleet: Fleet) -> Result<()> {
    let alone = Fleet { groups: 1, group: 1 };
    let shape = Shape { ty: ScalarType::F32, width: 1, chains: 1 };
    // Some compilers combine a chain of additions, so each step is a multiply-add.
    let chain = Trial::growing(Count::power(10), |n| arithmetic(step, shape, alone, n));
    let answer = b.lab.measure(chain)?;
    let old = b.model.compute.add_latency_ns;
    let how = "a multiply-add of floats that waits for the one before it, in one work-item";
    let each = |r: &Reading| 2.0 * r.ns;
    b.model.compute.add_latency_ns =
        b.record.answer(("compute.add_latency_ns", "ns"), old, &answer, each, how);
    let counts = [1usize, 2, 4, 8];
    let trials: Vec<Trial> = counts
        .iter()
        .map(|&chains| {
            let shape = Shape { ty: ScalarType::F32, width, chains };
            Trial::growing(Count::power(6), move |n| arithmetic(step, shape, fleet, n))
        })
        .collect();
    let rates: Vec<(usize, Answer)> = counts.iter().copied().zip(b.lab.compare(&trials)?).collect();
    if let Ok((chains, r)) = fastest(&rates) {
        let how = format!(
            "independent vectors in a work-item that hide the latency of a multiply-add; operations/s by number: {}",
            listed(&rates)
        );
        b.record.measured("observed.chains_to_saturate", "", chains as f64, r.spread, how);
    }
    Ok(())
}
