//! Generates constructs that bind names (definitions, local functions, `let`, loops, conditionals), and operators
//! of reductions.

use super::{
    BOOL, Function, Generator, I32, LIMIT, MODEST, Made, Sample, Var, array, is_flat, literal_text,
    number,
};
use crate::lang::size::Size;
use crate::lang::types::{ScalarType, Type};
use indexmap::IndexMap;
use rand::RngExt;

/// An associative operator with its neutral element.
struct Operator {
    text: String,
    neutral: String,
    /// Whether results grow with the number of elements.
    adds: bool,
    /// Bound for the magnitude of elements, for operators that multiply. NaN for operators that are discontinuous,
    /// whose elements must be exact.
    most: f64,
    commutes: bool,
}

impl Generator {
    pub(super) fn file(&mut self, sizes: &IndexMap<String, u64>) -> String {
        let mut out = String::new();
        for _ in 0..self.below(4).saturating_sub(1) {
            out.push_str(&self.definition());
        }
        for _ in 0..self.below(5).saturating_sub(2) {
            out.push_str(&self.constant());
        }
        self.sizes = sizes.iter().map(|(n, v)| (n.clone(), Some(*v))).collect();
        let (mut params, mut comment) = (String::new(), vec![]);
        for i in 0..self.rng.random_range(1..5) {
            let ty = self.input_type();
            let name = format!("a{i}");
            let (before, written) = self.named_type(&ty);
            out.push_str(&before);
            params.push_str(&format!(" ({name}: {written})"));
            let made = inputs_of(&ty, self.exact);
            for (k, how) in made.iter().enumerate() {
                let component = if made.len() > 1 { format!(".{k}") } else { String::new() };
                comment.push(format!("{name}{component}={how}"));
            }
            let mag = if self.exact { 4.0 } else { 8.0 };
            self.scope.push(Var { value: Made::new(name, mag, self.exact), ty, below: None });
        }
        let binders: String = sizes.keys().map(|n| format!(" [{n}]")).collect();
        let goal = match self.below(6) {
            0 => Type::Tuple(vec![self.any_type(2), self.any_type(1)]),
            1 => self.flat_type(),
            2 | 3 => self.any_type(2),
            _ => {
                let n = self.dim();
                array(&n, &self.any_type(2))
            }
        };
        let goal = if self.elements(&goal) > super::ELEMENTS { self.flat_type() } else { goal };
        let body = self.make(&goal, 6).text;
        let result = if self.once_in(3) { String::new() } else { format!(" : {goal}") };
        let comment = comment.join(" ");
        format!("{out}-- gen: {comment}\nentry random{binders}{params}{result} =\n  {body}\n")
    }

    /// Generates a definition without parameters.
    fn constant(&mut self) -> String {
        self.sizes.clear();
        let name = self.name("k");
        let element = Type::Scalar(self.scalar_type());
        let length = Size::constant(self.rng.random_range(1..4));
        let fuel = std::mem::replace(&mut self.fuel, 3);
        let (ty, value) = match self.once_in(3) {
            true => (array(&length, &element), self.written(&length, &element, 1)),
            false => (element.clone(), None),
        };
        self.fuel = fuel;
        let value = value.unwrap_or_else(|| self.simple(&ty));
        let word = self.word(&["def", "let"]);
        let text = format!("{word} {name} : {ty} = {}\n\n", value.text);
        let value = Made { text: name, ..value };
        self.scope.push(Var { value, ty, below: None });
        text
    }

    /// Returns a type in the text of a parameter: itself, or a name with its declaration.
    fn named_type(&mut self, ty: &Type) -> (String, String) {
        if !self.once_in(6) {
            return (String::new(), ty.to_string());
        }
        let name = self.name("t");
        match ty {
            Type::Array(n, element) if is_flat(element) => {
                (format!("type {name} [z] = [z]{element}\n\n"), format!("{name} [{n}]"))
            }
            ty if is_flat(ty) => (format!("type {name} = {ty}\n\n"), name),
            ty => (String::new(), ty.to_string()),
        }
    }

    fn input_type(&mut self) -> Type {
        let t = self.flat_type();
        let (n, m) = (self.dim(), self.dim());
        let ty = match self.below(6) {
            0 => t,
            1 | 2 => array(&n, &array(&m, &t)),
            _ => array(&n, &t),
        };
        if self.elements(&ty) > super::ELEMENTS { self.flat_type() } else { ty }
    }

    /// Generates `def f [a] (x: t) ... : u = ...`, with or without a size parameter.
    fn definition(&mut self) -> String {
        let name = self.name("f");
        let size = self.once_in(2).then(|| "a".to_owned());
        self.sizes = size.iter().map(|a| (a.clone(), None)).collect();
        let (mut params, mut types) = (String::new(), vec![]);
        for i in 0..self.rng.random_range(1..4) {
            let mut ty = self.flat_type();
            if let Some(a) = &size
                && (i == 0 || self.once_in(2))
            {
                ty = array(&Size::var(a), &ty);
            }
            let param = self.name("p");
            params.push_str(&format!(" ({param}: {ty})"));
            let value = Made::new(param, MODEST, true);
            self.scope.push(Var { value, ty: ty.clone(), below: None });
            types.push(ty);
        }
        let mut result = self.flat_type();
        if let Some(a) = &size
            && self.once_in(2)
        {
            result = array(&Size::var(a), &result);
        }
        let fuel = std::mem::replace(&mut self.fuel, 6);
        let body = self.make(&result, 3);
        self.fuel = fuel;
        self.scope.clear();
        let binder = size.as_ref().map(|a| format!(" [{a}]")).unwrap_or_default();
        let declared = if self.once_in(3) { String::new() } else { format!(" : {result}") };
        let text = format!("def {name}{binder}{params}{declared} =\n  {}\n\n", body.text);
        let (mag, exact) = (body.mag, body.exact);
        self.functions.push(Function { name, params: types, result, size, mag, exact });
        text
    }

    /// Returns a function with this result type, with a length in place of its size parameter.
    fn function(&mut self, goal: &Type) -> Option<Function> {
        let mut fitting = vec![];
        for f in &self.functions {
            if self.exact && !f.exact {
                continue;
            }
            let Some(a) = &f.size else {
                fitting.extend((f.result == *goal).then(|| f.clone()));
                continue;
            };
            let of = |n: &Size| Function {
                params: f.params.iter().map(|t| with(t, a, n)).collect(),
                result: with(&f.result, a, n),
                ..f.clone()
            };
            let lengths = self.sizes.keys().map(|n| Size::var(n));
            let lengths = lengths.chain([Size::constant(1), Size::constant(3)]);
            let instances = lengths.map(|n| of(&n)).filter(|f| f.result == *goal);
            fitting.extend(instances);
        }
        self.pick(&fitting)
    }

    /// Generates a call of a definition or local function.
    pub(super) fn call(&mut self, goal: &Type, depth: usize) -> Option<Made> {
        let f = self.function(goal)?;
        let mut text = format!("({}", f.name);
        for t in &f.params {
            let x = self.exactly(|g| g.make(t, depth));
            text.push(' ');
            text.push_str(&self.cap(x, t, MODEST).text);
        }
        Some(Made::new(text + ")", f.mag, f.exact))
    }

    /// Returns a function of one parameter with this result type.
    pub(super) fn named_function(&mut self, result: &Type) -> Option<Function> {
        self.function(result).filter(|f| f.params.len() == 1)
    }

    pub(super) fn make_let(&mut self, goal: &Type, depth: usize) -> Made {
        let ty = self.any_type(1);
        let value = self.make(&ty, depth);
        let (pattern, vars) = self.pattern(&ty, value.mag, value.exact);
        let body = self.under(vars, 1, |g| g.make(goal, depth));
        let (declared, cast) = match self.below(8) {
            0 | 1 => (format!(" : {ty}"), String::new()),
            2 => (String::new(), format!(" :> {ty}")),
            _ => (String::new(), String::new()),
        };
        let text = format!("(let {pattern}{declared} = {}{cast} in {})", value.text, body.text);
        Made { text, ..body }
    }

    pub(super) fn make_if(&mut self, goal: &Type, depth: usize) -> Made {
        let c = self.exactly(|g| g.make(&BOOL, depth.min(2)));
        let (a, b) = (self.make(goal, depth), self.make(goal, depth));
        let text = format!("(if {} then {} else {})", c.text, a.text, b.text);
        Made::new(text, a.mag.max(b.mag), a.exact && b.exact)
    }

    pub(super) fn make_local_function(&mut self, goal: &Type, depth: usize) -> Made {
        let name = self.name("g");
        let params: Vec<Type> =
            (0..self.rng.random_range(1..3)).map(|_| self.flat_type()).collect();
        let result = if self.once_in(2) { goal.clone() } else { self.flat_type() };
        let (mut patterns, mut vars) = (vec![], vec![]);
        for t in &params {
            let (pattern, bound) = self.pattern(t, MODEST, true);
            patterns.push(pattern);
            vars.extend(bound);
        }
        let value = self.under(vars, 8, |g| g.make(&result, depth));
        let f = Function {
            name: name.clone(),
            params,
            result,
            size: None,
            mag: value.mag,
            exact: value.exact,
        };
        self.functions.push(f);
        let body = self.make(goal, depth);
        self.functions.pop();
        let patterns = patterns.join(" ");
        Made { text: format!("(let {name} {patterns} = {} in {})", value.text, body.text), ..body }
    }

    /// Generates the first value of an accumulator, and a step that keeps it within bounds.
    pub(super) fn step(
        &mut self,
        goal: &Type,
        more: Vec<Var>,
        times: u64,
        depth: usize,
    ) -> (Made, String, Made) {
        let exact = self.exact || self.once_in(2);
        let kept = std::mem::replace(&mut self.exact, exact);
        let init = self.make(goal, depth);
        let init = self.cap(init, goal, MODEST);
        let (pattern, mut vars) = self.pattern(goal, MODEST, exact);
        vars.extend(more);
        let body = self.under(vars, times, |g| g.next_state(goal, depth));
        let body = self.cap(body, goal, MODEST);
        self.exact = kept;
        (init, pattern, Made { exact, mag: MODEST, ..body })
    }

    /// Generates the next value of an accumulator: often with some elements of its arrays changed, perhaps under a condition.
    fn next_state(&mut self, goal: &Type, depth: usize) -> Made {
        match goal {
            Type::Tuple(ts) if self.once_in(2) => {
                let parts: Vec<Made> = ts.iter().map(|t| self.next_state(t, depth)).collect();
                let texts: Vec<&str> = parts.iter().map(|p| p.text.as_str()).collect();
                let mag = parts.iter().fold(0.0, |m: f64, p| m.max(p.mag));
                Made::new(format!("({})", texts.join(", ")), mag, parts.iter().all(|p| p.exact))
            }
            Type::Array(n, t) if self.once_in(2) => match self.variable(goal) {
                Some(old) => {
                    let changed = self.changed(&old, n, t, depth);
                    let changed = changed.unwrap_or_else(|| old.clone());
                    if self.once_in(3) {
                        let c = self.exactly(|g| g.make(&BOOL, depth.min(2)));
                        let text =
                            format!("(if {} then {} else {})", c.text, changed.text, old.text);
                        return Made { text, ..changed };
                    }
                    changed
                }
                None => self.make(goal, depth),
            },
            _ => self.make(goal, depth),
        }
    }

    pub(super) fn make_loop(&mut self, goal: &Type, depth: usize) -> Made {
        let counter = self.name("i");
        let plain = Var { value: Made::plain(counter.clone()), ty: I32, below: None };
        if self.once_in(4) {
            return self.loop_over(goal, depth);
        }
        if self.once_in(3) {
            let (init, pattern, body) = self.step(goal, vec![plain], 4, depth);
            let most = self.below(5);
            let text = format!(
                "(loop (({pattern}, {counter}) = ({}, 0)) while {counter} < {most} do ({}, {counter} + 1)).0",
                init.text, body.text
            );
            return Made { text: format!("({text})"), ..body };
        }
        let (bound, below) = match self.once_in(2) {
            true => (self.below(4).to_string(), None),
            false => {
                let n = self.dim();
                (number(&n), Some(n))
            }
        };
        let (init, pattern, body) = self.step(goal, vec![Var { below, ..plain }], 8, depth);
        let text =
            format!("(loop ({pattern} = {}) for {counter} < {bound} do {})", init.text, body.text);
        Made { text, ..body }
    }

    /// Generates a reduction to scalars.
    pub(super) fn reduction(&mut self, goal: &Type, depth: usize) -> Made {
        let n = self.dim();
        if self.once_in(4) {
            // A fold from the left, whose operator need not be associative.
            let element = self.any_type(1);
            let xs = self.make(&array(&n, &element), depth);
            let (pattern, vars) = self.pattern(&element, xs.mag, xs.exact);
            let (init, acc, body) = self.step(goal, vars, self.length(&n), depth);
            let word = self.word(&["reduceSeq", "foldl"]);
            let (init, xs) = (init.text, xs.text);
            let text = match self.once_in(5) {
                true => format!("(foldr (\\{pattern} {acc} -> {}) {init} {xs})", body.text),
                false => format!("({word} (\\{acc} {pattern} -> {}) {init} {xs})", body.text),
            };
            return Made { text, ..body };
        }
        let op = self.operator(goal);
        let xs = self.elements_for(&op, &n, goal, depth);
        let mag = if op.adds { xs.mag * self.length(&n).max(1) as f64 } else { xs.mag };
        let ordered = if op.commutes && self.once_in(8) { "reorder " } else { "" };
        let arg = if ordered.is_empty() { xs.text } else { format!("({ordered}{})", xs.text) };
        let word = if op.commutes && self.once_in(5) { "reduce_comm" } else { "reduce" };
        let text = match self.below(4) {
            0 => format!("({arg} |> {word} {} {})", op.text, op.neutral),
            _ => format!("({word} {} {} {arg})", op.text, op.neutral),
        };
        Made::new(text, mag.max(4.0), xs.exact)
    }

    fn elements_for(&mut self, op: &Operator, n: &Size, t: &Type, depth: usize) -> Made {
        let ty = array(n, t);
        let xs = match op.most {
            // A discontinuous operator needs exact elements.
            most if most.is_nan() => self.exactly(|g| g.make(&ty, depth)),
            _ => self.make(&ty, depth),
        };
        let most = LIMIT / self.length(n).max(1) as f64;
        let most = if op.most.is_nan() { most } else { most.min(op.most) };
        match xs.mag > most {
            true if op.most < MODEST => self.cap(xs, &ty, op.most),
            true => self.cap(xs, &ty, 8.0),
            false => xs,
        }
    }

    /// Generates a `scan`, an array of prefix reductions.
    pub(super) fn scan(&mut self, n: &Size, t: &Type, depth: usize) -> Made {
        let op = self.operator(t);
        let xs = self.elements_for(&op, n, t, depth);
        let mag = if op.adds { xs.mag * self.length(n).max(1) as f64 } else { xs.mag };
        let word = self.word(&["scan", "scan", "scan_exclusive", "exscan", "scanSeq"]);
        let text = format!("({word} {} {} {})", op.text, op.neutral, xs.text);
        Made::new(text, mag.max(4.0), xs.exact)
    }

    /// Generates a `reducePart` or a histogram: an array of reductions.
    pub(super) fn reductions(&mut self, n: &Size, t: &Type, depth: usize) -> Made {
        let op = self.operator(t);
        if self.once_in(2) {
            let k = Size::constant(self.rng.random_range(1..4));
            let xs = self.elements_for(&op, &n.mul(&k), t, depth);
            let mag = if op.adds { xs.mag * 4.0 } else { xs.mag };
            let text = format!("(reducePart {} {} {} {})", op.text, op.neutral, number(n), xs.text);
            return Made::new(text, mag.max(4.0), xs.exact);
        }
        let m = self.dim();
        let xs = self.elements_for(&op, &m, t, depth);
        let is = self.indices(&m, n, depth);
        let mag = if op.adds { xs.mag * self.length(&m).max(1) as f64 } else { xs.mag };
        let word = self.word(&["histogram", "hist"]);
        let text = format!("({word} {} {} {} {is} {})", op.text, op.neutral, number(n), xs.text);
        Made::new(text, mag.max(4.0), xs.exact && op.commutes)
    }

    /// Returns an associative operator of a flat type.
    fn operator(&mut self, t: &Type) -> Operator {
        let any = f64::INFINITY;
        match t {
            Type::Scalar(ScalarType::Bool) => {
                let (sign, neutral) =
                    if self.once_in(2) { ("(&&)", "true") } else { ("(||)", "false") };
                let (text, neutral) = (sign.to_owned(), neutral.to_owned());
                Operator { text, neutral, adds: false, most: any, commutes: true }
            }
            Type::Tuple(ts) => {
                if let [Type::Scalar(a), Type::Scalar(b)] = ts.as_slice() {
                    if a == b && a.is_integer() && self.once_in(3) {
                        // Composition of linear functions, which does not commute.
                        let (one, zero) = (literal_text(1.0, *a), literal_text(0.0, *a));
                        return Operator {
                            text: r"(\(a, b) (c, d) -> (a * c, b * c + d))".to_owned(),
                            neutral: format!("({one}, {zero})"),
                            adds: false,
                            most: any,
                            commutes: false,
                        };
                    }
                    let number = *a != ScalarType::Bool && b.is_integer();
                    if number && self.once_in(2) {
                        // The greatest value, and its first position.
                        return Operator {
                            text: r"(\(a, i) (b, j) -> if a > b || (a == b && i <= j) then (a, i) else (b, j))"
                                .to_owned(),
                            neutral: format!("({a}.lowest, {b}.highest)"),
                            adds: false,
                            most: f64::NAN,
                            commutes: true,
                        };
                    }
                }
                let parts: Vec<Operator> = ts.iter().map(|t| self.operator(t)).collect();
                let names = |stem: &str| -> Vec<String> {
                    (0..ts.len()).map(|i| format!("{stem}{i}")).collect()
                };
                let (left, right) = (names("l"), names("r"));
                let applied: Vec<String> = parts
                    .iter()
                    .zip(left.iter().zip(&right))
                    .map(|(op, (l, r))| format!("{} {l} {r}", op.text))
                    .collect();
                let neutral: Vec<&str> = parts.iter().map(|p| p.neutral.as_str()).collect();
                Operator {
                    text: format!(
                        "(\\({}) ({}) -> ({}))",
                        left.join(", "),
                        right.join(", "),
                        applied.join(", ")
                    ),
                    neutral: format!("({})", neutral.join(", ")),
                    adds: parts.iter().any(|p| p.adds),
                    most: parts
                        .iter()
                        .fold(any, |m, p| if p.most.is_nan() { p.most } else { m.min(p.most) }),
                    commutes: parts.iter().all(|p| p.commutes),
                }
            }
            Type::Scalar(s) => {
                let choice = self.below(6);
                let (text, neutral, most) = match choice {
                    0 => ("max".to_owned(), format!("{s}.lowest"), any),
                    1 => ("min".to_owned(), format!("{s}.highest"), any),
                    2 => (
                        "(*)".to_owned(),
                        literal_text(1.0, *s),
                        if s.is_float() { 1.0 } else { any },
                    ),
                    3 => (r"(\l r -> l + r)".to_owned(), literal_text(0.0, *s), any),
                    _ => ("(+)".to_owned(), literal_text(0.0, *s), any),
                };
                Operator { text, neutral, adds: choice > 2, most, commutes: true }
            }
            // An operator that works element by element.
            Type::Array(n, t) => {
                let op = self.operator(t);
                Operator {
                    text: format!("(map2 {})", op.text),
                    neutral: format!("(replicate {} {})", number(n), op.neutral),
                    ..op
                }
            }
            Type::Vector(..) => {
                let text = "(+)".to_owned();
                Operator { text, neutral: "0".to_owned(), adds: true, most: any, commutes: true }
            }
        }
    }

    /// Generates a reduction of rows to a row.
    pub(super) fn rows_reduced(&mut self, n: &Size, t: &Type, depth: usize) -> Option<Made> {
        if !is_flat(t) {
            return None;
        }
        let m = self.dim();
        let ty = array(n, t);
        if self.elements(&array(&m, &ty)) > super::ELEMENTS {
            return None;
        }
        let op = self.operator(&ty);
        let xss = self.elements_for(&op, &m, &ty, depth);
        let mag = if op.adds { xss.mag * self.length(&m).max(1) as f64 } else { xss.mag };
        let text = format!("(reduce {} {} {})", op.text, op.neutral, xss.text);
        Some(Made::new(text, mag.max(4.0), xss.exact))
    }
}

/// Returns a type with a length substituted for a size name.
fn with(t: &Type, name: &str, n: &Size) -> Type {
    match t {
        Type::Array(m, t) => {
            let m = m.substitute(&|s| (s == name).then(|| n.clone()));
            array(&m, &with(t, name, n))
        }
        Type::Tuple(ts) => Type::Tuple(ts.iter().map(|t| with(t, name, n)).collect()),
        Type::Scalar(_) | Type::Vector(..) => t.clone(),
    }
}

/// Returns how each component of an input is generated.
fn inputs_of(ty: &Type, exact: bool) -> Vec<&'static str> {
    match ty {
        Type::Scalar(ScalarType::Bool) => vec!["uniform"],
        Type::Scalar(s) | Type::Vector(_, s) if s.is_float() && !exact => vec!["uniform:-8..8"],
        Type::Scalar(s) | Type::Vector(_, s) if s.is_signed() => vec!["whole:-4..5"],
        Type::Scalar(_) | Type::Vector(..) => vec!["whole:0..9"],
        Type::Tuple(ts) => ts.iter().flat_map(|t| inputs_of(t, exact)).collect(),
        Type::Array(_, t) => inputs_of(t, exact),
    }
}

impl Sample {
    /// Returns the sizes as command line arguments.
    pub fn size_arguments(&self) -> Vec<String> {
        self.sizes.iter().map(|(n, v)| format!("--size {n}={v}")).collect()
    }
}
