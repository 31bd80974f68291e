//! `patsat rules doc`: prints the reference of the shipped rules (`docs/rules.md`), or checks that it is up to date.

use crate::cli::args::program;
use crate::cli::out::{Done, Out};
use crate::diag::{Code, Diagnostic, Exit};
use crate::rules::{Condition, Law, Library, Rule, papers};
use crate::saturate::Report;
use crate::session::generate::Generator;
use crate::session::{Float, Request, Session, read, rule_set};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The arguments of `patsat rules doc`.
#[derive(clap::Args)]
pub struct Args {
    /// Programs for the table of e-graph sizes, each with the rules to use: `FILE[:ENTRY][@SPEC]`.
    #[arg(value_name = "FILE[@SPEC]")]
    programs: Vec<String>,
    /// Compare with this file instead of printing; times may differ. Exit status 1: the file is out of date.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// The value of every size parameter.
    #[arg(long, default_value_t = 4096, value_name = "N")]
    size: u64,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let library = Library::shipped()?;
    let mut text = String::from(INTRODUCTION);
    // Writing to a string does not fail.
    let _ = rules(library, &mut text);
    let _ = of_the_papers(library, &mut text)?;
    if !args.programs.is_empty() {
        let _ = figures(args, &mut text)?;
    }
    let Some(path) = &args.check else {
        return out.raw(text.as_bytes());
    };
    let there = read(path)?;
    if timeless(&there.text) == timeless(&text) {
        return out.line(&format!("{} is up to date", path.display()));
    }
    let line = timeless(&there.text)
        .lines()
        .zip(timeless(&text).lines())
        .position(|(a, b)| a != b)
        .map_or_else(|| "at the end".to_owned(), |i| format!("first in line {}", i + 1));
    out.diagnostics(&[Diagnostic::error(
        Code::Outdated,
        format!("{} is out of date: it differs {line}", path.display()),
    )
    .help("`make docs` writes it anew")])?;
    Err(crate::cli::out::Stop::Exit(Exit::Check))
}

const INTRODUCTION: &str = "\
# Rules

Made by `make docs` (`patsat rules doc`) from `rules/`; not edited by hand.

A rule says that two functions are equal: `exact`, on every input and bit for bit (all NaNs count as one); `reassoc`, up to the order of
an associative operator (and a commutative one, where it says so); `approx`, up to rounding, and only with
`--float relaxed`. Names that are no operators are variables: of functions (`f`, `op`), sizes (`n`, `k`) and types (`a`).
A rule on a composition applies inside longer chains too. `patsat rules check` tests every rule against the
interpreter, and replays the derivation of a rule that follows from smaller ones.

";

type Written = Result<(), std::fmt::Error>;

fn rules(library: &Library, text: &mut String) -> Written {
    writeln!(text, "## Side conditions\n")?;
    for (usage, meaning) in Condition::DOCUMENTED {
        writeln!(text, "- `{usage}`: {meaning}")?;
    }
    writeln!(
        text,
        "\n`let t = tile n` makes the tunable that tiles `n`, `width n` a vector width along it, `round n` the\nlength `n` rounded up to its tiles."
    )?;
    writeln!(text, "\n## Sets\n")?;
    for name in library.sets() {
        let Some(set) = library.set(name) else { continue };
        let mut parts: Vec<&str> = vec![];
        for r in set.iter() {
            // Of a theme that is not in the set as a whole, families are.
            let whole = library
                .theme(&r.theme)
                .is_some_and(|t| t.iter().all(|r| set.get(&r.name).is_some()));
            let part = if whole { &r.theme } else { &r.family };
            if !parts.contains(&part.as_str()) {
                parts.push(part);
            }
        }
        let note =
            if name == "default" { ": what every command uses unless told otherwise" } else { "" };
        writeln!(text, "- `{name}` ({} rules: {}){note}", set.len(), parts.join(", "))?;
    }
    for theme in library.themes() {
        let Some(set) = library.theme(theme) else { continue };
        let Some(first) = set.iter().next() else { continue };
        writeln!(text, "\n## {theme} (set `{}`)\n", first.set)?;
        let mut seen: Vec<&str> = vec![];
        for r in set.iter() {
            if seen.contains(&r.family.as_str())
                || r.name.strip_suffix("-back").is_some_and(|n| set.get(n).is_some())
            {
                continue;
            }
            seen.push(&r.family);
            let family: Vec<&Rule> = set.iter().filter(|o| o.family == r.family).collect();
            one(r, &family, text)?;
        }
    }
    Ok(())
}

fn one(r: &Rule, family: &[&Rule], text: &mut String) -> Written {
    let law = match r.law {
        Law::Exact => "exact",
        Law::Reassoc => "up to the order of the operator",
        Law::Approx => "up to rounding",
    };
    let default = if r.set == "default" { "in the default set" } else { "not in the default set" };
    writeln!(text, "### `{}`\n\n{} ({law}; {default})\n\n    {}\n", r.family, r.says, r.statement)?;
    if family.len() > 1 || family.first().is_some_and(|f| f.name != f.family) {
        let numbers: Vec<&str> = family
            .iter()
            .filter_map(|f| f.name.strip_prefix(&r.family)?.strip_prefix('-'))
            .collect();
        writeln!(text, "- for {}", numbers.join(", "))?;
    }
    if !r.lets.is_empty() {
        let lets: Vec<String> = r.lets.iter().map(|l| format!("`{l}`")).collect();
        writeln!(text, "- with {}", lets.join(", "))?;
    }
    if !r.when.is_empty() {
        let when: Vec<String> = r.when.iter().map(|c| format!("`{c}`")).collect();
        writeln!(text, "- when {}", when.join(", "))?;
    }
    if let Some(needs) = &r.needs {
        writeln!(text, "- where the device has `{needs}`")?;
    }
    writeln!(text, "- from: {}", r.from)?;
    if let Some(example) = &r.example {
        writeln!(text, "- example: `{example}`")?;
    }
    if !r.derivation.is_empty() {
        writeln!(text, "- follows from smaller rules:\n\n      {}", r.lhs)?;
        for step in &r.derivation {
            let back = if step.back { ", right to left" } else { "" };
            writeln!(text, "      = {}    -- {}{back}", step.gives, step.rule)?;
        }
    }
    writeln!(text)
}

fn of_the_papers(library: &Library, text: &mut String) -> crate::diag::Result<Written> {
    let default = library.set("default").unwrap_or_default();
    let table = papers()?;
    Ok((|| {
        writeln!(text, "## The papers' rules\n")?;
        writeln!(
            text,
            "P: ICFP 2015, T: thesis, C: rules chapter, S: talk. Rules in **bold** are in the default set.\n"
        )?;
        writeln!(
            text,
            "| source | as published | here | what is different, and why |\n|---|---|---|---|"
        )?;
        for p in &table {
            let names: Vec<String> = p
                .rules
                .iter()
                .map(|r| match default.iter().any(|d| d.family == *r) {
                    true => format!("**{r}**"),
                    false => r.clone(),
                })
                .collect();
            let here = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            writeln!(text, "| {} | `{}` | {here} | {} |", p.source, p.states, p.why)?;
        }
        Ok(())
    })())
}

fn figures(args: &Args, text: &mut String) -> crate::diag::Result<Written> {
    let mut session = Session::new()?;
    // The number of nodes ends what does not saturate: it does not depend on the machine, as times do.
    session.limits.saturation_time = None;
    let mut rows: Vec<(String, String, Report)> = vec![];
    for item in &args.programs {
        let (file, spec) = item.split_once('@').unwrap_or((item, "default"));
        let rules = rule_set(&[Path::new(spec)], Float::Exact)?;
        let program = program(file, &rules)?;
        let mut request = Request { default: Some(Generator::Iota), ..Request::default() };
        for name in &program.entry.sizes {
            request.sizes.insert(name.clone(), args.size);
        }
        let report = session.figures(&rules, &program, &request)?;
        rows.push((file.to_owned(), spec.to_owned(), report));
    }
    Ok((|| {
        writeln!(text, "\n## Sizes of e-graphs\n")?;
        writeln!(text, "Times are of the machine on which this page was made.\n")?;
        writeln!(text, "| program | rules | e-nodes | e-classes | iterations | stopped | ms |")?;
        writeln!(text, "|---|---|---|---|---|---|---|")?;
        for (file, spec, r) in &rows {
            writeln!(
                text,
                "| {file} | `{spec}` | {} | {} | {} | {} | {:.0} |",
                r.nodes,
                r.classes,
                r.iterations.len(),
                r.stop_reason,
                r.ms
            )?;
        }
        Ok(())
    })())
}

/// Returns the text without the last column (the times) of its last table.
fn timeless(text: &str) -> String {
    let Some((before, table)) = text.split_once("\n## Sizes of e-graphs\n") else {
        return text.to_owned();
    };
    let cut = |line: &str| line.rsplitn(3, '|').last().unwrap_or(line).to_owned();
    let lines: Vec<String> = table.lines().map(cut).collect();
    format!("{before}\n{}", lines.join("\n"))
}
