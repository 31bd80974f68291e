//! Inputs that are wrong, and outputs that cannot be written.

use super::{Place, Ran, floats, npy};

#[test]
fn files_that_do_not_fit() {
    let p = Place::new();
    let eval = |f: &str| p.run(&format!("eval programs/asum.pat --input xs={f}"));
    let three = floats(&[1.0, 2.0, 3.0]);
    eval("/no/such.npy").fails("E0901", 9);
    eval(&p.file("text.npy", "1 2 3")).fails("E0502", 4);
    eval(&p.file("short.npy", npy("<f4", false, "(4,)", &three))).fails("E0502", 4);
    eval(&p.file("long.npy", npy("<f4", false, "(2,)", &three))).fails("E0502", 4);
    let two_d = npy("<f4", true, "(2, 2)", &floats(&[1.0; 4]));
    let said = eval(&p.file("fortran.npy", two_d)).fails("E0502", 4).stderr();
    assert!(said.contains("ascontiguousarray"), "{said}");
    eval(&p.file("flat.npy", npy("<f4", false, "(1, 3)", &three))).fails("E0503", 4);
    eval(&p.file("type.npy", npy("<i4", false, "(3,)", &[0; 12]))).fails("E0504", 4);
    p.run("eval programs/asum.pat --size n=2").fails("E0501", 4);
    p.run("eval programs/asum.pat").fails("E0501", 4);
    p.run("eval programs/asum.pat --gen xs=iota").fails("E0308", 4);
    p.run("eval programs/asum.pat --gen ys=iota --size n=1 --gen xs=iota").fails("E0201", 3);
    p.run("eval programs/asum.pat --gen xs=iota --size m=1").fails("E0201", 3);
    p.run("eval programs/scal.pat --size n=1 --gen xs=iota --arg alpha=two").fails("E0504", 4);
    p.run("eval programs/asum.pat --size n=1 --gen xs=noise").fails("E0903", 2);
}

#[test]
fn arguments_are_no_sizes() {
    let p = Place::new();
    let f = p.file(
        "a.pat",
        "entry power (steps: i32) (c: f32) : f32 = loop acc = 1 for i < steps do acc * c\n",
    );
    for (given, name, advice) in [
        ("--size steps=4", "steps", "`--arg steps=4`"),
        ("--arg steps=4 --size c=3", "c", "`--arg c=3`"),
        // No value of its type.
        ("--size steps=3000000000", "steps", "`--arg steps=2`"),
    ] {
        for verb in ["eval", "optimize --device none"] {
            let said = p.run(&format!("{verb} {f} {given}")).fails("E0201", 3).stderr();
            assert!(said.contains(&format!("`{name}` is an argument of `power`")), "{said}");
            assert!(said.contains("a.pat:1") && said.contains(advice), "{said}");
        }
    }
    let said = p.run(&format!("eval {f} --arg c=2")).fails("E0501", 4).stderr();
    assert!(said.contains("`--arg steps=2`"), "{said}");
    let said = p.run(&format!("eval {f} --arg c=2 --arg steps=1.5")).fails("E0504", 4).stderr();
    assert!(said.contains("a.pat:1") && said.contains("`--arg steps=2`"), "{said}");
    let said = p.run("eval programs/asum.pat --size xs=3").fails("E0201", 3).stderr();
    assert!(said.contains("`--input xs=FILE.npy`"), "{said}");
    assert_eq!(p.run(&format!("eval {f} --arg c=1.5 --arg steps=2")).ok().stdout(), "2.25\n");
}

/// A size that stands among the parameters is given as they are, too.
#[test]
fn sizes_among_the_arguments() {
    let p = Place::new();
    let text =
        "entry taken [k] [n] (xs: [n]f32) (k: i64) (c: f32) : [k]f32 = map (* c) (take k xs)\n";
    let f = p.file("a.pat", text);
    let said = p.run(&format!("check {f}")).ok().stdout();
    assert!(said.contains("(xs: [n]f32) (k: i64) (c: f32) : [k]f32"), "{said}");
    let rest = "--size n=4 --gen xs=iota --arg c=3";
    for k in ["--arg k=2", "--size k=2", "--arg k=2 --size k=2"] {
        let said = p.run(&format!("eval {f} {k} {rest}")).ok().stdout();
        assert_eq!(said, "[2]f32 [0.0, 3.0]\n");
    }
    p.run(&format!("optimize {f} --arg k=2 --size n=4 --device none")).ok();
    for k in ["--arg k=1.5", "--arg k=-1", "--arg k=2 --size k=3", "--arg k=2 --arg k=2"] {
        p.run(&format!("eval {f} {k} {rest}")).fails("E0903", 2);
    }
}

#[test]
fn sizes_that_disagree() {
    let p = Place::new();
    let x = p.file("x.npy", npy("<f4", false, "(3,)", &floats(&[1.0; 3])));
    let y = p.file("y.npy", npy("<f4", false, "(2,)", &floats(&[1.0; 2])));
    let said =
        p.run(&format!("eval programs/dot.pat --input xs={x} --input ys={y}")).fails("E0503", 4);
    assert!(
        said.stderr().contains("x.npy") && said.stderr().contains("y.npy"),
        "{}",
        said.stderr()
    );
    p.run(&format!("eval programs/asum.pat --input xs={x} --size n=4")).fails("E0503", 4);
}

#[test]
fn data_that_are_not_finite_are_used_and_told_of() {
    let p = Place::new();
    let x = p.file("x.npy", npy("<f4", false, "(2,)", &floats(&[f32::NAN, f32::INFINITY])));
    let ran = p.run(&format!("eval programs/asum.pat --input xs={x}")).ok();
    assert_eq!(ran.stdout(), "NaN\n");
    assert!(ran.stderr().contains("W0506") && ran.stderr().contains("NaN and infinity"));
    // A NaN from a kernel agrees with a NaN from the interpreter.
    p.run(&format!(
        "run programs/asum.pat --input xs={x} --budget 1 --no-store --verify --device portable"
    ))
    .ok();
}

#[test]
fn sizes_beyond_memory() {
    let p = Place::new();
    p.run("eval programs/asum.pat --gen xs=iota --size n=1000000000000").fails("E0309", 3);
    p.run("eval programs/asum.pat --gen xs=iota --size n=9223372036854775807").fails("E0309", 3);
    p.run("eval programs/asum.pat --gen xs=iota --size n=18446744073709551615").fails("E0309", 3);
    p.run("optimize programs/asum.pat --size n=1000000000000 --device portable").fails("E0603", 6);
}

#[test]
fn zero_sizes_have_results() {
    let p = Place::new();
    assert_eq!(p.run("eval programs/asum.pat --size n=0 --gen xs=iota").ok().stdout(), "0.0\n");
    let run = |f: &str| {
        p.run(&format!("run {f} --size n=0 --gen xs=iota --budget 0 --no-store --device portable"))
    };
    assert_eq!(run("programs/asum.pat").ok().stdout(), "0.0\n");
    assert_eq!(run("programs/chain.pat").ok().stdout(), "[0]f32 []\n");
}

#[test]
fn division_by_zero_is_told_of() {
    let p = Place::new();
    let f = p.file("a.pat", "entry f (x: i32) : i32 = 1 / x\n");
    p.run(&format!("eval {f} --arg x=0")).fails("E0505", 4);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_of() {
    let p = Place::new();
    let ran = p.run("eval programs/chain.pat --size n=3 --gen xs=iota --output /dev/full");
    ran.fails("E0901", 9);
    p.run("gen /dev/full --shape 10").fails("E0901", 9);
    p.run("gen /no/such/folder/a.npy --shape 10").fails("E0901", 9);
    let full =
        std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has this device");
    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_patsat"))
        .args(["rules", "list"])
        .stdout(full)
        .stderr(std::process::Stdio::piped())
        .output()
        .expect("patsat starts");
    Ran(ran).fails("E0901", 9);
}
