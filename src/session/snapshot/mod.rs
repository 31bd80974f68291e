//! Expectation tests for rewrites: what a program file says in its comments about what becomes of it.
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

/// Longest line of a term, in characters; a longer one is broken between its parts.
const WIDTH: usize = 96;

/// What became of an expectation.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It is as expected.
    Holds,
    /// It is something else.
    Differs(Renewal),
    /// The term is not in the graph.
    Missing(Box<Missing>),
    /// An error was expected, and there is none.
    Accepted,
    /// The program, its sizes or the rules are wrong.
    Refused(Failure),
}

/// A file with its expectations and what became of them.
pub struct Checked {
    /// The file.
    pub source: Arc<Source>,
    /// In the order of the file.
    pub blocks: Vec<(Block, Verdict)>,
}

impl Checked {
    /// The file in which this expectation holds; `None` where nothing could be written that does.
    pub fn renewed(&self, index: usize) -> Option<String> {
        let edits = self.edits(index)?;
        Some(replaced(&self.source.text, edits))
    }

    /// The file in which every expectation holds for which something could be written that does, and how many
    /// are new.
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

/// Checks every expectation of a file. Names of files in it are relative to where the file is.
///
/// # Errors
/// When a block is malformed. That a program is wrong is a [`Verdict`].
pub fn check(source: &Arc<Source>) -> Result<Checked> {
    let mut judge = Judge::new(source);
    let mut out = vec![];
    for block in blocks(source)? {
        let verdict = judge.verdict(&block).unwrap_or_else(Verdict::Refused);
        out.push((block, verdict));
    }
    Ok(Checked { source: source.clone(), blocks: out })
}

/// Judges a file's blocks; what several need is made once.
struct Judge<'a> {
    source: &'a Arc<Source>,
    folder: PathBuf,
    graphs: Vec<(Options, Rc<Graph>)>,
    optimized: Vec<(Options, Rc<Optimized>)>,
}

impl Judge<'_> {
    fn new(source: &Arc<Source>) -> Judge<'_> {
        let folder = Path::new(&source.name).parent().unwrap_or(Path::new("")).to_owned();
        Judge { source, folder, graphs: vec![], optimized: vec![] }
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
            // Something to begin with: the best term, which is there.
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
        let looked = lookup::lookup(&graph.saturated, &sought, &graph.program.env);
        Ok(looked.map_or_else(Verdict::Missing, |_| Verdict::Holds))
    }

    /// Of the figures, only those that the block names count.
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
        // Which error it is says enough when nothing more is written.
        match block.is_empty(self.source) {
            true => Verdict::Holds,
            false => compared(&block.lines(self.source), lines),
        }
    }

    fn program(&self, options: &Options) -> Result<(Program, Request, Session)> {
        let program = Program::check(self.source, options.entry.as_deref())?;
        let request = Request { sizes: options.sizes.clone(), ..Request::default() };
        let session = Session {
            rules: rule_set(&self.rules(options.rules.as_deref()), options.float)?,
            // What comes out may not depend on how fast the machine is.
            limits: Limits { saturation_time: None, ..Limits::default() },
            float: options.float,
            cost_model: options.model.as_deref().map(|m| self.model(m)).transpose()?,
            shares: false,
            ..Session::new()?
        };
        Ok((program, request, session))
    }

    /// As for `--rules`: what stands beside the program is a file, anything else a name.
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
        // The cost model does not count here.
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
        // Data decide nothing.
        request.default = Some(super::generate::Generator::Normal);
        if options.as_written {
            let sizes: Sizes = super::inputs::sizes(&program, &request)?;
            return Ok(Best::AsWritten(Box::new(session.compile(&program, &sizes)?)));
        }
        let optimized = Rc::new(session.optimize(&program, &request, &mut ())?);
        self.optimized.push((options.clone(), optimized.clone()));
        Ok(Best::Rewritten(optimized))
    }

    /// Diagnostics about a block's text are about the file.
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

/// The term, and the values of its tunables.
fn term_lines(term: &Term, env: &SizeEnv) -> Vec<String> {
    let mut out = broken(term);
    let values: Vec<String> = tunables(env).iter().map(|(n, v)| format!("{n}={v}")).collect();
    if !values.is_empty() {
        out.push(format!("where {}", values.join(" ")));
    }
    out
}

/// A term in one line, or with a line for each part of its chain.
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

/// The kernels, and how they are launched.
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
