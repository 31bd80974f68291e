//! Every low-level pattern of the language compiles where it is legal; elsewhere it is refused with a clear
//! message.

use crate::check::{array, compile, cpu, device, kernels};
use patsat::diag::{Code, Source};
use patsat::kernel::DeviceLimits;
use patsat::session::Program;

type Sizes<'a> = &'a [(&'a str, u64)];

/// Programs that compile without rewriting, with their sizes.
pub const LEGAL: &[(&str, Sizes<'static>)] = &[
    // Global work-items in one, two and three dimensions.
    ("entry f [n] (xs: [n]f32) : [n]f32 = mapGlb 0 (+ 1) xs", &[("n", 77)]),
    ("entry f [n][m] (a: [n][m]f32) : [n][m]f32 = mapGlb 1 (mapGlb 0 (* 2)) a", &[("n", 5), ("m", 9)]),
    (
        "entry f (a: [3][4][5]f32) : [3][4][5]f32 = mapGlb 2 (mapGlb 1 (mapGlb 0 abs)) a",
        &[],
    ),
    // Work-groups and their work-items in three dimensions.
    (
        "entry f (a: [2][3][2][4][5][3]f32) : [2][3][2][4][5][3]f32 =
           mapWrg 2 (mapWrg 1 (mapWrg 0 (mapLcl 2 (mapLcl 1 (mapLcl 0 (+ 1)))))) a",
        &[],
    ),
    // A stage over one dimension of a two-dimensional group.
    (
        "entry f (a: [2][4][8]f32) : [2][4][8]f32 =
           mapWrg 0 (\\t -> t |> join |> toLocal (mapLcl 0 (+ 1)) |> split 8
             |> mapLcl 1 (mapLcl 0 (* 2))) a",
        &[],
    ),
    // Stages that pass through local, private and global memory.
    (
        "entry f [n] (xs: [n]f32) : [n]f32 =
           xs |> split 64
              |> mapWrg 0 (toLocal (mapLcl 0 (+ 1)) >-> reverse >-> toGlobal (mapLcl 0 (* 2)) >-> reverse
                >-> mapLcl 0 (+ 3))
              |> join",
        &[("n", 640)],
    ),
    (
        "entry f [n] (xs: [n]f32) : [n]f32 =
           xs |> split 64 |> mapWrg 0 (toPrivate (mapLcl 0 (+ 1)) >-> mapLcl 0 (* 2)) |> join",
        &[("n", 640)],
    ),
    (
        "entry f (a: [6][8]f32) : [6][8]f32 =
           mapGlb 0 (toPrivate (mapSeq (+ 1)) >-> reverse >-> mapSeq (* 2)) a",
        &[],
    ),
    (
        "entry f (a: [6][8]f32) : [6][8]f32 =
           mapGlb 0 (toGlobal (mapSeq (+ 1)) >-> reverse >-> mapSeq (* 2)) a",
        &[],
    ),
    (
        "entry f (a: [6][4][8]f32) : [6][4][8]f32 =
           mapWrg 0 (mapLcl 0 (toGlobal (mapSeq (+ 1)) >-> reverse >-> mapSeq (* 2))) a",
        &[],
    ),
    // A stage computed by one work-item for its group.
    (
        "entry f (a: [6][40]f32) : [6][40]f32 =
           mapWrg 0 (toLocal (mapSeq (+ 1)) >-> reverse >-> mapLcl 0 (* 2)) a",
        &[],
    ),
    ("entry f (a: [6][40]f32) : [6]f32 = mapWrg 0 (reduceSeq (+) 0) a", &[]),
    // Loops around stages.
    (
        "entry f (a: [6][4][40]f32) : [6][4][40]f32 =
           mapWrg 0 (mapSeq (toLocal (mapLcl 0 (+ 1)) >-> reverse >-> mapLcl 0 (* 2))) a",
        &[],
    ),
    (
        "entry f (a: [6][4][40]f32) : [6][4][40]f32 = mapWrg 0 (mapUnroll (mapLcl 0 (+ 1))) a",
        &[],
    ),
    (
        "entry f (a: [6][5][32]f32) : [6][32]f32 =
           mapWrg 0 (\\rows ->
             reduceSeq (\\acc row -> mapLcl 0 (\\(p, q) -> p + q) (zip acc row)) (replicate 32 0) rows
               |> mapLcl 0 (+ 1)) a",
        &[],
    ),
    // Loops in one work-item.
    ("entry f (a: [9][8]f32) : [9][8]f32 = mapGlb 0 (mapUnroll (+ 1)) a", &[]),
    ("entry f (a: [9][8]f32) : [9]f32 = mapGlb 0 (reduceUnroll (+) 0) a", &[]),
    ("entry f (a: [9][8]f32) : [9][8]f32 = mapGlb 0 (scanSeq (+) 0) a", &[]),
    ("entry f [n] (xs: [n]f32) : [n]f32 = scanSeq (+) 0 xs", &[("n", 100)]),
    ("entry f [n] (xs: [n]f32) : f32 = reduceSeq (\\a x -> a * 0.5 + x) 1 xs", &[("n", 10)]),
    (
        "entry f (a: [9][8]f32) : [9]f32 =
           mapGlb 0 (iterateSeq 3 (split 2 >-> mapSeq (reduceSeq (+) 0)) >-> \\one -> one[0]) a",
        &[],
    ),
    (
        "entry f (a: [9][64]f32) : [9][8]f32 =
           mapWrg 0 (toLocal (mapLcl 0 id) >-> iterateSeq 3 (split 2 >-> mapLcl 0 (reduceSeq (+) 0))
             >-> mapLcl 0 id) a",
        &[],
    ),
    // Reorderings and vectors.
    (
        "entry f [n] (xs: [n]f32) : [n]f32 =
           xs |> reorderStride 4 |> split 8 |> mapGlb 0 (reorderStride 2 >-> mapSeq (+ 1)) |> join",
        &[("n", 64)],
    ),
    (
        "entry f [n] (xs: [n]f32) : [n]f32 = xs |> asVector 4 |> mapGlb 0 (vectorize 4 abs) |> asScalar",
        &[("n", 64)],
    ),
    (
        "entry f (a: [6][64]f32) : [6][2]f32 =
           mapGlb 0 (asVector 2 >-> reduceSeq (vectorize 2 (+)) 0 >-> \\v -> asScalar (replicate 1 v)) a",
        &[],
    ),
    // Fewer and more warps than the group has, and lanes over more and fewer elements than a warp has.
    (
        "entry f (a: [3][96]f32) : [3][96]f32 =
           mapWrg 0 (toLocal (mapLcl 0 (+ 1)) >-> reverse >-> split 32
             >-> mapWarp (mapLane (* 2) >-> reverse >-> mapLane (+ 3)) >-> join >-> reverse
             >-> mapLcl 0 (+ 4)) a",
        &[],
    ),
    (
        "entry f (a: [2][70][32]f32) : [2][70][32]f32 =
           mapWrg 0 (mapWarp (mapLane (+ 1) >-> reverse >-> mapLane (* 2))) a",
        &[],
    ),
    (
        "entry f (a: [2][3][100]f32) : [2][3][100]f32 =
           mapWrg 0 (mapWarp (mapLane (+ 1) >-> reverse >-> mapLane (* 2))) a",
        &[],
    ),
    (
        "entry f (a: [2][5][6]f32) : [2][5][6]f32 =
           mapWrg 0 (mapWarp (mapLane (+ 1) >-> reverse >-> mapLane (* 2))) a",
        &[],
    ),
    // Memory placement inside a warp, and values that one lane computes for all.
    (
        "entry f (a: [2][5][32]f32) : [2][5][32]f32 =
           mapWrg 0 (mapWarp (toLocal (mapLane (+ 1)) >-> reverse >-> toPrivate (mapLane (* 2))
             >-> mapLane (+ 3))) a",
        &[],
    ),
    (
        "entry f (a: [2][5][32]f32) : [2][5][32]f32 =
           mapWrg 0 (mapWarp (toGlobal (mapLane (+ 1)) >-> reverse >-> mapLane (* 2))) a",
        &[],
    ),
    (
        "entry f (a: [2][5][32]f32) : [2][5]f32 =
           mapWrg 0 (mapWarp (mapLane (+ 1) >-> reverse >-> reduceSeq (\\s x -> s * 0.5 + x) 0)) a",
        &[],
    ),
    (
        "entry f (a: [2][5][32]f32) : [2][5][32]f32 =
           mapWrg 0 (mapWarp (\\p ->
             let s = reduceSeq (+) 0 (mapLane (* 2) p) in mapLane (\\x -> x + s) p)) a",
        &[],
    ),
    (
        "entry f (a: [2][5][3][32]f32) : [2][5][3][32]f32 =
           mapWrg 0 (mapWarp (mapSeq (mapLane (+ 1) >-> reverse >-> mapLane (* 2)))) a",
        &[],
    ),
    (
        "entry f (a: [2][5][3][32]f32) : [2][5][32]f32 =
           mapWrg 0 (mapWarp (\\rows ->
             reduceSeq (\\acc row -> mapLane (\\(p, q) -> p + q) (zip acc row)) (replicate 32 0) rows
               |> reverse |> mapLane (+ 1))) a",
        &[],
    ),
    // Warps of a two-dimensional group.
    (
        "entry f (a: [2][4][32]f32) : [2][4][32]f32 =
           mapWrg 0 (toLocal (mapLcl 1 (mapLcl 0 (+ 1))) >-> reverse
             >-> mapWarp (mapLane (* 2) >-> reverse >-> mapLane (+ 1))) a",
        &[],
    ),
];

#[test]
fn legal_programs_run() {
    let rt = cpu();
    for (text, sizes) in LEGAL {
        let program = Program::check(&Source::new("legal.pat", *text), None)
            .unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        // Smaller groups need more rounds, and single work-items do everything.
        let small = |n| DeviceLimits { max_work_group_size: n, max_item_sizes: [n; 3], ..device() };
        for d in [device(), small(64), small(1)] {
            let k = compile(&program, sizes, &d).unwrap_or_else(|e| panic!("{e}\n{text}"));
            k.run(&rt);
        }
    }
}

/// A nest of loops that all index an array keeps the array in memory if unrolling would make many copies of the
/// body, although each loop alone is short.
#[test]
fn long_nests_are_loops() {
    let text = "entry f (a: [2][16][16]f32) : [2][16][16][16][16]f32 =
        mapGlb 0 (toPrivate (mapSeq (mapSeq (+ 1)))
          >-> (\\c -> mapSeq (mapSeq (\\x -> mapSeq (mapSeq (\\y -> x * y)) c)) c)) a";
    let program = Program::check(&Source::new("nest.pat", text), None).expect("well-typed");
    let kernels = compile(&program, &[], &device()).expect("kernels");
    kernels.run(&cpu());
    assert!(kernels.plan.source.lines().count() < 100, "{}", kernels.plan.source);
}

/// Programs that are refused, with the reason.
const ILLEGAL: &[(&str, Code, &str)] = &[
    (
        "entry f [n] (xs: [n]f32) = mapLcl 0 abs xs",
        Code::IllNested,
        "`mapLcl 0` outside `mapWrg`",
    ),
    (
        "entry f [n][m] (a: [n][m]f32) = mapGlb 0 (mapLcl 0 abs) a",
        Code::IllNested,
        "`mapLcl 0` outside `mapWrg`",
    ),
    (
        "entry f [n][m] (a: [n][m]f32) = mapGlb 0 (mapGlb 0 abs) a",
        Code::IllNested,
        "`mapGlb 0` inside itself",
    ),
    (
        "entry f [n][m] (a: [n][m]f32) = mapWrg 1 (mapWrg 1 (reduceSeq (+) 0)) (map (split 1) a)",
        Code::IllNested,
        "`mapWrg 1` inside itself",
    ),
    (
        "entry f (a: [2][3][4]f32) = mapWrg 0 (mapLcl 1 (mapLcl 1 abs)) a",
        Code::IllNested,
        "`mapLcl 1` inside itself",
    ),
    (
        "entry f [n][m] (a: [n][m]f32) = mapWrg 0 (mapGlb 0 abs) a",
        Code::IllNested,
        "`mapGlb 0` inside a work-group",
    ),
    (
        "entry f [n][m] (a: [n][m]f32) = mapGlb 0 (mapWrg 0 abs) a",
        Code::IllNested,
        "`mapWrg 0` inside a map over work-items",
    ),
    (
        "entry f (a: [2][3][4]f32) = mapWrg 0 (mapLcl 0 (mapWrg 1 abs)) a",
        Code::IllNested,
        "`mapWrg 1` inside a map over work-items",
    ),
    ("entry f [n] (xs: [n]f32) = mapGlb 3 abs xs", Code::BadTerm, "dimension"),
    (
        "entry f [n] (xs: [n]f32) = mapGlb 0 abs (toLocal (mapSeq id) xs)",
        Code::IllNested,
        "`toLocal` that no `mapWrg` encloses",
    ),
    (
        "entry f (a: [2][3]f32) = mapGlb 0 (toLocal (mapSeq abs) >-> mapSeq abs) a",
        Code::IllNested,
        "`toLocal` that no `mapWrg` encloses",
    ),
    (
        "entry f (a: [2][3][4]f32) = mapWrg 0 (mapLcl 0 (toLocal (mapSeq abs) >-> mapSeq abs)) a",
        Code::IllNested,
        "`toLocal` inside `mapLcl`",
    ),
    ("entry f [n] (xs: [n]f32) = mapWarp abs xs", Code::IllNested, "`mapWarp` outside `mapWrg`"),
    (
        "entry f (a: [2][3]f32) = mapGlb 0 (mapWarp abs) a",
        Code::IllNested,
        "`mapWarp` outside `mapWrg`",
    ),
    (
        "entry f (a: [2][3][4]f32) = mapWrg 0 (mapLcl 0 (mapWarp abs)) a",
        Code::IllNested,
        "`mapWarp` inside `mapLcl`",
    ),
    (
        "entry f (a: [2][3][4]f32) = mapWrg 0 (mapWarp (mapLcl 0 abs)) a",
        Code::IllNested,
        "`mapLcl 0` inside `mapWarp`",
    ),
    (
        "entry f (a: [2][3][4]f32) = mapWrg 0 (mapWarp (mapWarp abs)) a",
        Code::IllNested,
        "`mapWarp` inside itself",
    ),
    ("entry f [n] (xs: [n]f32) = mapLane abs xs", Code::IllNested, "`mapLane` outside `mapWarp`"),
    (
        "entry f (a: [2][3]f32) = mapWrg 0 (mapLane abs) a",
        Code::IllNested,
        "`mapLane` outside `mapWarp`",
    ),
    (
        "entry f (a: [2][3][4]f32) = mapWrg 0 (mapLcl 0 (mapLane abs)) a",
        Code::IllNested,
        "`mapLane` outside `mapWarp`",
    ),
    (
        "entry f (a: [2][3][4][5]f32) = mapWrg 0 (mapWarp (mapLane (mapLane abs))) a",
        Code::IllNested,
        "`mapLane` inside itself",
    ),
    (
        "entry f (a: [2][3][4][5]f32) =
           mapWrg 0 (mapWarp (mapLane (toLocal (mapSeq abs) >-> mapSeq abs))) a",
        Code::IllNested,
        "`toLocal` inside `mapLane`",
    ),
    (
        "entry f (a: [2][3][4]f32) =
           mapWrg 0 (mapWarp (toPrivate (mapSeq abs) >-> mapLane abs)) a",
        Code::IllNested,
        "`toPrivate` in a warp outside its lanes",
    ),
    // Elements in private memory that another work-item would need.
    (
        "entry f (a: [2][8]f32) = mapWrg 0 (toPrivate (mapLcl 0 abs) >-> reverse >-> mapLcl 0 abs) a",
        Code::BadTerm,
        "use toLocal",
    ),
    (
        "entry f (a: [2][1][8]f32) =
           mapWrg 0 (mapWarp (toPrivate (mapLane abs) >-> reverse >-> mapLane abs)) a",
        Code::BadTerm,
        "use toLocal",
    ),
    // Patterns that do not say how they run.
    ("entry f [n] (xs: [n]f32) = map abs xs", Code::BadTerm, "`map` does not say how it runs"),
    (
        "entry f [n] (xs: [n]f32) = reduce (+) 0 xs",
        Code::BadTerm,
        "`reduce` does not say how it runs",
    ),
    (
        "entry f (a: [2][8]f32) = mapWrg 0 (map abs) a",
        Code::BadTerm,
        "`map` does not say how it runs",
    ),
    // Vector widths that OpenCL does not have.
    (
        "entry f (xs: [10]f32) = xs |> asVector 5 |> mapGlb 0 (vectorize 5 abs) |> asScalar",
        Code::KernelLimit,
        "no vectors of 5",
    ),
    (
        "entry f (xs: [8]f32) =
           xs |> asVector 4 |> mapGlb 0 (vectorize 4 (\\x -> loop (s = x) for i < 3 do s * x)) |> asScalar",
        Code::KernelLimit,
        "has no vector form",
    ),
];

#[test]
fn illegal_programs_are_refused() {
    let mut wrong = vec![];
    for (text, code, why) in ILLEGAL {
        let source = Source::new("illegal.pat", *text);
        let sizes = ["n", "m"]
            .map(|s| (s, 12))
            .into_iter()
            .filter(|(s, _)| text.contains(&format!("[{s}]")));
        let sizes: Vec<_> = sizes.collect();
        let made = Program::check(&source, None).and_then(|p| compile(&p, &sizes, &device()));
        match made {
            Ok(k) => wrong.push(format!("{text}\ncompiles:\n{}", k.plan.source)),
            Err(e) if e.0[0].code != *code || !e.0[0].message.contains(why) => {
                wrong.push(format!("{text}\n{}: {}, not {why}", e.0[0].code, e.0[0].message));
            }
            Err(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// A result that is an operand of a further kernel is stored in the result alone; a second result of the same value is a
/// copy.
#[test]
fn results_are_stored_once() {
    let rt = cpu();
    let copies = |program: &str, after: &str| {
        let term = format!("{after} . mapGlb 0 (\\x -> x * 2.0) . xs");
        let k = kernels(program, &[("n", 37)], &[("xs", array(&[37]))], &term);
        k.run(&rt);
        (k.plan.launches.len(), k.plan.source.contains("temp"))
    };
    let sum = "entry f [n] (xs: [n]f32) : ([n]f32, f32) =
        let ys = map (* 2) xs in (ys, reduce (+) 0 ys)";
    assert_eq!(
        copies(sum, "fork id (the . mapWrg 0 (reduceLcl 16 (+) 0.0 id) . wrap)"),
        (2, false)
    );
    let twice = "entry f [n] (xs: [n]f32) : ([n]f32, [n]f32) = let ys = map (* 2) xs in (ys, ys)";
    assert_eq!(copies(twice, "fork id id"), (2, false));
    // Elements at other places are a copy.
    let turned =
        "entry f [n] (xs: [n]f32) : ([n]f32, f32) = let ys = map (* 2) xs in (reverse ys, ys[0])";
    let (launches, temporary) = copies(turned, "fork reverse (index . fork id (0 . bang))");
    assert!(launches > 2 && temporary);
}
