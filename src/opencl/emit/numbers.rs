//! Generates the inputs of kernels and compares their results. Inputs depend only on a seed and a position, so that
//! every host program generates the same. Uses only the standard library.

/// The storage type of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// IEEE half.
    F16,
    /// The upper half of an IEEE single.
    BF16,
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// A truth value, one byte.
    Bool,
}

/// The contents of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Recipe {
    /// Floats around 0, most of them between -1 and 1.
    Normal,
    /// Floats `low + k * step` with a random 24-bit integer `k`. `step` is an `f32`, so that `k * step` is exact.
    Range {
        /// The least value.
        low: f64,
        /// The distance between neighbours.
        step: f64,
    },
    /// Random integers from `low` to `low + count - 1`.
    Whole {
        /// The least value.
        low: i64,
        /// Number of different values.
        count: u64,
    },
    /// Random integers from 0 to `count - 1`, except the element's own index: element `i` belongs to `i % modulus /
    /// divisor`.
    Others {
        /// Number of indices.
        count: u64,
        /// Period after which the owners repeat.
        modulus: u64,
        /// Number of consecutive elements with the same owner.
        divisor: u64,
    },
    /// The element's position.
    Position,
    /// This float.
    Float(f64),
    /// This integer. Values for 64-bit unsigned types wrap.
    Integer(i64),
}

enum Number {
    Float(f64),
    Integer(i64),
}

impl Type {
    /// Returns the size of an element in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Type::I8 | Type::U8 | Type::Bool => 1,
            Type::F16 | Type::BF16 | Type::I16 | Type::U16 => 2,
            Type::F32 | Type::I32 | Type::U32 => 4,
            Type::F64 | Type::I64 | Type::U64 => 8,
        }
    }

    /// Returns the largest finite float; 0 for integers.
    pub fn largest(self) -> f64 {
        match self {
            Type::F16 => 65504.0,
            Type::BF16 => from_upper(0x7f7f),
            Type::F32 => f64::from(f32::MAX),
            Type::F64 => f64::MAX,
            _ => 0.0,
        }
    }

    /// Reads an element: returns the bits of a double, or of an integer extended to 64 bits.
    pub fn read(self, bytes: &[u8]) -> u64 {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let raw = u64::from_le_bytes(word);
        match self {
            Type::F16 => from_half(raw as u16).to_bits(),
            Type::BF16 => from_upper(raw as u16).to_bits(),
            Type::F32 => f64::from(f32::from_bits(raw as u32)).to_bits(),
            Type::I8 => i64::from(raw as i8) as u64,
            Type::I16 => i64::from(raw as i16) as u64,
            Type::I32 => i64::from(raw as i32) as u64,
            Type::Bool => u64::from(raw != 0),
            Type::F64 | Type::I64 | Type::U8 | Type::U16 | Type::U32 | Type::U64 => raw,
        }
    }

    fn is_float(self) -> bool {
        matches!(self, Type::F16 | Type::BF16 | Type::F32 | Type::F64)
    }

    fn write(self, number: Number, to: &mut Vec<u8>) {
        let bits = match (self, number) {
            (Type::F16, Number::Float(x)) => u64::from(to_half(x)),
            (Type::F16, Number::Integer(k)) => u64::from(to_half(k as f64)),
            (Type::BF16, Number::Float(x)) => u64::from(to_upper(x as f32)),
            (Type::BF16, Number::Integer(k)) => u64::from(to_upper(k as f64 as f32)),
            (Type::F32, Number::Float(x)) => u64::from((x as f32).to_bits()),
            (Type::F32, Number::Integer(k)) => u64::from((k as f64 as f32).to_bits()),
            (Type::F64, Number::Float(x)) => x.to_bits(),
            (Type::F64, Number::Integer(k)) => (k as f64).to_bits(),
            (Type::Bool, Number::Integer(k)) => (k & 1) as u64,
            (_, Number::Integer(k)) => k as u64,
            (_, Number::Float(x)) => x as i64 as u64,
        };
        to.extend_from_slice(&bits.to_le_bytes()[..self.bytes()]);
    }

    /// Returns whether a result is acceptable for the expected one, both in the form that [`Type::read`] returns.
    /// Integers must be equal; floats may differ by `slack`. NaN is equal to NaN, and an infinity to a value that
    /// differs from it only by rounding.
    pub fn agrees(self, have: u64, want: u64, slack: f64) -> bool {
        if !self.is_float() {
            return have == want;
        }
        let (have, want) = (f64::from_bits(have), f64::from_bits(want));
        if have == want || have.is_nan() && want.is_nan() {
            return true;
        }
        if have.is_finite() && want.is_finite() {
            return (have - want).abs() <= slack;
        }
        let near = |x: f64| x.is_infinite() || x.abs() + slack >= self.largest();
        (have < 0.0) == (want < 0.0) && near(have) && near(want)
    }
}

/// Returns the bytes of an array of `length` elements, as a device takes them.
pub fn fill(recipe: Recipe, ty: Type, length: usize, seed: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(length * ty.bytes());
    for i in 0..length as u64 {
        ty.write(number(recipe, seed, i), &mut out);
    }
    out
}

fn number(recipe: Recipe, seed: u64, i: u64) -> Number {
    let bits = random(seed, i);
    match recipe {
        // The sum of four 16-bit numbers.
        Recipe::Normal => {
            let sum =
                (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
            Number::Float((sum as f64 - 131_070.0) / 32_768.0)
        }
        Recipe::Range { low, step } => Number::Float(low + (bits >> 40) as f64 * step),
        Recipe::Whole { low, count } => {
            Number::Integer(low.wrapping_add((bits % count.max(1)) as i64))
        }
        Recipe::Others { count, modulus, divisor } => {
            let other = bits % (count - 1).max(1);
            // Skip the owner: numbers from the owner's on are increased by one.
            Number::Integer((other + u64::from(other >= i % modulus / divisor)) as i64)
        }
        Recipe::Position => Number::Integer(i as i64),
        Recipe::Float(x) => Number::Float(x),
        Recipe::Integer(k) => Number::Integer(k),
    }
}

/// Returns the random number at a position (SplitMix64).
pub fn random(seed: u64, i: u64) -> u64 {
    let mut x = seed.wrapping_add((i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Rounds to the nearest half, ties to even.
fn to_half(x: f64) -> u16 {
    let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
    let x = x.abs();
    if x.is_nan() {
        return sign | 0x7e00;
    }
    if x >= 65520.0 {
        return sign | 0x7c00;
    }
    // The distance between neighbouring halves of this magnitude.
    let (mut unit, mut exponent) = (1.0 / 16_777_216.0, 0);
    while x >= unit * 2048.0 {
        unit *= 2.0;
        exponent += 1;
    }
    let whole = (x / unit) as u16;
    let rest = x / unit - f64::from(whole);
    let up = rest > 0.5 || rest == 0.5 && whole % 2 == 1;
    sign | (exponent * 1024 + whole + u16::from(up))
}

/// Rounds to the nearest single whose lower half is zero, ties to even. Returns the upper half.
fn to_upper(x: f32) -> u16 {
    let bits = x.to_bits();
    if x.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

fn from_upper(bits: u16) -> f64 {
    f64::from(f32::from_bits(u32::from(bits) << 16))
}

fn from_half(bits: u16) -> f64 {
    let (exponent, fraction) = (bits >> 10 & 31, f64::from(bits & 1023));
    let x = match exponent {
        0 => fraction / 16_777_216.0,
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1..exponent).fold((1024.0 + fraction) / 16_777_216.0, |x, _| x * 2.0),
    };
    if bits & 0x8000 == 0 { x } else { -x }
}
