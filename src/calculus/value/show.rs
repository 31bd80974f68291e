//! Values in the notation of programs, by their type.

use super::{Leaf, Shape, Value};

impl Shape {
    /// Returns a value of this shape in the notation of programs: `[(1, true), (2, false)]`, a vector as `<1,
    /// 2>`.
    pub fn show(&self, v: &Value) -> String {
        match self {
            Shape::Scalar(ty) => match v.leaves() {
                [Leaf::Scalar(_, c)] => c.show(*ty),
                _ => "?".to_owned(),
            },
            Shape::Tuple(parts) => {
                let mut at = 0;
                let parts = parts.iter().map(|p| {
                    let range = at..at + p.width();
                    at = range.end;
                    p.show(&v.part(range))
                });
                format!("({})", parts.collect::<Vec<_>>().join(", "))
            }
            Shape::Vector(n, ty) => format!("<{}>", rows(*n, &Shape::Scalar(*ty), v)),
            Shape::Array(n, t) => format!("[{}]", rows(*n, t, v)),
        }
    }
}

fn rows(n: usize, row: &Shape, v: &Value) -> String {
    (0..n).map(|i| row.show(&v.row(i))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang::types::ScalarType::{Bool, F32, I32};

    #[test]
    fn nested_values_show_their_structure() {
        let pair = Shape::Tuple(vec![Shape::Scalar(I32), Shape::Vector(2, F32)]);
        let shape = Shape::Tuple(vec![Shape::array(2, pair), Shape::Scalar(Bool)]);
        let v = Value::tuple([
            Value::ints(I32, &[2], &[1, -2]),
            Value::floats(F32, &[2, 2], &[0.5, 1.0, 2.0, 3.0]),
            Value::ints(Bool, &[], &[1]),
        ]);
        assert_eq!(shape.show(&v), "([(1, <0.5, 1.0>), (-2, <2.0, 3.0>)], true)");
        assert_eq!(Shape::array(0, Shape::Scalar(I32)).show(&Value::ints(I32, &[0], &[])), "[]");
        assert_eq!(Shape::Tuple(vec![]).show(&Value::unit()), "()");
    }
}
