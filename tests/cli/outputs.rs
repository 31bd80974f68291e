//! Output files: where they are written, and which files they never replace.

use super::{Place, Ran, floats, npy, read_floats};
use std::fs;

const OTHER: &str = "precious\n";

/// Runs a command that would overwrite `file`, which holds something else, then runs it again with `--force`.
#[track_caller]
fn replaces_only_with_force(p: &Place, args: &str, file: &str) {
    let before = fs::read(file).expect("a file");
    let ran = p.run(args).fails("E0908", 9);
    assert!(ran.stderr().contains("--force"), "{}", ran.stderr());
    assert_eq!(fs::read(file).expect("a file"), before, "{args}");
    p.run(&format!("{args} --force")).ok();
    assert_ne!(fs::read(file).expect("a file"), before, "{args}");
    // The file now has the right kind and may be replaced.
    p.run(args).ok();
}

#[test]
fn files_of_another_kind_are_kept() {
    let p = Place::new();
    for (i, args) in [
        "gen FILE --shape 2",
        "eval programs/scal.pat --size n=2 --gen xs=iota --arg alpha=2 --output FILE",
        "run programs/scal.pat --size n=2 --gen xs=iota --arg alpha=2 --budget 0 --no-store --output FILE",
        "optimize programs/scal.pat --size n=64 --device none -o FILE",
        "explain programs/scal.pat --size n=64 --html FILE",
        "egraph programs/scal.pat --size n=64 -o FILE",
        "egraph programs/scal.pat --size n=64 --format svg -o FILE",
        "egraph programs/scal.pat --size n=64 --format json -o FILE",
        "report -o FILE",
        "store export -o FILE",
    ]
    .into_iter()
    .enumerate()
    {
        let file = p.file(&format!("other-{i}"), OTHER);
        replaces_only_with_force(&p, &args.replace("FILE", &file), &file);
    }
    // These commands take long. The existing file is detected before anything is measured.
    let file = p.file("other", OTHER);
    for args in [
        "search compare programs/scal.pat --size n=64 -o",
        "calibrate --quick -o",
        "optimize programs/scal.pat --size n=4096 --budget 1000 -o",
    ] {
        p.run(&format!("{args} {file}")).fails("E0908", 9);
    }
    assert_eq!(fs::read_to_string(file).expect("a file"), OTHER);
}

#[test]
fn inputs_are_kept() {
    let p = Place::new();
    // Overwriting the program or the store was possible once.
    let program = p.file("q.pat", fs::read("programs/scal.pat").expect("a program"));
    let given = "--size n=2 --gen xs=iota --arg alpha=2";
    replaces_only_with_force_then_gone(
        &p,
        &format!("eval {program} {given} --output {program}"),
        &program,
    );
    let store = p.path("store.sqlite").display().to_string();
    p.run("store list").ok();
    let before = fs::read(&store).expect("a store");
    p.run(&format!("store export --store {store} -o {store}")).fails("E0908", 9);
    assert_eq!(fs::read(&store).expect("a store"), before);
    // An array that is also an input, including through a link.
    let xs = p.file("xs.npy", npy("<f4", false, "(2,)", &floats(&[1.0, 2.0])));
    let eval = format!("eval programs/scal.pat --arg alpha=2 --input xs={xs} --output");
    p.run(&format!("{eval} {xs}")).fails("E0908", 9);
    #[cfg(unix)]
    {
        let link = p.path("link.npy");
        std::os::unix::fs::symlink(&xs, &link).expect("a link");
        p.run(&format!("{eval} {}", link.display())).fails("E0908", 9);
    }
    assert_eq!(read_floats(&p.path("xs.npy")), [1.0, 2.0]);
    p.run(&format!("{eval} {xs} --force")).ok();
    assert_eq!(read_floats(&p.path("xs.npy")), [2.0, 4.0]);
    // Each component has its own file.
    let two =
        p.file("two.pat", "entry two [n] (xs: [n](f32, i32)) : ([n]f32, [n]i32) = unzip xs\n");
    let taken = p.file("z.1.npy", OTHER);
    let z = p.path("z.npy");
    p.run(&format!("eval {two} --size n=2 --gen xs=iota --output {}", z.display()))
        .fails("E0908", 9);
    assert_eq!(fs::read_to_string(taken).expect("a file"), OTHER);
    assert!(!p.path("z.0.npy").exists());
}

/// Like `replaces_only_with_force`, for a program that the command reads and that is lost once it is replaced.
#[track_caller]
fn replaces_only_with_force_then_gone(p: &Place, args: &str, file: &str) {
    let before = fs::read(file).expect("a file");
    p.run(args).fails("E0908", 9);
    assert_eq!(fs::read(file).expect("a file"), before);
    p.run(&format!("{args} --force")).ok();
    assert!(fs::read(file).expect("a file").starts_with(b"\x93NUMPY"));
}

#[test]
fn emitted_folders_keep_inputs() {
    let p = Place::new();
    let dir = p.path("dir").display().to_string();
    p.run(&format!("emit programs/scal.pat --size n=64 --device none -o {dir}")).ok();
    // Emitted again from its own files, the folder is unchanged.
    let own = format!("emit {dir}/program.pat --plan {dir}/kernels.plan -o {dir}");
    p.run(&own).ok();
    let plan = fs::read_to_string(format!("{dir}/kernels.plan")).expect("a plan");
    fs::write(format!("{dir}/kernels.plan"), format!("{plan}# By hand.\n")).expect("written");
    p.run(&own).fails("E0908", 9);
    let kept = fs::read_to_string(format!("{dir}/kernels.plan")).expect("a plan");
    assert!(kept.ends_with("# By hand.\n"));
    p.run(&format!("{own} --force")).ok();
    p.run("emit programs/scal.pat --size n=64 --device none -o -").fails("E0903", 2);
}

/// Writing fails after some bytes: the shell's file size limit simulates a full disk.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_keeps_the_old_file() {
    let p = Place::new();
    let old = npy("<f4", false, "(1,)", &floats(&[7.0]));
    fs::create_dir(p.path("full")).expect("a folder");
    let file = p.file("full/a.npy", &old);
    let script = format!(
        "trap '' XFSZ; ulimit -f 8; exec {} gen {file} --shape 100000",
        env!("CARGO_BIN_EXE_patsat")
    );
    let ran = std::process::Command::new("sh").args(["-c", &script]).output().expect("a shell");
    Ran(ran).fails("E0901", 9);
    assert_eq!(fs::read(&file).expect("a file"), old);
    assert_eq!(fs::read_dir(p.path("full")).expect("a folder").count(), 1, "nothing is left over");
}

#[test]
fn a_dash_is_the_standard_output() {
    let p = Place::new();
    let mut command = p.command("gen - --shape 3 --how iota");
    let ran = Ran(command.current_dir(p.path("")).output().expect("patsat runs")).ok();
    let read = patsat::session::npy::parse(&ran.0.stdout[..], "-").expect("an array");
    assert_eq!(read.data.to_vec::<f32>().expect("floats"), [0.0, 1.0, 2.0]);
    assert!(!p.path("-").exists());
    let ran =
        p.run("eval programs/scal.pat --size n=2 --gen xs=iota --arg alpha=2 --output -").ok();
    assert!(ran.0.stdout.starts_with(b"\x93NUMPY"));
    // Nothing else is printed on standard output.
    let ran = p.run("optimize programs/scal.pat --size n=64 --device none -o -").ok();
    assert!(ran.stdout().starts_with("# patsat plan") && !ran.stdout().contains("searched  "));
    assert!(
        p.run("egraph programs/scal.pat --size n=64 -o -").ok().stdout().starts_with("digraph")
    );
    assert!(p.run("store export -o -").ok().stdout().starts_with('{'));
    assert!(p.run("report -o -").ok().stdout().starts_with("<!DOCTYPE html>"));
    // The same stream or the same file for two outputs is refused.
    p.run("gen - --shape 3 --json").fails("", 2);
    let two =
        p.file("two.pat", "entry two [n] (xs: [n](f32, i32)) : ([n]f32, [n]i32) = unzip xs\n");
    p.run(&format!("eval {two} --size n=2 --gen xs=iota --output -")).fails("E0903", 2);
}
