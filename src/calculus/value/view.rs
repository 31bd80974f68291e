//! Rearrangements of values, by definition. A rearrangement that only changes strides costs nothing; any
//! other one copies. Every function checks the lengths that it relies on, and returns a text that says what
//! is wrong.

use super::array::room;
use super::{Array, Cell, Column, Leaf, Value};
use crate::lang::typed::PadMode;
use crate::lang::types::ScalarType;
use std::sync::Arc;

type Viewed = Result<Value, String>;

impl Array {
    /// The same element `n` times.
    fn splat(ty: ScalarType, cell: Cell, n: usize) -> Array {
        let mut one = Column::new(ty, 1);
        one.push(cell);
        one.finish(&[1]).row(0).replicate(n)
    }
}

impl Value {
    fn each(&self, f: impl Fn(&Array) -> Result<Array, String>) -> Viewed {
        let leaves = self.leaves.iter().map(|leaf| match leaf {
            Leaf::Array(a) => f(a).map(Leaf::Array),
            Leaf::Scalar(ty, _) => Err(format!("a single {ty} where an array belongs")),
        });
        leaves.collect::<Result<_, _>>().map(Value::new)
    }

    /// Returns the length that all components have; 0 for a value without components.
    ///
    /// # Errors
    /// When the lengths differ or a component is no array.
    pub fn outer_len(&self) -> Result<usize, String> {
        let mut length = None;
        for leaf in &self.leaves {
            let Leaf::Array(a) = leaf else {
                return Err(format!("a single {} where an array belongs", leaf.ty()));
            };
            if *length.get_or_insert(a.len()) != a.len() {
                return Err(format!(
                    "arrays of different lengths, {} and {}",
                    length.unwrap_or(0),
                    a.len()
                ));
            }
        }
        Ok(length.unwrap_or(0))
    }

    /// Returns row `i` of an array; `i` must be below its length.
    #[must_use]
    pub fn row(&self, i: usize) -> Value {
        Value::new(self.leaves.iter().map(|leaf| leaf.row(i)).collect())
    }

    /// `[k*m]a -> [m][k]a`.
    pub fn split(&self, k: usize, m: usize) -> Viewed {
        self.each(|a| {
            if Some(a.len()) == k.checked_mul(m) {
                Ok(a.split(k, m))
            } else {
                Err(format!("{} elements are not {m} chunks of {k}", a.len()))
            }
        })
    }

    /// `[m][k]a -> [k*m]a`.
    pub fn join(&self) -> Viewed {
        self.each(|a| rank2(a).and_then(Array::join))
    }

    /// `[n][m]a -> [m][n]a`.
    pub fn transpose(&self) -> Viewed {
        self.each(|a| rank2(a).map(Array::transpose))
    }

    /// Dimension `k` of each component becomes its last: rows of `w` become vectors of `w`.
    pub fn inward(&self, k: usize) -> Viewed {
        self.each(|a| match a.rank() {
            r if r > k => Ok(a.move_axis(k, r - 1)),
            r => Err(format!("{r} dimensions where more than {k} belong")),
        })
    }

    /// The last dimension of each component becomes its dimension `k`.
    pub fn outward(&self, k: usize) -> Viewed {
        self.each(|a| match a.rank() {
            r if r > k => Ok(a.move_axis(r - 1, k)),
            r => Err(format!("{r} dimensions where more than {k} belong")),
        })
    }

    /// Reverses the order of the elements.
    pub fn reverse(&self) -> Viewed {
        self.each(|a| Ok(a.reverse()))
    }

    /// Elements `from` to `from + len`.
    pub fn slice(&self, from: usize, len: usize) -> Viewed {
        self.each(|a| match from.checked_add(len) {
            Some(end) if end <= a.len() => Ok(a.slice(from, len)),
            _ => Err(format!("elements {from}..{from}+{len} of an array of {}", a.len())),
        })
    }

    /// `m` windows of `w`, `s` apart.
    pub fn slide(&self, w: usize, s: usize, m: usize) -> Viewed {
        self.each(|a| {
            let end = m.checked_sub(1).map_or(Some(0), |last| last.checked_mul(s)?.checked_add(w));
            if end.is_some_and(|e| e <= a.len()) {
                Ok(a.slide(w, s, m))
            } else {
                Err(format!("{m} windows of {w}, {s} apart, do not fit into {} elements", a.len()))
            }
        })
    }

    /// Repeats the whole `n` times: `a -> [n]a`.
    #[must_use]
    pub fn replicate(&self, n: usize) -> Value {
        let leaves = self.leaves.iter().map(|leaf| {
            Leaf::Array(match leaf {
                Leaf::Array(a) => a.replicate(n),
                Leaf::Scalar(ty, c) => Array::splat(*ty, *c, n),
            })
        });
        Value::new(leaves.collect())
    }

    /// Repeats each row `n` times: `[m]a -> [m][n]a`.
    pub fn replicate_rows(&self, n: usize) -> Viewed {
        self.each(|a| Ok(a.replicate_inside(n)))
    }

    /// Returns the array of `n` rows whose row `j` is row `index(j)` of this one. Copies.
    pub fn select(&self, n: usize, index: impl Fn(usize) -> usize) -> Viewed {
        self.each(|a| {
            let inner = a.shape().split_off(1);
            let shape = [&[n], &inner[..]].concat();
            let mut column = Column::new(a.ty(), room(&shape)?);
            for j in 0..n {
                let i = index(j);
                if i >= a.len() {
                    return Err(format!("element {i} of an array of {}", a.len()));
                }
                if inner.is_empty() {
                    column.push(a.cell(i));
                } else {
                    column.extend(&a.row(i));
                }
            }
            Ok(column.finish(&shape))
        })
    }

    /// Selects the chosen indices of each leading dimension, and all of the others. Copies.
    pub fn pick(&self, axes: &[Option<Arc<[usize]>>]) -> Viewed {
        self.each(|a| a.pick(axes))
    }

    /// The rows of this array, then those of `other`. Copies.
    pub fn concat(&self, other: &Value) -> Viewed {
        if self.leaves.len() != other.leaves.len() {
            return Err("arrays of different element types".to_owned());
        }
        let leaves = self.leaves.iter().zip(&other.leaves).map(|pair| {
            let (Leaf::Array(a), Leaf::Array(b)) = pair else {
                return Err("a single element where an array belongs".to_owned());
            };
            let mut shape = a.shape();
            shape[0] = a.len().saturating_add(b.len());
            let mut column = Column::new(a.ty(), room(&shape)?);
            column.extend(a);
            column.extend(b);
            Ok(Leaf::Array(column.finish(&shape)))
        });
        leaves.collect::<Result<_, _>>().map(Value::new)
    }

    /// `y[j] = x[j / m + s * (j % m)]` with `n = s * m` (thesis, definition 5.11).
    pub fn stride(&self, s: usize) -> Viewed {
        let n = self.outer_len()?;
        if n == 0 {
            return Ok(self.clone());
        }
        if s == 0 || n % s != 0 {
            return Err(format!("a stride of {s} does not divide {n} elements"));
        }
        let m = n / s;
        self.select(n, |j| j / m + s * (j % m))
    }

    /// `y[i] = x[(i + k) % n]`.
    pub fn rotate(&self, k: usize) -> Viewed {
        let n = self.outer_len()?;
        self.select(n, |i| (i + k % n) % n)
    }

    /// Pads with `l` elements before the array and as many after it as make `m` in all. Does not handle
    /// [`PadMode::Constant`]; see [`Value::pad_with`].
    pub fn pad(&self, mode: PadMode, l: usize, m: usize) -> Viewed {
        let n = self.outer_len()?;
        // An array of units has no leaves, and its values do not tell its length.
        if m == 0 || self.leaves.is_empty() {
            return Ok(self.clone());
        }
        if n == 0 {
            return Err("nothing to fill the padding of an empty array with".to_owned());
        }
        if l.saturating_add(n) > m {
            return Err(format!("{l} + {n} elements are more than {m}"));
        }
        if mode == PadMode::Constant {
            return Err("a constant padding without its constant".to_owned());
        }
        self.select(m, |j| padded(mode, j, l, n).unwrap_or(n))
    }

    /// Pads with `z`: `l` times before the array, and as often after it as makes `m` elements in all.
    pub fn pad_with(&self, z: &Value, l: usize, m: usize) -> Viewed {
        let n = self.outer_len()?;
        let after = m
            .checked_sub(l.saturating_add(n))
            .ok_or_else(|| format!("{l} + {n} elements are more than {m}"))?;
        z.replicate(l).concat(self)?.concat(&z.replicate(after))
    }

    /// Repeats the last element to make `r` elements; an empty array stays empty.
    pub fn pad_last(&self, r: usize) -> Viewed {
        let n = self.outer_len()?;
        if r < n {
            return Err(format!("{n} elements are more than {r}"));
        }
        self.pad(PadMode::Clamp, 0, r)
    }
}

impl Leaf {
    /// Returns row `i`, which must exist; every row of a scalar is the scalar itself.
    #[inline]
    #[must_use]
    pub fn row(&self, i: usize) -> Leaf {
        match self {
            Leaf::Scalar(..) => self.clone(),
            Leaf::Array(a) if a.rank() == 1 => Leaf::Scalar(a.ty(), a.cell(i)),
            Leaf::Array(a) => Leaf::Array(a.row(i)),
        }
    }
}

/// Returns the index of the element at position `j` of an array of `n > 0` elements with `l` elements of
/// padding in front; `None` for constant padding.
pub(crate) fn padded(mode: PadMode, j: usize, l: usize, n: usize) -> Option<usize> {
    // Position `j` stands for element `j - l`; adding multiples of `n` keeps the index from being negative.
    match mode {
        PadMode::Clamp => Some(j.saturating_sub(l).min(n - 1)),
        PadMode::Wrap => Some((j + n - l % n) % n),
        PadMode::Mirror => {
            let i = (j + 2 * n - l % (2 * n)) % (2 * n);
            Some(if i < n { i } else { 2 * n - 1 - i })
        }
        PadMode::Constant => None,
    }
}

fn rank2(a: &Array) -> Result<&Array, String> {
    if a.rank() >= 2 { Ok(a) } else { Err("one dimension where two belong".to_owned()) }
}
