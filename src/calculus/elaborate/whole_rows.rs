//! A form in which a function of columns becomes one of whole rows (vectorisation, as in NESL; Blelloch and Sabot 1990).
//!
//! `transpose (map f (transpose a))` becomes `f' a`, where `f'` treats all columns at once: an element of a column becomes a row of
//! `a`, a scalar of a column the row of all columns' scalars. `split`, `slide`, `pad` and the like of a column are then those of
//! rows, and a scalar function becomes a map over a row. What has no such form, such as a reduction or a loop, stays a function
//! of columns, of only the columns that it needs: `map (reduce op z) (transpose b)`.
//!
//! The elements of a column are far apart. A work-group for each column reads a whole line of memory for each element. Work-items that
//! treat neighbouring elements of rows read neighbouring places. On the other hand, what is between two stages of `f'` may be stored,
//! so this is another form of a program, and the cost model decides.

use super::core::{Ex, Kind, Lambda, Layout, Var, is_view};
use super::interchange::named;
use super::ranges::Ranges;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::lang::typed::{Prim, ScalarOp};
use std::collections::BTreeMap;

/// Fewest columns that are treated at once. From there on the cost model decides.
const COLUMNS: u64 = 4;

/// Returns the program with functions of columns as functions of rows; `None` if there are none.
pub(super) fn columns_at_once(e: &Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let mut out = e.clone();
    walk(&mut out, env, &mut BTreeMap::new(), fresh).then_some(out)
}

/// Changes all maps over columns; of nested ones, the outermost. `turned` has the transposed arrays that have names. Returns whether
/// there were any.
fn walk(
    e: &mut Ex,
    env: &SizeEnv,
    turned: &mut BTreeMap<Var, Ex>,
    fresh: &mut dyn FnMut() -> Var,
) -> bool {
    let mut changed = false;
    if let Kind::Map(Prim::Map, _, args) = &mut e.kind {
        args.iter_mut().for_each(|arg| changed |= walk(arg, env, turned, fresh));
        if let Some(rows) = of_rows(e, env, turned, fresh) {
            *e = rows;
            return true;
        }
        let Kind::Map(_, f, _) = &mut e.kind else { return changed };
        return walk(&mut f.body, env, turned, fresh) | changed;
    }
    if let Kind::Let(Layout::Var(v, _), value, _) = &e.kind
        && matches!(value.kind, Kind::Prim(Prim::Transpose, ..))
        && value.is_free_of_cost()
    {
        turned.insert(*v, (**value).clone());
    }
    e.parts_mut().into_iter().for_each(|part| changed |= walk(part, env, turned, fresh));
    if let Kind::Prim(Prim::Transpose, _, _, args) = &e.kind
        && let [Ex { kind: Kind::Prim(Prim::Transpose, _, _, inner), .. }] = &args[..]
    {
        *e = inner[0].clone();
    }
    changed
}

/// Returns a map over columns as a function of rows; `None` if it is none, or nothing of it has a form for rows.
fn of_rows(
    e: &Ex,
    env: &SizeEnv,
    turned: &BTreeMap<Var, Ex>,
    fresh: &mut dyn FnMut() -> Var,
) -> Option<Ex> {
    let Kind::Map(Prim::Map, f, args) = &e.kind else { return None };
    let is_turned = |arg: &Ex| matches!(arg.kind, Kind::Prim(Prim::Transpose, ..));
    let value = |arg: &Ex| match arg.kind {
        Kind::Var(v) => turned.get(&v).unwrap_or(arg).clone(),
        _ => arg.clone(),
    };
    let args: Vec<Ex> = args.iter().map(value).collect();
    if !args.iter().any(is_turned) {
        return None;
    }
    let n = args.first()?.length()?.clone();
    if n.eval(env).unwrap_or(0) < COLUMNS {
        return None;
    }
    let mut all = WholeRows { n, env, names: BTreeMap::new(), fresh, of_rows: 0, of_columns: 0 };
    let mut lets = vec![];
    for (p, arg) in f.params.iter().zip(&args) {
        let column = arg.element_type()?;
        let rows = all.rows(arg.clone(), &column)?;
        lets.push((all.declare(p)?, rows));
    }
    let mut body = all.all(&f.body)?;
    // Rules bring a single reduction of columns to rows, also that of a product.
    let known = all.of_columns <= 1 && all.element(&f.body).ty.is_scalar();
    if all.of_rows == 0 || known {
        return None;
    }
    for (p, rows) in lets {
        match p {
            Layout::Var(v, _) if is_matrix(&rows) => body.put(v, &rows),
            p => body = body.bound(p, rows),
        }
    }
    all.columns(body, &f.body.ty)
}

/// Makes a function of rows from a function of columns.
struct WholeRows<'a> {
    /// The number of columns.
    n: Size,
    env: &'a SizeEnv,
    /// For each variable of a column: the variable of all columns, and the type of the former.
    names: BTreeMap<Var, (Var, Ty)>,
    fresh: &'a mut dyn FnMut() -> Var,
    /// Number of operations that treat rows.
    of_rows: usize,
    /// Number of operations that still treat columns.
    of_columns: usize,
}

impl WholeRows<'_> {
    /// Returns the type of all columns' values: each scalar becomes a row.
    fn ty(&self, t: &Ty) -> Option<Ty> {
        match t {
            Ty::Scalar(_) => Some(Ty::array(&self.n, t)),
            Ty::Pair(a, b) => Some(Ty::pair(&self.ty(a)?, &self.ty(b)?)),
            Ty::Array(n, t) => Some(Ty::array(n, &self.ty(t)?)),
            _ => None,
        }
    }

    /// Adds the variables of a layout, and returns the layout of all columns' values.
    fn declare(&mut self, p: &Layout) -> Option<Layout> {
        match p {
            Layout::Unit => Some(Layout::Unit),
            Layout::Var(v, t) => {
                let all = (self.fresh)();
                self.names.insert(*v, (all, t.clone()));
                Some(Layout::Var(all, self.ty(t)?))
            }
            Layout::Pair(a, b) => {
                let a = self.declare(a)?;
                Some(Layout::Pair(Box::new(a), Box::new(self.declare(b)?)))
            }
        }
    }

    /// Whether the value depends on the column.
    fn varies(&self, e: &Ex) -> bool {
        e.free().iter().any(|v| self.names.contains_key(v))
    }

    /// Returns what nested maps over arrays that are the same for all columns compute of each of their elements.
    fn element<'e>(&self, e: &'e Ex) -> &'e Ex {
        match &e.behind_lets().kind {
            Kind::Map(Prim::Map, f, args) if !args.iter().any(|arg| self.varies(arg)) => {
                self.element(&f.body)
            }
            _ => e,
        }
    }

    /// Returns all columns' values of an expression.
    fn all(&mut self, e: &Ex) -> Option<Ex> {
        if self.varies(e) { self.varying(e) } else { self.repeated(e.clone()) }
    }

    /// Returns a value that is the same for all columns, once for each.
    fn repeated(&mut self, e: Ex) -> Option<Ex> {
        match e.ty.clone() {
            Ty::Scalar(_) => {
                let (ty, span) = (self.ty(&e.ty)?, e.span);
                let kind = Kind::Prim(Prim::Replicate, vec![], vec![self.n.clone()], vec![e]);
                Some(Ex::new(kind, ty, span))
            }
            Ty::Pair(..) => {
                let name = named(&e.ty, self.fresh);
                let value = name.value(e.span);
                let a = self.repeated(value.clone().proj(false)?)?;
                let b = self.repeated(value.proj(true)?)?;
                Some(Ex::pair(a, b).bound(name, e))
            }
            Ty::Array(_, t) => {
                let x = named(&t, self.fresh);
                let each = self.repeated(x.value(e.span))?;
                Ex::map_of(each, [(&x, &e)], self.fresh)
            }
            _ => None,
        }
    }

    /// Returns the values of the columns, one after the other, as what [`WholeRows::ty`] says.
    fn rows(&mut self, columns: Ex, of: &Ty) -> Option<Ex> {
        match of {
            Ty::Scalar(_) => Some(columns),
            Ty::Pair(a, b) => {
                let (first, second) = (Ty::array(&self.n, a), Ty::array(&self.n, b));
                let both = Ty::pair(&first, &second);
                let span = columns.span;
                let apart = Kind::Prim(Prim::Unzip, vec![], vec![], vec![columns]);
                let name = named(&both, self.fresh);
                let value = name.value(span);
                let first = self.rows(value.clone().proj(false)?, a)?;
                let second = self.rows(value.proj(true)?, b)?;
                Some(Ex::pair(first, second).bound(name, Ex::new(apart, both, span)))
            }
            Ty::Array(_, t) => {
                let turned = turned(columns)?;
                if matches!(**t, Ty::Scalar(_)) {
                    return Some(turned);
                }
                let row = named(&turned.element_type()?, self.fresh);
                let each = self.rows(row.value(turned.span), t)?;
                Ex::map_of(each, [(&row, &turned)], self.fresh)
            }
            _ => None,
        }
    }

    /// Returns the values of the columns, one after the other; the opposite of [`WholeRows::rows`].
    fn columns(&mut self, all: Ex, of: &Ty) -> Option<Ex> {
        match of {
            Ty::Scalar(_) => Some(all),
            Ty::Pair(a, b) => {
                let name = named(&all.ty, self.fresh);
                let value = name.value(all.span);
                let first = self.columns(value.clone().proj(false)?, a)?;
                let second = self.columns(value.proj(true)?, b)?;
                Some(first.zip(second)?.bound(name, all))
            }
            Ty::Array(_, t) => {
                if let Kind::Let(p, value, body) = all.kind {
                    let body = self.columns(*body, of)?;
                    return Some(body.bound(p, *value));
                }
                if matches!(**t, Ty::Scalar(_)) {
                    return turned(all);
                }
                let row = named(&all.element_type()?, self.fresh);
                let each = self.columns(row.value(all.span), t)?;
                turned(Ex::map_of(each, [(&row, &all)], self.fresh)?)
            }
            _ => None,
        }
    }

    /// Returns all columns' values of an expression that depends on the column.
    fn varying(&mut self, e: &Ex) -> Option<Ex> {
        let (ty, span) = (self.ty(&e.ty)?, e.span);
        match &e.kind {
            Kind::Var(v) => Some(Ex::new(Kind::Var(self.names.get(v)?.0), ty, span)),
            Kind::Pair(a, b) => Some(Ex::pair(self.all(a)?, self.all(b)?)),
            Kind::Proj(a, second) => self.varying(a)?.proj(*second),
            Kind::Let(p, value, body) if self.varies(value) => {
                let value = self.varying(value)?;
                let p = self.declare(p)?;
                Some(self.all(body)?.bound(p, value))
            }
            Kind::Let(p, value, body) => Some(self.all(body)?.bound(p.clone(), (**value).clone())),
            Kind::If(c, yes, no) if !self.varies(c) => {
                Some(Ex::choice((**c).clone(), self.all(yes)?, self.all(no)?))
            }
            Kind::Index(array, at) if self.varies(array) && !self.varies(at) => {
                self.of_rows += 1;
                let kind = Kind::Index(Box::new(self.varying(array)?), at.clone());
                Some(Ex::new(kind, ty, span))
            }
            Kind::Op(..) | Kind::If(..) | Kind::Index(..) if e.ty.is_scalar() => self.elements(e),
            Kind::Prim(..) if is_list(e) => self.elements(e),
            Kind::Map(Prim::Map, f, args) => {
                let mut arrays = vec![];
                for (p, arg) in f.params.iter().zip(args) {
                    arrays.push(match self.varies(arg) {
                        true => (self.varying(arg)?, self.declare(p)?),
                        false => (arg.clone(), p.clone()),
                    });
                }
                self.of_rows += 1;
                let body = Box::new(self.all(&f.body)?);
                let (args, params) = arrays.into_iter().unzip();
                Some(Ex::new(Kind::Map(Prim::Map, Lambda { params, body }, args), ty, span))
            }
            Kind::Prim(Prim::Generate, f, n, args) => {
                self.of_rows += 1;
                let [f] = &f[..] else { return None };
                let body = Box::new(self.all(&f.body)?);
                let f = Lambda { params: f.params.clone(), body };
                let kind = Kind::Prim(Prim::Generate, vec![f], n.clone(), args.clone());
                Some(Ex::new(kind, ty, span))
            }
            Kind::Prim(prim, _, sizes, args) if self.moves_elements(*prim, args) => {
                self.of_rows += 1;
                let indices = matches!(prim, Prim::Gather | Prim::Scatter).then_some(1);
                let args = args.iter().enumerate().map(|(i, arg)| match Some(i) == indices {
                    true => Some(arg.clone()),
                    false => self.all(arg),
                });
                let kind = Kind::Prim(*prim, vec![], sizes.clone(), args.collect::<Option<_>>()?);
                Some(Ex::new(kind, ty, span))
            }
            Kind::Map(..) => None,
            Kind::Prim(prim, f, sizes, args) => {
                // What it takes is computed for all columns; then it treats each column.
                let (mut lets, mut own) = (vec![], vec![]);
                for arg in args {
                    if !self.varies(arg) || matches!(arg.kind, Kind::Var(_)) {
                        own.push(arg.clone());
                        continue;
                    }
                    let value = self.varying(arg)?;
                    let name = named(&arg.ty, self.fresh);
                    own.push(name.value(arg.span));
                    lets.push((self.declare(&name)?, value));
                }
                let kind = Kind::Prim(*prim, f.clone(), sizes.clone(), own);
                let each = self.each(&Ex::new(kind, e.ty.clone(), span))?;
                Some(each.after(lets))
            }
            _ => self.each(e),
        }
    }

    /// Whether a pattern moves the elements of arrays to places that are the same in all columns.
    fn moves_elements(&self, prim: Prim, args: &[Ex]) -> bool {
        match prim {
            Prim::Gather | Prim::Scatter => args.get(1).is_some_and(|at| !self.varies(at)),
            _ => is_view(prim),
        }
    }

    /// Returns all columns' values of a scalar, or of a list of scalars: a map over rows of the scalars that it is computed of.
    fn elements(&mut self, e: &Ex) -> Option<Ex> {
        let mut rows = vec![];
        let mut body = e.clone();
        let scalars = self.scalars(&mut body, true, &mut rows);
        // An element at a place that the data of the column decide is computed of no others.
        if scalars.is_none() || rows.iter().any(|(_, part)| part == e) {
            return self.each(e);
        }
        self.of_rows += 1;
        let mut arrays = vec![];
        for (name, part) in rows {
            let all = self.varying(&part)?;
            arrays.push((name, self.columns(all, &part.ty)?));
        }
        let map = Ex::map_of(body, arrays.iter().map(|(name, array)| (name, array)), self.fresh)?;
        self.rows(map, &e.ty)
    }

    /// Gives names to the scalars of which an expression is computed. What is not computed always, as `always` says, may fail where
    /// it is not needed: then there is no such form.
    fn scalars(&mut self, e: &mut Ex, always: bool, rows: &mut Vec<(Layout, Ex)>) -> Option<()> {
        if !self.varies(e) {
            return Some(());
        }
        let list = is_list(e);
        let may_move = e.ty.is_scalar() && (always || Ranges::new(self.env).cannot_fail(e));
        match &mut e.kind {
            Kind::If(c, yes, no) => {
                self.scalars(c, always, rows)?;
                self.scalars(yes, false, rows)?;
                self.scalars(no, false, rows)
            }
            Kind::Op(ScalarOp::And | ScalarOp::Or, args) => {
                let [a, b] = &mut args[..] else { return None };
                self.scalars(a, always, rows)?;
                self.scalars(b, false, rows)
            }
            Kind::Prim(_, _, _, args) if list => {
                args.iter_mut().try_for_each(|a| self.scalars(a, always, rows))
            }
            Kind::Op(_, args) => args.iter_mut().try_for_each(|a| self.scalars(a, always, rows)),
            Kind::Index(array, at) if !self.varies(array) => self.scalars(at, always, rows),
            _ if !may_move => None,
            _ => {
                let known = rows.iter().find(|(_, part)| part == e).map(|(name, _)| name.clone());
                let name = known.unwrap_or_else(|| {
                    let name = named(&e.ty, self.fresh);
                    rows.push((name.clone(), e.clone()));
                    name
                });
                *e = name.value(e.span);
                Some(())
            }
        }
    }

    /// Returns all columns' values of an expression that treats one column after the other.
    fn each(&mut self, e: &Ex) -> Option<Ex> {
        self.of_columns += 1;
        let mut arrays = vec![];
        for v in e.free() {
            let Some((all, t)) = self.names.get(&v).cloned() else { continue };
            let all = Ex::new(Kind::Var(all), self.ty(&t)?, e.span);
            arrays.push((Layout::Var(v, t.clone()), self.columns(all, &t)?));
        }
        let each = Ex::map_of(e.clone(), arrays.iter().map(|(p, a)| (p, a)), self.fresh)?;
        self.rows(each, &e.ty)
    }
}

/// Whether an expression is an array of scalars that are given one by one.
fn is_list(e: &Ex) -> bool {
    let Kind::Prim(prim, _, _, args) = &e.kind else { return false };
    match prim {
        Prim::Replicate => args.iter().all(|x| x.ty.is_scalar()),
        Prim::Concat => args.iter().all(is_list),
        _ => false,
    }
}

/// Whether a value is a matrix that is stored anyway, or such a matrix transposed.
fn is_matrix(e: &Ex) -> bool {
    match &e.kind {
        Kind::Var(_) | Kind::Input(_) => true,
        Kind::Prim(Prim::Transpose, _, _, args) => args.iter().all(is_matrix),
        _ => false,
    }
}

/// Returns the columns of an array of rows, without turning it twice.
fn turned(e: Ex) -> Option<Ex> {
    match e.kind {
        Kind::Prim(Prim::Transpose, _, _, mut args) => args.pop(),
        _ => e.transpose(),
    }
}
