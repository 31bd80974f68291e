//! Arrays of a work-group for which local memory has no room.

use crate::check::{Kernels, array, cpu, kernels_for};
use patsat::kernel::DeviceLimits;

/// Sums of the elements of a row that stand opposite each other, after `f` and `g`: both arrays are needed at once.
fn sums(n: u64, m: u64, local_mem_bytes: usize) -> Kernels {
    let device = DeviceLimits { local_mem_bytes, access_bytes: 16, ..DeviceLimits::default() };
    let program = "entry sums [n][m] (X: [n][m]f32) : [n][m]f32 =
        map (\\r -> map2 (+) (reverse (map abs r)) (reverse (map (* 2) r))) X";
    let term = "mapWrg 0 (mapLcl 0 (+) . zip . fork (reverse . toLocal (mapLcl 0 abs)) \
                (reverse . toLocal (mapLcl 0 (\\x -> x * 2.0)))) . X";
    kernels_for(device, program, &[("n", n), ("m", m)], &[("X", array(&[n, m]))], term)
}

fn all() -> Vec<(Kernels, usize)> {
    // Rows of 384, 400 and 4 bytes; each array begins at a multiple of 64 bytes.
    [(7, 96, 1024, 2), (7, 96, 512, 1), (5, 100, 448, 1), (3, 96, 383, 0), (1, 1, 64, 1)]
        .map(|(n, m, bytes, local)| (sums(n, m, bytes), local))
        .into()
}

#[test]
fn arrays_without_room_are_in_buffers() {
    let rt = cpu();
    for (k, local) in all() {
        assert_eq!(k.plan.source.matches("    local float ").count(), local, "{}", k.plan.source);
        k.run(&rt);
    }
}

#[test]
fn oclgrind_finds_nothing_where_arrays_are_in_buffers() {
    all().iter().for_each(|(k, _)| k.grind());
}
