pub mod generate;
pub mod inputs;
mod memory;
pub mod npy;
mod program;
mod rules;
pub use program::{Program, Sizes};
pub use rules::{Float, read, rule_set};
