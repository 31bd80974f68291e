//! Rewrite rules as data: rule files, typed sides, side conditions, tests of rules, the shipped sets.
//! Independent of egg.

mod bindings;
pub mod check;
mod condition;
pub mod derivation;
mod facts;
mod file;
pub mod lint;
pub mod matching;
mod papers;
mod rule;
mod set;

pub use bindings::Bindings;
pub use condition::{Condition, LetSize, SizeMaker, can_tile, can_unroll, divides, round_up};
pub use facts::Facts;
pub use papers::{PaperRule, papers};
pub use rule::{Law, Rule, Step};
pub use set::{Library, RuleSet};

use crate::diag::{Code, Diagnostic, Result};

/// Capabilities that a rule may need of a device, beyond the standard.
pub const CAPABILITIES: &[&str] =
    &["nontemporal", "subgroups", "products", "products_f16", "products_bf16", "products_i8"];

/// Checks that the left side binds every name in a rule's conditions and `let`s.
fn condition_names_bound(rule: &Rule) -> Result<()> {
    let (mut known, functions) = (file::variables_of(&rule.lhs), file::functions_of(&rule.lhs));
    let unbound = |name: &str| {
        Diagnostic::error(
            Code::RuleUnbound,
            format!("rule `{}`: nothing binds `{name}`", rule.name),
        )
        .at(&rule.source, rule.span, "the left side does not mention it")
        .into()
    };
    let size_bound = |s: &crate::calculus::size::Size, known: &indexmap::IndexSet<String>| {
        let mut missing = None;
        s.visit(&mut |sym| {
            if let crate::calculus::size::Sym::Meta(m) = sym
                && !known.contains(&**m)
            {
                missing = Some(m.to_string());
            }
        });
        missing.map_or(Ok(()), |m| Err(unbound(&m)))
    };
    for l in &rule.lets {
        size_bound(&l.of, &known)?;
        known.insert(l.name.clone());
    }
    for c in &rule.when {
        c.sizes().into_iter().try_for_each(|n| size_bound(n, &known))?;
        if let Some(a) = c.ty().filter(|a| !known.contains(*a)) {
            return Err(unbound(a));
        }
        if let Some(f) = c.function().filter(|f| !functions.contains(*f)) {
            return Err(unbound(f));
        }
    }
    Ok(())
}
