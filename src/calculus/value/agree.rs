//! Comparison of device buffers with each other, for sizes at which decoding every element is too slow.

use super::compare::{overflow, range};
use super::decode;
use crate::lang::types::ScalarType;

/// Number of elements that are compared at once.
const BLOCK: usize = 4096;

/// The differences between two buffers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Disagreement {
    /// The number of elements that differ.
    pub count: usize,
    /// The indices of some of them: the first, and those that differ most in units of their tolerance.
    pub elements: Vec<usize>,
}

/// Compares two buffers of equal length. Integers and truth values must be equal. Floats may differ by
/// `relative` times the largest of their absolute values and `magnitude`, plus the least normal number. At
/// most `most` elements are listed.
pub fn agree(
    ty: ScalarType,
    left: &[u8],
    right: &[u8],
    relative: f64,
    magnitude: f64,
    most: usize,
) -> Disagreement {
    let off = Offset { ty, relative, magnitude, tiny: range(ty).1 };
    let mut out = Found { most, worst: vec![], ..Found::default() };
    let bytes = BLOCK * ty.bytes();
    for (block, (a, b)) in left.chunks(bytes).zip(right.chunks(bytes)).enumerate() {
        // Comparing bytes is by far the fastest, and different kernels often give equal bytes.
        if a == b || off.all_near(a, b) {
            continue;
        }
        let elements = a.chunks_exact(ty.bytes()).zip(b.chunks_exact(ty.bytes()));
        for (i, (a, b)) in elements.enumerate() {
            out.see(block * BLOCK + i, off.excess(a, b));
        }
    }
    out.finish()
}

struct Offset {
    ty: ScalarType,
    relative: f64,
    magnitude: f64,
    tiny: f64,
}

impl Offset {
    /// Whether all elements are surely within tolerance; the compiler vectorises this loop.
    fn all_near(&self, left: &[u8], right: &[u8]) -> bool {
        match self.ty {
            ScalarType::F32 => {
                self.near(left, right, |x: [u8; 4]| f64::from(f32::from_ne_bytes(x)))
            }
            ScalarType::F64 => self.near(left, right, f64::from_ne_bytes),
            ScalarType::F16 => self.near(left, right, |x| half::f16::from_ne_bytes(x).to_f64()),
            ScalarType::BF16 => self.near(left, right, |x| half::bf16::from_ne_bytes(x).to_f64()),
            _ => false,
        }
    }

    #[inline]
    fn near<const W: usize>(
        &self,
        left: &[u8],
        right: &[u8],
        read: impl Fn([u8; W]) -> f64,
    ) -> bool {
        let (left, right) = (left.as_chunks().0, right.as_chunks().0);
        let far = left.iter().zip(right).filter(|(a, b)| {
            let (a, b) = (read(**a), read(**b));
            let slack = self.relative * a.abs().max(b.abs()).max(self.magnitude) + self.tiny;
            // NaN fails the first comparison, and infinities fail one of the two.
            !((a - b).abs() <= slack && slack < f64::INFINITY)
        });
        far.count() == 0
    }

    /// Returns the difference of two elements in units of their tolerance: more than 1 is too much.
    fn excess(&self, a: &[u8], b: &[u8]) -> f64 {
        let (a, b) = (decode(self.ty, a), decode(self.ty, b));
        if !self.ty.is_float() {
            return if a.bits == b.bits { 0.0 } else { f64::INFINITY };
        }
        let (a, b) = (a.as_float(), b.as_float());
        if a == b || a.is_nan() && b.is_nan() {
            return 0.0;
        }
        let finite = a.abs().min(b.abs());
        let slack = self.relative * finite.max(self.magnitude);
        if a.is_finite() && b.is_finite() {
            let slack = self.relative * a.abs().max(b.abs()).max(self.magnitude) + self.tiny;
            (a - b).abs() / slack
        } else if overflow(a, b, slack, range(self.ty).0) {
            0.0
        } else {
            f64::INFINITY
        }
    }
}

#[derive(Default)]
struct Found {
    most: usize,
    count: usize,
    first: Option<usize>,
    /// The worst elements so far, worst first.
    worst: Vec<(f64, usize)>,
}

impl Found {
    fn see(&mut self, index: usize, excess: f64) {
        if excess <= 1.0 {
            return;
        }
        self.count += 1;
        self.first.get_or_insert(index);
        if self.worst.len() < self.most || self.worst.last().is_some_and(|w| w.0 < excess) {
            let at = self.worst.partition_point(|w| w.0 >= excess);
            self.worst.insert(at, (excess, index));
            self.worst.truncate(self.most);
        }
    }

    fn finish(self) -> Disagreement {
        let mut elements: Vec<usize> = self.first.into_iter().collect();
        for (_, i) in self.worst {
            if !elements.contains(&i) && elements.len() < self.most {
                elements.push(i);
            }
        }
        Disagreement { count: self.count, elements }
    }
}
