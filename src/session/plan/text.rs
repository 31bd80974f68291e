//! Reads and prints the text of a plan: TOML, with comments for reviewers.

use super::{Plan, symbol};
use crate::calculus::size::Sym;
use crate::calculus::text::parse_size;
use crate::diag::{Code, Diagnostic, Result, Source, Span};
use crate::kernel::{DeviceLimits, Options};
use crate::session::program::Sizes;
use crate::tune::statistics::Summary;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;

/// Version of the layout.
const LAYOUT: u32 = 1;

/// The beginning of every plan.
pub(in crate::session) const HEAD: &str = "# patsat plan";

/// The longest line of a term, in columns.
const COLUMNS: usize = 100;

/// A bound above any limit of a device or option of the code generator, and far from overflow.
const MOST: usize = 1 << 40;

/// A bound above any number of iterations that are unrolled.
const MOST_UNROLLED: usize = 1 << 10;

/// A bound above the length of any array in registers.
const MOST_PRIVATE: usize = 1 << 14;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[expect(dead_code, reason = "looked at before the rest")]
    layout: u32,
    patsat: String,
    kernels: String,
    float: String,
    rules: String,
    skeleton: String,
    term: Spanned<String>,
    program: ProgramPart,
    sizes: IndexMap<String, u64>,
    tunables: IndexMap<String, Spanned<u64>>,
    device: DevicePart,
    time: TimePart,
    options: Spanned<Options>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramPart {
    file: String,
    entry: String,
    hash: String,
    types: String,
    term: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DevicePart {
    name: String,
    driver: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TimePart {
    predicted_us: f64,
    measured: Option<Summary>,
}

#[derive(Serialize)]
struct Printed<'a> {
    options: &'a Options,
}

#[derive(Serialize)]
struct PrintedTime<'a> {
    time: Times<'a>,
}

#[derive(Serialize)]
struct Times<'a> {
    predicted_us: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<&'a Summary>,
}

pub(super) fn parse(source: &Arc<Source>) -> Result<Plan> {
    let wrong = |message: String, span: Option<Range<usize>>| {
        let d = Diagnostic::error(Code::BadPlan, "the plan cannot be read");
        let d = match span {
            Some(s) => d.at(source, Span::new(s.start, s.end), message),
            None => d.note(format!("{}: {message}", source.name)),
        };
        d.help("`patsat optimize FILE -o PLAN` writes one")
    };
    // The layout is read first: for a file of another layout, errors about unknown fields would be useless.
    #[derive(Deserialize)]
    struct Head {
        layout: Spanned<u32>,
    }
    let head: Head =
        toml::from_str(&source.text).map_err(|e| wrong(e.message().to_owned(), e.span()))?;
    if *head.layout.get_ref() != LAYOUT {
        let message = format!("this patsat reads layout {LAYOUT}");
        return Err(wrong(message, Some(head.layout.span())).into());
    }
    let file: File =
        toml::from_str(&source.text).map_err(|e| wrong(e.message().to_owned(), e.span()))?;
    // The term must stand in the file verbatim, so that its diagnostics have a place there.
    let span = file.term.span();
    let at = source.text.get(span.clone()).and_then(|t| t.find(file.term.get_ref().as_str()));
    let Some(at) = at else {
        return Err(wrong("this must be a literal string: '''TERM'''".into(), Some(span)).into());
    };
    let place = span.start + at..span.start + at + file.term.get_ref().trim_end().len();
    let mut tunables: Vec<(Sym, u64, Range<usize>)> = vec![];
    for (name, value) in &file.tunables {
        let (n, span) = (*value.get_ref(), value.span());
        let size = parse_size(&Source::new("a tunable", name.as_str()), 0..name.len());
        let sym = size.ok().as_ref().and_then(symbol);
        let right = match &sym {
            Some(Sym::Tile(_)) => (1..=MOST as u64).contains(&n),
            // The size 0 rounds up to 0.
            Some(Sym::Round(_)) => (0..=MOST as u64).contains(&n),
            // The vector widths of OpenCL.
            Some(Sym::Width(_)) => [1, 2, 4, 8, 16].contains(&n),
            Some(Sym::Dim(_) | Sym::Meta(_)) | None => {
                return Err(wrong(format!("`{name}` is no tunable"), Some(span)).into());
            }
        };
        match sym {
            Some(sym) if right => {
                // Different names may mean the same symbol, since blanks and parentheses vary.
                if let Some((.., other)) = tunables.iter().find(|(other, ..)| *other == sym) {
                    let later = if other.start > span.start { other.clone() } else { span };
                    return Err(wrong(format!("`{sym}` has a value already"), Some(later)).into());
                }
                tunables.push((sym, n, span));
            }
            _ => return Err(wrong(format!("`{name}` cannot be {n}"), Some(span)).into()),
        }
    }
    let options = file.options.get_ref();
    if numbers(options).any(|n| n > MOST) {
        let message = "no device has limits this high".to_owned();
        return Err(wrong(message, Some(file.options.span())).into());
    }
    // These options determine the length of the kernels.
    if options.unroll > MOST_UNROLLED || options.private_elements > MOST_PRIVATE {
        let message =
            format!("`unroll` is at most {MOST_UNROLLED}, and `private_elements` {MOST_PRIVATE}");
        return Err(wrong(message, Some(file.options.span())).into());
    }
    let sizes: Sizes = file.sizes;
    Ok(Plan {
        source: source.clone(),
        version: file.patsat,
        kernels: file.kernels,
        float: file.float,
        rules: file.rules,
        file: file.program.file,
        entry: file.program.entry,
        program: file.program.hash,
        normal: flat(&file.program.term),
        types: file.program.types,
        sizes,
        device: file.device.name,
        driver: file.device.driver,
        measured: file.time.measured,
        predicted_us: file.time.predicted_us,
        term: (flat(file.term.get_ref()), place),
        skeleton: file.skeleton,
        tunables,
        options: file.options.into_inner(),
    })
}

/// Returns every number in the options.
fn numbers(o: &Options) -> impl Iterator<Item = usize> {
    let DeviceLimits {
        max_work_group_size,
        max_item_sizes,
        local_mem_bytes,
        sub_group,
        compute_units,
        access_bytes,
        atomics_64: _,
        halves: _,
        copies_ahead: _,
        resident_groups,
    } = o.device;
    [
        [o.private_elements, o.unroll, o.global_group],
        [max_work_group_size, local_mem_bytes, sub_group],
        [compute_units, access_bytes, resident_groups],
        max_item_sizes,
    ]
    .into_iter()
    .flatten()
}

/// Returns a term on one line.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Breaks a term into lines: one for each function of the outermost composition. Lines that are too long are broken at
/// the compositions inside.
pub fn laid_out(term: &str) -> String {
    const DOT: &str = " . ";
    let (mut out, mut depth, mut line) = (String::new(), 0usize, 0usize);
    let mut rest = term;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(DOT) {
            let next = after.find(DOT).unwrap_or(after.len());
            if depth == 0 || line + DOT.len() + next > COLUMNS {
                let indent = 2 * depth;
                out.push_str(&format!("\n{:indent$}. ", ""));
                line = indent + 2;
            } else {
                out.push_str(DOT);
                line += DOT.len();
            }
            rest = after;
            continue;
        }
        let Some(c) = rest.chars().next() else { break };
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        out.push(c);
        line += 1;
        rest = &rest[c.len_utf8()..];
    }
    out
}

pub(super) fn print(p: &Plan) -> Result<String> {
    let failed =
        |what: &str| Diagnostic::error(Code::Internal, format!("no text of a plan: {what}"));
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let literal = |term: &str| match term.contains("'''") {
        true => Err(failed("three primes in a row")),
        false => Ok(format!("'''\n{}\n'''", laid_out(term))),
    };
    let table = |pairs: Vec<(String, u64)>| -> String {
        let line = |(name, n): (String, u64)| {
            let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            let name = if plain && !name.is_empty() { name } else { quoted(&name) };
            format!("{name} = {n}\n")
        };
        pairs.into_iter().map(line).collect()
    };
    let sizes = table(p.sizes.iter().map(|(n, v)| (n.clone(), *v)).collect());
    let mut tunables: Vec<_> = p.tunables.iter().map(|(s, v, _)| (s.to_string(), *v)).collect();
    // Sorted by printed name: the order in `p` is that of the file, where names may be written in other ways.
    tunables.sort();
    let tunables = table(tunables);
    let time = Times { predicted_us: p.predicted_us, measured: p.measured.as_ref() };
    let time = toml::to_string(&PrintedTime { time }).map_err(|e| failed(&e.to_string()))?;
    let options = toml::to_string(&Printed { options: &p.options });
    let options = options.map_err(|e| failed(&e.to_string()))?;
    Ok(format!(
        "{HEAD}: kernels that `patsat optimize` found for a program at given sizes, on a device.
# `patsat run FILE --plan THIS` and `patsat emit FILE --plan THIS -o FOLDER` make the same again, without a search.
layout = {LAYOUT}
patsat = {version}
# Hash of the kernels' source and the host plan.
kernels = {kernels}
# Which arithmetic may have been changed, and the hash of the rules that did it.
float = {float}
rules = {rules}
skeleton = {skeleton}
# The low-level term that the kernels compute.
term = {term}

[program]
file = {file}
entry = {entry}
hash = {hash}
types = {types}
# The program as a term, before rewriting.
term = {normal}

[sizes]
{sizes}
# Tiles (.t), widths of vectors (.v), and sizes rounded up to multiples of their tiles (^).
[tunables]
{tunables}
# Where it was found.
[device]
name = {device}
driver = {driver}

# In microseconds: by the cost model, and by the clock when it was measured.
{time}
# What else decides the kernels: limits of that device, and budgets of the code generator.
{options}",
        version = quoted(&p.version),
        kernels = quoted(&p.kernels),
        float = quoted(&p.float),
        rules = quoted(&p.rules),
        skeleton = quoted(&p.skeleton),
        term = literal(&p.term.0)?,
        file = quoted(&p.file),
        entry = quoted(&p.entry),
        hash = quoted(&p.program),
        types = quoted(&p.types),
        normal = literal(&p.normal)?,
        device = quoted(&p.device),
        driver = quoted(&p.driver),
    ))
}
