//! The programs that patsat ships.

use super::program::Program;
use crate::diag::{Result, Source};
use std::sync::Arc;

macro_rules! examples {
    ($($name:literal)*) => {
        /// The shipped programs, by name.
        const TEXTS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../programs/", $name, ".pat")))),*];
    };
}

examples! {
    "asum"
    "attention"
    "axpy"
    "batched"
    "blackscholes"
    "chain"
    "dot"
    "gemm"
    "gemv"
    "gemv_t"
    "kmeans"
    "matmul"
    "matmul_nt"
    "matmul_tn"
    "matmul_tt"
    "md"
    "mriq"
    "nbody"
    "nn"
    "nrm2"
    "outer"
    "pairwise"
    "scal"
    "sumsq"
    "syrk"
}

/// A shipped program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// Its name, which is also the name of its entry.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

impl Example {
    /// Returns all shipped programs, sorted by name.
    pub fn all() -> impl Iterator<Item = Example> {
        TEXTS.iter().map(|&(name, text)| Example { name, text })
    }

    /// Returns the text as a source file.
    pub fn source(&self) -> Arc<Source> {
        Source::new(format!("{}.pat", self.name), self.text)
    }

    /// Returns the first sentence of the comment above its entry.
    pub fn about(&self) -> String {
        let lines: Vec<&str> = self.text.lines().collect();
        let entry = lines.iter().position(|l| l.starts_with("entry ")).unwrap_or_default();
        let comment = lines[..entry].iter().rev().map_while(|l| l.strip_prefix("--"));
        let comment: Vec<&str> = comment.map(str::trim).collect();
        let comment: Vec<&str> = comment.into_iter().rev().collect();
        let text = comment.join(" ");
        text.split_once(". ").map_or(text.clone(), |(first, _)| format!("{first}."))
    }

    /// Returns the program.
    ///
    /// # Errors
    /// Never: a test checks the shipped programs.
    pub fn program(&self) -> Result<Program> {
        Program::check(&self.source(), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_program_is_an_example() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/programs");
        let files = std::fs::read_dir(folder).expect("the programs");
        let files = files.filter_map(|f| f.ok()?.file_name().into_string().ok());
        let files: BTreeSet<String> =
            files.filter_map(|f| Some(f.strip_suffix(".pat")?.to_owned())).collect();
        let names: BTreeSet<String> = Example::all().map(|e| e.name.to_owned()).collect();
        assert_eq!(names, files);
        for example in Example::all() {
            assert_eq!(example.program().expect(example.name).entry.name, example.name);
            assert!(example.about().ends_with('.'), "{}: {}", example.name, example.about());
        }
    }
}
