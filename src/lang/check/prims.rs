//! Type rules of the patterns.

use super::builtins::{Builtin, Slot, pattern_name, slots};
use super::elab::{Abort, Checker, Res};
use super::env::{Arg, Closure, Elab, FunVal};
use super::infer::{Class, Ty};
use super::ir::{Fun, Lit, Node, NodeKind};
use super::subscripts::pattern;
use crate::diag::{Code, Span};
use crate::lang::size::Size;
use crate::lang::typed::{PadMode, Prim, ScalarOp, ScanKind, VarId};
use crate::lang::types::ScalarType;
use std::rc::Rc;

/// The arguments of a pattern, by kind.
struct Taken<'a> {
    name: String,
    span: Span,
    funs: Vec<Closure<'a>>,
    sizes: Vec<Size>,
    /// Places of the size arguments.
    size_spans: Vec<Span>,
    values: Vec<Node>,
    /// Argument number of each value, counted from 1.
    places: Vec<usize>,
    lets: Vec<(VarId, Node)>,
}

impl Taken<'_> {
    fn place(&self, i: usize) -> String {
        let n = self.places.get(i).copied().unwrap_or(i + 1);
        format!("argument {n} of {}", self.name)
    }
}

fn array(n: Size, element: Ty) -> Ty {
    Ty::Array(n, Rc::new(element))
}

/// Adds what to do instead of a cut at a computed place.
fn cut_hint(Abort(d): Abort) -> Abort {
    Abort(d.map(|d| match d.code {
        Code::TypeMismatch => Box::new(d.help("the first `k` elements, where the program computes `k`: mask with `map2 (\\i y -> if i < k then y else z) (indices ys) ys`, take them with `loop acc = z for i < k do f acc ys[i]`, or return `(k, ys)` and cut outside")),
        _ => d,
    }))
}

impl<'a> Checker<'a> {
    /// Elaborates a pattern with all its arguments.
    pub fn pattern(
        &mut self,
        prim: Prim,
        width: usize,
        args: Vec<Arg<'a>>,
        at: Span,
        span: Span,
    ) -> Res<Node> {
        let mut prim = prim;
        let mut kinds = slots(prim, width);
        while kinds.len() < args.len() {
            kinds.push(Slot::Value);
        }
        let name = format!("`{}`", pattern_name(prim, width));
        let mut taken = Taken {
            name,
            span: at,
            funs: vec![],
            sizes: vec![],
            size_spans: vec![],
            values: vec![],
            places: vec![],
            lets: vec![],
        };
        let mut constant = None;
        for (i, (slot, arg)) in kinds.into_iter().zip(args).enumerate() {
            match slot {
                Slot::Fun => {
                    let mut closure = self.as_fun(arg.elab, arg.span)?;
                    closure.span = arg.span;
                    taken.lets.append(&mut closure.lets);
                    taken.funs.push(closure);
                }
                Slot::Size => {
                    let node = self.as_value(arg.elab)?;
                    let node = Node { span: arg.span, ..node };
                    taken.sizes.push(match prim {
                        // The only size that may be negative: a rotation the other way.
                        Prim::Rotate => self.as_integer(&node)?,
                        Prim::Take | Prim::Drop => self.as_size(&node).map_err(cut_hint)?,
                        _ => {
                            let size = self.as_size(&node);
                            size.map_err(|abort| self.of_computed_count(abort, &node))?
                        }
                    });
                    taken.size_spans.push(arg.span);
                }
                Slot::Dim => {
                    let dim = self.dimension(&arg, &taken.name)?;
                    prim = match prim {
                        Prim::MapWrg(_) => Prim::MapWrg(dim),
                        Prim::MapLcl(_) => Prim::MapLcl(dim),
                        Prim::MapGlb(_) => Prim::MapGlb(dim),
                        other => other,
                    };
                }
                Slot::Mode => {
                    let (mode, value) = self.pad_mode(arg)?;
                    prim = Prim::Pad(mode);
                    constant = value.map(|v| (v, i + 1));
                }
                Slot::Value => {
                    let node = self.as_value(arg.elab)?;
                    taken.values.push(Node { span: arg.span, ..node });
                    taken.places.push(i + 1);
                }
            }
        }
        if let Some((value, place)) = constant {
            taken.values.push(value);
            taken.places.push(place);
        }
        self.typed(prim, taken, span)
    }

    fn dimension(&self, arg: &Arg<'a>, name: &str) -> Res<u8> {
        if let Elab::Value(Node { kind: NodeKind::Lit(Lit::Int(d @ 0..=2)), .. }) = &arg.elab {
            return Ok(u8::try_from(*d).unwrap_or(0));
        }
        let d = self.error(
            Code::BadTerm,
            format!("argument 1 of {name} is a dimension: 0, 1 or 2"),
            arg.span,
        );
        Err(d.help(format!("write `{} 0 f`", name.trim_matches('`'))).into())
    }

    fn pad_mode(&self, arg: Arg<'a>) -> Res<(PadMode, Option<Node>)> {
        match arg.elab {
            Elab::Value(node) => Ok((PadMode::Constant, Some(Node { span: arg.span, ..node }))),
            Elab::Fun(closure) => match &*closure.fun {
                FunVal::Builtin(Builtin::Scalar(ScalarOp::Clamp, None)) => {
                    Ok((PadMode::Clamp, None))
                }
                FunVal::Builtin(Builtin::Mode(mode)) => Ok((*mode, None)),
                _ => {
                    let message = "argument 3 of `pad` says how to fill: `clamp`, `wrap`, `mirror` or a value";
                    Err(self.error(Code::TypeMismatch, message, arg.span).into())
                }
            },
        }
    }

    /// Returns the length and element type of an array argument.
    fn array_of(&mut self, node: &Node, what: &str) -> Res<(Size, Ty)> {
        match self.infer.shallow(&node.ty) {
            Ty::Array(n, element) => Ok((n, (*element).clone())),
            Ty::Meta(i) if self.infer.class(i) == Class::Any => {
                if matches!(node.kind, NodeKind::Hole) {
                    return Err(Abort(None));
                }
                let (n, element) = (self.infer.sizes.fresh(), self.infer.fresh(Class::Any));
                let ty = array(n.clone(), element.clone());
                let _ = self.infer.unify(&node.ty, &ty, node.span);
                Ok((n, element))
            }
            ty => {
                let found = self.infer.show(&ty);
                let message = format!("{what} must be an array, but it is {found}");
                let mut d = self.error(Code::TypeMismatch, message, node.span);
                if let Some(label) = d.labels.first_mut() {
                    label.text = format!("this is {found}");
                }
                Err(d.into())
            }
        }
    }

    /// Requires arrays of equal length. Returns the length and the element types.
    fn arrays(&mut self, t: &Taken<'a>, from: usize) -> Res<(Size, Vec<Ty>)> {
        let mut length: Option<(Size, Span)> = None;
        let mut elements = vec![];
        for (i, node) in t.values.iter().enumerate().skip(from) {
            let (n, element) = self.array_of(node, &t.place(i))?;
            elements.push(element);
            match &length {
                None => length = Some((n, node.span)),
                Some((first, first_span)) => {
                    if self.infer.sizes.unify(first, &n, node.span).is_err() {
                        let (a, b) = (self.infer.show_size(first), self.infer.show_size(&n));
                        let message = format!(
                            "the arrays given to {} have different lengths: {a} and {b}",
                            t.name
                        );
                        let mut d = self.error(Code::SizeMismatch, message, node.span);
                        if let Some(label) = d.labels.first_mut() {
                            label.text = format!("length {b}");
                        }
                        return Err(d.also(*first_span, format!("length {a}")).into());
                    }
                }
            }
        }
        match length {
            Some((n, _)) => Ok((n, elements)),
            None => Err(Abort(None)),
        }
    }

    /// Checks the neutral element and the operator of a reduction: `op : a -> a -> a`.
    fn operator(&mut self, t: &mut Taken<'a>, element: &Ty) -> Res<Fun> {
        let z = t.values.remove(0);
        let scalar = matches!(self.infer.shallow(&z.ty), Ty::Scalar(_) | Ty::Meta(_));
        let start = z.span;
        let z = self.coerce(z, element, &t.place(0)).map_err(|Abort(d)| {
            let rows = scalar && matches!(self.infer.shallow(element), Ty::Array(..));
            let array = if let [array] = t.values.as_slice() { Some(array.span) } else { None };
            let places = (t.funs[0].span, start, array);
            Abort(d.map(|d| match rows {
                true => Box::new(self.with_rows(*d, element, &t.name, places)),
                false => d,
            }))
        })?;
        t.values.insert(0, z);
        let (mut fun, result) =
            self.fun(&t.funs[0], vec![element.clone(), element.clone()], &t.name)?;
        let what = format!("the result of the operator of {}", t.name);
        fun.body = Box::new(self.coerce(Node { ty: result, ..*fun.body }, element, &what)?);
        Ok(fun)
    }

    /// Checks the first accumulator and the operator of a fold from the left: `op : acc -> a -> acc`.
    fn fold(&mut self, t: &mut Taken<'a>, element: &Ty) -> Res<(Fun, Ty)> {
        let z = t.values.remove(0);
        let array = if let [array] = t.values.as_slice() { Some(array.span) } else { None };
        let places = (t.funs[0].span, z.span, array);
        let scalar = matches!(self.infer.shallow(&z.ty), Ty::Scalar(_) | Ty::Meta(_))
            && matches!(&*t.funs[0].fun, FunVal::Builtin(b) if b.is_scalar());
        let what = format!("the result of the operator of {}", t.name);
        let attempt = |this: &mut Self, z: Node| {
            let acc = z.ty.clone();
            let (mut fun, result) =
                this.fun(&t.funs[0], vec![acc.clone(), element.clone()], &t.name)?;
            fun.body = Box::new(this.coerce(Node { ty: result, ..*fun.body }, &acc, &what)?);
            Ok((fun, acc, z))
        };
        // A scalar may be given as the first value of a vector accumulator.
        let (fun, acc, z) = match self.vector_width(element) {
            None => attempt(self, z).map_err(|Abort(d)| {
                let rows = scalar && matches!(self.infer.shallow(element), Ty::Array(..));
                Abort(d.map(|mut d| match rows {
                    true => {
                        d.help.clear();
                        Box::new(self.with_rows(*d, element, &t.name, places))
                    }
                    false => d,
                }))
            })?,
            Some(width) => {
                let snapshot = self.snapshot();
                let mut done = attempt(self, z.clone());
                if done.is_err() || !self.clean_since(&snapshot) {
                    let before = self.snapshot();
                    self.restore(snapshot);
                    let vector = Ty::Vector(width, Rc::new(z.ty.clone()));
                    let z = self.coerce(z, &vector, "the first accumulator");
                    match z.and_then(|z| attempt(self, z)) {
                        Ok(second) => done = Ok(second),
                        Err(_) => self.restore(before),
                    }
                }
                done?
            }
        };
        t.values.insert(0, z);
        Ok((fun, acc))
    }

    /// Returns the type with a vector of the given width for each scalar component.
    fn vectors(&mut self, width: &Size, ty: &Ty, span: Span) -> Res<Ty> {
        match self.infer.shallow(ty) {
            t @ (Ty::Scalar(_) | Ty::Meta(_)) => Ok(Ty::Vector(width.clone(), Rc::new(t))),
            Ty::Tuple(ts) => {
                let parts = ts.iter().map(|t| self.vectors(width, t, span));
                Ok(Ty::Tuple(parts.collect::<Res<_>>()?))
            }
            Ty::Record(names, ts) => {
                let parts = ts.iter().map(|t| self.vectors(width, t, span));
                Ok(Ty::Record(names, parts.collect::<Res<_>>()?))
            }
            t @ (Ty::Vector(..) | Ty::Array(..)) => {
                let message = format!(
                    "only scalars and tuples of scalars form vectors, not {}",
                    self.infer.show(&t)
                );
                Err(self.error(Code::BadTerm, message, span).into())
            }
        }
    }

    /// Returns the type with a scalar for each vector component.
    fn scalars(&mut self, width: &Size, ty: &Ty, span: Span) -> Res<Ty> {
        match self.infer.shallow(ty) {
            Ty::Vector(w, element) => {
                if self.infer.sizes.unify(width, &w, span).is_err() {
                    let (a, b) = (self.infer.show_size(width), self.infer.show_size(&w));
                    let message = format!("expected vectors of {a}, but these have {b} components");
                    return Err(self.error(Code::SizeMismatch, message, span).into());
                }
                Ok((*element).clone())
            }
            Ty::Meta(i) => {
                let element = self.infer.fresh(self.infer.class(i));
                let vector = Ty::Vector(width.clone(), Rc::new(element.clone()));
                match self.infer.unify(&Ty::Meta(i), &vector, span) {
                    Ok(()) => Ok(element),
                    Err(_) => Ok(Ty::Meta(i)),
                }
            }
            // A scalar has the same value in every component.
            t @ Ty::Scalar(_) => Ok(t),
            Ty::Tuple(ts) => {
                let parts = ts.iter().map(|t| self.scalars(width, t, span));
                Ok(Ty::Tuple(parts.collect::<Res<_>>()?))
            }
            Ty::Record(names, ts) => {
                let parts = ts.iter().map(|t| self.scalars(width, t, span));
                Ok(Ty::Record(names, parts.collect::<Res<_>>()?))
            }
            t @ Ty::Array(..) => {
                let message = format!("expected a vector, but this is {}", self.infer.show(&t));
                Err(self.error(Code::TypeMismatch, message, span).into())
            }
        }
    }

    /// Returns the width of the vectors in a type.
    fn vector_width(&self, ty: &Ty) -> Option<Size> {
        match self.infer.shallow(ty) {
            Ty::Vector(w, _) => Some(w),
            Ty::Tuple(ts) | Ty::Record(_, ts) => ts.iter().find_map(|t| self.vector_width(t)),
            Ty::Meta(_) | Ty::Scalar(_) | Ty::Array(..) => None,
        }
    }

    fn positive(&self, t: &Taken<'a>, i: usize) -> Res<()> {
        match t.sizes.get(i).and_then(Size::as_constant) {
            Some(c) if c <= 0 => {
                let span = t.size_spans.get(i).copied().unwrap_or(t.span);
                Err(self
                    .error(Code::SizeRange, format!("{} wants a positive size here", t.name), span)
                    .into())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Requires that `whole - part` is not known to be negative.
    fn not_longer(&self, part: &Size, whole: &Size, t: &Taken<'a>) -> Res<()> {
        let rest = self.infer.sizes.resolve(&whole.sub(part));
        if rest.as_constant().is_some_and(|c| c < 0) {
            let (part, whole) = (self.infer.show_size(part), self.infer.show_size(whole));
            let message = format!("{} wants {part} elements of an array of {whole}", t.name);
            let span = t.size_spans.first().copied().unwrap_or(t.span);
            return Err(self.error(Code::SizeRange, message, span).into());
        }
        Ok(())
    }

    fn typed(&mut self, prim: Prim, mut t: Taken<'a>, span: Span) -> Res<Node> {
        let mut funs = vec![];
        let size = |i: usize, t: &Taken<'a>| t.sizes.get(i).cloned().unwrap_or(Size::constant(0));
        let ty = match prim {
            Prim::Map
            | Prim::MapWrg(_)
            | Prim::MapLcl(_)
            | Prim::MapGlb(_)
            | Prim::MapSeq
            | Prim::MapUnroll
            | Prim::MapWarp
            | Prim::MapLane => {
                let (n, elements) = self.arrays(&t, 0)?;
                let rows = elements.iter().any(|e| self.dimensions(e) > 0);
                let made = self.fun(&t.funs[0], elements.clone(), &t.name);
                let (fun, result) = made.map_err(|abort| match rows {
                    true => {
                        let f = (&*t.funs[0].fun, t.funs[0].span);
                        self.map_of_rows(abort, &t.name, f, &elements, &t.values)
                    }
                    false => abort,
                })?;
                funs.push(fun);
                array(n, result)
            }
            Prim::Zip => {
                let (n, elements) = self.arrays(&t, 0)?;
                array(n, Ty::Tuple(elements.into()))
            }
            Prim::Unzip => return self.unzip(t, span),
            Prim::Reduce | Prim::ReduceComm => {
                let (_, element) = self.array_of(&t.values[1], &t.place(1))?;
                funs.push(self.operator(&mut t, &element)?);
                element
            }
            Prim::ReducePart => {
                self.positive(&t, 0)?;
                let (n, element) = self.array_of(&t.values[1], &t.place(1))?;
                funs.push(self.operator(&mut t, &element)?);
                let m = size(0, &t);
                self.infer.sizes.quotient(&n, &m, t.size_spans[0]);
                array(m, element)
            }
            Prim::Scan(ScanKind::Assoc | ScanKind::Exclusive) => {
                let (n, element) = self.array_of(&t.values[1], &t.place(1))?;
                funs.push(self.operator(&mut t, &element)?);
                array(n, element)
            }
            Prim::ReduceSeq | Prim::ReduceUnroll | Prim::Scan(ScanKind::Seq) => {
                let (n, element) = self.array_of(&t.values[1], &t.place(1))?;
                let (fun, acc) = self.fold(&mut t, &element)?;
                funs.push(fun);
                if matches!(prim, Prim::Scan(_)) { array(n, acc) } else { acc }
            }
            Prim::Split => {
                self.positive(&t, 0)?;
                let (n, element) = self.array_of(&t.values[0], &t.place(0))?;
                let k = size(0, &t);
                let m = self.infer.sizes.quotient(&n, &k, t.size_spans[0]);
                array(m, array(k, element))
            }
            Prim::Join => {
                let (n, row) = self.array_of(&t.values[0], &t.place(0))?;
                let (m, element) = self.rows(row, &t)?;
                array(n.mul(&m), element)
            }
            Prim::Transpose => {
                let (n, row) = self.array_of(&t.values[0], &t.place(0))?;
                let (m, element) = self.rows(row, &t)?;
                array(m, array(n, element))
            }
            Prim::Iterate | Prim::IterateSeq => {
                let (fun, result) = self.iterate(&t)?;
                funs.push(fun);
                result
            }
            Prim::Reorder | Prim::Reverse | Prim::Rotate => {
                let (n, element) = self.array_of(&t.values[0], &t.place(0))?;
                array(n, element)
            }
            Prim::Slide => {
                self.positive(&t, 0)?;
                self.positive(&t, 1)?;
                let (n, element) = self.array_of(&t.values[0], &t.place(0))?;
                let (w, s) = (size(0, &t), size(1, &t));
                self.not_longer(&w, &n, &t)?;
                let mut reach = n.sub(&w);
                // What no window covers is left out.
                if let Some(rest) = self.infer.sizes.rest(&reach, &s).filter(|rest| !rest.is_zero())
                {
                    let (covered, span) = (n.sub(&rest), t.values[0].span);
                    let ty = array(covered.clone(), element.clone());
                    let whole = t.values.swap_remove(0);
                    t.values.push(pattern(Prim::Take, vec![covered], vec![whole], ty, span));
                    reach = reach.sub(&rest);
                }
                let steps = self.infer.sizes.quotient(&reach, &s, t.size_spans[1]);
                array(steps.add(&Size::constant(1)), array(w, element))
            }
            Prim::Pad(_) => {
                let (n, element) = self.array_of(&t.values[0], &t.place(0))?;
                if t.values.len() == 2
                    && let Some(constant) = t.values.pop()
                {
                    t.values.push(self.filling(constant, &element)?);
                }
                array(size(0, &t).add(&n).add(&size(1, &t)), element)
            }
            Prim::Gather => {
                let (_, element) = self.array_of(&t.values[0], &t.place(0))?;
                let (m, index) = self.array_of(&t.values[1], &t.place(1))?;
                self.indices(&index, &t, 1)?;
                array(m, element)
            }
            Prim::Scatter => {
                let (n, element) = self.array_of(&t.values[0], &t.place(0))?;
                let (_, elements) = self.arrays(&t, 1)?;
                self.indices(&elements[0], &t, 1)?;
                let ty = array(n, element.clone());
                let what = format!("the elements of {}", t.place(2));
                let probe = t.values[2].stand_in(elements[1].clone());
                self.coerce(probe, &element, &what)?;
                ty
            }
            Prim::Histogram => {
                let (_, elements) = self.arrays(&t, 1)?;
                self.indices(&elements[0], &t, 1)?;
                funs.push(self.operator(&mut t, &elements[1])?);
                array(size(0, &t), elements[1].clone())
            }
            Prim::CountingSort => {
                let (n, elements) = self.arrays(&t, 0)?;
                self.indices(&elements[0], &t, 0)?;
                let counts = array(size(0, &t), elements[0].clone());
                Ty::Tuple(vec![counts, array(n, elements[1].clone())].into())
            }
            Prim::Few => {
                self.array_of(&t.values[0], &t.place(0))?;
                Ty::Scalar(ScalarType::Bool)
            }
            Prim::Sorted => t.values[1].ty.clone(),
            Prim::InOrder => t.values[2].ty.clone(),
            Prim::Iota => {
                let element = self.infer.fresh(Class::Integer);
                array(size(0, &t), element)
            }
            Prim::Replicate => array(size(0, &t), t.values[0].ty.clone()),
            Prim::Generate => {
                let index = self.infer.fresh(Class::Integer);
                let (fun, result) = self.fun(&t.funs[0], vec![index], &t.name)?;
                funs.push(fun);
                array(size(0, &t), result)
            }
            Prim::Concat => {
                let (n, element) = self.array_of(&t.values[0], &t.place(0))?;
                let (m, other) = self.array_of(&t.values[1], &t.place(1))?;
                let what = format!("the elements of {}", t.place(1));
                let probe = t.values[1].stand_in(other);
                self.coerce(probe, &element, &what)?;
                array(n.add(&m), element)
            }
            Prim::Take => {
                let (n, element) = self.array_of(&t.values[0], &t.place(0))?;
                self.not_longer(&size(0, &t), &n, &t)?;
                array(size(0, &t), element)
            }
            Prim::Drop => {
                let (n, element) = self.array_of(&t.values[0], &t.place(0))?;
                self.not_longer(&size(0, &t), &n, &t)?;
                array(n.sub(&size(0, &t)), element)
            }
            Prim::ToGlobal | Prim::ToLocal | Prim::ToPrivate => {
                let (fun, result) = self.fun(&t.funs[0], vec![t.values[0].ty.clone()], &t.name)?;
                funs.push(fun);
                result
            }
            Prim::ReorderStride => {
                self.positive(&t, 0)?;
                let (n, element) = self.array_of(&t.values[0], &t.place(0))?;
                self.infer.sizes.quotient(&n, &size(0, &t), t.size_spans[0]);
                array(n, element)
            }
            Prim::AsVector => {
                self.positive(&t, 0)?;
                let (n, element) = self.array_of(&t.values[0], &t.place(0))?;
                let w = size(0, &t);
                let vectors = self.vectors(&w, &element, t.values[0].span)?;
                array(self.infer.sizes.quotient(&n, &w, t.size_spans[0]), vectors)
            }
            Prim::AsScalar => {
                let (m, element) = self.array_of(&t.values[0], &t.place(0))?;
                let Some(w) = self.vector_width(&element) else {
                    if self.is_lost(&t.values[0].stand_in(element.clone())) {
                        return Err(Abort(None));
                    }
                    let found = self.infer.show(&element);
                    let message = format!(
                        "`asScalar` takes an array of vectors, but the elements are {found}"
                    );
                    return Err(self.error(Code::TypeMismatch, message, t.values[0].span).into());
                };
                let scalars = self.scalars(&w, &element, t.values[0].span)?;
                array(m.mul(&w), scalars)
            }
            Prim::Vectorize => {
                self.positive(&t, 0)?;
                let w = size(0, &t);
                let mut elements = vec![];
                for i in 0..t.values.len() {
                    let (ty, at) = (t.values[i].ty.clone(), t.values[i].span);
                    let scalar = self.scalars(&w, &ty, at)?;
                    let vector = self.vectors(&w, &scalar, at)?;
                    let what = t.place(i);
                    let node =
                        std::mem::replace(&mut t.values[i], Node::new(NodeKind::Hole, ty, at));
                    t.values[i] = self.coerce(node, &vector, &what)?;
                    elements.push(scalar);
                }
                let (fun, result) = self.fun(&t.funs[0], elements, &t.name)?;
                funs.push(fun);
                self.vectors(&w, &result, span)?
            }
        };
        let node = |prim, funs, sizes, args| {
            Node::new(NodeKind::Prim { prim, funs, sizes, args }, ty.clone(), span)
        };
        let whole = match (prim, t.sizes.as_slice()) {
            // In the reversed array, a rotation goes the other way.
            (Prim::Rotate, [k]) if k.is_below_zero() => {
                let reversed = node(Prim::Reverse, vec![], vec![], t.values);
                let rotated = node(Prim::Rotate, vec![], vec![k.neg()], vec![reversed]);
                node(Prim::Reverse, vec![], vec![], vec![rotated])
            }
            _ => node(prim, funs, t.sizes, t.values),
        };
        self.defining(whole, t.lets)
    }

    /// Returns the constant of `pad` as an element of the array. One that has fewer dimensions than the elements is
    /// repeated.
    fn filling(&mut self, constant: Node, element: &Ty) -> Res<Node> {
        let known = !matches!(self.infer.shallow(&constant.ty), Ty::Meta(i) if self.infer.class(i) == Class::Any);
        if let Ty::Array(n, inner) = self.infer.shallow(element)
            && known
            && self.dimensions(element) > self.dimensions(&constant.ty)
        {
            let span = constant.span;
            let one = self.filling(constant, &inner)?;
            let ty = array(n.clone(), one.ty.clone());
            return Ok(pattern(Prim::Replicate, vec![n], vec![one], ty, span));
        }
        self.coerce(constant, element, "the constant of `pad`")
    }

    fn rows(&mut self, row: Ty, t: &Taken<'a>) -> Res<(Size, Ty)> {
        let node = t.values[0].stand_in(row);
        self.array_of(&node, &format!("every element of {}", t.place(0)))
    }

    fn indices(&mut self, index: &Ty, t: &Taken<'a>, i: usize) -> Res<()> {
        let node = t.values[i].stand_in(index.clone());
        self.restrict(&node, Class::Integer, &format!("every element of {}", t.place(i)))
    }

    fn unzip(&mut self, mut t: Taken<'a>, span: Span) -> Res<Node> {
        let width = match t.name.trim_matches('`').trim_start_matches("unzip") {
            "" => 2,
            digits => digits.parse().unwrap_or(2),
        };
        let (n, element) = self.array_of(&t.values[0], &t.place(0))?;
        let parts: Vec<Ty> = (0..width).map(|_| self.infer.fresh(Class::Any)).collect();
        if self.infer.unify(&Ty::Tuple(parts.clone().into()), &element, span).is_err() {
            let found = self.infer.show(&element);
            let message = format!(
                "{} takes an array of tuples of {width}, but the elements are {found}",
                t.name
            );
            return Err(self.error(Code::TypeMismatch, message, t.values[0].span).into());
        }
        let ty = Ty::Tuple(parts.into_iter().map(|p| array(n.clone(), p)).collect());
        let args = std::mem::take(&mut t.values);
        let kind = NodeKind::Prim { prim: Prim::Unzip, funs: vec![], sizes: vec![], args };
        self.defining(Node::new(kind, ty, span), t.lets)
    }

    /// Elaborates the function of `iterate`, and returns it with the result type. The function is first tried on an
    /// array of unknown length. If it requires the first array's length, it must keep that length.
    fn iterate(&mut self, t: &Taken<'a>) -> Res<(Fun, Ty)> {
        if let Ty::Array(n, element) = self.infer.shallow(&t.values[0].ty) {
            let snapshot = self.snapshot();
            match self.iterate_any_length(t, &n, &element) {
                Ok(Some(done)) if self.clean_since(&snapshot) => return Ok(done),
                Err(abort @ Abort(Some(_))) if self.clean_since(&snapshot) && is_final(&abort) => {
                    return Err(abort);
                }
                Ok(_) | Err(_) => self.restore(snapshot),
            }
        }
        let ty = t.values[0].ty.clone();
        let (mut fun, result) = self.fun(&t.funs[0], vec![ty.clone()], &t.name)?;
        let what = format!("the result of the function of {}", t.name);
        fun.body = Box::new(self.coerce(Node { ty: result, ..*fun.body }, &ty, &what)?);
        Ok((fun, ty))
    }

    fn iterate_any_length(
        &mut self,
        t: &Taken<'a>,
        n: &Size,
        element: &Ty,
    ) -> Res<Option<(Fun, Ty)>> {
        let before = self.infer.sizes.divides.len();
        let name = self.infer.sizes.fresh_rigid();
        let length = Size::var(&name);
        let param = array(length.clone(), element.clone());
        let (fun, result) = self.fun(&t.funs[0], vec![param], &t.name)?;
        let Ty::Array(after, after_element) = self.infer.shallow(&result) else { return Ok(None) };
        if self.infer.unify(element, &after_element, t.span).is_err()
            || self.infer.sizes.escapes(&name)
        {
            return Ok(None);
        }
        let after = self.infer.sizes.resolve(&after);
        if after == length {
            self.infer.sizes.assign(&name, n.clone());
            return Ok(Some((fun, array(n.clone(), element.clone()))));
        }
        let whole = |q: Size| (!q.mentions(&name) && !q.has_quotient()).then_some(q);
        let (up, down) = (whole(after.div(&length)), whole(length.div(&after)));
        if up.is_none() && down.is_none() {
            if !after.mentions(&name) {
                return Ok(None);
            }
            let message =
                "the function of `iterate` must keep the length or change it by a fixed factor";
            let d = self.error(Code::SizeMismatch, message, t.funs[0].span);
            let shown = after.substitute(&|v| (v == name).then(|| Size::var("length")));
            return Err(d
                .note(format!("from `length` it makes {}", self.infer.show_size(&shown)))
                .into());
        }
        let times = t.sizes.first().and_then(Size::as_constant);
        let Some(times) = times.and_then(|k| u32::try_from(k).ok()).filter(|k| *k <= 62) else {
            let message = "the number of times must be a number up to 62 when the length changes";
            let span = t.size_spans.first().copied().unwrap_or(t.span);
            return Err(self.error(Code::Ambiguous, message, span).into());
        };
        // A condition on the length of the argument applies to the length in every iteration.
        let demands = self.infer.sizes.divides.split_off(before);
        for mut demand in demands {
            demand.dividend = self.infer.sizes.resolve(&demand.dividend);
            demand.divisor = self.infer.sizes.resolve(&demand.divisor);
            let mentions = demand.dividend.mentions(&name) || demand.divisor.mentions(&name);
            if !mentions {
                self.infer.sizes.divides.push(demand);
                continue;
            }
            if demand.dividend == length && Some(&demand.divisor) == down.as_ref() {
                continue;
            }
            for j in 0..times {
                let now = match (&up, &down) {
                    (Some(up), _) => n.mul(&up.pow(j)),
                    (None, Some(down)) => n.div(&down.pow(j)),
                    (None, None) => n.clone(),
                };
                let put = |v: &str| (v == name).then(|| now.clone());
                let mut demand = demand.clone();
                demand.dividend = demand.dividend.substitute(&put);
                demand.divisor = demand.divisor.substitute(&put);
                self.infer.sizes.divides.push(demand);
            }
        }
        let last = match (up, down) {
            (Some(up), _) => n.mul(&up.pow(times)),
            (None, Some(down)) => self.infer.sizes.quotient(n, &down.pow(times), t.size_spans[0]),
            (None, None) => n.clone(),
        };
        self.iterates.push(name);
        Ok(Some((fun, array(last, element.clone()))))
    }
}

/// Returns whether an error of the first attempt would also occur in the second, or is more informative than that
/// of the second.
fn is_final(abort: &Abort) -> bool {
    matches!(&abort.0, Some(d) if d.message.contains("`iterate` must") || d.message.contains("number of times"))
}
