use super::{Plan, laid_out};
use crate::device::DeviceKind;
use crate::device::cost_model::CostModel;
use crate::diag::{Code, Source};
use crate::session::generate::Generator;
use crate::session::{Program, Request, Session, Sizes};

const SUM: &str = "entry asum [n] (xs: [n]f32) : f32 = xs |> map abs |> reduce (+) 0";

fn program(text: &str) -> Program {
    Program::check(&Source::new("p.pat", text), None).expect("a program")
}

fn session(kind: DeviceKind) -> Session {
    let mut session = Session::new().expect("the shipped rules");
    session.limits.saturation_time = None;
    let models = CostModel::shipped().expect("the shipped models");
    session.cost_model =
        models.into_iter().find(|m| m.name.starts_with("generic") && m.matches.kind == Some(kind));
    session
}

fn request(sizes: &[(&str, u64)]) -> Request {
    let sizes = sizes.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    Request { sizes, default: Some(Generator::Iota), ..Request::default() }
}

/// The plan of the best kernels, and the sizes.
fn planned(session: &Session, program: &Program, sizes: &[(&str, u64)]) -> (Plan, Sizes) {
    let found = session.optimize(program, &request(sizes), &mut ()).expect("kernels");
    let plan = session.plan(program, &found).expect("a plan");
    let again = session.planned(program, &plan, &found.sizes, false).expect("kernels again");
    assert_eq!(again.variant.plan, found.best.variant.plan);
    assert_eq!(again.variant.term, found.best.variant.term);
    assert!(again.warnings.is_empty() && !again.other_kernels);
    // The text is complete.
    let text = plan.to_text().expect("a text");
    let read = Plan::parse(&Source::new("<plan>", text.clone())).expect("a plan");
    assert_eq!(read.to_text().expect("a text"), text);
    assert_eq!(read.kernels, plan.kernels);
    (plan, found.sizes)
}

#[test]
fn kernels_are_made_again_byte_for_byte() {
    // Several kernels, tuples, vectors, casts of sizes, dimensions that are sums, names with primes.
    for (kind, text, sizes) in [
        (DeviceKind::Cpu, SUM, &[("n", 100_003)][..]),
        (DeviceKind::Gpu, SUM, &[("n", 1 << 20)]),
        (
            DeviceKind::Gpu,
            "entry f [n] (ps': [n](f32, i32)) (b: f32) : ([n]f32, [n]i32) =
               unzip (map (\\(a, k) -> (b * a + f32.i32 n, k + 1)) ps')",
            &[("n", 4096)],
        ),
        (
            DeviceKind::Cpu,
            "entry f [n] (xs: [n + 2]f32) : [n]f32 = map (\\w -> reduce (+) 0 w) (slide 3 1 xs)",
            &[("n", 1000)],
        ),
        (
            DeviceKind::Cpu,
            "entry f [n] (xs: [n]f32) (x: f32) (t0: f32) : [n]f32 =
               map (\\y -> let z = y * x in (if z < t0 then z else z * z)) xs",
            &[("n", 100)],
        ),
        (
            DeviceKind::Cpu,
            "entry f [n][m] (A: [n][m]f32) (x: [m]f32) : [n]f32 =
               map (\\row -> reduce (+) 0 (map2 (*) row x)) A",
            &[("n", 64), ("m", 100)],
        ),
    ] {
        planned(&session(kind), &program(text), sizes);
    }
}

#[test]
fn what_has_changed_is_said() {
    let own = session(DeviceKind::Cpu);
    let sum = program(SUM);
    let (plan, sizes) = planned(&own, &sum, &[("n", 5000)]);
    let text = plan.to_text().expect("a text");
    let made = |program: &Program, sizes: &Sizes, text: &str| {
        let plan = Plan::parse(&Source::new("p.plan", text)).expect("a plan");
        let warnings = own.planned(program, &plan, sizes, false)?.warnings;
        Ok::<_, crate::diag::Failure>(
            warnings.into_iter().map(|d| (d.code, d.message)).collect::<Vec<_>>(),
        )
    };
    // Layout, comments and the way in which a function is written do not change a program.
    let same = SUM.replace("map abs", "map (\\x -> abs x)");
    let same = program(&format!("-- A comment.\n{same}"));
    assert_eq!(made(&same, &sizes, &text).expect("kernels"), []);
    let other = program(&SUM.replace("map abs", "map sqrt"));
    let error = made(&other, &sizes, &text).expect_err("another program");
    assert_eq!(error.0[0].code, Code::Outdated);
    assert!(error.0[0].message.contains("program has changed"), "{}", error.0[0]);
    let renamed = program(&SUM.replace("asum", "other"));
    let error = made(&renamed, &sizes, &text).expect_err("another entry");
    assert_eq!(error.0[0].code, Code::Outdated);
    let larger = Sizes::from([("n".to_owned(), 5001)]);
    let error = made(&sum, &larger, &text).expect_err("other sizes");
    assert_eq!(error.0[0].message, "the plan is for `n` = 5000, not for `n` = 5001");
    let line = |key: &str| {
        let start = text.find(&format!("\n{key} = ")).expect("a key") + 1;
        &text[start..start + text[start..].find('\n').expect("a line")]
    };
    for (key, says) in [("rules", "other rules"), ("patsat", "patsat 0.0.1 made")] {
        let changed = text.replace(line(key), &format!("{key} = \"0.0.1\""));
        let told = made(&sum, &sizes, &changed).expect("kernels");
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].0, Code::PlanDated);
        assert!(told[0].1.contains(says), "{told:?}");
    }
    let changed = text.replace(line("kernels"), "kernels = \"0123456789abcdef\"");
    let error = made(&sum, &sizes, &changed).expect_err("other kernels");
    assert_eq!(error.0[0].code, Code::Outdated);
    let forced = Plan::parse(&Source::new("p.plan", changed)).expect("a plan");
    let forced = own.planned(&sum, &forced, &sizes, true).expect("kernels by force");
    assert!(forced.other_kernels && forced.warnings.len() == 1);
}

#[test]
fn what_is_no_plan_has_a_place() {
    let own = session(DeviceKind::Cpu);
    let sum = program(SUM);
    let (plan, sizes) = planned(&own, &sum, &[("n", 5000)]);
    let text = plan.to_text().expect("a text");
    let error = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        let source = Source::new("p.plan", text.replacen(from, to, 1));
        let made = Plan::parse(&source).and_then(|p| own.planned(&sum, &p, &sizes, false));
        let d = made.expect_err(to).0.remove(0);
        let label = d.labels.first().unwrap_or_else(|| panic!("no place: {d}"));
        let line = source.text[..label.span.start as usize].matches('\n').count();
        assert_eq!(d.source, Some(source), "{d}");
        (d.code, line)
    };
    let at = |key: &str| text[..text.find(key).expect("a key")].matches('\n').count();
    assert_eq!(error("layout = 1", "layout = 9"), (Code::BadPlan, at("layout = ")));
    assert_eq!(error("\nrules = ", "\nrulse = "), (Code::BadPlan, at("rules = ")));
    assert_eq!(error("[sizes]", "[sizes").0, Code::BadPlan);
    let tunable = text.lines().find(|l| l.starts_with("\"n.")).expect("a tunable");
    let name = tunable.split(" = ").next().expect("a name");
    assert_eq!(error(tunable, &format!("{name} = 0")), (Code::BadPlan, at(tunable)));
    assert_eq!(error(tunable, &format!("{name} = -3")), (Code::BadPlan, at(tunable)));
    assert_eq!(error(tunable, "n = 3"), (Code::BadPlan, at(tunable)));
    // The same tunable, written in another way.
    let twice = format!("{tunable}\n\" {} = 1", name.trim_start_matches('"'));
    assert_eq!(error(tunable, &twice), (Code::BadPlan, at(tunable) + 1));
    // Not a term, a term of another type, and a term that is not low-level.
    let first = at("\nterm = ") + 2;
    let term = &text[text.find("'''\n").expect("a term") + 4..];
    let term = &term[..term.find("\n'''").expect("its end")];
    assert_eq!(error(term, ")"), (Code::Parse, first));
    assert_eq!(error(term, "map abs . xs"), (Code::BadPlan, first));
    assert_eq!(error(term, "reduce (+) 0.0 . map abs . xs"), (Code::BadTerm, first));
}

#[test]
fn long_terms_are_broken_between_their_parts() {
    let part = "mapSeq (abs . sqrt)";
    let long = format!("f . map ({}) . split (n + 2)", [part; 9].join(" . "));
    let text = laid_out(&long);
    assert_eq!(text.split_whitespace().collect::<Vec<_>>().join(" "), long);
    assert!(text.lines().all(|l| l.len() < 130) && text.lines().count() > 4, "{text}");
    assert!(text.contains("split (n + 2)"));
}

#[test]
fn damaged_plans_are_read_or_refused() {
    let own = session(DeviceKind::Cpu);
    let sum = program(SUM);
    let (plan, sizes) = planned(&own, &sum, &[("n", 5000)]);
    let whole = plan.to_text().expect("a text");
    let mut state = 1u64;
    let mut random = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let bits = [
        "-1",
        "0",
        "1099511627776",
        "18446744073709551616",
        "(",
        ")",
        "'''",
        "nan",
        "n",
        " . ",
        "= ",
    ];
    for _ in 0..400 {
        let mut text = whole.clone();
        for _ in 0..=random(2) {
            let at = text.floor_char_boundary(random(text.len()));
            let end = text.floor_char_boundary((at + random(6)).min(text.len()));
            text.replace_range(at..end, bits[random(bits.len())]);
        }
        let made = Plan::parse(&Source::new("p.plan", text.clone()))
            .and_then(|plan| own.planned(&sum, &plan, &sizes, true));
        if let Err(failure) = made {
            assert!(failure.0.iter().all(|d| d.code != Code::Internal), "{}\n{text}", failure.0[0]);
        }
    }
}

#[test]
fn plans_of_nothing_can_be_read() {
    for kind in [DeviceKind::Cpu, DeviceKind::Gpu] {
        planned(&session(kind), &program(SUM), &[("n", 0)]);
    }
}
