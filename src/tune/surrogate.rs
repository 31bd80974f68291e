//! Predicts the times of unmeasured candidates from measurements: a Gaussian process over the cost model's error.
//!
//! The error of a kernel model is systematic: what it overestimates in one kernel (a barrier, a narrow load, an
//! incomplete wave of work-groups) it overestimates in similar kernels. The process therefore regresses the
//! logarithm of measured over predicted time on the similarity of candidates: their tunables, on a logarithmic
//! scale, and the patterns of their skeletons. The prior's mean is the mean error. Its length scales are those that
//! maximise the likelihood of the measurements (Rasmussen and Williams, Gaussian Processes for Machine Learning,
//! 2006, algorithm 2.1 and equation 5.8, with the variance profiled out).

use super::choose::shape;
use super::variant::Variant;
use std::collections::{BTreeMap, BTreeSet};

/// Most measurements used; beyond this, those with the largest errors are left out. The factorisation takes cubic
/// time.
const MOST: usize = 256;
/// Variance that clocks and the driver's compiler add, as a fraction of the process variance.
const NOISE: f64 = 0.02;
/// Length scales to try: for tunables, in octaves (factors of two), and for patterns, in square roots of the number of
/// differences.
const OCTAVES: [f64; 3] = [1.0, 2.0, 4.0];
const PATTERNS: [f64; 3] = [0.7, 1.5, 3.0];
/// Prior standard deviation of the model's error, as a natural logarithm.
const PRIOR: f64 = 0.4;
/// Number of measurements that the prior counts as.
const PRIOR_COUNT: f64 = 3.0;

/// The features by which candidates are compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Features {
    /// The patterns in the skeleton, and the skeleton itself, so that different nesting counts as one more
    /// difference.
    words: BTreeSet<String>,
    /// Base-2 logarithm of each tunable.
    octaves: BTreeMap<String, f64>,
}

impl Features {
    /// Returns the features of a candidate.
    pub fn of(v: &Variant) -> Features {
        let octave = |n: u64| (n.max(1) as f64).log2();
        let words = shape(&v.skeleton).into_iter().map(str::to_owned);
        Features {
            words: words.chain([v.skeleton.clone()]).collect(),
            octaves: v.tunables().into_iter().map(|(s, n)| (s, octave(n))).collect(),
        }
    }

    /// Returns two squared distances: over the tunables that both have, in octaves, and the number of patterns and
    /// tunables that only one has.
    fn apart(&self, other: &Features) -> (f64, f64) {
        let mut octaves = 0.0;
        let mut alien = self.words.symmetric_difference(&other.words).count() as f64;
        for (s, x) in &self.octaves {
            match other.octaves.get(s) {
                Some(y) => octaves += (x - y).powi(2),
                None => alien += 1.0,
            }
        }
        let missing =
            other.octaves.keys().filter(|s| !self.octaves.contains_key(*s)).count() as f64;
        (octaves, alien + missing)
    }
}

/// One measurement.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Features of the measured candidate.
    pub at: Features,
    /// Natural logarithm of measured over predicted time.
    pub error: f64,
}

/// The Gaussian process, conditioned on measurements.
#[derive(Clone, Debug)]
pub struct Surrogate {
    seen: Vec<Observation>,
    scales: (f64, f64),
    mean: f64,
    variance: f64,
    /// Lower triangle of the Cholesky factor of the correlations.
    factor: Vec<Vec<f64>>,
    weights: Vec<f64>,
}

impl Surrogate {
    /// Fits the process to measurements. Without measurements, returns the prior.
    pub fn fit(seen: &[Observation]) -> Surrogate {
        let mut seen = seen.to_vec();
        if seen.len() > MOST {
            seen.sort_by(|a, b| a.error.total_cmp(&b.error));
            seen.truncate(MOST);
        }
        let grid = OCTAVES.into_iter().flat_map(|o| PATTERNS.map(|p| (o, p)));
        let fits = grid.filter_map(|scales| Surrogate::with(&seen, scales));
        let best = fits.max_by(|a, b| a.0.total_cmp(&b.0));
        best.map_or_else(
            || Surrogate {
                seen: vec![],
                scales: (OCTAVES[1], PATTERNS[1]),
                mean: 0.0,
                variance: PRIOR * PRIOR,
                factor: vec![],
                weights: vec![],
            },
            |(_, fit)| fit,
        )
    }

    /// Fits the process with given length scales. Also returns the log-likelihood of the measurements under these
    /// scales, up to a constant.
    fn with(seen: &[Observation], scales: (f64, f64)) -> Option<(f64, Surrogate)> {
        if seen.is_empty() {
            return None;
        }
        let n = seen.len() as f64;
        let mean = seen.iter().map(|o| o.error).sum::<f64>() / n;
        let rows: Vec<Vec<f64>> = (0..seen.len())
            .map(|i| {
                let to = |j: usize| correlation(&seen[i].at, &seen[j].at, scales);
                (0..i).map(to).chain([1.0 + NOISE]).collect()
            })
            .collect();
        let factor = cholesky(rows)?;
        let y: Vec<f64> = seen.iter().map(|o| o.error - mean).collect();
        let half = forward(&factor, &y);
        let squares: f64 = half.iter().map(|x| x * x).sum();
        let variance = (squares + PRIOR_COUNT * PRIOR * PRIOR) / (n + PRIOR_COUNT);
        let weights = backward(&factor, &half);
        let spread: f64 = factor.iter().filter_map(|row| row.last()).map(|d| d.ln()).sum();
        let likely = -0.5 * n * variance.ln() - spread;
        let seen = seen.to_vec();
        Some((likely, Surrogate { seen, scales, mean, variance, factor, weights }))
    }

    /// Returns the mean error of the measurements.
    pub fn mean_error(&self) -> f64 {
        self.mean
    }

    /// Returns the expected error of a candidate and its standard deviation, both of the natural logarithm of
    /// measured over predicted time.
    pub fn error(&self, at: &Features) -> (f64, f64) {
        let near: Vec<f64> =
            self.seen.iter().map(|o| correlation(&o.at, at, self.scales)).collect();
        let mean: f64 = near.iter().zip(&self.weights).map(|(r, w)| r * w).sum();
        let known: f64 = forward(&self.factor, &near).iter().map(|x| x * x).sum();
        (self.mean + mean, (self.variance * (1.0 - known).max(0.0)).sqrt())
    }

    /// Adds the expected error of a candidate as if it had been measured. This leaves expectations as they are, and
    /// lowers the standard deviation of the candidate and of similar ones.
    pub fn believe(&mut self, at: &Features) {
        let (error, _) = self.error(at);
        let near: Vec<f64> =
            self.seen.iter().map(|o| correlation(&o.at, at, self.scales)).collect();
        let mut row = forward(&self.factor, &near);
        let left = 1.0 + NOISE - row.iter().map(|x| x * x).sum::<f64>();
        row.push(left.max(NOISE * NOISE).sqrt());
        self.factor.push(row);
        self.seen.push(Observation { at: at.clone(), error });
        let y: Vec<f64> = self.seen.iter().map(|o| o.error - self.mean).collect();
        self.weights = backward(&self.factor, &forward(&self.factor, &y));
    }
}

fn correlation(a: &Features, b: &Features, (octaves, patterns): (f64, f64)) -> f64 {
    let (near, alien) = a.apart(b);
    (-0.5 * (near / octaves.powi(2) + alien / patterns.powi(2))).exp()
}

/// Returns the Cholesky factor of a symmetric matrix given by its lower triangle; `None` if the matrix is not
/// positive definite.
fn cholesky(mut rows: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    for i in 0..rows.len() {
        let (done, rest) = rows.split_at_mut(i);
        let row = &mut rest[0];
        for j in 0..i {
            let dot: f64 = row[..j].iter().zip(&done[j][..j]).map(|(x, y)| x * y).sum();
            row[j] = (row[j] - dot) / done[j][j];
        }
        let square: f64 = row[..i].iter().map(|x| x * x).sum();
        let left = row[i] - square;
        if left.is_nan() || left <= 0.0 {
            return None;
        }
        row[i] = left.sqrt();
    }
    Some(rows)
}

/// Solves a system of equations with a lower triangular matrix.
fn forward(lower: &[Vec<f64>], y: &[f64]) -> Vec<f64> {
    let mut x: Vec<f64> = Vec::with_capacity(y.len());
    for (row, y) in lower.iter().zip(y) {
        let dot: f64 = row.iter().zip(&x).map(|(a, b)| a * b).sum();
        x.push((y - dot) / row[x.len()]);
    }
    x
}

/// Solves a system of equations with the transpose of a lower triangular matrix.
fn backward(lower: &[Vec<f64>], y: &[f64]) -> Vec<f64> {
    let mut x = y.to_vec();
    for i in (0..x.len()).rev() {
        x[i] /= lower[i][i];
        let xi = x[i];
        for (xj, l) in x[..i].iter_mut().zip(&lower[i]) {
            *xj -= l * xi;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(words: &[&str], tunables: &[(&str, f64)]) -> Features {
        Features {
            words: words.iter().map(|w| (*w).to_owned()).collect(),
            octaves: tunables.iter().map(|(s, x)| ((*s).to_owned(), *x)).collect(),
        }
    }

    #[test]
    fn without_measurements_the_model_is_taken_at_its_word() {
        let (error, spread) = Surrogate::fit(&[]).error(&at(&["seq"], &[]));
        assert_eq!(error, 0.0);
        assert!((spread - PRIOR).abs() < 1e-12);
    }

    #[test]
    fn what_was_measured_is_known_and_what_is_alike_nearly() {
        let seen: Vec<Observation> = (0..6)
            .map(|t| {
                let x = f64::from(t);
                Observation { at: at(&["red"], &[("n.t0", x)]), error: 0.5 * x - 1.0 }
            })
            .chain([Observation { at: at(&["fold", "vec"], &[]), error: 2.0 }])
            .collect();
        let fit = Surrogate::fit(&seen);
        for o in &seen {
            let (error, spread) = fit.error(&o.at);
            assert!((error - o.error).abs() < 0.25, "{error} for {}", o.error);
            assert!(spread < 0.5 * fit.variance.sqrt());
        }
        let (between, near) = fit.error(&at(&["red"], &[("n.t0", 2.5)]));
        assert!((between - 0.25).abs() < 0.25, "{between}");
        let (_, far) = fit.error(&at(&["wrg0", "lcl0", "stage"], &[("m.t0", 9.0)]));
        assert!(near < far);
        // Far from every measurement, the expected error is the mean.
        let (error, _) = fit.error(&at(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"], &[]));
        assert!((error - fit.mean).abs() < 0.05);
    }

    #[test]
    fn to_believe_is_to_be_surer_and_of_no_other_opinion() {
        let seen = [
            Observation { at: at(&["red"], &[("n.t0", 3.0)]), error: 0.4 },
            Observation { at: at(&["red"], &[("n.t0", 6.0)]), error: -0.2 },
        ];
        let mut fit = Surrogate::fit(&seen);
        let (place, other) = (at(&["red"], &[("n.t0", 9.0)]), at(&["red"], &[("n.t0", 8.0)]));
        let (before, doubted) = fit.error(&place);
        let (others, others_doubt) = fit.error(&other);
        fit.believe(&place);
        let (after, sure) = fit.error(&place);
        assert!((before - after).abs() < 1e-6 && sure < 0.2 * doubted);
        let (now, less) = fit.error(&other);
        assert!((now - others).abs() < 1e-6 && less < others_doubt);
    }

    #[test]
    fn triangles_are_solved() {
        let rows = vec![vec![4.0], vec![2.0, 5.0], vec![1.0, 3.0, 6.0]];
        let lower = cholesky(rows.clone()).expect("positive definite");
        let x = [1.0, -2.0, 3.0];
        let full = |i: usize, j: usize| if j <= i { rows[i][j] } else { rows[j][i] };
        let y: Vec<f64> = (0..3).map(|i| (0..3).map(|j| full(i, j) * x[j]).sum()).collect();
        let solved = backward(&lower, &forward(&lower, &y));
        assert!(solved.iter().zip(x).all(|(a, b)| (a - b).abs() < 1e-12), "{solved:?}");
        assert!(cholesky(vec![vec![1.0], vec![2.0, 1.0]]).is_none());
    }
}
