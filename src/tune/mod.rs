//! Finding the best candidate: the worker process, measurement, statistics and the tuning store.
//!
//! Nothing here generates candidates or prints.

pub mod measure;
pub mod statistics;
pub mod store;
pub mod worker;
