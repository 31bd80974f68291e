//! `-`: the standard input as a program, the standard output as an output file.

use super::{Place, Ran};

const PROGRAM: &str = "entry f [n] (xs: [n]f32) : f32 =\n  xs |> map abs |> reduce (+) 0\n";

/// Runs a command with a standard input.
fn given(p: &Place, args: &str, input: &str) -> Ran {
    Ran(p.command(args).write_stdin(input).output().expect("patsat runs"))
}

#[test]
fn a_program_may_come_from_the_standard_input() {
    let p = Place::new();
    let said = given(&p, "check - -- -:f", PROGRAM).ok().stdout();
    assert_eq!(said.matches("<stdin>: entry f [n] (xs: [n]f32) : f32\n").count(), 2, "{said}");
    let said = given(&p, "check -", "entry f (x: f32) : f32 = y\n").fails("E0201", 3).stderr();
    assert!(said.contains("<stdin>:1:"), "{said}");
    assert_eq!(given(&p, "eval - --size n=3 --gen xs=iota", PROGRAM).ok().stdout(), "3.0\n");
    let stats = format!("{PROGRAM}\n-- expect stats size n=64\n-- | stop saturated\n");
    given(&p, "snapshot -", &stats).ok();
}

#[test]
fn an_output_may_go_to_the_standard_output() {
    let p = Place::new();
    let plan = given(&p, "optimize - --size n=64 --device none -o -", PROGRAM).ok().stdout();
    assert!(plan.starts_with("# patsat plan"), "{plan}");
    assert!(plan.contains("file = \"<stdin>\""), "{plan}");
}

#[test]
fn the_standard_input_is_formatted_to_the_standard_output() {
    let p = Place::new();
    let long = "entry f  (x:f32):f32=x\n";
    let text = given(&p, "fmt -", long).ok().stdout();
    assert_eq!(text, "entry f (x: f32) : f32 =\n  x\n");
    let line = given(&p, "--json fmt -", long).ok().last("formatted");
    assert_eq!((line["text"].as_str(), line["changed"].as_bool()), (Some(&*text), Some(true)));
    let said = given(&p, "fmt --check -", long).fails("E0902", 1).stderr();
    assert!(said.contains("`patsat fmt -`"), "{said}");
}

#[test]
fn folders_are_no_streams() {
    let p = Place::new();
    for args in ["man -", "emit - --size n=4 --device none -o -", "fuzz --device none -o -"] {
        given(&p, args, PROGRAM).fails("E0903", 2);
    }
    let said = given(&p, "snapshot --bless -", PROGRAM).fails("E0903", 2).stderr();
    assert!(said.contains("`--bless` updates files"), "{said}");
}
