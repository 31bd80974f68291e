//! Random values, functions and operators: what laws are tested on.
//!
//! Everything here is made from a random number generator that the caller seeds, so that a test that
//! finds something finds it again. Arithmetic on floats is kept to what is exact on small whole
//! numbers, unless real numbers are asked for. Knows nothing of rules.

mod functions;
mod operators;
mod values;

pub use functions::{Wanted, function, simple_functions};
pub use operators::{Operator, lawful, simple_lawful, unital};
pub use values::{Constant, Style, around, simpler, value};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The generator that everything here draws from.
pub type Rng = ChaCha8Rng;

/// The generator for the `index`th thing of that name under a seed.
pub fn rng(seed: u64, name: &str, index: u64) -> Rng {
    let mut h = blake3::Hasher::new();
    h.update(&seed.to_le_bytes());
    h.update(&index.to_le_bytes());
    h.update(name.as_bytes());
    Rng::from_seed(*h.finalize().as_bytes())
}
