//! Small work-groups that a device starts several at a time.

use crate::check::{array, cpu, kernels_for};
use patsat::kernel::DeviceLimits;

/// Each row has local arrays of its own, and its work-items wait for each other.
#[test]
fn short_rows_are_side_by_side() {
    let rt = cpu();
    let program = "entry rows [n] [m] (xs: [n][m]f32) : [n][m]f32 =
        map (\\row -> let top = reduce max f32.lowest row
                     let e = map (\\x -> exp (x - top)) row
                     let s = reduce (+) 0 e
                     in map (/ s) e) xs";
    let term = "mapWrg 0 (mapLcl 0 (\\(a, b) -> b / a) . distl . fork (reduceLcl 8 (+) 0.0 id) id . mapLcl 0 (\\(a, b) -> exp (b - a)) . distl . fork (reduceLcl 8 max (-f32.inf) id) id) . xs";
    for (n, side_by_side) in [(8192, true), (8191, false), (4096, false)] {
        let device = DeviceLimits { access_bytes: 16, ..DeviceLimits::default() };
        let inputs = [("xs", array(&[n, 32]))];
        let k = kernels_for(device, program, &[("n", n), ("m", 32)], &inputs, term);
        assert_eq!(k.plan.source.contains("get_local_id(1)"), side_by_side, "{}", k.plan.source);
        k.run(&rt);
    }
}
