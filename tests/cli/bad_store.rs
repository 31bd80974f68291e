//! Tuning stores that cannot be used.

use super::Place;
use rusqlite::Connection;

const OPTIMIZE: &str = "optimize programs/scal.pat --size n=100 --budget 1 --device portable";

#[test]
fn damaged_stores_are_left_alone() {
    let p = Place::new();
    p.file(
        "store.sqlite",
        "this is no database, and long enough to be looked at as one\n".repeat(20),
    );
    p.run("store list").fails("E0802", 8);
    p.run(OPTIMIZE).fails("E0802", 8);
    // A file that is not a tuning store is not overwritten.
    assert!(
        std::fs::read_to_string(p.path("store.sqlite"))
            .expect("the file is there")
            .starts_with("this is")
    );
}

#[test]
fn newer_stores_are_left_alone() {
    let p = Place::new();
    p.run("store list").ok();
    let newer = Connection::open(p.path("store.sqlite")).expect("SQLite makes the file");
    newer.pragma_update(None, "user_version", 1_000_000).expect("the file can be changed");
    drop(newer);
    p.run("store list").fails("E0803", 8);
    p.run(OPTIMIZE).fails("E0803", 8);
}

#[test]
fn locked_stores_are_waited_for_and_told_of() {
    let p = Place::new();
    p.run("store list").ok();
    let other = Connection::open(p.path("store.sqlite")).expect("SQLite makes the file");
    other
        .execute_batch("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE")
        .expect("the file can be changed");
    p.run("store gc --keep 1").fails("E0801", 8);
}

#[test]
fn imports_that_are_none_leave_the_store_alone() {
    let p = Place::new();
    for (text, says) in [
        ("{", "EOF while parsing"),
        ("{\"format\": \"patsat store\", \"version\": 7, \"runs\": []}", "version 7"),
        ("{\"format\": \"another\", \"version\": 1}", "another"),
        (
            "{\"format\": \"patsat store\", \"version\": 1,\n \"runs\": [{\"kee\": 1}]}",
            "unknown field `kee`",
        ),
    ] {
        let file = p.file("export.json", text);
        let ran = p.run(&format!("store import --yes {file}")).fails("E0805", 8);
        assert!(ran.stderr().contains(says), "{}", ran.stderr());
        assert!(ran.stderr().contains("export.json"), "{}", ran.stderr());
    }
    assert!(!p.path("store.sqlite").exists());
    p.run("store import no-such.json").fails("E0901", 9);
    p.run("store merge no-such.sqlite").fails("E0804", 8);
    let text = p.file("text.sqlite", "no database, but long enough to be looked at\n".repeat(30));
    p.run(&format!("store merge {text}")).fails("E0802", 8);
}

#[test]
fn places_that_cannot_be_written_are_told_of() {
    let p = Place::new();
    p.run("store list --store /dev/null/store.sqlite").fails("E0804", 8);
    p.run(&format!("{OPTIMIZE} --store /proc/no/such.sqlite")).fails("E0804", 8);
}
