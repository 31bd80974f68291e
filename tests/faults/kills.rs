//! `kill -9` at random moments.

use super::{Place, count, left, succeeds};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

/// Candidates of one tuning.
const BUDGET: usize = 6;

/// Kills tunings, each at a moment of its own between its start and its end; what is left of one tuning is gone on with by the
/// next, until it gets through. Says how many were killed and how many measurements were reported before.
fn kill(faults: usize, seed: u64) -> (usize, usize) {
    let place = Place::new();
    let mut rng = SmallRng::seed_from_u64(seed);
    let begun = Instant::now();
    succeeds(place.tuning(999, BUDGET));
    let mut usual = begun.elapsed();
    let (mut n, mut killed, mut reported) = (1000, 0, 0);
    while killed < faults {
        let mut child = place.tuning(n, BUDGET).spawn().expect("it starts");
        let begun = Instant::now();
        let mut out = child.stdout.take().expect("a pipe");
        let reader = thread::spawn(move || {
            let mut text = vec![];
            out.read_to_end(&mut text).map(|_| text)
        });
        thread::sleep(usual.mul_f64(rng.random_range(0.0..1.0)));
        let over = child.try_wait().expect("a status").is_some();
        child.kill().expect("it is killed");
        child.wait().expect("a status");
        let text = reader.join().expect("a reader").expect("its output");
        let left = left(&text);
        place.has(&left);
        reported += left.reported.len();
        if over {
            // The machine is faster than it was.
            usual = usual.min(begun.elapsed()).max(Duration::from_millis(50));
            n += 1;
        } else {
            killed += 1;
        }
    }
    // Whatever was left goes on.
    let last = succeeds(place.tuning(n, BUDGET));
    place.has(&left(&last.stdout));
    (killed, reported)
}

#[test]
fn kills_lose_nothing() {
    kill(count(6), 1);
}

#[test]
#[ignore = "the slow suite: minutes"]
fn a_thousand_kills_lose_nothing() {
    let (killed, reported) = kill(count(1000), 2);
    eprintln!("| `kill -9` at random moments | {killed} | {killed} | 0 of {reported} |");
}
