//! Bins that work-items share, for operators without an operation of the device.
//!
//! Components of a value that an operator combines without each other are parts of their own. A part is one component with an
//! atomic operation; or it is a few components in one word, which a work-item exchanges if no other one has changed it
//! meanwhile. Else the work-item tries again with what it has found. One of several work-items that try at the same time always
//! succeeds, and no work-item waits for another one, so that this ends on devices whose work-items run in lock-step, too.
//!
//! An operator that chooses one of its arguments needs no word for a value, however wide: a bin holds the number of the element
//! that was chosen last, and the elements are read where they are.

use super::dest::Dest;
use super::leaf::{self, Emit, arg_path};
use super::lowerer::Lowerer;
use super::view::{Shape, Step, View, stop, within};
use crate::calculus::scalar::{Lit, SExpr, ScalarFn};
use crate::calculus::term::{Op, Space, Term};
use crate::calculus::ty::Ty;
use crate::diag::Code;
use crate::kernel::ir::index::Index;
use crate::kernel::ir::{ElemTy, Expr, Lanes, Mem, Stmt, Update};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use std::collections::BTreeSet;

/// The way from a value to a component of it: the sides of pairs.
pub type Path = Vec<bool>;

/// A component of a value.
type Leaf = (Path, ScalarType);

const FLAG: ElemTy = ElemTy::scalar(ScalarType::Bool);

/// The type of the number of an element.
const NUMBER: ElemTy = ElemTy::scalar(ScalarType::U32);

/// How a value is combined with a bin that work-items share.
pub struct Shared {
    elem: Shape,
    parts: Vec<Part>,
}

/// What one step combines.
enum Part {
    /// A component, by an operation of the device.
    Native(Path, ScalarOp),
    /// Components in one word.
    Packed(Packed),
}

/// Components that an operator combines with each other, side by side in one word, the first one lowest.
struct Packed {
    word: ScalarType,
    fields: Vec<Leaf>,
    /// The operator, restricted to these components. The result is a pair of the first one and the others, as for a tuple.
    f: ScalarFn,
}

impl Shared {
    /// Returns how an operator combines values by atomic operations on numbers of 32 bits, and of 64 bits if `wide` is set;
    /// `None` if a part does not fit in a word.
    pub fn of(op: &Term, elem: &Shape, wide: bool) -> Option<Shared> {
        let Op::Scalar(f) = op.op() else { return None };
        let leaves = leaves(&f.cod)?;
        let results: Vec<SExpr> = leaves.iter().map(|(path, _)| component(&f.body, path)).collect();
        let groups = groups(&leaves, &results);
        let of = |group: &Vec<usize>| part(f, &leaves, &results, group, wide);
        let parts = groups.iter().map(of).collect::<Option<_>>()?;
        Some(Shared { elem: elem.clone(), parts })
    }

    /// Whether each component is combined by an operation of the device, so that a bin is a value.
    pub fn is_native(&self) -> bool {
        self.parts.iter().all(|p| matches!(p, Part::Native(..)))
    }

    /// Whether a device has operations for all components, which no other work-item's update makes start again. There are none for
    /// sums of floats. The greatest and the least float are those of their bits.
    pub fn has_operations(&self) -> bool {
        self.parts.iter().all(|p| match p {
            Part::Native(path, op) => {
                let Shape::Elem(t) = at_path(&self.elem, path) else { return false };
                !t.scalar.is_float() || matches!(op, ScalarOp::Min | ScalarOp::Max)
            }
            Part::Packed(_) => false,
        })
    }

    /// The shape of a bin.
    pub fn bin(&self) -> Shape {
        if self.is_native() {
            return self.elem.clone();
        }
        let of = |p: &Part| match p {
            Part::Native(path, _) => at_path(&self.elem, path).clone(),
            Part::Packed(p) => Shape::Elem(ElemTy::scalar(p.word)),
        };
        let parts = self.parts.iter().rev().map(of);
        parts
            .reduce(|rest, first| Shape::Pair(Box::new(first), Box::new(rest)))
            .unwrap_or(Shape::Unit)
    }

    /// Returns a value as it stands in a bin.
    fn packed(&self, v: &View) -> Step<View> {
        if self.is_native() {
            return Ok(v.clone());
        }
        let mut out: Option<View> = None;
        for p in self.parts.iter().rev() {
            let first = match p {
                Part::Native(path, _) => side(v, path)?,
                Part::Packed(p) => View::Elem(p.packed(v)?),
            };
            out = Some(match out {
                None => first,
                Some(rest) => View::pair(first, rest),
            });
        }
        Ok(out.unwrap_or(View::Unit))
    }

    /// Returns the value that stands in a bin.
    pub fn unpacked(&self, bin: &View) -> Step<View> {
        if self.is_native() {
            return Ok(bin.clone());
        }
        let mut found: Vec<(Path, Expr)> = vec![];
        for (k, p) in self.parts.iter().enumerate() {
            let part = side(bin, &self.place(k))?.expr()?;
            match p {
                Part::Native(path, _) => found.push((path.clone(), part)),
                Part::Packed(p) => found.extend(p.unpacked(&part)),
            }
        }
        value(&self.elem, &mut vec![], &found)
    }

    /// The way from a bin to a part of it.
    fn place(&self, k: usize) -> Path {
        if let Part::Native(path, _) = &self.parts[k]
            && self.is_native()
        {
            return path.clone();
        }
        let mut path = vec![true; k];
        if k + 1 < self.parts.len() {
            path.push(false);
        }
        path
    }
}

impl Packed {
    /// Returns the word of the fields of a value.
    fn packed(&self, v: &View) -> Step<Expr> {
        let word = ElemTy::scalar(self.word);
        let (mut out, mut from): (Option<Expr>, _) = (None, 0);
        for (path, t) in &self.fields {
            let bits = cast(bits(side(v, path)?.expr()?), word);
            let field = operation(ScalarOp::Shl, bits, from);
            from += width(*t);
            out = Some(match out {
                None => field,
                Some(lower) => Expr::Op(ScalarOp::BitOr, word, vec![lower, field]),
            });
        }
        match out {
            Some(e) => Ok(e),
            None => stop(Code::Internal, "a word without fields"),
        }
    }

    /// Returns the fields of a word.
    fn unpacked(&self, word: &Expr) -> Vec<(Path, Expr)> {
        let mut from = 0;
        let of = |(path, t): &Leaf| {
            let field = operation(ScalarOp::Shr, word.clone(), from);
            from += width(*t);
            (path.clone(), of_bits(field, *t))
        };
        self.fields.iter().map(of).collect()
    }
}

impl Lowerer {
    /// Writes the neutral element to a bin.
    pub fn clear_bin(&mut self, shared: &Shared, z: &[Term], dest: &Dest) -> Step<()> {
        if shared.is_native() {
            return self.write(z, &View::Unit, dest);
        }
        let zero = self.allocate(&shared.elem, Some(Space::Private))?;
        self.write(z, &View::Unit, &zero.dest)?;
        self.store(&shared.packed(&zero.view)?, dest, &shared.bin())
    }

    /// Combines a value with a bin that other work-items may change at the same time.
    pub fn combine_shared(
        &mut self,
        shared: &Shared,
        v: &View,
        bin: &Dest,
        lanes: Lanes,
    ) -> Step<()> {
        let v = if shared.is_native() { v.clone() } else { leaf::bind(v, self)? };
        for (k, p) in shared.parts.iter().enumerate() {
            let place = shared.place(k);
            match p {
                Part::Native(path, op) => {
                    let native = [(vec![], *op)];
                    let bin = component_of(bin, &place)?;
                    self.atomically(&native, &side(&v, path)?, &bin, lanes)?;
                }
                Part::Packed(p) => {
                    let (mem, at) = place_of(&component_of(bin, &place)?)?;
                    let next = |me: &mut Lowerer, seen: &Expr| {
                        let old = value(&shared.elem, &mut vec![], &p.unpacked(seen))?;
                        let new = leaf::lower(&p.f, &View::pair(old, v.clone()), me)?;
                        p.of_result(&new)
                    };
                    self.exchange(ElemTy::scalar(p.word), mem, &at, &next)?;
                }
            }
        }
        Ok(())
    }

    /// Gives the word of a bin the value that `next` computes from the present one.
    fn exchange(
        &mut self,
        word: ElemTy,
        mem: Mem,
        at: &Index,
        next: &dyn Fn(&mut Lowerer, &Expr) -> Step<Expr>,
    ) -> Step<()> {
        let zero = Expr::Lit(Lit::int(word.scalar, 0));
        let differ = |a: &Expr, b: &Expr| Expr::Op(ScalarOp::Ne, FLAG, vec![a.clone(), b.clone()]);
        let seen = self.declare(word, Some(zero.clone()))?;
        self.emit(Stmt::Atomic(Update::Read(seen.clone()), mem, at.clone(), zero))?;
        let again = self.declare(FLAG, Some(Expr::Lit(Lit::int(ScalarType::Bool, 1))))?;
        let seen_value = Expr::Reg(seen.clone());
        self.begin();
        let done = (|| {
            let new = next(self, &seen_value)?;
            let new = Expr::Reg(self.declare(word, Some(new))?);
            // A value that changes nothing is combined by having read the bin.
            self.emit(Stmt::Set(again.clone(), differ(&new, &seen_value)))?;
            self.begin();
            let done = (|| {
                let before = Expr::Reg(self.declare(word, Some(seen_value.clone()))?);
                self.emit(Stmt::Atomic(Update::Swap(seen), mem, at.clone(), new))?;
                self.emit(Stmt::Set(again.clone(), differ(&before, &seen_value)))
            })();
            let tries = self.end();
            done?;
            self.put(Stmt::Branch(Expr::Reg(again.clone()), tries, vec![]))
        })();
        let body = self.end();
        done?;
        self.put(Stmt::While(vec![], Expr::Reg(again), body))
    }

    /// A histogram outside kernels whose operator chooses one of its arguments: a bin holds one more than the number of the
    /// element that was chosen, and 0 if there was none.
    pub fn histogram_by_number(
        &mut self,
        (f, keeps): (&Term, &ScalarFn),
        x: &View,
        (m, n): (i64, i64),
        dest: &Dest,
    ) -> Step<()> {
        let shape = self.views.shape(&f.ty().cod)?;
        let Shape::Array(_, elem) = &shape else {
            return stop(Code::Internal, "a histogram is an array");
        };
        let (places, values, z) = (x.fst()?, x.snd()?, f.args()[1].chain());
        let bins = self.allocate(&Shape::Array(m, Box::new(Shape::Elem(NUMBER))), None)?;
        let none = Expr::Lit(Lit::int(NUMBER.scalar, 0));
        let none = &none;
        let is_one = |e: &Expr| Expr::Op(ScalarOp::Ne, FLAG, vec![e.clone(), none.clone()]);
        let element = |me: &mut Lowerer, number: &Expr| {
            let one = Expr::Lit(Lit::int(NUMBER.scalar, 1));
            let before = Expr::Op(ScalarOp::Sub, NUMBER, vec![number.clone(), one]);
            let before = leaf::bind(&View::Elem(before), me)?.expr()?;
            me.emitted(|| values.at(&within(before, n)))
        };
        self.each(m, &mut |me, i| {
            me.store(&View::Elem(none.clone()), &bins.dest.at(i)?, &Shape::Elem(NUMBER))
        })?;
        self.each(n, &mut |me, j| {
            me.at_place(&places, j, m, &mut |me, i| {
                let v = me.emitted(|| values.at(j))?;
                let v = leaf::bind(&v, me)?;
                let own = Expr::Index(j.plus(1), NUMBER.scalar);
                let (mem, at) = place_of(&bins.dest.at(i)?)?;
                me.exchange(NUMBER, mem, &at, &|me, seen| {
                    let new = me.declare(NUMBER, Some(own.clone()))?;
                    me.begin();
                    let done = (|| {
                        let old = element(me, seen)?;
                        let kept = leaf::lower(keeps, &View::pair(old, v.clone()), me)?.expr()?;
                        let keep = vec![Stmt::Set(new.clone(), seen.clone())];
                        me.put(Stmt::Branch(kept, keep, vec![]))
                    })();
                    let choice = me.end();
                    done?;
                    me.put(Stmt::Branch(is_one(seen), choice, vec![]))?;
                    Ok(Expr::Reg(new))
                })
            })
        })?;
        self.each(m, &mut |me, i| {
            let number = leaf::bind(&bins.view.at(i)?, me)?.expr()?;
            let to = dest.at(i)?;
            me.begin();
            let done = element(me, &number).and_then(|v| me.store(&v, &to, elem));
            let some = me.end();
            done?;
            me.begin();
            let done = me.write(&z, &View::Unit, &to);
            let empty = me.end();
            done?;
            me.put(Stmt::Branch(is_one(&number), some, empty))
        })
    }
}

impl Packed {
    /// Returns the word of the fields that the operator gives.
    fn of_result(&self, new: &View) -> Step<Expr> {
        let n = self.fields.len();
        let place = |k: usize| {
            let mut path = vec![true; k];
            path.extend((k + 1 < n).then_some(false));
            path
        };
        let fields = self.fields.iter().enumerate().map(|(k, (_, t))| (place(k), *t)).collect();
        Packed { word: self.word, fields, f: self.f.clone() }.packed(new)
    }
}

/// Returns the function that says whether an operator on two values chooses the first one; `None` if it does not choose one
/// of them in any case.
pub fn choice(op: &Term) -> Option<ScalarFn> {
    fn of(e: &SExpr, path: &mut Path) -> Option<SExpr> {
        let known = |first: bool| SExpr::Lit(Lit::int(ScalarType::Bool, i128::from(first)));
        if let Some(p) = arg_path(e) {
            let (second, rest) = p.split_first()?;
            return (rest == &path[..]).then(|| known(!second));
        }
        match e {
            SExpr::Pair(a, b) => {
                let mut side = |e, second| {
                    path.push(second);
                    let chosen = of(e, path);
                    path.pop();
                    chosen
                };
                let (a, b) = (side(a, false)?, side(b, true)?);
                (a == b).then_some(a)
            }
            SExpr::If(c, a, b) => Some(match (of(a, path)?, of(b, path)?) {
                (a, b) if a == known(true) && b == known(false) => (**c).clone(),
                (a, b) => SExpr::chosen((**c).clone(), a, b),
            }),
            SExpr::Let(a, b) => Some(SExpr::Let(a.clone(), of(b, path)?.into())),
            _ => None,
        }
    }
    let Op::Scalar(f) = op.op() else { return None };
    let body = of(&f.body, &mut vec![])?;
    Some(ScalarFn { dom: f.dom.clone(), cod: Ty::Scalar(ScalarType::Bool), body })
}

/// Returns the components of a value; `None` if some are not numbers.
fn leaves(t: &Ty) -> Option<Vec<Leaf>> {
    fn of(t: &Ty, path: &mut Path, out: &mut Vec<Leaf>) -> Option<()> {
        match t {
            Ty::Scalar(t) => out.push((path.clone(), *t)),
            Ty::Pair(a, b) => {
                for (second, t) in [(false, a), (true, b)] {
                    path.push(second);
                    of(t, path, out)?;
                    path.pop();
                }
            }
            _ => return None,
        }
        Some(())
    }
    let mut out = vec![];
    of(t, &mut vec![], &mut out)?;
    Some(out)
}

/// Returns a component of an expression. The projection moves inside of choices.
fn component(e: &SExpr, path: &[bool]) -> SExpr {
    let Some((second, rest)) = path.split_first() else { return e.clone() };
    match e {
        SExpr::Pair(a, b) => component(if *second { b } else { a }, rest),
        SExpr::If(c, a, b) => {
            SExpr::If(c.clone(), component(a, path).into(), component(b, path).into())
        }
        SExpr::Let(a, b) => SExpr::Let(a.clone(), component(b, path).into()),
        e => component(&e.clone().proj(*second), rest),
    }
}

/// Returns the components in groups that an operator combines without each other.
fn groups(leaves: &[Leaf], results: &[SExpr]) -> Vec<Vec<usize>> {
    let mut group: Vec<usize> = (0..leaves.len()).collect();
    for (k, e) in results.iter().enumerate() {
        for used in used(e, leaves) {
            let (from, to) = (group[used].max(group[k]), group[used].min(group[k]));
            group.iter_mut().filter(|g| **g == from).for_each(|g| *g = to);
        }
    }
    let firsts: BTreeSet<usize> = group.iter().copied().collect();
    let of = |first| (0..leaves.len()).filter(|k| group[*k] == first).collect();
    firsts.into_iter().map(of).collect()
}

/// Returns the components of either argument that a result depends on.
fn used(e: &SExpr, leaves: &[Leaf]) -> BTreeSet<usize> {
    if let Some(path) = arg_path(e) {
        let inside = |(leaf, _): &Leaf| path.len() < 2 || leaf.starts_with(&path[1..]);
        return (0..leaves.len()).filter(|k| inside(&leaves[*k])).collect();
    }
    let all = |es: &[&SExpr]| es.iter().flat_map(|e| used(e, leaves)).collect();
    match e {
        SExpr::Arg | SExpr::Lit(_) | SExpr::Input(..) | SExpr::Size(..) | SExpr::Var(..) => {
            all(&[])
        }
        SExpr::Proj(e, _) => used(e, leaves),
        SExpr::Op(_, _, es) => all(&es.iter().collect::<Vec<_>>()),
        SExpr::Pair(a, b) | SExpr::Let(a, b) => all(&[a, b]),
        SExpr::If(a, b, c) | SExpr::For(a, b, c) | SExpr::While(a, b, c) => all(&[a, b, c]),
    }
}

/// Returns how a group of components is combined in one step, if it can be.
fn part(
    f: &ScalarFn,
    leaves: &[Leaf],
    results: &[SExpr],
    group: &[usize],
    wide: bool,
) -> Option<Part> {
    if let [k] = group
        && let Some(op) = native(&results[*k], &leaves[*k], wide)
    {
        return Some(Part::Native(leaves[*k].0.clone(), op));
    }
    let fields: Vec<Leaf> = group.iter().map(|k| leaves[*k].clone()).collect();
    // Few devices have halves.
    if fields.iter().any(|(_, t)| matches!(t, ScalarType::F16 | ScalarType::BF16)) {
        return None;
    }
    let word = match fields.iter().map(|(_, t)| width(*t)).sum() {
        0..=32 => ScalarType::U32,
        33..=64 if wide => ScalarType::U64,
        _ => return None,
    };
    let one = |k: &usize| (results[*k].clone(), Ty::Scalar(leaves[*k].1));
    let joined = group.iter().rev().map(one);
    let (body, cod) = joined.reduce(|(b, u), (a, t)| (SExpr::pair(a, b), Ty::pair(&t, &u)))?;
    // What several components need is computed once.
    let (body, cod) = match group.len() == leaves.len() && *leaves_in_order(&cod) == *leaves {
        true => (f.body.clone(), f.cod.clone()),
        false => (body, cod),
    };
    let f = ScalarFn { dom: f.dom.clone(), cod, body };
    Some(Part::Packed(Packed { word, fields, f }))
}

fn leaves_in_order(t: &Ty) -> Vec<Leaf> {
    leaves(t).unwrap_or_default()
}

/// Returns the operation that combines a component, if devices have it: on numbers of 32 bits, and of 64 bits if `wide` is set.
fn native(e: &SExpr, (path, t): &Leaf, wide: bool) -> Option<ScalarOp> {
    use ScalarOp::{Add, BitAnd, BitOr, BitXor, Max, Min};
    use ScalarType::{F32, F64, I32, I64, U32, U64};
    let SExpr::Op(op @ (Add | Min | Max | BitAnd | BitOr | BitXor), _, es) = e else { return None };
    let side = |second| path.iter().fold(SExpr::Arg.proj(second), |e, s| e.proj(*s));
    let both = [side(false), side(true)];
    let same = es[..] == both || es.iter().rev().eq(&both);
    let known = matches!(t, I32 | U32 | F32) || wide && matches!(t, I64 | U64 | F64);
    (same && known).then_some(*op)
}

/// Number of bits of a component in a word.
fn width(t: ScalarType) -> i64 {
    match t {
        ScalarType::Bool => 8,
        t => 8 * i64::try_from(t.bytes()).unwrap_or(8),
    }
}

fn unsigned(t: ScalarType) -> ElemTy {
    ElemTy::scalar(match width(t) {
        8 => ScalarType::U8,
        16 => ScalarType::U16,
        32 => ScalarType::U32,
        _ => ScalarType::U64,
    })
}

fn cast(e: Expr, to: ElemTy) -> Expr {
    if e.ty() == to { e } else { Expr::Op(ScalarOp::Cast(to.scalar), to, vec![e]) }
}

/// Returns the bits of a number as an unsigned number of the same width.
fn bits(e: Expr) -> Expr {
    let t = e.ty().scalar;
    match t.is_float() {
        true => Expr::Op(ScalarOp::Bits, unsigned(t), vec![e]),
        false => cast(e, unsigned(t)),
    }
}

/// Returns the number of a type whose bits are the lowest ones of a word.
fn of_bits(word: Expr, t: ScalarType) -> Expr {
    let bits = cast(word, unsigned(t));
    match t {
        ScalarType::Bool => {
            Expr::Op(ScalarOp::Ne, FLAG, vec![bits, Expr::Lit(Lit::int(ScalarType::U8, 0))])
        }
        t if t.is_float() => Expr::Op(ScalarOp::Bits, ElemTy::scalar(t), vec![bits]),
        t => cast(bits, ElemTy::scalar(t)),
    }
}

/// Returns a word moved by some bits.
fn operation(op: ScalarOp, word: Expr, by: i64) -> Expr {
    let t = word.ty();
    match by {
        0 => word,
        _ => Expr::Op(op, t, vec![word, Expr::Lit(Lit::int(t.scalar, i128::from(by)))]),
    }
}

fn at_path<'a>(shape: &'a Shape, path: &[bool]) -> &'a Shape {
    match (shape, path.split_first()) {
        (Shape::Pair(a, b), Some((second, rest))) => at_path(if *second { b } else { a }, rest),
        _ => shape,
    }
}

fn side(v: &View, path: &[bool]) -> Step<View> {
    path.iter().try_fold(v.clone(), |v, second| if *second { v.snd() } else { v.fst() })
}

fn component_of(dest: &Dest, path: &[bool]) -> Step<Dest> {
    path.iter().try_fold(dest.clone(), |d, second| d.component(*second))
}

fn place_of(dest: &Dest) -> Step<(Mem, Index)> {
    match dest {
        Dest::Mem(mem, _, at) => Ok((*mem, at.clone())),
        _ => stop(Code::Internal, "an element of a histogram outside memory"),
    }
}

/// Returns the value of these components. Nothing reads the others.
fn value(shape: &Shape, path: &mut Path, found: &[(Path, Expr)]) -> Step<View> {
    Ok(match shape {
        Shape::Pair(a, b) => {
            let mut side = |shape, second| {
                path.push(second);
                let v = value(shape, path, found);
                path.pop();
                v
            };
            View::pair(side(a, false)?, side(b, true)?)
        }
        Shape::Elem(t) => {
            let own = found.iter().find(|(p, _)| p == path).map(|(_, e)| e.clone());
            View::Elem(own.unwrap_or_else(|| Expr::Lit(Lit::int(t.scalar, 0))))
        }
        _ => return stop(Code::Internal, "a bin of arrays"),
    })
}
