//! The front end: lexer, parser, AST, formatter, type and size inference. Does no IO.

pub mod size;
pub mod typed;
pub mod types;
