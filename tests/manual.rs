//! Checks the manual of the language: its programs are well-typed, and the examples in its index have the values that it
//! says.

use patsat::calculus::interp;
use patsat::calculus::value::Value;
use patsat::diag::Source;
use patsat::lang;
use std::collections::BTreeSet;

fn manual() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/language.md");
    std::fs::read_to_string(path).expect("the manual")
}

/// Returns the text of the section with this title.
fn section<'m>(manual: &'m str, title: &str) -> &'m str {
    let (_, rest) = manual.split_once(&format!("\n## {title}\n")).expect("the section");
    rest.split("\n## ").next().unwrap_or_default()
}

/// Returns the cells of each row of a section's tables, without their headings.
fn rows(section: &str) -> Vec<Vec<String>> {
    let rows = section.lines().filter_map(|l| l.strip_prefix("| ")?.strip_suffix(" |"));
    let cells = |row: &str| -> Vec<String> {
        let masked = row.replace("\\|", "\u{0}");
        masked.split('|').map(|c| c.replace('\u{0}', "|").trim().to_owned()).collect()
    };
    rows.map(cells).filter(|cells| cells[0].starts_with('`')).collect()
}

/// Returns the texts between backquotes.
fn code(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Returns the value of an expression.
fn value(expr: &str, definitions: &str) -> Value {
    let source = Source::new("manual.pat", format!("{definitions}\nentry f =\n  {expr}\n"));
    let entry = lang::check_entry(&source, None).unwrap_or_else(|e| panic!("{expr}: {e}"));
    interp::run(&entry, &interp::Sizes::new(), &[]).unwrap_or_else(|e| panic!("{expr}: {e}"))
}

#[test]
fn the_examples_of_the_index_have_their_values() {
    let manual = manual();
    let index = section(&manual, "Index");
    let definitions = index.split("```").nth(1).expect("the definitions of the examples");
    let (mut named, mut unshown, mut wrong) = (BTreeSet::new(), vec![], vec![]);
    for row in rows(index) {
        let [names, _, _, _, examples] = row.as_slice() else { panic!("five columns: {row:?}") };
        named.extend(code(names).into_iter().map(str::to_owned));
        let examples = code(examples);
        let part_of_name = |c: char| c.is_alphanumeric() || "_.'".contains(c);
        let words: BTreeSet<&str> =
            examples.iter().flat_map(|e| e.split(|c| !part_of_name(c))).collect();
        unshown.extend(code(names).into_iter().filter(|n| !words.contains(n)).map(str::to_owned));
        for example in examples {
            let (expr, expected) = example.rsplit_once(" = ").expect("an expression and its value");
            // The value has the type of the expression.
            let both = format!("let a = {expr} let b = if true then {expected} else a in (a, b)");
            let both = value(&both, definitions).to_string();
            let half = both.len() / 2;
            if both.get(..half - 1) != both.get(half + 1..) {
                wrong.push(format!("{example}: {both}"));
            }
        }
    }
    assert!(wrong.is_empty(), "not these values: {wrong:#?}");
    assert!(unshown.is_empty(), "without an example of their own: {unshown:?}");
    let missing: Vec<_> = lang::functions().filter(|f| !named.contains(*f)).collect();
    assert!(missing.is_empty(), "not in the index: {missing:?}");
    let known: BTreeSet<&str> = lang::functions().collect();
    // The constants of a type are no functions; their examples show that they exist.
    let functions = named.iter().filter(|f| !f.contains('.'));
    let unknown: Vec<_> = functions.filter(|f| !known.contains(f.as_str())).collect();
    assert!(unknown.is_empty(), "no functions: {unknown:?}");
}

#[test]
fn the_programs_of_the_manual_are_well_typed() {
    let mut count = 0;
    for text in manual().split("```\n").skip(1).step_by(2) {
        let starts = |word| text.lines().any(|l| l.starts_with(word));
        if !starts("entry ") || starts("import ") {
            continue;
        }
        let found = lang::check(&Source::new("manual.pat", text)).1;
        assert!(found.is_empty(), "{text}{found:?}");
        count += 1;
    }
    assert!(count >= 4, "{count}");
}
