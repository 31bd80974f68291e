//! Rows of arrays whose pieces are stored in orders of their own.
//!
//! Matrix instructions read pieces at one place of neighbouring rows together, which are in one bank if rows are as long as all banks.
//! Copies store neighbouring pieces of a row together. If each row has an order of its own, both are in different banks, without padding.

use super::MemArray;
use super::index::Index;

/// Bytes of a piece of a row: the largest access.
pub const PIECE: usize = 16;

/// Pieces that all banks hold at once.
const BANKS: i64 = 8;

/// Returns the number of pieces in a row of so many scalars; 0 if a row cannot have an order of its own.
pub fn of_row(scalars: i64, bytes: usize) -> usize {
    let bytes = usize::try_from(scalars).unwrap_or(0).saturating_mul(bytes);
    let pieces = bytes / PIECE;
    if bytes.is_multiple_of(PIECE) && pieces.is_power_of_two() && pieces > 1 { pieces } else { 0 }
}

/// The order of the pieces of an array. Piece `p` is stored at `p ^ (p / together % orders)`, with the numbers of [`Order::turns`]: in the
/// same row.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// Scalars in a piece.
    pub scalars: i64,
    /// Pieces in a row.
    pieces: i64,
}

impl Order {
    /// Returns how many pieces decide an order together, and how many orders there are.
    fn turns(self) -> [i64; 2] {
        [self.pieces.max(BANKS), self.pieces.min(BANKS)]
    }

    /// Returns what gives the place where the part of a piece is stored: `start + parts * (piece ^ turn)`. Each piece has so many parts, and
    /// `i` is the number of the part in the array.
    pub fn parts(self, i: &Index, parts: i64) -> [Index; 3] {
        let (all, part) = i.div_mod(parts);
        let (row, piece) = all.div_mod(self.pieces);
        let [together, orders] = self.turns();
        [row.times(self.pieces * parts).add(&part), piece, all.div(together).rem(orders)]
    }
}

impl MemArray {
    /// Returns the order of the pieces, if rows have orders of their own.
    pub fn order(&self) -> Option<Order> {
        let pieces = i64::try_from(self.pieces).ok().filter(|n| *n > 1)?;
        Some(Order { scalars: i64::try_from(PIECE / self.scalar.bytes()).ok()?, pieces })
    }

    /// Returns where a scalar is stored.
    pub fn stored_at(&self, place: i64) -> i64 {
        let Some(order) = self.order() else { return place };
        let (piece, part) = (place.div_euclid(order.scalars), place.rem_euclid(order.scalars));
        let [together, orders] = order.turns();
        (piece ^ piece.div_euclid(together).rem_euclid(orders)) * order.scalars + part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang::types::ScalarType;
    use std::collections::BTreeSet;

    #[test]
    fn pieces_that_are_accessed_together_are_in_different_banks() {
        for (scalar, row) in [
            (ScalarType::U32, 8),
            (ScalarType::U32, 16),
            (ScalarType::U32, 32),
            (ScalarType::F16, 128),
        ] {
            let (rows, pieces) = (16, of_row(row, scalar.bytes()));
            let len = usize::try_from(rows * row).expect("a length");
            let array = MemArray { name: "a".into(), scalar, len, ahead: 0, pieces };
            let all: BTreeSet<i64> = (0..rows * row).map(|at| array.stored_at(at)).collect();
            assert_eq!(all, (0..rows * row).collect());
            let scalars = array.order().expect("an order").scalars;
            for at in 0..rows * row {
                let parts = array.order().expect("an order").parts(&at.into(), scalars);
                let [start, piece, turn] = parts.map(|i| i.as_constant().expect("a number"));
                assert_eq!(start + scalars * (piece ^ turn), array.stored_at(at), "{row} {at}");
            }
            let banks = |places: &mut dyn Iterator<Item = i64>| {
                places.map(|at| array.stored_at(at) / scalars % 8).collect::<BTreeSet<_>>().len()
            };
            for k in 0..row / scalars {
                assert_eq!(banks(&mut (0..8).map(|r| r * row + k * scalars)), 8, "{row} {k}");
            }
            for first in 0..2 * row / scalars / 8 {
                assert_eq!(banks(&mut (0..8).map(|p| (8 * first + p) * scalars)), 8, "{row}");
            }
        }
    }

    #[test]
    fn other_rows_are_in_order() {
        assert_eq!([4, 12, 24, 30].map(|scalars| of_row(scalars, 4)), [0; 4]);
    }
}
