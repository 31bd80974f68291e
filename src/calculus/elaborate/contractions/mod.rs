//! Brings contractions into the form of a product: sums of products in a nest of maps, of which one operand depends on some of
//! the maps and the other on others.
//!
//! `map (\k -> map (\i -> map (\j -> f (sum over c, d, e of x[c][i + d][j + e] * k[c][d][e])) js) is) ks`, a convolution, becomes
//!
//! ```text
//! let p = map (\k -> map (\w -> reduce (+) 0 (map2 (*) k w)) windows) (map flatten ks) in
//! map (\r -> map (\s -> map f s) (split r)) p
//! ```
//!
//! where `windows` has a row for each `i` and `j` with all `x[c][i + d][j + e]`. It is a view (`operands`): a tile of the product
//! copies the part of it that it needs to local memory. In general
//!
//! - the maps on which both operands depend make a batch of products; those of one operand alone are its rows, together;
//! - the dimensions of the sum are one, since the order of a reduction is open;
//! - a read that is tested to lie in its array is one of the array with a border (`padded`);
//! - an operand that is no read at sums of counters is computed for all of its rows.
//!
//! Products of two plain maps are left to the rules, which know them. The new nest is another form of the program: the cost model
//! decides.

mod conditions;
mod counters;
mod inner;
mod operands;
mod padded;
pub(super) mod sums;
#[cfg(test)]
mod tests;

use super::approx::Approx;
use super::core::{Ex, Kind, Lambda, Layout, Var, Vars};
use super::epilogues;
use super::fission::{TALL, in_branch};
use super::hoist::contains_reduction;
use super::interchange::named;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::lang::typed::{Prim, ScalarOp};
use crate::lang::types::ScalarType;
pub(super) use counters::affine;
use counters::{Axis, Reads, axis, contains_pattern, read_at, substitute};
use operands::{Operands, slides};

/// Fewest rows of each operand, and fewest elements of a row, for which a tile may pay.
const ROWS: u64 = 4;
const LENGTH: u64 = 8;

/// Fewest results, unless a sum is so long that it is computed in parts.
const RESULTS: u64 = 1 << 12;

/// Most nodes of the function of a nest.
const LARGEST: usize = 400;

/// Fewest columns of each product of a batch whose products have the same rows.
const COLUMNS: u64 = 256;

/// Returns the program with its contractions as products; `None` if it has none but plain products.
pub(super) fn as_products(
    e: &Ex,
    env: &SizeEnv,
    fresh: &mut dyn FnMut() -> Var,
    approx: &mut Approx,
) -> Option<Ex> {
    let mut out = e.clone();
    epilogues::of_nests(&mut out, fresh);
    Contractions { env, fresh, approx }.walk(&mut out).then_some(out)
}

struct Contractions<'a> {
    env: &'a SizeEnv,
    fresh: &'a mut dyn FnMut() -> Var,
    approx: &'a mut Approx,
}

/// A map around an expression, with the names between its function's beginning and the expression.
struct Around<'a> {
    function: &'a Lambda,
    args: &'a [Ex],
    lets: Vec<(Layout, Ex)>,
}

/// A reduction over several dimensions.
struct Sum {
    operator: Lambda,
    start: Ex,
    axes: Vec<Axis>,
    /// What is reduced, by counters.
    element: Ex,
}

/// One operand: the maps on which it depends, and the parts of the element that depend on no others.
struct Operand {
    depends: Vars,
    parts: Vec<Ex>,
}

/// An expression by counters that becomes an array.
struct Part {
    e: Ex,
    /// Whether its array has a dimension for the products of a batch, for the rows, for the columns.
    along: [bool; LEVELS],
    array: Ex,
}

/// The maps of the new nest: the products of a batch, rows, columns.
const LEVELS: usize = 3;

impl Contractions<'_> {
    /// Changes all nests in an expression. Returns whether there were any.
    fn walk(&mut self, e: &mut Ex) -> bool {
        match &mut e.kind {
            Kind::Map(Prim::Map, ..) => {
                if let Some(other) = self.nest(e).or_else(|| self.inner(e)) {
                    *e = other;
                    return true;
                }
            }
            // The program itself has chosen what a low-level map computes.
            Kind::Map(..) => return false,
            _ => {}
        }
        let mut changed = false;
        for part in e.parts_mut() {
            changed |= self.walk(part);
        }
        changed
    }

    /// Returns a nest with a contraction as a product; `None` if it has no contraction.
    fn nest(&mut self, e: &Ex) -> Option<Ex> {
        let (mut axes, mut names): (Vec<Axis>, Vec<(Layout, Ex)>) = (vec![], vec![]);
        let (mut stages, mut around) = (vec![], vec![]);
        // What each element computes: its names, also those that only a branch needs, and itself.
        let mut computed: Vec<Ex> = vec![];
        let mut body = e;
        while let (Kind::Map(Prim::Map, f, args), Ty::Array(n, _)) = (&body.kind, &body.ty) {
            let axis = axis(n, args, self.fresh)?;
            names.extend(read_at(f, args, &axis)?);
            axes.push(axis);
            around.push(Around { function: f, args, lets: vec![] });
            body = &f.body;
            while let Kind::Let(p, value, inner) = &body.kind {
                let named = match self.stage(p, value, &around, &axes) {
                    Some((stage, read)) => {
                        stages.push(stage);
                        read
                    }
                    None => (**value).clone(),
                };
                if value.ty.is_scalar() && contains_reduction(value) {
                    computed.push((**value).clone());
                }
                names.push((p.clone(), named));
                around.last_mut()?.lets.push((p.clone(), (**value).clone()));
                body = inner;
            }
        }
        let is_scalar = body.ty.components().iter().all(|(dims, _)| dims.is_empty());
        if axes.len() < 2 || !is_scalar || !contains_pattern(e) {
            return None;
        }
        computed.push(body.clone());
        for part in &mut computed {
            for name in names.iter().rev() {
                substitute(part, std::slice::from_ref(name));
                // Names that are used often may stand for ever larger expressions.
                if part.size() > LARGEST {
                    return None;
                }
            }
            self.reads().simplify(part);
        }
        let mut body = computed.last()?.clone();
        let mut found = owned_reductions(&computed);
        found.retain(|r| body.contains(r));
        let others = self.all_but_last(&mut body, &found, &axes)?;
        found.retain(|r| body.contains(r));
        let product = found.iter().find_map(|r| self.product(&body, r, &axes))?;
        let product = product.after(others);
        Some(stages.into_iter().rev().fold(product, |e, (name, mut value)| {
            if !name.meets(&e.free()) {
                return e;
            }
            self.walk(&mut value);
            e.bound(name, value)
        }))
    }

    /// Takes all contractions but one out of an element, such as the gate of a gated convolution: the nest reads the array of their
    /// values. Returns their names with the arrays, which are products.
    fn all_but_last(
        &mut self,
        body: &mut Ex,
        found: &[Ex],
        axes: &[Axis],
    ) -> Option<Vec<(Layout, Ex)>> {
        if found.len() < 2 {
            return Some(vec![]);
        }
        let mut products = vec![];
        for reduction in found {
            let product = self.product(reduction, reduction, axes);
            products.extend(product.map(|product| (reduction, product)));
        }
        products.pop();
        let mut stages = vec![];
        for (reduction, product) in products {
            let name = Layout::Var((self.fresh)(), product.ty.clone());
            let whole = name.value(reduction.span);
            let read = axes.iter().try_fold(whole, |e, axis| e.element(&axis.place(&e)))?;
            body.replace(reduction, &read);
            stages.push((name, product));
        }
        Some(stages)
    }

    /// Takes an array with reductions that the maps around it compute, such as the first of two convolutions, out of the maps:
    /// the nest reads the array of all of them. Returns its name with its value, and the element that `p` named.
    fn stage(
        &mut self,
        p: &Layout,
        value: &Ex,
        around: &[Around],
        axes: &[Axis],
    ) -> Option<((Layout, Ex), Ex)> {
        let (Layout::Var(..), Ty::Array(..)) = (p, &value.ty) else { return None };
        if !contains_reduction(value) {
            return None;
        }
        let all = around.iter().rev().try_fold(value.clone(), |e, a| {
            let e = e.behind(a.lets.iter(), self.fresh);
            Ex::map_of(e, a.function.params.iter().zip(a.args), self.fresh)
        })?;
        let name = Layout::Var((self.fresh)(), all.ty.clone());
        let whole = name.value(value.span);
        let read = axes.iter().try_fold(whole, |e, axis| e.element(&axis.place(&e)))?;
        Some(((name, all), read))
    }

    /// Returns the array of a body's values in a nest, with a reduction in it as a product.
    fn product(&mut self, body: &Ex, reduction: &Ex, nest: &[Axis]) -> Option<Ex> {
        let mut sum = self.sum(reduction)?;
        let counters: Vars = nest.iter().map(|a| a.counter).collect();
        if is_sum(reduction) {
            self.conditions_into_operands(&mut sum, nest);
        }
        let (a, b) = Self::operands(&sum.element, &counters)?;
        let last = nest.last()?.counter;
        let (rows, columns) = if a.depends.contains(&last) { (b, a) } else { (a, b) };
        let of = |vars: &Vars| -> Vec<&Axis> {
            nest.iter().filter(|a| vars.contains(&a.counter)).collect()
        };
        let both: Vars = rows.depends.intersection(&columns.depends).copied().collect();
        let own_rows = of(&rows.depends.difference(&both).copied().collect());
        let mut own_columns = of(&columns.depends.difference(&both).copied().collect());
        let mut batch = of(&both);
        let all = [&batch[..], &own_rows, &own_columns].concat();
        if all.len() != nest.len()
            || !self.pays(&sum, &batch, &own_rows, &own_columns)
            || (own_columns.len() < 2 && !self.is_new(&sum, &rows, &columns, &all))
        {
            return None;
        }
        // Columns outside of the rows (images) make a batch, too, with the same rows for each: so results keep their order.
        if batch.is_empty() {
            let outside = nest.iter().take_while(|a| !rows.depends.contains(&a.counter)).count();
            if outside > 0 && self.size(&own_columns[outside..]) >= COLUMNS {
                batch = own_columns.drain(..outside).collect();
            }
        }
        let levels = [batch, own_rows, own_columns];
        let result = Layout::Var((self.fresh)(), reduction.ty.clone());
        let mut body = body.clone();
        body.replace(reduction, &result.value(reduction.span));
        let build = Operands { env: self.env, fresh: self.fresh };
        let mut needs = Needs { counters: &counters, result: &result, build, nest, found: vec![] };
        needs.add(&body, false)?;
        let beside = needs.found;
        let (mut operands, mut others) = (vec![], vec![]);
        for e in rows.parts.iter().chain(&columns.parts) {
            operands.push(self.part(e, Self::along(e, &levels), &levels, &sum.axes)?);
        }
        // What is beside a product is a matrix, or belongs to rows and columns: the rules know no products with both.
        let of_pairs = beside.iter().any(|e| {
            let along = Self::along(e, &levels);
            along[1] && along[2]
        });
        for e in &beside {
            let mut along = Self::along(e, &levels);
            if of_pairs && (along[1] || along[2]) {
                along[1..].fill(true);
            }
            others.push(self.part(e, along, &levels, &[])?);
        }
        let product = self.all_pairs(&sum, operands, &result, body, others)?;
        let mut build = Operands { env: self.env, fresh: self.fresh };
        let depth = usize::from(!levels[0].is_empty());
        let mut out = product;
        for (depth, axes) in [(depth + 1, &levels[2]), (depth, &levels[1]), (0, &levels[0])] {
            let lengths: Vec<Size> = axes.iter().map(|a| a.n.clone()).collect();
            out = build.split(out, depth, &lengths)?;
        }
        let have = levels.concat().iter().map(|a| a.counter).collect();
        let want: Vec<Var> = nest.iter().map(|a| a.counter).collect();
        build.arranged(out, have, &want)
    }

    /// Returns on which levels an expression depends.
    fn along(e: &Ex, levels: &[Vec<&Axis>; LEVELS]) -> [bool; LEVELS] {
        let free = e.free();
        [0, 1, 2].map(|k: usize| levels[k].iter().any(|a| free.contains(&a.counter)))
    }

    /// Returns the array of an expression: along these levels, and along the axes of a sum.
    fn part(
        &mut self,
        e: &Ex,
        along: [bool; LEVELS],
        levels: &[Vec<&Axis>; LEVELS],
        sum: &[Axis],
    ) -> Option<Part> {
        let own: Vec<&Vec<&Axis>> = (0..LEVELS).filter(|k| along[*k]).map(|k| &levels[k]).collect();
        let axes: Vec<&Axis> = own.iter().copied().flatten().copied().chain(sum).collect();
        let mut build = Operands { env: self.env, fresh: self.fresh };
        let mut array = build.array(e, &axes)?;
        let mut first = axes.len();
        let groups =
            own.iter().map(|level| level.len()).chain((!sum.is_empty()).then_some(sum.len()));
        for count in groups.rev() {
            first -= count;
            array = build.joined(array, first, count)?;
        }
        Some(Part { e: e.clone(), along, array })
    }

    fn reads(&mut self) -> Reads<'_> {
        Reads { env: self.env, fresh: self.fresh }
    }

    /// Returns a reduction of reductions by the same operator as one.
    fn sum(&mut self, e: &Ex) -> Option<Sum> {
        let Kind::Prim(Prim::Reduce | Prim::ReduceComm, funs, _, args) = &e.kind else {
            return None;
        };
        let ([operator], [start, array]) = (&funs[..], &args[..]) else { return None };
        if !operator.captures().is_empty() || !start.free().is_empty() {
            return None;
        }
        let (mut axes, mut element) = self.elements(array)?;
        if let Some(inner) = self.sum(&element)
            && inner.start == *start
            && Self::same(&inner.operator, operator)
        {
            axes.extend(inner.axes);
            element = inner.element;
        }
        Some(Sum { operator: operator.clone(), start: start.clone(), axes, element })
    }

    /// Returns the elements of an array by counters, and the counters: several, if its dimension is a product of dimensions.
    fn elements(&mut self, array: &Ex) -> Option<(Vec<Axis>, Ex)> {
        let Ty::Array(n, _) = &array.ty else { return None };
        let (mut names, mut element);
        let axis = match &array.kind {
            Kind::Prim(Prim::Join, _, _, args) => {
                let (mut axes, row) = self.elements(args.first()?)?;
                let (inner, element) = self.elements(&row)?;
                axes.extend(inner);
                return Some((axes, element));
            }
            Kind::Map(Prim::Map, f, args) => {
                let axis = axis(n, args, self.fresh)?;
                names = read_at(f, args, &axis)?;
                element = (*f.body).clone();
                axis
            }
            _ => {
                let axis = axis(n, std::slice::from_ref(array), self.fresh)?;
                (names, element) = (vec![], array.element(&axis.place(array))?);
                axis
            }
        };
        while let Kind::Let(p, value, inner) = element.kind {
            names.push((p, *value));
            element = *inner;
        }
        substitute(&mut element, &names);
        self.reads().simplify(&mut element);
        Some((vec![axis], element))
    }

    /// Whether two operators are the same.
    fn same(a: &Lambda, b: &Lambda) -> bool {
        let mut body = (*a.body).clone();
        let values = b.params.iter().map(|p| p.value(b.body.span));
        let names: Vec<(Layout, Ex)> = a.params.iter().cloned().zip(values).collect();
        substitute(&mut body, &names);
        body == *b.body
    }

    /// Returns the two operands of an element; `None` if it is no function of two operands that depend on different maps.
    fn operands(element: &Ex, nest: &Vars) -> Option<(Operand, Operand)> {
        let mut sets: Vec<Vars> = vec![];
        reads_of(element, &mut |read| {
            sets.push(read.free().intersection(nest).copied().collect());
        });
        let largest = |s: &Vars| !sets.iter().any(|t| s.is_subset(t) && s != t);
        let mut greatest: Vec<Vars> = sets.iter().filter(|s| largest(s)).cloned().collect();
        greatest.sort();
        greatest.dedup();
        let [a, b] = &greatest[..] else { return None };
        let mut found = [a, b].map(|s| Operand { depends: s.clone(), parts: vec![] });
        distribute(element, nest, &mut found)?;
        // Matrix instructions convert what they multiply.
        if found.iter().flat_map(|o| &o.parts).all(|part| widened(part).is_some()) {
            for part in found.iter_mut().flat_map(|o| &mut o.parts) {
                *part = widened(part)?.clone();
            }
        }
        let [a, b] = found;
        (!a.parts.is_empty() && !b.parts.is_empty()).then_some((a, b))
    }

    /// Whether the product is large enough for tiles.
    fn pays(&self, sum: &Sum, batch: &[&Axis], rows: &[&Axis], columns: &[&Axis]) -> bool {
        let (rows, columns) = (self.size(rows), self.size(columns));
        let results = self.size(batch).saturating_mul(rows).saturating_mul(columns);
        let length = self.size(&sum.axes.iter().collect::<Vec<_>>());
        let many = results >= RESULTS || length / TALL >= results;
        rows >= ROWS && columns >= ROWS && many && length >= LENGTH
    }

    /// Returns the number of elements of an array with these dimensions.
    fn size(&self, axes: &[&Axis]) -> u64 {
        let lengths = axes.iter().map(|a| a.n.eval(self.env).unwrap_or(1));
        lengths.fold(1, u64::saturating_mul)
    }

    /// Whether the rules do not know a product of one dimension of columns as it stands: the sum has several dimensions, or an
    /// operand reads windows, or is computed, which matrix instructions have no place for.
    fn is_new(&self, sum: &Sum, rows: &Operand, columns: &Operand, nest: &[&Axis]) -> bool {
        let counters: Vars = nest.iter().copied().chain(&sum.axes).map(|a| a.counter).collect();
        let mut new = sum.axes.len() > 1;
        let adds = matches!(sum.operator.body.kind, Kind::Op(ScalarOp::Add, _));
        for part in rows.parts.iter().chain(&columns.parts) {
            new |= adds && !matches!(part.kind, Kind::Index(..));
            reads_of(part, &mut |read| {
                let mut array = read;
                while let Kind::Index(a, at) = &array.kind {
                    new |= affine(at, &counters, self.env).is_none_or(|p| slides(&p));
                    array = a;
                }
            });
        }
        new
    }

    /// Returns the product of all rows with all columns: at each pair, the body with the sum in the place of `result`.
    fn all_pairs(
        &mut self,
        sum: &Sum,
        mut operands: Vec<Part>,
        result: &Layout,
        mut body: Ex,
        mut others: Vec<Part>,
    ) -> Option<Ex> {
        let span = body.span;
        let mut maps: Vec<(Vec<Layout>, Vec<Ex>)> = vec![];
        for level in 0..LEVELS {
            let (mut own, mut arrays) = (vec![], vec![]);
            for part in operands.iter_mut().chain(&mut others).filter(|p| p.along[level]) {
                let Ty::Array(_, row) = &part.array.ty else { return None };
                let name = named(row, self.fresh);
                let value = name.value(span);
                arrays.push(std::mem::replace(&mut part.array, value));
                own.push(name);
            }
            maps.push((own, arrays));
        }
        let mut element = sum.element.clone();
        let (mut params, mut rows) = (vec![], vec![]);
        for part in operands {
            let name = named(&part.e.ty, self.fresh);
            element.replace(&part.e, &name.value(span));
            params.push(name);
            rows.push(part.array);
        }
        let args = vec![sum.start.clone(), map(params, element, rows)?];
        let reduce = Kind::Prim(Prim::Reduce, vec![sum.operator.clone()], vec![], args);
        let reduce = Ex::new(reduce, sum.start.ty.clone(), span);
        for part in others {
            body.replace(&part.e, &part.array);
        }
        let [(name, _)] = &result.vars()[..] else { return None };
        // In a branch, it would be no product.
        if body.uses(*name) == 1 && !in_branch(&body, *name) {
            body.put(*name, &reduce);
        } else {
            body = body.bound(result.clone(), reduce);
        }
        let mut maps = maps.into_iter().rev().filter(|(own, _)| !own.is_empty());
        maps.try_fold(body, |body, (own, arrays)| map(own, body, arrays))
    }
}

/// Returns the map of a function over arrays.
fn map(params: Vec<Layout>, body: Ex, arrays: Vec<Ex>) -> Option<Ex> {
    let Ty::Array(n, _) = &arrays.first()?.ty else { return None };
    let (ty, span) = (Ty::array(n, &body.ty), body.span);
    let f = Lambda { params, body: Box::new(body) };
    Some(Ex::new(Kind::Map(Prim::Map, f, arrays), ty, span))
}

/// Finds what the function of a nest needs besides the result of a reduction.
struct Needs<'a> {
    counters: &'a Vars,
    result: &'a Layout,
    build: Operands<'a>,
    nest: &'a [Axis],
    /// Reads, and counters.
    found: Vec<Ex>,
}

impl Needs<'_> {
    /// Adds what an expression reads by counters; `None` if it computes more patterns, or if a branch reads what may be out
    /// of range where the branch is not taken.
    fn add(&mut self, e: &Ex, branch: bool) -> Option<()> {
        let free = e.free();
        if free.is_disjoint(self.counters) {
            return Some(());
        }
        let inside = self.result.meets(&free);
        match &e.kind {
            Kind::If(c, a, b) if inside => {
                self.add(c, branch)?;
                self.add(a, true)?;
                self.add(b, true)
            }
            Kind::Op(..) | Kind::Pair(..) | Kind::Proj(..) => {
                e.parts().into_iter().try_for_each(|(_, part)| self.add(part, branch))
            }
            _ if contains_pattern(e) || inside || !matches!(e.ty, Ty::Scalar(_)) => None,
            _ if branch && !self.build.in_range(e, self.nest) => None,
            _ => {
                if !self.found.contains(e) {
                    self.found.push(e.clone());
                }
                Some(())
            }
        }
    }
}

/// Calls `f` on every read in an expression, the outermost of several.
fn reads_of<'e>(e: &'e Ex, f: &mut dyn FnMut(&'e Ex)) {
    match &e.kind {
        Kind::Index(..) => f(e),
        _ => e.parts().into_iter().for_each(|(_, part)| reads_of(part, f)),
    }
}

/// Adds the largest parts of an element that depend on the maps of one operand to that operand; `None` if the element needs
/// anything else of the nest.
fn distribute(e: &Ex, nest: &Vars, operands: &mut [Operand; 2]) -> Option<()> {
    let free = e.free();
    let mut reads = false;
    reads_of(e, &mut |_| reads = true);
    if !reads && free.is_empty() {
        return Some(());
    }
    let depends: Vars = free.intersection(nest).copied().collect();
    if let Some(operand) = operands.iter_mut().find(|o| depends.is_subset(&o.depends)) {
        if !contains_pattern(e) && matches!(e.ty, Ty::Scalar(_)) {
            if !operand.parts.contains(e) {
                operand.parts.push(e.clone());
            }
            return Some(());
        }
        return None;
    }
    match &e.kind {
        Kind::Op(..) | Kind::Pair(..) | Kind::Proj(..) => {
            e.parts().into_iter().try_for_each(|(_, part)| distribute(part, nest, operands))
        }
        _ => None,
    }
}

/// Returns the read of a narrow number that is only converted to the type of sums.
fn widened(part: &Ex) -> Option<&Ex> {
    let Kind::Op(ScalarOp::Cast(_), of) = &part.kind else { return None };
    let [read] = &of[..] else { return None };
    let (Ty::Scalar(from), Ty::Scalar(to)) = (&read.ty, &part.ty) else { return None };
    let exact = match to {
        ScalarType::F32 => {
            matches!(from, ScalarType::F16 | ScalarType::BF16 | ScalarType::I8 | ScalarType::U8)
        }
        ScalarType::I32 => *from == ScalarType::I8,
        _ => false,
    };
    (exact && matches!(read.kind, Kind::Index(..))).then_some(read)
}

/// Whether a reduction is a sum.
fn is_sum(reduction: &Ex) -> bool {
    let adds = |f: &Lambda| matches!(f.body.kind, Kind::Op(ScalarOp::Add, _));
    matches!(&reduction.kind, Kind::Prim(_, funs, ..) if funs.iter().any(adds))
}

/// Whether an expression is the number 0.
fn is_zero(e: &Ex) -> bool {
    match &e.kind {
        Kind::Lit(n) => n.as_int() == Some(0) || n.as_float() == Some(0.0),
        _ => false,
    }
}

/// Returns the different reductions that expressions always compute.
fn owned_reductions(computed: &[Ex]) -> Vec<Ex> {
    let (mut found, mut out): (Vec<&Ex>, Vec<Ex>) = (vec![], vec![]);
    computed.iter().for_each(|e| reductions(e, &mut found));
    for reduction in found {
        if !out.contains(reduction) {
            out.push(reduction.clone());
        }
    }
    out
}

/// Adds the reductions that an expression always computes, outside functions and loops.
fn reductions<'e>(e: &'e Ex, out: &mut Vec<&'e Ex>) {
    match &e.kind {
        Kind::Prim(Prim::Reduce | Prim::ReduceComm, ..) => out.push(e),
        Kind::Let(_, value, body) => {
            reductions(value, out);
            reductions(body, out);
        }
        Kind::Pair(..) | Kind::Proj(..) | Kind::Op(..) => {
            e.parts().into_iter().for_each(|(_, part)| reductions(part, out));
        }
        Kind::If(condition, ..) => reductions(condition, out),
        _ => {}
    }
}
