//! Lowers the typed surface core to [`code`](super::code), at given sizes.

use super::Sizes;
use super::build::{Builder, Folded, Typed, element};
use super::code::{Site, Values, View};
use super::machine::{Run, fault};
use crate::calculus::eval::operator_name;
use crate::calculus::value::{Cell, Shape, Value};
use crate::diag::Code as Error;
use crate::lang::size::Size;
use crate::lang::typed::{Expr, ExprKind, Fun, PadMode, Prim, ScalarOp, ScanKind, VarId};
use crate::lang::types::{ScalarType, Type};
use std::cell::RefCell;
use std::collections::HashMap;

/// An error code and text, for a caller that knows the place.
pub type Failed = (Error, String);

/// Returns the value of a size.
pub fn length(size: &Size, sizes: &Sizes) -> Result<usize, Failed> {
    use crate::lang::size::SizeError;
    let env = |name: &str| sizes.get(name).and_then(|n| i64::try_from(*n).ok());
    let n = size.eval(&env).map_err(|e| {
        let code = match e {
            SizeError::Unbound(_) => Error::SizeUnknown,
            SizeError::Overflow | SizeError::Negative(_) => Error::SizeRange,
            SizeError::NotExact(..) => Error::NotDivisible,
        };
        (code, e.to_string())
    })?;
    usize::try_from(n).map_err(|_| (Error::SizeRange, format!("a length of {n}")))
}

/// Returns the shape of a type; `length` gives the values of its sizes.
pub fn shape(ty: &Type, length: &dyn Fn(&Size) -> Result<usize, Failed>) -> Result<Shape, Failed> {
    Ok(match ty {
        Type::Scalar(s) => Shape::Scalar(*s),
        Type::Vector(w, s) => Shape::Vector(length(w)?, *s),
        Type::Tuple(ts) => {
            let parts: Result<Vec<Shape>, Failed> = ts.iter().map(|t| shape(t, length)).collect();
            Shape::Tuple(parts?)
        }
        Type::Array(n, t) => Shape::array(length(n)?, shape(t, length)?),
    })
}

/// Compiles one entry.
pub struct Lower {
    /// The sizes of the entry and of the enclosing `iterate`s.
    pub(super) sizes: Sizes,
    vars: HashMap<VarId, Typed>,
    /// Whether this is inside a reduction's operator, where floats stay unrounded.
    exact: bool,
}

impl Lower {
    /// Returns a compiler that knows no variables yet.
    pub fn new(sizes: &Sizes) -> Lower {
        Lower { sizes: sizes.clone(), vars: HashMap::new(), exact: false }
    }

    /// Binds a parameter to its value, which has that shape.
    pub fn input(&mut self, var: VarId, v: &Value, shape: Shape) {
        self.vars.insert(var, Typed::given(v, shape));
    }

    /// Compiles the body of an entry.
    pub fn compile(&mut self, b: &mut Builder, body: &Expr) -> Run<Typed> {
        self.expr(b, body)
    }

    pub(super) fn shape(&self, ty: &Type, site: Site) -> Run<Shape> {
        shape(ty, &|n| length(n, &self.sizes)).map_err(|(code, text)| fault(site, code, &text))
    }

    fn length(&self, n: &Size, site: Site) -> Run<usize> {
        length(n, &self.sizes).map_err(|(code, text)| fault(site, code, &text))
    }

    fn exprs(&mut self, b: &mut Builder, es: &[Expr]) -> Run<Vec<Typed>> {
        es.iter().map(|e| self.expr(b, e)).collect()
    }

    fn expr(&mut self, b: &mut Builder, e: &Expr) -> Run<Typed> {
        let site = |name| Site { name, span: Some(e.span) };
        match &e.kind {
            ExprKind::Lit(l) => {
                let ty = scalar_type(&e.ty);
                Ok(Typed::constant(ty, Cell::literal(ty, *l)))
            }
            ExprKind::Var(v) => self
                .vars
                .get(v)
                .cloned()
                .ok_or_else(|| fault(site("variable"), Error::Internal, "nothing binds it")),
            ExprKind::Size(n) => {
                let n = self.length(n, site("size"))?;
                let ty = scalar_type(&e.ty);
                let n = i128::try_from(n).unwrap_or(i128::MAX);
                Ok(Typed::constant(ty, Cell::from_int(ty, n)))
            }
            ExprKind::Tuple(es) => {
                let parts = self.exprs(b, es)?;
                Ok(b.tuple(parts))
            }
            ExprKind::Proj(t, i) => {
                let t = self.expr(b, t)?;
                Ok(b.proj(t, *i))
            }
            ExprKind::Index(..) => {
                // `a[i, j]` reads one element, not a row and then an element.
                let (mut array, mut at) = (e, vec![]);
                while let ExprKind::Index(a, i) = &array.kind {
                    at.push(self.expr(b, i)?);
                    array = a;
                }
                at.reverse();
                let array = self.expr(b, array)?;
                let shape = self.shape(&e.ty, site("index"))?;
                Ok(b.index(array, at, shape, site("index")))
            }
            ExprKind::Scalar(op, es) => {
                let args = self.exprs(b, es)?;
                let site = site(operator_name(*op));
                let exact = self.exact;
                match self.shape(&e.ty, site)? {
                    Shape::Scalar(to) => Ok(Builder::op(*op, to, exact, args, site)),
                    lanes => vector_op(b, *op, args, &lanes, exact, site),
                }
            }
            ExprKind::If(c, x, y) => {
                let (c, x, y) = (self.expr(b, c)?, self.expr(b, x)?, self.expr(b, y)?);
                Ok(b.cond(c, x, y))
            }
            ExprKind::Let(v, x, body) => {
                let x = self.expr(b, x)?;
                b.bind(x, |b, x| {
                    self.vars.insert(*v, x);
                    self.expr(b, body)
                })
            }
            ExprKind::LoopFor { acc, init, index, bound, body } => {
                let (init, bound) = (self.expr(b, init)?, self.expr(b, bound)?);
                b.count(init, bound, &mut |b, vars| {
                    self.vars.extend([*index, *acc].into_iter().zip(vars));
                    self.expr(b, body)
                })
            }
            ExprKind::LoopWhile { acc, init, cond, body } => {
                let init = self.expr(b, init)?;
                b.repeat(init, &mut |b, vars, part| {
                    self.vars.extend([*acc].into_iter().zip(vars));
                    self.expr(b, if part { body } else { cond })
                })
            }
            ExprKind::Prim { prim, funs, sizes, args } => {
                let call = Call { e, prim: *prim, funs, sizes, args };
                self.prim(b, &call)
            }
        }
    }
}

/// A pattern with its arguments.
pub(super) struct Call<'a> {
    pub(super) e: &'a Expr,
    prim: Prim,
    funs: &'a [Fun],
    sizes: &'a [Size],
    args: &'a [Expr],
}

impl<'a> Call<'a> {
    pub(super) fn site(&self) -> Site {
        Site { name: self.prim.name(), span: Some(self.e.span) }
    }

    #[expect(clippy::unnecessary_box_returns, reason = "the error of `Run`")]
    pub(super) fn missing(&self) -> Box<crate::diag::Diagnostic> {
        fault(self.site(), Error::Internal, "too few arguments")
    }

    pub(super) fn fun(&self) -> Run<&'a Fun> {
        self.funs.first().ok_or_else(|| self.missing())
    }
}

impl Lower {
    pub(super) fn size(&self, c: &Call, i: usize) -> Run<usize> {
        let size = c.sizes.get(i).ok_or_else(|| c.missing())?;
        self.length(size, c.site())
    }

    pub(super) fn arg(&mut self, b: &mut Builder, c: &Call, i: usize) -> Run<Typed> {
        let e = c.args.get(i).ok_or_else(|| c.missing())?;
        self.expr(b, e)
    }

    /// Compiles argument `i`, and returns its length as an array.
    fn array(&mut self, b: &mut Builder, c: &Call, i: usize) -> Run<(Typed, usize)> {
        let t = self.arg(b, c, i)?;
        match element(&t.shape) {
            Some((n, _)) => Ok((t, n)),
            None => Err(fault(c.site(), Error::Internal, "a scalar where an array belongs")),
        }
    }

    /// Compiles the body of `f` with its parameters bound to `args`.
    pub(super) fn body(&mut self, b: &mut Builder, f: &Fun, args: Vec<Typed>) -> Run<Typed> {
        self.vars.extend(f.params.iter().map(|p| p.0).zip(args));
        self.expr(b, &f.body)
    }

    /// Compiles the body of a reduction's operator; `exact` keeps its floats unrounded.
    fn operator(&mut self, b: &mut Builder, f: &Fun, args: Vec<Typed>, exact: bool) -> Run<Typed> {
        let outside = std::mem::replace(&mut self.exact, exact);
        let body = self.body(b, f, args);
        self.exact = outside;
        body
    }

    /// Builds a map of `f` over the rows of all `xs`.
    fn map(&mut self, b: &mut Builder, c: &Call, xs: Vec<Typed>) -> Run<Typed> {
        let (f, site) = (c.fun()?, c.site());
        let mut n = None;
        for x in &xs {
            let Some((m, _)) = element(&x.shape) else {
                return Err(fault(site, Error::Internal, "a scalar where an array belongs"));
            };
            if *n.get_or_insert(m) != m {
                let text = format!("arrays of {} and {m} elements", n.unwrap_or(0));
                return Err(fault(site, Error::SizeMismatch, &text));
            }
        }
        let params: Run<Vec<Shape>> = f.params.iter().map(|p| self.shape(&p.1, site)).collect();
        b.map(n.unwrap_or(0), xs, &params?, &mut |b, xs| self.body(b, f, xs), site)
    }

    /// Returns the shape of the operator's second parameter.
    fn second(&self, c: &Call) -> Run<Shape> {
        let param = c.fun()?.params.get(1).ok_or_else(|| c.missing())?;
        self.shape(&param.1, c.site())
    }

    fn view(&mut self, b: &mut Builder, c: &Call, view: View) -> Run<Typed> {
        let (x, shape) = (self.arg(b, c, 0)?, self.shape(&c.e.ty, c.site())?);
        Ok(b.view(view, x, shape, c.site()))
    }

    fn prim(&mut self, b: &mut Builder, c: &Call) -> Run<Typed> {
        let site = c.site();
        match c.prim {
            Prim::Map
            | Prim::MapWrg(_)
            | Prim::MapLcl(_)
            | Prim::MapGlb(_)
            | Prim::MapSeq
            | Prim::MapUnroll
            | Prim::MapWarp
            | Prim::MapLane => {
                let xs = self.exprs(b, c.args)?;
                self.map(b, c, xs)
            }
            Prim::Vectorize => {
                let xs = self.exprs(b, c.args)?;
                let lanes = self.map(b, c, xs)?;
                Ok(Typed::value(b.values(lanes), self.shape(&c.e.ty, site)?))
            }
            Prim::Generate => {
                let f = c.fun()?;
                let ty = f.params.first().map_or(ScalarType::I32, |p| scalar_type(&p.1));
                let numbers = Builder::iota(self.size(c, 0)?, ty);
                self.map(b, c, vec![numbers])
            }
            Prim::Zip => {
                let parts = self.exprs(b, c.args)?;
                let lengths: Vec<usize> =
                    parts.iter().filter_map(|p| Some(element(&p.shape)?.0)).collect();
                if let Some([n, m]) = lengths.array_windows().find(|[n, m]| n != m) {
                    let text = format!("arrays of {n} and {m} elements");
                    return Err(fault(site, Error::SizeMismatch, &text));
                }
                let all = b.tuple(parts);
                Ok(Typed::value(b.values(all), self.shape(&c.e.ty, site)?))
            }
            Prim::Unzip => {
                let x = self.arg(b, c, 0)?;
                Ok(Typed::value(b.values(x), self.shape(&c.e.ty, site)?))
            }
            Prim::Reduce
            | Prim::ReduceComm
            | Prim::ReduceSeq
            | Prim::ReduceUnroll
            | Prim::Scan(_) => {
                let (z, (xs, n)) = (self.arg(b, c, 0)?, self.array(b, c, 1)?);
                let (f, x) = (c.fun()?, self.second(c)?);
                let lower = RefCell::new(self);
                let mut exact = |b: &mut Builder, xs| lower.borrow_mut().operator(b, f, xs, true);
                let mut rounded =
                    |b: &mut Builder, xs| lower.borrow_mut().operator(b, f, xs, false);
                let ordered = matches!(
                    c.prim,
                    Prim::ReduceSeq | Prim::ReduceUnroll | Prim::Scan(ScanKind::Seq)
                );
                let f = Folded {
                    exact: &mut exact,
                    rounded: if ordered { Some(&mut rounded) } else { None },
                };
                match c.prim {
                    Prim::Scan(kind) => b.scan(kind == ScanKind::Exclusive, n, z, xs, &x, f, site),
                    _ => b.fold(n, z, xs, &x, f, site),
                }
            }
            Prim::ReducePart => self.reduce_part(b, c),
            Prim::Histogram => {
                let m = self.size(c, 0)?;
                let (z, is, vs) = (self.arg(b, c, 0)?, self.arg(b, c, 1)?, self.arg(b, c, 2)?);
                let (f, x) = (c.fun()?, self.second(c)?);
                b.histogram(m, z, is, vs, &x, &mut |b, xs| self.operator(b, f, xs, true), site)
            }
            Prim::CountingSort => {
                let (is, vs) = (self.arg(b, c, 0)?, self.arg(b, c, 1)?);
                let both = (b.values(is), b.values(vs));
                let shape = self.shape(&c.e.ty, site)?;
                let count = shape.components().first().map_or(ScalarType::I32, |c| c.0);
                let code = Values::CountingSort(self.size(c, 0)?, count, Box::new(both), site);
                Ok(Typed::value(code, shape))
            }
            Prim::Split | Prim::AsVector => {
                let (k, (x, n)) = (self.size(c, 0)?, self.array(b, c, 0)?);
                let shape = self.shape(&c.e.ty, site)?;
                // The length decides only if there are elements: `split n` gives one chunk, also of none.
                let m = match element(&shape) {
                    Some((m, _)) if n == 0 => m,
                    _ => chunks(n, k, site)?,
                };
                Ok(b.view(View::Split(k, m), x, shape, site))
            }
            Prim::Join | Prim::AsScalar => self.view(b, c, View::Join),
            Prim::Transpose => self.view(b, c, View::Transpose),
            Prim::Reverse => self.view(b, c, View::Reverse),
            Prim::Reorder => self.arg(b, c, 0),
            Prim::ReorderStride => {
                let (s, (x, n)) = (self.size(c, 0)?, self.array(b, c, 0)?);
                chunks(n, s, site)?;
                Ok(b.view(View::Stride(s), x, self.shape(&c.e.ty, site)?, site))
            }
            Prim::Rotate => {
                let view = View::Rotate(self.size(c, 0)?);
                self.view(b, c, view)
            }
            Prim::Take => {
                let view = View::Slice(0, self.size(c, 0)?);
                self.view(b, c, view)
            }
            Prim::Drop => {
                let (k, (x, n)) = (self.size(c, 0)?, self.array(b, c, 0)?);
                let rest = n.checked_sub(k).ok_or_else(|| {
                    fault(site, Error::SizeRange, &format!("{k} of an array of {n} elements"))
                })?;
                Ok(b.view(View::Slice(k, rest), x, self.shape(&c.e.ty, site)?, site))
            }
            Prim::Slide => {
                let (w, s, (x, n)) = (self.size(c, 0)?, self.size(c, 1)?, self.array(b, c, 0)?);
                // There are no windows if one more step would have fitted the first.
                let rest = n.saturating_add(s).checked_sub(w).ok_or_else(|| {
                    fault(site, Error::SizeRange, &format!("a window of {w} over {n} elements"))
                })?;
                let m = chunks(rest, s, site)?;
                Ok(b.view(View::Slide(w, s, m), x, self.shape(&c.e.ty, site)?, site))
            }
            Prim::Pad(mode) => {
                let (l, r, (x, n)) = (self.size(c, 0)?, self.size(c, 1)?, self.array(b, c, 0)?);
                let (m, shape) =
                    (l.saturating_add(n).saturating_add(r), self.shape(&c.e.ty, site)?);
                if mode == PadMode::Constant {
                    let z = self.arg(b, c, 1)?;
                    let both = (b.values(z), b.values(x));
                    Ok(Typed::value(Values::PadWith(Box::new(both), l, m, site), shape))
                } else {
                    Ok(b.view(View::Pad(mode, l, m), x, shape, site))
                }
            }
            Prim::Gather => {
                let (x, is) = (self.arg(b, c, 0)?, self.arg(b, c, 1)?);
                let both = (b.values(x), b.values(is));
                Ok(Typed::value(Values::Gather(Box::new(both), site), self.shape(&c.e.ty, site)?))
            }
            Prim::Scatter => {
                let (x, is, vs) = (self.arg(b, c, 0)?, self.arg(b, c, 1)?, self.arg(b, c, 2)?);
                let all = (b.values(x), b.values(is), b.values(vs));
                Ok(Typed::value(Values::Scatter(Box::new(all), site), self.shape(&c.e.ty, site)?))
            }
            Prim::Few => Ok(Typed::constant(ScalarType::Bool, Cell::stored(ScalarType::Bool, 0))),
            Prim::Sorted => self.arg(b, c, 1),
            Prim::InOrder => self.arg(b, c, 2),
            Prim::Iota => {
                let ty = match &c.e.ty {
                    Type::Array(_, t) => scalar_type(t),
                    other => scalar_type(other),
                };
                Ok(Builder::iota(self.size(c, 0)?, ty))
            }
            Prim::Replicate => {
                let view = View::Replicate(self.size(c, 0)?);
                self.view(b, c, view)
            }
            Prim::Concat => {
                let (x, y) = (self.arg(b, c, 0)?, self.arg(b, c, 1)?);
                let both = (b.values(x), b.values(y));
                Ok(Typed::value(Values::Concat(Box::new(both), site), self.shape(&c.e.ty, site)?))
            }
            Prim::Iterate | Prim::IterateSeq => self.iterate(b, c),
            Prim::ToGlobal | Prim::ToLocal | Prim::ToPrivate => {
                let args = self.exprs(b, c.args)?;
                self.call(b, c.fun()?, args, vec![])
            }
        }
    }

    /// Calls `f` with arguments that are evaluated once.
    pub(super) fn call(
        &mut self,
        b: &mut Builder,
        f: &Fun,
        mut args: Vec<Typed>,
        mut bound: Vec<Typed>,
    ) -> Run<Typed> {
        if args.is_empty() {
            return self.body(b, f, bound);
        }
        let first = args.remove(0);
        b.bind(first, |b, x| {
            bound.push(x);
            self.call(b, f, args, bound)
        })
    }

    fn reduce_part(&mut self, b: &mut Builder, c: &Call) -> Run<Typed> {
        let (f, x, site) = (c.fun()?, self.second(c)?, c.site());
        let (m, z, (xs, n)) = (self.size(c, 0)?, self.arg(b, c, 0)?, self.array(b, c, 1)?);
        let k = chunks(n, m, site)?;
        let chunk = Shape::array(k, x.clone());
        let xs = b.view(View::Split(k, m), xs, Shape::array(m, chunk.clone()), site);
        b.bind(z, |b, z| {
            let part = &mut |b: &mut Builder, mut xs: Vec<Typed>| {
                let xs = xs.pop().unwrap_or_else(Typed::unit);
                let mut f = |b: &mut Builder, xs| self.operator(b, f, xs, true);
                b.fold(k, z.clone(), xs, &x, Folded::of(&mut f), site)
            };
            b.map(m, vec![xs], &[chunk], part, site)
        })
    }
}

/// Returns `n / k`, which must be whole; an empty array has no chunks, whatever their length.
fn chunks(n: usize, k: usize, site: Site) -> Run<usize> {
    if n == 0 {
        return Ok(0);
    }
    if k == 0 || !n.is_multiple_of(k) {
        return Err(fault(site, Error::NotDivisible, &format!("{k} does not divide {n}")));
    }
    Ok(n / k)
}

/// Applies a scalar operation lane by lane; scalar arguments are the same in every lane.
fn vector_op(
    b: &mut Builder,
    op: ScalarOp,
    args: Vec<Typed>,
    lanes: &Shape,
    exact: bool,
    site: Site,
) -> Run<Typed> {
    let Some((w, Shape::Scalar(to))) = element(lanes) else {
        return Err(fault(site, Error::Internal, "neither scalar nor vector"));
    };
    let mut rows = vec![];
    let mut params = vec![];
    for arg in args {
        let row = element(&arg.shape).map_or_else(|| arg.shape.clone(), |(_, row)| row);
        let scalar = arg.shape.is_scalar();
        params.push(row.clone());
        rows.push(if scalar {
            b.view(View::Replicate(w), arg, Shape::array(w, row), site)
        } else {
            arg
        });
    }
    let out =
        b.map(w, rows, &params, &mut |_, xs| Ok(Builder::op(op, to, exact, xs, site)), site)?;
    Ok(Typed::value(b.values(out), lanes.clone()))
}

/// Returns the element type of a scalar or vector; the type checker rules out anything else.
fn scalar_type(ty: &Type) -> ScalarType {
    match ty {
        Type::Scalar(s) | Type::Vector(_, s) => *s,
        Type::Tuple(_) | Type::Array(..) => ScalarType::I32,
    }
}
