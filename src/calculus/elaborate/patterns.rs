//! Patterns other than maps, one to one: each becomes its operator after its arguments.

use super::bracket::{Bracket, apply, at, bringing, not_yet, project, splat, width};
use super::build::{Built, bang, bimap, compose, elements, fork, halves, zip_after};
use super::core::{Ex, Kind, Lambda, Layout};
use super::sizes::nest;
use super::{inner_problem, problem};
use crate::calculus::size::Size;
use crate::calculus::term::{Op, ReduceKind, Space, Term};
use crate::calculus::ty::Ty;
use crate::diag::{Code, Result, Span};
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
        if let Some(other) = self.in_other_patterns(e)? {
            return self.term(&other, env);
        }
        match prim {
            Prim::Reduce
            | Prim::ReduceComm
            | Prim::ReduceSeq
            | Prim::ReduceUnroll
            | Prim::Scan
            | Prim::ScanSeq
            | Prim::ReducePart => {
                let captured = fun(0)?.captures();
                if !(arg(0)?.free().is_empty() && captured.is_empty()) {
                    // One after another: then elements can bring what is captured.
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
                    Prim::Scan if !captured.is_empty() => Prim::ScanSeq,
                    prim => prim,
                };
                let z = self.initial(arg(0)?)?;
                let mut xs = self.term(arg(1)?, env)?;
                let op = match (prim, fun(0)?.params.as_slice()) {
                    // A fold takes its elements one by one, so each can bring what is captured.
                    (Prim::ReduceSeq | Prim::ReduceUnroll | Prim::ScanSeq, [acc, x])
                        if !captured.is_empty() =>
                    {
                        let (element, brought) =
                            bringing(env, &captured, x, &xs).map_err(&built)?;
                        xs = brought;
                        let layout = Layout::Pair(Box::new(acc.clone()), Box::new(element));
                        self.term(&fun(0)?.body, &layout)?
                    }
                    _ => self.closed(fun(0)?, "an operator", span)?,
                };
                let (n, _) = array(&xs.ty().cod)?;
                let (op_kind, sizes) = match prim {
                    Prim::ReduceComm => (Op::Reduce(ReduceKind::Comm), vec![n]),
                    Prim::ReduceSeq => (Op::Reduce(ReduceKind::Seq), vec![n]),
                    Prim::ReduceUnroll => (Op::Reduce(ReduceKind::Unroll), vec![n]),
                    Prim::Scan => (Op::Scan(false), vec![n]),
                    Prim::ScanSeq => (Op::Scan(true), vec![n]),
                    Prim::ReducePart => {
                        let (m, _) = array(&e.ty)?;
                        (Op::ReducePart, vec![quotient(&n, &m, span)?, m])
                    }
                    _ => (Op::Reduce(ReduceKind::Assoc), vec![n]),
                };
                apply(op_kind, sizes, vec![], vec![op, z], &xs).map_err(built)
            }
            Prim::Zip => {
                let (a, b) = (self.term(arg(0)?, env)?, self.term(arg(1)?, env)?);
                fork(&a, &b).and_then(|f| zip_after(&f)).map_err(built)
            }
            Prim::Unzip => {
                let xs = self.term(arg(0)?, env)?;
                unzip_after(&xs, &e.ty).map_err(built)
            }
            Prim::Split | Prim::Join | Prim::Transpose => {
                let xs = self.term(arg(0)?, env)?;
                let nested = if prim == Prim::Split { &e.ty } else { &xs.ty().cod };
                let (outer, row) = array(nested)?;
                let (inner, t) = array(&row)?;
                let (op, sizes) = match prim {
                    Prim::Split => (Op::Split, vec![inner, outer]),
                    Prim::Join => (Op::Join, vec![inner, outer]),
                    _ => (Op::Transpose, vec![outer, inner]),
                };
                apply(op, sizes, vec![t], vec![], &xs).map_err(built)
            }
            Prim::Reorder | Prim::Reverse => {
                let xs = self.term(arg(0)?, env)?;
                let (n, t) = array(&e.ty)?;
                let op = if prim == Prim::Reorder { Op::Reorder } else { Op::Reverse };
                apply(op, vec![n], vec![t], vec![], &xs).map_err(built)
            }
            Prim::Slide => {
                let xs = self.term(arg(0)?, env)?;
                let ((n, t), (m, _)) = (array(&xs.ty().cod)?, array(&e.ty)?);
                let sizes = vec![size(0)?, size(1)?, n, m];
                apply(Op::Slide, sizes, vec![t], vec![], &xs).map_err(built)
            }
            Prim::Pad(mode) => {
                let xs = self.term(arg(0)?, env)?;
                let ((n, t), (m, _)) = (array(&xs.ty().cod)?, array(&e.ty)?);
                let z = match mode {
                    PadMode::Constant => vec![self.initial(arg(1)?)?],
                    PadMode::Clamp | PadMode::Wrap | PadMode::Mirror => vec![],
                };
                apply(Op::Pad(mode), vec![size(0)?, n, m], vec![t], z, &xs).map_err(built)
            }
            Prim::Gather => {
                let (xs, is) = (self.term(arg(0)?, env)?, self.term(arg(1)?, env)?);
                let ((n, t), (m, i)) = (array(&xs.ty().cod)?, array(&is.ty().cod)?);
                let both = fork(&xs, &is).map_err(&built)?;
                apply(Op::Gather, vec![n, m], vec![t, i], vec![], &both).map_err(built)
            }
            Prim::Scatter => {
                let (dest, is) = (self.term(arg(0)?, env)?, self.term(arg(1)?, env)?);
                let vs = self.term(arg(2)?, env)?;
                let ((n, t), (m, i)) = (array(&dest.ty().cod)?, array(&is.ty().cod)?);
                let all = fork(&is, &vs).and_then(|u| fork(&dest, &u)).map_err(&built)?;
                apply(Op::Scatter, vec![n, m], vec![t, i], vec![], &all).map_err(built)
            }
            Prim::Histogram => {
                let op = self.closed(fun(0)?, "an operator", span)?;
                let z = self.initial(arg(0)?)?;
                let (is, vs) = (self.term(arg(1)?, env)?, self.term(arg(2)?, env)?);
                let ((m, _), (n, i)) = (array(&e.ty)?, array(&is.ty().cod)?);
                let both = fork(&is, &vs).map_err(&built)?;
                apply(Op::Histogram, vec![m, n], vec![i], vec![op, z], &both).map_err(built)
            }
            Prim::Iota => {
                let (n, t) = array(&e.ty)?;
                Term::new(Op::Iota, vec![n], vec![env.ty(), t], vec![]).map_err(built)
            }
            Prim::Replicate => {
                let x = self.term(arg(0)?, env)?;
                let (n, t) = array(&e.ty)?;
                apply(Op::Replicate, vec![n], vec![t], vec![], &x).map_err(built)
            }
            Prim::Concat => {
                let (xs, ys) = (self.term(arg(0)?, env)?, self.term(arg(1)?, env)?);
                let ((n, t), (m, _)) = (array(&xs.ty().cod)?, array(&ys.ty().cod)?);
                let (r, _) = array(&e.ty)?;
                let both = fork(&xs, &ys).map_err(&built)?;
                apply(Op::Concat, vec![n, m, r], vec![t], vec![], &both).map_err(built)
            }
            Prim::Take | Prim::Drop => {
                let xs = self.term(arg(0)?, env)?;
                let ((n, t), (r, _)) = (array(&xs.ty().cod)?, array(&e.ty)?);
                let op = if prim == Prim::Take { Op::Take } else { Op::Drop };
                apply(op, vec![r, n], vec![t], vec![], &xs).map_err(built)
            }
            Prim::Rotate => {
                let xs = self.term(arg(0)?, env)?;
                let (n, t) = array(&e.ty)?;
                apply(Op::Rotate, vec![size(0)?, n], vec![t], vec![], &xs).map_err(built)
            }
            Prim::ToGlobal | Prim::ToLocal | Prim::ToPrivate => {
                let (f, argument) = self.applied(fun(0)?, args, env, span)?;
                let space = match prim {
                    Prim::ToGlobal => Space::Global,
                    Prim::ToLocal => Space::Local,
                    _ => Space::Private,
                };
                apply(Op::ToMem(space), vec![], vec![], vec![f], &argument).map_err(built)
            }
            Prim::ReorderStride => {
                let xs = self.term(arg(0)?, env)?;
                let (n, t) = array(&e.ty)?;
                let m = quotient(&n, &size(0)?, span)?;
                apply(Op::Stride, vec![size(0)?, m], vec![t], vec![], &xs).map_err(built)
            }
            Prim::AsVector => {
                let xs = self.term(arg(0)?, env)?;
                let ((m, _), (_, t)) = (array(&e.ty)?, array(&xs.ty().cod)?);
                apply(Op::AsVector, vec![size(0)?, m], vec![t], vec![], &xs).map_err(built)
            }
            Prim::AsScalar => {
                let xs = self.term(arg(0)?, env)?;
                let ((m, v), (_, t)) = (array(&xs.ty().cod)?, array(&e.ty)?);
                let w = width(&v).ok_or_else(|| inner_problem("asScalar of no vectors", span))?;
                apply(Op::AsScalar, vec![w, m], vec![t], vec![], &xs).map_err(built)
            }
            Prim::Vectorize => self.vectorize(fun(0)?, &size(0)?, args, env, span),
            Prim::Map
            | Prim::Generate
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

    /// `vectorize w f x`: scalars that `f` captures become vectors of equal lanes.
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
        apply(Op::Vectorize, vec![w.clone()], vec![], vec![body], &argument).map_err(built)
    }
}

/// `n / k`.
fn quotient(n: &Size, k: &Size, span: Span) -> Result<Size> {
    if k.as_constant() == Some(0) {
        return Err(problem(Code::NotDivisible, format!("`{n}` divided by 0"), span).into());
    }
    Ok(n.div(k))
}

/// Unzips to as many arrays as the result type has.
fn unzip_after(xs: &Term, result: &Ty) -> Built {
    let (n, t) = elements(&xs.ty().cod)?;
    let (a, b) = halves(&t)?;
    let both = apply(Op::Unzip, vec![n], vec![a, b], vec![], xs)?;
    let (_, rest) = halves(result)?;
    let (_, right) = halves(&both.ty().cod)?;
    if right == rest {
        return Ok(both);
    }
    let inner = unzip_after(&Term::id(&right), &rest)?;
    let (left, _) = halves(&both.ty().cod)?;
    compose(&bimap(&Term::id(&left), &inner)?, &both)
}
