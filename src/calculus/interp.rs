//! The reference interpreter of the typed surface core: it defines what a program means.
//!
//! [`run`] compiles an entry, at given sizes, to [`code`] and executes it. The interpreter is slow and
//! obvious, and it judges every kernel. Values are computed as written. Low-level patterns mean their
//! algorithmic counterparts (`mapGlb f` is `map f`, `toLocal f` is `f`, `reorder` is the identity). Floats
//! are rounded to their type after every operation, except inside reductions and scans, which accumulate in
//! `f64`. Long maps are shared out over the processor's cores, but their rows are independent, so the result
//! is the same. The interpreter never approximates and never looks at a device.

pub(super) mod build;
pub(super) mod code;
mod cost;
mod demand;
mod doubt;
mod iterate;
mod lower;
pub(super) mod machine;
mod pick;

use super::value::{Shape, Value};
use crate::diag::{Code as Error, Diagnostic, Interrupt, Label, Result, Span};
use crate::lang::size::{EXACT, Size};
use crate::lang::typed::{Entry, Expr, ExprKind, Prim};
use crate::lang::types::{ScalarType, Type};
use build::Builder;
pub use code::Axis;
use code::Values;
use indexmap::IndexMap;
use lower::Lower;
pub use pick::Part;

/// Values of an entry's size parameters.
pub type Sizes = IndexMap<String, u64>;

/// Returns the result of an entry on inputs, one for each parameter in order.
///
/// Diagnostics have spans but no source, which the caller knows.
///
/// # Errors
/// When a size is missing or breaks a requirement of the entry, an input has another shape or type than its
/// parameter, or the program has no value on these inputs (division by zero, an index out of bounds).
pub fn run(entry: &Entry, sizes: &Sizes, inputs: &[Value]) -> Result<Value> {
    let compiled = Compiled::new(entry, sizes, inputs)?;
    compiled.run(&compiled.whole())
}

/// A choice of elements of a result: for each of its [`parts`](Compiled::parts), indices in its leading
/// dimensions.
pub type Choice = Vec<Vec<Axis>>;

/// An entry with its inputs, ready to be evaluated in whole or in part.
#[derive(Debug)]
pub struct Compiled {
    builder: Builder,
    code: Values,
    shape: Shape,
    span: Span,
}

impl Compiled {
    /// Checks the inputs, one for each parameter in order, and compiles the entry.
    ///
    /// # Errors
    /// Those of [`run`] that do not depend on data.
    pub fn new(entry: &Entry, sizes: &Sizes, inputs: &[Value]) -> Result<Compiled> {
        for (whole, part, span) in &entry.divides {
            // Lengths inside an `iterate` are only known while it runs.
            let (Ok(a), Ok(b)) = (lower::length(whole, sizes), lower::length(part, sizes)) else {
                continue;
            };
            if a != 0 && (b == 0 || a % b != 0) {
                let (a, b) = (whole.with_value(a as u64), part.with_value(b as u64));
                let text = format!("{b} does not divide {a}");
                return Err(at(Error::NotDivisible, *span, text).help(EXACT).into());
            }
        }
        if inputs.len() != entry.params.len() {
            let text = format!(
                "`{}` takes {} inputs, not {}",
                entry.name,
                entry.params.len(),
                inputs.len()
            );
            return Err(at(Error::InputMissing, entry.span, text).into());
        }
        let mut lower = Lower::new(sizes);
        for (param, input) in entry.params.iter().zip(inputs) {
            let shape = shape(&param.ty, sizes)?;
            if let Err(text) = input.conforms(&shape) {
                let types = |v: Vec<_>| v.into_iter().map(|(ty, _)| ty).collect::<Vec<_>>();
                let have: Vec<_> = input.leaves().iter().map(super::value::Leaf::ty).collect();
                let code = if have == types(shape.components()) {
                    Error::InputShape
                } else {
                    Error::InputType
                };
                return Err(at(code, param.span, format!("input `{}`: {text}", param.name)).into());
            }
            lower.input(param.var, input, shape);
        }
        let mut builder = Builder::of(terms(entry, sizes));
        let code = lower.compile(&mut builder, &entry.body).map_err(|d| *d)?;
        let code = builder.values(code);
        Ok(Compiled { builder, code, shape: shape(&entry.body.ty, sizes)?, span: entry.span })
    }

    /// Returns the shape of the result.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the parts of the result that are chosen from separately, in order.
    pub fn parts(&self) -> Vec<Part> {
        pick::parts(&self.shape)
    }

    /// Returns the choice of all elements.
    pub fn whole(&self) -> Choice {
        vec![vec![]; self.parts().len()]
    }

    fn code(&self, choice: &Choice) -> Values {
        pick::choose(self.code.clone(), &self.shape, choice)
    }

    /// Returns the number of scalar operations and rows that [`Compiled::run`] computes. A loop whose
    /// length depends on data counts as if it had a fixed number of steps.
    pub fn operations(&self, choice: &Choice) -> f64 {
        cost::operations(&self.code(choice))
    }

    /// Returns the element type and lengths of each component of the chosen elements.
    pub fn components(&self, choice: &Choice) -> Vec<(ScalarType, Vec<usize>)> {
        let mut all = self.shape.components();
        for (part, axes) in self.parts().into_iter().zip(choice) {
            for (_, lengths) in &mut all[part.components] {
                for (n, axis) in lengths.iter_mut().zip(axes) {
                    *n = axis.as_ref().map_or(*n, |at| at.len());
                }
            }
        }
        all
    }

    /// Returns the chosen elements, which are the same as in the whole result. The other elements may cost
    /// nothing.
    ///
    /// # Errors
    /// When the program has no value on these inputs; an error in elements that are not chosen may go
    /// unnoticed.
    pub fn run(&self, choice: &Choice) -> Result<Value> {
        self.run_until(choice, &Interrupt::NEVER)
    }

    /// As [`Compiled::run`], but ends with an error soon after it is asked to stop.
    ///
    /// # Errors
    /// Those of [`Compiled::run`], and [`Error::Interrupted`] when it was stopped.
    pub fn run_until(&self, choice: &Choice, stop: &Interrupt) -> Result<Value> {
        let code = self.code(choice);
        let result = self.builder.run_values(&code, stop).map_err(|d| *d)?;
        let fits = result.leaves().iter().map(|l| (l.ty(), l.shape())).eq(self.components(choice));
        if fits {
            Ok(result)
        } else {
            let text = "the result has another shape than its type".to_owned();
            Err(at(Error::Internal, self.span, text).into())
        }
    }
}

/// Returns a type's shape at given sizes.
///
/// # Errors
/// When a size has no value or a negative one.
pub fn shape(ty: &Type, sizes: &Sizes) -> Result<Shape> {
    let length = |n: &Size| lower::length(n, sizes);
    lower::shape(ty, &length).map_err(|(code, text)| Diagnostic::error(code, text).into())
}

/// Returns the length of the longest reduction or scan of an entry, at least 1. An element may be the sum of
/// this many terms, which decides the tolerance of comparisons.
pub fn terms(entry: &Entry, sizes: &Sizes) -> u64 {
    let mut longest = 1;
    visit(&entry.body, &mut |e| {
        let size = match &e.kind {
            ExprKind::Prim { prim, args, .. } if reduces(*prim) => match args.last().map(|a| &a.ty)
            {
                Some(Type::Array(n, _)) => Some(n),
                _ => None,
            },
            ExprKind::LoopFor { bound, .. } => match &bound.kind {
                ExprKind::Size(n) => Some(n),
                _ => None,
            },
            _ => None,
        };
        let length = size.and_then(|n| lower::length(n, sizes).ok());
        longest = longest.max(length.unwrap_or(1));
    });
    longest.try_into().unwrap_or(u64::MAX)
}

/// Whether an entry has `while` loops: on other inputs they may never end.
pub fn may_not_end(entry: &Entry) -> bool {
    let mut found = false;
    visit(&entry.body, &mut |e| found |= matches!(e.kind, ExprKind::LoopWhile { .. }));
    found
}

fn reduces(prim: Prim) -> bool {
    use Prim as P;
    matches!(
        prim,
        P::Reduce
            | P::ReduceComm
            | P::ReducePart
            | P::ReduceSeq
            | P::ReduceUnroll
            | P::Scan(_)
            | P::Histogram
    )
}

fn at(code: Error, span: Span, text: String) -> Diagnostic {
    let mut d = Diagnostic::error(code, text);
    d.labels.push(Label { span, text: String::new(), primary: true });
    d
}

/// Calls `f` on every expression, including the bodies of functions.
fn visit(e: &Expr, f: &mut dyn FnMut(&Expr)) {
    f(e);
    match &e.kind {
        ExprKind::Lit(_) | ExprKind::Var(_) | ExprKind::Size(_) => {}
        ExprKind::Proj(a, _) => visit(a, f),
        ExprKind::Index(a, b) | ExprKind::Let(_, a, b) => {
            visit(a, f);
            visit(b, f);
        }
        ExprKind::Tuple(es) | ExprKind::Scalar(_, es) => es.iter().for_each(|e| visit(e, f)),
        ExprKind::If(a, b, c) => [a, b, c].into_iter().for_each(|e| visit(e, f)),
        ExprKind::LoopFor { init, bound, body, .. } => {
            [init, bound, body].into_iter().for_each(|e| visit(e, f));
        }
        ExprKind::LoopWhile { init, cond, body, .. } => {
            [init, cond, body].into_iter().for_each(|e| visit(e, f));
        }
        ExprKind::Prim { funs, args, .. } => {
            funs.iter().for_each(|g| visit(&g.body, f));
            args.iter().for_each(|e| visit(e, f));
        }
    }
}

#[cfg(test)]
mod tests;
