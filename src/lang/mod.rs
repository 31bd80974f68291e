//! The front end: lexer, parser, syntax tree, formatter, type and size inference. Does no IO.

pub mod arbitrary;
pub mod ast;
mod check;
pub mod fmt;
mod foreign;
pub mod hierarchy;
mod index;
pub mod inspect;
pub mod lexer;
mod linear;
mod naming;
pub mod parser;
mod prelude;
pub mod scalar_op;
pub mod size;
pub mod smaller;
pub mod typed;
pub mod types;

pub use check::{FreshSizes, check, check_entry, check_entry_general, functions, generators};
pub use fmt::format;
pub use naming::{distance, meant};

#[cfg(test)]
mod tests;
