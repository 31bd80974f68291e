//! Finds out whether a device has the matrix instructions of [`products`], and the loads of their operands, by a kernel that multiplies
//! two small matrices.

use super::Runtime;
use crate::calculus::op::products::Products;
use crate::diag::Result;
use crate::opencl::host::Inputs;
use crate::opencl::plan::{Arg, Buffer, HostPlan, Launch, Role};
use crate::opencl::print::products;
use std::sync::Arc;

/// Work-items of the probe: two warps.
const ITEMS: usize = 64;
/// Rows and columns of the result.
const SHAPE: [usize; 2] = [16, 8];

/// Elements of the small matrices are whole numbers, of which there are so many around 0. Those of `f32` take more bits than
/// a tf32 number has; sums of products of the others are exact.
fn values(of: Products) -> usize {
    match of {
        Products::F32 => 40_009,
        Products::F16 => 2003,
        Products::BF16 => 251,
        Products::I8 => 251,
    }
}

/// An element of a small matrix.
fn element(of: Products, i: usize, j: usize) -> f64 {
    let n = u16::try_from((i * 2909 + j * 1301) % values(of)).unwrap_or(0);
    let middle = u16::try_from(values(of) / 2).unwrap_or(0);
    f64::from(n) - f64::from(middle)
}

/// The type of operands, and what makes a word of the elements from place `j` on.
fn words(of: Products) -> (&'static str, &'static str) {
    match of {
        Products::F32 => ("float", "return (float)element(i, j);"),
        Products::F16 => (
            "uint",
            "ushort2 bits;
    vstore_half2_rte((float2)(element(i, j), element(i, j + 1)), 0, (private half*)&bits);
    return as_uint(bits);",
        ),
        // Whole numbers below 256 are the upper halves of singles.
        Products::BF16 => (
            "uint",
            "return as_uint((float)element(i, j)) >> 16 | as_uint((float)element(i, j + 1));",
        ),
        Products::I8 => (
            "uint",
            "return as_uint((char4)(element(i, j), element(i, j + 1), element(i, j + 2), element(i, j + 3)));",
        ),
    }
}

fn probe(of: Products) -> HostPlan {
    let buffers = vec![Buffer {
        name: "out".into(),
        elem: of.sum(),
        len: ITEMS / 32 * SHAPE[0] * SHAPE[1],
        role: Role::Output(0),
    }];
    let launches = vec![Launch {
        kernel: "probe".into(),
        args: vec![Arg::Buffer(0)],
        global: [ITEMS, 1, 1],
        local: [ITEMS, 1, 1],
    }];
    let (operand, word) = words(of);
    let sum = if of.sum().is_float() { "float" } else { "int" };
    let (n, values, middle) = (of.in_word(), values(of), values(of) / 2);
    HostPlan {
        source: format!(
            "{}{}
int element(int i, int j) {{
    return (i * 2909 + j * 1301) % {values} - {middle};
}}

{operand} word(int i, int j) {{
    {word}
}}

kernel __attribute__((reqd_work_group_size({ITEMS}, 1, 1)))
void probe(global {sum}* restrict out) {{
    const int warp = get_local_id(0) / 32, g = get_local_id(0) % 32 / 4, q = get_local_id(0) % 4;
    const int j = q * {n}, k = (q + 4) * {n};
    // Work-item 8*m + r loads row r of matrix m.
    local {operand}4 rows[{ITEMS}];
    const int row = get_local_id(0) % 16, at = get_local_id(0) % 32 / 16 * 4 * {n};
    rows[get_local_id(0)] = ({operand}4)(word(row, at), word(row, at + {n}), word(row, at + 2 * {n}), word(row, at + 3 * {n}));
    barrier(CLK_LOCAL_MEM_FENCE);
    const {operand}4 a = as_{operand}4({});
    const {operand}2 b = ({operand}2)(word(g + warp, j), word(g + warp, k));
    const {sum}4 c = {}(({sum}4)(1), a, b);
    global {sum}* here = out + 128 * warp + 8 * g + 2 * q;
    here[0] = c.s0;
    here[1] = c.s1;
    here[64] = c.s2;
    here[65] = c.s3;
}}
",
            products::MATRICES.concat(),
            products::definition(of),
            products::matrices(false, "rows[get_local_id(0)]"),
            products::function(of)
        ),
        options: "-cl-std=CL1.2".into(),
        buffers,
        scalars: vec![],
        launches,
        control: vec![],
        faults: vec![],
    }
}

/// The result that is right at a place.
fn expected(of: Products, at: usize) -> f64 {
    let [rows, columns] = SHAPE;
    let (warp, i, j) = (at / (rows * columns), at / columns % rows, at % columns);
    let terms = usize::try_from(of.terms()).unwrap_or(0);
    1.0 + (0..terms).map(|k| element(of, i, k) * element(of, j + warp, k)).sum::<f64>()
}

/// Whether results are as near as sums of products of parts are, and as those of tf32 numbers alone are not; those of exact
/// products must be right.
fn are_right(of: Products, results: &[f64]) -> bool {
    let most = match of {
        Products::F32 => 8.0 * 20_000.0 * 20_000.0 * 2f64.powi(-20),
        Products::F16 | Products::BF16 | Products::I8 => 0.5,
    };
    results.len() == ITEMS / 32 * SHAPE[0] * SHAPE[1]
        && results.iter().enumerate().all(|(at, x)| (*x - expected(of, at)).abs() < most)
}

/// Whether the device has the instructions, and they compute what is expected.
pub(super) fn available(rt: &Runtime, of: Products) -> bool {
    let run = || -> Result<Vec<f64>> {
        let nothing = rt.upload(&Inputs::default())?;
        let (_, outputs) = rt.prepare(rt.build(&Arc::new(probe(of)))?, &nothing)?.check(rt)?;
        let Some(out) = outputs.first() else { return Ok(vec![]) };
        Ok((0..out.len()).filter_map(|at| out.as_f64(at)).collect())
    };
    rt.info.platform.contains("NVIDIA") && run().is_ok_and(|results| are_right(of, &results))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_products_that_are_near_enough_are_right() {
        for of in Products::ALL {
            #[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is asked for")]
            let right: Vec<f64> = (0..256).map(|at| f64::from(expected(of, at) as f32)).collect();
            assert!(are_right(of, &right));
            let short = |x: &f64| {
                #[expect(clippy::cast_possible_truncation, reason = "as before")]
                let bits = (*x as f32).to_bits();
                f64::from(f32::from_bits(bits & !0x1fff))
            };
            assert!(!are_right(of, &right.iter().map(short).collect::<Vec<_>>()));
            assert!(!are_right(of, &right.iter().rev().copied().collect::<Vec<_>>()));
            assert!(!are_right(of, &[]));
        }
    }

    #[test]
    fn sums_of_products_are_exact_where_they_must_be() {
        for of in [Products::F16, Products::BF16, Products::I8] {
            assert!((0..256).all(|at| expected(of, at).abs() < 2f64.powi(24)));
        }
    }
}
