//! Recipes for input data that emitted host programs can generate without patsat.

use super::generate::{Constant, Generator, RANGE, both_truths, owners};
use super::inputs::Wanted;
use crate::diag::{Code, Diagnostic, Result};
use crate::lang::types::ScalarType;
use crate::opencl::emit::numbers::{Recipe, random};

/// Returns the recipe that stands for a generator in an emitted program: the same distribution and range, but other
/// numbers. There is none where an element depends on the others, or on a table.
///
/// # Errors
/// When the generator has no value of that type or shape, or mentions a size that is not known.
pub(super) fn recipe(generator: &Generator, wanted: &Wanted) -> Result<Option<Recipe>> {
    let (ty, sizes) = (wanted.ty, wanted.sizes);
    let none = || Diagnostic::error(Code::Usage, format!("`{generator}` is no value of type {ty}"));
    let (float, truth) = (ty.is_float(), ty == ScalarType::Bool);
    let modest = Recipe::Whole {
        low: if ty.is_signed() { -i64::from(RANGE) / 2 } else { 0 },
        count: if truth { 2 } else { u64::from(RANGE.unsigned_abs()) },
    };
    Ok(Some(match generator {
        Generator::Sorted(..) | Generator::Shuffle | Generator::Letters(_) => return Ok(None),
        Generator::Normal if float => Recipe::Normal,
        Generator::Uniform if float => between(0.0, 1.0),
        Generator::Normal | Generator::Uniform => modest,
        Generator::Iota => Recipe::Position,
        Generator::Const(c) if float => Recipe::Float(c.value(sizes)?.float().ok_or_else(none)?),
        Generator::Const(c) => Recipe::Integer(constant(c.value(sizes)?, ty).ok_or_else(none)?),
        Generator::Between(low, high) | Generator::Whole(low, high) if truth => {
            let both = both_truths(low.end(sizes)?, high.end(sizes)?);
            both.map(|()| modest).ok_or_else(none)?
        }
        _ if truth => return Err(none().into()),
        Generator::Between(low, high) if float => {
            let low = low.end(sizes)?.float().ok_or_else(none)?;
            between(low, high.end(sizes)?.float().ok_or_else(none)?)
        }
        Generator::Between(low, high) | Generator::Whole(low, high) => {
            let (first, end) = (low.end(sizes)?, high.end(sizes)?);
            let (least, most) = (first.integer::<i128>(), end.integer::<i128>());
            if least >= most && wanted.shape.iter().all(|n| *n > 0) {
                let text = format!("there is no integer in `{first}..{end}`");
                return Err(Diagnostic::error(Code::Usage, text).into());
            }
            let low = constant(first, ty).ok_or_else(none)?;
            // The end of the range itself need not be a value of the type.
            let last = constant(end.before(), ty).ok_or_else(none)?;
            Recipe::Whole { low, count: last.wrapping_sub(low).wrapping_add(1).cast_unsigned() }
        }
        Generator::Neighbours(_) if float => return Err(none().into()),
        Generator::Neighbours(n) => {
            let n: u64 = n.value(sizes)?.integer().ok_or_else(none)?;
            let (modulus, divisor) = owners(i128::from(n), wanted.shape)?;
            Recipe::Others { count: n, modulus: modulus as u64, divisor: divisor as u64 }
        }
    }))
}

/// Returns the seed of an array.
pub(super) fn seed(seed: u64, stream: u64) -> u64 {
    random(seed, stream)
}

/// Returns the recipe for floats in `low..high`.
fn between(low: f64, high: f64) -> Recipe {
    #[expect(clippy::cast_possible_truncation, reason = "multiples of an f32 are exact")]
    let step = f64::from(((high - low) / 16_777_216.0) as f32);
    Recipe::Range { low, step }
}

/// Returns a constant of an integer or boolean type as an `i64`, with `u64` wrapped. For a float type, the constant
/// must be an `i32`.
fn constant(c: Constant, ty: ScalarType) -> Option<i64> {
    match (c, ty) {
        (Constant::Bool(v), ScalarType::Bool) => Some(i64::from(v)),
        (Constant::Bool(_), _) | (_, ScalarType::Bool) => None,
        (c, ScalarType::I8) => c.integer::<i8>().map(i64::from),
        (c, ScalarType::I16) => c.integer::<i16>().map(i64::from),
        (c, ScalarType::I64) => c.integer(),
        (c, ScalarType::U8) => c.integer::<u8>().map(i64::from),
        (c, ScalarType::U16) => c.integer::<u16>().map(i64::from),
        (c, ScalarType::U32) => c.integer::<u32>().map(i64::from),
        (c, ScalarType::U64) => c.integer::<u64>().map(u64::cast_signed),
        (c, ScalarType::I32) => c.integer::<i32>().map(i64::from),
        (c, ScalarType::F16 | ScalarType::BF16 | ScalarType::F32 | ScalarType::F64) => {
            c.integer::<i32>().map(i64::from)
        }
    }
}
