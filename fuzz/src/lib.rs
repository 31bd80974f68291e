//! What each fuzz target does with one input. `tests/fuzz.rs` includes this file, so that `make test` does the same.
//!
//! Every function panics when patsat breaks a promise: no text makes it panic, an error is never a bug of patsat's
//! own (`Code::Internal`), and what is printed is read back as the same.

use patsat::calculus::elaborate::{Program, elaborate};
use patsat::calculus::text::{Context, parse_type, read_term};
use patsat::device::cost_model::CostModel;
use patsat::diag::{Code, Diagnostic, Failure, Limits, Source};
use patsat::lang;
use patsat::rules::RuleSet;
use patsat::session::{futhark, npy, plan::Plan};
use patsat::tune::store::Dump;
use patsat::tune::worker;
use std::sync::Arc;

/// A name, and what is done with an input.
pub type Target = (&'static str, fn(&[u8]));

/// The targets.
pub const TARGETS: [Target; 10] = [
    ("program", program),
    ("formatter", formatter),
    ("term", term),
    ("rules", rules),
    ("plan", plan),
    ("cost_model", cost_model),
    ("npy", npy),
    ("futhark", futhark),
    ("store", store),
    ("frame", frame),
];

fn source(data: &[u8]) -> Arc<Source> {
    Source::new("fuzz", String::from_utf8_lossy(data))
}

/// What is reported of a text: not too much, no bug, and about places in the text.
fn sound(source: &Source, diagnostics: &[Diagnostic]) {
    assert!(diagnostics.len() <= Limits::DEFAULT.diagnostics, "{} diagnostics", diagnostics.len());
    for d in diagnostics {
        assert_ne!(d.code, Code::Internal, "{d}: {:?}", d.notes);
        assert!(!d.message.is_empty());
        for label in &d.labels {
            assert!(source.text.get(label.span.range()).is_some(), "{d}: {:?}", label.span);
        }
    }
}

fn refused(source: &Source, failure: &Failure) {
    assert!(!failure.0.is_empty());
    sound(source, &failure.0);
}

/// The entries of a program as terms, each at a small size.
fn terms(source: &Arc<Source>) -> Vec<Result<Program, Vec<Code>>> {
    let (entries, diagnostics) = lang::check(source);
    sound(source, &diagnostics);
    let mut found = vec![];
    for entry in &entries {
        let (general, _) = lang::check_entry_general(source, Some(&entry.name), true)
            .expect("an entry that checks has general sizes");
        for entry in [entry, &general] {
            let sizes = entry.sizes.iter().map(|n| (n.clone(), 4)).collect();
            let program = elaborate(entry, &sizes);
            if let Err(failure) = &program {
                refused(source, failure);
            }
            found.push(program.map_err(|f| f.0.iter().map(|d| d.code).collect()));
        }
    }
    found
}

/// Parser, checker and elaboration.
pub fn program(data: &[u8]) {
    terms(&source(data));
}

/// The formatter changes no program, and nothing the second time.
pub fn formatter(data: &[u8]) {
    let source = source(data);
    match lang::format(&source) {
        Err(failure) => refused(&source, &failure),
        Ok(once) => {
            let formatted = Source::new("fuzz", once.as_str());
            let twice = lang::format(&formatted).expect("what the formatter writes");
            assert_eq!(once, twice);
            assert_eq!(terms(&source), terms(&formatted));
        }
    }
}

/// Terms: the type of the argument on the first line, then the term.
pub fn term(data: &[u8]) {
    let text = source(data);
    let (ty, term) = text.text.split_once('\n').unwrap_or(("[n]f32", &text.text));
    let ty = Source::new("type", ty);
    let dom = match parse_type(&ty, 0..ty.text.len()) {
        Ok(dom) => dom,
        Err(failure) => return refused(&ty, &failure),
    };
    let context = Context::default();
    let term = Source::new("term", term);
    match read_term(&term, &dom, &context) {
        Err(failure) => refused(&term, &failure),
        Ok(read) => {
            // A chain in a chain is printed as one, so that the terms may differ in how they nest.
            let printed = Source::new("printed", read.to_string());
            let again =
                read_term(&printed, &dom, &context).map(|t| (t.to_string(), t.ty().clone()));
            assert_eq!(again.ok(), Some((printed.text.clone(), read.ty().clone())));
        }
    }
}

/// Rule files.
pub fn rules(data: &[u8]) {
    let source = source(data);
    let mut set = RuleSet::default();
    if let Err(failure) = set.add(&source, "fuzz") {
        refused(&source, &failure);
    }
}

/// Plans.
pub fn plan(data: &[u8]) {
    let source = source(data);
    match Plan::parse(&source) {
        Err(failure) => refused(&source, &failure),
        Ok(plan) => {
            let text = plan.to_text().expect("a plan that was read has a text");
            let again = Plan::parse(&Source::new("again", text.as_str())).expect("a plan's text");
            assert_eq!(again.to_text().ok(), Some(text));
        }
    }
}

/// Cost models.
pub fn cost_model(data: &[u8]) {
    let source = source(data);
    match CostModel::parse(&source) {
        Err(failure) => refused(&source, &failure),
        Ok(model) => {
            let text = model.to_toml().expect("a model that was read has a text");
            let again = CostModel::parse(&Source::new("again", text.as_str()));
            assert_eq!(again.expect("a model's text").to_toml().ok(), Some(text));
        }
    }
}

/// Arrays.
pub fn npy(data: &[u8]) {
    match npy::parse(data, "fuzz") {
        Err(failure) => refused(&Source::new("", ""), &failure),
        Ok(array) => assert_eq!(array.shape.iter().product::<usize>(), array.data.len()),
    }
}

/// Values of Futhark. Those that are read are the same after they were written and read again.
pub fn futhark(data: &[u8]) {
    let values = match futhark::parse(data, "fuzz") {
        Err(failure) => return refused(&Source::new("", ""), &failure),
        Ok(values) => values,
    };
    let text = |values: &[npy::NpyArray]| {
        let mut text = vec![];
        futhark::write_to(&mut text, values).expect("memory");
        text
    };
    let written = text(&values);
    let again = futhark::parse(&written, "again").expect("values that were written");
    // All NaN are written in one way.
    assert_eq!(text(&again), written);
}

/// Exports of stores.
pub fn store(data: &[u8]) {
    let source = source(data);
    match Dump::parse(&source) {
        Err(failure) => refused(&source, &failure),
        Ok(dump) => {
            let text = dump.text().expect("an export has a text");
            let again = Dump::parse(&Source::new("again", text)).expect("an export's text");
            assert_eq!(again, dump);
        }
    }
}

/// A stream of frames between the worker and its parent.
pub fn frame(data: &[u8]) {
    // Each has a mark, two lengths and a header.
    let (requests, replies) = worker::read_frames(data);
    assert!(requests.max(replies) * 20 <= data.len());
}
