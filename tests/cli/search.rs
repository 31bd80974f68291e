//! Search strategies, and kernels run on other devices.

use crate::Place;
use std::fs;
use std::path::Path;

#[test]
fn strategies_are_compared_on_the_same_measurements() {
    let p = Place::new();
    let svg = p.path("curves.svg");
    let ran = p
        .run(&format!(
            "search compare programs/asum.pat --size n=20000 --device portable --budget 8 \
             --strategies model,default,random=5,mcts,exhaustive=6 --seeds 2 --json -o {}",
            svg.display()
        ))
        .ok();
    let result = ran.last("result");
    let tried = result["strategies"].as_array().expect("strategies");
    let names: Vec<&str> = tried.iter().filter_map(|t| t["strategy"].as_str()).collect();
    assert_eq!(names, ["model", "default", "random", "random", "mcts", "mcts", "exhaustive"]);
    let most = [1, 8, 5, 5, 8, 8, 6];
    let mut measured = 0;
    for (t, most) in tried.iter().zip(most) {
        let curve = t["best_so_far_us"].as_array().expect("a curve");
        assert_eq!(curve.len(), most, "{t}");
        measured += curve.len();
        let known: Vec<f64> = curve.iter().filter_map(serde_json::Value::as_f64).collect();
        assert!(!known.is_empty() && known.windows(2).all(|w| w[1] <= w[0]), "{known:?}");
        // The best result of a strategy is no better than the best of all, and was found at the stated step.
        let best = result["best_us"].as_f64().expect("a time");
        let last = known[known.len() - 1];
        assert!(last >= best);
        let after = t["within_5_percent_after"].as_u64();
        assert_eq!(after.is_some(), last <= 1.05 * best, "{t}");
        // The chosen kernel is timed in the same measurement. If it is as fast as the best, the search has found
        // the best.
        let chosen = t["best_us"].as_f64().expect("a time");
        assert!(chosen >= best && known.last().is_some_and(|us| *us <= chosen), "{t}");
        assert!(chosen > 1.05 * best || after.is_some(), "{t}");
    }
    // A candidate that one strategy measured is not measured again by the next.
    assert!(result["measured"].as_u64().is_some_and(|n| n < measured as u64), "{measured}");
    // Different seeds give different searches; the same seed gives the same search.
    assert_ne!(tried[2]["best_so_far_us"], tried[3]["best_so_far_us"]);
    let svg = fs::read_to_string(svg).expect("a drawing");
    assert_eq!(svg.matches("<polyline").count(), tried.len());
    assert!(svg.starts_with("<svg xmlns=") && svg.trim_end().ends_with("</svg>"));
}

#[test]
fn strategies_that_do_not_exist_are_refused() {
    let p = Place::new();
    for wrong in ["hillclimb", "random=0", "random=x"] {
        let ran = p.run(&format!("search compare programs/asum.pat --strategies {wrong}"));
        assert_eq!(ran.0.status.code(), Some(2), "{}", ran.stderr());
    }
    p.run("search compare programs/asum.pat --size n=100 --device none").fails("E0903", 2);
    p.run("search compare programs/asum.pat --size n=100 --budget 0").fails("E0903", 2);
}

#[test]
fn a_strategy_chooses_what_is_measured() {
    let p = Place::new();
    let run = |strategy: &str| {
        let args =
            "optimize programs/scal.pat --size n=5000 --device portable --budget 3 --no-store";
        let ran = p.run(&format!("{args} --strategy {strategy} --json")).ok();
        let terms: Vec<String> = ran
            .json()
            .iter()
            .filter(|l| l["type"] == "candidate")
            .map(|l| l["term"].to_string())
            .collect();
        terms
    };
    assert_eq!(run("model").len(), 0, "the model measures nothing");
    let (one, other) = (run("random --search-seed 1"), run("random --search-seed 2"));
    assert_eq!((one.len(), other.len()), (3, 3));
    assert_ne!(one, other);
    assert_eq!(one, run("random --search-seed 1"));
    assert_eq!(run("exhaustive").len(), 3);
}

#[test]
fn kernels_tuned_for_one_device_run_on_the_others() {
    let p = Place::new();
    let alone = "portability programs/scal.pat programs/asum.pat --size n=4096 --budget 3";
    let ran = p.run(&format!("{alone} --devices portable --json")).ok();
    let results: Vec<_> = ran.json().into_iter().filter(|l| l["type"] == "result").collect();
    assert_eq!(results.len(), 2);
    for r in &results {
        assert_eq!(r["ran"][0]["kernels"][0]["outcome"], "timed", "{r}");
        assert_eq!(r["ran"][0]["kernels"][0]["share"], 1.0, "the best there is is its own");
    }
    assert_eq!(ran.last("mean")["shares"][0][0], 1.0);
    p.run(&format!("{alone} --devices nonesuch")).fails("E0602", 5);
    p.run(&format!("{alone} --device portable")).fails("E0903", 2);
    p.run("portability programs/scal.pat --size n=64 --budget 0").fails("E0903", 2);
}

/// With the simulator beside PoCL: kernels are checked on it, but not timed.
#[test]
fn simulators_check_kernels_and_time_nothing() {
    let simulator = Path::new("/usr/lib/oclgrind/liboclgrind-rt-icd.so");
    assert!(simulator.exists(), "`make tools` installs oclgrind");
    let p = Place::new();
    let vendors = p.path("vendors");
    fs::create_dir(&vendors).expect("a folder");
    fs::copy("/etc/OpenCL/vendors/pocl.icd", vendors.join("pocl.icd")).expect("PoCL is there");
    fs::write(vendors.join("oclgrind.icd"), simulator.display().to_string()).expect("written");
    let ran = p
        .command("portability programs/asum.pat --size n=600 --budget 3 --json")
        .env("OCL_ICD_VENDORS", &vendors)
        .output()
        .expect("patsat runs");
    let ran = crate::Ran(ran).ok();
    let result = ran.last("result");
    assert_eq!(result["tuned"].as_array().map(Vec::len), Some(1), "{result}");
    let on: Vec<&str> = result["ran"]
        .as_array()
        .expect("devices")
        .iter()
        .filter_map(|d| d["kernels"][0]["outcome"].as_str())
        .collect();
    assert_eq!(on, ["timed", "right"]);
}

/// The number of steps of a loop may be an argument: the model takes its value, from the command line or from the program's comment.
#[test]
fn predictions_depend_on_arguments() {
    let p = Place::new();
    let text = "-- gen: steps=const:1000
entry f [n] (steps: i32) (xs: [n]f32) : [n]f32 =
  map (\\x -> loop y = x for _ < steps do y * y + x) xs\n";
    let file = p.file("steps.pat", text);
    let predicted = |arg: &str| {
        let ran =
            p.run(&format!("--json optimize {file} --size n=100000 --device none {arg}")).ok();
        ran.last("result")["predicted_us"].as_f64().unwrap_or(0.0)
    };
    let [few, given, many] = ["--arg steps=10", "", "--arg steps=10000"].map(predicted);
    assert!(20.0 * few < given && 5.0 * given < many, "{few} {given} {many}");
}
