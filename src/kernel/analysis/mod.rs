//! Questions about code, whose answers change nothing.
//!
//! [`hazard`] tells lowering whether an accumulator can be updated in place. [`race`] tells the
//! barrier pass and the verifier which work-items may meet in one element. Both take code of
//! [`ir`](crate::kernel::ir).

pub mod hazard;
pub mod race;
