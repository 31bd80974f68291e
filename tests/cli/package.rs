//! The packed crate has every file that the program is built from.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the files that a source includes by a literal path.
fn included(source: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(source).expect("a source");
    let paths = text.split("include_str!(\"").skip(1).filter_map(|rest| rest.split('"').next());
    let folder = source.parent().expect("a folder");
    paths.map(|path| fs::canonicalize(folder.join(path)).expect(path)).collect()
}

/// Collects all sources below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => sources(&path, found),
            false => found.extend(path.extension().is_some_and(|e| e == "rs").then_some(path)),
        }
    }
}

#[test]
fn what_is_included_is_packed() {
    let root = fs::canonicalize(env!("CARGO_MANIFEST_DIR")).expect("the root");
    let mut listing = Command::new(env!("CARGO"));
    listing.args(["package", "--list", "--allow-dirty", "--offline", "-p", "patsat"]);
    let listing = listing.current_dir(&root).output().expect("cargo runs");
    assert!(listing.status.success(), "{}", String::from_utf8_lossy(&listing.stderr));
    let listing = String::from_utf8(listing.stdout).expect("names");
    let packed: BTreeSet<PathBuf> = listing.lines().map(|name| root.join(name)).collect();
    let mut files = vec![];
    sources(&root.join("src"), &mut files);
    let mut needed: Vec<PathBuf> = files.iter().flat_map(|file| included(file)).collect();
    let programs = fs::read_dir(root.join("programs")).expect("the programs");
    needed.extend(programs.map(|f| f.expect("a file").path()).filter(|f| f.is_file()));
    needed.extend(["README.md", "LICENSE-APACHE", "LICENSE-MIT"].map(|name| root.join(name)));
    assert!(needed.len() > 40, "{}", needed.len());
    let missing: Vec<_> = needed.iter().filter(|file| !packed.contains(*file)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
