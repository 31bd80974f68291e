//! Loops of the host that a team of work-groups runs in one launch: a function with the loop around the code of its kernels.
//!
//! All work-items of the team meet between two kernels. Buffers that are exchanged are exchanged pointers. Nothing is `restrict`:
//! a load through a cache for constants would miss what another phase has stored.

use super::checks::{self, Checks};
use super::expr::stored;
use super::types::c_type;
use super::{Needed, Numbers, Params, Printer, Uses, own_buffers};
use crate::kernel::ir::team::{Shares, shares};
use crate::kernel::ir::{Control, ElemTy, Kernel, Launched, MemArray, Program, Team, Times};
use crate::opencl::plan::Launch;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

/// Name of the buffer at which work-groups meet.
pub(super) const MET: &str = "met";

/// The barrier of all work-groups. The first group adds so much that the highest bit changes when all have come. A fence before
/// and one after it order what the work-items of a group store before, and load after it.
pub(super) const MEET: &str = r#"
void meet_all(volatile global uint* met, uint groups) {
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
        const uint before = atomic_add(met, get_group_id(0) == 0 ? 0x80000001u - groups : 1u);
        while (((*met ^ before) & 0x80000000u) == 0) {}
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}
"#;

/// Whether work-groups of a launch wait for each other.
pub(super) fn has_several_groups(program: &Program) -> bool {
    let several = |l: &Launched| matches!(l, Launched::Loop(team, _) if team.groups > 1);
    program.launched().iter().any(several)
}

/// What the phases use.
#[derive(Default)]
struct Used {
    buffers: BTreeSet<usize>,
    scalars: BTreeSet<usize>,
    written: BTreeSet<usize>,
    locals: Vec<MemArray>,
}

/// Prints a loop.
struct Loop<'a> {
    program: &'a Program,
    team: Team,
    needed: &'a Needed,
    checks: Checks<'a>,
    used: Used,
}

/// Prints the function of a loop; returns its launch, too.
pub(super) fn kernel(
    program: &Program,
    team: Team,
    steps: &Range<usize>,
    needed: &Needed,
    checks: &checks::Shared,
) -> (String, Launch) {
    let mut of = Loop { program, team, needed, checks: Checks::new(checks), used: Used::default() };
    let mut body = String::new();
    of.steps(steps, &mut body);
    let pairs = program.exchanged(steps.clone());
    let all: BTreeSet<usize> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
    of.used.buffers.extend(&all);
    // The host does not know how often a loop that data end has exchanged buffers.
    if program.control[steps.clone()].contains(&Control::While) {
        for (a, b) in &pairs {
            of.give_back(*a, *b, &mut body);
        }
    }
    let name = program.phases(steps.clone()).next().map_or("", |k| &program.kernels[k].name);
    let made = of.checks.print(name);
    body.push_str(&made.after);
    let head = Printer::arrays(&of.used.locals, 1, "local ") + &made.before;
    let mut params = Params::default();
    let constant = |b: usize| !of.used.written.contains(&b) && !all.contains(&b);
    params.buffers(program, &of.used.buffers, &constant, &|_| false);
    params.scalars(program, &of.used.scalars);
    if !made.after.is_empty() {
        params
            .add(format!("volatile global int* {}", checks::FAULTS), own_buffers(program).faults());
    }
    if team.groups > 1 {
        params.add(
            format!("volatile global uint* {}", unused(program, MET)),
            own_buffers(program).meeting(),
        );
    }
    let sizes = [[team.groups * team.items, 1, 1], [team.items, 1, 1]];
    params.kernel(name, sizes, &(head + &body))
}

/// Returns the name, with underscores appended until no buffer or scalar argument has it.
fn unused(program: &Program, name: &str) -> String {
    let mut name = name.to_owned();
    while program.buffers.iter().any(|b| *b.array.name == *name)
        || program.scalars.iter().any(|s| *s.name == *name)
    {
        name.push('_');
    }
    name
}

impl Loop<'_> {
    fn buffer(&self, b: usize) -> (&str, String) {
        let a = &self.program.buffers[b].array;
        (&a.name, c_type(stored(ElemTy::scalar(a.scalar))))
    }

    /// All work-items meet.
    fn meet(&self, pad: &str, out: &mut String) {
        let _ = match self.team.groups {
            1 => writeln!(out, "{pad}barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"),
            n => writeln!(out, "{pad}meet_all({}, {n});", unused(self.program, MET)),
        };
    }

    fn steps(&mut self, steps: &Range<usize>, out: &mut String) {
        let mut depth = 1;
        for c in &self.program.control[steps.clone()] {
            let pad = "    ".repeat(depth);
            match c {
                Control::Launch(k) => {
                    self.phase(&self.program.kernels[*k].clone(), depth, out);
                    self.meet(&pad, out);
                }
                Control::Repeat(times, v) => {
                    let end = match times {
                        Times::Known(n) => n.to_string(),
                        Times::Given { arg, plus, less } => self.given(*arg, *plus, *less),
                    };
                    let i = &v.name;
                    let _ = writeln!(out, "{pad}for (int {i} = 0; {i} < {end}; ++{i}) {{");
                    depth += 1;
                }
                Control::While => {
                    let _ = writeln!(out, "{pad}for (;;) {{");
                    depth += 1;
                }
                Control::Check(b) => {
                    let (name, _) = self.buffer(*b);
                    let _ = writeln!(out, "{pad}if ({name}[0] == 0) break;");
                    self.used.buffers.insert(*b);
                }
                Control::Swap(a, b) => {
                    let other = unused(self.program, "other");
                    let ((a, c), (b, _)) = (self.buffer(*a), self.buffer(*b));
                    let _ = writeln!(
                        out,
                        "{pad}{{ global {c}* const {other} = {a}; {a} = {b}; {b} = {other}; }}"
                    );
                }
                Control::End => {
                    depth -= 1;
                    let pad = "    ".repeat(depth);
                    let _ = writeln!(out, "{pad}}}");
                    // What ended an inner loop may be computed again.
                    if depth > 1 {
                        self.meet(&pad, out);
                    }
                }
                Control::Together(_) => {}
            }
        }
    }

    /// The number of steps that a scalar argument gives.
    fn given(&mut self, arg: usize, plus: i64, less: i64) -> String {
        self.used.scalars.insert(arg);
        let a = &self.program.scalars[arg];
        let (c, u) =
            (c_type(ElemTy::scalar(a.scalar)), c_type(ElemTy::scalar(a.scalar.unsigned())));
        format!("(long)({c})(({u}){} + ({u})({plus}l)) - ({less}l)", a.name)
    }

    /// Copies a state to where it was before the loop, if it is in the other buffer.
    fn give_back(&mut self, a: usize, b: usize, out: &mut String) {
        let len = self.program.buffers[a].array.len;
        let ((a, c), (b, _)) = (self.buffer(a), self.buffer(b));
        let step = self.team.groups * self.team.items;
        let [i, x, before] =
            ["i", "x", &format!("{a}_before")].map(|name| unused(self.program, name));
        let copied = format!(
            "    if ({a} != {before}) {{\n        for (long {i} = get_global_id(0); {i} < {len}; {i} += {step}) {{\n            \
             const {c} {x} = {a}[{i}];\n            {a}[{i}] = {b}[{i}];\n            {b}[{i}] = {x};\n        }}\n    }}\n"
        );
        out.insert_str(0, &format!("    global {c}* const {before} = {a};\n"));
        out.push_str(&copied);
    }

    /// Gives the local arrays of a phase names of their own.
    fn with_locals(&mut self, k: &Kernel) -> Kernel {
        let mut k = k.clone();
        for a in &mut k.locals {
            let mut name = a.name.to_string();
            while self.used.locals.iter().any(|other| *other.name == *name) {
                name.push('_');
            }
            a.name = name.into();
            self.used.locals.push(a.clone());
        }
        k
    }

    /// Prints a kernel as a phase: its work-groups, or its work-items, one after the other.
    fn phase(&mut self, k: &Kernel, depth: usize, out: &mut String) {
        let k = self.with_locals(k);
        let uses = Uses::of(&k);
        self.checks.forget_registers();
        let mut p = Printer::new(self.program, &k, &uses, self.needed, &self.checks);
        let Team { groups, items } = self.team;
        let shared = shares(&k);
        let own = k.group.iter().product::<usize>().max(1);
        let [part, at, works] = ["part", "at", "works"].map(|name| p.unused(name));
        let idle = own < items && matches!(shared, Shares::Groups { .. });
        p.stores_if = idle.then(|| works.clone());
        let mut body = String::new();
        p.block(&k.body, depth + 1, &mut body);
        let (pad, inner) = ("    ".repeat(depth), "    ".repeat(depth + 1));
        let (first, n, step) = match shared {
            Shares::Items(n) => ("get_global_id(0)", n, groups * items),
            Shares::Groups { groups: n, .. } if groups == 1 => ("0", n, 1),
            Shares::Groups { groups: n, .. } => ("get_group_id(0)", n, groups),
        };
        let int = p.int();
        let _ = match n == step {
            true => writeln!(out, "{pad}{{\n{inner}const {int} {part} = {first};"),
            false => writeln!(
                out,
                "{pad}for ({int} {part} = {first}; {part} < {n}; {part} += {step}) {{"
            ),
        };
        if idle {
            // The last work-item that the kernel has is that of all that are too many.
            let _ = writeln!(out, "{inner}const bool {works} = get_local_id(0) < {own};");
            let _ =
                writeln!(out, "{inner}const int {at} = {works} ? get_local_id(0) : {};", own - 1);
            // It may read what that one has stored meanwhile, so what it finds wrong does not count.
            for (c, name) in self.checks.variables() {
                let _ = writeln!(out, "{inner}const {c} {name}_before = {name};");
            }
        }
        let (group, local) = match shared {
            Shares::Items(_) => (format!("({part} / {own})"), format!("({part} % {own})")),
            Shares::Groups { .. } if idle => (part.clone(), at),
            Shares::Groups { .. } => (part.clone(), "get_local_id(0)".to_owned()),
        };
        let grid = [0, 1, 2].map(|d| k.global[d] / k.group[d].max(1));
        let one_row = grid[1..] == [1, 1] && k.group[1..] == [1, 1];
        let global = |d: usize| match (shared, d) {
            (Shares::Items(_), 0) if one_row => part.clone(),
            _ if k.group[d] == 1 => digit(&group, &grid, d),
            _ => {
                let (g, l) = (digit(&group, &grid, d), digit(&local, &k.group, d));
                format!("{g} * {} + {l}", k.group[d])
            }
        };
        let numbers = Numbers {
            group: [0, 1, 2].map(|d| digit(&group, &grid, d)),
            local: [0, 1, 2].map(|d| digit(&local, &k.group, d)),
            global: [0, 1, 2].map(global),
        };
        out.push_str(&Printer::arrays(&k.privates, depth + 1, ""));
        out.push_str(&p.numbers(&uses.ids, &numbers, depth + 1));
        out.push_str(&body);
        for (_, name) in self.checks.variables().iter().filter(|_| idle) {
            let _ = writeln!(out, "{inner}if (!{works}) {name} = {name}_before;");
        }
        if n > step && !k.locals.is_empty() {
            let _ = writeln!(out, "{inner}barrier(CLK_LOCAL_MEM_FENCE);");
        }
        let _ = writeln!(out, "{pad}}}");
        self.used.buffers.extend(p.buffers.into_inner());
        self.used.scalars.extend(p.scalars.into_inner());
        self.used.written.extend(uses.written);
    }
}

/// The digit of a number, as C, in a system with these numbers of digits, the lowest first.
fn digit(number: &str, digits: &[usize; 3], d: usize) -> String {
    let lower: usize = digits[..d].iter().product();
    let higher = digits[d + 1..].iter().all(|n| *n == 1);
    match (digits[d], lower, higher) {
        (1, ..) => "0".to_owned(),
        (_, 1, true) => number.to_owned(),
        (n, 1, false) => format!("({number} % {n})"),
        (_, lower, true) => format!("({number} / {lower})"),
        (n, lower, false) => format!("({number} / {lower} % {n})"),
    }
}
