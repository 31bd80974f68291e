//! Verifies the IR before it is printed: registers, bounds, barriers, races within one phase, and
//! limits of the device.
//!
//! The verifier never changes the program. A program that it cannot prove safe is not run, whether
//! the term exceeds a limit of the device, the proof is too hard for the verifier, or the code
//! generator is wrong. Data-dependent indices (gather) are checked at run time, which gives them a
//! range here. Only with [`unchecked`](crate::kernel::Options::unchecked) are they accepted as they
//! are.

mod disjoint;
mod registers;

use disjoint::stores_apart;

use crate::diag::{Code, Diagnostic};
use crate::kernel::analysis::conditions::implied;
use crate::kernel::analysis::race;
use crate::kernel::ir::facts::{Facts, Guard};
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::team::can_run_loop;
use crate::kernel::ir::walk::{Effects, changed};
use crate::kernel::ir::{Block, Check, Expr, Kernel, Launched, LoopKind, Mem, Program, Stmt, WARP};
use crate::kernel::options::DeviceLimits;
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

type Checked = Result<(), Box<Diagnostic>>;

/// Verifies every kernel.
///
/// # Errors
/// As for [`kernel`].
pub fn verify(program: &Program, device: &DeviceLimits) -> Checked {
    program.kernels.iter().try_for_each(|k| kernel(program, k, device))
}

/// Verifies that the device runs the teams of a program. What is proved of kernels holds for phases: a team keeps their order, and
/// all of its work-items meet between them.
///
/// # Errors
/// Returns [`Code::KernelLimit`] if a team does not fit the device, or cannot run its kernels.
pub fn teams(program: &Program, device: &DeviceLimits) -> Checked {
    for launched in program.launched() {
        if let Launched::Loop(team, steps) = launched
            && !can_run_loop(program, steps.clone(), team, device)
        {
            let (groups, items) = (team.groups, team.items);
            let text = format!("{groups} work-groups of {items} cannot run a loop of the host");
            return Err(Box::new(Diagnostic::error(Code::KernelLimit, text)));
        }
    }
    Ok(())
}

/// Verifies a kernel of a program.
///
/// # Errors
/// Returns [`Code::KernelLimit`] if the device does not offer enough of a resource, and
/// [`Code::Unproved`] if safety is not proved.
pub fn kernel(program: &Program, k: &Kernel, device: &DeviceLimits) -> Checked {
    limits(k, device)?;
    let mut locals = BTreeSet::new();
    for s in &k.body {
        s.visit(&mut |s| {
            if let Stmt::Loop { kind, var, .. } = s
                && kind.is_local()
            {
                locals.insert(var.id);
            }
        });
    }
    let grouped = k.group.iter().product::<usize>() > 1 && !k.spreads_items();
    let cx = Cx {
        checked: Rc::new(checked(&k.body)),
        stored: Rc::new(Effects::of(&k.body).stored),
        program,
        kernel: k,
        facts: Facts::default(),
        by_group: grouped,
        locals,
        workers: BTreeSet::new(),
        divergent: k.spreads_items(),
        parted: k.spreads_items(),
    };
    if let Some(r) = registers::undeclared(&k.body) {
        return cx.fail(&format!("`{}` is used outside of the block that declares it", r.name));
    }
    cx.block(&k.body)?;
    if let Some(text) = race::across_groups(&k.body) {
        return cx.fail(&text);
    }
    if grouped && let Some(text) = race::find(&k.body) {
        return cx.fail(&text);
    }
    Ok(())
}

/// Returns the registers that hold a checked index for their whole lifetime, with that index.
fn checked(b: &Block) -> BTreeMap<u32, Expr> {
    let mut out = BTreeMap::new();
    let changed = changed(b);
    for s in b {
        s.visit(&mut |s| {
            if let Stmt::Decl(r, Some(e @ Expr::Checked(Check::Index(_), _))) = s
                && !changed.contains(&r.id)
            {
                out.insert(r.id, e.clone());
            }
        });
    }
    out
}

fn limits(k: &Kernel, device: &DeviceLimits) -> Checked {
    let fail = |text: String| Err(Box::new(Diagnostic::error(Code::KernelLimit, text)));
    let items: usize = k.group.iter().product();
    if items > device.max_work_group_size
        || k.group.iter().zip(device.max_item_sizes).any(|(n, most)| *n > most)
    {
        return fail(format!(
            "`{}` needs work-groups of {:?}; the device has at most {} work-items, {:?} in each dimension",
            k.name, k.group, device.max_work_group_size, device.max_item_sizes
        ));
    }
    let local = k.local_bytes();
    if local > device.local_mem_bytes {
        return fail(format!(
            "`{}` needs {local} bytes of local memory; the device has {}",
            k.name, device.local_mem_bytes
        ));
    }
    Ok(())
}

#[derive(Clone)]
struct Cx<'a> {
    /// Registers that hold checked indices.
    checked: Rc<BTreeMap<u32, Expr>>,
    /// Memories that the kernel stores to.
    stored: Rc<FxHashSet<Mem>>,
    program: &'a Program,
    kernel: &'a Kernel,
    facts: Facts,
    /// Whether all work-items of a group run the code alike.
    by_group: bool,
    /// Variables that number work-items within a group, warps and lanes.
    locals: BTreeSet<u32>,
    /// Variables of enclosing parallel loops with more than one iteration.
    workers: BTreeSet<Var>,
    /// Whether the code is under control flow that differs between work-items of a group.
    divergent: bool,
    /// Whether it is under control flow that may differ between work-items of a warp.
    parted: bool,
}

impl Cx<'_> {
    fn fail(&self, text: &str) -> Checked {
        let text = format!("generated kernel `{}`: {text}", self.kernel.name);
        Err(Box::new(Diagnostic::error(Code::Unproved, text)))
    }

    fn block(&self, b: &Block) -> Checked {
        b.iter().try_for_each(|s| self.stmt(s))
    }

    fn inside(&self, g: &Guard, holds: bool) -> Self {
        let known = Guard(g.0.iter().map(|i| self.known(i)).collect());
        let facts = if holds { self.facts.with(&known) } else { self.facts.without(&known) };
        let mut varies = false;
        for i in &g.0 {
            i.visit_data(&mut |e| varies |= self.varies(e));
            i.visit_vars(&mut |v| varies |= self.locals.contains(&v.id));
        }
        let (divergent, parted) = (self.divergent || varies, self.parted || varies);
        Cx { facts, divergent, parted, ..self.clone() }
    }

    /// What is known where a condition holds, or where it does not.
    fn knowing(&self, c: &Expr, holds: bool) -> Self {
        Cx { facts: self.facts.with(&implied(c, holds)), ..self.clone() }
    }

    /// Replaces registers in an index by the checked index that they hold, which has a range.
    fn known(&self, i: &Index) -> Index {
        i.map_data(&|e| match e {
            Expr::Reg(r) => self.checked.get(&r.id).unwrap_or(e).clone(),
            e => e.clone(),
        })
    }

    /// Checks that an index is what lowering meant: it has no number that may have been clamped.
    fn exact(&self, i: &Index) -> Checked {
        if i.is_exact() {
            return Ok(());
        }
        self.fail(&format!("the numbers in `{i}` are too large"))
    }

    fn access(&self, m: Mem, width: usize, i: &Index) -> Checked {
        let Some(a) = self.kernel.array(self.program, m) else {
            return self.fail("a memory that is not there");
        };
        self.exact(i)?;
        let i = &self.known(i);
        let mut checked = true;
        i.visit_data(&mut |e| checked &= matches!(e, Expr::Checked(Check::Index(_), _)));
        if !checked {
            return Ok(());
        }
        let room = i64::try_from(a.len).unwrap_or(i64::MAX) - i64::try_from(width).unwrap_or(0);
        if self.facts.prove_hard(i) && self.facts.prove_hard(&Index::from(room).sub(i)) {
            return Ok(());
        }
        self.fail(&format!("`{}[{i}]` may lie outside its {} elements", a.name, a.len))
    }

    fn expr(&self, e: &Expr) -> Checked {
        match e {
            Expr::Lit(_) | Expr::Arg(..) | Expr::Reg(_) => Ok(()),
            Expr::Index(i, _) => {
                self.exact(i)?;
                self.data(i)
            }
            Expr::Load(m, t, i) => {
                self.data(i)?;
                self.access(*m, t.width, i)
            }
            Expr::Products(..) | Expr::Matrices(..) if self.parted => {
                self.fail("matrix instructions that some work-items of a warp may not reach")
            }
            Expr::Matrices(_, e) => match &**e {
                Expr::Load(Mem::Local(_), t, i)
                    if t.width * t.scalar.bytes() == 16
                        && i.is_multiple_of(i64::try_from(t.width).unwrap_or(1)) =>
                {
                    self.expr(e)
                }
                _ => self.fail("matrices that are not in local memory"),
            },
            Expr::Op(_, _, es)
            | Expr::Checked(_, es)
            | Expr::Vector(es)
            | Expr::Products(_, es) => es.iter().try_for_each(|e| self.expr(e)),
            Expr::If(c, a, b) => {
                self.expr(c)?;
                let side = |holds| Cx { parted: true, ..self.knowing(c, holds) };
                side(true).expr(a)?;
                side(false).expr(b)
            }
            Expr::Guarded(g, a, b) => {
                g.0.iter().try_for_each(|i| self.exact(i))?;
                self.inside(g, true).expr(a)?;
                self.inside(g, false).expr(b)
            }
            Expr::Splat(e, _) | Expr::Lane(e, _) => self.expr(e),
        }
    }

    fn data(&self, i: &Index) -> Checked {
        let mut done = Ok(());
        i.visit_data(&mut |e| {
            if done.is_ok() {
                done = self.expr(e);
            }
        });
        done
    }

    fn stmt(&self, s: &Stmt) -> Checked {
        let mut done = Ok(());
        s.exprs(&mut |e| {
            if done.is_ok() {
                done = self.expr(e);
            }
        });
        done?;
        match s {
            Stmt::Decl(..) | Stmt::Set(..) => Ok(()),
            Stmt::Store(m, i, e) => {
                self.access(*m, e.ty().width, i)?;
                self.race(*m, e.ty().width, i)
            }
            // Any work-items may combine their values with one element.
            Stmt::Atomic(_, m, i, _) => self.access(*m, 1, i),
            Stmt::Loop { kind, var, lo, hi, body } => {
                self.exact(lo)?;
                self.exact(hi)?;
                let mut inner = Cx { facts: self.facts.with_loop(var, lo, hi), ..self.clone() };
                match kind {
                    LoopKind::Seq => {}
                    LoopKind::Glb(_) | LoopKind::Wrg(_) => {
                        if var.hi > var.lo {
                            inner.workers.insert(var.clone());
                        }
                    }
                    LoopKind::Lcl(_) | LoopKind::Warp | LoopKind::Lane => {
                        if var.hi > var.lo {
                            inner.workers.insert(var.clone());
                        }
                        inner.by_group = false;
                        inner.divergent = true;
                        inner.parted |= !self.has_whole_warps(*kind, lo, hi);
                    }
                }
                if *kind == LoopKind::Seq {
                    // Bounds that differ between work-items make the loop divergent.
                    let g = Guard(vec![lo.clone(), hi.clone()]);
                    let within = self.inside(&g, true);
                    inner.divergent |= within.divergent;
                    inner.parted |= within.parted;
                }
                inner.block(body)
            }
            Stmt::If(g, a, b) => {
                g.0.iter().try_for_each(|i| self.exact(i))?;
                self.inside(g, true).block(a)?;
                self.inside(g, false).block(b)
            }
            Stmt::Branch(c, a, b) => {
                let parted = self.parted || self.varies(c);
                let side = |holds| Cx { parted, ..self.knowing(c, holds) };
                side(true).block(a)?;
                side(false).block(b)
            }
            Stmt::While(a, _, b) => {
                let chosen = Cx { parted: true, ..self.clone() };
                chosen.block(a)?;
                chosen.block(b)
            }
            Stmt::Once(b) => Cx {
                by_group: false,
                divergent: true,
                parted: true,
                // One work-item of each group stores, whatever the index; only work-items of
                // different groups can still conflict.
                ..self.clone()
            }
            .block(b),
            Stmt::Barrier { .. } if self.divergent => {
                self.fail("a barrier that some work-items may not reach")
            }
            Stmt::Barrier { .. } => Ok(()),
        }
    }

    /// Whether a condition may differ between work-items of a warp.
    fn varies(&self, c: &Expr) -> bool {
        let mut varies = false;
        c.visit(&mut |e| {
            varies |= match e {
                Expr::Load(m, _, _) if !matches!(m, Mem::Global(_)) || self.stored.contains(m) => {
                    true
                }
                Expr::Load(_, _, i) | Expr::Index(i, _) => {
                    i.has_data() || self.locals.iter().any(|v| i.mentions(*v))
                }
                Expr::Reg(_) | Expr::Guarded(..) => true,
                _ => false,
            };
        });
        varies
    }

    /// Whether all work-items of a warp run a loop over the work-items of a group. Warps are consecutive work-items of the first dimension.
    fn has_whole_warps(&self, kind: LoopKind, lo: &Index, hi: &Index) -> bool {
        let warps = |n: i64| n % WARP == 0;
        let group = self.kernel.group;
        let first = i64::try_from(group[0]).is_ok_and(warps) || group[1..] == [1, 1];
        let bounds = lo.as_constant() == Some(0) && hi.as_constant().is_some_and(warps);
        matches!(kind, LoopKind::Lcl(0)) && first && bounds
    }

    /// Checks that no two work-items may store to the same element in one phase.
    fn race(&self, m: Mem, width: usize, i: &Index) -> Checked {
        if matches!(m, Mem::Private(_)) || i.has_data() {
            return Ok(());
        }
        if self.by_group {
            return self.fail("every work-item of a group stores the same element");
        }
        // Groups do not share local memory.
        let local = matches!(m, Mem::Local(_));
        let workers = self.workers.iter().filter(|v| !local || self.locals.contains(&v.id));
        // Only work-items that reach this store count: the last one of a row may behave differently
        // from the rest.
        let here: Vec<Var> = workers.map(|v| self.facts.narrow(v)).collect();
        let of_here = |v: &Var| Some(Index::from(self.facts.narrow(v)));
        let several: Vec<Var> = here.iter().filter(|v| v.hi > v.lo).cloned().collect();
        if !stores_apart(&i.substitute(&of_here), width, &several, &self.facts) {
            return self.fail(&format!("work-items may store to one element: `{m}[{i}]`"));
        }
        Ok(())
    }
}
