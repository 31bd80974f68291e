//! Made-up input data: seeded, hence the same in every run and on every machine.

use crate::diag::{Code, Diagnostic, Result};
use crate::lang::types::ScalarType;
use crate::opencl::host::{Element, HostArray};
use half::f16;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::fmt;
use std::str::FromStr;

/// Uniform integers lie in `0..RANGE` (unsigned) or `-RANGE/2..RANGE/2` (signed): small enough that
/// sums and products of many do not all overflow.
const RANGE: i8 = 100;

/// What to fill an array with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Generator {
    /// Floats from the standard normal distribution; integers uniform, as below.
    Normal,
    /// Floats in 0..1; integers in a modest range; fair truth values.
    Uniform,
    /// 0, 1, 2, ... (wrapping in small integers; odd numbers are true).
    Iota,
    /// One value everywhere.
    Const(Constant),
}

/// A constant, with integers beyond 2^53 kept exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constant {
    /// A value with a point, `nan` or `inf`.
    Float(f64),
    /// An integer.
    Integer(i128),
    /// `true` or `false`.
    Bool(bool),
}

impl FromStr for Generator {
    type Err = crate::diag::Failure;

    fn from_str(text: &str) -> Result<Generator> {
        match text {
            "normal" => Ok(Generator::Normal),
            "uniform" => Ok(Generator::Uniform),
            "iota" => Ok(Generator::Iota),
            other => {
                other.strip_prefix("const:").and_then(constant).map(Generator::Const).ok_or_else(
                    || {
                        Diagnostic::error(Code::Usage, format!("`{text}` is no generator"))
                            .help("there are `normal`, `uniform`, `iota` and `const:VALUE`")
                            .into()
                    },
                )
            }
        }
    }
}

impl fmt::Display for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Generator::Normal => write!(f, "normal"),
            Generator::Uniform => write!(f, "uniform"),
            Generator::Iota => write!(f, "iota"),
            Generator::Const(Constant::Float(v)) => write!(f, "const:{v:?}"),
            Generator::Const(Constant::Integer(v)) => write!(f, "const:{v}"),
            Generator::Const(Constant::Bool(v)) => write!(f, "const:{v}"),
        }
    }
}

fn constant(text: &str) -> Option<Constant> {
    match text {
        "true" => Some(Constant::Bool(true)),
        "false" => Some(Constant::Bool(false)),
        _ => {
            let integer = text.parse().map(Constant::Integer).ok();
            integer.or_else(|| text.parse().map(Constant::Float).ok())
        }
    }
}

impl Constant {
    /// As a float; truth values are no numbers.
    fn float(self) -> Option<f64> {
        match self {
            Constant::Float(v) => Some(v),
            Constant::Integer(v) => Some(v as f64),
            Constant::Bool(_) => None,
        }
    }

    /// As an integer type that has it.
    fn integer<T: TryFrom<i128>>(self) -> Option<T> {
        match self {
            Constant::Integer(v) => T::try_from(v).ok(),
            Constant::Float(_) | Constant::Bool(_) => None,
        }
    }
}

/// An array of `len` elements. `stream` keeps arrays of one seed apart: give each input its own.
pub fn generate(
    generator: Generator,
    ty: ScalarType,
    len: usize,
    seed: u64,
    stream: u64,
) -> Result<HostArray> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    let rng = &mut rng;
    let no_constant =
        || Diagnostic::error(Code::Usage, format!("`{generator}` is no value of type {ty}")).into();
    macro_rules! float {
        ($t:ty, $narrow:expr) => {{
            let narrow = $narrow;
            match generator {
                Generator::Normal => fill::<$t>(len, |_| {
                    let x: f32 = StandardNormal.sample(rng);
                    narrow(f64::from(x))
                }),
                Generator::Uniform => fill::<$t>(len, |_| narrow(f64::from(unit(rng)))),
                Generator::Iota => fill::<$t>(len, |i| narrow(i as f64)),
                Generator::Const(c) => {
                    let v = narrow(c.float().ok_or_else(no_constant)?);
                    fill::<$t>(len, |_| v)
                }
            }
        }};
    }
    macro_rules! integer {
        ($t:ty, $low:expr) => {
            match generator {
                Generator::Normal | Generator::Uniform => {
                    let low: $t = $low;
                    fill::<$t>(len, |_| rng.random_range(low..low + RANGE as $t))
                }
                Generator::Iota => fill::<$t>(len, |i| i as $t),
                Generator::Const(c) => {
                    let v: $t = c.integer().ok_or_else(no_constant)?;
                    fill::<$t>(len, |_| v)
                }
            }
        };
    }
    Ok(match ty {
        ScalarType::F16 => float!(f16, f16::from_f64),
        ScalarType::F32 => float!(f32, |x: f64| x as f32),
        ScalarType::F64 => match generator {
            // Full precision, where the element has it.
            Generator::Normal => fill::<f64>(len, |_| StandardNormal.sample(rng)),
            Generator::Uniform => fill::<f64>(len, |_| rng.random()),
            Generator::Iota | Generator::Const(_) => float!(f64, |x: f64| x),
        },
        ScalarType::I8 => integer!(i8, -RANGE / 2),
        ScalarType::I16 => integer!(i16, -i16::from(RANGE) / 2),
        ScalarType::I32 => integer!(i32, -i32::from(RANGE) / 2),
        ScalarType::I64 => integer!(i64, -i64::from(RANGE) / 2),
        ScalarType::U8 => integer!(u8, 0),
        ScalarType::U16 => integer!(u16, 0),
        ScalarType::U32 => integer!(u32, 0),
        ScalarType::U64 => integer!(u64, 0),
        ScalarType::Bool => match generator {
            Generator::Normal | Generator::Uniform => fill::<bool>(len, |_| rng.random()),
            Generator::Iota => fill::<bool>(len, |i| i % 2 == 1),
            Generator::Const(Constant::Bool(v)) => fill::<bool>(len, |_| v),
            Generator::Const(Constant::Float(_) | Constant::Integer(_)) => {
                return Err(no_constant());
            }
        },
    })
}

/// A float in 0..1 with 24 random bits.
fn unit(rng: &mut impl Rng) -> f32 {
    rng.random()
}

fn fill<T: Element>(len: usize, mut element: impl FnMut(usize) -> T) -> HostArray {
    let elements: Vec<T> = (0..len).map(&mut element).collect();
    HostArray::from_slice(&elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_and_streams_decide() {
        let make =
            |seed, stream| generate(Generator::Normal, ScalarType::F32, 64, seed, stream).unwrap();
        assert_eq!(make(1, 0), make(1, 0));
        assert_ne!(make(1, 0), make(2, 0));
        assert_ne!(make(1, 0), make(1, 1));
    }

    #[test]
    fn every_generator_makes_every_type() {
        for ty in ScalarType::ALL {
            for text in ["normal", "uniform", "iota", "const:1"] {
                let g: Generator = text.parse().unwrap();
                let made = generate(g, ty, 300, 7, 0);
                if (ty, text) == (ScalarType::Bool, "const:1") {
                    assert!(made.is_err());
                } else {
                    let made = made.unwrap();
                    assert_eq!((made.ty(), made.len()), (ty, 300), "{text}");
                }
                assert!(text == "const:1" || generate(g, ty, 0, 7, 0).unwrap().is_empty());
            }
        }
    }

    #[test]
    fn values_are_what_they_should_be() {
        let make = |text: &str, ty| generate(text.parse().unwrap(), ty, 10_000, 7, 0);
        let normal = make("normal", ScalarType::F32).unwrap().to_vec::<f32>().unwrap();
        let mean = normal.iter().sum::<f32>() / 1e4;
        let square = normal.iter().map(|x| x * x).sum::<f32>() / 1e4;
        assert!(mean.abs() < 0.05 && (square - 1.0).abs() < 0.1);
        let uniform = make("uniform", ScalarType::I8).unwrap().to_vec::<i8>().unwrap();
        assert_eq!((uniform.iter().min(), uniform.iter().max()), (Some(&-50), Some(&49)));
        assert_eq!(make("iota", ScalarType::U8).unwrap().to_vec::<u8>().unwrap()[257], 1);
        let big = make("const:18446744073709551615", ScalarType::U64).unwrap();
        assert_eq!(big.to_vec::<u64>().unwrap()[0], u64::MAX);
        assert!(make("const:nan", ScalarType::F64).unwrap().as_f64(0).unwrap().is_nan());
        assert!(make("const:-1", ScalarType::U8).is_err());
        assert!(make("const:1.5", ScalarType::I32).is_err());
        assert_eq!("zeros".parse::<Generator>().unwrap_err().0[0].code, Code::Usage);
    }
}
