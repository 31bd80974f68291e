//! Positions in terms: factors of a chain.

use super::term::{Op, Term, TypeError};
use std::fmt::Write;
use std::ops::Range;

/// Consecutive factors of a chain somewhere in a term, whatever the nesting of the chain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    /// The path from the whole term inwards: a factor of the chain, and the index of one of its function
    /// arguments.
    pub path: Vec<(usize, usize)>,
    /// The factors of the chain there; the outermost one (applied last) is 0. Never empty.
    pub factors: Range<usize>,
}

impl Position {
    /// Returns the position of the whole term.
    pub fn whole(t: &Term) -> Position {
        Position { path: vec![], factors: 0..t.chain().len() }
    }

    /// Returns the whole chain that contains the position.
    pub fn chain(&self, t: &Term) -> Option<Vec<Term>> {
        let mut chain = t.chain();
        for (factor, arg) in &self.path {
            chain = chain.get(*factor)?.args().get(*arg)?.chain();
        }
        Some(chain)
    }

    /// Returns the factors at the position.
    pub fn part(&self, t: &Term) -> Option<Vec<Term>> {
        Some(self.chain(t)?.get(self.factors.clone())?.to_vec())
    }

    /// Returns the term with other factors at the position, and chains nested to the right.
    ///
    /// # Errors
    /// When there is no such position, or the factors do not fit.
    pub fn replace(&self, t: &Term, with: &[Term]) -> Result<Term, TypeError> {
        replace(t, &self.path, &self.factors, with)
    }

    /// Returns the position in words: `in map > reduce (operator), 2nd factor`.
    pub fn words(&self, t: &Term) -> String {
        let mut chain = t.chain();
        let mut inside = vec![];
        for (factor, arg) in &self.path {
            let Some((op, inner)) = chain
                .get(*factor)
                .and_then(|f| Some((f.op().clone(), f.args().get(*arg)?.chain())))
            else {
                break;
            };
            let name = op.entry().name;
            inside.push(match role(&op, *arg) {
                Some(role) => format!("{name} ({role})"),
                None => name.to_owned(),
            });
            chain = inner;
        }
        let (from, to) = (self.factors.start + 1, self.factors.end);
        let mut out = match inside.as_slice() {
            [] => String::new(),
            names => format!("in {}", names.join(" > ")),
        };
        // Writing to a `String` cannot fail.
        if chain.len() == to + 1 - from {
            if out.is_empty() {
                out.push_str("the whole term");
            }
        } else {
            let comma = if out.is_empty() { "" } else { ", " };
            let _ = match from == to {
                true => write!(out, "{comma}{} factor", ordinal(from)),
                false => write!(out, "{comma}{} to {} factor", ordinal(from), ordinal(to)),
            };
        }
        out
    }
}

/// Returns the role of an argument of an operator that has several.
fn role(op: &Op, arg: usize) -> Option<&'static str> {
    let names: &[&str] = match op {
        Op::Fork | Op::Bimap => &["1st", "2nd"],
        Op::Cond => &["test", "then", "else"],
        Op::While => &["test", "body"],
        Op::Reduce(_) | Op::ReducePart | Op::Scan(_) | Op::Histogram => &["operator", "start"],
        Op::ReduceLcl | Op::ScanLcl(_) => &["operator", "start", "function"],
        _ => &[],
    };
    names.get(arg).copied()
}

fn ordinal(n: usize) -> String {
    let suffix = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{suffix}")
}

fn replace(
    t: &Term,
    path: &[(usize, usize)],
    at: &Range<usize>,
    with: &[Term],
) -> Result<Term, TypeError> {
    let nowhere = || TypeError("there is no such position".to_owned());
    let mut chain = t.chain();
    match path {
        [] => {
            chain.get(at.clone()).ok_or_else(nowhere)?;
            chain.splice(at.clone(), with.iter().cloned());
        }
        [(factor, arg), rest @ ..] => {
            let f = chain.get(*factor).ok_or_else(nowhere)?;
            let mut args = f.args().to_vec();
            let inner = args.get_mut(*arg).ok_or_else(nowhere)?;
            *inner = replace(inner, rest, at, with)?;
            chain[*factor] = f.with_args(args)?;
        }
    }
    let with_flat_chains = chain.iter().flat_map(Term::chain).collect::<Vec<_>>();
    Term::of_chain(&with_flat_chains)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::text::{Context, marked, parse_type, read_term};
    use crate::diag::Source;

    fn term(text: &str, dom: &str) -> Term {
        let dom = parse_type(&Source::new("type", dom), 0..dom.len()).expect("a type");
        read_term(&Source::new("term", text), &dom, &Context::default()).expect("a term")
    }

    #[test]
    fn parts_are_found_marked_and_replaced() {
        let t = term("join . map (reverse . map abs . map sqrt) . split 4", "[n]f32");
        let at = Position { path: vec![(1, 0)], factors: 1..3 };
        assert_eq!(at.words(&t), "in map, 2nd to 3rd factor");
        let (text, range) = marked(&t, &at);
        assert_eq!(text, t.to_string());
        assert_eq!(&text[range], "map abs . map sqrt");
        let fused = term("map (abs . sqrt)", "[4]f32");
        let new = at.replace(&t, &[fused]).expect("of one type");
        assert_eq!(new.to_string(), "join . map (reverse . map (abs . sqrt)) . split 4");
        assert_eq!(at.part(&t).expect("is there").len(), 2);
        assert!(at.replace(&t, &[term("abs", "f32")]).is_err());
        let nowhere = Position { path: vec![(2, 0)], factors: 0..1 };
        assert!(nowhere.part(&t).is_none() && nowhere.replace(&t, &[]).is_err());
    }

    #[test]
    fn words() {
        let t = term("reduce ((+) . bimap id abs) 0.0", "[n]f32");
        let at = |path: &[(usize, usize)], factors| Position { path: path.to_vec(), factors };
        assert_eq!(Position::whole(&t).words(&t), "the whole term");
        assert_eq!(at(&[(0, 0)], 1..2).words(&t), "in reduce (operator), 2nd factor");
        assert_eq!(at(&[(0, 0), (1, 1)], 0..1).words(&t), "in reduce (operator) > bimap (2nd)");
        let (text, range) = marked(&t, &at(&[(0, 0), (1, 1)], 0..1));
        assert_eq!(&text[range], "abs");
        assert_eq!(
            [1, 2, 3, 4, 11, 21, 112].map(ordinal).join(" "),
            "1st 2nd 3rd 4th 11th 21st 112th"
        );
    }
}
