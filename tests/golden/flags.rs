//! Truth values that lie beside each other are read and stored as vectors.

use crate::check::{cpu, kernels_for};
use patsat::calculus::size::Size;
use patsat::calculus::ty::Ty;
use patsat::kernel::DeviceLimits;
use patsat::lang::types::ScalarType;

#[test]
fn neighbouring_flags_are_vectors() {
    let rt = cpu();
    let flags = Ty::array(&Size::constant(64), &Ty::Scalar(ScalarType::Bool));
    let program = "entry flags (xs: [64]bool) : [8][8]bool = map (map (\\x -> !x)) (split 8 xs)";
    let term = "mapGlb 0 (mapUnroll not) . split 8 . xs";
    let device = DeviceLimits { access_bytes: 16, ..DeviceLimits::default() };
    let k = kernels_for(device, program, &[], &[("xs", flags)], term);
    assert!(k.plan.source.contains("uchar8"), "{}", k.plan.source);
    k.run(&rt);
}
