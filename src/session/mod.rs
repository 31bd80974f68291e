//! The facade: one call for each thing a person does.

pub mod generate;
pub mod npy;
