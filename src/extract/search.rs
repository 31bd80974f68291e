//! The search for terms: dynamic programming over pairs of class and context, with a beam for each pair.
//!
//! [`terms`] takes the saturated e-graph and gives the best term of each of a few dozen skeletons. Classes
//! are cyclic, so the search computes choices top-down once and then repeats until none of them changes.

mod choice;
mod combine;
mod lists;
mod named;
mod other_stages;

use super::context::{Context, Level};
use super::tunables::Target;
use super::{Drawn, Dropped, Reason, cost, stages};
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::term::{MapKind, Op, Space, Term};
use crate::diag::{Interrupt, Limits, Result, on_all_cores};
use crate::saturate::{EGraph, Node, Saturated};
use choice::{Choice, Offer, diverse, is_beside, kept};
use egg::Id;
use indexmap::map::Entry;
use indexmap::{IndexMap, IndexSet};
use named::{Named, Terms};
use rustc_hash::FxBuildHasher;
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

/// Returns the sizes among the children of a node.
pub(super) fn sizes_of(egraph: &EGraph, node: &Node) -> Vec<Size> {
    node.children.iter().filter_map(|c| egraph[*c].data.size().cloned()).collect()
}

/// How many other choices are kept for each choice with reductions side by side.
const BESIDE: usize = 3;

/// Most choices that are kept besides the best, so that every choice of the parts occurs in one.
const COVER: usize = 256;

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
    /// The choice of each class that has one made of views alone.
    views: Map<Id, Choices>,
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
    /// What each e-node gave, of the keys that are computed again. Most parts of a key do not change when it is.
    given: Map<Key, Vec<Option<Given>>>,
    /// Whether all keys have been computed once.
    settles: bool,
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
            Rc::ptr_eq(a, b)
                || a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| Rc::ptr_eq(a, b))
        };
        self.of_parts.iter().zip(&other.of_parts).all(same)
    }
}

/// The offers of an e-node by skeleton, and what was lost among them.
#[derive(Default)]
struct Gathered {
    best: Map<u64, Offer>,
    /// For each way to cut into two parts at host level: the skeletons of choices in which every choice of either part
    /// occurs, and the cost of the cheapest of them.
    covers: Vec<(f64, Vec<u64>)>,
    dropped: Dropped,
}

/// What an e-node gave when its key was last computed, and for which parts.
type Given = (Lists, Gathered);

/// Returns the best terms of some forms of the program, at most [`Limits::skeletons`] of each form, each with a skeleton of its own, with
/// their number and what was lost.
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
) -> Result<(Vec<Found>, Drawn)> {
    let egraph = &saturated.egraph;
    let program = Context::program(scope.has_defaults());
    let views = cheapest_views(egraph, scope).into_iter();
    let mut search = Search {
        egraph,
        target,
        sizes,
        beam: limits.skeletons_per_class,
        scope,
        views: views.map(|(class, view)| (class, Rc::new(vec![view]))).collect(),
        elementwise: Map::default(),
        keep: limits.skeletons,
        roots: forms.iter().map(|f| (egraph.find(saturated.forms[*f]), program)).collect(),
        known: Map::default(),
        current: None,
        early: Set::default(),
        given: Map::default(),
        settles: false,
        dropped: Map::default(),
        interrupt: &limits.interrupt,
    };
    let roots = search.roots.clone();
    for root in &roots {
        search.best(*root);
    }
    search.settle(limits.extraction_rounds);
    search.found(forms)
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
    /// Returns the terms that were found for the scope.
    fn found(&mut self, forms: &[usize]) -> Result<(Vec<Found>, Drawn)> {
        let (mut best, mut seen, mut drawn) = (vec![], Set::default(), Drawn::default());
        let mut terms = Terms::of(self.egraph);
        for (form, root) in forms.iter().zip(self.roots.clone()) {
            let found = self.best(root);
            let wanted = |c: &&Rc<Choice>| self.scope != Scope::SideBySide || is_beside(c.outline);
            let wanted: Vec<Rc<Choice>> = found.iter().filter(wanted).cloned().collect();
            let more = self.with_other_stages(root, &wanted, &mut seen);
            best.extend(wanted.into_iter().chain(more).map(|choice| (*form, choice)));
        }
        // An interrupted search has seen few of the choices: its terms are not returned.
        self.interrupt.check("while drawing candidates")?;
        self.dropped.values().for_each(|lost| drawn.dropped.extend(lost));
        drawn.terms = best.len() + drawn.dropped.count(Reason::TermsPastBeam);
        let mut seen = IndexSet::new();
        let named = best.iter().map(|(form, choice)| match terms.named(choice, *form) {
            Ok(n) if !seen.insert((n.form, n.compact.clone())) => Err(Reason::SameTerm),
            named => named,
        });
        let named: Vec<std::result::Result<Named, Reason>> = named.collect();
        let found = on_all_cores(&named, |n| n.as_ref().map_err(|reason| *reason)?.written());
        let found = found.into_iter().filter_map(|f| f.map_err(|r| drawn.dropped.add(r)).ok());
        Ok((found.collect(), drawn))
    }

    /// Returns the choices known for a key so far; a new key is computed from the choices known below it.
    fn best(&mut self, key: Key) -> Choices {
        // A view is nearly free: no other choice can be better, in any context.
        if let Some(view) = self.views.get(&key.0) {
            return view.clone();
        }
        if let Some(entry) = self.known.get_mut(&key) {
            if let Some(user) = self.current {
                entry.users.insert(user);
                if !entry.computed {
                    self.early.insert(user);
                }
            }
            return entry.choices.clone();
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
        let early = std::mem::take(&mut self.early);
        let mut stale: Set<Key> =
            self.known.keys().rev().filter(|key| early.contains(*key)).copied().collect();
        self.settles = true;
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
        self.given = Map::default();
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
        let egraph = self.egraph;
        let mut dropped = Dropped::default();
        let mut before = self.given.swap_remove(&key).unwrap_or_default();
        let mut given: Vec<Option<Given>> = vec![];
        for (place, node) in egraph[class].nodes.iter().enumerate() {
            let lists = self.lists(node, class, at, &mut dropped);
            let before = before.get_mut(place).and_then(Option::take);
            given.push(lists.map(|lists| match before {
                Some((before, own)) if before.are(&lists) => (before, own),
                _ => {
                    let own = self.combine(place, key, &lists);
                    (lists, own)
                }
            }));
        }
        let choices = self.selected(key, &given, dropped);
        if self.settles || self.early.contains(&key) {
            self.given.insert(key, given);
        }
        choices
    }

    /// Returns the choices that are kept of those that the e-nodes of a key give.
    fn selected(&mut self, key: Key, given: &[Option<Given>], mut dropped: Dropped) -> Choices {
        let (class, at) = key;
        let all = || given.iter().flatten().map(|(_, own)| own);
        let most = all().map(|own| own.best.len()).sum();
        let mut best: Map<u64, &Offer> = Map::with_capacity_and_hasher(most, FxBuildHasher);
        for own in all() {
            dropped.extend(&own.dropped);
            for (skeleton, offer) in &own.best {
                match best.entry(*skeleton) {
                    Entry::Occupied(mut known) => {
                        if offer.cost < known.get().cost {
                            known.insert(offer);
                        }
                    }
                    Entry::Vacant(place) => _ = place.insert(offer),
                }
            }
        }
        let keep = self.width(class, at);
        // The additive cost prefers other choices to reductions side by side.
        let (beside, plain): (Vec<_>, Vec<_>) =
            best.values().copied().partition(|offer| is_beside(offer.outline));
        let mut out = kept(plain, keep, self.target.search.blocked_share);
        out.extend(diverse(beside, keep / BESIDE));
        // The best of a part may only occur beside expensive choices of the others. From one occurrence, `joined` learns its
        // share of the time.
        let mut covers: Vec<&(f64, Vec<u64>)> = all().flat_map(|own| &own.covers).collect();
        if !covers.is_empty() {
            let known: Set<u64> = out.iter().map(|c| c.skeleton).collect();
            covers.sort_by(|a, b| a.0.total_cmp(&b.0));
            let covers: Set<u64> = covers.into_iter().flat_map(|(_, of)| of).copied().collect();
            let more = covers.iter().filter(|s| !known.contains(*s)).take(COVER);
            out.extend(more.filter_map(|s| best.get(s)));
        }
        let past =
            if self.roots.contains(&key) { Reason::TermsPastBeam } else { Reason::PartsPastBeam };
        dropped.add_all(past, best.len() - out.len());
        self.dropped.insert(key, dropped);
        out.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        // The choices of one e-node share it.
        let mut shared: Map<usize, (Rc<Node>, Vec<Size>)> = Map::default();
        let choices = out.into_iter().filter_map(|offer| {
            let (lists, _) = given[offer.node].as_ref()?;
            let (node, sizes) = shared.entry(offer.node).or_insert_with(|| {
                let node = &self.egraph[class].nodes[offer.node];
                (Rc::new(node.clone()), sizes_of(self.egraph, node))
            });
            Some(Rc::new(offer.choice(node.clone(), sizes, &lists.of_parts)))
        });
        Rc::new(choices.collect())
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
