//! Generates slices, updates, array literals, and uses of the prelude.

use super::{BOOL, Generator, I32, LIMIT, MODEST, Made, array, number};
use crate::lang::size::Size;
use crate::lang::types::{ScalarType, Type};
use rand::RngExt;

/// Returns an array's text in a form that brackets can follow.
pub(super) fn atom(text: &str) -> String {
    match text.starts_with('(') || text.chars().all(char::is_alphanumeric) {
        true => text.to_owned(),
        false => format!("({text})"),
    }
}

impl Generator {
    /// Generates a slice of a longer array, or of an array of more dimensions.
    pub(super) fn sliced(&mut self, n: &Size, t: &Type, depth: usize) -> Option<Made> {
        let one = Size::constant(1);
        if self.once_in(4)
            && let Some(made) = self.moving(n, t, depth)
        {
            return Some(made);
        }
        let (of, part) = match self.below(7) {
            0 => {
                let k = self.rng.random_range(0..4);
                (array(&n.add(&Size::constant(k)), t), format!("{k}:"))
            }
            1 => (array(&n.add(&one), t), format!(":{}", number(n))),
            2 => (array(n, t), "::-1".to_owned()),
            3 => (array(&n.add(&one), t), format!("{}:0:-1", number(n))),
            4 => {
                let start = ["", "1"][self.below(2)];
                (array(&n.mul(&Size::constant(2)), t), format!("{start}::2"))
            }
            5 => {
                let m = self.dim();
                let j = self.index_below(&m, depth)?;
                (array(n, &array(&m, t)), format!(":, {j}"))
            }
            _ => {
                let Type::Array(m, t) = t else { return None };
                let of = array(&n.add(&one), &array(&m.add(&one), t));
                (of, format!("1:, :{}", number(m)))
            }
        };
        let xs = self.make(&of, depth);
        Some(Made { text: format!("({}[{part}])", atom(&xs.text)), ..xs })
    }

    /// Generates a slice of a few elements at a place that the program computes.
    fn moving(&mut self, n: &Size, t: &Type, depth: usize) -> Option<Made> {
        let count = n.as_constant().filter(|n| (1..=4).contains(n))?;
        let places: Vec<_> = self
            .scope
            .iter()
            .filter_map(|v| Some((v.value.text.clone(), v.below.clone()?)))
            .collect();
        let (i, places) = self.pick(&places)?;
        let xs = self.make(&array(&places.add(&Size::constant(count - 1)), t), depth);
        Some(Made { text: format!("({}[{i}:{i} + {count}])", atom(&xs.text)), ..xs })
    }

    /// Generates an array with some elements changed.
    pub(super) fn updated(&mut self, n: &Size, t: &Type, depth: usize) -> Option<Made> {
        let xs = self.make(&array(n, t), depth);
        self.changed(&xs, n, t, depth)
    }

    /// Changes some elements of an array of `n` elements.
    pub(super) fn changed(&mut self, xs: &Made, n: &Size, t: &Type, depth: usize) -> Option<Made> {
        let (place, new) = match (self.below(4), t) {
            (0, _) => {
                let length = self.value(n)?;
                let from = self.rng.random_range(0..=length);
                let count = self.rng.random_range(0..=length - from).min(4);
                let part = Size::constant(i64::try_from(count).ok()?);
                let new = self.make(&array(&part, t), depth);
                (format!("{from}:{}", from + count), new)
            }
            (1, Type::Array(_, t)) => {
                let index = |g: &mut Self| g.exactly(|g| g.make(&I32, depth.min(2))).text;
                (format!("{}, {}", index(self), index(self)), self.make(t, depth))
            }
            (2, Type::Array(_, t)) => {
                let index = self.exactly(|g| g.make(&I32, depth.min(2))).text;
                (format!(":, {index}"), self.make(&array(n, t), depth))
            }
            // Indices outside have no effect.
            _ => (self.exactly(|g| g.make(&I32, depth.min(2))).text, self.make(t, depth)),
        };
        let text = match self.below(4) {
            0 => {
                let name = self.name("v");
                let (xs, new) = (&xs.text, &new.text);
                format!("(let {name} = {xs} let {name}[{place}] = {new} in {name})")
            }
            1 => format!("({} with [{place}] = {})", xs.text, new.text),
            _ => format!("({} with [{place}] <- {})", xs.text, new.text),
        };
        Some(Made::new(text, xs.mag.max(new.mag), xs.exact && new.exact))
    }

    /// Generates an array of a few elements, written out.
    pub(super) fn written(&mut self, n: &Size, t: &Type, depth: usize) -> Option<Made> {
        let count = n.as_constant().filter(|n| (1..=4).contains(n))?;
        let parts: Vec<Made> = (0..count).map(|_| self.make(t, depth)).collect();
        let texts: Vec<&str> = parts.iter().map(|p| p.text.as_str()).collect();
        let mag = parts.iter().fold(0.0, |m: f64, p| m.max(p.mag));
        let text = format!("([{}])", texts.join(", "));
        Some(Made::new(text, mag, parts.iter().all(|p| p.exact)))
    }

    /// Generates a loop over the elements of an array.
    pub(super) fn loop_over(&mut self, goal: &Type, depth: usize) -> Made {
        let n = self.dim();
        let element = self.any_type(1);
        let xs = self.make(&array(&n, &element), depth);
        let (pattern, vars) = self.pattern(&element, xs.mag, xs.exact);
        let (init, acc, body) = self.step(goal, vars, self.length(&n), depth);
        let text =
            format!("(loop ({acc} = {}) for {pattern} in {} do {})", init.text, xs.text, body.text);
        Made { text, ..body }
    }

    /// Generates a scalar by a function of the prelude.
    pub(super) fn of_prelude(&mut self, s: ScalarType, depth: usize) -> Option<Made> {
        let n = self.dim();
        if s == ScalarType::I32 && self.once_in(6) {
            let element = self.any_type(1);
            let xs = self.make(&array(&n, &element), depth);
            return Some(Made::plain(format!("(length {})", xs.text)));
        }
        let length = self.value(&n).filter(|n| *n > 0)?;
        if s == ScalarType::Bool || (s == ScalarType::I32 && self.once_in(2)) {
            let element = self.flat_type();
            let xs = self.exactly(|g| g.make(&array(&n, &element), depth));
            let (pattern, vars) = self.pattern(&element, xs.mag, true);
            let p = self.exactly(|g| g.under(vars, length, |g| g.make(&BOOL, depth))).text;
            let word = match s {
                ScalarType::Bool => ["any", "all"][self.below(2)],
                _ => ["count", "find"][self.below(2)],
            };
            return Some(Made::plain(format!("({word} (\\{pattern} -> {p}) {})", xs.text)));
        }
        if s == ScalarType::I32 && self.once_in(2) {
            let of = self.scalars.iter().copied().filter(|t| *t != ScalarType::Bool);
            let of: Vec<ScalarType> = of.collect();
            let ty = array(&n, &Type::Scalar(self.pick(&of)?));
            let xs = self.exactly(|g| g.make(&ty, depth));
            let word = ["argmin", "argmax"][self.below(2)];
            return Some(Made::plain(format!("({word} {})", xs.text)));
        }
        let ty = array(&n, &Type::Scalar(s));
        let xs = self.make(&ty, depth);
        match self.below(4) {
            0 => Some(Made { text: format!("(maximum {})", xs.text), ..xs }),
            1 => Some(Made { text: format!("(minimum {})", xs.text), ..xs }),
            2 => {
                Some(Made { text: format!("({} {})", self.word(&["head", "last"]), xs.text), ..xs })
            }
            _ => {
                let xs = self.cap(xs, &ty, (LIMIT / length as f64).min(MODEST));
                let mag = (xs.mag * length as f64).max(4.0);
                Some(Made { text: format!("(sum {})", xs.text), mag, ..xs })
            }
        }
    }
}
