//! Temporaries whose rows are turned, so that neighbouring work-items access neighbouring elements.

use crate::check::{array, cpu, kernels_for};
use patsat::kernel::DeviceLimits;

/// A stage stores five elements in each work-item, and the next reads them row by row.
#[test]
fn turned_temporaries_keep_their_elements() {
    let rt = cpu();
    let stage = "map (\\x -> map (* x) [1, 2, 3, 4, 5]) xs";
    let lowered = "mapGlb 0 (mapSeq (\\(k, x) -> f32.i32 (k + 1) * x) . zip . fork (iota 5 i32) (replicate 5)) . xs";
    let cases = [
        ("map (reduce (+) 0) ys : [n]f32", "mapGlb 0 (reduceSeq (+) 0.0)"),
        ("map (\\row -> map (+ 1) row) ys : [n][5]f32", "mapGlb 0 (mapSeq (\\x -> x + 1.0))"),
    ];
    for (result, then) in cases {
        let (result, ty) = result.split_once(" : ").expect("a type");
        let program =
            format!("entry stages [n] (xs: [n]f32) : {ty} = let ys = {stage} in {result}");
        for n in [1023, 1024, 5003] {
            for access_bytes in [0, 16] {
                let device = DeviceLimits { access_bytes, ..DeviceLimits::default() };
                let term = format!("{then} . {lowered}");
                let inputs = [("xs", array(&[n]))];
                let k = kernels_for(device, &program, &[("n", n)], &inputs, &term);
                let turned = k.plan.source.contains(&format!("temp0[i0 + {n} * "));
                assert_eq!(turned, access_bytes > 0 && n >= 1024, "{}", k.plan.source);
                k.run(&rt);
            }
        }
    }
}
