//! Solves for the variables of a scheme by matching the scheme with types.
//!
//! The same algorithm checks a node whose parts are all known ([`signature`]) and infers what the text of a
//! term leaves out (`calculus::text`). The two differ in how types are compared and taken apart, which
//! [`Equality`] abstracts.

use super::Op;
use super::scheme::{Scheme, SizeNode, TyNode, VARIABLES};
use crate::calculus::size::Size;
use crate::calculus::ty::{FnTy, Ty};
use crate::lang::types::ScalarType;

/// The reason why a node does not type-check.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TypeError(pub String);

/// How types are compared and taken apart: exactly, or by solving for variables in them.
pub trait Equality {
    /// Makes two types equal.
    fn types(&mut self, a: &Ty, b: &Ty) -> bool;
    /// Makes two sizes equal.
    fn sizes(&mut self, a: &Size, b: &Size) -> bool;
    /// Returns the length and the element type of an array.
    fn array(&mut self, t: &Ty) -> Option<(Size, Ty)>;
    /// Returns the components of a pair.
    fn pair(&mut self, t: &Ty) -> Option<(Ty, Ty)>;
    /// Returns the width of a vector type, which must be `w` if that is known, and the type of one lane.
    fn lane(&mut self, w: Option<&Size>, t: &Ty) -> Option<(Size, Ty)>;
    /// Returns the type as far as it is known.
    fn known(&self, t: &Ty) -> Ty;
    /// Returns the size as far as it is known.
    fn known_size(&self, n: &Size) -> Size;
}

/// Compares types exactly, without solving for variables.
struct Exact;

impl Equality for Exact {
    fn types(&mut self, a: &Ty, b: &Ty) -> bool {
        a == b
    }

    fn sizes(&mut self, a: &Size, b: &Size) -> bool {
        a == b
    }

    fn array(&mut self, t: &Ty) -> Option<(Size, Ty)> {
        match t {
            Ty::Array(n, x) => Some((n.clone(), (**x).clone())),
            _ => None,
        }
    }

    fn pair(&mut self, t: &Ty) -> Option<(Ty, Ty)> {
        match t {
            Ty::Pair(a, b) => Some(((**a).clone(), (**b).clone())),
            _ => None,
        }
    }

    fn lane(&mut self, w: Option<&Size>, t: &Ty) -> Option<(Size, Ty)> {
        let w = w.or_else(|| t.width())?;
        Some((w.clone(), t.unvector(w)?))
    }

    fn known(&self, t: &Ty) -> Ty {
        t.clone()
    }

    fn known_size(&self, n: &Size) -> Size {
        n.clone()
    }
}

/// The values of a scheme's variables.
#[derive(Debug)]
pub struct Solution<'a> {
    op: &'a Op,
    scheme: &'static Scheme,
    sizes: [Option<Size>; VARIABLES],
    types: [Option<Ty>; VARIABLES],
}

impl<'a> Solution<'a> {
    /// Starts with these sizes and types known, by number.
    pub fn new(
        op: &'a Op,
        sizes: impl IntoIterator<Item = (usize, Size)>,
        types: impl IntoIterator<Item = (usize, Ty)>,
    ) -> Solution<'a> {
        let scheme = &op.entry().scheme;
        let mut out = Solution { op, scheme, sizes: Default::default(), types: Default::default() };
        sizes.into_iter().for_each(|(i, n)| out.sizes[i] = Some(n));
        types.into_iter().for_each(|(i, t)| out.types[i] = Some(t));
        out
    }

    /// Whether everything in the type is known.
    fn determines(&self, node: u8) -> bool {
        match self.scheme.ty(node) {
            TyNode::Unit | TyNode::Bool | TyNode::Carried => true,
            TyNode::Var(v) => self.types[usize::from(v)].is_some(),
            TyNode::Pair(a, b) => self.determines(a) && self.determines(b),
            TyNode::Array(n, t) | TyNode::Vector(n, t) => {
                self.determines_size(n) && self.determines(t)
            }
        }
    }

    fn determines_size(&self, node: u8) -> bool {
        match self.scheme.size(node) {
            SizeNode::One => true,
            SizeNode::Var(v) => self.sizes[usize::from(v)].is_some(),
            SizeNode::Times(a, b) | SizeNode::Over(a, b) => {
                self.determines_size(a) && self.determines_size(b)
            }
        }
    }

    /// Returns the argument to infer next: first the constants, which need nothing, then the first one whose
    /// argument type is known.
    pub fn next_arg(&self, open: &[usize]) -> Option<usize> {
        let takes = |i: &&usize| self.scheme.arg(**i)[0];
        open.iter()
            .find(|i| matches!(self.scheme.ty(takes(i)), TyNode::Unit))
            .or_else(|| open.iter().find(|i| self.determines(takes(i))))
            .copied()
    }

    /// Returns the sizes and the types of the node; `None` if one is unknown.
    pub fn parts(&self) -> Option<(Vec<Size>, Vec<Ty>)> {
        let (sizes, types, _) = self.scheme.shape();
        let sizes = self.sizes[..sizes].iter().cloned().collect::<Option<_>>()?;
        Some((sizes, self.types[..types].iter().cloned().collect::<Option<_>>()?))
    }

    /// Matches the operator's argument with a type.
    ///
    /// # Errors
    /// When it does not fit; the error says what the operator takes.
    pub fn takes(&mut self, e: &mut impl Equality, t: &Ty) -> Result<(), TypeError> {
        self.fits(e, self.scheme.sides()[0], t, |s| {
            format!("the argument of `{}`", s.op.entry().name)
        })
    }

    /// Returns the argument type of the operator.
    ///
    /// # Errors
    /// When something in it has no vector form, or is unknown.
    pub fn dom(&self, e: &impl Equality) -> Result<Ty, TypeError> {
        self.make(e, self.scheme.sides()[0])
    }

    /// Returns the result type of the operator.
    ///
    /// # Errors
    /// As [`Solution::dom`].
    pub fn cod(&self, e: &impl Equality) -> Result<Ty, TypeError> {
        self.make(e, self.scheme.sides()[1])
    }

    /// Returns the argument type of a function argument.
    ///
    /// # Errors
    /// As [`Solution::dom`].
    pub fn arg_dom(&self, e: &impl Equality, i: usize) -> Result<Ty, TypeError> {
        self.make(e, self.scheme.arg(i)[0])
    }

    /// Matches the result of a function argument with a type.
    ///
    /// # Errors
    /// When it does not fit; the error says what is expected.
    pub fn arg_gives(&mut self, e: &mut impl Equality, i: usize, t: &Ty) -> Result<(), TypeError> {
        self.fits(e, self.scheme.arg(i)[1], t, |s| s.part("result", i))
    }

    /// Matches the argument of a function argument with a type.
    fn arg_takes(&mut self, e: &mut impl Equality, i: usize, t: &Ty) -> Result<(), TypeError> {
        self.fits(e, self.scheme.arg(i)[0], t, |s| s.part("argument", i))
    }

    fn fits(
        &mut self,
        e: &mut impl Equality,
        node: u8,
        t: &Ty,
        what: impl FnOnce(&Self) -> String,
    ) -> Result<(), TypeError> {
        if self.fit(e, node, t) {
            return Ok(());
        }
        let expected = self.show(e, node);
        Err(TypeError(format!("{} is `{}`, not `{expected}`", what(self), e.known(t))))
    }

    fn part(&self, what: &str, i: usize) -> String {
        format!("the {what} of `{}` in `{}`", self.scheme.arg_name(i), self.op.entry().name)
    }

    fn fit(&mut self, e: &mut impl Equality, node: u8, t: &Ty) -> bool {
        match self.scheme.ty(node) {
            TyNode::Unit => e.types(t, &Ty::Unit),
            TyNode::Bool => e.types(t, &Ty::Scalar(ScalarType::Bool)),
            TyNode::Carried => false,
            TyNode::Var(v) => match &mut self.types[usize::from(v)] {
                Some(known) => e.types(t, known),
                open => {
                    *open = Some(t.clone());
                    true
                }
            },
            TyNode::Pair(a, b) => {
                e.pair(t).is_some_and(|(x, y)| self.fit(e, a, &x) && self.fit(e, b, &y))
            }
            TyNode::Array(n, a) => {
                e.array(t).is_some_and(|(m, x)| self.fit_size(e, n, &m) && self.fit(e, a, &x))
            }
            TyNode::Vector(w, a) => {
                let width = self.make_size(e, w);
                e.lane(width.ok().as_ref(), t)
                    .is_some_and(|(v, x)| self.fit_size(e, w, &v) && self.fit(e, a, &x))
            }
        }
    }

    fn fit_size(&mut self, e: &mut impl Equality, node: u8, n: &Size) -> bool {
        match self.scheme.size(node) {
            SizeNode::Var(v) => match &self.sizes[usize::from(v)] {
                Some(known) => e.sizes(n, known),
                None => {
                    self.sizes[usize::from(v)] = Some(n.clone());
                    true
                }
            },
            // In a product, solve for the factor that is unknown.
            SizeNode::Times(a, b) if !self.determines_size(node) => {
                let (known, open) = if self.determines_size(a) { (a, b) } else { (b, a) };
                match self.make_size(e, known) {
                    Ok(k) if k.as_constant() != Some(0) => {
                        let rest = e.known_size(n).div(&k);
                        self.fit_size(e, open, &rest)
                    }
                    _ => false,
                }
            }
            SizeNode::One | SizeNode::Times(..) | SizeNode::Over(..) => {
                self.make_size(e, node).is_ok_and(|known| e.sizes(n, &known))
            }
        }
    }

    fn make(&self, e: &impl Equality, node: u8) -> Result<Ty, TypeError> {
        Ok(match self.scheme.ty(node) {
            TyNode::Unit => Ty::Unit,
            TyNode::Bool => Ty::Scalar(ScalarType::Bool),
            TyNode::Carried => match self.op {
                Op::Lit(l) => Ty::Scalar(l.ty),
                Op::SizeValue(t) => Ty::Scalar(*t),
                Op::Scalar(f) if node == self.scheme.sides()[0] => f.dom.clone(),
                Op::Scalar(f) => f.cod.clone(),
                op => return Err(TypeError(format!("{op:?} carries no type"))),
            },
            TyNode::Var(v) => match &self.types[usize::from(v)] {
                Some(t) => t.clone(),
                None => return Err(TypeError("nothing determines a type".to_owned())),
            },
            TyNode::Pair(a, b) => Ty::Pair(self.make(e, a)?.into(), self.make(e, b)?.into()),
            TyNode::Array(n, t) => Ty::Array(self.make_size(e, n)?, self.make(e, t)?.into()),
            TyNode::Vector(w, t) => {
                let t = e.known(&self.make(e, t)?);
                Ty::vector(&self.make_size(e, w)?, &t)
                    .ok_or_else(|| TypeError(format!("`{t}` has no vector form")))?
            }
        })
    }

    fn make_size(&self, e: &impl Equality, node: u8) -> Result<Size, TypeError> {
        Ok(match self.scheme.size(node) {
            SizeNode::One => Size::constant(1),
            SizeNode::Var(v) => match &self.sizes[usize::from(v)] {
                Some(n) => n.clone(),
                None => return Err(TypeError("nothing determines a size".to_owned())),
            },
            SizeNode::Times(a, b) => {
                let (a, b) = (self.make_size(e, a)?, self.make_size(e, b)?);
                e.known_size(&a).mul(&e.known_size(&b))
            }
            SizeNode::Over(a, b) => {
                let (a, b) = (self.make_size(e, a)?, self.make_size(e, b)?);
                if b.as_constant() == Some(0) {
                    return Err(TypeError(format!("no parts of 0 in {a}")));
                }
                e.known_size(&a).div(&e.known_size(&b))
            }
        })
    }

    /// Returns a type of the scheme for messages; unknown parts are variables with the scheme's letters.
    fn show(&mut self, e: &impl Equality, node: u8) -> String {
        for (i, size) in self.sizes.iter_mut().enumerate() {
            size.get_or_insert_with(|| Size::meta(&self.scheme.size_letter(i)));
        }
        for (i, ty) in self.types.iter_mut().enumerate() {
            ty.get_or_insert_with(|| Ty::Meta(self.scheme.type_letter(i).into()));
        }
        self.make(e, node).map_or_else(|e| e.0, |t| e.known(&t).to_string())
    }
}

/// Returns the type of a node from its sizes, its types and the types of its arguments.
///
/// # Errors
/// When the parts do not fit together.
pub fn signature(op: &Op, sizes: &[Size], tys: &[Ty], args: &[FnTy]) -> Result<FnTy, TypeError> {
    let scheme = &op.entry().scheme;
    let shape = (sizes.len(), tys.len(), args.len());
    if shape != scheme.shape() {
        return Err(TypeError(format!(
            "{op:?} takes {:?} sizes, types, arguments, not {shape:?}",
            scheme.shape()
        )));
    }
    let (sizes, tys) = (sizes.iter().cloned().enumerate(), tys.iter().cloned().enumerate());
    let mut parts = Solution::new(op, sizes, tys);
    let e = &mut Exact;
    for (i, f) in args.iter().enumerate() {
        parts.arg_takes(e, i, &f.dom)?;
        parts.arg_gives(e, i, &f.cod)?;
    }
    Ok(FnTy::new(parts.dom(e)?, parts.cod(e)?))
}

/// Returns the sizes and types of a node from its written sizes, its argument type and its arguments.
///
/// # Errors
/// When the parts do not fit together.
pub fn parts(
    op: &Op,
    written: &[Size],
    dom: &Ty,
    args: &[FnTy],
) -> Result<(Vec<Size>, Vec<Ty>), TypeError> {
    let sizes = op.entry().scheme.written().zip(written.iter().cloned());
    let mut parts = Solution::new(op, sizes, None);
    let e = &mut Exact;
    parts.takes(e, dom)?;
    for (i, f) in args.iter().enumerate() {
        parts.arg_takes(e, i, &f.dom)?;
        parts.arg_gives(e, i, &f.cod)?;
    }
    parts.parts().ok_or_else(|| TypeError(format!("nothing determines the type of {op:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::op::table;
    use crate::calculus::term::Term;
    use crate::calculus::text::{Context, read_term};
    use crate::diag::Source;

    /// Returns a node of the operator with distinct sizes and types and function variables for arguments, and
    /// its context.
    fn general(op: &Op) -> (Term, Context) {
        let scheme = &op.entry().scheme;
        let size = |i| (i, Size::dim(&scheme.size_letter(i)));
        let ty = |i: usize| (i, Ty::Scalar(ScalarType::ALL[i]));
        let (sizes, types, args) = scheme.shape();
        let all = Solution::new(op, (0..sizes).map(size), (0..VARIABLES).map(ty));
        let mut variables = indexmap::IndexMap::new();
        let args = (0..args).map(|i| {
            let [dom, cod] = scheme.arg(i).map(|t| all.make(&Exact, t).expect("a type"));
            variables.insert(scheme.arg_name(i).to_owned(), FnTy::new(dom.clone(), cod.clone()));
            let variable = Op::Meta(scheme.arg_name(i).into());
            Term::new(variable, vec![], vec![dom, cod], vec![]).expect("a variable")
        });
        let args = args.collect();
        let (sizes, types) =
            ((0..sizes).map(|i| size(i).1).collect(), (0..types).map(|i| ty(i).1).collect());
        let term = Term::new(op.clone(), sizes, types, args).expect("a well-typed node");
        (term, Context { variables: Some(variables), ..Context::default() })
    }

    #[test]
    fn what_is_printed_is_inferred() {
        for op in table::written() {
            let (term, context) = general(&op);
            let text = term.to_string();
            let read = read_term(&Source::new("term", text.clone()), &term.ty().dom, &context);
            assert_eq!(read.unwrap_or_else(|e| panic!("{text}: {e}")), term, "{text}");
        }
    }

    #[test]
    fn inverses_are_invertible_and_go_back() {
        for op in table::written() {
            let (term, _) = general(&op);
            if let Some(back) = term.inverse() {
                assert!(term.is_invertible() && back.is_invertible(), "{term}");
                assert_eq!((&back.ty().dom, &back.ty().cod), (&term.ty().cod, &term.ty().dom));
            }
        }
    }

    #[test]
    fn misfits_say_what_is_expected() {
        let read = |text: &str, dom: &Ty| {
            let e = read_term(&Source::new("term", text), dom, &Context::default());
            e.expect_err("ill-typed").to_string()
        };
        let f32 = Ty::Scalar(ScalarType::F32);
        let array = |n| Ty::array(&Size::constant(n), &f32);
        let message = read("zip", &Ty::pair(&array(4), &array(5)));
        assert!(message.contains("`([4]f32, [5]f32)`, not `([4]f32, [4]?B)`"), "{message}");
        let message = read("foldSeq (\\(_, b) -> b)", &Ty::pair(&array(4), &array(4)));
        assert!(message.contains("scalar function"), "{message}");
        let message = read("reduce (<) 0.0", &array(4));
        let expected = "the result of `op` in `reduce` is `bool`, not `f32`";
        assert!(message.contains(expected), "{message}");
        assert!(read("split 0", &array(4)).contains("0 divides no length"));
        assert!(read("tiled 2 0 4 4 id id id", &array(4)).contains("0 divides no length"));
    }
}
