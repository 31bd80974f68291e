//! Copies of blocks to local memory by a whole work-group.
//!
//! Neighbouring work-items read neighbouring elements, in vectors if the source allows it. Rows are
//! padded if writing them, or reading one in each work-item, would cause bank conflicts. A copy can
//! be made in two parts, with the copied elements in registers in between.

use super::dest::Dest;
use super::leaf::{self, Emit};
use super::lowerer::Lowerer;
use super::view::{Shape, Slot, Step, View};
use super::words::{self, is_one_load};
use crate::calculus::op::products::Products;
use crate::kernel::ir::copies::Copied;
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::{ElemTy, Expr, Mem, MemArray, Stmt, pieces};
use crate::lang::types::ScalarType;
use std::rc::Rc;

/// Scalars of padding at the end of each row, if columns are written. The size of a float4 keeps
/// vectors aligned and puts neighbours in different banks.
const PADDING: i64 = 4;

/// Scalars of a row that work-items load together for matrix instructions, which take them from four rows. With rows that are as far
/// apart, modulo the number of banks, these are in different banks. Between four rows and the next there is as much, so that
/// work-items that each store a vector down the rows, side by side, meet different banks, too.
const FRAGMENT: i64 = 8;
const ROWS: i64 = 4;
const BANKS: i64 = 32;

/// Scalars at the end of each line, where lines are columns of a block whose pieces are in order: with what matrix instructions read of 8
/// lines in different banks.
const AFTER_LINE: i64 = 4;

/// Widest vectors that are copied at once, and of elements of two bytes for matrix instructions.
const WIDEST: i64 = 4;
const WIDEST_HALVES: i64 = 8;

/// The way in which a block is copied.
struct Plan {
    /// Whether the lanes of a vector go down a column, and not along a row.
    down: bool,
    width: i64,
}

/// Local memory for blocks `[rows][columns]t`, and the way in which they are copied there.
pub struct Tile {
    rows: i64,
    columns: i64,
    /// Distance between rows, in elements, or between columns if those are lines.
    stride: i64,
    /// Whether columns are lines: elements that neighbour in a column neighbour in memory.
    lines: bool,
    /// Elements between each [`ROWS`] rows and the next.
    gap: i64,
    /// Pieces of a line, or of a row, if each has an order of its own.
    pieces: usize,
    /// Shape of an element.
    t: Shape,
    /// Distance between elements in their array, in scalars. The components of small tuples lie
    /// together.
    step: i64,
    /// Whether blocks have no rows: `[columns]t`.
    flat: bool,
    /// The type of what the elements hold, if they are words with elements of several rows.
    held: Option<ScalarType>,
    plan: Plan,
    slots: Rc<[Slot]>,
}

impl Tile {
    /// Distance between blocks, in elements, if there is room for several. It keeps vectors
    /// aligned.
    fn size(&self) -> i64 {
        self.elements().saturating_add(PADDING - 1) / PADDING * PADDING
    }

    /// Number of elements of a block, with what is between rows.
    fn elements(&self) -> i64 {
        if self.lines {
            return self.columns.saturating_mul(self.stride);
        }
        let rows = self.rows.saturating_mul(self.stride);
        rows.saturating_add((self.rows - 1) / ROWS * self.gap)
    }

    /// Number of elements of this many blocks. The last one needs no padding for the alignment of a next one.
    fn elements_of(&self, blocks: i64) -> i64 {
        self.size().saturating_mul(blocks - 1).saturating_add(self.elements())
    }

    /// Bytes of this many blocks of scalars.
    pub fn bytes(&self, blocks: i64) -> usize {
        let scalars = self.elements_of(blocks).saturating_mul(self.step);
        let each = self.t.components().iter().map(|(e, _)| e.bytes()).sum();
        usize::try_from(scalars).unwrap_or(usize::MAX).saturating_mul(each)
    }

    /// Place of an element in its block.
    fn at(&self, i: &Index, j: &Index) -> Index {
        if self.lines {
            return j.times(self.stride).add(i);
        }
        let start = i.times(self.stride).add(j);
        if self.gap == 0 { start } else { start.add(&i.div(ROWS).times(self.gap)) }
    }

    fn slots(&self, block: &Index, i: &Index, j: &Index) -> Vec<Slot> {
        let at = block.times(self.size()).add(&self.at(i, j));
        super::view::advance(&self.t, &self.slots, &at.times(self.step))
    }

    /// Returns the view of one of the blocks.
    pub fn view(self: &Rc<Self>, block: &Index) -> View {
        let row = |me: Rc<Self>, block: Index, i: Index| {
            View::array(me.columns, move |j| View::of_slots(&me.t, &me.slots(&block, &i, j)))
        };
        let (me, block) = (self.clone(), block.clone());
        if let Some(t) = self.held {
            let n = words::in_word(t);
            return View::array(self.rows * n, move |i| {
                let (words, part) = (row(me.clone(), block.clone(), i.div(n)), i.rem(n));
                let of = move |j: &Index| words.at(j)?.expr().map(|w| words::part(w, t, &part));
                Ok(View::array(me.columns, move |j| Ok(View::Elem(of(j)?))))
            });
        }
        if self.flat {
            return row(me, block, Index::from(0));
        }
        View::array(self.rows, move |i| Ok(row(me.clone(), block.clone(), i.clone())))
    }

    /// Returns the shape of a unit, which is what one work-item copies at a time, and the number of
    /// units in a block.
    fn unit(&self) -> (Shape, i64) {
        let (along, across) = self.extents();
        let t = match self.t {
            Shape::Elem(e) if self.plan.width > 1 => {
                Shape::Elem(ElemTy { width: usize::try_from(self.plan.width).unwrap_or(1), ..e })
            }
            _ => self.t.clone(),
        };
        (t, along / self.plan.width * across)
    }

    fn extents(&self) -> (i64, i64) {
        if self.plan.down { (self.rows, self.columns) } else { (self.columns, self.rows) }
    }

    /// Returns the row and the column of lane `l` of unit `f`.
    fn place(&self, f: &Index, l: i64) -> (Index, Index) {
        let (line, start) = f.div_mod(self.extents().0 / self.plan.width);
        let k = start.times(self.plan.width).plus(l);
        if self.plan.down { (k, line) } else { (line, k) }
    }

    /// Loads unit `f` of a block.
    fn load(&self, source: &View, f: &Index) -> Step<View> {
        let at = |l: i64| -> Step<View> {
            let (i, j) = self.place(f, l);
            if self.flat { source.at(&j) } else { source.at(&i)?.at(&j) }
        };
        if let Some(t) = self.held {
            let word = |l: i64| {
                let (i, j) = self.place(f, l);
                word_at(source, t, &i, &j)
            };
            let all = (0..self.plan.width).map(word).collect::<Step<Vec<_>>>()?;
            return Ok(View::Elem(words::pack(&all)));
        }
        if self.plan.width == 1 {
            return at(0);
        }
        let lanes = (0..self.plan.width).map(|l| at(l)?.expr()).collect::<Step<Vec<_>>>()?;
        Ok(View::Elem(Expr::vector(lanes)))
    }
}

impl Lowerer {
    /// Copies a view to local memory of the work-group. With `by_rows`, each work-item then goes through a row.
    pub fn stage(&mut self, v: &View, shape: &Shape, by_rows: bool) -> Step<View> {
        let mut plan = self.layout(v, shape)?;
        if by_rows && plan.rows > 1 {
            // An odd distance puts the elements that neighbours read into different banks.
            plan.stride = plan.columns | 1;
        }
        let tile = Rc::new(self.tile_of(plan, 1));
        let first = Index::from(0);
        self.copy_block(&tile, v, &first)?;
        Ok(tile.view(&first))
    }

    /// Plans local memory for blocks that are read in the same way as this one.
    pub fn layout(&mut self, v: &View, shape: &Shape) -> Step<Tile> {
        // Take the two outermost dimensions as rows and columns, or a single row if there is only
        // one dimension.
        let (rows, columns, t) = match shape {
            Shape::Array(n, t) => match &**t {
                Shape::Array(m, t) => (*n, *m, (**t).clone()),
                t => (1, *n, t.clone()),
            },
            _ => (1, 1, shape.clone()),
        };
        let flat = matches!(shape, Shape::Array(_, t) if !matches!(**t, Shape::Array(..)));
        let source = if flat {
            let v = v.clone();
            View::array(1, move |_| Ok(v.clone()))
        } else {
            v.clone()
        };
        // Matrix instructions read words of a row, and the rows of a product are columns of a block.
        let held = match &t {
            Shape::Elem(ElemTy { scalar, width: 1 }) if self.kernel.fragments => {
                Some(*scalar).filter(|t| is_packed(*t) && rows % words::in_word(*t) == 0)
            }
            _ => None,
        };
        let in_words = match held {
            Some(t) => (rows / words::in_word(t), Shape::Elem(ElemTy::scalar(words::WORD))),
            None => (rows, t.clone()),
        };
        let plan = self.plan(&source, in_words.0, columns, &in_words.1, held)?;
        // Matrices of elements of two bytes can be transposed when they are loaded: rows are copied as they are.
        let turned = held.is_some_and(|t| t.bytes() == 2) && !plan.down && columns % FRAGMENT == 0;
        let ((rows, t), held, plan) = match turned {
            true => ((rows, t.clone()), None, self.plan(&source, rows, columns, &t, None)?),
            false => (in_words, held, plan),
        };
        let plan = Plan {
            down: plan.down && !turned,
            width: if plan.down && turned { 1 } else { plan.width },
        };
        // Matrix instructions read 4 words of a column at once.
        let lines = self.kernel.fragments && plan.down && !flat && rows % FRAGMENT == 0;
        // Lines whose pieces have orders of their own need no padding.
        let pieces = match &t {
            Shape::Elem(e) if lines || turned => {
                pieces::of_row(if lines { rows } else { columns }, e.scalar.bytes())
            }
            _ => 0,
        };
        let stride = match (self.kernel.fragments, plan.down) {
            (true, true) if lines && pieces > 0 => rows,
            (true, _) if turned && pieces > 0 => columns,
            (true, true) if lines => rows + AFTER_LINE,
            (true, _) if turned => columns + FRAGMENT,
            (true, _) => columns + (FRAGMENT - columns).rem_euclid(BANKS),
            (false, true) => columns + PADDING,
            (false, false) => columns,
        };
        let gap = if self.kernel.fragments && plan.down { FRAGMENT } else { 0 };
        let step = together(&t).map_or(1, |(_, step)| step);
        Ok(Tile {
            rows,
            columns,
            stride,
            lines,
            gap,
            pieces,
            t,
            step,
            flat,
            held,
            plan,
            slots: Rc::new([]),
        })
    }

    /// Allocates local memory for this many blocks.
    pub fn tile_of(&mut self, mut tile: Tile, blocks: i64) -> Tile {
        let together = together(&tile.t);
        let elements = tile.elements_of(blocks);
        let mut slots = vec![];
        if let Some((e, step)) = together {
            let mem = self.local_array(e, elements.saturating_mul(step), tile.pieces);
            slots.extend((0..tile.t.elems()).map(|c| Slot::new(mem, Index::from(c))));
        }
        for (e, n) in tile.t.components().into_iter().filter(|_| together.is_none()) {
            let each = n.saturating_mul(i64::try_from(e.width).unwrap_or(1));
            let mem = self.local_array(e, elements.saturating_mul(each), tile.pieces);
            slots.push(Slot::new(mem, Index::from(0)));
        }
        tile.slots = slots.into();
        tile
    }

    /// Copies a block to local memory.
    pub fn copy_block(&mut self, tile: &Tile, source: &View, block: &Index) -> Step<()> {
        self.stage_named("copy of a block", |me| {
            me.local(0, tile.unit().1, false, &mut |me, f| {
                let value = tile.load(source, f)?;
                me.store_unit(tile, &value, f, block)
            })
        })
    }

    /// Whether the device can copy blocks of the source to a tile while the group does something else.
    pub fn copies_ahead(&mut self, tile: &Tile, source: &View) -> Step<bool> {
        let whole = tile.plan.width == 1 || tile.plan.down == tile.lines;
        if !self.options.device.copies_ahead || !whole || !tile.t.is_element() {
            return Ok(false);
        }
        let (id, name) = self.fresh("p");
        let any = Index::from(Var { id, name, lo: 0, hi: tile.unit().1 - 1 });
        let View::Elem(e) = tile.load(source, &any)? else { return Ok(false) };
        Ok(Copied::of(&e).is_some_and(|c| matches!(c.from, Mem::Global(_))))
    }

    /// Lets copies to a tile arrive as late as at the barrier with this number.
    pub fn arrives(&mut self, tile: &Tile, barriers: usize) {
        for slot in tile.slots.iter() {
            if let Mem::Local(a) = slot.mem {
                self.kernel.locals[a].ahead = barriers;
            }
        }
    }

    /// Copies a block to local memory, where it is from the next barrier on.
    pub fn copy_block_ahead(&mut self, tile: &Tile, source: &View, block: &Index) -> Step<()> {
        self.stage_named("copy of a block", |me| {
            me.local(0, tile.unit().1, false, &mut |me, f| {
                let (i, j) = tile.place(f, 0);
                let dest = Dest::of_slots(&tile.t, &tile.slots(block, &i, &j))?;
                let Dest::Mem(mem, _, at) = dest else {
                    return super::view::stop(crate::diag::Code::Internal, "a tile is memory");
                };
                let value = tile.load(source, f)?.expr()?;
                me.emit(Stmt::Store(mem, at, value))
            })
        })
    }

    /// Loads a block into registers of the work-items that will store it.
    pub fn load_block(&mut self, tile: &Tile, source: &View) -> Step<View> {
        let (unit, count) = tile.unit();
        let shape = Shape::Array(count, Box::new(unit.clone()));
        let own = self.distributed(&[Some(0)], &shape, None)?;
        self.stage_named("load of a block", |me| {
            me.local(0, count, false, &mut |me, f| {
                me.store(&tile.load(source, f)?, &own.dest.at(f)?, &unit)
            })
        })?;
        Ok(own.view)
    }

    /// Stores a loaded block to local memory.
    pub fn store_block(&mut self, tile: &Tile, loaded: &View, block: &Index) -> Step<()> {
        self.stage_named("store of a block", |me| {
            me.local(0, tile.unit().1, false, &mut |me, f| {
                me.store_unit(tile, &loaded.at(f)?, f, block)
            })
        })
    }

    fn store_unit(&mut self, tile: &Tile, value: &View, f: &Index, block: &Index) -> Step<()> {
        let dest = |l: i64| {
            let (i, j) = tile.place(f, l);
            Dest::of_slots(&tile.t, &tile.slots(block, &i, &j))
        };
        if tile.plan.width == 1 {
            return self.store(value, &dest(0)?, &tile.t);
        }
        let whole = leaf::bind(value, self)?.expr()?;
        if tile.plan.down == tile.lines {
            let Dest::Mem(mem, _, at) = dest(0)? else {
                return super::view::stop(crate::diag::Code::Internal, "a tile is memory");
            };
            return self.emit(Stmt::Store(mem, at, whole));
        }
        for l in 0..tile.plan.width {
            let lane = whole.lane(usize::try_from(l).unwrap_or(0));
            self.store(&View::Elem(lane), &dest(l)?, &tile.t)?;
        }
        Ok(())
    }

    /// Chooses the direction in which neighbouring work-items read neighbouring elements, and the
    /// widest vectors that are one load.
    fn plan(
        &mut self,
        v: &View,
        rows: i64,
        columns: i64,
        t: &Shape,
        held: Option<ScalarType>,
    ) -> Step<Plan> {
        let scalar = matches!(t, Shape::Elem(e) if e.width == 1);
        let mut at = |n: i64| {
            let (id, name) = self.fresh("p");
            Index::from(Var { id, name, lo: 0, hi: (n - 1).max(0) })
        };
        let (i, j) = (at(rows), at(columns));
        let halves = matches!(t, Shape::Elem(e) if e.scalar.bytes() == 2) && self.kernel.fragments;
        for w in [WIDEST_HALVES, WIDEST, 2] {
            for down in [false, true] {
                let along = if down { rows } else { columns };
                if w > WIDEST && !halves {
                    continue;
                }
                if !scalar || along % w != 0 || along < w {
                    continue;
                }
                // The first lane of a vector is at a multiple of its width.
                let lane = |l: i64| {
                    let (i, j) = if down {
                        (at_multiple(&i, rows, w).plus(l), j.clone())
                    } else {
                        (i.clone(), at_multiple(&j, columns, w).plus(l))
                    };
                    match held {
                        Some(t) => word_at(v, t, &i, &j),
                        None => Ok(vec![v.at(&i)?.at(&j)?.expr()?]),
                    }
                };
                let lanes = (0..w).map(lane).collect::<Step<Vec<_>>>()?;
                // Words lie in memory, or rows of their parts do.
                let parts = 0..lanes.first().map_or(0, Vec::len);
                let part = |k: usize| Expr::vector(lanes.iter().map(|e| e[k].clone()).collect());
                let is_run = words::run(&lanes).is_some();
                if is_run || parts.map(part).all(|e| is_one_load(&e)) {
                    return Ok(Plan { down, width: w });
                }
            }
        }
        // There are no vectors, but the neighbours may be down a column.
        let first = |i: &Index, j: &Index| -> Step<Option<(Mem, Index)>> {
            Ok(match first_load(&v.at(i)?.at(j)?) {
                Some(Expr::Load(m, _, at)) => Some((m, at)),
                _ => None,
            })
        };
        let zero = Index::from(0);
        let (here, right, below) = (
            first(&zero, &zero)?,
            if columns > 1 { first(&zero, &Index::from(1))? } else { None },
            if rows > 1 { first(&Index::from(1), &zero)? } else { None },
        );
        let step = |x: &Option<(Mem, Index)>| match (&here, x) {
            (Some((_, a)), Some((_, b))) => b.sub(a).as_constant(),
            _ => None,
        };
        let down = rows > 1 && step(&below) == Some(1) && step(&right) != Some(1);
        Ok(Plan { down, width: 1 })
    }

    fn local_array(&mut self, e: ElemTy, len: i64, pieces: usize) -> Mem {
        let (_, name) = self.fresh("tile");
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        self.kernel.locals.push(MemArray { name, scalar: e.scalar, len, ahead: 0, pieces });
        Mem::Local(self.kernel.locals.len() - 1)
    }
}

/// Whether elements are staged in words for matrix instructions.
fn is_packed(t: ScalarType) -> bool {
    Products::ALL.iter().any(|p| p.operand() == t && p.in_word() > 1)
}

/// Returns the elements of the word in row `i` of words and column `j`.
fn word_at(v: &View, t: ScalarType, i: &Index, j: &Index) -> Step<Vec<Expr>> {
    let n = words::in_word(t);
    (0..n).map(|k| v.at(&i.times(n).plus(k))?.at(j)?.expr()).collect()
}

/// If an element is a tuple of two to four scalars of the same type, returns the type, and the
/// number of scalars of a vector that holds them. The whole tuple is then read in one access.
fn together(t: &Shape) -> Option<(ElemTy, i64)> {
    let components = t.components();
    let (e, _) = *components.first()?;
    let same = components.iter().all(|(c, n)| *c == e && *n == 1);
    let fits = t.is_element() && e.width == 1 && e.scalar != ScalarType::Bool;
    let n = u32::try_from(components.len()).ok().filter(|n| (2..=4).contains(n))?;
    (same && fits).then(|| (e, i64::from(n.next_power_of_two())))
}

/// Returns `w` times a variable with as many values as there are multiples of `w`.
fn at_multiple(i: &Index, n: i64, w: i64) -> Index {
    let mut id = 0;
    i.visit_vars(&mut |v| id = v.id);
    Index::from(Var { id, name: "p".into(), lo: 0, hi: (n / w - 1).max(0) }).times(w)
}

fn first_load(v: &View) -> Option<Expr> {
    match v {
        View::Elem(e) => {
            let mut found = None;
            e.visit(&mut |e| {
                if found.is_none() && matches!(e, Expr::Load(..)) {
                    found = Some(e.clone());
                }
            });
            found
        }
        View::Pair(a, b) => first_load(a).or_else(|| first_load(b)),
        View::Array(_) => first_load(&v.at(&Index::from(0)).ok()?),
        View::Unit => None,
    }
}
