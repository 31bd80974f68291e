//! Extraction: from the saturated e-graph to a few hundred concrete candidates, best first.
//!
//! Whether an operator is legal depends on its context, so terms are drawn by dynamic programming over pairs
//! of class and context (`search`, `context`). Within a class, terms are told apart by *skeleton*: how work
//! is mapped, split and vectorised. Without skeletons, the cheapest terms by an additive cost (`cost`) would
//! all be variants of one shallow kernel. The tunables of each skeleton then get values that meet the
//! constraints on divisibility and resources (`tunables`). What is lost on the way is counted (`dropped`). Once kernels
//! are generated and their times predicted, the best stages of different candidates are joined ([`Joiner`]).

mod context;
mod cost;
mod dropped;
mod joined;
mod salvage;
mod search;
mod slices;
mod stages;
mod tiles;
mod tunables;
mod valued;

pub use context::Level;
pub use dropped::{Dropped, Lost, Reason, Told};
pub use joined::{Alone, Joiner, StageValues};
pub use stages::Passed;
pub use tunables::{Target, assigned, refitted};

use crate::calculus::size::SizeEnv;
use crate::calculus::term::{MapKind, Op, ReduceKind, Term};
use crate::calculus::ty::Ty;
use crate::device::DeviceInfo;
use crate::device::cost_model::CostModel;
use crate::diag::{Code, Diagnostic, Limits, Result, on_all_cores};
use crate::saturate::{ClassId, Data, Node, Saturated};
use indexmap::IndexSet;
use salvage::Salvage;
use search::{Found, Scope};
use std::collections::HashMap;
use std::sync::Arc;
use valued::{Assigned, Valued};

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
    /// The number of the form of the program, in [`Saturated::forms`], that the term was found as.
    pub form: usize,
    /// What each stage reads and gives, so that stages can take each other's places: the classes of these values in the e-graph,
    /// or their texts if the graph does not have them.
    pub stages: Arc<[Passed]>,
    /// The additive estimate, in microseconds: good enough for ranking at most.
    pub estimate_us: f64,
}

/// What extraction drew from a graph.
#[derive(Clone, Debug, Default)]
pub struct Drawn {
    /// The candidates, sorted by additive estimate, lowest first.
    pub candidates: Vec<Candidate>,
    /// The values for the tiles of each stage of a program with several.
    pub values: StageValues,
    /// Number of terms that were drawn, with those dropped later. Each has a skeleton of its own.
    pub terms: usize,
    /// What was lost on the way.
    pub dropped: Dropped,
}

impl Candidate {
    /// Returns each stage of the term without its tile sizes, with what it reads and gives: equal for stages that differ in
    /// tunables alone.
    pub fn stage_skeletons(&self) -> Vec<String> {
        let parts = stages::frame(&self.compact).map(|(_, parts)| parts).unwrap_or_default();
        let text = |(part, at): (&Term, &Passed)| format!("{} {at}", search::skeleton_text(part));
        parts.iter().zip(self.stages.iter()).map(text).collect()
    }
}

impl Drawn {
    /// Returns the number of different skeletons among the candidates.
    pub fn skeletons(&self) -> usize {
        self.candidates.iter().map(|c| c.skeleton.as_str()).collect::<IndexSet<_>>().len()
    }

    /// Adds what another search drew.
    fn extend(&mut self, other: Drawn) {
        self.candidates.extend(other.candidates);
        self.candidates.sort_by(|a, b| a.estimate_us.total_cmp(&b.estimate_us));
        self.values.extend(other.values);
        self.terms += other.terms;
        self.dropped.extend(&other.dropped);
    }
}

/// Returns the candidates for a device; at least one.
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
) -> Result<Drawn> {
    let drawn = draw(saturated, env, device, model, limits)?;
    if drawn.candidates.is_empty() { Err(none(saturated, &drawn).into()) } else { Ok(drawn) }
}

/// As [`candidates`], but finding none is no error: then the counts say why.
///
/// # Errors
/// [`Code::Interrupted`] when an interrupt was requested.
pub fn draw(
    saturated: &Saturated,
    env: &SizeEnv,
    device: &DeviceInfo,
    model: &CostModel,
    limits: &Limits,
) -> Result<Drawn> {
    let all: Vec<usize> = (0..saturated.forms.len()).collect();
    let draw = |scope: Scope, forms: &[usize]| {
        draw_terms(saturated, forms, env, device, model, limits, scope)
    };
    // The first search and the one for reductions side by side do not depend on each other.
    let [first, others @ ..] = &Scope::ALL;
    let mut both =
        on_all_cores(&[*first, Scope::SideBySide], |scope| draw(*scope, &all)).into_iter();
    let mut drawn = both.next().unwrap_or_else(|| Ok(Drawn::default()))?;
    let beside = both.next().unwrap_or_else(|| Ok(Drawn::default()))?;
    let mut without = all.clone();
    let mut others = others.iter();
    loop {
        // Terms without values for their tunables are no candidates. A loop that a group runs may be slower than one that
        // each work-item runs for itself, which may need defaults.
        let has = |c: &Candidate, form| c.form == form && !loops_in_group(&c.term);
        without.retain(|form| !drawn.candidates.iter().any(|c| has(c, *form)));
        // The search with defaults takes long, and a form that needs them is rarely the best of several. But the program as it is
        // written may be: others were made of it to be fused.
        let enough = saturated.forms.len() - without.len() >= ENOUGH && !without.contains(&0);
        if without.is_empty() || enough {
            break;
        }
        let Some(scope) = others.next() else { break };
        drawn.extend(draw(*scope, &without)?);
    }
    drawn.extend(beside);
    Ok(drawn)
}

/// Returns the candidates in which every operator has its default where nothing better is legal, best first: those of last
/// resort, for a program whose other candidates have no kernels.
///
/// # Errors
/// [`Code::Interrupted`] when an interrupt was requested.
pub fn defaults(
    saturated: &Saturated,
    env: &SizeEnv,
    device: &DeviceInfo,
    model: &CostModel,
    limits: &Limits,
) -> Result<Vec<Candidate>> {
    let mut drawn = Drawn::default();
    let forms: Vec<usize> = (0..saturated.forms.len()).collect();
    for scope in Scope::ALL.into_iter().filter(|s| s.has_defaults()) {
        drawn.extend(draw_terms(saturated, &forms, env, device, model, limits, scope)?);
    }
    Ok(drawn.candidates)
}

/// Number of forms with candidates from which no others are searched for.
const ENOUGH: usize = 2;

/// Returns the candidates of one search for terms of some forms.
fn draw_terms(
    saturated: &Saturated,
    forms: &[usize],
    env: &SizeEnv,
    device: &DeviceInfo,
    model: &CostModel,
    limits: &Limits,
    scope: Scope,
) -> Result<Drawn> {
    let total = scope.has_defaults();
    let target = Target::new(device, model);
    let nominal = tunables::nominal(&target, env, tiles::usual(&saturated.egraph, &target));
    let sizes = search::Sizes { dims: env, nominal: &nominal };
    let (found, mut drawn) = search::terms(saturated, forms, &sizes, &target, limits, scope)?;
    let (mut lost, busy) = worthwhile(found, total, &mut drawn.dropped);
    let mut valued = Valued { env, target: &target, limits, total, known: HashMap::new() };
    let mut salvage = Salvage::default();
    let made = valued.candidates(&busy, &mut drawn)?;
    for (found, has_candidates) in busy.into_iter().zip(made) {
        if has_candidates {
            salvage.keep(found);
        } else {
            lost.push(found);
        }
    }
    let saved = salvage.of(&lost);
    drawn.terms += saved.len();
    valued.candidates(&saved, &mut drawn)?;
    let envs = |assigned: Assigned| assigned.into_iter().map(|(env, _)| env).collect();
    drawn.values.extend(valued.known.into_iter().map(|(stage, assigned)| (stage, envs(assigned))));
    Ok(drawn)
}

/// Returns the terms in which some work-items idle, and the others. If the last search has no others, none counts as idle.
fn worthwhile(found: Vec<Found>, total: bool, dropped: &mut Dropped) -> (Vec<Found>, Vec<Found>) {
    let (idle, busy): (Vec<_>, Vec<_>) = found.into_iter().partition(|t| idles(&t.term, false));
    if busy.is_empty() && total {
        return (vec![], idle);
    }
    dropped.add_all(Reason::Idles, idle.len());
    (idle, busy)
}

/// Most reasons of one kind that an error gives.
const REASONS: usize = 5;

/// That there are no candidates, and what became of those that might have been.
fn none(saturated: &Saturated, drawn: &Drawn) -> Diagnostic {
    let mut d = Diagnostic::error(Code::NoTerm, "no legal low-level term was found").note(format!(
        "the e-graph has {} nodes in {} classes; saturation stopped: {}",
        saturated.report.nodes, saturated.report.classes, saturated.report.stop_reason
    ));
    // Parts are lost in every search. Only where terms were drawn does it matter what else was lost.
    if drawn.terms > 0 {
        d = d.note(format!("{} terms were drawn", drawn.terms));
        for lost in [Lost::Term, Lost::Values] {
            let reasons = drawn.dropped.of(lost);
            let all: usize = reasons.iter().map(|(_, count)| count).sum();
            for (reason, count) in reasons.into_iter().take(REASONS) {
                let (what, why) = (lost.text(), reason.text());
                d = d.note(format!("{count} of {all} dropped {what}: {why}"));
            }
        }
    }
    d.help("low-level patterns come from lowering rules: check that `--rules` includes the default set")
        .help("`patsat eval` runs the program in the interpreter")
}

/// Returns a term with its operators of tiling written out.
fn written_out(compact: &Term) -> std::result::Result<Term, Reason> {
    // Errors cannot occur: every class has one type, so no combination is ill-typed.
    compact.expand().and_then(|t| t.flat()).map_err(|_| Reason::IllTyped)
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
        Op::Map(MapKind::Lcl(_) | MapKind::Glb(_) | MapKind::Warp | MapKind::Lane)
        | Op::ReduceLcl
        | Op::ScanLcl(_) => false,
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
        found |= matches!(
            t.op(),
            Op::Map(MapKind::Lcl(_) | MapKind::Warp) | Op::ReduceLcl | Op::ScanLcl(_)
        );
    });
    found
}

/// Whether the work-items of a group run the steps of a loop together, or update an array together.
fn loops_in_group(t: &Term) -> bool {
    fn updates(t: &Term) -> bool {
        *t.op() == Op::Scatter || t.args().iter().any(updates)
    }
    match t.op() {
        Op::Fold | Op::While if shares(t) => true,
        Op::Map(MapKind::Wrg(_)) if shares(t) && updates(t) => true,
        _ => t.args().iter().any(loops_in_group),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::size::{Size, Sym};
    use crate::calculus::text::{Context, read_term};
    use crate::device::DeviceKind;
    use crate::diag::Source;
    use crate::lang::types::ScalarType;
    use crate::rules::RuleSet;
    use crate::saturate::{run::tests::program, saturate};

    #[test]
    fn work_items_that_reduce_their_own_shares_do_not_idle() {
        let xs = Ty::array(&Size::constant(64), &Ty::Scalar(ScalarType::F32));
        let context = Context { inputs: [("xs".to_owned(), xs)].into(), variables: None };
        let idle = |text: &str| {
            let read = read_term(&Source::new("t", text), &Ty::Unit, &context);
            idles(&read.expect("a term"), false)
        };
        let rows = "reduceSeq (mapUnroll (+) . zip) (replicate 4 . 0.0) . split 4";
        let own = format!("reduceUnroll (+) 0.0 . {rows}");
        assert!(!idle(&format!(
            "mapWrg 0 (reduceLcl 4 (+) 0.0 ({own}) . split 16) . split 64 . xs"
        )));
        // Every work-item computes all sums, and they share out only what follows.
        assert!(idle(&format!("mapWrg 0 (mapLcl 0 abs . {rows}) . split 64 . xs")));
    }

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
            let graph = saturate(&[program(text, inputs)], &rules, &limits).expect("sound rules");
            let env = SizeEnv::from_iter([(Sym::Dim("n".into()), 16_777_259)]);
            let start = std::time::Instant::now();
            let drawn = candidates(&graph, &env, &device, &choice.model, &limits).expect("terms");
            let found = &drawn.candidates;
            eprintln!("== {text} on {kind}: {} candidates in {:?}", found.len(), start.elapsed());
            let mut seen = IndexSet::new();
            for c in found {
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

    #[test]
    fn results_are_written_past_the_caches_where_that_gains() {
        let rules = RuleSet::shipped().expect("shipped rules");
        let limits = Limits { saturation_time: None, ..Limits::default() };
        let graph = saturate(&[program("map abs . xs", &[("xs", "[n]f32")])], &rules, &limits);
        let graph = graph.expect("sound rules");
        let device = crate::device::tests::device(0, "P", "D", DeviceKind::Gpu);
        let mut model = CostModel::choose(&device).expect("a shipped model").model;
        let env = SizeEnv::from_iter([(Sym::Dim("n".into()), 16_777_259)]);
        let mut streams = |times: Option<f64>| {
            let write = model.memory.write_gb_per_s;
            model.memory.nontemporal_write_gb_per_s = times.map(|n| n * write);
            let drawn = candidates(&graph, &env, &device, &model, &limits).expect("terms");
            drawn.candidates.iter().any(|c| c.skeleton.contains("stream"))
        };
        // Not measured, as fast as others, faster.
        assert_eq!([None, Some(1.0), Some(1.5)].map(&mut streams), [true, false, true]);
    }

    /// Other parts of a program may need defaults: then products still have their accumulators in registers.
    #[test]
    fn accumulators_are_in_registers_beside_defaults() {
        let rules = RuleSet::shipped().expect("shipped rules");
        let limits = Limits { saturation_time: None, ..Limits::default() };
        let text = "map (map (reduce (+) 0.0 . map (*) . zip)) . cross . fork A B";
        let graph =
            saturate(&[program(text, &[("A", "[n][k]f32"), ("B", "[m][k]f32")])], &rules, &limits);
        let device = crate::device::tests::device(0, "P", "D", DeviceKind::Gpu);
        let model = CostModel::choose(&device).expect("a shipped model").model;
        let env = ["n", "k", "m"].map(|d| (Sym::Dim(d.into()), 1024)).into_iter().collect();
        let drawn = draw_terms(
            &graph.expect("sound rules"),
            &[0],
            &env,
            &device,
            &model,
            &limits,
            Scope::Defaults,
        );
        let drawn = drawn.expect("terms");
        let texts: Vec<String> = drawn.candidates.iter().map(|c| c.compact.to_string()).collect();
        let mut tiled = texts.iter().filter(|t| t.contains("blocked") && t.contains("spread"));
        assert!(tiled.clone().count() > 0);
        assert_eq!(tiled.find(|t| !t.contains("toPrivate")), None);
    }

    /// Draws candidates of a sum of absolute values on a CPU.
    fn drawn(change: impl Fn(&mut DeviceInfo, &mut Limits)) -> Drawn {
        let rules = RuleSet::shipped().expect("shipped rules");
        let mut limits = Limits { saturation_time: None, ..Limits::default() };
        let mut device = crate::device::tests::device(0, "P", "D", DeviceKind::Cpu);
        change(&mut device, &mut limits);
        let model = CostModel::choose(&device).expect("a shipped model").model;
        let text = "reduce (+) 0.0 . map abs . xs";
        let graph = saturate(&[program(text, &[("xs", "[n]f32")])], &rules, &limits);
        let env = SizeEnv::from_iter([(Sym::Dim("n".into()), 1_000)]);
        draw(&graph.expect("sound rules"), &env, &device, &model, &limits).expect("drawn")
    }

    #[test]
    fn every_term_has_candidates_or_a_reason() {
        let lost = |d: &Drawn| d.dropped.of(Lost::Term).iter().map(|(_, n)| n).sum::<usize>();
        let terms = |d: &Drawn| {
            d.candidates.iter().map(|c| (&c.compact, &c.skeleton)).collect::<IndexSet<_>>().len()
        };
        let all = drawn(|_, _| ());
        assert!(all.terms > 5 && all.dropped.count(Reason::PartsPastBeam) > 0);
        assert_eq!(terms(&all) + lost(&all), all.terms);
        let few = drawn(|_, limits| limits.skeletons = 2);
        assert_eq!(
            (terms(&few) + lost(&few), few.dropped.count(Reason::TermsPastBeam) > 0),
            (few.terms, true)
        );
        // A device whose groups have one work-item has no values for many.
        let small = drawn(|device, _| device.max_work_group_size = 1);
        assert!(small.dropped.count(Reason::NoValues) > all.dropped.count(Reason::NoValues));
        assert_eq!(terms(&small) + lost(&small), small.terms);
    }

    #[test]
    fn the_error_says_what_became_of_terms() {
        let none_is_kept = drawn(|_, limits| limits.assignments = 0);
        assert!(none_is_kept.candidates.is_empty() && none_is_kept.terms > 0);
        let graph = saturate(
            &[program("map abs . xs", &[("xs", "[n]f32")])],
            &RuleSet::shipped().expect("shipped rules"),
            &Limits { saturation_time: None, iterations: 2, ..Limits::default() },
        );
        let d = none(&graph.expect("sound rules"), &none_is_kept);
        let said = d.notes.join("\n");
        assert!(d.code == Code::NoTerm && said.contains("terms were drawn"), "{said}");
        assert!(said.contains("dropped terms: no values for its tile sizes"), "{said}");
    }
}
