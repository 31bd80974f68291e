//! Finds out whether a device has the matrix instructions of [`products`], by a kernel that multiplies two small matrices.

use super::Runtime;
use crate::diag::Result;
use crate::lang::types::ScalarType;
use crate::opencl::host::{HostArray, Inputs};
use crate::opencl::plan::{Arg, Buffer, HostPlan, Launch, Role};
use crate::opencl::print::products;
use std::sync::Arc;

/// Work-items of the probe: two warps.
const ITEMS: usize = 64;
/// Rows and columns of the result, and terms of a product.
const SHAPE: [usize; 3] = [16, 8, 8];

/// An element of a small matrix. It takes more bits than a tf32 number has.
fn element(i: usize, j: usize) -> f32 {
    let n = u16::try_from((i * 2909 + j * 1301) % 40_009).unwrap_or(0);
    f32::from(n) - 20_000.0
}

fn probe() -> HostPlan {
    let buffers = vec![Buffer {
        name: "out".into(),
        elem: ScalarType::F32,
        len: ITEMS / 32 * SHAPE[0] * SHAPE[1],
        role: Role::Output(0),
    }];
    let launches = vec![Launch {
        kernel: "probe".into(),
        args: vec![Arg::Buffer(0)],
        global: [ITEMS, 1, 1],
        local: [ITEMS, 1, 1],
    }];
    HostPlan {
        source: format!(
            "{}
float element(int i, int j) {{
    return (float)((i * 2909 + j * 1301) % 40009) - 20000.0f;
}}

kernel __attribute__((reqd_work_group_size({ITEMS}, 1, 1)))
void probe(global float* restrict out) {{
    const int warp = get_local_id(0) / 32, g = get_local_id(0) % 32 / 4, q = get_local_id(0) % 4;
    const float4 a = (float4)(element(g, q), element(g + 8, q), element(g, q + 4), element(g + 8, q + 4));
    const float2 b = (float2)(element(q + warp, g), element(q + warp + 4, g));
    const float4 c = {}((float4)(1.0f), a, b);
    global float* here = out + 128 * warp + 8 * g + 2 * q;
    here[0] = c.s0;
    here[1] = c.s1;
    here[64] = c.s2;
    here[65] = c.s3;
}}
",
            products::DEFINITION,
            products::FUNCTION
        ),
        options: "-cl-std=CL1.2".into(),
        buffers,
        scalars: vec![],
        launches,
        control: vec![],
        faults: vec![],
    }
}

/// The results that are right for the first place of a result.
fn expected(at: usize) -> f64 {
    let [rows, columns, terms] = SHAPE;
    let (warp, i, j) = (at / (rows * columns), at / columns % rows, at % columns);
    let term = |k| f64::from(element(i, k)) * f64::from(element(k + warp, j));
    1.0 + (0..terms).map(term).sum::<f64>()
}

/// Whether results are as near as sums of eight products of parts are, and as those of tf32 numbers alone are not.
fn are_right(results: &[f32]) -> bool {
    let most = 8.0 * 20_000.0 * 20_000.0;
    results.len() == ITEMS / 32 * SHAPE[0] * SHAPE[1]
        && results
            .iter()
            .enumerate()
            .all(|(at, x)| (f64::from(*x) - expected(at)).abs() < most * 2f64.powi(-20))
}

/// Whether the device has the instructions, and they compute what is expected.
pub(super) fn available(rt: &Runtime) -> bool {
    let run = || -> Result<Vec<f32>> {
        let nothing = rt.upload(&Inputs::default())?;
        let (_, outputs) = rt.prepare(rt.build(&Arc::new(probe()))?, &nothing)?.check(rt)?;
        Ok(outputs.first().and_then(HostArray::to_vec).unwrap_or_default())
    };
    rt.info.platform.contains("NVIDIA") && run().is_ok_and(|results| are_right(&results))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_products_with_the_accuracy_of_f32_are_right() {
        #[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is what is asked for")]
        let right: Vec<f32> = (0..256).map(|at| expected(at) as f32).collect();
        assert!(are_right(&right));
        let short: Vec<f32> = right.iter().map(|x| f32::from_bits(x.to_bits() & !0x1fff)).collect();
        assert!(!are_right(&short));
        assert!(!are_right(&right.iter().rev().copied().collect::<Vec<_>>()));
        assert!(!are_right(&[]));
    }
}
