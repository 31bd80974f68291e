//! Plans: `optimize` writes them, `run` uses them, and they are refused when they no longer fit.

use super::Place;
use std::fs;

#[test]
fn a_plan_runs_the_kernels_that_were_found() {
    let p = Place::new();
    let plan = p.path("asum.plan");
    let plan = plan.display();
    let size = "--size n=100003 --device portable";
    let args = format!("--json optimize programs/asum.pat {size} --budget 3 -o {plan}");
    let found = p.run(&args).ok();
    assert_eq!(found.last("plan")["output"], plan.to_string());
    let found = found.last("result");
    // Neither the store nor a search is involved; the sizes come from the plan.
    let args = "--gen xs=normal --no-store --device portable --verify";
    let ran = p.run(&format!("--json run programs/asum.pat --plan {plan} {args}")).ok();
    assert!(!ran.json().iter().any(|l| l["type"] == "saturated"), "{}", ran.stdout());
    let ran = ran.last("result");
    assert_eq!((&ran["kernels_from"], &ran["verified"]), (&"plan".into(), &true.into()));
    for field in ["kernels", "term", "tunables", "sizes", "rules", "driver"] {
        assert_eq!(ran[field], found[field], "{field}");
    }
    // Arrays of another length are refused.
    let args = "--size n=100000 --gen xs=normal --device portable";
    let said = p.run(&format!("run programs/asum.pat --plan {plan} {args}")).fails("E0904", 1);
    assert!(said.stderr().contains("n` = 100003, not for `n` = 100000"), "{}", said.stderr());
    // Another program with the same name is refused.
    let other = p.file("asum.pat", "entry asum [n] (xs: [n]f32) : f32 = reduce (+) 0 xs\n");
    let said = p.run(&format!("run {other} --plan {plan} --gen xs=normal")).fails("E0904", 1);
    assert!(said.stderr().contains("program has changed") && said.stderr().contains("optimize"));
    p.run(&format!("run programs/dot.pat --plan {plan} --gen xs=normal --gen ys=normal"))
        .fails("E0904", 1);
    // Only plans may be overwritten.
    let taken = p.file("taken", "precious\n");
    let none = "optimize programs/scal.pat --size n=64 --device none";
    p.run(&format!("{none} -o {taken}")).fails("E0908", 9);
    assert_eq!(fs::read_to_string(&taken).expect("a file"), "precious\n");
    p.run(&format!("{none} -o {plan}")).ok();
    p.run(&format!("{none} -o /no/such/folder/plan")).fails("E0901", 9);
    p.run("run programs/scal.pat --plan /no/such.plan").fails("E0901", 9);
}

/// The network that sorts 25 elements is a chain of hundreds of definitions.
#[test]
fn the_plan_of_a_long_term_is_read_back() {
    let p = Place::new();
    let text = "entry median [n] (xs: [n]u8) : [n]u8 =
  xs |> pad 12 12 clamp |> slide 25 1 |> map (\\w -> (sort w)[12])\n";
    let (file, plan) = (p.file("median.pat", text), p.path("median.plan").display().to_string());
    let size = "--size n=100 --device portable";
    p.run(&format!("optimize {file} {size} --budget 1 -o {plan}")).ok();
    let ran =
        p.run(&format!("--json run {file} --plan {plan} --gen xs=whole:0..256 --verify")).ok();
    assert_eq!(ran.last("result")["verified"], true);
    p.run(&format!("emit {file} --plan {plan} -o {}", p.path("kernels").display())).ok();
    // The tuning store holds terms, too.
    let ran = p.run(&format!("--json run {file} {size} --gen xs=whole:0..256 --verify")).ok();
    assert_eq!(ran.last("result")["kernels_from"], "store");
}

#[test]
fn the_command_after_a_plan_reads_it_without_a_warning() {
    let p = Place::new();
    let plan = p.path("scal.plan").display().to_string();
    let made = format!("optimize programs/scal.pat --size n=1000 --device none -o {plan}");
    let ran = p.run(&format!("{made} --float relaxed")).ok();
    let said = ran.stdout();
    let next = said.lines().find_map(|l| l.strip_prefix("next")).expect("a command").trim();
    let (_, next) = next.split_once("patsat ").expect("a command");
    assert!(next.starts_with("emit") && next.ends_with("--float relaxed"), "{next}");
    let kernels = p.path("kernels").display().to_string();
    let ran = p.run(&next.replace("scal-kernels", &kernels)).ok();
    assert!(!ran.stderr().contains("W0907"), "{}", ran.stderr());
}

#[test]
fn what_a_plan_says_of_elsewhere_is_a_warning() {
    let p = Place::new();
    let plan = p.path("scal.plan").display().to_string();
    p.run(&format!("optimize programs/scal.pat --size n=1000 --device none -o {plan}")).ok();
    let run = "--gen xs=iota --arg alpha=2 --device portable --verify";
    let ran = p.run(&format!("run programs/scal.pat --plan {plan} {run}")).ok();
    assert!(ran.stderr().contains("W0907") && ran.stderr().contains("was made for generic CPU"));
    assert!(ran.stdout().contains("1998.0"), "{}", ran.stdout());
    // The same input gives the same plan, so that a diff shows what has changed.
    let text = fs::read_to_string(&plan).expect("a plan");
    p.run(&format!("optimize programs/scal.pat --size n=1000 --device none -o {plan}")).ok();
    assert_eq!(fs::read_to_string(&plan).expect("a plan"), text);
    // Kernels that differ from the plan's are run only on request, and are then checked.
    let hash = text.lines().find(|l| l.starts_with("kernels = ")).expect("a hash");
    let changed = p.file("changed.plan", text.replace(hash, "kernels = \"00\""));
    let run = format!("run programs/scal.pat --plan {changed} --gen xs=iota --arg alpha=2");
    p.run(&format!("{run} --device portable")).fails("E0904", 1);
    let ran = p.run(&format!("--json {run} --device portable --force")).ok();
    assert_eq!(ran.last("result")["verified"], true);
    // A term of the right type that computes something else is detected.
    let start = text.find("'''\n").expect("a term") + 4;
    let end = start + text[start..].find("\n'''").expect("its end");
    let wrong = format!("{}mapSeq (\\x -> alpha + x) . xs{}", &text[..start], &text[end..]);
    let changed = p.file("wrong.plan", wrong);
    let run = format!("run programs/scal.pat --plan {changed} --gen xs=iota --arg alpha=2");
    p.run(&format!("{run} --device portable")).fails("E0904", 1);
    p.run(&format!("{run} --device portable --force")).fails("E0609", 1);
    // A file that is not a plan gives an error with a place.
    let broken = p.file("broken.plan", text.replace("[sizes]", "[sizes"));
    let said = p.run(&format!("run programs/scal.pat --plan {broken}")).fails("E0905", 3);
    let line = text.lines().position(|l| l == "[sizes]").expect("sizes") + 1;
    assert!(said.stderr().contains(&format!("broken.plan:{line}:")), "{}", said.stderr());
    p.run("run programs/scal.pat --plan programs/scal.pat").fails("E0905", 3);
    p.run("run programs/scal.pat --force").fails("--plan", 2);
}
