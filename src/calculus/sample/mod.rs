//! Random values, functions and operators, on which laws are tested.
//!
//! Everything is made from a random number generator that the caller seeds, so that a test reproduces its
//! findings. Arithmetic on floats is restricted to operations that are exact on small whole numbers, unless
//! real numbers are asked for. This module knows nothing of rules.

mod functions;
mod operators;
mod values;

pub use functions::{Wanted, function, simple_functions};
pub use operators::{Operator, lawful, simple_lawful, unital};
pub use values::{Constant, Style, around, simpler, value};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The random number generator of this module.
pub type Rng = ChaCha8Rng;

/// Returns the generator for the `index`th sample of that name under a seed.
pub fn rng(seed: u64, name: &str, index: u64) -> Rng {
    let mut h = blake3::Hasher::new();
    h.update(&seed.to_le_bytes());
    h.update(&index.to_le_bytes());
    h.update(name.as_bytes());
    Rng::from_seed(*h.finalize().as_bytes())
}
