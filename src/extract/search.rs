//! The search for terms: dynamic programming over pairs of class and context, with a beam for each pair.
//!
//! [`terms`] takes the saturated e-graph and gives the best term of each of a few dozen skeletons. Classes
//! are cyclic, so the search computes choices top-down once and then repeats until none of them changes.

mod other_stages;

use super::context::{Context, Level, Verdict};
use super::tunables::Target;
use super::{Drawn, Dropped, Reason, cost, stages, tiles, written_out};
use crate::calculus::op::products::WORDS;
use crate::calculus::size::{Size, SizeEnv, Sym};
use crate::calculus::term::{MapKind, Op, ReduceKind, Shares, Space, Term, TypeError};
use crate::calculus::ty::Ty;
use crate::diag::{Interrupt, Limits, Result, on_all_cores};
use crate::rules::can_unroll;
use crate::saturate::{Data, EGraph, Node, Saturated};
use egg::Id;
use indexmap::{IndexMap, IndexSet};
use rustc_hash::{FxBuildHasher, FxHasher};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

/// A term that was found, in low-level patterns.
pub(super) struct Found {
    pub term: Term,
    /// The term as it stands in the graph, with the operators of tiling not expanded.
    pub compact: Term,
    pub skeleton: String,
    /// The number of the form of the program that it is a term of.
    pub form: usize,
    /// See [`super::Candidate::stages`].
    pub stages: Arc<[stages::Passed]>,
}

/// A chosen e-node with chosen arguments.
#[derive(Clone)]
struct Choice {
    node: Rc<Node>,
    args: Vec<Rc<Choice>>,
    cost: f64,
    /// Hash of the compute operators with their sizes; views are left out, and 0 stands for a term of views
    /// alone.
    skeleton: u64,
    outline: Outline,
    /// Whether the term contains a reduction.
    reduces: bool,
    /// Whether the term contains a loop.
    loops: bool,
    /// How often the term reads its argument: not at all (0), once, or more often (2).
    reads: u8,
    /// Whether the term only maps and its result stays with the work-items that compute it.
    kept: bool,
    /// How the outermost stage is shared out to work-items, as a hash.
    form: Option<u64>,
}

impl Choice {
    /// Whether the outermost operator, views aside, is a parallel map of dimension `d`.
    fn spreads(&self, d: u8) -> bool {
        match self.node.function() {
            Some(Op::Map(MapKind::Glb(e) | MapKind::Wrg(e))) => *e == d,
            Some(Op::Compose) => self.args.iter().any(|a| a.spreads(d)),
            Some(Op::Tiled(_)) => self.args[2].spreads(d),
            Some(Op::Turned) => self.args[0].spreads(d),
            _ => false,
        }
    }

    /// A view or a constant: nearly free, and no part of the skeleton.
    fn view(node: &Node, args: Vec<Rc<Choice>>) -> Choice {
        let cost = cost::VIEW_NS + args.iter().map(|a| a.cost).sum::<f64>();
        let mut outline = Outline::default();
        args.iter().for_each(|a| outline.features |= a.outline.features);
        if node.function() == Some(&Op::Transpose) {
            outline.features |= 32;
        }
        let reads = reads(node.function(), &args);
        let (reduces, loops, form, kept) = (false, false, None, false);
        let node = Rc::new(node.clone());
        Choice { node, args, cost, skeleton: 0, outline, reduces, loops, reads, kept, form }
    }
}

/// Returns the sizes among the children of a node.
pub(super) fn sizes_of(egraph: &EGraph, node: &Node) -> Vec<Size> {
    node.children.iter().filter_map(|c| egraph[*c].data.size().cloned()).collect()
}

/// A coarse summary of a skeleton. The beam keeps a few choices of every outline, however expensive they
/// look, because the additive cost does not see reuse, coalescing or latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Outline {
    /// A set of bits: which mappings occur (work-items, groups, local items, vectors, register arrays),
    /// whether the term transposes, which operands are staged (or loaded ahead) or packed, and whether the
    /// term has accumulators of a tile, shares a tile out to work-items, has slices, stores past the caches, or
    /// has several reductions side by side.
    features: u32,
    /// Number of launches, at most 3.
    kernels: u8,
}

impl Outline {
    fn of(op: &Op, at: Context, chosen: &[Rc<Choice>]) -> Outline {
        let mut out = Outline::default();
        for c in chosen {
            out.features |= c.outline.features;
            out.kernels = (out.kernels + c.outline.kernels).min(3);
        }
        match op {
            Op::Map(MapKind::Glb(_)) => (out.features, out.kernels) = (out.features | 1, 1),
            Op::Map(MapKind::Wrg(_)) => (out.features, out.kernels) = (out.features | 2, 1),
            Op::Map(MapKind::Lcl(_) | MapKind::Lane) | Op::ReduceLcl | Op::ScanLcl(_) => {
                out.features |= 4;
            }
            Op::Vectorize => out.features |= 8,
            Op::ToMem(Space::Stream) => out.features |= 64,
            Op::Map(MapKind::Unroll) => {
                // The additive cost prefers reductions that are taken apart further, with arrays of
                // accumulators; several plain ones are one loop, whose loads are shared.
                let plain = |c: &Rc<Choice>| c.reduces && c.loops && c.outline.features & 16 == 0;
                out.features |= if chosen.iter().all(plain) { 16 | SIDE_BY_SIDE } else { 16 };
            }
            Op::ToMem(Space::Local) if chosen.iter().all(|c| c.skeleton == 0) => {
                out.features |= 128;
            }
            Op::ToMem(Space::LocalAhead) => out.features |= 128 | 16384,
            Op::ToMem(Space::Global) => {
                (out.features, out.kernels) = (out.features | 256, (out.kernels + 1).min(3));
            }
            Op::Spread(shares) => {
                out.features |= match shares {
                    Shares::Rows => 2048,
                    Shares::Warps => 2048 | 4096,
                    Shares::Fragments => 2048 | FRAGMENTS,
                };
            }
            Op::SpreadRows => out.features |= 2048,
            Op::Sliced => out.features |= 32768,
            Op::Blocked(_) | Op::BlockedRows => {
                out.features |= BLOCKED;
                // One bit for each operand that is staged.
                for (k, bit) in [(0, 1024), (1, 8192)] {
                    let staged = chosen[k].outline.features & 128 != 0;
                    out.features |= if staged && chosen[k].skeleton != 0 { bit } else { 0 };
                }
            }
            Op::Reduce(_) if at.level() == Level::Host => out.kernels = (out.kernels + 1).min(3),
            _ => {}
        }
        out
    }
}

/// The feature bit of a term that carries the accumulators of a tile over blocks of a reduction.
const BLOCKED: u32 = 512;
/// The feature bit of a term that shares a tile out as matrix instructions do.
const FRAGMENTS: u32 = 131_072;
/// The feature bit of a term that computes several reductions in one loop.
const SIDE_BY_SIDE: u32 = 65536;
/// How many other choices are kept for each choice with reductions side by side.
const BESIDE: usize = 3;

/// Returns the `keep` best choices by outline. `share` of them are tiles with accumulators if there are enough
/// of those; see [`crate::device::cost_model::Search::blocked_share`].
fn kept(all: Vec<Rc<Choice>>, keep: usize, share: f64) -> Vec<Rc<Choice>> {
    let (tiled, plain): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|c| c.outline.features & BLOCKED != 0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count"
    )]
    let part = |share: f64| (keep as f64 * share) as usize;
    let (for_tiled, for_plain) = (part(share), part(1.0 - share));
    // A beam of one has a share of none for either.
    let (of_tiled, of_plain) = match (tiled.len() <= for_tiled, plain.len() <= for_plain) {
        (true, _) => (tiled.len(), keep - tiled.len()),
        (false, true) => (keep - plain.len(), plain.len()),
        (false, false) => (keep - for_plain, for_plain),
    };
    let mut out = diverse(tiled, of_tiled);
    out.extend(diverse(plain, of_plain));
    out.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    out
}

/// Returns `keep` choices: the best of every outline first, then the second best of every outline, and so on.
fn diverse(mut all: Vec<Rc<Choice>>, keep: usize) -> Vec<Rc<Choice>> {
    all.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    if all.len() <= keep {
        return all;
    }
    let mut rank: Map<Outline, usize> = Map::default();
    let mut ranked: Vec<(usize, Rc<Choice>)> = all
        .into_iter()
        .map(|c| {
            let r = rank.entry(c.outline).or_insert(0);
            *r += 1;
            (*r, c)
        })
        .collect();
    ranked.sort_by_key(|(r, _)| *r);
    ranked.truncate(keep);
    let mut out: Vec<Rc<Choice>> = ranked.into_iter().map(|(_, c)| c).collect();
    out.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    out
}

/// Most choices that are kept besides the best, so that every choice of the parts occurs in one.
const COVER: usize = 256;
/// A group runs a loop whose state is at most this many times as long as its local memory.
const LONG_STATE: f64 = 64.0;

/// Most bytes of an array that a work-item keeps in registers for a reader that reads it twice.
const SHORT: f64 = 128.0;
/// Most combinations of arguments that are tried for one e-node with several arguments.
const PAIRS: usize = 256;

type Key = (Id, Context);
type Choices = Rc<Vec<Rc<Choice>>>;
type Map<K, V> = IndexMap<K, V, FxBuildHasher>;
type Set<K> = IndexSet<K, FxBuildHasher>;

/// The choices known for a key so far.
#[derive(Default)]
struct Known {
    choices: Choices,
    /// Whether they are complete but for what cycles add.
    computed: bool,
    /// Keys whose choices were computed from these.
    users: Set<Key>,
}

/// The terms that a search looks for. Each scope finds terms for some program that the one before it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Terms whose maps are fused, and that store no intermediate array without need.
    Fused,
    /// Also terms with a default for every operator: see [`Context::total`].
    Defaults,
    /// Terms that compute several reductions in one loop. They have a search of their own, in which they displace no other
    /// terms.
    SideBySide,
    /// Those with defaults that have no tiles. They have values for all sizes, and every program has such a term: each
    /// operator of the program itself has a default.
    Untiled,
}

impl Scope {
    /// The scopes that are tried one after the other until there are terms.
    pub const ALL: [Scope; 3] = [Scope::Fused, Scope::Defaults, Scope::Untiled];

    /// Whether every operator has a default.
    pub fn has_defaults(self) -> bool {
        matches!(self, Scope::Defaults | Scope::Untiled)
    }

    fn has(self, egraph: &EGraph, node: &Node) -> bool {
        let mut chosen = false;
        if self == Scope::Untiled {
            for size in sizes_of(egraph, node) {
                size.visit(&mut |sym| chosen |= sym.is_chosen());
            }
        }
        !chosen
    }
}

/// The values of sizes during the search.
pub(super) struct Sizes<'a> {
    /// The values of the program's dimensions.
    pub dims: &'a SizeEnv,
    /// Usual values of all sizes, also of those with tiles, which are chosen later.
    pub nominal: &'a dyn Fn(&Size) -> f64,
}

struct Search<'a> {
    egraph: &'a EGraph,
    target: &'a Target,
    sizes: &'a Sizes<'a>,
    /// Number of choices kept for each key.
    beam: usize,
    scope: Scope,
    views: Map<Id, Rc<Choice>>,
    /// Whether a class is computed element by element, as far as known.
    elementwise: Map<Id, bool>,
    /// Number of choices kept for each key at host level.
    keep: usize,
    roots: Vec<Key>,
    known: Map<Key, Known>,
    /// The key that is being computed.
    current: Option<Key>,
    /// Keys that used a key before its choices were computed, since classes are cyclic.
    early: Set<Key>,
    /// What the e-nodes of keys that were computed again gave, by their numbers, and for which parts. Most parts of a key do not change
    /// when it is computed again. `None` before that.
    again: Option<Map<(Key, usize), (Lists, Gathered)>>,
    /// What was lost when a key was last computed.
    dropped: Map<Key, Dropped>,
    interrupt: &'a Interrupt,
}

/// The choices for each part of an e-node.
struct Lists {
    of_parts: Vec<Choices>,
    /// Whether the elements of a map, or the next state of a loop, are in a short array of a work-item.
    short: bool,
    short_state: bool,
}

impl Lists {
    /// Whether these are the same choices.
    fn are(&self, other: &Lists) -> bool {
        let same = |(a, b): (&Choices, &Choices)| {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| Rc::ptr_eq(a, b))
        };
        self.of_parts.iter().zip(&other.of_parts).all(same)
    }
}

/// The choices found for a key, by skeleton, and what was lost among them.
#[derive(Default)]
struct Gathered {
    best: Map<u64, Rc<Choice>>,
    /// For each way to cut into two parts at host level: the skeletons of choices in which every choice of either part
    /// occurs, and the cost of the cheapest of them.
    covers: Vec<(f64, Vec<u64>)>,
    dropped: Dropped,
}

impl Gathered {
    /// Adds what another e-node gives.
    fn add(&mut self, other: &Gathered) {
        for (skeleton, choice) in &other.best {
            if self.best.get(skeleton).is_none_or(|best| choice.cost < best.cost) {
                self.best.insert(*skeleton, Rc::clone(choice));
            }
        }
        self.covers.extend(other.covers.iter().cloned());
        self.dropped.extend(&other.dropped);
    }
}

/// Returns the best terms of some forms of the program, at most [`Limits::skeletons`] of each form, each with a skeleton of its own. Adds
/// their number and what was lost to `drawn`.
///
/// # Errors
/// [`crate::diag::Code::Interrupted`] when an interrupt was requested.
pub(super) fn terms(
    saturated: &Saturated,
    forms: &[usize],
    sizes: &Sizes,
    target: &Target,
    limits: &Limits,
    scope: Scope,
    drawn: &mut Drawn,
) -> Result<Vec<Found>> {
    let egraph = &saturated.egraph;
    let program = Context::program(scope.has_defaults());
    let mut search = Search {
        egraph,
        target,
        sizes,
        beam: limits.skeletons_per_class,
        scope,
        views: cheapest_views(egraph, scope),
        elementwise: Map::default(),
        keep: limits.skeletons,
        roots: forms.iter().map(|f| (egraph.find(saturated.forms[*f]), program)).collect(),
        known: Map::default(),
        current: None,
        early: Set::default(),
        again: None,
        dropped: Map::default(),
        interrupt: &limits.interrupt,
    };
    let roots = search.roots.clone();
    for root in &roots {
        search.best(*root);
    }
    search.settle(limits.extraction_rounds);
    let (mut best, mut seen) = (vec![], Set::default());
    for (form, root) in forms.iter().zip(&roots) {
        let found = search.best(*root);
        let wanted = found.iter().filter(|c| scope != Scope::SideBySide || is_beside(c));
        let wanted: Vec<Rc<Choice>> = wanted.cloned().collect();
        let more = search.with_other_stages(*root, &wanted, &mut seen);
        best.extend(wanted.into_iter().chain(more).map(|choice| (*form, choice)));
    }
    // An interrupted search has seen few of the choices: its terms are not returned.
    limits.interrupt.check("while drawing candidates")?;
    let mut dropped = Dropped::default();
    search.dropped.values().for_each(|lost| dropped.extend(lost));
    drawn.terms += best.len() + dropped.count(Reason::TermsPastBeam);
    drawn.dropped.extend(&dropped);
    let named = best.into_iter().map(|(form, choice)| Named::of(egraph, &choice, form));
    let mut seen = IndexSet::new();
    let named = named.map(|named| match named {
        Ok(n) if !seen.insert((n.form, n.compact.clone())) => Err(Reason::SameTerm),
        named => named,
    });
    let named: Vec<std::result::Result<Named, Reason>> = named.collect();
    let found = on_all_cores(&named, |n| n.as_ref().map_err(|reason| *reason)?.written());
    Ok(found
        .into_iter()
        .filter_map(|f| f.map_err(|reason| drawn.dropped.add(reason)).ok())
        .collect())
}

/// The term of a choice for the whole program, as it stands in the graph.
struct Named {
    compact: Term,
    form: usize,
    /// The names of the values between its stages: the same for all choices.
    names: HashMap<Term, String>,
}

impl Named {
    // Errors cannot occur: every class has one type, so no combination is ill-typed.
    fn of(egraph: &EGraph, choice: &Choice, form: usize) -> std::result::Result<Named, Reason> {
        let term = term_of(egraph, choice).ok_or(Reason::IllTyped)?;
        let mut names = HashMap::new();
        name_values(egraph, choice, &term, &Before::default(), &mut names)
            .map_err(|_| Reason::IllTyped)?;
        let compact = without_stored(&term).map_err(|_| Reason::IllTyped)?;
        Ok(Named { compact, form, names })
    }

    fn written(&self) -> std::result::Result<Found, Reason> {
        let term = written_out(&self.compact)?;
        let skeleton = skeleton_text(&term);
        let name = |value: &Term| match self.names.get(value) {
            Some(name) => name.clone(),
            None => value.to_string(),
        };
        let values = stages::values(&self.compact).map_err(|_| Reason::IllTyped)?;
        let stages = values.iter().map(|(read, given)| stages::Passed {
            read: read.as_ref().map(name),
            given: name(given),
        });
        let stages = stages.collect();
        Ok(Found { term, compact: self.compact.clone(), skeleton, form: self.form, stages })
    }
}

/// What is applied before a part of a chain: the factors, and their name.
#[derive(Clone, Default)]
struct Before {
    factors: Vec<Term>,
    name: String,
}

/// Names the values of a choice and of its parts outside kernels by their classes. `term` is the choice's term, and the names
/// are those of terms [`without_stored`]. Chains are nested to the right.
fn name_values(
    egraph: &EGraph,
    choice: &Choice,
    term: &Term,
    before: &Before,
    names: &mut HashMap<Term, String>,
) -> std::result::Result<Before, TypeError> {
    let mut done = Before {
        factors: [without_stored(term)?.chain(), before.factors.clone()].concat(),
        name: String::new(),
    };
    let whole = Term::of_chain(&done.factors)?;
    done.name = match egraph.lookup((*choice.node).clone()) {
        Some(class) if before.factors.is_empty() => format!("class {}", egraph.find(class)),
        Some(class) => format!("class {} after {}", egraph.find(class), before.name),
        None => whole.to_string(),
    };
    names.insert(whole, done.name.clone());
    match (term.op(), choice.args.as_slice(), term.args()) {
        (Op::Compose, [f, g], [outer, inner]) => {
            let rest = name_values(egraph, g, inner, before, names)?;
            let stored = *outer.op() == Op::ToMem(Space::Global);
            let rest = if stored { rest } else { Before::default() };
            name_values(egraph, f, outer, &rest, names)?;
        }
        (Op::ToMem(Space::Global), [f], [stored]) => {
            name_values(egraph, f, stored, before, names)?;
        }
        (Op::Fork | Op::Bimap | Op::Fold | Op::While, choices, terms) => {
            for (c, t) in choices.iter().zip(terms) {
                name_values(egraph, c, t, &Before::default(), names)?;
            }
        }
        _ => {}
    }
    Ok(done)
}

/// Returns, for each class that has one, the smallest member made of views alone.
fn cheapest_views(egraph: &EGraph, scope: Scope) -> Map<Id, Rc<Choice>> {
    let mut best = Map::default();
    cheapest(egraph, scope, false, &Map::default(), &mut best);
    let reads = |n: &Node| n.function() == Some(&Op::OnRead);
    if egraph.classes().any(|class| class.nodes.iter().any(reads)) {
        // What is computed where it is read may read views alone.
        let mut computed = best.clone();
        cheapest(egraph, scope, true, &Map::default(), &mut computed);
        cheapest(egraph, scope, false, &computed, &mut best);
    }
    best
}

/// Adds the smallest member of each class that has one made of views and, if `scalars`, of maps of scalar functions. Arguments of
/// [`Op::OnRead`] are taken from `computed`.
fn cheapest(
    egraph: &EGraph,
    scope: Scope,
    scalars: bool,
    computed: &Map<Id, Rc<Choice>>,
    best: &mut Map<Id, Rc<Choice>>,
) {
    loop {
        let mut changed = false;
        for class in egraph.classes() {
            for node in &class.nodes {
                let Some(op) = node.function() else { continue };
                let structural =
                    matches!(op, Op::Compose | Op::Fork | Op::Bimap | Op::Map(MapKind::Plain));
                let scalar = scalars && matches!(op, Op::Scalar(f) if f.body.is_expression());
                // A padding value is a scalar function, not a view: `constant` chooses it.
                if !(structural || scalar || op.is_view()) || !scope.has(egraph, node) {
                    continue;
                }
                let args: Option<Vec<Rc<Choice>>> = node
                    .args()
                    .iter()
                    .map(|a| {
                        let a = egraph.find(*a);
                        best.get(&a).cloned().or_else(|| match op {
                            _ if structural => None,
                            Op::OnRead => computed.get(&a).cloned(),
                            _ => constant(egraph, a, CONSTANT_DEPTH),
                        })
                    })
                    .collect();
                let Some(args) = args else { continue };
                let choice = Choice::view(node, args);
                if best.get(&class.id).is_none_or(|b| choice.cost < b.cost) {
                    best.insert(class.id, Rc::new(choice));
                    changed = true;
                }
            }
        }
        if !changed {
            return;
        }
    }
}

/// How many compositions deep `constant` looks for a padding value, such as a splat of a literal after
/// `bang`. The depth is bounded because classes are cyclic.
const CONSTANT_DEPTH: usize = 4;

/// Returns a padding value: a scalar leaf, or a splat of one.
fn constant(egraph: &EGraph, id: Id, depth: usize) -> Option<Rc<Choice>> {
    egraph[id].nodes.iter().find_map(|node| match node.function()? {
        Op::Scalar(_) => Some(Rc::new(Choice::view(node, vec![]))),
        Op::Compose if depth > 0 => {
            let args = node
                .args()
                .iter()
                .map(|a| {
                    let a = egraph.find(*a);
                    let splat = egraph[a].nodes.iter().find(|n| {
                        matches!(n.function(), Some(Op::Splat | Op::Bang | Op::Replicate))
                    });
                    splat
                        .map(|n| Rc::new(Choice::view(n, vec![])))
                        .or_else(|| constant(egraph, a, depth - 1))
                })
                .collect::<Option<Vec<_>>>()?;
            Some(Rc::new(Choice::view(node, args)))
        }
        _ => None,
    })
}

/// Free stack that a step of the search needs, and the size of a new stack when less is free, in bytes.
const RED_ZONE: usize = 256 << 10;
const STACK: usize = 8 << 20;

impl Search<'_> {
    /// Returns the choices known for a key so far; a new key is computed from the choices known below it.
    fn best(&mut self, key: Key) -> Choices {
        if let Some(entry) = self.known.get(&key) {
            let (choices, computed) = (entry.choices.clone(), entry.computed);
            if let Some(user) = self.current {
                self.known[&key].users.insert(user);
                if !computed {
                    self.early.insert(user);
                }
            }
            return choices;
        }
        self.known.insert(key, Known::default());
        let choices = self.compute(key);
        let entry = &mut self.known[&key];
        entry.choices = choices.clone();
        entry.computed = true;
        entry.users.extend(self.current);
        choices
    }

    /// Repeats until no choice changes. The first round computes the keys that used others too early, from the leaves up;
    /// each later round computes the users of keys that changed.
    fn settle(&mut self, rounds: usize) {
        self.again = Some(Map::default());
        let early = std::mem::take(&mut self.early);
        let mut stale: Set<Key> =
            self.known.keys().rev().filter(|key| early.contains(*key)).copied().collect();
        for _ in 0..rounds {
            let mut next: Set<Key> = Set::default();
            for key in stale {
                let new = self.compute(key);
                let entry = &mut self.known[&key];
                let same = entry.choices.len() == new.len()
                    && entry.choices.iter().zip(new.iter()).all(|(a, b)| {
                        a.skeleton == b.skeleton && a.cost.to_bits() == b.cost.to_bits()
                    });
                if !same {
                    entry.choices = new;
                    next.extend(entry.users.iter().copied());
                }
            }
            next.extend(std::mem::take(&mut self.early));
            if next.is_empty() {
                break;
            }
            stale = next;
        }
        self.again = None;
    }

    fn compute(&mut self, key: Key) -> Choices {
        if self.interrupt.requested() {
            return Rc::default();
        }
        let outer = self.current.replace(key);
        // The recursion is as deep as the graph, which has no bound under rules that match their own results.
        let all = stacker::maybe_grow(RED_ZONE, STACK, || self.compute_choices(key));
        self.current = outer;
        all
    }

    fn compute_choices(&mut self, key: Key) -> Choices {
        let (class, at) = key;
        // A view is nearly free: no other choice can be better.
        if let Some(view) = self.views.get(&class) {
            return Rc::new(vec![view.clone()]);
        }
        let mut found = Gathered::default();
        let egraph = self.egraph;
        for (i, node) in egraph[class].nodes.iter().enumerate() {
            let Some(lists) = self.lists(node, class, at, &mut found.dropped) else { continue };
            let Some(again) = &mut self.again else {
                self.combine(node, key, &lists, &mut found);
                continue;
            };
            let before = again.swap_remove(&(key, i)).filter(|(before, _)| before.are(&lists));
            let own = before.map_or_else(
                || {
                    let mut own = Gathered::default();
                    self.combine(node, key, &lists, &mut own);
                    own
                },
                |(_, own)| own,
            );
            found.add(&own);
            self.again.as_mut().map(|again| again.insert((key, i), (lists, own)));
        }
        let Gathered { best, mut covers, mut dropped } = found;
        let all: Vec<Rc<Choice>> = best.values().cloned().collect();
        let (count, keep) = (all.len(), self.width(class, at));
        // The additive cost prefers other choices to reductions side by side.
        let (beside, all): (Vec<_>, Vec<_>) = all.into_iter().partition(is_beside);
        let mut out = kept(all, keep, self.target.search.blocked_share);
        out.extend(diverse(beside, keep / BESIDE));
        // The best of a part may only occur beside expensive choices of the others. From one occurrence, `joined` learns its
        // share of the time.
        let known: Set<u64> = out.iter().map(|c| c.skeleton).collect();
        covers.sort_by(|a, b| a.0.total_cmp(&b.0));
        let covers: IndexSet<u64> =
            covers.into_iter().flat_map(|(_, skeletons)| skeletons).collect();
        let more = covers.iter().filter(|s| !known.contains(*s)).take(COVER);
        let more = more.filter_map(|s| best.get(s));
        out.extend(more.cloned());
        let past =
            if self.roots.contains(&key) { Reason::TermsPastBeam } else { Reason::PartsPastBeam };
        dropped.add_all(past, count - out.len());
        self.dropped.insert(key, dropped);
        out.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        Rc::new(out)
    }

    /// Returns the parts of a composition or of a pair of functions, with their contexts.
    fn parts(&mut self, node: &Node, args: &[Id], at: Context) -> Vec<Key> {
        let (outer, inner) = match args {
            [outer, inner] if node.function() == Some(&Op::Compose) => (*outer, *inner),
            _ => return args.iter().copied().zip(at.components()).collect(),
        };
        // Only views may stand between the dimensions of a nest of parallel maps.
        let is_view = |a: Id| self.views.contains_key(&a);
        let at = if is_view(outer) || is_view(inner) { at } else { at.settled() };
        // The outer part reads an intermediate, unless it is an invertible view: then the inner part
        // stores through the view into the destination of the whole.
        let turned = self.views.get(&outer).is_some_and(|v| can_turn(v));
        let begins = at.level() == Level::Group && self.is_loop_over_arrays(outer);
        // These compute such elements where they read them: one form of the maps is enough.
        let fuses =
            at.level() == Level::Host && self.is_bucketed(outer) && self.is_elementwise(inner, 0);
        let read = match (turned, begins, fuses) {
            (true, ..) => at,
            (false, true, _) => at.start_of_loop(),
            (false, false, true) => at.item().intermediate(),
            (false, false, false) => at.intermediate(),
        };
        vec![(outer, at), (inner, read)]
    }

    /// Returns how many choices are kept for a class in a context.
    fn width(&self, class: Id, at: Context) -> usize {
        // Keep more at host level: terms outside kernels decide most about the run time and are combined
        // least often afterwards. Keep more for a reduction in blocks too: there it is decided which operands
        // are staged and how the tile is shared out.
        let blocked = |n: &Node| matches!(n.function(), Some(Op::Blocked(_) | Op::BlockedRows));
        if at.level() == Level::Host {
            self.keep
        } else if self.egraph[class].nodes.iter().any(blocked) {
            self.beam * 3
        } else {
            self.beam
        }
    }

    /// Whether a work-item may keep an array of this type in registers.
    fn is_short(&self, t: &Ty) -> bool {
        let known = |n: &Size| n.factors().all(|(s, _)| !s.is_chosen());
        t.components().iter().all(|(lengths, _)| lengths.iter().all(known))
            && self.target.least_bytes(t, self.sizes.dims) <= SHORT
    }

    /// Most bytes of the state of a loop, which a scatter may update, or of the bins of a histogram, in a group.
    fn most_state(&self, op: &Op) -> f64 {
        match op {
            Op::Fold | Op::While | Op::Scatter => LONG_STATE * self.target.local_bytes(),
            _ => self.target.local_bytes(),
        }
    }

    /// Whether a class is a loop over a state of arrays.
    fn is_loop_over_arrays(&self, class: Id) -> bool {
        let class = &self.egraph[class];
        let has_array = matches!(&class.data, Data::Fn(t, _) if t.cod.has_array());
        has_array && class.nodes.iter().any(|n| matches!(n.function(), Some(Op::Fold | Op::While)))
    }

    /// Whether a class is a histogram or a counting sort.
    fn is_bucketed(&self, class: Id) -> bool {
        let bucketed = |n: &Node| matches!(n.function(), Some(Op::Histogram | Op::CountingSort));
        self.egraph[class].nodes.iter().any(bucketed)
    }

    /// Whether a class maps scalar functions over an array of scalars, as lowering computes where elements are read.
    fn is_elementwise(&mut self, class: Id, depth: usize) -> bool {
        const DEEPEST: usize = 8;
        let class = self.egraph.find(class);
        if let Some(known) = self.elementwise.get(&class) {
            return *known;
        }
        let flat = |t: &Ty| t.components().iter().all(|(lengths, _)| lengths.len() <= 1);
        let egraph = self.egraph;
        let fits = matches!(&egraph[class].data, Data::Fn(t, _) if flat(&t.cod));
        if depth > DEEPEST || !fits {
            return false;
        }
        // Classes are cyclic.
        self.elementwise.insert(class, false);
        let found = self.views.contains_key(&class)
            || egraph[class].nodes.iter().any(|n| match n.function() {
                Some(Op::Map(MapKind::Plain)) => {
                    let scalar = |n: &Node| match n.function() {
                        Some(Op::Scalar(f)) => !f.body.has_loop(),
                        _ => false,
                    };
                    n.args().iter().all(|a| egraph[*a].nodes.iter().any(scalar))
                }
                Some(Op::Compose | Op::Fork | Op::Bimap) => {
                    n.args().iter().all(|a| self.is_elementwise(*a, depth + 1))
                }
                _ => false,
            });
        self.elementwise.insert(class, found);
        found
    }

    /// Returns the choices for each part of an e-node; `None` if it has none in this context.
    fn lists(
        &mut self,
        node: &Node,
        class: Id,
        at: Context,
        dropped: &mut Dropped,
    ) -> Option<Lists> {
        let op = node.function()?;
        let egraph = self.egraph;
        if !self.scope.has(egraph, node) {
            return None;
        }
        let args: Vec<Id> = node.args().iter().map(|a| egraph.find(*a)).collect();
        let result = match &egraph[class].data {
            // A choice that reads arrays has no vector form (`calculus::lanes`): each lane would run both sides.
            Data::Fn(t, _) if *op == Op::Cond && at.vector && t.dom.has_array() => return None,
            Data::Fn(t, _) => &t.cod,
            Data::Size(_) | Data::Ty(_) | Data::Broken => return None,
        };
        let mut none = |reason: Reason| {
            dropped.add(reason);
            None
        };
        // The place of the elements of a short array, and of the next state of a loop that is one: a work-item has it in registers,
        // wherever the last state goes.
        let (short, state) = match op {
            Op::Map(MapKind::Seq) => (at.short_array(), None),
            Op::Fold | Op::While if result.has_array() => (None, at.intermediate().short_array()),
            _ => (None, None),
        };
        let [short, state] = [short, state].map(|c| c.filter(|_| self.is_short(result)));
        let policy = &self.target.search;
        let of_parts: Vec<Choices> = match op {
            Op::Sliced | Op::ReduceLcl | Op::ScanLcl(_) if !policy.slices => {
                return none(Reason::NoGain);
            }
            Op::Tiled(_) | Op::Blocked(_) | Op::BlockedRows | Op::Sliced => match at.holes(op) {
                Some(holes) => args.iter().zip(holes).map(|(a, at)| self.best((*a, at))).collect(),
                None => return None,
            },
            Op::Compose | Op::Fork | Op::Bimap => {
                let parts = self.parts(node, &args, at);
                parts.into_iter().map(|part| self.best(part)).collect()
            }
            Op::Cond if at.total || at.level() == Level::Host => match at.enter(op, true, true) {
                Verdict::No => return None,
                Verdict::Inside(at) => {
                    let branch = at.settled();
                    [at.intermediate(), branch, branch]
                        .into_iter()
                        .zip(&args)
                        .map(|(at, a)| self.best((*a, at)))
                        .collect()
                }
            },
            Op::Fold | Op::While | Op::Histogram
                if at.level() == Level::Group && !policy.slices =>
            {
                return none(Reason::NoGain);
            }
            Op::ToMem(Space::Local | Space::LocalAhead)
                if !policy.stages && self.views.contains_key(&args[0]) =>
            {
                return none(Reason::NoGain);
            }
            Op::ToMem(Space::Local | Space::LocalAhead)
                if self.target.least_bytes(result, self.sizes.dims) > self.target.local_bytes() =>
            {
                return none(Reason::StageTooLarge);
            }
            // The state of a loop that does not fit is in a part of a buffer.
            Op::Fold | Op::While | Op::Scatter | Op::Histogram
                if at.level() == Level::Group
                    && self.target.least_bytes(result, self.sizes.dims) > self.most_state(op) =>
            {
                return none(Reason::StageTooLarge);
            }
            Op::ToMem(Space::Stream) if !self.target.streams => {
                return none(Reason::NoGain);
            }
            Op::ToMem(Space::Global) if !policy.packs && self.views.contains_key(&args[0]) => {
                return none(Reason::NoGain);
            }
            // Rows and columns of a work-item's share are in registers one by one, so chunks of them make no
            // new kernel. A group does not share vectors out.
            Op::Chunked if at.tile => return none(Reason::NoGain),
            Op::Packed if at.tile && (!policy.tile_vectors || at.level() == Level::Group) => {
                return none(Reason::NoGain);
            }
            op => {
                let sizes = sizes_of(self.egraph, node);
                // One form of a short reduction is enough: reductions over lanes are unrolled, long ones are
                // loops.
                let lanes = matches!(sizes.first().and_then(Size::as_sym), Some(Sym::Width(_)));
                match op {
                    Op::Reduce(ReduceKind::Seq) if lanes => {
                        return none(Reason::NoGain);
                    }
                    Op::Reduce(ReduceKind::Unroll) if !sizes.first().is_some_and(can_unroll) => {
                        return None;
                    }
                    _ => {}
                }
                let small = sizes.first().is_some_and(can_unroll);
                let array = match op {
                    Op::Map(MapKind::Seq) if at.level() == Level::Group => {
                        let tile =
                            sizes.first().is_none_or(|n| n.factors().any(|(s, _)| s.is_chosen()));
                        matches!(result, Ty::Array(_, t) if t.has_array()) && !tile
                    }
                    _ => matches!(result, Ty::Array(..)),
                };
                let inner = match at.enter(op, small, array) {
                    Verdict::Inside(inner) => Some(inner),
                    Verdict::No => short,
                };
                let inner = inner?;
                // The steps of a work-item's loop update registers, or make a short array, which becomes the state.
                let of = |search: &mut Self, a: Id| {
                    let mut list = search.best((a, inner));
                    if let Some(state) = state {
                        Rc::make_mut(&mut list).extend(search.best((a, state)).iter().cloned());
                    }
                    list
                };
                args.iter().map(|a| of(self, *a)).collect()
            }
        };
        let any = of_parts.iter().all(|l| !l.is_empty());
        any.then(|| Lists { of_parts, short: short.is_some(), short_state: state.is_some() })
    }

    /// Adds the choices of an e-node that combine those of its parts.
    fn combine(&self, node: &Node, key: Key, lists: &Lists, found: &mut Gathered) {
        let (class, at) = key;
        let egraph = self.egraph;
        let (Some(op), Data::Fn(ty, _)) = (node.function(), &egraph[class].data) else { return };
        let result = &ty.cod;
        let args = node.args();
        let Lists { of_parts, short, short_state } = lists;
        let is_short = *short || *short_state;
        let sizes = sizes_of(egraph, node);
        let mut share = cost::share(op, &sizes, at, self.target, self.sizes.nominal, result);
        if *op == Op::Map(MapKind::Unroll) {
            // The length of an unrolled map will be chosen small.
            share.times = share.times.min(8.0);
        }
        let tag = skeleton_tag(op, at, &sizes);
        let passed = match (op, args.get(1)) {
            (Op::Compose, Some(inner)) => match &egraph[*inner].data {
                Data::Fn(t, _) => cost::passing(&t.cod, at, self.target, self.sizes.nominal),
                Data::Size(_) | Data::Ty(_) | Data::Broken => 0.0,
            },
            _ => 0.0,
        };
        let in_registers = *op == Op::Map(MapKind::Unroll) && at.registers;
        let staged =
            matches!(op, Op::Map(MapKind::Lcl(_) | MapKind::Warp | MapKind::Lane)) && !at.sink;
        // No block of matrix instructions divides this length.
        let uneven = matches!(op, Op::Blocked(_))
            && sizes.get(4).is_some_and(|n| {
                tiles::whole(n).eval(self.sizes.dims).is_ok_and(|n| n % WORDS != 0)
            });
        // Made once, if a choice is kept.
        let shared: OnceCell<Rc<Node>> = OnceCell::new();
        let mut combine = |chosen: &[&Rc<Choice>]| -> Option<(u64, f64)> {
            let reduces = matches!(op, Op::Reduce(_) | Op::ReduceLcl | Op::Fold | Op::SumProducts)
                || *op == Op::While && at.level() == Level::Group
                || chosen.iter().any(|c| c.reduces);
            let inner_loops = chosen.iter().any(|c| c.loops);
            // Several copies of a loop make a longer program, not a faster one. Copies of a reduction to one
            // element are one loop with several accumulators (`kernel::lower::interleave`), which loads once
            // what they have in common.
            let joined = self.scope == Scope::SideBySide
                && !at.registers
                && matches!(result, Ty::Array(_, t) if t.components().iter().all(|(dims, _)| dims.is_empty()));
            if *op == Op::Map(MapKind::Unroll) && inner_loops && !joined && !at.total {
                found.dropped.add(Reason::LoopCopied);
                return None;
            }
            let loops = inner_loops
                || matches!(op, Op::Map(MapKind::Seq) | Op::Reduce(ReduceKind::Seq) | Op::Fold);
            // Local memory passes on partial results of reductions. A stage that only maps is fused instead,
            // or stays with its work-items for a reader that reads it twice. Elements of a register array
            // contain no further reduction.
            let mut kept = *short || staged && !reduces && at.keeps();
            let unfit = (staged && !kept && (!reduces || at.keeps())) || (in_registers && reduces);
            if !at.total && unfit {
                found.dropped.add(Reason::NotFused);
                return None;
            }
            match (op, chosen) {
                (Op::Compose, [outer, inner]) if outer.skeleton == 0 => {
                    kept = inner.kept && (outer.reads < 2 || at.level() != Level::Item);
                }
                (Op::Compose, [outer, inner]) => {
                    if inner.kept && outer.reads < 2 && !at.total {
                        found.dropped.add(Reason::NotFused);
                        return None;
                    }
                    kept = outer.kept;
                }
                (Op::Fork | Op::Bimap, chosen) => kept |= chosen.iter().any(|c| c.kept),
                // The rows of a short array are parts of it.
                _ if is_short => {}
                (_, chosen) if chosen.iter().any(|c| c.kept) && !at.total => {
                    found.dropped.add(Reason::NotFused);
                    return None;
                }
                _ => {}
            }
            // A higher dimension needs a map of the next lower dimension inside; a single parallel map has
            // dimension 0.
            if let Op::Map(MapKind::Glb(d) | MapKind::Wrg(d)) = *op
                && d > 0
                && !chosen[0].spreads(d - 1)
            {
                return None;
            }
            if uneven && chosen.iter().any(|c| c.outline.features & FRAGMENTS != 0) {
                found.dropped.add(Reason::NoValues);
                return None;
            }
            // The few results of a reduction are not worth storing past the caches.
            if *op == Op::ToMem(Space::Stream) && reduces {
                found.dropped.add(Reason::NoGain);
                return None;
            }
            let mut cost = share.own + share.times * chosen.iter().map(|c| c.cost).sum::<f64>();
            if at.level() == Level::Group {
                // A block that is not staged is read from global memory by every work-item.
                let sources = match op {
                    Op::Blocked(_) => 2,
                    Op::BlockedRows => 1,
                    _ => 0,
                };
                let plain = chosen.iter().take(sources).filter(|c| c.skeleton == 0).count();
                let again = 1.0 + 0.5 * plain as f64;
                cost *= again;
            }
            if *op == Op::Compose && chosen[0].skeleton != 0 && chosen[1].skeleton != 0 {
                cost += passed;
            }
            let skeleton = match (tag, chosen) {
                (None, [one]) => one.skeleton,
                (None, [a, b]) if a.skeleton == 0 => b.skeleton,
                (None, [a, b]) if b.skeleton == 0 => a.skeleton,
                (tag, chosen) => {
                    let mut h = FxHasher::default();
                    tag.hash(&mut h);
                    chosen.iter().for_each(|c| c.skeleton.hash(&mut h));
                    h.finish()
                }
            };
            let skeleton =
                if tag.is_none() && chosen.iter().all(|c| c.skeleton == 0) { 0 } else { skeleton };
            if found.best.get(&skeleton).is_none_or(|b| cost < b.cost) {
                let args: Vec<Rc<Choice>> = chosen.iter().map(|c| Rc::clone(c)).collect();
                let outline = Outline::of(op, at, &args);
                let form = shared_form(op, &sizes, &args);
                let node = Rc::clone(shared.get_or_init(|| Rc::new(node.clone())));
                let reads = reads(Some(op), &args);
                let choice = Choice {
                    node,
                    args,
                    cost,
                    skeleton,
                    outline,
                    reduces,
                    loops,
                    reads,
                    kept,
                    form,
                };
                found.best.insert(skeleton, Rc::new(choice));
            }
            Some((skeleton, cost))
        };
        match of_parts.as_slice() {
            [] => {
                combine(&[]);
            }
            [a] => a.iter().for_each(|x| {
                combine(&[x]);
            }),
            // At host level the two parts are kernels that do not affect each other: every choice of either
            // list is combined at least with the best choice of the other.
            [a, b] if at.level() == Level::Host => {
                let near = |i: usize| 0..b.len().min((PAIRS / 4 / (i + 1)).max(1));
                let near = (0..a.len()).flat_map(|i| near(i).map(move |j| (i, j)));
                // Choices of equal rank meet, too: each is seen beside another than the best.
                let equal = |i: usize| (i % a.len(), i % b.len());
                let equal: IndexSet<(usize, usize)> =
                    (0..a.len().max(b.len())).map(equal).collect();
                let pairs: IndexSet<(usize, usize)> = near.chain(equal.iter().copied()).collect();
                let mut cover = vec![];
                let mut least = f64::INFINITY;
                for pair in &pairs {
                    let made = combine(&[&a[pair.0], &b[pair.1]]);
                    if let (Some((skeleton, cost)), true) = (made, equal.contains(pair)) {
                        cover.push(skeleton);
                        least = least.min(cost);
                    }
                }
                // A part of views alone passes on what covers the other part.
                let both_compute = a.iter().chain(b.iter()).all(|c| c.skeleton != 0);
                if both_compute || a.len().max(b.len()) > self.keep {
                    found.covers.push((least, cover));
                }
                found.dropped.add_all(Reason::PartsUntried, a.len() * b.len() - pairs.len());
            }
            [a, b] => {
                // Both lists are cut if they are long: few of their pairs could be kept.
                let most = (PAIRS / b.len()).max(4);
                for x in a.iter().take(most) {
                    for y in b.iter() {
                        combine(&[x, y]);
                    }
                }
                let untried = a.len().saturating_sub(most) * b.len();
                found.dropped.add_all(Reason::PartsUntried, untried);
            }
            // The arguments do not affect each other: combine the best of each list; at host level, where the
            // arguments are kernels, also the second best of each list, and so on.
            more if *op == Op::Cond => {
                let longest = more.iter().map(|l| l.len()).max().unwrap_or(0);
                let most = if at.level() == Level::Host { longest } else { 1 };
                for i in 0..most {
                    combine(&more.iter().map(|l| &l[i % l.len()]).collect::<Vec<_>>());
                }
            }
            more => {
                // All combinations in mixed radix (the first list varies fastest), up to `PAIRS` that fit.
                let total: usize = more.iter().map(|l| l.len()).product();
                let nth = |mut rest: usize| {
                    let mut chosen = vec![];
                    for l in more {
                        chosen.push(&l[rest % l.len()]);
                        rest /= l.len();
                    }
                    chosen
                };
                let (mut looked, mut fitting) = (0, 0);
                while looked < total && fitting < PAIRS {
                    let chosen = nth(looked);
                    looked += 1;
                    if ends_where_it_is(op, &chosen) {
                        fitting += 1;
                        combine(&chosen);
                    }
                }
                found.dropped.add_all(Reason::EndsElsewhere, looked - fitting);
                found.dropped.add_all(Reason::PartsUntried, total - looked);
            }
        }
    }
}

/// Whether a term has reductions side by side.
fn is_beside(c: &Rc<Choice>) -> bool {
    c.outline.features & SIDE_BY_SIDE != 0
}

/// Returns how often a term reads its argument; 2 means more than once.
fn reads(op: Option<&Op>, args: &[Rc<Choice>]) -> u8 {
    let all = args.iter().map(|a| a.reads);
    match op {
        Some(Op::Input(_) | Op::Bang | Op::Lit(_) | Op::SizeValue(_) | Op::Iota) => 0,
        Some(Op::Compose) => all.product::<u8>().min(2),
        Some(Op::Fork | Op::Cond) => all.sum::<u8>().min(2),
        Some(Op::Bimap) => all.max().unwrap_or(1),
        // Every element of one side is paired with the whole other side.
        Some(Op::Distl | Op::Distr | Op::Cross) => 2,
        // What an update reads must be complete before its first store.
        Some(Op::Scatter) => 2,
        // Counts the buckets, then goes through the elements again.
        Some(Op::CountingSort) => 2,
        _ => 1,
    }
}

/// Returns how a stage is shared out to work-items, as a hash: by `op` itself, else by the outermost argument
/// that is.
fn shared_form(op: &Op, sizes: &[Size], args: &[Rc<Choice>]) -> Option<u64> {
    match op {
        Op::Spread(_) | Op::SpreadRows | Op::Map(MapKind::Lcl(_) | MapKind::Warp) => {
            let mut h = FxHasher::default();
            op.hash(&mut h);
            sizes.hash(&mut h);
            Some(h.finish())
        }
        Op::Compose | Op::ToMem(_) => args.iter().find_map(|a| a.form),
        _ => None,
    }
}

/// Whether the end of a blocked reduction, if it computes at all, finds the accumulators where the steps
/// leave them: in registers of the same work-items.
fn ends_where_it_is(op: &Op, chosen: &[&Rc<Choice>]) -> bool {
    let (step, end) = match op {
        Op::Blocked(_) => (chosen[2], chosen[4]),
        Op::BlockedRows => (chosen[1], chosen[3]),
        _ => return true,
    };
    end.skeleton == 0 || step.form == end.form
}

/// Whether a chosen view can be stored through.
fn can_turn(c: &Choice) -> bool {
    c.node.function().is_some_and(Op::is_invertible) && c.args.iter().all(|a| can_turn(a))
}

/// Returns the hash by which a skeleton distinguishes a compute operator; `None` for operators that it
/// ignores.
fn skeleton_tag(op: &Op, at: Context, sizes: &[Size]) -> Option<u64> {
    let named = match op {
        Op::Map(MapKind::Plain) => false,
        Op::Map(_) | Op::Vectorize | Op::ToMem(_) | Op::Fold | Op::Spread(_) => true,
        Op::Tiled(_) | Op::TiledRows | Op::Turned => true,
        Op::Blocked(_) | Op::BlockedRows | Op::SpreadRows => true,
        Op::Reduce(ReduceKind::Seq | ReduceKind::Unroll) | Op::ReduceLcl | Op::Sliced => true,
        Op::Scan(_) | Op::ScanLcl(_) | Op::SumProducts => true,
        _ => false,
    };
    named.then(|| {
        let mut h = FxHasher::default();
        op.hash(&mut h);
        matches!(at.level(), Level::Group | Level::Warp).hash(&mut h);
        sizes.hash(&mut h);
        h.finish()
    })
}

/// Returns a term without `toGlobal` around what its kernels compute: they store results in global memory in any case.
fn without_stored(t: &Term) -> std::result::Result<Term, TypeError> {
    let mut factors = vec![];
    for f in t.chain() {
        match f.op() {
            Op::ToMem(Space::Global) if cost::computes(&f.args()[0]) => {
                factors.extend(without_stored(&f.args()[0])?.chain());
            }
            Op::Fork | Op::Bimap | Op::Fold | Op::While | Op::Cond => {
                let args = f
                    .args()
                    .iter()
                    .map(without_stored)
                    .collect::<std::result::Result<Vec<_>, _>>()?;
                factors.push(f.with_args(args)?);
            }
            _ => factors.push(f),
        }
    }
    Term::of_chain(&factors)
}

/// Returns the term of a choice.
fn term_of(egraph: &EGraph, c: &Choice) -> Option<Term> {
    let op = c.node.function()?;
    let args = c.args.iter().map(|a| term_of(egraph, a)).collect::<Option<Vec<_>>>()?;
    let (mut sizes, mut tys) = (vec![], vec![]);
    for child in &c.node.children {
        match &egraph[*child].data {
            Data::Size(s) => sizes.push(s.clone()),
            Data::Ty(t) => tys.push(t.clone()),
            Data::Fn(..) | Data::Broken => {}
        }
    }
    Term::new(op.clone(), sizes, tys, args).ok()
}

/// Returns the skeleton as text for people: the compute operators from the outside in.
pub(super) fn skeleton_text(t: &Term) -> String {
    fn walk(t: &Term, out: &mut String) {
        let named = match t.op() {
            Op::Map(MapKind::Plain) => None,
            Op::Map(k) => Some(match k {
                MapKind::Seq => "seq".to_owned(),
                MapKind::Unroll => "unroll".to_owned(),
                MapKind::Glb(d) => format!("glb{d}"),
                MapKind::Wrg(d) => format!("wrg{d}"),
                MapKind::Lcl(d) => format!("lcl{d}"),
                MapKind::Warp => "warp".to_owned(),
                MapKind::Lane => "lane".to_owned(),
                MapKind::Plain => "view".to_owned(),
            }),
            Op::Reduce(_) => Some("red".to_owned()),
            Op::ReduceLcl => Some("redlcl".to_owned()),
            Op::Scan(_) => Some("scan".to_owned()),
            Op::ScanLcl(_) => Some("scanlcl".to_owned()),
            Op::Fold => Some("fold".to_owned()),
            Op::SumProducts => Some("products".to_owned()),
            Op::ToMem(Space::Local) if !cost::computes(&t.args()[0]) => Some("stage".to_owned()),
            Op::ToMem(Space::LocalAhead) => Some("ahead".to_owned()),
            Op::ToMem(Space::Global) if !cost::computes(&t.args()[0]) => Some("pack".to_owned()),
            Op::Vectorize if cost::computes(&t.args()[0]) => Some("vec".to_owned()),
            Op::ToMem(Space::Stream) => Some("stream".to_owned()),
            _ => None,
        };
        let mut inner = String::new();
        t.args().iter().for_each(|a| walk(a, &mut inner));
        match named {
            Some(name) => {
                if !out.is_empty() {
                    out.push(' ');
                }
                out.push_str(&name);
                let n = t.sizes().first().map(ToString::to_string).unwrap_or_default();
                if !n.is_empty() {
                    out.push_str(&format!("[{n}]"));
                }
                if !inner.is_empty() {
                    out.push_str(&format!("({inner})"));
                }
            }
            None if !inner.is_empty() => {
                if !out.is_empty() {
                    out.push(' ');
                }
                out.push_str(&inner);
            }
            None => {}
        }
    }
    let mut out = String::new();
    walk(t, &mut out);
    out
}
