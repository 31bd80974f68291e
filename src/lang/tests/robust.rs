//! Tests that no text makes the front end panic, overflow its stack, or take long.

use super::programs::PROGRAMS;
use crate::diag::{Code, Severity, Source};
use crate::lang::{check, check_entry_general, format, lexer};
use proptest::prelude::*;

/// Runs the whole front end on a text. An error must have a message and a place in the text.
fn survive(text: &str) {
    let source = Source::new("p.pat", text);
    let (entries, diagnostics) = check(&source);
    for d in &diagnostics {
        assert!(!d.message.is_empty());
        assert_ne!(d.code, Code::Internal, "{d}\n{text}");
        for label in &d.labels {
            assert!(text.get(label.span.range()).is_some(), "{d}: {:?}\n{text}", label.span);
        }
    }
    for entry in &entries {
        assert!(check_entry_general(&source, Some(&entry.name), true).is_ok());
    }
    match format(&source) {
        Ok(once) => {
            let again = format(&Source::new("p.pat", once.as_str()));
            assert_eq!(again.ok().as_ref(), Some(&once), "{text}");
        }
        Err(failure) => {
            assert!(failure.0.iter().all(|d| d.code != Code::Internal), "{failure}\n{text}");
        }
    }
}

#[test]
fn deep_nesting_is_an_error() {
    let deep = |open: &str, close: &str| {
        let text =
            format!("entry f (x: i32) : i32 = {}x{}", open.repeat(50_000), close.repeat(50_000));
        let diagnostics = check(&Source::new("p", text)).1;
        assert_eq!(diagnostics.first().map(|d| d.code), Some(Code::Parse), "{open}");
    };
    deep("(", ")");
    deep("- ", "");
    deep("x + ", "");
    deep("let a = x in ", "");
    deep("\\a -> ", "");
    deep("if x then x else ", "");
    deep("(x, ", ")");
    deep("(+ ", ")");
    deep("f(", ")");
    deep("", "[0]");
    deep("", ".0");
    deep("x |> ", "");
    deep("loop x = ", "");
    deep("", " : i32");
    deep("{a = ", "}");
    deep("", ".a");
    deep("", " with a = x");
    deep("x `f` ", "");
    deep("f <| ", "");
    deep("x ++ ", "");
    deep("let x[0] = x in ", "");
    deep("let x[", "] = x in x");
}

#[test]
fn the_deepest_allowed_nesting_works() {
    for (open, close) in
        [("(", ")"), ("- ", ""), ("x + ", ""), ("let a = x in ", ""), ("if true then x else ", "")]
    {
        let text = format!("entry f (x: i32) : i32 = {}x{}", open.repeat(190), close.repeat(190));
        let (entries, diagnostics) = check(&Source::new("p", text.as_str()));
        assert!(diagnostics.is_empty(), "{open}: {:?}", diagnostics.first());
        assert_eq!(entries.len(), 1);
        survive(&text);
    }
}

#[test]
fn definitions_that_explode_are_an_error() {
    let mut text = "def d0 (x: i32) = x + x\n".to_owned();
    for i in 1..60 {
        text += &format!("def d{i} (x: i32) = d{} (d{} x)\n", i - 1, i - 1);
    }
    text += "entry f (x: i32) : i32 = d59 x";
    let diagnostics = check(&Source::new("p", text)).1;
    assert_eq!(diagnostics.first().map(|d| d.code), Some(Code::KernelLimit));
    let mut text = "def d0 (x: i32) = x + 1\n".to_owned();
    for i in 1..2000 {
        text += &format!("def d{i} (x: i32) = d{} (x + 1)\n", i - 1);
    }
    text += "entry f (x: i32) : i32 = d1999 x";
    let diagnostics = check(&Source::new("p", text)).1;
    assert!(
        diagnostics.iter().all(|d| d.code == Code::KernelLimit && d.severity == Severity::Error)
    );
    assert!(!diagnostics.is_empty());
}

#[test]
fn types_that_explode_are_an_error() {
    let chain = |body: &dyn Fn(usize) -> String, order: &mut dyn Iterator<Item = usize>| {
        let mut text = "type t0 = f32\n".to_owned();
        order.for_each(|i| text += &format!("type t{i} = {}\n", body(i - 1)));
        text += "entry f (x: t1) (y: [3]t400) = x";
        survive(&text);
        let diagnostics = check(&Source::new("p", text)).1;
        diagnostics.first().map(|d| d.code)
    };
    let pairs = |i: usize| format!("(t{i}, t{i})");
    let rows = |i: usize| format!("[2]t{i}");
    assert_eq!(chain(&pairs, &mut (1..=400)), Some(Code::KernelLimit));
    assert_eq!(chain(&rows, &mut (1..=400)), Some(Code::Parse));
    assert_eq!(chain(&rows, &mut (1..=400).rev()), Some(Code::Parse));
    // A name that is used very often.
    let uses = "(\\(_: t) -> 1) 2 + ".repeat(150);
    let definitions: String = (0..20).map(|i| format!("def d{i} = {uses} 1\n")).collect();
    let text = format!("type t = ({} f32)\n{definitions}entry f = d0", "f32, ".repeat(900));
    survive(&text);
}

fn word() -> impl Strategy<Value = String> {
    let words = [
        "entry",
        "def",
        "let",
        "in",
        "if",
        "then",
        "else",
        "loop",
        "for",
        "while",
        "do",
        "(",
        ")",
        "[",
        "]",
        "->",
        "\\",
        "=",
        ":",
        ",",
        "+",
        "-",
        "*",
        "|>",
        ">->",
        "<-<",
        "x",
        "y",
        "n",
        "xs",
        "f32",
        "i32",
        "map",
        "reduce",
        "split",
        "join",
        "iterate",
        "0",
        "1.5",
        "2",
        ".0",
        "pad",
        "slide",
        "zip",
        "asVector",
        "vectorize",
        "true",
        "f32.i32",
        "[n]",
        "-- c\n",
        "\n",
        "_",
        "\u{e9}",
        "\u{3bb}",
        "'",
        "\"",
        "&",
        "<<",
        "~",
        "type t = ",
        "t",
        "{x = ",
        "{x: ",
        "}",
        ".x",
        "with",
        "with x =",
        "`",
        "#[a]",
        "'t",
        "[]",
        "f32.+",
        "99999999999999999999",
        "++",
        ">>>",
        "<|",
        ":>",
        "//",
        "let xs[0] =",
        "match x case",
        "#a",
        "(!)",
        "[1:",
    ];
    proptest::sample::select(words.to_vec()).prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text(text in "\\PC{0,60}") {
        survive(&text);
    }

    #[test]
    fn arbitrary_words(words in proptest::collection::vec(word(), 0..40)) {
        survive(&words.join(" "));
        survive(&format!("entry f [n] (x: f32) (xs: [n]f32) = {}", words.join(" ")));
    }

    /// Removes, doubles or replaces one token of a program.
    #[test]
    fn mutated_programs(which in 0..PROGRAMS.len(), at in 0usize..400, how in 0..3, other in word()) {
        let program = PROGRAMS[which];
        let tokens = lexer::lex(&Source::new("p", program)).tokens;
        let span = tokens[at % tokens.len()].span.range();
        let middle = match how {
            0 => String::new(),
            1 => format!("{0} {0}", &program[span.clone()]),
            _ => other,
        };
        survive(&format!("{}{}{}", &program[..span.start], middle, &program[span.end..]));
    }
}
