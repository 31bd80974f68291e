//! Interchanges loops and maps: a loop whose state is arrays that it updates element by element becomes a map whose
//! function is the loop (Futhark's flattening rule G7).
//!
//! The elements of such a state never meet. As a loop over arrays the program would write and read the whole state in
//! every step; as a map each element stays with one work-item from the first step to the last. The body may read other
//! arrays at the same place, the counter, rows that the counter or an element that it selects (the neighbours of a node) select, and
//! scalars of the state that depend on no row (a time, a step width). Whatever else a body does (a reduction, a shift, a
//! gather of the state) keeps the loop as it is. So does work on arrays within one element: it is parallel only as long as
//! the loop stays outside.

use super::again::loops;
use super::core::{Ex, Kind, Lambda, Layout, Var, Vars};
use crate::calculus::size::Size;
use crate::calculus::ty::Ty;
use crate::diag::Span;
use crate::lang::typed::{Prim, ScanKind};
use crate::lang::types::ScalarType;

/// Most elements of a row that a work-item has in registers.
const FEW: u64 = 16;

/// Returns the program with its loops interchanged, innermost loops first.
pub(super) fn interchange(mut e: Ex, fresh: &mut dyn FnMut() -> Var) -> Ex {
    walk(&mut e, fresh);
    e
}

fn walk(e: &mut Ex, fresh: &mut dyn FnMut() -> Var) {
    // The program itself chose where the functions of low-level patterns run.
    if !matches!(&e.kind, Kind::Map(prim, ..) if *prim != Prim::Map) {
        e.parts_mut().into_iter().for_each(|part| walk(part, fresh));
    }
    if let Kind::For(init, bound, index, acc, body) = &e.kind
        && let Some(map) = of_loop(init, bound, index, acc, body, fresh)
    {
        *e = map;
    } else if has_long_rows(e)
        && let Some(map) = of_scan(e, fresh)
    {
        *e = map;
    }
}

/// Returns the map that replaces a loop; `None` if elements of the state meet.
fn of_loop(
    init: &Ex,
    bound: &Ex,
    index: &Layout,
    acc: &Layout,
    body: &Ex,
    fresh: &mut dyn FnMut() -> Var,
) -> Option<Ex> {
    let inner = index.vars().into_iter().map(|(v, _)| v).collect();
    let (state, mut each) = State::new(acc, init, inner, fresh)?;
    let next = each.components(body)?;
    let Each { n, read, place, fresh, .. } = each;
    let looped = |start: Ex, index: Layout, acc: Layout, next: Ex| {
        let (ty, span) = (start.ty.clone(), start.span);
        let (start, bound) = (Box::new(start), Box::new(bound.clone()));
        Ex::new(Kind::For(start, bound, index, acc, Box::new(next)), ty, span)
    };
    let start = state.first.value(init.span);
    let mut one = looped(start, index.clone(), state.step.clone(), next.clone());
    // The elements may be arrays themselves.
    walk(&mut one, fresh);
    // A step that works on arrays within an element is better shared out than left to one work-item.
    if let Kind::For(.., step) = &one.kind
        && !is_scalar_step(step)
    {
        return None;
    }
    let scalars = state.of_scalars(&next, fresh).map(|(start, acc, mut next)| {
        let index = index.renamed(&mut next, fresh);
        looped(start, index, acc, next)
    });
    if scalars.is_some() {
        let (names, elements) = state.names_of_rows(init.span, fresh);
        one = elements.bound(names, one);
    }
    let map = for_all(&n, one, (state.params.clone(), state.arrays.clone()), read, place);
    let rows = unzipped(map, &acc.restrict(&state.rows).ty(), fresh)?;
    let out = match scalars {
        None => rows,
        Some(scalars) => {
            let [rows_of, scalars_of] = [&rows.ty, &scalars.ty].map(|ty| named(ty, fresh));
            let all = state.all(&rows_of, &scalars_of)?.value(init.span);
            all.bound(scalars_of, scalars).bound(rows_of, rows)
        }
    };
    Some(state.behind(out))
}

/// Returns the map of what is computed for each of `n` places, over the arrays of its parameters, those that it reads at the same place,
/// and the places.
fn for_all(
    n: &Size,
    one: Ex,
    (mut params, mut arrays): (Vec<Layout>, Vec<Ex>),
    read: Vec<(Ex, Layout)>,
    place: Option<Var>,
) -> Ex {
    let span = one.span;
    for (array, v) in read {
        params.push(v);
        arrays.push(array);
    }
    if let Some(v) = place {
        params.push(Layout::Var(v, position()));
        arrays.push(Ex::iota(n, &position(), span));
    }
    let ty = Ty::array(n, &one.ty);
    let f = Lambda { params, body: Box::new(one) };
    Ex::new(Kind::Map(Prim::Map, f, arrays), ty, span)
}

/// Whether an expression is a scan whose state is rows that one work-item does not have in registers.
fn has_long_rows(e: &Ex) -> bool {
    let Kind::Prim(Prim::Scan(_), fs, ..) = &e.kind else { return false };
    let state = fs.iter().filter_map(|f| f.params.first()).flat_map(Layout::vars);
    let lengths = state.filter_map(|(_, ty)| match ty {
        Ty::Array(n, _) => Some(n),
        _ => None,
    });
    let long: Vec<bool> = lengths.map(|n| n.as_constant().is_none_or(|n| n > FEW)).collect();
    !long.is_empty() && long.into_iter().all(|long| long)
}

/// Returns the map of scans, one for each place in a row, that replaces a sequential scan of rows; `None` if elements of rows meet.
/// The results are those of the scan: for each step, the state.
pub(super) fn of_scan(e: &Ex, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let Kind::Prim(Prim::Scan(ScanKind::Seq), fs, _, args) = &e.kind else { return None };
    let ([f], [init, xs]) = (fs.as_slice(), args.as_slice()) else { return None };
    let ([acc, x], span) = (f.params.as_slice(), e.span) else { return None };
    let (mut state, mut each) = State::new(acc, init, Vars::new(), fresh)?;
    // Of the elements of the scan, rows become columns; what is no row is the same for all places.
    let (mut columns, mut elements) = (vec![], vec![]);
    for ((v, ty), array) in x.vars().into_iter().zip(unzipped_parts(xs, x)?) {
        if !each.is_array(&ty) {
            each.inner.insert(v);
            elements.push(Layout::Var(v, ty));
            columns.push(array.is_free_of_cost().then_some(array)?);
            continue;
        }
        let Ty::Array(steps, _) = &array.ty else { return None };
        let element = each.own(v, &ty)?;
        let column = Layout::Var((each.fresh)(), Ty::array(steps, &element.ty()));
        elements.push(element);
        columns.push(column.value(span));
        state.params.push(column);
        state.arrays.push(array.transpose()?);
    }
    let next = each.components(&f.body)?;
    let Each { n, inner, read, place, fresh, .. } = each;
    let scanned = |start: Ex, acc: Layout, x: Layout, next: Ex, columns: Ex| {
        let Ty::Array(steps, _) = &columns.ty else { return None };
        let ty = Ty::array(steps, &next.ty);
        let g = Lambda { params: vec![acc, x], body: Box::new(next) };
        let kind = Kind::Prim(Prim::Scan(ScanKind::Seq), vec![g], vec![], vec![start, columns]);
        Some(Ex::new(kind, ty, span))
    };
    let element = shaped(x, &mut elements.into_iter())?;
    let all = zipped(x, &mut columns.iter().cloned())?;
    let mut one = scanned(state.first.value(span), state.step.clone(), element, next.clone(), all)?;
    // The elements may be rows themselves.
    walk(&mut one, fresh);
    if let Kind::Prim(Prim::Scan(_), fs, ..) = &one.kind
        && !is_short_step(&fs.first()?.body)
    {
        return None;
    }
    let scalars = match state.of_scalars(&next, fresh) {
        Some((start, acc, mut next)) => {
            let same = x.restrict(&inner);
            let arrays = x.vars().into_iter().zip(columns).filter(|((v, _), _)| inner.contains(v));
            let all = zipped(&same, &mut arrays.map(|(_, array)| array))?;
            let same = same.renamed(&mut next, fresh);
            Some(scanned(start, acc, same, next, all)?)
        }
        None => None,
    };
    if scalars.is_some() {
        let (names, elements) = state.names_of_rows(span, fresh);
        one = mapped(names, elements, one)?;
    }
    let element = one.element_type()?;
    let map = for_all(&n, one, (state.params.clone(), state.arrays.clone()), read, place);
    let mut rows = map.transpose()?;
    if matches!(element, Ty::Pair(..)) {
        let row = Layout::Var(fresh(), Ty::array(&n, &element));
        let tuple = unzipped(row.value(span), &acc.restrict(&state.rows).ty(), fresh)?;
        rows = mapped(row, tuple, rows)?;
    }
    let out = match scalars {
        None => rows,
        Some(scalars) => {
            let parts = [rows.element_type()?, scalars.element_type()?];
            let [rows_of, scalars_of] = parts.map(|ty| named(&ty, fresh));
            let element = state.all(&rows_of, &scalars_of)?.value(span);
            mapped(Layout::pair(rows_of, scalars_of), element, rows.zip(scalars)?)?
        }
    };
    Some(state.behind(out))
}

/// Returns the map of a function.
fn mapped(param: Layout, body: Ex, array: Ex) -> Option<Ex> {
    let (ty, span) = (Ty::array(array.length()?, &body.ty), array.span);
    let f = Lambda { params: vec![param], body: Box::new(body) };
    Some(Ex::new(Kind::Map(Prim::Map, f, vec![array]), ty, span))
}

/// The state of a loop or a scan: rows of one length, whose elements never meet, and scalars, which depend on no row. Each place in
/// the rows computes the scalars for itself, and where they are results they have a loop of their own.
struct State {
    /// The variables of the whole state.
    whole: Layout,
    /// Those of a step at one place: with elements for the rows.
    step: Layout,
    /// Those of the first values.
    first: Layout,
    /// The variables of `whole` that are rows, and those that are not.
    rows: Vars,
    scalars: Vars,
    /// The parameters of the map over the places, and its arrays.
    params: Vec<Layout>,
    arrays: Vec<Ex>,
    /// What the first values need.
    lets: Vec<(Layout, Ex)>,
}

impl State {
    /// Returns the state with these first values, and what translates a step; `inner` are variables that the step binds. `None` if
    /// it has no row, or rows of different lengths.
    fn new<'f>(
        whole: &Layout,
        init: &Ex,
        inner: Vars,
        fresh: &'f mut dyn FnMut() -> Var,
    ) -> Option<(State, Each<'f>)> {
        let vars = whole.vars();
        let length = |(_, ty): &(Var, Ty)| match ty {
            Ty::Array(n, _) => Some(n.clone()),
            _ => None,
        };
        let n = vars.iter().find_map(length)?;
        let mut values = vec![];
        let mut lets: Vec<_> = components(init, &mut values, fresh).into_iter().collect();
        let mut each = Each { n, own: vec![], inner, read: vec![], place: None, fresh };
        let (mut steps, mut firsts, mut params, mut arrays) = (vec![], vec![], vec![], vec![]);
        let (mut rows, mut scalars) = (Vars::new(), Vars::new());
        for ((v, ty), value) in vars.into_iter().zip(values) {
            let step = if ty.is_scalar() {
                scalars.insert(v);
                each.inner.insert(v);
                Layout::Var(v, ty)
            } else {
                rows.insert(v);
                each.own(v, &ty)?
            };
            let first = named(&step.ty(), each.fresh);
            if scalars.contains(&v) {
                lets.push((first.clone(), value));
            } else {
                params.push(first.clone());
                arrays.push(value);
            }
            steps.push(step);
            firsts.push(first);
        }
        let step = shaped(whole, &mut steps.into_iter())?;
        let first = shaped(whole, &mut firsts.into_iter())?;
        let whole = whole.clone();
        Some((State { whole, step, first, rows, scalars, params, arrays, lets }, each))
    }

    /// Returns names for the state at one place, and the tuple of those that are elements of rows.
    fn names_of_rows(&self, span: Span, fresh: &mut dyn FnMut() -> Var) -> (Layout, Ex) {
        let names = named(&self.step.ty(), fresh);
        let same = names.vars().into_iter().zip(self.step.vars());
        let of_rows = same.filter(|(_, (v, _))| !self.scalars.contains(v));
        let rows = names.restrict(&of_rows.map(|((name, _), _)| name).collect()).value(span);
        (names, rows)
    }

    /// Returns the first values of the scalars, their variables in a step, and the step that computes them alone; `None` without scalars.
    fn of_scalars(&self, next: &Ex, fresh: &mut dyn FnMut() -> Var) -> Option<(Ex, Layout, Ex)> {
        let acc = self.whole.restrict(&self.scalars);
        if acc == Layout::Unit {
            return None;
        }
        let same = self.first.vars().into_iter().zip(self.step.vars());
        let firsts = same.filter(|(_, (v, _))| self.scalars.contains(v));
        let start = self.first.restrict(&firsts.map(|((first, _), _)| first).collect());
        let mut next = picked(next, &self.whole, &self.scalars).refreshed(fresh);
        let acc = acc.renamed(&mut next, fresh);
        Some((start.value(next.span), acc, next))
    }

    /// Returns the layout of the whole state, from those of its rows and of its scalars.
    fn all(&self, rows: &Layout, scalars: &Layout) -> Option<Layout> {
        let one = |(v, ty)| Layout::Var(v, ty);
        let mut rows = rows.vars().into_iter().map(one);
        let mut scalars = scalars.vars().into_iter().map(one);
        let of = |(v, _)| if self.rows.contains(&v) { rows.next() } else { scalars.next() };
        let parts: Option<Vec<Layout>> = self.whole.vars().into_iter().map(of).collect();
        shaped(&self.whole, &mut parts?.into_iter())
    }

    /// Returns what uses the first values.
    fn behind(self, e: Ex) -> Ex {
        self.lets.into_iter().rev().fold(e, |e, (names, value)| bind(names, value, e))
    }
}

/// Returns the part of a tuple that stands for the variables in `keep`.
fn picked(e: &Ex, shape: &Layout, keep: &Vars) -> Ex {
    match (shape, &e.kind) {
        (_, Kind::Let(names, value, body)) => {
            let body = picked(body, shape, keep);
            if names.meets(&body.free()) {
                body.bound(names.clone(), (**value).clone())
            } else {
                body
            }
        }
        (_, Kind::If(c, yes, no)) => {
            Ex::choice((**c).clone(), picked(yes, shape, keep), picked(no, shape, keep))
        }
        (Layout::Pair(a, b), _) => {
            let part = |second, of| {
                let part = e.clone().proj(second).expect("invariant: a tuple of this shape");
                picked(&part, of, keep)
            };
            match (a.meets(keep), b.meets(keep)) {
                (true, true) => Ex::pair(part(false, a), part(true, b)),
                (true, false) => part(false, a),
                _ => part(true, b),
            }
        }
        _ => e.clone(),
    }
}

/// Returns the array of elements of this shape, from the arrays of their variables.
fn zipped(element: &Layout, arrays: &mut dyn Iterator<Item = Ex>) -> Option<Ex> {
    match element {
        Layout::Unit => None,
        Layout::Var(..) => arrays.next(),
        Layout::Pair(a, b) => zipped(a, arrays)?.zip(zipped(b, arrays)?),
    }
}

/// Returns the array of each variable of an element. `None` if an array of tuples is no zip.
fn unzipped_parts(xs: &Ex, element: &Layout) -> Option<Vec<Ex>> {
    match (element, &xs.kind) {
        (Layout::Pair(a, b), Kind::Prim(Prim::Zip, _, _, args)) => {
            let [x, y] = args.as_slice() else { return None };
            Some([unzipped_parts(x, a)?, unzipped_parts(y, b)?].concat())
        }
        (Layout::Var(..), _) => Some(vec![xs.clone()]),
        _ => None,
    }
}

/// Returns variables for a value of this type.
pub(super) fn named(ty: &Ty, fresh: &mut dyn FnMut() -> Var) -> Layout {
    match ty {
        Ty::Pair(a, b) => Layout::Pair(Box::new(named(a, fresh)), Box::new(named(b, fresh))),
        t => Layout::Var(fresh(), t.clone()),
    }
}

/// The type of places in arrays, of any length.
fn position() -> Ty {
    Ty::Scalar(ScalarType::I64)
}

/// Returns the layout with other variables in the same arrangement.
fn shaped(layout: &Layout, vars: &mut dyn Iterator<Item = Layout>) -> Option<Layout> {
    match layout {
        Layout::Unit => Some(Layout::Unit),
        Layout::Var(..) => vars.next(),
        Layout::Pair(a, b) => {
            Some(Layout::Pair(Box::new(shaped(a, vars)?), Box::new(shaped(b, vars)?)))
        }
    }
}

/// Adds the arrays of a state to `out`. A state that is no tuple of expressions gets names, which are returned with it.
fn components(e: &Ex, out: &mut Vec<Ex>, fresh: &mut dyn FnMut() -> Var) -> Option<(Layout, Ex)> {
    fn parts<'a>(e: &'a Ex, out: &mut Vec<&'a Ex>) -> bool {
        match (&e.kind, &e.ty) {
            (Kind::Pair(a, b), _) => parts(a, out) && parts(b, out),
            (_, Ty::Pair(..)) => false,
            _ => {
                out.push(e);
                true
            }
        }
    }
    let mut found = vec![];
    if parts(e, &mut found) {
        out.extend(found.into_iter().cloned());
        return None;
    }
    let names = named(&e.ty, fresh);
    out.extend(names.vars().into_iter().map(|(v, t)| Ex::new(Kind::Var(v), t, e.span)));
    Some((names, e.clone()))
}

/// Returns an array of tuples as the tuple of arrays that has type `ty`.
fn unzipped(e: Ex, ty: &Ty, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let Ty::Pair(a, b) = ty else { return Some(e) };
    let (Ty::Array(n, t), span) = (&e.ty, e.span) else { return None };
    let Ty::Pair(x, y) = &**t else { return None };
    let (p, q) = (Layout::Var(fresh(), Ty::array(n, x)), Layout::Var(fresh(), Ty::array(n, y)));
    let both = Ty::pair(&p.ty(), &q.ty());
    let unzip = Ex::new(Kind::Prim(Prim::Unzip, vec![], vec![], vec![e]), both, span);
    let out = Ex::pair(unzipped(p.value(span), a, fresh)?, unzipped(q.value(span), b, fresh)?);
    Some(out.bound(Layout::Pair(Box::new(p), Box::new(q)), unzip))
}

/// Whether the expression is an element or a row of an array that need not be computed.
fn reads(e: &Ex) -> bool {
    match &e.kind {
        Kind::Index(a, i) => (a.is_free_of_cost() || reads(a)) && is_looked_up(i),
        _ => false,
    }
}

/// Whether an expression computes scalars from scalars, and maybe from elements that it reads. Each element does so again, so loops
/// may not read.
fn is_looked_up(e: &Ex) -> bool {
    e.is_pure_scalar() || !loops(e) && is_scalar_step(e)
}

/// Whether an expression computes scalars from scalars and from elements that it reads.
pub(super) fn is_scalar_step(e: &Ex) -> bool {
    match &e.kind {
        Kind::Index(..) => reads(e),
        Kind::Map(..) | Kind::Prim(..) | Kind::Input(_) => false,
        _ => e.ty.is_scalar() && e.parts().iter().all(|(_, part)| is_scalar_step(part)),
    }
}

/// Whether a step of a scan is work for one work-item: its patterns go through short arrays, which are in registers.
fn is_short_step(e: &Ex) -> bool {
    let short = |ty: &Ty| match ty {
        Ty::Array(n, _) => n.as_constant().is_some_and(|n| n <= FEW),
        _ => true,
    };
    let here = match &e.kind {
        Kind::Index(..) if reads(e) => return short(&e.ty),
        Kind::Map(_, _, args) | Kind::Prim(_, _, _, args) => args.iter().all(|a| short(&a.ty)),
        Kind::Input(_) | Kind::For(..) | Kind::While(..) => false,
        _ => true,
    };
    here && short(&e.ty) && e.parts().iter().all(|(_, part)| is_short_step(part))
}

/// Returns the body with names for the parts of a value. A value that is a name itself needs no other.
fn bind(layout: Layout, value: Ex, mut body: Ex) -> Ex {
    match (layout, value.kind) {
        (Layout::Pair(a, b), Kind::Pair(x, y)) => bind(*a, *x, bind(*b, *y, body)),
        (Layout::Var(v, _), kind @ (Kind::Var(_) | Kind::Lit(_) | Kind::Size(_))) => {
            body.put(v, &Ex { kind, ..value });
            body
        }
        (layout, kind) => body.bound(layout, Ex { kind, ..value }),
    }
}

/// Translates what a body does to arrays into what it does to their elements at one place.
struct Each<'f> {
    n: Size,
    /// The variables of arrays whose elements are known, each with that of its element.
    own: Vec<(Var, Layout)>,
    /// The counter, and other variables that the body binds.
    inner: Vars,
    /// Arrays that the body reads at the same place, each with the variable of its element.
    read: Vec<(Ex, Layout)>,
    /// The variable of the place, if it is needed.
    place: Option<Var>,
    fresh: &'f mut dyn FnMut() -> Var,
}

impl Each<'_> {
    /// Returns the element of an array of the state; `None` if the array has another length.
    fn own(&mut self, v: Var, ty: &Ty) -> Option<Layout> {
        let Ty::Array(_, t) = ty else { return None };
        let element = self.is_array(ty).then(|| named(t, self.fresh))?;
        self.own.push((v, element.clone()));
        Some(element)
    }

    /// Whether the expression mentions an array whose elements are known.
    fn meets(&self, e: &Ex) -> bool {
        let free = e.free();
        self.own.iter().any(|(v, _)| free.contains(v))
    }

    fn is_array(&self, ty: &Ty) -> bool {
        matches!(ty, Ty::Array(n, _) if *n == self.n)
    }

    /// Returns the element of an array, or the tuple of elements of a tuple of arrays.
    fn components(&mut self, e: &Ex) -> Option<Ex> {
        match (&e.kind, &e.ty) {
            (Kind::Let(layout, value, body), _) => self.binding(layout, value, body),
            (Kind::If(c, a, b), _) if !self.meets(c) && c.is_pure_scalar() => {
                let (a, b) = (self.components(a)?, self.components(b)?);
                let ty = a.ty.clone();
                Some(Ex::new(Kind::If(c.clone(), Box::new(a), Box::new(b)), ty, e.span))
            }
            (Kind::If(..), _) => None,
            (Kind::Pair(a, b), _) => Some(Ex::pair(self.components(a)?, self.components(b)?)),
            (Kind::Prim(Prim::Unzip, _, _, args), _) => self.element(args.first()?),
            (_, ty) if self.is_array(ty) => self.element(e),
            _ if !self.meets(e) && is_scalar_step(e) => Some(e.clone()),
            _ => None,
        }
    }

    /// Returns the element of an array.
    fn element(&mut self, e: &Ex) -> Option<Ex> {
        if !self.is_array(&e.ty) {
            return None;
        }
        match &e.kind {
            Kind::Var(v) if self.own.iter().any(|(w, _)| w == v) => {
                let (_, own) = self.own.iter().find(|(w, _)| w == v)?;
                Some(own.value(e.span))
            }
            Kind::Map(Prim::Map, f, args)
                if !self.own.iter().any(|(v, _)| f.captures().contains(v)) =>
            {
                let args = args.iter().map(|a| self.element(a)).collect::<Option<Vec<_>>>()?;
                let bindings = f.params.iter().cloned().zip(args).rev();
                Some(bindings.fold((*f.body).clone(), |body, (l, value)| bind(l, value, body)))
            }
            Kind::Prim(Prim::Zip, _, _, args) => match args.as_slice() {
                [a, b] => Some(Ex::pair(self.element(a)?, self.element(b)?)),
                _ => None,
            },
            Kind::Prim(Prim::Replicate, _, _, args) if !self.meets(e) => {
                args.first().filter(|x| x.is_pure_scalar()).cloned()
            }
            Kind::Proj(both, second) if matches!(both.kind, Kind::Prim(Prim::Unzip, ..)) => {
                self.components(both)?.proj(*second)
            }
            Kind::Let(..) | Kind::If(..) => self.components(e),
            _ if !self.meets(e) => self.leaf(e),
            _ => None,
        }
    }

    /// Returns the element of an array that the state has no part in.
    fn leaf(&mut self, e: &Ex) -> Option<Ex> {
        let Ty::Array(_, t) = &e.ty else { return None };
        if e.free().is_disjoint(&self.inner) {
            // An array that costs work would be computed in every step.
            if !e.is_free_of_cost() {
                return None;
            }
            let known = self.read.iter().find(|(a, _)| a.kind == e.kind).map(|(_, v)| v.clone());
            let v = known.unwrap_or_else(|| {
                let v = named(t, self.fresh);
                self.read.push((e.clone(), v.clone()));
                v
            });
            return Some(v.value(e.span));
        }
        // A row that the counter selects.
        let Kind::Index(rows, _) = &e.kind else { return None };
        if !reads(e) || !rows.free().is_disjoint(&self.inner) {
            return None;
        }
        let place = match self.place {
            Some(v) => v,
            None => *self.place.insert((self.fresh)()),
        };
        let at = Ex::new(Kind::Var(place), position(), e.span);
        Some(Ex::new(Kind::Index(Box::new(e.clone()), Box::new(at)), (**t).clone(), e.span))
    }

    fn binding(&mut self, layout: &Layout, value: &Ex, body: &Ex) -> Option<Ex> {
        let (layout, value) = match layout {
            Layout::Var(v, ty) if self.is_array(ty) => {
                let value = self.element(value)?;
                let own = named(&value.ty, self.fresh);
                self.own.push((*v, own.clone()));
                (own, value)
            }
            _ if !self.meets(value) && (is_looked_up(value) || reads(value)) => {
                self.inner.extend(layout.vars().into_iter().map(|(v, _)| v));
                (layout.clone(), value.clone())
            }
            _ => return None,
        };
        Some(bind(layout, value, self.components(body)?))
    }
}
