//! Questions about code, whose answers change nothing.
//!
//! [`hazard`] tells lowering whether an accumulator can be updated in place, and [`overwrite`] whether
//! kernels can store the next state of a loop of the host over the present one. [`race`] tells the
//! barrier pass and the verifier which work-items may meet in one element, and [`meeting`] which accesses never do, because of
//! the [`conditions`] under which they are made. [`masks`] says which values are known
//! where a mask does not hold. [`arithmetic`] says which operations on indices are indices.
//! [`interference`] says which arrays cannot share memory. All take code of
//! [`ir`](crate::kernel::ir).

pub mod arithmetic;
pub mod conditions;
pub mod hazard;
pub mod interference;
pub mod masks;
pub mod meeting;
pub mod overwrite;
pub mod race;
pub mod unchanged;
