//! Prints types and literals in OpenCL C.

use crate::calculus::scalar::Lit;
use crate::kernel::ir::ElemTy;
use crate::lang::types::ScalarType;

/// Returns the number after a vector type's name.
pub(super) fn vector_suffix(width: usize) -> String {
    if width == 1 { String::new() } else { width.to_string() }
}

/// Returns the type of a register. A truth value is a `bool`, and an `int` mask in a vector.
pub(super) fn c_type(t: ElemTy) -> String {
    let name = match t.scalar {
        ScalarType::F16 => "half",
        // No type of OpenCL C: see `halves`.
        ScalarType::BF16 => "bfloat",
        ScalarType::F32 => "float",
        ScalarType::F64 => "double",
        ScalarType::I8 => "char",
        ScalarType::I16 => "short",
        ScalarType::I32 => "int",
        ScalarType::I64 => "long",
        ScalarType::U8 => "uchar",
        ScalarType::U16 => "ushort",
        ScalarType::U32 => "uint",
        ScalarType::U64 => "ulong",
        ScalarType::Bool if t.width > 1 => "int",
        ScalarType::Bool => "bool",
    };
    format!("{name}{}", vector_suffix(t.width))
}

/// Prints a constant exactly.
pub(super) fn literal(l: Lit) -> String {
    if let Some(x) = l.as_float() {
        let (prefix, suffix) = match l.ty {
            ScalarType::F16 => ("(half)", "f"),
            ScalarType::F64 => ("", ""),
            _ => ("", "f"),
        };
        // The shortest text that reads back as the same value of the type.
        let digits = match l.ty {
            ScalarType::F64 => format!("{x:?}"),
            #[expect(clippy::cast_possible_truncation, reason = "the value is an f32 or f16")]
            _ => format!("{:?}", x as f32),
        };
        // `NAN` and `INFINITY` have type `float`, which makes a call of a function on doubles ambiguous to some
        // compilers.
        let special = if l.ty == ScalarType::F64 { "(double)" } else { prefix };
        return match (x.is_nan(), x.is_infinite(), x.is_sign_negative()) {
            (true, _, _) => format!("{special}NAN"),
            (_, true, true) => format!("{special}-INFINITY"),
            (_, true, false) => format!("{special}INFINITY"),
            _ => format!("{prefix}{digits}{suffix}"),
        };
    }
    let n = l.as_int().unwrap_or(0);
    match l.ty {
        ScalarType::Bool => if n == 0 { "false" } else { "true" }.to_owned(),
        // The least value has no literal of its own, because its digits alone overflow.
        ScalarType::I32 if n == i128::from(i32::MIN) => "(-2147483647 - 1)".to_owned(),
        ScalarType::I64 if n == i128::from(i64::MIN) => "(-9223372036854775807L - 1)".to_owned(),
        ScalarType::I64 => format!("{n}L"),
        ScalarType::U32 => format!("{n}u"),
        ScalarType::U64 => format!("{n}UL"),
        ScalarType::I8 | ScalarType::I16 | ScalarType::U8 | ScalarType::U16 => {
            format!("({}){n}", c_type(ElemTy::scalar(l.ty)))
        }
        _ => n.to_string(),
    }
}
