//! Builds [`code`](super::code) for both front ends, with types, and hands out the places for variables.
//!
//! Every [`Typed`] keeps one invariant: code of scalars is [`Code::Cells`], and all other code is
//! [`Code::Value`]. Types are trusted to fit; the machine reports rows that do not.

use super::code::{
    Cells, Code, Fold, Histogram, Index, Loop, Map, Op, Operator, Place, Scan, Site, Until, Values,
    View,
};
use super::cost::of_code;
use super::machine::{Machine, Run, fault};
use super::pick::shared_lengths;
use crate::calculus::value::{Cell, Leaf, Shape, Slack, Value, room};
use crate::diag::{Code as Error, Interrupt};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use std::ops::Range;

/// Code with the type of its result.
#[derive(Clone, Debug)]
pub struct Typed {
    code: Code,
    /// The shape of the result.
    pub shape: Shape,
}

/// Hands out registers and slots while code is built.
#[derive(Debug, Default)]
pub struct Builder {
    regs: usize,
    slots: usize,
    /// The length of the longest reduction, which decides how far results may be off.
    terms: u64,
}

impl Typed {
    /// Code of a value; scalars are unpacked.
    pub fn value(v: Values, shape: Shape) -> Typed {
        let code = if shape.is_scalar() {
            Code::Cells(Cells::Unpack(Box::new(v)))
        } else {
            Code::Value(v)
        };
        Typed { code, shape }
    }

    fn cells(e: Cells, shape: Shape) -> Typed {
        Typed { code: Code::Cells(e), shape }
    }

    /// The unit value.
    pub fn unit() -> Typed {
        Typed::cells(Cells::Tuple(vec![]), Shape::Tuple(vec![]))
    }

    /// One scalar constant.
    pub fn constant(ty: ScalarType, c: Cell) -> Typed {
        Typed::cells(Cells::Const(c), Shape::Scalar(ty))
    }

    /// A constant of that shape.
    pub fn given(v: &Value, shape: Shape) -> Typed {
        if !shape.is_scalar() {
            return Typed::value(Values::Given(v.clone()), shape);
        }
        let cells = v.leaves().iter().map(|leaf| match leaf {
            Leaf::Scalar(_, c) => (Cells::Const(*c), 1),
            Leaf::Array(_) => (Cells::Const(Cell::default()), 1),
        });
        Typed::cells(Cells::Tuple(cells.collect()), shape)
    }

    fn is_atomic(&self) -> bool {
        fn cells(e: &Cells) -> bool {
            match e {
                Cells::Const(_) | Cells::Reg(_) => true,
                Cells::Tuple(es) => es.iter().all(|(e, _)| cells(e)),
                _ => false,
            }
        }
        fn value(e: &Values) -> bool {
            match e {
                Values::Given(_) | Values::Slot(..) => true,
                Values::Part(v, _) => value(v),
                Values::Tuple(vs) => vs.iter().all(value),
                Values::Pack(e, ..) => cells(e),
                _ => false,
            }
        }
        match &self.code {
            Code::Cells(e) => cells(e),
            Code::Value(e) => value(e),
        }
    }

    /// Returns the cells of a scalar.
    pub fn into_cells(self) -> Cells {
        match self.code {
            Code::Cells(e) => e,
            Code::Value(v) => Cells::Unpack(Box::new(v)),
        }
    }
}

/// Returns the element types of a shape's components.
fn types(shape: &Shape) -> Vec<ScalarType> {
    shape.components().into_iter().map(|c| c.0).collect()
}

/// Returns the length and the row of an array type. A vector is an array of scalars, and a tuple of arrays of
/// equal length is an array of tuples.
pub fn element(shape: &Shape) -> Option<(usize, Shape)> {
    match shape {
        Shape::Array(n, t) => Some((*n, (**t).clone())),
        Shape::Vector(n, s) => Some((*n, Shape::Scalar(*s))),
        Shape::Tuple(ts) => {
            let parts: Vec<(usize, Shape)> = ts.iter().map(element).collect::<Option<_>>()?;
            let n = parts.first()?.0;
            let equal = parts.iter().all(|(m, _)| *m == n);
            equal.then(|| (n, Shape::Tuple(parts.into_iter().map(|(_, t)| t).collect())))
        }
        Shape::Scalar(_) => None,
    }
}

/// The function argument of a pattern: builds a body from its parameters.
pub type Body<'a> = &'a mut dyn FnMut(&mut Builder, Vec<Typed>) -> Run<Typed>;

/// The operator of a fold.
pub struct Folded<'a> {
    /// The body of the operator.
    pub exact: Body<'a>,
    /// The body with every operation rounded, if devices may do the fold in this order.
    pub rounded: Option<Body<'a>>,
}

impl<'a> Folded<'a> {
    /// The operator of a fold whose order devices may choose.
    pub fn of(exact: Body<'a>) -> Self {
        Folded { exact, rounded: None }
    }
}

/// Rounding in a fold of at most this many rows drifts no farther than in any other order of evaluation.
const SHORT: usize = 128;

/// As [`Body`], for two bodies; the flag says which one to build, the first for `false`.
pub type Parts<'a> = &'a mut dyn FnMut(&mut Builder, Vec<Typed>, bool) -> Run<Typed>;

impl Builder {
    /// Returns a builder for a program whose longest reduction has `terms` terms.
    pub fn of(terms: u64) -> Builder {
        Builder { terms, ..Builder::default() }
    }

    /// Returns a machine with all places that were handed out.
    pub fn machine(&self) -> Machine {
        Machine::new(self.regs, self.slots, Slack::of(self.terms.max(1)))
    }

    fn regs(&mut self, n: usize) -> usize {
        self.regs += n;
        self.regs - n
    }

    fn place(&mut self, shape: &Shape) -> Place {
        let n = shape.width();
        if shape.is_scalar() {
            Place::Regs { base: self.regs(n), n }
        } else {
            self.slots += 1;
            Place::Slot { slot: self.slots - 1, n }
        }
    }

    /// Makes a new variable.
    fn var(&mut self, shape: &Shape) -> (Place, Typed) {
        let place = self.place(shape);
        let typed = match place {
            Place::Regs { base, n: 1 } => Typed::cells(Cells::Reg(base), shape.clone()),
            Place::Regs { base, n } => {
                let cells = (base..base + n).map(|r| (Cells::Reg(r), 1));
                Typed::cells(Cells::Tuple(cells.collect()), shape.clone())
            }
            Place::Slot { slot, .. } => {
                let lengths = shared_lengths(shape).into();
                Typed::value(Values::Slot(slot, lengths), shape.clone())
            }
        };
        (place, typed)
    }

    /// Returns the code as a value; scalars are packed.
    pub fn values(&mut self, t: Typed) -> Values {
        match t.code {
            Code::Value(v) => v,
            Code::Cells(Cells::Unpack(v)) => *v,
            Code::Cells(e) => {
                let types = types(&t.shape);
                Values::Pack(Box::new(e), self.regs(types.len()), types)
            }
        }
    }

    /// Builds a tuple.
    pub fn tuple(&mut self, parts: Vec<Typed>) -> Typed {
        let shape = Shape::Tuple(parts.iter().map(|p| p.shape.clone()).collect());
        if shape.is_scalar() {
            let cells = parts.into_iter().map(|p| {
                let n = p.shape.width();
                (p.into_cells(), n)
            });
            Typed::cells(Cells::Tuple(cells.collect()), shape)
        } else {
            let parts = parts.into_iter().map(|p| self.values(p));
            Typed::value(Values::Tuple(parts.collect()), shape)
        }
    }

    /// Returns component `i` of a tuple, or the array of components `i` of an array of tuples.
    pub fn proj(&mut self, t: Typed, i: usize) -> Typed {
        let Shape::Tuple(ts) = &t.shape else { return t };
        let from: usize = ts.iter().take(i).map(Shape::width).sum();
        let Some(shape) = ts.get(i).cloned() else {
            return t;
        };
        let range = from..from + shape.width();
        self.part(t, range, shape)
    }

    /// Returns the components `range`, which have the given shape.
    pub fn part(&mut self, t: Typed, range: Range<usize>, shape: Shape) -> Typed {
        match t.code {
            Code::Value(v) => Typed::value(Values::Part(Box::new(v), range), shape),
            Code::Cells(e) => {
                let types = t.shape.width();
                if let Some(e) = pick(&e, 0, &range) {
                    return Typed::cells(e, shape);
                }
                let base = self.regs(types);
                let chosen = range.map(|r| (Cells::Reg(base + r), 1)).collect();
                let place = Place::Regs { base, n: types };
                Typed::cells(
                    Cells::Let(Box::new((place, Code::Cells(e), Cells::Tuple(chosen)))),
                    shape,
                )
            }
        }
    }

    /// Builds `let v = t in body(v)`.
    pub fn bind(
        &mut self,
        t: Typed,
        body: impl FnOnce(&mut Builder, Typed) -> Run<Typed>,
    ) -> Run<Typed> {
        if t.is_atomic() {
            return body(self, t);
        }
        let (place, var) = self.var(&t.shape);
        let body = body(self, var)?;
        let code = match body.code {
            Code::Cells(e) => Code::Cells(Cells::Let(Box::new((place, t.code, e)))),
            Code::Value(e) => Code::Value(Values::Let(Box::new((place, t.code, e)))),
        };
        Ok(Typed { code, shape: body.shape })
    }

    /// Builds a scalar operation; `exact` keeps floats unrounded.
    pub fn op(op: ScalarOp, to: ScalarType, exact: bool, args: Vec<Typed>, site: Site) -> Typed {
        let of = if op == ScalarOp::Select { args.get(1) } else { args.first() };
        let from = match of.map(|a| &a.shape) {
            Some(Shape::Scalar(s)) => *s,
            _ => to,
        };
        let args = args.into_iter().map(Typed::into_cells).collect();
        Typed::cells(Cells::Op(Box::new(Op { op, from, to, exact, args, site })), Shape::Scalar(to))
    }

    /// Builds `if c then a else b`, which evaluates one branch.
    pub fn cond(&mut self, c: Typed, a: Typed, b: Typed) -> Typed {
        let shape = a.shape.clone();
        let c = c.into_cells();
        if shape.is_scalar() {
            let branches = (c, a.into_cells(), b.into_cells(), types(&shape));
            Typed::cells(Cells::If(Box::new(branches)), shape)
        } else {
            let branches = (c, self.values(a), self.values(b));
            Typed::value(Values::If(Box::new(branches)), shape)
        }
    }

    fn looped(acc: Place, l: Loop, shape: Shape) -> Typed {
        match acc {
            Place::Regs { .. } => Typed::cells(Cells::Loop(Box::new(l)), shape),
            Place::Slot { .. } => Typed::value(Values::Loop(Box::new(l)), shape),
        }
    }

    /// Builds `loop (acc = init) for i < bound do body(i, acc)`.
    pub fn count(&mut self, init: Typed, bound: Typed, body: Body) -> Run<Typed> {
        let shape = init.shape.clone();
        let ty = match &bound.shape {
            Shape::Scalar(s) => *s,
            _ => ScalarType::I64,
        };
        let (acc, var) = self.var(&shape);
        let index = self.regs(1);
        let counter = Typed::cells(Cells::Reg(index), Shape::Scalar(ty));
        let body = body(self, vec![counter, var])?.code;
        let until = Until::Bound(index, bound.into_cells(), ty);
        let next = self.regs(shape.width());
        let types = types(&shape);
        Ok(Builder::looped(acc, Loop { acc, next, types, init: init.code, until, body }, shape))
    }

    /// Builds `loop (acc = init) while cond(acc) do body(acc)`; `parts` builds the condition (`false`) and
    /// the body (`true`).
    pub fn repeat(&mut self, init: Typed, parts: Parts) -> Run<Typed> {
        let shape = init.shape.clone();
        let (acc, var) = self.var(&shape);
        let until = Until::Not(parts(self, vec![var.clone()], false)?.into_cells());
        let body = parts(self, vec![var], true)?.code;
        let next = self.regs(shape.width());
        let types = types(&shape);
        Ok(Builder::looped(acc, Loop { acc, next, types, init: init.code, until, body }, shape))
    }

    /// Builds a rearrangement; `shape` is that of the result.
    pub fn view(&mut self, view: View, t: Typed, shape: Shape, site: Site) -> Typed {
        let v = self.values(t);
        Typed::value(Values::View(view, Box::new(v), site), shape)
    }

    /// Builds a map of `f` over `n` rows; a row takes one element of each of `xs`.
    pub fn map(
        &mut self,
        n: usize,
        xs: Vec<Typed>,
        params: &[Shape],
        f: Body,
        site: Site,
    ) -> Run<Typed> {
        let (places, vars) = params.iter().map(|p| self.var(p)).unzip();
        let body = f(self, vars)?;
        let row = body.shape.components();
        let next = self.regs(row.len());
        let shape = Shape::array(n, body.shape);
        let xs = Values::Tuple(xs.into_iter().map(|x| self.values(x)).collect());
        let work = of_code(&body.code);
        let map = Map { params: places, body: body.code, work, next, xs, n, row, site };
        Ok(Typed::value(Values::Map(Box::new(map)), shape))
    }

    fn operator(&mut self, init: Typed, x: &Shape, f: Body) -> Run<(Operator, Shape)> {
        let shape = init.shape.clone();
        let (acc, a) = self.var(&shape);
        let (x, b) = self.var(x);
        let body = f(self, vec![a, b])?.code;
        let next = self.regs(shape.width());
        let types = types(&shape);
        Ok((Operator { acc, next, types, x, body, init: init.code }, shape))
    }

    fn fold_code(
        &mut self,
        n: usize,
        init: Typed,
        xs: Typed,
        x: &Shape,
        f: Folded,
        site: Site,
    ) -> Run<(Fold, Shape)> {
        let first = init.clone();
        let (op, shape) = self.operator(init, x, f.exact)?;
        let floats = op.types.iter().any(|ty| ty.is_float());
        let drift = match f.rounded.filter(|_| floats && n > SHORT) {
            Some(f) => Some(self.operator(first, x, f)?.0),
            None => None,
        };
        let xs = self.values(xs);
        Ok((Fold { op, drift, xs, n, site }, shape))
    }

    /// Builds a fold of `f` from the left over `n` rows of shape `x`.
    pub fn fold(
        &mut self,
        n: usize,
        init: Typed,
        xs: Typed,
        x: &Shape,
        f: Folded,
        site: Site,
    ) -> Run<Typed> {
        let (fold, shape) = self.fold_code(n, init, xs, x, f, site)?;
        Ok(match fold.op.acc {
            Place::Regs { .. } => Typed::cells(Cells::Fold(Box::new(fold)), shape),
            Place::Slot { .. } => Typed::value(Values::Fold(Box::new(fold)), shape),
        })
    }

    /// As [`Builder::fold`], with the accumulator after every step as a row of the result; before every step if
    /// the scan is exclusive.
    #[expect(clippy::too_many_arguments, reason = "as `fold`, and the kind of the scan")]
    pub fn scan(
        &mut self,
        exclusive: bool,
        n: usize,
        init: Typed,
        xs: Typed,
        x: &Shape,
        f: Folded,
        site: Site,
    ) -> Run<Typed> {
        let (fold, shape) = self.fold_code(n, init, xs, x, f, site)?;
        let row = shape.components();
        Ok(Typed::value(
            Values::Scan(Box::new(Scan { fold, exclusive, row })),
            Shape::array(n, shape),
        ))
    }

    /// Builds a histogram with `m` accumulators: each row of `vs`, of shape `x`, is folded into the one at
    /// its index.
    #[expect(clippy::too_many_arguments, reason = "as many as the pattern has")]
    pub fn histogram(
        &mut self,
        m: usize,
        init: Typed,
        is: Typed,
        vs: Typed,
        x: &Shape,
        f: Body,
        site: Site,
    ) -> Run<Typed> {
        let (op, shape) = self.operator(init, x, f)?;
        let (is, vs) = (self.values(is), self.values(vs));
        let row = shape.components();
        let code = Histogram { op, m, is, vs, row, site };
        Ok(Typed::value(Values::Histogram(Box::new(code)), Shape::array(m, shape)))
    }

    /// Builds `a[i, ...]`, with as many indices as it takes to reach an element of the given shape.
    pub fn index(&mut self, array: Typed, at: Vec<Typed>, shape: Shape, site: Site) -> Typed {
        let typed = |t: &Typed| match t.shape {
            Shape::Scalar(s) => s,
            _ => ScalarType::I64,
        };
        let mut v = self.values(array);
        if shape.is_scalar() {
            let at: Vec<_> = at
                .into_iter()
                .map(|t| {
                    let ty = typed(&t);
                    (t.into_cells(), ty)
                })
                .collect();
            let scratch = self.regs(at.len() + shape.width());
            return Typed::cells(
                Cells::Index(Box::new(Index { array: v, at, scratch, site })),
                shape,
            );
        }
        for t in at {
            let ty = typed(&t);
            v = Values::Row(Box::new((v, t.into_cells())), ty, site);
        }
        Typed::value(v, shape)
    }

    /// Builds the array `0, 1, ...` of `n` numbers.
    pub fn iota(n: usize, ty: ScalarType) -> Typed {
        Typed::value(Values::Iota(n, ty), Shape::array(n, Shape::Scalar(ty)))
    }

    /// Runs the code once.
    ///
    /// # Errors
    /// When the program has no value.
    pub fn run(&mut self, t: Typed) -> Run<Value> {
        let code = self.values(t);
        self.run_values(&code, &Interrupt::NEVER)
    }

    /// Runs code of a value once, until it is asked to stop.
    ///
    /// # Errors
    /// When the program has no value, or the run was stopped.
    pub fn run_values(&self, code: &Values, stop: &Interrupt) -> Run<Value> {
        let site = Site { name: "result", span: None };
        let result = self.machine().stopped_by(stop).value(code)?;
        for leaf in result.leaves() {
            room(&leaf.shape()).map_err(|e| fault(site, Error::SizeRange, &e))?;
        }
        Ok(result)
    }
}

/// Returns the components `range` of cells that start at component `at`, if the code shows them.
fn pick(e: &Cells, at: usize, range: &Range<usize>) -> Option<Cells> {
    let Cells::Tuple(es) = e else { return None };
    let (mut at, mut out) = (at, vec![]);
    for (e, n) in es {
        let mine = at..at + n;
        if range.start <= mine.start && mine.end <= range.end {
            out.push((e.clone(), *n));
        } else if mine.start <= range.start && range.end <= mine.end {
            return pick(e, at, range);
        } else if range.start < mine.end && mine.start < range.end {
            return None;
        }
        at = mine.end;
    }
    match out.pop() {
        Some((e, 1)) if out.is_empty() => Some(e),
        last => {
            out.extend(last);
            Some(Cells::Tuple(out))
        }
    }
}
