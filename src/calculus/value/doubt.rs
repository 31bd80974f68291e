//! Whole values in which rounding decides some elements.

use super::number::{anything, either};
use super::{Array, Column, Leaf, Slack, Value};

/// The other values that a row may have; `None` when it may have any.
pub type Others = Option<Vec<Value>>;

impl Leaf {
    fn either(&self, slack: &Slack, other: &Leaf) -> Leaf {
        let ty = self.ty();
        match (self, other) {
            (Leaf::Scalar(_, x), Leaf::Scalar(_, y)) => Leaf::Scalar(ty, either(ty, slack, *x, *y)),
            (Leaf::Array(a), Leaf::Array(b)) if a.shape() == b.shape() => {
                let mut column = Column::new(ty, a.count());
                let mut others = Vec::with_capacity(b.count());
                b.for_each(&mut |y| others.push(y));
                let mut others = others.into_iter();
                a.for_each(&mut |x| {
                    column.push(others.next().map_or(x, |y| either(ty, slack, x, y)));
                });
                Leaf::Array(column.finish(&a.shape()))
            }
            // Branches have one type, so this case does not occur.
            _ => self.anything(),
        }
    }

    fn anything(&self) -> Leaf {
        let ty = self.ty();
        match self {
            Leaf::Scalar(_, x) => Leaf::Scalar(ty, anything(ty, *x)),
            Leaf::Array(a) => {
                let mut column = Column::new(ty, a.count());
                a.for_each(&mut |x| column.push(anything(ty, x)));
                Leaf::Array(column.finish(&a.shape()))
            }
        }
    }

    /// Whether no order of evaluation can change an element.
    fn is_certain(&self) -> bool {
        let (float, mut certain) = (self.ty().is_float(), true);
        self.for_each(&mut |c| certain &= if float { c.is_exact() } else { !c.is_doubtful() });
        certain
    }
}

impl Value {
    /// Returns this value, or perhaps `other`, which has the same shape.
    #[must_use]
    pub fn either(&self, slack: &Slack, other: &Value) -> Value {
        let both = self.leaves.iter().zip(&other.leaves);
        Value::new(both.map(|(a, b)| a.either(slack, b)).collect())
    }

    /// Returns a value of this shape whose elements may be anything.
    #[must_use]
    pub fn anything(&self) -> Value {
        Value::new(self.leaves.iter().map(Leaf::anything).collect())
    }

    /// Whether no order of evaluation can change an element.
    pub fn is_certain(&self) -> bool {
        self.leaves.iter().all(Leaf::is_certain)
    }

    /// Returns an array in which some rows may have other values.
    #[must_use]
    pub fn with_rows(&self, slack: &Slack, others: &[(usize, Others)]) -> Value {
        let mut rows: Vec<Option<Value>> = vec![];
        let count = self.leaves.iter().filter_map(|l| l.shape().first().copied()).max();
        rows.resize_with(count.unwrap_or(0), || None);
        for (i, others) in others {
            let Some(row) = rows.get_mut(*i) else { continue };
            let now = row.take().unwrap_or_else(|| self.row(*i));
            *row = Some(match others {
                Some(all) => all.iter().fold(now, |now, other| now.either(slack, other)),
                None => now.anything(),
            });
        }
        let leaf = |(k, leaf): (usize, &Leaf)| {
            let Leaf::Array(a) = leaf else { return leaf.clone() };
            let mut column = Column::new(a.ty(), a.count());
            for (i, row) in rows.iter().enumerate() {
                match row.as_ref().and_then(|row| row.leaves.get(k)) {
                    Some(changed) => changed.for_each(&mut |c| column.push(c)),
                    None => push_row(&mut column, a, i),
                }
            }
            Leaf::Array(column.finish(&a.shape()))
        };
        Value::new(self.leaves.iter().enumerate().map(leaf).collect())
    }
}

fn push_row(column: &mut Column, a: &Array, i: usize) {
    if a.rank() == 1 { column.push(a.cell(i)) } else { column.extend(&a.row(i)) }
}
