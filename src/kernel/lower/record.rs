//! What lowering records for a schedule. Without a record, each of these functions only runs its body; a record
//! changes no kernel.

use super::lowerer::{Context, Lowerer};
use super::places::{read_by, read_by_view, register};
use super::schedule::{How, Loop, Part, Place, Record, together};
use super::view::{Step, View};
use crate::calculus::term::{MapKind, Op, Term};
use crate::kernel::ir::facts::Guard;
use crate::kernel::ir::index::Var;
use crate::kernel::ir::{Expr, LoopKind, Stmt, Update};
use std::sync::Arc;

/// Maximum number of characters of a scalar function that are shown.
const WIDTH: usize = 60;

/// Returns the name of the stage of a pattern, with its length; `None` for patterns that only pass on to others.
fn name(f: &Term) -> Option<String> {
    let dimension = match f.op() {
        Op::Map(MapKind::Glb(d) | MapKind::Wrg(d) | MapKind::Lcl(d)) => format!(" {d}"),
        Op::Map(_) | Op::Reduce(_) | Op::ReduceLcl | Op::Scan(_) | Op::ScanLcl(_) => String::new(),
        Op::Fold | Op::Scatter | Op::Histogram | Op::CountingSort => String::new(),
        Op::While | Op::Cond => return f.op().name().map(str::to_owned),
        _ => return None,
    };
    let length = f.sizes().first().map_or(String::new(), |n| format!(" of {n}"));
    Some(format!("{}{dimension}{length}", f.op().name()?))
}

/// Returns the text of a scalar function; `None` for other terms.
fn function(f: &Term) -> Option<String> {
    match f.op() {
        Op::Scalar(_) => {
            let text = f.to_string();
            let short: String = text.chars().take(WIDTH).collect();
            Some(if short.len() < text.len() { short + "..." } else { text })
        }
        Op::Vectorize => function(&f.args()[0]),
        _ => None,
    }
}

impl Lowerer {
    /// Runs `body`, and records what it records as one part.
    fn part<T>(
        &mut self,
        part: impl FnOnce(Vec<Part>) -> Part,
        body: impl FnOnce(&mut Lowerer) -> Step<T>,
    ) -> Step<T> {
        match &mut self.record {
            Some(r) => r.begin(),
            None => return body(self),
        }
        let done = body(self);
        if let Some(r) = &mut self.record {
            let inside = r.end();
            if !inside.is_empty() {
                r.add(part(inside));
            }
        }
        done
    }

    /// Runs `body` as a stage. Outside kernels, the name is that of the kernels that `body` makes.
    pub fn stage_named<T>(
        &mut self,
        name: &str,
        body: impl FnOnce(&mut Lowerer) -> Step<T>,
    ) -> Step<T> {
        let Some(r) = &mut self.record else { return body(self) };
        let level = match self.context {
            Context::Host => {
                r.host.push(name.to_owned());
                let done = body(self);
                if let Some(r) = &mut self.record {
                    r.host.pop();
                }
                return done;
            }
            Context::Nest => "nest",
            Context::Group => "work-group",
            Context::Warp => "warp",
            Context::Item => "work-item",
        };
        // The loops of parallel maps say where these run.
        let level = (!name.starts_with("map") || self.context == Context::Item).then_some(level);
        let name = name.to_owned();
        self.part(|inside| Part::Stage(name, level, inside), body)
    }

    /// Runs `body` as the stage of a pattern.
    pub fn stage_of<T>(&mut self, f: &Term, body: impl FnOnce(&mut Lowerer) -> Step<T>) -> Step<T> {
        match self.record.as_ref().and_then(|_| name(f)) {
            Some(name) => self.stage_named(&name, body),
            None => body(self),
        }
    }

    /// Runs the body of a kernel, as a stage of the innermost pattern of the host.
    pub fn stage_of_kernel(&mut self, body: impl FnOnce(&mut Lowerer) -> Step<()>) -> Step<()> {
        let name = self.record.as_ref().and_then(|r| r.host.last().cloned()).unwrap_or_default();
        self.part(|inside| Part::Stage(name, None, inside), body)
    }

    /// Runs `body` as a loop.
    pub fn looped<T>(
        &mut self,
        kind: LoopKind,
        (var, count): (&Var, i64),
        body: impl FnOnce(&mut Lowerer) -> Step<T>,
    ) -> Step<T> {
        let looped = |inside| {
            let l = Loop { kind: Some(kind), var: var.clone(), count, only_first: false };
            Part::Loop(l, inside)
        };
        self.part(looped, body)
    }

    /// Runs `body` where a guard holds.
    pub fn guarded<T>(&mut self, g: &Guard, body: impl FnOnce(&mut Lowerer) -> Step<T>) -> Step<T> {
        self.part(|inside| Part::If(g.clone(), inside), body)
    }

    /// Runs the `n` iterations of an unrolled loop, each by [`Lowerer::one_copy`].
    pub fn all_copies<T>(&mut self, n: i64, body: impl FnOnce(&mut Lowerer) -> Step<T>) -> Step<T> {
        let Some(r) = &mut self.record else { return body(self) };
        let name: Arc<str> = format!("u{}", r.unrolled).into();
        let var = Var { id: u32::MAX - r.unrolled, name, lo: 0, hi: n - 1 };
        r.unrolled += 1;
        let done = self.part(
            |copies| {
                let copies: Vec<Vec<Part>> = copies
                    .into_iter()
                    .map(|c| if let Part::Stage(_, _, inside) = c { inside } else { vec![c] })
                    .collect();
                let first = copies.first().cloned().unwrap_or_default();
                let all = if i64::try_from(copies.len()) == Ok(n) {
                    together(copies, &var)
                } else {
                    None
                };
                let only_first = all.is_none();
                Part::Loop(Loop { kind: None, var, count: n, only_first }, all.unwrap_or(first))
            },
            body,
        );
        if let Some(r) = &mut self.record {
            r.unrolled -= 1;
        }
        done
    }

    /// Runs one iteration of an unrolled loop.
    pub fn one_copy<T>(&mut self, body: impl FnOnce(&mut Lowerer) -> Step<T>) -> Step<T> {
        self.part(|inside| Part::Stage(String::new(), None, inside), body)
    }

    /// Runs `body`, and discards what it records if its result is not used.
    pub fn on_trial<T>(
        &mut self,
        used: impl FnOnce(&Step<T>) -> bool,
        body: impl FnOnce(&mut Lowerer) -> Step<T>,
    ) -> Step<T> {
        let before = self.record.as_ref().map_or(0, Record::len);
        let done = body(self);
        if let Some(r) = self.record.as_mut().filter(|_| !used(&done)) {
            r.truncate(before);
        }
        done
    }

    /// Runs `body`, which applies the function `f` to `x` and returns the result, as one element. The result goes to
    /// `dest`, or stays in the registers of the result.
    pub fn element<T>(
        &mut self,
        f: &Term,
        x: &View,
        written: impl FnOnce(&T, &mut Vec<Place>),
        body: impl FnOnce(&mut Lowerer) -> Step<T>,
    ) -> Step<T> {
        let Some(text) = self.record.as_ref().and_then(|_| function(f)) else {
            return body(self);
        };
        self.quietly(true);
        let done = body(self);
        self.quietly(false);
        let done = done?;
        let (mut reads, mut writes) = (vec![], vec![]);
        read_by_view(x, &mut reads);
        written(&done, &mut writes);
        if let Some(r) = &mut self.record {
            r.add(Part::Element(How::Function(text), reads, writes));
        }
        Ok(done)
    }

    fn quietly(&mut self, begin: bool) {
        if let Some(r) = &mut self.record {
            r.quiet = if begin { r.quiet + 1 } else { r.quiet.saturating_sub(1) };
        }
    }

    /// Records a statement and those in its branches and loops.
    pub fn note_all(&mut self, s: &Stmt) {
        self.note(s);
        if matches!(s, Stmt::Once(_)) {
            return;
        }
        s.blocks().into_iter().flatten().for_each(|s| self.note_all(s));
    }

    /// Records a statement that stores an element.
    pub fn note(&mut self, s: &Stmt) {
        let Some(r) = &mut self.record else { return };
        let (e, to) = match s {
            Stmt::Decl(reg, Some(e)) | Stmt::Set(reg, e) => (e, register(reg)),
            Stmt::Store(m, i, e) | Stmt::Atomic(_, m, i, e) => {
                (e, Place::Mem(*m, i.clone(), e.ty().width))
            }
            Stmt::Once(b) => return b.iter().for_each(|s| self.note(s)),
            _ => return,
        };
        let mut reads = vec![];
        read_by(e, &mut reads);
        let how = match (s, e) {
            (Stmt::Atomic(Update::Combine(op, _), ..), _) => {
                How::Function(format!("atomic {op:?}"))
            }
            // The exchange that follows is what changes the element.
            (Stmt::Atomic(Update::Read(_), ..), _) => return,
            (Stmt::Atomic(Update::Swap(_), ..), _) => How::Function("exchange".to_owned()),
            (_, Expr::Load(..) | Expr::Reg(_) | Expr::Arg(..)) => How::Same,
            _ if reads.is_empty() => How::Constant(e.to_string()),
            _ => How::Expression,
        };
        r.add(Part::Element(how, reads, vec![to]));
    }
}
