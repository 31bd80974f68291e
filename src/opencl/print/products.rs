//! Products of matrices by the matrix instructions of NVIDIA, in inline PTX.
//!
//! The instructions multiply tf32 numbers, which are `f32` numbers with 10 bits of fraction instead of 23. Each number is
//! the sum of a large part, the nearest tf32 number, and a small part, of which the instruction truncates what is less than
//! 2^-22 of the number. The product of two small parts is omitted. It is at most 2^-22 of the product (small parts are at most 2^-11
//! of their numbers), so that a product is off by at most `3 * 2^-22` of itself, and less than half of that as a rule.
//! Numbers of which the large part is infinite (2^128 - 2^116 and more) have no small part, and give NaN.

/// The name of the function.
pub const FUNCTION: &str = "add_products";

/// The function: see [`Expr::Products`](crate::kernel::ir::Expr::Products).
pub const DEFINITION: &str = r#"
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
