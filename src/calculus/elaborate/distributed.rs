//! Distributes maps over large elements, such as the images of a batch: each stage of what is computed of an element becomes
//! a map of its own (fission; Futhark's rules for flattening, Henriksen et al. 2019). `map (g . f)` becomes
//! `map g . map f`, and `map (fork p q)` becomes `zip . fork (map p) (map q)`, where the value between is a large matrix.
//!
//! The memory of a work-group does not hold such a matrix. Within one map, a stage that reads it has to wait for
//! all of it, or computes each element again for every use. After fission, each stage is shared out to the whole device. Stages
//! that read the matrix element by element are fused again by rules. So this is another form of a program, and the cost model
//! decides.
//!
//! If the function has a loop whose state is a matrix, as a factorisation has, matrices that a work-item cannot hold count as
//! large. A work-group runs such a loop, with a matrix in local memory. What is computed before it and behind it is shared out in
//! other ways: products of the matrices of a batch have tiles, and substitutions have a work-item for each matrix.

use super::build::{self, Built};
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::term::{MapKind, Op, Term, TypeError};
use crate::calculus::ty::Ty;

/// Most elements of an array that a work-group holds.
const LARGE: u64 = 8192;
/// Most elements of the state of a loop that a work-item holds.
const HELD: u64 = 64;

/// Where functions are cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Where a large matrix is passed on, even if what stands before the cut does not compute it: what is computed of the whole
    /// matrix, such as its mean, is then a stage.
    Passed,
    /// Where a large matrix has been computed.
    Computed,
    /// As [`Cut::Passed`]; in functions with loops over matrices, also where a matrix is passed on that a work-item cannot hold.
    Loops,
}

/// Returns the term with the stages of large elements apart; `None` if there are none.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn stages_apart(t: &Term, cut: Cut, env: &SizeEnv) -> Result<Option<Term>, TypeError> {
    let apart = distributed(t, cut, env)?;
    Ok((apart != *t).then_some(apart))
}

fn distributed(t: &Term, cut: Cut, env: &SizeEnv) -> Built {
    build::each_factor(t, |f| match f.op() {
        Op::Map(MapKind::Plain) => {
            let each = distributed(&f.args()[0], cut, env)?;
            let least = if cut == Cut::Loops && repeats_matrix(&each, env) { HELD } else { LARGE };
            Stages { n: &f.sizes()[0], cut, least, env }.of(&each)
        }
        Op::Fork | Op::Bimap | Op::Fold | Op::While | Op::Cond => {
            build::each_arg(&f, |a| distributed(a, cut, env))
        }
        _ => Ok(f),
    })
}

/// Whether a loop in the function has a state with a matrix that a work-item does not hold.
fn repeats_matrix(f: &Term, env: &SizeEnv) -> bool {
    let loops = matches!(f.op(), Op::Fold | Op::While);
    (loops && has_longer(&f.ty().cod, 2, HELD, env))
        || f.args().iter().any(|a| repeats_matrix(a, env))
}

/// How a map over `n` elements is cut.
struct Stages<'a> {
    n: &'a Size,
    cut: Cut,
    /// Matrices with more elements are passed on between maps.
    least: u64,
    env: &'a SizeEnv,
}

impl Stages<'_> {
    /// Builds `map f`, cut where a large matrix is passed on.
    fn of(&self, f: &Term) -> Built {
        let each = |f: &Term| build::map(MapKind::Plain, self.n, f);
        let (mut done, mut stage) = (Term::id(&each(f)?.ty().dom), Term::id(&f.ty().dom));
        for g in f.chain().into_iter().rev() {
            let is_pair = matches!(g.op(), Op::Fork | Op::Bimap);
            if is_pair && g.args().iter().any(|side| self.gives_large(side)) {
                done = build::compose(&each(&stage)?, &done)?;
                if let Some(k) = constant_side(&g) {
                    done = build::compose(&self.of(&g.args()[1 - k])?, &done)?;
                    let other = Term::id(&g.args()[1 - k].ty().cod);
                    let constant = build::redomain(&g.args()[k], &other.ty().dom)?;
                    let mut sides = vec![constant, other];
                    sides.rotate_left(k);
                    stage = Term::new(Op::Fork, vec![], vec![], sides)?;
                    continue;
                }
                let sides = [self.of(&g.args()[0])?, self.of(&g.args()[1])?];
                if *g.op() == Op::Bimap {
                    done = build::view(Op::Unzip, &done)?;
                }
                let both = Term::new(g.op().clone(), vec![], vec![], sides.to_vec())?;
                done = build::compose(&build::view(Op::Zip, &both)?, &done)?;
                stage = Term::id(&g.ty().cod);
                continue;
            }
            if !g.is_view() && self.gives_large(&stage) {
                done = build::compose(&each(&stage)?, &done)?;
                stage = Term::id(&g.ty().dom);
            }
            stage = build::compose(&g, &stage)?;
        }
        build::compose(&each(&stage)?, &done)
    }

    /// Whether a function gives a large matrix, of which it computes at least a part.
    fn gives_large(&self, f: &Term) -> bool {
        let chain = f.chain();
        let computed = chain.iter().find(|g| !passes(g));
        computed.is_some_and(|g| match g.op() {
            Op::Fork | Op::Bimap if self.cut == Cut::Computed => {
                g.args().iter().any(|side| self.gives_large(side))
            }
            _ => has_longer(&f.ty().cod, 2, self.least, self.env),
        })
    }
}

/// Returns which side of a pair does not depend on its argument, such as the first state of a loop: no array holds it for all elements.
fn constant_side(pair: &Term) -> Option<usize> {
    let is_constant =
        |k: &usize| pair.args()[*k].is_constant() && !pair.args()[1 - k].is_constant();
    (*pair.op() == Op::Fork).then(|| (0..2).find(is_constant)).flatten()
}

/// Whether a function computes nothing but constants.
fn passes(f: &Term) -> bool {
    let pair = matches!(f.op(), Op::Fork | Op::Bimap);
    f.is_view()
        || f.is_constant()
        || (pair && f.args().iter().all(|side| side.chain().iter().all(passes)))
}

/// Whether a function computes a large matrix.
pub(super) fn gives_large(f: &Term, env: &SizeEnv) -> bool {
    !f.chain().iter().all(Term::is_view) && has_large(&f.ty().cod, 2, env)
}

/// Whether a type has an array of at least `rank` dimensions that a work-group does not hold.
pub(super) fn has_large(t: &Ty, rank: usize, env: &SizeEnv) -> bool {
    has_longer(t, rank, LARGE, env)
}

/// Whether a type has an array of at least `rank` dimensions with more elements.
fn has_longer(t: &Ty, rank: usize, least: u64, env: &SizeEnv) -> bool {
    let elements = |lengths: &[Size]| {
        let lengths = lengths.iter().map(|n| n.eval(env).unwrap_or(1));
        lengths.fold(1, u64::saturating_mul)
    };
    t.components().iter().any(|(n, _)| n.len() >= rank && elements(n) > least)
}
