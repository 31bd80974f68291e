//! Runs work on all cores.

use super::STACK_BYTES;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Applies a function to each item, on stacks for recursion over programs. Each core takes the next item when it is done with
/// one. Returns the results in the order of the items.
pub fn on_all_cores<T: Sync, U: Send>(items: &[T], f: impl Fn(&T) -> U + Sync) -> Vec<U> {
    let cores = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut made = vec![];
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(i) else { return made };
            made.push((i, f(item)));
        }
    };
    let mut all: Vec<(usize, U)> = thread::scope(|scope| {
        let start = |_| thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        let threads: Vec<_> = (0..cores).map(start).collect();
        // If the system cannot start a thread, the others do its work; if it starts none, this one does.
        let mut all = if threads.iter().all(Result::is_err) { work() } else { vec![] };
        for thread in threads.into_iter().flatten() {
            // A panic is a bug in patsat, and is passed on as a panic.
            all.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        all
    });
    all.sort_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, made)| made).collect()
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
