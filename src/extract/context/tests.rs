//! The checker, terms, kernel generation and extraction give one verdict on every nesting of low-level patterns.

use super::{Context, Verdict};
use crate::calculus::elaborate::elaborate;
use crate::calculus::nesting::step;
use crate::calculus::term::{MapKind, Op, ReduceKind, Space, Term};
use crate::calculus::text;
use crate::calculus::ty::Ty;
use crate::diag::{Code, Limits, Source};
use crate::kernel::{DeviceLimits, Options, check_nesting, lower};
use crate::lang::check_entry;
use crate::lang::hierarchy::{Level, Place, Rule};
use crate::lang::types::ScalarType;
use indexmap::IndexMap;

const STEPS: [(&str, Op); 10] = [
    ("mapGlb 0", Op::Map(MapKind::Glb(0))),
    ("mapGlb 1", Op::Map(MapKind::Glb(1))),
    ("mapWrg 0", Op::Map(MapKind::Wrg(0))),
    ("mapWrg 1", Op::Map(MapKind::Wrg(1))),
    ("mapLcl 0", Op::Map(MapKind::Lcl(0))),
    ("mapLcl 1", Op::Map(MapKind::Lcl(1))),
    ("mapWarp", Op::Map(MapKind::Warp)),
    ("mapLane", Op::Map(MapKind::Lane)),
    ("mapSeq", Op::Map(MapKind::Seq)),
    ("toLocal", Op::ToMem(Space::Local)),
];

type Path<'a> = Vec<&'a (&'static str, Op)>;

/// Returns the rule that the innermost operator with a broken rule breaks, with the operator's name.
fn broken(path: &Path) -> Option<(&'static str, Rule)> {
    let mut at = Place::PROGRAM;
    for (name, op) in path {
        match at.enter(step(op)?) {
            Ok(inside) => at = inside,
            Err(rule) => return Some((name, rule)),
        }
    }
    None
}

/// Returns the program, as text: the patterns one inside the other, the last around `abs`.
fn program(path: &Path) -> String {
    let maps = path.iter().filter(|(name, _)| name.starts_with("map")).count();
    let lengths: String = (0..maps).map(|k| format!("[{}]", k + 2)).collect();
    let body = path.iter().rev().fold("abs".to_owned(), |f, (name, _)| format!("{name} ({f})"));
    format!("entry f (a: {lengths}f32) = {body} a")
}

/// Returns the same as a term, which elaboration does not give for a program that is refused.
fn term(path: &Path) -> Term {
    let context = text::Context { inputs: [].into(), variables: None };
    let abs = text::read_term(&Source::new("f", "abs"), &Ty::Scalar(ScalarType::F32), &context);
    let lengths = path.iter().filter(|(name, _)| name.starts_with("map")).count();
    let mut length = lengths as u64 + 2;
    path.iter().rev().fold(abs.expect("a term"), |f, (_, op)| {
        let sizes = match op {
            Op::Map(_) => {
                length -= 1;
                vec![crate::calculus::size::Size::constant(length)]
            }
            _ => vec![],
        };
        Term::new(op.clone(), sizes, vec![], vec![f]).expect("the term is well-typed")
    })
}

/// Whether extraction leaves out a legal operator because it looks for better terms.
fn is_left_out(at: Context, op: &Op) -> bool {
    match op {
        // A loop around kernels runs one part of the work at a time, and one around intermediate arrays stores them all.
        Op::Map(MapKind::Seq) => match at.level() {
            Level::Host | Level::Warp => true,
            Level::Group => !at.sink,
            Level::Item => false,
        },
        // One order of dimensions is enough.
        Op::Map(MapKind::Glb(1) | MapKind::Wrg(1)) => true,
        _ => false,
    }
}

fn extraction(path: &Path, expected: Option<(&'static str, Rule)>) {
    let mut at = Context::program(true);
    for (name, op) in path {
        // Only intermediate results are placed in a memory.
        let here = if matches!(op, Op::ToMem(_)) { at.intermediate() } else { at };
        match (here.inside(op), here.enter(op, true, true)) {
            (Ok(place), Verdict::Inside(inside)) => {
                assert!(inside.place == place || inside.place == place.settled(), "{path:?}");
                at = inside;
            }
            (Ok(_), Verdict::No) => return assert!(is_left_out(here, op), "{path:?} at {name}"),
            // Extraction closes some nests early: `mapLcl` has one dimension, and no memory is between two.
            (Err(Rule::Between), Verdict::No) => return,
            (Err(rule), Verdict::No) => {
                return assert_eq!(Some((*name, rule)), expected, "{path:?}");
            }
            (Err(rule), Verdict::Inside(_)) => panic!("{path:?}: {name} {rule}"),
        }
    }
    assert_eq!(expected, None, "{path:?}");
}

fn agree(path: &Path) {
    let expected = broken(path);
    let message = expected.map(|(name, rule)| format!("`{name}` {rule}"));
    let text = program(path);
    let nested = check_nesting(&term(path)).map_err(|d| (d.code, d.message.clone())).err();
    assert_eq!(nested, message.clone().map(|m| (Code::IllNested, m)), "{text}");
    extraction(path, expected);
    match check_entry(&Source::new("nesting.pat", text.clone()), None) {
        Ok(entry) => {
            assert_eq!(message, None, "{text}");
            let made = elaborate(&entry, &IndexMap::new()).expect("the program elaborates");
            let options = Options::new("f", DeviceLimits::default(), Limits::DEFAULT);
            let kernels = lower(&made.term, &made.env, &options);
            assert!(kernels.is_ok(), "{text}: {:?}", kernels.err());
        }
        Err(failure) => {
            let first = failure.0.first().map(|d| (d.code, d.message.clone()));
            assert_eq!(first, message.map(|m| (Code::IllNested, m)), "{text}");
        }
    }
}

/// All pairs and triples, and the triples inside `mapWrg`.
#[test]
fn all_parts_agree() {
    let mut count = 0;
    for a in &STEPS {
        agree(&vec![a]);
        for b in &STEPS {
            agree(&vec![a, b]);
            for c in &STEPS {
                agree(&vec![a, b, c]);
                agree(&vec![&STEPS[2], a, b, c]);
                count += 2;
            }
        }
    }
    assert_eq!(count, 2000);
}

/// What stands between two dimensions, or beside the second, is refused by the checker and for terms.
#[test]
fn nothing_is_computed_between_dimensions() {
    for (text, legal) in [
        ("mapGlb 1 (reverse >-> mapGlb 0 (+ 1)) a", true),
        ("mapGlb 1 (mapSeq (+ 1) >-> mapGlb 0 (+ 1)) a", false),
        ("mapGlb 1 (mapGlb 0 (+ 1) >-> mapSeq (+ 1)) a", false),
        ("mapGlb 1 (mapGlb 0 (+ 1) >-> mapGlb 0 (+ 1)) a", false),
        ("mapGlb 1 (\\r -> (mapGlb 0 (+ 1) r, mapGlb 0 (+ 2) r)) a", true),
        ("mapGlb 1 (\\r -> (mapGlb 0 (+ 1) r, mapSeq (+ 2) r)) a", false),
        ("mapWrg 1 (mapWrg 0 (mapLcl 0 (+ 1))) (map (split 2) a)", true),
        ("mapWrg 1 (toLocal (mapLcl 0 (+ 1)) >-> split 2 >-> mapWrg 0 (mapLcl 0 (+ 1))) a", false),
        ("mapWrg 0 (mapLcl 1 (mapSeq (+ 1) >-> mapLcl 0 (+ 1))) (map (split 2) a)", false),
    ] {
        let source = Source::new("between.pat", format!("entry f (a: [6][4]f32) = {text}"));
        let checked = check_entry(&source, None);
        assert_eq!(checked.is_ok(), legal, "{text}");
        if let Ok(entry) = checked {
            let made = elaborate(&entry, &IndexMap::new()).expect("the program elaborates");
            let options = Options::new("f", DeviceLimits::default(), Limits::DEFAULT);
            assert!(lower(&made.term, &made.env, &options).is_ok(), "{text}");
        }
    }
}

fn inside(path: &[Op]) -> Option<Context> {
    path.iter().try_fold(Context::PROGRAM, |at, op| match at.enter(op, true, true) {
        Verdict::Inside(c) => Some(c),
        Verdict::No => None,
    })
}

#[test]
fn tiles_stand_alone_or_directly_in_a_batch() {
    let map = |k| Op::Map(k);
    let tiles = |path: &[Op]| inside(path).is_some_and(|at| at.holes(&Op::Tiled(false)).is_some());
    assert!(tiles(&[]));
    assert!(tiles(&[map(MapKind::Wrg(2))]) && tiles(&[map(MapKind::Glb(2))]));
    // The tiles need the other two dimensions, and no computation may stand between the batch and the
    // tiles.
    assert!(!tiles(&[map(MapKind::Wrg(1))]) && !tiles(&[map(MapKind::Glb(0))]));
    assert!(!tiles(&[map(MapKind::Wrg(2)), map(MapKind::Wrg(1))]));
    assert!(!tiles(&[map(MapKind::Wrg(2)), Op::Reduce(ReduceKind::Seq)]));
    let batch = inside(&[map(MapKind::Wrg(2))]).expect("a batch of groups");
    assert!(batch.settled().holes(&Op::Tiled(true)).is_none());
}

#[test]
fn kernels_before_others_store_their_results() {
    let map = |k| Op::Map(k);
    let first = |ops: &[Op]| {
        let before = Context::PROGRAM.intermediate();
        ops.iter().try_fold(before, |at, op| match at.enter(op, true, true) {
            Verdict::Inside(c) => Some(c),
            Verdict::No => None,
        })
    };
    for path in [
        &[map(MapKind::Glb(0)), map(MapKind::Seq)][..],
        &[map(MapKind::Wrg(1)), map(MapKind::Wrg(0)), map(MapKind::Lcl(0))],
    ] {
        let at = first(path).expect("the nesting is legal");
        assert!(at.sink, "{path:?}");
    }
    // Inside a kernel, an intermediate value has no memory of its own.
    let group = first(&[map(MapKind::Wrg(0))]).expect("the nesting is legal").intermediate();
    assert!(!group.sink && group.keeps());
}

#[test]
fn warps_hold_lanes_and_groups_hold_warps() {
    let map = |k| Op::Map(k);
    let (wrg, lcl, glb) = (map(MapKind::Wrg(0)), map(MapKind::Lcl(0)), map(MapKind::Glb(0)));
    let (warp, lane, seq) = (map(MapKind::Warp), map(MapKind::Lane), map(MapKind::Seq));
    let path = |ops: &[&Op]| inside(&ops.iter().map(|o| (*o).clone()).collect::<Vec<_>>());
    assert_eq!(path(&[&wrg, &warp]).expect("the nesting is legal").level(), Level::Warp);
    assert_eq!(
        path(&[&wrg, &warp, &lane, &seq]).expect("the nesting is legal").level(),
        Level::Item
    );
    for wrong in [
        &[&warp][..],
        &[&lane],
        &[&glb, &warp],
        &[&wrg, &lane],
        &[&wrg, &lcl, &warp],
        &[&wrg, &lcl, &lane],
        &[&wrg, &warp, &warp],
        &[&wrg, &warp, &lcl],
        &[&wrg, &warp, &seq],
        &[&wrg, &warp, &lane, &lane],
        &[&wrg, &warp, &lane, &lcl],
        &[&wrg, &warp, &map(MapKind::Wrg(1))],
    ] {
        assert!(path(wrong).is_none(), "{wrong:?}");
    }
    // Lanes pass values to each other through local memory.
    let warp = path(&[&wrg, &warp]).expect("the nesting is legal").intermediate();
    assert!(matches!(warp.enter(&lane, true, true), Verdict::No));
    let Verdict::Inside(local) = warp.enter(&Op::ToMem(Space::Local), true, true) else {
        panic!("no local memory in a warp");
    };
    assert!(matches!(local.enter(&lane, true, true), Verdict::Inside(_)));
}
