//! Programs as text, the shipped ones and others, through the checker into terms.

use super::elaborate;
use super::tests::show;
use crate::diag::Source;
use crate::lang::check_entry;

fn term(text: &str) -> String {
    let entry = check_entry(&Source::new("test.pat", text), None).unwrap_or_else(|e| panic!("{e}"));
    let sizes = entry.sizes.iter().map(|s| (s.clone(), 12)).collect();
    show(&elaborate(&entry, &sizes).unwrap_or_else(|e| panic!("{e}")).term)
}

#[test]
fn shipped_programs() {
    let sum = "reduce {Add(_1, _2)} {0}";
    let cases = [
        (include_str!("../../../programs/scal.pat"), "map {Mul(_, alpha.0)} . xs".to_owned()),
        (include_str!("../../../programs/asum.pat"), format!("{sum} . map {{Abs(_)}} . xs")),
        (
            include_str!("../../../programs/dot.pat"),
            format!("{sum} . map {{Mul(_1, _2)}} . zip . fork xs ys"),
        ),
        (
            include_str!("../../../programs/gemv.pat"),
            format!(
                "map ({{Add(Mul(alpha.0, _1), Mul(beta.0, _2))}} . bimap ({sum} . \
                 map {{Mul(_1, _2)}} . zip . fork id x) id) . zip . fork A y"
            ),
        ),
        (
            include_str!("../../../programs/nrm2.pat"),
            format!("{{Sqrt(_)}} . {sum} . map {{Mul(_, _)}} . xs"),
        ),
        (
            include_str!("../../../programs/axpy.pat"),
            "map {Add(Mul(alpha.0, _1), _2)} . zip . fork xs ys".to_owned(),
        ),
        (include_str!("../../../programs/sumsq.pat"), format!("{sum} . map {{Mul(_, _)}} . xs")),
        (
            include_str!("../../../programs/chain.pat"),
            "map {Sub(Mul(_, _), _)} . map {Sqrt(_)} . map {Add(_, 1)} . map {Mul(_, 2)} . xs"
                .to_owned(),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(term(text), expected);
    }
}

#[test]
fn other_programs() {
    let sum = "reduce {Add(_1, _2)} {0}";
    assert_eq!(
        term(
            "entry mm [n][m][k] (A: [n][k]f32) (B: [k][m]f32) : [n][m]f32 =
               map (\\row -> map (\\col -> reduce (+) 0 (map2 (*) row col)) (transpose B)) A"
        ),
        format!("map (map ({sum} . map {{Mul(_1, _2)}} . zip)) . cross . fork A (transpose . B)")
    );
    assert_eq!(
        term(
            "entry pairs [n][m] (ps: [n](f32, f32)) (qs: [m](f32, f32)) : [n]f32 =
               map (\\(x, y) -> reduce (+) 0 (map (\\(u, v) -> (x - u) * (y - v)) qs)) ps"
        ),
        format!("map ({sum} . map {{Mul(Sub(_11, _21), Sub(_12, _22))}}) . cross . fork ps qs")
    );
    assert_eq!(
        term(
            "entry means [n][m] (A: [n][m]f32) : [n][m]f32 =
               map (\\row -> let s = reduce (+) 0 row in map (\\x -> x - s) row) A"
        ),
        format!("map (map {{Sub(_2, _1)}} . distl . fork ({sum}) id) . A")
    );
    assert_eq!(
        term(
            "entry stencil [n] (xs: [n]f32) : [n]f32 =
               pad 1 1 clamp xs |> slide 3 1 |> map (\\w -> w[0] + 2 * w[1] + w[2])"
        )
        .matches("index")
        .count(),
        3
    );
    assert_eq!(
        term(
            "entry low [n] (xs: [n]f32) : [n/4]f32 =
               xs |> split 4 |> mapGlb 0 (\\c -> reduceSeq (\\a x -> a + x * x) 0 c)"
        ),
        "map(glb(0)) (reduce(seq) {Add(_1, Mul(_2, _2))} {0}) . split . xs"
    );
    assert_eq!(
        term(
            "entry vectors [n] (xs: [n]f32) : [n]f32 =
               xs |> asVector 4 |> mapGlb 0 (\\v -> vectorize 4 (* 2) v) |> asScalar"
        ),
        "asscalar . map(glb(0)) (vectorize {Mul(_, 2)}) . asvector . xs"
    );
    assert_eq!(
        term(
            "entry halved [n] (xs: [n]f32) : [n/4]f32 =
               iterate 2 (\\ys -> split 2 ys |> map (reduce (+) 0)) xs"
        ),
        format!("map ({sum}) . split . map ({sum}) . split . xs")
    );
}
