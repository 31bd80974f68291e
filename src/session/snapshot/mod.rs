//! Expectation tests for rewrites: comments in a program file that state the outcome of compiling the program.
//!
//! ```text
//! -- expect found size n=1024
//! -- | reduceSeq (+) 0.0 . mapGlb 0 (reduceSeq (+) 0.0) . split 128 . map abs . xs
//! ```
//!
//! `docs/snapshots.md` describes the blocks. Nothing here depends on a device or the clock.

mod block;
#[cfg(test)]
mod tests;

pub use block::{Block, Kind, Options, Renewal, blocks, replaced};

use super::imports;
use super::{Graph, Optimized, Program, Request, Session, Sizes, rule_set};
use crate::calculus::size::SizeEnv;
use crate::calculus::term::Term;
use crate::device::cost_model::CostModel;
use crate::diag::{Code, Diagnostic, Failure, Limits, Result, Severity, Source};
use crate::opencl::plan::HostPlan;
use crate::saturate::lookup;
use crate::saturate::{Missing, Report};
use crate::tune::variant::{Variant, tunables};
use indexmap::IndexMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// Longest line of a term, in characters. A longer term is broken between the parts of its chain.
const WIDTH: usize = 96;

/// The result of checking an expectation.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// The outcome is as expected.
    Holds,
    /// The outcome differs.
    Differs(Renewal),
    /// The term is not in the graph.
    Missing(Box<Missing>),
    /// An error was expected, but the program is accepted.
    Accepted,
    /// The program, its sizes or the rules are wrong.
    Refused(Failure),
}

/// A file with its expectations and their results.
pub struct Checked {
    /// The file.
    pub source: Arc<Source>,
    /// The expectations, in the order of the file.
    pub blocks: Vec<(Block, Verdict)>,
}

impl Checked {
    /// Returns the file with this expectation updated so that it holds; `None` if there is nothing to update.
    pub fn renewed(&self, index: usize) -> Option<String> {
        let edits = self.edits(index)?;
        Some(replaced(&self.source.text, edits))
    }

    /// Returns the file with all expectations updated that can be, and how many were updated.
    pub fn blessed(&self) -> (String, usize) {
        let edits: Vec<_> = (0..self.blocks.len()).filter_map(|i| self.edits(i)).collect();
        let count = edits.len();
        (replaced(&self.source.text, edits.concat()), count)
    }

    fn edits(&self, index: usize) -> Option<Vec<(std::ops::Range<usize>, String)>> {
        match self.blocks.get(index)? {
            (block, Verdict::Differs(renewal)) => Some(block.renewed(&self.source, renewal)),
            _ => None,
        }
    }
}

/// Checks every expectation of a file. File names in it are relative to its folder.
///
/// # Errors
/// When a block is malformed. An error in the program is a [`Verdict`].
pub fn check(source: &Arc<Source>) -> Result<Checked> {
    let mut judge = Judge::new(source);
    let mut out = vec![];
    for block in blocks(source)? {
        let verdict = judge.verdict(&block).unwrap_or_else(Verdict::Refused);
        out.push((block, verdict));
    }
    Ok(Checked { source: source.clone(), blocks: out })
}

/// Checks the blocks of a file. Graphs and results are shared by blocks with the same options.
struct Judge<'a> {
    source: &'a Arc<Source>,
    /// The source with the files that it imports; or what is wrong with these.
    whole: Result<Arc<Source>>,
    folder: PathBuf,
    graphs: Vec<(Options, Rc<Graph>)>,
    optimized: Vec<(Options, Rc<Optimized>)>,
}

impl Judge<'_> {
    fn new(source: &Arc<Source>) -> Judge<'_> {
        let folder = Path::new(&source.name).parent().unwrap_or(Path::new("")).to_owned();
        let whole = imports::with_imports(source);
        Judge { source, whole, folder, graphs: vec![], optimized: vec![] }
    }

    fn verdict(&mut self, block: &Block) -> Result<Verdict> {
        let have = match block.kind {
            Kind::Term => match self.best(&block.options)? {
                Best::Rewritten(o) => term_lines(&o.best.variant.term, &o.best.variant.env),
                Best::AsWritten(v) => term_lines(&v.term, &v.env),
            },
            Kind::Kernel => match self.best(&block.options)? {
                Best::Rewritten(o) => kernel_lines(&o.best.variant.plan),
                Best::AsWritten(v) => kernel_lines(&v.plan),
            },
            Kind::Found => return self.found(block),
            Kind::Stats => return self.stats(block),
            Kind::Error(code) => return Ok(self.error(block, code)),
        };
        Ok(compared(&block.lines(self.source), have))
    }

    fn found(&mut self, block: &Block) -> Result<Verdict> {
        if block.is_empty(self.source) {
            // An empty block is filled with the best term, which is in the graph.
            let Best::Rewritten(o) = self.best(&block.options)? else {
                return Err(Diagnostic::error(Code::Internal, "a term as written").into());
            };
            let best = &o.best.variant;
            let term = lookup::at_values(&best.term, &best.env).unwrap_or(best.term.clone());
            return Ok(Verdict::Differs(Renewal { lines: broken(&term), code: None }));
        }
        let graph = self.graph(&block.options)?;
        let sought = lookup::read(&block.alone(self.source), &graph.program)
            .map_err(|failure| self.placed(failure))?;
        let looked = lookup(&graph.saturated, &sought, &graph.program.env);
        Ok(looked.map_or_else(Verdict::Missing, |_| Verdict::Holds))
    }

    /// Compares the figures that the block names.
    fn stats(&mut self, block: &Block) -> Result<Verdict> {
        let have = stats(&self.graph(&block.options)?.saturated.report);
        if block.is_empty(self.source) {
            return Ok(compared(&[], have.iter().map(|(n, v)| format!("{n} {v}")).collect()));
        }
        let mut lines = vec![];
        let want = block.lines(self.source);
        for line in &want {
            let name = line.split_whitespace().next().unwrap_or_default();
            match have.get(name) {
                Some(value) => lines.push(format!("{name} {value}")),
                None => {
                    let text = format!("there is no figure `{name}`");
                    let names: Vec<&str> = have.keys().copied().collect();
                    let d = Diagnostic::error(Code::BadExpectation, text);
                    let d = d.at(self.source, block.header, "in this block");
                    return Err(d.help(format!("the figures are {}", names.join(", "))).into());
                }
            }
        }
        Ok(compared(&want, lines))
    }

    fn error(&mut self, block: &Block, code: Code) -> Verdict {
        let Err(failure) = self.best(&block.options) else { return Verdict::Accepted };
        let errors = || failure.0.iter().filter(|d| d.severity == Severity::Error);
        let lines: Vec<String> = errors().map(ToString::to_string).collect();
        if !errors().any(|d| d.code == code) {
            let code = errors().map(|d| d.code).next();
            return Verdict::Differs(Renewal { lines, code });
        }
        // The code suffices if the block has no text.
        match block.is_empty(self.source) {
            true => Verdict::Holds,
            false => compared(&block.lines(self.source), lines),
        }
    }

    fn program(&self, options: &Options) -> Result<(Program, Request, Session)> {
        let request = Request { sizes: options.sizes.clone(), ..Request::default() };
        let session = Session {
            rules: rule_set(&self.rules(options.rules.as_deref()), options.float)?,
            // The result must not depend on the speed of the machine.
            limits: Limits { saturation_time: None, ..Limits::default() },
            float: options.float,
            cost_model: options.model.as_deref().map(|m| self.model(m)).transpose()?,
            shares: false,
            ..Session::new()?
        };
        let program = Program::check(&self.whole.clone()?, options.entry.as_deref())?
            .under(&session.rules)?;
        Ok((program, request, session))
    }

    /// Returns the items of a rule specification, as for `--rules`. An item that exists beside the program is a file
    /// or folder, any other a name.
    fn rules(&self, spec: Option<&str>) -> Vec<PathBuf> {
        let item = |n: &str| {
            let beside = self.folder.join(n);
            if beside.exists() { beside } else { PathBuf::from(n) }
        };
        spec.unwrap_or("default").split(',').map(item).collect()
    }

    fn model(&self, name: &str) -> Result<CostModel> {
        let shipped = CostModel::shipped()?;
        match shipped.into_iter().find(|m| m.name == name) {
            Some(model) => Ok(model),
            None => CostModel::load(&self.folder.join(name)),
        }
    }

    fn graph(&mut self, options: &Options) -> Result<Rc<Graph>> {
        // The graph does not depend on the cost model.
        let key = Options { model: None, ..options.clone() };
        if let Some((_, graph)) = self.graphs.iter().find(|(known, _)| *known == key) {
            return Ok(graph.clone());
        }
        let (program, request, session) = self.program(&key)?;
        let graph = Rc::new(program.placed(session.graph(&program, &request))?);
        self.graphs.push((key, graph.clone()));
        Ok(graph)
    }

    fn best(&mut self, options: &Options) -> Result<Best> {
        if let Some((_, o)) = self.optimized.iter().find(|(known, _)| known == options) {
            return Ok(Best::Rewritten(o.clone()));
        }
        let (program, mut request, session) = self.program(options)?;
        // The outcome does not depend on the data.
        request.default = Some(super::generate::Generator::Normal);
        if options.as_written {
            let sizes: Sizes = super::inputs::sizes(&program, &request)?;
            return Ok(Best::AsWritten(Box::new(session.compile(&program, &sizes)?)));
        }
        let optimized = Rc::new(session.optimize(&program, &request, &mut ())?);
        self.optimized.push((options.clone(), optimized.clone()));
        Ok(Best::Rewritten(optimized))
    }

    /// Sets the file as the source of diagnostics about a block's text.
    fn placed(&self, Failure(mut ds): Failure) -> Failure {
        for d in &mut ds {
            d.source = Some(self.source.clone());
        }
        Failure(ds)
    }
}

enum Best {
    Rewritten(Rc<Optimized>),
    AsWritten(Box<Variant>),
}

fn compared(want: &[&str], have: Vec<String>) -> Verdict {
    let have: Vec<String> = have.into_iter().map(|l| l.trim_end().to_owned()).collect();
    match want == have {
        true => Verdict::Holds,
        false => Verdict::Differs(Renewal { lines: have, code: None }),
    }
}

/// Returns the lines of a term, and a line with the values of its tunables.
fn term_lines(term: &Term, env: &SizeEnv) -> Vec<String> {
    let mut out = broken(term);
    let values: Vec<String> = tunables(env).iter().map(|(n, v)| format!("{n}={v}")).collect();
    if !values.is_empty() {
        out.push(format!("where {}", values.join(" ")));
    }
    out
}

/// Returns a term on one line, or with one line for each part of its chain.
fn broken(term: &Term) -> Vec<String> {
    let whole = term.to_string();
    if whole.chars().count() <= WIDTH {
        return vec![whole];
    }
    let parts = term.chain();
    let line = |(i, part): (usize, &Term)| match i {
        0 => part.to_string(),
        _ => format!(". {part}"),
    };
    parts.iter().enumerate().map(line).collect()
}

/// Returns the lines of the kernels, and a line for each launch.
fn kernel_lines(plan: &HostPlan) -> Vec<String> {
    let mut out: Vec<String> = plan.source.trim().lines().map(str::to_owned).collect();
    for l in &plan.launches {
        out.push(format!("// {}: {:?} work-items in groups of {:?}", l.kernel, l.global, l.local));
    }
    out
}

fn stats(report: &Report) -> IndexMap<&'static str, String> {
    IndexMap::from([
        ("nodes", report.nodes.to_string()),
        ("classes", report.classes.to_string()),
        ("iterations", report.iterations.len().to_string()),
        ("stop", report.stop_reason.to_string()),
    ])
}
