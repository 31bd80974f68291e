//! The pretty printer.

use crate::calculus::op::Entry;
use crate::calculus::position::Position;
use crate::calculus::scalar::{Lit, SExpr, ScalarFn};
use crate::calculus::size::Size;
use crate::calculus::term::{MapKind, Op, Term};
use crate::calculus::ty::Ty;
use crate::lang::scalar_op::{self, ScalarOp};
use crate::lang::types::ScalarType;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&term(self, Place::Top, None))
    }
}

/// These surround the marked part while it is printed; they occur in no term's text.
const MARKS: [char; 2] = ['\u{2}', '\u{3}'];

/// Returns the text of a term, and the byte range of the part at `at` in it (empty when there is no such
/// part).
pub fn marked(t: &Term, at: &Position) -> (String, Range<usize>) {
    let text = term(t, Place::Top, Some(Mark { path: &at.path, factors: &at.factors }));
    match (text.find(MARKS[0]), text.find(MARKS[1])) {
        (Some(from), Some(to)) => (text.replace(MARKS, ""), from..to - MARKS[0].len_utf8()),
        _ => (text.replace(MARKS, ""), 0..0),
    }
}

impl fmt::Display for ScalarFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&scalar_fn(self, Place::Top))
    }
}

/// The surroundings of a term, which decide about parentheses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Top,
    /// A factor of a chain.
    Chain,
    /// An argument.
    Arg,
}

fn paren(text: String, needed: bool) -> String {
    if needed { format!("({text})") } else { text }
}

fn size_arg(s: &Size) -> String {
    let text = s.to_string();
    let simple = s.as_sym().is_some() || s.as_constant().is_some();
    paren(text, !simple)
}

/// The rest of a [`Position`] on the way to it.
#[derive(Clone, Copy)]
struct Mark<'a> {
    path: &'a [(usize, usize)],
    factors: &'a Range<usize>,
}

fn term(t: &Term, place: Place, mark: Option<Mark>) -> String {
    let chain = t.chain();
    let between = if chain.len() > 1 { Place::Chain } else { place };
    let mut parts: Vec<String> = chain
        .iter()
        .enumerate()
        .map(|(i, x)| {
            let inside = mark.and_then(|m| match m.path {
                [(factor, arg), path @ ..] if *factor == i => Some((*arg, Mark { path, ..m })),
                _ => None,
            });
            one(x, between, inside)
        })
        .collect();
    if let Some(Mark { path: [], factors }) = mark
        && factors.end <= parts.len()
        && !factors.is_empty()
    {
        parts[factors.start].insert(0, MARKS[0]);
        parts[factors.end - 1].push(MARKS[1]);
    }
    paren(parts.join(" . "), chain.len() > 1 && place == Place::Arg)
}

/// Prints one factor; `mark` is in the argument with that number.
fn one(t: &Term, place: Place, mark: Option<(usize, Mark)>) -> String {
    match t.op() {
        Op::Scalar(f) => scalar_fn(f, place),
        // A literal has its own parentheses.
        Op::Lit(l) => lit(*l),
        op => {
            let mut text = head(op, t.sizes(), t.tys());
            for (i, a) in t.args().iter().enumerate() {
                let inside = mark.and_then(|(arg, m)| (arg == i).then_some(m));
                text.push(' ');
                text.push_str(&term(a, Place::Arg, inside));
            }
            let applied = text.contains(' ');
            paren(text, applied && place == Place::Arg)
        }
    }
}

/// Returns an operator as it is written, with its written sizes and without its function arguments: `split
/// n.t0`, `mapGlb 0`.
pub fn head(op: &Op, sizes: &[Size], tys: &[Ty]) -> String {
    match op {
        Op::Compose => ".".to_owned(),
        Op::Scalar(f) => scalar_fn(f, Place::Top),
        Op::Input(name) => name_text(name),
        Op::Meta(name) => name.to_string(),
        Op::Lit(l) => lit(*l),
        op => {
            let Entry { name, scheme, .. } = op.entry();
            let mut words = vec![(*name).to_owned()];
            if let Op::Map(MapKind::Glb(d) | MapKind::Wrg(d) | MapKind::Lcl(d)) = op {
                words.push(d.to_string());
            }
            words.extend(scheme.written().map(|i| size_arg(&sizes[i])));
            words.extend(scheme.written_type().map(|i| tys[i].to_string()));
            if let Op::SizeValue(t) = op {
                words.push(t.to_string());
            }
            words.join(" ")
        }
    }
}

/// Returns an input's name, quoted if it could be read as something else.
fn name_text(name: &str) -> String {
    let reserved = Entry::named(name).is_some()
        || scalar_op::function(name).is_some()
        || matches!(
            name,
            "let"
                | "in"
                | "if"
                | "then"
                | "else"
                | "loop"
                | "for"
                | "while"
                | "do"
                | "true"
                | "false"
        )
        || ScalarType::from_name(name).is_some();
    if reserved { format!("'{name}") } else { name.to_owned() }
}

fn lit(l: Lit) -> String {
    let number = match (l.ty, l.as_float(), l.as_int()) {
        (ScalarType::Bool, _, Some(v)) => return (v != 0).to_string(),
        (_, Some(x), _) if x.is_nan() => return format!("{}.nan", l.ty),
        (_, Some(x), _) if x.is_infinite() => {
            return if x > 0.0 { format!("{}.inf", l.ty) } else { format!("(-{}.inf)", l.ty) };
        }
        #[expect(clippy::cast_possible_truncation, reason = "an f32 literal holds an f32")]
        (ScalarType::F32, Some(x), _) => format!("{:?}", x as f32),
        (_, Some(x), _) => format!("{x:?}{}", l.ty),
        (ScalarType::I32, _, Some(v)) => v.to_string(),
        (_, _, Some(v)) => format!("{v}{}", l.ty),
        (_, None, None) => "?".to_owned(),
    };
    paren(number.clone(), number.starts_with('-'))
}

fn scalar_fn(f: &ScalarFn, place: Place) -> String {
    if let Some(op) = f.as_binary() {
        if let Some((text, _)) = op.infix() {
            return format!("({text})");
        }
        if let Some(name) = op.function() {
            return name.to_owned();
        }
    }
    if let SExpr::Op(op, _, es) = &f.body
        && let ([SExpr::Arg], Some(name)) = (es.as_slice(), op.function())
    {
        return name.to_owned();
    }
    if let (Ty::Unit, SExpr::Lit(l)) = (&f.dom, &f.body) {
        return lit(*l);
    }
    let mut used = vec![];
    paths(&f.body, &mut used);
    let mut names = Names { args: vec![], inputs: vec![], binder: "t".to_owned() };
    inputs(&f.body, &mut names.inputs);
    let bound = |name: &Arc<str>, binder: &str| {
        name.strip_prefix(binder).is_some_and(|n| n.parse::<usize>().is_ok())
    };
    while names.inputs.iter().any(|n| bound(n, &names.binder)) {
        names.binder.push('t');
    }
    let pattern = pattern(&f.dom, &mut vec![], &used, &mut names);
    let body = expr(&f.body, &names, 0, 0);
    paren(format!("\\{pattern} -> {body}"), place != Place::Top)
}

/// Collects the projections of the argument that are used as a whole.
fn paths(e: &SExpr, used: &mut Vec<Vec<bool>>) {
    if let Some(p) = path(e) {
        used.push(p);
        return;
    }
    match e {
        SExpr::Arg | SExpr::Lit(_) | SExpr::Input(..) | SExpr::Size(..) | SExpr::Var(..) => {}
        SExpr::Proj(e, _) => paths(e, used),
        SExpr::Op(_, _, es) => es.iter().for_each(|e| paths(e, used)),
        SExpr::Pair(a, b) | SExpr::Let(a, b) => [a, b].into_iter().for_each(|e| paths(e, used)),
        SExpr::If(a, b, c) | SExpr::For(a, b, c) | SExpr::While(a, b, c) => {
            [a, b, c].into_iter().for_each(|e| paths(e, used));
        }
    }
}

fn path(e: &SExpr) -> Option<Vec<bool>> {
    match e {
        SExpr::Arg => Some(vec![]),
        SExpr::Proj(e, second) => {
            let mut p = path(e)?;
            p.push(*second);
            Some(p)
        }
        _ => None,
    }
}

/// The names of a function's variables; they avoid the names of inputs that the function mentions.
struct Names {
    /// Names of the argument's parts.
    args: Vec<(Vec<bool>, String)>,
    /// Inputs in the body.
    inputs: Vec<Arc<str>>,
    /// The prefix of names of inner variables.
    binder: String,
}

/// Collects every input that is mentioned.
fn inputs(e: &SExpr, found: &mut Vec<Arc<str>>) {
    match e {
        SExpr::Input(name, ..) => found.push(name.clone()),
        SExpr::Arg | SExpr::Lit(_) | SExpr::Size(..) | SExpr::Var(..) => {}
        SExpr::Proj(e, _) => inputs(e, found),
        SExpr::Op(_, _, es) => es.iter().for_each(|e| inputs(e, found)),
        SExpr::Pair(a, b) | SExpr::Let(a, b) => [a, b].into_iter().for_each(|e| inputs(e, found)),
        SExpr::If(a, b, c) | SExpr::For(a, b, c) | SExpr::While(a, b, c) => {
            [a, b, c].into_iter().for_each(|e| inputs(e, found));
        }
    }
}

fn pattern(ty: &Ty, at: &mut Vec<bool>, used: &[Vec<bool>], names: &mut Names) -> String {
    if let (Ty::Pair(a, b), false) = (ty, used.contains(at)) {
        at.push(false);
        let left = pattern(a, at, used, names);
        at.pop();
        at.push(true);
        let right = pattern(b, at, used, names);
        at.pop();
        return format!("({left}, {right})");
    }
    if *ty == Ty::Unit {
        return "()".to_owned();
    }
    if !used.iter().any(|p| p.starts_with(at)) {
        return "_".to_owned();
    }
    let letter = |i: usize| match i {
        0 if at.is_empty() => "x".to_owned(),
        0..26 => char::from(b'a' + u8::try_from(i).unwrap_or(0)).to_string(),
        _ => format!("x{i}"),
    };
    let taken = |name: &str| {
        names.inputs.iter().any(|n| **n == *name) || names.args.iter().any(|(_, n)| n == name)
    };
    let mut i = names.args.len();
    while taken(&letter(i)) {
        i += 1;
    }
    let name = letter(i);
    names.args.push((at.clone(), name.clone()));
    name
}

/// Binding strengths above those of infix operators and their operands: of applications, and of what is one token or in
/// parentheses.
const APPLICATION: u8 = 9;
const ATOM: u8 = 10;

/// Prints an expression under `depth` binders; `level` is the surrounding operator's binding strength.
fn expr(e: &SExpr, names: &Names, depth: usize, level: u8) -> String {
    if let Some(p) = path(e) {
        // The longest prefix with a name, then projections.
        if let Some((prefix, name)) =
            names.args.iter().filter(|(q, _)| p.starts_with(q)).max_by_key(|(q, _)| q.len())
        {
            let rest: String =
                p[prefix.len()..].iter().map(|s| if *s { ".1" } else { ".0" }).collect();
            return format!("{name}{rest}");
        }
        return "()".to_owned();
    }
    match e {
        SExpr::Arg => "()".to_owned(),
        SExpr::Proj(e, second) => {
            format!("{}.{}", expr(e, names, depth, ATOM), u8::from(*second))
        }
        SExpr::Lit(l) => lit(*l),
        SExpr::Input(name, 0, _) => name_text(name),
        SExpr::Input(name, i, _) => format!("{}#{i}", name_text(name)),
        SExpr::Size(s, t) => paren(format!("sizeOf {} {t}", size_arg(s)), level > APPLICATION),
        SExpr::Var(i, _) => format!("{}{i}", names.binder),
        SExpr::Pair(a, b) => {
            format!("({}, {})", expr(a, names, depth, 0), expr(b, names, depth, 0))
        }
        SExpr::Op(ScalarOp::Cast(from), to, es) => {
            let arg = es.first().map_or(String::new(), |e| expr(e, names, depth, ATOM));
            paren(format!("{to}.{from} {arg}"), level > APPLICATION)
        }
        SExpr::Op(op, _, es) => {
            if let (Some((text, s)), [a, b]) = (op.infix(), es.as_slice()) {
                let (l, r) = (expr(a, names, depth, s), expr(b, names, depth, s + 1));
                return paren(format!("{l} {text} {r}"), level > s);
            }
            let name = op.function().unwrap_or("?");
            let args: Vec<String> = es.iter().map(|e| expr(e, names, depth, ATOM)).collect();
            paren(format!("{name} {}", args.join(" ")), level > APPLICATION)
        }
        SExpr::If(c, a, b) => paren(
            format!(
                "if {} then {} else {}",
                expr(c, names, depth, 0),
                expr(a, names, depth, 0),
                expr(b, names, depth, 0)
            ),
            level > 0,
        ),
        SExpr::Let(..) => {
            // Chains of definitions are long, so they are printed by iteration.
            let (mut text, mut rest, mut depth) = (String::new(), e, depth);
            while let SExpr::Let(a, b) = rest {
                let a = expr(a, names, depth, 0);
                text.push_str(&format!("let {}{depth} = {a} in ", names.binder));
                (rest, depth) = (b, depth + 1);
            }
            text.push_str(&expr(rest, names, depth, 0));
            paren(text, level > 0)
        }
        SExpr::For(init, bound, body) => paren(
            format!(
                "loop ({}{} = {}) for {}{depth} < {} do {}",
                names.binder,
                depth + 1,
                expr(init, names, depth, 0),
                names.binder,
                expr(bound, names, depth, 0),
                expr(body, names, depth + 2, 0)
            ),
            level > 0,
        ),
        SExpr::While(init, cond, body) => paren(
            format!(
                "loop ({}{depth} = {}) while {} do {}",
                names.binder,
                expr(init, names, depth, 0),
                expr(cond, names, depth + 1, 0),
                expr(body, names, depth + 1, 0)
            ),
            level > 0,
        ),
    }
}
