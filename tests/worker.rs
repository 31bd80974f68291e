//! Candidates that misbehave, in a real worker process on a real device.

use patsat::diag::{Code, Limits};
use patsat::lang::types::ScalarType;
use patsat::opencl::host::{HostArray, Inputs};
use patsat::opencl::plan::{Arg, Buffer, HostPlan, Launch, Role};
use patsat::tune::crew::Crew;
use patsat::tune::measure::{Outcome, Schedule, measure};
use patsat::tune::worker::{
    CandidateFailure, CandidateId, FailureClass, Worker, WorkerError, digest,
};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const N: usize = 4096;

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_patsat"));
    command.arg("worker");
    command
}

fn worker(device: Option<&str>) -> Worker {
    let limits = Limits { run_time: Duration::from_secs(3), ..Limits::default() };
    worker_under(device, &Limits { build_time: Duration::from_secs(5), ..limits })
}

fn worker_under(device: Option<&str>, limits: &Limits) -> Worker {
    let mut inputs = Inputs::default();
    inputs.insert("x", 0, HostArray::from_slice(&(0..N).map(|i| i as f32).collect::<Vec<_>>()));
    Worker::new(command, device.map(str::to_string), Arc::new(inputs), limits)
}

fn plan(body: &str, local: usize) -> Arc<HostPlan> {
    let buffer =
        |name: &str, role| Buffer { name: name.into(), elem: ScalarType::F32, len: N, role };
    Arc::new(HostPlan {
        source: format!(
            "kernel void k(global const float *x, global float *y) {{ size_t i = get_global_id(0); {body} }}"
        ),
        options: String::new(),
        buffers: vec![buffer("x", Role::Input("x".into(), 0)), buffer("y", Role::Output(0))],
        scalars: vec![],
        launches: vec![Launch {
            kernel: "k".into(),
            args: vec![Arg::Buffer(0), Arg::Buffer(1)],
            global: [N, 1, 1],
            local: [local, 1, 1],
        }],
        faults: vec![],
        control: vec![],
    })
}

const GOOD: &str = "y[i] = x[i] + 1;";

fn is_good(w: &mut Worker, id: CandidateId) -> bool {
    let (_, outputs) = w.check(id).expect("it runs");
    let ys = outputs[0].to_vec::<f32>().expect("of that type");
    ys.iter().enumerate().all(|(i, y)| *y == i as f32 + 1.0)
}

fn failure<T>(answer: Result<T, WorkerError>) -> CandidateFailure {
    match answer {
        Err(WorkerError::Candidate(failure)) => failure,
        Err(WorkerError::Worker(failure)) => panic!("the worker failed: {failure}"),
        Err(WorkerError::Interrupted) => panic!("nobody asked it to stop"),
        Ok(_) => panic!("the candidate did not fail"),
    }
}

#[test]
fn bad_candidates_cost_only_themselves() {
    let mut w = worker(None);
    let (good, build) = w.prepare(plan(GOOD, 64)).expect("it builds");
    assert!(build.ms > 0.0 && is_good(&mut w, good));

    let build = failure(w.prepare(plan("y[i] = nonsense;", 64)));
    assert_eq!(build.class, FailureClass::Build);
    assert!(build.log.contains("nonsense"), "{}", build.log);

    let local = failure(w.prepare(plan(GOOD, 100)));
    assert_eq!(local.class, FailureClass::Resources);
    assert_eq!(w.restarts(), 0);

    // The volatile read keeps the loop: without it, a compiler may assume that it ends.
    let (endless, _) = w
        .prepare(plan("volatile global float *p = y; while (p[0] != 42.5f) { p[1] = 1; }", 64))
        .expect("it builds");
    let limits = w.run(endless, 1, Duration::ZERO);
    assert_eq!(failure(limits).class, FailureClass::Timeout);
    assert_eq!(w.restarts(), 1);
    // The candidate is not tried again.
    assert_eq!(failure(w.run(endless, 1, Duration::ZERO)).class, FailureClass::Timeout);
    assert_eq!(w.restarts(), 1);
    // The other candidates are rebuilt when they are needed.
    assert!(is_good(&mut w, good));

    let (wild, _) =
        w.prepare(plan("((global float *)(16 + i * 4096))[0] = x[i];", 64)).expect("it builds");
    assert_eq!(failure(w.run(wild, 1, Duration::ZERO)).class, FailureClass::Crash);
    assert_eq!(w.restarts(), 2);
    assert!(is_good(&mut w, good));
    w.forget(wild);
    w.forget(good);
}

#[test]
fn outputs_that_are_known_stay_where_they_are() {
    let mut w = worker(None);
    let (good, _) = w.prepare(plan(GOOD, 64)).expect("it builds");
    let (twin, _) = w.prepare(plan("y[i] = 1 + x[i];", 32)).expect("it builds");
    let (wrong, _) = w.prepare(plan("y[i] = i == 77 ? 0 : x[i] + 1;", 64)).expect("it builds");
    let (_, outputs) = w.check(good).expect("outputs");
    let known = digest(&outputs);
    assert!(matches!(w.check_unless(good, Some(&known)), Ok((_, None))));
    assert!(matches!(w.check_unless(twin, Some(&known)), Ok((_, None))));
    let (_, others) = w.check_unless(wrong, Some(&known)).expect("outputs");
    assert_ne!(digest(&others.expect("what is not known is fetched")), known);
    assert!(is_good(&mut w, good));
    // Outputs with equal bytes but different types are different.
    let zeros = [HostArray::from_slice(&[0f32; 2]), HostArray::from_slice(&[0i32; 2])];
    assert_ne!(digest(&zeros[..1]), digest(&zeros[1..]));
}

#[test]
fn kernels_may_print() {
    let mut w = worker(None);
    let (id, _) = w
        .prepare(plan("if (i == 0) printf(\"hello\\n\"); y[i] = x[i] + 1;", 64))
        .expect("it builds");
    assert!(is_good(&mut w, id));
    assert!(is_good(&mut w, id));
}

#[test]
fn a_kernel_that_hangs_takes_little_of_the_time_for_compiling() {
    let limits = Limits {
        run_time: Duration::from_secs(1),
        build_time: Duration::from_secs(100_000),
        ..Limits::default()
    };
    let mut w = worker_under(None, &limits);
    let id = w.prepare(plan("for (;;) y[i] = x[i] + 5;", 64)).expect("it builds").0;
    assert_eq!(failure(w.check(id)).class, FailureClass::Timeout);
}

#[test]
fn a_worker_ends_when_the_work_is_to_stop() {
    let limits = Limits { run_time: Duration::from_secs(100_000), ..Limits::default() };
    let mut w = worker_under(None, &limits);
    let id = w.prepare(plan("for (;;) y[i] = x[i] + 6;", 64)).expect("it builds").0;
    let later = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(1));
        limits.interrupt.request()
    });
    assert!(matches!(w.check(id), Err(WorkerError::Interrupted)));
    assert!(matches!(w.prepare(plan(GOOD, 64)), Err(WorkerError::Interrupted)));
    assert!(!later.join().expect("a thread"));
}

#[test]
fn candidates_are_measured_together() {
    let mut w = worker(None);
    let slow = "float s = 0; for (int k = 0; k < 1000; ++k) s += sin(x[i] + k); y[i] = s;";
    let ids = [
        w.prepare(plan(GOOD, 64)).expect("it builds").0,
        w.prepare(plan(slow, 64)).expect("it builds").0,
        w.prepare(plan(GOOD, 256)).expect("it builds").0,
    ];
    let measured = measure(&mut w, &ids, &Schedule::default(), || true).expect("the worker lives");
    assert_eq!(measured.iter().map(|m| m.0).collect::<Vec<_>>(), ids);
    assert!(matches!(measured[0].1, Outcome::Timed(_) | Outcome::Slow(_)), "{measured:?}");
    assert!(matches!(measured[1].1, Outcome::Slow(s) if s.runs == 1), "{measured:?}");
}

#[test]
fn an_unknown_device_is_the_workers_failure() {
    let failure = worker(Some("no such device")).device().unwrap_err();
    assert_eq!(failure.0[0].code, Code::UnknownDevice);
    assert!(!failure.0[0].notes.is_empty());
}

#[test]
fn a_missing_executable_is_the_workers_failure() {
    let limits = Limits::default();
    let mut w = Worker::new(
        || Command::new("/no/such/program"),
        None,
        Arc::new(Inputs::default()),
        &limits,
    );
    assert!(w.device().is_err());
    // A program that is not a worker.
    let mut w = Worker::new(|| Command::new("true"), None, Arc::new(Inputs::default()), &limits);
    assert_eq!(w.device().unwrap_err().0[0].code, Code::Driver);
}

#[test]
fn without_a_platform_it_says_what_to_install() {
    let command = || {
        let mut command = command();
        command.env("OCL_ICD_VENDORS", "/no/such/folder");
        command
    };
    let mut w = Worker::new(command, None, Arc::new(Inputs::default()), &Limits::default());
    let failure = w.device().unwrap_err();
    assert_eq!(failure.0[0].code, Code::NoOpenCl);
    assert!(failure.0[0].help.iter().any(|h| h.contains("pocl-opencl-icd")));
}

#[test]
fn a_crew_builds_what_the_worker_then_loads() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let cache = || Some(folder.path().to_owned());
    for in_the_way in [false, true] {
        let members = vec![worker(None).caching(cache()), worker(None).caching(cache())];
        let mut crew = Crew::new(members, in_the_way);
        assert_eq!(crew.is_in_the_way(), in_the_way);
        let body = |k: usize| format!("y[i] = x[i] + {};", k + 10 * usize::from(in_the_way));
        let plans: Vec<_> = (0..6).map(|k| plan(&body(k), 64)).collect();
        let bad = plan("y[i] = nonsense;", 64);
        plans.iter().enumerate().for_each(|(k, plan)| crew.ask(&k.to_string(), plan));
        crew.ask("bad", &bad);
        crew.ask("bad", &bad);
        let mut w = worker(None).caching(cache());
        for (k, plan) in plans.iter().enumerate() {
            let built = crew.wait(&k.to_string(), || true).expect("it was asked for");
            assert!(!built.expect("it builds").cached);
            assert!(w.prepare(plan.clone()).expect("it builds").1.cached);
        }
        let failure = crew.wait("bad", || true).expect("it was asked for").expect_err("it fails");
        assert_eq!(failure.class, FailureClass::Build);
        // A candidate that was not asked for, and one whose outcome was already taken.
        assert!(crew.wait("other", || true).is_none() && crew.wait("bad", || true).is_none());
        // A wait that is told to stop returns nothing.
        crew.ask("hang", &plan(&format!("for (;;) y[i] = x[i] + {};", u8::from(in_the_way)), 64));
        assert!(!in_the_way || crew.wait("hang", || false).is_none());
    }
}

#[test]
fn a_crew_that_cannot_work_says_nothing() {
    let mut crew = Crew::new(vec![worker(Some("no such device"))], true);
    for name in ["a", "b"] {
        crew.ask(name, &plan(GOOD, 64));
    }
    assert!(crew.wait("a", || true).is_none() && crew.wait("b", || true).is_none());
}
