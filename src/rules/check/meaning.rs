//! The meanings of a term that leaves an order open.
//!
//! The evaluator folds every reduction from the left and takes `reorder` for the identity, which is only one
//! of their meanings. This module rewrites a term to another one: reductions with an associative operator
//! group in some other way, with neutral elements in between; commutative ones also take their elements in
//! another order; and `reorder` is some other permutation, one for each length.

use crate::calculus::eval::Inputs;
use crate::calculus::sample::{self, Rng};
use crate::calculus::size::Size;
use crate::calculus::term::{Op, ReduceKind, ScanKind, Term, TypeError};
use crate::calculus::ty::Ty;
use crate::calculus::value::Value;
use crate::lang::types::ScalarType;
use rand::RngExt;
use rand::seq::SliceRandom;

type Made = Result<Term, TypeError>;

/// Returns a term without `reorder` and, if `regroup` is true, without reductions whose order is open. Its
/// sizes must be numbers. The inputs are the permutations that the result mentions. `salt` makes the two
/// sides of a rule differ.
pub(super) fn other_order(
    term: &Term,
    order: u64,
    salt: &str,
    regroup: bool,
) -> Result<(Term, Inputs), TypeError> {
    let rng = sample::rng(order, salt, 0);
    let mut orders = Orders { rng, order, regroup, inputs: Inputs::new() };
    let out = orders.term(term)?;
    Ok((out, orders.inputs))
}

/// Returns the permutation that stands for `reorder` of `n` elements: element `i` of the result is element
/// `p[i]`.
pub(super) fn permutation(order: u64, n: usize) -> Vec<usize> {
    shuffled(&mut sample::rng(order, "reorder", n as u64), n)
}

fn shuffled(rng: &mut Rng, n: usize) -> Vec<usize> {
    let mut out: Vec<usize> = (0..n).collect();
    out.shuffle(rng);
    out
}

struct Orders {
    rng: Rng,
    order: u64,
    regroup: bool,
    inputs: Inputs,
}

fn node(op: Op, sizes: Vec<Size>, tys: Vec<Ty>, args: Vec<Term>) -> Made {
    Term::new(op, sizes, tys, args)
}

/// Returns the same operation on other arguments.
fn rebuilt(t: &Term, args: Vec<Term>) -> Made {
    node(t.op().clone(), t.sizes().to_vec(), t.tys().to_vec(), args)
}

fn fork(f: Term, g: Term) -> Made {
    node(Op::Fork, vec![], vec![], vec![f, g])
}

fn number(n: &Size) -> Result<usize, TypeError> {
    let n = n.as_constant().and_then(|n| usize::try_from(n).ok());
    n.ok_or_else(|| TypeError("a length that is no number".to_owned()))
}

fn size(n: usize) -> Size {
    Size::constant(n as u64)
}

/// Returns `take len . drop from` of an array of `n`.
fn slice(n: usize, from: usize, len: usize, t: &Ty) -> Made {
    let rest = node(Op::Drop, vec![size(n - from), size(n)], vec![t.clone()], vec![])?;
    node(Op::Take, vec![size(len), size(n - from)], vec![t.clone()], vec![])?.after(&rest)
}

/// The operator and neutral element of a reduction.
struct Fold<'a> {
    op: &'a Term,
    z: &'a Term,
    element: Ty,
}

impl Fold<'_> {
    /// Returns the neutral element as a function of any argument.
    fn unit(&self, dom: &Ty) -> Made {
        self.z.after(&node(Op::Bang, vec![], vec![dom.clone()], vec![])?)
    }

    fn both(&self, f: Term, g: Term) -> Made {
        self.op.after(&fork(f, g)?)
    }
}

impl Orders {
    fn term(&mut self, t: &Term) -> Made {
        let args = t.args().iter().map(|a| self.term(a)).collect::<Result<Vec<_>, _>>()?;
        let fold = || -> Result<Fold, TypeError> {
            let [op, z, ..] = args.as_slice() else {
                return Err(TypeError("a reduction without its operator".to_owned()));
            };
            Ok(Fold { op, z, element: z.ty().cod.clone() })
        };
        match t.op() {
            Op::Reorder => {
                let n = number(&t.sizes()[0])?;
                let p = permutation(self.order, n);
                self.permuted(format!("reorder.{n}"), &p, &t.tys()[0])
            }
            Op::Reduce(ReduceKind::Assoc) if self.regroup => {
                self.grouped(&fold()?, number(&t.sizes()[0])?)
            }
            Op::Reduce(ReduceKind::Comm) if self.regroup => {
                let (n, fold) = (number(&t.sizes()[0])?, fold()?);
                let shuffle = self.shuffle(n, &fold.element)?;
                self.grouped(&fold, n)?.after(&shuffle)
            }
            Op::ReduceLcl if self.regroup => {
                let (n, fold) = (number(&t.sizes()[0])?, fold()?);
                let each = vec![args[2].clone()];
                let map = Op::Map(crate::calculus::term::MapKind::Plain);
                let map = node(map, vec![size(n)], vec![], each)?;
                let shuffle = self.shuffle(n, &fold.element)?;
                self.grouped(&fold, n)?.after(&shuffle)?.after(&map)
            }
            Op::ReducePart if self.regroup => {
                let (fold, sizes) = (fold()?, t.sizes().to_vec());
                let part = self.grouped(&fold, number(&sizes[0])?)?;
                let parts = vec![sizes[1].clone()];
                let kind = crate::calculus::term::MapKind::Plain;
                let map = node(Op::Map(kind), parts, vec![], vec![part])?;
                map.after(&node(Op::Split, sizes, vec![fold.element.clone()], vec![])?)
            }
            Op::Scan(ScanKind::Assoc) if self.regroup => {
                self.scanned(&fold()?, number(&t.sizes()[0])?)
            }
            Op::Histogram if self.regroup => {
                let n = number(&t.sizes()[1])?;
                let p = shuffled(&mut self.rng, n);
                let name = format!("order.{}", self.inputs.len());
                let is = self.permuted(name.clone(), &p, &t.tys()[0])?;
                let vs = self.permuted(name, &p, &fold()?.element)?;
                let shuffle = node(Op::Bimap, vec![], vec![], vec![is, vs])?;
                rebuilt(t, args)?.after(&shuffle)
            }
            _ => rebuilt(t, args),
        }
    }

    fn permuted(&mut self, name: String, p: &[usize], t: &Ty) -> Made {
        let n = size(p.len());
        let (array, i) = (Ty::array(&n, t), Ty::Scalar(ScalarType::I64));
        let at: Vec<i64> = p.iter().map(|i| i64::try_from(*i).unwrap_or(i64::MAX)).collect();
        let indices = Value::ints(ScalarType::I64, &[p.len()], &at);
        let tys = vec![array.clone(), Ty::array(&n, &i)];
        let input = node(Op::Input(name.as_str().into()), vec![], tys, vec![])?;
        self.inputs.insert(name.into(), indices);
        let gather = node(Op::Gather, vec![n.clone(), n], vec![t.clone(), i], vec![])?;
        gather.after(&fork(Term::id(&array), input)?)
    }

    fn shuffle(&mut self, n: usize, t: &Ty) -> Made {
        let p = shuffled(&mut self.rng, n);
        let name = format!("order.{}", self.inputs.len());
        self.permuted(name, &p, t)
    }

    /// Returns a reduction `[n]a -> a` with random grouping.
    fn grouped(&mut self, fold: &Fold, n: usize) -> Made {
        let dom = Ty::array(&size(n), &fold.element);
        match n {
            0 => fold.unit(&dom),
            1 => {
                let x = node(Op::The, vec![], vec![fold.element.clone()], vec![])?;
                match self.rng.random_range(0..4) {
                    0 => fold.both(fold.unit(&dom)?, x),
                    1 => fold.both(x, fold.unit(&dom)?),
                    _ => Ok(x),
                }
            }
            _ => {
                let k = self.rng.random_range(1..n);
                let left = self.grouped(fold, k)?.after(&slice(n, 0, k, &fold.element)?)?;
                let right =
                    self.grouped(fold, n - k)?.after(&slice(n, k, n - k, &fold.element)?)?;
                fold.both(left, right)
            }
        }
    }

    /// Returns a scan `[n]a -> [n]a` in two parts: both are scanned by themselves, and the last element of
    /// the first is combined into each element of the second.
    fn scanned(&mut self, fold: &Fold, n: usize) -> Made {
        let a = &fold.element;
        if n < 2 {
            return Ok(Term::id(&Ty::array(&size(n), a)));
        }
        let k = self.rng.random_range(1..n);
        let left = self.scanned(fold, k)?.after(&slice(n, 0, k, a)?)?;
        let right = self.scanned(fold, n - k)?.after(&slice(n, k, n - k, a)?)?;
        let (first, second) = (left.ty().cod.clone(), right.ty().cod.clone());
        let last =
            node(Op::The, vec![], vec![a.clone()], vec![])?.after(&slice(k, k - 1, 1, a)?)?;
        let last = node(Op::Bimap, vec![], vec![], vec![last, Term::id(&second)])?;
        let rest = vec![size(n - k)];
        let spread = node(Op::Distl, rest.clone(), vec![a.clone(), a.clone()], vec![])?;
        let kind = crate::calculus::term::MapKind::Plain;
        let combine = node(Op::Map(kind), rest, vec![], vec![fold.op.clone()])?;
        let second_part = combine.after(&spread.after(&last)?)?;
        let fst = node(Op::Fst, vec![], vec![first, second], vec![])?;
        let sizes = vec![size(k), size(n - k), size(n)];
        let concat = node(Op::Concat, sizes, vec![a.clone()], vec![])?;
        concat.after(&fork(fst, second_part)?.after(&fork(left, right)?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::eval;
    use crate::calculus::size::SizeEnv;
    use crate::calculus::text::{Context, parse_type, read_term};
    use crate::diag::Source;

    fn values(text: &str, dom: &str, order: u64) -> (Value, Value) {
        let dom = parse_type(&Source::new("t", dom), 0..dom.len()).expect("a type");
        let term = read_term(&Source::new("f", text), &dom, &Context::default())
            .expect("a term of that domain");
        let shape = eval::shape(&dom, &SizeEnv::default()).expect("the type has no symbols");
        let x = sample::value(&mut sample::rng(0, "x", 0), &shape, sample::Style::Count);
        let plain = eval::apply(&term, &SizeEnv::default(), &Inputs::new(), &x)
            .expect("the term has a value");
        let (other, inputs) =
            other_order(&term, order, "left", true).expect("the order can be changed");
        (
            plain,
            eval::apply(&other, &SizeEnv::default(), &inputs, &x).expect("the term has a value"),
        )
    }

    #[test]
    fn lawful_operators_do_not_show_the_order() {
        for order in 0..20 {
            for text in [
                "reduce (+) 0",
                "reduceComm (+) 0",
                "scan (+) 0",
                "reducePart 2 (+) 0",
                "histogram 14 (+) 0 . fork id id",
                "reduceComm (+) 0 . reorder",
                "map (reduce (+) 0) . split 3",
            ] {
                let (plain, other) = values(text, "[12]i32", order);
                assert_eq!(plain, other, "{text}");
            }
        }
    }

    #[test]
    fn others_do() {
        for text in ["reduce (-) 0", "scan (-) 0", "reorder", "reduceComm fst 0"] {
            let shown = (0..20).filter(|o| {
                let (plain, other) = values(text, "[12]i32", *o);
                plain != other
            });
            assert!(shown.count() > 10, "{text}");
        }
    }
}
