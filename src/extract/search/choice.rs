//! Choices: e-nodes with chosen arguments, and which of them a beam keeps.

use super::Choices;
use crate::calculus::size::Size;
use crate::calculus::term::{MapKind, Op, Shares, Space};
use crate::extract::context::{Context, Level};
use crate::extract::cost;
use crate::saturate::Node;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// A chosen e-node with chosen arguments.
#[derive(Clone)]
pub(super) struct Choice {
    pub(super) node: Rc<Node>,
    pub(super) args: Vec<Rc<Choice>>,
    pub(super) cost: f64,
    /// Hash of the compute operators with their sizes; views are left out, and 0 stands for a term of views
    /// alone.
    pub(super) skeleton: u64,
    pub(super) outline: Outline,
    /// Whether the term contains a reduction.
    pub(super) reduces: bool,
    /// Whether the term contains a loop.
    pub(super) loops: bool,
    /// How often the term reads its argument: not at all (0), once, or more often (2).
    pub(super) reads: u8,
    /// Whether the term only maps and its result stays with the work-items that compute it.
    pub(super) kept: bool,
    /// How the outermost stage is shared out to work-items, as a hash.
    pub(super) form: Option<u64>,
}

/// A combination of choices for the parts of an e-node. Most are not kept, so a choice is only made of those that are.
#[derive(Clone, Copy)]
pub(super) struct Offer {
    /// The place of the e-node in its class.
    pub(super) node: usize,
    /// The number of the combination: see [`parts`].
    pub(super) number: usize,
    pub(super) cost: f64,
    pub(super) skeleton: u64,
    pub(super) outline: Outline,
    pub(super) reduces: bool,
    pub(super) loops: bool,
    pub(super) kept: bool,
}

impl Offer {
    /// Makes the choice of an offer of an e-node, from the choices for its parts.
    pub(super) fn choice(&self, node: Rc<Node>, sizes: &[Size], lists: &[Choices]) -> Choice {
        let args: Vec<Rc<Choice>> = parts(lists, self.number).into_iter().cloned().collect();
        let op = node.function();
        let form = op.and_then(|op| shared_form(op, sizes, &args));
        let reads = reads(op, &args);
        let Offer { cost, skeleton, outline, reduces, loops, kept, .. } = *self;
        Choice { node, args, cost, skeleton, outline, reduces, loops, reads, kept, form }
    }
}

/// Returns the combination of elements of lists with a number: the places in the lists are its digits in mixed radix, of which the
/// first varies fastest.
pub(super) fn parts(lists: &[Choices], number: usize) -> Vec<&Rc<Choice>> {
    let mut rest = number;
    let mut chosen = Vec::with_capacity(lists.len());
    for list in lists {
        chosen.push(&list[rest % list.len()]);
        rest /= list.len();
    }
    chosen
}

/// Returns the number of the combination with these places: see [`parts`].
pub(super) fn number_of(
    lists: &[Choices],
    places: impl DoubleEndedIterator<Item = usize> + ExactSizeIterator,
) -> usize {
    lists.iter().zip(places).rev().fold(0, |rest, (list, place)| rest * list.len() + place)
}

impl Choice {
    /// Whether the outermost operator, views aside, is a parallel map of dimension `d`.
    pub(super) fn spreads(&self, d: u8) -> bool {
        match self.node.function() {
            Some(Op::Map(MapKind::Glb(e) | MapKind::Wrg(e))) => *e == d,
            Some(Op::Compose) => self.args.iter().any(|a| a.spreads(d)),
            Some(Op::Tiled(_)) => self.args[2].spreads(d),
            Some(Op::Turned) => self.args[0].spreads(d),
            _ => false,
        }
    }

    /// A view or a constant: nearly free, and no part of the skeleton.
    pub(super) fn view(node: &Node, args: Vec<Rc<Choice>>) -> Choice {
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

/// A coarse summary of a skeleton. The beam keeps a few choices of every outline, however expensive they
/// look, because the additive cost does not see reuse, coalescing or latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Outline {
    /// A set of bits: which mappings occur (work-items, groups, local items, vectors, register arrays),
    /// whether the term transposes, which operands are staged (or loaded ahead) or packed, and whether the
    /// term has accumulators of a tile, shares a tile out to work-items, has slices, stores past the caches, or
    /// has several reductions side by side.
    pub(super) features: u32,
    /// Number of launches, at most 3.
    pub(super) kernels: u8,
}

impl Outline {
    pub(super) fn of(op: &Op, at: Context, chosen: &[&Rc<Choice>]) -> Outline {
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
                let plain = |c: &&Rc<Choice>| c.reduces && c.loops && c.outline.features & 16 == 0;
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
pub(super) const BLOCKED: u32 = 512;

/// The feature bit of a term that shares a tile out as matrix instructions do.
pub(super) const FRAGMENTS: u32 = 131_072;

/// The feature bit of a term that computes several reductions in one loop.
pub(super) const SIDE_BY_SIDE: u32 = 65536;

/// Returns the `keep` best offers by outline. `share` of them are tiles with accumulators if there are enough
/// of those; see [`crate::device::cost_model::Search::blocked_share`].
pub(super) fn kept(all: Vec<&Offer>, keep: usize, share: f64) -> Vec<&Offer> {
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

/// Returns `keep` offers: the best of every outline first, then the second best of every outline, and so on.
pub(super) fn diverse(mut all: Vec<&Offer>, keep: usize) -> Vec<&Offer> {
    all.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    if all.len() <= keep {
        return all;
    }
    let mut rank: FxHashMap<Outline, usize> = FxHashMap::default();
    let mut ranked: Vec<(usize, &Offer)> = all
        .into_iter()
        .map(|c| {
            let r = rank.entry(c.outline).or_insert(0);
            *r += 1;
            (*r, c)
        })
        .collect();
    ranked.sort_by_key(|(r, _)| *r);
    ranked.truncate(keep);
    let mut out: Vec<&Offer> = ranked.into_iter().map(|(_, c)| c).collect();
    out.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    out
}

/// Whether a term has reductions side by side.
pub(super) fn is_beside(outline: Outline) -> bool {
    outline.features & SIDE_BY_SIDE != 0
}

/// Returns how often a term reads its argument; 2 means more than once.
pub(super) fn reads(op: Option<&Op>, args: &[Rc<Choice>]) -> u8 {
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

/// Whether a chosen view can be stored through.
pub(super) fn can_turn(c: &Choice) -> bool {
    c.node.function().is_some_and(Op::is_invertible) && c.args.iter().all(|a| can_turn(a))
}
