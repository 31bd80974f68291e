//! Executes [`code`](super::code): slow and obvious, but without an allocation for each scalar.
//!
//! Arrays are computed whole, in the order written, and a fold starts from the left. The machine trusts the
//! places in the code and checks everything that depends on data: indices, divisors, lengths.

use super::code::{
    Cells, Code, Fold, Histogram, Index, Loop, Map, Op, Operator, Place, Row, Scan, Site, Until,
    Values, View,
};
use super::doubt::{Doubtful, Fuel, perhaps_others, rows_at, targets};
use crate::calculus::scalar::Lit;
use crate::calculus::value::{Cell, Column, Leaf, Slack, Spread, Value, number, room};
use crate::diag::{Code as Error, Diagnostic, Interrupt, Label, STACK_BYTES};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use std::num::NonZero;
use std::ops::Range;
use std::thread;

/// The error is boxed to keep the results of scalar operations small.
pub type Run<T> = Result<T, Box<Diagnostic>>;

/// Returns the error that the program has no value, as a diagnostic at `site`. The caller fills in the
/// source.
#[expect(clippy::unnecessary_box_returns, reason = "the error of `Run`")]
pub fn fault(site: Site, code: Error, text: &str) -> Box<Diagnostic> {
    let mut d = Diagnostic::error(code, format!("`{}`: {text}", site.name));
    d.labels.extend(site.span.map(|span| Label { span, text: text.to_owned(), primary: true }));
    Box::new(d)
}

#[expect(clippy::unnecessary_box_returns, reason = "the error of `Run`")]
fn broken(site: Site, text: &str) -> Box<Diagnostic> {
    fault(site, Error::Internal, text)
}

/// Returns the index if it is one of an array of `n` elements.
pub(super) fn below(i: i128, n: usize) -> Option<usize> {
    usize::try_from(i).ok().filter(|i| *i < n)
}

/// Number of operations from which a map is shared out over the processor's cores: a few milliseconds' worth.
const SHARED: f64 = 262_144.0;

/// Registers and slots.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(super) regs: Vec<Cell>,
    pub(super) slots: Vec<Value>,
    /// How far floats may be off because of rounding.
    pub(super) slack: Slack,
    /// Steps of loops left for a branch that may not be taken.
    pub(super) fuel: Fuel,
    /// Whether this machine computes a share of another machine's map.
    helper: bool,
    /// Request to stop, which is polled in every row of a map and in every step of a fold or a loop.
    stop: Interrupt,
}

/// Rows that are being collected into an array.
pub(super) struct Rows<'a> {
    row: &'a Row,
    columns: Vec<Column>,
    sizes: Vec<usize>,
    n: usize,
}

impl<'a> Rows<'a> {
    pub(super) fn new(row: &'a Row, n: usize, site: Site) -> Run<Self> {
        let (mut columns, mut sizes) = (vec![], vec![]);
        for (ty, dims) in row {
            let count =
                room(&[&[n], &dims[..]].concat()).map_err(|e| fault(site, Error::SizeRange, &e))?;
            columns.push(Column::new(*ty, count));
            sizes.push(dims.iter().fold(1, |n: usize, d| n.saturating_mul(*d)));
        }
        Ok(Rows { row, columns, sizes, n })
    }

    pub(super) fn cells(&mut self, cells: &[Cell]) {
        for (column, c) in self.columns.iter_mut().zip(cells) {
            column.push(*c);
        }
    }

    pub(super) fn value(&mut self, v: &Value, site: Site) -> Run<()> {
        let fits = v.leaves().iter().map(Leaf::count).eq(self.sizes.iter().copied());
        if !fits {
            return Err(broken(site, "a row of another shape than its type"));
        }
        for (column, leaf) in self.columns.iter_mut().zip(v.leaves()) {
            match leaf {
                Leaf::Scalar(_, c) => column.push(*c),
                Leaf::Array(a) => column.extend(a),
            }
        }
        Ok(())
    }

    /// Appends the rows of `more`.
    fn append(&mut self, more: Rows<'_>) {
        for (column, next) in self.columns.iter_mut().zip(more.columns) {
            column.append(next);
        }
        self.n += more.n;
    }

    pub(super) fn finish(self) -> Value {
        let leaves = self.columns.into_iter().zip(self.row).map(|(column, (_, dims))| {
            Leaf::Array(column.finish(&[&[self.n], &dims[..]].concat()))
        });
        Value::new(leaves.collect())
    }
}

impl Machine {
    /// A machine with these numbers of registers and slots; `slack` says how far floats may be off.
    pub fn new(regs: usize, slots: usize, slack: Slack) -> Machine {
        Machine {
            regs: vec![Cell::default(); regs],
            slots: vec![Value::unit(); slots],
            slack,
            fuel: Fuel::default(),
            helper: false,
            stop: Interrupt::NEVER,
        }
    }

    /// Makes the machine stop, with an error, when it is requested.
    #[must_use]
    pub fn stopped_by(self, stop: &Interrupt) -> Machine {
        Machine { stop: stop.clone(), ..self }
    }

    #[inline]
    fn poll(&self) -> Run<()> {
        if self.stop.requested() {
            let site = Site { name: "result", span: None };
            return Err(fault(site, Error::Interrupted, "the interpreter was stopped"));
        }
        Ok(())
    }

    /// Evaluates a scalar of one component.
    pub fn cell(&mut self, e: &Cells) -> Run<Cell> {
        match e {
            Cells::Const(c) => Ok(*c),
            Cells::Reg(r) => Ok(self.regs[*r]),
            Cells::Op(op) => self.op(op),
            Cells::Tuple(es) => match es.as_slice() {
                [(e, _), ..] => self.cell(e),
                [] => Ok(Cell::default()),
            },
            Cells::If(b) => {
                let condition = self.cell(&b.0)?;
                if condition.is_doubtful() {
                    return self.either_cell(condition, (&b.1, &b.2), &b.3);
                }
                self.cell(if condition.is_true() { &b.1 } else { &b.2 })
            }
            Cells::Let(b) => {
                self.put(b.0, &b.1)?;
                self.cell(&b.2)
            }
            Cells::Loop(l) => {
                self.run_loop(l)?;
                Ok(self.first(l.acc))
            }
            Cells::Fold(f) => {
                self.fold(f)?;
                Ok(self.first(f.op.acc))
            }
            Cells::Index(i) => {
                let to = i.scratch + i.at.len();
                self.index(i, to)?;
                Ok(self.regs[to])
            }
            Cells::Unpack(v) => {
                let v = self.value(v)?;
                Ok(match v.leaves() {
                    [Leaf::Scalar(_, c), ..] => *c,
                    _ => Cell::default(),
                })
            }
        }
    }

    fn first(&self, place: Place) -> Cell {
        match place {
            Place::Regs { base, n: 1.. } => self.regs[base],
            Place::Regs { .. } | Place::Slot { .. } => Cell::default(),
        }
    }

    /// Evaluates scalars into registers from `to` on; `e` must not read these registers.
    pub(super) fn cells(&mut self, e: &Cells, to: usize) -> Run<()> {
        match e {
            Cells::Const(_) | Cells::Reg(_) | Cells::Op(_) => {
                self.regs[to] = self.cell(e)?;
            }
            Cells::Tuple(es) => {
                let mut at = to;
                for (e, n) in es {
                    self.cells(e, at)?;
                    at += n;
                }
            }
            Cells::If(b) => {
                let condition = self.cell(&b.0)?;
                if condition.is_doubtful() {
                    return self.either_cells(condition, (&b.1, &b.2), &b.3, to);
                }
                self.cells(if condition.is_true() { &b.1 } else { &b.2 }, to)?;
            }
            Cells::Let(b) => {
                self.put(b.0, &b.1)?;
                self.cells(&b.2, to)?;
            }
            Cells::Loop(l) => {
                self.run_loop(l)?;
                self.copy(l.acc, to);
            }
            Cells::Fold(f) => {
                self.fold(f)?;
                self.copy(f.op.acc, to);
            }
            Cells::Index(i) => self.index(i, to)?,
            Cells::Unpack(v) => {
                let v = self.value(v)?;
                for (k, leaf) in v.leaves().iter().enumerate() {
                    leaf.for_each(&mut |c| self.regs[to + k] = c);
                }
            }
        }
        Ok(())
    }

    fn copy(&mut self, from: Place, to: usize) {
        if let Place::Regs { base, n } = from {
            self.regs.copy_within(base..base + n, to);
        }
    }

    pub(super) fn put(&mut self, place: Place, code: &Code) -> Run<()> {
        match (place, code) {
            (Place::Regs { base, .. }, Code::Cells(e)) => self.cells(e, base),
            (Place::Slot { slot, .. }, Code::Value(e)) => {
                self.slots[slot] = self.value(e)?;
                Ok(())
            }
            (Place::Regs { .. }, Code::Value(_)) | (Place::Slot { .. }, Code::Cells(_)) => {
                let site = Site { name: "let", span: None };
                Err(broken(site, "a place of another kind than its value"))
            }
        }
    }

    /// As `put`, for code that reads the place that it changes; `next` are spare registers.
    pub(super) fn step(&mut self, place: Place, next: usize, code: &Code) -> Run<()> {
        self.poll()?;
        match (place, code) {
            (Place::Regs { base, n: 1 }, Code::Cells(e)) => {
                self.regs[base] = self.cell(e)?;
                Ok(())
            }
            (Place::Regs { base, n }, Code::Cells(e)) => {
                self.cells(e, next)?;
                self.regs.copy_within(next..next + n, base);
                Ok(())
            }
            _ => self.put(place, code),
        }
    }

    #[inline]
    fn op(&mut self, op: &Op) -> Run<Cell> {
        let args = match (op.op, op.args.as_slice()) {
            (ScalarOp::And | ScalarOp::Or, [a, b]) => {
                let a = self.cell(a)?;
                let decided = a.is_true() == (op.op == ScalarOp::Or);
                if op.from == ScalarType::Bool && a.is_doubtful() {
                    return self.connect(op, a, decided, b);
                }
                if decided {
                    return Ok(a);
                }
                return self.cell(b);
            }
            (_, [a]) => [self.cell(a)?, Cell::default(), Cell::default()],
            (_, [a, b]) => [self.cell(a)?, self.cell(b)?, Cell::default()],
            (_, [a, b, c, ..]) => [self.cell(a)?, self.cell(b)?, self.cell(c)?],
            (_, []) => [Cell::default(); 3],
        };
        number::apply(op.op, op.from, op.to, op.exact, &self.slack, args)
            .map_err(|e| fault(op.site, Error::Eval, &e.to_string()))
    }

    /// Copies the cells of an element into registers from `to` on.
    fn index(&mut self, e: &Index, to: usize) -> Run<()> {
        let mut doubtful = false;
        for (k, (i, _)) in e.at.iter().enumerate() {
            let i = self.cell(i)?;
            doubtful |= i.is_doubtful();
            self.regs[e.scratch + k] = i;
        }
        let owned;
        let array = match &e.array {
            // The usual case, without touching a reference counter.
            Values::Slot(s, _) => &self.slots[*s],
            other => {
                owned = self.value(other)?;
                &owned
            }
        };
        for (k, leaf) in array.leaves().iter().enumerate() {
            let position =
                e.at.iter().zip(&self.regs[e.scratch..]).map(|((_, ty), c)| c.as_wide(*ty));
            let cell = match leaf {
                Leaf::Array(a) => a.get(position.clone()),
                Leaf::Scalar(..) => None,
            };
            let Some(mut cell) = cell else {
                let at: Vec<i128> = position.collect();
                let text = format!("{at:?} is outside an array of dimensions {:?}", leaf.shape());
                return Err(fault(e.site, Error::Eval, &text));
            };
            if doubtful && let Leaf::Array(a) = leaf {
                cell = perhaps_others(a, e, &self.regs[e.scratch..], &self.slack, cell);
            }
            self.regs[to + k] = cell;
        }
        Ok(())
    }

    fn run_loop(&mut self, l: &Loop) -> Run<()> {
        self.put(l.acc, &l.init)?;
        match &l.until {
            Until::Bound(index, bound, ty) => {
                let bound = self.cell(bound)?;
                if bound.is_doubtful() {
                    return self.count_doubtfully(l, *index, bound, *ty);
                }
                let bound = bound.as_wide(*ty);
                let mut i = 0;
                while i < bound {
                    self.regs[*index] = Cell::from_int(*ty, i);
                    self.step(l.acc, l.next, &l.body)?;
                    i += 1;
                }
            }
            Until::Not(cond) => loop {
                let going = self.cell(cond)?;
                if going.is_doubtful() {
                    return self.repeat_doubtfully(l, cond, going);
                }
                if !going.is_true() {
                    break;
                }
                self.fuel.burn(|| Site { name: "while", span: None })?;
                self.step(l.acc, l.next, &l.body)?;
            },
        }
        Ok(())
    }

    /// Binds parameters to row `i`; `leaves` are the components of all parameters in order.
    #[inline]
    pub(super) fn enter(&mut self, params: &[Place], leaves: &[Leaf], i: usize) {
        let mut rest = leaves;
        for place in params {
            let n = match place {
                Place::Regs { n, .. } | Place::Slot { n, .. } => (*n).min(rest.len()),
            };
            let (mine, others) = rest.split_at(n);
            rest = others;
            match place {
                Place::Regs { base, .. } => {
                    for (k, leaf) in mine.iter().enumerate() {
                        self.regs[base + k] = match leaf {
                            Leaf::Scalar(_, c) => *c,
                            Leaf::Array(a) => a.cell(i),
                        };
                    }
                }
                Place::Slot { slot, .. } => {
                    self.slots[*slot] = Value::new(mine.iter().map(|leaf| leaf.row(i)).collect());
                }
            }
        }
    }

    /// Evaluates an array, which must have `n` rows.
    fn rows(&mut self, xs: &Values, n: usize, site: Site) -> Run<Value> {
        let v = self.value(xs)?;
        match v.outer_len() {
            Ok(len) if len == n || v.leaves().is_empty() => Ok(v),
            Ok(len) => Err(broken(site, &format!("{len} elements instead of {n}"))),
            Err(text) => Err(broken(site, &text)),
        }
    }

    fn fold(&mut self, f: &Fold) -> Run<()> {
        let xs = self.rows(&f.xs, f.n, f.site)?;
        self.fold_with(&f.op, &xs, f.n, &mut |_, _| Ok(()))?;
        if let Some(drift) = &f.drift {
            self.fold_drift(&f.op, drift, &xs, f.n);
        }
        Ok(())
    }

    /// Folds the rows of an array. `each` is called before each step, with false, and after it, with true.
    pub(super) fn fold_with(
        &mut self,
        op: &Operator,
        xs: &Value,
        n: usize,
        each: &mut dyn FnMut(&mut Machine, bool) -> Run<()>,
    ) -> Run<()> {
        self.put(op.acc, &op.init)?;
        for i in 0..n {
            each(self, false)?;
            self.enter(&[op.x], xs.leaves(), i);
            self.step(op.acc, op.next, &op.body)?;
            each(self, true)?;
        }
        Ok(())
    }

    fn scan(&mut self, s: &Scan) -> Run<Value> {
        let f = &s.fold;
        let xs = self.rows(&f.xs, f.n, f.site)?;
        let exact = self.scan_with(s, &f.op, &xs)?;
        Ok(match f.drift.as_ref().and_then(|op| self.perhaps(|m| m.scan_with(s, op, &xs))) {
            Some(drifted) => exact.either(&self.slack, &drifted),
            None => exact,
        })
    }

    fn scan_with(&mut self, s: &Scan, op: &Operator, xs: &Value) -> Run<Value> {
        let mut rows = Rows::new(&s.row, s.fold.n, s.fold.site)?;
        let (acc, site) = (op.acc, s.fold.site);
        self.fold_with(op, xs, s.fold.n, &mut |m, after| match acc {
            _ if after == s.exclusive => Ok(()),
            Place::Regs { base, n } => {
                rows.cells(&m.regs[base..base + n]);
                Ok(())
            }
            Place::Slot { slot, .. } => rows.value(&m.slots[slot], site),
        })?;
        Ok(rows.finish())
    }

    fn map(&mut self, map: &Map) -> Run<Value> {
        let xs = self.rows(&map.xs, map.n, map.site)?;
        // Ask for the number of cores only where it matters: the system takes long to answer.
        let cores = match self.helper || map.n as f64 * (1.0 + map.work) < SHARED {
            true => 1,
            false => thread::available_parallelism().map_or(1, NonZero::get),
        };
        // With few rows, the maps inside are shared out.
        if cores == 1 || 2 * map.n < cores {
            return Ok(self.map_part(map, &xs, 0..map.n)?.finish());
        }
        // Rows are independent. The first error in order is reported.
        let share = map.n.div_ceil(cores);
        let parts = thread::scope(|scope| {
            let starts = (0..map.n).step_by(share);
            let helpers: Vec<_> = starts
                .map(|from| {
                    let range = from..map.n.min(from + share);
                    let mut helper = Machine { helper: true, ..self.clone() };
                    let (xs, job) = (&xs, range.clone());
                    let work = move || helper.map_part(map, xs, job);
                    let builder = thread::Builder::new().stack_size(STACK_BYTES);
                    (range, builder.spawn_scoped(scope, work))
                })
                .collect();
            let gone = || broken(map.site, "a part of the work was lost");
            helpers
                .into_iter()
                .map(|(range, helper)| match helper {
                    Ok(helper) => helper.join().unwrap_or_else(|_| Err(gone())),
                    // No thread could be started.
                    Err(_) => self.map_part(map, &xs, range),
                })
                .collect::<Vec<_>>()
        });
        let mut parts = parts.into_iter();
        let mut all = parts.next().unwrap_or_else(|| Rows::new(&map.row, 0, map.site))?;
        for part in parts {
            all.append(part?);
        }
        Ok(all.finish())
    }

    /// Computes some rows of a map.
    fn map_part<'a>(&mut self, map: &'a Map, xs: &Value, rows: Range<usize>) -> Run<Rows<'a>> {
        let mut out = Rows::new(&map.row, rows.len(), map.site)?;
        for i in rows {
            self.poll()?;
            self.enter(&map.params, xs.leaves(), i);
            match &map.body {
                Code::Cells(e) if map.row.len() == 1 => {
                    let c = self.cell(e)?;
                    out.cells(&[c]);
                }
                Code::Cells(e) => {
                    self.cells(e, map.next)?;
                    out.cells(&self.regs[map.next..map.next + map.row.len()]);
                }
                Code::Value(e) => {
                    let v = self.value(e)?;
                    out.value(&v, map.site)?;
                }
            }
        }
        Ok(out)
    }

    /// Returns the indices in an array of one component, and which of them are in doubt.
    fn indices(&mut self, is: &Values, site: Site) -> Run<(Vec<i128>, Doubtful)> {
        let v = self.value(is)?;
        let [Leaf::Array(a)] = v.leaves() else {
            return Err(broken(site, "indices that are not one array"));
        };
        let (mut out, mut doubtful) = (Vec::with_capacity(a.count()), Doubtful::new());
        a.for_each(&mut |c| {
            if c.is_doubtful() {
                doubtful.push((out.len(), c.spread()));
            }
            out.push(c.as_wide(a.ty()));
        });
        Ok((out, doubtful))
    }

    fn gather(&mut self, xs: &Values, is: &Values, site: Site) -> Run<Value> {
        let xs = self.value(xs)?;
        let n = xs.outer_len().map_err(|e| broken(site, &e))?;
        let mut found = vec![];
        let (is, doubtful) = self.indices(is, site)?;
        for (j, &i) in is.iter().enumerate() {
            let Some(i) = below(i, n) else {
                let text = format!("index {i} (at {j}) is outside an array of {n} elements");
                return Err(fault(site, Error::Eval, &text));
            };
            found.push(i);
        }
        let out = xs.select(found.len(), |j| found[j]).map_err(|e| broken(site, &e))?;
        if doubtful.is_empty() {
            return Ok(out);
        }
        let others = |(j, spread): &(usize, Spread)| (*j, rows_at(&xs, n, is[*j], *spread));
        Ok(out.with_rows(&self.slack, &doubtful.iter().map(others).collect::<Vec<_>>()))
    }

    fn scatter(&mut self, dest: &Values, is: &Values, vs: &Values, site: Site) -> Run<Value> {
        let dest = self.value(dest)?;
        let n = dest.outer_len().map_err(|e| broken(site, &e))?;
        let (is, doubtful) = self.indices(is, site)?;
        let vs = self.rows(vs, is.len(), site)?;
        // Row `i` of the result is row `from[i]` of `dest` and `vs` concatenated.
        let mut from: Vec<usize> = (0..n).collect();
        for (j, &i) in is.iter().enumerate() {
            let Some(i) = below(i, n) else { continue };
            if from[i] != i {
                let text = format!("two values go to index {i} (at {} and {j})", from[i] - n);
                return Err(fault(site, Error::Eval, &text));
            }
            from[i] = n + j;
        }
        let all = dest.concat(&vs).map_err(|e| broken(site, &e))?;
        let out = all.select(n, |i| from[i]).map_err(|e| broken(site, &e))?;
        if doubtful.is_empty() {
            return Ok(out);
        }
        // A doubtful index may write elsewhere: its own target may keep the old row, and other targets may
        // get this one.
        let mut others = vec![];
        for (j, spread) in doubtful {
            let nominal = below(is[j], n);
            for i in targets(is[j], spread, n) {
                let other = if Some(i) == nominal { dest.row(i) } else { vs.row(j) };
                others.push((i, Some(vec![other])));
            }
        }
        Ok(out.with_rows(&self.slack, &others))
    }

    fn counting_sort(
        &mut self,
        (k, ty): (usize, ScalarType),
        is: &Values,
        vs: &Values,
        site: Site,
    ) -> Run<Value> {
        let (is, doubtful) = self.indices(is, site)?;
        let vs = self.rows(vs, is.len(), site)?;
        let last = k.saturating_sub(1);
        let bucket = |i: i128| usize::try_from(i.max(0)).map_or(last, |i| i.min(last));
        let mut counts = vec![0; k.max(1)];
        is.iter().for_each(|i| counts[bucket(*i)] += 1);
        let mut places = vec![0; k.max(1)];
        for d in 1..k {
            places[d] = places[d - 1] + counts[d - 1];
        }
        let mut from = vec![0; is.len()];
        for (j, i) in is.iter().enumerate() {
            let next = &mut places[bucket(*i)];
            from[*next] = j;
            *next += 1;
        }
        let sorted = vs.select(is.len(), |i| from[i]).map_err(|e| broken(site, &e))?;
        let mut column = Column::new(ty, k);
        for n in counts.into_iter().take(k) {
            let n = Lit::int(ty, n as i128).as_int().and_then(|n| i64::try_from(n).ok());
            column.push(Cell::int(n.unwrap_or(i64::MAX)));
        }
        let counts = Leaf::Array(column.finish(&[k]));
        let leaves = [counts].into_iter().chain(sorted.leaves().iter().cloned());
        let out = Value::new(leaves.collect());
        // A row in another bucket moves all between the two.
        Ok(if doubtful.is_empty() { out } else { out.anything() })
    }

    fn histogram(&mut self, h: &Histogram) -> Run<Value> {
        let (is, doubtful) = self.indices(&h.is, h.site)?;
        let vs = self.rows(&h.vs, is.len(), h.site)?;
        if !doubtful.is_empty() {
            return self.histogram_doubtfully(h, &is, &doubtful, &vs);
        }
        let Operator { acc, next, x, body, init, .. } = &h.op;
        self.put(*acc, init)?;
        let targets = is.into_iter().map(|i| below(i, h.m)).enumerate();
        let mut rows = Rows::new(&h.row, h.m, h.site)?;
        match *acc {
            Place::Regs { base, n } => {
                let mut bins = self.regs[base..base + n].repeat(h.m);
                for (j, target) in targets {
                    let Some(i) = target else { continue };
                    self.regs[base..base + n].copy_from_slice(&bins[i * n..(i + 1) * n]);
                    self.enter(&[*x], vs.leaves(), j);
                    self.step(*acc, *next, body)?;
                    bins[i * n..(i + 1) * n].copy_from_slice(&self.regs[base..base + n]);
                }
                for i in 0..h.m {
                    rows.cells(&bins[i * n..(i + 1) * n]);
                }
            }
            Place::Slot { slot, .. } => {
                let mut bins = vec![self.slots[slot].clone(); h.m];
                for (j, target) in targets {
                    let Some(i) = target else { continue };
                    self.slots[slot] = std::mem::take(&mut bins[i]);
                    self.enter(&[*x], vs.leaves(), j);
                    self.step(*acc, *next, body)?;
                    bins[i] = self.slots[slot].clone();
                }
                for bin in &bins {
                    rows.value(bin, h.site)?;
                }
            }
        }
        Ok(rows.finish())
    }

    fn view(view: View, v: &Value) -> Result<Value, String> {
        match view {
            View::Split(k, m) => v.split(k, m),
            View::Join => v.join(),
            View::Transpose => v.transpose(),
            View::Inward(k) => v.inward(k),
            View::Outward(k) => v.outward(k),
            View::Reverse => v.reverse(),
            View::Slice(from, len) => v.slice(from, len),
            View::Slide(w, s, m) => v.slide(w, s, m),
            View::Replicate(n) => Ok(v.replicate(n)),
            View::ReplicateRows(n) => v.replicate_rows(n),
            View::Stride(s) => v.stride(s),
            View::Rotate(k) => v.rotate(k),
            View::Pad(mode, l, m) => v.pad(mode, l, m),
            View::PadLast(r) => v.pad_last(r),
            View::Only => match v.outer_len()? {
                0 if !v.leaves().is_empty() => Err("an empty array has no element".to_owned()),
                _ => Ok(v.row(0)),
            },
        }
    }

    /// Evaluates a value other than scalars.
    pub fn value(&mut self, e: &Values) -> Run<Value> {
        Ok(match e {
            Values::Given(v) => v.clone(),
            Values::Slot(s, _) => self.slots[*s].clone(),
            Values::Part(v, range) => match &**v {
                Values::Slot(s, _) => self.slots[*s].part(range.clone()),
                other => self.value(other)?.part(range.clone()),
            },
            Values::Tuple(es) => {
                let parts: Run<Vec<Value>> = es.iter().map(|e| self.value(e)).collect();
                Value::tuple(parts?)
            }
            Values::Pack(e, at, types) => {
                self.cells(e, *at)?;
                let leaves =
                    types.iter().enumerate().map(|(k, ty)| Leaf::Scalar(*ty, self.regs[at + k]));
                Value::new(leaves.collect())
            }
            Values::If(b) => {
                let condition = self.cell(&b.0)?;
                if condition.is_doubtful() {
                    return self.either_value(condition, (&b.1, &b.2));
                }
                self.value(if condition.is_true() { &b.1 } else { &b.2 })?
            }
            Values::Let(b) => {
                self.put(b.0, &b.1)?;
                self.value(&b.2)?
            }
            Values::Loop(l) => {
                self.run_loop(l)?;
                self.take(l.acc)
            }
            Values::Fold(f) => {
                self.fold(f)?;
                self.take(f.op.acc)
            }
            Values::View(view, v, site) => {
                let v = self.value(v)?;
                Self::view(*view, &v).map_err(|e| fault(*site, Error::Eval, &e))?
            }
            Values::Pick(v, axes) => {
                let site = Site { name: "result", span: None };
                self.value(v)?.pick(axes).map_err(|e| broken(site, &e))?
            }
            Values::Concat(b, site) => {
                let (x, y) = (self.value(&b.0)?, self.value(&b.1)?);
                x.concat(&y).map_err(|e| fault(*site, Error::Eval, &e))?
            }
            Values::PadWith(b, l, m, site) => {
                let (z, x) = (self.value(&b.0)?, self.value(&b.1)?);
                x.pad_with(&z, *l, *m).map_err(|e| fault(*site, Error::Eval, &e))?
            }
            Values::Row(b, ty, site) => {
                let (v, i) = (self.value(&b.0)?, self.cell(&b.1)?);
                let n = v.outer_len().map_err(|e| broken(*site, &e))?;
                match usize::try_from(i.as_wide(*ty)) {
                    Ok(own) if own < n && i.is_doubtful() => {
                        match rows_at(&v, n, i.as_wide(*ty), i.spread()) {
                            Some(rows) => rows
                                .iter()
                                .fold(v.row(own), |own, other| own.either(&self.slack, other)),
                            None => v.row(own).anything(),
                        }
                    }
                    Ok(i) if i < n => v.row(i),
                    _ => {
                        let text =
                            format!("index {} is outside an array of {n} elements", i.show(*ty));
                        return Err(fault(*site, Error::Eval, &text));
                    }
                }
            }
            Values::Gather(b, site) => self.gather(&b.0, &b.1, *site)?,
            Values::Scatter(b, site) => self.scatter(&b.0, &b.1, &b.2, *site)?,
            Values::Iota(n, ty) => {
                let site = Site { name: "iota", span: None };
                room(&[*n]).map_err(|e| fault(site, Error::SizeRange, &e))?;
                let numbers = (0i128..).take(*n).map(|i| Cell::from_int(*ty, i));
                Value::cells(*ty, &[*n], numbers)
            }
            Values::Map(m) => self.map(m)?,
            Values::Scan(s) => self.scan(s)?,
            Values::Histogram(h) => self.histogram(h)?,
            Values::CountingSort(k, ty, b, site) => {
                self.counting_sort((*k, *ty), &b.0, &b.1, *site)?
            }
        })
    }

    fn take(&mut self, place: Place) -> Value {
        match place {
            Place::Slot { slot, .. } => std::mem::take(&mut self.slots[slot]),
            Place::Regs { .. } => Value::unit(),
        }
    }
}
