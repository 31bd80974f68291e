//! Programs that are wrong.

use super::Place;

#[track_caller]
fn check(text: &str, code: &str) {
    let p = Place::new();
    let f = p.file("a.pat", text);
    let ran = p.run(&format!("check {f}")).fails(code, 3);
    assert!(ran.stderr().contains("a.pat:"), "no place in:\n{}", ran.stderr());
    let ran = p.run(&format!("--json check {f}"));
    assert_eq!(ran.last("diagnostic")["code"], code);
}

#[test]
fn unparsable() {
    check("entry f [n] (xs: [n]f32 : f32 = 0", "E0102");
    check("entry f (x: f32) : f32 = x $ 1", "E0101");
}

#[test]
fn unknown_names() {
    check("entry f (x: f32) : f32 = y", "E0201");
}

#[test]
fn types_and_sizes_that_differ() {
    check("entry f (x: f32) : i32 = x", "E0301");
    check("entry f [n][m] (xs: [n]f32) (ys: [m]f32) : [n]f32 = map2 (+) xs ys", "E0302");
}

#[test]
fn comments_that_generate_no_input() {
    let p = Place::new();
    for line in ["ys=normal", "xs=labels", "xs", "n=iota"] {
        let text = format!("-- gen: {line}\nentry f [n] (xs: [n]f32) : [n]f32 = xs\n");
        let f = p.file("a.pat", text);
        let said = p.run(&format!("check {f}")).fails("E0903", 2).stderr();
        assert!(said.contains("a.pat:1:9\n"), "{said}");
    }
    let twice = "-- gen: xs=normal\ntype t = f32\n\n-- gen: xs=iota\n";
    let f = p.file("a.pat", format!("{twice}entry f [n] (xs: [n]t) : [n]t = xs\n"));
    let said = p.run(&format!("check {f}")).fails("E0903", 2).stderr();
    assert!(
        said.contains("`xs` is generated in two ways") && said.contains("the other one"),
        "{said}"
    );
}

/// With one entry, a comment at the top of a file is as good as one directly above the entry.
#[test]
fn comments_that_generate_inputs_anywhere() {
    let p = Place::new();
    let text = "-- Sums.\n-- gen: n=const:4 ps.x=iota ps.y=const:2\n\ntype point = {x: f32, y: f32}\n\
        entry f [n] (ps: [n]point) : f32 = sum (map (\\p -> p.x * p.y) ps)\n";
    let f = p.file("a.pat", text);
    assert_eq!(p.run(&format!("eval {f}")).ok().stdout(), "12.0\n");
    let f = p.file("b.pat", format!("{text}entry g (x: f32) : f32 = x\n"));
    let said = p.run(&format!("check {f}")).ok().stderr();
    assert!(said.contains("W0107") && said.contains("b.pat:2:9"), "{said}");
    assert!(said.contains("directly above the entry"), "{said}");
    // A parameter is shown as its type is declared.
    let said = p.run(&format!("eval {f}:f --size n=4")).fails("E0501", 4).stderr();
    assert!(said.contains("of type `[n]{x: f32, y: f32}`"), "{said}");
}

/// An operator that breaks a law is refused before a program is optimised.
#[test]
fn operators_that_break_a_law() {
    let p = Place::new();
    let f = p.file(
        "ewma.pat",
        "entry ewma [n] (a: f32) (xs: [n]f32) : [n]f32 = scan (\\y x -> (1 - a) * y + a * x) 0 xs\n",
    );
    let said = p.run(&format!("check {f}")).fails("E0310", 3).stderr();
    assert!(said.contains("`scan` is not associative"), "{said}");
    p.run(&format!("check {f} --trust-laws")).ok();
    p.run(&format!("eval {f} --arg a=0.5 --size n=4 --gen xs=iota")).ok();
    // On random inputs, this loop may not end.
    let f = p.file(
        "steps.pat",
        "entry steps [n] (xs: [n]f32) : f32 = reduce (\\a b -> loop a = a while a != b do b) 0 xs\n",
    );
    p.run(&format!("check {f}")).ok();
}

#[test]
fn ends_of_ranges_are_rounded_down() {
    let p = Place::new();
    let line = "-- gen: n=const:11 keys=sorted:0..n/4";
    let f = p.file("a.pat", format!("{line}\nentry f [n] (keys: [n]i32) : i32 = maximum keys\n"));
    assert_eq!(p.run(&format!("eval {f}")).ok().stdout(), "1\n");
}

#[test]
fn splits_that_do_not_divide() {
    let p = Place::new();
    let f = p.file(
        "a.pat",
        "entry f [n] (xs: [n]f32) : f32 = split 4 xs |> map (reduce (+) 0) |> reduce (+) 0\n",
    );
    p.run(&format!("check {f}")).ok();
    p.run(&format!("eval {f} --size n=10 --gen xs=iota")).fails("E0303", 3);
    p.run(&format!("optimize {f} --size n=10 --device none")).fails("E0303", 3);
}

/// `check` names the conditions on sizes, and an error the size that breaks one, with its value and a way out.
#[test]
fn sizes_that_must_be_multiples_are_known_before() {
    let p = Place::new();
    let text = "entry late [n] (s: [n]f32) = s[n - n / 20:]\n\
        entry f [n] (s: [n]f32) : f32 = iterate 3 (split 2 >-> map sum) (take 8 s) |> sum\n";
    let f = p.file("a.pat", text);
    let said = p.run(&format!("check {f}")).ok().stdout();
    assert!(said.contains(": [n/20]f32\n  requires that 20 divides n\n"), "{said}");
    assert_eq!(said.matches("requires").count(), 1, "{said}");
    let json = p.run(&format!("--json check {f}:late"));
    assert_eq!(json.last("entry")["requires"][0], "20 divides n");
    let f = format!("{f}:late");
    for verb in ["eval", "optimize --device none"] {
        let said =
            p.run(&format!("{verb} {f} --size n=37 --gen s=iota")).fails("E0303", 3).stderr();
        assert!(said.contains("20 does not divide `n` (37)"), "{said}");
        assert!(said.contains("a.pat:1:36") && said.contains("declare a multiple"), "{said}");
    }
}

/// A length in the type of a parameter or of the result that the sizes make impossible is told with its place and a way out.
#[test]
fn lengths_that_are_impossible_have_a_place() {
    let p = Place::new();
    let cases = [
        (
            "entry f [n] (xs: [n/2]f32) : f32 = sum xs",
            "E0303",
            "divides lengths without a remainder",
        ),
        (
            "entry f [n] (xs: [n]f32) : [n/2]f32 = take (n/2) xs",
            "E0303",
            "divides lengths without a remainder",
        ),
        ("entry f [n] (xs: [n - 9]f32) : f32 = sum xs", "E0309", "choose other sizes"),
    ];
    for (text, code, help) in cases {
        let f = p.file("a.pat", text);
        let run = format!("optimize {f} --size n=7 --gen xs=iota --device portable --no-store");
        let said = p.run(&run).fails(code, 3).stderr();
        assert!(said.contains("a.pat:1:") && said.contains(help), "{said}");
    }
}

#[test]
fn no_such_file_or_entry() {
    let p = Place::new();
    p.run("check /no/such.pat").fails("E0901", 9);
    p.run("eval programs/asum.pat:nothing --size n=1 --gen xs=iota").fails("E0204", 3);
    let binary = p.file("b.pat", [0xff, 0xfe, 0x00]);
    p.run(&format!("check {binary}")).fails("E0901", 9);
}

#[test]
fn low_level_patterns_where_they_cannot_be() {
    let p = Place::new();
    for text in [
        "entry f [n] (xs: [n]f32) : [n]f32 = mapLcl 0 (+ 1) xs\n",
        "entry f [n][m] (xs: [n][m]f32) : [n][m]f32 = mapGlb 0 (mapGlb 0 (+ 1)) xs\n",
    ] {
        let f = p.file("a.pat", text);
        p.run(&format!(
            "run {f} --no-rewrite --size n=4 --size m=4 --gen xs=iota --device portable"
        ))
        .fails_either(&["E0306", "E0201"], 3);
    }
    // A pattern that does not say how it runs.
    p.run("run programs/asum.pat --no-rewrite --size n=4 --gen xs=iota --device portable")
        .fails("E0307", 3);
}

#[test]
fn an_iterate_that_keeps_the_type_is_a_loop() {
    let p = Place::new();
    let f = p.file(
        "s.pat",
        "entry f [n] (xs: [n]f32) : [n]f32 = iterate 80 (split 1 >-> map (reduce (+) 0)) xs\n",
    );
    assert_eq!(
        p.run(&format!("eval {f} --size n=3 --gen xs=iota")).ok().stdout(),
        "[3]f32 [0.0, 1.0, 2.0]\n"
    );
    let said = p.run(&format!("optimize {f} --size n=3 --device none --emit term")).ok().stdout();
    assert!(said.contains("foldSeq") && said.contains("iota 80"), "{said}");
}

impl super::Ran {
    /// Fails with one of several codes.
    #[track_caller]
    fn fails_either(self, codes: &[&str], status: i32) -> super::Ran {
        let said = self.stderr();
        let code = codes.iter().find(|c| said.contains(**c));
        self.fails(code.copied().unwrap_or(codes[0]), status)
    }
}
