//! Tests that the formatter is idempotent and keeps tokens and comments.

use super::programs::PROGRAMS;
use crate::diag::Source;
use crate::lang::{check, format, lexer};

fn formatted(text: &str) -> String {
    match format(&Source::new("p.pat", text)) {
        Ok(out) => out,
        Err(failure) => panic!("{failure}\n{text}"),
    }
}

#[test]
fn formatting_is_idempotent_and_keeps_everything() {
    for program in PROGRAMS {
        let once = formatted(program);
        assert_eq!(formatted(&once), once);
        let (before, after) =
            (check(&Source::new("p", *program)).0, check(&Source::new("p", once)).0);
        let types = |entries: Vec<crate::lang::typed::Entry>| -> Vec<String> {
            entries.into_iter().map(|e| format!("{} {} {}", e.name, e.doc, e.body.ty)).collect()
        };
        assert_eq!(types(before), types(after));
    }
}

#[test]
fn layout() {
    let text = "-- About asum.\nentry asum [n] (xs:[n]f32):f32 = xs|>map abs -- why\n  |>reduce (+) 0\n\
        def  dot xs   ys=reduce (+) 0 (map2 (*) xs ys)\n-- last\n\n-- really last";
    let expected = "-- About asum.\nentry asum [n] (xs: [n]f32) : f32 =\n  xs\n    |> map abs  -- why\n    |> reduce (+) 0\n\n\
        def dot xs ys = reduce (+) 0 (map2 (*) xs ys)\n\n-- last\n\n-- really last\n";
    assert_eq!(formatted(text), expected);
}

#[test]
fn attributes_keep_their_place() {
    for text in [
        "#[inline] def f x = x\n",
        "-- doc\n#[noinline]\n#[a] #[b] def f x = #[c] x  -- trailing\n",
        "entry f [n] (xs: [n]f32) =\n  #[unroll] loop xs for i < 4 do #[sequential] map (#[c] abs) xs\n",
        "entry f [n] (xs: [n]f32) =\n  #[unroll]\n  map sqrt xs\n",
    ] {
        assert_eq!(formatted(text), text);
    }
}

#[test]
fn names_of_loops_that_are_their_own_values_stay() {
    for init in ["A, P = sqrt A, k", "P, A = sqrt A, k = n", "A, P, k"] {
        let text = format!(
            "def f (A: f32) (P: f32) (k: i64) (n: i64) = loop ({init}) while k > 0 do (A, P, k - 1)\n"
        );
        assert_eq!(formatted(&text), text);
    }
}

/// Puts a comment after every token, and one on a line of its own before every token.
/// The formatter sees one file, so a type may be one of an imported file.
#[test]
fn types_of_other_files_are_kept() {
    let text =
        "import \"points\"\n\nentry f [n] (ps: [n]point) (g: grid [n]) : [n]f32 =\n  map (.x) ps\n";
    assert_eq!(formatted(text), text);
    let alone = text.replace("import \"points\"\n\n", "");
    let failure = format(&Source::new("p.pat", alone)).expect_err("no such type").to_string();
    assert!(failure.contains("there is no type `point`"), "{failure}");
}

#[test]
fn comments_anywhere_are_kept() {
    for program in PROGRAMS {
        let source = Source::new("p", *program);
        let tokens = lexer::lex(&source).tokens;
        for (i, pair) in tokens.windows(2).enumerate() {
            let at = pair[0].span.end as usize;
            if pair[1].span.start as usize == at && pair[1].tok != lexer::Tok::Eof {
                continue;
            }
            for comment in ["\n-- own line\n", " -- trailing\n"] {
                let text = format!("{}{comment}{}", &program[..at], &program[at..]);
                let once = formatted(&text);
                assert_eq!(formatted(&once), once, "token {i}");
                assert_eq!(once.matches("--").count(), text.matches("--").count());
            }
        }
    }
}

#[test]
fn empty_files() {
    assert_eq!(formatted(""), "");
    assert_eq!(formatted("\n\n"), "");
    assert_eq!(formatted("-- only"), "-- only\n");
}
