//! `patsat fuzz`.

use crate::Place;

#[test]
fn random_programs_are_counted() {
    let place = Place::new();
    let found = place.path("found").display().to_string();
    let args = "fuzz --programs 12 --seed 3 --device none --sizes 2,3 --jobs 2 --json -o";
    let result = place.run(&format!("{args} {found}")).ok().last("result");
    assert_eq!(result["programs"], 12);
    let sum =
        |names: [&str; 3]| names.map(|n| result[n].as_u64().expect("a number")).iter().sum::<u64>();
    assert_eq!(result["accepted"], sum(["no_value", "refused", "compiled"]));
    assert!(place.path("found/refused.md").exists());
}

#[test]
fn the_seed_decides_what_is_tried() {
    let place = Place::new();
    let run = |seed: u64| {
        let args = format!("fuzz --programs 6 --seed {seed} --device none --json --candidates 1");
        let mut result = place.run(&args).ok().last("result");
        result["seconds"] = 0.into();
        result
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_program_says_how_it_is_tried() {
    let place = Place::new();
    let text = "-- fuzz: seed=1 n=3\nentry f [n] (xs: [n]f32) : [n]f32 = map abs xs\n";
    let good = place.file("good.pat", text);
    let said = place.run(&format!("fuzz {good} --device none")).ok().stdout();
    assert!(said.contains("compiled    1"), "{said}");
    place.run("fuzz programs/asum.pat --device none").fails("E0903", 2);
    let bad = place.file("bad.pat", text.replace("n=3", "n=x"));
    place.run(&format!("fuzz {bad} --device none")).fails("E0903", 2);
}
