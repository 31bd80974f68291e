//! What editors are given: a grammar that colours programs, and settings.

use fancy_regex::Regex;
use patsat::diag::Source;
use patsat::lang::lexer::{KEYWORDS, Tok, lex};
use patsat::lang::types::ScalarType;
use patsat::lang::{self};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect("a file")
}

/// A rule of the grammar: its name in the repository, its expression, and the scope of each of its groups.
struct Rule {
    name: String,
    regex: Regex,
    scopes: Vec<(usize, String)>,
}

/// Returns the rules in the order of the grammar.
fn rules() -> Vec<Rule> {
    let grammar = read("docs/editors/patsat.tmLanguage.json");
    let grammar: Value = serde_json::from_str(&grammar).expect("JSON");
    let names = grammar["patterns"].as_array().expect("a list").iter();
    let names = names.map(|p| p["include"].as_str().expect("a reference").trim_start_matches('#'));
    let rules = names.map(|name| {
        let rule = &grammar["repository"][name];
        let regex = rule["match"].as_str().expect("an expression");
        let regex = Regex::new(regex).unwrap_or_else(|e| panic!("{name}: {e}"));
        let scope = |v: &Value| v["name"].as_str().map(str::to_owned);
        let groups = rule["captures"].as_object().into_iter().flatten();
        let groups =
            groups.map(|(i, v)| (i.parse().expect("a number"), scope(v).expect("a scope")));
        let scopes = scope(rule).map(|s| (0, s)).into_iter().chain(groups).collect();
        Rule { name: name.to_owned(), regex, scopes }
    });
    let rules: Vec<Rule> = rules.collect();
    let all = grammar["repository"].as_object().expect("rules");
    assert_eq!(rules.len(), all.len(), "a rule is not used");
    rules
}

/// Returns the coloured parts of a line as editors find them: the first match, of the first rule that has it.
fn coloured<'r>(rules: &'r [Rule], line: &str) -> Vec<(std::ops::Range<usize>, &'r str)> {
    let mut found = vec![];
    let mut at = 0;
    loop {
        let matches = rules.iter().filter_map(|rule| {
            let captures = rule.regex.captures_from_pos(line, at).expect("a search that ends")?;
            Some((rule, captures))
        });
        let first = matches.min_by_key(|(_, c)| c.get(0).map_or(usize::MAX, |m| m.start()));
        let Some((rule, captures)) = first else { return found };
        let whole = captures.get(0).expect("the match").range();
        assert!(!whole.is_empty(), "{} matches nothing in {line}", rule.name);
        for (group, scope) in &rule.scopes {
            found.extend(captures.get(*group).map(|m| (m.range(), scope.as_str())));
        }
        at = whole.end;
    }
}

fn programs(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            programs(&path, found);
        } else if path.extension().is_some_and(|e| e == "pat") {
            found.push(path);
        }
    }
}

#[test]
fn the_grammar_has_the_words_of_the_language() {
    let rules = rules();
    let listed = |names: &[&str]| -> BTreeSet<String> {
        let rules = rules.iter().filter(|r| names.contains(&r.name.as_str()));
        let lists = rules.filter_map(|r| r.regex.as_str().split("(?:").nth(1)?.split(')').next());
        lists.flat_map(|l| l.split('|')).map(str::to_owned).collect()
    };
    let words = |words: &mut dyn Iterator<Item = &'static str>| -> BTreeSet<String> {
        words.map(str::to_owned).collect()
    };
    assert_eq!(listed(&["function"]), words(&mut lang::functions()));
    assert_eq!(listed(&["control", "declaration", "constant"]), words(&mut KEYWORDS.into_iter()));
    let types = &mut ScalarType::ALL.into_iter().map(ScalarType::name);
    assert_eq!(listed(&["type"]), words(types));
}

#[test]
fn the_grammar_sees_the_tokens_of_programs() {
    let rules = rules();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![];
    programs(&root.join("programs"), &mut files);
    programs(&root.join("tests/total"), &mut files);
    assert!(files.len() > 100, "{}", files.len());
    let functions: BTreeSet<&str> = lang::functions().collect();
    let mut wrong = vec![];
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a program");
        let mut scopes = vec![];
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let found = coloured(&rules, line.trim_end_matches('\n'));
            scopes.extend(found.into_iter().map(|(r, s)| (r.start + start..r.end + start, s)));
            start += line.len();
        }
        let lexed = lex(&Source::new("t", text.as_str()));
        let comments = lexed.comments.iter().map(|c| (c.span.range(), "comment."));
        let tokens = lexed.tokens.iter().filter_map(|t| {
            let word = &text[t.span.range()];
            let expected = match t.tok {
                Tok::Word("true" | "false") => "constant.language.",
                Tok::Word(_) => "keyword.",
                Tok::Number => "constant.numeric.",
                Tok::Text => "string.",
                Tok::TypeParam => "variable.parameter.type.",
                Tok::Proj | Tok::Field => "variable.other.member.",
                Tok::Ident if ScalarType::from_name(word).is_some() => "storage.type.",
                Tok::Ident if functions.contains(word) => "support.function.",
                Tok::Sym("(" | ")" | "[" | "]" | "{" | "}" | "," | ":" | "_" | "=" | ";") => {
                    return None;
                }
                Tok::Sym(_) => "keyword.operator.",
                Tok::Ident => "",
                Tok::Qualified | Tok::Eof => return None,
            };
            Some((t.span.range(), expected))
        });
        for (range, expected) in comments.chain(tokens) {
            let here = scopes.iter().find(|(r, _)| r.contains(&range.start)).map_or("", |(_, s)| s);
            let named = here.starts_with("entity.name.") || here.starts_with("storage.type.patsat");
            let fits = match expected {
                "" => here.is_empty() || named,
                "support.function." => here.starts_with(expected) || named,
                _ => here.starts_with(expected),
            };
            if !fits {
                let word = &text[range.clone()];
                wrong.push(format!("{}: `{word}` is `{here}`, not `{expected}`", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} in all: {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
}

#[test]
fn settings_are_json() {
    let page = read("docs/editors.md");
    let blocks: Vec<&str> =
        page.split("```json\n").skip(1).filter_map(|b| b.split("```").next()).collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let parsed = serde_json::from_str::<Value>(block);
        assert!(parsed.is_ok(), "{parsed:?}\n{block}");
    }
}
