//! Distributes maps over large elements, such as the images of a batch: each stage of what is computed of an element becomes
//! a map of its own (fission; Futhark's rules for flattening, Henriksen et al. 2019). `map (g . f)` becomes
//! `map g . map f`, and `map (fork p q)` becomes `zip . fork (map p) (map q)`, where the value between is a large matrix.
//!
//! The memory of a work-group does not hold such a matrix. Within one map, a stage that reads it has to wait for
//! all of it, or computes each element again for every use. After fission, each stage is shared out to the whole device. Stages
//! that read the matrix element by element are fused again by rules. So this is another form of a program, and the cost model
//! decides.

use super::build::{self, Built};
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::term::{MapKind, Op, Term, TypeError};
use crate::calculus::ty::Ty;

/// Most elements of an array that a work-group holds.
const LARGE: u64 = 8192;

/// Returns the term with the stages of large elements apart; `None` if there are none.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn stages_apart(t: &Term, env: &SizeEnv) -> Result<Option<Term>, TypeError> {
    let apart = distributed(t, env)?;
    Ok((apart != *t).then_some(apart))
}

fn distributed(t: &Term, env: &SizeEnv) -> Built {
    build::each_factor(t, |f| match f.op() {
        Op::Map(MapKind::Plain) => stages(&f.sizes()[0], &distributed(&f.args()[0], env)?, env),
        Op::Fork | Op::Bimap | Op::Fold | Op::While | Op::Cond => {
            build::each_arg(&f, |a| distributed(a, env))
        }
        _ => Ok(f),
    })
}

/// Builds `map f` of `n` elements, cut where a large matrix is passed on.
fn stages(n: &Size, f: &Term, env: &SizeEnv) -> Built {
    let each = |f: &Term| build::map(MapKind::Plain, n, f);
    let (mut done, mut stage) = (Term::id(&each(f)?.ty().dom), Term::id(&f.ty().dom));
    for g in f.chain().into_iter().rev() {
        let is_pair = matches!(g.op(), Op::Fork | Op::Bimap);
        if is_pair && g.args().iter().any(|side| gives_large(side, env)) {
            done = build::compose(&each(&stage)?, &done)?;
            let sides = [stages(n, &g.args()[0], env)?, stages(n, &g.args()[1], env)?];
            if *g.op() == Op::Bimap {
                done = build::view(Op::Unzip, &done)?;
            }
            let both = Term::new(g.op().clone(), vec![], vec![], sides.to_vec())?;
            done = build::compose(&build::view(Op::Zip, &both)?, &done)?;
            stage = Term::id(&g.ty().cod);
            continue;
        }
        if !g.is_view() && gives_large(&stage, env) {
            done = build::compose(&each(&stage)?, &done)?;
            stage = Term::id(&g.ty().dom);
        }
        stage = build::compose(&g, &stage)?;
    }
    build::compose(&each(&stage)?, &done)
}

/// Whether a function computes a large matrix.
pub(super) fn gives_large(f: &Term, env: &SizeEnv) -> bool {
    !f.chain().iter().all(Term::is_view) && has_large(&f.ty().cod, 2, env)
}

/// Whether a type has an array of at least `rank` dimensions that a work-group does not hold.
pub(super) fn has_large(t: &Ty, rank: usize, env: &SizeEnv) -> bool {
    let elements = |lengths: &[Size]| {
        let lengths = lengths.iter().map(|n| n.eval(env).unwrap_or(1));
        lengths.fold(1, u64::saturating_mul)
    };
    t.components().iter().any(|(n, _)| n.len() >= rank && elements(n) > LARGE)
}
