//! Index arithmetic in generated kernels: quotients and remainders are computed outside innermost loops.

use crate::common::device;
use indexmap::IndexMap;
use patsat::calculus::elaborate::elaborate;
use patsat::calculus::size::Sym;
use patsat::device::cost_model::CostModel;
use patsat::device::{DeviceInfo, DeviceKind};
use patsat::diag::{Limits, Source};
use patsat::kernel::{DeviceLimits, Options, lower};
use patsat::opencl::print::print;
use patsat::rules::RuleSet;
use patsat::{extract, lang, saturate};
use std::collections::BTreeSet;

/// Number of skeletons to check for each program, best first.
const SKELETONS: usize = 24;

/// Values for all sizes of a program: one that tiles divide, and one that they do not.
const SIZES: [u64; 2] = [1 << 10, 1000];

/// Returns the subscripts of a line, without those of intermediate arrays: such an array lies as its stage made it, tile after
/// tile, and a stage with other tiles has to divide to find an element.
fn subscripts(line: &str) -> Vec<&str> {
    let temporary = |before: &str| {
        let before = before.trim_end_matches(')');
        let name = before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or(before);
        name.starts_with("temp")
    };
    let (mut out, mut depth, mut start) = (vec![], 0, 0);
    for (at, c) in line.char_indices() {
        match c {
            '[' => {
                if depth == 0 {
                    start = at + 1;
                }
                depth += 1;
            }
            ']' if depth > 0 => {
                depth -= 1;
                if depth == 0 && !temporary(&line[..start - 1]) {
                    out.push(&line[start..at]);
                }
            }
            _ => {}
        }
    }
    out
}

/// Returns the lines in innermost loops with an index that contains a division.
fn divisions(source: &str) -> Vec<String> {
    let lines: Vec<&str> = source.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let loops = |line: &str| line.trim_start().starts_with("for (") || line.contains("while (");
    let mut found = vec![];
    for (at, head) in lines.iter().enumerate().filter(|(_, line)| loops(line)) {
        let body: Vec<&&str> =
            lines[at + 1..].iter().take_while(|line| indent(line) > indent(head)).collect();
        if body.iter().any(|line| loops(line)) {
            continue;
        }
        let divides = |line: &&&&str| subscripts(line).iter().any(|s| s.contains(['/', '%']));
        found.extend(body.iter().filter(divides).map(|line| format!("{}\n{line}", head.trim())));
    }
    found
}

/// Returns the candidates of a shipped program for a device, and the options of the code generator.
fn drawn(
    name: &str,
    kind: DeviceKind,
    size: &dyn Fn(&str) -> u64,
) -> (Vec<extract::Candidate>, Options) {
    let path = format!("{}/programs/{name}.pat", env!("CARGO_MANIFEST_DIR"));
    let source = Source::new(&path, std::fs::read_to_string(&path).expect("a shipped program"));
    let entry = lang::check_entry(&source, None).expect("well-typed");
    let sizes: IndexMap<String, u64> = entry.sizes.iter().map(|n| (n.clone(), size(n))).collect();
    let program = elaborate(&entry, &sizes).expect("elaborates");
    let rules = RuleSet::shipped().expect("shipped rules").offered(&[]);
    let limits = Limits { saturation_time: None, ..Limits::default() };
    let graph = saturate::saturate(&program.forms(), &rules, &limits).expect("sound rules");
    let info = device(kind);
    let model = CostModel::choose(&info).expect("a model").model;
    let found = extract::candidates(&graph, &program.env, &info, &model, &limits)
        .expect("terms")
        .candidates;
    (found, Options::new(&entry.name, DeviceLimits::of(&info), &limits))
}

/// Returns the number of candidates checked, and the errors found.
fn check(name: &str, size: u64, kind: DeviceKind) -> (usize, Vec<String>) {
    let (found, options) = drawn(name, kind, &|_| size);
    let mut seen = BTreeSet::new();
    let (mut looked, mut wrong) = (0, vec![]);
    for c in found {
        if seen.len() == SKELETONS {
            break;
        }
        if seen.contains(&c.skeleton) {
            continue;
        }
        // A nest that is one map over all elements divides at each element: the price of sharing it out as a whole.
        if c.env.keys().any(|s| matches!(s, Sym::Tile(n) if n.factors().count() > 1)) {
            continue;
        }
        let Ok(kernels) = lower(&c.term, &c.env, &options) else { continue };
        let source = print(&kernels).source;
        looked += 1;
        wrong.extend(
            divisions(&source)
                .into_iter()
                .map(|line| format!("{name}, {size}, {kind:?}: {}\n{line}", c.term)),
        );
        seen.insert(c.skeleton);
    }
    (looked, wrong)
}

#[test]
fn innermost_loops_do_not_divide_on_a_cpu() {
    innermost_loops_do_not_divide(DeviceKind::Cpu);
}

#[test]
fn innermost_loops_do_not_divide_on_a_gpu() {
    innermost_loops_do_not_divide(DeviceKind::Gpu);
}

fn innermost_loops_do_not_divide(kind: DeviceKind) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/programs");
    let mut programs: Vec<String> = std::fs::read_dir(folder)
        .expect("the programs")
        .map(|f| f.expect("a file").file_name().to_string_lossy().into_owned())
        .filter_map(|f| Some(f.strip_suffix(".pat")?.to_owned()))
        .collect();
    programs.sort_unstable();
    let mut wrong = vec![];
    for name in &programs {
        for size in SIZES {
            let (looked, found) = check(name, size, kind);
            assert!(looked > 0, "{name}: no kernels for a {kind:?} at {size}");
            wrong.extend(found);
        }
    }
    assert!(
        wrong.is_empty(),
        "{} indices of innermost loops divide. What does not change in a loop is named in front of it \
         (src/opencl/print/names.rs); what does needs another view or tile.\n\n{}",
        wrong.len(),
        wrong.iter().take(12).cloned().collect::<Vec<_>>().join("\n\n")
    );
}

/// If work-items have several rows each, the loop over staged partners has no conditions and reads each partner
/// with one load. Only the last block checks where the partners end, and rows past the end are handled outside the
/// loop.
#[test]
fn loops_over_staged_partners_decide_nothing() {
    for (name, last) in [("nbody", "n"), ("mriq", "k")] {
        let size = |of: &str| if of == last { 100_000 } else { 10_000 };
        let (found, options) = drawn(name, DeviceKind::Gpu, &size);
        let mut looked = 0;
        for c in found {
            let text = c.compact.to_string();
            if !(text.contains("spreadRows") && text.contains("toLocal id")) {
                continue;
            }
            let source = print(&lower(&c.term, &c.env, &options).expect("a kernel")).source;
            let lines: Vec<&str> = source.lines().collect();
            let at_once = |l: &str| l.trim().strip_prefix("#pragma unroll ").map(str::parse::<u32>);
            let asked = lines.iter().position(|l| matches!(at_once(l), Some(Ok(4 | 8 | 16))));
            let head = asked.expect("a loop over a block") + 1;
            assert!(lines[head].trim_start().starts_with("for ("), "{source}");
            let indent = |line: &str| line.len() - line.trim_start().len();
            let body: Vec<&str> = lines[head + 1..]
                .iter()
                .take_while(|l| indent(l) > indent(lines[head]))
                .copied()
                .collect();
            let text = body.join("\n");
            for asks in ["?", "select", "min(", "if (", "%", "for ("] {
                assert!(!text.contains(asks), "{}\n{text}", c.compact);
            }
            assert_eq!(text.matches("(local float4*)").count(), 1, "{}\n{text}", c.compact);
            assert!(!text.contains("bodies") && !text.contains("samples"), "{text}");
            looked += 1;
        }
        assert!(looked > 0, "{name}: no rows are shared out");
    }
}

#[test]
fn divisions_are_found() {
    let text = |index: &str| {
        format!("void f() {{\n    for (;;) {{\n        x = A[{index}] / 2;\n    }}\n}}\n")
    };
    assert_eq!(divisions(&text("i")).len(), 0);
    assert_eq!(divisions(&text("4 * (l0 / 8) + i")).len(), 1);
    assert_eq!(divisions(&text("(int)B[i % 3]")).len(), 1);
    // Outer loops may contain divisions.
    let nest = "for (a) {\n    x = A[i / 2];\n    for (b) {\n        y = A[i];\n    }\n}\n";
    assert_eq!(divisions(nest).len(), 0);
}

/// The kernels of a product with work-group tiles of 128 by 128 by 8 that are double-buffered. Each work-item
/// computes 8 by 8 elements, in two halves in each dimension; a warp has 4 by 8 work-items.
#[test]
fn blocks_are_loaded_ahead() {
    let info = DeviceInfo { local_mem_bytes: 48 << 10, ..device(DeviceKind::Gpu) };
    let source = include_str!("../../programs/matmul.pat");
    let entry = lang::check_entry(&Source::new("matmul", source), None).expect("well-typed");
    let sizes: IndexMap<String, u64> = entry.sizes.iter().map(|n| (n.clone(), 4096)).collect();
    let program = elaborate(&entry, &sizes).expect("elaborates");
    let rules = RuleSet::shipped().expect("shipped rules").offered(&[]);
    let limits = Limits { saturation_time: None, ..Limits::default() };
    let graph = saturate::saturate(&program.forms(), &rules, &limits).expect("sound rules");
    let model = CostModel::choose(&info).expect("a model").model;
    let found = extract::candidates(&graph, &program.env, &info, &model, &limits)
        .expect("terms")
        .candidates;
    let tiles =
        ["n.t0=128", "m.t0=128", "k.t0=8", "n.t0.t1=8", "m.t0.t1=8", "n.t0.t1.v=4", "m.t0.t1.v=4"];
    let wanted = found.iter().find(|c| {
        let term = c.compact.to_string();
        let env: BTreeSet<String> = c.env.iter().map(|(s, v)| format!("{s}={v}")).collect();
        term.contains("(toLocalAhead id) (toLocalAhead id)")
            && term.contains("spreadWarps")
            && term.contains("mapUnroll (mapUnroll")
            && tiles.iter().all(|t| env.contains(*t))
    });
    let c = wanted.expect("a candidate of the best shape");
    let options = Options::new("product", DeviceLimits::of(&info), &limits);
    let source = print(&lower(&c.term, &c.env, &options).expect("kernels")).source;
    assert_eq!(divisions(&source), [""; 0], "{source}");
    let lines: Vec<&str> = source.lines().collect();
    let place = |from: usize, what: &str| {
        from + lines[from..].iter().position(|l| l.contains(what)).expect("a line")
    };
    let indent = |at: usize| lines[at].len() - lines[at].trim_start().len();
    let last = |what: &str| lines.iter().rposition(|l| l.contains(what)).expect("a line");
    // The loop over blocks consists of loads, the barrier, the computation, and stores.
    let blocks = (0..lines.len())
        .find(|at| {
            lines[*at].contains("for (")
                && lines[at + 1..]
                    .iter()
                    .take_while(|l| l.len() - l.trim_start().len() > indent(*at))
                    .any(|l| l.contains("barrier("))
        })
        .expect("a loop over blocks");
    let end = (blocks + 1..lines.len()).find(|at| indent(*at) <= indent(blocks)).expect("an end");
    let barrier = place(blocks, "barrier(");
    let step = place(barrier, "for (");
    let done = (step + 1..end).find(|at| indent(*at) <= indent(step)).expect("an end");
    let count = |from: usize, to: usize, what: &str| {
        lines[from..to].iter().filter(|l| l.contains(what)).count()
    };
    assert_eq!(count(blocks, end, "barrier("), 1, "{source}");
    // For either matrix, 128 by 8 elements are one float4 for each of 256 work-items, held in registers.
    assert_eq!(count(blocks, barrier, "(global const float4*)"), 2, "{source}");
    assert_eq!(count(barrier, end, "(global const float"), 0, "{source}");
    assert_eq!(count(blocks, barrier, "(local "), 0, "{source}");
    // Vectors of 4 from both halves of the tile's rows and columns.
    assert_eq!(count(step, done, "(local float4*)"), 4, "{source}");
    assert!(count(done, end, "tile") >= 4, "{source}");
    // The last block follows the loop, with nothing left to load.
    assert_eq!(count(end, last("for ("), "barrier("), 1, "{source}");
    assert_eq!(count(end, lines.len(), "(global const float"), 0, "{source}");
}
