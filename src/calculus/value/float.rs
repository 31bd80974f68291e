//! The meaning of the scalar operations on floats, and bounds on what rounding may make of their results.
//!
//! Let `r` be the relative error that is allowed to a type ([`Slack`]). An inexact operand `a` may be
//! anything within `e = r m(a)` of its value, where `m(a)` is its magnitude. The magnitude of a result is
//! chosen so that `r m` bounds how far the result moves when the operands move that far. It is at least the
//! result's absolute value, to allow for the result's own rounding. So `m(a ± b) = m(a) + m(b)`, and
//! `m(f(x)) = |f(x)| + |f'(x)| m(x)` for a smooth `f`, as long as `e` is small enough for a bound by slopes.
//!
//! Where slopes do not suffice (near poles, for values that overflow, for values on which two branches
//! disagree), the operation is computed at the ends of the operands' intervals ([`Mode::at_the_ends`]). If
//! the results agree, the value is certain; if they differ by a finite amount, that amount is the error; if
//! only some are finite, the result may be anything. A result below the normal numbers gets the magnitude of
//! which the least normal number is one `eps`, because devices may flush it to zero.
//!
//! Values are rounded to their type after every operation, unless the caller asks for `unrounded` (inside
//! reductions). Magnitudes are rounded too, so that `m = |x|` survives rounding.

mod slope;

use super::cell::{ANYTHING, Cell, Format, Grain, INEXACT, ZERO, product, quotient};
use super::compare::Slack;
use super::number::{int_to, round};
use super::spread::Spread;
use crate::calculus::scalar::Lit;
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use slope::slope;
use std::f64::consts::{PI, TAU};

/// What the roundings of one operation take of the error that is allowed to a number. Squares of squares double the relative error
/// each time, so that the roundings of the first ones outgrow what is allowed to all operations together.
const ROUNDING: f64 = 1.0 / 32.0;

/// The parameters for computing with floats of one type.
#[derive(Clone, Copy)]
struct Mode {
    ty: ScalarType,
    format: &'static Format,
    /// Whether values are left unrounded.
    unrounded: bool,
    /// The allowed relative error.
    r: f64,
}

/// Applies `op` to floats of type `ty`.
#[inline]
pub(super) fn float(
    op: ScalarOp,
    ty: ScalarType,
    unrounded: bool,
    slack: &Slack,
    args: [Cell; 3],
) -> Cell {
    let mode = Mode { ty, format: Format::of(ty), unrounded, r: slack.relative(ty) };
    mode.apply(op, args)
}

impl Mode {
    /// Returns how far an operand may be off.
    fn error(&self, a: Cell) -> f64 {
        let m = a.mag();
        if a.grain() != INEXACT || (!a.as_float().is_finite() && m != ANYTHING) {
            0.0
        } else {
            self.r * m
        }
    }

    /// Makes a result; it keeps its grain if no order of evaluation rounds it.
    #[inline]
    fn finish(&self, x: f64, m: f64, grain: Grain) -> Cell {
        // A device may flush numbers below the normal ones, and relaxed functions are no better there; a
        // later factor can make this error larger. A result made of zeros alone (`m` is 0) is zero on every
        // device.
        let tiny = self.format.tiny;
        let m = if x.abs() < tiny && m > 0.0 { m.max(tiny / self.format.epsilon) } else { m };
        let grain = self.format.keep(m, grain);
        if self.unrounded || self.ty == ScalarType::F64 {
            return Cell::graded(x, m, grain);
        }
        let rounded = round(self.ty, m);
        // A magnitude beyond the type's range must not make every result acceptable.
        Cell::graded(round(self.ty, x), if rounded.is_finite() { rounded } else { m }, grain)
    }

    #[inline]
    fn apply(&self, op: ScalarOp, args: [Cell; 3]) -> Cell {
        use ScalarOp as O;
        let [a, b, c] = args;
        let (x, y, z) = (a.as_float(), b.as_float(), c.as_float());
        let (ma, mb) = (a.mag(), b.mag());
        let (m, grain) = match op {
            O::Add | O::Sub => (ma + mb, a.grain().min(b.grain())),
            O::Mul => (self.product(a, b), product(a.grain(), b.grain())),
            O::Fma => {
                let grain = product(a.grain(), b.grain()).min(c.grain());
                (self.product(a, b) + c.mag(), grain)
            }
            O::Div => {
                let (v, e) = ((x / y).abs(), self.error(b));
                // NaN if the divisor may be 0.
                let from = if 2.0 * e < y.abs() { y.abs() - e } else { f64::NAN };
                (
                    (ma + v * (mb - y.abs()).max(0.0)) / from,
                    if b.is_exact() { quotient(a.grain(), y) } else { INEXACT },
                )
            }
            O::Neg | O::Abs => (ma, a.grain()),
            O::Min | O::Max => return self.extreme(op, a, b),
            O::Clamp => return self.extreme(O::Min, self.extreme(O::Max, a, b), c),
            O::Eq | O::Ne | O::Lt | O::Le | O::Gt | O::Ge => return self.compare(op, a, b),
            O::Not => {
                let zero = Cell::graded(0.0, 0.0, ZERO);
                return self.compare(O::Eq, a, zero);
            }
            O::And | O::Or => return self.connect(op, a, b),
            O::Floor | O::Ceil | O::Round | O::Trunc | O::Sign => return self.jump(op, a),
            O::Copysign => return self.copysign(a, b),
            O::IsNan | O::IsInf => return self.classify(op, a),
            O::Rem => return self.remainder(a, b),
            // The caller handles these.
            O::Select | O::Cast(_) => return a,
            _ => (self.smooth(op, a, b), INEXACT),
        };
        let v = value(op, self.ty, [x, y, z]);
        // The value and the magnitude are finite, and not NaN.
        if v.abs() <= self.format.most && m <= self.format.most {
            return self.finish(v, m, grain);
        }
        self.careful(op, args, v, m)
    }

    /// Returns the magnitude of `a * b`, where `d` is the excess of a magnitude over the absolute value:
    /// `|xy| + |x| d(b) + |y| d(a) + r d(a) d(b)`, and [`ROUNDING`] of `|xy|` if an operand has been rounded.
    #[inline]
    fn product(&self, a: Cell, b: Cell) -> f64 {
        let (x, y) = (a.as_float().abs(), b.as_float().abs());
        let (da, db) = ((a.mag() - x).max(0.0), (b.mag() - y).max(0.0));
        let rounded = a.grain() == INEXACT || b.grain() == INEXACT;
        let own = if rounded { ROUNDING * x * y } else { 0.0 };
        x * y + own + x * db + y * da + self.r * da * db
    }

    /// Returns the magnitude of a smooth function; NaN where slopes do not suffice.
    fn smooth(&self, op: ScalarOp, a: Cell, b: Cell) -> f64 {
        use ScalarOp as O;
        let (x, y) = (a.as_float(), b.as_float());
        let (ma, mb) = (a.mag(), b.mag());
        let (ea, eb) = (self.error(a), self.error(b));
        let v = value(op, self.ty, [x, y, 0.0]);
        // The least absolute value that the argument may have.
        let near = x.abs() - ea;
        if ma == ANYTHING || mb == ANYTHING {
            return ANYTHING;
        }
        let unless = |bad: bool, m: f64| if bad { f64::NAN } else { m };
        match op {
            O::Sqrt => {
                // An operand that is negative because of rounding alone counts as 0: a sum of squares is not
                // negative.
                let low = (x - ea).max(0.0).sqrt();
                let error = if ma == 0.0 {
                    0.0
                } else if x >= ea {
                    ma / (v + low)
                } else {
                    v.max(ea / ((x + ea).sqrt() + v)) / self.r
                };
                unless(x < 0.0, v + error)
            }
            O::Rsqrt => unless(2.0 * ea > x || x <= 0.0, v * (1.0 + ma / near)),
            // The result is never 0, but it may be rounded to 0.
            O::Exp => unless(ea > 0.25, (v * (1.0 + 1.15 * ma)).max(f64::MIN_POSITIVE)),
            O::Log => unless(2.0 * ea > x || x <= 0.0, v.abs() + ma / near),
            O::Sin | O::Cos => {
                let slope = if op == O::Sin { x.cos() } else { x.sin() };
                v.abs() + (slope.abs() * ma + 0.5 * ea * ma).min(2.0 / self.r)
            }
            O::Tan => unless(ea * (1.0 + v.abs()) > 0.5, v.abs() + 2.0 * (1.0 + v * v) * ma),
            O::Atan => {
                let slope = if near > 0.0 { (1.0 + near * near).recip() } else { 1.0 };
                v.abs() + times(slope, ma).min(PI / self.r)
            }
            O::Atan2 => {
                let r2 = x * x + y * y;
                let cut = near <= 0.0 && y < eb && (x, y) != (0.0, 0.0);
                if 2.0 * (ea + eb) > r2.sqrt() || cut {
                    v.abs() + if x == 0.0 && y > eb { 0.0 } else { TAU / self.r }
                } else {
                    v.abs() + 4.0 * (times(y.abs() / r2, ma) + times(x.abs() / r2, mb))
                }
            }
            O::Pow => {
                let (base, exponent) = (times((y / x).abs(), ma), times(x.abs().ln().abs(), mb));
                let moves = times((y / near).abs(), ea) + exponent * self.r;
                unless(
                    moves > 0.25 || 2.0 * ea > x.abs() || x == 0.0 || (x < 0.0 && eb > 0.0),
                    v.abs() * (1.0 + 2.0 * base + 1.15 * exponent),
                )
            }
            // The slope is at most 1 in either direction.
            O::Hypot => v + ma + mb,
            _ => {
                let moves = if ea == 0.0 { 0.0 } else { slope(op, x, ea) * ma };
                let m = v.abs() + moves;
                // As for `exp`.
                let never_0 = matches!(op, O::Exp2 | O::Exp10 | O::Erfc) && x.is_finite();
                unless(!moves.is_finite(), if never_0 { m.max(f64::MIN_POSITIVE) } else { m })
            }
        }
    }

    /// A number with the sign of another. Devices need not agree on the signs of zeros and of NaN.
    fn copysign(&self, a: Cell, b: Cell) -> Cell {
        let (x, y) = (a.as_float(), b.as_float());
        let v = value(ScalarOp::Copysign, self.ty, [x, y, 0.0]);
        if y.abs() > self.error(b) {
            return self.finish(v, a.mag(), a.grain());
        }
        Cell::inexact(v, a.mag().max(spread(2.0 * (x.abs() + self.error(a)), self.r)))
    }

    /// Whether a number is NaN, or infinite.
    fn classify(&self, op: ScalarOp, a: Cell) -> Cell {
        let (x, m, most) = (a.as_float(), a.mag(), self.format.most);
        let doubtful = m == ANYTHING
            || op == ScalarOp::IsInf
                && if x.is_infinite() { m < 2.0 * most } else { x.abs() + self.error(a) > most };
        let truth = if op == ScalarOp::IsNan { x.is_nan() } else { x.is_infinite() };
        if doubtful { Cell::either(truth) } else { Cell::bool(truth) }
    }

    /// Returns the smaller or the larger operand.
    fn extreme(&self, op: ScalarOp, a: Cell, b: Cell) -> Cell {
        let (x, y) = (a.as_float(), b.as_float());
        let first = y.is_nan() || if op == ScalarOp::Min { x <= y } else { x >= y };
        let (chosen, other) = if first { (a, b) } else { (b, a) };
        if !x.is_finite() || !y.is_finite() {
            let unknown = a.mag() == ANYTHING || b.mag() == ANYTHING;
            return if unknown { Cell::inexact(chosen.as_float(), ANYTHING) } else { chosen };
        }
        let (far, near) = (self.error(other) - (x - y).abs(), self.error(chosen));
        if far <= 0.0 || (x == y && far <= near && other.is_exact() == chosen.is_exact()) {
            return chosen;
        }
        // The other operand may be chosen instead; it may be this far away.
        Cell::inexact(
            chosen.as_float(),
            chosen.mag().max(chosen.as_float().abs()).max(spread(far, self.r)),
        )
    }

    /// Whether rounding cannot change the result of comparing two numbers.
    fn apart(&self, a: Cell, b: Cell) -> bool {
        let (x, y) = (a.as_float(), b.as_float());
        let error = self.error(a) + self.error(b);
        error == 0.0 || (x - y).abs() > error
    }

    fn compare(&self, op: ScalarOp, a: Cell, b: Cell) -> Cell {
        use ScalarOp as O;
        let (x, y) = (a.as_float(), b.as_float());
        let truth = match op {
            O::Eq => x == y,
            O::Ne => x != y,
            O::Lt => x < y,
            O::Le => x <= y,
            O::Gt => x > y,
            _ => x >= y,
        };
        if self.apart(a, b) { Cell::bool(truth) } else { Cell::either(truth) }
    }

    fn connect(&self, op: ScalarOp, a: Cell, b: Cell) -> Cell {
        let zero = Cell::graded(0.0, 0.0, ZERO);
        let truths = [a, b].map(|c| self.compare(ScalarOp::Ne, c, zero));
        let [p, q] = truths.map(Cell::is_true);
        let truth = if op == ScalarOp::And { p && q } else { p || q };
        let doubtful = truths.iter().any(|t| t.is_doubtful());
        if doubtful { Cell::either(truth) } else { Cell::bool(truth) }
    }

    /// A function with whole results: its value is certain if the operand's interval lies between two jumps.
    fn jump(&self, op: ScalarOp, a: Cell) -> Cell {
        let (x, e) = (a.as_float(), self.error(a));
        let f = |x| value(op, self.ty, [x, 0.0, 0.0]);
        let v = f(x);
        if e == ANYTHING {
            return Cell::inexact(v, ANYTHING);
        }
        let grain = if v == 0.0 { ZERO } else { Cell::float(self.ty, v).grain() };
        if e == 0.0 {
            let m = if v.is_finite() { v.abs() } else { a.mag() };
            return Cell::graded(v, m, if a.is_exact() || x.is_finite() { grain } else { INEXACT });
        }
        let off = (f(x + e) - v).abs().max((v - f(x - e)).abs());
        if off == 0.0 {
            Cell::graded(v, v.abs(), grain)
        } else {
            Cell::inexact(v, v.abs().max(spread(off, self.r)))
        }
    }

    /// A remainder, which jumps where the quotient is a whole number.
    fn remainder(&self, a: Cell, b: Cell) -> Cell {
        let (x, y) = (a.as_float(), b.as_float());
        let (v, q) = (x % y, x / y);
        let (ea, eb) = (self.error(a), self.error(b));
        if !v.is_finite() || 2.0 * eb > y.abs() || a.mag() == ANYTHING {
            return self.careful(ScalarOp::Rem, [a, b, b], v, f64::NAN);
        }
        if ea == 0.0 && eb == 0.0 {
            // No device rounds a remainder of exact operands.
            return self.finish(v, v.abs(), a.grain().min(b.grain()));
        }
        let off = ea + times(q.trunc().abs() + 1.0, eb);
        let jumps = v.abs() < off || y.abs() - v.abs() < off;
        let m = if jumps {
            spread(y.abs() + v.abs() + off, self.r)
        } else {
            v.abs() + spread(off, self.r)
        };
        self.finish(v, m, INEXACT)
    }

    /// Bounds a result for which slopes do not suffice.
    #[cold]
    fn careful(&self, op: ScalarOp, args: [Cell; 3], v: f64, m: f64) -> Cell {
        let found = self.at_the_ends(op, args, v);
        // A sum in another order may overflow in between.
        let sums = matches!(op, ScalarOp::Add | ScalarOp::Sub | ScalarOp::Fma);
        let m =
            if sums && m > self.format.most && found < self.format.most { ANYTHING } else { found };
        self.finish(v, m, INEXACT)
    }

    /// Returns the magnitude of a result from its values at the ends of the operands' intervals.
    fn at_the_ends(&self, op: ScalarOp, args: [Cell; 3], v: f64) -> f64 {
        let used = op.arity();
        let mut all = vec![vec![]];
        for (k, a) in args.into_iter().enumerate() {
            let ends = if k < used { self.ends(op, a) } else { Some(vec![0.0]) };
            let Some(ends) = ends else { return ANYTHING };
            let with = |head: &Vec<f64>| -> Vec<Vec<f64>> {
                ends.iter().map(|x| [&head[..], &[*x]].concat()).collect()
            };
            all = all.iter().flat_map(with).collect();
        }
        let most = self.format.most;
        let limited = |x: f64| if x.abs() > most { x.signum() * f64::INFINITY } else { x };
        let (size, v) = (v.abs(), limited(v));
        // A value that is just beyond the range may be one of the largest numbers on a device.
        let near = most * (1.0 - 2.0 * self.r).max(0.5);
        let (mut off, mut hardly) = (0.0f64, false);
        for at in all {
            let w = limited(value(op, self.ty, [at[0], at[1], at[2]]));
            if v.is_nan() && w.is_nan() || v == w {
                continue;
            }
            if v.is_infinite() && w.signum() == v.signum() && w.abs() >= near {
                hardly = true;
                continue;
            }
            off = if v.is_finite() && w.is_finite() { off.max((w - v).abs()) } else { ANYTHING };
            if off == ANYTHING {
                return ANYTHING;
            }
        }
        if hardly {
            most
        } else if v.is_nan() {
            0.0
        } else {
            (size + spread(off, self.r)).min(f64::MAX)
        }
    }

    /// Returns the points at which an operation is computed: the operand's value, the ends of its interval,
    /// and 0 if it lies in between. `None` for an operand that may be anything.
    fn ends(&self, op: ScalarOp, a: Cell) -> Option<Vec<f64>> {
        let (x, m, most) = (a.as_float(), a.mag(), self.format.most);
        if m == ANYTHING {
            return None;
        }
        if x.is_nan() {
            return Some(vec![x]);
        }
        if x.is_infinite() {
            // An infinity that is just beyond the range may be one of the largest numbers on a device.
            let low = if m >= 2.0 * most { x } else { x.signum() * most * (1.0 - self.r) };
            return Some(vec![x, low]);
        }
        let e = self.error(a);
        let beyond = |y: f64| if y.abs() > most { y.signum() * f64::INFINITY } else { y };
        let (mut low, high) = (beyond(x - e), beyond(x + e));
        // As for `sqrt`: ignore operands that are negative because of rounding alone.
        if op == ScalarOp::Rsqrt && x >= 0.0 {
            low = low.max(0.0);
        }
        let mut out = vec![x, low, high];
        if low < 0.0 && high > 0.0 {
            out.push(0.0);
        }
        Some(out)
    }
}

/// Returns the value of an operation on floats of type `ty`, in `f64`. Operands that the operation does not have count as none.
#[inline]
pub fn value(op: ScalarOp, ty: ScalarType, [x, y, z]: [f64; 3]) -> f64 {
    use ScalarOp as O;
    match op {
        O::Add => x + y,
        O::Sub => x - y,
        O::Mul => x * y,
        O::Div => x / y,
        O::Rem => x % y,
        O::Pow => x.powf(y),
        O::Neg => -x,
        O::Abs => x.abs(),
        O::Sqrt => x.sqrt(),
        O::Rsqrt => x.sqrt().recip(),
        O::Exp => x.exp(),
        O::Log => x.ln(),
        O::Sin => x.sin(),
        O::Cos => x.cos(),
        O::Tan => x.tan(),
        O::Atan => x.atan(),
        O::Atan2 => x.atan2(y),
        O::Asin => x.asin(),
        O::Acos => x.acos(),
        O::Sinh => x.sinh(),
        O::Cosh => x.cosh(),
        O::Tanh => x.tanh(),
        O::Asinh => libm::asinh(x),
        // The library's function has values for some numbers far below 1.
        O::Acosh if x < 1.0 => f64::NAN,
        O::Acosh => libm::acosh(x),
        O::Atanh => libm::atanh(x),
        O::Exp2 => x.exp2(),
        O::Exp10 => libm::exp10(x),
        O::Expm1 => x.exp_m1(),
        O::Log2 => x.log2(),
        O::Log10 => x.log10(),
        O::Log1p => x.ln_1p(),
        O::Cbrt => x.cbrt(),
        O::Hypot => x.hypot(y),
        O::Erf => libm::erf(x),
        O::Erfc => libm::erfc(x),
        O::Copysign => x.copysign(y),
        O::Trunc => x.trunc(),
        O::Floor => x.floor(),
        O::Ceil => x.ceil(),
        O::Round => x.round(),
        O::Sign if x > 0.0 => 1.0,
        O::Sign if x < 0.0 => -1.0,
        O::Sign => 0.0,
        O::Fma if ty == ScalarType::F64 => x.mul_add(y, z),
        // The product of two smaller floats is exact in f64.
        O::Fma => x * y + z,
        _ => x,
    }
}

/// Returns a magnitude of which `r` times is at least `off`, even after packing.
fn spread(off: f64, r: f64) -> f64 {
    off / r * (1.0 + 1e-9)
}

/// Returns a product in which 0 times infinity is 0: without a term there is no error.
fn times(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
}

/// Returns the result of a choice that rounding decides: `nominal`, or perhaps `other`.
pub(super) fn join(ty: ScalarType, slack: &Slack, nominal: Cell, other: Cell) -> Cell {
    let mode = Mode { ty, format: Format::of(ty), unrounded: false, r: slack.relative(ty) };
    let (x, y) = (nominal.as_float(), other.as_float());
    let unknown = nominal.mag() == ANYTHING || other.mag() == ANYTHING;
    let same = x == y || x.is_nan() && y.is_nan();
    if !unknown && same && nominal.is_exact() && other.is_exact() {
        return nominal;
    }
    let m = if unknown {
        ANYTHING
    } else if x.is_finite() && y.is_finite() {
        let off = (x - y).abs() + mode.error(other);
        nominal.mag().max(x.abs()).max(spread(off, mode.r))
    } else if same {
        nominal.mag().min(other.mag())
    } else {
        ANYTHING
    };
    Cell::inexact(x, m)
}

/// Converts a float to another type. Conversion to an integer truncates towards zero and saturates; NaN
/// becomes 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturating truncation is what is asked for"
)]
pub(super) fn float_to(from: ScalarType, to: ScalarType, slack: &Slack, a: Cell) -> Cell {
    let x = a.as_float();
    let mode =
        Mode { ty: from, format: Format::of(from), unrounded: false, r: slack.relative(from) };
    if to.is_float() {
        let target =
            Mode { ty: to, format: Format::of(to), unrounded: false, r: slack.relative(to) };
        let scaled = if a.mag() < f64::MAX { a.mag() * (mode.r / target.r) } else { a.mag() };
        // The conversion of an exact number only rounds the number itself.
        let m = if a.is_exact() { x.abs() } else { scaled.max(x.abs()) };
        let m = if x.is_finite() { m } else { a.mag() };
        return target.finish(x, m, a.grain());
    }
    let convert = |x: f64| match to {
        ScalarType::Bool => i64::from(x != 0.0),
        ScalarType::I8 => i64::from(x as i8),
        ScalarType::I16 => i64::from(x as i16),
        ScalarType::I32 => i64::from(x as i32),
        ScalarType::I64 => x as i64,
        ScalarType::U8 => i64::from(x as u8),
        ScalarType::U16 => i64::from(x as u16),
        ScalarType::U32 => i64::from(x as u32),
        _ => (x as u64).cast_signed(),
    };
    let v = Cell::int(convert(x));
    let e = mode.error(a);
    if e == 0.0 {
        return v;
    }
    if e == ANYTHING {
        return v.or(Spread::ANY);
    }
    if to == ScalarType::Bool {
        return if x.abs() > e { v } else { Cell::either(v.is_true()) };
    }
    let wide = |x: f64| Cell::int(convert(x)).as_wide(to);
    let (low, high) = (wide(x - e), wide(x + e));
    v.or(Spread::range(v.as_wide(to), low, high))
}

/// Returns the key by which a number is sorted: its bits, which are all inverted if it is negative, and of which else the
/// sign is.
pub(super) fn float_key(from: ScalarType, slack: &Slack, a: Cell) -> Cell {
    let to = from.unsigned();
    let sign = 1 << (from.bits() - 1);
    let all = u64::MAX >> (64 - from.bits());
    let key = |x: f64| {
        let bits = Lit::float(from, x).bits;
        match (x.is_nan(), x == 0.0, x < 0.0) {
            (true, ..) => all,
            (_, true, _) => sign,
            (.., true) => bits ^ all,
            _ => bits ^ sign,
        }
    };
    let of = |x: f64| Cell { bits: key(x), ..Cell::default() };
    let x = a.as_float();
    let mode =
        Mode { ty: from, format: Format::of(from), unrounded: false, r: slack.relative(from) };
    let e = mode.error(a);
    if e == 0.0 {
        return of(x);
    }
    if e == ANYTHING || x.is_nan() {
        return of(x).or(Spread::ANY);
    }
    let [value, low, high] = [x, x - e, x + e].map(|x| of(x).as_wide(to));
    of(x).or(Spread::range(value, low, high))
}

/// Converts an integer or truth value of type `from`, perhaps one of several, to a float.
pub(super) fn float_of(from: ScalarType, to: ScalarType, slack: &Slack, a: Cell) -> Cell {
    let nominal = int_to(to, a.as_wide(from), a.as_int());
    if a.spread().is_none() {
        return nominal;
    }
    let Some((low, high)) = a.spread().ends(a.as_wide(from)) else {
        return Cell::inexact(nominal.as_float(), ANYTHING);
    };
    let end = |x: i128| Cell::from_int(to, x);
    join(to, slack, join(to, slack, nominal, end(low)), end(high))
}

#[cfg(test)]
mod tests;
