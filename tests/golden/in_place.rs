//! Loops of the host that update their state in place.

use crate::check::{Kernels, array, cpu, kernels};
use insta::Settings;
use patsat::kernel::ir::Control;

/// Each row of a matrix is divided by the sum of its squares, and 1.
fn rows(n: u64, m: u64) -> Kernels {
    let program = "entry rows [n] [m] (A: [n][m]f32) : [n][m]f32 =
        loop A = A for k < n do
          let s = 1.0 + sum (map (\\x -> x * x) A[k])
          in A with [k] <- map (/ s) A[k]";
    let length = "(+) . fork (1.0 . bang) (reduceSeq ((+) . bimap id (\\x -> x * x)) 0.0)";
    let row = format!("mapGlb 0 (\\(s, x) -> x / s) . distl . fork ({length}) id . index");
    let places = "replicate 1 . snd";
    let term = format!(
        "foldSeq (scatter . fork fst (fork ({places}) (replicate 1 . {row}))) . fork A (iota {n} i32)"
    );
    kernels(program, &[("n", n), ("m", m)], &[("A", array(&[n, m]))], &term)
}

#[test]
fn a_row_is_updated_in_place() {
    let rt = cpu();
    for (n, m) in [(1, 7), (2, 3), (3, 65), (65, 5), (100, 66)] {
        let k = rows(n, m);
        k.run(&rt);
        if n < 70 {
            k.grind();
        }
        let exchanged = k.ir.control.iter().any(|c| matches!(c, Control::Swap(..)));
        assert!(!exchanged, "{}", k.plan.source);
    }
}

/// The result is the only buffer of the state. It is copied from the input once.
#[test]
fn snapshot() {
    let k = rows(100, 66);
    let mut text = format!("{}\n\n", k.term);
    for b in &k.plan.buffers {
        text.push_str(&format!("{}: {} of {:?}, {:?}\n", b.name, b.len, b.elem, b.role));
    }
    for c in k.plan.steps() {
        text.push_str(&format!("{c:?}\n"));
    }
    text.push_str(&format!("\n{}", k.plan.source));
    let mut settings = Settings::clone_current();
    settings.set_snapshot_path("../../snapshots/golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("rows_in_place", text));
}
