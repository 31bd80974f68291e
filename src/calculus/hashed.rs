//! Values that know their hash.

use rustc_hash::FxHasher;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

/// A value with its hash, which is computed once. Values of different hashes are told apart at once, so a tree
/// of shared nodes is hashed and compared without a walk through it.
pub(super) struct Hashed<T> {
    hash: u64,
    value: T,
}

impl<T: Hash> Hashed<T> {
    pub fn new(value: T) -> Hashed<T> {
        Hashed { hash: hash_of(&value), value }
    }
}

impl<T> Hashed<T> {
    /// The value with a hash that is known: equal values have equal ones.
    pub fn with(hash: u64, value: T) -> Hashed<T> {
        Hashed { hash, value }
    }
}

/// Number of parts of [`Latest`], each with a lock of its own, and of values that each part keeps.
const SHARDS: usize = 64;
const KEPT: usize = 1 << 11;

/// The values that were made last, at places by their hashes: a later one takes the place of an earlier one. An equal value that
/// is made again is the same one, so most values are compared without a walk through them, and what a value knows is found once.
pub(super) struct Latest<T>([Shard<T>; SHARDS]);

type Shard<T> = Mutex<Vec<Option<Arc<Hashed<T>>>>>;

impl<T> Latest<T> {
    pub const fn new() -> Latest<T> {
        Latest([const { Mutex::new(vec![]) }; SHARDS])
    }

    /// Returns the value that is kept with this hash, if `same` holds for it.
    pub fn find(&self, hash: u64, same: impl Fn(&T) -> bool) -> Option<Arc<Hashed<T>>> {
        let (shard, place) = places(hash);
        let shard = self.0[shard].lock().unwrap_or_else(PoisonError::into_inner);
        let kept = shard.get(place)?.clone();
        drop(shard);
        kept.filter(|kept| kept.hash == hash && same(&kept.value))
    }

    /// Keeps a value.
    pub fn keep(&self, value: Arc<Hashed<T>>) {
        let (shard, place) = places(value.hash);
        let mut shard = self.0[shard].lock().unwrap_or_else(PoisonError::into_inner);
        if shard.is_empty() {
            shard.resize_with(KEPT, || None);
        }
        let before = shard[place].replace(value);
        // The last use of a large value may take long.
        drop(shard);
        drop(before);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "part of a hash")]
fn places(hash: u64) -> (usize, usize) {
    (hash as usize % SHARDS, hash as usize / SHARDS % KEPT)
}

/// Returns the hash of a value.
pub(super) fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
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
