//! Generates input data from a seed, so that the data are the same in every run and on every machine.

use super::program::Sizes;
use crate::diag::{Code, Diagnostic, Result};
use crate::lang::parser;
use crate::lang::size::{Size, SizeError};
use crate::lang::types::ScalarType;
use crate::opencl::host::{Element, HostArray};
use half::{bf16, f16};
use rand::seq::SliceRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::fmt;
use std::str::FromStr;

/// Uniform integers lie in `0..RANGE` (unsigned) or `-RANGE/2..RANGE/2` (signed). The range is small, so that sums and
/// products of many elements do not all overflow.
pub(super) const RANGE: i8 = 100;

/// The syntax of generators, for messages.
const GENERATORS: &str = "`normal`, `uniform`, `uniform:LOW..HIGH`, `whole:LOW..HIGH`, `sorted:LOW..HIGH`, `neighbours:N`, `letters:ABC`, `iota`, `shuffle` and `const:VALUE`";

/// The distribution of the elements of an array.
#[derive(Clone, Debug, PartialEq)]
pub enum Generator {
    /// Floats from the standard normal distribution; integers uniform, as below.
    Normal,
    /// Floats in `0..1`; integers in a range of 100 values; `true` and `false` with equal probability.
    Uniform,
    /// Numbers from the first bound up to the second, exclusive.
    Between(Bound, Bound),
    /// Whole numbers from the first bound up to the second, exclusive, for float types too: sums of products of small
    /// whole numbers are exact in any order.
    Whole(Bound, Bound),
    /// Whole numbers as above, in ascending order along the last dimension.
    Sorted(Bound, Bound),
    /// 0, 1, 2, ... along the last dimension, in a random order.
    Shuffle,
    /// The codes of these ASCII characters, each equally often.
    Letters(String),
    /// For lists of neighbours `[..][n]` or `[n][..]`: integers in `0..n`, except the index of the element that the
    /// list belongs to.
    Neighbours(Bound),
    /// 0, 1, 2, ... (wraps in small integer types; as `bool`, odd numbers are `true`).
    Iota,
    /// The same value everywhere.
    Const(Bound),
}

/// A bound of a range, or a value: a number, or a size of the program.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// A number.
    Number(Constant),
    /// A size, as in types.
    Size(Size),
}

/// How a size becomes a number, given the values of sizes.
type Evaluation = fn(&Size, &dyn Fn(&str) -> Option<i64>) -> std::result::Result<i64, SizeError>;

impl Bound {
    fn read(text: &str) -> Option<Bound> {
        match constant(text) {
            Some(c) => Some(Bound::Number(c)),
            None => parser::size(text).map(Bound::Size),
        }
    }

    /// Returns the value. A quotient must be whole.
    pub(super) fn value(&self, sizes: &Sizes) -> Result<Constant> {
        self.evaluated(sizes, |size, known| match size.eval(known) {
            Err(SizeError::Negative(n)) => Ok(n),
            other => other,
        })
    }

    /// Returns the value as an end of a range. It only bounds other values, so a quotient is rounded down.
    pub(super) fn end(&self, sizes: &Sizes) -> Result<Constant> {
        self.evaluated(sizes, Size::floor)
    }

    fn evaluated(&self, sizes: &Sizes, value: Evaluation) -> Result<Constant> {
        match self {
            Bound::Number(c) => Ok(*c),
            Bound::Size(size) => {
                let known = |name: &str| sizes.get(name).and_then(|n| i64::try_from(*n).ok());
                let text = match value(size, &known) {
                    Ok(n) => return Ok(Constant::Integer(i128::from(n))),
                    Err(SizeError::Unbound(name)) => {
                        format!("`{name}` is neither a number nor a size that is known here")
                    }
                    Err(e) => format!("`{size}`: {e}"),
                };
                Err(Diagnostic::error(Code::Usage, text).into())
            }
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Number(c) => write!(f, "{c}"),
            Bound::Size(size) => write!(f, "{size}"),
        }
    }
}

/// A constant. Integers beyond 2^53 stay exact.
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
            "shuffle" => Ok(Generator::Shuffle),
            other => {
                let between = |range: &str| {
                    let (low, high) = range.split_once("..")?;
                    let number = |text| {
                        Bound::read(text).filter(|b| !matches!(b, Bound::Number(Constant::Bool(_))))
                    };
                    Some((number(low)?, number(high)?))
                };
                let made = match other.split_once(':') {
                    Some(("const", value)) => Bound::read(value).map(Generator::Const),
                    Some(("uniform", range)) => {
                        between(range).map(|(low, high)| Generator::Between(low, high))
                    }
                    Some(("whole", range)) => {
                        between(range).map(|(low, high)| Generator::Whole(low, high))
                    }
                    Some(("sorted", range)) => {
                        between(range).map(|(low, high)| Generator::Sorted(low, high))
                    }
                    Some(("letters", set)) => {
                        let letters = set.is_ascii() && !set.is_empty();
                        letters.then(|| Generator::Letters(set.to_owned()))
                    }
                    Some(("neighbours", n)) => Bound::read(n).map(Generator::Neighbours),
                    _ => None,
                };
                made.ok_or_else(|| {
                    Diagnostic::error(Code::Usage, format!("`{text}` is no generator"))
                        .help(format!("there are {GENERATORS}"))
                        .into()
                })
            }
        }
    }
}

impl fmt::Display for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Generator::Normal => write!(f, "normal"),
            Generator::Uniform => write!(f, "uniform"),
            Generator::Between(low, high) => write!(f, "uniform:{low}..{high}"),
            Generator::Whole(low, high) => write!(f, "whole:{low}..{high}"),
            Generator::Sorted(low, high) => write!(f, "sorted:{low}..{high}"),
            Generator::Shuffle => write!(f, "shuffle"),
            Generator::Letters(set) => write!(f, "letters:{set}"),
            Generator::Neighbours(n) => write!(f, "neighbours:{n}"),
            Generator::Iota => write!(f, "iota"),
            Generator::Const(c) => write!(f, "const:{c}"),
        }
    }
}

impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Constant::Float(v) => write!(f, "{v:?}"),
            Constant::Integer(v) => write!(f, "{v}"),
            Constant::Bool(v) => write!(f, "{v}"),
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
    /// Returns the value as a float; `None` for a boolean.
    pub(super) fn float(self) -> Option<f64> {
        match self {
            Constant::Float(v) => Some(v),
            Constant::Integer(v) => Some(v as f64),
            Constant::Bool(_) => None,
        }
    }

    /// Returns the integer before this one; other constants stay.
    pub(super) fn before(self) -> Constant {
        match self {
            Constant::Integer(v) => Constant::Integer(v.saturating_sub(1)),
            other => other,
        }
    }

    /// Returns the value as an integer of type `T`; `None` if it is no such integer.
    pub(super) fn integer<T: TryFrom<i128>>(self) -> Option<T> {
        match self {
            Constant::Integer(v) => T::try_from(v).ok(),
            Constant::Float(_) | Constant::Bool(_) => None,
        }
    }
}

/// Generates an array of `len` elements. Each input needs a `stream` of its own, so that arrays of one seed differ.
///
/// # Errors
/// When the generator has no value of that type, or mentions a size.
pub fn generate(
    generator: &Generator,
    ty: ScalarType,
    len: usize,
    seed: u64,
    stream: u64,
) -> Result<HostArray> {
    generate_shaped(generator, ty, &[len], &Sizes::new(), seed, stream)
}

/// Generates an array of these dimensions, row-major. The generator may mention the sizes.
///
/// # Errors
/// When the generator has no value of that type or shape, or mentions a size that is not known.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "numbers wrap and are rounded to their type"
)]
pub fn generate_shaped(
    generator: &Generator,
    ty: ScalarType,
    shape: &[usize],
    sizes: &Sizes,
    seed: u64,
    stream: u64,
) -> Result<HostArray> {
    let len = shape.iter().product();
    let row = shape.last().copied().unwrap_or(1).max(1);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    let rng = &mut rng;
    let none = || Diagnostic::error(Code::Usage, format!("`{generator}` is no value of type {ty}"));
    let truths = || none().help("the ranges of type bool are `0..1` and `0..2`: both truth values");
    macro_rules! float {
        ($t:ty, $narrow:expr) => {{
            let narrow = $narrow;
            match generator {
                Generator::Normal => fill::<$t>(len, |_| {
                    let x: f32 = StandardNormal.sample(rng);
                    narrow(f64::from(x))
                }),
                Generator::Uniform => fill::<$t>(len, |_| narrow(f64::from(unit(rng)))),
                Generator::Between(low, high) => {
                    let low = low.end(sizes)?.float().ok_or_else(none)?;
                    let high = high.end(sizes)?.float().ok_or_else(none)?;
                    fill::<$t>(len, |_| narrow(low + (high - low) * f64::from(unit(rng))))
                }
                Generator::Whole(low, high) | Generator::Sorted(low, high) => {
                    let low: i32 = low.end(sizes)?.integer().ok_or_else(none)?;
                    let high: i32 = high.end(sizes)?.integer().ok_or_else(none)?;
                    some_integer(low, high, len)?;
                    let mut all: Vec<i32> = vec![];
                    all.extend((0..len).map(|_| rng.random_range(low..high)));
                    sort(generator, &mut all, row);
                    fill::<$t>(len, |i| narrow(f64::from(all[i])))
                }
                Generator::Neighbours(_) | Generator::Letters(_) => return Err(none().into()),
                Generator::Iota => fill::<$t>(len, |i| narrow(i as f64)),
                Generator::Shuffle => {
                    let places = shuffled(len, row, rng);
                    fill::<$t>(len, |i| narrow(places[i] as f64))
                }
                Generator::Const(c) => {
                    let v = narrow(c.value(sizes)?.float().ok_or_else(none)?);
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
                Generator::Between(low, high)
                | Generator::Whole(low, high)
                | Generator::Sorted(low, high) => {
                    let (low, high) = (low.end(sizes)?, high.end(sizes)?);
                    let whole = |c: Constant| c.integer::<i128>().ok_or_else(none);
                    some_integer(whole(low)?, whole(high)?, len)?;
                    if len == 0 {
                        fill::<$t>(len, |_| 0)
                    } else {
                        let low: $t = low.integer().ok_or_else(none)?;
                        // The end of the range itself need not be a value of the type.
                        let last: $t = high.before().integer().ok_or_else(none)?;
                        let mut all: Vec<$t> = vec![];
                        all.extend((0..len).map(|_| rng.random_range(low..=last)));
                        sort(generator, &mut all, row);
                        HostArray::from_slice(&all)
                    }
                }
                Generator::Letters(set) => {
                    let set = set.as_bytes();
                    // ASCII fits every integer type.
                    fill::<$t>(len, |_| set[rng.random_range(0..set.len())] as $t)
                }
                Generator::Shuffle => {
                    <$t>::try_from(row - 1).map_err(|_| none())?;
                    let places = shuffled(len, row, rng);
                    fill::<$t>(len, |i| places[i] as $t)
                }
                Generator::Neighbours(n) => {
                    let n: $t = n.value(sizes)?.integer().ok_or_else(none)?;
                    let owner = owner(i128::try_from(n).unwrap_or(-1), shape)?;
                    fill::<$t>(len, |i| {
                        // One of the n - 1 others: indices from the owner on are shifted by one.
                        let other: $t = rng.random_range(0..n - 1);
                        other + <$t>::from(i128::try_from(other).unwrap_or(-1) >= owner(i))
                    })
                }
                Generator::Iota => fill::<$t>(len, |i| i as $t),
                Generator::Const(c) => {
                    let v: $t = c.value(sizes)?.integer().ok_or_else(none)?;
                    fill::<$t>(len, |_| v)
                }
            }
        };
    }
    Ok(match ty {
        ScalarType::F16 => float!(f16, f16::from_f64),
        ScalarType::BF16 => float!(bf16, bf16::from_f64),
        ScalarType::F32 => float!(f32, |x: f64| x as f32),
        ScalarType::F64 => match generator {
            // In full precision.
            Generator::Normal => fill::<f64>(len, |_| StandardNormal.sample(rng)),
            Generator::Uniform => fill::<f64>(len, |_| rng.random()),
            _ => float!(f64, |x: f64| x),
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
            Generator::Const(Bound::Number(Constant::Bool(v))) => fill::<bool>(len, |_| *v),
            Generator::Between(low, high) | Generator::Whole(low, high) => {
                both_truths(low.end(sizes)?, high.end(sizes)?).ok_or_else(truths)?;
                fill::<bool>(len, |_| rng.random())
            }
            Generator::Const(_)
            | Generator::Sorted(..)
            | Generator::Shuffle
            | Generator::Letters(_)
            | Generator::Neighbours(_) => return Err(none().into()),
        },
    })
}

/// Checks that a range for `bool` covers both values: it is `0..1` or `0..2`.
pub(super) fn both_truths(low: Constant, high: Constant) -> Option<()> {
    let (low, high): (u8, u8) = (low.integer()?, high.integer()?);
    (low == 0 && (1..=2).contains(&high)).then_some(())
}

/// Checks that the range contains an integer, unless `len` is 0.
#[expect(clippy::needless_pass_by_value, reason = "the bounds are numbers")]
fn some_integer<T: PartialOrd + fmt::Display>(low: T, high: T, len: usize) -> Result<()> {
    if low >= high && len > 0 {
        let text = format!("there is no integer in `{low}..{high}`");
        return Err(Diagnostic::error(Code::Usage, text).into());
    }
    Ok(())
}

/// Returns a function from the position of an element to the owner of its list: see [`owners`].
fn owner(n: i128, shape: &[usize]) -> Result<impl Fn(usize) -> i128 + use<>> {
    let (modulus, divisor) = owners(n, shape)?;
    Ok(move |i| i128::try_from(i % modulus / divisor).unwrap_or(i128::MAX))
}

/// Returns a modulus and a divisor that give the owner of an element's list from the element's position. The owner is
/// the index in the last dimension if that dimension has length `n`, else the index in the first.
pub(super) fn owners(n: i128, shape: &[usize]) -> Result<(usize, usize)> {
    let len: usize = shape.iter().product();
    let is_n = |d: Option<&usize>| d.is_some_and(|d| i128::try_from(*d) == Ok(n));
    let (modulus, divisor) = if is_n(shape.last()) {
        (shape.last().copied().unwrap_or(1), 1)
    } else if is_n(shape.first()) {
        (usize::MAX, len / shape.first().copied().unwrap_or(1).max(1))
    } else {
        let text = format!("neither the first nor the last of the dimensions {shape:?} is {n}");
        return Err(Diagnostic::error(Code::Usage, text).into());
    };
    if n < 2 && len > 0 {
        return Err(Diagnostic::error(
            Code::Usage,
            format!("with {n} elements there are no neighbours"),
        )
        .into());
    }
    Ok((modulus.max(1), divisor.max(1)))
}

/// Sorts each row of elements that `sorted` made.
fn sort<T: Ord>(generator: &Generator, elements: &mut [T], row: usize) {
    if matches!(generator, Generator::Sorted(..)) {
        elements.chunks_mut(row).for_each(<[T]>::sort);
    }
}

/// Returns `len` numbers: in each row, those from 0 on in a random order.
fn shuffled(len: usize, row: usize, rng: &mut impl Rng) -> Vec<usize> {
    let mut out: Vec<usize> = (0..len).map(|i| i % row).collect();
    out.chunks_mut(row).for_each(|row| row.shuffle(rng));
    out
}

/// Returns a float in `0..1` with 24 random bits.
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
        let make = |seed, stream| {
            generate(&Generator::Normal, ScalarType::F32, 64, seed, stream)
                .expect("the type has such values")
        };
        assert_eq!(make(1, 0), make(1, 0));
        assert_ne!(make(1, 0), make(2, 0));
        assert_ne!(make(1, 0), make(1, 1));
    }

    #[test]
    fn every_generator_makes_every_type() {
        for ty in ScalarType::ALL {
            for text in ["normal", "uniform", "iota", "const:1"] {
                let g: Generator = text.parse().expect("a way to make values up");
                let made = generate(&g, ty, 300, 7, 0);
                if (ty, text) == (ScalarType::Bool, "const:1") {
                    assert!(made.is_err());
                } else {
                    let made = made.expect("the type has such values");
                    assert_eq!((made.ty(), made.len()), (ty, 300), "{text}");
                }
                assert!(
                    text == "const:1"
                        || generate(&g, ty, 0, 7, 0).expect("the type has such values").is_empty()
                );
            }
        }
    }

    #[test]
    fn values_are_what_they_should_be() {
        let make = |text: &str, ty| {
            generate(&text.parse().expect("a way to make values up"), ty, 10_000, 7, 0)
        };
        let normal = make("normal", ScalarType::F32)
            .expect("the type has such values")
            .to_vec::<f32>()
            .expect("of that type");
        let mean = normal.iter().sum::<f32>() / 1e4;
        let square = normal.iter().map(|x| x * x).sum::<f32>() / 1e4;
        assert!(mean.abs() < 0.05 && (square - 1.0).abs() < 0.1);
        let uniform = make("uniform", ScalarType::I8)
            .expect("the type has such values")
            .to_vec::<i8>()
            .expect("of that type");
        assert_eq!((uniform.iter().min(), uniform.iter().max()), (Some(&-50), Some(&49)));
        assert_eq!(
            make("iota", ScalarType::U8)
                .expect("the type has such values")
                .to_vec::<u8>()
                .expect("of that type")[257],
            1
        );
        let big =
            make("const:18446744073709551615", ScalarType::U64).expect("the type has such values");
        assert_eq!(big.to_vec::<u64>().expect("of that type")[0], u64::MAX);
        assert!(
            make("const:nan", ScalarType::F64)
                .expect("the type has such values")
                .as_f64(0)
                .expect("there is a first element")
                .is_nan()
        );
        assert!(make("const:-1", ScalarType::U8).is_err());
        assert!(make("const:1.5", ScalarType::I32).is_err());
        assert_eq!("zeros".parse::<Generator>().unwrap_err().0[0].code, Code::Usage);
    }

    #[test]
    fn ranges_and_neighbours() {
        let sizes = Sizes::from([("n".to_owned(), 7)]);
        let make = |text: &str, ty, shape: &[usize]| {
            generate_shaped(
                &text.parse().expect("a way to make values up"),
                ty,
                shape,
                &sizes,
                7,
                0,
            )
        };
        let range =
            make("uniform:-2..n", ScalarType::I32, &[1000]).expect("the type has such values");
        let range = range.to_vec::<i32>().expect("of that type");
        assert_eq!((range.iter().min(), range.iter().max()), (Some(&-2), Some(&6)));
        let range =
            make("uniform:0.25..10", ScalarType::F32, &[1000]).expect("the type has such values");
        let range = range.to_vec::<f32>().expect("of that type");
        assert!(range.iter().all(|x| (0.25..10.0).contains(x)));
        assert!(range.iter().any(|x| *x > 9.0) && range.iter().any(|x| *x < 1.0));
        let bytes = make("whole:0..256", ScalarType::U8, &[10_000]).expect("bytes");
        assert!(bytes.to_vec::<u8>().expect("bytes").contains(&255));
        assert!(make("whole:5..5", ScalarType::U8, &[0]).is_ok());
        let whole = make("whole:-2..n", ScalarType::F32, &[1000]).expect("whole numbers");
        let whole = whole.to_vec::<f32>().expect("floats");
        assert!(whole.iter().all(|x| x.fract() == 0.0 && (-2.0..7.0).contains(x)));
        assert!((-2..7).all(|x| whole.contains(&(x as f32))));
        let halves = make("const:2*n - 15", ScalarType::F32, &[1]).expect("a number");
        assert_eq!(halves.to_vec::<f32>().expect("floats"), [-1.0]);
        let rows = make("sorted:0..n", ScalarType::U16, &[3, 40]).expect("keys");
        let rows = rows.to_vec::<u16>().expect("keys");
        assert!(rows.chunks(40).all(<[u16]>::is_sorted) && !rows.is_sorted());
        assert!((0..7).all(|key| rows.contains(&key)));
        // The end of a range is rounded down, if it is no whole number.
        for ty in [ScalarType::I32, ScalarType::F32] {
            for (text, least, most) in [("sorted:0..n/2", 0.0, 2.0), ("whole:-n/2..2", -4.0, 1.0)] {
                let keys = make(text, ty, &[100]).expect("keys");
                let keys: Vec<f64> = (0..100).filter_map(|i| keys.as_f64(i)).collect();
                let ends =
                    (keys.iter().copied().reduce(f64::min), keys.into_iter().reduce(f64::max));
                assert_eq!(ends, (Some(least), Some(most)), "{text}");
            }
        }
        for ty in [ScalarType::I32, ScalarType::F32] {
            let rows = make("shuffle", ty, &[2, 50]).expect("places");
            let value = |i| rows.as_f64(i).expect("an element");
            for row in [0, 50] {
                let mut row: Vec<f64> = (row..row + 50).map(value).collect();
                assert!(!row.is_sorted());
                row.sort_by(f64::total_cmp);
                assert_eq!(row, (0..50).map(f64::from).collect::<Vec<_>>());
            }
        }
        assert!(make("shuffle", ScalarType::U8, &[256]).is_ok());
        assert!(make("shuffle", ScalarType::U8, &[257]).is_err());
        assert!(make("shuffle", ScalarType::I64, &[3, 0]).is_ok_and(|none| none.is_empty()));
        let bases = make("letters:ACGT", ScalarType::U8, &[100]).expect("letters");
        let bases = bases.to_vec::<u8>().expect("bytes");
        assert!(b"ACGT".iter().all(|c| bases.contains(c)));
        assert!(bases.iter().all(|c| b"ACGT".contains(c)));
        for (shape, whose) in [([50, 7], [1, 7]), ([7, 50], [50, 7])] {
            let lists =
                make("neighbours:n", ScalarType::I32, &shape).expect("the type has such values");
            let mut met = [[false; 7]; 7];
            for (i, other) in lists.to_vec::<i32>().expect("of that type").into_iter().enumerate() {
                met[i / whose[0] % whose[1]]
                    [usize::try_from(other).expect("an index is not negative")] = true;
            }
            // Every element but the owner occurs.
            for (i, met) in met.iter().enumerate() {
                assert!(met.iter().enumerate().all(|(j, met)| *met == (i != j)), "{i}: {met:?}");
            }
        }
        for (text, ty) in [
            ("uniform:0..m", ScalarType::F32),
            ("uniform:3..3", ScalarType::I32),
            ("uniform:0.5..3", ScalarType::I32),
            ("whole:3..3", ScalarType::F32),
            ("whole:0.5..3", ScalarType::F32),
            ("whole:0..257", ScalarType::U8),
            ("whole:-129..0", ScalarType::I8),
            ("sorted:0..3", ScalarType::Bool),
            ("letters:A", ScalarType::F32),
            ("uniform:a-b..3", ScalarType::F32),
            ("const:n/2", ScalarType::I32),
            ("whole:0..n/0", ScalarType::I32),
            ("neighbours:n", ScalarType::F32),
            ("neighbours:5", ScalarType::I32),
        ] {
            assert_eq!(make(text, ty, &[7, 8]).unwrap_err().0[0].code, Code::Usage, "{text}");
        }
        for text in [
            "uniform:0",
            "uniform:..3",
            "uniform:a+..3",
            "letters:",
            "letters:é",
            "sorted:3",
            "neighbours:",
            "uniform:true..3",
        ] {
            assert_eq!(text.parse::<Generator>().unwrap_err().0[0].code, Code::Usage, "{text}");
        }
        for text in [
            "normal",
            "uniform",
            "uniform:-1.5..n",
            "whole:-8..n",
            "sorted:0..2*n",
            "neighbours:n",
            "letters:ACGT",
            "iota",
            "shuffle",
            "const:-0.0",
            "const:n - 1",
        ] {
            assert_eq!(
                text.parse::<Generator>().expect("a way to make values up").to_string(),
                text
            );
        }
    }
}
