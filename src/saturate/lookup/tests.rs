use super::*;
use crate::diag::Limits;
use crate::rules::RuleSet;
use crate::saturate::saturate;
use crate::session::Program as File;

struct Place {
    program: Program,
    graph: Saturated,
}

impl Place {
    /// The graph of a program under the shipped rules.
    fn new(text: &str, n: u64) -> Place {
        Place::sized(text, &[("n", n)])
    }

    fn sized(text: &str, sizes: &[(&str, u64)]) -> Place {
        let file = File::check(&Source::new("test.pat", text), None).expect("a program");
        let sizes = sizes.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
        let program = file.elaborate(&sizes).expect("elaborates");
        let rules = RuleSet::shipped().expect("shipped rules");
        let limits = Limits { saturation_time: None, ..Limits::default() };
        let graph = saturate(&program.forms(), &rules, &limits).expect("sound rules");
        Place { program, graph }
    }

    fn asum(n: u64) -> Place {
        Place::new(include_str!("../../../programs/asum.pat"), n)
    }

    fn scal(n: u64) -> Place {
        Place::new(include_str!("../../../programs/scal.pat"), n)
    }

    fn look(&self, text: &str) -> Looked {
        let sought = read(&Source::new("sought", text), &self.program);
        let sought = sought.unwrap_or_else(|e| panic!("{text}: {e}"));
        let looked = lookup(&self.graph, &sought, &self.program.env);
        if let Ok(found) = &looked {
            // The term that was found is in the graph literally, in the graph's own symbols.
            let again = lookup(&self.graph, &found.term, &SizeEnv::default());
            assert!(again.is_ok_and(|f| f.sizes.is_empty()), "{}", found.term);
        }
        looked
    }

    /// Returns the sizes of a term that must be there.
    #[track_caller]
    fn found(&self, text: &str) -> String {
        let found = self.look(text).unwrap_or_else(|m| panic!("{text}:\n{m}"));
        let mut sizes: Vec<String> = found.sizes.iter().map(|(s, v)| format!("{s}={v}")).collect();
        sizes.sort();
        sizes.join(" ")
    }

    #[track_caller]
    fn missing(&self, text: &str) -> Missing {
        *self.look(text).err().unwrap_or_else(|| panic!("{text} is there"))
    }
}

#[test]
fn numbers_stand_for_tiles() {
    let p = Place::asum(16384);
    assert_eq!(p.found("reduce (+) 0.0 . map abs . xs"), "");
    assert_eq!(
        p.found("reduce (+) 0.0 . map (reduce (+) 0.0) . split 128 . map abs . xs"),
        "n.t0=128 n^=16384"
    );
    assert_eq!(
        p.found(
            "reduce (+) 0.0 . map (reduce (+) 0.0) . split 128 . padTo 16384 0.0 . map abs . xs"
        ),
        "n.t0=128 n^=16384"
    );
    let two = "reduceSeq (+) 0.0 . mapWrg 0 (reduceSeq (+) 0.0 . toLocal (mapLcl 0 \
               (reduceSeq (\\(a, b) -> a + abs b) 0.0)) . transpose . split 64) . split 128 . xs";
    assert_eq!(p.found(two), "n.t0.t1=64 n.t0=128 n^=16384");
    let vectors = "reduceSeq (+) 0.0 . asScalar . wrap . reduceSeq (vectorize 4 \
                   (\\(a, b) -> a + abs b)) (splat 4 . 0.0) . asVector 4 . xs";
    assert_eq!(p.found(vectors), "n.v=4 n^=16384");
}

#[test]
fn padding_is_written_where_lengths_do_not_divide() {
    let p = Place::asum(1000);
    let chunks = "map (reduce (+) 0.0) . split 128";
    assert_eq!(
        p.found(&format!("reduce (+) 0.0 . {chunks} . padTo 1024 0.0 . map abs . xs")),
        "n.t0=128 n^=1024"
    );
    // 896 is less than there is: no padding gives that.
    p.missing(&format!("reduce (+) 0.0 . {chunks} . padTo 896 0.0 . map abs . xs"));
    let not_whole = Source::new("sought", "reduce (+) 0.0 . map (reduce (+) 0.0) . split 128 . xs");
    let failure = read(&not_whole, &p.program).expect_err("128 does not divide 1000");
    assert_eq!(failure.0[0].code, Code::NotDivisible);
    let zero = read(&Source::new("sought", "split 0 . xs"), &p.program).expect_err("no chunks");
    assert_eq!(zero.0[0].code, Code::BadTerm);
}

#[test]
fn symbols_stand_for_themselves() {
    let p = Place::asum(1000);
    let text =
        "reduce (+) 0.0 . mapGlb 0 (reduceSeq (+) 0.0) . split n.t0 . padTo n^ 0.0 . map abs . xs";
    assert_eq!(p.found(text), "");
    // The length of the input may also be written by name.
    let q = Place::scal(1000);
    let body = "mapGlb 0 (mapSeq (\\x -> x * alpha)) . split n.t0 . padLast n^ . xs";
    assert_eq!(q.found(&format!("take n . join . {body}")), "");
    assert_eq!(q.found(&format!("take 1000 . join . {body}")), "");
}

#[test]
fn short_forms_are_what_they_stand_for() {
    let p = Place::scal(1000);
    let f = "(\\x -> x * alpha)";
    let chunks = format!("join . mapGlb 0 (mapSeq {f}) . split 128");
    assert_eq!(p.found(&format!("take 1000 . {chunks} . padLast 1024 . xs")), "n.t0=128 n^=1024");
    assert_eq!(
        p.found(&format!("chunked 128 1024 (mapGlb 0 (mapSeq {f})) . xs")),
        "n.t0=128 n^=1024"
    );
    let p = Place::scal(1024);
    assert_eq!(p.found(&format!("{chunks} . xs")), "n.t0=128 n^=1024");
    let vectors = format!("asScalar . mapGlb 0 (vectorize 4 {f}) . asVector 4 . xs");
    assert_eq!(p.found(&vectors), "n.v=4 n^=1024");
}

#[test]
fn behind_a_mask_only_what_is_there_counts() {
    // Rows are not elements: the mask is not part of one expression.
    let rows =
        "entry rows [n] (A: [n][n]f32) : f32 = map (reduce (+) 0) A |> reduce max f32.lowest";
    let p = Place::new(rows, 64);
    let text = "reduceSeq max (-f32.inf) . mapGlb 0 (reduceSeq (max . bimap id (reduceSeq (+) 0.0)) \
                (-f32.inf)) . split 16 . A";
    assert_eq!(p.found(text), "n.t0=16 n^=64");
    let p = Place::new(rows, 60);
    let masked = "reduceSeq max (-f32.inf) . mapGlb 0 (reduceSeq (max . bimap id (cond fst \
                  (reduceSeq (+) 0.0 . snd) ((-f32.inf) . bang))) (-f32.inf)) . split 16 . mask 64 . A";
    assert_eq!(p.found(masked), "n.t0=16 n^=64");
    // The program's own truth values are not taken for a mask.
    let flags = "entry flags [n] (xs: [n](bool, f32)) : f32 = \
                 xs |> map (\\(b, x) -> if b then x else 0) |> reduce (+) 0";
    let p = Place::new(flags, 64);
    p.missing("reduce (+) 0.0 . map (reduceSeq (\\(a, (b, x)) -> a + x) 0.0) . split 16 . xs");
    assert_eq!(
        p.found(
            "reduce (+) 0.0 . map (reduceSeq (\\(a, (m, (b, x))) -> \
             a + (if m then if b then x else 0.0 else 0.0)) 0.0) . split 16 . mask 64 . xs"
        ),
        "n.t0=16 n^=64"
    );
}

#[test]
fn what_is_not_there_is_explained() {
    let p = Place::asum(16384);
    let missing = p.missing(
        "reduceSeq (+) 0.0 . mapGlb 0 (reduceSeq (\\(a, b) -> a - abs b) 0.0) . split 128 . xs",
    );
    assert_eq!(missing.around, "reduceSeq (+) 0.0 . mapGlb 0 (reduceSeq (_) 0.0) . split 128 . xs");
    assert_eq!(missing.part, "\\(a, b) -> a - abs b");
    assert_eq!(missing.instead, ["(+) . bimap id (cond fst (abs . snd) (0.0 . bang))"]);
    assert_eq!(missing.why, Why::Absent);
    let missing = p.missing("reduce (+) 0.0 . map abs . reverse . xs");
    assert_eq!(missing.around, "reduce (+) 0.0 . map abs . _");
    assert_eq!(missing.rest.map(|(text, _)| text).as_deref(), Some("xs"));
    assert_eq!(missing.instead, ["xs"]);
    let text = p.missing("mapGlb 0 abs . xs").to_string();
    assert!(text.starts_with("not in the graph: mapGlb 0 abs . xs"), "{text}");
    assert!(text.contains("in its place:     reduce (+) 0.0 . map abs . xs"), "{text}");
}

#[test]
fn one_tile_has_one_value() {
    let text = "entry two [n] (xs: [n]f32) : ([n]f32, [1][n]f32) = (map abs xs, replicate 1 (map sqrt xs))";
    let p = Place::new(text, 1024);
    let term = |k: u64| {
        format!(
            "fork (join . mapGlb 0 (mapSeq abs) . split 128 . xs) \
             (replicate 1 . join . mapGlb 0 (mapSeq sqrt) . split {k} . xs)"
        )
    };
    assert_eq!(p.found(&term(128)), "n.t0=128 n^=1024");
    let missing = p.missing(&term(64));
    assert_eq!(missing.why, Why::Sizes("`n.t0` would have to be both 128 and 64".to_owned()));
}

#[test]
fn any_class_can_be_asked() {
    let p = Place::asum(1024);
    let source = Source::new("sought", "map abs . xs");
    let sought = read(&source, &p.program).expect("a term");
    let elsewhere = lookup(&p.graph, &sought, &p.program.env).expect_err("not the whole").rest;
    let (_, class) = elsewhere.expect("a part of it");
    let found = lookup_from(&p.graph, class, &sought, &p.program.env).expect("there");
    assert_eq!(found.class, class);
}

#[test]
fn products_of_matrices() {
    let text = "entry mm [n][m][k] (A: [n][k]f32) (B: [k][m]f32) : [n][m]f32 =
        map (\\row -> map (\\col -> reduce (+) 0 (map2 (*) row col)) (transpose B)) A";
    let p = Place::sized(text, &[("n", 64), ("m", 64), ("k", 64)]);
    let term = |op: &str| {
        format!(
            "join . mapGlb 0 (mapUnroll (join . mapSeq (mapUnroll (reduceUnroll (+) 0.0 . asScalar . \
             wrap . reduceSeq (vectorize 16 (\\(a, (b, c)) -> a + b {op} c)) (splat 16 . 0.0) . \
             asVector 16 . zip)) . split 8)) . split 2 . cross . fork A (transpose . B)"
        )
    };
    assert_eq!(p.found(&term("*")), "k.v=16 k^=64 m.t0=8 m^=64 n.t0=2 n^=64");
    let missing = p.missing(&term("/"));
    assert_eq!(missing.part, "vectorize 16 (\\(a, (b, c)) -> a + b / c)");
    assert!(missing.around.contains("reduceSeq (_) (splat 16 . 0.0) . asVector 16 . zip"));
}

#[test]
fn every_candidate_is_in_the_graph() {
    use crate::device::{DeviceKind, cost_model::CostModel, tests::device};
    for (text, n) in [
        (include_str!("../../../programs/asum.pat"), 1000),
        (include_str!("../../../programs/scal.pat"), 1024),
        (include_str!("../../../programs/nrm2.pat"), 4096),
    ] {
        let p = Place::new(text, n);
        for kind in [DeviceKind::Cpu, DeviceKind::Gpu] {
            let device = device(0, "P", "D", kind);
            let model = CostModel::choose(&device).expect("a model").model;
            let found = crate::extract::candidates(
                &p.graph,
                &p.program.env,
                &device,
                &model,
                &Limits::default(),
            );
            let found = found.expect("candidates").candidates;
            assert!(found.len() > 20);
            for c in found.iter().step_by(7) {
                // The graph holds loops over vectors as the vectorised loop that they expand to.
                let rows = |t: &Term| {
                    *t.op() == Op::Vectorize && t.definition().is_ok_and(|long| long.is_some())
                };
                let mut short = false;
                c.compact.visit(&mut |t| short |= rows(t));
                let sought = if short { &c.compact } else { &c.term };
                // Stages that give one tile different values are in the graph with the symbols of all.
                if c.env.keys().any(|s| s.to_string().contains('\'')) {
                    let looked = lookup(&p.graph, &c.compact, &p.program.env);
                    assert!(looked.is_ok(), "{}\n{}", c.compact, looked.unwrap_err());
                    continue;
                }
                let numbers = at_values(sought, &c.env).expect("sizes with values");
                let looked = lookup(&p.graph, &numbers, &p.program.env);
                assert!(looked.is_ok(), "{}\n{numbers}\n{}", c.term, looked.unwrap_err());
                // The same term, read from text.
                let read = read(&Source::new("sought", numbers.to_string()), &p.program);
                let read = read.unwrap_or_else(|e| panic!("{numbers}: {e}"));
                assert!(lookup(&p.graph, &read, &p.program.env).is_ok(), "{numbers}");
            }
        }
    }
}

#[test]
fn chains_of_any_shape_are_one() {
    let ty = crate::calculus::text::parse_type(&Source::new("type", "[n]f32"), 0..6);
    let inputs = [("xs".to_owned(), ty.expect("a type"))].into();
    let context = Context { inputs, variables: None };
    let read = |text: &str| {
        crate::calculus::text::read_term(&Source::new("term", text), &Ty::Unit, &context)
            .expect("a term")
    };
    let left = read("((reduce (+) 0.0 . map abs) . map sqrt) . id . xs");
    let limits = Limits { iterations: 0, ..Limits::default() };
    let graph =
        saturate(std::slice::from_ref(&left), &RuleSet::default(), &limits).expect("no rules");
    let right = read("reduce (+) 0.0 . (map abs . (map sqrt . xs))");
    assert!(lookup(&graph, &right, &SizeEnv::default()).is_ok());
    let other = read("reduce (+) 0.0 . (map sqrt . (map abs . xs))");
    assert!(lookup(&graph, &other, &SizeEnv::default()).is_err());
}
