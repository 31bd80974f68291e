//! The index of the functions of the language, read from its manual: what is said of a function stands in one place.

use std::collections::BTreeMap;
use std::sync::LazyLock;

const MANUAL: &str = include_str!("../../docs/language.md");

/// What the manual says of a function.
#[derive(Clone, Debug)]
pub struct About {
    /// Its type; several, separated by commas, where a row is about several functions.
    pub ty: &'static str,
    /// What it computes, and the laws that it assumes.
    pub meaning: &'static str,
    /// What it costs.
    pub cost: &'static str,
}

static INDEX: LazyLock<BTreeMap<&str, About>> = LazyLock::new(|| {
    let (_, index) = MANUAL.split_once("\n## Index\n").unwrap_or_default();
    let index = index.split("\n## ").next().unwrap_or_default();
    let mut found = BTreeMap::new();
    let mut last = "";
    for row in index.lines() {
        let mut cells = row.trim_matches('|').split(" | ").map(str::trim);
        let (Some(names), Some(ty), Some(meaning), Some(cost)) =
            (cells.next(), cells.next(), cells.next(), cells.next())
        else {
            continue;
        };
        let ty = if ty == "the same" { last } else { ty };
        last = ty;
        for name in names.split('`').skip(1).step_by(2) {
            found.insert(name, About { ty, meaning, cost });
        }
    }
    found
});

/// Returns what the manual says of a function of the language, whose name may have that of a type in front.
pub fn about(name: &str) -> Option<&'static About> {
    let member = name.split_once('.').map(|(_, member)| member);
    let constant = member.map(|member| format!("f32.{member}"));
    INDEX.get(name).or_else(|| INDEX.get(constant?.as_str())).or_else(|| INDEX.get(member?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang;

    #[test]
    fn every_function_is_in_the_index() {
        let missing: Vec<_> = lang::functions().filter(|f| about(f).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?}");
        let of = |name| about(name).map(|a| (a.ty, a.meaning, a.cost)).expect("a function");
        assert_eq!(of("reduce_comm").0, of("reduce").0);
        assert_eq!(of("f64.max").1, of("max").1);
        assert_eq!(of("f64.pi").0, "`f32`");
        assert_eq!(of("length"), ("`[n]a -> I`", "the length, also as a size argument", "none"));
    }
}
