//! Resolves `import "file"`. The texts of a program and of the files that it imports are joined to one text: spans,
//! stores and emitted programs need no notion of several files, and the store's key does not depend on their paths.
//!
//! In the joined text, imports are blank, an `entry` of an imported file is a `def`, and its `gen:` lines are blank: they describe
//! the parameters of that entry. All keep their length, so that places remain valid.

use super::rules::read;
use crate::diag::{Code, Diagnostic, Failure, Limits, Result, Source, Span};
use crate::lang::ast::Import;
use crate::lang::parser;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

/// Reads a program with the files that it imports; `-` is the standard input.
///
/// # Errors
/// [`Code::Io`] when a file cannot be read, [`Code::Recursion`] when a file imports itself, and errors of the grammar in
/// imported files.
pub fn read_program(path: &Path) -> Result<Arc<Source>> {
    with_imports(&read(path)?)
}

/// Adds the files that a program imports. Their paths are relative to the folder of the file that imports them.
///
/// # Errors
/// As [`read_program`].
pub fn with_imports(source: &Arc<Source>) -> Result<Arc<Source>> {
    with_imports_by(source, &|path| fs::read_to_string(path))
}

/// As [`with_imports`]. `text` reads a file, whose path has no links: an editor may hold another text of it.
///
/// # Errors
/// As [`read_program`].
pub fn with_imports_by(
    source: &Arc<Source>,
    text: &dyn Fn(&Path) -> io::Result<String>,
) -> Result<Arc<Source>> {
    let (file, _) = parser::parse(source);
    if file.imports.is_empty() {
        return Ok(source.clone());
    }
    let done = BTreeSet::new();
    let mut joined = Joined { text: String::new(), parts: vec![], done, read: text };
    let path = PathBuf::from(&source.name);
    joined.add(source, false, &mut vec![path.canonicalize().unwrap_or(path)])?;
    let Joined { text, parts, .. } = joined;
    Ok(Arc::new(Source { name: source.name.clone(), text, parts }))
}

struct Joined<'r> {
    text: String,
    parts: Vec<(usize, String)>,
    /// The files that are in the text.
    done: BTreeSet<PathBuf>,
    /// Reads a file.
    read: &'r dyn Fn(&Path) -> io::Result<String>,
}

impl Joined<'_> {
    /// Adds a file and what it imports. `open` are the files that are being added, this one last.
    fn add(&mut self, source: &Arc<Source>, imported: bool, open: &mut Vec<PathBuf>) -> Result<()> {
        let (file, tokens, diagnostics) = parser::parse_tokens(source);
        if parser::failed(&diagnostics) {
            return Err(Failure(diagnostics));
        }
        let mut text = source.text.clone();
        let mut blank = |span: Span, by: &str| {
            if text.get(span.range()).is_some() {
                text.replace_range(span.range(), by);
            }
        };
        for import in &file.imports {
            blank(import.span, &" ".repeat(import.span.range().len()));
        }
        for token in tokens.tokens {
            match source.text.get(token.span.range()) {
                Some("import") => blank(token.span, "      "),
                Some("entry") if imported => blank(token.span, "def  "),
                _ => {}
            }
        }
        for line in file.generators.iter().filter(|_| imported) {
            let comment = tokens.comments.iter().find(|c| c.span.end == line.span.end);
            let span = comment.map_or(line.span, |c| c.span);
            blank(span, &" ".repeat(span.range().len()));
        }
        self.parts.push((self.text.len(), source.name.clone()));
        self.text.push_str(&text);
        self.text.push('\n');
        if self.text.len() > Limits::DEFAULT.program_bytes {
            let most = Limits::DEFAULT.program_bytes;
            let message = format!("the program and its imports have more than {most} bytes");
            return Err(Diagnostic::error(Code::KernelLimit, message).into());
        }
        file.imports.iter().try_for_each(|import| self.import(source, import, open))
    }

    fn import(&mut self, by: &Arc<Source>, import: &Import, open: &mut Vec<PathBuf>) -> Result<()> {
        let folder = Path::new(&by.name).parent().unwrap_or(Path::new(""));
        let mut path = folder.join(&import.path);
        if path.extension().is_none() {
            path.set_extension("pat");
        }
        let unreadable = |why: String| {
            let message = format!("cannot read `{}`: {why}", path.display());
            let d = Diagnostic::error(Code::Io, message).at(by, import.span, "imported here");
            Failure::from(d.help("the path is relative to the folder of this file"))
        };
        let known = fs::canonicalize(&path).map_err(|e| unreadable(e.to_string()))?;
        if let Some(first) = open.iter().position(|p| *p == known) {
            let name = |p: &PathBuf| p.file_name().unwrap_or_default().display().to_string();
            let mut circle: Vec<_> = open[first..].iter().map(name).collect();
            circle.push(name(&known));
            let d = Diagnostic::error(Code::Recursion, "a file imports itself");
            let d = d.at(by, import.span, "this import closes the circle");
            return Err(d.note(circle.join(" imports ")).into());
        }
        if !self.done.insert(known.clone()) {
            return Ok(());
        }
        let text = (self.read)(&known).map_err(|e| unreadable(e.to_string()))?;
        open.push(known);
        self.add(&Source::new(path.display().to_string(), text), true, open)?;
        open.pop();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang;
    use crate::session::Program;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::TempDir::new().expect("a folder");
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("a file");
        }
        folder
    }

    fn failed(files: &[(&str, &str)]) -> Diagnostic {
        let place = folder(files);
        let Err(failure) = Program::load(&place.path().join("main.pat"), None) else {
            panic!("the program is accepted");
        };
        failure.0[0].clone()
    }

    #[test]
    fn definitions_of_other_files_are_known() {
        let files = [
            (
                "main.pat",
                "import \"a\"\nimport \"b.pat\"\nentry f [n] (xs: [n]f32) : f32 = total (map twice xs)\n",
            ),
            (
                "a.pat",
                "import \"b\"\n-- gen: xs=iota\nentry total [n] (xs: [n]f32) = reduce (+) 0 (map twice xs)\n",
            ),
            ("b.pat", "#[inline]\ndef twice (x: f32) = x + x\n"),
        ];
        let place = folder(&files);
        let program = Program::load(&place.path().join("main.pat"), None).expect("a program");
        assert_eq!(program.entry.name, "f");
        let (entries, diagnostics) = lang::check(&program.source);
        // The warning of a file that is imported is no error.
        let warned = diagnostics.iter().map(|d| d.code).collect::<Vec<_>>();
        assert_eq!((entries.len(), warned), (1, vec![Code::NoEffect]));
        // The joined text is a program of its own, wherever the files are.
        let again = Source::new("elsewhere", program.source.text.clone());
        let again = Program::check(&again, None).expect("a program");
        assert_eq!(again.entry, program.entry);
        // What `a.pat` says of its own entry is not part of it.
        assert!(again.samples.is_empty() && program.samples.is_empty());
    }

    #[test]
    fn types_and_constants_of_other_files_are_known() {
        let files = [
            (
                "main.pat",
                "import \"a\"\nentry f [n] (ps: [n]point) : [n]f32 = map (\\p -> g * length2 p) ps\n",
            ),
            (
                "a.pat",
                "import \"b\"\nlet g = 9.81\ndef length2 (p: point) : f32 = p.x * p.x + p.y * p.y\n",
            ),
            ("b.pat", "type point = {x: f32, y: f32}\n"),
        ];
        let program = Program::load(&folder(&files).path().join("main.pat"), None);
        assert_eq!(program.expect("a program").entry.params.len(), 1);
        // A type that no file has is reported where it is mentioned.
        let d = failed(&[files[0], files[1], ("b.pat", "def h (x: f32) = x\n")]);
        assert_eq!((d.code, d.message.as_str()), (Code::UnknownName, "there is no type `point`"));
        let source = d.source.expect("a place");
        assert!(source.part(d.labels[0].span.start as usize).0.ends_with("main.pat"));
    }

    #[test]
    fn what_is_wrong_with_an_import_has_a_place() {
        let main = ("main.pat", "import \"a\"\nentry f (x: f32) : f32 = g x\n");
        let d = failed(&[main]);
        assert_eq!(d.code, Code::Io, "{d}");
        assert_eq!(d.labels[0].span, Span::new(7, 10));
        let d = failed(&[main, ("a.pat", "import \"main\"\ndef g x = x\n")]);
        assert_eq!(
            (d.code, d.notes.join("")),
            (Code::Recursion, "main.pat imports a.pat imports main.pat".into())
        );
        let d = failed(&[main, ("a.pat", "def g x = \n")]);
        assert!(d.code == Code::Parse && d.source.expect("a place").name.ends_with("a.pat"));
        // An error in an imported file is shown there.
        let d = failed(&[main, ("a.pat", "def f x = x\ndef g x = x\n")]);
        assert_eq!(d.code, Code::DuplicateName, "{d}");
        let source = d.source.expect("a place");
        let of = |i: usize| source.part(d.labels[i].span.start as usize).0.to_owned();
        assert!(of(0).ends_with("a.pat") && of(1).ends_with("main.pat"));
        let d = lang::check(&Source::new("p", main.1)).1.remove(0);
        assert_eq!(d.code, Code::UnknownName, "{d}");
    }
}
