//! What to write instead, in the program's own words: conversions of numbers, and functions of scalars over arrays of arrays.

use super::elab::{Abort, COMPUTED, Checker};
use super::env::{Arg, Elab, FunVal};
use super::infer::{Class, Ty};
use super::ir::{Lit, Node, NodeKind};
use crate::diag::{Code, Diagnostic, Span};
use crate::lang::ast::{Decl, Expr, ExprKind, Slice};
use crate::lang::prelude;
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;

/// The advice for rows, where a function of the prelude combines scalars. Its use says what to write ([`in_use`]).
const ROWS: &str = "the elements of the array are arrays";

/// Returns a function with a pattern of the same name around it for each dimension but the first.
fn nested(pattern: &str, f: &str, dimensions: usize) -> String {
    (1..dimensions).fold(f.to_owned(), |f, _| format!("({pattern} {f})"))
}

/// Says in an error of a function of the prelude how its use `call` combines the elements of rows.
pub fn in_use(d: &mut Diagnostic, call: Option<&str>, span: Span) {
    match (d.help.iter_mut().find(|h| *h == ROWS), call) {
        (Some(help), Some(call)) => {
            *help = format!("{ROWS}; for each of them alone write `{call}`");
        }
        (Some(_), None) if !prelude::holds(span) => d.help.retain(|h| h != ROWS),
        _ => {}
    }
}

/// Adds how elements between computed places are changed.
pub fn of_computed_change(Abort(d): Abort) -> Abort {
    Abort(d.map(|d| match d.message == COMPUTED {
        true => Box::new(d.help("change elements between computed places with `scatter`, or in a `map` with a condition on the index; a part of known length begins anywhere: `xs with [i:i + 3] <- ys`")),
        false => d,
    }))
}

/// Whether a name occurs in a text.
fn mentions(text: &str, name: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == name)
}

impl<'a> Checker<'a> {
    /// Adds how the elements of a slice between computed places are taken.
    pub fn of_computed_part(&self, Abort(d): Abort, slice: &Slice) -> Abort {
        let d = match d {
            Some(d) if d.message == COMPUTED => d,
            other => return Abort(other),
        };
        let text = |e: &Option<Expr>, other: &str| {
            e.as_ref().map(|e| self.excerpt(e.span).unwrap_or_else(|| other.to_owned()))
        };
        let (from, to) = (text(&slice.from, "a"), text(&slice.to, "b"));
        let before = self.source.text.get(..slice.span.range().start).unwrap_or_default();
        let before = before.strip_suffix('[').unwrap_or_default();
        let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '\'' | '.');
        let xs = before.get(before.trim_end_matches(name).len()..).unwrap_or_default();
        let xs = if xs.starts_with(|c: char| c.is_ascii_alphabetic()) { xs } else { "xs" };
        let all = format!("{} {} {xs}", from.as_deref().unwrap_or(""), to.as_deref().unwrap_or(""));
        let k = ["k", "i", "j", "at"].into_iter().find(|k| !mentions(&all, k)).unwrap_or("k");
        let (count, place, condition) = match (from, to) {
            (None, Some(to)) => (to.clone(), k.to_owned(), format!("{k} < {to}")),
            (Some(from), None) => {
                (format!("length {xs} - {from}"), format!("{from} + {k}"), format!("{k} >= {from}"))
            }
            (Some(from), Some(to)) => (
                format!("{to} - {from}"),
                format!("{from} + {k}"),
                format!("{k} >= {from} && {k} < {to}"),
            ),
            (None, None) => return Abort(Some(d)),
        };
        let d = d.help(format!("take the elements one after the other: `loop acc = 0 for {k} < {count} do acc + {xs}[{place}]`"));
        let d = d.help(format!("or choose among all: `map2 (\\{k} x -> if {condition} then x else 0) (indices {xs}) {xs}`"));
        Abort(Some(Box::new(d.help("a part of known length begins anywhere: `xs[i:i + 3]`"))))
    }

    /// Adds what to write in place of a number of elements that the program computes.
    pub fn of_computed_count(&self, Abort(d): Abort, count: &Node) -> Abort {
        let d = match d {
            Some(d) if d.message == COMPUTED && d.help.is_empty() => d,
            other => return Abort(other),
        };
        let n =
            self.source.text.get(count.span.range()).filter(|t| t.len() <= 60 && !t.contains('\n'));
        let n = n.unwrap_or("k");
        let n = n
            .strip_prefix('(')
            .and_then(|n| n.strip_suffix(')'))
            .filter(|n| !n.contains(['(', ')']))
            .unwrap_or(n);
        let i = if mentions(n, "i") { "j" } else { "i" };
        let text = format!(
            "as a number of steps, it is `loop acc = z for {i} < {n} do ...`; as a number of elements, a `map` of all with a condition on the index"
        );
        Abort(Some(Box::new(d.help(text))))
    }

    /// Returns a short text of the program, in a form that can be an argument.
    fn excerpt(&self, span: Span) -> Option<String> {
        let text = self.source.text.get(span.range())?;
        let short = (1..=80).contains(&text.len()) && !text.contains('\n') && !text.contains("--");
        let mut open = 0usize;
        let whole = text.bytes().all(|c| {
            match c {
                b'(' | b'[' | b'{' => open += 1,
                b')' | b']' | b'}' => open = open.saturating_sub(1),
                _ => {}
            }
            c != b' ' || open > 0
        });
        short.then(|| if whole { text.to_owned() } else { format!("({text})") })
    }

    /// Returns the call of a function of the prelude for each row of its last argument.
    pub fn for_each_row(&self, decl: &Decl, args: &[Arg<'a>]) -> Option<String> {
        let (Arg { elab: Elab::Value(array), span }, others) = args.split_last()? else {
            return None;
        };
        if !prelude::holds(decl.name.span) || self.dimensions(&array.ty) < 2 {
            return None;
        }
        let array = self.excerpt(*span)?;
        let others = others.iter().map(|a| self.excerpt(a.span)).collect::<Option<Vec<_>>>()?;
        let name = &decl.name.text;
        Some(match others.as_slice() {
            [] => format!("map {name} {array}"),
            others => format!("map ({name} {}) {array}", others.join(" ")),
        })
    }

    /// Adds what to write where an operator of scalars is given rows with these elements: the pattern's name, its operator,
    /// its first value and, if these are all of its arguments, its array.
    pub fn with_rows(
        &self,
        d: Diagnostic,
        element: &Ty,
        name: &str,
        (op, z, array): (Span, Span, Option<Span>),
    ) -> Diagnostic {
        let name = name.trim_matches('`');
        let (Some(op), Some(z)) = (self.excerpt(op), self.excerpt(z)) else { return d.help(ROWS) };
        let (mut ty, mut lengths) = (element.clone(), vec![]);
        while let Ty::Array(n, row) = self.infer.shallow(&ty) {
            lengths.push(self.infer.show_size(&n));
            ty = (*row).clone();
        }
        let array = array.map(|span| self.excerpt(span).unwrap_or_else(|| "xss".to_owned()));
        let d = match &array {
            Some(array) => {
                let each = nested("map", &format!("({name} {op} {z})"), lengths.len());
                d.help(format!("{ROWS}; for each of them alone write `map {each} {array}`"))
            }
            None => d.help(ROWS),
        };
        let filled = lengths.iter().rev().fold(z, |z, n| match n.as_str() {
            "_" => format!("(replicate m {z})"),
            n if n.contains(' ') => format!("(replicate ({n}) {z})"),
            n => format!("(replicate {n} {z})"),
        });
        let whole = nested("map2", &op, lengths.len() + 1);
        let array = array.unwrap_or_else(|| "...".to_owned());
        d.help(format!(
            "to combine them element by element, write `{name} {whole} {filled} {array}`"
        ))
    }

    /// Adds what to write where `map` gives rows with these elements to a function of scalars.
    pub fn map_of_rows(
        &self,
        Abort(d): Abort,
        name: &str,
        fun: (&FunVal<'a>, Span),
        elements: &[Ty],
        arrays: &[Node],
    ) -> Abort {
        let mut innermost = fun.0;
        while let FunVal::Partial(f, _) = innermost {
            innermost = f;
        }
        let scalar = matches!(innermost, FunVal::Builtin(b) if b.is_scalar())
            || matches!(innermost, FunVal::SectionRight(..));
        let dimensions: Vec<_> = elements.iter().map(|e| self.dimensions(e)).collect();
        let first = dimensions.first().copied().unwrap_or(0);
        let (name, f) = (name.trim_matches('`'), self.excerpt(fun.1));
        let arrays = arrays.iter().map(|a| self.excerpt(a.span)).collect::<Option<Vec<_>>>();
        let (Some(f), Some(arrays), true) = (f, arrays, scalar && first > 0) else {
            return Abort(d);
        };
        Abort(d.map(|mut d| {
            if d.code == Code::TypeMismatch && dimensions.iter().all(|n| *n == first) {
                let (f, arrays) = (nested(name, &f, first + 1), arrays.join(" "));
                d.help = vec![format!("the elements are arrays: write `{name} {f} {arrays}`")];
            }
            d
        }))
    }

    /// Returns the text of an operand as an argument, if the program has it.
    pub fn operand_text(&self, node: &Node) -> Option<String> {
        match node.kind {
            _ if self.dimensions(&node.ty) > 0 => {
                let is_slice = |text: &String| text.ends_with(']') && !prelude::holds(node.span);
                let slice = || self.excerpt(node.span).filter(is_slice);
                self.written(node).map(str::to_owned).or_else(slice)
            }
            NodeKind::Var(_) => self.written(node).map(str::to_owned),
            _ => self.excerpt(node.span).filter(|_| !prelude::holds(node.span)),
        }
    }

    /// Adds how a scalar operation is applied to the elements of these operands, of which `arg` is an array.
    pub fn with_elements(
        &self,
        d: Diagnostic,
        op: ScalarOp,
        arg: Span,
        operands: &[(Option<String>, Ty)],
    ) -> Diagnostic {
        d.help(match prelude::holds(arg) {
            true => ROWS.to_owned(),
            false => self.element_by_element(op, operands),
        })
    }

    fn element_by_element(&self, op: ScalarOp, operands: &[(Option<String>, Ty)]) -> String {
        let f = match (op.infix(), op.function()) {
            (Some((text, _)), _) => format!("({text})"),
            (None, name) => name.unwrap_or("f").to_owned(),
        };
        let names = ["xs", "ys", "zs"];
        let texts: Vec<&str> = operands
            .iter()
            .zip(names)
            .map(|((text, _), name)| text.as_deref().unwrap_or(name))
            .collect();
        let mut dimensions: Vec<_> = operands.iter().map(|(_, ty)| self.dimensions(ty)).collect();
        // An operand that has an error itself is probably like the other.
        let of = dimensions.iter().copied().max().unwrap_or(0);
        for (of_operand, (_, ty)) in dimensions.iter_mut().zip(operands) {
            if matches!(self.infer.shallow(ty), Ty::Meta(i) if self.infer.class(i) == Class::Any) {
                *of_operand = of;
            }
        }
        if let ([a, b], [x, y]) = (dimensions.as_slice(), texts.as_slice())
            && a != b
            && *a.min(b) > 0
        {
            let each = nested("map2", &f, *a.min(b));
            let (rows, array) = match a > b {
                true => (format!("(\\row -> map2 {each} row {y})"), x),
                false => (format!("(\\row -> map2 {each} {x} row)"), y),
            };
            let rows = nested("map", &rows, a.abs_diff(*b));
            return format!("apply it to the elements of every row: `map {rows} {array}`");
        }
        let (f, array, pattern, of) = match (op.infix(), dimensions.as_slice(), texts.as_slice()) {
            (Some((op, _)), [0, of], [x, ys]) => {
                (format!("({x} {op})"), (*ys).to_owned(), "map", *of)
            }
            // `(- y)` is a number.
            (Some(("-", _)), [of, 0], [xs, y]) => {
                let x = ["x", "a", "element"].into_iter().find(|x| !mentions(y, x)).unwrap_or("x");
                (format!("(\\{x} -> {x} - {y})"), (*xs).to_owned(), "map", *of)
            }
            (Some((op, _)), [of, 0], [xs, y]) => {
                (format!("({op} {y})"), (*xs).to_owned(), "map", *of)
            }
            (_, [of], _) => (f, texts.join(" "), "map", *of),
            (_, [of, ..], _) => {
                (f, texts.join(" "), if texts.len() == 2 { "map2" } else { "map3" }, *of)
            }
            (_, [], _) => (f, "xs".to_owned(), "map", 1),
        };
        format!("apply it to every element: `{pattern} {} {array}`", nested(pattern, &f, of))
    }

    /// Returns the number of a type's dimensions.
    pub fn dimensions(&self, ty: &Ty) -> usize {
        match self.infer.shallow(ty) {
            Ty::Array(_, element) => 1 + self.dimensions(&element),
            _ => 0,
        }
    }

    /// Returns how two numbers of different types become numbers of one type that has the values of both, as far as
    /// there is one.
    pub fn conversion(&self, a: (&Ty, Option<String>), b: (&Ty, Option<String>)) -> Option<String> {
        let number = |ty: &Ty| match self.infer.shallow(ty) {
            Ty::Scalar(s) => Some(s),
            Ty::Meta(i) if self.infer.class(i) == Class::Float => Some(ScalarType::F32),
            // A size.
            Ty::Meta(i) if self.infer.class(i) == Class::Integer => Some(ScalarType::I32),
            _ => None,
        };
        let (from_a, from_b) = (number(a.0)?, number(b.0)?);
        let to = if from_a == ScalarType::Bool { from_b } else { from_a.wider(from_b) };
        let name = |(ty, text): (&Ty, Option<String>), other: Option<&str>| match (text, other) {
            (Some(text), _) => text,
            (None, _) if matches!(self.infer.shallow(ty), Ty::Meta(_)) => "n".to_owned(),
            (None, Some("x")) => "y".to_owned(),
            (None, _) => "x".to_owned(),
        };
        Some(match to == from_a {
            _ if from_a == from_b => return None,
            true => format!("convert it: `{to}.{from_b} {}`", name(b, a.1.as_deref())),
            false => format!("convert the first: `{to}.{from_a} {}`", name(a, b.1.as_deref())),
        })
    }

    /// Says that a number need not have a point, if the value is one that has.
    pub fn without_point(d: Diagnostic, node: Option<&Node>) -> Diagnostic {
        match node.map(|n| &n.kind) {
            Some(NodeKind::Lit(Lit::Float(v))) if v.fract() == 0.0 => {
                d.help(format!("or write the literal without a point: `{v}`"))
            }
            _ => d,
        }
    }

    /// Returns the text of the first operand of `e` with the minus sign in front of it, if only a space before that tells that
    /// the sign was meant as a part of the operand.
    pub fn negative(&self, e: &Expr) -> Option<String> {
        let mut first = e;
        while let ExprKind::Apply(next, _) | ExprKind::Binary(_, next, _) = &first.kind {
            first = next;
        }
        let (before, text) =
            (self.source.text.get(..first.span.range().start)?, self.excerpt(first.span)?);
        let spaced = before.strip_suffix('-')?.ends_with(char::is_whitespace);
        spaced.then(|| format!("-{text}"))
    }

    /// Returns the error for an index that counts from the end, `xs[-back]`, in one of the dimensions of an array, of which the second
    /// number have an index.
    pub fn counted_back(
        &self,
        array: &Node,
        (dimension, indices): (usize, usize),
        back: i128,
        span: Span,
    ) -> Diagnostic {
        let message = format!("the index -{back} is outside of every array");
        let d = self.error(Code::SizeRange, message, span);
        let (mut ty, mut length) = (array.ty.clone(), None);
        for _ in 0..=dimension {
            let Ty::Array(n, row) = self.infer.shallow(&ty) else { break };
            (ty, length) = ((*row).clone(), Some(self.infer.sizes.resolve(&n)));
        }
        let name = self.excerpt(array.span).filter(|_| indices == 1);
        let length = match length.filter(|n| n.as_var().is_some() || n.as_constant().is_some()) {
            Some(n) if !self.infer.sizes.has_unknowns(&n) => self.infer.show_size(&n),
            _ => format!("length {}", name.as_deref().unwrap_or("xs")),
        };
        d.help(match (name, back) {
            (Some(xs), 1) => format!(
                "indices count from 0: the last element is `last {xs}`, or `{xs}[{length} - 1]`"
            ),
            (Some(xs), _) => format!("indices count from 0: write `{xs}[{length} - {back}]`"),
            (None, _) => format!("indices count from 0: write `{length} - {back}`"),
        })
    }

    /// Adds that an index stands directly behind its array, if `index` is one behind a space.
    pub fn with_index(&self, d: Diagnostic, array: Span, index: Span) -> Diagnostic {
        let text = |span: Span| self.source.text.get(span.range()).unwrap_or_default();
        let bracket = text(index).starts_with('[') && index.start > array.end;
        match (bracket, self.excerpt(array).filter(|a| !a.contains(' '))) {
            (false, _) => d,
            (true, array) => {
                let array = array.unwrap_or_else(|| "a".to_owned());
                d.help(format!("an index has no space before it: `{array}{}`", text(index)))
            }
        }
    }
}
