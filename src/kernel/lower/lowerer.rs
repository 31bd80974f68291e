//! Lowers terms to the IR, inside kernels and between them.
//!
//! [`Lowerer::write`] stores the result of a term at a destination. [`Lowerer::read`] returns the
//! result as a view, and stores it in the memory of the context first if it is not one. Chains of
//! compositions are represented as lists of factors, outermost first.

use super::apply::is_pure;
use super::dest::{Dest, inverse, unarranged};
use super::interleave::side_by_side;
use super::leaf::{self, Emit};
use super::places::{held_by, written};
use super::schedule::Record;
use super::view::{Inside, Shape, Step, Stop, View, Views, stop};
use crate::calculus::nesting::finds_row;
use crate::calculus::term::{MapKind, Op, ReduceKind, ScanKind, Space, Term};
use crate::calculus::ty::Ty;
use crate::diag::{Code, Diagnostic};
use crate::kernel::analysis::hazard::{Later, Owned};
use crate::kernel::ir::facts::Guard;
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::walk::{Fresh, statements};
use crate::kernel::ir::{Block, ElemTy, Expr, LoopKind, Mem, MemArray, Program, Reg, Stmt};
use crate::kernel::options::Options;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

/// The level of the device hierarchy at which code is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Between kernels.
    Host,
    /// Between the dimensions of a parallel nest, where only views are allowed.
    Nest,
    /// In a work-group, in code that all work-items run alike.
    Group,
    /// In a warp, outside its lanes. Every computation here is a stage of the work-group's code.
    Warp,
    /// In one work-item.
    Item,
}

/// The enclosing `mapWarp` of some code.
#[derive(Clone)]
pub struct InWarp {
    /// The index of the warp among the working warps.
    pub var: Var,
    /// Holds if the warp has an element in this round.
    pub guard: Guard,
}

/// A state of generation that can be restored.
pub struct Mark {
    blocks: usize,
    context: Context,
    vector: bool,
    locals: usize,
    privates: usize,
    local_dims: Vec<u8>,
    in_warp: Option<InWarp>,
    workers: usize,
    counters: usize,
}

/// The kernel under construction.
#[derive(Default)]
pub struct Building {
    /// Arrays of the work-group.
    pub locals: Vec<MemArray>,
    /// Arrays of the work-item.
    pub privates: Vec<MemArray>,
    /// Number of work-items or groups in each dimension.
    pub grid: [i64; 3],
    /// Work-group size, if the term determines it.
    pub group: [i64; 3],
    /// Whether the kernel has a single work-item, so that large intermediates may lie in global
    /// memory.
    pub single: bool,
    /// Whether global stores bypass the caches.
    pub streaming: bool,
    /// Whether reductions determine the number of work-items of a group. Each work-item then takes
    /// the same share in all stages.
    pub together: bool,
    /// Whether work-items load fragments for matrix instructions from local memory.
    pub fragments: bool,
    /// Number of adjacent elements that maps over work-items process at a time, if there are such
    /// maps.
    pub run: Option<i64>,
    /// Dimensions of the enclosing `mapLcl`s.
    pub local_dims: Vec<u8>,
    /// Number of work-items of a warp, if the term has warps.
    pub warp: i64,
    /// The enclosing `mapWarp`.
    pub in_warp: Option<InWarp>,
    /// Variables of the enclosing parallel maps, outermost first.
    pub workers: Vec<Var>,
    /// Counters of the enclosing loops of a work-item, outermost first.
    pub counters: Vec<Var>,
    /// Ids of the variables for work-items and work-groups.
    pub ids: [u32; 6],
    /// Ids of the variables for warp and lane.
    pub warp_ids: [u32; 2],
    /// Number of statements of copies that were too long.
    pub discarded: usize,
}

/// A finished kernel of one work-group, which code of one work-item may continue: a launch takes longer than most of such code.
pub struct Open {
    /// What it was built with.
    pub kernel: Building,
    /// Work-items, all of one group.
    pub group: [usize; 3],
}

/// The conditions of the host's choices around the generated code, each with the value that it must
/// have.
pub type Choices = Vec<(Expr, bool)>;

/// The state of lowering.
pub struct Lowerer {
    /// Sizes and parameters.
    pub views: Rc<Views>,
    /// What the caller asked for.
    pub options: Options,
    /// The finished part of the program.
    pub program: Program,
    /// The current level of the hierarchy.
    pub context: Context,
    /// The current kernel.
    pub kernel: Building,
    /// The conditions of the host around the current kernels.
    pub choices: Choices,
    /// Open blocks, innermost last.
    pub blocks: Vec<Block>,
    /// The last kernel, if code of one work-item may continue it.
    pub open: Option<Open>,
    /// Whether leaves are evaluated on vectors.
    pub vector: bool,
    /// Whether the results of the next kernel bypass the caches.
    pub streaming: bool,
    /// Number of copies that the enclosing unrolled loops make of the generated code.
    pub copies: i64,
    /// Arrays of a group of which a work-item reads elements that another work-item computed.
    pub passed_on: BTreeSet<Term>,
    /// The states of the loops of the host around.
    pub states: Vec<Owned>,
    /// Stores that follow the update around, if there is one that defers them.
    pub later: Option<Later>,
    /// What was decided so far, if that is wanted.
    pub record: Option<Record>,
    /// New ids and names.
    pub names: Fresh,
    /// New ids and names for what belongs to the host.
    pub host_names: Fresh,
}

impl Emit for Lowerer {
    fn views(&self) -> Rc<Views> {
        self.views.clone()
    }

    fn declare(&mut self, ty: ElemTy, init: Option<Expr>) -> Step<Reg> {
        let r = self.names.reg(ty);
        self.emit(Stmt::Decl(r.clone(), init))?;
        Ok(r)
    }

    fn emit(&mut self, s: Stmt) -> Step<()> {
        self.note(&s);
        self.put(s)
    }

    fn begin(&mut self) {
        self.blocks.push(vec![]);
    }

    fn end(&mut self) -> Block {
        self.blocks.pop().unwrap_or_default()
    }

    fn in_vector(&self) -> bool {
        self.vector
    }
}

/// Generates the body of a loop, given its index.
pub type Body<'a> = &'a mut dyn FnMut(&mut Lowerer, &Index) -> Step<()>;

/// Whether any part of the term is spread over work-items or work-groups.
pub fn is_parallel(t: &Term) -> bool {
    let here = match t.op() {
        Op::Map(k) => match k {
            MapKind::Glb(_) | MapKind::Wrg(_) | MapKind::Lcl(_) | MapKind::Warp | MapKind::Lane => {
                true
            }
            MapKind::Plain | MapKind::Seq | MapKind::Unroll => false,
        },
        Op::ReduceLcl | Op::ScanLcl(_) => true,
        _ => false,
    };
    here || t.args().iter().any(is_parallel)
}

/// Whether the operator, outside kernels, becomes kernels of its own or steps of the host.
fn runs_by_host(f: &Term) -> bool {
    match f.op() {
        Op::Scatter | Op::Histogram | Op::CountingSort | Op::Scan(ScanKind::Assoc) => true,
        Op::Fold | Op::While => is_parallel(f) || f.args().iter().any(steps_by_host),
        Op::Cond => is_parallel(f) || f.args().iter().any(runs_by_host),
        Op::Fork | Op::Bimap | Op::Compose => f.args().iter().any(runs_by_host),
        _ => false,
    }
}

/// As [`runs_by_host`], in the step of a loop. Where nothing is parallel, one work-item runs the loop and updates elements.
fn steps_by_host(f: &Term) -> bool {
    match f.op() {
        Op::Scatter => f.sizes()[1].as_constant() != Some(1) || element_has_array(f),
        Op::Cond => is_parallel(f) || f.args().iter().any(steps_by_host),
        Op::Fork | Op::Bimap | Op::Compose => f.args().iter().any(steps_by_host),
        _ => runs_by_host(f),
    }
}

fn element_has_array(f: &Term) -> bool {
    matches!(&f.ty().cod, Ty::Array(_, element) if element.has_array())
}

/// Whether a view takes components of each element.
fn chooses(view: &Term) -> bool {
    *view.op() == Op::Map(MapKind::Plain) && view.is_invertible()
}

/// Whether `copy` copies a block to local memory of which `f` gives each work-item a row.
fn takes_rows_of(f: &Term, copy: &Term) -> bool {
    let staged = *copy.op() == Op::ToMem(Space::Local) && is_pure(&copy.args()[0]);
    staged && *f.op() == Op::Map(MapKind::Lcl(0)) && f.args()[0].ty().dom.has_array()
}

fn spreads(t: &Term, kind: fn(&MapKind) -> bool) -> bool {
    matches!(t.op(), Op::Map(k) if kind(k)) || t.args().iter().any(|a| spreads(a, kind))
}

/// Whether the destination holds the value already.
fn is_held_by(e: &Expr, dest: &Dest) -> bool {
    match (e, dest) {
        (Expr::Load(m, t, i), Dest::Mem(to, ty, at)) => m == to && t == ty && i == at,
        (Expr::Reg(r), Dest::Reg(to)) => r == to,
        _ => false,
    }
}

/// Returns the error for a pattern for which no kernel can be generated.
pub fn unlowered<T>(t: &Term) -> Step<T> {
    let what = match t.op() {
        Op::Map(MapKind::Glb(_) | MapKind::Wrg(_) | MapKind::Lcl(_)) => {
            "this nest of parallel maps"
        }
        op => op.name().unwrap_or("this pattern"),
    };
    let undecided = matches!(t.op(), Op::Map(MapKind::Plain) | Op::Reduce(_) | Op::ReducePart);
    let code = if undecided { Code::BadTerm } else { Code::NotYetCompiled };
    stop(
        code,
        if undecided {
            format!("`{what}` does not say how it runs; only low-level patterns become kernels")
        } else {
            format!("no kernel is generated for `{what}` here yet")
        },
    )
}

impl Lowerer {
    /// Returns a new id and a new name.
    pub fn fresh(&mut self, prefix: &str) -> (u32, Arc<str>) {
        self.names.name(prefix)
    }

    /// Returns what `read` gives, an element of a view. The statements of the functions that are applied inside of the view are
    /// emitted.
    pub fn emitted(&mut self, read: impl FnOnce() -> Step<View>) -> Step<View> {
        let (element, block) = self.collected(read);
        block.into_iter().try_for_each(|s| {
            self.note_all(&s);
            self.put(s)
        })?;
        element
    }

    /// Returns what `read` gives, and the statements that it needs.
    pub fn collected(&mut self, read: impl FnOnce() -> Step<View>) -> (Step<View>, Block) {
        let views = self.views.clone();
        let inside = Inside { names: std::mem::take(&mut self.names), blocks: vec![vec![]] };
        views.inside.replace(Some(inside));
        let element = read();
        let Inside { names, mut blocks } = views.inside.take().unwrap_or_default();
        self.names = names;
        (element, blocks.pop().unwrap_or_default())
    }

    /// Appends a statement that was emitted to a block of its own before, or that holds such blocks.
    pub fn put(&mut self, s: Stmt) -> Step<()> {
        match self.blocks.last_mut() {
            Some(b) => {
                b.push(s);
                Ok(())
            }
            None => stop(Code::Internal, "a statement outside any kernel"),
        }
    }

    /// Runs `body`, and emits what it emits under a guard.
    pub fn where_holds(
        &mut self,
        g: &Guard,
        body: impl FnOnce(&mut Lowerer) -> Step<()>,
    ) -> Step<()> {
        self.begin();
        let done = self.undeferred(|me| me.guarded(g, body));
        let block = self.end();
        done?;
        if block.is_empty() { Ok(()) } else { self.put(Stmt::If(g.clone(), block, vec![])) }
    }

    /// Stores the result of applying the factors to `x` at `dest`.
    pub fn write(&mut self, factors: &[Term], x: &View, dest: &Dest) -> Step<()> {
        match dest {
            Dest::Nowhere => return Ok(()),
            Dest::Guarded(g, d) if self.context == Context::Warp => {
                return self.where_in_warp(g, |me| me.write(factors, x, d));
            }
            Dest::Guarded(g, d) if self.context != Context::Host => {
                return self.where_holds(g, |me| me.write(factors, x, d));
            }
            _ => {}
        }
        let Some((f, rest)) = factors.split_first() else {
            return stop(Code::Internal, "an empty chain");
        };
        if *f.op() == Op::Compose {
            return self.write(&[&f.chain()[..], rest].concat(), x, dest);
        }
        if factors.iter().all(is_pure) {
            let v = self.apply(factors, x)?;
            return self.copy(&v, dest, &self.views.shape(&f.ty().cod)?);
        }
        if f.is_invertible() {
            let d = inverse(&self.views, f, dest)?;
            return self.write(rest, x, &d);
        }
        if self.context == Context::Host
            && let Some(d) = unarranged(f, dest)?
        {
            return self.write(rest, x, &d);
        }
        if self.context == Context::Item && self.scan_results(factors, x, dest)? {
            return Ok(());
        }
        if let (Op::ToMem(_), Context::Host) = (f.op(), self.context)
            && is_pure(&f.args()[0])
        {
            // A copy between kernels is a kernel of its own.
            let v = self.read_or(rest, x)?;
            let v = self.apply(&f.args()[0].chain(), &v)?;
            return self.copy(&v, dest, &self.views.shape(&f.ty().cod)?);
        }
        if *f.op() == Op::Scatter
            && self.has_scatter(dest)?
            && self.scatter_computed(f, rest, x, dest)?
        {
            return Ok(());
        }
        if matches!(f.op(), Op::Fold | Op::While) && self.context == Context::Group {
            let v = self.stage_of(f, |me| me.group_loop(f, rest, x))?;
            return self.copy(&v, dest, &self.views.shape(&f.ty().cod)?);
        }
        if *f.op() == Op::Histogram && self.context == Context::Group {
            let v = self.fused(rest, x)?;
            let v = self.stage_of(f, |me| me.histogram_in_group(f, &v))?;
            return self.copy(&v, dest, &self.views.shape(&f.ty().cod)?);
        }
        if *f.op() == Op::CountingSort && self.context == Context::Group && self.sorts_tiles(f)? {
            let v = self.fused(rest, x)?;
            return self.write_stage(f, &v, dest);
        }
        if self.context == Context::Host && runs_by_host(f) {
            let mid = match f.op() {
                Op::Histogram | Op::CountingSort => self.fused(rest, x)?,
                _ => self.read_or(rest, x)?,
            };
            return self.write_stage(f, &mid, dest);
        }
        if self.context == Context::Host && !is_parallel(f) {
            let elsewhere = |f: &Term| is_parallel(f) || runs_by_host(f);
            let k = factors.iter().position(elsewhere).unwrap_or(factors.len());
            let (ours, before) = factors.split_at(k);
            let mid = self.read_or(before, x)?;
            if ours.iter().all(is_pure) {
                let v = self.apply(ours, &mid)?;
                return self.copy(&v, dest, &self.views.shape(&f.ty().cod)?);
            }
            if matches!(f.op(), Op::Fork | Op::Bimap)
                && f.ty().cod.has_array()
                && ours[1..].iter().all(is_pure)
            {
                // An array that is only copied needs more than one work-item.
                let v = self.apply(&ours[1..], &mid)?;
                let (a, b) = match f.op() {
                    Op::Fork => (v.clone(), v),
                    _ => (v.fst()?, v.snd()?),
                };
                self.write(&f.args()[0].chain(), &a, &dest.component(false)?)?;
                return self.write(&f.args()[1].chain(), &b, &dest.component(true)?);
            }
            return self.single(|me| me.write(ours, &mid, dest));
        }
        if self.context == Context::Nest && !is_parallel(f) {
            return stop(Code::IllNested, "computation between the dimensions of a parallel nest");
        }
        if self.context == Context::Warp && !is_parallel(f) {
            let k = factors.iter().position(is_parallel).unwrap_or(factors.len());
            let (ours, before) = factors.split_at(k);
            let mid = self.read_or(before, x)?;
            if ours.iter().all(is_pure) {
                let v = self.apply(ours, &mid)?;
                return self.copy(&v, dest, &self.views.shape(&f.ty().cod)?);
            }
            return self.lanes(1, &mut |me, _| me.write(ours, &mid, dest));
        }
        let mid = match rest {
            [copy, before @ ..] if self.context == Context::Group && takes_rows_of(f, copy) => {
                let block = self.read_or(before, x)?;
                let block = self.apply(&copy.args()[0].chain(), &block)?;
                self.stage(&block, &self.views.shape(&copy.ty().cod)?, true)?
            }
            _ => self.read_or(rest, x)?,
        };
        if is_pure(f) {
            let v = self.views.apply(f, &mid)?;
            return self.copy(&v, dest, &self.views.shape(&f.ty().cod)?);
        }
        self.write_stage(f, &mid, dest)
    }

    fn read_or(&mut self, factors: &[Term], x: &View) -> Step<View> {
        if factors.is_empty() { Ok(x.clone()) } else { self.read(factors, x) }
    }

    pub fn apply(&self, factors: &[Term], x: &View) -> Step<View> {
        factors.iter().rev().try_fold(x.clone(), |v, f| self.views.apply(f, &v))
    }

    /// Returns the result of applying the factors to `x`.
    pub fn read(&mut self, factors: &[Term], x: &View) -> Step<View> {
        let Some(q) = factors.iter().position(|f| !is_pure(f)) else {
            return self.apply(factors, x);
        };
        let (prefix, rest) = factors.split_at(q);
        let (f, before) = (&rest[0], &rest[1..]);
        let v = match f.op() {
            Op::Compose => self.read(&[&f.chain()[..], before].concat(), x)?,
            Op::Fork | Op::Bimap => {
                let mid = self.read_or(before, x)?;
                self.value(f, &mid)?
            }
            Op::Fold | Op::While if self.context == Context::Group => {
                self.stage_of(f, |me| me.group_loop(f, before, x))?
            }
            Op::Histogram if self.context == Context::Group => {
                let v = self.fused(before, x)?;
                self.stage_of(f, |me| me.histogram_in_group(f, &v))?
            }
            Op::Histogram if self.context == Context::Item => {
                let v = self.fused(before, x)?;
                self.value(f, &v)?
            }
            // The values are computed in front of the array that they change, since they may come of what it is computed from.
            Op::Scatter if matches!(self.context, Context::Item | Context::Group) => {
                let out = self.allocate(&self.views.shape(&f.ty().cod)?, None)?;
                self.write(rest, x, &out.dest)?;
                out.view
            }
            // Any other loop is a kernel of one work-item.
            Op::Fold | Op::While if self.context == Context::Host && runs_by_host(f) => {
                let mid = self.read_or(before, x)?;
                self.stage_of(f, |me| match f.op() {
                    Op::Fold => me.host_fold_value(f, &mid),
                    _ => me.host_while(f, &mid),
                })?
            }
            _ if self.context == Context::Host => {
                let shape = self.views.shape(&f.ty().cod)?;
                let out = self.allocate(&shape, Some(Space::Global))?;
                self.write(rest, x, &out.dest)?;
                out.view
            }
            // Components that are not read need no memory.
            Op::Scan(ScanKind::Seq)
                if self.context == Context::Item && prefix.last().is_some_and(chooses) =>
            {
                let (outer, choice) = prefix.split_at(q - 1);
                let out = self.allocate(&self.views.shape(&choice[0].ty().cod)?, None)?;
                let mid = self.read_or(before, x)?;
                self.write_stage(f, &mid, &inverse(&self.views, &choice[0], &out.dest)?)?;
                return self.apply(outer, &out.view);
            }
            _ if self.context == Context::Nest => {
                return stop(
                    Code::IllNested,
                    "computation between the dimensions of a parallel nest",
                );
            }
            _ => {
                let mid = self.read_or(before, x)?;
                self.value(f, &mid)?
            }
        };
        self.apply(prefix, &v)
    }

    /// Stores the result of one factor, as a stage.
    fn write_stage(&mut self, f: &Term, x: &View, dest: &Dest) -> Step<()> {
        let to = |(): &(), out: &mut _| written(dest, out);
        self.stage_of(f, |me| me.element(f, x, to, |me| me.write_node(f, x, dest)))
    }

    /// Stores the result of one factor.
    fn write_node(&mut self, f: &Term, x: &View, dest: &Dest) -> Step<()> {
        let args = f.args();
        match f.op() {
            Op::Fork => {
                let x = self.shared(x)?;
                self.write(&[args[0].clone()], &x, &dest.component(false)?)?;
                self.write(&[args[1].clone()], &x, &dest.component(true)?)
            }
            Op::Bimap => {
                self.write(&[args[0].clone()], &x.fst()?, &dest.component(false)?)?;
                self.write(&[args[1].clone()], &x.snd()?, &dest.component(true)?)
            }
            Op::Map(kind) => self.map(*kind, f, x, dest),
            Op::ToMem(space) => {
                let was = std::mem::replace(&mut self.streaming, *space == Space::Stream);
                let done = self.write(&[args[0].clone()], x, dest);
                self.streaming = was;
                done
            }
            Op::Scan(ScanKind::Seq | ScanKind::Exclusive) => self.scan(f, x, dest).map(|_| ()),
            Op::ScanLcl(_) if self.context == Context::Group => self.scan_in_group(f, x, dest),
            Op::Scan(ScanKind::Assoc) if self.context == Context::Host => {
                self.scan_in_parts(f, x, dest)
            }
            Op::Scatter if self.has_scatter(dest)? => self.scatter(f, x, dest),
            Op::Scatter if self.context == Context::Group => {
                let shape = self.views.shape(&f.ty().cod)?;
                let out = self.allocate(&shape, Some(Space::Local))?;
                self.scatter(f, x, &out.dest)?;
                self.copy(&out.view, dest, &shape)
            }
            Op::Histogram if matches!(self.context, Context::Host | Context::Item) => {
                self.histogram(f, x, dest)
            }
            Op::CountingSort if matches!(self.context, Context::Host | Context::Item) => {
                self.counting_sort(f, x, dest)
            }
            Op::CountingSort if self.context == Context::Group && self.sorts_tiles(f)? => {
                self.counting_sort(f, x, dest)
            }
            Op::CountingSort if self.context == Context::Group => {
                let shape = self.views.shape(&f.ty().cod)?;
                let out = self.allocate(&shape, Some(Space::Local))?;
                self.counting_sort(f, x, &out.dest)?;
                self.copy(&out.view, dest, &shape)
            }
            Op::Reduce(ReduceKind::Seq | ReduceKind::Unroll) if self.context != Context::Warp => {
                self.write_reduce(f, x, dest)
            }
            Op::ReduceLcl if self.context == Context::Group => {
                let v = self.reduce_in_group(f, x)?;
                self.store(&v, dest, &self.views.shape(&f.ty().cod)?)
            }
            Op::SumProducts if self.context == Context::Item => self.sum_products(f, x, dest),
            Op::Fold if self.context == Context::Host => self.host_fold(f, x, dest),
            Op::While if self.context == Context::Host => {
                let last = self.host_while(f, x)?;
                self.copy(&last, dest, &self.views.shape(&f.ty().cod)?)
            }
            Op::Cond if self.context == Context::Host => self.host_choice(f, x, dest),
            Op::While if self.context == Context::Item => {
                let v = self.item_while(f, x)?;
                self.store(&v, dest, &self.views.shape(&f.ty().cod)?)
            }
            Op::Fold if self.context == Context::Item => {
                let acc = self.fold(f, x)?;
                let dest = inverse(&self.views, &acc.form.out, dest)?;
                self.store(&acc.kept, &dest, &acc.kept_shape)
            }
            Op::Cond if matches!(self.context, Context::Host | Context::Nest) => {
                let text = "no kernel is generated for a choice between parallel patterns yet";
                let help = "choose inside them: `mapGlb 0 (\\x -> if ... then ... else ...) xs`";
                Err(Diagnostic::error(Code::NotYetCompiled, text).help(help).into())
            }
            Op::Cond if self.context == Context::Warp => {
                stop(Code::NotYetCompiled, "a choice between stages of a warp's lanes")
            }
            Op::Cond if !self.views.shape(&f.ty().cod)?.is_element() => {
                let c = self.read(&[args[0].clone()], x)?.expr()?;
                self.choice(c, [&args[1], &args[2]], x, dest)
            }
            Op::Scalar(_)
            | Op::Cond
            | Op::Vectorize
            | Op::Reduce(ReduceKind::Seq | ReduceKind::Unroll) => {
                let v = self.value_of(f, x)?;
                self.store(&v, dest, &self.views.shape(&f.ty().cod)?)
            }
            _ => unlowered(f),
        }
    }

    /// Returns the result of one factor, in registers or in the memory of the context, as a stage.
    fn value(&mut self, f: &Term, x: &View) -> Step<View> {
        self.stage_of(f, |me| me.element(f, x, held_by, |me| me.value_of(f, x)))
    }

    /// Returns the result of one factor, in registers or in the memory of the context.
    fn value_of(&mut self, f: &Term, x: &View) -> Step<View> {
        let args = f.args();
        let shape = self.views.shape(&f.ty().cod)?;
        if self.context == Context::Warp
            && !is_parallel(f)
            && !matches!(f.op(), Op::Fork | Op::Bimap | Op::ToMem(_))
        {
            // One lane computes the value for all lanes.
            let out = self.allocate(&shape, None)?;
            self.write(std::slice::from_ref(f), x, &out.dest)?;
            return Ok(out.view);
        }
        match f.op() {
            Op::Fork => {
                let x = self.shared(x)?;
                Ok(View::pair(
                    self.read(&[args[0].clone()], &x)?,
                    self.read(&[args[1].clone()], &x)?,
                ))
            }
            Op::Bimap => Ok(View::pair(
                self.read(&[args[0].clone()], &x.fst()?)?,
                self.read(&[args[1].clone()], &x.snd()?)?,
            )),
            Op::Scalar(leaf) => leaf::lower(leaf, x, self),
            Op::Vectorize => {
                let w = usize::try_from(self.views.size(&f.sizes()[0])?).unwrap_or(0);
                let was = std::mem::replace(&mut self.vector, true);
                let v = self.read(&[args[0].clone()], x);
                self.vector = was;
                v?.widen(w)
            }
            Op::Cond if shape.is_element() => {
                let x = self.shared(x)?;
                let c = self.read(&[args[0].clone()], &x)?.expr()?;
                leaf::conditional(
                    &c,
                    &mut |me: &mut Lowerer| me.read(&[args[1].clone()], &x),
                    &mut |me: &mut Lowerer| me.read(&[args[2].clone()], &x),
                    self,
                )
            }
            Op::Reduce(ReduceKind::Seq | ReduceKind::Unroll) => Ok(self.reduce(f, x)?.view),
            Op::ReduceLcl if self.context == Context::Group => self.reduce_in_group(f, x),
            Op::Fold if self.context == Context::Item => Ok(self.fold(f, x)?.view),
            Op::While if self.context == Context::Item => self.item_while(f, x),
            Op::ToMem(Space::Local | Space::LocalAhead)
                if is_pure(&args[0]) && self.context == Context::Group =>
            {
                let v = self.apply(&args[0].chain(), x)?;
                self.stage(&v, &shape, false)
            }
            Op::ToMem(space) => {
                if shape.is_element() && *space == Space::Private {
                    return self.read(&[args[0].clone()], x);
                }
                let out = match (space, self.context) {
                    (Space::Private, Context::Group | Context::Warp) if is_parallel(f) => {
                        self.distributed(&Lowerer::levels(&args[0]), &shape, None)?
                    }
                    _ => self.allocate(&shape, Some(*space))?,
                };
                self.write(&[args[0].clone()], x, &out.dest)?;
                Ok(out.view)
            }
            _ => {
                let out = match self.kept_by_items(f, &shape)? {
                    Some(out) => out,
                    None => self.allocate(&shape, None)?,
                };
                self.write_node(f, x, &out.dest)?;
                Ok(out.view)
            }
        }
    }

    /// Computes a value once for two readers. Between kernels, in nests and in warps the value is a
    /// view, so there is nothing to compute.
    pub fn shared(&mut self, x: &View) -> Step<View> {
        match self.context {
            Context::Host | Context::Nest | Context::Warp => Ok(x.clone()),
            Context::Group | Context::Item => leaf::bind(x, self),
        }
    }

    fn map(&mut self, kind: MapKind, f: &Term, x: &View, dest: &Dest) -> Step<()> {
        let n = self.views.size(&f.sizes()[0])?;
        let body = f.args()[0].chain();
        let nested = match kind {
            MapKind::Glb(_) => spreads(&f.args()[0], |k| matches!(k, MapKind::Glb(_))),
            MapKind::Wrg(_) => spreads(&f.args()[0], |k| matches!(k, MapKind::Wrg(_))),
            _ => spreads(&f.args()[0], |k| matches!(k, MapKind::Lcl(_))),
        };
        let mut each = |me: &mut Lowerer, i: &Index| me.write(&body, &x.at(i)?, &dest.at(i)?);
        match (kind, self.context) {
            (MapKind::Seq, Context::Group | Context::Warp | Context::Item) => {
                self.repeat(n, false, &mut each)
            }
            (MapKind::Unroll, Context::Group | Context::Warp | Context::Item) => {
                self.repeat(n, true, &mut each)
            }
            (MapKind::Glb(_) | MapKind::Wrg(_), Context::Host) => {
                let f = f.clone();
                self.in_kernel(&f, |me| me.spread(kind, n, nested, &mut each))
            }
            (MapKind::Glb(_) | MapKind::Wrg(_), Context::Nest) => {
                self.spread(kind, n, nested, &mut each)
            }
            (MapKind::Lcl(d), Context::Group | Context::Nest) => {
                if (d, nested, self.context) == (0, false, Context::Group)
                    && finds_row(&f.args()[0])
                {
                    let row = self.views.shape(&f.args()[0].ty().cod)?;
                    let read = &mut |me: &mut Lowerer, i: &Index| me.read(&body, &x.at(i)?);
                    if self.copy_rows((n, &row), None, dest, read)? {
                        return Ok(());
                    }
                }
                self.local(d, n, nested, &mut each)
            }
            (MapKind::Warp, Context::Group) => self.warps(n, &mut each),
            (MapKind::Lane, Context::Warp) => self.lanes(n, &mut each),
            (
                MapKind::Glb(_) | MapKind::Wrg(_) | MapKind::Lcl(_) | MapKind::Warp | MapKind::Lane,
                _,
            ) => {
                stop(Code::IllNested, "a parallel map where the device hierarchy does not allow it")
            }
            _ => unlowered(f),
        }
    }

    /// Emits a loop in one work-item. The loop is unrolled if that is wanted and does not make too
    /// many copies of the body, or if the body needs constant indices.
    pub fn repeat(&mut self, n: i64, unroll: bool, body: Body) -> Step<()> {
        if n <= 0 {
            return Ok(());
        }
        if n == 1 {
            return body(self, &Index::from(0));
        }
        self.undeferred(|me| me.iterations(n, unroll, None, body))
    }

    /// Repeats for those of `n` iterations that lie within bounds, the second excluded.
    pub fn repeat_within(&mut self, n: i64, bounds: (Index, Index), body: Body) -> Step<()> {
        self.undeferred(|me| me.iterations(n, false, Some(bounds), body))
    }

    fn iterations(
        &mut self,
        n: i64,
        unroll: bool,
        bounds: Option<(Index, Index)>,
        body: Body,
    ) -> Step<()> {
        let most = i64::try_from(self.options.unroll).unwrap_or(i64::MAX);
        if unroll
            && n.saturating_mul(self.copies) <= most
            && self.kernel.discarded <= self.most_discarded()
        {
            let mark = self.mark();
            match self.on_trial(|done| matches!(done, Ok(true)), |me| me.unrolled(n, body)) {
                Ok(true) => return Ok(()),
                Ok(false) => self.back_to(mark),
                Err(e) => return Err(e),
            }
        }
        let (id, name) = self.fresh("i");
        let var = Var { id, name, lo: 0, hi: n - 1 };
        let mark = self.mark();
        self.begin();
        self.kernel.counters.push(var.clone());
        let done = self.on_trial(Step::is_ok, |me| {
            me.looped(LoopKind::Seq, (&var, n), |me| body(me, &Index::from(var.clone())))
        });
        self.kernel.counters.truncate(mark.counters);
        match done {
            Ok(()) => {
                let body = self.end();
                if body.is_empty() {
                    return Ok(());
                }
                let (lo, hi) = bounds.unwrap_or_else(|| (Index::from(0), Index::from(n)));
                self.emit(Stmt::Loop { kind: LoopKind::Seq, var, lo, hi, body })
            }
            Err(Stop::Dynamic(i)) if i.mentions(id) && bounds.is_none() => {
                // Registers were indexed by the variable of this loop: discard the generated code
                // and unroll the loop.
                self.back_to(mark);
                // Nested loops may make a copy for each register. Code with more copies is long:
                // it is better off with arrays in memory.
                let registers = i64::try_from(self.options.private_elements).unwrap_or(i64::MAX);
                if n > most || n.saturating_mul(self.copies) > most.max(registers) {
                    return Err(Stop::Dynamic(i));
                }
                if self.unrolled(n, body)? { Ok(()) } else { Err(Stop::Dynamic(i)) }
            }
            Err(e) => {
                self.blocks.truncate(mark.blocks);
                Err(e)
            }
        }
    }

    /// Returns the state of generation, for [`Lowerer::back_to`].
    pub fn mark(&self) -> Mark {
        Mark {
            blocks: self.blocks.len(),
            context: self.context,
            vector: self.vector,
            locals: self.kernel.locals.len(),
            privates: self.kernel.privates.len(),
            local_dims: self.kernel.local_dims.clone(),
            in_warp: self.kernel.in_warp.clone(),
            workers: self.kernel.workers.len(),
            counters: self.kernel.counters.len(),
        }
    }

    /// Discards the code generated since the mark.
    pub fn back_to(&mut self, mark: Mark) {
        self.blocks.truncate(mark.blocks);
        self.context = mark.context;
        self.vector = mark.vector;
        self.kernel.locals.truncate(mark.locals);
        self.kernel.privates.truncate(mark.privates);
        self.kernel.local_dims = mark.local_dims;
        self.kernel.in_warp = mark.in_warp;
        self.kernel.workers.truncate(mark.workers);
        self.kernel.counters.truncate(mark.counters);
    }

    /// Statements of copies in vain after which no further loop is unrolled that may stay a loop: in deep nests, each level would try,
    /// and all levels inside it again.
    fn most_discarded(&self) -> usize {
        8 * self.options.unrolled_statements
    }

    /// Emits a loop as copies of its body. Returns `false` without doing so if these have too many statements.
    fn unrolled(&mut self, n: i64, body: Body) -> Step<bool> {
        let was = self.copies;
        self.copies = was.saturating_mul(n);
        let each = self.options.unrolled_statements / usize::try_from(n).unwrap_or(usize::MAX);
        let mut copies = vec![];
        let done = self.all_copies(n, |me| {
            for i in 0..n {
                me.begin();
                let done = me.one_copy(|me| body(me, &Index::from(i)));
                let copy = me.end();
                done?;
                let length = statements(&copy);
                if length > each {
                    me.kernel.discarded += length;
                    return Ok(false);
                }
                copies.push(copy);
            }
            Ok(true)
        });
        self.copies = was;
        if !done? {
            return Ok(false);
        }
        side_by_side(copies).into_iter().try_for_each(|s| self.put(s))?;
        Ok(true)
    }

    /// Copies a view, spread over the work-items of the context if there are several.
    pub fn copy(&mut self, v: &View, dest: &Dest, shape: &Shape) -> Step<()> {
        self.stage_named("copy", |me| me.copied(v, dest, shape))
    }

    fn copied(&mut self, v: &View, dest: &Dest, shape: &Shape) -> Step<()> {
        match self.context {
            Context::Host => self.copy_on_host(v, dest, shape),
            Context::Nest => {
                stop(Code::IllNested, "computation between the dimensions of a parallel nest")
            }
            Context::Group => match shape {
                Shape::Array(n, t) if self.kernel.group[0] > 1 => {
                    if self.copy_rows((*n, t), Some(v), dest, &mut |_, row| v.at(row))? {
                        return Ok(());
                    }
                    self.local(0, *n, false, &mut |me, i| me.store(&v.at(i)?, &dest.at(i)?, t))
                }
                Shape::Pair(a, b) => {
                    self.copied(&v.fst()?, &dest.component(false)?, a)?;
                    self.copied(&v.snd()?, &dest.component(true)?, b)
                }
                _ => self.store(v, dest, shape),
            },
            Context::Warp => match shape {
                Shape::Array(n, t) => {
                    self.lanes(*n, &mut |me, i| me.store(&v.at(i)?, &dest.at(i)?, t))
                }
                _ => self.store(v, dest, shape),
            },
            Context::Item => self.store(v, dest, shape),
        }
    }

    /// Stores a view element by element in this work-item. In a warp, its first lane stores the
    /// view. In a group, the first work-item stores to shared memory, and all work-items store to
    /// registers and private arrays.
    pub fn store(&mut self, v: &View, dest: &Dest, shape: &Shape) -> Step<()> {
        if self.context == Context::Warp {
            return self.lanes(1, &mut |me, _| me.store(v, dest, shape));
        }
        match (shape, dest) {
            (_, Dest::Nowhere) | (Shape::Unit, _) => Ok(()),
            (_, Dest::Guarded(g, d)) => self.where_holds(g, |me| me.store(v, d, shape)),
            (Shape::Elem(_), _) => self.store_element(v.expr()?, dest),
            (Shape::Pair(a, b), _) => {
                self.store(&v.fst()?, &dest.component(false)?, a)?;
                self.store(&v.snd()?, &dest.component(true)?, b)
            }
            (Shape::Array(n, t), _) => {
                self.repeat(*n, false, &mut |me, i| me.store(&v.at(i)?, &dest.at(i)?, t))
            }
        }
    }

    fn store_element(&mut self, e: Expr, dest: &Dest) -> Step<()> {
        if is_held_by(&e, dest) {
            return Ok(());
        }
        if self.defers(dest)? {
            return self.store_later(e, dest);
        }
        match dest {
            Dest::Nowhere => Ok(()),
            Dest::Mem(m, t, i) => {
                let s = Stmt::Store(*m, i.clone(), e.widen(t.width));
                let once = self.context == Context::Group && !matches!(m, Mem::Private(_));
                self.emit(if once { Stmt::Once(vec![s]) } else { s })
            }
            Dest::Reg(r) => self.emit(Stmt::Set(r.clone(), e.widen(r.ty.width))),
            Dest::Guarded(g, d) => self.where_holds(g, |me| me.store_element(e, d)),
            Dest::Lanes(lanes) => {
                let e = leaf::bind(&View::Elem(e), self)?.expr()?;
                for (k, d) in lanes.iter().enumerate() {
                    self.store_element(e.lane(k), d)?;
                }
                Ok(())
            }
            Dest::Either(g, a, b) => {
                let e = leaf::bind(&View::Elem(e), self)?.expr()?;
                let [mut a, mut b] =
                    [a, b].map(|d| |me: &mut Lowerer| me.store_element(e.clone(), d));
                let test = |a, b| Stmt::If(g.clone(), a, b);
                // What a deferred store would test may have changed.
                match g.0.iter().any(Index::has_data) {
                    true => self.undeferred(|me| me.on_sides(&test, [&mut a, &mut b])),
                    false => self.on_sides(&test, [&mut a, &mut b]),
                }
            }
            Dest::Lane(..) => {
                stop(Code::KernelLimit, "single lanes of a vector in registers cannot be stored to")
            }
            Dest::Placed(p) => self.store_placed(e, p),
            Dest::Pair(..) | Dest::Array(_) => {
                stop(Code::Internal, "an element stored to a compound destination")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::calculus::size::SizeEnv;
    use crate::kernel::lower;
    use crate::kernel::lower::testing::{options, term};
    use crate::kernel::options::Options;

    #[test]
    fn loops_are_unrolled_within_a_budget() {
        let term = term(
            "mapGlb 0 (reduceUnroll (+) 0.0 . mapUnroll (reduceUnroll (+) 0.0) . split 4) . a",
            &[("a", "[5][16]f32")],
        );
        let loops = |unrolled_statements: usize| {
            let options = Options { unrolled_statements, ..options() };
            let program = lower(&term, &SizeEnv::default(), &options).expect("lowers");
            program.kernels[0].to_string().matches(" in 0 .. 4").count()
        };
        assert_eq!([2048, 10, 2].map(loops), [0, 1, 3]);
    }
}
