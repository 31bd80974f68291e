//! Tests of the front end as a whole.

mod arrays;
mod errors;
mod format;
mod programs;
mod robust;
