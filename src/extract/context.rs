//! Contexts: which operators are legal at a place in a term, given the operators that enclose it.
//!
//! The search ([`super::search`]) asks [`Context::enter`] and [`Context::holes`] for every e-node.

use crate::calculus::term::{MapKind, Op, ReduceKind, ScanKind, Space};

/// The level of the device's hierarchy at which a term runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Outside any kernel: a chain of stages, each a kernel.
    Host,
    /// In a work-group, outside its work-items.
    Group,
    /// In a warp of a work-group, outside its lanes.
    Warp,
    /// In one work-item.
    Item,
}

/// The context of a subterm: everything around it that decides which operators are legal in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Context {
    /// The level of the hierarchy at which the subterm runs.
    pub level: Level,
    /// Dimensions already used on the path from the root: bits 0 to 2 for work-groups, 3 to 5 for local and 6
    /// to 8 for global work-items. Warps and lanes need no bits: each has a level of its own.
    used: u16,
    /// The result goes to memory that the caller chose (and not to an intermediate array).
    pub sink: bool,
    /// The caller has chosen the address space.
    placed: bool,
    /// Inside the operator of a reduction into an array of registers.
    pub registers: bool,
    /// Inside a vectorised function, where every lane does the same.
    pub vector: bool,
    /// Inside a step that updates the accumulators of a tile.
    pub tile: bool,
    /// Directly inside a parallel map, so that a parallel map of another dimension may follow.
    nest: bool,
    /// Whether every operator has a default: intermediate arrays may be stored wherever they are made.
    pub total: bool,
}

/// Whether an operator is legal in a context.
pub(super) enum Verdict {
    /// Not legal here.
    No,
    /// Legal; the function arguments of the operator run in this context.
    Inside(Context),
}

fn bit(base: u16, d: u8) -> u16 {
    1 << (base + u16::from(d))
}

impl Context {
    /// The context of a whole program.
    pub const PROGRAM: Context = Context {
        level: Level::Host,
        used: 0,
        sink: true,
        placed: false,
        registers: false,
        vector: false,
        tile: false,
        nest: false,
        total: false,
    };

    /// The context of a whole program, with or without defaults for every operator.
    pub fn program(total: bool) -> Context {
        Context { total, ..Context::PROGRAM }
    }

    /// Returns the same place, for a value that is read again rather than stored.
    #[must_use]
    pub fn intermediate(self) -> Context {
        Context { sink: false, placed: false, nest: false, ..self }
    }

    /// Returns the same place after a computation: no further dimension of a parallel nest may follow.
    #[must_use]
    pub fn settled(self) -> Context {
        Context { nest: false, ..self }
    }

    /// Returns the context of one work-item of this place.
    #[must_use]
    pub fn item(self) -> Context {
        Context { level: Level::Item, placed: false, nest: false, ..self }
    }

    /// Whether the place is directly inside a parallel map of dimension 2 (a batch), so that tiles may take
    /// dimensions 0 and 1.
    fn in_batch(self) -> bool {
        self.nest && [bit(0, 2), bit(6, 2)].contains(&self.used)
    }

    /// Whether the results of a map over work-items have a destination here: one that the caller chose, or
    /// local memory.
    fn stores(self) -> bool {
        self.sink || self.placed || self.total
    }

    /// Whether the results of a map over work-items may stay in registers of the work-items that compute
    /// them, or go to local memory if registers do not suffice. Code generation decides which.
    pub fn keeps(self) -> bool {
        self.level == Level::Group && !self.stores() && !self.registers && !self.tile
    }

    /// Returns where the elements of a short array are computed that a work-item keeps in registers, if it may keep one
    /// here.
    pub fn short_array(self) -> Option<Context> {
        let free = !self.sink && !self.total && !self.registers && !self.tile && !self.vector;
        (self.level == Level::Item && free).then_some(Context {
            placed: false,
            nest: false,
            ..self
        })
    }

    /// Whether operators that no rule lowers have their default here. Outside kernels it is a kernel of its own, or a choice or
    /// loop of the host, and takes no part in the fusion of others.
    fn has_default(self) -> bool {
        self.level == Level::Host || (self.total && self.level == Level::Item)
    }

    fn may_spread(self, inside: Level, base: u16, d: u8) -> bool {
        // A nest of parallel maps goes from the higher dimensions to the lower ones.
        let nested = self.nest && self.level == inside && self.used & bit(base, d + 1) != 0;
        (self.level == Level::Host || nested) && self.used & bit(base, d) == 0
    }

    /// Returns the contexts of the arguments of an operator of tiling; `None` for other operators, and if it
    /// may not run here.
    pub fn holes(self, op: &Op) -> Option<Vec<Context>> {
        let copy = Context { registers: false, ..self.intermediate() };
        let step = Context { registers: true, tile: true, ..self.intermediate() };
        let end = Context { tile: true, ..self.settled() };
        let grouped = matches!(self.level, Level::Group | Level::Item);
        match op {
            Op::Tiled(_) if self.level == Level::Host || self.in_batch() => {
                Some(vec![copy, copy, self])
            }
            Op::Blocked(_) if grouped => Some(vec![copy, copy, step, copy.item(), end]),
            // The result of `h` is an intermediate: it passes from one work-item to another.
            Op::Sliced if self.level == Level::Group => {
                Some(vec![copy.item(), Context { tile: false, ..copy }, self.settled()])
            }
            Op::BlockedRows if grouped => Some(vec![copy, step, copy.item(), end]),
            _ => None,
        }
    }

    /// Whether `op` may run here, and where its arguments run. `small` says whether its length can
    /// be unrolled; `array` whether it gives an array.
    pub fn enter(self, op: &Op, small: bool, array: bool) -> Verdict {
        use Verdict::{Inside, No};
        let inside =
            |level, used| Inside(Context { level, used, placed: false, nest: false, ..self });
        // A kernel has memory for its result, also if another kernel reads it.
        let sink = self.sink || self.level == Level::Host;
        let dimension =
            |level, used| Inside(Context { level, used, sink, placed: false, nest: true, ..self });
        match op {
            Op::Map(kind) => match (kind, self.level) {
                (MapKind::Plain, _) => No,
                (MapKind::Glb(d), _) if self.may_spread(Level::Item, 6, *d) => {
                    dimension(Level::Item, self.used | bit(6, *d))
                }
                (MapKind::Wrg(d), _) if self.may_spread(Level::Group, 0, *d) => {
                    dimension(Level::Group, self.used | bit(0, *d))
                }
                (MapKind::Lcl(d), Level::Group)
                    if self.used & bit(3, *d) == 0 && (self.stores() || self.keeps()) =>
                {
                    inside(Level::Item, self.used | bit(3, *d))
                }
                (MapKind::Warp, Level::Group) if self.stores() => inside(Level::Warp, self.used),
                (MapKind::Lane, Level::Warp) if self.stores() => inside(Level::Item, self.used),
                (MapKind::Seq, Level::Item) if self.sink || self.total => {
                    inside(Level::Item, self.used)
                }
                // A kernel of one work-item.
                (MapKind::Seq, Level::Host) if self.total => inside(Level::Item, self.used),
                // A work-item has intermediate arrays in registers: the accumulators of a reduction, and the
                // values that are combined with them. Other maps are fused.
                (MapKind::Unroll, Level::Item) if small && (self.sink || self.registers) => {
                    Inside(Context { placed: false, nest: false, ..self })
                }
                _ => No,
            },
            Op::Reduce(ReduceKind::Seq | ReduceKind::Unroll) => {
                // The operator's result is the accumulator, never the sink itself.
                Inside(Context { registers: array, ..self.item().intermediate() })
            }
            Op::ReduceLcl if self.level == Level::Group && !array => {
                Inside(self.item().intermediate())
            }
            Op::ScanLcl(_) if self.level == Level::Group && self.stores() => {
                Inside(self.item().intermediate())
            }
            Op::ToMem(Space::Local | Space::LocalAhead)
                if matches!(self.level, Level::Group | Level::Warp)
                    && !self.sink
                    && !self.registers
                    && !self.placed =>
            {
                Inside(Context { placed: true, ..self })
            }
            // The accumulators of a group are spread over its work-items.
            Op::ToMem(Space::Private)
                if self.level == Level::Group && self.registers && !self.placed =>
            {
                Inside(Context { placed: true, ..self })
            }
            // A copy between kernels, in an order that the next kernel reads faster.
            Op::ToMem(Space::Global)
                if self.level == Level::Host && !self.sink && !self.placed && array =>
            {
                Inside(Context { placed: true, ..self })
            }
            // A loop over arrays has no vector form (`calculus::lanes`).
            Op::Fold | Op::While | Op::Histogram | Op::Scatter if self.vector => No,
            Op::Fold if self.level == Level::Item => {
                Inside(Context { registers: array, ..self.intermediate() })
            }
            // The host runs the loop, whose steps are kernels.
            Op::Fold if self.level == Level::Host => Inside(self.settled()),
            Op::While if self.has_default() => {
                Inside(Context { registers: array, ..self.settled() })
            }
            Op::Spread(_) | Op::SpreadRows if self.level == Level::Group && self.tile => {
                Inside(self.settled())
            }
            Op::TiledRows => Inside(self),
            Op::Turned if self.level == Level::Host || self.in_batch() => Inside(self),
            Op::ToMem(Space::Stream) if self.level == Level::Host && self.sink && !self.placed => {
                Inside(Context { placed: true, ..self })
            }
            Op::Vectorize | Op::Packed | Op::AsVector | Op::AsScalar if self.vector => No,
            Op::Vectorize => Inside(Context { vector: true, ..self.item().intermediate() }),
            // All work-items of a group take the same branch, which may have barriers.
            Op::Cond
                if matches!(self.level, Level::Item | Level::Group)
                    && (!array || self.stores()) =>
            {
                Inside(self)
            }
            Op::Cond if self.has_default() => Inside(self),
            // Sequential in one work-item; at host level, in a kernel of one work-item.
            Op::Scan(ScanKind::Seq | ScanKind::Exclusive) | Op::Histogram if self.has_default() => {
                Inside(Context { registers: array, ..self.item().intermediate() })
            }
            // Two kernels: the first computes the total of each part, the second scans each part, starting
            // from the total of the parts before it.
            Op::Scan(ScanKind::Assoc) if self.level == Level::Host => {
                Inside(self.item().intermediate())
            }
            Op::Scatter if self.has_default() => Inside(self),
            Op::Scalar(f) if self.vector && f.body.has_loop() => No,
            Op::Scalar(_) => Inside(self),
            Op::Chunked | Op::Packed => Inside(self),
            // The arguments of these run in different contexts: see `holes`.
            Op::Tiled(_) | Op::Blocked(_) | Op::BlockedRows | Op::Sliced => No,
            Op::Fold
            | Op::While
            | Op::Spread(_)
            | Op::SpreadRows
            | Op::Turned
            | Op::ToMem(_)
            | Op::Cond
            | Op::Reduce(ReduceKind::Assoc | ReduceKind::Comm)
            | Op::ReducePart
            | Op::ReduceLcl
            | Op::Scan(_)
            | Op::ScanLcl(_)
            | Op::Scatter
            | Op::Histogram
            | Op::Reorder
            | Op::Compose
            | Op::Fork
            | Op::Bimap
            | Op::Meta(_) => No,
            // A view runs nowhere. Its only possible argument, a padding value, is a scalar.
            _ => Inside(self.item().intermediate()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside(path: &[Op]) -> Option<Context> {
        path.iter().try_fold(Context::PROGRAM, |at, op| match at.enter(op, true, true) {
            Verdict::Inside(c) => Some(c),
            Verdict::No => None,
        })
    }

    #[test]
    fn tiles_stand_alone_or_directly_in_a_batch() {
        let map = |k| Op::Map(k);
        let tiles =
            |path: &[Op]| inside(path).is_some_and(|at| at.holes(&Op::Tiled(false)).is_some());
        assert!(tiles(&[]));
        assert!(tiles(&[map(MapKind::Wrg(2))]) && tiles(&[map(MapKind::Glb(2))]));
        // The tiles need the other two dimensions, and no computation may stand between the batch and the
        // tiles.
        assert!(!tiles(&[map(MapKind::Wrg(1))]) && !tiles(&[map(MapKind::Glb(0))]));
        assert!(!tiles(&[map(MapKind::Wrg(2)), map(MapKind::Wrg(1))]));
        assert!(!tiles(&[map(MapKind::Wrg(2)), Op::Reduce(ReduceKind::Seq)]));
        let batch = inside(&[map(MapKind::Wrg(2))]).expect("a batch of groups");
        assert!(batch.settled().holes(&Op::Tiled(true)).is_none());
    }

    #[test]
    fn kernels_before_others_store_their_results() {
        let map = |k| Op::Map(k);
        let first = |ops: &[Op]| {
            let before = Context::PROGRAM.intermediate();
            ops.iter().try_fold(before, |at, op| match at.enter(op, true, true) {
                Verdict::Inside(c) => Some(c),
                Verdict::No => None,
            })
        };
        for path in [
            &[map(MapKind::Glb(0)), map(MapKind::Seq)][..],
            &[map(MapKind::Wrg(1)), map(MapKind::Wrg(0)), map(MapKind::Lcl(0))],
        ] {
            let at = first(path).expect("the nesting is legal");
            assert!(at.sink, "{path:?}");
        }
        // Inside a kernel, an intermediate value has no memory of its own.
        let group = first(&[map(MapKind::Wrg(0))]).expect("the nesting is legal").intermediate();
        assert!(!group.sink && group.keeps());
    }

    #[test]
    fn warps_hold_lanes_and_groups_hold_warps() {
        let map = |k| Op::Map(k);
        let (wrg, lcl, glb) = (map(MapKind::Wrg(0)), map(MapKind::Lcl(0)), map(MapKind::Glb(0)));
        let (warp, lane, seq) = (map(MapKind::Warp), map(MapKind::Lane), map(MapKind::Seq));
        let path = |ops: &[&Op]| inside(&ops.iter().map(|o| (*o).clone()).collect::<Vec<_>>());
        assert_eq!(path(&[&wrg, &warp]).expect("the nesting is legal").level, Level::Warp);
        assert_eq!(
            path(&[&wrg, &warp, &lane, &seq]).expect("the nesting is legal").level,
            Level::Item
        );
        for wrong in [
            &[&warp][..],
            &[&lane],
            &[&glb, &warp],
            &[&wrg, &lane],
            &[&wrg, &lcl, &warp],
            &[&wrg, &lcl, &lane],
            &[&wrg, &warp, &warp],
            &[&wrg, &warp, &lcl],
            &[&wrg, &warp, &seq],
            &[&wrg, &warp, &lane, &lane],
            &[&wrg, &warp, &lane, &lcl],
            &[&wrg, &warp, &map(MapKind::Wrg(1))],
        ] {
            assert!(path(wrong).is_none(), "{wrong:?}");
        }
        // Lanes pass values to each other through local memory.
        let warp = path(&[&wrg, &warp]).expect("the nesting is legal").intermediate();
        assert!(matches!(warp.enter(&lane, true, true), Verdict::No));
        let Verdict::Inside(local) = warp.enter(&Op::ToMem(Space::Local), true, true) else {
            panic!("no local memory in a warp");
        };
        assert!(matches!(local.enter(&lane, true, true), Verdict::Inside(_)));
    }
}
