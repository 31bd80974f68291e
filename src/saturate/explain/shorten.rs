//! Shortens derivations: no term occurs twice, and a change that is undone later without having been needed
//! is removed.

use super::path::Move;
use crate::calculus::position::Position;
use std::collections::HashMap;

/// Returns the same derivation, with fewer moves if possible.
pub(super) fn shorten(moves: Vec<Move>) -> Vec<Move> {
    let mut moves = cut_loops(moves);
    while let Some(shorter) = without_a_pair(&moves) {
        moves = cut_loops(shorter);
    }
    moves
}

/// Removes the moves between two occurrences of the same term.
fn cut_loops(moves: Vec<Move>) -> Vec<Move> {
    let Some(first) = moves.first() else { return moves };
    let mut seen = HashMap::from([(first.before.clone(), 0)]);
    let mut out: Vec<Move> = vec![];
    for m in moves {
        match seen.get(&m.after) {
            Some(&length) => {
                out.truncate(length);
                seen.retain(|_, at| *at <= length);
            }
            None => {
                seen.insert(m.after.clone(), out.len() + 1);
                out.push(m);
            }
        }
    }
    out
}

/// Removes two moves of which the later undoes the earlier, if the moves between them do not need the
/// earlier.
fn without_a_pair(moves: &[Move]) -> Option<Vec<Move>> {
    (0..moves.len()).find_map(|i| {
        (i + 2..moves.len()).filter(|j| undoes(&moves[i], &moves[*j])).find_map(|j| {
            // Move the later one forward until it follows the earlier.
            let mut out = moves.to_vec();
            for k in (i + 1..j).rev() {
                let (first, second) = swap(&out[k], &out[k + 1])?;
                (out[k], out[k + 1]) = (first, second);
            }
            (out[i].before == out[i + 1].after).then(|| {
                out.drain(i..i + 2);
                out
            })
        })
    })
}

fn undoes(earlier: &Move, later: &Move) -> bool {
    earlier.backwards != later.backwards
        && earlier.old.part(&earlier.before) == later.new.part(&later.after)
        && earlier.new.part(&earlier.after) == later.old.part(&later.before)
}

/// Returns two moves in the opposite order, if they change parts that do not overlap.
fn swap(a: &Move, b: &Move) -> Option<(Move, Move)> {
    let (mut b_old, mut a_old) = (b.old.clone(), a.old.clone());
    // The part that `b` changes, before `a` has moved its factors.
    shift(&mut b_old, &a.new, a.old.factors.len())?;
    let b_new = with_length(&b_old, b.new.factors.len());
    let before = a.before.clone();
    let between = b_old.replace(&before, &b.new.part(&b.after)?).ok()?;
    shift(&mut a_old, &b_old, b.new.factors.len())?;
    let a_new = with_length(&a_old, a.new.factors.len());
    let after = a_old.replace(&between, &a.new.part(&a.after)?).ok()?;
    (after == b.after).then(|| {
        let first = Move { before, after: between.clone(), old: b_old, new: b_new, ..b.clone() };
        let second = Move { before: between, after, old: a_old, new: a_new, ..a.clone() };
        (first, second)
    })
}

fn with_length(at: &Position, length: usize) -> Position {
    let start = at.factors.start;
    Position { path: at.path.clone(), factors: start..start + length }
}

/// Moves `at` to its place after the factors at `changed` are replaced by `length` others; `None` when they
/// overlap.
fn shift(at: &mut Position, changed: &Position, length: usize) -> Option<()> {
    let depth = changed.path.len();
    let (from, to) = (changed.factors.start, changed.factors.end);
    let moved = |i: usize| i - (to - from) + length;
    if at.path.get(..depth) != Some(changed.path.as_slice()) {
        // `at` is elsewhere, or encloses `changed` without containing the factor that `changed` is in.
        let around = changed.path.get(..at.path.len()) == Some(at.path.as_slice());
        let inside = around && at.factors.contains(&changed.path[at.path.len()].0);
        return (!inside).then_some(());
    }
    match at.path.get_mut(depth) {
        Some((factor, _)) if *factor >= to => *factor = moved(*factor),
        Some((factor, _)) if *factor < from => {}
        Some(_) => return None,
        None if at.factors.start >= to => {
            at.factors = moved(at.factors.start)..moved(at.factors.end);
        }
        None if at.factors.end <= from => {}
        None => return None,
    }
    Some(())
}
