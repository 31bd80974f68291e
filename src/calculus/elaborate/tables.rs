//! Tables of special functions: an exponential, a sine or the like that is computed again and again for the same arguments,
//! because it does not depend on all of the maps around it, is computed once, in front of the program.
//!
//! `map (\xs -> map (\k -> reduce (+) 0 (map2 (\x t -> x * cos (a k t)) xs (iota m))) (iota n)) xss` becomes
//! `let c = map (\k -> map (\t -> cos (a k t)) (iota m)) (iota n) in
//! map (\xs -> map2 (\k r -> reduce (+) 0 (map2 (\x c -> x * c) xs r)) (iota n) c) xss`, which is a product. Weights of filters,
//! windows and twiddle factors are of this kind.
//!
//! In such a map, a counted loop has tables for all of its steps, such as the twiddle factors of each stage of a Fourier transform.
//!
//! Likewise an array that is the same for all iterations around, of which elements are read at computed places, is computed in front
//! of the program if an element takes a loop or such a function.
//!
//! Only functions that have a value for all arguments move, so nothing fails that did not fail before.

use super::again::loops;
use super::core::{Ex, Kind, Layout, Var, Vars};
use super::unused::keep_used;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::lang::typed::{Prim, ScalarOp};
use crate::lang::types::ScalarType;

/// Most elements of a table: it should stay in a cache of the whole device.
const MOST: u64 = 1 << 20;

/// How many times each element is used at least.
const USES: u64 = 64;

/// Returns the program with its tables in front.
pub(super) fn tables(body: Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Ex {
    let mut tables = Tables { env, fresh, levels: vec![], moved: vec![], places: Vars::new() };
    let mut body = body;
    tables.walk(&mut body);
    body.after(tables.moved)
}

/// A map around the present place, or a counted loop.
struct Level {
    /// What its function takes, and from which arrays.
    params: Vec<(Layout, Ex)>,
    /// The numbers that its function has named so far.
    lets: Vec<(Layout, Ex)>,
    /// Tables, or rows of tables, that its function takes now, too.
    added: Vec<(Layout, Ex)>,
    /// Its length, or the number of steps.
    length: u64,
    /// The counter of a loop.
    counter: Option<Ex>,
}

struct Tables<'a> {
    env: &'a SizeEnv,
    fresh: &'a mut dyn FnMut() -> Var,
    levels: Vec<Level>,
    /// The tables, and their names.
    moved: Vec<(Layout, Ex)>,
    /// Counters that are numbers of bits of an `i32`, without its sign.
    places: Vars,
}

impl Tables<'_> {
    fn walk(&mut self, e: &mut Ex) {
        if let Some(entry) = self.entry(e) {
            *e = entry;
            return;
        }
        if let Kind::Index(array, _) = &mut e.kind
            && self.is_table(array)
        {
            let name = Layout::Var((self.fresh)(), array.ty.clone());
            let entries = name.value(array.span);
            self.moved.push((name, std::mem::replace(array, entries)));
        }
        let length = match &e.ty {
            Ty::Array(n, _) => n.eval(self.env).unwrap_or(1),
            _ => 1,
        };
        match &mut e.kind {
            Kind::Map(Prim::Map, f, args) => {
                args.iter_mut().for_each(|a| self.walk(a));
                let params = f.params.iter().cloned().zip(args.iter().cloned()).collect();
                let (lets, added, counter) = (vec![], vec![], None);
                self.levels.push(Level { params, lets, added, length, counter });
                self.walk(&mut f.body);
                let added = self.levels.pop().map_or_else(Vec::new, |l| l.added);
                if !added.is_empty() {
                    let (params, arrays): (Vec<_>, Vec<_>) = added.into_iter().unzip();
                    f.params.extend(params);
                    args.extend(arrays);
                    keep_used(f, args);
                }
            }
            Kind::For(init, bound, Layout::Var(i, ty), _, body)
                if let (false, Some(steps)) = (self.levels.is_empty(), steps(bound, self.env)) =>
            {
                self.walk(init);
                let counter = Ex::new(Kind::Var(*i), ty.clone(), bound.span);
                let all = Ex::iota(&Size::constant(steps), ty, bound.span);
                let params = vec![(Layout::Var(*i, ty.clone()), all)];
                let (lets, added, counter) = (vec![], vec![], Some(counter));
                if steps < 32 {
                    self.places.insert(*i);
                }
                self.levels.push(Level { params, lets, added, length: steps, counter });
                self.walk(body);
                let added = self.levels.pop().map_or_else(Vec::new, |l| l.added);
                let inner = std::mem::replace(&mut **body, bound.as_ref().clone());
                **body = inner.after(added);
            }
            // The program itself has chosen what a low-level map computes.
            Kind::Map(_, _, args) => args.iter_mut().for_each(|a| self.walk(a)),
            Kind::Let(p, value, inner) => {
                self.walk(value);
                let is_number = value.ty.components().iter().all(|(dims, _)| dims.is_empty());
                let named = self.levels.last_mut().filter(|_| is_number);
                let depth = named.map(|l| {
                    l.lets.push((p.clone(), (**value).clone()));
                    l.lets.len()
                });
                self.walk(inner);
                if let (Some(depth), Some(level)) = (depth, self.levels.last_mut()) {
                    level.lets.truncate(depth - 1);
                }
            }
            _ => e.parts_mut().into_iter().for_each(|part| self.walk(part)),
        }
    }

    /// Whether an array that elements are read of may be computed once, and should.
    fn is_table(&self, array: &Ex) -> bool {
        let (Kind::Map(Prim::Map, f, args), Ty::Array(n, _)) = (&array.kind, &array.ty) else {
            return false;
        };
        !self.levels.is_empty()
            && array.free().is_empty()
            && n.eval(self.env).is_ok_and(|n| n <= MOST)
            && args.iter().all(Ex::is_free_of_cost)
            && (is_special(&f.body) || loops(&f.body))
            && is_total(&f.body, true, &self.places, self.env)
    }

    /// Returns the entry of a table that takes the place of an expression; makes the table.
    fn entry(&mut self, e: &Ex) -> Option<Ex> {
        let is_number = matches!(e.kind, Kind::Op(..)) && matches!(e.ty, Ty::Scalar(_));
        if self.levels.len() < 2 || !is_number {
            return None;
        }
        let mut levels = std::mem::take(&mut self.levels);
        let entry = self.entry_under(&mut levels, e);
        self.levels = levels;
        entry
    }

    fn entry_under(&mut self, levels: &mut [Level], e: &Ex) -> Option<Ex> {
        let product = |all: &mut dyn Iterator<Item = u64>| all.fold(1, u64::saturating_mul);
        let times = product(&mut levels.iter().map(|l| l.length));
        if times < USES {
            return None;
        }
        let whole = e.clone().behind(levels.iter().flat_map(|l| &l.lets), self.fresh);
        if !is_special(&whole) || !is_total(&whole, false, &self.places, self.env) {
            return None;
        }
        let free = whole.free();
        let uses = |l: &Level| l.params.iter().any(|(p, _)| p.meets(&free));
        let used: Vec<usize> = (0..levels.len()).filter(|k| uses(&levels[*k])).collect();
        let mut covered = Vars::new();
        for (p, array) in used.iter().flat_map(|k| &levels[*k].params) {
            if p.meets(&free) {
                if !array.free().is_empty() {
                    return None;
                }
                covered.extend(p.vars().into_iter().map(|(v, _)| v));
            }
        }
        let entries = product(&mut used.iter().map(|k| levels[*k].length));
        if used.is_empty()
            || !free.is_subset(&covered)
            || entries > MOST
            || times / entries.max(1) < USES
        {
            return None;
        }
        let mut table = whole;
        for k in used.iter().rev() {
            let params = levels[*k].params.iter().map(|(p, array)| (p, array));
            table = Ex::map_of(table, params, self.fresh)?;
        }
        let name = Layout::Var((self.fresh)(), table.ty.clone());
        let mut entry = name.value(e.span);
        self.moved.push((name, table));
        for k in used {
            let Ty::Array(_, row) = &entry.ty else { return None };
            let row = (**row).clone();
            if let Some(counter) = levels[k].counter.clone().filter(|_| row.has_array()) {
                entry = entry.element(&counter)?;
                continue;
            }
            let entry_of_step = match &levels[k].counter {
                Some(counter) => entry.element(counter)?,
                None => entry,
            };
            let row = Layout::Var((self.fresh)(), row);
            entry = row.value(e.span);
            levels[k].added.push((row, entry_of_step));
        }
        Some(entry)
    }
}

/// Returns how many steps a loop with this bound has.
fn steps(bound: &Ex, env: &SizeEnv) -> Option<u64> {
    match &bound.kind {
        Kind::Lit(l) => u64::try_from(l.as_int()?).ok(),
        Kind::Size(n) => n.eval(env).ok(),
        _ => None,
    }
}

/// Whether an expression computes a function that takes many operations.
fn is_special(e: &Ex) -> bool {
    let here = match &e.kind {
        Kind::Op(op, _) => op.is_transcendental(),
        _ => false,
    };
    here || e.parts().iter().any(|(_, part)| is_special(part))
}

/// Whether an expression consists of scalar functions that have a value for all arguments, and with `steps` of choices and
/// counted loops. `places` are less than the bits of a number.
fn is_total(e: &Ex, steps: bool, places: &Vars, env: &SizeEnv) -> bool {
    let here = match &e.kind {
        Kind::Var(_) => matches!(e.ty, Ty::Scalar(_)),
        Kind::ScalarInput(..) | Kind::Lit(_) | Kind::Size(_) => true,
        Kind::Op(ScalarOp::Div | ScalarOp::Rem, es) => match (&e.ty, es.last()) {
            (Ty::Scalar(t), _) if t.is_float() => true,
            (_, Some(divisor)) => is_divisor(divisor, places, env),
            _ => false,
        },
        Kind::Op(ScalarOp::Pow, _) => matches!(&e.ty, Ty::Scalar(t) if t.is_float()),
        Kind::Op(..) | Kind::Let(..) => true,
        Kind::If(..) | Kind::For(..) => steps,
        _ => false,
    };
    here && e.parts().iter().all(|(_, part)| is_total(part, steps, places, env))
}

/// Whether a divisor is known to be neither 0 nor -1: a number, or a power of two.
fn is_divisor(e: &Ex, places: &Vars, env: &SizeEnv) -> bool {
    match &e.kind {
        Kind::Lit(l) => l.as_int().is_some_and(|n| n != 0 && n != -1),
        Kind::Size(n) => n.eval(env).is_ok_and(|n| n > 0),
        Kind::Op(ScalarOp::Shl, es) => match es.as_slice() {
            [one, by] => is_one(one) && is_place(by, places) && e.ty == Ty::Scalar(ScalarType::I32),
            _ => false,
        },
        _ => false,
    }
}

fn is_one(e: &Ex) -> bool {
    matches!(&e.kind, Kind::Lit(l) if l.as_int() == Some(1))
}

/// Whether an expression is one of these names, of any type.
fn is_place(e: &Ex, places: &Vars) -> bool {
    match &e.kind {
        Kind::Var(v) => places.contains(v),
        Kind::Op(ScalarOp::Cast(_), es) => es.iter().all(|e| is_place(e, places)),
        _ => false,
    }
}
