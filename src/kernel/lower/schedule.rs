//! Schedules: what lowering decided, as plain data with a text form.
//!
//! Lowering fills a [`Record`], if the caller asks for one (`record`): the loops that it makes, the patterns that run in
//! them, and for each element that is computed or copied the places of its operands and of its result. Views and
//! destinations are functions of indices. They are recorded where lowering applies them to the variables of the loops
//! around, so each place is an index function of these variables.

use crate::kernel::ir::facts::Guard;
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::{BufferRole, Control, Kernel, LoopKind, Mem, Program, Team, Times};
use std::fmt::{self, Display, Formatter, Write as _};
use std::sync::Arc;

/// The decisions of lowering for a whole program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The program as lowering left it, before any pass.
    program: Program,
    /// The parts of each kernel.
    kernels: Vec<Vec<Part>>,
}

/// A part of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A pattern, the level of the device at which it runs unless its name says so, and its parts.
    Stage(String, Option<&'static str>, Vec<Part>),
    /// A loop.
    Loop(Loop, Vec<Part>),
    /// Parts that run if a guard holds.
    If(Guard, Vec<Part>),
    /// An element that is computed or copied: how, from which operands, and where to.
    Element(How, Vec<Place>, Vec<Place>),
}

/// A loop of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// How it runs; `None` if it is unrolled.
    pub kind: Option<LoopKind>,
    /// The counter, from 0.
    pub var: Var,
    /// Number of iterations.
    pub count: i64,
    /// Whether only the first iteration is described, because iterations differ in more than indices.
    pub only_first: bool,
}

/// How an element comes from its operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// By this function.
    Function(String),
    /// It is the operand.
    Same,
    /// By an expression that lowering made.
    Expression,
    /// It is this expression without operands in memory.
    Constant(String),
}

/// A place of an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// So many consecutive scalars of a memory.
    Mem(Mem, Index, usize),
    /// One of these registers: each iteration of the unrolled loops around has its own.
    Regs(Vec<Arc<str>>),
    /// A scalar argument.
    Arg(usize),
}

/// What was recorded so far.
pub struct Record {
    kernels: Vec<Vec<Part>>,
    /// The open parts, innermost last. The first list is the current kernel.
    open: Vec<Vec<Part>>,
    /// The names of the patterns of the host around the current kernel.
    pub host: Vec<String>,
    /// Number of enclosing scalar functions, whose steps are not recorded.
    pub quiet: usize,
    /// Number of enclosing unrolled loops.
    pub unrolled: u32,
}

impl Default for Record {
    fn default() -> Self {
        Record { kernels: vec![], open: vec![vec![]], host: vec![], quiet: 0, unrolled: 0 }
    }
}

impl Record {
    /// Returns the schedule of a program.
    pub fn schedule(self, program: Program) -> Schedule {
        Schedule { program, kernels: self.kernels }
    }

    /// Adds a part to the innermost open one.
    pub fn add(&mut self, part: Part) {
        if let Some(last) = self.open.last_mut().filter(|_| self.quiet == 0) {
            last.push(part);
        }
    }

    /// Opens a part.
    pub fn begin(&mut self) {
        self.open.push(vec![]);
    }

    /// Closes the innermost part, and returns what it holds.
    pub fn end(&mut self) -> Vec<Part> {
        self.open.pop().unwrap_or_default()
    }

    /// Number of parts in the innermost open one.
    pub fn len(&self) -> usize {
        self.open.last().map_or(0, Vec::len)
    }

    /// Discards parts of the innermost open one, except for the first `n`.
    pub fn truncate(&mut self, n: usize) {
        if let Some(last) = self.open.last_mut() {
            last.truncate(n);
        }
    }

    /// Ends the current kernel.
    pub fn end_kernel(&mut self) {
        self.kernels.push(self.open.first_mut().map(std::mem::take).unwrap_or_default());
    }

    /// Continues the last kernel.
    pub fn continue_kernel(&mut self) {
        if let (Some(first), Some(kernel)) = (self.open.first_mut(), self.kernels.pop()) {
            *first = kernel;
        }
    }
}

/// What may differ between the iterations of an unrolled loop.
enum Item<'a> {
    Index(&'a mut Index),
    Regs(&'a mut Vec<Arc<str>>),
    /// The variable of a loop inside.
    Var(&'a mut Var),
}

/// Calls `f` on all items of these parts, in order.
fn visit(parts: &mut [Part], f: &mut dyn FnMut(Item)) {
    for part in parts {
        match part {
            Part::Stage(_, _, inside) => visit(inside, f),
            Part::Loop(l, inside) => {
                f(Item::Var(&mut l.var));
                visit(inside, f);
            }
            Part::If(g, inside) => {
                g.0.iter_mut().for_each(|i| f(Item::Index(i)));
                visit(inside, f);
            }
            Part::Element(_, reads, writes) => {
                for place in reads.iter_mut().chain(writes) {
                    match place {
                        Place::Mem(_, i, _) => f(Item::Index(i)),
                        Place::Regs(names) => f(Item::Regs(names)),
                        Place::Arg(_) => {}
                    }
                }
            }
        }
    }
}

/// Returns the parts of all iterations of an unrolled loop in terms of its variable, if the iterations differ only in
/// registers and in indices that are linear in the variable.
pub fn together(mut copies: Vec<Vec<Part>>, var: &Var) -> Option<Vec<Part>> {
    // Loops inside have variables of their own in each copy: take those of the first one.
    let mut common: Vec<Var> = vec![];
    let (mut indices, mut regs) = (vec![], vec![]);
    for (k, copy) in copies.iter_mut().enumerate() {
        let mut own: Vec<(u32, Var)> = vec![];
        let (mut is, mut rs) = (vec![], vec![]);
        visit(copy, &mut |item| match item {
            Item::Var(v) => {
                if k == 0 {
                    common.push(v.clone());
                }
                if let Some(c) = common.get(own.len()) {
                    own.push((v.id, c.clone()));
                    *v = c.clone();
                }
            }
            Item::Index(i) => {
                let of_first = |v: &Var| {
                    own.iter().find(|(id, _)| *id == v.id).map(|(_, c)| Index::from(c.clone()))
                };
                is.push(std::mem::take(i).substitute(&of_first));
            }
            Item::Regs(names) => rs.push(std::mem::take(names)),
        });
        indices.push(is);
        regs.push(rs);
    }
    let (out, others) = copies.split_first_mut()?;
    if others.iter().any(|c| c != out) {
        return None;
    }
    let places = indices.first()?.len();
    let mut lines = (0..places)
        .map(|k| linear(&indices.iter().filter_map(|is| is.get(k)).collect::<Vec<_>>(), var))
        .collect::<Option<Vec<Index>>>()?
        .into_iter();
    let mut nth = 0;
    visit(out, &mut |item| match item {
        Item::Var(_) => {}
        Item::Index(i) => *i = lines.next().unwrap_or_default(),
        Item::Regs(names) => {
            for name in regs.iter().filter_map(|rs| rs.get(nth)).flatten() {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
            nth += 1;
        }
    });
    Some(std::mem::take(out))
}

/// Returns the index that has these values at 0, 1, ... of a variable: linear, or linear in runs that are equally far
/// apart.
fn linear(values: &[&Index], var: &Var) -> Option<Index> {
    let first = *values.first()?;
    let beyond = values.iter().map(|x| x.sub(first).as_constant()).collect::<Option<Vec<i64>>>()?;
    let step = beyond.get(1).copied().unwrap_or(0);
    let in_run = |(x, k): (&i64, i64)| *x == step.saturating_mul(k);
    let run = beyond.iter().zip(0i64..).take_while(|x| in_run(*x)).count();
    let next = beyond.get(run).copied().unwrap_or(0);
    let run = i64::try_from(run).ok()?;
    let at = |k: i64| (k / run).saturating_mul(next).saturating_add((k % run).saturating_mul(step));
    let (quotient, rest) = Index::from(var.clone()).div_mod(run);
    let fits = beyond.iter().zip(0i64..).all(|(x, k)| *x == at(k));
    fits.then(|| first.add(&quotient.times(next)).add(&rest.times(step)))
}

impl Display for Loop {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            None => "unrolled",
            Some(LoopKind::Seq) => "for",
            Some(LoopKind::Wrg(_)) => "groups",
            Some(LoopKind::Glb(_) | LoopKind::Lcl(_)) => "work-items",
            Some(LoopKind::Warp) => "warps",
            Some(LoopKind::Lane) => "lanes",
        };
        let first = if self.only_first { " (the first iteration)" } else { "" };
        write!(f, "{kind} {} < {}{first}", self.var.name, self.count)
    }
}

/// What a kernel's memories and arguments are called.
struct Names<'a> {
    program: &'a Program,
    kernel: &'a Kernel,
}

impl Names<'_> {
    fn place(&self, place: &Place) -> String {
        match place {
            Place::Mem(mem, i, width) => {
                let lanes = if *width > 1 { format!(" .. +{width}") } else { String::new() };
                format!("{}[{i}{lanes}]", self.memory(*mem))
            }
            Place::Regs(names) => match &names[..] {
                [first, .., last] => format!("registers {first} to {last}"),
                one => one.iter().map(|name| format!("register {name}")).collect(),
            },
            Place::Arg(k) => {
                self.program.scalars.get(*k).map_or(format!("arg{k}"), |s| s.name.to_string())
            }
        }
    }

    fn memory(&self, mem: Mem) -> String {
        let array = match mem {
            Mem::Global(k) => self.program.buffers.get(k).map(|b| &b.array),
            Mem::Local(k) => self.kernel.locals.get(k),
            Mem::Private(k) => self.kernel.privates.get(k),
        };
        array.map_or(mem.to_string(), |a| a.name.to_string())
    }

    fn list(&self, places: &[Place]) -> String {
        places.iter().map(|p| self.place(p)).collect::<Vec<_>>().join(", ")
    }

    /// Prints the part. Loops and guards with a single part stand in one line with it, if it is a loop or guard, too.
    fn part(&self, part: &Part, out: &mut String, depth: usize) -> fmt::Result {
        let pad = "  ".repeat(depth);
        let mut headings = vec![];
        let mut parts = std::slice::from_ref(part);
        while let [part] = parts {
            let (heading, inside) = match part {
                Part::Stage(..) if !headings.is_empty() => break,
                Part::Stage(name, None, inside) => (name.clone(), inside),
                Part::Stage(name, Some(level), inside) => (format!("{name} [{level}]"), inside),
                Part::Loop(l, inside) => (l.to_string(), inside),
                Part::If(g, inside) => (format!("if {g}"), inside),
                Part::Element(..) => break,
            };
            headings.push(heading);
            parts = inside;
        }
        if !headings.is_empty() {
            writeln!(out, "{pad}{}", headings.join(", "))?;
            return parts.iter().try_for_each(|p| self.part(p, out, depth + 1));
        }
        let Part::Element(how, reads, writes) = part else { return Ok(()) };
        let to = if writes.is_empty() { "used at once".to_owned() } else { self.list(writes) };
        match how {
            How::Function(f) if reads.is_empty() => writeln!(out, "{pad}{to} <- {f}"),
            How::Function(f) => writeln!(out, "{pad}{to} <- {f} of {}", self.list(reads)),
            How::Same => writeln!(out, "{pad}{to} <- {}", self.list(reads)),
            How::Expression => writeln!(out, "{pad}{to} <- from {}", self.list(reads)),
            How::Constant(text) => writeln!(out, "{pad}{to} <- {text}"),
        }
    }
}

impl Schedule {
    fn kernel(&self, f: &mut Formatter<'_>, k: usize, depth: usize) -> fmt::Result {
        let (pad, Some(kernel)) = ("  ".repeat(depth), self.program.kernels.get(k)) else {
            return Ok(());
        };
        let shown = |n: [usize; 3]| {
            let used = n.iter().rposition(|n| *n > 1).map_or(1, |last| last + 1);
            let texts: Vec<String> = n.iter().take(used).map(usize::to_string).collect();
            texts.join(" x ")
        };
        let (global, group) = (shown(kernel.global), shown(kernel.group));
        writeln!(f, "{pad}kernel {}: {global} work-items in groups of {group}", kernel.name)?;
        for (kind, arrays) in [("local", &kernel.locals), ("private", &kernel.privates)] {
            for a in arrays {
                writeln!(f, "{pad}  {kind} {a}")?;
            }
        }
        let mut text = String::new();
        let names = Names { program: &self.program, kernel };
        for part in self.kernels.get(k).into_iter().flatten() {
            names.part(part, &mut text, depth + 1)?;
        }
        f.write_str(&text)
    }
}

impl Display for Schedule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for b in &self.program.buffers {
            let role = match b.role {
                BufferRole::Input(..) => "input",
                BufferRole::Temp => "temporary",
                BufferRole::Output(_) => "output",
            };
            writeln!(f, "{role} {}", b.array)?;
        }
        for s in &self.program.scalars {
            writeln!(f, "argument {}: {}", s.name, s.scalar)?;
        }
        let buffer = |k: &usize| self.program.buffers.get(*k).map_or("?", |b| &b.array.name);
        let mut depth = 0;
        for c in &self.program.control {
            let pad = "  ".repeat(depth);
            match c {
                Control::Launch(k) => self.kernel(f, *k, depth)?,
                Control::Repeat(times, var) => {
                    let times = match times {
                        Times::Known(n) => n.to_string(),
                        Times::Given { arg, plus, less } => {
                            let name = self.program.scalars.get(*arg).map_or("?", |s| &s.name);
                            format!("{name} + {plus} - {less}")
                        }
                    };
                    writeln!(f, "{pad}host: repeat {} < {times}", var.name)?;
                    depth += 1;
                }
                Control::While => {
                    writeln!(f, "{pad}host: repeat")?;
                    depth += 1;
                }
                Control::Check(k) => writeln!(f, "{pad}host: end unless {}[0]", buffer(k))?,
                Control::Swap(a, b) => {
                    writeln!(f, "{pad}host: exchange {} and {}", buffer(a), buffer(b))?;
                }
                Control::Together(team) => {
                    let Team { groups, items } = team;
                    writeln!(f, "{pad}together: {groups} work-groups of {items}")?;
                }
                Control::End => depth = depth.saturating_sub(1),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::linear;
    use crate::calculus::size::SizeEnv;
    use crate::kernel::generator::lowered;
    use crate::kernel::index::{Index, Var};
    use crate::kernel::lower::testing::{options, term};
    use crate::kernel::schedule;

    const TERMS: &[(&str, &[(&str, &str)])] = &[
        ("mapGlb 0 (reduceSeq (+) 0.0) . A", &[("A", "[64][100]f32")]),
        (
            "join . mapWrg 0 (mapLcl 0 (\\x -> x + 1.0) . reverse . toLocal (mapLcl 0 abs)) . split 32 . xs",
            &[("xs", "[256]f32")],
        ),
        (
            "join . mapGlb 0 (asScalar . mapUnroll (vectorize 4 abs) . asVector 4) . split 16 . xs",
            &[("xs", "[256]f32")],
        ),
        ("foldSeq (mapGlb 0 (+) . zip) . fork xs A", &[("xs", "[64]f32"), ("A", "[9][64]f32")]),
    ];

    #[test]
    fn a_record_changes_no_kernel() {
        for (text, inputs) in TERMS {
            let (term, env, options) = (term(text, inputs), SizeEnv::default(), options());
            let [plain, recorded] = [false, true].map(|record| {
                let (program, ..) = lowered(&term, &env, &options, record).expect("lowers");
                program
            });
            assert_eq!(plain, recorded, "{text}");
        }
    }

    #[test]
    fn schedules_have_loops_stages_and_places() {
        let shown = |k: usize| {
            let (text, inputs) = TERMS[k];
            let schedule = schedule(&term(text, inputs), &SizeEnv::default(), &options());
            schedule.expect("lowers").to_string()
        };
        let rows = "input A: [6400]f32
output out: [64]f32
kernel f_0: 64 work-items in groups of 8
  mapGlb 0 of 64, work-items i0 < 64
    reduceSeq of 100 [work-item]
      register t6 <- 0.0
      for i7 < 100
        register t6 <- (+) of register t6, A[100 * i0 + i7]
      out[i0] <- register t6
";
        assert_eq!(shown(0), rows);
        let has = |k: usize, lines: &[&str]| {
            let text = shown(k);
            lines.iter().for_each(|line| assert!(text.contains(line), "{line}\n{text}"));
        };
        let group = "mapWrg 0 of 8, groups g0 < 8";
        let stored = "[l0] <- abs of xs[32 * g0 + l0]";
        has(1, &[group, "  local tile", "mapLcl 0 of 32, work-items l0 < 32", stored, "[31 - l0]"]);
        let vector = "out[16 * i0 + 4 * u0 .. +4] <- abs of xs[16 * i0 + 4 * u0 .. +4]";
        has(2, &["mapGlb 0 of 16, work-items i0 < 16", "unrolled u0 < 4", vector]);
        // Inputs may be called like memories.
        let scaled =
            term("mapGlb 0 (\\x -> global0 * x) . xs", &[("xs", "[64]f32"), ("global0", "f32")]);
        let text = schedule(&scaled, &SizeEnv::default(), &options()).expect("lowers").to_string();
        assert!(text.contains("out[i0] <- \\x -> global0 * x of xs[i0]"), "{text}");
        has(3, &["temporary temp", "host: repeat step", "  kernel f_1", "  host: exchange temp"]);
    }

    #[test]
    fn places_of_unrolled_loops_are_linear_or_linear_in_runs() {
        let var = Var { id: 1, name: "u".into(), lo: 0, hi: 7 };
        let of = |values: &[i64]| {
            let values: Vec<Index> = values.iter().map(|v| Index::from(*v)).collect();
            linear(&values.iter().collect::<Vec<_>>(), &var).map(|i| i.to_string())
        };
        assert_eq!(of(&[5, 5, 5, 5]).as_deref(), Some("5"));
        assert_eq!(of(&[1, 3, 5, 7, 9, 11, 13, 15]).as_deref(), Some("2 * u + 1"));
        let runs = of(&[0, 1, 2, 3, 32, 33, 34, 35]);
        assert_eq!(runs.as_deref(), Some("32 * ((u) / 4) + ((u) % 4)"));
        assert_eq!(of(&[0, 1, 3, 7]), None);
    }
}
