//! Tests of the front end as a whole.

mod errors;
mod format;
mod programs;
mod robust;
