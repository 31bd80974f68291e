//! The front end: lexer, parser, AST, formatter, type and size inference. Does no IO.

pub mod ast;
pub mod lexer;
pub mod parser;
pub mod size;
pub mod typed;
pub mod types;
