use super::*;
use crate::diag::Source;
use crate::tune::statistics::Summary;
use crate::tune::worker::FailureClass;
use std::collections::BTreeMap;
use tempfile::TempDir;

fn key(entry: &str) -> Key {
    Key {
        program: "p".into(),
        entry: entry.into(),
        sizes: [("n".to_string(), 16)].into(),
        rules: "r".into(),
        device: "d".into(),
        driver: "1".into(),
        tool: "0.1.0".into(),
        float: "exact".into(),
        trust: String::new(),
    }
}

fn candidate(plan: &str, median_us: Option<f64>) -> Record {
    Record {
        term: "map f".into(),
        compact: None,
        skeleton: Some("s".into()),
        tunables: [("n.t0".to_string(), 4)].into(),
        plan: plan.into(),
        source: "kernel".into(),
        host: None,
        fate: if median_us.is_some() { Fate::Timed } else { Fate::Failed(FailureClass::Crash) },
        log: median_us.is_none().then(|| "died".to_string()),
        build_ms: Some(1.0),
        median_us,
        spread_us: Some(0.5),
        predicted_us: None,
        bound: None,
        max_rel_err: Some(0.0),
        when: 0,
        inputs: None,
        limit_s: None,
        verified: false,
    }
}

fn open(folder: &TempDir) -> Store {
    Store::open(&folder.path().join("new/store.sqlite")).expect("it opens")
}

fn code<T>(result: Result<T>) -> Code {
    result.err().expect("it is refused").0[0].code
}

#[test]
fn measurements_survive_reopening() {
    let folder = TempDir::new().expect("a temporary folder");
    let mut store = open(&folder);
    assert_eq!(store.best(&key("a")).expect("the store answers"), None);
    store.record(&key("a"), &candidate("slow", Some(9.0))).expect("recorded");
    store.record(&key("a"), &candidate("fast", Some(3.0))).expect("recorded");
    store.record(&key("a"), &candidate("bad", None)).expect("recorded");
    store.record(&key("b"), &candidate("other", None)).expect("recorded");
    drop(store);
    let mut store = open(&folder);
    assert_eq!(
        store.best(&key("a")).expect("the store answers").expect("there is one").plan,
        "fast"
    );
    assert_eq!(store.best(&key("b")).expect("the store answers"), None);
    let plans: Vec<_> =
        store.measured(&key("a")).expect("the store answers").into_iter().map(|r| r.plan).collect();
    assert_eq!(plans, ["fast", "slow", "bad"]);
    // A second measurement replaces the first.
    store.record(&key("a"), &candidate("slow", Some(1.0))).expect("recorded");
    assert_eq!(
        store.best(&key("a")).expect("the store answers").expect("there is one").plan,
        "slow"
    );
    let list = store.list().expect("the store answers");
    let a = list.iter().find(|e| e.key == key("a")).expect("an entry");
    assert_eq!((a.candidates, a.timed, a.best_us), (3, 2, Some(1.0)));
    assert!(a.latest > 1_700_000_000);
}

#[test]
fn gc_keeps_what_it_is_told() {
    let folder = TempDir::new().expect("a temporary folder");
    let mut store = open(&folder);
    for (plan, time) in [("a", Some(3.0)), ("b", Some(1.0)), ("c", Some(2.0)), ("d", None)] {
        store.record(&key("x"), &candidate(plan, time)).expect("recorded");
    }
    let old = Record { when: 1000, ..candidate("old", Some(0.5)) };
    store.record(&key("x"), &old).expect("recorded");
    store
        .record(&Key { tool: "0.0.1".into(), ..key("x") }, &candidate("e", Some(1.0)))
        .expect("recorded");
    assert_eq!(store.gc(&Keep::default()).expect("the store is writable"), 0);
    let hour = Duration::from_hours(1);
    assert_eq!(
        store.gc(&Keep { within: Some(hour), ..Keep::default() }).expect("the store is writable"),
        1
    );
    assert_eq!(
        store
            .gc(&Keep { tool: Some("0.1.0".into()), ..Keep::default() })
            .expect("the store is writable"),
        1
    );
    assert_eq!(store.list().expect("the store answers").len(), 1);
    assert_eq!(
        store.gc(&Keep { best: Some(2), ..Keep::default() }).expect("the store is writable"),
        2
    );
    let plans: Vec<_> =
        store.measured(&key("x")).expect("the store answers").into_iter().map(|r| r.plan).collect();
    assert_eq!(plans, ["b", "c"]);
}

#[test]
fn unusable_files_have_codes() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("store.sqlite");
    std::fs::write(
        &path,
        "this is not a database, and it is long enough to be seen as none".repeat(9),
    )
    .expect("a file");
    assert_eq!(code(Store::open(&path)), Code::StoreCorrupt);

    let newer = folder.path().join("newer.sqlite");
    drop(Store::open(&newer).expect("it opens"));
    let raw = Connection::open(&newer).expect("it opens");
    raw.pragma_update(None, "user_version", 99).expect("SQLite accepts it");
    assert_eq!(code(Store::open(&newer)), Code::StoreVersion);

    let foreign = folder.path().join("foreign.sqlite");
    Connection::open(&foreign)
        .expect("it opens")
        .execute_batch("CREATE TABLE t (x)")
        .expect("SQL that SQLite accepts");
    assert_eq!(code(Store::open(&foreign)), Code::StoreCorrupt);

    // A folder where the file should be, and a file where the folder should be.
    assert_eq!(code(Store::open(folder.path())), Code::StoreFailed);
    assert_eq!(code(Store::open(&path.join("store.sqlite"))), Code::StoreFailed);
}

#[test]
fn a_damaged_page_is_reported() {
    let folder = TempDir::new().expect("a temporary folder");
    let mut store = open(&folder);
    for i in 0..200 {
        store.record(&key("x"), &candidate(&format!("{i}"), Some(1.0))).expect("recorded");
    }
    let path = store.path().to_path_buf();
    drop(store);
    let mut bytes = std::fs::read(&path).expect("a file");
    let length = bytes.len();
    bytes[4096..length].fill(0x5A);
    std::fs::write(&path, bytes).expect("a file");
    let result = Store::open(&path).and_then(|s| s.list());
    assert_eq!(code(result), Code::StoreCorrupt);
}

#[test]
fn a_locked_store_says_so() {
    let folder = TempDir::new().expect("a temporary folder");
    let mut store = open(&folder);
    let other = Connection::open(store.path()).expect("it opens");
    other.execute_batch("BEGIN IMMEDIATE; CREATE TABLE t (x);").expect("SQL that SQLite accepts");
    store.connection.busy_timeout(Duration::from_millis(10)).expect("SQLite accepts it");
    // Reads still work; writes wait, then report why they failed.
    assert!(store.list().is_ok());
    assert_eq!(code(store.record(&key("a"), &candidate("p", None))), Code::StoreLocked);
    drop(other);
    store.record(&key("a"), &candidate("p", None)).expect("recorded");
}

#[test]
fn two_processes_worth_of_writers() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("s.sqlite");
    std::thread::scope(|scope| {
        for t in 0..4 {
            let path = &path;
            scope.spawn(move || {
                let mut store = Store::open(path).expect("it opens");
                for i in 0..25 {
                    store
                        .record(&key("x"), &candidate(&format!("{t}.{i}"), Some(1.0)))
                        .expect("recorded");
                }
            });
        }
    });
    assert_eq!(
        Store::open(&path).expect("it opens").list().expect("the store answers")[0].candidates,
        100
    );
}

/// A store as version 1 made it, with one run of two candidates.
fn old_store(path: &Path) {
    let raw = Connection::open(path).expect("it opens");
    raw.execute_batch(schema::STEPS[0]).expect("SQL that SQLite accepts");
    raw.execute_batch(
        "PRAGMA application_id = 1347633492; PRAGMA user_version = 1;
         INSERT INTO runs VALUES (1, 'p', 'a', '{\"n\":16}', 'r', 'd', '1', '0.1.0', 'exact');
         INSERT INTO candidates VALUES
             (1, 1, 'map f', '{}', 'slow', 'kernel', 'timed', NULL, 1, 9, 0.5, 8, 0, 1000),
             (2, 1, 'map g', '{}', 'fast', 'kernel', 'timed', NULL, 1, 3, 0.5, 8, 0, 1001);",
    )
    .expect("SQL that SQLite accepts");
}

#[test]
fn older_stores_are_brought_up_to_date() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("store.sqlite");
    old_store(&path);
    // Several processes open it at once: one migrates the store, the others find it migrated.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| Store::open(&path).expect("it opens"));
        }
    });
    let mut store = Store::open(&path).expect("it opens");
    let best = store.best(&key("a")).expect("the store answers").expect("there is one");
    assert_eq!((best.plan.as_str(), best.median_us, best.host), ("fast", Some(3.0), None));
    assert_eq!(store.about(&key("a")).expect("the store answers"), None);
    assert_eq!(store.answers(&key("a")).expect("the store answers"), []);
    store.describe(&key("a"), &about()).expect("written down");
    assert_eq!(store.about(&key("a")).expect("the store answers"), Some(about()));
    assert_eq!(store.history(&key("a")).expect("the store answers").len(), 2);
    // The old store does not say where its measurements came from.
    assert!(!best.verified && !store.is_verified(&key("a"), "fast").expect("the store answers"));
    let version: i64 =
        store.connection.pragma_query_value(None, "user_version", |r| r.get(0)).expect("a version");
    assert_eq!(version, schema::VERSION);
}

fn about() -> About {
    About {
        file: "f.pat".into(),
        text: "entry a".into(),
        bytes: 64,
        flops: 16.0,
        capabilities: vec!["subgroups".into()],
        cost_model: "m".into(),
        gb_per_s: 10.0,
        gflops: 20.0,
    }
}

fn answer_of(plans: &[&str]) -> Answer {
    let times = Summary { median_us: 1.0, spread_us: 0.1, min_us: 0.9, runs: 21 };
    let place = |p: &&str| Ranked {
        plan: (*p).to_owned(),
        times,
        max_rel_err: 0.0,
        kernels: vec![],
        kernels_us: vec![],
    };
    Answer {
        strategy: "default".into(),
        model: "m".into(),
        budget: 40,
        ranking: plans.iter().map(place).collect(),
        summary: serde_json::json!({"ties": 2}),
        when: 2000,
    }
}

#[test]
fn what_others_measured_is_unverified() {
    let folder = TempDir::new().expect("a temporary folder");
    let mut store = open(&folder);
    let own = Record { verified: true, ..candidate("own", Some(2.0)) };
    store.record(&key("x"), &own).expect("recorded");
    let known = |store: &Store, plan| store.is_verified(&key("x"), plan).expect("it answers");
    assert!(known(&store, "own") && !known(&store, "none"));
    let elsewhere = TempDir::new().expect("a temporary folder");
    let mut other = open(&elsewhere);
    let dump = store.dump().expect("a store that is read");
    other.absorb(&dump).expect("taken in");
    assert!(!known(&other, "own"));
    assert!(!other.best(&key("x")).expect("it answers").expect("there is one").verified);
    other.verify(&key("x"), "own").expect("noted");
    assert!(known(&other, "own"));
    // The kernels of a plan, which is not a stored candidate.
    other.verify(&key("y"), "planned").expect("noted");
    assert!(other.is_verified(&key("y"), "planned").expect("it answers"));
    assert_eq!(other.list().expect("it answers").len(), 1);
    // What is trusted is part of the key.
    let trusting = Key { trust: "laws".into(), ..key("x") };
    assert_eq!(other.best(&trusting).expect("it answers"), None);
    assert_eq!(
        other.nearest(&Key { sizes: [("n".into(), 9)].into(), ..trusting }).expect("it answers"),
        []
    );
}

#[test]
fn fates_hold_for_what_caused_them() {
    let failed =
        |class| Record { fate: Fate::Failed(class), verified: true, ..candidate("p", None) };
    let late =
        Record { inputs: Some("i".into()), limit_s: Some(50.0), ..failed(FailureClass::Timeout) };
    assert!(late.holds("i", 50.0) && late.holds("i", 10.0));
    assert!(!late.holds("i", 51.0) && !late.holds("j", 50.0));
    assert!(!failed(FailureClass::Timeout).holds("i", 1.0));
    for class in [FailureClass::Crash, FailureClass::Wrong] {
        assert!(!failed(class).holds("i", 1.0));
    }
    for class in [FailureClass::Build, FailureClass::Resources] {
        assert!(failed(class).holds("i", 1.0));
        assert!(!Record { verified: false, ..failed(class) }.holds("i", 1.0));
    }
}

#[test]
fn order_of_measuring_stays_when_a_candidate_is_measured_again() {
    let folder = TempDir::new().expect("a temporary folder");
    let mut store = open(&folder);
    for (plan, us) in [("a", 3.0), ("b", 2.0), ("a", 1.0)] {
        store.record(&key("x"), &candidate(plan, Some(us))).expect("recorded");
    }
    let history = store.history(&key("x")).expect("the store answers");
    let found: Vec<_> = history.iter().map(|r| (r.plan.as_str(), r.median_us)).collect();
    assert_eq!(found, [("a", Some(1.0)), ("b", Some(2.0))]);
}

#[test]
fn answers_go_with_the_candidate_that_they_name() {
    let folder = TempDir::new().expect("a temporary folder");
    let mut store = open(&folder);
    for (plan, us) in [("a", 1.0), ("b", 2.0)] {
        store.record(&key("x"), &candidate(plan, Some(us))).expect("recorded");
    }
    store.conclude(&key("x"), &answer_of(&["b", "a"])).expect("written down");
    assert_eq!(store.answers(&key("x")).expect("the store answers"), [answer_of(&["b", "a"])]);
    assert_eq!(
        store.gc(&Keep { best: Some(2), ..Keep::default() }).expect("the store is writable"),
        0
    );
    assert_eq!(store.answers(&key("x")).expect("the store answers").len(), 1);
    assert_eq!(
        store.gc(&Keep { best: Some(1), ..Keep::default() }).expect("the store is writable"),
        1
    );
    assert_eq!(store.answers(&key("x")).expect("the store answers"), []);
}

#[test]
fn the_nearest_sizes_come_first() {
    let folder = TempDir::new().expect("a temporary folder");
    let mut store = open(&folder);
    let at = |n: u64| Key { sizes: [("n".to_string(), n)].into(), ..key("x") };
    for n in [10, 1000, 100_000] {
        store.record(&at(n), &candidate("p", Some(1.0))).expect("recorded");
    }
    store.record(&at(300), &candidate("p", None)).expect("recorded");
    store
        .record(&Key { device: "e".into(), ..at(400) }, &candidate("p", Some(1.0)))
        .expect("recorded");
    store
        .record(&Key { float: "relaxed".into(), ..at(400) }, &candidate("p", Some(1.0)))
        .expect("recorded");
    let sizes = |wanted: &Key| -> Vec<u64> {
        store.nearest(wanted).expect("the store answers").iter().map(|k| k.sizes["n"]).collect()
    };
    assert_eq!(sizes(&at(400)), [1000, 10, 100_000]);
    assert_eq!(sizes(&at(1000)), [10, 100_000]);
    assert_eq!(sizes(&Key { driver: "2".into(), ..at(1000) }), [1000, 10, 100_000]);
    assert_eq!(sizes(&Key { sizes: BTreeMap::new(), ..key("x") }), [0; 0]);
}

#[test]
fn the_newer_measurement_wins() {
    let folder = TempDir::new().expect("a temporary folder");
    let mut store = open(&folder);
    let at = |plan, us, when| Record { when, ..candidate(plan, Some(us)) };
    store.record(&key("x"), &at("old", 5.0, 100)).expect("recorded");
    store.record(&key("x"), &at("new", 5.0, 300)).expect("recorded");
    let run = Run {
        key: key("x"),
        about: Some(about()),
        candidates: vec![at("old", 1.0, 200), at("new", 1.0, 200), at("other", 1.0, 200)],
        answers: vec![],
    };
    let dump = Dump::new(vec![run]);
    let absorbed = store.absorb(&dump).expect("taken in");
    assert_eq!(absorbed, Absorbed { added: 1, replaced: 1, kept: 1 });
    let times: Vec<_> = store
        .history(&key("x"))
        .expect("the store answers")
        .into_iter()
        .map(|r| (r.plan, r.median_us))
        .collect();
    let expected = [("old", 1.0), ("new", 5.0), ("other", 1.0)];
    assert_eq!(times, expected.map(|(p, us)| (p.to_owned(), Some(us))));
    assert_eq!(store.about(&key("x")).expect("the store answers"), Some(about()));
    // A second import of the same dump adds nothing.
    assert_eq!(store.absorb(&dump).expect("taken in"), Absorbed { added: 0, replaced: 0, kept: 3 });
}

#[test]
fn a_copy_leaves_the_store_as_it_is() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("old.sqlite");
    old_store(&path);
    let before = std::fs::read(&path).expect("a file");
    let dump = Store::copy(&path).expect("a copy").dump().expect("a store that is read");
    assert_eq!(dump.runs[0].candidates.len(), 2);
    assert_eq!(std::fs::read(&path).expect("a file"), before);
    // A store that another process is writing to.
    let mut store = open(&folder);
    store.record(&key("x"), &candidate("p", Some(1.0))).expect("recorded");
    assert_eq!(
        Store::copy(store.path()).expect("a copy").dump().expect("a store that is read"),
        store.dump().expect("a store that is read")
    );
    assert_eq!(code(Store::copy(&folder.path().join("none.sqlite"))), Code::StoreFailed);
    assert!(!folder.path().join("none.sqlite").exists());
}

#[test]
fn exports_that_are_none_are_refused_with_the_place() {
    let folder = TempDir::new().expect("a temporary folder");
    let mut store = open(&folder);
    store.record(&key("x"), &candidate("p", Some(1.0))).expect("recorded");
    let text = store.dump().expect("a store that is read").text().expect("an export");
    let parse = |text: &str| Dump::parse(&Source::new("f.json", text));
    assert_eq!(parse(&text).expect("an export"), store.dump().expect("a store that is read"));
    let refused = |text: &str| parse(text).unwrap_err().0.remove(0);
    for (from, to, at) in [
        ("\"plan\": \"p\"", "\"plan\": 5", Some("5")),
        ("\"plan\": \"p\"", "\"plam\": \"p\"", Some("\"plam\"")),
        ("\"timed\"", "\"timid\"", None),
        ("\"median_us\": 1.0", "\"median_us\": null", None),
        ("\"median_us\": 1.0", "\"median_us\": -1.0", None),
        ("\"version\": 1", "\"version\": 2", None),
        ("patsat store", "something else", None),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text, "no {from}");
        let d = refused(&changed);
        assert_eq!(d.code, Code::StoreImport);
        let label = d.labels.first().map(|l| l.span.start as usize);
        match at {
            // The error points at the line that is wrong.
            Some(at) => {
                let line = changed[..label.expect("the error has a place")].lines().count();
                assert_eq!(
                    line,
                    changed[..changed.find(at).expect("an entry")].lines().count(),
                    "{to}"
                );
            }
            None => {
                assert!(label.is_some() || d.notes.iter().any(|n| n.contains("f.json")), "{to}");
            }
        }
    }
    for cut in [0, 1, 20, text.len() / 2, text.len() - 3] {
        assert_eq!(refused(&text[..cut]).code, Code::StoreImport);
    }
    assert_eq!(refused("[1, 2]").code, Code::StoreImport);
}

#[test]
fn damaged_exports_are_read_or_refused() {
    let mut state = 1u64;
    let mut random = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let run = Run {
        key: key("x"),
        about: Some(about()),
        candidates: vec![candidate("p", Some(1.0)), candidate("q", None)],
        answers: vec![answer_of(&["p"])],
    };
    let whole = Dump::new(vec![run]).text().expect("an export");
    let bits =
        ["-1", "1e999", "null", "18446744073709551616", "[", "{", "\"", ",", "\\u001b", "[[[["];
    let folder = TempDir::new().expect("a temporary folder");
    let mut store = open(&folder);
    for _ in 0..1500 {
        let mut text = whole.clone();
        for _ in 0..=random(2) {
            let at = text.floor_char_boundary(random(text.len()));
            let end = text.floor_char_boundary((at + random(12)).min(text.len()));
            text.replace_range(at..end, bits[random(bits.len())]);
        }
        if let Ok(dump) = Dump::parse(&Source::new("f.json", text)) {
            store.absorb(&dump).expect("taken in");
        }
    }
    store.dump().expect("a store that is read");
}

mod round_trip {
    use super::*;
    use proptest::prelude::*;

    fn time() -> impl Strategy<Value = Option<f64>> {
        proptest::option::of(1e-3..1e9_f64)
    }

    fn record() -> impl Strategy<Value = Record> {
        let fates = proptest::sample::select(
            [Fate::Timed, Fate::Slow]
                .into_iter()
                .chain(FailureClass::ALL.map(Fate::Failed))
                .collect::<Vec<_>>(),
        );
        let texts = (".*", proptest::option::of(".*"), "[a-f]{1,3}", proptest::option::of(".*"));
        let times = (1e-3..1e9_f64, time(), time(), time());
        (texts, fates, times, 0..1u64 << 62, 1..5000u64, any::<bool>()).prop_map(
            |((term, compact, plan, log), fate, (us, build_ms, spread_us, err), n, when, host)| {
                let failed = matches!(fate, Fate::Failed(_));
                let buffers = vec![];
                let plan_ = |options| Host {
                    options,
                    buffers,
                    scalars: vec![],
                    launches: vec![],
                    control: vec![],
                    faults: vec![],
                };
                Record {
                    host: host.then(|| plan_(term.clone())),
                    source: format!("kernel {term}"),
                    skeleton: compact.clone(),
                    tunables: [("n.t0".to_owned(), n)].into(),
                    predicted_us: spread_us.map(|s| s * 3.0),
                    bound: log.clone(),
                    max_rel_err: err,
                    median_us: (!failed).then_some(us),
                    term,
                    compact,
                    plan,
                    log,
                    fate,
                    build_ms,
                    spread_us,
                    when,
                    inputs: None,
                    limit_s: None,
                    verified: false,
                }
            },
        )
    }

    fn run(entry: usize) -> impl Strategy<Value = Run> {
        (proptest::collection::vec(record(), 0..6), any::<bool>(), any::<bool>()).prop_map(
            move |(candidates, described, answered)| {
                // A plan's hash identifies its candidate.
                let mut named = std::collections::HashSet::new();
                let mut candidates = candidates;
                candidates.retain(|r| named.insert(r.plan.clone()));
                Run {
                    key: key(&format!("e{entry}")),
                    about: described.then(about),
                    candidates,
                    answers: if answered { vec![answer_of(&["a", "b"])] } else { vec![] },
                }
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn an_export_taken_in_is_exported_again(
            runs in (0..4usize).prop_flat_map(|n| (0..n).map(run).collect::<Vec<_>>())
        ) {
            let dump = Dump::new(runs);
            let text = dump.text().expect("an export");
            let read = Dump::parse(&Source::new("f.json", text.clone())).expect("an export");
            prop_assert_eq!(&read, &dump);
            let folder = TempDir::new().expect("a temporary folder");
            let mut store = open(&folder);
            let absorbed = store.absorb(&read).expect("taken in");
            prop_assert_eq!(absorbed.added, dump.runs.iter().map(|r| r.candidates.len()).sum::<usize>());
            prop_assert_eq!(store.dump().expect("a store that is read").text().expect("an export"), text);
        }
    }
}

#[test]
fn an_import_that_fails_leaves_nothing() {
    let folder = TempDir::new().expect("a temporary folder");
    let mut store = open(&folder);
    let run = |entry: &str| Run {
        key: key(entry),
        about: None,
        candidates: vec![candidate("p", Some(1.0))],
        answers: vec![],
    };
    // The database refuses the last row.
    store
        .connection
        .execute_batch(
            "CREATE TRIGGER full BEFORE INSERT ON candidates WHEN (SELECT COUNT(*) FROM candidates) >= 2
             BEGIN SELECT RAISE(ABORT, 'full'); END",
        )
        .expect("SQL that SQLite accepts");
    let dump = Dump::new(vec![run("a"), run("b"), run("c")]);
    assert!(store.absorb(&dump).is_err());
    assert_eq!(store.list().expect("the store answers"), []);
    assert_eq!(store.dump().expect("a store that is read"), Dump::new(vec![]));
}
