//! Runs the README's commands as they are, in order.

use std::process::Command;

#[test]
fn every_console_command_runs() {
    let root = env!("CARGO_MANIFEST_DIR");
    let readme = std::fs::read_to_string(format!("{root}/README.md")).expect("the README");
    let place = tempfile::TempDir::new().expect("a temporary folder");
    for folder in ["programs", "benches", "rules", "snapshots"] {
        let link = place.path().join(folder);
        std::os::unix::fs::symlink(format!("{root}/{folder}"), link).expect("a link");
    }
    let mut count = 0;
    for block in readme.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        for line in block.lines().filter_map(|l| l.strip_prefix("$ patsat ")) {
            let output = Command::new(env!("CARGO_BIN_EXE_patsat"))
                .args(line.split_whitespace())
                .current_dir(place.path())
                .env("PATSAT_STORE", place.path().join("store.sqlite"))
                .output()
                .expect("patsat runs");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "`patsat {line}`:\n{said}");
            assert!(!said.contains("warning"), "`patsat {line}`:\n{said}");
            count += 1;
        }
    }
    assert!(count >= 10, "only {count} commands found");
    assert!(place.path().join("y.npy").exists());
}

#[test]
fn it_starts_with_the_two_commands() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"))
        .expect("the README");
    let first = readme.split("```").nth(1).unwrap_or_default();
    assert_eq!(first.trim(), "make run\nmake test");
}
