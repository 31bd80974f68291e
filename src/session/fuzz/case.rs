//! The parameters of a fuzz case, stored as a comment line in the program itself.

use crate::diag::{Code, Diagnostic, Result, Source};
use crate::session::Sizes;

/// The prefix of the line.
const WORD: &str = "-- fuzz:";

/// The seed and sizes with which a program is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Decides the inputs, the rules and the candidates.
    pub seed: u64,
    /// The value of each size parameter.
    pub sizes: Sizes,
}

impl Case {
    /// Returns the comment line, with its newline.
    pub fn comment(&self) -> String {
        let sizes: String = self.sizes.iter().map(|(n, v)| format!(" {n}={v}")).collect();
        format!("{WORD} seed={}{sizes}\n", self.seed)
    }

    /// Reads the case from the first such line of a program.
    ///
    /// # Errors
    /// [`Code::Usage`] when there is no such line, or it is malformed.
    pub fn of(source: &Source) -> Result<Case> {
        let line = source.text.lines().find_map(|l| l.strip_prefix(WORD));
        let wrong = |text: String| {
            Diagnostic::error(Code::Usage, format!("{}: {text}", source.name))
                .help("a program that is to be tried has a line `-- fuzz: seed=1 n=5`, with the value of each size")
        };
        let line =
            line.ok_or_else(|| wrong("there is no line that begins with `-- fuzz:`".into()))?;
        let mut case = Case { seed: 0, sizes: Sizes::new() };
        for word in line.split_whitespace() {
            let parts = word.split_once('=').and_then(|(n, v)| Some((n, v.parse().ok()?)));
            match parts {
                Some(("seed", seed)) => case.seed = seed,
                Some((name, value)) => {
                    case.sizes.insert(name.to_owned(), value);
                }
                None => return Err(wrong(format!("`{word}` is no `NAME=NUMBER`")).into()),
            }
        }
        Ok(case)
    }

    /// Returns the program text with its line replaced by this case.
    pub fn rewrite(&self, text: &str) -> String {
        let rest: Vec<&str> = text.lines().filter(|l| !l.starts_with(WORD)).collect();
        self.comment() + &rest.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_says_how_a_program_is_tried() {
        let case = Case { seed: 7, sizes: Sizes::from([("n".to_owned(), 5)]) };
        let text = case.comment() + "entry f (x: i32) : i32 = x\n";
        assert_eq!(Case::of(&Source::new("f.pat", text.clone())), Ok(case.clone()));
        let other = Case { seed: 8, ..case };
        let text = other.rewrite(&text);
        assert_eq!(text, "-- fuzz: seed=8 n=5\nentry f (x: i32) : i32 = x\n");
        for (text, says) in [("entry f", "no line"), ("-- fuzz: n", "`n` is no")] {
            let error = Case::of(&Source::new("f.pat", text)).unwrap_err();
            assert_eq!(error.0[0].code, Code::Usage);
            assert!(error.0[0].message.contains(says), "{error}");
        }
    }
}
