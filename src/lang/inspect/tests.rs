use super::*;

const TEXT: &str = "-- Twice ünï.\ndef twice (x: f32) = x + x\ndef untyped x = x * x\n\
    type point [n] = {at: [n]f32, mass: f32}\n\
    entry f [n] (ps: [4]point [n]) (c: f32) : [4]f32 =\n  let g y = twice y + c\n  let rows = map (\\p -> p.at) ps in\n  \
    map2 (\\p q -> g p.mass + sum q + untyped (f32.i32 1)) ps rows\n";

/// Returns what is known of the first place at which this text stands, with its code and text in one line.
fn at(text: &str, needle: &str) -> String {
    let source = Source::new("t.pat", text);
    let place = text.find(needle).expect("the text has it");
    hover(&source, place).map_or(String::new(), |h| {
        assert!(text.is_char_boundary(h.span.start as usize));
        one_line(&format!("{} {}", h.code, h.text))
    })
}

fn defined(text: &str, needle: &str) -> Option<usize> {
    let place = text.find(needle).expect("the text has it");
    definition(&Source::new("t.pat", text), place).map(|s| s.start as usize)
}

#[test]
fn names_have_types() {
    for (needle, expected) in [
        ("rows = map", "rows: [4][n]f32"),
        ("rows\n", "rows: [4][n]f32"),
        ("p -> p.at", "p: {at: [n]f32, mass: f32}"),
        ("p.mass", "p: {at: [n]f32, mass: f32}"),
        (".mass +", "f32"),
        ("q -> g", "q: [n]f32"),
        ("x: f32", "x: f32"),
        ("x = x * x", "x: f32"),
        ("c: f32", "c: f32"),
        ("y = twice", "y: f32"),
        ("g y =", "g y"),
        ("g p.mass", "g y"),
        ("twice y", "def twice (x: f32) : f32 Twice ünï."),
        ("twice (x", "def twice (x: f32) : f32 Twice ünï."),
        ("untyped x", "def untyped x : f32"),
        ("f [n]", "entry f [n] (ps: [4]point [n]) (c: f32) : [4]f32"),
        ("n]) (c", "[n] a size"),
        ("point [n])", "type point [n] = {at: [n]f32, mass: f32}"),
        ("f32.i32 1", "f32.i32 : i32 -> f32 the conversion"),
        ("1)", "i32"),
        ("+ untyped", "f32"),
        ("-- Twice", ""),
    ] {
        assert_eq!(at(TEXT, needle), expected, "{needle}");
    }
    let sum = at(TEXT, "sum q");
    assert!(
        sum.starts_with("sum : [n]N -> N 0 and 1 without elements")
            && sum.contains("Cost: kernel."),
        "{sum}"
    );
}

#[test]
fn names_have_definitions() {
    let place = |needle: &str| TEXT.find(needle);
    for (needle, bound) in [
        ("twice y", "twice (x"),
        ("rows\n", "rows = map"),
        ("p.mass", "p q ->"),
        ("point [n])", "point [n] ="),
        ("n]) (c", "n] (ps"),
        ("g p.mass", "g y ="),
        ("f [n]", "f [n]"),
    ] {
        assert_eq!(defined(TEXT, needle), place(bound), "{needle}");
    }
    assert_eq!(defined(TEXT, "sum q"), None);
    assert_eq!(defined("def f 't (x: t) = (x : t)", "t)"), Some(6));
}

#[test]
fn broken_texts_are_answered() {
    // One definition cannot be parsed, another is wrong.
    let text = "def a (x: f32) = x +\ndef b (y: f32) = y + 1i32\nentry e (z: f32) = b z\n";
    assert_eq!(at(text, "y + 1"), "y: f32");
    assert_eq!(at(text, "z\n"), "z: f32");
    assert_eq!(at(text, "x +"), "");
    assert_eq!(at("def f x = g x\ndef g x = f x\nentry e (y: f32) = f y", "y: f32"), "y: f32");
    for end in (0..=TEXT.len()).filter(|i| TEXT.is_char_boundary(*i)) {
        let source = Source::new("t.pat", &TEXT[..end]);
        for place in [0, end / 2, end, end + 9] {
            let _ = (hover(&source, place), definition(&source, place), candidates(&source, place));
        }
        symbols(&source);
    }
}

#[test]
fn definitions_are_listed() {
    let source = Source::new("t.pat", TEXT);
    let listed: Vec<_> = symbols(&source).into_iter().map(|s| (s.name, s.kind)).collect();
    let expected = [
        ("twice", Kind::Function),
        ("untyped", Kind::Function),
        ("point", Kind::Type),
        ("f", Kind::Entry),
    ];
    assert_eq!(listed, expected.map(|(name, kind)| (name.to_owned(), kind)));
    let first = symbols(&source).remove(0);
    assert_eq!(&TEXT[first.span.range()], "def twice (x: f32) = x + x");
}

#[test]
fn names_are_completed() {
    let names = |text: &str| -> Vec<String> {
        let all = candidates(&Source::new("t.pat", text), text.len());
        all.into_iter().map(|c| c.name).collect()
    };
    let found = names("def twice x = x + x\nentry e (width: f32) = tw");
    for name in ["twice", "width", "sum", "map", "let", "f32"] {
        assert!(found.iter().any(|n| n == name), "{name}");
    }
    assert!(!found.iter().any(|n| n == "tw"));
    let found = names("entry e (x: i32) = f32.");
    assert!(found.iter().any(|n| n == "i32") && found.iter().any(|n| n == "max"), "{found:?}");
    assert_eq!(names("entry e (p: f32) = p."), Vec::<String>::new());
}
