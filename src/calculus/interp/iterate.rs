//! The pattern `iterate`, whose array may change its length in each step.

use super::build::{Builder, Typed};
use super::lower::{Call, Lower};
use super::machine::Run;
use crate::calculus::value::{Cell, Shape};
use crate::lang::types::{ScalarType, Type};

impl Lower {
    /// Unrolls steps while the length changes; the remaining steps are a loop.
    pub(super) fn iterate(&mut self, b: &mut Builder, c: &Call) -> Run<Typed> {
        let (f, k, mut x) = (c.fun()?, self.size(c, 0)?, self.arg(b, c, 0)?);
        let param = f.params.first().ok_or_else(|| c.missing())?;
        let mut own = vec![];
        self.own_sizes(&param.1, &mut own);
        for step in 0..k {
            for name in &own {
                if let Some(n) = size_in(name, &param.1, &x.shape) {
                    self.sizes.insert(name.clone(), n.try_into().unwrap_or(u64::MAX));
                }
            }
            let next = self.shape(&f.body.ty, c.site())?;
            if next == x.shape {
                let times = i128::try_from(k - step).unwrap_or(i128::MAX);
                let times =
                    Typed::constant(ScalarType::I64, Cell::from_int(ScalarType::I64, times));
                x = b.count(x, times, &mut |b, mut vars| self.body(b, f, vars.split_off(1)))?;
                break;
            }
            x = self.call(b, f, vec![x], vec![])?;
        }
        for name in &own {
            self.sizes.shift_remove(name);
        }
        Ok(x)
    }

    /// Collects the size variables of the parameter's type that no enclosing `iterate` binds.
    fn own_sizes(&self, ty: &Type, own: &mut Vec<String>) {
        match ty {
            Type::Scalar(_) | Type::Vector(..) => {}
            Type::Tuple(ts) => ts.iter().for_each(|t| self.own_sizes(t, own)),
            Type::Array(n, t) => {
                let new = |name: &&str| {
                    name.starts_with('%')
                        && !self.sizes.contains_key(*name)
                        && !own.iter().any(|o| o == name)
                };
                if let Some(name) = n.as_var().filter(new) {
                    own.push(name.to_owned());
                }
                self.own_sizes(t, own);
            }
        }
    }
}

/// Returns the length in the place where the type has the size variable `name`.
fn size_in(name: &str, ty: &Type, shape: &Shape) -> Option<usize> {
    match (ty, shape) {
        (Type::Tuple(ts), Shape::Tuple(ss)) => {
            ts.iter().zip(ss).find_map(|(t, s)| size_in(name, t, s))
        }
        (Type::Array(n, t), Shape::Array(m, s)) => {
            if n.as_var() == Some(name) {
                Some(*m)
            } else {
                size_in(name, t, s)
            }
        }
        _ => None,
    }
}
