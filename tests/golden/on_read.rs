//! Elements that are computed where they are read.

use crate::check::{array, cpu, kernels};

/// One kernel reads the words, and stores no weights. A shift by a multiple of a remainder needs no test.
#[test]
fn an_operand_is_computed_in_the_kernel_that_reads_it() {
    let (o, g, rt) = (37, 5, cpu());
    let program = "entry w [o] [g] (x: [8*g]f32) (packed: [o][g]f32) : [o]f32 =
        map (\\row -> sum (map2 (*) x (flatten (map (\\w ->
            map (\\k -> f32.u32 ((u32.f32 (abs w) >> u32.i32 (4 * k)) & 15)) (iota 8)) row)))) packed";
    let term = "mapGlb 0 (reduceSeq ((+) . bimap id (*)) 0.0 . zip) . distl . fork x (\
        onRead (map (map (\\(w, k) -> f32.u32 (u32.f32 (abs w) >> u32.i32 (4 * k) & 15u32))) \
        . map (join . cross . fork id (iota 8 i32))) . 'packed)";
    let inputs = [("x", array(&[8 * g])), ("packed", array(&[o, g]))];
    let k = kernels(program, &[("o", o), ("g", g)], &inputs, term);
    assert_eq!(k.plan.launches.len(), 1);
    assert!(!k.text(0).contains("== 0u"), "{}", k.text(0));
    k.run(&rt);
    k.grind();
}
