//! Error bounds against exact arithmetic, and against devices that round and flush as they please.

use super::super::cell::Format;
use super::super::number::apply;
use super::*;
use ScalarType::{F16, F32, F64};
use num_bigint::BigInt;
use num_rational::BigRational;
use rand::{RngExt, SeedableRng, rngs::SmallRng};

const TYPES: [ScalarType; 3] = [F16, F32, F64];

fn on(op: ScalarOp, ty: ScalarType, args: [Cell; 3]) -> Cell {
    apply(op, ty, ty, false, &Slack::of(1), args).expect("floats have values")
}

fn exact(x: f64) -> BigRational {
    BigRational::from_float(x).expect("a finite number")
}

/// A random number: ordinary, whole, near zero or the largest number, zero, infinity or NaN.
fn number(rng: &mut SmallRng, ty: ScalarType) -> f64 {
    let format = Format::of(ty);
    let sign = if rng.random() { 1.0 } else { -1.0 };
    let x: f64 = match rng.random_range(0..12) {
        0 => 0.0,
        1 => f64::from(rng.random_range(1..40u8)),
        2 => format.tiny * rng.random_range(0.0..2.0),
        3 => format.most * rng.random_range(0.2..1.0),
        4 => 2f64.powi(rng.random_range(-12..12)),
        5 if rng.random_range(0..4) == 0 => f64::INFINITY,
        5 if rng.random_range(0..4) == 0 => f64::NAN,
        6 => rng.random_range(80.0..1000.0),
        7 => format.epsilon * rng.random_range(0.0..4.0),
        _ => rng.random_range(0.0..8.0),
    };
    round(ty, sign * x)
}

/// A random input, or a result that has cancelled more or less.
fn operand(rng: &mut SmallRng, ty: ScalarType) -> Cell {
    let x = number(rng, ty);
    let input = Cell::float(ty, x);
    let grows = match rng.random_range(0..4) {
        0 | 1 => return input,
        2 => 1.0,
        _ => rng.random_range(1.0..1e4),
    };
    if x.is_finite() { Cell::inexact(x, input.mag() * grows) } else { input }
}

/// A random number in an operand's interval, which extends by `r` times its magnitude.
fn inside(rng: &mut SmallRng, ty: ScalarType, a: Cell) -> f64 {
    let mode = Mode { ty, format: Format::of(ty), unrounded: false, r: Slack::of(1).relative(ty) };
    let ends = [-1.0, -0.5, 0.0, 0.25, 1.0];
    a.as_float() + mode.error(a) * ends[rng.random_range(0..ends.len())]
}

#[test]
fn magnitudes_are_numbers_and_cover_values() {
    let rng = &mut SmallRng::seed_from_u64(1);
    use ScalarOp as O;
    let ops = [
        O::Add,
        O::Sub,
        O::Mul,
        O::Div,
        O::Rem,
        O::Pow,
        O::Neg,
        O::Abs,
        O::Sqrt,
        O::Rsqrt,
        O::Exp,
        O::Log,
        O::Sin,
        O::Cos,
        O::Tan,
        O::Atan,
        O::Atan2,
        O::Asin,
        O::Acos,
        O::Sinh,
        O::Cosh,
        O::Tanh,
        O::Asinh,
        O::Acosh,
        O::Atanh,
        O::Exp2,
        O::Exp10,
        O::Expm1,
        O::Log2,
        O::Log10,
        O::Log1p,
        O::Cbrt,
        O::Hypot,
        O::Erf,
        O::Erfc,
        O::Copysign,
        O::Trunc,
        O::Floor,
        O::Ceil,
        O::Round,
        O::Sign,
        O::Min,
        O::Max,
        O::Clamp,
        O::Fma,
    ];
    for _ in 0..60_000 {
        let ty = TYPES[rng.random_range(0..3)];
        let args = [0; 3].map(|_| operand(rng, ty));
        let op = ops[rng.random_range(0..ops.len())];
        let got = on(op, ty, args);
        let (x, m) = (got.as_float(), got.mag());
        assert!(m >= 0.0, "{op:?} {ty} {args:?}: {got:?}");
        let covers = !x.is_finite() || m >= x.abs() * (1.0 - 1e-3);
        assert!(covers, "{op:?} {ty} {args:?}: {x} has the magnitude {m}");
        if got.is_exact() {
            assert_eq!(round(ty, x), x, "{op:?} {ty} {args:?}");
        }
    }
}

#[test]
fn arithmetic_stays_within_its_bounds() {
    let rng = &mut SmallRng::seed_from_u64(2);
    use ScalarOp as O;
    let ops = [O::Add, O::Sub, O::Mul, O::Div, O::Fma, O::Abs, O::Min, O::Max, O::Floor, O::Rem];
    for _ in 0..40_000 {
        let ty = TYPES[rng.random_range(0..3)];
        let args = [0; 3].map(|_| operand(rng, ty));
        let op = ops[rng.random_range(0..ops.len())];
        let got = on(op, ty, args);
        let at = args.map(|a| inside(rng, ty, a));
        let all = args.iter().map(|a| a.as_float()).chain(at).all(f64::is_finite);
        if !all || !got.as_float().is_finite() || got.mag() > 1e300 {
            continue;
        }
        let [x, y, z] = at.map(exact);
        let zero = BigRational::from_integer(BigInt::from(0));
        assert!(
            !matches!(op, O::Div | O::Rem) || y != zero,
            "{op:?} {ty} {args:?}: finite, though the divisor may be 0"
        );
        let value = match op {
            O::Add => x + y,
            O::Sub => x - y,
            O::Mul => x * y,
            O::Div => x / y,
            O::Fma => x * y + z,
            O::Abs => {
                if x < zero {
                    -x
                } else {
                    x
                }
            }
            O::Min => x.min(y),
            O::Max => x.max(y),
            O::Floor => x.floor(),
            _ => {
                let q = (&x / &y).trunc();
                x - q * y
            }
        };
        let format = Format::of(ty);
        let off = value - exact(got.as_float());
        let off = if off < zero { -off } else { off };
        let bound = if got.is_exact() {
            zero
        } else {
            // The magnitude of a product `x * y` contains `|x * y|` once, although the error of either
            // operand may move it that far; likewise for quotients.
            exact(Slack::of(1).relative(ty) * got.mag() * 2.2) + exact(format.tiny)
        };
        assert!(off <= bound, "{op:?} {ty} {args:?} at {at:?}: {got:?}");
    }
}

/// The functions that are bounded by their slopes, and jumps; with the units in the last place that OpenCL allows to
/// each in single precision.
const FUNCTIONS: [(ScalarOp, f64); 20] = {
    use ScalarOp as O;
    [
        (O::Asin, 4.0),
        (O::Acos, 4.0),
        (O::Sinh, 4.0),
        (O::Cosh, 4.0),
        (O::Tanh, 5.0),
        (O::Asinh, 4.0),
        (O::Acosh, 4.0),
        (O::Atanh, 5.0),
        (O::Exp2, 3.0),
        (O::Exp10, 3.0),
        (O::Expm1, 3.0),
        (O::Log2, 3.0),
        (O::Log10, 3.0),
        (O::Log1p, 2.0),
        (O::Cbrt, 2.0),
        (O::Hypot, 4.0),
        (O::Erf, 16.0),
        (O::Erfc, 16.0),
        (O::Copysign, 0.0),
        (O::Trunc, 0.0),
    ]
};

#[test]
fn functions_stay_within_their_bounds() {
    let rng = &mut SmallRng::seed_from_u64(4);
    let mut bounded = [0; FUNCTIONS.len()];
    for _ in 0..60_000 {
        let ty = TYPES[rng.random_range(0..2)];
        let args = [0; 3].map(|_| operand(rng, ty));
        let which = rng.random_range(0..FUNCTIONS.len());
        let (op, ulps) = FUNCTIONS[which];
        let got = on(op, ty, args);
        if got.mag() == ANYTHING {
            continue;
        }
        let format = Format::of(ty);
        let at = args.map(|a| inside(rng, ty, a));
        if at.iter().any(|x| x.is_finite() && x.abs() > format.most) {
            continue;
        }
        let (want, have) = (got.as_float(), value(op, ty, at));
        if want.is_nan() || want.is_infinite() || have.abs() > format.most {
            let near =
                want.signum() == have.signum() && want.abs().min(have.abs()) > format.most * 0.4;
            assert!(
                want.is_nan() && have.is_nan() || near,
                "{op:?} {ty} {args:?} at {at:?}: {got:?}"
            );
            continue;
        }
        let own = ulps * format.epsilon * have.abs() * if ty == F16 { 0.25 } else { 1.0 };
        let bound = Slack::of(1).relative(ty) * got.mag() * 1.001 + format.tiny;
        let off = (have - want).abs() + own;
        let slack = if got.is_exact() { 0.0 } else { bound };
        // The function's own error stands beside that of its operands only if these are inexact.
        assert!(off <= slack + own, "{op:?} {ty} {args:?} at {at:?}: {have}, not {got:?}");
        if args[0].is_exact() && args[1].is_exact() {
            assert!(off <= slack, "{op:?} {ty} {args:?}: {own} is allowed, not {bound}");
        }
        bounded[which] += 1;
    }
    assert!(bounded.iter().all(|n| *n > 500), "{bounded:?}");
}

#[test]
fn functions_have_the_known_values() {
    use ScalarOp as O;
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    for (op, x, y, want) in [
        (O::Asin, 1.0, 0.0, PI / 2.0),
        (O::Acos, -1.0, 0.0, PI),
        (O::Acos, 1.5, 0.0, nan),
        (O::Sinh, 1.0, 0.0, 1.175_201_193_643_801_4),
        (O::Cosh, 1.0, 0.0, 1.543_080_634_815_243_7),
        (O::Tanh, 0.5, 0.0, 0.462_117_157_260_009_8),
        (O::Tanh, -inf, 0.0, -1.0),
        (O::Asinh, 1.0, 0.0, 0.881_373_587_019_543),
        (O::Acosh, 2.0, 0.0, 1.316_957_896_924_816_6),
        (O::Atanh, 0.5, 0.0, 0.549_306_144_334_054_9),
        (O::Atanh, 1.0, 0.0, inf),
        (O::Exp2, -3.0, 0.0, 0.125),
        (O::Exp10, 3.0, 0.0, 1000.0),
        (O::Expm1, 1e-10, 0.0, 1.000_000_000_05e-10),
        (O::Log2, 8.0, 0.0, 3.0),
        (O::Log10, 0.01, 0.0, -2.0),
        (O::Log1p, 1e-10, 0.0, 9.999_999_999_5e-11),
        (O::Cbrt, -27.0, 0.0, -3.0),
        (O::Hypot, 3e200, 4e200, 5e200),
        (O::Erf, 1.0, 0.0, 0.842_700_792_949_714_9),
        (O::Erfc, 3.0, 0.0, 2.209_049_699_858_544e-5),
        (O::Copysign, 2.0, -1.0, -2.0),
        (O::Trunc, -2.7, 0.0, -2.0),
    ] {
        let args = [Cell::float(F64, x), Cell::float(F64, y), Cell::default()];
        let got = on(op, F64, args).as_float();
        let same = got == want || got.is_nan() && want.is_nan();
        assert!(same || (got - want).abs() <= 4e-15 * want.abs(), "{op:?} {x} {y}: {got}");
    }
    let test = |op, cell| {
        apply(op, F32, ScalarType::Bool, false, &Slack::of(1), [cell; 3]).expect("it has a value")
    };
    let said = |cell: Cell| (cell.is_true(), cell.is_doubtful());
    assert_eq!(said(test(O::IsNan, Cell::float(F32, nan))), (true, false));
    assert_eq!(said(test(O::IsNan, Cell::float(F32, inf))), (false, false));
    assert_eq!(said(test(O::IsInf, Cell::float(F32, -inf))), (true, false));
    assert_eq!(said(test(O::IsInf, Cell::float(F32, 1.0))), (false, false));
    let key = |ty: ScalarType, cell| {
        let to = ty.unsigned();
        let got = apply(O::OrderKey, ty, to, false, &Slack::of(1), [cell; 3]).expect("a key");
        (got.as_wide(to), got.is_doubtful())
    };
    let of = |ty, x| key(ty, Cell::float(ty, x)).0;
    for ty in [F32, F64, F16] {
        let ordered = [-inf, -2.5, -1e-7, 0.0, 1e-7, 1.0, 1.5, inf, nan].map(|x| of(ty, x));
        assert!(ordered.is_sorted_by(|a, b| a < b), "{ty}: {ordered:?}");
        assert_eq!(of(ty, -0.0), of(ty, 0.0));
        assert_eq!(of(ty, -nan), (1 << ty.bits()) - 1);
    }
    assert_eq!(of(F32, 1.0), 0xbf80_0000);
    assert!(key(F32, Cell::inexact(1.0, 1.0)).1);
    // Rounding may decide whether a sum overflows, and what has no bound may be NaN.
    assert_eq!(said(test(O::IsInf, Cell::inexact(3.4028e38, 3.4e38))), (false, true));
    assert_eq!(said(test(O::IsNan, Cell::inexact(1.0, ANYTHING))), (false, true));
}

/// A device whose operations are off by a few units and that may flush numbers below the normal ones.
struct Sloppy<'a> {
    rng: &'a mut SmallRng,
    flush: bool,
}

impl Sloppy<'_> {
    fn op(&mut self, op: ScalarOp, args: [f64; 3]) -> f64 {
        use ScalarOp as O;
        let tiny = f64::from(f32::MIN_POSITIVE);
        let args = args.map(|x| if self.flush && x.abs() < tiny { 0.0 * x } else { x });
        let v = match op {
            O::Min => args[0].min(args[1]),
            O::Max => args[0].max(args[1]),
            _ => value(op, F32, args),
        };
        let ulps = match op {
            // Division by a power of two is exact on every device.
            O::Div if args[1].abs().log2().fract() == 0.0 => 0.0,
            O::Div | O::Sqrt | O::Rsqrt => 2.0,
            O::Exp | O::Log | O::Sin | O::Cos => 4.0,
            _ => 0.0,
        };
        let off = ulps * self.rng.random_range(-1.0..=1.0) * f64::from(f32::EPSILON) / 2.0;
        let v = round(F32, if v.is_finite() { v * (1.0 + off) } else { v });
        if self.flush && v.abs() < tiny { 0.0 * v } else { v }
    }
}

#[test]
fn what_devices_legally_compute_is_right() {
    use ScalarOp as O;
    let rng = &mut SmallRng::seed_from_u64(3);
    let binary = [O::Add, O::Sub, O::Mul, O::Div, O::Min, O::Max];
    let unary = [O::Exp, O::Log, O::Sin, O::Cos, O::Sqrt, O::Abs, O::Neg, O::Rsqrt, O::Floor];
    let mut certain = 0;
    for round_no in 0..30_000 {
        let flush = rng.random();
        let mut mine: Vec<Cell> = (0..4).map(|_| Cell::float(F32, number(rng, F32))).collect();
        let mut theirs: Vec<f64> = mine.iter().map(|c| c.as_float()).collect();
        let mut steps = vec![];
        for _ in 0..rng.random_range(1..7) {
            let (i, j) = (rng.random_range(0..mine.len()), rng.random_range(0..mine.len()));
            let op = if rng.random() {
                binary[rng.random_range(0..binary.len())]
            } else {
                unary[rng.random_range(0..unary.len())]
            };
            steps.push((op, i, j));
            mine.push(on(op, F32, [mine[i], mine[j], Cell::default()]));
            let args = [theirs[i], theirs[j], 0.0];
            theirs.push(Sloppy { rng: &mut *rng, flush }.op(op, args));
        }
        let (want, have) = (mine[mine.len() - 1], theirs[theirs.len() - 1]);
        let negative_root = |(op, i, _): &(ScalarOp, usize, usize)| {
            matches!(op, O::Sqrt) && theirs[*i].is_sign_negative() && mine[*i].as_float() >= 0.0
        };
        // The square root of a number that is negative because of rounding alone: such programs are skipped.
        if steps.iter().any(negative_root) {
            continue;
        }
        certain += usize::from(want.mag() < f64::MAX);
        let value = super::super::Value::scalar(F32, want);
        #[expect(clippy::cast_possible_truncation, reason = "it is a number of that type")]
        let bytes = [(have as f32).to_le_bytes()];
        let found = super::super::compare(&value, &bytes, 1);
        let inputs = &theirs[..4];
        assert!(found.ok, "{round_no}: {inputs:?} {steps:?}: {:?}, {want:?}", found.first);
    }
    assert!(certain > 20_000, "{certain}");
}

#[test]
fn overflow_is_no_excuse() {
    let e =
        |x: f64| on(ScalarOp::Exp, F32, [Cell::float(F32, x), Cell::default(), Cell::default()]);
    let one = Cell::float(F32, 1.0);
    for x in [-1000.0, -710.0, -100.0, -89.0, 0.0, 5.0, 100.0, 1000.0] {
        // SiLU: x / (1 + exp (-x)).
        let below = on(ScalarOp::Add, F32, [one, e(-x), Cell::default()]);
        let silu = on(ScalarOp::Div, F32, [Cell::float(F32, x), below, Cell::default()]);
        let slack = Slack::of(1).relative(F32) * silu.mag();
        assert!(slack <= x.abs().max(1.0) * 1e-4, "{x}: {silu:?}");
    }
    // What is beyond the range may be an infinity or NaN, but no finite number that is far from the range.
    let beyond = super::super::Value::scalar(F32, Cell::inexact(-4.9e40, 5e40));
    for (have, ok) in [(f32::NEG_INFINITY, true), (f32::NAN, true), (-5.0, false)] {
        assert_eq!(super::super::compare(&beyond, &[have.to_le_bytes()], 1).ok, ok, "{have}");
    }
    let inside = super::super::Value::scalar(F32, Cell::inexact(-4.9e37, 5e40));
    assert!(!super::super::compare(&inside, &[f32::NAN.to_le_bytes()], 1).ok);
    // A certain infinity is no finite number.
    let infinite = super::super::Value::scalar(F32, e(1000.0));
    assert!(super::super::compare(&infinite, &[f32::INFINITY.to_le_bytes()], 1).ok);
    assert!(!super::super::compare(&infinite, &[5f32.to_le_bytes()], 1).ok);
    assert!(!super::super::compare(&infinite, &[f32::NAN.to_le_bytes()], 1).ok);
}

#[test]
fn whole_numbers_are_exact_in_any_order() {
    let whole = |n: i32| Cell::float(F32, f64::from(n));
    let add = |a, b| on(ScalarOp::Add, F32, [a, b, Cell::default()]);
    let sum = (1..2000).map(whole).fold(whole(0), add);
    assert!(sum.is_exact() && sum.as_float() == 1_999_000.0);
    // Not exact if some order may round, although this one does not.
    let big = add(add(whole(1 << 24), whole(-(1 << 24))), whole(1));
    assert!(!big.is_exact() && big.as_float() == 1.0);
    let third = on(ScalarOp::Div, F32, [whole(1), whole(3), Cell::default()]);
    let half = on(ScalarOp::Div, F32, [whole(3), whole(2), Cell::default()]);
    assert!(!third.is_exact() && half.is_exact());
    assert!(on(ScalarOp::Mul, F32, [half, half, Cell::default()]).is_exact());
    assert!(!add(third, half).is_exact());
}

/// Rounding errors double with each square.
#[test]
fn squares_of_squares_may_be_off_as_far_as_they_are() {
    let r = Slack::of(1).relative(F32);
    let start = 1.0 + f64::from(f32::EPSILON) / 2.0;
    let (mut x, mut rounded) = (Cell::inexact(start, start), 1.0_f32);
    for squares in 1..=24 {
        x = on(ScalarOp::Mul, F32, [x, x, Cell::float(F32, 0.0)]);
        rounded *= rounded;
        let off = (x.as_float() - f64::from(rounded)).abs();
        assert!(off <= r * x.mag(), "after {squares} squares: {off} and {}", x.mag());
    }
    // One product of inputs has no more room than before.
    let input = Cell::float(F32, 1.5);
    assert_eq!(on(ScalarOp::Mul, F32, [input, input, input]).mag(), 2.25);
}
