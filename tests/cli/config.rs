//! Defaults for options: `patsat.toml` and the environment.

use super::{Place, Ran};
use std::fs;

/// Makes a folder with this `patsat.toml`, and one below it.
fn project(text: &str) -> Place {
    let p = Place::new();
    fs::create_dir_all(p.path("deep/er")).expect("a folder");
    p.file("patsat.toml", text);
    p.file("scal.pat", fs::read("programs/scal.pat").expect("a program"));
    p
}

/// Runs a command in the folder below, with these variables.
fn below(p: &Place, args: &str, variables: &[(&str, &str)]) -> Ran {
    let mut command = p.command(args);
    command.current_dir(p.path("deep/er")).env_remove("PATSAT_STORE");
    Ran(command.envs(variables.iter().copied()).output().expect("patsat runs"))
}

#[test]
fn the_command_line_wins_over_the_environment_and_this_over_the_file() {
    let p = project(
        "device = \"none\"\ncost_model = \"nvidia-h200\"\nfloat = \"exact\"\nbudget = 3\nstore = \"s.sqlite\"\n",
    );
    let args = "--json optimize ../../scal.pat --size n=64";
    let told = |args: &str, variables: &[(&str, &str)]| {
        let ran = below(&p, args, variables).ok();
        let (start, result) = (ran.last("start"), ran.last("result"));
        let text = |v: &serde_json::Value| v.as_str().map(str::to_owned).unwrap_or_default();
        (text(&result["cost_model"]), text(&result["float"]), start["budget"].as_u64())
    };
    let of = |model: &str, float: &str, budget| (model.to_owned(), float.to_owned(), Some(budget));
    assert_eq!(told(args, &[]), of("nvidia-h200", "exact", 3));
    let variables =
        [("PATSAT_COST_MODEL", "generic-gpu"), ("PATSAT_FLOAT", "relaxed"), ("PATSAT_BUDGET", "5")];
    assert_eq!(told(args, &variables), of("generic-gpu", "relaxed", 5));
    let typed = format!("{args} --cost-model generic-cpu --float contract --no-store");
    assert_eq!(told(&typed, &variables), of("generic-cpu", "contract", 5));
    // Only on the command line is an option without effect refused.
    below(&p, &format!("{args} --budget 4"), &[]).fails("", 2);
    // Others take what is theirs.
    below(&p, "explain ../../scal.pat --size n=64", &[]).ok();
    let said = below(&p, "optimize --help", &[]).ok().stdout();
    assert!(said.contains("[default: nvidia-h200]"), "{said}");
}

#[test]
fn the_store_is_beside_the_file() {
    let p = project("store = \"own.sqlite\"\n");
    let place = |args: &str, variables: &[(&str, &str)]| {
        let said = below(&p, args, variables).ok().stdout();
        said.trim_end().rsplit(' ').next().unwrap_or_default().to_owned()
    };
    let own = fs::canonicalize(p.path("deep")).expect("a folder").with_file_name("own.sqlite");
    assert_eq!(place("store list", &[]), own.display().to_string());
    assert_eq!(place("store list", &[("PATSAT_STORE", "set.sqlite")]), "set.sqlite");
    assert_eq!(place("store list --store given.sqlite", &[]), "given.sqlite");
}

#[test]
fn mistakes_in_the_file_are_told_with_their_place() {
    let p = project("budgt = 3\ndevcie = \"none\"\n");
    let said = below(&p, "check ../../scal.pat", &[]).fails("E0911", 2).stderr();
    assert!(said.contains("patsat.toml:1:1") && said.contains("did you mean `budget`?"), "{said}");
    assert!(said.contains("patsat.toml:2:1") && said.contains("did you mean `device`?"), "{said}");
    below(&p, "--help", &[]).ok();
}
