//! A lying driver: a process between patsat and a worker corrupts the worker's messages.
//!
//! The process is this test executable, run again as `lying_worker`. Nothing of it is in patsat.

use super::{Place, left};
use patsat::diag::Source;
use patsat::session::generate::Generator;
use patsat::session::{Device, Event, Observer, Program, Request, Session};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The lie that a process tells, and a file with one byte for every opportunity so far.
const LIE: &str = "PATSAT_TEST_LIE";
const COUNT: &str = "PATSAT_TEST_LIE_COUNT";

/// Returns the number of opportunities before this one, over all processes.
fn opportunity() -> u64 {
    let path = std::env::var(COUNT).expect("a file to count in");
    let mut file = File::options().append(true).create(true).open(path).expect("it opens");
    file.write_all(b".").expect("it is written");
    file.metadata().expect("a length").len() - 1
}

/// All lies, each with whether it costs the candidate that the message is about.
const LIES: [(&str, bool); 13] = [
    ("hangs", true),
    ("ends", true),
    ("says no more", true),
    ("wrong bytes", true),
    ("too few bytes", true),
    ("no times", true),
    ("no JSON", true),
    ("a huge header", true),
    ("huge contents", true),
    ("answers to come", true),
    ("loses the device", true),
    ("late answers", false),
    ("noise", false),
];

/// A frame, as defined in `src/tune/worker/frame.rs`.
struct Frame {
    header: Value,
    bulk: Vec<u8>,
}

const MARK: &[u8; 8] = b"\xffpatsat\n";

fn read(from: &mut impl Read) -> io::Result<Frame> {
    let mut last = [0; 8];
    while last != *MARK {
        last.rotate_left(1);
        from.read_exact(&mut last[7..])?;
    }
    let (mut short, mut long) = ([0; 4], [0; 8]);
    from.read_exact(&mut short)?;
    from.read_exact(&mut long)?;
    let mut header = vec![0; u32::from_le_bytes(short) as usize];
    let mut bulk = vec![0; usize::try_from(u64::from_le_bytes(long)).expect("fits")];
    from.read_exact(&mut header)?;
    from.read_exact(&mut bulk)?;
    Ok(Frame { header: serde_json::from_slice(&header)?, bulk })
}

fn write(to: &mut impl Write, header: &[u8], bulk: &[u8]) -> io::Result<()> {
    to.write_all(MARK)?;
    to.write_all(&u32::try_from(header.len()).expect("fits").to_le_bytes())?;
    to.write_all(&(bulk.len() as u64).to_le_bytes())?;
    to.write_all(header)?;
    to.write_all(bulk)?;
    to.flush()
}

/// Not a test, but the lying process. Does nothing if there is no lie to tell.
#[test]
#[ignore = "not a test"]
fn lying_worker() {
    let Ok(lie) = std::env::var(LIE) else { return };
    let mut worker = Command::new(env!("CARGO_BIN_EXE_patsat"))
        .arg("worker")
        .stdin(Stdio::inherit())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a worker");
    let mut from = worker.stdout.take().expect("a pipe");
    let mut to = io::stdout().lock();
    let (mut last, mut lost) = (None, false);
    while let Ok(mut frame) = read(&mut from) {
        let reply = frame.header[1].clone();
        // Lie about the first outputs: once some are known to be right, later ones are compared in the worker and
        // not sent.
        let wants = |kind: &str, at: u64| reply[kind].is_object() && opportunity() == at;
        let about_outputs = lie.ends_with("bytes") && wants("outputs", 0);
        let about_times = !lie.ends_with("bytes") && wants("timed", 3);
        let number = frame.header[0].as_u64().unwrap_or_default();
        match lie.as_str() {
            "hangs" if about_times => {
                // Lie during a run, not during compilation.
                let begun = json!([number, "begun"]).to_string();
                write(&mut to, begun.as_bytes(), &[]).expect("written");
                thread::sleep(Duration::from_hours(1));
            }
            "ends" if about_times => std::process::exit(3),
            "says no more" if about_times => {
                // Write something that is not a frame, then nothing, and keep running.
                write(&mut to, b"]", &[]).expect("written");
                thread::sleep(Duration::from_hours(1));
            }
            "wrong bytes" if about_outputs => frame.bulk.iter_mut().for_each(|b| *b ^= 0x55),
            "too few bytes" if about_outputs => frame.bulk.truncate(frame.bulk.len() / 2),
            "no times" if about_times => frame.header = json!([number, {"timed": {"times": []}}]),
            "no JSON" if about_times => {
                write(&mut to, b"\xff\xfe{[", &[]).expect("written");
                continue;
            }
            "a huge header" if about_times => {
                to.write_all(MARK).and_then(|()| to.write_all(&[0xff; 12])).expect("written");
            }
            "huge contents" if about_times => {
                to.write_all(MARK).expect("written");
                to.write_all(&[2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]).expect("written");
                // Write until nobody reads.
                let spaces = vec![b' '; 1 << 16];
                while to.write_all(&spaces).is_ok() {}
            }
            "loses the device" if lost || about_times => {
                // After a fault of a kernel, nothing runs in this process any more.
                lost = true;
                let failure = json!({"class": "resources", "log": "CL_OUT_OF_RESOURCES"});
                frame = Frame { header: json!([number, { "failed": failure }]), bulk: vec![] };
            }
            "answers to come" if about_times => frame.header[0] = json!(number + 1),
            "late answers" => {
                // Repeat the last message, as if it had been delayed.
                if let Some(header) = last.replace(frame.header.to_string()) {
                    write(&mut to, header.as_bytes(), &[]).expect("written");
                }
            }
            "noise" => {
                to.write_all(b"warning: \xff\xffpat the driver says something\n").expect("written");
            }
            _ => {}
        }
        if write(&mut to, frame.header.to_string().as_bytes(), &frame.bulk).is_err() {
            break;
        }
    }
    // Exit here, so that the test harness prints nothing after the worker's messages.
    std::process::exit(0);
}

/// Records the events of candidates.
#[derive(Default)]
struct Seen {
    reported: BTreeSet<String>,
    failed: usize,
}

impl Observer for Seen {
    fn event(&mut self, event: &Event) {
        if let Event::Candidate { variant, fate, .. } = event {
            self.reported.insert(variant.hash.clone());
            self.failed += usize::from(matches!(fate, patsat::tune::store::Fate::Failed(_)));
        }
    }
}

/// Runs a tuning through a lying worker, and returns how many candidates failed.
fn tune(lie: &'static str) -> usize {
    let place = Place::new();
    let mut session = Session::new().expect("the shipped rules");
    session.device = Device::Selected(Some("portable".into()));
    session.budget = 5;
    session.shares = false;
    session.store = Some(place.store());
    if lie == "hangs" {
        session.limits.run_time = Duration::from_secs(8);
    }
    let count = place.path("count");
    let test = std::env::current_exe().expect("this test");
    session.worker = Some(Arc::new(move || {
        let mut command = Command::new(&test);
        command.args(["liar::lying_worker", "--exact", "--ignored", "--nocapture"]);
        command.env(LIE, lie).env(COUNT, &count);
        command
    }));
    let text = "entry f [n] (xs: [n]f32) : [n]f32 = map (\\x -> x * x + 1) xs";
    let program = Program::check(&Source::new("f.pat", text), None).expect("a program");
    let mut request = Request { default: Some(Generator::Normal), ..Request::default() };
    request.sizes.insert("n".to_owned(), 5000);
    let mut seen = Seen::default();
    let found = session.optimize(&program, &request, &mut seen);
    let found = found.unwrap_or_else(|failure| panic!("{lie}: {failure:?}"));
    // The best kernel is right according to the reference, whatever the worker says.
    assert!(found.best.max_rel_err.is_some_and(|e| e < 1e-5), "{lie}");
    let mut left = left(&[]);
    left.reported = seen.reported;
    place.has(&left);
    seen.failed
}

#[test]
fn lies_cost_a_candidate_at_most() {
    for (lie, costs) in LIES {
        let failed = tune(lie);
        assert_eq!(failed > 0, costs, "{lie}: {failed} candidates failed");
    }
}
