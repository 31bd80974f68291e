//! Building terms step by step from the type of their argument on: each step reads what it needs from
//! what is there so far.

use super::size::Size;
use super::term::{MapKind, Op, Term, TypeError};
use super::ty::Ty;

type Built<T> = Result<T, TypeError>;

/// A term under construction; the first step is applied first.
#[derive(Clone, Debug)]
pub struct Flow(Term);

fn unfit<T>(what: &str, t: &Ty) -> Built<T> {
    Err(TypeError(format!("{what} of `{t}`")))
}

impl Flow {
    /// Nothing done yet to an argument of this type.
    pub fn from(dom: &Ty) -> Flow {
        Flow(Term::id(dom))
    }

    /// The term.
    pub fn term(self) -> Term {
        self.0
    }

    /// What it gives so far.
    pub fn ty(&self) -> &Ty {
        &self.0.ty().cod
    }

    /// Then `f`.
    ///
    /// # Errors
    /// As every step: when it does not fit what is there.
    pub fn then(self, f: &Term) -> Built<Flow> {
        Ok(Flow(f.after(&self.0)?))
    }

    fn op(self, op: Op, sizes: Vec<Size>, tys: Vec<Ty>) -> Built<Flow> {
        let f = Term::new(op, sizes, tys, vec![])?;
        self.then(&f)
    }

    fn array(&self) -> Built<(Size, Ty)> {
        match self.ty() {
            Ty::Array(n, t) => Ok((n.clone(), (**t).clone())),
            t => unfit("an element", t),
        }
    }

    fn pair(&self) -> Built<(Ty, Ty)> {
        match self.ty() {
            Ty::Pair(a, b) => Ok(((**a).clone(), (**b).clone())),
            t => unfit("a component", t),
        }
    }

    fn matrix(&self) -> Built<(Size, Size, Ty)> {
        let (n, row) = self.array()?;
        match row {
            Ty::Array(m, t) => Ok((n, m, (*t).clone())),
            t => unfit("an element", &t),
        }
    }

    /// Two arrays: their lengths and elements.
    fn arrays(&self) -> Built<(Size, Ty, Size, Ty)> {
        match self.pair()? {
            (Ty::Array(n, a), Ty::Array(m, b)) => Ok((n, (*a).clone(), m, (*b).clone())),
            (a, _) => unfit("an element", &a),
        }
    }

    /// `map f`, given as steps on an element; nothing when there are none.
    pub fn map(self, f: impl FnOnce(Flow) -> Built<Flow>) -> Built<Flow> {
        let (n, t) = self.array()?;
        let f = f(Flow::from(&t))?.term();
        if *f.op() == Op::Id {
            return Ok(self);
        }
        let map = Term::new(Op::Map(MapKind::Plain), vec![n], vec![], vec![f])?;
        self.then(&map)
    }

    /// `bimap f g`, given as steps on the components.
    pub fn both(
        self,
        f: impl FnOnce(Flow) -> Built<Flow>,
        g: impl FnOnce(Flow) -> Built<Flow>,
    ) -> Built<Flow> {
        let (a, b) = self.pair()?;
        let (f, g) = (f(Flow::from(&a))?.term(), g(Flow::from(&b))?.term());
        if *f.op() == Op::Id && *g.op() == Op::Id {
            return Ok(self);
        }
        let both = Term::new(Op::Bimap, vec![], vec![], vec![f, g])?;
        self.then(&both)
    }

    /// `fork f g`, given as steps on the argument.
    pub fn fork(
        self,
        f: impl FnOnce(Flow) -> Built<Flow>,
        g: impl FnOnce(Flow) -> Built<Flow>,
    ) -> Built<Flow> {
        let x = self.ty().clone();
        let (f, g) = (f(Flow::from(&x))?.term(), g(Flow::from(&x))?.term());
        self.then(&Term::new(Op::Fork, vec![], vec![], vec![f, g])?)
    }

    /// `bimap f id`.
    pub fn first(self, f: impl FnOnce(Flow) -> Built<Flow>) -> Built<Flow> {
        self.both(f, Ok)
    }

    /// `bimap id g`.
    pub fn second(self, g: impl FnOnce(Flow) -> Built<Flow>) -> Built<Flow> {
        self.both(Ok, g)
    }

    /// `split k`.
    pub fn split(self, k: &Size) -> Built<Flow> {
        let (n, t) = self.array()?;
        if k.as_constant() == Some(0) {
            return unfit("a chunk of nothing", self.ty());
        }
        self.op(Op::Split, vec![k.clone(), n.div(k)], vec![t])
    }

    /// `join`.
    pub fn join(self) -> Built<Flow> {
        let (m, k, t) = self.matrix()?;
        self.op(Op::Join, vec![k, m], vec![t])
    }

    /// `transpose`.
    pub fn transpose(self) -> Built<Flow> {
        let (n, m, t) = self.matrix()?;
        self.op(Op::Transpose, vec![n, m], vec![t])
    }

    /// `zip`.
    pub fn zip(self) -> Built<Flow> {
        let (n, a, _, b) = self.arrays()?;
        self.op(Op::Zip, vec![n], vec![a, b])
    }

    /// `unzip`.
    pub fn unzip(self) -> Built<Flow> {
        let (n, t) = self.array()?;
        let (a, b) = Flow::from(&t).pair()?;
        self.op(Op::Unzip, vec![n], vec![a, b])
    }

    /// `cross`.
    pub fn cross(self) -> Built<Flow> {
        let (n, a, m, b) = self.arrays()?;
        self.op(Op::Cross, vec![n, m], vec![a, b])
    }

    /// `distl`.
    pub fn distl(self) -> Built<Flow> {
        let (a, b) = self.pair()?;
        let (n, b) = Flow::from(&b).array()?;
        self.op(Op::Distl, vec![n], vec![a, b])
    }

    /// `distr`.
    pub fn distr(self) -> Built<Flow> {
        let (a, b) = self.pair()?;
        let (n, a) = Flow::from(&a).array()?;
        self.op(Op::Distr, vec![n], vec![a, b])
    }

    /// `padLast r`; nothing when it is as long already.
    pub fn pad_last(self, r: &Size) -> Built<Flow> {
        let (n, t) = self.array()?;
        if n == *r { Ok(self) } else { self.op(Op::PadLast, vec![n, r.clone()], vec![t]) }
    }

    /// `take n`; nothing when it is as short already.
    pub fn take(self, n: &Size) -> Built<Flow> {
        let (r, t) = self.array()?;
        if r == *n { Ok(self) } else { self.op(Op::Take, vec![n.clone(), r], vec![t]) }
    }

    /// `mask r`.
    pub fn mask(self, r: &Size) -> Built<Flow> {
        let (n, t) = self.array()?;
        self.op(Op::Mask, vec![n, r.clone()], vec![t])
    }

    /// `replicate n`.
    pub fn replicate(self, n: &Size) -> Built<Flow> {
        let t = self.ty().clone();
        self.op(Op::Replicate, vec![n.clone()], vec![t])
    }

    /// `reduceSeq op z`, the operator given as steps on a pair of accumulator and element.
    pub fn reduce_seq(self, op: impl FnOnce(Flow) -> Built<Flow>, z: Term) -> Built<Flow> {
        let (n, t) = self.array()?;
        let op = op(Flow::from(&Ty::pair(&z.ty().cod, &t)))?.term();
        let kind = Op::Reduce(super::term::ReduceKind::Seq);
        let reduce = Term::new(kind, vec![n], vec![], vec![op, z])?;
        self.then(&reduce)
    }
}
