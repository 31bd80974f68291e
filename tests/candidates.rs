//! Candidates of the shipped programs, built, run on the CPU and compared with the interpreter, at sizes that tiles
//! do not divide.

use indexmap::IndexMap;
use patsat::calculus::size::SizeEnv;
use patsat::calculus::term::{MapKind, Op, Term};
use patsat::calculus::value::{self, Value};
use patsat::calculus::{elaborate, interp};
use patsat::device::cost_model::CostModel;
use patsat::device::{DeviceInfo, DeviceKind};
use patsat::diag::{Code, Limits, Source};
use patsat::kernel::{self, DeviceLimits, Options};
use patsat::lang::{self, typed::Entry};
use patsat::opencl::host::{HostArray, Inputs};
use patsat::opencl::runtime::Runtime;
use patsat::rules::RuleSet;
use patsat::session::generate::{Generator, generate};
use patsat::session::{self, Request};
use patsat::tune::variant::Pool;
use patsat::{extract, opencl, saturate};
use std::sync::Arc;

/// The allocator of the command line, as in the other tests that search.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The most candidates of a program that are lowered, and that are run, at one choice of sizes.
const LOWERED: usize = 60;
const RUN: usize = 12;

/// Whether to lower and run every candidate, which takes an hour: part of `make test-all`.
fn every() -> bool {
    std::env::var_os("PATSAT_EVERY").is_some()
}

/// The candidates to run.
#[derive(Clone, Copy)]
enum Which {
    /// Every n-th candidate for this CPU.
    Every(usize),
    /// Every n-th candidate for a GPU that has work-group tiles with accumulators carried over blocks.
    Tiles(usize),
    /// Every n-th candidate for a GPU whose work-groups split the reductions of neighbouring outputs into slices.
    Slices(usize),
    /// Every n-th candidate for a GPU with work-groups of at most 64 work-items.
    SmallGroups(usize),
    /// Every n-th candidate for such a GPU whose work-groups scan or have bins of their own.
    Together(usize),
    /// Every n-th candidate of last resort for this CPU, taken from a pool whose other candidates have no kernels.
    Defaults(usize),
}

/// The inputs of the programs.
#[derive(Clone, Copy)]
enum Data {
    /// Small whole numbers: sums of a million of them are exact in any order, so that the test checks the code and
    /// not the rounding.
    Whole,
    /// Inputs as the program's comment states.
    Stated,
}

fn whole(entry: &Entry, sizes: &IndexMap<String, u64>) -> (Inputs, Vec<Value>) {
    let mut inputs = Inputs::default();
    let mut values = vec![];
    for (i, p) in entry.params.iter().enumerate() {
        let shape = interp::shape(&p.ty, sizes).expect("a shape");
        let mut parts = vec![];
        for (k, (ty, dims)) in shape.components().into_iter().enumerate() {
            let len = dims.iter().product();
            let normal =
                generate(&Generator::Normal, ty, len, 7, (i * 8 + k) as u64).expect("generated");
            let whole: Vec<f32> = normal
                .to_vec::<f32>()
                .expect("the programs work on f32")
                .into_iter()
                .map(|x| (3.0 * x).round())
                .collect();
            let array = HostArray::from_slice(&whole);
            parts.push(array.bytes().to_vec());
            inputs.insert(p.name.clone(), k, array);
        }
        values.push(Value::from_bytes(&shape, &parts).expect("a value"));
    }
    (inputs, values)
}

/// Lowers every candidate of the program at these sizes, and builds and runs those that `which` selects. Returns
/// how many candidates were found and how many were run.
fn check(program: &str, sizes: &[(&str, u64)], data: Data, which: Which) -> (usize, usize) {
    let folder = if let Which::Together(_) = which { "tests/total" } else { "programs" };
    let path = format!("{}/{folder}/{program}.pat", env!("CARGO_MANIFEST_DIR"));
    let source = Source::new(&path, std::fs::read_to_string(&path).expect("a program"));
    let (entry, equal) = lang::check_entry_general(&source, None, true).expect("well-typed");
    let given: IndexMap<String, u64> = sizes.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    let value =
        |s: &lang::size::Size| s.eval(&|n| given.get(n).and_then(|v| i64::try_from(*v).ok()));
    let all: IndexMap<String, u64> = equal
        .iter()
        .map(|(n, s)| (n.clone(), u64::try_from(value(s).expect("a size")).expect("not negative")))
        .chain(given.clone())
        .collect();
    let term = elaborate::elaborate(&entry, &all).expect("elaborates");
    let rules = RuleSet::shipped().expect("shipped rules");
    let limits = Limits { saturation_time: None, ..Limits::default() };
    let graph = saturate::saturate(&term.forms(), &rules, &limits).expect("sound rules");
    assert_eq!(graph.report.stop_reason, saturate::StopReason::Saturated, "{program}");

    let rt = Runtime::open(Some("Portable")).expect("PoCL");
    let mut info = rt.info().clone();
    if !matches!(which, Which::Every(_) | Which::Defaults(_)) {
        info.kind = DeviceKind::Gpu;
    }
    if let Which::SmallGroups(_) | Which::Together(_) = which {
        info.max_work_group_size = 64;
    }
    let models = CostModel::shipped().expect("shipped models");
    let model = match which {
        Which::Every(_) | Which::Defaults(_) => CostModel::choose(&info).expect("a model").model,
        Which::Tiles(_) | Which::Slices(_) | Which::SmallGroups(_) | Which::Together(_) => {
            models.into_iter().find(|m| m.name == "generic-gpu").expect("a model of a GPU")
        }
    };
    let mut found = match which {
        Which::Defaults(_) => last_resort(program, &graph, &term.env, &info, &model, &limits),
        _ => {
            extract::candidates(&graph, &term.env, &info, &model, &limits)
                .expect("terms")
                .candidates
        }
    };
    let step = match which {
        Which::Every(step) | Which::SmallGroups(step) | Which::Defaults(step) => step,
        Which::Tiles(step) => {
            found.retain(|c| in_group_tiles(&c.compact));
            assert!(!found.is_empty(), "{program} {sizes:?}: no tiles of groups");
            step
        }
        Which::Slices(step) => {
            found.retain(|c| uses(&c.compact, |op| *op == Op::Sliced));
            assert!(!found.is_empty(), "{program} {sizes:?}: no slices");
            step
        }
        Which::Together(step) => {
            let together =
                |op: &Op| matches!(op, Op::ScanLcl(_) | Op::Histogram | Op::CountingSort);
            found.retain(|c| uses(&c.compact, together));
            assert!(!found.is_empty(), "{program} {sizes:?}: no scans of groups, no buckets");
            step
        }
    };

    let (inputs, values) = match data {
        Data::Whole => whole(&entry, &all),
        Data::Stated => {
            let program = session::Program::check(&source, None).expect("well-typed");
            let request = Request {
                sizes: given.clone(),
                default: Some(Generator::Normal),
                ..Request::default()
            };
            let bound = session::inputs::bind(&program, &request).expect("inputs");
            (bound.inputs, bound.values)
        }
    };
    let expected = interp::run(&entry, &all, &values).expect("a result");
    let terms = interp::terms(&entry, &all);
    let uploaded = rt.upload(&inputs).expect("uploaded");
    let options = Options::new(program, DeviceLimits::of(&info), &limits);
    let (mut run, mut failures, mut unproved) = (0, vec![], vec![]);
    // The CPU has no matrix instructions. Kernels with them are lowered here, and `tests/golden/fragments.rs` executes such kernels.
    let (matrices, others): (Vec<_>, Vec<_>) =
        found.iter().partition(|c| uses(&c.compact, |op| *op == Op::SumProducts));
    // Programs with thousands of candidates: not all are lowered, and those that run always are.
    let sample = if every() { 1 } else { found.len().div_ceil(LOWERED) };
    let step = if every() { 1 } else { step.max(others.len().div_ceil(RUN)) };
    let may_run = others.iter().map(|_| true).chain(matrices.iter().map(|_| false));
    for ((i, c), may_run) in others.iter().chain(&matrices).enumerate().zip(may_run) {
        let runs = may_run && i.is_multiple_of(step);
        if !runs && !i.is_multiple_of(sample) {
            continue;
        }
        let mut fail = |text: String| {
            let env: Vec<String> = c.env.iter().map(|(s, v)| format!("{s}={v}")).collect();
            let env = env.join(" ");
            failures.push(format!("{program} {env}\n{}\n{}\n{text}\n", c.skeleton, c.term));
        };
        let lowered = match kernel::lower(&c.term, &c.env, &options) {
            Ok(p) => p,
            // Tiles of a batch with incomplete rows cannot always be proved to store to separate places. Such
            // kernels are never run.
            Err(_) if matches!(which, Which::Tiles(_)) => continue,
            // Nor can a few that read tiles by the number of an element of the whole matrix.
            Err(d) if d.code == Code::Unproved => {
                unproved.push(c.skeleton.clone());
                continue;
            }
            Err(d) => {
                fail(format!("{d}\n{:?}", d.notes));
                continue;
            }
        };
        if !runs {
            continue;
        }
        let plan = Arc::new(opencl::print::print(&lowered));
        let out = rt.build(&plan).and_then(|b| rt.prepare(b, &uploaded)?.check(&rt));
        let (_, out) = match out {
            Ok(x) => x,
            Err(e) => {
                fail(format!("{e}\n{}", plan.source));
                continue;
            }
        };
        let bytes: Vec<&[u8]> = out.iter().map(HostArray::bytes).collect();
        let comparison = value::compare(&expected, &bytes, terms);
        if !comparison.ok {
            fail(format!("{comparison:?}\n{}\n{:?}", plan.source, plan.launches));
        }
        run += 1;
    }
    assert!(100 * unproved.len() <= found.len(), "{program}: unproved: {unproved:#?}");
    let total = failures.len();
    assert!(failures.is_empty(), "{total} failures\n{}", failures.join("\n"));
    (found.len(), run)
}

/// Returns the candidates of a pool that has none but those of last resort.
fn last_resort(
    name: &str,
    graph: &saturate::Saturated,
    dims: &SizeEnv,
    info: &DeviceInfo,
    model: &CostModel,
    limits: &Limits,
) -> Vec<extract::Candidate> {
    let options = Options::new(name, DeviceLimits::of(info), limits);
    let defaults = || extract::defaults(graph, dims, info, model, limits);
    let mut pool = Pool::new(&[], dims, &options, model).with_defaults(defaults);
    let draw = |pool: &mut Pool| pool.draw(1, 1, |_| true, || true).len();
    assert_eq!(draw(&mut pool), 0);
    assert!(pool.fall_back().expect("not interrupted"));
    assert!(draw(&mut pool) > 0 && pool.lowered() > 0, "{name}");
    assert!(!pool.fall_back().expect("not interrupted"), "{name} has kernels");
    pool.candidates().to_vec()
}

fn all(program: &str, sizes: &[&[(&str, u64)]], data: Data, step: usize) {
    for s in sizes {
        let start = std::time::Instant::now();
        let (found, run) = check(program, s, data, Which::Every(step));
        eprintln!("{program} {s:?}: {run} of {found} run in {:.1?}", start.elapsed());
    }
}

#[test]
fn asum() {
    all(
        "asum",
        &[0, 1, 2, 3, 127, 1_000_003].map(|n| [("n", n)]).each_ref().map(|s| &s[..]),
        Data::Whole,
        37,
    );
}

/// Every operator has its default.
#[test]
fn last_resorts() {
    for (program, sizes, each) in [
        ("asum", &[("n", 127)][..], 401),
        ("matmul", &[("n", 17), ("m", 33), ("k", 9)], 31),
        ("kmeans", &[("n", 17), ("k", 5), ("d", 3)], 401),
        ("attention", &[("n", 17), ("m", 33), ("d", 9)], 4001),
    ] {
        let (found, run) = check(program, sizes, Data::Stated, Which::Defaults(each));
        assert!(run > 0, "{program}: none of {found} run");
        eprintln!("{program} {sizes:?}: {run} of {found} run");
    }
}

#[test]
fn dot() {
    all(
        "dot",
        &[0, 1, 3, 127, 1_000_003].map(|n| [("n", n)]).each_ref().map(|s| &s[..]),
        Data::Whole,
        37,
    );
}

#[test]
fn scal() {
    all(
        "scal",
        &[0, 1, 2, 3, 127, 1_000_003].map(|n| [("n", n)]).each_ref().map(|s| &s[..]),
        Data::Whole,
        11,
    );
}

#[test]
fn gemv() {
    let sizes = [(0, 3), (3, 0), (1, 1), (7, 127), (127, 7), (100, 1000)];
    all(
        "gemv",
        &sizes.map(|(n, m)| [("n", n), ("m", m)]).each_ref().map(|s| &s[..]),
        Data::Whole,
        29,
    );
}

#[test]
fn others() {
    let sizes = [0, 1, 2, 3, 127, 1_000_003].map(|n| [("n", n)]);
    for program in ["nrm2", "sumsq", "axpy", "chain"] {
        all(program, &sizes.each_ref().map(|s| &s[..]), Data::Whole, 131);
    }
}

#[test]
fn blackscholes() {
    let sizes = [0, 1, 3, 127, 10_007].map(|n| [("n", n)]);
    all("blackscholes", &sizes.each_ref().map(|s| &s[..]), Data::Stated, 11);
}

#[test]
fn md() {
    let sizes = [(0, 3), (3, 0), (2, 1), (7, 37), (127, 7), (1000, 100)];
    let sizes = sizes.map(|(n, k)| [("n", n), ("k", k)]);
    all("md", &sizes.each_ref().map(|s| &s[..]), Data::Stated, 37);
}

/// Checks a program at several sizes, with only some of the candidates, since products have many.
fn reuse(program: &str, sizes: &[&[(&str, u64)]]) {
    all(program, sizes, Data::Stated, 61);
}

#[test]
fn products() {
    let nmk = [[1, 7, 3], [5, 1, 9], [17, 33, 9]];
    let nmk = nmk.map(|[n, m, k]| [("n", n), ("m", m), ("k", k)]);
    for program in ["matmul", "matmul_nt", "matmul_tn", "matmul_tt", "gemm"] {
        reuse(program, &nmk.each_ref().map(|s| &s[..]));
    }
    reuse("matmul", &[&[("n", 3), ("m", 5), ("k", 0)], &[("n", 0), ("m", 5), ("k", 7)]]);
    let bnmk = [[3, 1, 5, 4], [2, 17, 9, 33]];
    let bnmk = bnmk.map(|[b, n, m, k]| [("b", b), ("n", n), ("m", m), ("k", k)]);
    reuse("batched", &bnmk.each_ref().map(|s| &s[..]));
    let nk = [[1, 5], [5, 1], [17, 33]].map(|[n, k]| [("n", n), ("k", k)]);
    reuse("syrk", &nk.each_ref().map(|s| &s[..]));
}

#[test]
fn pairs() {
    let n = [1, 17, 130].map(|n| [("n", n)]);
    reuse("nbody", &n.each_ref().map(|s| &s[..]));
    let nm = [[1, 33], [33, 1], [17, 130]].map(|[n, m]| [("n", n), ("m", m)]);
    for program in ["gemv_t", "nn", "outer"] {
        reuse(program, &nm.each_ref().map(|s| &s[..]));
    }
    let nk = [[1, 33], [33, 1], [17, 130]].map(|[n, k]| [("n", n), ("k", k)]);
    reuse("mriq", &nk.each_ref().map(|s| &s[..]));
    let nmd = [[1, 17, 3], [17, 1, 5], [17, 33, 9]];
    let nmd = nmd.map(|[n, m, d]| [("n", n), ("m", m), ("d", d)]);
    for program in ["pairwise", "attention"] {
        reuse(program, &nmd.each_ref().map(|s| &s[..]));
    }
    let nkd = [[1, 33, 9], [33, 1, 1], [17, 5, 3]].map(|[n, k, d]| [("n", n), ("k", k), ("d", d)]);
    reuse("kmeans", &nkd.each_ref().map(|s| &s[..]));
}

/// Returns whether the term carries a tile's accumulators over blocks in a work-group.
fn in_group_tiles(t: &Term) -> bool {
    let (mut groups, mut blocks) = (false, false);
    t.visit(&mut |t| {
        groups |= matches!(t.op(), Op::Map(MapKind::Wrg(_)));
        blocks |= matches!(t.op(), Op::Blocked(_));
    });
    groups && blocks
}

/// Returns whether work-groups split reductions of neighbouring outputs into slices.
fn uses(t: &Term, wanted: fn(&Op) -> bool) -> bool {
    let mut found = false;
    t.visit(&mut |t| found |= wanted(t.op()));
    found
}

/// Sliced reductions, at sizes that neither the tiles nor the slices divide.
#[test]
fn slices() {
    let slices = |program: &str, sizes: &[(&str, u64)]| {
        let (found, run) = check(program, sizes, Data::Whole, Which::Slices(17));
        assert!(run > 0, "{program} {sizes:?}: none of {found} has kernels");
        eprintln!("{program} {sizes:?}: {run} of {found} run");
    };
    for [n, m] in [[1, 33], [100, 70], [1000, 129]] {
        slices("gemv_t", &[("n", n), ("m", m)]);
    }
    for [n, m, k] in [[1, 70, 129], [3, 33, 100]] {
        slices("matmul", &[("n", n), ("m", m), ("k", k)]);
        slices("gemm", &[("n", n), ("m", m), ("k", k)]);
    }
}

/// Scans by whole work-groups: of parts, of the totals of parts, and of rows; with lengths that runs do not divide,
/// and with an operator that does not commute. Histograms by atomic operations. Counting sorts of several tiles.
#[test]
fn scans_and_histograms() {
    for (program, sizes) in [
        ("scan_in_parts", &[("n", 6007)][..]),
        ("scan_rows", &[("n", 3), ("m", 1031)]),
        ("scan_rows", &[("n", 2), ("m", 1024)]),
        ("segmented_scan", &[("n", 5000)]),
        ("histogram_of_bytes", &[("n", 5003)]),
        ("histogram_of_pairs", &[("n", 5003)]),
        ("counting_sort", &[("n", 5003)]),
        // Work-items take several values each.
        ("histogram_of_bytes", &[("n", 33_003)]),
        ("histogram_of_windows", &[("n", 33_003), ("m", 61)]),
        ("histograms_of_same_bins", &[("n", 33_003), ("m", 37)]),
        ("bins_in_order", &[("n", 33_003)]),
    ] {
        let (found, run) = check(program, sizes, Data::Stated, Which::Together(19));
        assert!(run > 0, "{program} {sizes:?}: none of {found} has kernels");
        eprintln!("{program} {sizes:?}: {run} of {found} run");
    }
}

/// Work-group tiles of products with other operations around them, at skinny sizes and at sizes that tiles do not
/// divide.
#[test]
fn products_with_more_around_them() {
    let tiles = |program: &str, sizes: &[(&str, u64)]| {
        let (found, run) = check(program, sizes, Data::Whole, Which::Tiles(23));
        assert!(run > 0, "{program} {sizes:?}: none of {found} has kernels");
        eprintln!("{program} {sizes:?}: {run} of {found} run");
    };
    for [n, m, k] in [[1, 70, 5], [70, 1, 33], [67, 45, 19]] {
        tiles("gemm", &[("n", n), ("m", m), ("k", k)]);
    }
    for [n, k] in [[33, 5], [67, 19]] {
        tiles("syrk", &[("n", n), ("k", k)]);
    }
    for [b, n, m, k] in [[3, 33, 70, 5], [2, 67, 45, 19]] {
        tiles("batched", &[("b", b), ("n", n), ("m", m), ("k", k)]);
    }
}

/// Rows that are so long that a work-group has fewer work-items than a row has vectors, so that every work-item
/// takes several.
#[test]
fn rows_longer_than_groups() {
    for m in [321, 1024] {
        let sizes = [("n", 3), ("m", m), ("d", 5)];
        let (found, run) = check("attention", &sizes, Data::Stated, Which::SmallGroups(5));
        assert!(run > 0, "{m}: none of {found} has kernels");
        eprintln!("attention {m}: {run} of {found} run");
    }
}

/// A new program must be added above.
#[test]
fn every_program_is_run() {
    let text = include_str!("candidates.rs");
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/programs"));
    for file in folder.expect("programs") {
        let path = file.expect("a file").path();
        if path.extension().is_some_and(|e| e == "pat") {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            assert!(text.contains(&format!("\"{name}\"")), "{name} is not run here");
        }
    }
}
