//! Arguments that several verbs share, and their conversion into sessions, requests and programs.

use super::interrupt;
use super::out::Stop;
use crate::device::cost_model::CostModel;
use crate::diag::{Code, Diagnostic, Limits, Result, Source};
use crate::rules::RuleSet;
use crate::rules::check::Check;
use crate::session::generate::Generator;
use crate::session::npy::NpyArray;
use crate::session::{
    Device, Float, Given, Plan, Program, Request, Session, Strategy, check_own_rules, futhark, npy,
    read, read_program, rule_set,
};
use crate::tune::store::{Store, default_path};
use crate::tune::worker::Worker;
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Parses `NAME=VALUE`.
fn pair(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once('=') {
        Some(("", _)) => Err("the name before `=` is missing".into()),
        Some((name, "")) => Err(format!("the value of `{name}` after `=` is missing")),
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err("expected NAME=VALUE".into()),
    }
}

/// Parses `NAME=N`, in decimal, with optional `_` between digits.
pub(super) fn size(text: &str) -> std::result::Result<(String, u64), String> {
    let (name, value) = pair(text)?;
    let n = value
        .replace('_', "")
        .parse()
        .map_err(|_| format!("`{value}` is not a size: expected a whole number"))?;
    Ok((name, n))
}

pub(super) fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let s: f64 = text.parse().map_err(|_| format!("`{text}` is not a number of seconds"))?;
    Duration::try_from_secs_f64(s).map_err(|e| e.to_string())
}

/// Values of sizes and parameters.
#[derive(Args, Clone, Debug)]
pub struct DataArgs {
    /// The value of a size parameter. Sizes also follow from the shapes of given arrays.
    #[arg(long = "size", value_name = "NAME=N", value_parser = size)]
    pub sizes: Vec<(String, u64)>,
    /// Read an array (or a scalar: an array without dimensions) from a file; `NAME.K=FILE` for component K of a
    /// parameter that holds tuples.
    /// A file that ends in `.in` or `.out` holds a value of Futhark, in text or binary form.
    #[arg(long = "input", value_name = "NAME=FILE.npy", value_parser = pair)]
    pub inputs: Vec<(String, String)>,
    /// Read all parameters, in order, from a file of Futhark's values, in text or binary form. A size that stands among
    /// the parameters takes a value, too.
    #[arg(long, value_name = "FILE.in")]
    pub input_futhark: Option<PathBuf>,
    /// A scalar parameter's value.
    #[arg(long = "arg", value_name = "NAME=VALUE", value_parser = pair, allow_hyphen_values = true)]
    pub args: Vec<(String, String)>,
    /// Generate data: `normal`, `uniform`, `uniform:LOW..HIGH`, `whole:LOW..HIGH` (whole numbers, for floats too),
    /// `neighbours:N` (lists of indices of other elements), `iota` or `const:V`; LOW, HIGH and N are numbers or sizes.
    #[arg(long = "gen", value_name = "NAME=HOW", value_parser = pair)]
    pub gens: Vec<(String, String)>,
    /// Seed of generated data.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,
}

impl DataArgs {
    /// Returns the input files.
    pub fn files(&self) -> Vec<PathBuf> {
        let files = self.inputs.iter().map(|(_, file)| PathBuf::from(file));
        files.chain(self.input_futhark.clone()).collect()
    }

    /// Reads the files and makes a request for a program. `default` generates the values that are not given.
    pub fn request(&self, program: &Program, default: Option<Generator>) -> Result<Request> {
        let mut request = Request { default, seed: self.seed, ..Request::default() };
        let twice = |name: &str| -> Diagnostic {
            Diagnostic::error(Code::Usage, format!("`{name}` is given twice"))
        };
        for (name, n) in &self.sizes {
            if request.sizes.insert(name.clone(), *n).is_some_and(|old| old != *n) {
                return Err(twice(name).into());
            }
        }
        let mut add = |name: &String, given: Given| match request.values.insert(name.clone(), given)
        {
            Some(_) => Err(twice(name)),
            None => Ok(()),
        };
        for (name, how) in &self.gens {
            add(name, Given::Made(how.parse()?))?;
        }
        for (name, text) in &self.args {
            add(name, Given::Text(text.clone()))?;
        }
        for (name, file) in &self.inputs {
            add(name, Given::Array(array(Path::new(file))?, file.clone()))?;
        }
        if let Some(file) = &self.input_futhark {
            let values = futhark::read(file)?;
            request.in_order(program, values, &file.display().to_string())?;
        }
        Ok(request)
    }
}

/// Reads the one array of a file.
fn array(file: &Path) -> Result<NpyArray> {
    if !futhark::named(file) {
        return npy::read(file);
    }
    let mut values = futhark::read(file)?;
    match (values.pop(), values.len()) {
        (Some(value), 0) => Ok(value),
        (last, more) => {
            let count = more + usize::from(last.is_some());
            let text = format!("{} has {count} values, not one", file.display());
            let d = Diagnostic::error(Code::InputFormat, text);
            Err(d.help("read the values of all parameters with `--input-futhark`").into())
        }
    }
}

/// Options of the session: device, rules, search and store.
#[derive(Args, Clone, Debug)]
pub struct SessionArgs {
    /// The device: `#k`, a part of its or its platform's name, or `none` (rank by the cost model alone).
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Use this cost model instead of the one for the device: a file, or the name of a shipped model.
    #[arg(long, value_name = "FILE|NAME")]
    pub cost_model: Option<String>,
    /// Rules, separated by commas: a file, or a shipped theme or rule, is added; a folder of `*.rules` files or a
    /// shipped set replaces the default set; `-NAME` leaves out a set, theme or rule.
    #[arg(long, value_name = "SPEC", allow_hyphen_values = true)]
    pub rules: Vec<PathBuf>,
    /// Use the rules of `--rules` without testing them first.
    #[arg(long)]
    pub trust_rules: bool,
    /// Trust that the operators of reductions obey the laws of their patterns, such as associativity, without testing
    /// them first.
    #[arg(long)]
    pub trust_laws: bool,
    /// Do not check indices and integer divisors that depend on data. An index outside its array then reads foreign
    /// memory, and the result of a division by zero is undefined.
    #[arg(long)]
    pub unchecked: bool,
    /// Which changes to float arithmetic are allowed.
    #[arg(long, value_enum, default_value = "exact")]
    pub float: FloatArg,
    /// How many candidates are measured; with 0, the cost model alone ranks them [default: 40].
    #[arg(long, value_name = "N")]
    pub budget: Option<usize>,
    /// How the candidates to measure are chosen [default: default].
    #[arg(long, value_enum)]
    pub strategy: Option<StrategyArg>,
    /// Seed of a random strategy [default: 0].
    #[arg(long, value_name = "N")]
    pub search_seed: Option<u64>,
    /// The tuning store [default: $PATSAT_STORE, or in the user's cache].
    #[arg(long, value_name = "FILE")]
    pub store: Option<PathBuf>,
    /// Do not use the tuning store, nor the cache of built kernels beside it.
    #[arg(long, conflicts_with = "store")]
    pub no_store: bool,
    /// Search and measure again, without the results in the tuning store; new results replace stored ones.
    #[arg(long)]
    pub anew: bool,
    /// The longest time that a candidate may take to build, in seconds.
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub build_timeout: Option<Duration>,
    /// The longest time that one run of a candidate may take, in seconds.
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub run_timeout: Option<Duration>,
}

/// A float mode on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FloatArg {
    /// Only the order of a reduction may change.
    Exact,
    /// Also contraction to fma, reciprocals and similar changes.
    Relaxed,
}

/// A strategy on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrategyArg(pub Strategy);

impl clap::ValueEnum for StrategyArg {
    fn value_variants<'a>() -> &'a [StrategyArg] {
        const ALL: [StrategyArg; Strategy::ALL.len()] = {
            let mut all = [StrategyArg(Strategy::Default); Strategy::ALL.len()];
            let mut i = 0;
            while i < all.len() {
                all[i] = StrategyArg(Strategy::ALL[i]);
                i += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        let help = match self.0 {
            Strategy::Model => "measure nothing; take the best prediction of the cost model",
            Strategy::Default => {
                "predictions of the cost model, corrected by the measurements so far"
            }
            Strategy::Random => "random candidates",
            Strategy::Mcts => "Monte-Carlo tree search over the choices that make up a candidate",
            Strategy::Exhaustive => "all candidates, the best predictions first",
        };
        Some(clap::builder::PossibleValue::new(self.0.name()).help(help))
    }
}

/// Options that decide which candidates are measured.
pub const SEARCH: [&str; 4] = ["--budget", "--strategy", "--search-seed", "--anew"];

/// Options that decide how candidates are run and where measurements are kept.
pub const MEASURING: [&str; 3] = ["--build-timeout", "--run-timeout", "--store"];

impl SessionArgs {
    /// Returns how many candidates are measured.
    pub fn budget(&self) -> usize {
        self.budget.unwrap_or(Session::BUDGET)
    }

    /// Returns the strategy that chooses them.
    pub fn strategy(&self) -> Strategy {
        self.strategy.map_or(Strategy::Default, |s| s.0)
    }

    /// Fails if one of the options in `unread` was given. They have no effect in this command, for the reason `why`.
    pub fn refuse(&self, unread: &[&str], why: &str) -> Result<()> {
        let given = [
            // `--budget 0` and `--strategy model` ask for no measurements, so they are accepted where nothing is
            // measured.
            ("--budget", self.budget.is_some_and(|n| n > 0)),
            ("--strategy", self.strategy.is_some_and(|s| s.0 != Strategy::Model)),
            ("--search-seed", self.search_seed.is_some()),
            ("--anew", self.anew),
            ("--build-timeout", self.build_timeout.is_some()),
            ("--run-timeout", self.run_timeout.is_some()),
            ("--store", self.store.is_some()),
            ("--no-store", self.no_store),
            ("--rules", !self.rules.is_empty()),
            ("--trust-rules", self.trust_rules),
            ("--trust-laws", self.trust_laws),
        ];
        match given.iter().find(|(name, given)| *given && unread.contains(name)) {
            None => Ok(()),
            Some((name, _)) => {
                let text = format!("`{name}` has no effect here");
                let d = Diagnostic::error(Code::Usage, text).note(why);
                Err(d.help(format!("leave out `{name}`")).into())
            }
        }
    }

    /// Fails if an option about measuring was given although nothing is measured; `device` is that of the session.
    pub fn refuse_unmeasured(&self, device: &Device) -> Result<()> {
        let all = [&SEARCH[..], &MEASURING[..]].concat();
        if *device == Device::None {
            return self
                .refuse(&all, "without a device nothing is measured: the cost model decides");
        }
        if self.budget == Some(0) {
            return self
                .refuse(&SEARCH, "with `--budget 0` nothing is measured: the cost model decides");
        }
        if self.strategy() == Strategy::Model {
            let why = "with `--strategy model` nothing is measured: the cost model decides";
            return self.refuse(&["--search-seed", "--anew"], why);
        }
        Ok(())
    }

    /// Makes the session that these arguments describe.
    pub fn session(&self) -> Result<Session> {
        let float = match self.float {
            FloatArg::Exact => Float::Exact,
            FloatArg::Relaxed => Float::Relaxed,
        };
        let mut limits = Limits::default();
        limits.build_time = self.build_timeout.unwrap_or(limits.build_time);
        limits.run_time = self.run_timeout.unwrap_or(limits.run_time);
        let store = if self.no_store { None } else { store_path(self.store.as_ref()) };
        let worker = Worker::own_executable()?;
        let rules = rule_set(&self.rules, float)?;
        if !self.trust_rules {
            check_own_rules(&rules, Check::default())?;
        }
        // Installed after the tests of rules, which do not poll for interrupts: until here, Ctrl-C ends the process.
        limits.interrupt = interrupt::listen()?;
        Ok(Session {
            rules,
            limits,
            float,
            device: match self.device.as_deref() {
                Some("none") => Device::None,
                selector => Device::Selected(selector.map(str::to_owned)),
            },
            cost_model: self.cost_model.as_deref().map(cost_model).transpose()?,
            budget: self.budget(),
            strategy: self.strategy(),
            search_seed: self.search_seed.unwrap_or(0),
            kernels: store.as_deref().map(kernels_beside),
            store,
            anew: self.anew,
            worker: Some(Arc::new(worker)),
            shares: true,
            trust_laws: self.trust_laws,
            trust_rules: self.trust_rules,
            unchecked: self.unchecked,
        })
    }
}

/// Returns the path of the tuning store.
pub fn store_path(given: Option<&PathBuf>) -> Option<PathBuf> {
    given.cloned().or_else(default_path)
}

/// Returns the folder of the cache of built kernels: `$PATSAT_KERNELS`, or a folder beside the store.
fn kernels_beside(store: &Path) -> PathBuf {
    let set = std::env::var_os("PATSAT_KERNELS").filter(|v| !v.is_empty());
    set.map_or_else(|| store.with_extension("kernels"), PathBuf::from)
}

/// Opens the tuning store, for the verbs that need one.
pub fn open_store(given: Option<&PathBuf>) -> std::result::Result<Store, Stop> {
    let nowhere = || {
        Diagnostic::error(Code::StoreFailed, "there is no place for a tuning store")
            .help("set `PATSAT_STORE`, or give one with `--store FILE`")
    };
    Ok(Store::open(&store_path(given).ok_or_else(nowhere)?)?)
}

/// Returns the shipped cost model with this name, or reads a file with one.
pub fn cost_model(name: &str) -> Result<CostModel> {
    let shipped = CostModel::shipped()?;
    if let Some(model) = shipped.iter().find(|m| m.name == name) {
        return Ok(model.clone());
    }
    CostModel::load(Path::new(name)).map_err(|mut failure| {
        let names: Vec<&str> = shipped.iter().map(|m| m.name.as_str()).collect();
        for d in failure.0.iter_mut().filter(|d| d.code == Code::Io) {
            d.help.push(format!("the shipped cost models are {}", names.join(", ")));
        }
        failure
    })
}

/// Splits `FILE[:ENTRY]`. The name of an existing file is not split, even if it has a colon.
pub fn file_entry(text: &str) -> (PathBuf, Option<&str>) {
    if !Path::new(text).exists()
        && let Some((file, entry)) = text.rsplit_once(':')
        && !entry.is_empty()
        && entry.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '\'')
    {
        return (file.into(), Some(entry));
    }
    (text.into(), None)
}

/// Reads and checks `FILE[:ENTRY]`, which is to be rewritten by the rules.
pub fn program(text: &str, rules: &RuleSet) -> Result<Program> {
    let (file, entry) = file_entry(text);
    Program::load(&file, entry)?.under(rules)
}

/// Reads a plan.
pub fn plan(path: &Path) -> Result<Plan> {
    Plan::parse(&read(path)?)
}

/// Reads a program, with the files that it imports.
pub fn program_source(path: &Path) -> Result<Arc<Source>> {
    read_program(path)
}

/// Reads a source file as it is.
pub fn source(path: &Path) -> Result<Arc<Source>> {
    read(path)
}
