//! Terms from their texts, and options, for tests of lowering.

use crate::calculus::term::Term;
use crate::calculus::text::{Context, parse_type, read_term};
use crate::calculus::ty::Ty;
use crate::diag::{Limits, Source};
use crate::kernel::options::{DeviceLimits, Options};

/// A GPU with little local memory.
pub fn options() -> Options {
    let device = DeviceLimits {
        max_work_group_size: 1024,
        max_item_sizes: [1024; 3],
        local_mem_bytes: 1 << 15,
        compute_units: 2,
        ..DeviceLimits::default()
    };
    Options::new("f", device, &Limits::default())
}

/// The term with this text.
pub fn term(text: &str, inputs: &[(&str, &str)]) -> Term {
    let ty = |text: &str| parse_type(&Source::new("t", text), 0..text.len()).expect("a type");
    let inputs = inputs.iter().map(|(n, t)| ((*n).to_owned(), ty(t))).collect();
    let context = Context { inputs, variables: None };
    read_term(&Source::new("f", text), &Ty::Unit, &context).expect("a term")
}
