//! Runs the commands of the README and of the documentation's pages as they stand there, in order, and checks the links
//! between the pages. `make site` builds the site itself.
//!
//! A page's blocks of these kinds are used, each in a folder of the page's own:
//!
//! - ```` ```console ````: each line `$ COMMAND` is run by a shell. Lines below it are a part of what it prints, in this order;
//!   `...` stands for any text in a line, or for any lines. A command that fails is followed by `# exit status N`.
//! - ```` ```LANGUAGE FILE ````: the text is written to the file, before the commands below it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn text(page: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(page)).unwrap_or_else(|e| panic!("{page}: {e}"))
}

/// Returns the fenced blocks of a page: the line behind the fence, and the text.
fn blocks(page: &str) -> Vec<(String, String)> {
    let (mut blocks, mut open) = (vec![], None);
    for line in text(page).lines() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(info), None) => open = Some((info.to_owned(), String::new())),
            (None, Some((_, text))) => text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    blocks
}

/// Whether a line has the parts of the expected one between its `...`, in this order.
fn fits(line: &str, expected: &str) -> bool {
    let parts: Vec<&str> = expected.trim_end().split("...").collect();
    let (first, last) = (parts[0], parts[parts.len() - 1]);
    let mut rest = line.trim_end();
    if parts.len() == 1 {
        return rest == first;
    }
    let mut found = rest.starts_with(first) && rest.ends_with(last);
    for part in parts {
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => found = false,
        }
    }
    found
}

/// Runs the commands of a page. Returns their number, and the folder in which they ran.
fn run(page: &str) -> (usize, tempfile::TempDir) {
    let place = tempfile::TempDir::new().expect("a temporary folder");
    let at = |name: &str| place.path().join(name);
    for folder in ["programs", "benches", "rules", "snapshots", "cost-models"] {
        std::os::unix::fs::symlink(Path::new(ROOT).join(folder), at(folder)).expect("a link");
    }
    let tool = Path::new(env!("CARGO_BIN_EXE_patsat")).parent().expect("a folder");
    let path = format!("{}:{}", tool.display(), std::env::var("PATH").unwrap_or_default());
    let mut count = 0;
    for (info, block) in blocks(page) {
        if let Some((_, file)) = info.split_once(' ') {
            fs::create_dir_all(at(file).parent().expect("a folder")).expect("a folder");
            fs::write(at(file), block).expect("a file");
            continue;
        }
        let mut lines = block.lines().filter(|_| info == "console").peekable();
        while let Some(line) = lines.next() {
            let command = line.strip_prefix("$ ").unwrap_or_else(|| panic!("{page}: {line}"));
            let output = Command::new("sh")
                .args(["-c", command])
                .current_dir(place.path())
                .env("PATH", &path)
                .env("PATSAT_STORE", at("store.sqlite"))
                .env("XDG_CONFIG_HOME", at("config"))
                .output()
                .expect("a shell");
            let said = String::from_utf8_lossy(&output.stderr);
            let all = format!("{}{said}", String::from_utf8_lossy(&output.stdout));
            let status = command.split_once("# exit status ").map_or("0", |(_, status)| status);
            let ended = output.status.code().map(|code| code.to_string());
            assert_eq!(ended.as_deref(), Some(status), "{page}: {command}:\n{all}");
            assert!(!said.contains("warning"), "{page}: {command}:\n{said}");
            let mut printed = all.lines();
            while let Some(expected) = lines.next_if(|l| !l.starts_with("$ ")) {
                let found = expected.trim() == "..." || printed.any(|line| fits(line, expected));
                assert!(
                    found,
                    "{page}: {command} does not print {expected}\nin this place:\n{all}"
                );
            }
            count += 1;
        }
    }
    (count, place)
}

/// A test for each page with commands.
macro_rules! pages {
    ($($name:ident $page:literal)*) => {
        const RUN: &[&str] = &["README.md", $($page),*];
        $(#[test] fn $name() { assert!(run($page).0 > 0, "no commands"); })*
    };
}

pages! {
    tutorial "docs/tutorial.md"
    new_device "docs/new-device.md"
    embedding "docs/embedding.md"
    own_rules "docs/own-rules.md"
    why_this_kernel "docs/why-this-kernel.md"
    continuous_integration "docs/continuous-integration.md"
    sharing_a_store "docs/sharing-a-store.md"
    json_lines "docs/json-lines.md"
    plans "docs/plans.md"
    how_it_works "docs/how-it-works.md"
    performance "docs/performance.md"
}

#[test]
fn readme() {
    let (count, place) = run("README.md");
    assert!(count >= 10, "only {count} commands found");
    assert!(place.path().join("y.npy").exists());
}

/// Returns the targets of a page's links.
fn links(page: &str) -> Vec<String> {
    let text = text(page);
    // Code has brackets, too.
    let prose = text.split("```").step_by(2).flat_map(|part| part.split('`').step_by(2));
    let targets =
        prose.flat_map(|part| part.split("](").skip(1).filter_map(|r| r.split(')').next()));
    targets.map(str::to_owned).collect()
}

/// Returns the names by which links refer to the headings of a page.
fn anchors(page: &str) -> BTreeSet<String> {
    let text = text(page);
    let heading = |line: &str| {
        let title = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        title.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
    };
    text.lines().filter(|line| line.starts_with('#')).map(heading).collect()
}

/// Returns the pages of the site, as paths from the root.
fn pages() -> Vec<String> {
    let folder = Path::new(ROOT).join("docs");
    let path = |link: &String| match link.strip_prefix("../") {
        Some(outside) => outside.to_owned(),
        None => format!("docs/{link}"),
    };
    let pages: Vec<String> = links("docs/SUMMARY.md").iter().map(path).collect();
    let listed: BTreeSet<PathBuf> = pages.iter().map(|page| Path::new(ROOT).join(page)).collect();
    assert_eq!(pages.len(), listed.len(), "a page is listed twice");
    for entry in fs::read_dir(folder).expect("the pages") {
        let file = entry.expect("a file").path();
        let is_page = file.extension().is_some_and(|e| e == "md") && !file.ends_with("SUMMARY.md");
        assert!(!is_page || listed.contains(&file), "{} is not in SUMMARY.md", file.display());
    }
    pages
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut wrong = vec![];
    for page in pages().iter().map(String::as_str).chain(["README.md", "CONTRIBUTING.md"]) {
        let folder = Path::new(page).parent().expect("a folder");
        for link in links(page).iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => PathBuf::from(page),
                _ => folder.join(file),
            };
            let there = Path::new(ROOT).join(&target).exists();
            let target = target.display().to_string();
            if !there || !anchor.is_empty() && !anchors(&target).contains(anchor) {
                wrong.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_page_with_commands_is_run() {
    let has_commands = |page: &String| blocks(page).iter().any(|(info, _)| info == "console");
    let pages: Vec<String> = pages().into_iter().filter(has_commands).collect();
    let missing: Vec<_> = pages.iter().filter(|page| !RUN.contains(&page.as_str())).collect();
    assert!(missing.is_empty(), "not in `pages!`: {missing:?}");
}

#[test]
fn every_code_and_exit_status_is_listed() {
    let page = text("docs/errors.md");
    for code in patsat::diag::Code::ALL {
        let row = format!("| `{}` | {} | {} |\n", code.as_str(), code.meaning(), code.exit() as u8);
        assert!(page.contains(&row), "docs/errors.md has no row\n{row}");
    }
    for exit in patsat::diag::Exit::ALL {
        let row = format!("| {} | {} |\n", *exit as u8, exit.meaning());
        assert!(page.contains(&row), "docs/errors.md has no row\n{row}");
    }
}

#[test]
fn the_readme_starts_with_the_two_commands() {
    let first = text("README.md").split("```").nth(1).unwrap_or_default().trim().to_owned();
    assert_eq!(first, "make run\nmake test");
}
