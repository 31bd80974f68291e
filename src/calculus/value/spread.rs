//! The other values that an integer or truth value may have when rounding decides its value.
//!
//! `i32.f32 x` may be one of two numbers if `x` is within rounding of a whole number, and the index of a
//! least element may be one of several if elements are nearly equal. The alternatives are stored as distances
//! from the value that the interpreter computes: up to three distances, or a range. A range that is too wide
//! to store stands for any value.

/// The other values of a number, packed into one word; 0 means that there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread(pub u64);

/// Tags in the lowest two bits of the word.
const FEW: u64 = 1;
const RANGE: u64 = 2;
const ONE: u64 = 3;

/// Ranges of up to this many values are listed one by one.
const LISTED: i128 = 16;

/// Bits of one distance of a range.
const RANGE_BITS: u32 = 31;
/// Bits of one of up to three distances.
const FEW_BITS: u32 = 20;

impl Spread {
    /// The value is certain.
    pub const NONE: Spread = Spread(0);
    /// It may be any value.
    pub const ANY: Spread = Spread(!0 << 2 | RANGE);

    /// Whether there are no other values.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// All values from `low` to `high`, which enclose `value`.
    pub fn range(value: i128, low: i128, high: i128) -> Spread {
        let (below, above) = (value - low, high - value);
        let most = (1 << RANGE_BITS) - 1;
        if below == 0 && above == 0 {
            Spread::NONE
        } else if !(0..most).contains(&below) || !(0..most).contains(&above) {
            Spread::ANY
        } else {
            let word = |n: i128| u64::try_from(n).unwrap_or_default();
            Spread(RANGE | word(below) << 2 | word(above) << (2 + RANGE_BITS))
        }
    }

    /// The values `all`, which may contain `value`.
    pub fn of(value: i128, all: &[i128]) -> Spread {
        let mut others: Vec<i128> = all.iter().map(|x| x - value).filter(|d| *d != 0).collect();
        others.sort_unstable();
        others.dedup();
        let near = 1i128 << (FEW_BITS - 1);
        match others.as_slice() {
            [] => Spread::NONE,
            few if few.len() <= 3 && few.iter().all(|d| (-near..near).contains(d)) => {
                let mask = (1 << FEW_BITS) - 1;
                let word = |(k, d): (usize, &i128)| {
                    let bits = i64::try_from(*d).unwrap_or_default().cast_unsigned() & mask;
                    bits << (2 + FEW_BITS as usize * k)
                };
                Spread(few.iter().enumerate().map(word).fold(FEW, |all, bits| all | bits))
            }
            [one] if (-(1 << 61)..1 << 61).contains(one) => {
                Spread(ONE | i64::try_from(*one).unwrap_or_default().cast_unsigned() << 2)
            }
            [low, .., high] => Spread::range(value, value + low.min(&0), value + high.max(&0)),
            [_] => Spread::ANY,
        }
    }

    /// Returns the least and the greatest value; `None` when it may be any.
    pub fn ends(self, value: i128) -> Option<(i128, i128)> {
        if self == Spread::ANY {
            return None;
        }
        if self.0 & 3 == RANGE {
            let mask = (1u64 << RANGE_BITS) - 1;
            let (below, above) = (self.0 >> 2 & mask, self.0 >> (2 + RANGE_BITS) & mask);
            return Some((value - i128::from(below), value + i128::from(above)));
        }
        let all = self.values(value)?;
        Some((*all.iter().min()?, *all.iter().max()?))
    }

    /// Returns all values, `value` first; `None` when they are too many to list.
    pub fn values(self, value: i128) -> Option<Vec<i128>> {
        let mut all = vec![value];
        match self.0 & 3 {
            FEW => {
                for k in 0..3 {
                    let shift = 64 - (2 + FEW_BITS * (k + 1));
                    let delta = (self.0 << shift).cast_signed() >> (64 - FEW_BITS);
                    if delta != 0 {
                        all.push(value + i128::from(delta));
                    }
                }
            }
            ONE => all.push(value + i128::from(self.0.cast_signed() >> 2)),
            RANGE => {
                let (low, high) = (self != Spread::ANY).then(|| self.ends(value))??;
                if high - low >= LISTED {
                    return None;
                }
                all.extend((low..=high).filter(|x| *x != value));
            }
            _ => {}
        }
        Some(all)
    }

    /// Whether `x` is `value` or one of the others.
    pub fn contains(self, value: i128, x: i128) -> bool {
        if x == value {
            return true;
        }
        match self.values(value) {
            Some(all) => all.contains(&x),
            None => self.ends(value).is_none_or(|(low, high)| (low..=high).contains(&x)),
        }
    }

    /// Joins the possible values of two numbers, as distances from the first.
    #[must_use]
    pub fn join(self, value: i128, other: i128, spread: Spread) -> Spread {
        if self.is_none() && spread.is_none() && value == other {
            return Spread::NONE;
        }
        if let (Some(mut all), Some(more)) = (self.values(value), spread.values(other)) {
            all.extend(more);
            return Spread::of(value, &all);
        }
        match (self.ends(value), spread.ends(other)) {
            (Some((a, b)), Some((c, d))) => Spread::range(value, a.min(c), b.max(d)),
            _ => Spread::ANY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_packing() {
        let far = 1i128 << 40;
        for others in [
            vec![],
            vec![1],
            vec![-1, 1],
            vec![-500_000, 3, 500_000],
            vec![far],
            vec![-far],
            (-8..8).collect(),
        ] {
            for value in [0, 7, -far] {
                let all: Vec<i128> = others.iter().map(|d| value + d).collect();
                let spread = Spread::of(value, &all);
                let mut want = [all, vec![value]].concat();
                want.sort_unstable();
                want.dedup();
                let mut have = spread.values(value).expect("few values");
                have.sort_unstable();
                assert_eq!(have, want);
                assert!(want.iter().all(|x| spread.contains(value, *x)));
                let high = want[want.len() - 1];
                assert!(!spread.contains(value, high + 1));
                assert_eq!(spread.ends(value), Some((want[0], high)));
            }
        }
    }

    #[test]
    fn many_values_are_a_range_and_too_wide_a_range_is_any() {
        let wide = Spread::of(5, &(0..100).collect::<Vec<_>>());
        assert_eq!((wide.ends(5), wide.values(5)), (Some((0, 99)), None));
        assert!(wide.contains(5, 50) && !wide.contains(5, 100) && !wide.contains(5, -1));
        assert_eq!(Spread::range(0, -1, 1 << 40), Spread::ANY);
        assert!(Spread::ANY.contains(0, i128::from(u64::MAX)));
        assert_eq!(Spread::ANY.ends(3), None);
        let both = wide.join(5, 200, Spread::NONE);
        assert_eq!(both.ends(5), Some((0, 200)));
        assert_eq!(Spread::NONE.join(1, 2, Spread::NONE).values(1), Some(vec![1, 2]));
    }
}
