//! Contexts: which operators extraction considers at a place in a term, given the operators that enclose it.
//!
//! What is legal is decided by [`Place::enter`]. Of what is legal, contexts leave out what is not worth
//! considering, and what kernel generation cannot do with the memory at hand. The search ([`super::search`])
//! asks [`Context::enter`] and [`Context::holes`] for every e-node.

use crate::calculus::nesting;
use crate::calculus::term::{MapKind, Op, ReduceKind, ScanKind, Space};
use crate::lang::hierarchy::{Place, Rule, Step};

pub use crate::lang::hierarchy::Level;

/// The context of a subterm: everything around it that decides which operators are legal in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Context {
    /// The place in the hierarchy where the subterm runs.
    place: Place,
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
    /// The first state of a group's loop and the elements of its steps, as a pair.
    pub start: bool,
    /// Whether every operator has a default: intermediate arrays may be stored wherever they are made.
    pub total: bool,
}

/// Whether an operator is legal in a context.
pub(super) enum Verdict {
    /// Not legal here, or not considered.
    No,
    /// Legal; the function arguments of the operator run in this context.
    Inside(Context),
}

impl Context {
    /// The context of a whole program.
    pub const PROGRAM: Context = Context {
        place: Place::PROGRAM,
        sink: true,
        placed: false,
        registers: false,
        vector: false,
        tile: false,
        start: false,
        total: false,
    };

    /// The context of a whole program, with or without defaults for every operator.
    pub fn program(total: bool) -> Context {
        Context { total, ..Context::PROGRAM }
    }

    /// The level of the hierarchy at which the subterm runs.
    pub fn level(self) -> Level {
        self.place.level
    }

    /// Returns the same place, for a value that is read again rather than stored.
    #[must_use]
    pub fn intermediate(self) -> Context {
        Context { sink: false, placed: false, start: false, ..self.settled() }
    }

    /// Returns the same place after a computation: no further dimension of a parallel nest may follow.
    #[must_use]
    pub fn settled(self) -> Context {
        Context { place: self.place.settled(), ..self }
    }

    /// Returns the contexts of the components of a pair that is made here.
    pub fn components(self) -> [Context; 2] {
        let here = Context { start: false, ..self.settled() };
        // A group computes the first state of its loop where the state is.
        [Context { sink: self.sink || self.start, ..here }, here]
    }

    /// Returns the place of the argument of a group's loop.
    #[must_use]
    pub fn start_of_loop(self) -> Context {
        Context { start: true, ..self.intermediate() }
    }

    /// Returns the context of one work-item of this place.
    #[must_use]
    pub fn item(self) -> Context {
        Context { place: self.place.item(), placed: false, ..self }
    }

    /// Whether the results of a map over work-items have a destination here: one that the caller chose, or
    /// local memory. The accumulators of a tile need no default: a rule places them in registers.
    fn stores(self) -> bool {
        self.sink || self.placed || (self.total && !(self.tile && self.registers))
    }

    /// Whether the results of a map over work-items may stay in registers of the work-items that compute
    /// them, or go to local memory if registers do not suffice. Code generation decides which.
    pub fn keeps(self) -> bool {
        self.level() == Level::Group && !self.stores() && !self.registers && !self.tile
    }

    /// Returns where the elements of a short array are computed that a work-item keeps in registers, if it may keep one
    /// here.
    pub fn short_array(self) -> Option<Context> {
        let free = !self.sink && !self.total && !self.registers && !self.tile && !self.vector;
        (self.level() == Level::Item && free).then_some(Context { placed: false, ..self.settled() })
    }

    /// Whether operators that no rule lowers have their default here. Outside kernels it is a kernel of its own, or a choice or
    /// loop of the host, and takes no part in the fusion of others.
    fn has_default(self) -> bool {
        matches!(self.level(), Level::Host | Level::Item)
    }

    /// Whether a map over this dimension is considered: a nest goes from the higher dimensions to the lower ones.
    fn descends(self, next_higher: Step) -> bool {
        self.level() == Level::Host || self.place.is_inside(next_higher)
    }

    /// Returns the contexts of the arguments of an operator of tiling; `None` for other operators, and if it
    /// may not run here.
    pub fn holes(self, op: &Op) -> Option<Vec<Context>> {
        let copy = Context { registers: false, ..self.intermediate() };
        let step = Context { registers: true, tile: true, ..self.intermediate() };
        let end = Context { tile: true, ..self.settled() };
        let grouped = matches!(self.level(), Level::Group | Level::Item);
        match op {
            // In a batch, tiles take dimensions 0 and 1.
            Op::Tiled(_) if self.level() == Level::Host || self.place.is_in_batch() => {
                Some(vec![copy, copy, self])
            }
            Op::Blocked(_) if grouped => Some(vec![copy, copy, step, copy.item(), end]),
            // The result of `h` is an intermediate: it passes from one work-item to another.
            Op::Sliced if self.level() == Level::Group => {
                Some(vec![copy.item(), Context { tile: false, ..copy }, self.settled()])
            }
            Op::BlockedRows if grouped => Some(vec![copy, step, copy.item(), end]),
            _ => None,
        }
    }

    /// Returns the place of the arguments of an operator that runs here, or the rule that it breaks.
    fn inside(self, op: &Op) -> Result<Place, Rule> {
        nesting::step(op).map_or(Ok(self.place), |step| self.place.enter(step))
    }

    /// Whether `op` may run here, and where its arguments run. `small` says whether its length can
    /// be unrolled; `array` whether it gives an array, and for a sequential map in a group whether it
    /// is one of rows that no tiling made.
    pub fn enter(self, op: &Op, small: bool, array: bool) -> Verdict {
        use Verdict::{Inside, No};
        let Ok(place) = self.inside(op) else { return No };
        let inside = Context { place: place.settled(), placed: false, start: false, ..self };
        // A kernel has memory for its result, also if another kernel reads it.
        let sink = self.sink || self.level() == Level::Host;
        let dimension = Context { place, sink, placed: false, start: false, ..self };
        match op {
            Op::Map(kind) => match (kind, self.level()) {
                (MapKind::Plain, _) => No,
                (MapKind::Glb(d), _) if self.descends(Step::Glb(*d + 1)) => Inside(dimension),
                (MapKind::Wrg(d), _) if self.descends(Step::Wrg(*d + 1)) => Inside(dimension),
                (MapKind::Lcl(_), Level::Group) if self.stores() || self.keeps() => Inside(inside),
                (MapKind::Warp | MapKind::Lane, _) if self.stores() => Inside(inside),
                (MapKind::Seq, Level::Item) if self.sink || self.total => Inside(inside),
                // A group goes through rows one after the other, and has all its work-items for each.
                (MapKind::Seq, Level::Group) if array && self.sink => Inside(inside),
                // A kernel of one work-item.
                (MapKind::Seq, Level::Host) if self.total => Inside(inside),
                // A work-item has intermediate arrays in registers: the accumulators of a reduction, and the
                // values that are combined with them. Other maps are fused.
                (MapKind::Unroll, Level::Item) if small && (self.sink || self.registers) => {
                    Inside(inside)
                }
                _ => No,
            },
            Op::Reduce(ReduceKind::Seq | ReduceKind::Unroll) => {
                // The operator's result is the accumulator, never the sink itself.
                Inside(Context { registers: array, ..self.item().intermediate() })
            }
            Op::ReduceLcl if !array => Inside(self.item().intermediate()),
            Op::ScanLcl(_) if self.stores() || !(self.registers || self.tile) => {
                Inside(self.item().intermediate())
            }
            Op::ToMem(Space::Local | Space::LocalAhead)
                if !self.sink && !self.registers && !self.placed =>
            {
                Inside(Context { placed: true, ..self })
            }
            // The accumulators of a group are spread over its work-items.
            Op::ToMem(Space::Private)
                if self.level() == Level::Group && self.registers && !self.placed =>
            {
                Inside(Context { placed: true, ..self })
            }
            // A copy between kernels, in an order that the next kernel reads faster.
            Op::ToMem(Space::Global)
                if self.level() == Level::Host && !self.sink && !self.placed && array =>
            {
                Inside(Context { placed: true, ..self })
            }
            // A loop over arrays has no vector form (`calculus::lanes`).
            Op::Fold | Op::While | Op::Histogram | Op::CountingSort | Op::Scatter
                if self.vector =>
            {
                No
            }
            Op::Fold if self.level() == Level::Item => {
                Inside(Context { registers: array, ..self.intermediate() })
            }
            // The state is in local memory, where each step stores the next one.
            Op::Fold | Op::While if self.level() == Level::Group => {
                let free = !self.registers && !self.tile && !self.vector;
                if free { Inside(Context { sink: true, ..inside }) } else { No }
            }
            // The host runs the loop, whose steps are kernels.
            Op::Fold if self.level() == Level::Host => Inside(self.settled()),
            Op::While if self.has_default() => {
                Inside(Context { registers: array, ..self.settled() })
            }
            Op::Spread(_) | Op::SpreadRows if self.level() == Level::Group && self.tile => {
                Inside(self.settled())
            }
            Op::TiledRows => Inside(self),
            Op::Turned if self.level() == Level::Host || self.place.is_in_batch() => Inside(self),
            Op::ToMem(Space::Stream)
                if self.level() == Level::Host && self.sink && !self.placed =>
            {
                Inside(Context { placed: true, ..self })
            }
            Op::Vectorize | Op::Packed | Op::AsVector | Op::AsScalar if self.vector => No,
            Op::Vectorize => Inside(Context { vector: true, ..self.item().intermediate() }),
            // All work-items of a group take the same branch, which may have barriers.
            Op::Cond
                if matches!(self.level(), Level::Item | Level::Group)
                    && (!array || self.stores()) =>
            {
                Inside(self)
            }
            Op::Cond if self.has_default() => Inside(self),
            // The bins are in local memory.
            Op::Histogram if self.level() == Level::Group && !self.registers && !self.tile => {
                Inside(self.item().intermediate())
            }
            // The array is in local memory, too; a loop that updates its state changes it where it is.
            Op::Scatter | Op::CountingSort
                if self.level() == Level::Group && !self.registers && !self.tile =>
            {
                Inside(self)
            }
            // Sequential in one work-item; at host level, in a kernel of one work-item.
            Op::Scan(ScanKind::Seq | ScanKind::Exclusive) | Op::Histogram if self.has_default() => {
                Inside(Context { registers: array, ..self.item().intermediate() })
            }
            // Two kernels: the first computes the total of each part, the second scans each part, starting
            // from the total of the parts before it.
            Op::Scan(ScanKind::Assoc) if self.level() == Level::Host => {
                Inside(self.item().intermediate())
            }
            Op::Scatter | Op::CountingSort if self.has_default() => Inside(self),
            Op::SumProducts if self.level() == Level::Item && self.registers => Inside(inside),
            Op::Scalar(f) if self.vector && f.body.has_loop() => No,
            Op::Scalar(_) => Inside(self),
            Op::Chunked | Op::Packed => Inside(self),
            // The arguments of these run in different contexts: see `holes`.
            Op::Tiled(_) | Op::Blocked(_) | Op::BlockedRows | Op::Sliced => No,
            Op::Fold
            | Op::While
            | Op::Spread(_)
            | Op::SpreadRows
            | Op::SumProducts
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
            | Op::CountingSort
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
mod tests;
