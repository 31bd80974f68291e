//! `kill -9` at random moments.

use super::{Place, count, left, seed, succeeds};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

/// Number of candidates of a tuning run.
const BUDGET: usize = 6;

/// Kills tuning runs, each at another moment between its start and its end. Each run resumes the previous one until
/// one completes. Returns how many runs were killed, and how many measurements were reported before that.
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
            // The machine is faster now than at the start.
            usual = usual.min(begun.elapsed()).max(Duration::from_millis(50));
            n += 1;
        } else {
            killed += 1;
        }
    }
    // Whatever was left, a last run continues from it.
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
    let (killed, reported) = kill(count(1000), seed(2));
    eprintln!("| `kill -9` at random moments | {killed} | {killed} | 0 of {reported} |");
}
