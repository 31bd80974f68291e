//! Advice on rules that are well-formed: examples, unused names, duplicates, rules that match their own
//! results.
//!
//! A rule runs alone on its example to find out whether it applies, and whether it then goes on without end.
//! The caller supplies the run ([`Trial`]). A rule that is not well-formed is an error of the reader and
//! never gets here.

use super::{Rule, SizeMaker, check, file};
use crate::calculus::size::{Size, Sym};
use crate::calculus::term::{Op, Term};
use crate::calculus::text::{self, Context, Unifier};
use crate::calculus::ty::Ty;
use crate::diag::{Code, Diagnostic, Result, Source, Span};
use indexmap::IndexMap;
use std::sync::Arc;

/// The result of running one rule alone on a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Whether the rule merged two classes.
    pub applied: bool,
    /// Whether the rule still added nodes when it reached the limits.
    pub grows: bool,
    /// Number of rounds.
    pub rounds: usize,
    /// Number of e-nodes at the end.
    pub nodes: usize,
}

impl Rule {
    /// Returns the example as a term.
    ///
    /// # Errors
    /// When it is not `TERM : TYPE`, does not parse or does not type-check, with the place.
    pub fn example_term(&self) -> Result<Option<Term>> {
        let Some(span) = self.example_at else { return Ok(None) };
        let range = span.range();
        let body = &self.source.text[range.clone()];
        let Some(colon) = body.rfind(" : ") else {
            let text = "an example is `TERM : TYPE`, the type that of its argument";
            return Err(Diagnostic::error(Code::RuleParse, text)
                .at(&self.source, trimmed(&self.source, span), "here")
                .into());
        };
        let middle = range.start + colon;
        let raw = text::parse_term(&self.source, range.start..middle)?;
        let dom = text::parse_type(&self.source, middle + 3..range.end)?;
        let mut unifier = Unifier::default();
        let inferred = text::infer(&self.source, &raw, &dom, &Context::default(), &mut unifier)?;
        inferred.close(&self.source, &unifier).map(Some)
    }

    /// Whether this is the second direction of a rule written with `==`.
    fn is_back(&self) -> bool {
        self.statement.contains(" == ") && self.name.ends_with("-back")
    }
}

fn trimmed(source: &Arc<Source>, span: Span) -> Span {
    let range = span.range();
    let text = source.text.get(range.clone()).unwrap_or_default();
    let blank = text.len() - text.trim_start().len();
    Span::new(range.start + blank, range.start + text.trim_end().len())
}

/// Returns the advice on `rules`, in order. `all` are the rules that they are used with, to find duplicates;
/// `run` runs one rule alone on a term, under small limits.
pub fn lint(
    rules: &[&Rule],
    all: &[&Rule],
    run: &dyn Fn(&Rule, &Term) -> Result<Trial>,
) -> Vec<Diagnostic> {
    let forms: Vec<(&Rule, String)> = all.iter().map(|r| (*r, canonical(r))).collect();
    let mut out = vec![];
    for rule in rules {
        let advice = |text: String, at: Span, label: &str| {
            Diagnostic::warning(Code::RuleAdvice, text).at(&rule.source, at, label)
        };
        let (name, statement) = (&rule.name, check::place(rule));
        for (what, text) in [("says", &rule.says), ("from", &rule.from)] {
            if text.is_empty() {
                out.push(advice(format!("rule `{name}` has an empty `{what}`"), statement, "here"));
            }
        }
        for l in unused(rule) {
            out.push(advice(
                format!("rule `{name}`: `{l}` is not used"),
                statement,
                "by nothing here",
            ));
        }
        let own = canonical(rule);
        let earlier = forms.iter().take_while(|(r, _)| r.name != rule.name);
        if let Some((twin, _)) = earlier.into_iter().find(|(_, form)| *form == own) {
            out.push(
                advice(
                    format!("rule `{name}` is rule `{}` with other names", twin.name),
                    statement,
                    "the second of them",
                )
                .help("leave one out: the other finds everything it finds"),
            );
        }
        if !rule.is_back() {
            out.extend(example(rule, run, &advice));
        }
    }
    out
}

/// Returns the advice on a rule's example.
fn example(
    rule: &Rule,
    run: &dyn Fn(&Rule, &Term) -> Result<Trial>,
    advice: &dyn Fn(String, Span, &str) -> Diagnostic,
) -> Vec<Diagnostic> {
    let name = &rule.name;
    let Some(span) = rule.example_at else {
        let d = advice(format!("rule `{name}` has no example"), check::place(rule), "this rule");
        return vec![d.help("`example TERM : TYPE` is a term that the rule applies to")];
    };
    let at = trimmed(&rule.source, span);
    let term = match rule.example_term() {
        Ok(Some(term)) => term,
        Ok(None) => return vec![],
        Err(failure) => {
            // Keep the reader's message, but report it as advice.
            let mut all = failure.0;
            for d in &mut all {
                d.message = format!("the example of rule `{name}`: {}", d.message);
                (d.code, d.severity) = (Code::RuleAdvice, crate::diag::Severity::Warning);
            }
            return all;
        }
    };
    let trial = match run(rule, &term) {
        Ok(trial) => trial,
        Err(failure) => {
            let why = failure.to_string();
            let d = advice(format!("rule `{name}` fails on its example"), at, "this example");
            return vec![d.note(why)];
        }
    };
    if !trial.applied {
        let d = advice(format!("rule `{name}` does not apply to its example"), at, "this example");
        return vec![d.note(format!("left side: {} : {}", rule.lhs, rule.lhs.ty()))];
    }
    // Expansive rules belong in named sets.
    if trial.grows && rule.set == "default" && !rule.statement.contains(" == ") {
        let text = format!("rule `{name}` feeds itself: its left side matches what it makes");
        let d = advice(text, check::place(rule), "the right side has further matches, without end");
        return vec![
            d.note(format!(
                "alone on its example it still grows after {} rounds, with {} nodes",
                trial.rounds, trial.nodes
            ))
            .help("make another operator on the right side, or bound its depth, as `tileable n 2` does"),
        ];
    }
    vec![]
}

/// Returns the `let`s that are not mentioned by the right side, by a condition, or by another `let`.
fn unused(rule: &Rule) -> Vec<String> {
    let used = file::variables_of(&rule.rhs);
    let in_conditions = format!("{:?}", rule.when);
    rule.lets
        .iter()
        .filter(|l| {
            let mut elsewhere = used.contains(&l.name);
            for other in &rule.lets {
                other.of.visit(&mut |s| elsewhere |= *s == Sym::Meta(l.name.as_str().into()));
            }
            !elsewhere && !in_conditions.contains(&format!("\"{}\"", l.name))
        })
        .map(|l| l.name.clone())
        .collect()
}

/// Returns the text of a rule, with its variables renamed in the order in which they occur.
fn canonical(rule: &Rule) -> String {
    let mut names = Names::default();
    let (lhs, rhs) = (names.term(&rule.lhs), names.term(&rule.rhs));
    let lets = rule.lets.iter().map(|l| {
        let maker = match l.maker {
            SizeMaker::Tile => "tile",
            SizeMaker::Width => "width",
            SizeMaker::Round => "round",
        };
        format!("{} = {maker} {}", names.size(&Size::meta(&l.name)), names.size(&l.of))
    });
    let mut lets: Vec<String> = lets.collect();
    lets.sort();
    let mut when: Vec<String> = rule
        .when
        .iter()
        .map(|c| {
            // The debug text has names between quotes.
            let text = format!("{c:?}");
            names.known.iter().fold(text, |text, (old, new)| {
                text.replace(&format!("\"{old}\""), &format!("\"{new}\""))
            })
        })
        .collect();
    when.sort();
    format!("{lhs} => {rhs} | {lets:?} | {when:?} | {:?}", rule.needs)
}

#[derive(Default)]
struct Names {
    known: IndexMap<String, String>,
}

impl Names {
    fn name(&mut self, old: &str) -> String {
        let next = format!("%{}", self.known.len());
        self.known.entry(old.to_owned()).or_insert(next).clone()
    }

    fn size(&mut self, s: &Size) -> Size {
        s.visit(&mut |sym| {
            if let Sym::Meta(m) = sym {
                self.name(m);
            }
        });
        s.substitute(&|sym| match sym {
            Sym::Meta(m) => self.known.get(&**m).map(|n| Size::meta(n)),
            _ => None,
        })
    }

    fn ty(&mut self, t: &Ty) -> Ty {
        match t {
            Ty::Unit | Ty::Scalar(_) => t.clone(),
            Ty::Meta(m) => Ty::Meta(self.name(m).into()),
            Ty::Pair(a, b) => Ty::pair(&self.ty(a), &self.ty(b)),
            Ty::Array(n, t) => Ty::array(&self.size(n), &self.ty(t)),
            Ty::Vector(w, t) => Ty::Vector(self.size(w), self.ty(t).into()),
        }
    }

    /// Returns the operator with all sizes, types and arguments as text.
    fn term(&mut self, t: &Term) -> String {
        let head = match t.op() {
            Op::Meta(m) => self.name(m),
            op => format!("{op:?}"),
        };
        let sizes: Vec<String> = t.sizes().iter().map(|s| self.size(s).to_string()).collect();
        let tys: Vec<String> = t.tys().iter().map(|t| self.ty(t).to_string()).collect();
        let args: Vec<String> = t.args().iter().map(|a| self.term(a)).collect();
        format!("({head} {sizes:?} {tys:?} {})", args.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::RuleSet;

    fn set(text: &str) -> RuleSet {
        let mut set = RuleSet::default();
        set.add(&Source::new("own.rules", text), "own").expect("the rules are well-formed");
        set
    }

    fn found(text: &str, trial: Trial) -> Vec<String> {
        let set = set(text);
        let rules: Vec<&Rule> = set.iter().collect();
        lint(&rules, &rules, &|_, _| Ok(trial)).into_iter().map(|d| d.message).collect()
    }

    const FINE: Trial = Trial { applied: true, grows: false, rounds: 2, nodes: 10 };

    fn rule(name: &str, rest: &str) -> String {
        format!("rule {name}\n  law exact\n  says \"A.\"\n  from \"B\"\n{rest}\n")
    }

    #[test]
    fn nothing_is_found_where_nothing_is() {
        let text =
            rule("a", "  rewrite reverse . reverse => id\n  example reverse . reverse : [4]f32");
        assert_eq!(found(&text, FINE), Vec::<String>::new());
        assert_eq!(found(&text, Trial { applied: false, ..FINE }).len(), 1);
        assert!(found(&text, Trial { grows: true, ..FINE })[0].contains("feeds itself"));
    }

    #[test]
    fn examples_are_there_and_are_terms() {
        let no = rule("a", "  rewrite reverse . reverse => id");
        assert!(found(&no, FINE)[0].contains("no example"));
        for bad in ["reverse", "nothing : [4]f32", "map abs : f32", "map abs : [f32"] {
            let text = rule("a", &format!("  rewrite reverse . reverse => id\n  example {bad}"));
            let found = found(&text, FINE);
            assert!(found.len() == 1 && found[0].contains("example"), "{bad}: {found:?}");
        }
    }

    #[test]
    fn names_are_used_and_rules_stand_once() {
        let own = "  on [n]a\n  let t = tile n, r = round n\n  rewrite map f => mapSeq f\n  example map abs : [4]f32";
        let text = rule("a", own);
        assert_eq!(found(&text, FINE), ["rule `a`: `t` is not used", "rule `a`: `r` is not used"]);
        let twins = rule(
            "a",
            "  on [n]a\n  when small n\n  rewrite map f => mapSeq f\n  example map abs : [4]f32",
        ) + &rule(
            "b",
            "  on [k]c\n  when small k\n  rewrite map g => mapSeq g\n  example map abs : [4]f32",
        ) + &rule("c", "  rewrite map g => mapSeq g\n  example map abs : [4]f32");
        assert_eq!(found(&twins, FINE), ["rule `b` is rule `a` with other names"]);
    }
}
