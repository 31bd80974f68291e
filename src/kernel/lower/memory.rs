//! Memory for intermediate results: registers, arrays of a work-item or a group, global
//! temporaries, and private memory spread over the work-items of a group.

use super::dest::Dest;
use super::leaf::Emit;
use super::lowerer::{Context, Lowerer};
use super::view::{Shape, Slot, Step, Stop, View, stop};
use crate::calculus::term::{MapKind, Op, Space, Term};
use crate::diag::Code;
use crate::kernel::analysis::hazard::Owned;
use crate::kernel::ir::index::Index;
use crate::kernel::ir::{Buffer, BufferRole, ElemTy, Mem, MemArray, Reg};
use crate::lang::types::ScalarType;

/// Maximum number of scalars that a work-item keeps in private memory.
const PRIVATE: i64 = 1024;

/// Maximum number of scalars of a group's array that each work-item keeps in registers: half of
/// what a work-item of a GPU holds without spilling.
const KEPT: i64 = 64;

/// Memory of an intermediate result.
#[derive(Clone)]
pub struct Storage {
    /// Reads the result.
    pub view: View,
    /// Writes the result.
    pub dest: Dest,
    /// The registers and memories of the result.
    pub owned: Owned,
}

impl Lowerer {
    /// Allocates memory for an intermediate result, in the given space or in the default space of
    /// the context.
    pub fn allocate(&mut self, shape: &Shape, space: Option<Space>) -> Step<Storage> {
        let default = match self.context {
            Context::Host => Space::Global,
            // The other lanes of a warp must see the result that one lane computes.
            Context::Warp => Space::Local,
            _ if shape.is_element() => Space::Private,
            // Each group has a part of a buffer for what is longer than its memory.
            Context::Group if !self.fits_locally(shape) => Space::Global,
            Context::Group => Space::Local,
            Context::Item | Context::Nest => Space::Private,
        };
        // Unrolled loops around the allocation keep all copies alive at the same time.
        let scalars = shape.scalars().saturating_mul(self.copies);
        // An array of one scalar has no index that could vary.
        let single = shape.components().iter().all(|(t, n)| t.width == 1 && *n == 1);
        let small = single
            || (scalars <= i64::try_from(self.options.private_elements).unwrap_or(0)
                && shape.longest() <= i64::try_from(self.options.unroll).unwrap_or(0));
        let mut space = space.unwrap_or(default);
        match space {
            Space::Stream => space = Space::Global,
            // No next block is loaded here.
            Space::LocalAhead => space = Space::Local,
            Space::Global | Space::Local | Space::Private => {}
        }
        // Long arrays do not fit into private memory: each work-item gets a part of a buffer.
        let long = self.context == Context::Item && shape.scalars() > PRIVATE;
        if space == Space::Private && !small && (self.kernel.single || long) {
            space = Space::Global;
        }
        match (space, self.context) {
            (Space::Private, Context::Item | Context::Group) if small => {
                let mut regs = vec![];
                self.declare_all(shape, &mut regs)?;
                Ok(Storage {
                    view: View::of_regs(shape, &regs)?,
                    dest: Dest::of_regs(shape, &regs)?,
                    owned: Owned::regs(&regs),
                })
            }
            (Space::Private, Context::Warp) => {
                stop(Code::IllNested, "`toPrivate` in a warp outside its lanes: use `toLocal`")
            }
            (Space::Local, Context::Item) if self.kernel.single => {
                self.allocate(shape, Some(Space::Private))
            }
            (Space::Local, Context::Item) => stop(
                Code::IllNested,
                "`toLocal` inside a single work-item: local memory belongs to a work-group",
            ),
            _ => {
                let mut slots = vec![];
                for (t, n) in shape.components() {
                    let len = n.saturating_mul(i64::try_from(t.width).unwrap_or(i64::MAX));
                    let (slice, slices) = self.slice(space);
                    let whole = len.saturating_mul(slices);
                    let mem = self.array(space, t, usize::try_from(whole).unwrap_or(usize::MAX));
                    // Neighbouring work-items of a GPU access neighbouring memory at the same time.
                    let apart = space == Space::Global
                        && self.context == Context::Item
                        && self.options.device.shares_local_memory();
                    slots.push(match apart {
                        true => {
                            let width = i64::try_from(t.width).unwrap_or(1);
                            Slot { mem, index: slice.times(width), step: slices }
                        }
                        false => Slot::new(mem, slice.times(len)),
                    });
                }
                Ok(Storage {
                    view: View::of_slots(shape, &slots)?,
                    dest: Dest::of_slots(shape, &slots)?,
                    owned: Owned::mems(slots.iter().map(|s| s.mem)),
                })
            }
        }
    }

    /// Allocates an array of `n` words of each work-item in memory. If loops that go through it are unrolled, a compiler keeps
    /// it in registers.
    pub fn array_of_items(&mut self, n: i64) -> Step<Storage> {
        let shape = Shape::Array(n, Box::new(Shape::Elem(ElemTy::scalar(ScalarType::U32))));
        let len = usize::try_from(n).unwrap_or(usize::MAX);
        let mem = self.array(Space::Private, ElemTy::scalar(ScalarType::U32), len);
        let slots = [Slot::new(mem, Index::from(0))];
        Ok(Storage {
            view: View::of_slots(&shape, &slots)?,
            dest: Dest::of_slots(&shape, &slots)?,
            owned: Owned::mems([mem].into_iter()),
        })
    }

    /// Whether local memory, empty, has room for a value of this shape.
    pub fn fits_locally(&self, shape: &Shape) -> bool {
        self.fits_beside(0, shape)
    }

    /// Whether local memory, of which so many bytes are used, has room for a value of this shape.
    pub fn fits_beside(&self, used: usize, shape: &Shape) -> bool {
        let bytes = shape.components().iter().fold(0i64, |sum, (t, n)| {
            let each = i64::try_from(t.bytes()).unwrap_or(i64::MAX);
            sum.saturating_add(each.saturating_mul(*n))
        });
        let all = usize::try_from(bytes).ok().and_then(|b| b.checked_add(used));
        all.is_some_and(|b| b <= self.options.device.local_mem_bytes)
    }

    /// Returns the index of the current owner's slice, and the number of slices. Global memory has
    /// one slice for each worker of the kernel, local memory has one for each warp.
    fn slice(&self, space: Space) -> (Index, i64) {
        let owners = match (space, self.context) {
            (Space::Global | Space::Stream, _) => &self.kernel.workers[..],
            (Space::Local, Context::Warp) => match self.kernel.workers.last() {
                Some(warp) => std::slice::from_ref(warp),
                None => &[],
            },
            (Space::Local | Space::LocalAhead | Space::Private, _) => &[],
        };
        owners.iter().fold((Index::from(0), 1), |(i, n), v| {
            let count = v.hi + 1;
            (i.times(count).add(&Index::from(v.clone())), n.saturating_mul(count))
        })
    }

    fn array(&mut self, space: Space, t: ElemTy, len: usize) -> Mem {
        let (_, name) = match space {
            Space::Global | Space::Stream => self.host_names.name("temp"),
            Space::Local | Space::LocalAhead => self.fresh("tile"),
            Space::Private => self.fresh("own"),
        };
        let a = MemArray { name, scalar: t.scalar, len, ahead: 0, pieces: 0 };
        match space {
            Space::Global | Space::Stream => {
                self.program.buffers.push(Buffer { array: a, role: BufferRole::Temp });
                Mem::Global(self.program.buffers.len() - 1)
            }
            Space::Local | Space::LocalAhead => {
                self.kernel.locals.push(a);
                Mem::Local(self.kernel.locals.len() - 1)
            }
            Space::Private => {
                self.kernel.privates.push(a);
                Mem::Private(self.kernel.privates.len() - 1)
            }
        }
    }

    /// Declares a register for each scalar or vector of the shape.
    fn declare_all(&mut self, shape: &Shape, regs: &mut Vec<Reg>) -> Step<()> {
        match shape {
            Shape::Unit => Ok(()),
            Shape::Elem(t) => {
                regs.push(self.declare(*t, None)?);
                Ok(())
            }
            Shape::Pair(a, b) => {
                self.declare_all(a, regs)?;
                self.declare_all(b, regs)
            }
            Shape::Array(n, t) => (0..t.room(*n)).try_for_each(|_| self.declare_all(t, regs)),
        }
    }

    /// Returns the dimensions over which nested `mapLcl`s spread the levels of an array; `None`
    /// stands for a `mapLane`.
    pub fn levels(t: &Term) -> Vec<Option<u8>> {
        match t.op() {
            Op::ToMem(_) => Lowerer::levels(&t.args()[0]),
            Op::Compose => t.chain().first().map_or(vec![], Lowerer::levels),
            Op::Map(MapKind::Lcl(d)) => {
                let mut out = vec![Some(*d)];
                out.extend(Lowerer::levels(&t.args()[0]));
                out
            }
            Op::Map(MapKind::Lane) => vec![None],
            _ => vec![],
        }
    }

    /// Returns registers for the result of a map over the work-items of a group, if each work-item
    /// reads only the elements that it computed itself. This requires reductions that assign
    /// elements to work-items in the same way as the maps do; in other kernels, other work-items
    /// read the elements.
    pub fn kept_by_items(&mut self, f: &Term, shape: &Shape) -> Step<Option<Storage>> {
        let one = matches!(f.op(), Op::Map(MapKind::Lcl(0)));
        let together = self.kernel.together && self.context == Context::Group;
        if !one || !together || self.passed_on.contains(f) {
            return Ok(None);
        }
        let Shape::Array(n, t) = shape else { return Ok(None) };
        let each = n / self.kernel.group[0] + i64::from(n % self.kernel.group[0] != 0);
        let scalars = each.saturating_mul(t.scalars());
        if !t.is_element() || scalars > KEPT || each > self.unroll_limit() {
            return Ok(None);
        }
        self.distributed(&[Some(0)], shape, Some(f)).map(Some)
    }

    fn unroll_limit(&self) -> i64 {
        i64::try_from(self.options.unroll).unwrap_or(0)
    }

    /// Allocates private memory for an array of a work-group; each work-item holds the elements
    /// that it computes. If a work-item reads an element that another one holds, the result is
    /// [`Stop::Elsewhere`] for `of`, or an error in the term if `of` is `None`.
    pub fn distributed(
        &mut self,
        dims: &[Option<u8>],
        shape: &Shape,
        of: Option<&Term>,
    ) -> Step<Storage> {
        fn own(shape: &Shape, levels: &[(u32, i64)]) -> Shape {
            match (shape, levels.split_first()) {
                (Shape::Array(n, t), Some(((_, workers), rest))) => {
                    let each = n / workers + i64::from(n % workers != 0);
                    Shape::Array(each, Box::new(own(t, rest)))
                }
                _ => shape.clone(),
            }
        }
        /// Returns the round in which the work-item processes index `i`, if it holds that element.
        fn round(i: &Index, (id, workers): (u32, i64), of: Option<&Term>) -> Step<Index> {
            match (i.linear_in(id), of) {
                (Some((1, rest)), _) if rest.is_multiple_of(workers) => Ok(rest.div(workers)),
                (Some((0, rest)), _) if workers == 1 => Ok(rest),
                (_, Some(of)) => Err(Stop::Elsewhere(of.clone())),
                (_, None) => stop(
                    Code::BadTerm,
                    format!("a work-item needs the private element `{i}` of another: use toLocal"),
                ),
            }
        }
        fn view(v: View, n: &Shape, levels: &[(u32, i64)], of: Option<&Term>) -> View {
            match (n, levels.split_first()) {
                (Shape::Array(n, t), Some((level, rest))) => {
                    let (level, rest, t) = (*level, rest.to_vec(), t.clone());
                    let of = of.cloned();
                    View::array(*n, move |i| {
                        let own = v.at(&round(i, level, of.as_ref())?)?;
                        Ok(view(own, &t, &rest, of.as_ref()))
                    })
                }
                _ => v,
            }
        }
        fn dest(d: Dest, n: &Shape, levels: &[(u32, i64)], of: Option<&Term>) -> Dest {
            match (n, levels.split_first()) {
                (Shape::Array(_, t), Some((level, rest))) => {
                    let (level, rest, t) = (*level, rest.to_vec(), t.clone());
                    let of = of.cloned();
                    Dest::array(move |i| {
                        let own = d.at(&round(i, level, of.as_ref())?)?;
                        Ok(dest(own, &t, &rest, of.as_ref()))
                    })
                }
                _ => d,
            }
        }
        if dims.is_empty() {
            return stop(
                Code::NotYetCompiled,
                "private memory for work-items that are not spread by an outermost `mapLcl` or `mapLane`",
            );
        }
        let mut levels = vec![];
        let mut s = shape;
        for d in dims.iter().copied() {
            let Shape::Array(_, inner) = s else { break };
            let (id, workers) = match d {
                Some(d) => {
                    let slot = usize::from(d.min(2));
                    (self.kernel.ids[3 + slot], self.kernel.group[slot])
                }
                None => (self.kernel.warp_ids[1], self.kernel.warp),
            };
            // All work-items read, also where fewer than these have an element.
            levels.push((id, workers.max(1)));
            s = inner;
        }
        let mine = own(shape, &levels);
        if mine.elems() > i64::try_from(self.options.private_elements).unwrap_or(0) {
            return stop(
                Code::KernelLimit,
                format!("each work-item would hold {} registers", mine.elems()),
            );
        }
        let mut regs = vec![];
        self.declare_all(&mine, &mut regs)?;
        let (v, d) = (View::of_regs(&mine, &regs)?, Dest::of_regs(&mine, &regs)?);
        Ok(Storage {
            view: view(v, shape, &levels, of),
            dest: dest(d, shape, &levels, of),
            owned: Owned::regs(&regs),
        })
    }
}
