//! Runs work on all cores.

use std::panic::resume_unwind;
use std::{io, thread};

/// Applies a function to each item, a share of the items on each core. Returns the results in the order of the
/// items.
pub fn on_all_cores<T: Sync, U: Send>(items: &[T], f: impl Fn(&T) -> U + Sync) -> Vec<U> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let f = &f;
    thread::scope(|scope| {
        let shares: Vec<_> = items
            .chunks(items.len().div_ceil(cores).max(1))
            .map(|share| {
                let work = move || share.iter().map(f).collect::<Vec<_>>();
                (share, thread::Builder::new().spawn_scoped(scope, work))
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
}
