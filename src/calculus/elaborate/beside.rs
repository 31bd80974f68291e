//! Maps side by side become one map (horizontal fusion): results of equal length are computed in one pass over the data.
//!
//! `(map f a, map2 g a b)` becomes `unzip (map2 (\x y -> (f x, g x y)) a b)`. What several results need is computed once for each
//! element: `let s = map f a in (map g s, s)` becomes `unzip (map (\x -> let y = f x in (g y, y)) a)`. An array that is needed as a
//! whole as well (`rotate 1 s`) keeps its name, and is read.
//!
//! Only maps that read a common array are put together. A pass with two results reads it once, and is never much slower than two
//! passes. This holds where all results are computed element by element ([`Scope::Elements`]), which is the normal form. Rows that
//! are reduced beside other work on them ([`Scope::Rows`]) need parallelism of another kind, so this is another form of the
//! program, and the cost model decides.

use super::block::{Block, arranged};
use super::core::{Ex, Kind, Lambda, Layout, Var, Vars};
use super::interchange::named;
use super::{core, inward, loops_out};
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::lang::typed::{Prim, ScanKind};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// What maps are put together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Maps, and nests of maps, that compute each scalar of the result from a few scalars.
    Elements,
    /// Maps that go through each row a few times, too.
    Rows,
}

/// Most scalars of an array that an element may go through, such as a window.
const FEW: u64 = 64;

/// Puts the maps side by side together. Returns whether there were any.
pub(super) fn together(
    e: &mut Ex,
    scope: Scope,
    env: &SizeEnv,
    fresh: &mut dyn FnMut() -> Var,
) -> bool {
    Beside { scope, env, states: Vars::new(), fresh }.walk(e)
}

struct Beside<'a> {
    scope: Scope,
    env: &'a SizeEnv,
    /// The states of the loops around the expression.
    states: Vars,
    fresh: &'a mut dyn FnMut() -> Var,
}

/// Results that one map computes.
struct Group {
    /// The numbers of the results, in order.
    leaves: Vec<usize>,
    /// The numbers of the names whose elements are computed in the map.
    lets: BTreeSet<usize>,
}

/// The map that takes the place of a group, while it is made.
#[derive(Default)]
struct Made {
    /// The elements of names that are computed in the map.
    elements: HashMap<Var, Layout>,
    /// The arrays that the map reads, each with its element.
    params: Vec<Layout>,
    args: Vec<Ex>,
}

impl Beside<'_> {
    fn walk(&mut self, e: &mut Ex) -> bool {
        let one = self.one_pass(e);
        let changed = one.is_some();
        if let Some(one) = one {
            *e = one;
        }
        self.parts(e) || changed
    }

    /// Changes what the names and the results of a block are computed from.
    fn parts(&mut self, e: &mut Ex) -> bool {
        match &mut e.kind {
            Kind::Let(_, value, body) => {
                // Results that were put together are pairs.
                let is_pair = matches!(value.kind, Kind::Pair(..));
                let changed = if is_pair { self.parts(value) } else { self.walk(value) };
                self.parts(body) || changed
            }
            Kind::Pair(a, b) => {
                let changed = self.parts(a);
                self.parts(b) || changed
            }
            // The program itself has chosen what a low-level map computes.
            Kind::Map(kind, _, args) if *kind != Prim::Map => {
                args.iter_mut().map(|a| self.walk(a)).filter(|changed| *changed).count() > 0
            }
            kind => {
                if let Kind::For(_, _, _, acc, _) | Kind::While(_, acc, ..) = kind {
                    self.states.extend(acc.vars().into_iter().map(|(v, _)| v));
                }
                let parts = e.parts_mut().into_iter();
                parts.map(|part| self.walk(part)).filter(|changed| *changed).count() > 0
            }
        }
    }

    /// Returns the expression with the groups of its results put together; `None` if there are none.
    fn one_pass(&mut self, e: &Ex) -> Option<Ex> {
        if !e.ty.has_array() || !matches!(e.behind_lets().kind, Kind::Pair(..)) {
            return None;
        }
        let (mut block, result) = Block::of(e.clone());
        let values = block.lets.iter_mut().map(|(_, value)| value);
        values.chain(&mut block.leaves).for_each(|e| inward::inward(e, self.fresh));
        let mut names = vec![];
        let mut others: Vec<usize> = (0..block.leaves.len()).collect();
        while let Some(group) = self.group(&block) {
            others.retain(|k| !group.leaves.contains(k));
            names.push(self.map_of(&group, &mut block)?);
        }
        if names.is_empty() {
            return None;
        }
        let mut values = std::mem::take(&mut block.maps);
        for k in others {
            let name = named(&block.leaves[k].ty, self.fresh);
            let leaf = std::mem::replace(&mut block.leaves[k], name.value(e.span));
            names.push(name);
            values.push(leaf);
        }
        let names = nested(names, |a, b| Layout::Pair(Box::new(a), Box::new(b)))?;
        let values = nested(values, Ex::pair)?;
        let result = arranged(&result, &mut block.leaves.into_iter());
        // The results are arranged behind what computes them, which can then store them where they belong.
        let out = if result == names.value(e.span) { values } else { result.bound(names, values) };
        Some(block.lets.into_iter().rev().fold(out, |out, (p, value)| {
            if p.meets(&out.free()) { out.bound(p, value) } else { out }
        }))
    }

    /// Makes the map that computes the results of a group, and returns their names, which take their places.
    fn map_of(&mut self, group: &Group, block: &mut Block) -> Option<Layout> {
        let mut made = Made::default();
        let mut inner: Vec<(Layout, Ex)> = vec![];
        for k in &group.lets {
            let (p, value) = &block.lets[*k];
            let value = self.element(value, &mut made);
            let name = self.element_of(p, &mut made);
            inner.push((name, value));
        }
        let leaves: Vec<&Ex> = group.leaves.iter().map(|k| &block.leaves[*k]).collect();
        let values: Vec<Ex> = leaves.iter().map(|leaf| self.element(leaf, &mut made)).collect();
        let values = nested(values, Ex::pair)?;
        let body = inner.into_iter().rev().fold(values, |body, (p, value)| bind(&p, value, body));
        let (n, span) = (length(&leaves.first()?.ty)?, body.span);
        let ty =
            nested(leaves.iter().map(|leaf| leaf.ty.clone()).collect(), |a, b| Ty::pair(&a, &b))?;
        let array = Ty::array(&n, &body.ty);
        let f = Lambda { params: made.params, body: Box::new(body) };
        let map = Ex::new(Kind::Map(Prim::Map, f, made.args), array, span);
        let all = Ex::new(Kind::Prim(Prim::Unzip, vec![], vec![], vec![map]), ty, span);
        let names: Vec<Layout> = leaves.iter().map(|leaf| named(&leaf.ty, self.fresh)).collect();
        for (k, name) in group.leaves.iter().zip(&names) {
            block.leaves[*k] = name.value(span);
        }
        let mut number = 0..;
        block.lets.retain(|_| number.next().is_none_or(|k| !group.lets.contains(&k)));
        block.maps.push(all);
        nested(names, |a, b| Layout::Pair(Box::new(a), Box::new(b)))
    }

    /// Returns the first group of results that one map can compute.
    fn group(&self, block: &Block) -> Option<Group> {
        for (k, leaf) in block.leaves.iter().enumerate() {
            let Some(n) = length(&leaf.ty) else { continue };
            let alike = |other: &Ex| match self.scope {
                Scope::Elements => dims(&other.ty).is_some_and(|d| Some(d) == dims(&leaf.ty)),
                Scope::Rows => length(&other.ty).as_ref() == Some(&n),
            };
            let mut alike: Vec<usize> =
                (0..block.leaves.len()).filter(|j| alike(&block.leaves[*j])).collect();
            if alike.first() != Some(&k) {
                continue;
            }
            let inner = self.inner(block, &alike, &n);
            let all = alike.clone();
            alike.retain(|j| self.is_result(&block.leaves[*j], block, &all, &inner));
            let of: Vec<Reads> =
                alike.iter().map(|j| self.reads(&block.leaves[*j], block, &inner)).collect();
            for first in 0..alike.len() {
                let group = connected(&of, first);
                let computes = group.iter().any(|i| of[*i].computes);
                if group.len() < 2 || !computes || group.first() != Some(&first) {
                    continue;
                }
                let lets = group.iter().flat_map(|i| of[*i].lets.iter().copied()).collect();
                let group = Group { leaves: group.iter().map(|i| alike[*i]).collect(), lets };
                if !group.is_one(block) {
                    return Some(group);
                }
            }
        }
        None
    }

    /// Whether a map may compute this result. What the program stores in any case is a result as it stands: a copy would cost more.
    fn is_result(&self, e: &Ex, block: &Block, alike: &[usize], inner: &BTreeSet<usize>) -> bool {
        let own = e.free();
        // The host exchanges the arrays of a state.
        if matches!(e.kind, Kind::Var(v) if self.states.contains(&v)) {
            return false;
        }
        let name = block.lets.iter().position(|(p, _)| p.meets(&own));
        let (Kind::Var(_), Some(k)) = (&e.kind, name) else { return true };
        if inner.contains(&k) {
            return true;
        }
        let value = match &block.lets[k].1.kind {
            Kind::Prim(Prim::Unzip, _, _, args) if args.len() == 1 => &args[0].kind,
            kind => kind,
        };
        let by_element =
            |(v, _): (Var, Ty)| block.uses(v) == self.read_by_element(block, alike, inner, v);
        matches!(value, Kind::Map(Prim::Map, ..) | Kind::Prim(Prim::Scan(_), ..))
            && block.lets[k].0.vars().into_iter().all(by_element)
    }

    /// Returns the numbers of the names for arrays of length `n` that only maps with these results read, element by element.
    fn inner(&self, block: &Block, leaves: &[usize], n: &Size) -> BTreeSet<usize> {
        let computed = |e: &Ex| length(&e.ty).as_ref() == Some(n) && self.expands(e);
        let mut inner: BTreeSet<usize> =
            (0..block.lets.len()).filter(|k| computed(&block.lets[*k].1)).collect();
        loop {
            let by_element = |v| block.uses(v) == self.read_by_element(block, leaves, &inner, v);
            let keeps = |k: &usize| block.lets[*k].0.vars().iter().all(|(v, _)| by_element(*v));
            let kept: BTreeSet<usize> = inner.iter().copied().filter(keeps).collect();
            if kept.len() == inner.len() {
                return kept;
            }
            inner = kept;
        }
    }

    /// Returns how often these results, and the names in `inner`, read a name's elements one by one.
    fn read_by_element(
        &self,
        block: &Block,
        leaves: &[usize],
        inner: &BTreeSet<usize>,
        v: Var,
    ) -> usize {
        let leaves = leaves.iter().map(|k| &block.leaves[*k]);
        let all = leaves.chain(inner.iter().map(|k| &block.lets[*k].1));
        all.map(|e| self.elements_read(e, v)).sum()
    }

    fn elements_read(&self, e: &Ex, v: Var) -> usize {
        match &e.kind {
            Kind::Var(own) => usize::from(*own == v),
            _ if !self.expands(e) => 0,
            Kind::Map(_, _, args) | Kind::Prim(_, _, _, args) => {
                args.iter().map(|a| self.elements_read(a, v)).sum()
            }
            _ => e.parts().iter().map(|(_, part)| self.elements_read(part, v)).sum(),
        }
    }

    /// Returns what a result reads, also through the names in `inner`.
    fn reads(&self, e: &Ex, block: &Block, inner: &BTreeSet<usize>) -> Reads {
        let mut out = Reads::default();
        self.add_reads(e, block, inner, &mut out);
        out
    }

    fn add_reads(&self, e: &Ex, block: &Block, inner: &BTreeSet<usize>, out: &mut Reads) {
        if let Kind::Var(v) = e.kind {
            out.names.insert(v);
            let own = Vars::from([v]);
            let found = inner.iter().find(|k| block.lets[**k].0.meets(&own));
            if let Some(k) = found
                && out.lets.insert(*k)
            {
                self.add_reads(&block.lets[*k].1, block, inner, out);
            }
            return;
        }
        if !self.expands(e) {
            // What a source is computed from is not read in the map.
            if is_view(e) {
                mentions(e, out);
            }
            return;
        }
        match &e.kind {
            Kind::Map(_, f, args) => {
                out.computes = true;
                let own = f.own();
                let mut captured = Reads::default();
                mentions(&f.body, &mut captured);
                out.inputs.extend(captured.inputs);
                out.names.extend(captured.names.difference(&own));
                args.iter().for_each(|a| self.add_reads(a, block, inner, out));
            }
            _ => e.parts().iter().for_each(|(_, p)| self.add_reads(p, block, inner, out)),
        }
    }

    /// Whether the elements of an expression can be computed where they are read.
    fn expands(&self, e: &Ex) -> bool {
        match &e.kind {
            Kind::Map(Prim::Map, f, _) => match self.scope {
                Scope::Elements => self.by_element(&f.body),
                Scope::Rows => self.by_row(&f.body),
            },
            Kind::Prim(Prim::Unzip, _, _, args) => args.iter().all(|a| self.expands(a)),
            Kind::Prim(Prim::Zip, ..) => true,
            Kind::Proj(a, _) => length(&a.ty).is_some() && self.expands(a),
            _ => false,
        }
    }

    /// Returns the element of an array, or of each array in nested pairs.
    fn element(&mut self, e: &Ex, made: &mut Made) -> Ex {
        if let Kind::Var(v) = e.kind
            && let Some(name) = made.elements.get(&v)
        {
            return name.value(e.span);
        }
        if self.expands(e) {
            match &e.kind {
                Kind::Map(_, f, args) => {
                    let values: Vec<Ex> = args.iter().map(|a| self.element(a, made)).collect();
                    let all = f.params.iter().zip(values).rev();
                    return all.fold((*f.body).clone(), |body, (p, value)| bind(p, value, body));
                }
                Kind::Prim(Prim::Unzip, _, _, args) if args.len() == 1 => {
                    return self.element(&args[0], made);
                }
                Kind::Prim(Prim::Zip, _, _, args) if args.len() == 2 => {
                    let a = self.element(&args[0], made);
                    return Ex::pair(a, self.element(&args[1], made));
                }
                Kind::Proj(a, second) => {
                    if let Some(part) = self.element(a, made).proj(*second) {
                        return part;
                    }
                }
                _ => {}
            }
        }
        let known = made.args.iter().position(|a| a == e);
        let k = known.unwrap_or_else(|| {
            let element = element_ty(&e.ty).unwrap_or(Ty::Unit);
            made.params.push(named(&element, self.fresh));
            made.args.push(e.clone());
            made.args.len() - 1
        });
        made.params[k].value(e.span)
    }

    /// Returns names for the elements of the arrays in a layout.
    fn element_of(&mut self, p: &Layout, made: &mut Made) -> Layout {
        match p {
            Layout::Unit => Layout::Unit,
            Layout::Var(v, ty) => {
                let name = named(&element_ty(ty).unwrap_or(Ty::Unit), self.fresh);
                made.elements.insert(*v, name.clone());
                name
            }
            Layout::Pair(a, b) => {
                let a = self.element_of(a, made);
                Layout::Pair(Box::new(a), Box::new(self.element_of(b, made)))
            }
        }
    }

    /// Whether a function with this body computes each scalar of its result from a few scalars.
    fn by_element(&self, e: &Ex) -> bool {
        if e.ty.is_scalar() {
            return self.is_light(e);
        }
        match &e.kind {
            Kind::Map(Prim::Map, f, args) => {
                self.by_element(&f.body) && args.iter().all(|a| is_view(a) || self.by_element(a))
            }
            Kind::Pair(a, b) => self.by_element(a) && self.by_element(b),
            Kind::Prim(Prim::Unzip, _, _, args) => args.iter().all(|a| self.by_element(a)),
            Kind::Let(_, value, body) if value.ty.is_scalar() || is_view(value) => {
                (is_view(value) || self.is_light(value)) && self.by_element(body)
            }
            _ => is_view(e),
        }
    }

    /// Whether a scalar is computed from a few scalars.
    fn is_light(&self, e: &Ex) -> bool {
        let here = match &e.kind {
            Kind::Map(Prim::Map, _, args) => args.iter().all(|a| self.is_short(a)),
            Kind::Map(..) => false,
            Kind::Prim(Prim::Reduce | Prim::ReduceComm | Prim::ReduceSeq, _, _, args) => {
                args.iter().all(|a| self.is_short(a))
            }
            Kind::Prim(prim, ..) => *prim == Prim::Gather || is_view(e),
            _ => true,
        };
        here && e.parts().iter().all(|(_, part)| self.is_light(part))
    }

    fn is_short(&self, e: &Ex) -> bool {
        e.ty.is_scalar() || loops_out::scalars_of_arrays(&e.ty, self.env) <= FEW
    }

    /// Whether a function with this body goes through each row a few times, where it may have rows of rows.
    fn by_row(&self, e: &Ex) -> bool {
        self.is_row(e)
            || match &e.kind {
                // The rows are not those of a product, which meet rows of another array.
                Kind::Map(Prim::Map, f, args) => {
                    let mut captured = Reads::default();
                    mentions(&f.body, &mut captured);
                    captured.inputs.is_empty()
                        && captured.names.is_subset(&f.own())
                        && args.iter().all(is_view)
                        && self.by_row(&f.body)
                }
                _ => false,
            }
    }

    /// Whether an expression is computed from a row by maps of elements, reductions and scans.
    fn is_row(&self, e: &Ex) -> bool {
        let all = |es: &[Ex]| es.iter().all(|e| self.is_row(e));
        match &e.kind {
            Kind::Map(Prim::Map, f, args) => self.by_element(&f.body) && all(args),
            Kind::Map(..) => false,
            Kind::Prim(
                Prim::Reduce | Prim::ReduceComm | Prim::Scan(ScanKind::Assoc | ScanKind::Exclusive),
                ops,
                _,
                args,
            ) => ops.iter().all(|f| f.body.is_pure_scalar()) && all(args),
            Kind::Prim(prim, ops, _, args) => {
                let views = *prim == Prim::Gather || ops.is_empty() && core::is_view(*prim);
                views && all(args)
            }
            Kind::For(..) | Kind::While(..) => e.is_pure_scalar(),
            _ => e.parts().iter().all(|(_, part)| self.is_row(part)),
        }
    }
}

impl Group {
    /// Whether one map computes the results already.
    fn is_one(&self, block: &Block) -> bool {
        let of_let = |leaf: &usize| {
            let own = block.leaves[*leaf].free();
            matches!(block.leaves[*leaf].kind, Kind::Var(_))
                && self.lets.iter().all(|k| block.lets[*k].0.meets(&own))
        };
        self.lets.len() == 1 && self.leaves.iter().all(of_let)
    }
}

/// The arrays that a result reads.
#[derive(Default)]
struct Reads {
    names: Vars,
    inputs: BTreeSet<Arc<str>>,
    /// The names whose elements are computed for the result, as numbers of `let`s.
    lets: BTreeSet<usize>,
    /// Whether a map computes it.
    computes: bool,
}

/// Adds the arrays that an expression mentions.
fn mentions(e: &Ex, out: &mut Reads) {
    match &e.kind {
        Kind::Var(v) if e.ty.has_array() => {
            out.names.insert(*v);
        }
        Kind::Input(name) => {
            out.inputs.insert(name.clone());
        }
        _ => {
            let mut inner = Reads::default();
            for (bound, part) in e.parts() {
                mentions(part, &mut inner);
                for (v, _) in bound.iter().flat_map(|p| p.vars()) {
                    inner.names.remove(&v);
                }
            }
            out.names.extend(inner.names);
            out.inputs.extend(inner.inputs);
        }
    }
}

/// Returns the results that read an array which the one with this number reads, or another one of them, in order.
fn connected(of: &[Reads], first: usize) -> Vec<usize> {
    let mut group = vec![first];
    let mut seen = 0;
    while seen < group.len() {
        let a = &of[group[seen]];
        let shares = |b: &Reads| !a.names.is_disjoint(&b.names) || !a.inputs.is_disjoint(&b.inputs);
        let more: Vec<usize> =
            (0..of.len()).filter(|k| !group.contains(k) && shares(&of[*k])).collect();
        group.extend(more);
        seen += 1;
    }
    group.sort_unstable();
    group
}

/// Whether an expression only rearranges arrays that have names.
fn is_view(e: &Ex) -> bool {
    match &e.kind {
        Kind::Prim(Prim::Gather, _, _, args) => args.iter().all(is_view),
        _ => e.is_free_of_cost(),
    }
}

/// Returns the common length of an array, or of the arrays in nested pairs.
fn length(ty: &Ty) -> Option<Size> {
    match ty {
        Ty::Array(n, _) => Some(n.clone()),
        Ty::Pair(a, b) => length(a).filter(|n| Some(n) == length(b).as_ref()),
        _ => None,
    }
}

/// Returns the type of an element, or of a pair of elements.
fn element_ty(ty: &Ty) -> Option<Ty> {
    match ty {
        Ty::Array(_, t) => Some((**t).clone()),
        Ty::Pair(a, b) => Some(Ty::pair(&element_ty(a)?, &element_ty(b)?)),
        _ => None,
    }
}

/// Returns the lengths of an array of scalars in all dimensions.
fn dims(ty: &Ty) -> Option<Vec<Size>> {
    match ty {
        t if t.is_scalar() => Some(vec![]),
        t => Some([vec![length(t)?], dims(&element_ty(t)?)?].concat()),
    }
}

/// Joins values from the right: `[a, b, c]` becomes `join a (join b c)`.
fn nested<T>(values: Vec<T>, join: impl Fn(T, T) -> T) -> Option<T> {
    let mut from_right = values.into_iter().rev();
    let last = from_right.next()?;
    Some(from_right.fold(last, |rest, v| join(v, rest)))
}

/// Returns an expression in which a layout has a value. What costs nothing, and what is used once, needs no name.
fn bind(p: &Layout, value: Ex, mut body: Ex) -> Ex {
    match (p, value) {
        (Layout::Unit, _) => body,
        (Layout::Pair(p, q), Ex { kind: Kind::Pair(a, b), .. }) => {
            let body = bind(q, *b, body);
            bind(p, *a, body)
        }
        (Layout::Pair(p, q), value) if value.is_free_of_cost() => {
            for (p, second) in [(p, false), (q, true)] {
                if let Some(part) = value.clone().proj(second) {
                    body = bind(p, part, body);
                }
            }
            body
        }
        (Layout::Var(v, _), value) if value.is_free_of_cost() || body.uses(*v) == 1 => {
            body.put(*v, &value);
            body
        }
        (p, _) if !p.meets(&body.free()) => body,
        (p, value) => body.bound(p.clone(), value),
    }
}
