//! Finds the best candidate: the search, the worker process, measurement, statistics and the tuning store.
//!
//! Nothing in this module generates candidates or prints.

mod choose;
pub mod crew;
pub mod event;
pub mod kernel_times;
pub mod measure;
pub mod reference;
mod sample;
pub mod search;
pub mod statistics;
pub mod store;
pub mod strategy;
mod surrogate;
pub mod variant;
pub mod worker;
