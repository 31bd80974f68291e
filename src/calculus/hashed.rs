//! Values that know their hash.

use rustc_hash::FxHasher;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// A value with its hash, which is computed once. Values of different hashes are told apart at once, so a tree
/// of shared nodes is hashed and compared without a walk through it.
pub(super) struct Hashed<T> {
    hash: u64,
    value: T,
}

impl<T: Hash> Hashed<T> {
    pub fn new(value: T) -> Hashed<T> {
        let mut hasher = FxHasher::default();
        value.hash(&mut hasher);
        Hashed { hash: hasher.finish(), value }
    }
}

impl<T> Deref for Hashed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Hash for Hashed<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// The value alone: what is printed must not depend on how it is kept.
impl<T: fmt::Debug> fmt::Debug for Hashed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T: PartialEq> PartialEq for Hashed<T> {
    fn eq(&self, other: &Hashed<T>) -> bool {
        std::ptr::eq(self, other) || (self.hash == other.hash && self.value == other.value)
    }
}

impl<T: Eq> Eq for Hashed<T> {}

impl<T: Ord> PartialOrd for Hashed<T> {
    fn partial_cmp(&self, other: &Hashed<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> Ord for Hashed<T> {
    fn cmp(&self, other: &Hashed<T>) -> Ordering {
        if std::ptr::eq(self, other) { Ordering::Equal } else { self.value.cmp(&other.value) }
    }
}
