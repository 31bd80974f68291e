//! The shipped rules hold, and planted ones that do not are shown wrong.

use super::*;
use crate::diag::Source;
use crate::rules::RuleSet;

#[test]
fn the_shipped_rules_hold() {
    let set = RuleSet::shipped().unwrap();
    for rule in set.iter() {
        let outcome = check(rule, Check::default());
        if let Some(d) = diagnostic(rule, &outcome) {
            panic!("{d}\n{}", d.notes.join("\n"));
        }
    }
}
