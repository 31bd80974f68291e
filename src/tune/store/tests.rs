use super::*;
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
    }
}

fn candidate(plan: &str, median_us: Option<f64>) -> Record {
    Record {
        term: "map f".into(),
        tunables: [("n.t0".to_string(), 4)].into(),
        plan: plan.into(),
        source: "kernel".into(),
        fate: if median_us.is_some() { Fate::Timed } else { Fate::Failed(FailureClass::Crash) },
        log: median_us.is_none().then(|| "died".to_string()),
        build_ms: Some(1.0),
        median_us,
        spread_us: Some(0.5),
        predicted_us: None,
        max_rel_err: Some(0.0),
        when: 0,
    }
}

fn open(folder: &TempDir) -> Store {
    Store::open(&folder.path().join("new/store.sqlite")).unwrap()
}

fn code<T>(result: Result<T>) -> Code {
    result.err().unwrap().0[0].code
}

#[test]
fn measurements_survive_reopening() {
    let folder = TempDir::new().unwrap();
    let mut store = open(&folder);
    assert_eq!(store.best(&key("a")).unwrap(), None);
    store.record(&key("a"), &candidate("slow", Some(9.0))).unwrap();
    store.record(&key("a"), &candidate("fast", Some(3.0))).unwrap();
    store.record(&key("a"), &candidate("bad", None)).unwrap();
    store.record(&key("b"), &candidate("other", None)).unwrap();
    drop(store);
    let mut store = open(&folder);
    assert_eq!(store.best(&key("a")).unwrap().unwrap().plan, "fast");
    assert_eq!(store.best(&key("b")).unwrap(), None);
    let plans: Vec<_> = store.measured(&key("a")).unwrap().into_iter().map(|r| r.plan).collect();
    assert_eq!(plans, ["fast", "slow", "bad"]);
    // Measured again: replaced.
    store.record(&key("a"), &candidate("slow", Some(1.0))).unwrap();
    assert_eq!(store.best(&key("a")).unwrap().unwrap().plan, "slow");
    let list = store.list().unwrap();
    let a = list.iter().find(|e| e.key == key("a")).unwrap();
    assert_eq!((a.candidates, a.timed, a.best_us), (3, 2, Some(1.0)));
    assert!(a.latest > 1_700_000_000);
}

#[test]
fn gc_keeps_what_it_is_told() {
    let folder = TempDir::new().unwrap();
    let mut store = open(&folder);
    for (plan, time) in [("a", Some(3.0)), ("b", Some(1.0)), ("c", Some(2.0)), ("d", None)] {
        store.record(&key("x"), &candidate(plan, time)).unwrap();
    }
    let old = Record { when: 1000, ..candidate("old", Some(0.5)) };
    store.record(&key("x"), &old).unwrap();
    store.record(&Key { tool: "0.0.1".into(), ..key("x") }, &candidate("e", Some(1.0))).unwrap();
    assert_eq!(store.gc(&Keep::default()).unwrap(), 0);
    let hour = Duration::from_secs(3600);
    assert_eq!(store.gc(&Keep { within: Some(hour), ..Keep::default() }).unwrap(), 1);
    assert_eq!(store.gc(&Keep { tool: Some("0.1.0".into()), ..Keep::default() }).unwrap(), 1);
    assert_eq!(store.list().unwrap().len(), 1);
    assert_eq!(store.gc(&Keep { best: Some(2), ..Keep::default() }).unwrap(), 2);
    let plans: Vec<_> = store.measured(&key("x")).unwrap().into_iter().map(|r| r.plan).collect();
    assert_eq!(plans, ["b", "c"]);
}

#[test]
fn unusable_files_have_codes() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.sqlite");
    std::fs::write(
        &path,
        "this is not a database, and it is long enough to be seen as none".repeat(9),
    )
    .unwrap();
    assert_eq!(code(Store::open(&path)), Code::StoreCorrupt);

    let newer = folder.path().join("newer.sqlite");
    drop(Store::open(&newer).unwrap());
    let raw = Connection::open(&newer).unwrap();
    raw.pragma_update(None, "user_version", 99).unwrap();
    assert_eq!(code(Store::open(&newer)), Code::StoreVersion);

    let foreign = folder.path().join("foreign.sqlite");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    assert_eq!(code(Store::open(&foreign)), Code::StoreCorrupt);

    // A folder where the file should be, and a file where the folder should be.
    assert_eq!(code(Store::open(folder.path())), Code::StoreFailed);
    assert_eq!(code(Store::open(&path.join("store.sqlite"))), Code::StoreFailed);
}

#[test]
fn a_damaged_page_is_reported() {
    let folder = TempDir::new().unwrap();
    let mut store = open(&folder);
    for i in 0..200 {
        store.record(&key("x"), &candidate(&format!("{i}"), Some(1.0))).unwrap();
    }
    let path = store.path().to_path_buf();
    drop(store);
    let mut bytes = std::fs::read(&path).unwrap();
    let length = bytes.len();
    bytes[4096..length].fill(0x5A);
    std::fs::write(&path, bytes).unwrap();
    let result = Store::open(&path).and_then(|s| s.list());
    assert_eq!(code(result), Code::StoreCorrupt);
}

#[test]
fn a_locked_store_says_so() {
    let folder = TempDir::new().unwrap();
    let mut store = open(&folder);
    let other = Connection::open(store.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; CREATE TABLE t (x);").unwrap();
    store.connection.busy_timeout(Duration::from_millis(10)).unwrap();
    // Reading goes on; writing waits, and then says why not.
    assert!(store.list().is_ok());
    assert_eq!(code(store.record(&key("a"), &candidate("p", None))), Code::StoreLocked);
    drop(other);
    store.record(&key("a"), &candidate("p", None)).unwrap();
}

#[test]
fn two_processes_worth_of_writers() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("s.sqlite");
    std::thread::scope(|scope| {
        for t in 0..4 {
            let path = &path;
            scope.spawn(move || {
                let mut store = Store::open(path).unwrap();
                for i in 0..25 {
                    store.record(&key("x"), &candidate(&format!("{t}.{i}"), Some(1.0))).unwrap();
                }
            });
        }
    });
    assert_eq!(Store::open(&path).unwrap().list().unwrap()[0].candidates, 100);
}
