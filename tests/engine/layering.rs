//! The layering: a module may use only layers before its own in the list. The test reads the sources, so that a new
//! import that breaks the layering fails here.

use std::fs;
use std::path::{Path, PathBuf};

/// The layers, lowest first.
const LAYERS: [&str; 12] = [
    "diag", "lang", "calculus", "rules", "device", "saturate", "extract", "kernel", "opencl",
    "tune", "session", "cli",
];

/// The folders and files inside `src/kernel`, lowest first.
const KERNEL: [&str; 8] =
    ["options", "ir", "analysis", "lower", "passes", "verify", "estimate", "generator"];

/// Collects every Rust file in a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Returns a file's text without comments and tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a source");
    let tests = text
        .match_indices("#[cfg(test)]\n")
        .map(|(at, _)| at)
        .find(|at| text[*at..].lines().nth(1).is_some_and(|line| line.ends_with("mod tests {")));
    let code = &text[..tests.unwrap_or(text.len())];
    code.lines().map(|l| l.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Returns the names that a text has after a prefix such as `crate::`, including nested imports such as
/// `use crate::{a::b, c}`.
fn uses(code: &str, prefix: &str) -> Vec<String> {
    let mut found = vec![];
    for rest in code.split(prefix).skip(1) {
        let name = |s: &str| -> String {
            s.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
        };
        match rest.strip_prefix('{') {
            None => found.push(name(rest)),
            Some(list) => {
                let mut depth = 0;
                let mut item = String::new();
                for c in list.chars() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => found.push(name(&std::mem::take(&mut item))),
                        _ => {}
                    }
                    if c != ',' || depth > 0 {
                        item.push(c);
                    }
                }
                found.push(name(&item));
            }
        }
    }
    found
}

/// Returns the path below `src/`, the layer and the code of every source.
fn sources() -> Vec<(String, String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = vec![];
    files(&root, &mut found);
    found
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&root).expect("below src").display().to_string();
            let layer = name.split(['/', '.']).next().unwrap_or_default().to_owned();
            (name, layer, code(&path))
        })
        .collect()
}

#[test]
fn modules_use_only_what_stands_above_them() {
    let place = |layer: &str| LAYERS.iter().position(|l| *l == layer);
    let mut wrong = vec![];
    for (name, layer, code) in sources() {
        if layer == "main" || layer == "lib" {
            continue;
        }
        // Test modules in files of their own may use any layer.
        if name.contains("/tests") || name.contains("agreement") {
            continue;
        }
        let own = place(&layer).unwrap_or_else(|| panic!("src/{name} is in no layer"));
        for used in uses(&code, "crate::") {
            if place(&used).is_some_and(|p| p > own) {
                wrong.push(format!("src/{name} uses {used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns the path below `src/kernel/`, the folder and the code of every source in it.
fn kernel_sources() -> Vec<(String, String, String)> {
    let below = |(name, _, code): (String, String, String)| {
        let name = name.strip_prefix("kernel/")?.to_owned();
        let folder = name.split(['/', '.']).next()?.to_owned();
        (folder != "mod" && !name.contains("/tests")).then_some((name, folder, code))
    };
    sources().into_iter().filter_map(below).collect()
}

#[test]
fn folders_of_kernel_use_only_what_stands_above_them() {
    let place = |folder: &str| KERNEL.iter().position(|f| *f == folder);
    let mut wrong = vec![];
    for (name, folder, code) in kernel_sources() {
        let own = place(&folder).unwrap_or_else(|| panic!("src/kernel/{name} is in no folder"));
        // What is not in the list is in `src/kernel/mod.rs`, which uses all folders.
        for used in uses(&code, "crate::kernel::") {
            if place(&used).is_none_or(|p| p > own) {
                wrong.push(format!("src/kernel/{name} uses {used}"));
            }
        }
        let inside = name.matches('/').count() - usize::from(name.ends_with("/mod.rs"));
        if code.contains(&"super::".repeat(inside + 1)) {
            wrong.push(format!("src/kernel/{name} uses `super` across folders"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_files_of_kernel_import_each_other() {
    let mut files: Vec<_> = kernel_sources()
        .into_iter()
        .map(|(name, folder, code)| {
            let own = name.trim_end_matches(".rs").to_owned();
            let siblings = uses(&code, "super::").into_iter();
            (own, siblings.map(|file| format!("{folder}/{file}")).collect::<Vec<_>>())
        })
        .collect();
    // Removes files that use none of those left, until only circles remain.
    loop {
        let left: Vec<_> = files.iter().map(|(own, _)| own.clone()).collect();
        files.retain(|(_, used)| used.iter().any(|file| left.contains(file)));
        if files.len() == left.len() {
            break;
        }
    }
    assert!(files.is_empty(), "{files:#?}");
}

#[test]
fn libraries_stay_where_they_belong() {
    let mut wrong = vec![];
    for (name, layer, code) in sources() {
        let mentions = |word: &str| {
            code.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|w| w == word)
        };
        let allowed = |what: &str| match what {
            "egg" => layer == "saturate" || layer == "extract",
            "cl3" | "opencl3" => name.starts_with("opencl/runtime"),
            "clap" | "indicatif" | "comfy_table" | "annotate_snippets" | "ctrlc" => layer == "cli",
            "lsp_server" | "lsp_types" => name.starts_with("cli/lsp/"),
            "libm" => name.starts_with("calculus/value"),
            "rusqlite" => name.starts_with("tune/store"),
            "strsim" => name == "lang/naming.rs",
            _ => false,
        };
        for what in [
            "egg",
            "cl3",
            "opencl3",
            "clap",
            "indicatif",
            "comfy_table",
            "annotate_snippets",
            "ctrlc",
            "libm",
            "lsp_server",
            "lsp_types",
            "rusqlite",
            "strsim",
        ] {
            let used = code.contains(&format!("{what}::")) && mentions(what);
            if used && !allowed(what) {
                wrong.push(format!("src/{name} uses {what}"));
            }
        }
        for macro_name in ["println!", "print!", "eprintln!", "eprint!", "dbg!"] {
            let printed = code
                .match_indices(macro_name)
                .any(|(at, _)| at == 0 || !code.as_bytes()[at - 1].is_ascii_alphanumeric());
            if printed && layer != "cli" && layer != "main" && !name.contains("tests") {
                wrong.push(format!("src/{name} prints"));
            }
        }
        // `main.rs` says what happens when memory runs out.
        let may_be_unsafe = name.starts_with("opencl/runtime") || name == "main.rs";
        if code.contains("unsafe ") && !may_be_unsafe {
            wrong.push(format!("src/{name} has unsafe code"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn imports_are_understood() {
    let code = "use crate::diag::{Code, Result};\nuse crate::{lang, calculus::{term, ty}, rules};";
    assert_eq!(uses(code, "crate::"), ["diag", "lang", "calculus", "rules"]);
}
