//! Replays a derivation: evaluates each of its terms in the interpreter on random inputs at small sizes, and compares
//! each value with that of the term before.
//!
//! The replay does not use the rules, only the terms and the law that each step claims, so it is an independent check.

use super::inputs::{Request, bind, input_bytes, sizes};
use super::program::{Program, Sizes};
use super::{Given, generate::Generator};
use crate::calculus::eval::{Inputs, apply_rounded};
use crate::calculus::interp;
use crate::calculus::size::{Size, SizeEnv, Sym};
use crate::calculus::term::Term;
use crate::calculus::ty::Ty;
use crate::calculus::value::{Tolerance, Value, compare_values};
use crate::diag::{Code, Diagnostic, Result};
use crate::rules::Law;
use crate::saturate::explain::{Derivation, Step, StepLaw};
use crate::tune::variant::tunables;
use indexmap::IndexSet;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use std::collections::BTreeMap;

/// How many inputs each step is tried on.
const ROUNDS: usize = 4;
/// How many random sizes are tried for each round.
const TRIES: usize = 100;
/// The values that sizes are drawn from.
const SMALL: [u64; 14] = [1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 16, 19, 24, 33];
/// The values for tiles and vector widths that need not divide the length.
const FREE: [u64; 8] = [1, 2, 3, 4, 6, 8, 12, 16];
/// If no small sizes fit, the requested sizes are used, unless the inputs exceed this number of bytes.
const MOST_BYTES: u64 = 16 << 20;

/// The sizes of one round of a replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Round {
    /// Value of each size parameter.
    pub sizes: Sizes,
    /// Value of each tunable.
    pub tunables: BTreeMap<String, u64>,
}

/// The result of replaying one step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepCheck {
    /// Whether the values agree as the step's law demands.
    pub ok: bool,
    /// How it was compared, or the first difference.
    pub says: String,
}

/// The result of replaying a derivation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replay {
    /// The sizes of each round.
    pub rounds: Vec<Round>,
    /// The result of each step.
    pub steps: Vec<StepCheck>,
}

impl Replay {
    /// Returns whether every step holds.
    pub fn ok(&self) -> bool {
        self.steps.iter().all(|s| s.ok)
    }
}

/// Evaluates every term of a derivation from a program's term on random inputs.
///
/// Exact steps must give the same bits, the others values within the tolerance of their law. Floats are rounded after
/// every operation, as on a device. `request` decides the inputs, but arrays from files are replaced by generated
/// ones.
///
/// # Errors
/// When no sizes are found that fit the derivation, or the program has no value on the inputs of any round.
pub fn replay(program: &Program, request: &Request, derivation: &Derivation) -> Result<Replay> {
    let mut rng = ChaCha8Rng::seed_from_u64(request.seed);
    let needed = sizes_in(derivation);
    let mut found = vec![];
    for _ in 0..ROUNDS * TRIES {
        if found.len() == ROUNDS {
            break;
        }
        let sizes: Sizes = program
            .entry
            .sizes
            .iter()
            .map(|n| (n.clone(), SMALL[rng.random_range(0..SMALL.len())]))
            .collect();
        found.extend(fits(program, sizes, derivation, &needed, &mut rng));
    }
    if found.is_empty() {
        let asked = sizes(program, request)?;
        if input_bytes(program, &asked)? <= MOST_BYTES {
            found.extend(
                (0..TRIES)
                    .find_map(|_| fits(program, asked.clone(), derivation, &needed, &mut rng)),
            );
        }
    }
    if found.is_empty() {
        let text = "no small sizes were found that fit every step of the derivation";
        return Err(Diagnostic::error(Code::SizeRange, text)
            .help("small sizes with `--size` are tried too")
            .into());
    }
    let mut out = Replay { rounds: vec![], steps: derivation.steps.iter().map(start).collect() };
    let mut failure = None;
    for (i, (sizes, env)) in found.into_iter().enumerate() {
        let at = Round { tunables: tunables(&env), sizes };
        let seed = request.seed.wrapping_add(i as u64);
        match round(program, request, derivation, &at, &env, seed, &mut out.steps) {
            Ok(()) => out.rounds.push(at),
            Err(e) => failure = Some(e),
        }
    }
    match failure {
        Some(e) if out.rounds.is_empty() => Err(e),
        _ => Ok(out),
    }
}

/// Returns the sizes with values for all symbols of the derivation, if the sizes fit the derivation.
fn fits(
    program: &Program,
    sizes: Sizes,
    derivation: &Derivation,
    needed: &IndexSet<Size>,
    rng: &mut ChaCha8Rng,
) -> Option<(Sizes, SizeEnv)> {
    let elaborated = program.elaborate(&sizes).ok()?;
    // A program may elaborate to another term at other sizes.
    if elaborated.term.flat().ok()? != derivation.start {
        return None;
    }
    let env = solve(needed, &elaborated.env, rng)?;
    Some((sizes, env))
}

/// Returns the result of a step before any round.
fn start(s: &Step) -> StepCheck {
    let says = match s.law {
        StepLaw::Choice if s.matched && s.rule == "stages" => "only names of symbols change",
        StepLaw::Choice if s.matched => "every size is a whole number",
        StepLaw::Choice => "a size is no whole number",
        StepLaw::Definition | StepLaw::Rule(Law::Exact) => "the same bits",
        StepLaw::Rule(Law::Reassoc | Law::Approx) => "the same up to rounding",
    };
    StepCheck { ok: s.matched || s.law != StepLaw::Choice, says: says.to_owned() }
}

/// Evaluates the derivation on one set of inputs, and records the steps that fail.
fn round(
    program: &Program,
    request: &Request,
    derivation: &Derivation,
    at: &Round,
    env: &SizeEnv,
    seed: u64,
    steps: &mut [StepCheck],
) -> Result<()> {
    let given = |g: &Given| match g {
        Given::Array(..) => None,
        Given::Text(_) | Given::Made(_) => Some(g.clone()),
    };
    let request = Request {
        sizes: at.sizes.clone(),
        values: request.values.iter().filter_map(|(n, g)| Some((n.clone(), given(g)?))).collect(),
        default: request.default.clone().or(Some(Generator::Normal)),
        seed,
    };
    let bound = bind(program, &request)?;
    let names = program.entry.params.iter().map(|p| p.name.as_str().into());
    let inputs: Inputs = names.zip(bound.values).collect();
    let terms = interp::terms(&program.entry, &at.sizes);
    let value = |t: &Term| apply_rounded(t, env, &inputs, &Value::unit());
    let mut before = value(&derivation.start)?;
    for (step, check) in derivation.steps.iter().zip(steps) {
        if step.law == StepLaw::Choice {
            continue;
        }
        let difference = match value(&step.after.term) {
            Ok(after) => {
                let out = difference(&before, &after, step.law, terms);
                before = after;
                out
            }
            Err(e) => Some(format!("no value: {e}")),
        };
        if let (Some(text), true) = (difference, check.ok) {
            let sizes = at.sizes.iter().chain(&at.tunables).map(|(n, v)| format!("{n}={v}"));
            let sizes: Vec<String> = sizes.collect();
            *check = StepCheck { ok: false, says: format!("{text}, with {}", sizes.join(" ")) };
        }
    }
    Ok(())
}

/// Returns a difference that the law does not allow; `None` if there is none.
fn difference(before: &Value, after: &Value, law: StepLaw, terms: u64) -> Option<String> {
    let tolerant = match law {
        StepLaw::Rule(Law::Reassoc | Law::Approx) => true,
        StepLaw::Rule(Law::Exact) | StepLaw::Definition | StepLaw::Choice => false,
    };
    if before.same_bits(after) {
        return None;
    }
    let comparison = compare_values(before, after, |ty| match tolerant {
        true => Tolerance::of(ty, terms),
        false => Tolerance { ulps: 0.0, per_root: 0.0, terms },
    });
    match comparison.first {
        Some(text) => Some(text),
        None if tolerant => None,
        None => Some("the bits of a float differ".to_owned()),
    }
}

/// Returns every size in the terms of the derivation and their types.
fn sizes_in(d: &Derivation) -> IndexSet<Size> {
    let mut out = IndexSet::new();
    let mut of = |t: &Term| {
        t.visit(&mut |t| {
            out.extend(t.sizes().iter().cloned());
            for ty in [&t.ty().dom, &t.ty().cod] {
                in_type(ty, &mut out);
            }
        });
    };
    of(&d.start);
    d.steps.iter().filter(|s| s.law != StepLaw::Choice).for_each(|s| of(&s.after.term));
    out
}

fn in_type(t: &Ty, out: &mut IndexSet<Size>) {
    match t {
        Ty::Unit | Ty::Scalar(_) | Ty::Meta(_) => {}
        Ty::Vector(n, t) | Ty::Array(n, t) => {
            out.insert(n.clone());
            in_type(t, out);
        }
        Ty::Pair(a, b) => {
            in_type(a, out);
            in_type(b, out);
        }
    }
}

/// Finds values for all tunables such that all sizes in `needed` are whole numbers.
fn solve(needed: &IndexSet<Size>, dims: &SizeEnv, rng: &mut ChaCha8Rng) -> Option<SizeEnv> {
    let mut symbols: IndexSet<Sym> = IndexSet::new();
    for s in needed {
        // Inner symbols come first, so that a tile follows the size that it divides.
        s.visit(&mut |sym| {
            symbols.insert(sym.clone());
        });
    }
    (0..TRIES).find_map(|_| {
        let mut env = dims.clone();
        for sym in &symbols {
            let (Sym::Tile(of) | Sym::Width(of)) = sym else { continue };
            let value = if crate::rules::round_up(of) == *of {
                let n = of.eval(&env).ok().filter(|n| *n > 0)?;
                let divisors: Vec<u64> = (1..=n).filter(|d| n % d == 0).collect();
                divisors[rng.random_range(0..divisors.len())]
            } else {
                FREE[rng.random_range(0..FREE.len())]
            };
            env.insert(sym.clone(), value);
        }
        for sym in &symbols {
            let Sym::Round(of) = sym else { continue };
            let multiple = needed
                .iter()
                .filter(|s| s.factors().any(|(f, e)| f == sym && e > 0))
                .try_fold(1, |all, s| Some(lcm(all, divisor(s, &env)?)))?;
            env.insert(sym.clone(), of.eval(&env).ok()?.checked_next_multiple_of(multiple)?);
        }
        needed.iter().all(|s| s.eval(&env).is_ok()).then_some(env)
    })
}

/// Returns the divisor in a size.
fn divisor(s: &Size, env: &SizeEnv) -> Option<u64> {
    s.factors().filter(|(_, e)| *e < 0).try_fold(s.coefficient().1, |all, (sym, e)| {
        all.checked_mul(env.get(sym)?.checked_pow(e.unsigned_abs())?)
    })
}

fn lcm(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x.max(1) * b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunables_fit_every_size() {
        let n = Size::dim("n");
        let (t, w) = (n.tile(), n.tile().width());
        let chunks = n.round().div(&t);
        let needed = IndexSet::from([
            t.div(&w),
            t.div(&w).div(&t.div(&w).tile()),
            chunks.round().div(&chunks.tile()),
            n.round().div(&n.width()),
        ]);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for length in [0, 1, 7, 24] {
            let dims = SizeEnv::from_iter([(Sym::Dim("n".into()), length)]);
            for _ in 0..20 {
                let env = solve(&needed, &dims, &mut rng).expect("there are such values");
                assert!(n.round().eval(&env).expect("whole") >= length);
            }
        }
    }
}
