//! Which choices of its parts an e-node may combine in a context.

use super::choice::can_turn;
use super::{Choices, Key, Known, Lists, Search, sizes_of};
use crate::calculus::size::{Size, Sym};
use crate::calculus::term::{MapKind, Op, ReduceKind, Space};
use crate::calculus::ty::Ty;
use crate::extract::context::{Context, Level, Verdict};
use crate::extract::{Dropped, Reason};
use crate::rules::can_unroll;
use crate::saturate::{Data, Node};
use egg::Id;
use std::rc::Rc;

/// A group runs a loop whose state is at most this many times as long as its local memory.
const LONG_STATE: f64 = 64.0;

/// Most bytes of an array that a work-item keeps in registers for a reader that reads it twice.
const SHORT: f64 = 128.0;

impl Search<'_> {
    /// Returns the parts of a composition or of a pair of functions, with their contexts.
    pub(super) fn parts(&mut self, node: &Node, args: &[Id], at: Context) -> Vec<Key> {
        let (outer, inner) = match args {
            [outer, inner] if node.function() == Some(&Op::Compose) => (*outer, *inner),
            _ => return args.iter().copied().zip(at.components()).collect(),
        };
        // Only views may stand between the dimensions of a nest of parallel maps.
        let is_view = |a: Id| self.views.contains_key(&a);
        let at = if is_view(outer) || is_view(inner) { at } else { at.settled() };
        // The outer part reads an intermediate, unless it is an invertible view: then the inner part
        // stores through the view into the destination of the whole.
        let turned = self.views.get(&outer).is_some_and(|v| can_turn(&v[0]));
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

    /// Whether a work-item may keep an array of this type in registers.
    pub(super) fn is_short(&self, t: &Ty) -> bool {
        let known = |n: &Size| n.factors().all(|(s, _)| !s.is_chosen());
        t.components().iter().all(|(lengths, _)| lengths.iter().all(known))
            && self.target.least_bytes(t, self.sizes.dims) <= SHORT
    }

    /// Most bytes of the state of a loop, which a scatter may update, or of the bins of a histogram, in a group.
    pub(super) fn most_state(&self, op: &Op) -> f64 {
        match op {
            Op::Fold | Op::While | Op::Scatter => LONG_STATE * self.target.local_bytes(),
            _ => self.target.local_bytes(),
        }
    }

    /// Whether a class is a loop over a state of arrays.
    pub(super) fn is_loop_over_arrays(&self, class: Id) -> bool {
        let class = &self.egraph[class];
        let has_array = matches!(&class.data, Data::Fn(t, _) if t.cod.has_array());
        has_array && class.nodes.iter().any(|n| matches!(n.function(), Some(Op::Fold | Op::While)))
    }

    /// Whether a class is a histogram or a counting sort.
    pub(super) fn is_bucketed(&self, class: Id) -> bool {
        let bucketed = |n: &Node| matches!(n.function(), Some(Op::Histogram | Op::CountingSort));
        self.egraph[class].nodes.iter().any(bucketed)
    }

    /// Whether a class maps scalar functions over an array of scalars, as lowering computes where elements are read.
    pub(super) fn is_elementwise(&mut self, class: Id, depth: usize) -> bool {
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
    pub(super) fn lists(
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
                Some(holes) => self.all(args.iter().copied().zip(holes).collect())?,
                None => return None,
            },
            Op::Compose | Op::Fork | Op::Bimap => {
                let parts = self.parts(node, &args, at);
                self.all(parts)?
            }
            Op::Cond if at.total || at.level() == Level::Host => match at.enter(op, true, true) {
                Verdict::No => return None,
                Verdict::Inside(at) => {
                    let branch = at.settled();
                    let places = [at.intermediate(), branch, branch];
                    self.all(args.iter().copied().zip(places).collect())?
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
                match state {
                    None => self.all(args.iter().map(|a| (*a, inner)).collect())?,
                    // The steps of a work-item's loop update registers, or make a short array, which becomes the state.
                    Some(state) => {
                        let mut of_parts = vec![];
                        for a in args {
                            let mut list = self.best((a, inner));
                            let more = self.best((a, state));
                            Rc::make_mut(&mut list).extend(more.iter().cloned());
                            if list.is_empty() {
                                return None;
                            }
                            of_parts.push(list);
                        }
                        of_parts
                    }
                }
            }
        };
        Some(Lists { of_parts, short: short.is_some(), short_state: state.is_some() })
    }

    /// Returns the choices for all of these keys; `None` if one has none. Then those behind it are not computed: an e-node of
    /// which a part has no choices has none, whatever the choices for its other parts are.
    fn all(&mut self, keys: Vec<Key>) -> Option<Vec<Choices>> {
        if let Some(empty) = keys.iter().find(|key| self.has_none(key)) {
            self.best(*empty);
            return None;
        }
        let mut all = Vec::with_capacity(keys.len());
        for key in keys {
            let choices = self.best(key);
            if choices.is_empty() {
                return None;
            }
            all.push(choices);
        }
        Some(all)
    }

    /// Whether a key is known to have no choices.
    fn has_none(&self, key: &Key) -> bool {
        let none = |known: &Known| known.computed && known.choices.is_empty();
        !self.views.contains_key(&key.0) && self.known.get(key).is_some_and(none)
    }
}
