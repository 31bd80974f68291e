use super::*;

const PROGRAM: &str = "entry all [n] (xs: [n]f32) : [n]f32 = map abs (map sqrt xs)\n";

fn checked(text: &str) -> Checked {
    check(&Source::new("a.pat", text)).unwrap_or_else(|e| panic!("{e}"))
}

/// Returns whether each expectation holds.
fn verdicts(text: &str) -> Vec<bool> {
    checked(text).blocks.iter().map(|(_, v)| matches!(v, Verdict::Holds)).collect()
}

#[test]
fn what_is_renewed_holds_and_the_rest_stays() {
    let text = format!(
        "{PROGRAM}\n-- expect stats size n=64\n\n  -- expect term size n=1_000 model=generic-gpu\n  \
         -- | something else\n-- a comment \n-- expect found size n=64\n-- expect kernel size n=64\n"
    );
    assert_eq!(verdicts(&text), [false; 4]);
    let (blessed, count) = checked(&text).blessed();
    assert_eq!(count, 4);
    assert_eq!(verdicts(&blessed), [true; 4]);
    assert_eq!(checked(&blessed).blessed(), (blessed.clone(), 0));
    // Without the blocks' lines, both are the same to the byte.
    let rest = |text: &str| -> String {
        let own = |l: &&str| !l.trim_start().starts_with("-- |");
        text.split_inclusive('\n').filter(own).collect()
    };
    assert_eq!(rest(&blessed), rest(&text));
    assert!(blessed.contains("\n  -- | take n") && blessed.contains("\n-- | kernel "), "{blessed}");
}

#[test]
fn ends_of_lines_are_kept() {
    let text = format!("{PROGRAM}-- expect stats size n=64\n-- | stop early").replace('\n', "\r\n");
    let blessed = checked(&text).blessed().0;
    assert_eq!(blessed, text.replace("early", "saturated"));
    let bare = format!("{PROGRAM}-- expect term no-rewrite size n=64");
    let low = bare.replace("map ", "mapGlb 0 ");
    assert_eq!(checked(&low).blessed().0, format!("{low}\n-- | mapGlb 0 abs . mapGlb 0 sqrt . xs"));
}

#[test]
fn named_figures_alone_count() {
    let stats = |lines: &str| verdicts(&format!("{PROGRAM}-- expect stats size n=64\n{lines}"));
    assert_eq!(stats("-- | stop saturated\n"), [true]);
    assert_eq!(stats("-- | nodes 1\n"), [false]);
    let unknown = checked(&format!("{PROGRAM}-- expect stats size n=64\n-- | weight 1\n"));
    let (_, Verdict::Refused(failure)) = &unknown.blocks[0] else { panic!("no such figure") };
    assert_eq!(failure.0[0].code, Code::BadExpectation);
}

#[test]
fn terms_are_looked_up_with_places() {
    let text = |term: &str| format!("{PROGRAM}-- é\n-- expect found size n=64\n-- | {term}\n");
    assert_eq!(verdicts(&text("mapGlb 0\n-- |   (abs . sqrt) . xs")), [true]);
    let missing = checked(&text("mapGlb 0 (abs . abs) . xs"));
    let (_, Verdict::Missing(why)) = &missing.blocks[0] else { panic!("it is not there") };
    assert_eq!(why.part, "abs");
    assert_eq!(missing.blessed().1, 0);
    let wrong = checked(&text("map nothing . xs"));
    let (_, Verdict::Refused(failure)) = &wrong.blocks[0] else { panic!("no such name") };
    let d = &failure.0[0];
    assert_eq!(&wrong.source.text[d.labels[0].span.range()], "nothing");
    assert_eq!(d.source.as_ref(), Some(&wrong.source));
}

#[test]
fn errors_are_expected() {
    let text = "entry f (x: f32) : i32 = x\n-- expect error E0301\n";
    assert_eq!(verdicts(text), [true]);
    let (blessed, _) = checked(&text.replace("E0301", "E0201\n-- | E0201: nothing")).blessed();
    assert!(blessed.contains("-- expect error E0301\n-- | E0301: "), "{blessed}");
    assert_eq!(verdicts(&blessed), [true]);
    let fine = checked(&format!("{PROGRAM}-- expect error E0301 size n=4\n"));
    assert!(matches!(fine.blocks[0].1, Verdict::Accepted));
    assert_eq!(verdicts(&format!("{PROGRAM}-- expect error E0308\n")), [true]);
}

#[test]
fn malformed_blocks_have_places() {
    for (header, place) in [
        ("-- expect", "-- expect"),
        ("-- expect nothing", "nothing"),
        ("-- expect term fast", "fast"),
        ("-- expect term size", "size"),
        ("-- expect term size n=x", "size"),
        ("-- expect term size n=1 n=2", "n=2"),
        ("-- expect term entry=a entry=b", "entry=b"),
        ("-- expect error", "-- expect error"),
        ("-- expect error E9999", "E9999"),
        ("-- expect found no-rewrite", "-- expect found no-rewrite"),
    ] {
        let source =
            Source::new("a.pat", format!("{PROGRAM}-- expect stats size n=4\n {header}\n"));
        let failure = blocks(&source).expect_err(header);
        let d = &failure.0[0];
        assert_eq!(d.code, Code::BadExpectation);
        assert_eq!(&source.text[d.labels[0].span.range()], place);
    }
    assert!(blocks(&Source::new("a.pat", PROGRAM)).is_ok_and(|b| b.is_empty()));
    // A line `-- | ...` outside a block is an ordinary comment.
    assert!(blocks(&Source::new("a.pat", "-- | documentation\n")).is_ok_and(|b| b.is_empty()));
}
