//! Folders with programs, for `check`, `fmt` and `snapshot`.

use super::Place;
use std::fs;

const LOOSE: &str = "entry f (x:f32):f32=x\n";
const FORMATTED: &str = "entry f (x: f32) : f32 =\n  x\n";

/// Makes a folder with two programs, and others that are skipped.
fn folder() -> (Place, String) {
    let p = Place::new();
    for name in ["sub/deep", ".hidden", "empty"] {
        fs::create_dir_all(p.path("all").join(name)).expect("a folder");
    }
    for name in ["b.pat", "sub/deep/a.pat", ".hidden/c.pat", ".d.pat", "notes.txt"] {
        p.file(&format!("all/{name}"), LOOSE);
    }
    let folder = p.path("all").display().to_string();
    (p, folder)
}

#[test]
fn all_programs_below_a_folder_are_checked() {
    let (p, all) = folder();
    let said = p.run(&format!("check {all}")).ok().stdout();
    let expected = ["b.pat", "sub/deep/a.pat"]
        .map(|name| format!("{all}/{name}: entry f (x: f32) : f32\n"))
        .concat();
    assert_eq!(said, expected);
    let said = p.run(&format!("check {all}/empty")).fails("E0901", 9).stderr();
    assert!(said.contains("no programs (`*.pat`) below") && said.contains("empty"), "{said}");
    let said = p.run(&format!("check {all}:f")).fails("E0903", 2).stderr();
    assert!(said.contains("is a folder") && said.contains("`FILE.pat:f`"), "{said}");
    p.run(&format!("snapshot {all}")).fails("no expectations in 2 files", 2);
}

#[test]
fn all_programs_below_a_folder_are_formatted() {
    let (p, all) = folder();
    let said = p.run(&format!("fmt --check {all}")).fails("E0902", 1).stderr();
    assert_eq!(said.matches("not in the standard form").count(), 2, "{said}");
    // A file that cannot be formatted does not keep others from it.
    p.file("all/a.pat", "entry f =\n");
    p.run(&format!("fmt {all}")).fails("E0102", 3);
    let text = |name: &str| fs::read_to_string(p.path("all").join(name)).expect("a file");
    assert_eq!((text("b.pat"), text("sub/deep/a.pat")), (FORMATTED.into(), FORMATTED.into()));
    assert_eq!((text(".hidden/c.pat"), text(".d.pat")), (LOOSE.into(), LOOSE.into()));
}
