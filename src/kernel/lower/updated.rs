//! Which parts of a loop's state a step updates, and which it computes anew.
//!
//! The state is followed through the factors of the step. A part of the next state that is the same part of the present
//! one, up to elements at computed places, can stay where it is.

use crate::calculus::term::{Op, Term};
use crate::calculus::ty::Ty;

/// How a step makes a part of the next state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A scalar, or an array of which elements at computed places change.
    Updated,
    /// An array whose elements are all computed.
    New,
    /// Two parts.
    Pair(Box<Part>, Box<Part>),
}

impl Part {
    /// The component of a part.
    pub fn component(&self, second: bool) -> &Part {
        match (self, second) {
            (Part::Pair(a, _), false) => a,
            (Part::Pair(_, b), true) => b,
            (part, _) => part,
        }
    }

    /// Whether all of it is computed.
    pub fn is_new(&self) -> bool {
        match self {
            Part::Updated => false,
            Part::New => true,
            Part::Pair(a, b) => a.is_new() && b.is_new(),
        }
    }

    /// Whether a part of it is computed.
    pub fn has_new(&self) -> bool {
        match self {
            Part::Updated => false,
            Part::New => true,
            Part::Pair(a, b) => a.has_new() || b.has_new(),
        }
    }
}

/// Returns the parts of the state of a loop whose step, from the pair of a state and an element, is this chain.
pub fn parts(step: &[Term], state: &Ty) -> Part {
    let start = Value::Pair(Box::new(Value::state(state, &[])), Box::new(Value::Other));
    part(&through(step, start), state, &[])
}

/// What is known of a value in a step.
#[derive(Clone, PartialEq)]
enum Value {
    /// The part of the present state at this path, seen through views, with any elements changed.
    State(Vec<bool>, Vec<Term>),
    Pair(Box<Value>, Box<Value>),
    Other,
}

impl Value {
    fn state(t: &Ty, path: &[bool]) -> Value {
        match t {
            Ty::Pair(a, b) => {
                let side = |t, second| Box::new(Value::state(t, &[path, &[second]].concat()));
                Value::Pair(side(a, false), side(b, true))
            }
            _ => Value::State(path.to_vec(), vec![]),
        }
    }

    fn component(self, second: bool) -> Value {
        match (self, second) {
            (Value::Pair(a, _), false) => *a,
            (Value::Pair(_, b), true) => *b,
            _ => Value::Other,
        }
    }

    /// The value through a view; a view that is the inverse of the last one leaves the value as it was.
    fn through(self, view: &Term) -> Value {
        let Value::State(path, mut views) = self else { return Value::Other };
        if views.last().is_some_and(|last| are_inverse(last, view)) {
            views.pop();
        } else {
            views.push(view.clone());
        }
        Value::State(path, views)
    }

    /// The value if it is the same, whatever a condition says.
    fn or(self, other: &Value) -> Value {
        match (self, other) {
            (Value::Pair(a, b), Value::Pair(c, d)) => {
                Value::Pair(Box::new(a.or(c)), Box::new(b.or(d)))
            }
            (a, b) if a == *b => a,
            _ => Value::Other,
        }
    }
}

fn are_inverse(a: &Term, b: &Term) -> bool {
    match (a.op(), b.op()) {
        (Op::Join, Op::Split) | (Op::Split, Op::Join) => a.ty().dom == b.ty().cod,
        (Op::Transpose, Op::Transpose) => true,
        _ => false,
    }
}

fn through(factors: &[Term], x: Value) -> Value {
    factors.iter().rev().fold(x, |x, f| applied(f, x))
}

fn applied(f: &Term, x: Value) -> Value {
    let side = |k: usize, x: Value| Box::new(applied(&f.args()[k], x));
    match f.op() {
        Op::Id => x,
        Op::Compose => through(&f.chain(), x),
        Op::Fst => x.component(false),
        Op::Snd => x.component(true),
        Op::Fork => Value::Pair(side(0, x.clone()), side(1, x)),
        Op::Bimap => Value::Pair(side(0, x.clone().component(false)), side(1, x.component(true))),
        Op::Scatter => x.component(false),
        Op::Cond => applied(&f.args()[1], x.clone()).or(&applied(&f.args()[2], x)),
        Op::Join | Op::Split | Op::Transpose => x.through(f),
        // A loop leaves what each of its steps leaves.
        Op::Fold | Op::While => {
            let Some(step) = f.args().last() else { return Value::Other };
            let (state, other) = (x.component(false), Box::new(Value::Other));
            applied(step, Value::Pair(Box::new(state.clone()), other)).or(&state)
        }
        _ => Value::Other,
    }
}

fn part(next: &Value, t: &Ty, path: &[bool]) -> Part {
    match t {
        Ty::Pair(a, b) => {
            let side = |t, second| {
                Box::new(part(&next.clone().component(second), t, &[path, &[second]].concat()))
            };
            Part::Pair(side(a, false), side(b, true))
        }
        Ty::Array(..) => match next {
            Value::State(from, views) if from == path && views.is_empty() => Part::Updated,
            _ => Part::New,
        },
        _ => Part::Updated,
    }
}

#[cfg(test)]
mod tests {
    use super::{Part, parts};
    use crate::kernel::lower::testing::term;

    /// Returns the parts of the state of a loop in front of which `start` makes the state.
    fn of(op: &str, start: &str) -> Part {
        let t = term(&format!("foldSeq ({op}) . fork ({start}) id . u"), &[("u", "[8]i32")]);
        let fold = t.chain()[0].clone();
        parts(&fold.args()[0].chain(), &fold.ty().cod)
    }

    const ZEROS: &str = "replicate 4 . 0.0 . bang";
    const SCATTER: &str =
        "scatter . fork fst (fork (replicate 1 . snd) (replicate 1 . 1.0 . bang))";

    #[test]
    fn an_update_leaves_the_rest_of_its_array() {
        assert_eq!(of(SCATTER, ZEROS), Part::Updated);
        assert_eq!(
            of(&format!("cond ((\\x -> x > 3) . snd) ({SCATTER}) fst"), ZEROS),
            Part::Updated
        );
        assert_eq!(of("fst", ZEROS), Part::Updated);
        assert_eq!(of("mapSeq (\\x -> x + 1.0) . fst", ZEROS), Part::New);
        assert_eq!(of("reverse . fst", ZEROS), Part::New);
    }

    #[test]
    fn a_loop_leaves_what_its_steps_leave() {
        let inner = |step: &str| format!("foldSeq ({step}) . fork fst (iota 3 i32 . bang)");
        assert_eq!(of(&inner(SCATTER), ZEROS), Part::Updated);
        assert_eq!(of(&inner("mapSeq (\\x -> x + 1.0) . fst"), ZEROS), Part::New);
    }

    #[test]
    fn parts_that_change_places_are_new() {
        let pair = |a, b| Part::Pair(Box::new(a), Box::new(b));
        let start = format!("fork ({ZEROS}) (fork (0.0 . bang) ({ZEROS}))");
        let swap = "fork (snd . snd . fst) (fork (fst . snd . fst) (fst . fst))";
        let scalar = pair(Part::Updated, Part::New);
        assert_eq!(of(swap, &start), pair(Part::New, scalar));
        let keep = "fork (fst . fst) (fork (fst . snd . fst) (reverse . fst . fst))";
        assert_eq!(of(keep, &start), pair(Part::Updated, pair(Part::Updated, Part::New)));
    }

    #[test]
    fn an_element_of_a_matrix_is_updated_in_the_matrix() {
        let matrix = "split 2 . replicate 4 . 0.0 . bang";
        let at = "fork (replicate 1 . snd) (replicate 1 . 1.0 . bang)";
        let flat = format!("split 2 . scatter . fork (join . fst) ({at})");
        assert_eq!(of(&flat, matrix), Part::Updated);
        let turned = format!("split 2 . scatter . fork (join . transpose . fst) ({at})");
        assert_eq!(of(&turned, matrix), Part::New);
    }
}
