//! Prints expressions and indices in OpenCL C.

use super::Printer;
use super::halves;
use super::products;
use super::types::{c_type, literal, vector_suffix};
use crate::calculus::scalar::Lit;
use crate::kernel::facts::Guard;
use crate::kernel::index::{Atom, Index};
use crate::kernel::ir::pieces::Order;
use crate::kernel::ir::{Check, ElemTy, Expr, Mem};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;

/// Precedence of C's operators, lowest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Prec {
    Ternary,
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equal,
    Compare,
    Shift,
    Add,
    Mul,
    Unary,
    Primary,
}

/// C text with the precedence of its outermost operator.
pub(super) struct Text(pub(super) String, Prec);

impl Text {
    fn at(self, least: Prec) -> String {
        if self.1 >= least { self.0 } else { format!("({})", self.0) }
    }
}

fn primary(s: String) -> Text {
    Text(s, Prec::Primary)
}

fn infix(op: &str, p: Prec, a: Text, b: Text) -> Text {
    // The right operand is parenthesised at equal precedence, because float operations are not associative.
    let tighter = match p {
        Prec::Add => Prec::Mul,
        Prec::Mul => Prec::Unary,
        Prec::Compare | Prec::Equal => Prec::Add,
        _ => Prec::Unary,
    };
    let left = if matches!(p, Prec::Add | Prec::Mul) { p } else { tighter };
    Text(format!("{} {op} {}", a.at(left), b.at(tighter)), p)
}

impl Printer<'_> {
    /// Prints an index.
    pub(super) fn index(&self, i: &Index) -> Text {
        let mut out = String::new();
        let mut count = 0;
        let mut add = |negative: bool, s: String| {
            out.push_str(match (count, negative) {
                (0, true) => "-",
                (0, false) => "",
                (_, true) => " - ",
                (_, false) => " + ",
            });
            out.push_str(&s);
            count += 1;
        };
        let positive = i.terms().filter(|(_, c)| *c > 0);
        let negative = i.terms().filter(|(_, c)| *c < 0);
        // Prints `9 - i` instead of `-i + 9`.
        let first = i.constant() > 0 && i.terms().all(|(_, c)| c < 0);
        if first {
            add(false, self.number(i.constant()));
        }
        let mut last = Prec::Primary;
        for (a, c) in positive.chain(negative) {
            let t = self.atom(a);
            let (s, p) = match c.unsigned_abs() {
                1 => (t.at(Prec::Mul), Prec::Mul),
                k => {
                    let k = i64::try_from(k).unwrap_or(i64::MAX);
                    (format!("{} * {}", self.number(k), t.at(Prec::Unary)), Prec::Mul)
                }
            };
            last = if c == 1 { self.atom(a).1 } else { p };
            add(c < 0, s);
        }
        if !first && (i.constant() != 0 || i.terms().next().is_none()) {
            let c = i.constant();
            add(c < 0, self.number(c.saturating_abs()));
        }
        let p = match count {
            1 if out.starts_with('-') => Prec::Unary,
            1 => last,
            _ => Prec::Add,
        };
        Text(out, p)
    }

    fn number(&self, n: i64) -> String {
        if self.wide { format!("{n}L") } else { n.to_string() }
    }

    pub(super) fn atom(&self, a: &Atom) -> Text {
        if let Some((_, name)) = self.named.borrow().iter().rev().find(|(b, _)| b == a) {
            return primary(name.clone());
        }
        match a {
            Atom::Var(v) => {
                self.used.borrow_mut().insert(v.id);
                primary(v.name.to_string())
            }
            Atom::Div(x, k) => infix("/", Prec::Mul, self.index(x), primary(self.number(*k))),
            Atom::Mod(x, k) => infix("%", Prec::Mul, self.index(x), primary(self.number(*k))),
            Atom::Min(x, y) => primary(format!("min({}, {})", self.index(x).0, self.index(y).0)),
            Atom::Max(x, y) => primary(format!("max({}, {})", self.index(x).0, self.index(y).0)),
            Atom::Data(d) => {
                let (e, t) = (&*d.value, self.int());
                if matches!(e, Expr::Checked(..)) && c_type(e.ty()) == t {
                    return self.expr(e);
                }
                Text(format!("({t}){}", self.expr(e).at(Prec::Unary)), Prec::Unary)
            }
        }
    }

    /// Prints a condition on indices, with negative terms moved to the left: `i < n`.
    pub(super) fn guard(&self, g: &Guard) -> Text {
        let one = |x: &Index| {
            let mut small = Index::default();
            let mut great = Index::from(x.constant());
            for (a, c) in x.terms() {
                if c < 0 {
                    small = small.sub(&x.part(a));
                } else {
                    great = great.add(&x.part(a));
                }
            }
            if small == Index::default() {
                // great >= 0
                let c = great.constant();
                let great = great.plus(-c);
                return infix(
                    ">=",
                    Prec::Compare,
                    self.index(&great),
                    self.index(&Index::from(-c)),
                );
            }
            infix("<", Prec::Compare, self.index(&small), self.index(&great.plus(1)))
        };
        match g.0.as_slice() {
            [] => primary("true".to_owned()),
            [x] => one(x),
            xs => Text(
                xs.iter().map(|x| one(x).at(Prec::Equal)).collect::<Vec<_>>().join(" && "),
                Prec::And,
            ),
        }
    }

    /// Returns a memory access of this type as an lvalue, for loads and stores; `None` if OpenCL needs a function.
    pub(super) fn place(&self, m: Mem, t: ElemTy, i: &Index, constant: bool) -> Option<String> {
        let name = self.memory(m);
        let w = i64::try_from(t.width).unwrap_or(i64::MAX);
        if let Some(order) = self.order(m) {
            let fits = t.width != 3 && order.scalars % w == 0 && i.is_multiple_of(w);
            return fits.then(|| {
                // What differs between the loads of a work-item stays apart from what decides the order, so that compilers compute both
                // once.
                let parts = order.scalars / w;
                let [start, piece, turn] = order.parts(&i.div(w), parts).map(|i| self.index(&i));
                let turned = format!("({} ^ {})", piece.at(Prec::Mul), turn.at(Prec::Mul));
                let turned = if parts == 1 { turned } else { format!("{parts} * {turned}") };
                format!("((local {}*){name})[{} + {turned}]", c_type(stored(t)), start.0)
            });
        }
        if t.width == 1 {
            return Some(format!("{name}[{}]", self.index(i).0));
        }
        // A vector of three is as large as a vector of four in OpenCL, unlike in our arrays.
        if t.width == 3 || !i.is_multiple_of(w) {
            return None;
        }
        let space = match m {
            Mem::Global(_) if constant => "global const ",
            Mem::Global(_) => "global ",
            Mem::Local(_) => "local ",
            Mem::Private(_) => "private ",
        };
        let c = c_type(stored(t));
        Some(format!("(({space}{c}*){name})[{}]", self.index(&i.div(w)).0))
    }

    /// Returns the order of the pieces of an array whose rows have orders of their own.
    pub(super) fn order(&self, m: Mem) -> Option<Order> {
        match m {
            Mem::Local(a) => self.kernel.locals.get(a)?.order(),
            Mem::Global(_) | Mem::Private(_) => None,
        }
    }

    fn load(&self, m: Mem, t: ElemTy, i: &Index) -> Text {
        if i.has_data() {
            let array = self.memory(m);
            i.visit_data(&mut |e| self.checks.note(e, &array));
        }
        let place = self.place(m, t, i, true);
        if place.is_none() && self.order(m).is_some() {
            let lanes = (0_i64..)
                .take(t.width)
                .map(|lane| Expr::Load(m, ElemTy::scalar(t.scalar), i.plus(lane)));
            return self.expr(&Expr::Vector(lanes.collect()));
        }
        let raw = place.unwrap_or_else(|| {
            format!("vload{}(0, {} + {})", t.width, self.memory(m), self.index(i).at(Prec::Mul))
        });
        match (t.scalar, t.width) {
            (ScalarType::Bool, 1) => Text(format!("{raw} != 0"), Prec::Equal),
            (ScalarType::Bool, w) => Text(format!("convert_int{w}({raw}) != 0"), Prec::Equal),
            _ => primary(raw),
        }
    }

    /// Prints an expression.
    pub(super) fn expr(&self, e: &Expr) -> Text {
        match e {
            Expr::Lit(l) => {
                let s = literal(*l);
                let p = if s.starts_with('-') || (s.starts_with('(') && !s.ends_with(')')) {
                    Prec::Unary
                } else {
                    Prec::Primary
                };
                Text(s, p)
            }
            Expr::Arg(k, t) => {
                let name = self.scalar(*k);
                if *t == ScalarType::Bool {
                    Text(format!("{name} != 0"), Prec::Equal)
                } else {
                    primary(name)
                }
            }
            Expr::Reg(r) => primary(r.name.to_string()),
            Expr::Index(i, t) => {
                let plain = if self.wide { ScalarType::I64 } else { ScalarType::I32 };
                let text = self.index(i);
                if *t == plain {
                    text
                } else {
                    let s = format!("({}){}", c_type(ElemTy::scalar(*t)), text.at(Prec::Unary));
                    Text(s, Prec::Unary)
                }
            }
            Expr::Load(m, t, i) => self.load(*m, *t, i),
            Expr::Op(op, t, es) => self.operation(*op, *t, es),
            Expr::Checked(check, es) => self.checked(*check, es),
            Expr::If(c, a, b) => self.ternary(self.expr(c), a, b),
            Expr::Guarded(g, a, b) => self.ternary(self.guard(g), a, b),
            Expr::Splat(e, w) => {
                let t = ElemTy { width: *w, ..e.ty() };
                let x = self.lane_value(e);
                primary(format!("(({})({x}))", c_type(t)))
            }
            Expr::Vector(es) => {
                let lanes: Vec<String> = es.iter().map(|e| self.lane_value(e)).collect();
                primary(format!("(({})({}))", c_type(e.ty()), lanes.join(", ")))
            }
            Expr::Matrices(turned, e) => {
                self.needed.matrices.set(true);
                let loaded = products::matrices(*turned, &self.expr(e).0);
                let is_float = e.ty().scalar.is_float();
                primary(if is_float { format!("as_float4({loaded})") } else { loaded })
            }
            Expr::Products(of, es) => {
                self.needed.products.borrow_mut().insert(*of);
                self.call(products::function(*of), es)
            }
            Expr::Lane(v, k) => {
                let s = format!("{}.s{k:x}", self.expr(v).at(Prec::Primary));
                if v.ty().scalar == ScalarType::Bool {
                    Text(format!("{s} != 0"), Prec::Equal)
                } else {
                    primary(s)
                }
            }
        }
    }

    /// Prints a scalar as a vector lane: truth values become masks.
    fn lane_value(&self, e: &Expr) -> String {
        if e.ty().scalar == ScalarType::Bool {
            format!("{} ? -1 : 0", self.expr(e).at(Prec::Or))
        } else {
            self.expr(e).0
        }
    }

    fn ternary(&self, c: Text, a: &Expr, b: &Expr) -> Text {
        let s = format!(
            "{} ? {} : {}",
            c.at(Prec::Or),
            self.expr(a).at(Prec::Or),
            self.expr(b).at(Prec::Or)
        );
        // In C, a choice between narrow integers has type `int`, which makes calls with it ambiguous to some compilers.
        narrowed(a.ty(), Text(s, Prec::Ternary))
    }

    fn call(&self, name: &str, es: &[Expr]) -> Text {
        let args: Vec<String> = es.iter().map(|e| self.expr(e).0).collect();
        primary(format!("{name}({})", args.join(", ")))
    }

    fn checked(&self, check: Check, es: &[Expr]) -> Text {
        let (name, noted) = self.checks.call(check, es);
        let mut args: Vec<String> = es.iter().map(|e| self.expr(e).0).collect();
        if let Check::Index(n) = check {
            args.push(n.to_string());
        }
        args.push(format!("&{noted}"));
        primary(format!("{name}({})", args.join(", ")))
    }

    fn operation(&self, op: ScalarOp, t: ElemTy, es: &[Expr]) -> Text {
        let from = es.first().map_or(t, Expr::ty);
        let x = |k: usize| es.get(k).map_or(primary(String::new()), |e| self.expr(e));
        let float = from.scalar.is_float();
        match op {
            ScalarOp::Add => Self::arithmetic("+", Prec::Add, t, x(0), x(1)),
            ScalarOp::Sub => Self::arithmetic("-", Prec::Add, t, x(0), x(1)),
            ScalarOp::Mul => Self::arithmetic("*", Prec::Mul, t, x(0), x(1)),
            ScalarOp::Div if float => infix("/", Prec::Mul, x(0), x(1)),
            ScalarOp::Div => narrowed(t, infix("/", Prec::Mul, x(0), x(1))),
            ScalarOp::Rem if float => self.call("fmod", es),
            ScalarOp::Rem => narrowed(t, infix("%", Prec::Mul, x(0), x(1))),
            ScalarOp::Pow if float => self.call("pow", es),
            ScalarOp::Pow => {
                self.needed.powers.borrow_mut().insert(t.scalar);
                let name = format!("pow_{}", t.scalar);
                if t.width == 1 {
                    self.call(&name, es)
                } else {
                    let lanes: Vec<String> = (0..t.width)
                        .map(|k| {
                            self.call(&name, &es.iter().map(|e| e.lane(k)).collect::<Vec<_>>()).0
                        })
                        .collect();
                    primary(format!("(({})({}))", c_type(t), lanes.join(", ")))
                }
            }
            ScalarOp::Eq => comparison(from, infix("==", Prec::Equal, x(0), x(1))),
            ScalarOp::Ne => comparison(from, infix("!=", Prec::Equal, x(0), x(1))),
            ScalarOp::Lt => comparison(from, infix("<", Prec::Compare, x(0), x(1))),
            ScalarOp::Le => comparison(from, infix("<=", Prec::Compare, x(0), x(1))),
            ScalarOp::Gt => comparison(from, infix(">", Prec::Compare, x(0), x(1))),
            ScalarOp::Ge => comparison(from, infix(">=", Prec::Compare, x(0), x(1))),
            ScalarOp::And if t.width == 1 => {
                Text(format!("{} && {}", x(0).at(Prec::Equal), x(1).at(Prec::Equal)), Prec::And)
            }
            ScalarOp::Or if t.width == 1 => {
                Text(format!("{} || {}", x(0).at(Prec::Equal), x(1).at(Prec::Equal)), Prec::Or)
            }
            ScalarOp::Not if t.width == 1 => {
                Text(format!("!{}", x(0).at(Prec::Unary)), Prec::Unary)
            }
            ScalarOp::And => infix("&", Prec::BitAnd, x(0), x(1)),
            ScalarOp::Or => infix("|", Prec::BitOr, x(0), x(1)),
            ScalarOp::Not => Text(format!("~{}", x(0).at(Prec::Unary)), Prec::Unary),
            ScalarOp::BitAnd => narrowed(t, infix("&", Prec::BitAnd, x(0), x(1))),
            ScalarOp::BitOr => narrowed(t, infix("|", Prec::BitOr, x(0), x(1))),
            ScalarOp::BitXor => narrowed(t, infix("^", Prec::BitXor, x(0), x(1))),
            ScalarOp::BitNot => {
                narrowed(t, Text(format!("~{}", x(0).at(Prec::Unary)), Prec::Unary))
            }
            // Lowering ensures that the number of places is less than the number of bits.
            ScalarOp::Shl => Self::arithmetic("<<", Prec::Shift, t, x(0), x(1)),
            ScalarOp::Shr => narrowed(t, infix(">>", Prec::Shift, x(0), x(1))),
            ScalarOp::Popcount | ScalarOp::Clz => {
                cast(from, t, self.call(op.function().unwrap_or_default(), es))
            }
            ScalarOp::Ctz => {
                // OpenCL C 1.2 has no such function. These are the zeros below the lowest one, as ones.
                let [x] = es else { return primary(String::new()) };
                let one = Expr::Lit(Lit::int(from.scalar, 1)).widen(from.width);
                let less = Expr::Op(ScalarOp::Sub, from, vec![x.clone(), one]);
                let others = Expr::Op(ScalarOp::BitNot, from, vec![x.clone()]);
                let below = Expr::Op(ScalarOp::BitAnd, from, vec![others, less]);
                self.operation(ScalarOp::Popcount, t, &[below])
            }
            ScalarOp::MulHi => self.call("mul_hi", es),
            ScalarOp::OrderKey if float => {
                self.needed.keys.borrow_mut().insert(from.scalar);
                let of = |e: &Expr| {
                    let e = std::slice::from_ref(e);
                    self.call(&format!("order_key_{}", from.scalar), e).0
                };
                let Some(e) = es.first() else { return primary(String::new()) };
                if t.width == 1 {
                    return primary(of(e));
                }
                let lanes: Vec<String> = (0..t.width).map(|k| of(&e.lane(k))).collect();
                primary(format!("(({})({}))", c_type(t), lanes.join(", ")))
            }
            ScalarOp::OrderKey if from.scalar.is_signed() => {
                let sign = Lit::int(t.scalar, 1 << (t.scalar.bits() - 1));
                let sign = self.expr(&Expr::Lit(sign).widen(t.width));
                narrowed(t, infix("^", Prec::BitXor, reinterpret(t, x(0)), sign))
            }
            ScalarOp::OrderKey => x(0),
            // Halves are kept as their bits where a device does not calculate with them.
            ScalarOp::Bits if halves::are_bits(from.scalar, t.scalar, self.program.halves) => x(0),
            ScalarOp::Bits => primary(format!("as_{}({})", c_type(t), x(0).0)),
            ScalarOp::IsNan | ScalarOp::IsInf => {
                let test = self.call(op.function().unwrap_or_default(), es);
                if t.width == 1 {
                    infix("!=", Prec::Equal, test, primary("0".to_owned()))
                } else {
                    comparison(from, test)
                }
            }
            ScalarOp::Neg if float => Text(format!("-{}", x(0).at(Prec::Primary)), Prec::Unary),
            ScalarOp::Neg => {
                let zero = Expr::Lit(Lit::int(t.scalar, 0));
                let zero = self.expr(&zero.widen(t.width));
                Self::arithmetic("-", Prec::Add, t, zero, x(0))
            }
            ScalarOp::Abs if float => self.call("fabs", es),
            ScalarOp::Abs if t.scalar.is_signed() => {
                // PoCL's `abs` gives an arbitrary result for the least number if that is a constant. NVIDIA's compiler makes
                // one instruction of `max(y, max(x, -x))`, and that gives a wrong result.
                let [x] = es else { return primary(String::new()) };
                let zero = Expr::Lit(Lit::int(t.scalar, 0)).widen(t.width);
                let truth = ElemTy { scalar: ScalarType::Bool, ..t };
                let below = Expr::Op(ScalarOp::Lt, truth, vec![x.clone(), zero]);
                let negative = Expr::Op(ScalarOp::Neg, t, vec![x.clone()]);
                self.operation(ScalarOp::Select, t, &[below, negative, x.clone()])
            }
            ScalarOp::Abs => x(0),
            ScalarOp::Min if float => self.call("fmin", es),
            ScalarOp::Max if float => self.call("fmax", es),
            // `min` and `max` do not exist for truth values.
            ScalarOp::Min if t.scalar == ScalarType::Bool => infix("&", Prec::BitAnd, x(0), x(1)),
            ScalarOp::Max if t.scalar == ScalarType::Bool => infix("|", Prec::BitOr, x(0), x(1)),
            ScalarOp::Min => self.call("min", es),
            ScalarOp::Max => self.call("max", es),
            ScalarOp::Fma if !float => {
                let product = Self::arithmetic("*", Prec::Mul, t, x(0), x(1));
                Self::arithmetic("+", Prec::Add, t, product, x(2))
            }
            ScalarOp::Sign if float => self.call("sign", es),
            ScalarOp::Sign => {
                let zero = literal(Lit::int(from.scalar, 0));
                let (below, above) = (
                    infix("<", Prec::Compare, x(0), primary(zero.clone())),
                    infix(">", Prec::Compare, x(0), primary(zero.clone())),
                );
                // Comparisons give 1 for scalars and -1 for vector lanes.
                let difference = if t.width == 1 {
                    infix("-", Prec::Add, above, below)
                } else {
                    infix("-", Prec::Add, below, above)
                };
                // The difference of two comparisons is an `int`.
                let is_int = t == ElemTy::scalar(ScalarType::I32);
                if is_int { difference } else { reinterpret(t, difference) }
            }
            ScalarOp::Clamp if float => {
                let args = [x(0).0, x(1).0, x(2).0];
                primary(format!("fmin(fmax({}, {}), {})", args[0], args[1], args[2]))
            }
            ScalarOp::Clamp => self.call("clamp", es),
            ScalarOp::Select if t.width == 1 => match es {
                [_, a, b] => self.ternary(x(0), a, b),
                _ => primary(String::new()),
            },
            ScalarOp::Select => {
                let w = t.width;
                let mask = match t.scalar.bytes() {
                    // Truth values in vector registers are masks of four bytes.
                    _ if t.scalar == ScalarType::Bool => x(0).0,
                    4 => x(0).0,
                    1 => format!("convert_char{w}({})", x(0).0),
                    2 => format!("convert_short{w}({})", x(0).0),
                    _ => format!("convert_long{w}({})", x(0).0),
                };
                primary(format!("select({}, {}, {mask})", x(2).0, x(1).0))
            }
            ScalarOp::Cast(_)
                if [from, t].iter().any(|t| halves::is_kept(t.scalar, self.program.halves)) =>
            {
                self.needed.halves.borrow_mut().insert([from, t]);
                self.call(&halves::function(from, t), es)
            }
            ScalarOp::Cast(_) => cast(from, t, x(0)),
            // The other functions of floats have the same names in OpenCL C.
            _ => self.call(op.function().unwrap_or_default(), es),
        }
    }

    /// Prints integer arithmetic, which wraps: signed operations are done in the unsigned type.
    fn arithmetic(op: &str, p: Prec, t: ElemTy, a: Text, b: Text) -> Text {
        if t.scalar.is_float() {
            return infix(op, p, a, b);
        }
        let unsigned = ElemTy { scalar: t.scalar.unsigned(), ..t };
        if t.width > 1 {
            if t.scalar == unsigned.scalar {
                return infix(op, p, a, b);
            }
            let u = c_type(unsigned);
            let (a, b) = (primary(format!("as_{u}({})", a.0)), primary(format!("as_{u}({})", b.0)));
            return primary(format!("as_{}({})", c_type(t), infix(op, p, a, b).0));
        }
        match t.scalar {
            ScalarType::U32 | ScalarType::U64 => infix(op, p, a, b),
            _ => {
                // Narrow types are promoted to `int`, in which a product of `ushort`s may overflow.
                let wide = if t.scalar == ScalarType::I64 { "ulong" } else { "uint" };
                let up = |x: Text| Text(format!("({wide}){}", x.at(Prec::Unary)), Prec::Unary);
                let s = infix(op, p, up(a), up(b)).0;
                Text(format!("({})({s})", c_type(t)), Prec::Unary)
            }
        }
    }
}

/// Returns the type in memory: truth values are bytes.
pub(super) fn stored(t: ElemTy) -> ElemTy {
    match t.scalar {
        ScalarType::Bool => ElemTy { scalar: ScalarType::U8, ..t },
        _ => t,
    }
}

/// Converts a result that C computed as `int` back to its own type.
fn narrowed(t: ElemTy, x: Text) -> Text {
    if t.width == 1 && t.scalar.bytes() < 4 {
        Text(format!("({}){}", c_type(t), x.at(Prec::Unary)), Prec::Unary)
    } else {
        x
    }
}

fn reinterpret(t: ElemTy, x: Text) -> Text {
    if t.width == 1 {
        Text(format!("({}){}", c_type(t), x.at(Prec::Unary)), Prec::Unary)
    } else {
        primary(format!("as_{}({})", c_type(t), x.0))
    }
}

/// Vector comparisons give masks as wide as the operands; the printer always uses `int` masks.
fn comparison(from: ElemTy, x: Text) -> Text {
    if from.width == 1 || from.scalar.bytes() == 4 || from.scalar == ScalarType::Bool {
        x
    } else {
        primary(format!("convert_int{}({})", from.width, x.0))
    }
}

fn cast(from: ElemTy, to: ElemTy, x: Text) -> Text {
    let w = vector_suffix(to.width);
    match (from.scalar, to.scalar) {
        (a, b) if a == b => x,
        (_, ScalarType::Bool) if to.width == 1 => {
            infix("!=", Prec::Equal, x, primary("0".to_owned()))
        }
        (_, ScalarType::Bool) => {
            let zero = primary(format!("(({})(0))", c_type(from)));
            comparison(from, infix("!=", Prec::Equal, x, zero))
        }
        (ScalarType::Bool, _) if to.width > 1 => {
            let one = primary("1".to_owned());
            let bits = infix("&", Prec::BitAnd, x, one).0;
            primary(format!("convert_{}({bits})", c_type(to)))
        }
        // Values out of range become the nearest integer, as in the reference interpreter.
        (a, b) if a.is_float() && b.is_integer() => {
            primary(format!("convert_{}{w}_sat({})", c_type(ElemTy::scalar(b)), x.0))
        }
        _ if to.width > 1 => primary(format!("convert_{}({})", c_type(to), x.0)),
        _ => Text(format!("({}){}", c_type(to), x.at(Prec::Unary)), Prec::Unary),
    }
}
