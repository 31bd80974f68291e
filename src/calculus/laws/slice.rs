//! The values that an operator gets: the part of a program that makes them, run on random inputs.
//!
//! A slice is an entry of its own. Its parameters are those of the program from which the elements of the
//! reduction (and the variables captured by the operator) are made, and an index for every enclosing `map`.
//! Its result is a tuple of the captured variables, the neutral element and the elements.

use super::find::{Binding, Site, free, free_of};
use crate::calculus::interp::{self, Sizes};
use crate::calculus::sample::{self, Constant, Rng, Style};
use crate::calculus::value::{Shape, Value};
use crate::diag::{Result, Span};
use crate::lang::size::Size;
use crate::lang::typed::{Entry, Expr, ExprKind, Param, VarId};
use crate::lang::types::{ScalarType, Type};
use indexmap::IndexMap;
use rand::RngExt;

/// Most elements of an input.
const ELEMENTS: usize = 1 << 16;

/// How a parameter of a slice gets its value.
#[derive(Clone, Debug)]
enum Draw {
    /// Any value of its type.
    Any,
    /// A small number.
    Counter,
    /// A number below this length.
    Below(Size),
}

/// A part of a program that makes an operator's arguments.
pub(super) struct Slice {
    entry: Entry,
    draws: Vec<Draw>,
    /// The variables that the operator captures.
    pub(super) captured: Vec<(VarId, Type)>,
    /// The elements' type.
    pub(super) element: Type,
    /// The types of the parameters of enclosing `iterate`s, each with the type of its initial value.
    iterates: Vec<(Type, Type)>,
    /// Whether the elements are made by the program; otherwise they are random.
    own: bool,
}

/// The kind of random inputs of a run.
#[derive(Clone, Copy)]
pub(super) enum Values<'a> {
    Of(Style),
    Around(&'a [Constant]),
}

impl Values<'_> {
    fn make(self, rng: &mut Rng, shape: &Shape) -> Value {
        match self {
            Values::Of(style) => sample::value(rng, shape, style),
            Values::Around(constants) => sample::around(rng, shape, constants),
        }
    }
}

/// The result of one run.
pub(super) struct Sample {
    pub sizes: Sizes,
    pub captured: Vec<Value>,
    pub z: Value,
    pub elements: Vec<Value>,
}

impl Slice {
    /// Builds the slice of a site; unless `own`, with random elements instead of the program's own.
    pub(super) fn of(entry: &Entry, site: &Site, own: bool) -> Slice {
        let mut captured = vec![];
        free_of(site.op, &mut captured);
        let mut needed = captured.clone();
        free(site.z, &mut needed);
        if own {
            free(site.xs, &mut needed);
        }
        let element = site.z.ty.clone();
        let var = |(v, t): &(VarId, Type)| expr(ExprKind::Var(*v), t.clone());
        let mut parts: Vec<Expr> = captured.iter().map(var).collect();
        parts.push(site.z.clone());
        parts.push(if own { site.xs.clone() } else { site.z.clone() });
        let ty = Type::Tuple(parts.iter().map(|e| e.ty.clone()).collect());
        let mut slice = Slice {
            entry: Entry { params: vec![], divides: vec![], ..entry.clone() },
            draws: vec![],
            captured,
            element,
            iterates: vec![],
            own,
        };
        let mut body = expr(ExprKind::Tuple(parts), ty);
        let mut indices: IndexMap<usize, VarId> = IndexMap::new();
        for b in site.scope.iter().rev() {
            let (v, value) = match b {
                Binding::Sizes(own, from) => {
                    slice.iterates.insert(0, ((*own).clone(), (*from).clone()));
                    continue;
                }
                Binding::Let(v, _) | Binding::Counter(v, _) | Binding::Element { var: v, .. }
                    if !needed.iter().any(|(n, _)| n == v) =>
                {
                    continue;
                }
                // The name of a constant is no random value.
                Binding::Let(_, e) if !own && !is_closed(e) => continue,
                Binding::Counter(..) | Binding::Element { .. } if !own => continue,
                Binding::Counter(v, t) => {
                    slice.parameter(*v, t, Draw::Counter);
                    needed.retain(|(n, _)| n != v);
                    continue;
                }
                Binding::Let(v, e) => (*v, (*e).clone()),
                Binding::Element { var, array, index } => {
                    let Type::Array(n, t) = &array.ty else { continue };
                    let i32 = Type::Scalar(ScalarType::I32);
                    let known = indices.get(index).copied();
                    let at = known.unwrap_or_else(|| {
                        let fresh = slice.fresh("at");
                        slice.parameter(fresh, &i32, Draw::Below(n.clone()));
                        fresh
                    });
                    indices.insert(*index, at);
                    let at = expr(ExprKind::Var(at), i32);
                    let kind = ExprKind::Index(Box::new((*array).clone()), Box::new(at));
                    (*var, expr(kind, (**t).clone()))
                }
            };
            needed.retain(|(n, _)| *n != v);
            free(&value, &mut needed);
            let ty = body.ty.clone();
            body = expr(ExprKind::Let(v, Box::new(value), Box::new(body)), ty);
        }
        for (v, t) in needed {
            slice.parameter(v, &t, Draw::Any);
        }
        slice.entry.body = body;
        slice
    }

    fn fresh(&mut self, name: &str) -> VarId {
        self.entry.names.push(name.to_owned());
        VarId(u32::try_from(self.entry.names.len() - 1).unwrap_or(u32::MAX))
    }

    fn parameter(&mut self, var: VarId, ty: &Type, draw: Draw) {
        let name = self.entry.names.get(var.0 as usize).cloned().unwrap_or_default();
        self.entry.params.push(Param {
            name,
            var,
            ty: ty.clone(),
            labels: vec![],
            span: Span::default(),
        });
        self.draws.push(draw);
    }

    /// Runs the slice at these sizes, on random values of this kind.
    ///
    /// # Errors
    /// When the program has no value on them.
    pub(super) fn run(
        &self,
        rng: &mut Rng,
        sizes: &Sizes,
        values: Values,
    ) -> Result<Option<Sample>> {
        let mut sizes = sizes.clone();
        for (own, from) in &self.iterates {
            bind_sizes(own, from, &mut sizes);
        }
        let mut inputs = vec![];
        for (p, draw) in self.entry.params.iter().zip(&self.draws) {
            let shape = interp::shape(&p.ty, &sizes)?;
            let counts = shape.components();
            if counts.iter().any(|(_, dims)| dims.iter().product::<usize>() > ELEMENTS) {
                return Ok(None);
            }
            inputs.push(match draw {
                Draw::Any => values.make(rng, &shape),
                Draw::Counter => sample::value(rng, &shape, Style::Few),
                Draw::Below(n) => match length(n, &sizes) {
                    Some(n @ 1..) => {
                        let i = i64::try_from(rng.random_range(0..n)).unwrap_or(0);
                        Value::ints(ScalarType::I32, &[], &[i])
                    }
                    _ => return Ok(None),
                },
            });
        }
        let out = interp::run(&self.entry, &sizes, &inputs)?;
        let mut at = 0;
        let mut part = |ty: &Type| -> Result<Value> {
            let width = interp::shape(ty, &sizes)?.width();
            at += width;
            Ok(out.part(at - width..at))
        };
        let captured = self.captured.iter().map(|(_, t)| part(t)).collect::<Result<Vec<_>>>()?;
        let z = part(&self.element)?;
        let elements = if self.own {
            let xs = out.part(at..out.leaves().len());
            let n = xs.outer_len().unwrap_or(0);
            (0..n.min(64)).map(|i| xs.row(i)).collect()
        } else {
            let shape = interp::shape(&self.element, &sizes)?;
            (0..6).map(|_| values.make(rng, &shape)).collect()
        };
        Ok(Some(Sample { sizes, captured, z, elements }))
    }
}

/// Binds the sizes of an `iterate`'s parameter to the lengths of its initial value.
fn bind_sizes(own: &Type, from: &Type, sizes: &mut Sizes) {
    match (own, from) {
        (Type::Tuple(ts), Type::Tuple(us)) => {
            ts.iter().zip(us).for_each(|(t, u)| bind_sizes(t, u, sizes));
        }
        (Type::Array(n, t), Type::Array(m, u)) => {
            if let Some(name) = n.as_var().filter(|v| v.starts_with('%'))
                && let Some(m) = length(m, sizes)
            {
                sizes.insert(name.to_owned(), m);
            }
            bind_sizes(t, u, sizes);
        }
        _ => {}
    }
}

fn length(n: &Size, sizes: &Sizes) -> Option<u64> {
    let value = |name: &str| sizes.get(name).and_then(|v| i64::try_from(*v).ok());
    u64::try_from(n.eval(&value).ok()?).ok()
}

/// Returns small values for an entry's sizes that satisfy its divisibility requirements; the given sizes when
/// none are found.
pub(super) fn small_sizes(rng: &mut Rng, entry: &Entry, given: &Sizes) -> Sizes {
    const SMALL: [u64; 8] = [2, 3, 4, 5, 6, 8, 12, 16];
    let fits = |sizes: &Sizes| {
        entry.divides.iter().all(|(a, b, _)| match (length(a, sizes), length(b, sizes)) {
            (Some(a), Some(b)) => b > 0 && a % b == 0,
            // A size inside an `iterate`.
            _ => a.variables().iter().any(|v| v.starts_with('%')),
        })
    };
    let mut scale = 1;
    for attempt in 0..240 {
        // An array that is split into long chunks must be long.
        if attempt % 24 == 23 {
            scale *= 2;
        }
        let sizes: Sizes = entry
            .sizes
            .iter()
            .map(|n| (n.clone(), scale * SMALL[rng.random_range(0..SMALL.len())]))
            .collect();
        if fits(&sizes) {
            return sizes;
        }
    }
    given.clone()
}

pub(super) fn expr(kind: ExprKind, ty: Type) -> Expr {
    Expr { kind, ty, span: Span::default() }
}

/// Whether an expression has the same value everywhere.
fn is_closed(e: &Expr) -> bool {
    let mut found = vec![];
    free(e, &mut found);
    found.is_empty()
}
