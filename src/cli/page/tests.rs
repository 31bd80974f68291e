use super::*;
use crate::tune::statistics::Summary;
use crate::tune::store::{About, Answer, Fate, Key, Ranked, Record, Store};
use crate::tune::worker::FailureClass;
use std::collections::HashSet;

const NASTY: &str = "<script src=\"http://evil\">&'</script>";

fn key(entry: &str, n: u64) -> Key {
    Key {
        program: entry.into(),
        entry: entry.into(),
        sizes: [("n".to_owned(), n)].into(),
        rules: "r".into(),
        device: NASTY.into(),
        driver: String::new(),
        tool: "0".into(),
        float: "exact".into(),
        trust: String::new(),
    }
}

fn record(plan: &str, fate: Fate, median_us: Option<f64>) -> Record {
    Record {
        term: NASTY.into(),
        compact: None,
        skeleton: Some(NASTY.into()),
        tunables: [("n.t0".to_owned(), 4)].into(),
        plan: plan.into(),
        source: format!("kernel void k() {{ {NASTY} }}"),
        host: None,
        fate,
        log: Some(NASTY.into()),
        build_ms: None,
        median_us,
        spread_us: None,
        predicted_us: Some(12.0),
        bound: Some("global <reads>".into()),
        max_rel_err: None,
        when: 1_700_000_000,
        inputs: None,
        limit_s: None,
        verified: false,
    }
}

fn about(flops: f64) -> About {
    About {
        file: "a&b.pat".into(),
        text: "entry a = 1 < 2".into(),
        bytes: 4096,
        flops,
        capabilities: vec![],
        cost_model: "pocl".into(),
        gb_per_s: 100.0,
        gflops: 200.0,
    }
}

fn page_of(fill: impl FnOnce(&mut Store)) -> String {
    let folder = tempfile::TempDir::new().expect("a folder");
    let mut store = Store::open(&folder.path().join("s.sqlite")).expect("a store");
    fill(&mut store);
    let wanted = Wanted { derivations: true, ..Wanted::default() };
    page(&survey(&store, &wanted, &mut ()).expect("a survey"), "s.sqlite")
}

/// Checks that the page's tags are properly nested, and returns every attribute.
fn checked(html: &str) -> Vec<String> {
    let (mut open, mut attributes) = (vec![], vec![]);
    for tag in html.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').unwrap_or_else(|| panic!("`{tag}` has no end"));
        if tag.starts_with('!') {
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "in {html}");
            continue;
        }
        let (name, rest) = tag.split_once(' ').unwrap_or((tag, ""));
        attributes.extend(
            rest.split("=\"").skip(1).filter_map(|a| a.split('"').next()).map(str::to_owned),
        );
        if !tag.ends_with('/') && name != "meta" {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?} stay open");
    attributes
}

fn alone(html: &str) {
    let attributes = checked(html);
    for outside in ["http:", "https:", "//", "url(", "data:", "javascript:"] {
        assert!(!attributes.iter().any(|a| a.contains(outside)), "{outside} in {attributes:?}");
    }
    for tag in ["<script", "<link", "<img", "<iframe", "@import", "url("] {
        assert!(!html.contains(tag), "{tag}");
    }
    assert!(html.contains("prefers-color-scheme: dark"));
    let ids: Vec<&str> = html.split(" id=\"").skip(1).filter_map(|r| r.split('"').next()).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "{ids:?}");
    for to in html.split("href=\"#").skip(1).filter_map(|r| r.split('"').next()) {
        assert!(ids.contains(&to), "no place {to}");
    }
}

#[test]
fn an_empty_store_has_a_page() {
    let html = page_of(|_| {});
    alone(&html);
    assert!(html.contains("Nothing is stored yet"));
}

#[test]
fn everything_is_there_and_nothing_is_taken_for_markup() {
    let html = page_of(|store| {
        let a = key("first", 16);
        store.describe(&a, &about(8192.0)).expect("described");
        let all = [
            record("slow", Fate::Slow, Some(90.0)),
            record("lucky", Fate::Timed, Some(9.0)),
            record("chosen", Fate::Timed, Some(10.0)),
            record("bad", Fate::Failed(FailureClass::Build), None),
            record("bad too", Fate::Failed(FailureClass::Build), None),
            record("worse", Fate::Failed(FailureClass::Wrong), None),
        ];
        for r in &all {
            store.record(&a, r).expect("recorded");
        }
        let times = Summary { median_us: 10.0, spread_us: 1.0, min_us: 9.5, runs: 21 };
        let ranking = vec![Ranked {
            plan: "chosen".into(),
            times,
            max_rel_err: 0.0,
            kernels: vec![],
            kernels_us: vec![],
        }];
        let answer = Answer {
            strategy: "default".into(),
            model: "m".into(),
            budget: 6,
            ranking,
            summary: serde_json::Value::Null,
            when: 0,
        };
        store.conclude(&a, &answer).expect("concluded");
        store.record(&key("second", 7), &record("x", Fate::Timed, Some(2e6))).expect("recorded");
        let hopeless = record("y", Fate::Failed(FailureClass::Crash), None);
        store.record(&key("third", 9), &hopeless).expect("recorded");
        store.describe(&key("third", 9), &about(0.0)).expect("described");
    });
    alone(&html);
    assert!(!html.contains(NASTY) && html.contains("&lt;script src="));
    for text in
        ["first n=16", "second n=7", "third n=9", "a&amp;b.pat", "2 build", "1 wrong", "1 crash"]
    {
        assert!(html.contains(text), "{text}");
    }
    // The best candidate is the one that the search chose, not the one with the shortest single time.
    assert!(html.contains("<dt>best</dt><dd>10.00 µs"));
    assert!(html.contains("bound by global &lt;reads&gt;"));
    // Two charts and the roofline for the first, the charts without it for the second, none for the third.
    assert_eq!(html.matches("<svg ").count(), 5);
    assert_eq!(html.matches("Roofline").count(), 2);
    assert_eq!(html.matches("class=\"best\"").count(), 5);
    assert_eq!(html.matches("class=\"slow\"").count(), 3);
    assert!(html.contains("No candidate ran."));
    assert!(html.contains("No derivation: "));
}
