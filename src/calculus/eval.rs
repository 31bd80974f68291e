//! The evaluator of closed terms: the meaning of every operator of the calculus.
//!
//! A term and its argument are compiled to the interpreter's code, which is then run. Mappings and memory
//! spaces mean nothing here: `mapGlb` is `map`, `toLocal f` is `f`, and a sequential reduction differs from
//! an associative one only in the laws of its operator. The evaluator knows nothing of rules or of the
//! e-graph.

use super::interp::build::{Builder, Folded, Typed};
use super::interp::code::{Site, Values, View};
use super::interp::machine::{Run, fault};
use super::scalar::{SExpr, ScalarFn};
use super::size::{Size, SizeEnv};
use super::term::{Op, ScanKind, Term};
use super::ty::Ty;
use super::value::{Cell, Shape, Value};
use crate::diag::{Code as Error, Result};
use crate::lang::typed::{PadMode, ScalarOp};
use crate::lang::types::ScalarType;
use indexmap::IndexMap;
use std::sync::Arc;

/// The values of an entry's parameters by name.
pub type Inputs = IndexMap<Arc<str>, Value>;

/// Applies `term` to `arg`, with sizes from `env` and top-level inputs from `inputs`.
///
/// # Errors
/// When a size has no value, an input is missing or has another shape, or the term has no value (a division
/// by zero, an index out of bounds).
pub fn apply(term: &Term, env: &SizeEnv, inputs: &Inputs, arg: &Value) -> Result<Value> {
    let compiler = Compiler { env, inputs, rounded: false };
    compiler.apply(term, arg).map_err(|d| (*d).into())
}

/// As [`apply`], but every float is rounded to its type after every operation, also inside reductions, as on
/// a device. Terms that do the same operations in the same order give the same bits.
///
/// # Errors
/// Those of [`apply`].
pub fn apply_rounded(term: &Term, env: &SizeEnv, inputs: &Inputs, arg: &Value) -> Result<Value> {
    let compiler = Compiler { env, inputs, rounded: true };
    compiler.apply(term, arg).map_err(|d| (*d).into())
}

/// Returns the shape of a type, with the values of its sizes.
///
/// # Errors
/// When a size has no value, or for a rule's type variable.
pub fn shape(ty: &Ty, env: &SizeEnv) -> Result<Shape> {
    shape_of(ty, env, plain("type")).map_err(|d| (*d).into())
}

fn plain(name: &'static str) -> Site {
    Site { name, span: None }
}

fn length(size: &Size, env: &SizeEnv, site: Site) -> Run<usize> {
    let n = size.eval(env).map_err(|e| fault(site, Error::SizeUnknown, &e.to_string()))?;
    usize::try_from(n).map_err(|_| fault(site, Error::SizeRange, "a length beyond this machine"))
}

fn shape_of(ty: &Ty, env: &SizeEnv, site: Site) -> Run<Shape> {
    Ok(match ty {
        Ty::Unit => Shape::Tuple(vec![]),
        Ty::Scalar(s) => Shape::Scalar(*s),
        Ty::Vector(w, t) => match shape_of(t, env, site)? {
            Shape::Scalar(s) => Shape::Vector(length(w, env, site)?, s),
            other => {
                let text = format!("a vector of `{other}`");
                return Err(fault(site, Error::BadTerm, &text));
            }
        },
        Ty::Pair(a, b) => Shape::Tuple(vec![shape_of(a, env, site)?, shape_of(b, env, site)?]),
        Ty::Array(n, t) => Shape::array(length(n, env, site)?, shape_of(t, env, site)?),
        Ty::Meta(m) => {
            return Err(fault(site, Error::BadTerm, &format!("the type variable `{m}`")));
        }
    })
}

struct Compiler<'a> {
    env: &'a SizeEnv,
    inputs: &'a Inputs,
    /// Whether floats are also rounded inside reductions.
    rounded: bool,
}

/// The values of a scalar leaf's bound variables, by de Bruijn level.
type Levels = Vec<Typed>;

impl Compiler<'_> {
    fn apply(&self, term: &Term, arg: &Value) -> Run<Value> {
        let site = plain("argument");
        let dom = self.shape(&term.ty().dom, site)?;
        arg.conforms(&dom).map_err(|e| fault(site, Error::InputShape, &e))?;
        let mut b = Builder::default();
        let code = self.term(&mut b, term, Typed::given(arg, dom), false)?;
        b.run(code)
    }

    fn shape(&self, ty: &Ty, site: Site) -> Run<Shape> {
        shape_of(ty, self.env, site)
    }

    fn input(&self, name: &str) -> Run<&Value> {
        self.inputs.get(name).ok_or_else(|| {
            fault(plain("input"), Error::InputMissing, &format!("no value for `{name}`"))
        })
    }

    /// Compiles `term` applied to `arg`; `exact` keeps floats unrounded, as inside a reduction.
    fn term(&self, b: &mut Builder, term: &Term, arg: Typed, exact: bool) -> Run<Typed> {
        let site = plain(term.op().entry().name);
        let sizes: Vec<usize> =
            term.sizes().iter().map(|s| length(s, self.env, site)).collect::<Run<_>>()?;
        let size = |i: usize| sizes.get(i).copied().unwrap_or(0);
        let cod = || self.shape(&term.ty().cod, site);
        let f = |i: usize| {
            term.args().get(i).ok_or_else(|| fault(site, Error::BadTerm, "too few arguments"))
        };
        // A view of the single array, with the result's type.
        let view = |b: &mut Builder, v: View, arg: Typed| Ok(b.view(v, arg, cod()?, site));
        let init = |b: &mut Builder| self.term(b, f(1)?, Typed::unit(), exact);
        // An operator, given as a function of a pair; inside it, floats are rounded only if they are
        // everywhere.
        let operator = |b: &mut Builder, xs: Vec<Typed>| {
            let pair = b.tuple(xs);
            self.term(b, f(0)?, pair, !self.rounded)
        };
        match term.op() {
            Op::Id | Op::Reorder => Ok(arg),
            Op::Compose => {
                let inner = self.term(b, f(1)?, arg, exact)?;
                self.term(b, f(0)?, inner, exact)
            }
            Op::Fst => Ok(b.proj(arg, 0)),
            Op::Snd => Ok(b.proj(arg, 1)),
            Op::Fork => {
                let (f, g) = (f(0)?, f(1)?);
                b.bind(arg, |b, x| {
                    let parts =
                        vec![self.term(b, f, x.clone(), exact)?, self.term(b, g, x, exact)?];
                    Ok(b.tuple(parts))
                })
            }
            Op::Bimap => {
                let (f, g) = (f(0)?, f(1)?);
                b.bind(arg, |b, x| {
                    let (p, q) = (b.proj(x.clone(), 0), b.proj(x, 1));
                    let parts = vec![self.term(b, f, p, exact)?, self.term(b, g, q, exact)?];
                    Ok(b.tuple(parts))
                })
            }
            Op::Bang => Ok(Typed::unit()),
            Op::Input(name) => {
                let (shape, v) = (cod()?, self.input(name)?);
                v.conforms(&shape)
                    .map_err(|e| fault(site, Error::InputShape, &format!("`{name}`: {e}")))?;
                Ok(Typed::given(v, shape))
            }
            Op::Lit(l) => Ok(Typed::constant(l.ty, Cell::lit(*l))),
            Op::SizeValue(ty) => Ok(size_value(size(0), *ty)),
            Op::Scalar(f) => b.bind(arg, |b, x| self.leaf(b, f, &x, exact)),
            Op::Cond => {
                let (p, f, g) = (f(0)?, f(1)?, f(2)?);
                b.bind(arg, |b, x| {
                    let c = self.term(b, p, x.clone(), exact)?;
                    let yes = self.term(b, f, x.clone(), exact)?;
                    let no = self.term(b, g, x, exact)?;
                    Ok(b.cond(c, yes, no))
                })
            }
            Op::Map(_) => {
                let f = f(0)?;
                let x = self.shape(&f.ty().dom, site)?;
                let body = &mut |b: &mut Builder, mut xs: Vec<Typed>| {
                    self.term(b, f, xs.pop().unwrap_or_else(Typed::unit), exact)
                };
                b.map(size(0), vec![arg], &[x], body, site)
            }
            Op::Vectorize => {
                let f = f(0)?;
                let x = self.shape(&f.ty().dom, site)?;
                let body = &mut |b: &mut Builder, mut xs: Vec<Typed>| {
                    self.term(b, f, xs.pop().unwrap_or_else(Typed::unit), exact)
                };
                // A value in each lane, and a lane in each row: the same numbers in another order.
                let rows = Shape::array(size(0), x.clone());
                let arg = b.view(View::Outward(0), arg, rows, site);
                let lanes = b.map(size(0), vec![arg], &[x], body, site)?;
                view(b, View::Inward(0), lanes)
            }
            Op::Reduce(_) => {
                let (z, x) = (init(b)?, self.second(f(0)?, site)?);
                b.fold(size(0), z, arg, &x, Folded::of(&mut |b, xs| operator(b, xs)), site)
            }
            Op::ReduceLcl => {
                let (z, op, f) = (init(b)?, f(0)?, f(2)?);
                let x = self.shape(&f.ty().dom, site)?;
                let step = &mut |b: &mut Builder, xs| self.step_after(b, op, f, xs, exact);
                b.fold(size(0), z, arg, &x, Folded::of(step), site)
            }
            Op::Fold => b.bind(arg, |b, arg| {
                let (start, xs) = (b.proj(arg.clone(), 0), b.proj(arg, 1));
                let x = self.second(f(0)?, site)?;
                b.fold(size(0), start, xs, &x, Folded::of(&mut |b, xs| operator(b, xs)), site)
            }),
            Op::While => b.bind(arg, |b, arg| {
                let (start, besides) = (b.proj(arg.clone(), 0), b.proj(arg, 1));
                let (p, f) = (f(0)?, f(1)?);
                b.repeat(start, &mut |b, mut vars, body| {
                    let state = vars.pop().unwrap_or_else(Typed::unit);
                    let both = b.tuple(vec![state, besides.clone()]);
                    self.term(b, if body { f } else { p }, both, exact)
                })
            }),
            Op::ReducePart => {
                let (k, m) = (size(0), size(1));
                let x = self.second(f(0)?, site)?;
                let chunk = Shape::array(k, x.clone());
                let chunks = b.view(View::Split(k, m), arg, Shape::array(m, chunk.clone()), site);
                let body = &mut |b: &mut Builder, mut xs: Vec<Typed>| {
                    let (z, xs) = (init(b)?, xs.pop().unwrap_or_else(Typed::unit));
                    b.fold(k, z, xs, &x, Folded::of(&mut |b, xs| operator(b, xs)), site)
                };
                b.map(m, vec![chunks], &[chunk], body, site)
            }
            Op::Scan(kind) => {
                let (z, x) = (init(b)?, self.second(f(0)?, site)?);
                let exclusive = *kind == ScanKind::Exclusive;
                let op = &mut |b: &mut Builder, xs| operator(b, xs);
                b.scan(exclusive, size(0), z, arg, &x, Folded::of(op), site)
            }
            Op::ScanLcl(exclusive) => b.bind(arg, |b, arg| {
                let (start, xs) = (b.proj(arg.clone(), 0), b.proj(arg, 1));
                let (op, f) = (f(0)?, f(2)?);
                let x = self.shape(&f.ty().dom, site)?;
                let step = &mut |b: &mut Builder, xs| self.step_after(b, op, f, xs, exact);
                b.scan(*exclusive, size(0), start, xs, &x, Folded::of(step), site)
            }),
            Op::Histogram => b.bind(arg, |b, arg| {
                let (is, vs) = (b.proj(arg.clone(), 0), b.proj(arg, 1));
                let (z, x) = (init(b)?, self.second(f(0)?, site)?);
                b.histogram(size(0), z, is, vs, &x, &mut |b, xs| operator(b, xs), site)
            }),
            Op::CountingSort => b.bind(arg, |b, arg| {
                let (is, vs) = (b.proj(arg.clone(), 0), b.proj(arg, 1));
                let both = (b.values(is), b.values(vs));
                let shape = cod()?;
                let count = shape.components().first().map_or(ScalarType::I32, |c| c.0);
                let code = Values::CountingSort(size(0), count, Box::new(both), site);
                Ok(Typed::value(code, shape))
            }),
            // An array of pairs is a pair of arrays already.
            Op::Zip | Op::Unzip => Ok(Typed::value(b.values(arg), cod()?)),
            Op::ToMem(_) | Op::OnRead => self.term(b, f(0)?, arg, exact),
            Op::Split => view(b, View::Split(size(0), size(1)), arg),
            Op::AsVector => {
                let rows = Shape::array(size(0), self.shape(&term.tys()[0], site)?);
                let shape = Shape::array(size(1), rows);
                let chunks = b.view(View::Split(size(0), size(1)), arg, shape, site);
                view(b, View::Inward(1), chunks)
            }
            Op::Join => view(b, View::Join, arg),
            Op::AsScalar => {
                let rows = Shape::array(size(0), self.shape(&term.tys()[0], site)?);
                let chunks = b.view(View::Outward(1), arg, Shape::array(size(1), rows), site);
                view(b, View::Join, chunks)
            }
            Op::Transpose => view(b, View::Transpose, arg),
            Op::Cross => {
                let (n, m) = (size(0), size(1));
                Self::spread(b, arg, &cod()?, (View::ReplicateRows(m), View::Replicate(n)), site)
            }
            Op::Distl => Self::spread_one(b, arg, 0, size(0), &cod()?, site),
            Op::Distr => Self::spread_one(b, arg, 1, size(0), &cod()?, site),
            Op::Splat | Op::Replicate => view(b, View::Replicate(size(0)), arg),
            Op::Wrap => view(b, View::Replicate(1), arg),
            Op::The => view(b, View::Only, arg),
            Op::Stride => view(b, View::Stride(size(0)), arg),
            Op::PadTo => {
                let z = self.term(b, f(0)?, Typed::unit(), exact)?;
                let both = (b.values(z), b.values(arg));
                Ok(Typed::value(Values::PadWith(Box::new(both), 0, size(1), site), cod()?))
            }
            Op::PadLast => view(b, View::PadLast(size(1)), arg),
            Op::Mask => {
                let (n, r) = (size(0), size(1));
                let cod = cod()?;
                let Shape::Array(_, pair) = &cod else {
                    return Err(fault(site, Error::BadTerm, "a mask that is no array"));
                };
                let Shape::Tuple(parts) = &**pair else {
                    return Err(fault(site, Error::BadTerm, "a mask without flags"));
                };
                let flag =
                    |v| Typed::constant(ScalarType::Bool, Cell::from_int(ScalarType::Bool, v));
                let real =
                    b.view(View::Replicate(n), flag(1), Shape::array(n, parts[0].clone()), site);
                let both = (b.values(flag(0)), b.values(real));
                let flags = Values::PadWith(Box::new(both), 0, r, site);
                let padded = b.view(View::PadLast(r), arg, Shape::array(r, parts[1].clone()), site);
                let padded = b.values(padded);
                Ok(Typed::value(Values::Tuple(vec![flags, padded]), cod))
            }
            Op::Chunked | Op::Packed => {
                // An empty array cannot be padded, as for the `pad` operators in the definition.
                if size(0) == 0 && size(2) > 0 {
                    return Err(fault(site, Error::SizeRange, "nothing cannot be padded"));
                }
                let long = term.expand().map_err(|e| fault(site, Error::BadTerm, &e.0))?;
                self.term(b, &long, arg, exact)
            }
            Op::Tiled(_)
            | Op::TiledRows
            | Op::Turned
            | Op::Blocked(_)
            | Op::BlockedRows
            | Op::Spread(_)
            | Op::SpreadRows
            | Op::Sliced => {
                let long = term.definition().map_err(|e| fault(site, Error::BadTerm, &e.0))?;
                let long = long.ok_or_else(|| fault(site, Error::BadTerm, "no definition"))?;
                self.term(b, &long, arg, exact)
            }
            Op::SumProducts => {
                let sums = super::tiling::sums_of_products(&term.ty().dom);
                let sums = sums.map_err(|e| fault(site, Error::BadTerm, &e.0))?;
                self.term(b, &sums, arg, exact)
            }
            Op::Meta(_) => Err(fault(site, Error::BadTerm, "a rule's variable has no value")),
            Op::Take => view(b, View::Slice(0, size(0)), arg),
            Op::Drop => match size(1).checked_sub(size(0)) {
                Some(from) => view(b, View::Slice(from, size(0)), arg),
                None => Err(fault(site, Error::SizeRange, "more elements than there are")),
            },
            Op::Slide => view(b, View::Slide(size(0), size(1), size(3)), arg),
            Op::Pad(PadMode::Constant) => {
                let z = self.term(b, f(0)?, Typed::unit(), exact)?;
                let both = (b.values(z), b.values(arg));
                Ok(Typed::value(Values::PadWith(Box::new(both), size(0), size(2), site), cod()?))
            }
            Op::Pad(mode) => view(b, View::Pad(*mode, size(0), size(2)), arg),
            Op::Gather => b.bind(arg, |b, arg| {
                let (xs, is) = (b.proj(arg.clone(), 0), b.proj(arg, 1));
                let both = (b.values(xs), b.values(is));
                Ok(Typed::value(Values::Gather(Box::new(both), site), cod()?))
            }),
            Op::Scatter => b.bind(arg, |b, arg| {
                let (dest, updates) = (b.proj(arg.clone(), 0), b.proj(arg, 1));
                let (is, vs) = (b.proj(updates.clone(), 0), b.proj(updates, 1));
                let all = (b.values(dest), b.values(is), b.values(vs));
                Ok(Typed::value(Values::Scatter(Box::new(all), site), cod()?))
            }),
            Op::Iota => match term.tys().get(1) {
                Some(Ty::Scalar(ty)) => Ok(Builder::iota(size(0), *ty)),
                _ => Err(fault(site, Error::BadTerm, "numbers that are not scalars")),
            },
            Op::Concat => b.bind(arg, |b, arg| {
                let (x, y) = (b.proj(arg.clone(), 0), b.proj(arg, 1));
                let both = (b.values(x), b.values(y));
                Ok(Typed::value(Values::Concat(Box::new(both), site), cod()?))
            }),
            Op::Reverse => view(b, View::Reverse, arg),
            Op::Rotate => view(b, View::Rotate(size(0)), arg),
            Op::Index => b.bind(arg, |b, arg| {
                let (xs, i) = (b.proj(arg.clone(), 0), b.proj(arg, 1));
                Ok(b.index(xs, vec![i], cod()?, site))
            }),
        }
    }

    /// Combines the accumulator, the first of `xs`, with the result of `f` on the element, the second.
    fn step_after(
        &self,
        b: &mut Builder,
        op: &Term,
        f: &Term,
        mut xs: Vec<Typed>,
        exact: bool,
    ) -> Run<Typed> {
        let (x, acc) = (xs.pop().unwrap_or_else(Typed::unit), xs.pop());
        let y = self.term(b, f, x, exact)?;
        let both = b.tuple(vec![acc.unwrap_or_else(Typed::unit), y]);
        self.term(b, op, both, exact)
    }

    /// Returns the shape of an operator's second parameter; the operator takes a pair.
    fn second(&self, op: &Term, site: Site) -> Run<Shape> {
        match &op.ty().dom {
            Ty::Pair(_, x) => self.shape(x, site),
            other => {
                Err(fault(site, Error::BadTerm, &format!("an operator on `{other}`, not a pair")))
            }
        }
    }

    /// Views a pair of arrays as an array of pairs, with a view for each side.
    fn spread(
        b: &mut Builder,
        arg: Typed,
        cod: &Shape,
        views: (View, View),
        site: Site,
    ) -> Run<Typed> {
        b.bind(arg, |b, arg| {
            let (x, y) = (b.proj(arg.clone(), 0), b.proj(arg, 1));
            let (x, y) = (b.values(x), b.values(y));
            let parts = vec![
                Values::View(views.0, Box::new(x), site),
                Values::View(views.1, Box::new(y), site),
            ];
            Ok(Typed::value(Values::Tuple(parts), cod.clone()))
        })
    }

    /// Pairs one side with each of the `n` elements of the other side.
    fn spread_one(
        b: &mut Builder,
        arg: Typed,
        side: usize,
        n: usize,
        cod: &Shape,
        site: Site,
    ) -> Run<Typed> {
        b.bind(arg, |b, arg| {
            let mut parts = vec![];
            for i in 0..2 {
                let x = b.proj(arg.clone(), i);
                let x = b.values(x);
                parts.push(if i == side {
                    Values::View(View::Replicate(n), Box::new(x), site)
                } else {
                    x
                });
            }
            Ok(Typed::value(Values::Tuple(parts), cod.clone()))
        })
    }

    fn leaf(&self, b: &mut Builder, f: &ScalarFn, arg: &Typed, exact: bool) -> Run<Typed> {
        self.scalar(b, &f.body, arg, &mut vec![], exact)
    }

    fn scalar(
        &self,
        b: &mut Builder,
        e: &SExpr,
        arg: &Typed,
        levels: &mut Levels,
        exact: bool,
    ) -> Run<Typed> {
        let site = plain("scalar function");
        match e {
            SExpr::Arg => Ok(arg.clone()),
            SExpr::Proj(e, second) => {
                let t = self.scalar(b, e, arg, levels, exact)?;
                Ok(b.proj(t, usize::from(*second)))
            }
            SExpr::Lit(l) => Ok(Typed::constant(l.ty, Cell::lit(*l))),
            SExpr::Input(name, component, ty) => {
                let v = self.input(name)?.part(*component..component + 1);
                let shape = Shape::Scalar(*ty);
                v.conforms(&shape)
                    .map_err(|e| fault(site, Error::InputShape, &format!("`{name}`: {e}")))?;
                Ok(Typed::given(&v, shape))
            }
            SExpr::Size(s, ty) => Ok(size_value(length(s, self.env, site)?, *ty)),
            SExpr::Op(op, ty, es) => {
                let mut args = vec![];
                for e in es {
                    args.push(self.scalar(b, e, arg, levels, exact)?);
                }
                Ok(Builder::op(*op, *ty, exact, args, plain(operator_name(*op))))
            }
            SExpr::If(c, x, y) => {
                let c = self.scalar(b, c, arg, levels, exact)?;
                let x = self.scalar(b, x, arg, levels, exact)?;
                let y = self.scalar(b, y, arg, levels, exact)?;
                Ok(b.cond(c, x, y))
            }
            SExpr::Pair(x, y) => {
                let parts = vec![
                    self.scalar(b, x, arg, levels, exact)?,
                    self.scalar(b, y, arg, levels, exact)?,
                ];
                Ok(b.tuple(parts))
            }
            SExpr::Let(x, body) => {
                let x = self.scalar(b, x, arg, levels, exact)?;
                b.bind(x, |b, x| self.under(b, vec![x], body, arg, levels, exact))
            }
            SExpr::Var(level, _) => usize::try_from(*level)
                .ok()
                .and_then(|l| levels.get(l).cloned())
                .ok_or_else(|| fault(site, Error::BadTerm, "a variable that nothing binds")),
            SExpr::For(init, bound, body) => {
                let init = self.scalar(b, init, arg, levels, exact)?;
                let bound = self.scalar(b, bound, arg, levels, exact)?;
                b.count(init, bound, &mut |b, vars| self.under(b, vars, body, arg, levels, exact))
            }
            SExpr::While(init, cond, body) => {
                let init = self.scalar(b, init, arg, levels, exact)?;
                b.repeat(init, &mut |b, vars, part| {
                    self.under(b, vars, if part { body } else { cond }, arg, levels, exact)
                })
            }
        }
    }

    /// Compiles `e` with further variables bound.
    fn under(
        &self,
        b: &mut Builder,
        vars: Vec<Typed>,
        e: &SExpr,
        arg: &Typed,
        levels: &mut Levels,
        exact: bool,
    ) -> Run<Typed> {
        let depth = levels.len();
        levels.extend(vars);
        let out = self.scalar(b, e, arg, levels, exact);
        levels.truncate(depth);
        out
    }
}

/// A length as a constant.
fn size_value(n: usize, ty: ScalarType) -> Typed {
    Typed::constant(ty, Cell::from_int(ty, i128::try_from(n).unwrap_or(i128::MAX)))
}

/// Returns the sign of an operation that can fail.
pub(super) fn operator_name(op: ScalarOp) -> &'static str {
    match op {
        ScalarOp::Div => "/",
        ScalarOp::Rem => "%",
        ScalarOp::Pow => "**",
        _ => "scalar operation",
    }
}

#[cfg(test)]
mod tests;
