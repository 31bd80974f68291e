//! The front end: lexer, parser, syntax tree, formatter, type and size inference. Does no IO.

pub mod arbitrary;
pub mod ast;
mod check;
pub mod fmt;
pub mod hierarchy;
pub mod lexer;
mod linear;
pub mod parser;
mod prelude;
pub mod scalar_op;
pub mod size;
pub mod smaller;
pub mod typed;
pub mod types;

pub use check::{FreshSizes, check, check_entry, check_entry_general, distance};
pub use fmt::format;

#[cfg(test)]
mod tests;
