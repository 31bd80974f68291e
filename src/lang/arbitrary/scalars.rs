//! Generates expressions of scalar types.

use super::parts::atom;
use super::{BOOL, Generator, I32, LIMIT, MODEST, Made, array, literal_text, number};
use crate::lang::size::Size;
use crate::lang::types::{ScalarType, Type};
use rand::RngExt;

impl Generator {
    /// Generates a constant.
    pub(super) fn literal(&mut self, s: ScalarType) -> Made {
        if s == ScalarType::Bool {
            return Made::plain(if self.once_in(2) { "true" } else { "false" });
        }
        if !self.exact && s.is_float() && self.once_in(3) {
            return match self.below(4) {
                0 => Made::new(format!("{s}.{}", self.word(&["pi", "e"])), 4.0, false),
                _ => Made::new(literal_text(0.3, s), 1.0, false),
            };
        }
        if s.is_integer() && self.once_in(24) {
            let end = if self.once_in(2) { "highest" } else { "lowest" };
            return Made::plain(format!("{s}.{end}"));
        }
        if s == ScalarType::I32 && self.once_in(8) {
            let names: Vec<String> = self.sizes.keys().cloned().collect();
            if let Some(n) = self.pick(&names) {
                return Made::plain(n);
            }
        }
        let x = f64::from(self.rng.random_range(0..5));
        let text = literal_text(x, s);
        if s.is_signed() && self.once_in(3) {
            return Made::plain(format!("(-{text})"));
        }
        Made::plain(text)
    }

    pub(super) fn make_scalar(&mut self, s: ScalarType, depth: usize) -> Made {
        let ty = Type::Scalar(s);
        if self.once_in(12)
            && let Some(made) = self.of_prelude(s, depth)
        {
            return made;
        }
        if s == ScalarType::Bool {
            return self.make_bool(depth);
        }
        match self.below(16) {
            0..4 => self.reduction(&ty, depth),
            4 | 5 => self.cast(s, depth),
            6 | 7 => self.unary(s, depth),
            8 if s.is_integer() => {
                let (a, b) = (self.make(&ty, depth), self.make(&ty, depth));
                let sign = self.word(&["/", "%", "//", "%%"]);
                let one = literal_text(1.0, s);
                Made::plain(format!("({} {sign} (max {one} {}))", a.text, b.text))
            }
            9 if s.is_integer() && self.once_in(2) => self.bits(s, depth),
            8 if s.is_float() && self.once_in(3) => self.remainder(s, depth),
            8 | 9 | 11 | 12 if s.is_float() && !self.exact => self.rounding(s, depth),
            9 => {
                let x = self.make(&ty, depth);
                let (low, high) = match s.is_signed() {
                    true => (format!("(-{})", literal_text(3.0, s)), literal_text(4.0, s)),
                    false => (literal_text(1.0, s), literal_text(9.0, s)),
                };
                Made { text: format!("(clamp {} {low} {high})", x.text), mag: x.mag.min(4.0), ..x }
            }
            10 => {
                let c = self.exactly(|g| g.make(&BOOL, depth.min(2)));
                let (a, b) = (self.make(&ty, depth), self.make(&ty, depth));
                let text = format!("(select {} {} {})", c.text, a.text, b.text);
                Made::new(text, a.mag.max(b.mag), a.exact && b.exact)
            }
            _ => self.binary(s, depth),
        }
    }

    fn binary(&mut self, s: ScalarType, depth: usize) -> Made {
        let ty = Type::Scalar(s);
        let (mut a, mut b) = (self.make(&ty, depth), self.make(&ty, depth));
        let op = self.below(5);
        if s.is_float() && (a.mag + b.mag > LIMIT || (op == 2 && a.mag * b.mag > LIMIT)) {
            (a, b) = (self.cap(a, &ty, MODEST), self.cap(b, &ty, MODEST));
        }
        let (text, mag) = match op {
            0 => (format!("({} + {})", a.text, b.text), a.mag + b.mag),
            1 => (format!("({} - {})", a.text, b.text), a.mag + b.mag),
            2 => (format!("({} * {})", a.text, b.text), a.mag * b.mag),
            3 => (format!("(min {} {})", a.text, b.text), a.mag.max(b.mag)),
            _ => (format!("(max {} {})", a.text, b.text), a.mag.max(b.mag)),
        };
        Made::new(text, mag, a.exact && b.exact)
    }

    /// Generates the remainder of two floats. It is exact, and discontinuous.
    fn remainder(&mut self, s: ScalarType, depth: usize) -> Made {
        let ty = Type::Scalar(s);
        let (x, y) = self.exactly(|g| (g.make(&ty, depth), g.make(&ty, depth.min(2))));
        let y = format!("({} + abs {})", literal_text(1.0, s), y.text);
        let text = match self.once_in(2) {
            true => format!("(fmod {} {y})", x.text),
            false => format!("({} % {y})", x.text),
        };
        Made { text, ..x }
    }

    /// Generates an operation on bits.
    fn bits(&mut self, s: ScalarType, depth: usize) -> Made {
        let ty = Type::Scalar(s);
        let x = self.make(&ty, depth);
        let which = self.below(8);
        if which < 2 {
            let f = ["~", "complement "][which];
            return Made::plain(format!("({f}{})", x.text));
        }
        if which == 2 && s == ScalarType::U32 {
            let of = [ScalarType::F32, ScalarType::I32, ScalarType::U32][self.below(3)];
            let y = self.exactly(|g| g.make(&Type::Scalar(of), depth));
            return Made::plain(format!("(order_key {})", y.text));
        }
        let f = self.word(&["popcount", "popc", "clz", "ctz"]);
        let y = self.make(&ty, depth);
        let right = self.word(&[">>", ">>>"]);
        Made::plain(match which {
            2 if s == ScalarType::I32 => format!("({f} {})", x.text),
            2 | 3 => format!("({} {} {})", self.word(&["mulhi", "mul_hi"]), x.text, y.text),
            // Small numbers of places, and any.
            4 => {
                let sign = self.word(&["<<", right]);
                format!("({} {sign} {})", x.text, literal_text(self.below(10) as f64, s))
            }
            5 => format!("({} {right} {})", x.text, y.text),
            _ => format!("({} {} {})", x.text, ["&", "|", "^"][self.below(3)], y.text),
        })
    }

    fn unary(&mut self, s: ScalarType, depth: usize) -> Made {
        let ty = Type::Scalar(s);
        match self.below(5) {
            0 if s.is_signed() => {
                let x = self.make(&ty, depth);
                Made { text: format!("(-{})", x.text), ..x }
            }
            1 => {
                // The sign is discontinuous, so its operand must be exact.
                let x = self.exactly(|g| g.make(&ty, depth));
                Made::new(format!("({} {})", self.word(&["sign", "sgn"]), x.text), 1.0, true)
            }
            2 if s.is_float() => {
                let x = self.exactly(|g| g.make(&ty, depth));
                let f = ["floor", "ceil", "round", "trunc"][self.below(4)];
                Made { text: format!("({f} {})", x.text), ..x }
            }
            3 if s.is_integer() => {
                let x = self.make(&ty, depth);
                let power = self.below(4);
                Made::plain(format!("({} ** {})", x.text, literal_text(power as f64, s)))
            }
            _ => {
                let x = self.make(&ty, depth);
                Made { text: format!("(abs {})", x.text), ..x }
            }
        }
    }

    /// Generates an operation that rounds, with operands for which it is defined.
    fn rounding(&mut self, s: ScalarType, depth: usize) -> Made {
        let ty = Type::Scalar(s);
        let x = self.make(&ty, depth);
        let x = self.cap(x, &ty, MODEST);
        let one = literal_text(1.0, s);
        let (text, mag) = match self.below(16) {
            0 => (format!("(sqrt (abs {}))", x.text), x.mag),
            1 => (format!("(rsqrt ({one} + abs {}))", x.text), 1.0),
            2 => {
                let four = literal_text(4.0, s);
                (format!("(exp (clamp {} (-{four}) {four}))", x.text), 60.0)
            }
            3 => (format!("(log ({one} + abs {}))", x.text), 8.0),
            4 if self.once_in(2) => {
                let y = self.make(&ty, depth);
                (format!("(atan2 {} ({one} + abs {}))", x.text, y.text), 2.0)
            }
            4 => (format!("({} {})", self.word(&["sin", "cos"]), x.text), 1.0),
            5 => {
                let y = self.make(&ty, depth);
                let two = literal_text(2.0, s);
                let power = format!("(clamp {} (-{two}) {two})", y.text);
                let base = format!("({one} + abs {})", x.text);
                let text = match self.once_in(2) {
                    true => format!("({base} ** {power})"),
                    false => format!("(pow {base} {power})"),
                };
                (text, (x.mag + 1.0) * (x.mag + 1.0))
            }
            6 if self.once_in(2) => (format!("(tan (clamp {} (-{one}) {one}))", x.text), 2.0),
            6 => (format!("(atan {})", x.text), 2.0),
            7 => {
                let y = self.make(&ty, depth);
                (format!("({} / ({one} + abs {}))", x.text, y.text), x.mag)
            }
            8 => {
                let f = ["tanh", "erf", "erfc", "asinh", "cbrt"][self.below(5)];
                (format!("({f} {})", x.text), x.mag.max(2.0))
            }
            9 => {
                let f = self.word(&["sinh", "cosh", "exp2", "expm1", "exp10"]);
                let (most, mag) = if f == "exp10" { (2.0, 100.0) } else { (4.0, 60.0) };
                let most = literal_text(most, s);
                (format!("({f} (clamp {} (-{most}) {most}))", x.text), mag)
            }
            10 => {
                let f = ["log2", "log10", "log1p", "acosh"][self.below(4)];
                (format!("({f} ({one} + abs {}))", x.text), 12.0)
            }
            11 => {
                let f = ["asin", "acos", "atanh"][self.below(3)];
                let half = literal_text(0.5, s);
                (format!("({f} (clamp {} (-{half}) {half}))", x.text), 4.0)
            }
            12 => {
                let y = self.make(&ty, depth);
                let y = self.cap(y, &ty, MODEST);
                (format!("(hypot {} {})", x.text, y.text), x.mag + y.mag)
            }
            13 => {
                let sign = self.exactly(|g| g.make(&ty, depth.min(2)));
                (format!("(copysign {} {})", x.text, sign.text), x.mag)
            }
            _ => {
                let y = self.make(&ty, depth);
                let (y, z) = (self.cap(y, &ty, MODEST), self.literal(s));
                (format!("(fma {} {} {})", x.text, y.text, z.text), x.mag * y.mag + 4.0)
            }
        };
        Made::new(text, mag, false)
    }

    fn cast(&mut self, to: ScalarType, depth: usize) -> Made {
        let from = self.scalar_type();
        let ty = Type::Scalar(from);
        if from == to {
            return self.make(&ty, depth);
        }
        // The conversion of a float to an integer is discontinuous, and defined only in the integer's range; a
        // large integer has no exact float.
        let x = match from.is_float() && !to.is_float() {
            true => self.exactly(|g| g.make(&ty, depth)),
            false => self.make(&ty, depth),
        };
        if from.is_float() && to.is_integer() && self.once_in(4) {
            return self.cast_of_any(&x, from, to);
        }
        let limited = from.is_float() != to.is_float() && from != ScalarType::Bool;
        let text = match limited {
            true if from.is_signed() => {
                let low = match to.is_signed() {
                    true => format!("(-{})", literal_text(100.0, from)),
                    false => literal_text(0.0, from),
                };
                format!("({to}.{from} (clamp {} {low} {}))", x.text, literal_text(100.0, from))
            }
            true => format!("({to}.{from} (min {} {}))", x.text, literal_text(100.0, from)),
            false => format!("({to}.{from} {})", x.text),
        };
        let mag = if limited { 100.0 } else { x.mag.max(1.0) };
        Made::new(text, mag, x.exact)
    }

    /// Generates the conversion of a float that need not be in the range of the integer type.
    fn cast_of_any(&mut self, x: &Made, from: ScalarType, to: ScalarType) -> Made {
        let end = format!("{from}.{}", self.word(&["inf", "nan", "lowest"]));
        Made::plain(match self.below(4) {
            0 => {
                let c = self.exactly(|g| g.make(&BOOL, 1));
                format!("({to}.{from} (if {} then {} else {end}))", c.text, x.text)
            }
            // A power of two leaves a float exact.
            1 if from != ScalarType::F16 => {
                format!("({to}.{from} ({} * {}))", x.text, literal_text(16_777_216.0, from))
            }
            _ => format!("({to}.{from} {})", x.text),
        })
    }

    fn make_bool(&mut self, depth: usize) -> Made {
        match self.below(9) {
            0 => {
                let x = self.make(&BOOL, depth);
                Made::plain(format!("({}{})", self.word(&["!", "not "]), x.text))
            }
            8 => {
                let floats = self.scalars.iter().copied().filter(|s| s.is_float());
                let floats: Vec<ScalarType> = floats.collect();
                let Some(s) = self.pick(&floats) else { return self.literal(ScalarType::Bool) };
                let c = self.exactly(|g| g.make(&BOOL, depth.min(2)));
                let x = self.exactly(|g| g.make(&Type::Scalar(s), depth));
                let end = format!("{s}.{}", self.word(&["inf", "nan", "lowest"]));
                let f = self.word(&["isnan", "isinf"]);
                Made::plain(format!("({f} (if {} then {} else {end}))", c.text, x.text))
            }
            1 | 2 => {
                let (a, b) = (self.make(&BOOL, depth), self.make(&BOOL, depth));
                let sign = ["&&", "||", "&", "|", "^"][self.below(5)];
                Made::plain(format!("({} {sign} {})", a.text, b.text))
            }
            3 => self.reduction(&BOOL, depth),
            _ => {
                let s = self.scalar_type();
                let s = if s == ScalarType::Bool { ScalarType::I32 } else { s };
                let (a, b) = self.exactly(|g| {
                    (g.make(&Type::Scalar(s), depth), g.make(&Type::Scalar(s), depth))
                });
                let sign = ["==", "!=", "<", "<=", ">", ">="][self.below(6)];
                Made::plain(format!("({} {sign} {})", a.text, b.text))
            }
        }
    }

    /// Generates an `i32` that is a valid index for a length; `None` if the length may be 0.
    pub(super) fn index_below(&mut self, n: &Size, depth: usize) -> Option<String> {
        let known: Vec<String> = self
            .scope
            .iter()
            .filter(|v| v.below.as_ref() == Some(n))
            .map(|v| v.value.text.clone())
            .collect();
        if !known.is_empty() && self.below(3) > 0 {
            return self.pick(&known);
        }
        let length = self.value(n).filter(|v| *v > 0)?;
        if self.once_in(2) {
            return Some(self.rng.random_range(0..length).to_string());
        }
        let i = self.exactly(|g| g.make(&I32, depth.min(2))).text;
        let last = n.sub(&Size::constant(1));
        Some(match self.once_in(2) {
            true => format!("(clamp {i} 0 {})", number(&last)),
            false => format!("(max 0 {i} % {})", number(n)),
        })
    }

    /// Generates `xs[i]` or `xss[i][j]`.
    pub(super) fn element(&mut self, goal: &Type, depth: usize) -> Option<Made> {
        let n = self.dim();
        let of = array(&n, goal);
        let i = self.index_below(&n, depth)?;
        let xs = if self.once_in(2) { self.variable(&of) } else { None };
        let xs = match xs {
            Some(v) => v,
            None => self.make(&of, depth),
        };
        Some(Made { text: format!("{}[{i}]", atom(&xs.text)), mag: xs.mag, exact: xs.exact })
    }
}
