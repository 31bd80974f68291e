//! Generates random well-typed programs of the whole language as source text, for `patsat fuzz`.
//!
//! The generator works from the wanted type down to its parts, so that programs type-check by construction. It
//! tracks the magnitudes of floats and keeps them in the range where sums and products of whole numbers are exact.
//! Operations that round are used only where nothing discontinuous (a comparison, a conversion to an integer)
//! depends on the result. A kernel whose result differs from the interpreter's is therefore wrong, not merely
//! rounded differently. If a value at run time decides whether a program has a result (an index, a divisor), the
//! text keeps the value in range.

mod arrays;
mod functions;
mod parts;
mod records;
mod scalars;
#[cfg(test)]
mod tests;

use super::size::Size;
use super::types::{ScalarType, Type};
use indexmap::IndexMap;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Lengths that include the difficult cases: zero, one, small numbers, powers of two and their neighbours, and
/// primes.
pub const LENGTHS: [u64; 14] = [0, 1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 31, 33];

/// A random program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The source file: definitions and one entry, whose comment says how its inputs are generated.
    pub text: String,
    /// Values of the entry's size parameters.
    pub sizes: IndexMap<String, u64>,
}

/// Returns the program for a seed, with sizes from `lengths` and element types from `scalars`.
pub fn random(seed: u64, lengths: &[u64], scalars: &[ScalarType]) -> Sample {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let count = rng.random_range(1..=3);
    let lengths = if lengths.is_empty() { &LENGTHS } else { lengths };
    let sizes: IndexMap<String, u64> = ["n", "m", "k"]
        .iter()
        .take(count)
        .map(|name| ((*name).to_owned(), lengths[rng.random_range(0..lengths.len())]))
        .collect();
    let mut g = Generator {
        // Most programs are small, because errors in small programs are easier to find.
        fuel: [4, 8, 14, 32].map(|most| rng.random_range(1..=most))[rng.random_range(0..4)],
        exact: rng.random_range(0..3) > 0,
        rng,
        sizes: IndexMap::new(),
        scalars: scalars.to_vec(),
        scope: vec![],
        functions: vec![],
        names: 0,
        work: 1,
    };
    let text = g.file(&sizes);
    Sample { text, sizes }
}

/// Magnitude up to which whole floats, their sums and their products are exact.
const LIMIT: f64 = 1_048_576.0;
/// Bound for the magnitude of accumulators and of arguments of functions.
const MODEST: f64 = 512.0;
/// Most elements in a value.
const ELEMENTS: u64 = 4_096;
/// Most evaluations of one expression.
const WORK: u64 = 40_000;

/// An expression, in a form that can be an operand.
#[derive(Clone, Debug)]
struct Made {
    text: String,
    /// Bound for the absolute value of every float in it.
    mag: f64,
    /// Whether its floats are computed without rounding.
    exact: bool,
}

impl Made {
    fn new(text: impl Into<String>, mag: f64, exact: bool) -> Made {
        Made { text: text.into(), mag, exact }
    }

    /// An expression without floats, or with small constants.
    fn plain(text: impl Into<String>) -> Made {
        Made::new(text, 4.0, true)
    }
}

/// A variable in scope.
#[derive(Clone, Debug)]
struct Var {
    value: Made,
    ty: Type,
    /// A length for which this variable is a valid index: it is known to be less, and not negative.
    below: Option<Size>,
}

/// A definition, or a local function.
#[derive(Clone, Debug)]
struct Function {
    name: String,
    params: Vec<Type>,
    result: Type,
    /// The size parameter, if it has one.
    size: Option<String>,
    mag: f64,
    exact: bool,
}

struct Generator {
    rng: ChaCha8Rng,
    /// Size parameters in scope, with their values; `None` for a value that differs between calls.
    sizes: IndexMap<String, Option<u64>>,
    scalars: Vec<ScalarType>,
    scope: Vec<Var>,
    functions: Vec<Function>,
    names: usize,
    /// Number of constructs that may still be generated. At 0, only variables and constants are.
    fuel: usize,
    /// Whether nothing may round.
    exact: bool,
    /// Number of times that the expression being generated is evaluated.
    work: u64,
}

/// `[n]t`.
fn array(n: &Size, t: &Type) -> Type {
    Type::Array(n.clone(), Box::new(t.clone()))
}

const I32: Type = Type::Scalar(ScalarType::I32);
const BOOL: Type = Type::Scalar(ScalarType::Bool);

/// Prints a size as an argument, or as a number of type `i32`.
fn number(n: &Size) -> String {
    let text = n.to_string();
    match text.chars().all(char::is_alphanumeric) {
        true => text,
        false => format!("({text})"),
    }
}

/// Returns the largest number of nested array types.
fn dimensions(t: &Type) -> usize {
    match t {
        Type::Scalar(_) | Type::Vector(..) => 0,
        Type::Tuple(ts) => ts.iter().map(dimensions).max().unwrap_or(0),
        Type::Array(_, t) => 1 + dimensions(t),
    }
}

/// Returns whether a type is a scalar, or a tuple of flat types.
fn is_flat(t: &Type) -> bool {
    match t {
        Type::Scalar(_) => true,
        Type::Tuple(ts) => ts.iter().all(is_flat),
        Type::Array(..) | Type::Vector(..) => false,
    }
}

impl Generator {
    fn below(&mut self, n: usize) -> usize {
        self.rng.random_range(0..n.max(1))
    }

    /// Returns `true` with probability `1 / n`.
    fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        let i = self.below(of.len());
        of.get(i).cloned()
    }

    /// Returns one of several spellings of the same.
    fn word(&mut self, words: &[&'static str]) -> &'static str {
        self.pick(words).unwrap_or_default()
    }

    fn name(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    /// Returns the value of a size that is the same in all calls.
    fn value(&self, n: &Size) -> Option<u64> {
        let look = |name: &str| {
            let value = self.sizes.get(name).copied().flatten()?;
            i64::try_from(value).ok()
        };
        n.eval(&look).ok().and_then(|v| u64::try_from(v).ok())
    }

    /// Like [`Generator::value`], but assumes that a size that differs between calls is large.
    fn length(&self, n: &Size) -> u64 {
        let look = |name: &str| match self.sizes.get(name) {
            Some(Some(value)) => i64::try_from(*value).ok(),
            _ => Some(33),
        };
        n.eval(&look).ok().and_then(|v| u64::try_from(v).ok()).unwrap_or(33)
    }

    fn elements(&self, t: &Type) -> u64 {
        match t {
            Type::Scalar(_) | Type::Vector(..) => 1,
            Type::Tuple(ts) => ts.iter().map(|t| self.elements(t)).sum(),
            Type::Array(n, t) => self.length(n).saturating_mul(self.elements(t)),
        }
    }

    /// Returns a length: a size parameter, a small number, or a simple combination of the two.
    fn dim(&mut self) -> Size {
        let names: Vec<String> = self.sizes.keys().cloned().collect();
        let named = self.pick(&names).map(|n| Size::var(&n));
        let small = Size::constant(self.rng.random_range(1..5));
        match (named, self.below(12)) {
            (Some(n), 0) => n.add(&small),
            (Some(n), 1) => n.mul(&small),
            (Some(n), 2..10) => n,
            _ => small,
        }
    }

    fn scalar_type(&mut self) -> ScalarType {
        let usual = [ScalarType::I32, ScalarType::F32];
        let any = self.scalars.clone();
        let ty = if self.once_in(4) { self.pick(&any) } else { self.pick(&usual) };
        ty.filter(|t| any.contains(t)).unwrap_or(ScalarType::I32)
    }

    fn flat_type(&mut self) -> Type {
        match self.below(6) {
            0 => {
                let count = if self.once_in(3) { 3 } else { 2 };
                Type::Tuple((0..count).map(|_| Type::Scalar(self.scalar_type())).collect())
            }
            _ => Type::Scalar(self.scalar_type()),
        }
    }

    /// Returns a type with at most `rank` dimensions.
    fn any_type(&mut self, rank: usize) -> Type {
        let known = self.pick(&self.scope.clone()).map(|v| v.ty);
        let ty = match (self.below(8), known) {
            // Prefer the types of variables in scope, so that the variables are used.
            (0..3, Some(ty)) if dimensions(&ty) <= rank => ty,
            (0..3, Some(Type::Array(_, ty))) if dimensions(&ty) <= rank => *ty,
            (3, _) => Type::Tuple(vec![
                self.any_type(rank.saturating_sub(1)),
                self.any_type(rank.saturating_sub(1)),
            ]),
            (4..7, _) if rank > 0 => {
                let n = self.dim();
                array(&n, &self.any_type(rank - 1))
            }
            _ => self.flat_type(),
        };
        if self.elements(&ty) > ELEMENTS { self.flat_type() } else { ty }
    }

    /// Runs `make` in a mode in which nothing may round and only exact variables are visible.
    fn exactly<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.exact, true);
        let out = make(self);
        self.exact = before;
        out
    }

    /// Runs `make` with more variables in scope, for an expression that is evaluated `times` times.
    fn under(&mut self, vars: Vec<Var>, times: u64, make: impl FnOnce(&mut Self) -> Made) -> Made {
        let (outer, work) = (self.scope.len(), self.work);
        self.scope.extend(vars);
        self.work = self.work.saturating_mul(times.max(1));
        let out = make(self);
        self.scope.truncate(outer);
        self.work = work;
        out
    }

    /// Returns a pattern that binds a value of this type, and the variables that it binds.
    fn pattern(&mut self, ty: &Type, mag: f64, exact: bool) -> (String, Vec<Var>) {
        match ty {
            Type::Tuple(ts) if self.below(3) > 0 => {
                let parts: Vec<_> = ts.iter().map(|t| self.pattern(t, mag, exact)).collect();
                let texts: Vec<String> = parts.iter().map(|(text, _)| text.clone()).collect();
                let vars = parts.into_iter().flat_map(|(_, vars)| vars).collect();
                (format!("({})", texts.join(", ")), vars)
            }
            _ => {
                let name = self.name("x");
                let value = Made::new(name.clone(), mag, exact);
                (name, vec![Var { value, ty: ty.clone(), below: None }])
            }
        }
    }

    /// Returns the variables of a type, including components of tuples.
    fn variables(&self, goal: &Type) -> Vec<Var> {
        fn within(v: &Var, goal: &Type, out: &mut Vec<Var>) {
            if v.ty == *goal {
                out.push(v.clone());
            } else if let Type::Tuple(ts) = &v.ty {
                for (i, t) in ts.iter().enumerate() {
                    let text = format!("{}.{i}", v.value.text);
                    let value = Made { text, ..v.value.clone() };
                    within(&Var { value, ty: t.clone(), below: None }, goal, out);
                }
            }
        }
        let mut out = vec![];
        self.scope
            .iter()
            .filter(|v| v.value.exact || !self.exact)
            .for_each(|v| within(v, goal, &mut out));
        out
    }

    fn variable(&mut self, goal: &Type) -> Option<Made> {
        let fitting = self.variables(goal);
        // Prefer the variable bound last. Otherwise, captured variables would be used too often.
        if self.once_in(2) {
            return fitting.last().map(|v| v.value.clone());
        }
        self.pick(&fitting).map(|v| v.value)
    }

    /// Generates a variable or a constant.
    fn simple(&mut self, goal: &Type) -> Made {
        if self.below(5) > 0
            && let Some(v) = self.variable(goal)
        {
            return v;
        }
        match goal {
            Type::Scalar(s) | Type::Vector(_, s) => self.literal(*s),
            Type::Tuple(ts) => {
                let parts: Vec<Made> = ts.iter().map(|t| self.simple(t)).collect();
                tuple(&parts)
            }
            Type::Array(n, t) => {
                let x = self.simple(t);
                Made { text: format!("(replicate {} {})", number(n), x.text), ..x }
            }
        }
    }

    /// Generates an expression of a type.
    fn make(&mut self, goal: &Type, depth: usize) -> Made {
        if depth == 0 || self.fuel == 0 || self.work.saturating_mul(self.elements(goal)) > WORK {
            return self.simple(goal);
        }
        self.fuel -= 1;
        let depth = depth - 1;
        match self.below(24) {
            0 | 1 => return self.make_let(goal, depth),
            2 => return self.make_if(goal, depth),
            3 => return self.make_loop(goal, depth),
            4 => return self.make_local_function(goal, depth),
            5 | 6 => {
                if let Some(call) = self.call(goal, depth) {
                    return call;
                }
            }
            7 => {
                if let Some(v) = self.variable(goal) {
                    return v;
                }
            }
            8 => {
                if let Some(element) = self.element(goal, depth) {
                    return element;
                }
            }
            _ => {}
        }
        match goal {
            Type::Scalar(s) => self.make_scalar(*s, depth),
            Type::Tuple(ts) => self.make_tuple(ts, goal, depth),
            Type::Array(n, t) => self.make_array(n, t, depth),
            Type::Vector(..) => self.simple(goal),
        }
    }

    fn make_tuple(&mut self, ts: &[Type], goal: &Type, depth: usize) -> Made {
        // Arrays of the same length may come from one array of tuples.
        if let Some(Type::Array(n, _)) = ts.first()
            && (2..=5).contains(&ts.len())
            && self.once_in(2)
        {
            let elements: Option<Vec<Type>> = ts
                .iter()
                .map(|t| match t {
                    Type::Array(m, t) if m == n => Some((**t).clone()),
                    _ => None,
                })
                .collect();
            if let Some(elements) = elements {
                let pairs = self.make(&array(n, &Type::Tuple(elements)), depth);
                let short = ts.len() == 2 && self.once_in(2);
                let word = if short { String::new() } else { ts.len().to_string() };
                return Made { text: format!("(unzip{word} {})", pairs.text), ..pairs };
            }
        }
        if is_flat(goal) && self.once_in(3) {
            return self.reduction(goal, depth);
        }
        let parts: Vec<Made> = ts.iter().map(|t| self.make(t, depth)).collect();
        self.tuple_or_record(&parts)
    }

    /// Limits the magnitude of the floats of a value.
    fn cap(&mut self, x: Made, ty: &Type, most: f64) -> Made {
        if x.mag <= most {
            return x;
        }
        Made { text: self.capped(&x.text, ty, most), mag: most, ..x }
    }

    fn capped(&mut self, text: &str, ty: &Type, most: f64) -> String {
        match ty {
            Type::Scalar(s) if s.is_float() => {
                let limit = literal_text(most, *s);
                format!("(clamp {text} (-{limit}) {limit})")
            }
            Type::Scalar(_) | Type::Vector(..) => text.to_owned(),
            Type::Tuple(ts) => {
                let names: Vec<String> = ts.iter().map(|_| self.name("c")).collect();
                let parts: Vec<String> =
                    names.iter().zip(ts).map(|(name, t)| self.capped(name, t, most)).collect();
                format!("(let ({}) = {text} in ({}))", names.join(", "), parts.join(", "))
            }
            Type::Array(_, t) => {
                let name = self.name("c");
                let inner = self.capped(&name, t, most);
                if inner == name {
                    text.to_owned()
                } else {
                    format!("(map (\\{name} -> {inner}) {text})")
                }
            }
        }
    }
}

fn tuple(parts: &[Made]) -> Made {
    let texts: Vec<&str> = parts.iter().map(|p| p.text.as_str()).collect();
    let mag = parts.iter().fold(0.0, |m: f64, p| m.max(p.mag));
    Made::new(format!("({})", texts.join(", ")), mag, parts.iter().all(|p| p.exact))
}

/// Prints a non-negative number of a type.
fn literal_text(x: f64, s: ScalarType) -> String {
    match s {
        ScalarType::I32 => format!("{x:.0}"),
        ScalarType::F32 => format!("{x:?}"),
        ScalarType::Bool => (x != 0.0).to_string(),
        s if s.is_float() => format!("{x:?}{s}"),
        s => format!("{x:.0}{s}"),
    }
}
