//! Replays the derivation of a rule: each step applies one rule in one direction, at one or more places.
//!
//! The terms of the sides and steps are compared with the rule's variables as unknown constants. A replayed
//! derivation therefore holds for every instance.

use super::matching::{instances, without_identities};
use super::{Bindings, Condition, Facts, Rule, RuleSet, Step, divides};
use crate::calculus::size::{Size, Sym};
use crate::calculus::term::{Op, Term, TypeError};
use crate::calculus::ty::Ty;
use crate::diag::{Code, Diagnostic, Result};

/// Checks that each step of a rule's derivation follows by the rule that it names (from `all`), and that the
/// last step gives the right side.
///
/// # Errors
/// [`Code::StepFails`] for a step that does not follow, at the rule's place in its file.
pub fn replay(rule: &Rule, all: &RuleSet) -> Result<()> {
    let fail =
        |text: String| Diagnostic::error(Code::StepFails, text).at(&rule.source, rule.span, "here");
    let constant = |t: &Term| fixed(t).map_err(|e| fail(e.0));
    let mut from = constant(&rule.lhs)?;
    for (i, step) in rule.derivation.iter().enumerate() {
        let by = all.get(&step.rule).ok_or_else(|| {
            fail(format!(
                "step {} of `{}` is by `{}`, which is no rule",
                i + 1,
                rule.name,
                step.rule
            ))
        })?;
        if rests_on(by, rule, all, &mut vec![]) {
            let why = if base(by) == base(rule) { "" } else { ", which is derived of it" };
            let text = format!("step {} of `{}` is by the rule itself", i + 1, rule.name);
            let by =
                if why.is_empty() { String::new() } else { format!(": by `{}`{why}", by.name) };
            return Err(fail(text + &by).into());
        }
        if by.law > rule.law {
            return Err(fail(format!(
                "step {} of `{}` is by `{}`, which only holds as `{}`",
                i + 1,
                rule.name,
                by.name,
                by.law
            ))
            .note(format!("the rule claims `law {}`", rule.law))
            .help(format!("`law {}` is what the derivation shows", by.law))
            .into());
        }
        let to = constant(&step.gives)?;
        let (a, b) = if step.back { (&to, &from) } else { (&from, &to) };
        if a == b || !related(by, rule, a, b) {
            return Err(fail(format!(
                "step {} of `{}` is not one by `{}`",
                i + 1,
                rule.name,
                shown(step)
            ))
            .note(format!("before: {from}"))
            .note(format!("after:  {to}"))
            .note(format!("the rule: {} => {}", by.lhs, by.rhs))
            .into());
        }
        from = to;
    }
    if !rule.derivation.is_empty() && from != constant(&rule.rhs)? {
        return Err(fail(format!("the derivation of `{}` ends in another term", rule.name))
            .note(format!("it ends in {from}"))
            .note(format!("the right side is {}", rule.rhs))
            .into());
    }
    Ok(())
}

/// Returns the name under which a rule was written: `==` makes two rules, which count as one here.
fn base(rule: &Rule) -> &str {
    rule.name.strip_suffix("-back").unwrap_or(&rule.name)
}

/// Whether `by` is the rule itself or is derived from it.
fn rests_on<'a>(by: &'a Rule, rule: &Rule, all: &'a RuleSet, seen: &mut Vec<&'a str>) -> bool {
    if base(by) == base(rule) {
        return true;
    }
    if seen.contains(&by.name.as_str()) {
        return false;
    }
    seen.push(&by.name);
    let mut steps = by.derivation.iter().filter_map(|s| all.get(&s.rule));
    steps.any(|r| rests_on(r, rule, all, seen))
}

fn shown(step: &Step) -> String {
    if step.back { format!("{} back", step.rule) } else { step.rule.clone() }
}

/// Returns the term with dimensions for its size variables, so that matching does not bind them.
fn fixed(t: &Term) -> std::result::Result<Term, TypeError> {
    let size = |s: &Size| s.substitute(&constant);
    let ty = |t: &Ty| t.substitute(&|_| None, &constant);
    let args = t.args().iter().map(fixed).collect::<std::result::Result<Vec<_>, _>>()?;
    let sizes = t.sizes().iter().map(size).collect();
    Term::new(t.op().clone(), sizes, t.tys().iter().map(ty).collect(), args)?.flat()
}

fn constant(s: &Sym) -> Option<Size> {
    match s {
        Sym::Meta(m) => Some(Size::dim(m)),
        Sym::Dim(_) | Sym::Tile(_) | Sym::Width(_) | Sym::Round(_) => None,
    }
}

/// Whether `b` is `a` with the rule applied at one or more places.
fn related(by: &Rule, of: &Rule, a: &Term, b: &Term) -> bool {
    let (x, y) = (without_identities(&a.chain()), without_identities(&b.chain()));
    if x == y || x.is_empty() && y.is_empty() {
        return true;
    }
    let before = x.iter().zip(&y).take_while(|(a, b)| a == b).count();
    let shorter = x.len().min(y.len());
    let after = x.iter().rev().zip(y.iter().rev()).take_while(|(a, b)| a == b).count();
    for start in 0..=before {
        for end in 0..=after.min(shorter - start) {
            let (left, right) = (&x[start..x.len() - end], &y[start..y.len() - end]);
            if instances(by, left, right).iter().any(|i| allowed(by, of, i)) {
                return true;
            }
        }
    }
    x.len() == y.len() && x.iter().zip(&y).all(|(a, b)| a == b || inside(by, of, a, b))
}

fn inside(by: &Rule, of: &Rule, a: &Term, b: &Term) -> bool {
    a.op() == b.op()
        && a.sizes() == b.sizes()
        && a.tys() == b.tys()
        && !a.args().is_empty()
        && a.args().iter().zip(b.args()).all(|(a, b)| related(by, of, a, b))
}

/// Whether the conditions that `by` needs to be an equality hold, either for the terms themselves or because
/// the derived rule has them too. The other conditions only say when a rule pays, or which form a size has.
fn allowed(by: &Rule, of: &Rule, i: &Bindings) -> bool {
    let promised = |f: &str, what: fn(&Facts) -> bool, as_condition: fn(String) -> Condition| {
        i.function_of(f).is_some_and(|t| match t.op() {
            Op::Meta(m) => of.when.contains(&as_condition(m.to_string())),
            // `vectorize` is component-wise, so it commutes when its argument does.
            Op::Vectorize => match t.args()[0].op() {
                Op::Meta(m) => of.when.contains(&as_condition(m.to_string())),
                _ => what(&Facts::of(t)),
            },
            _ => what(&Facts::of(t)),
        })
    };
    by.when.iter().all(|c| match c {
        Condition::Commutative(f) => promised(f, |f| f.commutative, Condition::Commutative),
        Condition::Vectorisable(f) => promised(f, |f| f.vectorisable, Condition::Vectorisable),
        Condition::Lanewise(f) => promised(f, |f| f.lanewise, Condition::Lanewise),
        Condition::Scalar(a) => i.type_of(a).is_some_and(|t| match t {
            Ty::Meta(m) => of.when.contains(&Condition::Scalar(m.to_string())),
            t => t.is_scalar(),
        }),
        Condition::Divides(k, n) => {
            let (k, n) = (i.size(k), i.size(n));
            // A tunable is chosen so that the sizes that it divides are whole.
            let made = |s: &Sym| of.lets.iter().any(|l| matches!(s, Sym::Dim(d) if **d == *l.name));
            divides(&k, &n)
                || n.factors().any(|(s, _)| made(s))
                || of.when.iter().any(|c| match c {
                    Condition::Divides(a, b) => {
                        // A divisor of a factor divides the product.
                        let (a, b) = (a.substitute(&constant), b.substitute(&constant));
                        divides(&k, &a) && divides(&b, &n)
                    }
                    _ => false,
                })
        }
        Condition::UpTo(n, most) => {
            let n = i.size(n);
            n.as_constant().is_some_and(|n| n <= *most)
                || of.when.iter().any(|c| match c {
                    Condition::UpTo(m, least) => m.substitute(&constant) == n && least <= most,
                    _ => false,
                })
        }
        Condition::From(n, least) => {
            let n = i.size(n);
            n.as_constant().is_some_and(|n| n >= *least)
                || of.when.iter().any(|c| match c {
                    Condition::From(m, most) => m.substitute(&constant) == n && most >= least,
                    _ => false,
                })
        }
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Library;

    #[test]
    fn every_derivation_holds() {
        let all = Library::shipped().expect("shipped rules").all();
        let mut replayed = 0;
        for rule in all.iter().filter(|r| !r.derivation.is_empty()) {
            if let Err(e) = replay(rule, &all) {
                panic!("{e}: {:#?}", e.0[0].notes);
            }
            replayed += 1;
        }
        assert!(replayed > 15, "{replayed} derivations");
    }

    #[test]
    fn a_wrong_derivation_is_found() {
        let all = Library::shipped().expect("shipped rules").all();
        for rule in all.iter().filter(|r| r.derivation.len() > 1) {
            // Without the first step, the second one starts from another term.
            let mut wrong = rule.clone();
            wrong.derivation.remove(0);
            assert!(replay(&wrong, &all).is_err(), "{}", rule.name);
            // Without the last step, the derivation ends in another term.
            let mut wrong = rule.clone();
            wrong.derivation.pop();
            assert!(replay(&wrong, &all).is_err(), "{}", rule.name);
            // The step is not by this rule.
            let mut wrong = rule.clone();
            "map-fusion".clone_into(&mut wrong.derivation[0].rule);
            assert!(replay(&wrong, &all).is_err(), "{}", rule.name);
        }
    }
}
