//! Finds the levels of memory in a curve of bandwidths over working-set sizes.

/// A plateau of the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plateau {
    /// The largest working set that still has this bandwidth, in bytes.
    pub bytes: u64,
    /// Its median bandwidth, in GB/s.
    pub gb_per_s: f64,
}

/// A working set belongs to the current level while it has at least this share of the level's bandwidth.
const SAME: f64 = 0.67;

/// Returns the levels of a curve (bytes and GB/s of each working set, the smallest set first), the fastest level
/// first. Sets between two plateaus fit the faster level in part, and belong to neither. The last level is the memory
/// that serves the largest sets.
pub fn plateaus(curve: &[(u64, f64)]) -> Vec<Plateau> {
    let smooth = descending(&curve.iter().map(|c| c.1).collect::<Vec<_>>());
    let mut found: Vec<Plateau> = vec![];
    let mut start = 0;
    while let Some(&head) = smooth.get(start) {
        let same = |v: &&f64| **v >= SAME * head;
        let len = smooth[start..].iter().take_while(same).count().max(1);
        let end = start + len;
        let middle = smooth[start + (len - 1) / 2];
        // A single set is part of a slope, unless it is at the start or the end of the curve.
        if len > 1 || start == 0 || end == smooth.len() {
            match found.last_mut() {
                Some(level) if middle >= SAME * level.gb_per_s => level.bytes = curve[end - 1].0,
                _ => found.push(Plateau { bytes: curve[end - 1].0, gb_per_s: middle }),
            }
        }
        start = end;
    }
    found
}

/// Returns the largest working set of a curve that a level of this bandwidth still serves in part: its bandwidth
/// exceeds the geometric mean of the level's and that of the memory behind it (the largest sets).
pub fn held(curve: &[(u64, f64)], gb_per_s: f64) -> Option<u64> {
    let behind = curve.last()?.1;
    let edge = (gb_per_s * behind).sqrt();
    curve.iter().rfind(|(_, rate)| *rate > edge).map(|(bytes, _)| *bytes)
}

/// Returns the nearest sequence that never rises, by isotonic regression: neighbours in the wrong order are replaced
/// by their mean.
fn descending(values: &[f64]) -> Vec<f64> {
    let mut blocks: Vec<(f64, usize)> = vec![];
    for &v in values {
        let mut block = (v, 1);
        while let Some(&(mean, count)) = blocks.last() {
            if mean >= block.0 {
                break;
            }
            let total = mean * count as f64 + block.0 * block.1 as f64;
            block = (total / (count + block.1) as f64, count + block.1);
            blocks.pop();
        }
        blocks.push(block);
    }
    blocks.into_iter().flat_map(|(mean, count)| std::iter::repeat_n(mean, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_the_wrong_order_are_evened_out() {
        assert_eq!(descending(&[4.0, 3.0, 3.0, 1.0]), [4.0, 3.0, 3.0, 1.0]);
        assert_eq!(descending(&[4.0, 1.0, 3.0]), [4.0, 2.0, 2.0]);
        assert_eq!(descending(&[1.0, 2.0, 6.0]), [3.0; 3]);
        assert!(descending(&[]).is_empty());
    }

    #[test]
    fn a_level_holds_what_is_faster_than_what_is_behind_it() {
        let curve = [(1, 400.0), (2, 100.0), (3, 90.0), (4, 45.0), (5, 41.0), (6, 40.0)];
        assert_eq!(held(&curve, 100.0), Some(3));
        assert_eq!(held(&curve, 40.0), Some(5));
        assert_eq!(held(&[(1, 40.0)], 40.0), None);
        assert_eq!(held(&[], 40.0), None);
    }

    #[test]
    fn plateaus_are_found_and_slopes_left_out() {
        let of = |bandwidths: &[f64]| -> Vec<(u64, f64)> {
            plateaus(&bandwidths.iter().enumerate().map(|(i, b)| (1 << i, *b)).collect::<Vec<_>>())
                .iter()
                .map(|p| (p.bytes, p.gb_per_s))
                .collect()
        };
        let curve = [400.0, 410.0, 390.0, 300.0, 200.0, 195.0, 200.0, 120.0, 50.0, 48.0, 49.0];
        let found = of(&curve);
        assert_eq!(found.iter().map(|l| l.0).collect::<Vec<_>>(), [8, 64, 1024]);
        assert!((found[1].1 - 200.0).abs() < 5.0 && found[2].1 < 50.0, "{found:?}");
        // One level alone, noise or not.
        assert_eq!(of(&[100.0, 90.0, 105.0, 98.0]).len(), 1);
        assert!(of(&[]).is_empty());
    }
}
