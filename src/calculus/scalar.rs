//! Scalar functions: the leaves of terms. They are closed and compared by structure.

use super::order::chooses_by_order;
use super::size::Size;
use super::ty::Ty;
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use std::sync::Arc;

/// A scalar constant as bits, so that constants can be compared and hashed. Floats: IEEE bits of the type's
/// own width; integers: two's complement, sign- or zero-extended to 64 bits; bool: 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lit {
    /// Its type.
    pub ty: ScalarType,
    /// Its bits.
    pub bits: u64,
}

impl Lit {
    /// The float nearest to `x` in a float type.
    pub fn float(ty: ScalarType, x: f64) -> Lit {
        let bits = match ty {
            ScalarType::F16 => u64::from(half::f16::from_f64(x).to_bits()),
            #[expect(clippy::cast_possible_truncation, reason = "as on devices")]
            ScalarType::BF16 => u64::from(half::bf16::from_f32(x as f32).to_bits()),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "rounding to f32 is what is asked for"
            )]
            ScalarType::F32 => u64::from((x as f32).to_bits()),
            _ => x.to_bits(),
        };
        Lit { ty, bits }
    }

    /// An integer, wrapped to the type; for float types, the nearest float.
    pub fn int(ty: ScalarType, x: i128) -> Lit {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "wrapping to the type is what is asked for"
        )]
        let bits = match ty {
            ScalarType::F16 | ScalarType::BF16 | ScalarType::F32 | ScalarType::F64 => {
                return Lit::float(ty, x as f64);
            }
            ScalarType::Bool => u64::from(x != 0),
            ScalarType::I8 => i64::from(x as i8) as u64,
            ScalarType::I16 => i64::from(x as i16) as u64,
            ScalarType::I32 => i64::from(x as i32) as u64,
            ScalarType::I64 | ScalarType::U64 => x as u64,
            ScalarType::U8 => u64::from(x as u8),
            ScalarType::U16 => u64::from(x as u16),
            ScalarType::U32 => u64::from(x as u32),
        };
        Lit { ty, bits }
    }

    /// Returns the value of a float.
    pub fn as_float(self) -> Option<f64> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the bits above the type's width are 0"
        )]
        match self.ty {
            ScalarType::F16 => Some(half::f16::from_bits(self.bits as u16).to_f64()),
            ScalarType::BF16 => Some(half::bf16::from_bits(self.bits as u16).to_f64()),
            ScalarType::F32 => Some(f64::from(f32::from_bits(self.bits as u32))),
            ScalarType::F64 => Some(f64::from_bits(self.bits)),
            _ => None,
        }
    }

    /// Returns the value of an integer or a bool.
    pub fn as_int(self) -> Option<i128> {
        match self.ty {
            ScalarType::F16 | ScalarType::BF16 | ScalarType::F32 | ScalarType::F64 => None,
            ScalarType::I8 | ScalarType::I16 | ScalarType::I32 | ScalarType::I64 => {
                Some(i128::from(self.bits.cast_signed()))
            }
            _ => Some(i128::from(self.bits)),
        }
    }
}

/// A closed function from a scalar (or pairs of scalars, or unit) to the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScalarFn {
    /// Argument type.
    pub dom: Ty,
    /// Result type.
    pub cod: Ty,
    /// The body, over [`SExpr::Arg`].
    pub body: SExpr,
}

/// An expression over scalars and pairs of scalars. Bound variables are de Bruijn levels: the
/// outermost binder binds 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SExpr {
    /// The whole argument of the function.
    Arg,
    /// First (`false`) or second (`true`) component.
    Proj(Arc<SExpr>, bool),
    /// A constant.
    Lit(Lit),
    /// Component `.1` (tuples flattened) of the entry's scalar parameter `.0`.
    Input(Arc<str>, usize, ScalarType),
    /// A size as a value.
    Size(Size, ScalarType),
    /// An operation with its result type; a cast carries the type that it converts from.
    Op(ScalarOp, ScalarType, Vec<SExpr>),
    /// Lazy conditional.
    If(Arc<SExpr>, Arc<SExpr>, Arc<SExpr>),
    /// A pair.
    Pair(Arc<SExpr>, Arc<SExpr>),
    /// Binds one level: value, body.
    Let(Arc<SExpr>, Arc<SExpr>),
    /// A bound variable with its type.
    Var(u32, Ty),
    /// `init`, `bound`, `body`: the body binds two levels, the counter (of the bound's type) and then the accumulator.
    For(Arc<SExpr>, Arc<SExpr>, Arc<SExpr>),
    /// `init`, `cond`, `body`: both bind one level, the accumulator.
    While(Arc<SExpr>, Arc<SExpr>, Arc<SExpr>),
}

impl SExpr {
    /// Returns a component; of a pair expression, the component itself.
    #[must_use]
    pub fn proj(self, second: bool) -> SExpr {
        match self {
            SExpr::Pair(a, b) => (*if second { b } else { a }).clone(),
            e => SExpr::Proj(Arc::new(e), second),
        }
    }

    /// Whether the value depends on the argument.
    pub fn mentions_arg(&self) -> bool {
        match self {
            SExpr::Arg => true,
            SExpr::Lit(_) | SExpr::Input(..) | SExpr::Size(..) | SExpr::Var(..) => false,
            SExpr::Proj(e, _) => e.mentions_arg(),
            SExpr::Op(_, _, es) => es.iter().any(SExpr::mentions_arg),
            SExpr::Pair(a, b) | SExpr::Let(a, b) => a.mentions_arg() || b.mentions_arg(),
            SExpr::If(a, b, c) | SExpr::For(a, b, c) | SExpr::While(a, b, c) => {
                a.mentions_arg() || b.mentions_arg() || c.mentions_arg()
            }
        }
    }

    /// A pair.
    pub fn pair(a: SExpr, b: SExpr) -> SExpr {
        SExpr::Pair(Arc::new(a), Arc::new(b))
    }

    /// A pair, simplified: both components of one pair are that pair.
    pub fn joined(a: SExpr, b: SExpr) -> SExpr {
        match (&a, &b) {
            (SExpr::Proj(x, false), SExpr::Proj(y, true)) if x == y => (**x).clone(),
            _ => SExpr::pair(a, b),
        }
    }

    /// A conditional, simplified if its condition is constant.
    pub fn chosen(c: SExpr, a: SExpr, b: SExpr) -> SExpr {
        match c {
            SExpr::Lit(l) => {
                if l.bits != 0 {
                    a
                } else {
                    b
                }
            }
            c => SExpr::If(Arc::new(c), Arc::new(a), Arc::new(b)),
        }
    }

    /// Returns the expression with the function's argument replaced by `arg`, simplified.
    #[must_use]
    pub fn at(&self, arg: &SExpr) -> SExpr {
        self.replaced(arg, 0)
    }

    /// As [`SExpr::at`]; `depth` counts the binders around the expression.
    fn replaced(&self, arg: &SExpr, depth: u32) -> SExpr {
        let go = |e: &SExpr| e.replaced(arg, depth);
        let under = |e: &SExpr, more: u32| Arc::new(e.replaced(arg, depth + more));
        match self {
            SExpr::Arg => arg.shifted(depth),
            SExpr::Proj(e, second) => go(e).proj(*second),
            SExpr::Lit(_) | SExpr::Input(..) | SExpr::Size(..) | SExpr::Var(..) => self.clone(),
            SExpr::Op(op, t, es) => SExpr::Op(*op, *t, es.iter().map(go).collect()),
            SExpr::If(c, a, b) => SExpr::chosen(go(c), go(a), go(b)),
            SExpr::Pair(a, b) => SExpr::joined(go(a), go(b)),
            SExpr::Let(a, b) => SExpr::Let(under(a, 0), under(b, 1)),
            SExpr::For(init, bound, body) => {
                SExpr::For(under(init, 0), under(bound, 0), under(body, 2))
            }
            SExpr::While(init, cond, body) => {
                SExpr::While(under(init, 0), under(cond, 1), under(body, 1))
            }
        }
    }

    /// Returns a closed expression, moved under `by` binders.
    fn shifted(&self, by: u32) -> SExpr {
        if by == 0 {
            return self.clone();
        }
        let go = |e: &SExpr| e.shifted(by);
        let arc = |e: &Arc<SExpr>| Arc::new(e.shifted(by));
        match self {
            SExpr::Var(i, t) => SExpr::Var(i + by, t.clone()),
            SExpr::Arg | SExpr::Lit(_) | SExpr::Input(..) | SExpr::Size(..) => self.clone(),
            SExpr::Proj(e, second) => SExpr::Proj(arc(e), *second),
            SExpr::Op(op, t, es) => SExpr::Op(*op, *t, es.iter().map(go).collect()),
            SExpr::If(a, b, c) => SExpr::If(arc(a), arc(b), arc(c)),
            SExpr::Pair(a, b) => SExpr::Pair(arc(a), arc(b)),
            SExpr::Let(a, b) => SExpr::Let(arc(a), arc(b)),
            SExpr::For(a, b, c) => SExpr::For(arc(a), arc(b), arc(c)),
            SExpr::While(a, b, c) => SExpr::While(arc(a), arc(b), arc(c)),
        }
    }

    /// Returns the number of operations, where the body of a loop counts eight times.
    pub fn operations(&self) -> f64 {
        match self {
            SExpr::Arg | SExpr::Lit(_) | SExpr::Input(..) | SExpr::Size(..) | SExpr::Var(..) => 0.0,
            SExpr::Proj(e, _) => e.operations(),
            SExpr::Op(_, _, es) => 1.0 + es.iter().map(SExpr::operations).sum::<f64>(),
            SExpr::Pair(a, b) | SExpr::Let(a, b) => a.operations() + b.operations(),
            SExpr::If(a, b, c) => 1.0 + a.operations() + b.operations() + c.operations(),
            SExpr::For(a, b, c) | SExpr::While(a, b, c) => {
                a.operations() + b.operations() + 8.0 * c.operations()
            }
        }
    }

    /// Returns the number of operations, if none takes many cycles and there are neither choices nor loops.
    pub fn quick_operations(&self) -> Option<usize> {
        let all = |es: &[&SExpr]| es.iter().map(|e| e.quick_operations()).sum::<Option<usize>>();
        match self {
            SExpr::Arg | SExpr::Lit(_) | SExpr::Input(..) | SExpr::Size(..) | SExpr::Var(..) => {
                Some(0)
            }
            SExpr::Op(op, ..) if op.is_dear() => None,
            SExpr::Op(_, _, es) => Some(1 + all(&es.iter().collect::<Vec<_>>())?),
            SExpr::Proj(e, _) => e.quick_operations(),
            SExpr::Pair(a, b) | SExpr::Let(a, b) => all(&[a, b]),
            SExpr::If(..) | SExpr::For(..) | SExpr::While(..) => None,
        }
    }

    /// Whether the expression only selects, pairs and names constants.
    pub fn rearranges(&self) -> bool {
        match self {
            SExpr::Arg | SExpr::Lit(_) | SExpr::Input(..) | SExpr::Size(..) => true,
            SExpr::Proj(e, _) => e.rearranges(),
            SExpr::Pair(a, b) => a.rearranges() && b.rearranges(),
            SExpr::Op(..)
            | SExpr::If(..)
            | SExpr::Let(..)
            | SExpr::Var(..)
            | SExpr::For(..)
            | SExpr::While(..) => false,
        }
    }

    /// Whether the expression can be written without statements.
    pub fn inlines(&self) -> bool {
        match self {
            SExpr::Op(_, _, es) => es.iter().all(SExpr::inlines),
            SExpr::Pair(a, b) => a.inlines() && b.inlines(),
            e => e.rearranges(),
        }
    }

    /// Whether the expression can be written without statements, choices included.
    pub fn is_expression(&self) -> bool {
        match self {
            SExpr::Op(_, _, es) => es.iter().all(SExpr::is_expression),
            SExpr::Pair(a, b) => a.is_expression() && b.is_expression(),
            SExpr::If(c, a, b) => c.is_expression() && a.is_expression() && b.is_expression(),
            e => e.rearranges(),
        }
    }

    /// Whether a loop occurs in the expression; a function with one has no vector form.
    pub fn has_loop(&self) -> bool {
        match self {
            SExpr::Arg | SExpr::Lit(_) | SExpr::Input(..) | SExpr::Size(..) | SExpr::Var(..) => {
                false
            }
            SExpr::Proj(e, _) => e.has_loop(),
            SExpr::Op(_, _, es) => es.iter().any(SExpr::has_loop),
            SExpr::If(a, b, c) => a.has_loop() || b.has_loop() || c.has_loop(),
            SExpr::Pair(a, b) | SExpr::Let(a, b) => a.has_loop() || b.has_loop(),
            SExpr::For(..) | SExpr::While(..) => true,
        }
    }
}

impl ScalarFn {
    /// Returns `self . first`. What `first` computes is written out wherever `self` uses it.
    #[must_use]
    pub fn after(&self, first: &ScalarFn) -> ScalarFn {
        let body = self.body.at(&first.body);
        ScalarFn { dom: first.dom.clone(), cod: self.cod.clone(), body }
    }

    /// Returns the operation if the function is `\(a, b) -> a op b` on its own two components.
    pub fn as_binary(&self) -> Option<ScalarOp> {
        match &self.body {
            SExpr::Op(op, _, es) => match es.as_slice() {
                [SExpr::Proj(a, false), SExpr::Proj(b, true)]
                    if **a == SExpr::Arg && **b == SExpr::Arg =>
                {
                    Some(*op)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The binary operation on one scalar type as a leaf `(t, t) -> result`.
    pub fn binary(op: ScalarOp, t: ScalarType, result: ScalarType) -> ScalarFn {
        ScalarFn {
            dom: Ty::pair(&Ty::Scalar(t), &Ty::Scalar(t)),
            cod: Ty::Scalar(result),
            body: SExpr::Op(op, result, vec![SExpr::Arg.proj(false), SExpr::Arg.proj(true)]),
        }
    }

    /// Whether this is an operator `(t, t) -> t` that is known to be commutative wherever it is associative: exchanging
    /// its arguments gives the same expression, up to the order of operands of commutative operations, or it chooses one
    /// of its arguments by a total order.
    pub fn is_commutative(&self) -> bool {
        let Ty::Pair(a, b) = &self.dom else { return false };
        let exchanged = SExpr::pair(SExpr::Arg.proj(true), SExpr::Arg.proj(false));
        a == b
            && !self.body.has_loop()
            && (chooses_by_order(&self.body, a)
                || sorted(&self.body.at(&SExpr::Arg)) == sorted(&self.body.at(&exchanged)))
    }
}

/// Returns the expression with the operands of commutative operations in a fixed order.
fn sorted(e: &SExpr) -> SExpr {
    let arc = |e: &Arc<SExpr>| Arc::new(sorted(e));
    match e {
        SExpr::Op(op, t, es) => {
            let mut es: Vec<SExpr> = es.iter().map(sorted).collect();
            if op.is_commutative() {
                es.sort();
            }
            SExpr::Op(*op, *t, es)
        }
        SExpr::Proj(e, second) => SExpr::Proj(arc(e), *second),
        SExpr::Pair(a, b) => SExpr::Pair(arc(a), arc(b)),
        SExpr::Let(a, b) => SExpr::Let(arc(a), arc(b)),
        SExpr::If(a, b, c) => SExpr::If(arc(a), arc(b), arc(c)),
        SExpr::For(a, b, c) => SExpr::For(arc(a), arc(b), arc(c)),
        SExpr::While(a, b, c) => SExpr::While(arc(a), arc(b), arc(c)),
        SExpr::Arg | SExpr::Lit(_) | SExpr::Input(..) | SExpr::Size(..) | SExpr::Var(..) => {
            e.clone()
        }
    }
}
