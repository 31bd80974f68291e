//! Reports the progress of a search: a spinner on a terminal, plain lines elsewhere, JSON lines with `--json`.

use super::clean::clean;
use super::out::{Out, VERSION};
use super::render;
use crate::diag::Interrupt;
use crate::tune::event::{Event, Observer, Phase};
use crate::tune::search::Counts;
use crate::tune::store::Fate;
use crate::tune::worker::FailureClass;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// The least interval between plain lines.
const PLAIN: Duration = Duration::from_secs(2);

/// An observer that reports the progress of a search.
pub struct Progress {
    mode: Mode,
    interrupt: Interrupt,
    subject: String,
    last: Option<Instant>,
    phase: Option<Phase>,
    styled: bool,
}

enum Mode {
    Json,
    Bar(ProgressBar),
    Plain,
}

impl Progress {
    /// Makes an observer for the program named `subject`.
    pub fn new(out: &Out, interrupt: Interrupt, subject: String) -> Progress {
        let mode = if out.is_json() {
            Mode::Json
        } else if io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{spinner} {prefix} {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar.set_prefix(subject.clone());
            bar.enable_steady_tick(Duration::from_millis(120));
            Mode::Bar(bar)
        } else {
            Mode::Plain
        };
        let styled = matches!(mode, Mode::Bar(_));
        Progress { mode, interrupt, subject, last: None, phase: None, styled }
    }

    /// Removes the spinner.
    pub fn finish(&self) {
        if let Mode::Bar(bar) = &self.mode {
            bar.finish_and_clear();
        }
    }

    fn say(&mut self, text: &str) {
        match &self.mode {
            Mode::Json => {}
            Mode::Bar(bar) => bar.set_message(clean(text).into_owned()),
            // Errors of the standard error do not stop the command.
            Mode::Plain => drop(writeln!(io::stderr(), "{}: {text}", self.subject)),
        }
    }

    /// Prints a permanent line.
    fn tell(&self, text: &str) {
        match &self.mode {
            Mode::Json => {}
            Mode::Bar(bar) => bar.suspend(|| drop(writeln!(io::stderr(), "{text}"))),
            Mode::Plain => drop(writeln!(io::stderr(), "{text}")),
        }
    }

    fn json(kind: &str, fields: Value) {
        let mut object = serde_json::Map::new();
        object.insert("v".into(), json!(VERSION));
        object.insert("type".into(), json!(kind));
        if let Value::Object(fields) = fields {
            object.extend(fields);
        }
        // A closed pipe is noticed when the result is written.
        drop(writeln!(io::stdout(), "{}", Value::Object(object)));
    }
}

impl Observer for Progress {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Phase(phase) => {
                if let Mode::Json = self.mode {
                    Self::json("phase", json!({"phase": phase.name()}));
                }
                if self.phase != Some(*phase) {
                    self.phase = Some(*phase);
                    let text = match phase {
                        Phase::Saturate => "rewriting",
                        Phase::Extract => "drawing candidates",
                        Phase::Generate => "generating kernels",
                        Phase::Reference => "waiting for the interpreter",
                        Phase::Measure => "measuring",
                        Phase::Compare => "comparing the best",
                        Phase::Explain => "explaining",
                    };
                    self.say(text);
                }
            }
            Event::Saturated(report) => {
                if let Mode::Json = self.mode {
                    Self::json("saturated", json!(report));
                }
            }
            Event::Warning(d) => {
                if let Mode::Json = self.mode {
                    Self::json("diagnostic", render::json(d));
                } else {
                    self.tell(&render::text(d, self.styled));
                }
            }
            Event::Candidate { .. } => self.candidate(event),
        }
    }

    fn stop(&self) -> bool {
        self.interrupt.requested()
    }
}

impl Progress {
    fn candidate(&mut self, event: &Event) {
        let Event::Candidate {
            done,
            of,
            variant,
            fate,
            median_us,
            log,
            resumed,
            best_us,
            counts,
            left,
        } = event
        else {
            return;
        };
        if let Mode::Json = self.mode {
            Self::json(
                "candidate",
                json!({
                    "done": done, "of": of, "outcome": fate.name(), "median_us": median_us,
                    "best_us": best_us, "predicted_us": variant.predicted_us,
                    "term": variant.term.to_string(), "tunables": variant.tunables(),
                    "skeleton": variant.skeleton, "plan": variant.hash, "resumed": resumed,
                    "log": log,
                }),
            );
            return;
        }
        if *fate == Fate::Failed(FailureClass::Wrong) {
            // A wrong result is a bug in patsat or in the driver, so it is reported at once.
            let text = format!(
                "warning[E0609]: a candidate's result was wrong, and is not used\n  = term: {}\n  = {}",
                variant.term,
                log.unwrap_or_default()
            );
            self.tell(&clean(&text));
        }
        let due = done == of || self.last.is_none_or(|t| t.elapsed() >= PLAIN);
        if matches!(self.mode, Mode::Plain) && !due {
            return;
        }
        self.last = Some(Instant::now());
        let mut text = format!("{done}/{of} candidates");
        if let Some(best) = best_us {
            text.push_str(&format!(", best {}", micros(*best)));
        }
        if let Some(failures) = failures(counts) {
            text.push_str(&format!(", failed: {failures}"));
        }
        if let Some(left) = left.filter(|_| done < of) {
            text.push_str(&format!(", about {:.0} s left", left.as_secs_f64().ceil()));
        }
        self.say(&text);
    }
}

/// Returns the failures by class, such as `2 build, 1 timeout`; `None` if there are none.
pub fn failures(counts: &Counts) -> Option<String> {
    let parts: Vec<String> = counts.failed.iter().map(|(c, n)| format!("{n} {c}")).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Formats a time given in microseconds.
pub fn micros(us: f64) -> String {
    if us >= 1e6 {
        format!("{:.3} s", us / 1e6)
    } else if us >= 1e3 {
        format!("{:.3} ms", us / 1e3)
    } else {
        format!("{us:.2} µs")
    }
}
