//! Copies of blocks to local memory by a whole work-group: neighbours read neighbours, in vectors where the
//! source allows, and rows are padded where writing them would meet one bank again and again.

use super::dest::Dest;
use super::index::{Index, Var};
use super::ir::{ElemTy, Expr, Mem, MemArray, Stmt};
use super::leaf::{self, Emit};
use super::lower::Lowerer;
use super::view::{Shape, Slot, Step, View};
use crate::lang::types::ScalarType;
use std::rc::Rc;

/// Scalars by which rows are longer than they need be, where columns are written: a float4 of padding keeps
/// vectors aligned and puts neighbours in different banks.
const PADDING: i64 = 4;

/// The widest vector that is copied at once.
const WIDEST: i64 = 4;

/// Where rows of a staged block start: `[rows][columns]t`, rows `stride` elements apart.
#[derive(Clone)]
struct Layout {
    rows: i64,
    columns: i64,
    stride: i64,
    /// What an element is.
    t: Shape,
    /// Scalars from one element to the next in its array: the components of small tuples lie together.
    step: i64,
}

impl Layout {
    fn slots(&self, slots: &[Slot], i: &Index, j: &Index) -> Vec<Slot> {
        super::view::advance(&self.t, slots, &i.times(self.stride).add(j).times(self.step))
    }
}

/// How a block is copied.
struct Plan {
    /// Lanes of a vector go down a column rather than along a row.
    down: bool,
    width: i64,
}

impl Lowerer {
    /// Copies a view to local memory of the work-group.
    pub fn stage(&mut self, v: &View, shape: &Shape) -> Step<View> {
        // Rows of what is inside: the last dimension alone where there are several.
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
        let plan = self.plan(&source, rows, columns, &t)?;
        let stride = if plan.down { columns + PADDING } else { columns };
        let together = together(&t);
        let step = together.map_or(1, |(_, step)| step);
        let layout = Layout { rows, columns, stride, t: t.clone(), step };
        let mut slots = vec![];
        if let Some((e, step)) = together {
            let mem = self.tile(e, layout.rows.saturating_mul(layout.stride).saturating_mul(step));
            slots.extend((0..t.elems()).map(|c| Slot { mem, index: Index::from(c) }));
        }
        for (e, n) in t.components().into_iter().filter(|_| together.is_none()) {
            let each = n.saturating_mul(i64::try_from(e.width).unwrap_or(1));
            let len = layout.rows.saturating_mul(layout.stride).saturating_mul(each);
            slots.push(Slot { mem: self.tile(e, len), index: Index::from(0) });
        }
        let dest = {
            let (layout, slots) = (layout.clone(), slots.clone());
            move |i: &Index, j: &Index| Dest::of_slots(&layout.t, &layout.slots(&slots, i, j))
        };
        let (w, down) = (plan.width, plan.down);
        let (along, across) = if down { (rows, columns) } else { (columns, rows) };
        let most = along / w * across;
        self.local(0, most, false, &mut |me, f| {
            let (line, start) = f.div_mod(along / w);
            let place = |l: i64| {
                let k = start.times(w).plus(l);
                if down { (k, line.clone()) } else { (line.clone(), k) }
            };
            if w == 1 {
                let (i, j) = place(0);
                return me.store(&source.at(&i)?.at(&j)?, &dest(&i, &j)?, &t);
            }
            let lanes = (0..w)
                .map(|l| {
                    let (i, j) = place(l);
                    source.at(&i)?.at(&j)?.expr()
                })
                .collect::<Step<Vec<_>>>()?;
            let whole = leaf::bind(&View::Elem(Expr::vector(lanes)), me)?.expr()?;
            if !down {
                let (i, j) = place(0);
                let Dest::Mem(mem, t, at) = dest(&i, &j)? else {
                    return super::view::stop(crate::diag::Code::Internal, "a tile is memory");
                };
                let _: ElemTy = t;
                return me.emit(Stmt::Store(mem, at, whole));
            }
            for l in 0..w {
                let (i, j) = place(l);
                let lane = whole.lane(usize::try_from(l).unwrap_or(0));
                me.store(&View::Elem(lane), &dest(&i, &j)?, &t)?;
            }
            Ok(())
        })?;
        let slots = Rc::new(slots);
        Ok(if flat {
            View::array(columns, move |j| {
                View::of_slots(&layout.t, &layout.slots(&slots, &Index::from(0), j))
            })
        } else {
            View::array(rows, move |i| {
                let (layout, slots, i) = (layout.clone(), slots.clone(), i.clone());
                Ok(View::array(layout.columns, move |j| {
                    View::of_slots(&layout.t, &layout.slots(&slots, &i, j))
                }))
            })
        })
    }

    /// The order in which neighbours read neighbours, and the widest vectors that are one load.
    fn plan(&mut self, v: &View, rows: i64, columns: i64, t: &Shape) -> Step<Plan> {
        let scalar = matches!(t, Shape::Elem(e) if e.width == 1);
        let mut at = |n: i64| {
            let (id, name) = self.fresh("p");
            Index::from(Var { id, name, lo: 0, hi: (n - 1).max(0) })
        };
        let (i, j) = (at(rows), at(columns));
        for w in [WIDEST, 2] {
            for down in [false, true] {
                let along = if down { rows } else { columns };
                if !scalar || along % w != 0 || along < w {
                    continue;
                }
                // The first lane of a vector stands at a multiple of its width.
                let lane = |l: i64| {
                    let (i, j) = if down {
                        (at_multiple(&i, rows, w).plus(l), j.clone())
                    } else {
                        (i.clone(), at_multiple(&j, columns, w).plus(l))
                    };
                    v.at(&i)?.at(&j)?.expr()
                };
                let lanes = (0..w).map(lane).collect::<Step<Vec<_>>>()?;
                if is_one_load(&Expr::vector(lanes)) {
                    return Ok(Plan { down, width: w });
                }
            }
        }
        // No vectors, but perhaps neighbours down a column.
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

    fn tile(&mut self, e: ElemTy, len: i64) -> Mem {
        let (_, name) = self.fresh("tile");
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        self.kernel.locals.push(MemArray { name, scalar: e.scalar, len });
        Mem::Local(self.kernel.locals.len() - 1)
    }
}

/// Of an element that is a tuple of two to four scalars of one type: the type, and the scalars of a vector that holds
/// them. Together they are read in one access.
fn together(t: &Shape) -> Option<(ElemTy, i64)> {
    let components = t.components();
    let (e, _) = *components.first()?;
    let same = components.iter().all(|(c, n)| *c == e && *n == 1);
    let fits = t.is_element() && e.width == 1 && e.scalar != ScalarType::Bool;
    let n = u32::try_from(components.len()).ok().filter(|n| (2..=4).contains(n))?;
    (same && fits).then(|| (e, i64::from(n.next_power_of_two())))
}

/// `w` times a variable of as many values as there are multiples of `w`.
fn at_multiple(i: &Index, n: i64, w: i64) -> Index {
    let mut id = 0;
    i.visit_vars(&mut |v| id = v.id);
    Index::from(Var { id, name: "p".into(), lo: 0, hi: (n / w - 1).max(0) }).times(w)
}

fn is_one_load(e: &Expr) -> bool {
    match e {
        Expr::Load(_, t, _) => t.width > 1,
        Expr::Guarded(_, a, _) => is_one_load(a),
        _ => false,
    }
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
