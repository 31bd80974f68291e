//! Slices: which elements they choose, and their patterns. A slice between known places is `take` and `drop`, one of a
//! known length at a place that the program computes `generate count (\i -> xs[place + i])`.

use super::elab::{Abort, Checker, Res};
use super::env::Env;
use super::infer::{Class, Ty};
use super::ir::{Fun, Lit, Node, NodeKind};
use super::subscripts::{array, pattern, variable};
use crate::diag::{Code, Span};
use crate::lang::ast::{Expr, Slice};
use crate::lang::size::Size;
use crate::lang::typed::{Prim, ScalarOp, VarId};
use crate::lang::types::ScalarType;

/// What a slice chooses of an array of known length.
pub enum Range {
    /// `count` elements from `from` on, each `step` after the one before. With `backwards`, of the reversed array.
    Fixed {
        from: Size,
        count: Size,
        step: Size,
        /// Number of elements from the first to the last.
        reach: Size,
        backwards: bool,
    },
    /// `count` elements from a computed place on. The step may be negative.
    Moving { from: Node, count: Size, step: Size },
}

impl Range {
    /// Returns the number of elements.
    pub fn count(&self) -> &Size {
        match self {
            Range::Fixed { count, .. } | Range::Moving { count, .. } => count,
        }
    }

    /// Whether the program computes the place.
    pub fn is_moving(&self) -> bool {
        matches!(self, Range::Moving { .. })
    }
}

/// Returns whether an expression is arithmetic on numbers and sizes, and so a size.
fn is_of_sizes(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Lit(_) | NodeKind::Size(_) => true,
        NodeKind::Scalar(op, args) => {
            let of_sizes = match op {
                ScalarOp::Cast(to) => to.is_integer() && to.bytes() >= 4,
                ScalarOp::Neg | ScalarOp::Add | ScalarOp::Sub | ScalarOp::Mul => true,
                ScalarOp::Div | ScalarOp::Pow => true,
                _ => false,
            };
            of_sizes && args.iter().all(is_of_sizes)
        }
        _ => false,
    }
}

/// Returns a text that is the same for two expressions only if they have the same value.
fn identity(node: &Node) -> Option<String> {
    Some(match &node.kind {
        NodeKind::Var(v) => format!("v{}", v.0),
        NodeKind::Lit(lit) => format!("{lit:?}"),
        NodeKind::Size(size) => format!("[{size}]"),
        NodeKind::Proj(e, i) => format!("{}.{i}", identity(e)?),
        NodeKind::Index(a, i) => format!("{}[{}]", identity(a)?, identity(i)?),
        NodeKind::Scalar(op, args) => {
            let args: Vec<_> = args.iter().map(identity).collect::<Option<_>>()?;
            format!("{op:?}({})", args.join(","))
        }
        _ => return None,
    })
}

impl<'a> Checker<'a> {
    /// Returns an integer as a polynomial. What the program computes in it is a variable, named by its number in
    /// `computed`.
    fn polynomial(&mut self, node: &Node, computed: &mut Vec<Option<String>>) -> Res<Size> {
        match &node.kind {
            NodeKind::Lit(_) | NodeKind::Size(_) => return self.as_integer(node),
            NodeKind::Scalar(op, args) => match (op, args.as_slice()) {
                (ScalarOp::Neg, [a]) => return Ok(self.polynomial(a, computed)?.neg()),
                (ScalarOp::Add | ScalarOp::Sub | ScalarOp::Mul, [a, b]) => {
                    let (a, b) = (self.polynomial(a, computed)?, self.polynomial(b, computed)?);
                    return Ok(match op {
                        ScalarOp::Add => a.add(&b),
                        ScalarOp::Sub => a.sub(&b),
                        _ => a.mul(&b),
                    });
                }
                _ if is_of_sizes(node) => return self.as_integer(node),
                _ => {}
            },
            NodeKind::Hole => return Err(Abort(None)),
            _ => {}
        }
        let name = identity(node);
        let known = computed.iter().position(|other| name.is_some() && *other == name);
        let number = known.unwrap_or_else(|| {
            computed.push(name);
            computed.len() - 1
        });
        Ok(Size::var(&format!("#{number}")))
    }

    /// Returns `to - from`, if it does not depend on what the program computes.
    fn distance(&mut self, from: &Node, to: &Node) -> Res<Option<Size>> {
        let mut computed = vec![];
        let from = self.polynomial(from, &mut computed)?;
        let to = self.polynomial(to, &mut computed)?;
        let distance = self.infer.sizes.resolve(&to.sub(&from));
        let computes = distance.variables().iter().any(|v| v.starts_with('#'));
        Ok((!computes && !distance.overflowed()).then_some(distance))
    }

    /// Returns what a slice chooses of an array of `n` elements. `lets` gets the place, if it is computed.
    pub fn range(
        &mut self,
        slice: &'a Slice,
        n: &Size,
        env: &Env<'a>,
        lets: &mut Vec<(VarId, Node)>,
    ) -> Res<Range> {
        let mut given =
            |e: &'a Option<Expr>| e.as_ref().map(|e| Node { span: e.span, ..self.value(e, env) });
        let (from, to, step) = (given(&slice.from), given(&slice.to), given(&slice.step));
        let step = step.map_or(Ok(Size::constant(1)), |step| self.as_integer(&step))?;
        if step.is_zero() {
            let message = "the step of a slice must not be 0";
            return Err(self.error(Code::SizeRange, message, slice.span).into());
        }
        let backwards = step.is_below_zero();
        if let (Some(from), Some(to)) = (&from, &to)
            && !(is_of_sizes(from) && is_of_sizes(to))
        {
            self.restrict(from, Class::Integer, "a bound of a slice")?;
            self.restrict(to, Class::Integer, "a bound of a slice")?;
            if let Some(distance) = self.distance(from, to)? {
                let (length, apart) = match backwards {
                    true => (distance.neg(), step.neg()),
                    false => (distance, step.clone()),
                };
                let ends = [(&length, "ends before it begins"), (&n.sub(&length), "is too long")];
                self.within_array(&ends, n, backwards, slice.span)?;
                let (count, _) = self.counted(length, &apart, slice.span)?;
                let mut from = from.clone();
                // The places between the bounds need not be values of a short type.
                if matches!(self.infer.shallow(&from.ty), Ty::Scalar(s) if s.bytes() < 4) {
                    let (cast, at) = (ScalarOp::Cast(ScalarType::I32), from.span);
                    let kind = NodeKind::Scalar(cast, vec![from]);
                    from = Node::new(kind, Ty::Scalar(ScalarType::I32), at);
                }
                let from = self.shared(from, "from", lets);
                return Ok(Range::Moving { from, count, step });
            }
        }
        let mut given = |node: Option<Node>| node.map(|node| self.as_integer(&node)).transpose();
        let (from, to) = (given(from)?, given(to)?);
        let last = n.sub(&Size::constant(1));
        let (from, to, step) = if backwards {
            // Element `i` is number `n - 1 - i` of the reversed array.
            let turned = |bound: Size| last.sub(&bound);
            let to = to.map_or(n.clone(), turned);
            (from.map_or(Size::constant(0), turned), to, step.neg())
        } else {
            (from.unwrap_or(Size::constant(0)), to.unwrap_or(n.clone()), step)
        };
        let length = to.sub(&from);
        let ends = match backwards {
            true => ["begins after the last element", "ends before the first element"],
            false => ["begins before the first element", "ends after the last element"],
        };
        let sizes = [(&from, ends[0]), (&n.sub(&to), ends[1]), (&length, "ends before it begins")];
        self.within_array(&sizes, n, backwards, slice.span)?;
        let (count, reach) = self.counted(length, &step, slice.span)?;
        Ok(Range::Fixed { from, count, step, reach, backwards })
    }

    /// Refuses a slice of `n` elements of which one of these sizes is negative, for the reason beside it.
    fn within_array(
        &self,
        sizes: &[(&Size, &str)],
        n: &Size,
        backwards: bool,
        span: Span,
    ) -> Res<()> {
        let negative = |size: &Size| size.as_constant().is_some_and(|c| c < 0);
        let Some((_, wrong)) = sizes.iter().find(|(size, _)| negative(size)) else {
            return Ok(());
        };
        let n = self.infer.show_size(n);
        let message = format!("this slice of {n} elements {wrong}");
        let d = self.error(Code::SizeRange, message, span);
        if backwards {
            return Err(d.help("`a[i:j:-1]` has the elements from `i` down to `j + 1`").into());
        }
        let d = d.help("`a[i:j]` has the elements from `i` to `j - 1`, counted from 0");
        let n = if n.contains(' ') { format!("({n})") } else { n };
        let help = format!("all but the last are `a[:{n} - 1]`, and the last two `a[{n} - 2:]`");
        Err(d.help(help).into())
    }

    /// Returns how many of `length` elements are chosen at a distance of `step`, and the number of elements from the first
    /// to the last of these.
    fn counted(&mut self, length: Size, step: &Size, span: Span) -> Res<(Size, Size)> {
        let one = Size::constant(1);
        if *step == one || length.is_zero() {
            return Ok((length.clone(), length));
        }
        // A number that the length ends in can be rounded up: `2 * n - 1` has `n` even places. Of a step that is not known, 1 is
        // rounded up to a step.
        let number = length.sub(&length.without_constant()).as_constant().unwrap_or(0);
        let number = step.as_constant().map_or(i64::from(number == 1), |_| number);
        let whole = length.sub(&Size::constant(number));
        if !whole.is_multiple_of(step) {
            // Rounded up: `-n` and `n * (step - 1)` have the same rest.
            let opposite = length.mul(&step.sub(&one));
            if let Some(rest) = self.infer.sizes.rest(&opposite, step) {
                let reach = length.add(&rest);
                let count = self.infer.sizes.quotient(&reach, step, span);
                return Ok((count, reach.sub(step).add(&one)));
            }
            if self.stands_for_number(&whole) {
                let message = "the step need not divide this length, which is a number";
                return Err(self.error(Code::NotDivisible, message, span).into());
            }
        }
        let up = step.as_constant().map_or(number, |s| (number + s - 1).div_euclid(s));
        let up = Size::constant(up);
        let count = self.infer.sizes.quotient(&whole, step, span).add(&up);
        Ok((count, whole.add(&up.sub(&one).mul(step)).add(&one)))
    }

    /// Returns a slice of an array. With `inside`, computed places outside the array are moved to its ends.
    pub fn part(&mut self, node: Node, range: &Range, inside: bool, span: Span) -> Res<Node> {
        let (n, element) = self.sliced(&node, span)?;
        let (from, count, step, reach, backwards) = match range {
            Range::Fixed { from, count, step, reach, backwards } => {
                (from, count, step, reach, *backwards)
            }
            Range::Moving { .. } => {
                return self.moving(node, range, inside, span, |_, element| Ok(element));
            }
        };
        let mut node = node;
        let mut length = n;
        if backwards {
            node = pattern(Prim::Reverse, vec![], vec![node], array(&length, &element), span);
        }
        if !from.is_zero() {
            length = length.sub(from);
            let ty = array(&length, &element);
            node = pattern(Prim::Drop, vec![from.clone()], vec![node], ty, span);
        }
        let one = Size::constant(1);
        if !length.sub(reach).is_zero() {
            let ty = array(reach, &element);
            node = pattern(Prim::Take, vec![reach.clone()], vec![node], ty, span);
        }
        if *step == one || count.is_zero() {
            return Ok(node);
        }
        let ty = array(count, &array(&one, &element));
        let windows = pattern(Prim::Slide, vec![one, step.clone()], vec![node], ty, span);
        Ok(pattern(Prim::Join, vec![], vec![windows], array(count, &element), span))
    }

    /// Returns what `f` gives for each element of a slice at a computed place; `inside` as for [`Checker::part`]. So a slice of
    /// several dimensions is computed element by element, and no row is copied.
    pub fn moving(
        &mut self,
        node: Node,
        range: &Range,
        inside: bool,
        span: Span,
        f: impl FnOnce(&mut Self, Node) -> Res<Node>,
    ) -> Res<Node> {
        let Range::Moving { from, count, step } = range else { return Err(Abort(None)) };
        let (n, _) = self.sliced(&node, span)?;
        let mut lets = vec![];
        let node = self.shared(node, "xs", &mut lets);
        let part = self.generated(count, &from.ty, span, |this, i| {
            let place = this.place(from, step, i)?;
            let place = if inside { this.nearest(place, &n)? } else { place };
            let element = this.index(node, place, span)?;
            f(this, element)
        })?;
        self.defining(part, lets)
    }

    /// Returns the place of element `i` of a slice.
    fn place(&mut self, from: &Node, step: &Size, i: Node) -> Res<Node> {
        let (ty, span) = (from.ty.clone(), i.span);
        let backwards = step.is_below_zero();
        let apart = if backwards { step.neg() } else { step.clone() };
        let mut ahead = i;
        if apart != Size::constant(1) {
            let apart = Node::new(NodeKind::Size(apart), ty, span);
            ahead = self.scalar(ScalarOp::Mul, None, vec![ahead, apart], span)?;
        }
        let sum = if backwards { ScalarOp::Sub } else { ScalarOp::Add };
        self.scalar(sum, None, vec![from.clone(), ahead], span)
    }

    /// Returns the nearest index to a place in an array of `n` elements.
    fn nearest(&mut self, place: Node, n: &Size) -> Res<Node> {
        let (span, ty) = (place.span, Ty::Scalar(ScalarType::I64));
        let number = |kind| Node::new(kind, ty.clone(), span);
        let cast = ScalarOp::Cast(ScalarType::I64);
        let place = number(NodeKind::Scalar(cast, vec![place]));
        let first = number(NodeKind::Lit(Lit::Int(0)));
        let last = number(NodeKind::Size(n.sub(&Size::constant(1))));
        self.scalar(ScalarOp::Clamp, None, vec![place, first, last], span)
    }

    /// Returns `generate count f`, where `f` takes an index of this type.
    fn generated(
        &mut self,
        count: &Size,
        index: &Ty,
        span: Span,
        f: impl FnOnce(&mut Self, Node) -> Res<Node>,
    ) -> Res<Node> {
        let index = (self.fresh_var("i"), index.clone());
        let body = f(self, variable(&index, span))?;
        let ty = array(count, &body.ty);
        let funs = vec![Fun { params: vec![index], body: Box::new(body) }];
        let sizes = vec![count.clone()];
        let kind = NodeKind::Prim { prim: Prim::Generate, funs, sizes, args: vec![] };
        Ok(Node::new(kind, ty, span))
    }

    /// Returns the array with a new slice in place of its own.
    pub fn put_back(&mut self, node: Node, part: Node, range: &Range, span: Span) -> Res<Node> {
        let (n, element) = self.sliced(&node, span)?;
        let whole = array(&n, &element);
        let (from, count, step, backwards) = match range {
            Range::Fixed { from, count, step, backwards, .. } => (from, count, step, *backwards),
            Range::Moving { from, count, step } => {
                let places =
                    self.generated(count, &from.ty, span, |this, i| this.place(from, step, i))?;
                return Ok(pattern(Prim::Scatter, vec![], vec![node, places, part], whole, span));
            }
        };
        let turned = |node: Node| match backwards {
            true => pattern(Prim::Reverse, vec![], vec![node], whole.clone(), span),
            false => node,
        };
        let old = turned(node);
        if *step != Size::constant(1) {
            let ty = Ty::Scalar(ScalarType::I32);
            let from = Node::new(NodeKind::Size(from.clone()), ty.clone(), span);
            let places = self.generated(count, &ty, span, |this, i| this.place(&from, step, i))?;
            let args = vec![old, places, part];
            return Ok(turned(pattern(Prim::Scatter, vec![], args, whole.clone(), span)));
        }
        let end = from.add(count);
        let after = n.sub(&end);
        let mut parts = vec![];
        if !from.is_zero() {
            let ty = array(from, &element);
            parts.push(pattern(Prim::Take, vec![from.clone()], vec![old.clone()], ty, span));
        }
        parts.push(part);
        if !after.is_zero() {
            parts.push(pattern(Prim::Drop, vec![end], vec![old], array(&after, &element), span));
        }
        self.concatenated(parts, span).map(turned)
    }
}
