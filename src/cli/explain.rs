//! `patsat explain`: prints the derivation of a term from a program.

use super::args::{DataArgs, MEASURING, SEARCH, SessionArgs, program};
use super::html;
use super::interrupt;
use super::out::{Done, Out, Stop};
use super::output::{ForceArg, Output};
use super::progress::Progress;
use super::report::sizes;
use super::why_not;
use crate::diag::{Code, Diagnostic, Exit};
use crate::saturate::explain::{Direction, Part, Step, StepLaw};
use crate::session::files::Kind;
use crate::session::generate::Generator;
use crate::session::{Device, Explained, Replay, Round, replay};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The arguments of `patsat explain`.
#[derive(clap::Args)]
#[command(
    after_help = "Without `--device`, the cost model of a generic CPU chooses the term and nothing is measured. \
Each step is re-checked on terms, without the e-graph: the rule is matched anew and its side conditions are \
evaluated; `--check` also evaluates the terms. Exit status 1: a step failed its check."
)]
pub struct Args {
    /// The program, or the code of an error, such as `E0310`.
    #[arg(value_name = "FILE[:ENTRY]|CODE")]
    program: String,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    session: SessionArgs,
    /// Explain this term instead of the best one.
    #[arg(long, value_name = "TEXT")]
    term: Option<String>,
    /// Evaluate every step in the interpreter, on random inputs at small sizes.
    #[arg(long)]
    check: bool,
    /// Also write the derivation as a self-contained HTML page.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    force: ForceArg,
    /// Instead, show where a rule applied or came nearest to applying, and what was missing there.
    #[arg(long, value_name = "RULE", conflicts_with_all = ["term", "check", "html"])]
    why_not: Option<String>,
}

/// Prints what the code of a diagnostic means.
fn meaning(code: Code, out: &mut Out) -> Done {
    let exit = code.exit();
    out.event(
        "code",
        json!({"code": code.as_str(), "meaning": code.meaning(), "exit": exit as u8}),
    )?;
    out.line(&format!("{code}: {}", code.meaning()))?;
    // Warnings do not end a command.
    match code.as_str().starts_with('W') {
        true => Ok(()),
        false => out.line(&format!("exit status {}: {}", exit as u8, exit.meaning())),
    }
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    if let Some(code) = Code::ALL.iter().find(|c| c.as_str().eq_ignore_ascii_case(&args.program)) {
        return meaning(*code, out);
    }
    let mut session = args.session.session()?;
    // A default says which device kernels are for, and here none are needed.
    if !args.session.has("--device") {
        session.device = Device::None;
    }
    if args.term.is_some() {
        let why = "`--term` says which term is explained: nothing is searched or measured";
        args.session.refuse(&[&SEARCH[..], &MEASURING[..]].concat(), why)?;
    }
    args.session.refuse_unmeasured(&session.device)?;
    let rule = args.why_not.as_ref().map(|name| why_not::rule(name, &args.session.rules));
    let rule = rule.transpose()?;
    let program = program(&args.program, &session.rules)?;
    // Only the check depends on the data, so missing inputs are generated.
    let request = args.data.request(&program, Some(Generator::Normal))?;
    let inputs = [vec![PathBuf::from(&program.source.name)], args.data.files()].concat();
    let page = args.html.as_ref();
    let page = page.map(|path| Output::new(path, Kind::Page, &inputs, args.force.force, out));
    let page = page.transpose()?;
    let interrupt = interrupt::listen()?;
    let mut progress = Progress::new(out, interrupt, program.entry.name.clone());
    if let Some(rule) = rule {
        let found = session.why_not(&program, &request, &rule, why_not::BEST, &mut progress);
        progress.finish();
        return why_not::tell(&rule, &found?, out);
    }
    let explained = session.explain(&program, &request, args.term.as_deref(), &mut progress);
    let replayed = explained.and_then(|e| {
        let replayed = args.check.then(|| replay(&program, &request, &e.derivation)).transpose()?;
        Ok((e, replayed))
    });
    progress.finish();
    let (e, replayed) = replayed?;
    head(&e, out)?;
    for (i, s) in e.derivation.steps.iter().enumerate() {
        step(i, s, replayed.as_ref(), out)?;
    }
    result(&e, replayed.as_ref(), out)?;
    if let Some(page) = &page {
        page.write_text(out, &html::page(&e, replayed.as_ref()))?;
        out.event("html", json!({"file": page.name()}))?;
    }
    if e.interrupted {
        let text = "interrupted; the term is the best so far";
        out.diagnostics(&[Diagnostic::warning(Code::Interrupted, text)])?;
        return Err(Stop::Exit(Code::Interrupted.exit()));
    }
    if args.check {
        let failed: Vec<Diagnostic> = failures(&e, replayed.as_ref());
        out.diagnostics(&failed)?;
        if !failed.is_empty() {
            return Err(Stop::Exit(Exit::Check));
        }
    }
    Ok(())
}

/// Returns a diagnostic for each step that does not hold.
fn failures(e: &Explained, replayed: Option<&Replay>) -> Vec<Diagnostic> {
    let mut out = vec![];
    for (i, s) in e.derivation.steps.iter().enumerate() {
        let text = format!("step {}, {}, does not hold", i + 1, s.rule);
        let mut d = Diagnostic::error(Code::StepFails, text);
        let check = replayed.and_then(|r| r.steps.get(i)).filter(|c| !c.ok);
        if let Some(c) = check {
            d = d.note(format!("in the interpreter: {}", c.says));
        }
        if !s.matched {
            d = d.note("the rule does not match there");
        }
        for c in s.conditions.iter().filter(|c| !c.holds) {
            d = d.note(format!("{} fails: {}", c.condition, c.values));
        }
        if check.is_some() || !s.holds() {
            out.push(d.note(format!("the rule: {}", s.statement)));
        }
    }
    out
}

fn head(e: &Explained, out: &mut Out) -> Done {
    let d = &e.derivation;
    out.event(
        "derivation",
        json!({
            "program": e.file, "entry": e.entry, "sizes": e.sizes, "device": e.device.label(),
            "rules": e.rules, "float": e.float.name(), "start": d.start.to_string(),
            "goal": d.goal().to_string(), "steps": d.steps.len(),
        }),
    )?;
    out.line(&format!("{} {} ({})", e.entry, sizes(&e.sizes), e.file))?;
    out.line(&format!("rules      {}, float {}", e.rules, e.float.name()))?;
    out.line(&format!(
        "e-graph    {} nodes in {} classes, {}",
        e.report.nodes, e.report.classes, e.report.stop_reason
    ))?;
    if let Some(best) = &e.best {
        let how = if best.summary.is_some() { "measured" } else { "by the cost model alone" };
        out.line(&format!("term       the best for {}, {how}", e.device.label()))?;
    }
    let steps = d.steps.len();
    let plural = if steps == 1 { "" } else { "s" };
    out.line(&format!("derivation {steps} step{plural}, {}", holding(e)))?;
    out.line("\nprogram")?;
    out.line(&format!("  {}", d.start))
}

/// Returns how many steps hold, in words.
pub fn holding(e: &Explained) -> String {
    let failing = e.derivation.steps.iter().filter(|s| !s.holds()).count();
    match failing {
        _ if e.derivation.steps.is_empty() => "the program is the term already".to_owned(),
        0 => "each confirmed on terms".to_owned(),
        n => format!("{n} of them not confirmed on terms"),
    }
}

/// Returns the sizes of a rule whose names differ from those of the program.
pub fn bindings(s: &Step) -> Vec<String> {
    let new = s.sizes.iter().filter(|(n, v)| *n != v.to_string());
    new.map(|(n, v)| format!("{n} = {v}")).collect()
}

/// Returns the law of a step with its direction.
pub fn law(s: &Step) -> String {
    match s.direction {
        Direction::Forwards => s.law.to_string(),
        Direction::Backwards => format!("{}, from right to left", s.law),
    }
}

fn shown(part: &Part) -> String {
    if part.is_whole() { part.term.to_string() } else { part.marked("«", "»") }
}

fn step(i: usize, s: &Step, replayed: Option<&Replay>, out: &mut Out) -> Done {
    let check = replayed.and_then(|r| r.steps.get(i));
    let mut fields = json!(s);
    fields["index"] = json!(i + 1);
    fields["holds"] = json!(s.holds());
    fields["check"] = json!(check);
    out.event("step", fields)?;
    out.line(&format!("\n{}. {} ({}): {}", i + 1, s.rule, law(s), s.says))?;
    let mut line = |what: &str, text: &str| out.line(&format!("   {what:<6} {text}"));
    if s.law != StepLaw::Choice {
        line("place", &s.place)?;
    }
    let bound = bindings(s);
    if !bound.is_empty() {
        line("sizes", &bound.join(", "))?;
    }
    if !s.matched {
        line("FAILS", "the rule does not match there")?;
    }
    for c in &s.conditions {
        let what = if c.holds { "holds" } else { "FAILS" };
        line(what, &format!("{}: {}", c.condition, c.values))?;
    }
    if let Some(c) = check {
        line(if c.ok { "check" } else { "FAILS" }, &c.says)?;
    }
    if s.law != StepLaw::Choice {
        line("from", &shown(&s.before))?;
    }
    line("to", &shown(&s.after))
}

/// Returns the sizes of a round, such as `n=12 m=3 with n.t0=4`.
pub fn round(r: &Round) -> String {
    let tunables: Vec<String> = r.tunables.iter().map(|(n, v)| format!("{n}={v}")).collect();
    match tunables.is_empty() {
        true => sizes(&r.sizes),
        false => format!("{} with {}", sizes(&r.sizes), tunables.join(" ")),
    }
}

fn result(e: &Explained, replayed: Option<&Replay>, out: &mut Out) -> Done {
    let tunables = e.best.as_ref().map(|b| b.variant.tunables());
    let fields = json!({
        "program": e.file, "entry": e.entry, "steps": e.derivation.steps.len(),
        "goal": e.derivation.goal().to_string(), "holds": e.derivation.holds(),
        "tunables": tunables, "checked": replayed.map(Replay::ok),
        "rounds": replayed.map(|r| &r.rounds),
    });
    out.event("result", Value::clone(&fields))?;
    let Some(r) = replayed else { return Ok(()) };
    out.line(&format!("\nchecked at {}", r.rounds.iter().map(round).collect::<Vec<_>>().join("; ")))
}
