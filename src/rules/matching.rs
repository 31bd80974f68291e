//! Matching of rules on terms, without an e-graph: a left side, instances of both sides, and side conditions.
//!
//! Chains match whatever their nesting; a function variable in a chain may stand for several factors.

use super::bindings::Bindings;
use super::condition::Condition;
use super::facts::Facts;
use super::rule::Rule;
use crate::calculus::term::{Op, Term};

/// A side condition and whether it holds.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Verdict {
    /// The condition; serialized as rule files write it.
    #[serde(serialize_with = "as_text")]
    pub condition: Condition,
    /// Whether it holds.
    pub holds: bool,
    /// The values of its variables: `n is n.t0, 1 tile deep`.
    pub values: String,
}

fn as_text<S: serde::Serializer>(c: &Condition, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(c)
}

/// One way in which a rule matches.
#[derive(Clone, Debug, PartialEq)]
pub struct Application {
    /// Values of the rule's variables, including those that it makes with `let`.
    pub bindings: Bindings,
    /// The side conditions of the rule.
    pub verdicts: Vec<Verdict>,
}

impl Application {
    /// Whether every side condition holds.
    pub fn holds(&self) -> bool {
        self.verdicts.iter().all(|v| v.holds)
    }
}

/// Returns every way in which a rule's left side matches the whole chain of these factors; side conditions
/// may fail.
pub fn applications(rule: &Rule, factors: &[Term]) -> Vec<Application> {
    let Ok(subject) = flat(factors) else { return vec![] };
    let mut found = vec![];
    let goals = vec![(rule.lhs.chain(), subject.chain())];
    solve(goals, Bindings::default(), false, &mut found);
    let mut out = vec![];
    for mut bindings in found {
        // The sizes were solved for, so check that the left side with its values is the subject.
        let same = |t: &Term| t.flat().is_ok_and(|t| t == subject);
        if !bindings.settle() || !bindings.term(&rule.lhs).is_some_and(|t| same(&t)) {
            continue;
        }
        bindings.make(&rule.lets);
        let verdicts = rule.when.iter().map(|c| verdict(c, &bindings)).collect();
        out.push(Application { bindings, verdicts });
    }
    out
}

/// Returns a way in which the rule makes one chain into the other, preferably one whose side conditions hold.
pub fn application(rule: &Rule, before: &[Term], after: &[Term]) -> Option<Application> {
    let after = flat(after).ok()?;
    let makes = |a: &Application| {
        a.bindings.term(&rule.rhs).and_then(|t| t.flat().ok()).is_some_and(|t| t == after)
    };
    let mut found: Vec<Application> =
        applications(rule, before).into_iter().filter(makes).collect();
    let holds = found.iter().position(Application::holds).unwrap_or(0);
    (holds < found.len()).then(|| found.swap_remove(holds))
}

fn flat(factors: &[Term]) -> Result<Term, crate::calculus::term::TypeError> {
    Term::of_chain(factors)?.flat()
}

fn verdict(condition: &Condition, b: &Bindings) -> Verdict {
    let facts = |f: &str| b.function_of(f).map(Facts::of).unwrap_or_default();
    let text = |f: &str| b.function_of(f).map_or_else(|| f.to_owned(), ToString::to_string);
    Verdict {
        condition: condition.clone(),
        holds: condition.holds(b, &facts),
        values: condition.values(b, &text),
    }
}

/// Patterns and the chains that they must match; each pattern is a chain of factors.
type Goals = Vec<(Vec<Term>, Vec<Term>)>;

/// Matches all goals and adds every solution to `found`. `unwritten` says whether a function variable may
/// stand for an identity that is not written.
fn solve(mut goals: Goals, bindings: Bindings, unwritten: bool, found: &mut Vec<Bindings>) {
    let Some((patterns, subject)) = goals.pop() else {
        found.push(bindings);
        return;
    };
    let Some((first, patterns)) = patterns.split_first() else {
        if subject.is_empty() {
            solve(goals, bindings, unwritten, found);
        }
        return;
    };
    // Each of the remaining patterns takes at least one factor.
    let least = |t: &Term| usize::from(!(unwritten && matches!(t.op(), Op::Meta(_))));
    let most = subject.len().saturating_sub(patterns.iter().map(least).sum());
    if let Op::Meta(name) = first.op() {
        for taken in least(first)..=most {
            let mut b = bindings.clone();
            let (mine, rest) = subject.split_at(taken);
            let here = match (mine, rest) {
                // Only other occurrences of the variable can tell the type of this identity.
                ([], []) => match b.function_of(name) {
                    Some(f) if *f.op() == Op::Id => vec![f.clone()],
                    _ => continue,
                },
                ([], [next, ..]) => vec![Term::id(&next.ty().cod)],
                _ => mine.to_vec(),
            };
            let (dom, cod) = (&here[here.len() - 1].ty().dom, &here[0].ty().cod);
            let fits = b.match_ty(&first.ty().dom, dom)
                && b.match_ty(&first.ty().cod, cod)
                && Term::of_chain(&here).is_ok_and(|t| b.match_function(name, &t));
            if fits {
                let mut goals = goals.clone();
                goals.push((patterns.to_vec(), rest.to_vec()));
                solve(goals, b, unwritten, found);
            }
        }
        return;
    }
    let Some((got, rest)) = subject.split_first().filter(|_| most > 0) else { return };
    let mut b = bindings;
    let fits = first.op() == got.op()
        && first.sizes().iter().zip(got.sizes()).all(|(want, got)| b.match_size(want, got))
        && first.tys().iter().zip(got.tys()).all(|(want, got)| b.match_ty(want, got));
    if fits {
        goals.push((patterns.to_vec(), rest.to_vec()));
        goals.extend(first.args().iter().zip(got.args()).map(|(p, s)| (p.chain(), s.chain())));
        solve(goals, b, unwritten, found);
    }
}

/// Returns every way in which a rule's left side matches one chain and its right side the other. Variables
/// made with `let` may have any value, and side conditions are ignored. Chains are compared without
/// identities: a rule on the identity relates the empty chain to another one, and a function variable may
/// stand for no factors.
pub fn instances(rule: &Rule, left: &[Term], right: &[Term]) -> Vec<Bindings> {
    let goals = vec![
        (without_identities(&rule.rhs.chain()), without_identities(right)),
        (without_identities(&rule.lhs.chain()), without_identities(left)),
    ];
    let mut found = vec![];
    solve(goals, Bindings::default(), true, &mut found);
    let same = |b: &Bindings, side: &Term, there: &[Term]| {
        let made = b.term(side).and_then(|t| plain(&t));
        let there = if there.is_empty() { Some(vec![]) } else { plain_chain(there) };
        made.is_none() && there.as_ref().is_some_and(Vec::is_empty) || made == there
    };
    found.retain_mut(|b| b.settle() && same(b, &rule.lhs, left) && same(b, &rule.rhs, right));
    found
}

/// Returns the factors of a term, without identities at any depth.
fn plain(t: &Term) -> Option<Vec<Term>> {
    plain_chain(&t.chain())
}

fn plain_chain(factors: &[Term]) -> Option<Vec<Term>> {
    let factor = |t: &Term| {
        let arg = |a: &Term| match plain(a)?.as_slice() {
            [] => Some(Term::id(&a.ty().dom)),
            some => Term::of_chain(some).ok(),
        };
        let args = t.args().iter().map(arg).collect::<Option<Vec<_>>>()?;
        t.with_args(args).ok()
    };
    without_identities(factors).iter().map(factor).collect()
}

/// Returns the factors that are not the identity.
pub fn without_identities(chain: &[Term]) -> Vec<Term> {
    chain.iter().filter(|t| *t.op() != Op::Id).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::text::{Context, parse_type, read_term};
    use crate::diag::Source;
    use crate::rules::RuleSet;

    fn term(text: &str, dom: &str) -> Term {
        let dom = parse_type(&Source::new("type", dom), 0..dom.len()).expect("a type");
        read_term(&Source::new("term", text), &dom, &Context::default()).expect("a term")
    }

    #[test]
    fn every_rule_matches_its_example_and_explains_what_it_makes() {
        let rules = RuleSet::shipped().expect("shipped rules");
        for rule in rules.iter() {
            let example = rule.example.as_deref().expect("an example");
            let (text, dom) = example.rsplit_once(" : ").expect("a term and a type");
            let mut before = term(text, dom);
            if before.chain().len() < rule.lhs.chain().len() {
                // The parser drops identities.
                let id = Term::id(match rule.lhs.chain()[0].op() {
                    Op::Id => &before.ty().cod,
                    _ => &before.ty().dom,
                });
                let mut chain = before.chain();
                let at = if *rule.lhs.chain()[0].op() == Op::Id { 0 } else { chain.len() };
                chain.insert(at, id);
                before = Term::of_chain(&chain).expect("well-typed");
            }
            let found = applications(rule, &before.chain());
            assert!(!found.is_empty(), "{} does not match {example}", rule.name);
            for a in found {
                let after = a.bindings.term(&rule.rhs).expect("well-typed");
                let again = application(rule, &before.chain(), &after.chain());
                assert!(again.is_some(), "{}: {before} to {after}", rule.name);
                let other = application(rule, &before.chain(), &before.chain());
                assert_eq!(other.is_some(), after.flat() == before.flat(), "{}", rule.name);
            }
        }
    }

    #[test]
    fn chains_match_whatever_their_nesting() {
        let rules = RuleSet::shipped().expect("shipped rules");
        let fusion = rules.get("fst-fork").expect("a rule");
        let t = term("fst . fork (abs . sqrt) (exp . log . abs)", "f32");
        let [a] = applications(fusion, &t.chain()).try_into().expect("one way");
        assert_eq!(a.bindings.function_of("g").expect("bound").to_string(), "exp . log . abs");
        // A variable in a chain takes at least one factor: three factors stand before the identity, and two
        // variables in a chain can share them in as many ways as there are places to cut.
        let id = rules.get("bang-after").expect("a rule");
        let chain = term("bang . abs . sqrt . exp", "f32").chain();
        assert_eq!(applications(id, &chain).len(), 1);
        let nested = [chain[0].clone(), Term::of_chain(&chain[1..]).expect("well-typed")];
        assert_eq!(applications(id, &nested), applications(id, &chain));
        assert!(applications(id, &chain[1..]).is_empty());
    }

    #[test]
    fn conditions_say_their_values() {
        let rules = RuleSet::shipped().expect("shipped rules");
        let split = rules.get("split-join").expect("a rule");
        let says = |dom: &str| {
            let found = applications(split, &term("map abs", dom).chain());
            let [a] = <[Application; 1]>::try_from(found).expect("one way");
            let texts = a.verdicts.iter().filter(|v| !v.holds);
            texts.map(|v| format!("{}: {}", v.condition, v.values)).collect::<Vec<_>>()
        };
        assert_eq!(says("[n]f32"), [""; 0]);
        assert_eq!(says("[n.t0.t1]f32"), ["tileable n 2: n is n.t0.t1, 2 tiles deep"]);
        assert_eq!(
            says("[n^/n.t0]f32"),
            ["whole n: n is n^/n.t0, rounded up", "dimension n: n is n^/n.t0"]
        );
        assert_eq!(
            says("[n.v]f32"),
            ["tileable n 2: n is n.v, a vector width", "dimension n: n is n.v"]
        );
    }
}
