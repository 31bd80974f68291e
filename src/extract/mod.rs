//! Extraction: from the saturated e-graph to a few hundred concrete candidates, best first.
//!
//! Whether an operator is legal depends on its context, so terms are drawn by dynamic programming over pairs
//! of class and context (`search`, `context`). Within a class, terms are told apart by *skeleton*: how work
//! is mapped, split and vectorised. Without skeletons, the cheapest terms by an additive cost (`cost`) would
//! all be variants of one shallow kernel. The tunables of each skeleton then get values that meet the
//! constraints on divisibility and resources (`tunables`).

mod context;
mod cost;
mod search;
mod slices;
mod stages;
mod tiles;
mod tunables;

pub use context::Level;
pub use tunables::{Target, assigned, refitted};

use crate::calculus::size::SizeEnv;
use crate::calculus::term::{MapKind, Op, ReduceKind, Term};
use crate::calculus::ty::Ty;
use crate::device::DeviceInfo;
use crate::device::cost_model::CostModel;
use crate::diag::{Code, Diagnostic, Limits, Result};
use crate::saturate::{ClassId, Data, Node, Saturated};

/// A low-level term with a value for every symbol in it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The term: legal, in low-level patterns, its sizes symbolic.
    pub term: Term,
    /// The term as it stands in the e-graph: `chunked` and `packed` are not expanded, and all stages share
    /// the symbols of their tiles.
    pub compact: Term,
    /// The value of every symbol.
    pub env: SizeEnv,
    /// What distinguishes the term from others, apart from tunables: the mapping, the splits, the vectors.
    pub skeleton: String,
    /// The additive estimate, in microseconds: good enough for ranking at most.
    pub estimate_us: f64,
}

/// Returns the candidates for a device, sorted by additive estimate, lowest first.
///
/// `env` gives the values of the program's dimensions.
///
/// # Errors
/// [`Code::NoTerm`] when the graph holds no legal low-level term, [`Code::Interrupted`] when an interrupt was
/// requested.
pub fn candidates(
    saturated: &Saturated,
    env: &SizeEnv,
    device: &DeviceInfo,
    model: &CostModel,
    limits: &Limits,
) -> Result<Vec<Candidate>> {
    let target = Target::new(device, model);
    let nominal = tunables::nominal(&target, env, tiles::usual(&saturated.egraph, &target));
    let mut out = vec![];
    let all = |total| search::terms(saturated, &nominal, &target, limits, total);
    for total in [false, true] {
        let (idle, busy): (Vec<_>, Vec<_>) =
            all(total)?.into_iter().partition(|t| idles(&t.term, false));
        let terms = if busy.is_empty() && total { idle } else { busy };
        for found in terms {
            limits.interrupt.check("while drawing candidates")?;
            let Some((term, assigned)) =
                assigned_apart(&found.compact, env, &target, limits, total)
            else {
                continue;
            };
            // The additive estimate cannot tell tile sizes apart: tiled assignments are ordered by their
            // score of reuse.
            let least = assigned
                .iter()
                .map(|(env, _)| cost::of_term(&term, env, &target))
                .fold(f64::INFINITY, f64::min);
            for (env, times) in assigned {
                let estimate_us =
                    times.map_or_else(|| cost::of_term(&term, &env, &target), |t| t * least);
                out.push(Candidate {
                    term: term.clone(),
                    compact: found.compact.clone(),
                    env,
                    skeleton: found.skeleton.clone(),
                    estimate_us,
                });
            }
        }
        // Terms without values for their tunables are no candidates: retry with `total`.
        if !out.is_empty() {
            break;
        }
    }
    if out.is_empty() {
        return Err(Diagnostic::error(Code::NoTerm, "no legal low-level term was found")
            .note(format!(
                "the e-graph has {} nodes in {} classes; saturation stopped: {}",
                saturated.report.nodes, saturated.report.classes, saturated.report.stop_reason
            ))
            .help("low-level patterns come from lowering rules: check that `--rules` includes the default set")
            .help("`patsat eval` runs the program in the interpreter")
            .into());
    }
    out.sort_by(|a, b| a.estimate_us.total_cmp(&b.estimate_us));
    Ok(out)
}

type Assigned = Vec<(SizeEnv, Option<f64>)>;

/// Returns the expanded term, whose stages share no symbol, with values for its symbols. The first assignment
/// combines the best of each stage, the second one the second best of each stage, and so on.
fn assigned_apart(
    compact: &Term,
    dims: &SizeEnv,
    target: &Target,
    limits: &Limits,
    total: bool,
) -> Option<(Term, Assigned)> {
    // Errors cannot occur: every class has one type, so no combination is ill-typed.
    let written_out = |t: &Term| t.expand().ok()?.flat().ok();
    let staged = stages::apart(compact).ok()?;
    let dims = stages::with_aliases(&staged.compact, dims);
    let term = written_out(&staged.compact)?;
    let of = |part: &Term| -> Option<Assigned> {
        Some(tunables::assignments(&written_out(part)?, part, &dims, target, limits, total))
    };
    // Tiles of a constant, such as `2`, cannot be renamed by stage: stages that share such a tile are solved
    // together.
    if staged.parts.len() < 2 || stages::share_symbols(&staged.parts) {
        let assigned = tunables::assignments(&term, &staged.compact, &dims, target, limits, total);
        return Some((term, assigned));
    }
    let parts = staged.parts.iter().map(of).collect::<Option<Vec<_>>>()?;
    let most = parts.iter().map(Vec::len).max().unwrap_or(0);
    let nth = |i: usize| {
        let mut env = dims.clone();
        let mut times: Option<f64> = None;
        for part in &parts {
            let (own, t) = part.get(i % part.len().max(1))?;
            env.extend(own.iter().map(|(s, v)| (s.clone(), *v)));
            times = t.map_or(times, |t: f64| Some(times.map_or(t, |u: f64| u.max(t))));
        }
        Some((env, times))
    };
    let assigned = (0..most).map_while(nth).collect();
    Some((term, assigned))
}

/// Returns a function that gives the share of each node in the additive estimate, in nanoseconds: the
/// iterations of a loop, the overhead of a launch, the operations of a function. Sizes that are chosen later
/// have usual values. The share contains neither the cost of the node's arguments nor how often they run.
pub fn node_costs<'a>(
    saturated: &'a Saturated,
    env: &SizeEnv,
    device: &DeviceInfo,
    model: &CostModel,
) -> impl Fn(ClassId, &Node) -> f64 + use<'a> {
    let egraph = &saturated.egraph;
    let target = Target::new(device, model);
    let nominal = tunables::nominal(&target, env, tiles::usual(egraph, &target));
    move |class, node| {
        let (Some(op), Data::Fn(ty, _)) = (node.function(), &egraph[class].data) else {
            return 0.0;
        };
        let (sizes, at) = (search::sizes_of(egraph, node), context::Context::PROGRAM.item());
        cost::share(op, &sizes, at, &target, &nominal, &ty.cod).own.min(f64::MAX)
    }
}

/// Whether some work-group accumulates arrays that its work-items do not share out. One work-item would do
/// all the work while the others wait for it at a barrier in every step: legal, but never worth a
/// measurement.
fn idles(t: &Term, in_group: bool) -> bool {
    let in_group = match t.op() {
        // In a group of one work-item, nobody waits.
        Op::Map(MapKind::Wrg(_)) => shares(t),
        Op::Map(MapKind::Lcl(_) | MapKind::Glb(_) | MapKind::Warp | MapKind::Lane) => false,
        _ => in_group,
    };
    let arrays = matches!(t.ty().cod, Ty::Array(..));
    let idle = in_group && arrays && *t.op() == Op::Reduce(ReduceKind::Seq) && !shares(t);
    idle || t.args().iter().any(|a| idles(a, in_group))
}

/// Whether the term shares something out to work-items.
fn shares(t: &Term) -> bool {
    let mut found = false;
    t.visit(&mut |t| {
        found |= matches!(t.op(), Op::Map(MapKind::Lcl(_) | MapKind::Warp) | Op::ReduceLcl)
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::size::Sym;
    use crate::device::DeviceKind;
    use crate::rules::RuleSet;
    use crate::saturate::{run::tests::program, saturate};

    #[test]
    fn candidates_are_diverse() {
        let rules = RuleSet::shipped().expect("shipped rules");
        let limits = Limits { saturation_time: None, ..Limits::default() };
        for (kind, text, inputs) in [
            (DeviceKind::Cpu, "map (\\x -> c * x) . xs", &[("xs", "[n]f32"), ("c", "f32")][..]),
            (DeviceKind::Cpu, "reduce (+) 0.0 . map abs . xs", &[("xs", "[n]f32")][..]),
            (DeviceKind::Gpu, "reduce (+) 0.0 . map abs . xs", &[("xs", "[n]f32")][..]),
        ] {
            let mut device = crate::device::tests::device(0, "P", "D", kind);
            device.compute_units = if kind == DeviceKind::Cpu { 2 } else { 132 };
            let choice = CostModel::choose(&device).expect("a shipped model");
            let graph = saturate(&program(text, inputs), &rules, &limits).expect("sound rules");
            let env = SizeEnv::from_iter([(Sym::Dim("n".into()), 16_777_259)]);
            let start = std::time::Instant::now();
            let found = candidates(&graph, &env, &device, &choice.model, &limits).expect("terms");
            eprintln!("== {text} on {kind}: {} candidates in {:?}", found.len(), start.elapsed());
            let mut seen = indexmap::IndexSet::new();
            for c in &found {
                if seen.insert(c.skeleton.clone()) && seen.len() < 40 {
                    eprintln!("{:10.1} {}", c.estimate_us, c.skeleton);
                    if seen.len() < 6 {
                        eprintln!("      {}", c.term);
                        let env: Vec<String> =
                            c.env.iter().map(|(s, v)| format!("{s}={v}")).collect();
                        eprintln!("      {}", env.join(" "));
                    }
                }
            }
            eprintln!("{} skeletons", seen.len());
            assert!(!seen.is_empty());
        }
    }
}
