//! Patterns other than maps: each becomes its operator after its arguments.

use super::bracket::{Bracket, at, bringing, not_yet, project, splat};
use super::build::{Built, apply, bang, bimap, compose, elements, fork, halves, view};
use super::core::{Ex, Kind, Lambda, Layout};
use super::sizes::nest;
use super::{inner_problem, problem};
use crate::calculus::size::Size;
use crate::calculus::term::{Op, ReduceKind, ScanKind, Space, Term};
use crate::calculus::ty::Ty;
use crate::diag::{Code, Failure, Result, Span};
use crate::lang::typed::{PadMode, Prim};

impl Bracket {
    #[expect(clippy::too_many_lines, reason = "one arm for each pattern")]
    pub(super) fn prim(&mut self, e: &Ex, env: &Layout) -> Result<Term> {
        let span = e.span;
        let Kind::Prim(prim, funs, sizes, args) = &e.kind else {
            return Err(inner_problem("not a pattern", span));
        };
        let prim = *prim;
        let built = at(span);
        let short = || inner_problem("a pattern with too few arguments", span);
        let arg = |i: usize| args.get(i).ok_or_else(short);
        let fun = |i: usize| funs.get(i).ok_or_else(short);
        let size = |i: usize| sizes.get(i).cloned().ok_or_else(short);
        let array = |t: &Ty| elements(t).map_err(at(span));
        let length = |t: &Ty| Ok::<_, Failure>(array(t)?.0);
        if let Some(other) = self.in_other_patterns(e)? {
            return self.term(&other, env);
        }
        match prim {
            Prim::Reduce
            | Prim::ReduceComm
            | Prim::ReduceSeq
            | Prim::ReduceUnroll
            | Prim::Scan(_)
            | Prim::ReducePart => {
                let captured = fun(0)?.captures();
                if !(arg(0)?.free().is_empty() && captured.is_empty()) {
                    // Sequentially: then each element can bring the captured variables.
                    match prim {
                        Prim::Reduce | Prim::ReduceComm => {
                            return self.fold(fun(0)?, arg(0)?, arg(1)?, env, span);
                        }
                        Prim::ReduceSeq | Prim::ReduceUnroll if !arg(0)?.free().is_empty() => {
                            return self.fold(fun(0)?, arg(0)?, arg(1)?, env, span);
                        }
                        _ => {}
                    }
                }
                let prim = match prim {
                    Prim::Scan(ScanKind::Assoc) if !captured.is_empty() => {
                        Prim::Scan(ScanKind::Seq)
                    }
                    prim => prim,
                };
                let z = self.initial(arg(0)?)?;
                let mut xs = self.term(arg(1)?, env)?;
                let op = match (prim, fun(0)?.params.as_slice()) {
                    // A fold takes its elements one by one, so each can bring the captured variables.
                    (
                        Prim::ReduceSeq | Prim::ReduceUnroll | Prim::Scan(ScanKind::Seq),
                        [acc, x],
                    ) if !captured.is_empty() => {
                        let (element, brought) =
                            bringing(env, &captured, x, &xs).map_err(&built)?;
                        xs = brought;
                        let layout = Layout::Pair(Box::new(acc.clone()), Box::new(element));
                        self.term(&fun(0)?.body, &layout)?
                    }
                    _ => self.closed(fun(0)?, "an operator", span)?,
                };
                let (kind, written) = match prim {
                    Prim::ReduceComm => (Op::Reduce(ReduceKind::Comm), vec![]),
                    Prim::ReduceSeq => (Op::Reduce(ReduceKind::Seq), vec![]),
                    Prim::ReduceUnroll => (Op::Reduce(ReduceKind::Unroll), vec![]),
                    Prim::Scan(kind) => (Op::Scan(kind), vec![]),
                    Prim::ReducePart => (Op::ReducePart, vec![divisor(length(&e.ty)?, &xs, span)?]),
                    _ => (Op::Reduce(ReduceKind::Assoc), vec![]),
                };
                apply(kind, &written, vec![op, z], &xs).map_err(built)
            }
            Prim::Zip => {
                let (a, b) = (self.term(arg(0)?, env)?, self.term(arg(1)?, env)?);
                fork(&a, &b).and_then(|f| view(Op::Zip, &f)).map_err(built)
            }
            Prim::Unzip => {
                let xs = self.term(arg(0)?, env)?;
                unzip_after(&xs, &e.ty).map_err(built)
            }
            Prim::Split
            | Prim::Join
            | Prim::Transpose
            | Prim::Reorder
            | Prim::Reverse
            | Prim::Slide
            | Prim::Replicate
            | Prim::Take
            | Prim::Drop
            | Prim::Rotate
            | Prim::ReorderStride
            | Prim::AsVector
            | Prim::AsScalar => {
                let xs = self.term(arg(0)?, env)?;
                let (op, written) = match prim {
                    Prim::Split => (Op::Split, vec![length(&array(&e.ty)?.1)?]),
                    Prim::Join => (Op::Join, vec![]),
                    Prim::Transpose => (Op::Transpose, vec![]),
                    Prim::Reorder => (Op::Reorder, vec![]),
                    Prim::Reverse => (Op::Reverse, vec![]),
                    Prim::Slide => (Op::Slide, vec![size(0)?, size(1)?, length(&e.ty)?]),
                    Prim::Replicate => (Op::Replicate, vec![length(&e.ty)?]),
                    Prim::Take => (Op::Take, vec![length(&e.ty)?]),
                    Prim::Drop => (Op::Drop, vec![length(&e.ty)?]),
                    Prim::Rotate => (Op::Rotate, vec![size(0)?]),
                    Prim::ReorderStride => (Op::Stride, vec![divisor(size(0)?, &xs, span)?]),
                    Prim::AsVector => (Op::AsVector, vec![size(0)?]),
                    _ => (Op::AsScalar, vec![]),
                };
                apply(op, &written, vec![], &xs).map_err(built)
            }
            Prim::Pad(mode) => {
                let xs = self.term(arg(0)?, env)?;
                let z = match mode {
                    PadMode::Constant => vec![self.initial(arg(1)?)?],
                    PadMode::Clamp | PadMode::Wrap | PadMode::Mirror => vec![],
                };
                apply(Op::Pad(mode), &[size(0)?, length(&e.ty)?], z, &xs).map_err(built)
            }
            Prim::Gather => {
                let (xs, is) = (self.term(arg(0)?, env)?, self.term(arg(1)?, env)?);
                fork(&xs, &is).and_then(|both| view(Op::Gather, &both)).map_err(built)
            }
            Prim::Scatter => {
                let (dest, is) = (self.term(arg(0)?, env)?, self.term(arg(1)?, env)?);
                let vs = self.term(arg(2)?, env)?;
                let all = fork(&is, &vs).and_then(|u| fork(&dest, &u)).map_err(&built)?;
                apply(Op::Scatter, &[], vec![], &all).map_err(built)
            }
            Prim::Histogram => {
                let op = self.closed(fun(0)?, "an operator", span)?;
                let z = self.initial(arg(0)?)?;
                let (is, vs) = (self.term(arg(1)?, env)?, self.term(arg(2)?, env)?);
                let both = fork(&is, &vs).map_err(&built)?;
                apply(Op::Histogram, &[length(&e.ty)?], vec![op, z], &both).map_err(built)
            }
            Prim::CountingSort => {
                let (is, vs) = (self.term(arg(0)?, env)?, self.term(arg(1)?, env)?);
                let both = fork(&is, &vs).map_err(&built)?;
                apply(Op::CountingSort, &[size(0)?], vec![], &both).map_err(built)
            }
            Prim::Iota => {
                let (n, t) = array(&e.ty)?;
                Term::new(Op::Iota, vec![n], vec![env.ty(), t], vec![]).map_err(built)
            }
            Prim::Concat => {
                let (xs, ys) = (self.term(arg(0)?, env)?, self.term(arg(1)?, env)?);
                let both = fork(&xs, &ys).map_err(&built)?;
                apply(Op::Concat, &[length(&e.ty)?], vec![], &both).map_err(built)
            }
            Prim::ToGlobal | Prim::ToLocal | Prim::ToPrivate => {
                let (f, argument) = self.applied(fun(0)?, args, env, span)?;
                let space = match prim {
                    Prim::ToGlobal => Space::Global,
                    Prim::ToLocal => Space::Local,
                    _ => Space::Private,
                };
                apply(Op::ToMem(space), &[], vec![f], &argument).map_err(built)
            }
            Prim::Vectorize => self.vectorize(fun(0)?, &size(0)?, args, env, span),
            Prim::Map
            | Prim::Generate
            | Prim::Few
            | Prim::Sorted
            | Prim::InOrder
            | Prim::Iterate
            | Prim::IterateSeq
            | Prim::MapWrg(_)
            | Prim::MapLcl(_)
            | Prim::MapGlb(_)
            | Prim::MapSeq
            | Prim::MapUnroll
            | Prim::MapWarp
            | Prim::MapLane => Err(inner_problem("a pattern that should be gone by now", span)),
        }
    }

    /// Compiles `vectorize w f x`; scalars that `f` captures become vectors with equal lanes.
    fn vectorize(
        &mut self,
        f: &Lambda,
        w: &Size,
        args: &[Ex],
        env: &Layout,
        span: Span,
    ) -> Result<Term> {
        let built = at(span);
        let captured = f.captures();
        let params: Vec<(Layout, &Ex)> = f.params.iter().cloned().zip(args).collect();
        let mut layouts = vec![];
        let mut terms = vec![];
        if !captured.is_empty() {
            let held = env.restrict(&captured);
            terms.push(project(env, &captured).map_err(&built)?);
            layouts.push(held);
        }
        for (p, a) in params {
            terms.push(self.term(a, env)?);
            layouts.push(p);
        }
        let mut vectors = vec![];
        for (l, t) in layouts.iter().zip(terms) {
            let scalars = Some(l.ty()).filter(|t| !t.has_array());
            let Some(vector) = scalars.and_then(|t| Ty::vector(w, &t)) else {
                return Err(not_yet("a vectorized function of what is not scalar", span));
            };
            vectors.push(if t.ty().cod == vector { Ok(t) } else { splat(&t, &vector) });
        }
        let pair = |a, b| Layout::Pair(Box::new(a), Box::new(b));
        let layout = nest(layouts, pair).unwrap_or(Layout::Unit);
        let body = self.term(&f.body, &layout)?;
        let argument = nest(vectors, |a: Built, b: Built| fork(&a?, &b?))
            .unwrap_or_else(|| bang(&env.ty()))
            .map_err(&built)?;
        apply(Op::Vectorize, std::slice::from_ref(w), vec![body], &argument).map_err(built)
    }
}

/// Checks a size that divides the length of an array.
fn divisor(k: Size, xs: &Term, span: Span) -> Result<Size> {
    if k.as_constant() == Some(0) {
        let (n, _) = elements(&xs.ty().cod).map_err(at(span))?;
        return Err(problem(Code::NotDivisible, format!("`{n}` divided by 0"), span).into());
    }
    Ok(k)
}

/// Unzips to as many arrays as the result type has.
fn unzip_after(xs: &Term, result: &Ty) -> Built {
    let both = view(Op::Unzip, xs)?;
    let (_, rest) = halves(result)?;
    let (_, right) = halves(&both.ty().cod)?;
    if right == rest {
        return Ok(both);
    }
    let inner = unzip_after(&Term::id(&right), &rest)?;
    let (left, _) = halves(&both.ty().cod)?;
    compose(&bimap(&Term::id(&left), &inner)?, &both)
}
