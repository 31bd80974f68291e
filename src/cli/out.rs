//! The output of a command: text or JSON lines on the standard output, diagnostics on the standard error.

use super::clean::clean;
use super::{Color, render};
use crate::diag::{Code, Diagnostic, Exit, Failure};
use serde_json::{Value, json};
use std::io::{self, IsTerminal, Write};

/// Version of the JSON lines' layout.
pub const VERSION: u32 = 1;

/// Why a command ends early.
pub enum Stop {
    /// An error, which is still to be printed.
    Failure(Failure),
    /// The reader of the standard output has closed the pipe.
    Closed,
    /// An exit status; everything is already printed.
    Exit(Exit),
}

impl From<Failure> for Stop {
    fn from(f: Failure) -> Stop {
        Stop::Failure(f)
    }
}

impl From<Diagnostic> for Stop {
    fn from(d: Diagnostic) -> Stop {
        Stop::Failure(d.into())
    }
}

impl From<io::Error> for Stop {
    fn from(e: io::Error) -> Stop {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Stop::Closed,
            _ => Diagnostic::error(Code::Io, format!("the output cannot be written: {e}")).into(),
        }
    }
}

/// Writes a line to the standard error, also with `--json`.
pub fn note(text: &str) {
    // Errors of the standard error do not stop the command.
    let _ = writeln!(io::stderr(), "{}", clean(text));
}

/// The outcome of a command.
pub type Done = Result<(), Stop>;

/// The streams of a command.
pub struct Out {
    stdout: io::BufWriter<io::Stdout>,
    json: bool,
    styled: bool,
    /// Whether the standard output is reserved for an output file, so that no text is printed there.
    reserved: bool,
}

impl Out {
    /// Returns the output on the streams of the process.
    pub fn new(json: bool, color: Color) -> Out {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let styled = match color {
            Color::Auto => !plain && io::stderr().is_terminal(),
            Color::Always => true,
            Color::Never => false,
        };
        Out { stdout: io::BufWriter::new(io::stdout()), json, styled, reserved: false }
    }

    /// Returns whether the standard output holds JSON lines.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Reserves the standard output for the data that [`Out::raw`] writes.
    pub fn reserve(&mut self) {
        self.reserved = true;
    }

    /// Writes text, except with `--json`. Characters that control a terminal are escaped.
    pub fn text(&mut self, text: &str) -> Done {
        if !self.json && !self.reserved {
            self.stdout.write_all(clean(text).as_bytes())?;
        }
        Ok(())
    }

    /// Writes a line of text, except with `--json`.
    pub fn line(&mut self, text: &str) -> Done {
        self.text(text)?;
        self.text("\n")
    }

    /// Writes bytes unchanged, in every mode.
    pub fn raw(&mut self, bytes: &[u8]) -> Done {
        Ok(self.stdout.write_all(bytes)?)
    }

    /// Lets an encoder write bytes unchanged, in every mode.
    pub fn raw_with(&mut self, encode: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Done {
        Ok(encode(&mut self.stdout)?)
    }

    /// Writes a JSON line, only with `--json`.
    pub fn event(&mut self, kind: &str, fields: Value) -> Done {
        if !self.json {
            return Ok(());
        }
        let mut object = serde_json::Map::new();
        object.insert("v".into(), json!(VERSION));
        object.insert("type".into(), json!(kind));
        if let Value::Object(fields) = fields {
            object.extend(fields);
        }
        serde_json::to_writer(&mut self.stdout, &Value::Object(object)).map_err(io::Error::from)?;
        self.stdout.write_all(b"\n")?;
        Ok(self.stdout.flush()?)
    }

    /// Reports diagnostics: rendered on the standard error, or as JSON lines.
    pub fn diagnostics(&mut self, diagnostics: &[Diagnostic]) -> Done {
        // An error of this stream may be what the diagnostics report.
        let _ = self.stdout.flush();
        for d in diagnostics {
            if self.json {
                self.event("diagnostic", render::json(d))?;
            } else {
                let text = render::text(d, self.styled);
                // Errors of the standard error do not stop the command.
                let _ = writeln!(io::stderr(), "{text}");
            }
        }
        Ok(())
    }

    /// Reports why the command failed.
    pub fn failure(&mut self, failure: &Failure) -> Done {
        self.diagnostics(&failure.0)
    }

    /// Asks a yes-or-no question on the terminal; returns `None` if there is no terminal.
    pub fn confirm(&mut self, question: &str) -> Result<Option<bool>, Stop> {
        if self.json || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Ok(None);
        }
        self.stdout.flush()?;
        write!(io::stderr(), "{} [y/N] ", clean(question))?;
        io::stderr().flush()?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        Ok(Some(["y", "yes"].contains(&answer.trim().to_lowercase().as_str())))
    }

    /// Writes a line about the result to the standard error, except with `--json`.
    pub fn aside(&mut self, text: &str) {
        if !self.json {
            note(text);
        }
    }

    /// Flushes the standard output.
    pub fn flush(&mut self) -> Done {
        Ok(self.stdout.flush()?)
    }
}
