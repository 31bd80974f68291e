//! Views: the values of lowering. A structural pattern changes how its result is indexed and emits
//! no code.

use crate::calculus::scalar::Lit;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::term::Term;
use crate::calculus::ty::Ty;
use crate::diag::{Code, Diagnostic};
use crate::kernel::ir::facts::{Facts, Guard};
use crate::kernel::ir::index::Index;
use crate::kernel::ir::walk::Fresh;
use crate::kernel::ir::{Block, ElemTy, Expr, Mem, Reg};
use crate::lang::types::ScalarType;
use indexmap::IndexMap;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// The reason why lowering cannot continue.
#[derive(Clone, Debug)]
pub enum Stop {
    /// Registers were indexed by this index, which is not constant. A loop over one of its
    /// variables must be unrolled.
    Dynamic(Index),
    /// A work-item reads an element that another one holds in its registers. The result of this
    /// term must lie in local memory.
    Elsewhere(Term),
    /// An error for the user.
    Error(Box<Diagnostic>),
}

/// Result of a lowering step.
pub type Step<T> = Result<T, Stop>;

impl From<Diagnostic> for Stop {
    fn from(d: Diagnostic) -> Self {
        Stop::Error(Box::new(d))
    }
}

/// Returns an error with this code.
pub fn stop<T>(code: Code, message: impl Into<String>) -> Step<T> {
    Err(Diagnostic::error(code, message).into())
}

/// A type whose sizes are numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Nothing.
    Unit,
    /// One scalar or vector.
    Elem(ElemTy),
    /// Two components.
    Pair(Box<Shape>, Box<Shape>),
    /// An array of this many elements.
    Array(i64, Box<Shape>),
}

impl Shape {
    /// Number of scalars and vectors, each array with the [room](Shape::room) it has in registers.
    pub fn elems(&self) -> i64 {
        match self {
            Shape::Unit => 0,
            Shape::Elem(_) => 1,
            Shape::Pair(a, b) => a.elems().saturating_add(b.elems()),
            Shape::Array(n, t) => t.room(*n).saturating_mul(t.elems()),
        }
    }

    /// Number of elements of this shape that registers for an array of `n` hold. An array without scalars has room
    /// for one element: code that reads one is generated, although it never runs.
    pub fn room(&self, n: i64) -> i64 {
        if n == 0 || self.scalars() == 0 { 1 } else { n }
    }

    /// Number of scalars, including those in vectors.
    pub fn scalars(&self) -> i64 {
        self.components()
            .iter()
            .map(|(t, n)| n.saturating_mul(i64::try_from(t.width).unwrap_or(i64::MAX)))
            .fold(0, i64::saturating_add)
    }

    /// Length of the longest array, including nested ones.
    pub fn longest(&self) -> i64 {
        match self {
            Shape::Unit | Shape::Elem(_) => 1,
            Shape::Pair(a, b) => a.longest().max(b.longest()),
            Shape::Array(n, t) => t.longest().max(*n),
        }
    }

    /// Returns the element type and the number of elements of each component.
    pub fn components(&self) -> Vec<(ElemTy, i64)> {
        match self {
            Shape::Unit => vec![],
            Shape::Elem(t) => vec![(*t, 1)],
            Shape::Pair(a, b) => [a.components(), b.components()].concat(),
            Shape::Array(n, t) => {
                t.components().into_iter().map(|(e, m)| (e, m.saturating_mul(*n))).collect()
            }
        }
    }

    /// Whether the shape contains no arrays.
    pub fn is_element(&self) -> bool {
        match self {
            Shape::Unit | Shape::Elem(_) => true,
            Shape::Pair(a, b) => a.is_element() && b.is_element(),
            Shape::Array(..) => false,
        }
    }
}

/// The place of one component of a value: its memory and the index of its first scalar.
#[derive(Clone, Debug)]
pub struct Slot {
    /// The memory.
    pub mem: Mem,
    /// The first scalar.
    pub index: Index,
    /// Distance between the elements of an array, in elements.
    pub step: i64,
}

impl Slot {
    /// Elements side by side from this scalar on.
    pub fn new(mem: Mem, index: Index) -> Slot {
        Slot { mem, index, step: 1 }
    }
}

type At = dyn Fn(&Index) -> Step<View>;

/// An array as a function of its index.
#[derive(Clone)]
pub struct ArrayView {
    /// Number of elements.
    pub len: i64,
    at: Rc<At>,
    /// For an array of vectors that was made from one array for each lane: those arrays, so that
    /// extracting a lane does not evaluate the others.
    lanes: Rc<[View]>,
}

/// A value during lowering.
#[derive(Clone)]
pub enum View {
    /// Nothing.
    Unit,
    /// A scalar or vector.
    Elem(Expr),
    /// Two components.
    Pair(Rc<View>, Rc<View>),
    /// An array.
    Array(ArrayView),
}

/// A computed index that is in `0..n` by a test or by the algorithm. States these bounds for the bounds checker, too.
pub fn within(at: Expr, n: i64) -> Index {
    Index::data(at).lesser(&Index::from(n - 1)).greater(&Index::from(0))
}

/// Returns the error for a term that is not what `what` says.
pub fn ill_formed<T>(what: &str) -> Step<T> {
    stop(Code::Internal, format!("code generation expected {what}"))
}

impl View {
    /// An array.
    pub fn array(len: i64, at: impl Fn(&Index) -> Step<View> + 'static) -> View {
        View::Array(ArrayView { len, at: Rc::new(at), lanes: Rc::new([]) })
    }

    /// A pair.
    pub fn pair(a: View, b: View) -> View {
        View::Pair(Rc::new(a), Rc::new(b))
    }

    /// Element `i` of an array.
    pub fn at(&self, i: &Index) -> Step<View> {
        match self {
            View::Array(a) => (a.at)(i),
            _ => ill_formed("an array"),
        }
    }

    /// First component.
    pub fn fst(&self) -> Step<View> {
        match self {
            View::Pair(a, _) => Ok((**a).clone()),
            _ => ill_formed("a pair"),
        }
    }

    /// Second component.
    pub fn snd(&self) -> Step<View> {
        match self {
            View::Pair(_, b) => Ok((**b).clone()),
            _ => ill_formed("a pair"),
        }
    }

    /// Returns the scalar or vector, if the view is one.
    pub fn expr(&self) -> Step<Expr> {
        match self {
            View::Elem(e) => Ok(e.clone()),
            _ => ill_formed("an element"),
        }
    }

    /// Widens every component to `w` lanes.
    pub fn widen(&self, w: usize) -> Step<View> {
        Ok(match self {
            View::Unit => View::Unit,
            View::Elem(e) => View::Elem(e.clone().widen(w)),
            View::Pair(a, b) => View::pair(a.widen(w)?, b.widen(w)?),
            View::Array(_) => return ill_formed("an element"),
        })
    }

    /// The value in memory, with one slot for each component.
    pub fn of_slots(shape: &Shape, slots: &[Slot]) -> Step<View> {
        Ok(match shape {
            Shape::Unit => View::Unit,
            Shape::Elem(t) => match slots {
                [s] => View::Elem(Expr::Load(s.mem, *t, s.index.clone())),
                _ => return ill_formed("one slot"),
            },
            Shape::Pair(a, b) => {
                let (x, y) = slots.split_at(a.components().len().min(slots.len()));
                View::pair(View::of_slots(a, x)?, View::of_slots(b, y)?)
            }
            Shape::Array(n, t) => {
                let (t, slots) = ((**t).clone(), slots.to_vec());
                View::array(*n, move |i| View::of_slots(&t, &advance(&t, &slots, i)))
            }
        })
    }

    /// The value in registers, one for each scalar or vector of the shape, in order.
    pub fn of_regs(shape: &Shape, regs: &[Reg]) -> Step<View> {
        Ok(match shape {
            Shape::Unit => View::Unit,
            Shape::Elem(_) => match regs {
                [r] => View::Elem(Expr::Reg(r.clone())),
                _ => return ill_formed("one register"),
            },
            Shape::Pair(a, b) => {
                let (x, y) = regs.split_at(elem_count(a).min(regs.len()));
                View::pair(View::of_regs(a, x)?, View::of_regs(b, y)?)
            }
            Shape::Array(n, t) => {
                let (t, regs) = ((**t).clone(), regs.to_vec());
                View::array(*n, move |i| {
                    chosen(&regs, elem_count(&t), i, &|r| View::of_regs(&t, r), &guarded)
                })
            }
        })
    }
}

/// Most elements of an array of registers among which an index that data decide chooses: the array is in memory otherwise, where an
/// access takes about as long as so many choices.
const CHOSEN: usize = 16;

/// Returns what `of` gives for the `i`-th chunk of registers. An index that data decide chooses between the chunks, in as many steps as
/// their number has binary digits; any other index must be a constant.
pub fn chosen<T>(
    regs: &[Reg],
    each: usize,
    i: &Index,
    of: &dyn Fn(&[Reg]) -> Step<T>,
    either: &dyn Fn(&Guard, T, T) -> Step<T>,
) -> Step<T> {
    let chunks = regs.len() / each.max(1);
    if !(2..=CHOSEN).contains(&chunks) || !i.has_data() {
        return of(chunk(regs, each, i)?);
    }
    fn among<T>(
        (from, to): (usize, usize),
        i: &Index,
        at: &dyn Fn(usize) -> Step<T>,
        either: &dyn Fn(&Guard, T, T) -> Step<T>,
    ) -> Step<T> {
        if to - from == 1 {
            return at(from);
        }
        let middle = usize::midpoint(from, to);
        let low = Guard::less(i, &Index::from(i64::try_from(middle).unwrap_or(i64::MAX)));
        let first = among((from, middle), i, at, either)?;
        either(&low, first, among((middle, to), i, at, either)?)
    }
    let at = |k: usize| of(&regs[k * each..(k + 1) * each]);
    among((0, chunks), i, &at, either)
}

fn elem_count(s: &Shape) -> usize {
    usize::try_from(s.elems()).unwrap_or(usize::MAX)
}

/// Returns the `i`-th chunk of registers. If there are several, `i` must be a constant.
fn chunk<'a>(regs: &'a [Reg], each: usize, i: &Index) -> Step<&'a [Reg]> {
    if regs.len() == each {
        return Ok(regs);
    }
    let Some(k) = i.as_constant() else {
        return Err(Stop::Dynamic(i.clone()));
    };
    // An index outside the registers occurs only in a branch that is not taken, so any register
    // will do.
    let most = (regs.len() / each.max(1)).saturating_sub(1);
    let start = usize::try_from(k.max(0)).unwrap_or(most).min(most).saturating_mul(each);
    match regs.get(start..start.saturating_add(each)) {
        Some(r) => Ok(r),
        None => ill_formed("an index within its registers"),
    }
}

/// Returns the slots of element `i` of an array of `t` that starts at `slots`.
pub fn advance(t: &Shape, slots: &[Slot], i: &Index) -> Vec<Slot> {
    t.components()
        .iter()
        .zip(slots)
        .map(|((e, m), s)| {
            let scalars = m.saturating_mul(i64::try_from(e.width).unwrap_or(1));
            Slot { index: s.index.add(&i.times(scalars.saturating_mul(s.step))), ..s.clone() }
        })
        .collect()
}

/// `a` where the guard holds, else `b`.
pub fn guarded(g: &Guard, a: View, b: View) -> Step<View> {
    match Facts::default().decide(g) {
        Some(true) => return Ok(a),
        Some(false) => return Ok(b),
        None => {}
    }
    // Drop conditions that always hold.
    let open = g.0.iter().filter(|c| !Facts::default().prove(c));
    let g = &Guard(open.cloned().collect());
    Ok(match (a, b) {
        (View::Unit, View::Unit) => View::Unit,
        (View::Elem(a), View::Elem(b)) => {
            match a {
                a if a == b => View::Elem(a),
                // Two conditions with the same value otherwise are one.
                Expr::Guarded(h, a, other) if *other == b => {
                    View::Elem(Expr::Guarded(g.and(&h), a, other))
                }
                a => View::Elem(Expr::Guarded(g.clone(), Arc::new(a), Arc::new(b))),
            }
        }
        (View::Pair(a1, a2), View::Pair(b1, b2)) => View::pair(
            guarded(g, (*a1).clone(), (*b1).clone())?,
            guarded(g, (*a2).clone(), (*b2).clone())?,
        ),
        (View::Array(a), View::Array(b)) => {
            let g = g.clone();
            View::array(a.len, move |i| guarded(&g, (a.at)(i)?, (b.at)(i)?))
        }
        _ => return ill_formed("two values of one type"),
    })
}

/// Combines lanes to a vector, component by component.
pub fn gather_lanes(lanes: &[View]) -> Step<View> {
    match lanes.first() {
        Some(View::Unit) => Ok(View::Unit),
        Some(View::Array(a)) => {
            let lanes: Rc<[View]> = lanes.into();
            let each = lanes.clone();
            let at = move |i: &Index| {
                gather_lanes(&each.iter().map(|x| x.at(i)).collect::<Step<Vec<_>>>()?)
            };
            Ok(View::Array(ArrayView { len: a.len, at: Rc::new(at), lanes }))
        }
        Some(View::Elem(e)) if e.ty().width > 1 => ill_formed("no vectors in the lanes of vectors"),
        Some(View::Elem(_)) => {
            let es = lanes.iter().map(View::expr).collect::<Step<Vec<_>>>()?;
            Ok(View::Elem(Expr::vector(es)))
        }
        Some(View::Pair(..)) => {
            let xs = lanes.iter().map(View::fst).collect::<Step<Vec<_>>>()?;
            let ys = lanes.iter().map(View::snd).collect::<Step<Vec<_>>>()?;
            Ok(View::pair(gather_lanes(&xs)?, gather_lanes(&ys)?))
        }
        None => ill_formed("lanes to make a vector of"),
    }
}

/// Returns lane `k` of a vector, component by component. In memory, `k` may be any index; in
/// registers, it must be a constant.
pub fn lane(v: &View, k: &Index) -> Step<View> {
    fn of(e: &Expr, k: &Index) -> Step<Expr> {
        if let Some(k) = k.as_constant() {
            return Ok(e.lane(usize::try_from(k).unwrap_or(0)));
        }
        match e {
            Expr::Load(m, t, i) => Ok(Expr::Load(*m, ElemTy::scalar(t.scalar), i.add(k))),
            Expr::Splat(e, _) => Ok((**e).clone()),
            Expr::Guarded(g, a, b) => {
                Ok(Expr::Guarded(g.clone(), Arc::new(of(a, k)?), Arc::new(of(b, k)?)))
            }
            _ => Err(Stop::Dynamic(k.clone())),
        }
    }
    match v {
        View::Elem(e) => Ok(View::Elem(of(e, k)?)),
        View::Pair(a, b) => Ok(View::pair(lane(a, k)?, lane(b, k)?)),
        View::Unit => Ok(View::Unit),
        View::Array(a) => {
            let known = k.as_constant().and_then(|k| a.lanes.get(usize::try_from(k).ok()?));
            let (a, k) = (a.clone(), k.clone());
            Ok(known.cloned().unwrap_or_else(|| View::array(a.len, move |i| lane(&(a.at)(i)?, &k))))
        }
    }
}

/// What terms that only rearrange are applied with. The closures of views share it.
pub struct Views {
    /// Values of all symbols.
    pub env: SizeEnv,
    /// The entry's parameters.
    pub inputs: IndexMap<Arc<str>, View>,
    /// For each scalar component of a parameter, its position among the kernel's scalar arguments.
    pub scalars: IndexMap<(Arc<str>, usize), usize>,
    /// Whether data-dependent indices and divisors are checked.
    pub checked: bool,
    /// The code of functions that are applied inside of views, while it is collected ([`Lowerer::emitted`]).
    ///
    /// [`Lowerer::emitted`]: super::lowerer::Lowerer::emitted
    pub inside: RefCell<Option<Inside>>,
}

/// Statements of functions that are applied inside of views.
#[derive(Default)]
pub struct Inside {
    /// New ids and names.
    pub names: Fresh,
    /// Open blocks, innermost last.
    pub blocks: Vec<Block>,
}

impl Views {
    /// The value of a size.
    pub fn size(&self, s: &Size) -> Step<i64> {
        match s.eval(&self.env) {
            Ok(n) => i64::try_from(n)
                .or_else(|_| stop(Code::SizeRange, format!("the size `{s}` is too large"))),
            Err(e) => stop(Code::SizeUnknown, e.to_string()),
        }
    }

    /// Returns the shape of a type.
    pub fn shape(&self, t: &Ty) -> Step<Shape> {
        Ok(match t {
            Ty::Unit => Shape::Unit,
            Ty::Scalar(s) => Shape::Elem(ElemTy::scalar(*s)),
            Ty::Vector(w, s) => match **s {
                Ty::Scalar(scalar) => {
                    let width = usize::try_from(self.size(w)?).unwrap_or(0);
                    if !matches!(width, 1 | 2 | 3 | 4 | 8 | 16) {
                        return stop(
                            Code::KernelLimit,
                            format!("OpenCL has no vectors of {width} elements"),
                        );
                    }
                    Shape::Elem(ElemTy { scalar, width })
                }
                _ => return ill_formed("a vector of scalars"),
            },
            Ty::Pair(a, b) => Shape::Pair(Box::new(self.shape(a)?), Box::new(self.shape(b)?)),
            Ty::Array(n, t) => Shape::Array(self.size(n)?, Box::new(self.shape(t)?)),
            Ty::Meta(m) => {
                return stop(Code::BadTerm, format!("the type variable `{m}` in a program"));
            }
        })
    }

    /// A size as a literal.
    pub fn size_lit(&self, s: &Size, t: ScalarType) -> Step<Expr> {
        Ok(Expr::Lit(Lit::int(t, i128::from(self.size(s)?))))
    }

    /// A scalar component of a parameter.
    pub fn scalar_input(&self, name: &Arc<str>, component: usize, t: ScalarType) -> Step<Expr> {
        match self.scalars.get(&(name.clone(), component)) {
            Some(i) => Ok(Expr::Arg(*i, t)),
            None => ill_formed("a known parameter"),
        }
    }
}
