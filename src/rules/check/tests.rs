//! The shipped rules hold, and planted ones that do not are shown wrong.

use super::*;
use crate::diag::Source;
use crate::rules::Library;

#[test]
fn the_shipped_rules_hold() {
    for rule in Library::shipped().unwrap().all().iter() {
        let outcome = check(rule, Check::default());
        if let Some(d) = diagnostic(rule, &outcome) {
            panic!("{d}\n{}", d.notes.join("\n"));
        }
    }
}
