//! Tests of the front end as a whole.

mod format;
mod programs;
mod robust;
