//! Rule files: the parser.
//!
//! ```text
//! -- A comment.
//! rule split-join
//!   law exact
//!   says "A map over an array is a map over its chunks."
//!   from "ICFP 2015, figure 6d; thesis, equation 5.4"
//!   on [n]a
//!   let t = tile n, r = round n
//!   when tileable n 2, computes f
//!   rewrite map f => take n . join . map (map f) . split t . padLast r
//!   example map abs : [12]f32
//! ```
//!
//! `where p : a -> [k]b` gives the type of a function variable, so that its sizes have names.
//!
//! Clauses may come in any order. A clause continues over lines that do not start with the word of a clause.
//! Names in the sides that are no operators are function variables. `==` instead of `=>` makes a rule for
//! each direction; the second is named `NAME-back`.
//!
//! `for k in 2, 4` makes one rule for each number, named `NAME-2`, `NAME-4`. A rule that combines several
//! smaller steps lists them:
//!
//! ```text
//!   derivation
//!     by part-intro: reduce op z . reducePart t op z
//!     by part-chunks
//! ```
//!
//! Each `by RULE: TERM` is one application of a rule, read backwards with `by RULE back`; the last one gives
//! the right side. Before its first rule, a file may name its set with `set NAME`, and what else belongs to the
//! set: whole themes, and single rules of other themes by name, `set thesis with simplify, part-intro`. The
//! list may continue on further lines.

use super::condition::{Condition, LetSize, SizeMaker};
use super::rule::{Law, Rule, Step};
use crate::calculus::size::{Size, Sym};
use crate::calculus::term::{Op, Term};
use crate::calculus::text::{self, Context, Raw, RawKind, Unifier};
use crate::calculus::ty::{FnTy, Ty};
use crate::diag::{Code, Diagnostic, Diagnostics, Limits, Result, Source, Span};
use indexmap::{IndexMap, IndexSet};
use std::ops::Range;
use std::sync::Arc;

const CLAUSES: &[&str] = &[
    "law",
    "says",
    "from",
    "for",
    "on",
    "where",
    "let",
    "when",
    "needs",
    "rewrite",
    "derivation",
    "example",
];

/// The header of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The set that the file's rules belong to.
    pub set: String,
    /// Themes and rules that the set also includes.
    pub with: Vec<String>,
}

/// A rule file.
pub(super) struct File {
    pub header: Header,
    pub rules: Vec<Rule>,
}

struct Clause {
    word: String,
    /// The text after the word.
    body: Range<usize>,
}

/// Reads a rule file. Reports all errors, not only the first.
///
/// # Errors
/// [`Code::RuleParse`], [`Code::RuleType`] or [`Code::RuleUnbound`], with places.
pub(super) fn read(source: &Arc<Source>, theme: &str) -> Result<File> {
    let mut rules = vec![];
    let mut errors = Diagnostics::default();
    let (header, blocks) = blocks(source)?;
    for (name, span, clauses) in blocks {
        let place = Place { source, theme, free: header.set != "default" };
        match family(place, &name, span, &clauses) {
            Ok(mut made) => rules.append(&mut made),
            Err(failure) => errors.extend(failure.0),
        }
    }
    for rule in &mut rules {
        rule.set.clone_from(&header.set);
    }
    if errors.is_empty() { Ok(File { header, rules }) } else { Err(errors.into_vec().into()) }
}

type Block = (String, Span, Vec<Clause>);

fn kebab(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(fits)
}

/// Returns the names of a list, which may end with a comma; `None` if something else is among them.
fn listed(text: &str) -> Option<Vec<String>> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(|name| kebab(name).then(|| name.to_owned())).collect()
}

fn blocks(source: &Arc<Source>) -> Result<(Header, Vec<Block>)> {
    let mut out: Vec<Block> = vec![];
    let mut header: Option<Header> = None;
    let mut at = 0;
    for line in source.text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let code = &line[..line.find("--").unwrap_or(line.len())];
        let trimmed = code.trim();
        if trimmed.is_empty() {
            continue;
        }
        let indent = code.len() - code.trim_start().len();
        let span = Span::new(start + indent, start + indent + trimmed.len());
        let word = trimmed.split_whitespace().next().unwrap_or("");
        let body = start + indent + word.len()..start + code.trim_end().len();
        let place =
            |why: &str| Diagnostic::error(Code::RuleParse, why.to_owned()).at(source, span, "here");
        let no_list = || place("expected names of themes and rules, separated by commas");
        if word == "set" && out.is_empty() && header.is_none() {
            let text = &code[indent + word.len()..];
            let (set, with) = text.split_once(" with ").unwrap_or((text, ""));
            let set = set.trim();
            if !kebab(set) {
                return Err(place("expected `set NAME` or `set NAME with THEME, RULE, ...`").into());
            }
            header = Some(Header { set: set.to_owned(), with: listed(with).ok_or_else(no_list)? });
            continue;
        }
        if word == "rule" {
            let name = source.text[body].trim();
            if !kebab(name) {
                return Err(place("a rule's name is lower-case letters, digits and dashes").into());
            }
            out.push((name.to_owned(), span, vec![]));
            continue;
        }
        let Some((_, _, clauses)) = out.last_mut() else {
            let Some(Header { with, .. }) = header.as_mut().filter(|h| !h.with.is_empty()) else {
                return Err(place("expected `rule NAME`").into());
            };
            with.extend(listed(code).ok_or_else(no_list)?);
            continue;
        };
        if CLAUSES.contains(&word) {
            clauses.push(Clause { word: word.to_owned(), body });
        } else if let Some(last) = clauses.last_mut() {
            last.body.end = start + code.trim_end().len();
        } else {
            return Err(place("expected a clause")
                .help(format!("clauses are {}", CLAUSES.join(", ")))
                .into());
        }
    }
    Ok((header.unwrap_or(Header { set: "default".to_owned(), with: vec![] }), out))
}

/// Rules for numbers above `MOST_TESTED` are tested with `TESTED_INSTEAD`: their arrays would be too long.
const MOST_TESTED: u64 = 256;
const TESTED_INSTEAD: u64 = 6;

/// The place of a block.
#[derive(Clone, Copy)]
struct Place<'a> {
    source: &'a Arc<Source>,
    theme: &'a str,
    /// Whether a left side may match every term.
    free: bool,
}

/// Returns the rules of a block: one, or one for each number of its `for` clause.
fn family(place: Place<'_>, name: &str, at: Span, clauses: &[Clause]) -> Result<Vec<Rule>> {
    let source = place.source;
    let Some(c) = clauses.iter().find(|c| c.word == "for") else {
        return build(place, name, at, clauses, None);
    };
    let fail = || {
        let span = Span::new(c.body.start, c.body.end);
        Diagnostic::error(Code::RuleParse, "expected `for NAME in NUMBER, ...`")
            .at(source, span, "here")
    };
    let (variable, numbers) = source.text[c.body.clone()].split_once(" in ").ok_or_else(fail)?;
    let most = Limits::DEFAULT.rule_family;
    if numbers.split(',').count() > most {
        return Err(fail().note(format!("at most {most} numbers")).into());
    }
    let mut out = vec![];
    for number in numbers.split(',') {
        let k: u64 = number.trim().parse().map_err(|_| fail())?;
        let name = format!("{name}-{k}");
        let made = |k: u64| build(place, &name, at, clauses, Some((variable.trim(), k)));
        let small = if k > MOST_TESTED { made(TESTED_INSTEAD)? } else { vec![] };
        let mut small = small.into_iter().map(Box::new);
        out.extend(made(k)?.into_iter().map(|r| Rule { stand_in: small.next(), ..r }));
    }
    for rule in &mut out {
        name.clone_into(&mut rule.family);
    }
    Ok(out)
}

/// Replaces the names in sizes by variables; one name may stand for a number.
#[derive(Clone, Copy)]
struct Names<'a> {
    fixed: Option<(&'a str, u64)>,
}

impl Names<'_> {
    fn sym(&self, s: &Sym) -> Option<Size> {
        match (s, self.fixed) {
            (Sym::Dim(d), Some((name, k))) if **d == *name => Some(Size::constant(k)),
            (Sym::Dim(d), _) => Some(Size::meta(d)),
            (Sym::Tile(_) | Sym::Width(_) | Sym::Round(_) | Sym::Meta(_), _) => None,
        }
    }

    fn size(&self, s: &Size) -> Size {
        s.substitute(&|s| self.sym(s))
    }

    fn ty(&self, t: &Ty) -> Ty {
        t.substitute(&|_| None, &|s| self.sym(s))
    }
}

fn build(
    place: Place<'_>,
    name: &str,
    at: Span,
    clauses: &[Clause],
    fixed: Option<(&str, u64)>,
) -> Result<Vec<Rule>> {
    let Place { source, theme, free } = place;
    let names = Names { fixed };
    let missing = |what: &str| {
        Diagnostic::error(Code::RuleParse, format!("rule `{name}` has no `{what}` clause")).at(
            source,
            at,
            "this rule",
        )
    };
    let clause = |word: &str| clauses.iter().find(|c| c.word == word);
    let quoted = |word: &str| -> Result<String> {
        let c = clause(word).ok_or_else(|| missing(word))?;
        let text = source.text[c.body.clone()].trim();
        let inner = text.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
        inner.map(|t| t.split_whitespace().collect::<Vec<_>>().join(" ")).ok_or_else(|| {
            Diagnostic::error(Code::RuleParse, format!("`{word}` wants a text in quotes"))
                .at(source, Span::new(c.body.start, c.body.end), "here")
                .into()
        })
    };
    let law = clause("law").ok_or_else(|| missing("law"))?;
    let law = match source.text[law.body.clone()].trim() {
        "exact" => Law::Exact,
        "reassoc" => Law::Reassoc,
        "approx" => Law::Approx,
        _ => {
            return Err(Diagnostic::error(Code::RuleParse, "a law is exact, reassoc or approx")
                .at(source, Span::new(law.body.start, law.body.end), "here")
                .into());
        }
    };
    let (says, from) = (quoted("says")?, quoted("from")?);
    let rewrite = clause("rewrite").ok_or_else(|| missing("rewrite"))?;
    let statement = &source.text[rewrite.body.clone()];
    let span = Span::new(rewrite.body.start, rewrite.body.end);
    let (arrow, both) = match (statement.find("=>"), statement.find(" == ")) {
        (Some(i), None) => (i, false),
        (None, Some(i)) => (i + 1, true),
        _ => {
            return Err(Diagnostic::error(Code::RuleParse, "a rewrite has one `=>` or one `==`")
                .at(source, span, "here")
                .into());
        }
    };
    let middle = rewrite.body.start + arrow;
    let left = text::parse_term(source, rewrite.body.start..middle)?;
    let right = text::parse_term(source, middle + 2..rewrite.body.end)?;
    let on = match clause("on") {
        Some(c) => Some(names.ty(&text::parse_type(source, c.body.clone())?)),
        None => None,
    };
    let functions = clause("where").map_or(Ok(vec![]), |c| read_functions(source, c, names))?;
    let lets = clause("let").map_or(Ok(vec![]), |c| read_lets(source, c, names))?;
    let when = clause("when").map_or(Ok(vec![]), |c| read_conditions(source, c, names))?;
    let steps = clause("derivation").map_or(Ok(vec![]), |c| read_steps(source, c))?;
    let example = clause("example").map(|c| source.text[c.body.clone()].trim().to_owned());
    let example_at = clause("example").map(|c| Span::new(c.body.start, c.body.end));
    let needs = clause("needs").map(|c| source.text[c.body.clone()].trim().to_owned());
    if let (Some(n), Some(c)) = (&needs, clause("needs"))
        && !super::CAPABILITIES.contains(&n.as_str())
    {
        return Err(Diagnostic::error(Code::RuleParse, format!("unknown capability `{n}`"))
            .at(source, Span::new(c.body.start, c.body.end), "here")
            .help(format!("capabilities are: {}", super::CAPABILITIES.join(", ")))
            .into());
    }
    let text = statement.split_whitespace().collect::<Vec<_>>().join(" ");

    let make = |suffix: &str, l: &Raw, r: &Raw| -> Result<Rule> {
        let (on, functions) = (on.as_ref(), &functions[..]);
        let sides = Sides { source, span, on, functions, lets: &lets, names, free };
        // The derivation belongs to the direction as written, not to the `-back` rule.
        let steps = if suffix.is_empty() { steps.as_slice() } else { &[] };
        let (lhs, rhs, derivation) = sides.read(l, r, steps)?;
        Ok(Rule {
            name: format!("{name}{suffix}"),
            family: format!("{name}{suffix}"),
            theme: theme.to_owned(),
            set: String::new(),
            stand_in: None,
            derivation,
            law,
            says: says.clone(),
            from: from.clone(),
            statement: text.clone(),
            lhs,
            rhs,
            lets: lets.clone(),
            when: when.clone(),
            needs: needs.clone(),
            example: example.clone(),
            example_at,
            source: source.clone(),
            span,
        })
    };
    let mut rules = vec![make("", &left, &right)?];
    if both {
        rules.push(make("-back", &right, &left)?);
    }
    for rule in &rules {
        super::condition_names_bound(rule)?;
    }
    Ok(rules)
}

fn raw_metas(raw: &Raw, as_written: Names<'_>, names: &mut IndexSet<String>) -> Raw {
    let kind = match &raw.kind {
        RawKind::Op { op, sizes, ty, args } => RawKind::Op {
            op: op.clone(),
            sizes: sizes.iter().map(|s| as_written.size(s)).collect(),
            ty: *ty,
            args: args.iter().map(|a| raw_metas(a, as_written, names)).collect(),
        },
        RawKind::Compose(parts) => {
            RawKind::Compose(parts.iter().map(|p| raw_metas(p, as_written, names)).collect())
        }
        RawKind::Name(n) => {
            names.insert(n.clone());
            RawKind::Name(n.clone())
        }
        RawKind::Lit(_) | RawKind::ScalarOp(_) | RawKind::Lambda(..) => raw.kind.clone(),
    };
    Raw { kind, span: raw.span }
}

/// A step of a derivation as written: the rule, its direction, and the result unless it is the right side.
struct RawStep {
    rule: String,
    back: bool,
    gives: Option<Raw>,
    span: Span,
}

/// The context in which the sides of a rule are read.
struct Sides<'a> {
    source: &'a Arc<Source>,
    span: Span,
    on: Option<&'a Ty>,
    /// Function variables with given types.
    functions: &'a [(String, FnTy)],
    lets: &'a [LetSize],
    names: Names<'a>,
    /// Whether the left side may be a variable alone, which the default set does not allow.
    free: bool,
}

impl Sides<'_> {
    fn read(&self, left: &Raw, right: &Raw, steps: &[RawStep]) -> Result<(Term, Term, Vec<Step>)> {
        let Sides { source, span, on, functions, lets, names, free } = *self;
        let (mut bound, mut used) = (IndexSet::new(), IndexSet::new());
        let (left, right) =
            (raw_metas(left, names, &mut bound), raw_metas(right, names, &mut used));
        if let Some(free) = used.iter().find(|n| !bound.contains(*n)) {
            return Err(Diagnostic::error(
                Code::RuleUnbound,
                format!("the right side mentions `{free}`, which the left side does not bind"),
            )
            .at(source, right.span, "the right side")
            .also(left.span, "the left side")
            .into());
        }
        let mut u = Unifier::default();
        let mut variables: IndexMap<String, FnTy> =
            bound.iter().map(|n| (n.clone(), FnTy::new(u.fresh_type(), u.fresh_type()))).collect();
        for (name, ty) in functions {
            let Some(known) = variables.get_mut(name) else {
                return Err(Diagnostic::error(
                    Code::RuleUnbound,
                    format!("the left side does not mention `{name}`, whose type is given"),
                )
                .at(source, left.span, "the left side")
                .into());
            };
            *known = ty.clone();
        }
        let context = Context { inputs: IndexMap::new(), variables: Some(variables) };
        let typed = |f: crate::diag::Failure| {
            let all = f.0.into_iter().map(|d| Diagnostic { code: Code::RuleType, ..d });
            crate::diag::Failure(all.collect())
        };
        let dom = on.cloned().unwrap_or_else(|| u.fresh_type());
        let l = text::infer(source, &left, &dom, &context, &mut u).map_err(typed)?;
        let before = l.open(source, &u).map_err(typed)?;
        let r = text::infer(source, &right, &dom, &context, &mut u).map_err(typed)?;
        if !u.unify(&l.cod, &r.cod) {
            return Err(Diagnostic::error(
                Code::RuleType,
                format!("the sides have the types `{}` and `{}`", u.ty(&l.cod), u.ty(&r.cod)),
            )
            .at(source, right.span, format!("gives `{}`", u.ty(&r.cod)))
            .also(left.span, format!("gives `{}`", u.ty(&l.cod)))
            .into());
        }
        let (lhs, rhs) = (l.open(source, &u).map_err(typed)?, r.open(source, &u).map_err(typed)?);
        // The right side must not narrow what the left side matches.
        if before != lhs {
            return Err(Diagnostic::error(
                Code::RuleType,
                "the right side holds only for some of the types that the left side matches",
            )
            .at(source, span, "here")
            .note(format!("left side as it stands: {} : {}", before, before.ty()))
            .note(format!("left side that the right side needs: {} : {}", lhs, lhs.ty()))
            .help("an `on` clause can say more of the argument's type")
            .into());
        }
        if !free && matches!(lhs.op(), Op::Meta(_)) {
            return Err(Diagnostic::error(Code::RuleLint, "the left side matches every term")
            .at(source, left.span, "a variable alone")
            .help("start from an operator; what introduces identities belongs in a named set of its own")
            .into());
        }
        // Every size and type of the right side comes from the left side or a `let`.
        let known = variables_of(&lhs);
        let made: IndexSet<&str> = lets.iter().map(|l| l.name.as_str()).collect();
        if let Some(free) = variables_of(&rhs)
            .into_iter()
            .find(|v| !known.contains(v) && !made.contains(v.as_str()))
        {
            return Err(Diagnostic::error(
                Code::RuleUnbound,
                format!("nothing on the left side determines `{}`", free.trim_start_matches('_')),
            )
            .at(source, right.span, "of the right side")
            .help("make it with `let`, or name it with an `on` clause")
            .into());
        }
        let mut derivation = vec![];
        for step in steps {
            let gives = match &step.gives {
                None => rhs.clone(),
                Some(raw) => {
                    let raw = raw_metas(raw, names, &mut used);
                    let middle =
                        text::infer(source, &raw, &dom, &context, &mut u).map_err(typed)?;
                    u.unify(&middle.cod, &l.cod);
                    middle.open(source, &u).map_err(typed)?
                }
            };
            if gives.ty() != lhs.ty() {
                let text = format!("this step gives `{}`, not `{}`", gives.ty(), lhs.ty());
                return Err(Diagnostic::error(Code::RuleType, text)
                    .at(source, step.span, "here")
                    .into());
            }
            derivation.push(Step { rule: step.rule.clone(), back: step.back, gives });
        }
        Ok((lhs, rhs, derivation))
    }
}

/// Returns the names of the size and type variables of a term.
pub(super) fn variables_of(t: &Term) -> IndexSet<String> {
    fn size(s: &Size, out: &mut IndexSet<String>) {
        s.visit(&mut |sym| {
            if let Sym::Meta(m) = sym {
                out.insert(m.to_string());
            }
        });
    }
    fn ty(t: &Ty, out: &mut IndexSet<String>) {
        match t {
            Ty::Unit | Ty::Scalar(_) => {}
            Ty::Meta(m) => {
                out.insert(m.to_string());
            }
            Ty::Vector(n, t) | Ty::Array(n, t) => {
                size(n, out);
                ty(t, out);
            }
            Ty::Pair(a, b) => {
                ty(a, out);
                ty(b, out);
            }
        }
    }
    let mut out = IndexSet::new();
    t.visit(&mut |t| {
        t.sizes().iter().for_each(|s| size(s, &mut out));
        t.tys().iter().for_each(|t| ty(t, &mut out));
    });
    ty(&t.ty().dom, &mut out);
    ty(&t.ty().cod, &mut out);
    out
}

/// Returns the names of the function variables of a term.
pub(super) fn functions_of(t: &Term) -> IndexSet<String> {
    let mut out = IndexSet::new();
    t.visit(&mut |t| {
        if let Op::Meta(m) = t.op() {
            out.insert(m.to_string());
        }
    });
    out
}

/// Splits a clause at the commas outside parentheses.
fn items(source: &Arc<Source>, c: &Clause) -> Vec<Range<usize>> {
    let mut out = vec![];
    let mut start = c.body.start;
    let mut depth = 0;
    let outside = |x: char| {
        depth += i32::from(x == '(') - i32::from(x == ')');
        x == ',' && depth == 0
    };
    for piece in source.text[c.body.clone()].split(outside) {
        out.push(start..start + piece.len());
        start += piece.len() + 1;
    }
    out
}

/// Reads `name : type -> type`, separated by commas.
fn read_functions(
    source: &Arc<Source>,
    c: &Clause,
    names: Names<'_>,
) -> Result<Vec<(String, FnTy)>> {
    let mut out = vec![];
    for range in items(source, c) {
        let fail = || {
            Diagnostic::error(Code::RuleParse, "expected `name : type -> type`").at(
                source,
                Span::new(range.start, range.end),
                "here",
            )
        };
        let piece = &source.text[range.clone()];
        let (colon, arrow) =
            piece.find(':').zip(piece.find("->")).filter(|(c, a)| c < a).ok_or_else(fail)?;
        let ty = |at: Range<usize>| text::parse_type(source, at).map(|t| names.ty(&t));
        let dom = ty(range.start + colon + 1..range.start + arrow)?;
        let cod = ty(range.start + arrow + 2..range.end)?;
        out.push((piece[..colon].trim().to_owned(), FnTy::new(dom, cod)));
    }
    Ok(out)
}

/// Reads `by RULE [back][: TERM]`, one for each line that starts with `by`.
fn read_steps(source: &Arc<Source>, c: &Clause) -> Result<Vec<RawStep>> {
    let text = &source.text[c.body.clone()];
    let mut starts = vec![];
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("by ") {
            starts.push(at + line.len() - line.trim_start().len());
        }
        at += line.len();
    }
    let fail = |span: Span| {
        Diagnostic::error(Code::RuleParse, "expected `by RULE: TERM` or `by RULE back: TERM`")
            .at(source, span, "here")
    };
    if starts.is_empty() {
        return Err(fail(Span::new(c.body.start, c.body.end)).into());
    }
    let mut out = vec![];
    for (i, start) in starts.iter().enumerate() {
        let end = starts.get(i + 1).copied().unwrap_or(text.len());
        let (start, end) = (c.body.start + start, c.body.start + end);
        let piece = &source.text[start..end];
        let span = Span::new(start, start + piece.trim_end().len());
        let head_len = piece.find(':').unwrap_or(piece.len());
        let words: Vec<&str> = piece[..head_len].split_whitespace().collect();
        let (rule, back) = match words.as_slice() {
            ["by", rule] => (*rule, false),
            ["by", rule, "back"] => (*rule, true),
            _ => return Err(fail(span).into()),
        };
        let gives = match head_len < piece.len() {
            true => Some(text::parse_term(source, start + head_len + 1..end)?),
            false if i + 1 == starts.len() => None,
            false => {
                return Err(fail(span).help("only the last step may leave out its term").into());
            }
        };
        out.push(RawStep { rule: rule.to_owned(), back, gives, span });
    }
    Ok(out)
}

fn read_lets(source: &Arc<Source>, c: &Clause, names: Names<'_>) -> Result<Vec<LetSize>> {
    let mut out: Vec<LetSize> = vec![];
    for range in items(source, c) {
        let fail = || {
            Diagnostic::error(Code::RuleParse, "expected `name = tile n`, `width n` or `round n`")
                .at(source, Span::new(range.start, range.end), "here")
        };
        let piece = &source.text[range.clone()];
        let (name, value) = piece.split_once('=').ok_or_else(fail)?;
        let word = value.split_whitespace().next().ok_or_else(fail)?;
        let maker = match word {
            "tile" => SizeMaker::Tile,
            "width" => SizeMaker::Width,
            "round" => SizeMaker::Round,
            _ => return Err(fail().into()),
        };
        let at = range.start + name.len() + 1 + value.find(word).unwrap_or(0) + word.len();
        let of = names.size(&text::parse_size(source, at..range.end)?);
        out.push(LetSize { name: name.trim().to_owned(), maker, of });
    }
    Ok(out)
}

fn read_conditions(source: &Arc<Source>, c: &Clause, names: Names<'_>) -> Result<Vec<Condition>> {
    let mut out = vec![];
    for range in items(source, c) {
        let piece = &source.text[range.clone()];
        let words: Vec<&str> = piece.split_whitespace().collect();
        let size = |w: &str| -> Result<Size> {
            let at = range.start + (w.as_ptr().addr() - piece.as_ptr().addr());
            Ok(names.size(&text::parse_size(source, at..at + w.len())?))
        };
        let condition = match words.as_slice() {
            ["tileable", n, k] => match k.parse() {
                Ok(k) => Some(Condition::Tileable(size(n)?, k)),
                Err(_) => None,
            },
            ["whole", n] => Some(Condition::Whole(size(n)?)),
            ["dimension", n] => Some(Condition::Dimension(size(n)?)),
            ["tile", n] => Some(Condition::Tile(size(n)?)),
            ["differ", n, m] => Some(Condition::Differ(size(n)?, size(m)?)),
            ["rounds", r, n] => Some(Condition::Rounds(size(r)?, size(n)?)),
            ["divides", k, n] => Some(Condition::Divides(size(k)?, size(n)?)),
            ["upto", n, k] => match k.parse() {
                Ok(k) => Some(Condition::UpTo(size(n)?, k)),
                Err(_) => None,
            },
            ["from", n, k] => match k.parse() {
                Ok(k) => Some(Condition::From(size(n)?, k)),
                Err(_) => None,
            },
            ["small", n] => Some(Condition::Small(size(n)?)),
            ["commutative", f] => Some(Condition::Commutative((*f).to_owned())),
            ["scalar", a] => Some(Condition::Scalar((*a).to_owned())),
            ["element", a] => Some(Condition::Element((*a).to_owned())),
            ["vectorisable", f] => Some(Condition::Vectorisable((*f).to_owned())),
            ["lanewise", f] => Some(Condition::Lanewise((*f).to_owned())),
            ["elementwise", f] => Some(Condition::Elementwise((*f).to_owned())),
            ["scans", f] => Some(Condition::Scans((*f).to_owned())),
            ["cheap", f] => Some(Condition::Cheap((*f).to_owned())),
            ["computes", f] => Some(Condition::Computes((*f).to_owned())),
            ["rearranges", f] => Some(Condition::Rearranges((*f).to_owned())),
            ["tiles", f] => Some(Condition::Tiles((*f).to_owned())),
            _ => None,
        };
        out.push(condition.ok_or_else(|| {
            let known: Vec<&str> = Condition::DOCUMENTED.iter().map(|d| d.0).collect();
            Diagnostic::error(Code::RuleParse, format!("unknown condition `{}`", piece.trim()))
                .at(source, Span::new(range.start, range.end), "here")
                .help(format!("conditions are: {}", known.join(", ")))
        })?);
    }
    Ok(out)
}
