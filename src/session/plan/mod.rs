//! Plans: text files that describe kernels, so that they can be committed, and generated again without a search.
//!
//! A plan holds the low-level term that computes a program, its tunables, the device, and every option that affects
//! the generated code. Kernels that are generated from a plan are compared with the plan's hash.

mod text;

use super::files::{self, Kind};
use super::optimize::Optimized;
use super::program::{Program, Sizes};
use super::{Device, Request, Session, inputs};
use crate::calculus::elaborate;
use crate::calculus::size::{Size, SizeEnv, Sym};
use crate::calculus::term::Term;
use crate::calculus::text::{Context, read_term_in};
use crate::calculus::ty::Ty;
use crate::device::cost_model::CostModel;
use crate::diag::{Code, Diagnostic, Failure, Result, Source, Span};
use crate::extract::assigned;
use crate::kernel::{Generator, Options};
use crate::tune::statistics::Summary;
use crate::tune::variant::Variant;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
pub(super) use text::HEAD;
pub use text::laid_out;

/// The description of a program's kernels at given sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The file with the plan.
    source: Arc<Source>,
    /// Version of patsat that made it.
    pub version: String,
    /// Hash of the kernels' source and the host plan.
    pub kernels: String,
    /// Name of the float mode.
    pub float: String,
    /// Hash of the rule set it was found with.
    pub rules: String,
    /// The program's file.
    pub file: String,
    /// The program's entry.
    pub entry: String,
    /// [`Program::hash`].
    pub program: String,
    /// The program as a term, on one line.
    pub normal: String,
    /// Inputs and result of the program, with their types.
    pub types: String,
    /// Value of each size parameter.
    pub sizes: Sizes,
    /// The label of the device that it was made for.
    pub device: String,
    /// Version of its driver.
    pub driver: String,
    /// The time measured on that device.
    pub measured: Option<Summary>,
    /// Time that the cost model predicted, in microseconds.
    pub predicted_us: f64,
    /// The low-level term, and its place in `source`.
    term: (String, Range<usize>),
    /// The term's skeleton.
    pub skeleton: String,
    /// Value of each symbol that is not a size of the program (tiles, vector widths, sizes rounded up), and its place
    /// in `source`.
    tunables: Vec<(Sym, u64, Range<usize>)>,
    /// The options of the code generator.
    options: Options,
}

/// Kernels generated again from a plan.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The kernels.
    pub variant: Variant,
    /// Warnings about changes since the plan was made that do not affect its kernels.
    pub warnings: Vec<Diagnostic>,
    /// Whether the kernels differ from those that the plan was made from, which `force` accepts.
    pub other_kernels: bool,
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// [`Code::BadPlan`] with the place where it does not follow the layout.
    pub fn parse(source: &Arc<Source>) -> Result<Plan> {
        text::parse(source)
    }

    /// Returns the text of the plan, with comments. Equal plans give equal texts.
    ///
    /// # Errors
    /// [`Code::Internal`] if a part of it cannot be written as text.
    pub fn to_text(&self) -> Result<String> {
        text::print(self)
    }

    /// Returns the name of the file that it was read from.
    pub(in crate::session) fn file_name(&self) -> &str {
        &self.source.name
    }

    /// Returns the low-level term on several lines.
    pub fn term_text(&self) -> String {
        laid_out(&self.term.0)
    }

    /// Returns the values of the tunables, such as `n.t0=128`, without sizes rounded up, which follow from the others.
    pub fn tunables_text(&self) -> String {
        let chosen = self.tunables.iter().filter(|(s, ..)| !matches!(s, Sym::Round(_)));
        chosen.map(|(s, n, _)| format!("{s}={n}")).collect::<Vec<_>>().join(" ")
    }

    /// Returns the sizes for a request, and the request completed with the plan's values for sizes that it leaves
    /// open.
    ///
    /// # Errors
    /// Those of [`inputs::sizes`].
    pub fn sizes_for(&self, program: &Program, request: &Request) -> Result<(Sizes, Request)> {
        let mut request = request.clone();
        let open = |Failure(ds): &Failure| ds.iter().any(|d| d.code == Code::SizeUnknown);
        let sizes = match inputs::sizes(program, &request) {
            Err(failure) if open(&failure) => {
                for (name, n) in &self.sizes {
                    if program.entry.sizes.contains(name) {
                        request.sizes.entry(name.clone()).or_insert(*n);
                    }
                }
                inputs::sizes(program, &request)?
            }
            sizes => sizes?,
        };
        Ok((sizes, request))
    }

    /// Writes the plan to a file.
    ///
    /// # Errors
    /// [`Code::Io`] when it cannot be written, [`Code::WouldReplace`] when it would replace a file of another kind.
    pub fn write(&self, path: &Path) -> Result<()> {
        files::check(path, Kind::Plan, &[], false)?;
        let text = self.to_text()?;
        files::write(path, |to| to.write_all(text.as_bytes()))
    }

    /// Makes a diagnostic about a part of the plan.
    fn at(&self, place: &Range<usize>, message: String) -> Diagnostic {
        let span = Span::new(place.start, place.end);
        Diagnostic::error(Code::BadPlan, message).at(&self.source, span, "")
    }

    /// Reads the term and checks that it has the entry's type. Returns it with a value for every symbol.
    fn read(&self, elaborated: &elaborate::Program) -> Result<(Term, SizeEnv)> {
        let inputs = elaborated.inputs.iter().map(|(n, _, t)| (n.clone(), t.clone())).collect();
        let context = Context { inputs, variables: None };
        let term = read_term_in(&self.source, self.term.1.clone(), &Ty::Unit, &context)?;
        if term.ty().cod != elaborated.result_ty {
            let text = format!(
                "the term gives `{}`, and `{}` gives `{}`",
                term.ty().cod,
                self.entry,
                elaborated.result_ty
            );
            return Err(self.at(&self.term.1, text).help(AGAIN).into());
        }
        let chosen = self.tunables.iter().filter(|(s, ..)| !matches!(s, Sym::Round(_)));
        let named = chosen.map(|(s, n, _)| (s.to_string(), *n)).collect();
        let Some(mut env) = assigned(&term, &elaborated.env, &named) else {
            let text = "the term does not fit the plan's sizes and tunables".to_owned();
            return Err(self.at(&self.term.1, text).help(AGAIN).into());
        };
        for (sym, n, place) in &self.tunables {
            // Sizes rounded up follow from the sizes and the tiles.
            if let (Sym::Round(of), Some(m)) = (sym, env.get(sym).filter(|m| *m != n)) {
                let text = format!("`{sym}` is `{of}` rounded up, which is {m} and not {n}");
                return Err(self.at(place, text).help(AGAIN).into());
            }
            env.insert(sym.clone(), *n);
        }
        Ok((term, env))
    }
}

/// Advice for an outdated plan.
const AGAIN: &str = "make the plan again: `patsat optimize FILE -o PLAN`";

fn outdated(text: String) -> Diagnostic {
    Diagnostic::error(Code::Outdated, text).help(AGAIN)
}

fn dated(text: String) -> Diagnostic {
    Diagnostic::warning(Code::PlanDated, text)
}

impl Session {
    /// Makes a plan of the best kernels that were found.
    ///
    /// # Errors
    /// [`Code::Internal`] if the plan does not give the same kernels again.
    pub fn plan(&self, program: &Program, found: &Optimized) -> Result<Plan> {
        let elaborated = program.elaborate(&found.sizes)?;
        let variant = &found.best.variant;
        let dims = |s: &Sym| matches!(s, Sym::Dim(_) | Sym::Meta(_));
        let term = variant.term.to_string();
        let written = Plan {
            source: Source::new("", ""),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            kernels: variant.hash.clone(),
            float: self.float.name().to_owned(),
            rules: self.rules.hash(),
            file: program.source.name.clone(),
            entry: program.entry.name.clone(),
            program: program.hash(),
            normal: elaborated.term.to_string(),
            types: types(&elaborated),
            sizes: found.sizes.clone(),
            device: found.device.label(),
            driver: found.device.driver.clone(),
            measured: found.best.summary,
            predicted_us: variant.predicted_us,
            term: (term, 0..0),
            skeleton: variant.skeleton.clone(),
            tunables: variant
                .env
                .iter()
                .filter(|(s, _)| !dims(s))
                .map(|(s, n)| (s.clone(), *n, 0..0))
                .collect(),
            options: self.options(&program.entry.name, &found.device),
        };
        // The plan is read back from its text, which proves that the text is complete.
        let plan = Plan::parse(&Source::new("<plan>", written.to_text()?))?;
        let model = &found.model.model;
        let again = plan.make(program, &elaborated, model)?;
        if again.hash != variant.hash {
            let text = "a plan does not give the kernels that it was made from";
            let d = Diagnostic::error(Code::Internal, text);
            return Err(d.note(format!("the term: {}", variant.term)).into());
        }
        Ok(plan)
    }

    /// Generates the kernels of a plan again: byte for byte those that the plan was made from.
    ///
    /// Warnings report changes since then that affect only the speed. With `force`, kernels that differ are accepted.
    ///
    /// # Errors
    /// [`Code::Outdated`] when the plan is for another program, for other sizes, or its kernels have changed;
    /// [`Code::BadPlan`] when its term does not have the entry's type.
    pub fn planned(
        &self,
        program: &Program,
        plan: &Plan,
        sizes: &Sizes,
        force: bool,
    ) -> Result<Planned> {
        if plan.entry != program.entry.name {
            let (is, wanted) = (&plan.entry, &program.entry.name);
            return Err(
                outdated(format!("the plan is for the entry `{is}`, not `{wanted}`")).into()
            );
        }
        for (name, n) in sizes {
            let planned = plan.sizes.get(name);
            if planned != Some(n) {
                let of = match planned {
                    Some(p) => format!("for `{name}` = {p}"),
                    None => format!("without the size `{name}`"),
                };
                return Err(outdated(format!("the plan is {of}, not for `{name}` = {n}")).into());
            }
        }
        let elaborated = program.elaborate(sizes)?;
        let (normal, types) = (elaborated.term.to_string(), types(&elaborated));
        let same = plan.normal == normal && plan.types == types;
        let version = env!("CARGO_PKG_VERSION");
        if !same && plan.program == program.hash() && plan.version == version {
            let text = "the term and the hash in `[program]` are of two different programs";
            return Err(Diagnostic::error(Code::BadPlan, text)
                .note(format!("the plan says: {} : {}", plan.normal, plan.types))
                .note(format!("the program is: {normal} : {types}"))
                .help(AGAIN)
                .into());
        }
        if !same && plan.program != program.hash() {
            let d = outdated(format!(
                "the program has changed since the plan for it was made ({})",
                plan.file
            ));
            return Err(d
                .note(format!("it was: {} : {}", plan.normal, plan.types))
                .note(format!("it is: {normal} : {types}"))
                .into());
        }
        let (device, choice) = self.target()?;
        let mut warnings = vec![];
        if self.device != Device::None {
            let (label, driver) = (device.label(), &device.driver);
            if plan.device != label {
                let text = format!("the plan was made for {}, not for {label}", plan.device);
                warnings.push(
                    dated(text).help("its kernels may be slow there: `optimize` for this device"),
                );
            } else if plan.driver != *driver {
                let text = format!(
                    "the device's driver has changed since the plan was made, from {} to {driver}",
                    plan.driver
                );
                warnings
                    .push(dated(text).help("other kernels may be faster by now: `optimize` again"));
            }
        }
        if plan.rules != self.rules.hash() {
            let text = format!(
                "the plan was found with other rules ({}) than these ({})",
                plan.rules,
                self.rules.hash()
            );
            warnings.push(dated(text).help("these may find a better one: `optimize` again"));
        }
        if plan.version != version {
            let text = format!("patsat {} made the plan, and this is {version}", plan.version);
            warnings.push(dated(text).help("this may find a better one: `optimize` again"));
        }
        if self.float == super::Float::Relaxed && self.float.name() != plan.float {
            let text = format!(
                "the plan's kernels keep {} arithmetic: `--float` has no effect on them",
                plan.float
            );
            warnings.push(dated(text).help("`optimize` again, with `--float relaxed`"));
        }
        let variant = plan.make(program, &elaborated, &choice.model)?;
        let other_kernels = variant.hash != plan.kernels;
        if other_kernels {
            let text = "the plan's term gives other kernels than those that it was made from";
            let why = match plan.version == version {
                true => "the plan, or how patsat generates kernels, has been changed by hand",
                false => "another version of patsat generates other kernels",
            };
            let hashes = format!("their hash is {}, and was {}", variant.hash, plan.kernels);
            if !force {
                return Err(outdated(text.to_owned())
                    .note(why)
                    .note(hashes)
                    .help("or use the kernels as they are now with `--force`, which checks their result")
                    .into());
            }
            warnings.push(dated(text.to_owned()).note(why).note(hashes));
        }
        Ok(Planned { variant, warnings, other_kernels })
    }
}

impl Plan {
    /// Generates the kernels.
    fn make(
        &self,
        program: &Program,
        elaborated: &elaborate::Program,
        model: &CostModel,
    ) -> Result<Variant> {
        let (term, env) = self.read(elaborated)?;
        let made = Variant::new(&term, &env, &self.skeleton, &Generator::new(&self.options), model);
        made.map_err(|d| {
            let (code, message) =
                (d.code, format!("no kernels for `{}`: {}", program.entry.name, d.message));
            let d = Diagnostic { code, notes: d.notes, ..self.at(&self.term.1, message) };
            Failure::from(d.help(AGAIN))
        })
    }
}

/// Returns the inputs and the result of a program with their types, as text.
fn types(elaborated: &elaborate::Program) -> String {
    let inputs: Vec<String> =
        elaborated.inputs.iter().map(|(n, _, t)| format!("({n}: {t}) ")).collect();
    format!("{}-> {}", inputs.concat(), elaborated.result_ty)
}

/// Returns the symbol of a size that is a single symbol.
fn symbol(size: &Size) -> Option<Sym> {
    size.as_sym().cloned()
}

#[cfg(test)]
mod tests;
