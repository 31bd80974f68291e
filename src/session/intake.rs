//! Checks measurements of other stores before they are imported: computes again the hashes of programs and kernels
//! that their keys claim.

use super::program::Program;
use crate::diag::{Code, Diagnostic, Result, Source};
use crate::tune::store::{About, Dump, Run};
use crate::tune::variant::hash;

/// Checks that imported measurements belong to the programs and kernels that their keys name. The hashes of another
/// version of patsat cannot be computed again, so its runs are not checked; this version only uses them for the
/// nearest sizes.
///
/// # Errors
/// [`Code::StoreImport`] with the first run that does not match its key; `name` is the name of the file.
pub fn check_import(dump: &Dump, name: &str) -> Result<()> {
    for (i, run) in dump.runs.iter().enumerate() {
        if run.key.tool != env!("CARGO_PKG_VERSION") {
            continue;
        }
        let other = run.about.as_ref().and_then(|about| other_program(run, about));
        if let Some(what) = other.or_else(|| other_kernels(run)) {
            let text = format!("the export contradicts itself: {what}");
            let at = format!("{name}: runs[{i}]");
            return Err(Diagnostic::error(Code::StoreImport, text).note(at).into());
        }
    }
    Ok(())
}

/// Returns how the key of a run disagrees with the text of its program; `None` if they agree.
fn other_program(run: &Run, about: &About) -> Option<String> {
    let source = Source::new(about.file.clone(), about.text.clone());
    let Ok(program) = Program::check(&source, Some(&run.key.entry)) else {
        return Some(format!("its text is not a valid program with an entry `{}`", run.key.entry));
    };
    let found = program.hash();
    if found != run.key.program {
        let claimed = &run.key.program;
        return Some(format!(
            "the key is for the program {claimed}, but the hash of its text is {found}"
        ));
    }
    let declared = &program.entry.sizes;
    let same = run.key.sizes.len() == declared.len()
        && declared.iter().all(|n| run.key.sizes.contains_key(n));
    (!same).then(|| format!("the sizes in the key are not those of `{}`", run.key.entry))
}

/// Returns the first candidate whose hash is not that of its kernels, as a message.
fn other_kernels(run: &Run) -> Option<String> {
    run.candidates.iter().enumerate().find_map(|(j, r)| {
        let plan = r.host.clone()?.plan(r.source.clone());
        let found = hash(&plan).ok()?;
        let text = format!("the hash of the kernels of candidates[{j}] is {found}, not {}", r.plan);
        (found != r.plan).then_some(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::format;
    use std::path::Path;

    #[test]
    fn a_program_in_the_standard_form_has_the_key_that_it_had() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
        let mut seen = 0;
        for file in std::fs::read_dir(folder).expect("a folder") {
            let path = file.expect("a file").path();
            if path.extension().is_none_or(|e| e != "pat") {
                continue;
            }
            let source = crate::session::read(&path).expect("a program");
            for entry in crate::session::check(&source, true).0 {
                let program = Program::check(&source, Some(&entry.name)).expect("a program");
                let text = format(&source).expect("a program");
                let again = Program::check(&Source::new("f.pat", text), Some(&entry.name));
                assert_eq!(again.expect("a program").hash(), program.hash(), "{}", path.display());
                seen += 1;
            }
        }
        assert!(seen > 10);
    }
}
