//! Lowering: from terms to kernels.
//!
//! Takes a low-level term, values of its sizes, and options. [`program`] gives the kernels and the
//! steps of the host. These kernels have no barriers yet, and guards wherever an index may be out
//! of range.
//!
//! Values are views (`view`), and results go to destinations (`dest`). Patterns that only rearrange
//! change views (`apply`); scalar leaves become expressions (`leaf`). `lowerer` holds the state and
//! chooses for each pattern the file that lowers it. `host` starts and ends the kernels. If asked for,
//! `record` describes all this in a [`Schedule`], which can be printed.

mod accumulator;
mod apply;
mod bin_runs;
mod copied_rows;
mod counting_sort;
mod counting_sort_groups;
mod dest;
mod double_buffer;
mod fused;
mod group_loop;
mod group_scatter;
mod host;
mod host_copies;
mod in_place;
mod interleave;
mod irregular;
mod item_while;
mod known;
mod lane_checks;
mod leaf;
mod loops;
mod lowerer;
mod memory;
mod parallel;
mod places;
mod products;
mod record;
mod reduce;
mod reduce_group;
mod scan_group;
mod scan_results;
mod scatter;
mod schedule;
mod shared_bins;
mod staging;
#[cfg(test)]
pub(crate) mod testing;
mod tile_sort;
mod updated;
mod view;
mod warp;
mod words;

pub use host::program;
pub use schedule::{Record, Schedule};
pub use view::{Step, Stop};
