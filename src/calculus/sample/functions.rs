//! Random closed terms of a given type.
//!
//! A term is built from its result type: a pair is a `fork`; an array is a map over arrays of the argument, a
//! replica, or numbers; a scalar is a leaf over scalars that are found in the argument or folded from its
//! arrays. These terms have a value for every argument.

use super::Rng;
use crate::calculus::scalar::{Lit, SExpr, ScalarFn};
use crate::calculus::size::Size;
use crate::calculus::term::{MapKind, Op, ReduceKind, Term, TypeError};
use crate::calculus::ty::{FnTy, Ty};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use rand::RngExt;
use std::sync::Arc;

/// The requirements on a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// It has a component-wise form: no loops.
    pub vectorisable: bool,
    /// Its approximate size: 0 for the simplest.
    pub fuel: usize,
}

/// Returns a random function of that type. Its sizes must be numbers.
///
/// # Errors
/// For a type without values, such as one with a rule's variable, or one whose sizes are not numbers.
pub fn function(rng: &mut Rng, ty: &FnTy, wanted: Wanted) -> Result<Term, TypeError> {
    Maker { rng, wanted }.term(&ty.dom, &ty.cod, wanted.fuel)
}

/// Returns a few functions of that type that are easy to read, simplest first.
pub fn simple_functions(ty: &FnTy) -> Vec<Term> {
    let mut out = vec![];
    if ty.dom == ty.cod {
        out.push(Term::id(&ty.dom));
    }
    let mut rng = super::rng(0, "simple", 0);
    for vectorisable in [true, false] {
        for _ in 0..12 {
            let made = function(&mut rng, ty, Wanted { vectorisable, fuel: 0 });
            out.extend(made.ok().filter(|t| !out.contains(t)));
        }
    }
    out.sort_by_key(|t| t.to_string().len());
    out
}

struct Maker<'a> {
    rng: &'a mut Rng,
    wanted: Wanted,
}

type Made = Result<Term, TypeError>;

fn node(op: Op, sizes: Vec<Size>, tys: Vec<Ty>, args: Vec<Term>) -> Made {
    Term::new(op, sizes, tys, args)
}

/// Returns projections to every component of a value of that type, the whole first.
fn parts(ty: &Ty) -> Result<Vec<Term>, TypeError> {
    fn walk(way: &Term, out: &mut Vec<Term>) -> Result<(), TypeError> {
        out.push(way.clone());
        if let Ty::Pair(a, b) = &way.ty().cod {
            let tys = vec![(**a).clone(), (**b).clone()];
            for op in [Op::Fst, Op::Snd] {
                walk(&node(op, vec![], tys.clone(), vec![])?.after(way)?, out)?;
            }
        }
        Ok(())
    }
    let mut out = vec![];
    walk(&Term::id(ty), &mut out)?;
    Ok(out)
}

impl Maker<'_> {
    fn below(&mut self, n: usize) -> usize {
        self.rng.random_range(0..n.max(1))
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T>(&mut self, mut of: Vec<T>) -> Option<T> {
        let i = self.below(of.len());
        (!of.is_empty()).then(|| of.swap_remove(i))
    }

    fn term(&mut self, dom: &Ty, cod: &Ty, fuel: usize) -> Made {
        let fits: Vec<Term> = parts(dom)?.into_iter().filter(|p| p.ty().cod == *cod).collect();
        if !fits.is_empty()
            && self.one_in(if fuel == 0 { 3 } else { 6 })
            && let Some(way) = self.pick(fits)
        {
            return Ok(way);
        }
        match cod {
            Ty::Unit => node(Op::Bang, vec![], vec![dom.clone()], vec![]),
            Ty::Scalar(s) => self.scalar(dom, *s, fuel),
            Ty::Pair(a, b) => {
                let (f, g) = (self.term(dom, a, fuel)?, self.term(dom, b, fuel)?);
                node(Op::Fork, vec![], vec![], vec![f, g])
            }
            Ty::Vector(w, t) => self.vector(dom, cod, w, t, fuel),
            Ty::Array(n, t) => self.array(dom, n, t, fuel),
            Ty::Meta(m) => Err(TypeError(format!("the type variable `{m}`"))),
        }
    }

    /// Makes a random leaf and applies it after a term that gives scalars.
    fn leaf(&mut self, from: &Term, cod: &Ty, fuel: usize) -> Made {
        let dom = from.ty().cod.clone();
        let body = self.expr_of(&dom, cod, fuel);
        Term::scalar(ScalarFn { dom, cod: cod.clone(), body }).after(from)
    }

    fn constant(&mut self, dom: &Ty, s: ScalarType) -> Made {
        let (cod, body) = (Ty::Scalar(s), SExpr::Lit(self.literal(s)));
        let constant = Term::scalar(ScalarFn { dom: Ty::Unit, cod, body });
        constant.after(&node(Op::Bang, vec![], vec![dom.clone()], vec![])?)
    }

    fn scalar(&mut self, dom: &Ty, s: ScalarType, fuel: usize) -> Made {
        let cod = Ty::Scalar(s);
        if *dom == Ty::Unit || self.one_in(12) {
            return if *dom == Ty::Unit {
                let body = SExpr::Lit(self.literal(s));
                Ok(Term::scalar(ScalarFn { dom: dom.clone(), cod, body }))
            } else {
                self.constant(dom, s)
            };
        }
        if dom.is_scalar() {
            let whole = Term::id(dom);
            if fuel > 0 && self.one_in(4) {
                // Two leaves, one applied after the other.
                let between = Ty::Scalar(self.scalar_type());
                let first = self.leaf(&whole, &between, fuel - 1)?;
                return self.leaf(&first, &cod, fuel - 1);
            }
            return self.leaf(&whole, &cod, fuel);
        }
        // One or two scalars from the argument.
        let mut sources = vec![];
        for way in parts(dom)? {
            match &way.ty().cod {
                t if t.is_scalar() => sources.push(way),
                Ty::Array(n, x) if !self.wanted.vectorisable => {
                    sources.push(self.folded(n, x, s, fuel)?.after(&way)?);
                }
                Ty::Vector(w, x) if !self.wanted.vectorisable => {
                    let vector = way.ty().cod.clone();
                    let wrap = node(Op::Wrap, vec![], vec![vector], vec![])?;
                    let one = vec![w.clone(), Size::constant(1)];
                    let lanes = node(Op::AsScalar, one, vec![(**x).clone()], vec![])?;
                    let folded = self.folded(w, x, s, fuel)?;
                    sources.push(folded.after(&lanes.after(&wrap.after(&way)?)?)?);
                }
                _ => {}
            }
        }
        let Some(first) = self.pick(sources.clone()) else { return self.constant(dom, s) };
        if self.one_in(2)
            && let Some(second) = self.pick(sources)
        {
            let both = node(Op::Fork, vec![], vec![], vec![first, second])?;
            return self.leaf(&both, &cod, fuel);
        }
        if first.ty().cod == cod && self.one_in(2) {
            return Ok(first);
        }
        self.leaf(&first, &cod, fuel)
    }

    /// Returns a function `[n]x -> s`: a fold from the left, or an element.
    fn folded(&mut self, n: &Size, x: &Ty, s: ScalarType, fuel: usize) -> Made {
        let fuel = fuel.saturating_sub(1);
        let array = Ty::array(n, x);
        if n.as_constant().is_some_and(|n| n > 0) && self.one_in(3) {
            let at = Lit::int(ScalarType::I32, self.below_size(n));
            let at = node(Op::Lit(at), vec![], vec![array.clone()], vec![])?;
            let both = node(Op::Fork, vec![], vec![], vec![Term::id(&array), at])?;
            let tys = vec![x.clone(), Ty::Scalar(ScalarType::I32)];
            let element = node(Op::Index, vec![n.clone()], tys, vec![])?.after(&both)?;
            let rest = self.term(x, &Ty::Scalar(s), fuel)?;
            return rest.after(&element);
        }
        let acc = Ty::Scalar(s);
        let op = self.term(&Ty::pair(&acc, x), &acc, fuel)?;
        let z = self.term(&Ty::Unit, &acc, 0)?;
        let kind = if self.one_in(2) { ReduceKind::Seq } else { ReduceKind::Unroll };
        node(Op::Reduce(kind), vec![n.clone()], vec![], vec![op, z])
    }

    fn below_size(&mut self, n: &Size) -> i128 {
        let n = usize::try_from(n.as_constant().unwrap_or(1)).unwrap_or(1);
        i128::try_from(self.below(n)).unwrap_or(0)
    }

    fn vector(&mut self, dom: &Ty, cod: &Ty, w: &Size, t: &Ty, fuel: usize) -> Made {
        let vectors: Vec<Term> =
            parts(dom)?.into_iter().filter(|p| p.ty().cod.unvector(w).is_some()).collect();
        if !vectors.is_empty()
            && !self.one_in(4)
            && let Some(way) = self.pick(vectors)
            && let Some(lane) = way.ty().cod.unvector(w)
        {
            let body = self.expr_without_loops(&lane, t, fuel);
            let lane = Term::scalar(ScalarFn { dom: lane, cod: t.clone(), body });
            return node(Op::Vectorize, vec![w.clone()], vec![], vec![lane])?.after(&way);
        }
        let lane = self.term(dom, t, fuel)?;
        let made = node(Op::Splat, vec![w.clone()], vec![t.clone()], vec![])?.after(&lane)?;
        debug_assert_eq!(made.ty().cod, *cod);
        Ok(made)
    }

    fn array(&mut self, dom: &Ty, n: &Size, t: &Ty, fuel: usize) -> Made {
        let less = fuel.saturating_sub(1);
        let map = |f: Term| {
            let kind = MapKind::Plain;
            node(Op::Map(kind), vec![n.clone()], vec![], vec![f])
        };
        let is_row = |p: &&Term| matches!(&p.ty().cod, Ty::Array(m, _) if m == n);
        let ways = parts(dom)?;
        let arrays: Vec<Term> = ways.iter().filter(is_row).cloned().collect();
        let element = |p: &Term| match &p.ty().cod {
            Ty::Array(_, x) => (**x).clone(),
            other => other.clone(),
        };
        let choice = self.below(8);
        if let Some(xs) = self.pick(arrays.clone()) {
            let x = element(&xs);
            match choice {
                0 if arrays.len() > 1 => {
                    let ys = self.pick(arrays).unwrap_or_else(|| xs.clone());
                    let y = element(&ys);
                    let both = node(Op::Fork, vec![], vec![], vec![xs, ys])?;
                    let tys = vec![x.clone(), y.clone()];
                    let zip = node(Op::Zip, vec![n.clone()], tys, vec![])?.after(&both)?;
                    return map(self.term(&Ty::pair(&x, &y), t, less)?)?.after(&zip);
                }
                1 if ways.len() > 1 => {
                    let c = self.pick(ways).unwrap_or_else(|| xs.clone());
                    let (a, tys) = (c.ty().cod.clone(), vec![c.ty().cod.clone(), x.clone()]);
                    let both = node(Op::Fork, vec![], vec![], vec![c, xs])?;
                    let distl = node(Op::Distl, vec![n.clone()], tys, vec![])?.after(&both)?;
                    return map(self.term(&Ty::pair(&a, &x), t, less)?)?.after(&distl);
                }
                2 if x == *t => {
                    return node(Op::Reverse, vec![n.clone()], vec![x], vec![])?.after(&xs);
                }
                0..6 => return map(self.term(&x, t, less)?)?.after(&xs),
                _ => {}
            }
        }
        if choice.is_multiple_of(2) {
            let i = Ty::Scalar(ScalarType::I32);
            let numbers = node(Op::Iota, vec![n.clone()], vec![dom.clone(), i.clone()], vec![])?;
            return map(self.term(&i, t, less)?)?.after(&numbers);
        }
        let x = self.term(dom, t, less)?;
        node(Op::Replicate, vec![n.clone()], vec![t.clone()], vec![])?.after(&x)
    }
}

/// Scalar expressions.
impl Maker<'_> {
    fn scalar_type(&mut self) -> ScalarType {
        let all = [ScalarType::I32, ScalarType::I64, ScalarType::F32, ScalarType::Bool];
        all[self.below(all.len())]
    }

    fn literal(&mut self, s: ScalarType) -> Lit {
        let x = i128::try_from(self.below(8)).unwrap_or(0) - 3;
        match s {
            ScalarType::Bool => Lit::int(s, x & 1),
            _ if s.is_signed() => Lit::int(s, x),
            _ => Lit::int(s, x.abs()),
        }
    }

    fn expr_of(&mut self, dom: &Ty, cod: &Ty, fuel: usize) -> SExpr {
        if fuel > 1
            && !self.wanted.vectorisable
            && self.one_in(4)
            && let Ty::Scalar(s) = cod
        {
            return self.looped(dom, *s, fuel);
        }
        self.expr_without_loops(dom, cod, fuel)
    }

    fn expr_without_loops(&mut self, dom: &Ty, cod: &Ty, fuel: usize) -> SExpr {
        match cod {
            Ty::Pair(a, b) => {
                let a = self.expr_without_loops(dom, a, fuel);
                SExpr::pair(a, self.expr_without_loops(dom, b, fuel))
            }
            Ty::Scalar(s) => {
                let args = scalars(SExpr::Arg, dom);
                self.mixed(&args, *s, fuel)
            }
            Ty::Unit | Ty::Vector(..) | Ty::Array(..) | Ty::Meta(_) => SExpr::Arg,
        }
    }

    /// A short loop that adds its counter, or updates its accumulator.
    fn looped(&mut self, dom: &Ty, s: ScalarType, fuel: usize) -> SExpr {
        let start = self.expr_without_loops(dom, &Ty::Scalar(s), fuel - 1);
        let bound = Lit::int(ScalarType::I32, i128::try_from(self.below(4)).unwrap_or(1));
        let counter = (SExpr::Var(0, Ty::Scalar(ScalarType::I32)), ScalarType::I32);
        let acc = (SExpr::Var(1, Ty::Scalar(s)), s);
        let mut args = scalars(SExpr::Arg, dom);
        args.extend([counter, acc.clone()]);
        let next = self.expr(&args, s, 1);
        let body = self.both(acc.0, next, s);
        SExpr::For(Arc::new(start), Arc::new(SExpr::Lit(bound)), Arc::new(body))
    }

    /// Returns an expression that uses every component of the argument that fits, or a random one.
    fn mixed(&mut self, args: &[(SExpr, ScalarType)], s: ScalarType, fuel: usize) -> SExpr {
        if self.one_in(3) {
            return self.expr(args, s, fuel + 1);
        }
        let mut out: Option<SExpr> = None;
        for (e, t) in args {
            let e = Self::cast(e.clone(), *t, s);
            let e = if self.one_in(2) && s.is_integer() {
                let factor = SExpr::Lit(self.literal(s));
                SExpr::Op(ScalarOp::Mul, s, vec![e, factor])
            } else {
                e
            };
            out = Some(match out {
                None => e,
                Some(before) => self.both(before, e, s),
            });
        }
        let out = out.unwrap_or_else(|| SExpr::Lit(self.literal(s)));
        if fuel > 0 || self.one_in(2) {
            let c = SExpr::Lit(self.literal(s));
            self.both(out, c, s)
        } else {
            out
        }
    }

    /// Returns two expressions of a type, combined.
    fn both(&mut self, a: SExpr, b: SExpr, s: ScalarType) -> SExpr {
        let ops: &[ScalarOp] = match s {
            ScalarType::Bool => &[ScalarOp::And, ScalarOp::Or, ScalarOp::Eq, ScalarOp::Ne],
            // Sums and differences of small whole numbers are exact.
            _ => &[ScalarOp::Add, ScalarOp::Sub, ScalarOp::Add, ScalarOp::Min, ScalarOp::Max],
        };
        SExpr::Op(ops[self.below(ops.len())], s, vec![a, b])
    }

    fn cast(e: SExpr, from: ScalarType, to: ScalarType) -> SExpr {
        let zero = |s| SExpr::Lit(Lit::int(s, 0));
        match (from, to) {
            _ if from == to => e,
            (_, ScalarType::Bool) => SExpr::Op(ScalarOp::Gt, to, vec![e, zero(from)]),
            // A large integer is not exact as a float, so clamp it.
            (_, _) if to.is_float() && from.is_integer() => {
                let (low, high) = (SExpr::Lit(Lit::int(from, -9)), SExpr::Lit(Lit::int(from, 9)));
                let low = if from.is_signed() { low } else { zero(from) };
                let small = SExpr::Op(ScalarOp::Clamp, from, vec![e, low, high]);
                SExpr::Op(ScalarOp::Cast(from), to, vec![small])
            }
            _ => SExpr::Op(ScalarOp::Cast(from), to, vec![e]),
        }
    }

    fn expr(&mut self, args: &[(SExpr, ScalarType)], s: ScalarType, fuel: usize) -> SExpr {
        if fuel == 0 || self.one_in(4) {
            let own: Vec<SExpr> =
                args.iter().filter(|(_, t)| *t == s).map(|(e, _)| e.clone()).collect();
            let other: Vec<(SExpr, ScalarType)> = args.to_vec();
            return match (self.pick(own), self.pick(other)) {
                (Some(e), _) if !self.one_in(6) => e,
                (_, Some((e, t))) if !self.one_in(3) => Self::cast(e, t, s),
                _ => SExpr::Lit(self.literal(s)),
            };
        }
        let fuel = fuel - 1;
        match (self.below(6), s) {
            (0, _) => {
                let c = self.expr(args, ScalarType::Bool, fuel);
                let (a, b) = (self.expr(args, s, fuel), self.expr(args, s, fuel));
                SExpr::If(Arc::new(c), Arc::new(a), Arc::new(b))
            }
            (1, ScalarType::Bool) => {
                let a = self.expr(args, s, fuel);
                SExpr::Op(ScalarOp::Not, s, vec![a])
            }
            (1, _) => {
                let op = if self.one_in(2) { ScalarOp::Abs } else { ScalarOp::Neg };
                let a = self.expr(args, s, fuel);
                SExpr::Op(op, s, vec![a])
            }
            (2 | 3, ScalarType::Bool) => {
                let t = [ScalarType::I32, ScalarType::F32][self.below(2)];
                let (a, b) = (self.expr(args, t, fuel), self.expr(args, t, fuel));
                let op = [ScalarOp::Lt, ScalarOp::Le, ScalarOp::Eq][self.below(3)];
                SExpr::Op(op, s, vec![a, b])
            }
            (2, _) if s.is_integer() => {
                let (a, b) = (self.expr(args, s, fuel), self.expr(args, s, fuel));
                SExpr::Op(ScalarOp::Mul, s, vec![a, b])
            }
            _ => {
                let (a, b) = (self.expr(args, s, fuel), self.expr(args, s, fuel));
                self.both(a, b, s)
            }
        }
    }
}

/// Returns the scalars in a value of that type.
fn scalars(e: SExpr, ty: &Ty) -> Vec<(SExpr, ScalarType)> {
    match ty {
        Ty::Scalar(s) => vec![(e, *s)],
        Ty::Pair(a, b) => {
            let mut out = scalars(e.clone().proj(false), a);
            out.extend(scalars(e.proj(true), b));
            out
        }
        Ty::Unit | Ty::Vector(..) | Ty::Array(..) | Ty::Meta(_) => vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Style, rng, value};
    use super::*;
    use crate::calculus::eval;
    use crate::calculus::size::SizeEnv;
    use crate::calculus::text::{Context, parse_type, read_term};
    use crate::diag::Source;

    #[test]
    fn functions_have_their_type_and_a_value_and_print() {
        let ty = |t: &str| parse_type(&Source::new("t", t), 0..t.len()).expect("a type");
        let types = [
            "i32",
            "f32",
            "bool",
            "(i32, f32)",
            "[3]i32",
            "[0]f32",
            "[2](bool, i64)",
            "[2][3]i32",
            "<4>f32",
            "(<2>i32, [3]f32)",
            "((i32, i32), [3](i32, i32))",
            "()",
        ];
        let mut made = 0;
        for (i, dom) in types.iter().enumerate() {
            for (j, cod) in types.iter().enumerate() {
                for fuel in 0..4 {
                    let mut rng = rng(7, "functions", (i * 1000 + j * 10 + fuel) as u64);
                    let ty = FnTy::new(ty(dom), ty(cod));
                    let wanted = Wanted { vectorisable: false, fuel };
                    let f = function(&mut rng, &ty, wanted)
                        .expect("there is a function between any two types");
                    assert_eq!(*f.ty(), ty, "{f}");
                    let shape =
                        eval::shape(&ty.dom, &SizeEnv::default()).expect("the type has no symbols");
                    let x = value(&mut rng, &shape, Style::Small);
                    let y = eval::apply(&f, &SizeEnv::default(), &eval::Inputs::new(), &x);
                    assert!(y.is_ok(), "{f} of {x}: {y:?}");
                    let text = f.to_string();
                    let again =
                        read_term(&Source::new("f", text.as_str()), &ty.dom, &Context::default());
                    assert_eq!(again.map(|t| t.ty().clone()), Ok(ty), "{text}");
                    made += 1;
                }
            }
        }
        assert_eq!(made, types.len() * types.len() * 4);
    }

    #[test]
    fn vectorisable_ones_have_no_loops() {
        let ty = FnTy::new(
            Ty::pair(&Ty::Scalar(ScalarType::I32), &Ty::Scalar(ScalarType::F32)),
            Ty::Scalar(ScalarType::F32),
        );
        for seed in 0..200 {
            let wanted = Wanted { vectorisable: true, fuel: 3 };
            let f = function(&mut rng(seed, "v", 0), &ty, wanted)
                .expect("there is a function between any two types");
            f.visit(&mut |t| match t.op() {
                Op::Scalar(s) => assert!(!s.body.has_loop(), "{f}"),
                op => assert!(matches!(op, Op::Compose | Op::Fork | Op::Bang | Op::Fst | Op::Snd)),
            });
        }
    }
}
