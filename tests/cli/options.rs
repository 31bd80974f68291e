//! Options and arguments that would have no effect, or whose effect differs from what the user expects.

use super::{Place, Ran, floats, npy, read_floats};

#[test]
fn options_without_effect_are_refused() {
    let p = Place::new();
    let plan = p.path("scal.plan").display().to_string();
    p.run(&format!("optimize programs/scal.pat --size n=64 --device none -o {plan}")).ok();
    let low = p.file("low.pat", "entry low [n] (xs: [n]f32) : [n]f32 = mapGlb 0 (* 2) xs\n");
    let run = format!("run {low} --no-rewrite --size n=3 --gen xs=iota");
    let planned = format!("run programs/scal.pat --plan {plan} --gen xs=iota --arg alpha=2");
    let emitted = format!("emit programs/scal.pat --plan {plan} -o {}", p.path("dir").display());
    for (args, option) in [
        ("explain programs/scal.pat --size n=64", "--budget 3"),
        ("explain programs/scal.pat --size n=64", "--anew"),
        ("explain programs/scal.pat --size n=64 --why-not map-fusion", "--strategy random"),
        ("explain programs/scal.pat --size n=64 --device portable --term xs", "--budget 3"),
        ("optimize programs/scal.pat --size n=64 --device none", "--budget 3"),
        ("optimize programs/scal.pat --size n=64 --device none", "--run-timeout 3"),
        ("optimize programs/scal.pat --size n=64 --budget 0", "--strategy random"),
        ("optimize programs/scal.pat --size n=64 --strategy model", "--search-seed 3"),
        ("search compare programs/scal.pat --size n=64", "--strategy random"),
        ("search compare programs/scal.pat --size n=64", "--no-store"),
        (&run, "--strategy random"),
        (&run, "--rules thesis"),
        (&planned, "--budget 3"),
        (&emitted, "--anew"),
    ] {
        let ran = p.run(&format!("{args} {option}")).fails("E0903", 2);
        let name = option.split(' ').next().expect("a name");
        let said = ran.stderr();
        assert!(said.contains(&format!("`{name}` has no effect here")), "{args}: {said}");
    }
    let ran = p.run("report -o page.html --no-derivations --rules thesis");
    assert_eq!(ran.0.status.code(), Some(2), "{}", ran.stderr());
    // Help does not list options that are not accepted.
    let help = p.run("search compare --help").ok().stdout();
    assert!(help.contains("--strategies") && !help.contains("--strategy <"), "{help}");
    assert!(!help.contains("--anew") && !help.contains("--no-store"), "{help}");
}

#[test]
fn values_that_are_missing_are_named() {
    let p = Place::new();
    let ran = p.run("run programs/asum.pat --input ys=");
    assert_eq!(ran.0.status.code(), Some(2));
    assert!(ran.stderr().contains("the value of `ys` after `=` is missing"), "{}", ran.stderr());
    let ran = p.run("eval programs/asum.pat --size =4");
    assert!(ran.stderr().contains("the name before `=` is missing"), "{}", ran.stderr());
    // The error names the parameter that does not exist, not the one that still lacks a value.
    let ran = p.run("eval programs/asum.pat --size n=4 --gen ys=iota").fails("E0201", 3);
    assert!(ran.stderr().contains("no parameter `ys`"), "{}", ran.stderr());
    let two =
        p.file("two.pat", "entry two [n] (xs: [n](f32, i32)) : [n]f32 = map (\\x -> x.0) xs\n");
    let ran = p.run(&format!("eval {two} --size n=4 --gen xs.2=iota")).fails("E0201", 3);
    assert!(ran.stderr().contains("`xs.0` to `xs.1`"), "{}", ran.stderr());
}

#[test]
fn what_is_missing_has_one_exit_status() {
    let p = Place::new();
    p.run("eval programs/asum.pat --size n=2").fails("E0501", 4);
    p.run("eval programs/asum.pat --gen xs=iota").fails("E0308", 4);
    p.run("optimize programs/asum.pat --device none").fails("E0308", 4);
}

#[test]
fn entries_that_nothing_is_stored_of_are_told() {
    let p = Place::new();
    p.run("optimize programs/scal.pat --size n=64 --budget 1 --device portable").ok();
    for args in ["store best nosuch", "report nosuch -o page.html"] {
        let ran = p.run(args).fails("E0806", 8);
        assert!(ran.stderr().contains("`nosuch`") && ran.stderr().contains("it has scal"));
    }
    p.run("store best scal").ok();
    p.run("store best").ok();
}

#[test]
fn elements_are_printed_as_json() {
    let p = Place::new();
    let eval =
        |args: &str| p.run(&format!("--json eval {args}")).ok().last("result")["result"].clone();
    let result = eval("programs/scal.pat --size n=3 --gen xs=iota --arg alpha=nan");
    assert_eq!(result[0]["value"], serde_json::json!(["NaN", "NaN", "NaN"]));
    let two =
        p.file("two.pat", "entry two [n] (xs: [n](f32, i32)) : ([n]f32, [n]i32) = unzip xs\n");
    let result = eval(&format!("{two} --size n=2 --gen xs=iota"));
    assert_eq!(result[0]["value"], serde_json::json!(["0.0", "1.0"]));
    assert_eq!(result[1]["value"], serde_json::json!(["0", "1"]));
    let none = eval("programs/scal.pat --size n=0 --gen xs=iota --arg alpha=2");
    assert_eq!(none[0]["value"], serde_json::json!([]));
}

#[test]
fn truth_values_are_drawn_from_ranges() {
    let p = Place::new();
    let f = p.file("b.pat", "entry b [n] (xs: [n]bool) : i32 = reduce (+) 0 (map i32.bool xs)\n");
    for how in ["whole:0..1", "whole:0..2", "uniform:0..1"] {
        let ran = p.run(&format!("eval {f} --size n=1000 --gen xs={how}")).ok();
        let sum: u32 = ran.stdout().trim().parse().expect("a number");
        assert!((400..600).contains(&sum), "{how}: {sum}");
    }
    let ran = p.run(&format!("eval {f} --size n=10 --gen xs=whole:0..3")).fails("E0903", 2);
    assert!(ran.stderr().contains("`0..1`"), "{}", ran.stderr());
    let file = p.path("b.npy").display().to_string();
    p.run(&format!("gen {file} --shape 8 --type bool --how whole:0..1")).ok();
}

#[test]
fn what_comes_before_extraction_is_printed_when_it_fails() {
    let p = Place::new();
    let args = "optimize programs/asum.pat --device none --size n=64 --rules primitive,-lowering";
    let args = match p.run(args).0.status.code() {
        Some(7) => args,
        _ => {
            "optimize programs/asum.pat --device none --size n=64 --rules rules/fusion.rules,-default"
        }
    };
    let ran = p.run(&format!("{args} --emit stats,kernel,dot")).fails("E0702", 7);
    assert!(ran.stdout().contains("\"stop_reason\"") && ran.stdout().contains("digraph"));
    assert!(ran.stdout().contains("\"terms\": 0") && ran.stdout().contains("\"dropped\""));
    // The error has a place and advice.
    let said = ran.stderr();
    assert!(said.contains("programs/asum.pat:2:7") && said.contains("= help:"), "{said}");
}

/// A rule for vectors alone, which 7 elements do not fill.
const VECTORS: &str = "rule planted
  law exact
  says \"Vectors alone.\"
  from \"nowhere\"
  on [n]a
  let w = width n
  when scalar a, vectorisable f, tileable n 3
  rewrite map f => asScalar . mapGlb 0 (vectorize w f) . asVector w
  example map abs : [12]f32
";

#[test]
fn what_extraction_dropped_is_shown_with_reasons() {
    let p = Place::new();
    let stats = |ran: &Ran| -> serde_json::Value {
        serde_json::from_str(&ran.stdout()).expect("the statistics are JSON")
    };
    let args = "optimize programs/asum.pat --device none --size n=64";
    let all = stats(&p.run(&format!("{args} --emit stats")).ok())["extraction"].clone();
    let count = |v: &serde_json::Value| v.as_u64().expect("a count");
    let dropped = all["dropped"]["terms"].as_object().expect("reasons").values().map(count);
    assert!(
        count(&all["candidates"]) > 20
            && count(&all["dropped"]["values"]["a tile does not divide"]) > 0
    );
    assert!(dropped.sum::<u64>() + count(&all["skeletons"]) <= count(&all["terms"]), "{all}");
    let result = p.run(&format!("--json {args}")).ok().last("result");
    assert_eq!(result["candidates"]["dropped"], all["dropped"]);
    // What the kernel model did not rank is counted.
    let counts = &result["candidates"];
    let rejected = counts["rejected"].as_object().expect("reasons").values().map(count);
    let ranked = count(&counts["lowered"]) + count(&counts["duplicates"]) + rejected.sum::<u64>();
    assert_eq!(count(&counts["unranked"]), count(&counts["generated"]) - ranked, "{counts}");
    assert!(p.run(&format!("{args} -v")).ok().stdout().contains("terms dropped: past the beam"));
    // Both searches, without and with defaults for every operator, find one term. None of three widths divides.
    let f = p.file("own.rules", VECTORS);
    let args = format!("optimize programs/scal.pat --device none --size n=7 --rules {f},-default");
    let ran = p.run(&format!("{args} --emit stats")).fails("E0702", 7);
    let none = stats(&ran)["extraction"].clone();
    assert_eq!((count(&none["terms"]), count(&none["candidates"])), (2, 0));
    assert_eq!(none["dropped"]["terms"]["no values for its tile sizes"], 2);
    assert_eq!(none["dropped"]["values"]["a tile does not divide"], 6);
    let said = ran.stderr();
    assert!(said.contains("6 of 6 dropped values: a tile does not divide"), "{said}");
}

#[test]
fn exported_graphs_have_costs() {
    let p = Place::new();
    let ran = p.run("egraph programs/scal.pat --size n=64 --format json").ok();
    let graph: egraph_serialize::EGraph = serde_json::from_str(&ran.stdout()).expect("a graph");
    let cost = |op: &str| {
        let costs = graph.nodes.values().filter(|n| n.op == op).map(|n| n.cost.into_inner());
        costs.reduce(f64::max).unwrap_or_else(|| panic!("no `{op}`"))
    };
    // A launch costs more than a function, and a function more than a view.
    assert!(cost("mapGlb") > cost("\\x -> x * alpha"));
    assert!(cost("\\x -> x * alpha") > cost("map"));
    assert!(graph.nodes.values().all(|n| n.cost.is_finite() && *n.cost >= 0.0));
}

/// Devices without arithmetic of half precision calculate with `float`, and round.
#[test]
fn halves_need_no_extension() {
    let p = Place::new();
    let f = p.file("h.pat", "entry h [n] (xs: [n]f16) : [n]f16 = map (\\x -> x * 3 + 1) xs\n");
    let given = "--size n=8 --gen xs=iota --no-store";
    let ran = p.run(&format!("optimize {f} {given} --device none --emit kernel")).ok().stdout();
    assert!(ran.contains("_of_half(") && ran.contains("vstore_half"), "{ran}");
    assert!(ran.contains("ushort") && !ran.contains("cl_khr_fp16"), "{ran}");
    p.run(&format!("run {f} {given} --device portable --verify")).ok();
    // What is only copied is not converted.
    let f = p.file("copy.pat", "entry c [n] (xs: [n]f16) : [n]f16 = reverse xs\n");
    let ran = p.run(&format!("optimize {f} {given} --device none --emit kernel")).ok().stdout();
    assert!(ran.contains("ushort") && !ran.contains("float"), "{ran}");
}

#[test]
fn float_modes_say_what_may_be_contracted() {
    let p = Place::new();
    let text = "entry f [n] (xs: [n]f32) (ys: [n]f32) : [n]f32 = map2 (\\x y -> x * x - y) xs ys\n";
    let f = p.file("f.pat", text);
    for (mode, off, mad, zeros) in [
        ("--float exact", true, false, false),
        ("", false, true, false),
        ("--float contract", false, true, false),
        ("--float relaxed", false, true, true),
    ] {
        let args = format!("optimize {f} --size n=8 --device none {mode}");
        let kernel = p.run(&format!("{args} --emit kernel")).ok().stdout();
        assert_eq!(kernel.contains("FP_CONTRACT OFF"), off, "{mode}: {kernel}");
        let host = p.run(&format!("{args} --emit host")).ok().stdout();
        assert_eq!(host.contains("-cl-mad-enable"), mad, "{mode}: {host}");
        assert_eq!(host.contains("-cl-no-signed-zeros"), zeros, "{mode}: {host}");
    }
    // The square of 1 + 2^-12 ends with 2^-24, which rounding drops.
    let (x, tail) = (1.0 + 2f32.powi(-12), 2f32.powi(-24));
    let xs = p.file("xs.npy", npy("<f4", false, "(1,)", &floats(&[x])));
    let ys = p.file("ys.npy", npy("<f4", false, "(1,)", &floats(&[x * x])));
    let out = p.path("out.npy");
    let result = |mode: &str| {
        let inputs = format!("--input xs={xs} --input ys={ys} --output {} --force", out.display());
        p.run(&format!("run {f} --device portable --budget 0 --no-store {inputs} {mode}")).ok();
        read_floats(&out)
    };
    assert_eq!(result("--float exact"), [0.0]);
    assert!([[0.0], [tail]].contains(&result("")[..].try_into().expect("one number")));
}
