//! What a set of timings says.

use serde::{Deserialize, Serialize};

/// Timings in short. All in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The median.
    pub median_us: f64,
    /// Half the distance between the quartiles: about half of all runs lie within it of the median.
    pub spread_us: f64,
    /// The shortest.
    pub min_us: f64,
    /// How many runs.
    pub runs: usize,
}

impl Summary {
    /// Summarises timings; `None` of none.
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

    /// Whether two candidates are as fast as each other, as far as these timings can tell: the medians
    /// differ by no more than the two spreads together.
    pub fn ties(&self, other: &Summary) -> bool {
        (self.median_us - other.median_us).abs() <= self.spread_us + other.spread_us
    }
}

/// The median; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.5)
}

/// The median distance from the median; `None` of nothing.
pub fn mad(values: &[f64]) -> Option<f64> {
    let middle = median(values)?;
    median(&values.iter().map(|v| (v - middle).abs()).collect::<Vec<_>>())
}

/// The value a share `q` of a sorted list lies below, interpolated between neighbours.
fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let at = q * sorted.len().checked_sub(1)? as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    let a = *sorted.get(low)?;
    let b = sorted.get(low + 1).copied().unwrap_or(a);
    Some(a + (b - a) * part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_spreads() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[1.0, 2.0]), Some(1.5));
        assert_eq!(mad(&[1.0, 2.0, 9.0]), Some(1.0));
        let s = Summary::of(&[5.0, 1.0, 3.0, 2.0, 4.0]).unwrap();
        assert_eq!((s.median_us, s.spread_us, s.min_us, s.runs), (3.0, 1.0, 1.0, 5));
        assert_eq!(Summary::of(&[7.0]).unwrap().spread_us, 0.0);
    }

    #[test]
    fn ties_lie_within_the_spread() {
        let s = |median_us, spread_us| Summary { median_us, spread_us, min_us: 0.0, runs: 9 };
        assert!(s(10.0, 1.0).ties(&s(11.5, 0.5)));
        assert!(!s(10.0, 1.0).ties(&s(12.0, 0.5)));
    }
}
