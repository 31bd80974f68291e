//! Values that are known where a mask does not hold.
//!
//! A mask makes elements that shall not count neutral: a score of minus infinity, a factor of zero. What is computed of such
//! elements, and stored, is known at the same places: `exp(-inf - m)` is zero, and so is its quotient by a sum. This file follows
//! masks through registers, arrays of a work-group and temporaries. So a reduction leaves out the steps that would change
//! nothing.
//!
//! A product with zero is taken to be zero, and a difference of minus infinity and another number to be minus infinity. That is wrong
//! for infinite numbers and NaN, so only relaxed arithmetic may use it.

use super::arithmetic::index;
use crate::calculus::scalar::Lit;
use crate::kernel::ir::index::{Atom, Index, Var};
use crate::kernel::ir::{
    Block, BufferRole, Control, Expr, Kernel, LoopKind, Mem, Program, Reg, Stmt,
};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Registers through which a value is followed.
const DEPTH: usize = 24;

/// A value that is known unless conditions hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Masked {
    /// The value, unless all conditions hold.
    pub value: Lit,
    /// The conditions: each says that the index is not negative.
    pub unless: Vec<Index>,
}

/// What is known of the elements of an array, by their places.
struct Array {
    digits: Digits,
    unless: Vec<ByDigits>,
    value: Lit,
}

/// The registers and stores of a kernel.
#[derive(Default)]
struct Code<'a> {
    values: FxHashMap<u32, Cow<'a, Expr>>,
    stores: FxHashMap<Mem, Vec<(&'a Index, &'a Expr)>>,
    /// Memory that atomic operations change.
    shared: FxHashSet<Mem>,
    /// The numbers of the work-group.
    groups: FxHashSet<u32>,
    /// Registers that are the same wherever they are read.
    fixed: FxHashSet<u32>,
}

/// What is known of the arrays of a program.
pub struct Masks<'a> {
    program: &'a Program,
    /// By kernel.
    codes: RefCell<FxHashMap<usize, Rc<Code<'a>>>>,
    /// By kernel and register. `None` if nothing is known.
    registers: RefCell<FxHashMap<(usize, u32), Option<Masked>>>,
    /// By kernel and memory. `None` while an array is looked at, and if nothing is known.
    arrays: RefCell<FxHashMap<Place, Option<Rc<Array>>>>,
}

/// A memory of a kernel, or of all.
type Place = (Option<usize>, Mem);

impl<'a> Masks<'a> {
    /// The masks of a program whose kernels are not complete yet.
    pub fn of(program: &'a Program) -> Masks<'a> {
        Masks {
            program,
            codes: RefCell::default(),
            registers: RefCell::default(),
            arrays: RefCell::default(),
        }
    }

    /// Returns what is known of a value of a kernel; of a kernel that is not part of the program yet, nothing is known but its
    /// value's form and temporaries.
    pub fn value(&self, kernel: Option<usize>, e: &Expr) -> Option<Masked> {
        self.of_value(kernel, e, DEPTH)
    }

    fn of_value(&self, kernel: Option<usize>, e: &Expr, depth: usize) -> Option<Masked> {
        let depth = depth.checked_sub(1)?;
        let of = |e: &Expr| self.of_value(kernel, e, depth);
        match e {
            Expr::Lit(l) => Some(Masked { value: *l, unless: vec![Index::from(-1)] }),
            Expr::Reg(r) => {
                let key = (kernel?, r.id);
                if let Some(known) = self.registers.borrow().get(&key) {
                    return known.clone();
                }
                let found = self.code(key.0).values.get(&r.id).and_then(|e| of(e));
                self.registers.borrow_mut().insert(key, found.clone());
                found
            }
            Expr::If(c, yes, no) => {
                let conditions = |holds| conditions(c, holds);
                either(of(yes), of(no), &conditions)
            }
            Expr::Guarded(g, yes, no) => {
                let conditions = |holds: bool| if holds { g.0.clone() } else { vec![] };
                either(of(yes), of(no), &conditions)
            }
            Expr::Load(m, t, at) => {
                let array = self.array(kernel, *m)?;
                let lane = Var {
                    id: u32::MAX,
                    name: "lane".into(),
                    lo: 0,
                    hi: i64::try_from(t.width).ok()? - 1,
                };
                let unless = array.at(&at.add(&Index::from(lane.clone())));
                let unless = unless.iter().filter_map(|c| most(c, &|v| v.id == lane.id)).collect();
                Some(Masked { value: array.value, unless })
            }
            Expr::Splat(e, _) | Expr::Lane(e, _) => of(e),
            Expr::Op(op, t, es) if t.scalar.is_float() => {
                of_operation(*op, &es.iter().map(of).collect::<Vec<_>>())
            }
            _ => None,
        }
        .filter(|m| !m.unless.is_empty())
    }

    /// Returns what is known of the elements of an array.
    fn array(&self, kernel: Option<usize>, m: Mem) -> Option<Rc<Array>> {
        let kernel = if matches!(m, Mem::Global(_)) { None } else { Some(kernel?) };
        if let Some(known) = self.arrays.borrow().get(&(kernel, m)) {
            return known.clone();
        }
        self.arrays.borrow_mut().insert((kernel, m), None);
        let found = match m {
            Mem::Global(b) => self.temporary(b),
            _ => self.stored(kernel?, m),
        };
        let found = found.map(Rc::new);
        self.arrays.borrow_mut().insert((kernel, m), found.clone());
        found
    }

    /// Returns what is known of a temporary that a single kernel stores, once.
    fn temporary(&self, b: usize) -> Option<Array> {
        let launches = self.program.control.iter().all(|c| matches!(c, Control::Launch(_)));
        if !launches || self.program.buffers.get(b)?.role != BufferRole::Temp {
            return None;
        }
        let m = Mem::Global(b);
        let storing = (0..self.program.kernels.len()).filter(|k| {
            let code = self.code(*k);
            code.shared.contains(&m) || code.stores.contains_key(&m)
        });
        let storing: Vec<usize> = storing.collect();
        let [k] = storing[..] else { return None };
        self.stored(k, m)
    }

    /// Returns what is known of the elements that a kernel stores to an array.
    fn stored(&self, kernel: usize, m: Mem) -> Option<Array> {
        let code = self.code(kernel);
        if code.shared.contains(&m) {
            return None;
        }
        let of = |(at, e): &(&Index, &Expr)| -> Option<Array> {
            let known = self.value(Some(kernel), e)?;
            let stays = |i: &Index| {
                let mut stays = true;
                i.visit_vars(&mut |v| stays &= code.groups.contains(&v.id));
                i.visit_data(&mut |e| {
                    stays &= matches!(e, Expr::Reg(r) if code.fixed.contains(&r.id));
                });
                stays && (!matches!(m, Mem::Global(_)) || i.as_constant().is_some())
            };
            Array::of(at, &known, &stays)
        };
        let mut all = code.stores.get(&m)?.iter().map(of);
        let first = all.next()??;
        all.all(|a| a.is_some_and(|a| a.is_same(&first))).then_some(first)
    }

    fn code(&self, k: usize) -> Rc<Code<'a>> {
        if let Some(code) = self.codes.borrow().get(&k) {
            return code.clone();
        }
        let code = Rc::new(Code::of(&self.program.kernels[k]));
        self.codes.borrow_mut().insert(k, code.clone());
        code
    }
}

/// Returns what is known of a choice between two values.
fn either(
    yes: Option<Masked>,
    no: Option<Masked>,
    conditions: &dyn Fn(bool) -> Vec<Index>,
) -> Option<Masked> {
    let is_sure = |m: &Option<Masked>| m.as_ref().is_some_and(|m| m.unless == [Index::from(-1)]);
    let (known, other, holds) = match (is_sure(&yes), is_sure(&no)) {
        (_, true) => (no, yes, true),
        (true, false) => (yes, no, false),
        (false, false) => return yes.filter(|a| Some(a) == no.as_ref()),
    };
    let value = known?.value;
    // The other value may be the same one, too.
    let inner = other.filter(|m| m.value == value).map_or_else(Vec::new, |m| m.unless);
    let unless = conditions(holds).into_iter().chain(inner).collect();
    Some(Masked { value, unless })
}

/// Returns what is known of the result of an operation on floats, from what is known of its operands.
fn of_operation(op: ScalarOp, operands: &[Option<Masked>]) -> Option<Masked> {
    let is = |m: &Option<Masked>, x: f64| m.as_ref().is_some_and(|m| m.value.as_float() == Some(x));
    let with = |m: &Option<Masked>, x: f64| {
        m.clone().map(|m| Masked { value: Lit::float(m.value.ty, x), ..m })
    };
    match (op, operands) {
        (ScalarOp::Mul, [a, b]) => match (is(a, 0.0), is(b, 0.0)) {
            (true, true) => {
                let (a, b) = (a.clone()?, b.clone()?);
                Some(Masked { unless: [a.unless, b.unless].concat(), ..b })
            }
            (true, false) => a.clone(),
            (false, true) => b.clone(),
            _ => None,
        },
        (ScalarOp::Div, [a, _]) if is(a, 0.0) => a.clone(),
        (ScalarOp::Sub, [a, _]) if is(a, f64::NEG_INFINITY) => a.clone(),
        (ScalarOp::Add, [a, _]) if is(a, f64::NEG_INFINITY) => a.clone(),
        (ScalarOp::Add, [_, a]) if is(a, f64::NEG_INFINITY) => a.clone(),
        (ScalarOp::Exp | ScalarOp::Exp2 | ScalarOp::Exp10, [a]) if is(a, f64::NEG_INFINITY) => {
            with(a, 0.0)
        }
        _ => None,
    }
}

/// Returns conditions that follow if a condition on integers holds, or if it does not.
pub fn conditions(c: &Expr, holds: bool) -> Vec<Index> {
    let number = |e: &Expr| match e {
        Expr::Reg(Reg { ty, .. }) if ty.width == 1 && ty.scalar == ScalarType::I32 => {
            Some(Index::data(e.clone()))
        }
        e => index(e),
    };
    match c {
        Expr::Guarded(g, a, b) if holds && a.is_true() && b.is_false() => g.0.clone(),
        Expr::Op(ScalarOp::Not, _, es) => conditions(&es[0], !holds),
        Expr::Op(op @ (ScalarOp::And | ScalarOp::Or), _, es) => {
            match holds == (*op == ScalarOp::And) {
                true => es.iter().flat_map(|e| conditions(e, holds)).collect(),
                false => vec![],
            }
        }
        Expr::Op(op, _, es) => {
            let [Some(a), Some(b)] = [es.first(), es.get(1)].map(|e| e.and_then(number)) else {
                return vec![];
            };
            let (not_less, not_greater) = (a.sub(&b), b.sub(&a));
            match (op, holds) {
                (ScalarOp::Lt, true) | (ScalarOp::Ge, false) => vec![not_greater.plus(-1)],
                (ScalarOp::Gt, true) | (ScalarOp::Le, false) => vec![not_less.plus(-1)],
                (ScalarOp::Le, true) | (ScalarOp::Gt, false) => vec![not_greater],
                (ScalarOp::Ge, true) | (ScalarOp::Lt, false) => vec![not_less],
                (ScalarOp::Eq, true) | (ScalarOp::Ne, false) => vec![not_less, not_greater],
                _ => vec![],
            }
        }
        _ => vec![],
    }
}

/// Returns the greatest value of an index, for all values of some variables; `None` if it has none that is known.
pub fn most(i: &Index, these: &dyn Fn(&Var) -> bool) -> Option<Index> {
    extreme(i, these, true)
}

fn extreme(i: &Index, these: &dyn Fn(&Var) -> bool, up: bool) -> Option<Index> {
    let mut out = Index::from(i.constant());
    for (a, c) in i.terms() {
        let up = up == (c > 0);
        let mut varies = false;
        i.part(a).visit_vars(&mut |v| varies |= these(v));
        let part = match a {
            _ if !varies => i.part(a),
            Atom::Var(v) => Index::from(if up { v.hi } else { v.lo }).times(c),
            Atom::Div(x, k) => {
                let x = extreme(x, these, up)?;
                (x.range().0 >= 0).then(|| x.div(*k))?.times(c)
            }
            Atom::Mod(_, k) => Index::from(if up { k - 1 } else { 0 }).times(c),
            Atom::Min(x, y) => extreme(x, these, up)?.lesser(&extreme(y, these, up)?).times(c),
            Atom::Max(x, y) => extreme(x, these, up)?.greater(&extreme(y, these, up)?).times(c),
            Atom::Data(_) => return None,
        };
        out = out.add(&part);
    }
    Some(out)
}

impl Array {
    /// What is known of the elements of an array, if each is stored at this place with this value. `stays` says which variables and
    /// values mean the same elsewhere.
    fn of(at: &Index, known: &Masked, stays: &dyn Fn(&Index) -> bool) -> Option<Array> {
        let (digits, places) = digits(at)?;
        let by_digits = |c: &Index| Some(by_digits(c, &places)).filter(|(_, rest)| stays(rest));
        let unless: Vec<_> = known.unless.iter().filter_map(by_digits).collect();
        (!unless.is_empty()).then_some(Array { digits, unless, value: known.value })
    }

    fn is_same(&self, other: &Array) -> bool {
        (&self.digits, &self.unless, self.value) == (&other.digits, &other.unless, other.value)
    }

    /// The conditions at a place.
    fn at(&self, place: &Index) -> Vec<Index> {
        at_place(&self.digits, &self.unless, place)
    }
}

/// Digits of places, the least first: each is the remainder, by the second number, of the quotient by the first.
type Digits = Vec<(i64, Option<i64>)>;

/// A condition on digits: the weight of each, and what is added to their sum.
type ByDigits = (Vec<i64>, Index);

/// Returns a place as digits, each of them an index.
fn digits(at: &Index) -> Option<(Digits, Vec<Index>)> {
    let mut strides: Vec<i64> = at.terms().map(|(_, c)| c).collect();
    strides.sort_unstable();
    strides.dedup();
    if strides.first().is_none_or(|c| *c < 1) {
        return None;
    }
    let (mut rest, mut divisor) = (at.clone(), 1);
    let (mut digits, mut places) = (vec![], vec![]);
    for c in strides {
        let step = c / divisor;
        if c % divisor != 0 || step < 2 {
            continue;
        }
        let (above, digit) = rest.split_by(step);
        let (lo, hi) = digit.range();
        if lo >= 0 && hi < step {
            digits.push((divisor, Some(step)));
            places.push(digit);
            (rest, divisor) = (above, c);
        }
    }
    digits.push((divisor, None));
    places.push(rest);
    Some((digits, places))
}

/// Returns a condition with as much of it as possible expressed by digits.
fn by_digits(c: &Index, places: &[Index]) -> ByDigits {
    let mut rest = c.clone();
    let weights = places.iter().map(|digit| {
        let common = digit.terms().find_map(|(a, c)| {
            let (_, own) = rest.terms().find(|(b, _)| *b == a)?;
            (own % c == 0).then_some(own / c)
        });
        let weight = common.unwrap_or(0);
        rest = rest.sub(&digit.times(weight));
        weight
    });
    let weights = weights.collect();
    (weights, rest)
}

/// Returns conditions on digits at a place.
fn at_place(digits: &Digits, conditions: &[ByDigits], place: &Index) -> Vec<Index> {
    let digit = |(divisor, step): &(i64, Option<i64>)| {
        let above = place.div(*divisor);
        step.map_or_else(|| above.clone(), |step| above.rem(step))
    };
    let digits: Vec<Index> = digits.iter().map(digit).collect();
    let at = |(weights, rest): &ByDigits| {
        weights.iter().zip(&digits).fold(rest.clone(), |sum, (w, d)| sum.add(&d.times(*w)))
    };
    conditions.iter().map(at).collect()
}

/// Where elements are read, as conditions on their places.
pub struct Read {
    digits: Digits,
    conditions: Vec<ByDigits>,
}

impl Read {
    /// The elements at a place that is an index, where conditions hold. `None` if nothing limits them.
    pub fn of(at: &Index, conditions: &[Index]) -> Option<Read> {
        let (digits, places) = digits(at)?;
        let mut all: Vec<ByDigits> = vec![];
        for c in conditions {
            let (weights, rest) = by_digits(c, &places);
            if let Some(rest) = most(&rest, &|_| true).filter(|rest| !rest.has_data())
                && weights.iter().any(|w| *w != 0)
            {
                all.push((weights, rest));
            }
        }
        for (k, (place, (_, step))) in places.iter().zip(&digits).enumerate() {
            let greatest = place.range().1;
            if step.is_some_and(|step| greatest < step - 1) {
                let weights = (0..places.len()).map(|j| -i64::from(j == k)).collect();
                all.push((weights, Index::from(greatest)));
            }
        }
        (!all.is_empty()).then_some(Read { digits, conditions: all })
    }

    /// The conditions under which the element at a place is read: all of them hold.
    pub fn at(&self, place: &Index) -> Vec<Index> {
        at_place(&self.digits, &self.conditions, place)
    }
}

/// Returns conditions that hold if all of the first or all of the second do.
pub fn or(a: &[Index], b: &[Index]) -> Vec<Index> {
    let follows = |c: &Index, from: &[Index]| from.iter().any(|d| c.sub(d).range().0 >= 0);
    let ours = a.iter().filter(|c| follows(c, b));
    let theirs = b.iter().filter(|c| follows(c, a) && !a.contains(c));
    ours.chain(theirs).cloned().collect()
}

impl<'a> Code<'a> {
    fn of(k: &'a Kernel) -> Code<'a> {
        let mut sets: FxHashMap<u32, usize> = FxHashMap::default();
        for s in &k.body {
            s.visit(&mut |s| {
                if let Some(r) = s.assigned() {
                    *sets.entry(r.id).or_default() += 1;
                }
            });
        }
        let mut code = Code::default();
        code.block(&k.body, false, &sets);
        code
    }

    fn block(&mut self, b: &'a Block, in_loop: bool, sets: &FxHashMap<u32, usize>) {
        for (i, s) in b.iter().enumerate() {
            match s {
                Stmt::Decl(r, Some(e)) if !sets.contains_key(&r.id) => {
                    self.values.insert(r.id, Cow::Borrowed(e));
                    if !in_loop {
                        self.fixed.insert(r.id);
                    }
                }
                Stmt::Decl(r, None) => {
                    let times = sets.get(&r.id).copied();
                    if let Some(e) = b[i + 1..].iter().find_map(|s| value_set(s, r, times)) {
                        self.values.insert(r.id, e);
                    }
                }
                Stmt::Store(m, at, e) => {
                    self.stores.entry(*m).or_default().push((at, e));
                }
                Stmt::Atomic(_, m, ..) => _ = self.shared.insert(*m),
                _ => {}
            }
            let mut in_loop = in_loop;
            match s {
                Stmt::Loop { kind: LoopKind::Wrg(_), var, .. } => _ = self.groups.insert(var.id),
                Stmt::Loop { .. } | Stmt::While(..) => in_loop = true,
                _ => {}
            }
            s.blocks().into_iter().for_each(|b| self.block(b, in_loop, sets));
        }
    }
}

/// Returns the value that a statement gives to a register that is set so many times in the kernel, if it is all of them.
fn value_set<'a>(s: &'a Stmt, r: &Reg, times: Option<usize>) -> Option<Cow<'a, Expr>> {
    let last = |b: &Block| match b.last() {
        Some(Stmt::Set(to, e)) if to == r => Some(Arc::new(e.clone())),
        _ => None,
    };
    match s {
        Stmt::Set(to, e) if to == r && times == Some(1) => Some(Cow::Borrowed(e)),
        Stmt::Branch(c, a, b) if times == Some(2) => {
            Some(Cow::Owned(Expr::If(Arc::new(c.clone()), last(a)?, last(b)?)))
        }
        Stmt::If(g, a, b) if times == Some(2) => {
            Some(Cow::Owned(Expr::Guarded(g.clone(), last(a)?, last(b)?)))
        }
        // The register belongs to the work-item.
        Stmt::Loop { kind, body, .. } if kind.is_local() => {
            body.iter().find_map(|s| value_set(s, r, times))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn var(id: u32, hi: i64) -> Index {
        Index::from(Var { id, name: format!("i{id}").into(), lo: 0, hi })
    }

    #[test]
    fn the_most_over_some_variables() {
        let (x, y) = (var(1, 9), var(2, 4));
        let i = x.times(3).sub(&y.times(2)).plus(5);
        assert_eq!(most(&i, &|v| v.id == 1), Some(y.times(-2).plus(32)));
        assert_eq!(most(&i, &|v| v.id == 2), Some(x.times(3).plus(5)));
        assert_eq!(most(&x.lesser(&y), &|v| v.id == 1), Some(y));
    }

    #[test]
    fn conditions_on_places_are_read_at_other_places() {
        // Row `g`, of which the columns up to `g` are read.
        let (g, l, k) = (var(1, 127), var(2, 63), var(3, 1));
        let column = l.add(&k.times(64));
        let read = Read::of(&g.times(128).add(&column), &[g.sub(&column)]).expect("a read");
        let (row, other) = (var(4, 127), var(5, 127));
        assert_eq!(read.at(&row.times(128).add(&other)), [row.sub(&other)]);
        // The rows of a block, which reads whole columns.
        let (block, inner) = (var(1, 31), var(6, 3));
        let row = block.times(4).add(&inner);
        let read = Read::of(&row.times(128).add(&column), &[block.times(4).sub(&column)]);
        let at = read.expect("a read").at(&var(4, 127).times(128).add(&var(5, 127)));
        assert_eq!(at, [var(4, 127).div(4).times(4).sub(&var(5, 127))]);
        // Nothing limits what is read.
        assert!(Read::of(&g.times(128).add(&column), &[]).is_none());
    }

    #[test]
    fn either_condition() {
        let (x, y) = (var(1, 9), var(2, 9));
        let (near, far) = (x.sub(&y), x.sub(&y).plus(7));
        assert_eq!(or(std::slice::from_ref(&near), std::slice::from_ref(&far)), [far]);
        assert!(or(&[near], &[y.sub(&x)]).is_empty());
    }
}
