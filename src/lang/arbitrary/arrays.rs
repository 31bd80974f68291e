//! Generates expressions of array types.

use super::{Generator, LIMIT, MODEST, Made, Var, array, is_flat, number};
use crate::lang::size::Size;
use crate::lang::types::{ScalarType, Type};
use rand::RngExt;

impl Generator {
    pub(super) fn make_array(&mut self, n: &Size, t: &Type, depth: usize) -> Made {
        let goal = array(n, t);
        for _ in 0..3 {
            let choice = self.below(31);
            let made = match choice {
                0..5 => None,
                5 | 6 => self.zipped(n, t, depth),
                7 => Some(self.generated(n, t, depth)),
                8 => self.transposed(n, t, depth),
                9 => self.chunked(n, t, depth),
                10 => Some(self.cut(n, t, depth)),
                11 => self.concatenated(n, t, depth),
                12 | 13 => Some(self.moved(&goal, depth)),
                14 | 15 if is_flat(t) => Some(self.scan(n, t, depth)),
                16 if is_flat(t) => Some(self.reductions(n, t, depth)),
                17 => self.gathered(n, t, depth),
                18 => Some(self.scattered(n, t, depth)),
                19 | 20 => Some(self.windows(n, t, depth)),
                21 => Some(self.padded(n, t, depth)),
                22 => Some(self.iterated(n, t, depth)),
                23 => self.rows_reduced(n, t, depth),
                24 => Some(self.unzipped(n, t, depth)),
                25 | 26 => self.sliced(n, t, depth),
                27 => self.updated(n, t, depth),
                28 => self.written(n, t, depth),
                29 => self.map_of_rows(n, t, depth),
                _ => self.counted(n, t),
            };
            match made {
                Some(made) => return made,
                None if choice < 5 => break,
                None => {}
            }
        }
        self.map(n, t, depth)
    }

    /// Generates a map over one to five arrays.
    fn map(&mut self, n: &Size, t: &Type, depth: usize) -> Made {
        if let Some(f) = self.named_function(t)
            && let [of] = f.params.as_slice()
            && self.once_in(2)
        {
            let xs = self.exactly(|g| g.make(&array(n, of), depth));
            let xs = self.cap(xs, &array(n, of), MODEST);
            return Made::new(format!("(map {} {})", f.name, xs.text), f.mag, f.exact);
        }
        let count = match self.below(10) {
            0..5 => 1,
            5..8 => 2,
            8 => 3,
            _ => self.rng.random_range(4..6),
        };
        let (mut arrays, mut patterns, mut vars) = (vec![], vec![], vec![]);
        for _ in 0..count {
            let (xs, of) = self.source(n, depth);
            let (pattern, bound) = self.pattern(&of, xs.mag, xs.exact);
            arrays.push(xs.text);
            patterns.push(pattern);
            vars.extend(bound);
        }
        let times = self.length(n);
        let body = self.under(vars, times, |g| g.make(t, depth));
        let result = if self.once_in(6) { format!(" : {t}") } else { String::new() };
        let f = format!("(\\{}{result} -> {})", patterns.join(" "), body.text);
        let text = match (count, self.below(3)) {
            (1, 0) => format!("({} |> map {f})", arrays.join(" ")),
            (1, 1) if self.once_in(4) => format!("(map {f} <| {})", arrays.join(" ")),
            (1, _) => {
                let word = if self.once_in(10) { "mapSeq" } else { self.word(&["map", "map1"]) };
                format!("({word} {f} {})", arrays.join(" "))
            }
            _ => format!("(map{count} {f} {})", arrays.join(" ")),
        };
        Made { text, ..body }
    }

    /// Generates an array of this length to map over, preferably a variable in scope.
    fn source(&mut self, n: &Size, depth: usize) -> (Made, Type) {
        let known: Vec<Var> = self
            .scope
            .iter()
            .filter(|v| matches!(&v.ty, Type::Array(m, _) if m == n))
            .filter(|v| v.value.exact || !self.exact)
            .cloned()
            .collect();
        if self.below(4) > 0
            && let Some(Var { value, ty: Type::Array(_, t), .. }) = self.pick(&known)
        {
            return (value, *t);
        }
        let of = self.any_type(1);
        (self.make(&array(n, &of), depth), of)
    }

    fn zipped(&mut self, n: &Size, t: &Type, depth: usize) -> Option<Made> {
        let Type::Tuple(ts) = t else { return None };
        let arrays: Vec<Made> = ts.iter().map(|t| self.make(&array(n, t), depth)).collect();
        let word = match ts.len() {
            2 => self.word(&["zip", "zip2"]).to_owned(),
            n @ 3..=5 => format!("zip{n}"),
            _ => return None,
        };
        let texts: Vec<&str> = arrays.iter().map(|a| a.text.as_str()).collect();
        let mag = arrays.iter().fold(0.0, |m: f64, a| m.max(a.mag));
        let text = format!("({word} {})", texts.join(" "));
        Some(Made::new(text, mag, arrays.iter().all(|a| a.exact)))
    }

    fn unzipped(&mut self, n: &Size, t: &Type, depth: usize) -> Made {
        let other = self.flat_type();
        let pairs = self.make(&array(n, &Type::Tuple(vec![t.clone(), other])), depth);
        Made { text: format!("((unzip {}).0)", pairs.text), ..pairs }
    }

    fn generated(&mut self, n: &Size, t: &Type, depth: usize) -> Made {
        let i = self.name("i");
        let value = Made::plain(i.clone());
        let var = Var { value, ty: super::I32, below: Some(n.clone()) };
        let times = self.length(n);
        let word = self.word(&["generate", "tabulate"]);
        if let Type::Array(m, t) = t
            && self.once_in(2)
        {
            let j = self.name("i");
            let value = Made::plain(j.clone());
            let other = Var { value, ty: super::I32, below: Some(m.clone()) };
            let times = times.saturating_mul(self.length(m));
            let body = self.under(vec![var, other], times, |g| g.make(t, depth));
            let sizes = format!("{} {}", number(n), number(m));
            let text = format!("(tabulate_2d {sizes} (\\{i} {j} -> {}))", body.text);
            return Made { text, ..body };
        }
        let body = self.under(vec![var], times, |g| g.make(t, depth));
        let text = format!("({word} {} (\\{i} -> {}))", number(n), body.text);
        Made { text, ..body }
    }

    /// Generates a map over the elements of rows.
    fn map_of_rows(&mut self, n: &Size, t: &Type, depth: usize) -> Option<Made> {
        let Type::Array(m, t) = t else { return None };
        let element = self.flat_type();
        let xss = self.make(&array(n, &array(m, &element)), depth);
        let (pattern, vars) = self.pattern(&element, xss.mag, xss.exact);
        let times = self.length(n).saturating_mul(self.length(m));
        let body = self.under(vars, times, |g| g.make(t, depth));
        let text = format!("(map_2d (\\{pattern} -> {}) {})", body.text, xss.text);
        Some(Made { text, ..body })
    }

    fn counted(&mut self, n: &Size, t: &Type) -> Option<Made> {
        if *t != super::I32 {
            return None;
        }
        let last = n.add(&Size::constant(2));
        Some(Made::plain(match self.below(4) {
            0 => format!("(3 ... {})", number(&last)),
            1 => format!("(0..<{})", number(n)),
            _ => format!("(iota {})", number(n)),
        }))
    }

    fn transposed(&mut self, n: &Size, t: &Type, depth: usize) -> Option<Made> {
        let Type::Array(m, t) = t else { return None };
        let xss = self.make(&array(m, &array(n, t)), depth);
        Some(Made { text: format!("(transpose {})", xss.text), ..xss })
    }

    /// Generates a `split`, or a `join` if the length is a product.
    fn chunked(&mut self, n: &Size, t: &Type, depth: usize) -> Option<Made> {
        if let Type::Array(k, t) = t {
            // The chunk size must be positive.
            self.value(k).filter(|k| *k > 0)?;
            let xs = self.make(&array(&n.mul(k), t), depth);
            let text = match self.once_in(4) {
                true => format!("(unflatten {} : {})", xs.text, array(n, &array(k, t))),
                false => format!("(split {} {})", self.size_text(k), xs.text),
            };
            return Some(Made { text, ..xs });
        }
        let factors: Vec<Size> = (2..5)
            .map(Size::constant)
            .chain(self.sizes.keys().map(|s| Size::var(s)))
            .filter(|k| n.is_multiple_of(k) && n != k)
            .collect();
        let k = self.pick(&factors)?;
        let xss = self.make(&array(&n.div(&k), &array(&k, t)), depth);
        Some(Made { text: format!("({} {})", self.word(&["join", "flatten"]), xss.text), ..xss })
    }

    /// Generates a `take` or `drop`.
    fn cut(&mut self, n: &Size, t: &Type, depth: usize) -> Made {
        let k =
            if self.once_in(3) { self.dim() } else { Size::constant(self.rng.random_range(0..4)) };
        let xs = self.make(&array(&n.add(&k), t), depth);
        let text = match self.once_in(2) {
            true => format!("(take {} {})", self.size_text(n), xs.text),
            false => format!("(drop {} {})", self.size_text(&k), xs.text),
        };
        Made { text, ..xs }
    }

    /// Prints a size as an argument, sometimes converted to another type.
    fn size_text(&mut self, n: &Size) -> String {
        let text = number(n);
        match self.below(12) {
            0 => format!("(i64.i32 {text})"),
            1 => format!("(i32.i64 {text})"),
            _ => text,
        }
    }

    fn concatenated(&mut self, n: &Size, t: &Type, depth: usize) -> Option<Made> {
        let (a, b) = match n.as_constant() {
            Some(n) if n > 1 => {
                let a = self.rng.random_range(1..n);
                (Size::constant(a), Size::constant(n - a))
            }
            Some(_) => return None,
            None => {
                let names: Vec<Size> = self.sizes.keys().map(|s| Size::var(s)).collect();
                let a = self.pick(&names)?;
                let b = n.sub(&a);
                // The remaining length must not be negative for any values of the sizes.
                if b.is_zero() || b.to_string().contains('-') {
                    return None;
                }
                (a, b)
            }
        };
        let (xs, ys) = (self.make(&array(&a, t), depth), self.make(&array(&b, t), depth));
        let text = match self.once_in(2) {
            true => format!("(concat {} {})", xs.text, ys.text),
            false => format!("({} ++ {})", xs.text, ys.text),
        };
        Some(Made::new(text, xs.mag.max(ys.mag), xs.exact && ys.exact))
    }

    fn moved(&mut self, goal: &Type, depth: usize) -> Made {
        let xs = self.make(goal, depth);
        let text = match self.below(3) {
            0 => format!("(reverse {})", xs.text),
            1 => format!("({} |> reverse)", xs.text),
            _ => format!("(rotate {} {})", self.below(4), xs.text),
        };
        Made { text, ..xs }
    }

    /// Generates an array of `m` valid indices of an array of length `n`.
    pub(super) fn indices(&mut self, m: &Size, n: &Size, depth: usize) -> String {
        if m == n && self.once_in(3) {
            return format!("(reverse (iota {}))", number(n));
        }
        let i = self.name("i");
        let value = Made::plain(i.clone());
        let var = Var { value, ty: super::I32, below: Some(m.clone()) };
        let (mut text, times) = (None, self.length(m));
        self.under(vec![var], times, |g| {
            text = g.index_below(n, depth);
            Made::plain("")
        });
        let text = text.unwrap_or_else(|| "0".to_owned());
        match self.once_in(2) {
            true => format!("(generate {} (\\{i} -> {text}))", number(m)),
            false => format!("(map (\\{i} -> {text}) (iota {}))", number(m)),
        }
    }

    fn counting_sorted(&mut self, n: &Size, t: &Type, depth: usize) -> Made {
        let k = self.rng.random_range(1..20);
        let is = self.exactly(|g| g.make(&array(n, &super::I32), depth));
        let xs = self.make(&array(n, t), depth);
        Made { text: format!("(counting_sort {k} {} {}).1", is.text, xs.text), ..xs }
    }

    fn gathered(&mut self, n: &Size, t: &Type, depth: usize) -> Option<Made> {
        if self.once_in(3) {
            return Some(self.counting_sorted(n, t, depth));
        }
        let m = self.dim();
        self.value(&m).filter(|m| *m > 0)?;
        let xs = self.make(&array(&m, t), depth);
        let is = self.indices(n, &m, depth);
        Some(Made { text: format!("(gather {} {is})", xs.text), ..xs })
    }

    fn scattered(&mut self, n: &Size, t: &Type, depth: usize) -> Made {
        let m = self.dim();
        let dest = self.make(&array(n, t), depth);
        let xs = self.make(&array(&m, t), depth);
        let m = number(&m);
        // All indices differ; those out of range have no effect.
        let is = match self.below(4) {
            0 => format!("(iota {m})"),
            1 => format!("(reverse (iota {m}))"),
            2 => format!("(rotate 1 (iota {m}))"),
            _ => format!("(map (\\j -> j * 2 - 1) (iota {m}))"),
        };
        let text = format!("(scatter {} {is} {})", dest.text, xs.text);
        Made::new(text, dest.mag.max(xs.mag), dest.exact && xs.exact)
    }

    /// Generates a `pad`, in a mode that the length allows.
    fn pad(&mut self, n: &Size, t: &Type, l: i64, r: i64, depth: usize) -> Made {
        let xs = self.make(&array(n, t), depth);
        let long = self.value(n).is_some_and(|n| n >= l.max(r).max(1).unsigned_abs());
        let outside = match self.below(4) {
            0 if long => Made::plain("clamp"),
            1 if long => Made::plain("wrap"),
            2 if long => Made::plain("mirror"),
            _ if self.once_in(3) => self.make(t, depth.min(1)),
            _ => self.simple(t),
        };
        let text = format!("(pad {l} {r} {} {})", outside.text, xs.text);
        Made::new(text, xs.mag.max(outside.mag), xs.exact && outside.exact)
    }

    fn padded(&mut self, n: &Size, t: &Type, depth: usize) -> Made {
        let (l, r) = (self.rng.random_range(0..3), self.rng.random_range(0..3));
        let out = self.pad(n, t, l, r, depth);
        let text = match self.once_in(2) {
            true => format!("(take {} (drop {l} {}))", number(n), out.text),
            false => format!("(drop {} {})", l + r, out.text),
        };
        Made { text, ..out }
    }

    /// Generates a `slide`, or a map over its windows.
    fn windows(&mut self, n: &Size, t: &Type, depth: usize) -> Made {
        let w = self.rng.random_range(1..4);
        let element = match t {
            // The windows themselves can be the result.
            Type::Array(k, t) if k.as_constant() == Some(w) => (**t).clone(),
            _ => self.flat_type(),
        };
        let (xs, step) = match self.below(4) {
            // There are as many windows as elements.
            0 => (self.pad(n, &element, w / 2, w - 1 - w / 2, depth), 1),
            1 => {
                let len = n.add(&Size::constant(w - 1));
                (self.make(&array(&len, &element), depth), 1)
            }
            2 => {
                // Some elements may be left over.
                let step = self.rng.random_range(1..=w);
                let more = w - step + self.rng.random_range(0..step);
                let len = n.mul(&Size::constant(step)).add(&Size::constant(more));
                (self.make(&array(&len, &element), depth), step)
            }
            _ => (self.make(&array(&n.mul(&Size::constant(w)), &element), depth), w),
        };
        let slides = format!("(slide {w} {step} {})", xs.text);
        let window = array(&Size::constant(w), &element);
        if *t == window && self.once_in(2) {
            return Made { text: slides, ..xs };
        }
        let (pattern, vars) = self.pattern(&window, xs.mag, xs.exact);
        let times = self.length(n);
        let body = self.under(vars, times, |g| g.make(t, depth));
        Made { text: format!("(map (\\{pattern} -> {}) {slides})", body.text), ..body }
    }

    fn iterated(&mut self, n: &Size, t: &Type, depth: usize) -> Made {
        let times = self.rng.random_range(0..4);
        let name = self.name("y");
        if let Type::Scalar(s) = t
            && *s != ScalarType::Bool
            && self.once_in(2)
        {
            // The length is halved by each iteration.
            let xs = self.make(&array(&n.mul(&Size::constant(1 << times)), t), depth);
            let xs = match xs.mag * 8.0 > LIMIT {
                true => self.cap(xs, &array(n, t), MODEST),
                false => xs,
            };
            let zero = super::literal_text(0.0, *s);
            let f = format!("(\\{name} -> map (reduce (+) {zero}) (split 2 {name}))");
            return Made::new(format!("(iterate {times} {f} {})", xs.text), xs.mag * 8.0, xs.exact);
        }
        let goal = array(n, t);
        let xs = self.make(&goal, depth);
        let xs = self.cap(xs, &goal, MODEST);
        let exact = xs.exact;
        let before = self.exact;
        self.exact |= exact;
        let var =
            Var { value: Made::new(name.clone(), MODEST, exact), ty: goal.clone(), below: None };
        let body = self.under(vec![var], 4, |g| g.make(&goal, depth));
        let body = self.cap(body, &goal, MODEST);
        self.exact = before;
        let word = if self.once_in(4) { "iterateSeq" } else { "iterate" };
        let text = format!("({word} {times} (\\{name} -> {}) {})", body.text, xs.text);
        Made::new(text, MODEST, exact)
    }
}
