//! The low-level terms of the papers (`programs/golden`) and every other low-level pattern, compiled without
//! rewriting. `check` contains the helpers.

mod ahead;
mod branches;
mod check;
#[path = "../common/mod.rs"]
mod common;
mod copies;
mod counting_sorts;
mod extraction;
mod flags;
mod fragments;
mod histograms;
mod in_place;
mod layout;
mod listings;
mod oclgrind;
mod on_read;
mod patterns;
mod races;
mod row_blocks;
mod side_by_side;
mod spills;
mod together;
mod updates;
