//! Runs work on all cores.

use crate::diag::STACK_BYTES;
use std::panic::resume_unwind;
use std::{io, thread};

/// Applies a function to each item, a share of the items on each core, on stacks for recursion over programs. Returns
/// the results in the order of the items.
pub fn on_all_cores<T: Sync, U: Send>(items: &[T], f: impl Fn(&T) -> U + Sync) -> Vec<U> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let f = &f;
    thread::scope(|scope| {
        let shares: Vec<_> = items
            .chunks(items.len().div_ceil(cores).max(1))
            .map(|share| {
                let work = move || share.iter().map(f).collect::<Vec<_>>();
                (share, thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work))
            })
            .collect();
        let join = |(share, thread): (&[T], io::Result<thread::ScopedJoinHandle<'_, Vec<U>>>)| {
            match thread {
                // A panic is a bug in patsat, and is passed on as a panic.
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // The system cannot start another thread.
                Err(_) => share.iter().map(f).collect(),
            }
        };
        shares.into_iter().flat_map(join).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_items() {
        for n in [0, 1, 2, 100] {
            let items: Vec<usize> = (0..n).collect();
            let squares: Vec<usize> = items.iter().map(|i| i * i).collect();
            assert_eq!(on_all_cores(&items, |i| i * i), squares);
        }
    }

    #[test]
    fn work_may_recurse_over_the_largest_program() {
        fn depth(n: usize) -> usize {
            let frame = std::hint::black_box([n; 128]);
            if n == 0 { 0 } else { depth(n - 1) + usize::from(frame[127] == n) }
        }
        // Eight times the usual stack of a thread.
        assert_eq!(on_all_cores(&[16_000], |n| depth(*n)), [16_000]);
    }
}
