//! Statistics of timings.

use serde::{Deserialize, Serialize};

/// Summary of timings, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The median.
    pub median_us: f64,
    /// Half the distance between the quartiles: about half of all runs lie within this distance of the median.
    pub spread_us: f64,
    /// The shortest time.
    pub min_us: f64,
    /// Number of runs.
    pub runs: usize,
}

impl Summary {
    /// Returns the summary of timings; `None` if there are none.
    pub fn of(times_us: &[f64]) -> Option<Summary> {
        let mut sorted = times_us.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Summary {
            median_us: quantile(&sorted, 0.5)?,
            spread_us: (quantile(&sorted, 0.75)? - quantile(&sorted, 0.25)?) / 2.0,
            min_us: *sorted.first()?,
            runs: sorted.len(),
        })
    }

    /// Returns whether the timings cannot tell which of two candidates is faster: the medians differ by no more
    /// than the sum of the spreads.
    pub fn ties(&self, other: &Summary) -> bool {
        (self.median_us - other.median_us).abs() <= self.spread_us + other.spread_us
    }
}

/// Returns the median; `None` if there are no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.5)
}

/// Returns the median distance from the median; `None` if there are no values.
pub fn mad(values: &[f64]) -> Option<f64> {
    let middle = median(values)?;
    median(&values.iter().map(|v| (v - middle).abs()).collect::<Vec<_>>())
}

/// Returns Spearman's rank correlation of pairs of values: 1 if both lists have the same order, -1 if they have
/// opposite orders. Equal values share the mean of their ranks. Returns `None` if the lists differ in length, if
/// all values of a list are equal (so that they have no order), or if a value is NaN.
pub fn spearman(xs: &[f64], ys: &[f64]) -> Option<f64> {
    if xs.len() != ys.len() || xs.iter().chain(ys).any(|v| v.is_nan()) {
        return None;
    }
    let (a, b) = (ranks(xs), ranks(ys));
    // Both lists of ranks have this mean, even with ties.
    let mean = f64::midpoint(1.0, xs.len() as f64);
    let product = |u: &[f64], v: &[f64]| -> f64 {
        u.iter().zip(v).map(|(u, v)| (u - mean) * (v - mean)).sum()
    };
    let both = (product(&a, &a) * product(&b, &b)).sqrt();
    (both > 0.0).then(|| product(&a, &b) / both)
}

/// Returns the rank of each value in increasing order, from 1. Equal values get the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for tied in order.chunk_by(|&i, &j| values[i] == values[j]) {
        let rank = first as f64 + f64::midpoint(1.0, tied.len() as f64);
        tied.iter().for_each(|&i| ranks[i] = rank);
        first += tied.len();
    }
    ranks
}

/// Returns the quantile `q` of a sorted list, interpolated between neighbours.
fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let at = q * sorted.len().checked_sub(1)? as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
    let (low, part) = (at.floor() as usize, at.fract());
    let a = *sorted.get(low)?;
    let b = sorted.get(low + 1).copied().unwrap_or(a);
    Some(a + (b - a) * part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn medians_and_spreads() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[1.0, 2.0]), Some(1.5));
        assert_eq!(mad(&[1.0, 2.0, 9.0]), Some(1.0));
        let s = Summary::of(&[5.0, 1.0, 3.0, 2.0, 4.0]).expect("there are times");
        assert_eq!((s.median_us, s.spread_us, s.min_us, s.runs), (3.0, 1.0, 1.0, 5));
        assert_eq!(Summary::of(&[7.0]).expect("there are times").spread_us, 0.0);
    }

    #[test]
    fn rank_correlation_of_known_values() {
        let close = |a: Option<f64>, b: f64| (a.expect("a correlation") - b).abs() < 1e-12;
        assert!(close(spearman(&[1.0, 2.0, 3.0], &[10.0, 200.0, 3000.0]), 1.0));
        assert!(close(spearman(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), -1.0));
        // Without ties it is 1 - 6 sum(d^2) / (n (n^2 - 1)); here the sum is 194, n is 10.
        let iq = [106.0, 100.0, 86.0, 101.0, 99.0, 103.0, 97.0, 113.0, 112.0, 110.0];
        let hours = [7.0, 27.0, 2.0, 50.0, 28.0, 29.0, 20.0, 12.0, 6.0, 17.0];
        assert!(close(spearman(&iq, &hours), 1.0 - 6.0 * 194.0 / 990.0));
    }

    #[test]
    fn ranks_of_ties_are_averaged() {
        assert_eq!(ranks(&[5.0, 1.0, 5.0, 9.0, 5.0]), [3.0, 1.0, 3.0, 5.0, 3.0]);
        assert_eq!(ranks(&[-0.0, 0.0]), [1.5, 1.5]);
        // Ranks 1, 2.5, 2.5, 4 and 1, 2, 3, 4.
        let r = spearman(&[1.0, 2.0, 2.0, 3.0], &[1.0, 2.0, 3.0, 4.0]).expect("a correlation");
        assert!((r - 4.5 / (4.5f64 * 5.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_correlated_with_a_constant() {
        assert_eq!(spearman(&[], &[]), None);
        assert_eq!(spearman(&[1.0], &[1.0]), None);
        assert_eq!(spearman(&[1.0, 1.0], &[1.0, 2.0]), None);
        assert_eq!(spearman(&[1.0, 2.0], &[1.0]), None);
        assert_eq!(spearman(&[1.0, f64::NAN], &[1.0, 2.0]), None);
    }

    proptest! {
        /// The coefficient depends only on order, is symmetric, and changes sign when one order is reversed.
        #[test]
        fn rank_correlation_sees_order_alone(pairs in vec((-20i32..20, -20i32..20), 2..40)) {
            let (xs, ys): (Vec<f64>, Vec<f64>) =
                pairs.iter().map(|&(x, y)| (f64::from(x), f64::from(y))).unzip();
            let r = spearman(&xs, &ys);
            let grown: Vec<f64> = xs.iter().map(|x| (x / 4.0).exp()).collect();
            let turned: Vec<f64> = xs.iter().map(|x| -x).collect();
            let close = |other: Option<f64>, sign: f64| match (r, other) {
                (Some(a), Some(b)) => (a - sign * b).abs() < 1e-9,
                (a, b) => a == b,
            };
            prop_assert!(r.is_none_or(|r| r.abs() <= 1.0 + 1e-9));
            prop_assert!(close(spearman(&grown, &ys), 1.0));
            prop_assert!(close(spearman(&ys, &xs), 1.0));
            prop_assert!(close(spearman(&turned, &ys), -1.0));
        }
    }

    #[test]
    fn ties_lie_within_the_spread() {
        let s = |median_us, spread_us| Summary { median_us, spread_us, min_us: 0.0, runs: 9 };
        assert!(s(10.0, 1.0).ties(&s(11.5, 0.5)));
        assert!(!s(10.0, 1.0).ties(&s(12.0, 0.5)));
    }
}
