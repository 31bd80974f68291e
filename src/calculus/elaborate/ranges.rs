//! Ranges of the counters of maps and loops, and of sums of them.

use super::core::{Ex, Kind, Lambda, Layout, Var};
use crate::calculus::size::SizeEnv;
use crate::calculus::ty::Ty;
use crate::lang::typed::{Prim, ScalarOp};
use std::collections::HashMap;

/// What is known of names: walks of an expression say what they enter.
pub(super) struct Ranges<'a> {
    pub(super) env: &'a SizeEnv,
    /// The greatest values of counters, and of names for sums of them. None of them is negative.
    most: HashMap<Var, i128>,
}

impl<'a> Ranges<'a> {
    pub(super) fn new(env: &'a SizeEnv) -> Ranges<'a> {
        Ranges { env, most: HashMap::new() }
    }

    /// Notes the counters among the parameters of a map's function.
    pub(super) fn enter_map(&mut self, f: &Lambda, args: &[Ex]) {
        for (p, array) in f.params.iter().zip(args) {
            if let (Layout::Var(v, _), Kind::Prim(Prim::Iota, ..), Ty::Array(n, _)) =
                (p, &array.kind, &array.ty)
                && let Ok(n) = n.eval(self.env)
            {
                self.most.insert(*v, i128::from(n) - 1);
            }
        }
    }

    /// Notes the counter of a loop.
    pub(super) fn enter_loop(&mut self, counter: &Layout, bound: &Ex) {
        if let (Layout::Var(v, _), Some(most)) = (counter, self.greatest(bound)) {
            self.most.insert(*v, most - 1);
        }
    }

    /// Notes the value of a name.
    pub(super) fn enter_let(&mut self, name: &Layout, value: &Ex) {
        if let (Layout::Var(v, _), Some(most)) = (name, self.greatest(value))
            && self.is_natural(value)
        {
            self.most.insert(*v, most);
        }
    }

    /// Whether an array has an element at a place.
    pub(super) fn has(&self, array: &Ex, place: &Ex) -> bool {
        let Ty::Array(n, _) = &array.ty else { return false };
        let most = self.greatest(place).filter(|_| self.is_natural(place));
        most.is_some_and(|most| n.eval(self.env).is_ok_and(|n| most < i128::from(n)))
    }

    /// Returns a number that an integer never exceeds; `None` if none is known.
    pub(super) fn greatest(&self, e: &Ex) -> Option<i128> {
        let of = |k: usize| match &e.kind {
            Kind::Op(_, args) => self.greatest(args.get(k)?),
            _ => None,
        };
        match &e.kind {
            Kind::Var(v) => self.most.get(v).copied(),
            Kind::Lit(n) => n.as_int(),
            Kind::Size(n) => Some(i128::from(n.eval(self.env).ok()?)),
            Kind::Op(ScalarOp::Add, _) => of(0)?.checked_add(of(1)?),
            Kind::Op(ScalarOp::Sub, args) => match &args[1].kind {
                Kind::Lit(_) | Kind::Size(_) => of(0)?.checked_sub(of(1)?),
                _ if self.is_natural(&args[1]) => of(0),
                _ => None,
            },
            Kind::Op(ScalarOp::Mul, args) if args.iter().all(|a| self.is_natural(a)) => {
                of(0)?.checked_mul(of(1)?)
            }
            Kind::Op(ScalarOp::Min, _) => match (of(0), of(1)) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
            Kind::Op(ScalarOp::Max, _) => Some(of(0)?.max(of(1)?)),
            _ => None,
        }
    }

    /// Whether an integer is known to be 0 or more.
    fn is_natural(&self, e: &Ex) -> bool {
        match &e.kind {
            Kind::Var(v) => self.most.contains_key(v),
            Kind::Lit(n) => n.as_int().is_some_and(|n| n >= 0),
            Kind::Size(_) => true,
            Kind::Op(ScalarOp::Add | ScalarOp::Mul | ScalarOp::Min, args) => {
                args.iter().all(|a| self.is_natural(a))
            }
            Kind::Op(ScalarOp::Max, args) => args.iter().any(|a| self.is_natural(a)),
            _ => false,
        }
    }
}
