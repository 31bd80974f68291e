//! Tests many rules and their derivations, on all cores.

use super::{Check, Outcome, check, diagnostic, place};
use crate::diag::{Code, Diagnostic, Result};
use crate::rules::derivation::replay;
use crate::rules::{Law, Rule, RuleSet};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Stack of a testing thread in bytes: terms of long derivations are deep.
const STACK: usize = 32 << 20;

/// The result of testing a rule and its derivation.
#[derive(Clone, Debug)]
pub struct Tested {
    /// The result of its instances.
    pub outcome: Outcome,
    /// The error in the rule or its derivation.
    pub wrong: Option<Diagnostic>,
}

/// Tests rules and their derivations; `all` has the rules that derivations name. `each` gets the results in
/// the order of the rules.
///
/// # Errors
/// The first error of `each`, which ends the tests.
pub fn check_all<E>(
    rules: &[&Rule],
    all: &RuleSet,
    how: Check,
    mut each: impl FnMut(&Rule, Tested) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let next = AtomicUsize::new(0);
    let (send, found) = mpsc::channel();
    let threads = thread::available_parallelism().map_or(1, usize::from).min(rules.len());
    let work = &|send: mpsc::Sender<(usize, Tested)>| {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(rule) = rules.get(i) else { break };
            if send.send((i, tested(rule, all, how))).is_err() {
                break;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            let theirs = send.clone();
            let builder = thread::Builder::new().stack_size(STACK);
            if builder.spawn_scoped(scope, move || work(theirs)).is_err() {
                // The system has no more threads, so this thread takes part in the work.
                work(send.clone());
            }
        }
        drop(send);
        let mut waiting = BTreeMap::new();
        let mut told = 0;
        for (i, tested) in found {
            waiting.insert(i, tested);
            while let Some(tested) = waiting.remove(&told) {
                each(rules[told], tested)?;
                told += 1;
            }
        }
        Ok(())
    })
}

fn tested(rule: &Rule, all: &RuleSet, how: Check) -> Tested {
    let outcome = check(rule, how);
    let wrong = diagnostic(rule, &outcome)
        .or_else(|| derivation(rule, all, how).err().and_then(|f| f.0.into_iter().next()));
    Tested { outcome, wrong }
}

/// Replays a rule's derivation, and tests that the left side equals the result of each step under the laws of
/// the steps so far: a step may match and still have no value at sizes that its rule excludes.
///
/// # Errors
/// [`Code::StepFails`] for the first step that does not hold.
pub fn derivation(rule: &Rule, all: &RuleSet, how: Check) -> Result<()> {
    replay(rule, all)?;
    let tested = rule.stand_in.as_deref().unwrap_or(rule);
    let mut law = Law::Exact;
    // The last step gives the right side, which is tested with the rule itself.
    let steps = tested.derivation.len().saturating_sub(1);
    for (i, step) in tested.derivation.iter().take(steps).enumerate() {
        law = all.get(&step.rule).map_or(law, |r| law.max(r.law));
        let so_far = Rule { law, rhs: step.gives.clone(), derivation: vec![], ..tested.clone() };
        // Fewer instances suffice: each is also an instance of the steps after it.
        let fewer = Check { instances: how.instances.div_ceil(8), ..how };
        if let Outcome::Broken(c) = check(&so_far, fewer) {
            let text = format!("step {} of the derivation of `{}` does not hold", i + 1, rule.name);
            let mut d = Diagnostic::error(Code::StepFails, text).at(
                &rule.source,
                place(rule),
                "the left side is not equal to what the step gives",
            );
            for line in c.lines() {
                d = d.note(line);
            }
            return Err(d.help("correct the step, or say with `when` where the rule holds").into());
        }
    }
    Ok(())
}
