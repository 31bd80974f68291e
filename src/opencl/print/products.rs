//! Products of matrices by the matrix instructions of NVIDIA, in inline PTX.
//!
//! Products of `f16`, of `bf16` and of `i8` are exact. For `f32`, the instructions multiply tf32 numbers, which are `f32` numbers with
//! 10 bits of fraction instead of 23. Each number is
//! the sum of a large part, the nearest tf32 number, and a small part of at most 2^-11 of the number, which has one bit more than a
//! tf32 number at most. The instruction truncates that bit. The product of two small parts is omitted. So a product is off by
//! less than `2.01 * 2^-22` of itself; products of whole numbers up to 2^11 are exact.
//! Numbers of which the large part is infinite (2^128 - 2^116 and more) have no small part, and give NaN.

use crate::calculus::op::products::Products;

/// The name of the function.
pub fn function(of: Products) -> &'static str {
    match of {
        Products::F32 => "add_products",
        Products::F16 => "add_products_f16",
        Products::BF16 => "add_products_bf16",
        Products::I8 => "add_products_i8",
    }
}

/// The call that gives the matrices of a load: see [`Expr::Matrices`](crate::kernel::ir::Expr::Matrices).
pub fn matrices(turned: bool, load: &str) -> String {
    format!("load_{}matrices(&{load})", if turned { "turned_" } else { "" })
}

/// A function of [`matrices`]: its name, and what the instruction does besides.
macro_rules! load {
    ($name:literal, $turned:literal) => {
        concat!(
            "\nuint4 ", $name, "(const local void *row) {\n    uint x[4];\n",
            "    asm volatile(\"ldmatrix.sync.aligned.m8n8.x4", $turned, ".shared.b16 {%0, %1, %2, %3}, [%4];\"\n",
            "        : \"=r\"(x[0]), \"=r\"(x[1]), \"=r\"(x[2]), \"=r\"(x[3]) : \"r\"((uint)(size_t)row) : \"memory\");\n",
            "    return (uint4)(x[0], x[1], x[2], x[3]);\n}\n",
        )
    };
}

/// The functions of [`matrices`].
pub const MATRICES: [&str; 2] =
    [load!("load_matrices", ""), load!("load_turned_matrices", ".trans")];

/// The function: see [`Expr::Products`](crate::kernel::ir::Expr::Products).
pub fn definition(of: Products) -> &'static str {
    match of {
        Products::F32 => OF_F32,
        Products::F16 => OF_F16,
        Products::BF16 => OF_BF16,
        Products::I8 => OF_I8,
    }
}

/// A function that adds exact products: its name, the instruction, and the type of the sums with its constraint.
macro_rules! exact {
    ($name:literal, $instruction:literal, $sum:literal, $constraint:literal) => {
        concat!(
            "\n", $sum, "4 ", $name, "(const ", $sum, "4 sums, const uint4 a, const uint2 b) {\n",
            "    ", $sum, " c[4] = {sums.s0, sums.s1, sums.s2, sums.s3};\n",
            "    asm volatile(\"", $instruction,
            " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n",
            "        : \"+", $constraint, "\"(c[0]), \"+", $constraint, "\"(c[1]), \"+",
            $constraint, "\"(c[2]), \"+", $constraint, "\"(c[3])\n",
            "        : \"r\"(a.s0), \"r\"(a.s1), \"r\"(a.s2), \"r\"(a.s3), \"r\"(b.s0), \"r\"(b.s1));\n",
            "    return (", $sum, "4)(c[0], c[1], c[2], c[3]);\n}\n",
        )
    };
}

const OF_F16: &str =
    exact!("add_products_f16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "float", "f");

const OF_BF16: &str = exact!(
    "add_products_bf16",
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    "float",
    "f"
);

const OF_I8: &str =
    exact!("add_products_i8", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "int", "r");

const OF_F32: &str = r#"
void add_tf32(float *c, const uint4 a, const uint2 b) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a.s0), "r"(a.s1), "r"(a.s2), "r"(a.s3), "r"(b.s0), "r"(b.s1));
}

float4 add_products(const float4 sums, const float4 a, const float2 b) {
    const uint4 large_a = (as_uint4(a) + 0x1000u) & 0xffffe000u;
    const uint2 large_b = (as_uint2(b) + 0x1000u) & 0xffffe000u;
    const uint4 small_a = as_uint4(a - as_float4(large_a));
    const uint2 small_b = as_uint2(b - as_float2(large_b));
    float c[4] = {sums.s0, sums.s1, sums.s2, sums.s3};
    add_tf32(c, small_a, large_b);
    add_tf32(c, large_a, small_b);
    add_tf32(c, large_a, large_b);
    return (float4)(c[0], c[1], c[2], c[3]);
}
"#;

#[cfg(test)]
mod tests {
    /// The parts of a number as the function makes them, and as an instruction reads them.
    fn parts(x: f32) -> [f64; 2] {
        let large = f32::from_bits(x.to_bits().wrapping_add(0x1000) & 0xffff_e000);
        let small = f32::from_bits((x - large).to_bits() & 0xffff_e000);
        [f64::from(large), f64::from(small)]
    }

    /// The share by which a product is off. The three products of parts are exact in double precision.
    fn error(x: f32, y: f32) -> f64 {
        let ([a, s], [b, t]) = (parts(x), parts(y));
        let exact = f64::from(x) * f64::from(y);
        ((a * b + a * t + s * b - exact) / exact).abs()
    }

    #[test]
    fn products_of_parts_have_nearly_the_accuracy_of_f32() {
        // All fractions that are near those which round, or whose small parts are long, with both signs and some exponents.
        let fractions: Vec<u32> = (0..0x4000)
            .step_by(3)
            .chain([0xfff, 0x1000, 0x1001, 0x17ff, 0x1800, 0x1fff, 0x2000])
            .flat_map(|low| [low, 0x3f_8000 | low, 0x40_0000 | low, 0x7f_c000 | low])
            .collect();
        let number = |fraction: u32, exponent: u32, sign: u32| {
            f32::from_bits(sign << 31 | exponent << 23 | (fraction & 0x7f_ffff))
        };
        let most = 2.01 * 2f64.powi(-22);
        let mut worst = 0.0f64;
        for (n, f) in fractions.iter().enumerate() {
            for g in [*f, 0x7f_ffff, 0x1000, 0xfff, 0x1fff, fractions[(n * 7919) % fractions.len()]]
            {
                for (x, y) in [(127, 127), (60, 190), (40, 130)] {
                    let e = error(number(*f, x, 0), number(g, y, 1));
                    assert!(e < most, "{f:x} {g:x}: {e:e}");
                    worst = worst.max(e);
                }
            }
        }
        // The bound is no accident of the numbers that were tried.
        assert!(worst > 2f64.powi(-22));
    }

    #[test]
    fn products_of_whole_numbers_are_exact() {
        for x in [1.0, 2047.0, 2048.0, -1023.0] {
            for y in [3.0, -2047.0, 0.0, 1536.0] {
                let ([a, s], [b, t]) = (parts(x), parts(y));
                assert!((s * b + a * t).abs() + (a * b - f64::from(x) * f64::from(y)).abs() == 0.0);
            }
        }
    }

    #[test]
    fn numbers_without_a_finite_large_part_give_nan() {
        assert!(parts(f32::INFINITY)[1].is_nan());
        assert!(parts(f32::MAX)[0].is_infinite());
        assert!(parts(3.4e38)[0].is_finite());
    }
}
