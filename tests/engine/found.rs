//! The papers' low-level terms are found in the saturated e-graphs of the high-level programs.

use patsat::calculus::elaborate::{self, elaborate};
use patsat::calculus::op::products::Products;
use patsat::calculus::term::Term;
use patsat::diag::{Limits, Source};
use patsat::saturate::{self, Saturated, StopReason, lookup};
use patsat::session::{Float, Program, Sizes, rule_set};
use std::path::Path;

/// Number of elements: 32 Mi. It is a literal because the tile sizes in these rule sets are numbers.
const N: u64 = 1 << 25;

fn saturated(text: &str, rules: &str) -> Saturated {
    let program = Program::check(&Source::new("program", text), None).expect("a program");
    let term = elaborate(&program.entry, &Sizes::default()).expect("a term").term;
    let rules = rule_set(&[rules], Float::Exact).expect("rules");
    let limits = Limits { saturation_time: None, ..Limits::default() };
    let out =
        saturate::saturate(std::slice::from_ref(&term), &rules, &limits).expect("sound rules");
    assert_eq!(out.report.stop_reason, StopReason::Saturated, "{} nodes", out.report.nodes);
    out
}

/// Returns a golden program as a term, with these sizes.
fn golden(name: &str, sizes: &[(&str, u64)]) -> (Term, patsat::calculus::size::SizeEnv) {
    let path = Path::new("programs/golden").join(name).with_extension("pat");
    let program = Program::load(&path, None).expect("a program");
    let sizes = sizes.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    let program = elaborate(&program.entry, &sizes).expect("a term");
    (program.term, program.env)
}

fn find(graph: &Saturated, name: &str, sizes: &[(&str, u64)]) {
    let (term, env) = golden(name, sizes);
    if let Err(missing) = lookup(graph, &term, &env) {
        panic!("{name}: {term}\n{missing}");
    }
}

fn sum() -> String {
    format!("entry sum (xs: [{N}]f32) : f32 = reduce (+) 0 xs")
}

#[test]
fn reductions_of_the_thesis() {
    let graph = saturated(&sum(), "thesis,warp");
    for listing in ["sum_5_8", "sum_5_9", "sum_5_10", "sum_5_11", "sum_5_12"] {
        find(&graph, listing, &[("n", N)]);
    }
    find(&graph, "sum_5_13", &[("g", N / 1024), ("k", 8)]);
}

#[test]
fn results_of_the_search() {
    let graph = saturated(&sum(), "partials,to-global");
    for name in ["sum_nvidia", "sum_amd", "sum_intel"] {
        find(&graph, name, &[("n", N)]);
    }
}

#[test]
fn vectorised_scaling() {
    let text = format!("entry scal (alpha: f32) (xs: [{N}]f32) : [{N}]f32 = map (* alpha) xs");
    find(&saturated(&text, "partials"), "scal_vector", &[("n", N)]);
}

#[test]
fn fused_sum_of_absolute_values() {
    let text = format!("entry asum (xs: [{N}]f32) : f32 = reduce (+) 0 (map abs xs)");
    find(&saturated(&text, "partials,fusion"), "asum_fused", &[("m", N / 32768), ("k", 32768)]);
}

/// The matrix product of the talk (notes, part C2), step by step, in the graph of the plain product under the
/// default rules, none of which is specific to products.
#[test]
fn products_of_the_talk() {
    let text = "entry mm [n][m][k] (A: [n][k]f32) (B: [k][m]f32) : [n][m]f32 =
        map (\\row -> map (\\col -> reduce (+) 0 (map2 (*) row col)) (transpose B)) A";
    let program = Program::check(&Source::new("program", text), None).expect("a program");
    let sizes: Sizes = ["n", "m", "k"].iter().map(|n| ((*n).to_owned(), 1024)).collect();
    let program = elaborate(&program.entry, &sizes).expect("a term");
    let rules = rule_set::<&str>(&[], Float::Exact).expect("rules");
    let limits = Limits { saturation_time: None, ..Limits::default() };
    let graph = saturate::saturate(&program.forms(), &rules, &limits).expect("sound rules");
    let report = &graph.report;
    println!("{} nodes, {:.0} ms", report.nodes, report.ms);
    assert_eq!(report.stop_reason, StopReason::Saturated);
    let there = |term: &str| {
        let source = Source::new("term", format!("{term} . fork A (transpose . B)"));
        let term = lookup::read(&source, &program).unwrap_or_else(|e| panic!("{term}: {e}"));
        // Both the term as a person writes it and the expanded term must be found.
        for term in [term.clone(), term.unpacked().expect("definitions")] {
            if let Err(missing) = lookup(&graph, &term, &program.env) {
                panic!("{term}\n{missing}");
            }
        }
    };
    let step = r"(\(c, (i, (a, b))) -> if i then c + a * b else c)";
    let groups = |t: u64, u: u64, inside: &str| {
        there(&format!("tiled {t} {u} 1024 1024 id id (mapWrg 1 (mapWrg 0 ({inside})))"));
    };
    there("map (map (reduce (+) 0.0 . map (*) . zip)) . cross");
    // Tiles of the result, one for each work-group.
    groups(64, 64, r"mapLcl 0 (mapSeq (reduceSeq (\(c, (a, b)) -> c + a * b) 0.0 . zip)) . cross");
    let staged =
        |inside: &str| format!("blocked 16 1024 (toLocal id) (toLocal id) ({inside}) 0.0 id");
    // Tiles of both inputs in local memory.
    groups(64, 64, &staged(&format!("mapLcl 0 (mapSeq (foldSeq {step}))")));
    // Accumulators in registers: each work-item has 8 by 8 of a tile, in runs of 2.
    let columns = "bimap id (transpose . map transpose) . unzip . map unzip";
    let products =
        |inside: &str| format!("foldSeq (mapUnroll ({inside}) . map zip . zip) . {columns}");
    let unrolled = format!("mapUnroll {step}");
    groups(64, 64, &staged(&format!("spread 8 8 2 2 (mapLcl 0 ({}))", products(&unrolled))));
    // Double buffering: the next blocks are loaded while these are used.
    let ahead = |inside: &str| {
        format!("blocked 16 1024 (toLocalAhead id) (toLocalAhead id) ({inside}) 0.0 id")
    };
    groups(64, 64, &ahead(&format!("spreadWarps 8 8 4 4 (mapLcl 0 ({}))", products(&unrolled))));
    // Vectors of 4, and each warp covers 4 by 8 parts.
    let vectors = |w: u64| {
        let all = 2 * w;
        format!("packed {w} {all} (mapUnroll (vectorize {w} {step}))")
    };
    groups(64, 64, &staged(&format!("spreadWarps 8 8 4 4 (mapLcl 0 ({}))", products(&vectors(4)))));
    // For a CPU: the tiles of both inputs are packed first, and each work-item computes its part with vectors of
    // 16.
    let pack = "(map transpose . toGlobal id . map transpose)";
    let item = format!("spread 8 32 4 16 (mapSeq ({}))", products(&vectors(16)));
    let item = format!("blocked 16 1024 id id ({item}) 0.0 id");
    there(&format!("tiled 64 64 1024 1024 {pack} {pack} (mapGlb 1 (mapGlb 0 ({item})))"));
    // A term that is not equal must not be found.
    let wrong = format!(
        "tiled 64 64 1024 1024 reverse id (mapWrg 1 (mapWrg 0 ({})))",
        staged(&format!("mapLcl 0 (mapSeq (foldSeq {step}))"))
    );
    let source = Source::new("term", format!("{wrong} . fork A (transpose . B)"));
    let wrong = lookup::read(&source, &program).expect("a term");
    assert!(lookup(&graph, &wrong, &program.env).is_err());
}

/// Returns a program's term, and its graph under the default rules.
fn graph_of(program: &Program) -> (elaborate::Program, Saturated) {
    let sizes: Sizes = program.entry.sizes.iter().map(|n| (n.clone(), 1024)).collect();
    let term = elaborate(&program.entry, &sizes).expect("a term");
    let rules = rule_set::<&str>(&[], Float::Exact).expect("rules");
    let limits = Limits { saturation_time: None, ..Limits::default() };
    let graph = saturate::saturate(&term.forms(), &rules, &limits).expect("sound rules");
    let name = &program.entry.name;
    assert_eq!(graph.report.stop_reason, StopReason::Saturated, "{name}");
    println!("{name}: {} nodes", graph.report.nodes);
    (term, graph)
}

/// Checks that the terms are in the graph, both as written and expanded.
fn are_there(program: &Program, terms: &[String]) {
    let (program, graph) = graph_of(program);
    for term in terms {
        let source = Source::new("term", term.as_str());
        let term = lookup::read(&source, &program).unwrap_or_else(|e| panic!("{term}: {e}"));
        for term in [term.clone(), term.unpacked().expect("definitions")] {
            if let Err(missing) = lookup(&graph, &term, &program.env) {
                panic!("{term}\n{missing}");
            }
        }
    }
}

/// All pairs of bodies in tiles: each work-item has several rows, reads the partners once from local memory for all
/// of them, and has its accumulators in registers.
#[test]
fn tiles_of_bodies() {
    let program = Program::load(Path::new("programs/nbody.pat"), None).expect("a program");
    let (program, graph) = graph_of(&program);
    let pull = r"(\((px, (py, pz)), (qx, (qy, (qz, m)))) ->
        let dx = qx - px in let dy = qy - py in let dz = qz - pz in
        let r = rsqrt (dx * dx + dy * dy + dz * dz + eps) in
        let w = m * r * r * r in (dx * w, (dy * w, dz * w)))";
    let add = r"(\((ax, (ay, az)), (bx, (by, bz))) -> (ax + bx, (ay + by, az + bz)))";
    let step = format!("cond (fst . snd) ({add} . bimap id ({pull} . snd)) fst");
    let registers = format!("foldSeq (mapUnroll ({step}) . zip) . bimap id transpose . unzip");
    let tiles = |share: &str, order: &str| {
        let text = format!(
            "tiledRows 192 1152 (mapWrg 0 (blockedRows 192 1152 (toLocal id)
                ({share} ({order}toPrivate (mapLcl 0 ({registers})))) (\\() -> (0.0, (0.0, 0.0))) id))
                . fork (map (bimap id (bimap id fst)) . bodies) bodies"
        );
        lookup::read(&Source::new("term", text.as_str()), &program)
            .unwrap_or_else(|e| panic!("{text}: {e}"))
    };
    let term = tiles("spreadRows 3", "");
    for term in [term.clone(), term.unpacked().expect("definitions")] {
        if let Err(missing) = lookup(&graph, &term, &program.env) {
            panic!("{term}\n{missing}");
        }
    }
    assert!(lookup(&graph, &tiles("spreadRows 3", "reverse . "), &program.env).is_err());
}

/// Products with other operations around them (an added matrix, a batch of products) still become one kernel with
/// tiles of the result, blocks of the reduction in local memory, registers, and the operation that follows.
#[test]
fn products_with_more_around_them() {
    let step = r"(\(c, (i, (a, b))) -> if i then c + a * b else c)";
    let columns = "bimap id (transpose . map transpose) . unzip . map unzip";
    let fold = |inside: &str| format!("foldSeq (mapUnroll ({inside}) . map zip . zip) . {columns}");
    let spread = |inside: &str| format!("spread 8 8 2 2 (mapLcl 0 ({inside}))");
    let staged = |with: &str, end: &str| {
        let steps = spread(&fold(&format!("mapUnroll {step}")));
        format!("blocked{with} 16 1024 (toLocal id) (toLocal id) ({steps}) 0.0 ({end})")
    };
    let groups = |inside: &str| format!("64 64 1024 1024 id id (mapWrg 1 (mapWrg 0 ({inside})))");
    // Each work-item finishes its own part, and reads the added matrix there.
    let added = r"(\(a, b) -> alpha * a + beta * b)";
    let end = format!("{} . map zip . zip", spread(&format!("mapUnroll (mapUnroll {added})")));
    let shared = format!("tiledWith {}", groups(&staged("With", &end)));
    // For a CPU both inputs are packed, and vectors of columns stay vectors to the end.
    let pack = "(map transpose . toGlobal id . map transpose)";
    let vectors = |f: &str| format!("packed 16 64 (mapUnroll (vectorize 16 {f}))");
    let (steps, end) = (fold(&vectors(step)), format!("mapSeq ({})", vectors(added)));
    let item = format!("blockedWith 16 1024 id id ({steps}) 0.0 ({end} . map zip . zip)");
    let packed = format!("tiledWith 64 64 1024 1024 {pack} {pack} (mapGlb 1 (mapGlb 0 ({item})))");
    // A batch of products: tiles in two dimensions, the batch in the third.
    let many = groups(&staged("", "id"));
    let many = format!("mapWrg 2 (tiled {many} . bimap id transpose) . zip . fork A B");
    let item = format!("blocked 16 1024 id id ({steps}) 0.0 id");
    let items = format!("tiled 64 64 1024 1024 id id (mapGlb 1 (mapGlb 0 ({item})))");
    let items = format!("mapGlb 2 ({items} . bimap id transpose) . zip . fork A B");
    let of = |tiles: &str, rows: &str| format!("{tiles} . fork (fork A {rows}) C");
    for (name, terms) in [
        ("gemm", [of(&shared, "(transpose . B)"), of(&packed, "(transpose . B)")]),
        ("syrk", [of(&shared, "A"), of(&packed, "A")]),
        ("batched", [many, items]),
    ] {
        let path = Path::new("programs").join(name).with_extension("pat");
        are_there(&Program::load(&path, None).expect("a program"), &terms);
    }
}

/// A bias belongs to the columns: the final operation reads it from the vector itself.
#[test]
fn products_with_a_bias() {
    let text = "entry layer [n][m][k] (A: [n][k]f32) (B: [m][k]f32) (bias: [m]f32) : [n][m]f32 =
        map (\\row -> map2 (\\col b -> max 0 (reduce (+) 0 (map2 (*) row col) + b)) B bias) A";
    let program = Program::check(&Source::new("program", text), None).expect("a program");
    let step = r"(\(c, (i, (a, b))) -> if i then c + a * b else c)";
    let end = r"mapLcl 0 (mapSeq (\(a, b) -> max 0.0 (a + b))) . map zip . zip";
    let of = "fork (bimap id (map fst)) (map (map (snd . snd)) . cross)";
    let staged = format!(
        "blockedWith 16 1024 (toLocal id) (toLocal id) (mapLcl 0 (mapSeq (foldSeq {step}))) 0.0 ({end}) . {of}"
    );
    let groups = format!("tiled 64 64 1024 1024 id id (mapWrg 1 (mapWrg 0 ({staged})))");
    are_there(&program, &[format!("{groups} . fork A (zip . fork B bias)")]);
    // Beside a matrix, too.
    let text = "entry layer [n][m][k] (A: [n][k]f32) (B: [m][k]f32) (bias: [m]f32) (C: [n][m]f32) : [n][m]f32 =
        map2 (\\row cs -> map3 (\\col b c -> max 0 (reduce (+) 0 (map2 (*) row col) + b + c)) B bias cs) A C";
    let program = Program::check(&Source::new("program", text), None).expect("a program");
    let end = r"mapLcl 0 (mapSeq (\(a, (b, c)) -> max 0.0 (a + b + c))) . map zip . zip";
    let of = "fork (bimap id (map fst) . fst) (map (map (bimap (snd . snd) id) . zip) . zip . bimap cross id)";
    let staged = format!(
        "blockedWith 16 1024 (toLocal id) (toLocal id) (mapLcl 0 (mapSeq (foldSeq {step}))) 0.0 ({end}) . {of}"
    );
    let groups = format!("tiledWith 64 64 1024 1024 id id (mapWrg 1 (mapWrg 0 ({staged})))");
    are_there(&program, &[format!("{groups} . fork (fork A (zip . fork B bias)) C")]);
}

/// What meets the results of a scan, on either side, and what is computed of them, is computed where each part is scanned.
#[test]
fn scans_with_what_follows() {
    let text = "entry f [n] (k: [n]i32) (xs: [n]i32) : [n]i32 = map2 (\\u x -> u * x + 1) (scan (+) 0 k) xs";
    let turned = text
        .replace("(\\u x -> u * x + 1) (scan (+) 0 k) xs", "(\\x u -> x - u) xs (scan (+) 0 k)");
    let parts = "(zip . fork (scanExclusive (+) 0 . mapWrg 0 (reduceLcl 64 (+) 0 id)) id . split 256 . padLast 1024 . k)";
    let others = "(split 256 . padLast 1024 . xs)";
    let scanned = "scanLcl 64 (+) 0 id";
    let of = |text: &str, op: &str, sides: &str, from: &str| {
        let program = Program::check(&Source::new("program", text), None).expect("a program");
        let row = format!("mapLcl 0 ({op}) . zip . bimap {sides}");
        are_there(&program, &[format!("take 1024 . join . mapWrg 0 ({row}) . zip . fork {from}")]);
    };
    let left = format!("({scanned}) id");
    of(text, r"\(u, x) -> u * x + 1", &left, &format!("{parts} {others}"));
    let right = format!("id ({scanned})");
    of(&turned, r"\(x, u) -> x - u", &right, &format!("{others} {parts}"));
}

/// A term that is not equal must not be found.
#[test]
fn other_terms_are_missing() {
    let graph = saturated(&sum(), "partials");
    let (term, env) = golden("sum_5_9", &[("n", N)]);
    assert!(lookup(&graph, &term, &env).is_err());
}

/// Products by matrix instructions are found if the device has these and floats are relaxed, and never otherwise.
#[test]
fn products_by_matrix_instructions() {
    let offered = |float, capabilities: &[&str]| {
        rule_set::<&str>(&[], float).expect("rules").offered(capabilities)
    };
    for float in [Float::Exact, Float::Contract, Float::Relaxed] {
        for capabilities in
            [&[][..], &["products"], &["products_f16"], &["products_bf16"], &["products_i8"]]
        {
            let rules = offered(float, capabilities);
            for (of, rule) in [
                (Products::F32, "spread-fragments"),
                (Products::F16, "spread-half-fragments"),
                (Products::BF16, "spread-bfloat-fragments"),
                (Products::I8, "spread-byte-fragments"),
            ] {
                // Sums of integers are the same in any order.
                let allowed = float == Float::Relaxed || of == Products::I8;
                let right = allowed && capabilities.contains(&of.capability());
                for form in ["", "-then", "-with"] {
                    let found = rules.get(&format!("{rule}{form}")).is_some();
                    assert_eq!(found, right, "{rule}{form}: {float:?} {capabilities:?}");
                }
            }
            let others = rules.iter().filter(|r| !r.name.contains("-fragments"));
            for rule in others {
                assert!(!rule.rhs.to_string().contains("sumProducts"), "{}", rule.name);
            }
        }
    }
    let program = |body: &str, t: &str| {
        let text = format!("entry mm [n][m][k] (A: [n][k]{t}) (B: [k][m]{t}) = {body}");
        Program::check(&Source::new("mm", text), None).expect("a program")
    };
    let has = |body: &str, t: &str, float| {
        let sizes: Sizes = ["n", "m", "k"].iter().map(|n| ((*n).to_owned(), 1024)).collect();
        let program = elaborate(&program(body, t).entry, &sizes).expect("a term");
        let limits = Limits { saturation_time: None, ..Limits::default() };
        let rules = offered(float, &Products::ALL.map(Products::capability));
        let graph = saturate::saturate(&program.forms(), &rules, &limits).expect("sound rules");
        let zero = if t == "i8" { "0" } else { "0.0" };
        let term = format!(
            "tiled 64 64 1024 1024 id id (mapWrg 1 (mapWrg 0 (blocked 64 1024 (toLocalAhead id) (toLocalAhead id) \
            (spreadFragments 8 8 4 4 (toPrivate (mapLcl 0 sumProducts))) {zero} id))) . fork A (transpose . B)"
        );
        let term = lookup::read(&Source::new("term", term), &program);
        term.is_ok_and(|term| lookup(&graph, &term, &program.env).is_ok())
    };
    let sums = |plus: &str, zero: &str, times: &str| {
        format!(
            "map (\\row -> map (\\col -> reduce ({plus}) {zero} (map2 ({times}) row col)) (transpose B)) A"
        )
    };
    assert!(has(&sums("+", "0", "*"), "f32", Float::Relaxed));
    assert!(!has(&sums("+", "0", "*"), "f32", Float::Contract));
    assert!(!has(&sums("+", "0", "*"), "f64", Float::Relaxed));
    assert!(!has(&sums("+", "0", "-"), "f32", Float::Relaxed));
    // Sums of short floats are another thing.
    for t in ["f16", "bf16"] {
        let widened = sums("+", "0", &format!("\\a b -> f32.{t} a * f32.{t} b"));
        assert!(has(&widened, t, Float::Relaxed));
        assert!(!has(&widened, t, Float::Contract));
        assert!(!has(&sums("+", "0", "*"), t, Float::Relaxed));
    }
    let bytes = sums("+", "0", "\\a b -> i32.i8 a * i32.i8 b");
    assert!(has(&bytes, "i8", Float::Exact));
    // A program may convert the matrices first.
    let whole = "let X = map (map f32.f16) A let Y = map (map f32.f16) B in map (\\row -> map (\\col -> \
        reduce (+) 0 (map2 (*) row col)) (transpose Y)) X";
    assert!(has(whole, "f16", Float::Relaxed));
}
