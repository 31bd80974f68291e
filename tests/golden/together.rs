//! Reductions and loops by all work-items of a group (`reduceLcl`, `foldSeq`), rows that stay in the registers of the work-items that
//! compute them, and data that is loaded once for several stages.

use crate::check::{Kernels, array, cpu, kernels_for};
use crate::races::{changed, is_missed};
use patsat::kernel::DeviceLimits;
use patsat::kernel::ir::{Expr, Mem, Stmt};

/// Numbers of rows and their lengths: shorter than a group, equally long, several rounds, with and without vectors.
const SHAPES: &[[u64; 2]] =
    &[[3, 1], [2, 7], [5, 16], [3, 64], [2, 100], [3, 256], [2, 1000], [1, 1028]];

fn rows(program: &str, n: u64, m: u64, row: &str) -> Kernels {
    rows_for(device(), program, n, m, row)
}

fn device() -> DeviceLimits {
    DeviceLimits { access_bytes: 16, ..DeviceLimits::default() }
}

fn rows_for(device: DeviceLimits, program: &str, n: u64, m: u64, row: &str) -> Kernels {
    let sizes = [("n", n), ("m", m)];
    let term = format!("mapWrg 0 ({row}) . xs");
    kernels_for(device, program, &sizes, &[("xs", array(&[n, m]))], &term)
}

fn sum(n: u64, m: u64, group: u64) -> Kernels {
    let program =
        "entry sums [n][m] (xs: [n][m]f32) : [n]f32 = map (\\r -> reduce (+) 0 (map abs r)) xs";
    rows(program, n, m, &format!("reduceLcl {group} (+) 0.0 abs"))
}

/// Combines the elements of each row with the row's sum. The elements are read from registers; with `again`, they
/// are also read in another order.
fn centred(n: u64, m: u64, again: &str) -> Kernels {
    let program = format!(
        "entry centred [n][m] (xs: [n][m]f32) : [n][m]f32 =
           map (\\r -> let d = map (\\x -> 2 * x) r let s = reduce (+) 0 d
                      in map2 (\\a b -> a + b - s) d ({} d)) xs",
        if again == "reverse" { "reverse" } else { "" }
    );
    let row = format!(
        "mapLcl 0 (\\(s, (a, b)) -> a + b - s) . distl . fork (reduceLcl 16 (+) 0.0 id) (zip . fork id {again}) \
         . mapLcl 0 (\\x -> 2.0 * x)"
    );
    rows(&program, n, m, &row)
}

/// A loop of `k` steps over each row, in which neighbours meet.
fn smoothed(n: u64, m: u64, k: u64) -> Kernels {
    smoothed_for(device(), n, m, k)
}

fn smoothed_for(device: DeviceLimits, n: u64, m: u64, k: u64) -> Kernels {
    let program = format!(
        "entry smoothed [n][m] (xs: [n][m]f32) : [n][m]f32 =
           map (\\r -> loop v = map abs r for t < {k} do map2 (\\a b -> 0.5 * (a + b)) v (rotate 1 v)) xs"
    );
    let step = "mapLcl 0 (\\(a, b) -> 0.5 * (a + b)) . zip . fork fst (rotate 1 . fst)";
    let row = format!("foldSeq ({step}) . fork (mapLcl 0 abs) (iota {k} i32)");
    rows_for(device, &program, n, m, &row)
}

/// A loop over two arrays, each of which is computed from both.
fn exchanged(n: u64, m: u64, k: u64) -> Kernels {
    let program = format!(
        "entry exchanged [n][m] (xs: [n][m]f32) : [n][m]f32 =
           map (\\r -> let (a, b) = loop (a, b) = (r, r) for t < {k} do (map2 (+) a (reverse b), map2 max b (rotate 1 a))
                      in map2 (-) a b) xs"
    );
    let step = "fork (mapLcl 0 (+) . zip . bimap id reverse . fst) (mapLcl 0 max . zip . fork snd (rotate 1 . fst) . fst)";
    let start = "fork (fork id id) (iota K i32)".replace('K', &k.to_string());
    rows(&program, n, m, &format!("mapLcl 0 (-) . zip . foldSeq ({step}) . {start}"))
}

fn loops() -> Vec<Kernels> {
    let shapes = [[3, 1, 4], [2, 7, 0], [2, 7, 1], [5, 16, 2], [2, 100, 5], [1, 1028, 3]];
    shapes.iter().flat_map(|[n, m, k]| [smoothed(*n, *m, *k), exchanged(*n, *m, *k)]).collect()
}

#[test]
fn groups_run_loops() {
    let rt = cpu();
    loops().iter().for_each(|k| k.run(&rt));
}

#[test]
fn oclgrind_finds_nothing_where_groups_run_loops() {
    loops().iter().for_each(Kernels::grind);
}

/// The row of a group is in local memory, once for each of two states, if both fit.
#[test]
fn long_states_of_loops_are_in_buffers() {
    let rt = cpu();
    for (m, local) in [(7, true), (100, true), (100, false), (257, false), (1028, false)] {
        let bytes = usize::try_from(m).expect("a length") * 4 * if local { 2 } else { 1 };
        let device = DeviceLimits { local_mem_bytes: bytes.next_multiple_of(256), ..device() };
        let k = smoothed_for(device, 1, m, 5);
        assert_eq!(k.plan.source.contains("local float"), local, "{}", k.plan.source);
        // The work-items exchange elements of a buffer, so none has it to itself.
        assert!(!k.plan.source.contains("restrict temp"), "{}", k.plan.source);
        k.run(&rt);
        k.grind();
    }
}

/// A loop whose steps store a row of a state that local memory does not hold. The row is there until all work-items have read what
/// they need of the state.
#[test]
fn rows_of_long_states_are_stored_in_buffers() {
    let rt = cpu();
    for (n, m, local) in [(4, 7, true), (4, 100, false), (9, 257, false), (3, 1028, false)] {
        let steps = n - 1;
        let program = format!(
            "entry updated [n][m] (xs: [n][m]f32) : [n][m]f32 =
               loop v = xs for t < {steps} do v with [t + 1] <- map2 (+) v[t] (rotate 1 v[t + 1])"
        );
        let term = format!(
            "the . mapWrg 0 (foldSeq (scatter . fork fst (fork (replicate 1 . (\\x -> x + 1) . snd) (replicate 1 . \
             mapLcl 0 (+) . zip . fork index (rotate 1 . index . bimap id (\\x -> x + 1))))) . \
             fork id (iota {steps} i32)) . wrap . xs"
        );
        let bytes = usize::try_from(4 * m * if local { n + 1 } else { 1 }).expect("a length");
        let device = DeviceLimits { local_mem_bytes: bytes.next_multiple_of(256), ..device() };
        let k =
            kernels_for(device, &program, &[("n", n), ("m", m)], &[("xs", array(&[n, m]))], &term);
        assert_eq!(k.plan.source.contains("temp"), !local, "{}", k.plan.source);
        assert!(!k.plan.source.contains("restrict temp"), "{}", k.plan.source);
        k.run(&rt);
        k.grind();
    }
}

#[test]
fn every_barrier_of_a_loop_is_needed() {
    let k = smoothed(3, 100, 6);
    let (_, count) = changed(&k.ir, &|_, s| Some(s.clone()));
    let missed = (0..count).filter(|b| is_missed(&k.ir, *b)).count();
    // Two steps in an iteration. Each work-item stores those elements of the result that it computed.
    assert_eq!((count, missed), (2, 2), "{}", k.plan.source);
}

fn all() -> Vec<Kernels> {
    let mut out = vec![];
    for [n, m] in SHAPES {
        out.extend([16, 64, 100].map(|group| sum(*n, *m, group)));
        out.extend(["id", "reverse"].map(|again| centred(*n, *m, again)));
    }
    out
}

#[test]
fn groups_reduce_together() {
    let rt = cpu();
    all().iter().for_each(|k| k.run(&rt));
}

#[test]
fn oclgrind_finds_nothing_where_groups_reduce_together() {
    all().iter().for_each(Kernels::grind);
}

#[test]
fn every_barrier_of_a_reduction_is_needed() {
    let k = sum(3, 1000, 64);
    let (count, missed) = {
        let (_, count) = changed(&k.ir, &|_, s| Some(s.clone()));
        (count, (0..count).filter(|b| is_missed(&k.ir, *b)).count())
    };
    assert_eq!((count, missed), (2, 2), "{}", k.plan.source);
}

/// Returns the number of loads from global memory in a kernel; a load in a loop counts once.
fn loads(k: &Kernels) -> usize {
    let mut n = 0;
    for s in &k.ir.kernels[0].body {
        s.visit(&mut |s: &Stmt| {
            s.exprs(&mut |e| {
                e.visit(&mut |e| n += usize::from(matches!(e, Expr::Load(Mem::Global(_), ..))));
            });
        });
    }
    n
}

#[test]
fn a_row_that_work_items_share_out_alike_stays_in_registers() {
    let k = centred(2, 256, "id");
    assert_eq!(k.ir.kernels[0].local_bytes(), 16 * 4, "partial sums alone: {}", k.plan.source);
    // In another order, other work-items read the elements.
    let k = centred(2, 256, "reverse");
    assert!(k.ir.kernels[0].local_bytes() > 256 * 4, "{}", k.plan.source);
}

#[test]
fn what_two_stages_read_is_loaded_once() {
    let program = "entry scaled [n][m] (xs: [n][m]f32) : [n][m]f32 =
        map (\\r -> let s = reduce (+) 0 r in map (\\x -> x - s) r) xs";
    let row = "mapLcl 0 (\\(s, x) -> x - s) . distl . fork (reduceLcl 16 (+) 0.0 id) id";
    for (m, most) in [(16, 1), (256, 16), (100, 8)] {
        let k = rows(program, 2, m, row);
        k.run(&cpu());
        assert!(loads(&k) <= most, "{} loads: {}", loads(&k), k.plan.source);
    }
}
