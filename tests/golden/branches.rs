//! Branches that a whole work-group takes.

use crate::check::{array, cpu, kernels};

/// A row's reduction under a condition of the row: the group takes one branch, with the barriers in it.
#[test]
fn a_group_reduces_in_a_branch() {
    let (n, m, rt) = (37, 300, cpu());
    let program = "entry spans [n] [m] (xs: [n][m]f32) : [n]f32 =
        map (\\r -> let m = reduce max (-f32.inf) r in
                    if m > 0.5 then reduce (+) 0 (map (\\x -> exp (x - m)) r) else m) xs";
    let term = "mapWrg 0 (cond ((\\m -> m > 0.5) . snd) \
        (reduceLcl 32 (+) 0.0 (\\(m, x) -> exp (x - m)) . distl . fork snd fst) snd \
        . fork id (reduceLcl 32 max (-f32.inf) id)) . xs";
    let k = kernels(program, &[("n", n), ("m", m)], &[("xs", array(&[n, m]))], term);
    k.run(&rt);
    k.grind();
}

/// A choice between rows.
#[test]
fn a_group_stores_one_of_two_rows() {
    let (n, m, rt) = (37, 300, cpu());
    let program = "entry rows [n] [m] (xs: [n][m]f32) : [n][m]f32 =
        map (\\r -> if r[0] > 0.5 then map (\\x -> x / reduce (+) 0 r) r else reverse r) xs";
    let term = "mapWrg 0 (cond ((\\x -> x > 0.5) . index . fork id (0 . bang)) \
        (mapLcl 0 (\\(s, x) -> x / s) . distl . fork (reduceLcl 32 (+) 0.0 id) id) \
        (mapLcl 0 id . reverse)) . xs";
    let k = kernels(program, &[("n", n), ("m", m)], &[("xs", array(&[n, m]))], term);
    k.run(&rt);
    k.grind();
}
