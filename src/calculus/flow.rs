//! Builds terms step by step from the type of their argument. Each step reads its sizes and types from the
//! result so far.

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
    /// Starts with an argument of this type.
    pub fn from(dom: &Ty) -> Flow {
        Flow(Term::id(dom))
    }

    /// Returns the term.
    pub fn term(self) -> Term {
        self.0
    }

    /// Returns the type of the result so far.
    pub fn ty(&self) -> &Ty {
        &self.0.ty().cod
    }

    /// Adds `f`.
    ///
    /// # Errors
    /// Like every step, when it does not fit the result so far.
    pub fn then(self, f: &Term) -> Built<Flow> {
        Ok(Flow(f.after(&self.0)?))
    }

    /// Adds the operator with these written sizes.
    pub fn op(self, op: Op, written: &[Size]) -> Built<Flow> {
        let f = Term::on(op, written, self.ty(), vec![])?;
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

    /// Adds `map f`, where `f` is built from steps on an element; adds nothing if there are no steps.
    pub fn map(self, f: impl FnOnce(Flow) -> Built<Flow>) -> Built<Flow> {
        let (n, t) = self.array()?;
        let f = f(Flow::from(&t))?.term();
        if *f.op() == Op::Id {
            return Ok(self);
        }
        let map = Term::new(Op::Map(MapKind::Plain), vec![n], vec![], vec![f])?;
        self.then(&map)
    }

    /// Adds `bimap f g`, where `f` and `g` are built from steps on the components.
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

    /// Adds `fork f g`, where `f` and `g` are built from steps on the argument.
    pub fn fork(
        self,
        f: impl FnOnce(Flow) -> Built<Flow>,
        g: impl FnOnce(Flow) -> Built<Flow>,
    ) -> Built<Flow> {
        let x = self.ty().clone();
        let (f, g) = (f(Flow::from(&x))?.term(), g(Flow::from(&x))?.term());
        self.then(&Term::new(Op::Fork, vec![], vec![], vec![f, g])?)
    }

    /// Adds `bimap f id`.
    pub fn first(self, f: impl FnOnce(Flow) -> Built<Flow>) -> Built<Flow> {
        self.both(f, Ok)
    }

    /// Adds `bimap id g`.
    pub fn second(self, g: impl FnOnce(Flow) -> Built<Flow>) -> Built<Flow> {
        self.both(Ok, g)
    }

    /// `split k`.
    pub fn split(self, k: &Size) -> Built<Flow> {
        self.op(Op::Split, std::slice::from_ref(k))
    }

    /// `join`.
    pub fn join(self) -> Built<Flow> {
        self.op(Op::Join, &[])
    }

    /// `asVector w`.
    pub fn as_vector(self, w: &Size) -> Built<Flow> {
        self.op(Op::AsVector, std::slice::from_ref(w))
    }

    /// Adds `asScalar` of vectors of `w`, a width that the type does not show if a vector has no components.
    pub fn as_scalar(self, w: &Size) -> Built<Flow> {
        let (m, t) = self.array()?;
        let Some(t) = t.unvector(w) else { return unfit("a lane", &t) };
        let f = Term::new(Op::AsScalar, vec![w.clone(), m], vec![t], vec![])?;
        self.then(&f)
    }

    /// `transpose`.
    pub fn transpose(self) -> Built<Flow> {
        self.op(Op::Transpose, &[])
    }

    /// `zip`.
    pub fn zip(self) -> Built<Flow> {
        self.op(Op::Zip, &[])
    }

    /// `unzip`.
    pub fn unzip(self) -> Built<Flow> {
        self.op(Op::Unzip, &[])
    }

    /// `cross`.
    pub fn cross(self) -> Built<Flow> {
        self.op(Op::Cross, &[])
    }

    /// `distl`.
    pub fn distl(self) -> Built<Flow> {
        self.op(Op::Distl, &[])
    }

    /// `distr`.
    pub fn distr(self) -> Built<Flow> {
        self.op(Op::Distr, &[])
    }

    /// Adds `padLast r`, unless the length is `r` already.
    pub fn pad_last(self, r: &Size) -> Built<Flow> {
        let same = self.array()?.0 == *r;
        if same { Ok(self) } else { self.op(Op::PadLast, std::slice::from_ref(r)) }
    }

    /// Adds `padTo r z` for elements of this value, unless the length is `r` already.
    pub fn pad_to(self, r: &Size, z: Term) -> Built<Flow> {
        if self.array()?.0 == *r {
            return Ok(self);
        }
        let f = Term::on(Op::PadTo, std::slice::from_ref(r), self.ty(), vec![z])?;
        self.then(&f)
    }

    /// Adds `take n`, unless the length is `n` already.
    pub fn take(self, n: &Size) -> Built<Flow> {
        let same = self.array()?.0 == *n;
        if same { Ok(self) } else { self.op(Op::Take, std::slice::from_ref(n)) }
    }

    /// `mask r`.
    pub fn mask(self, r: &Size) -> Built<Flow> {
        self.op(Op::Mask, std::slice::from_ref(r))
    }

    /// `replicate n`.
    pub fn replicate(self, n: &Size) -> Built<Flow> {
        self.op(Op::Replicate, std::slice::from_ref(n))
    }

    /// Adds `reduceSeq op z`, where `op` is built from steps on a pair of accumulator and element.
    pub fn reduce_seq(self, op: impl FnOnce(Flow) -> Built<Flow>, z: Term) -> Built<Flow> {
        let (n, t) = self.array()?;
        let op = op(Flow::from(&Ty::pair(&z.ty().cod, &t)))?.term();
        let kind = Op::Reduce(super::term::ReduceKind::Seq);
        let reduce = Term::new(kind, vec![n], vec![], vec![op, z])?;
        self.then(&reduce)
    }
}
