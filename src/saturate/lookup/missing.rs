//! Explains why a term is not in the graph: how much of it is there, which part is not, and what is there
//! instead.

use super::equations::Equations;
use super::pattern::Slice;
use super::search::Search;
use super::short::is_short;
use crate::calculus::size::Size;
use crate::calculus::term::{Op, Term};
use crate::saturate::Node;
use egg::Id;
use indexmap::IndexMap;
use rustc_hash::FxHashMap;
use std::fmt;
use std::rc::Rc;

/// Most members of a class that are shown.
const SHOWN: usize = 8;
/// Longest text of a member that is shown, in characters.
const WIDTH: usize = 160;

/// The reason why a term is not in the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The class has no member with this operator.
    Absent,
    /// The class has such members, but not with these sizes; the text says which sizes differ.
    Sizes(String),
}

/// A term that is not in the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The sought term as far as it is there, with `_` for the missing part; `_` alone when nothing is there.
    pub around: String,
    /// The missing part.
    pub part: String,
    /// The class where the part was sought.
    pub class: Id,
    /// The reason.
    pub why: Why,
    /// What that class has instead: a small member for each outermost operator.
    pub instead: Vec<String>,
    /// How many more outermost operators there are.
    pub more: usize,
    /// The longest tail of the missing part that some class holds, and the class.
    pub rest: Option<(String, Id)>,
    /// Whether the search dropped solutions for the sizes, so that the term may be there after all.
    pub cut: bool,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.around != "_" {
            writeln!(f, "in the graph:     {}", self.around)?;
        }
        writeln!(f, "not in the graph: {}", self.part)?;
        match &self.why {
            Why::Absent => {}
            Why::Sizes(text) => writeln!(f, "because of sizes: {text}")?,
        }
        for (i, text) in self.instead.iter().enumerate() {
            let head = if i == 0 { "in its place:     " } else { "                  " };
            writeln!(f, "{head}{text}")?;
        }
        if self.more > 0 {
            writeln!(f, "                  and {} more", self.more)?;
        }
        if let Some((text, class)) = &self.rest {
            writeln!(f, "elsewhere:        {text} (class {class})")?;
        }
        if self.cut {
            writeln!(f, "the search was cut short: the term may be there after all")?;
        }
        Ok(())
    }
}

/// How much of a piece is found in a class that does not hold all of it.
#[derive(Clone)]
struct Reach {
    /// Number of nodes of the sought term that are there.
    weight: usize,
    around: String,
    hole: Slice,
    class: Id,
    why: Why,
}

/// Returns why `class` does not hold `piece`.
pub(super) fn explain(search: &mut Search, piece: Slice, class: Id) -> Missing {
    let ways = search.find(piece, class);
    let reach = match ways.first() {
        // The piece is there, but the sizes have no positive whole solution.
        Some(way) => {
            let text = search.symbols.text(&way.equations);
            let why = Why::Sizes(format!("there is no such size in whole numbers: {text}"));
            Reach { weight: 0, around: "_".to_owned(), hole: piece, class, why }
        }
        None => Explain { search, known: FxHashMap::default() }.reach(piece, class),
    };
    let (instead, more) = members(search, reach.class);
    let rest = match reach.why {
        Why::Absent => elsewhere(search, reach.hole),
        Why::Sizes(_) => None,
    };
    Missing {
        around: reach.around,
        part: search.chains.text(reach.hole),
        class: search.egraph.find(reach.class),
        why: reach.why,
        instead,
        more,
        rest,
        cut: search.cut,
    }
}

struct Explain<'s, 'a> {
    search: &'s mut Search<'a>,
    known: FxHashMap<(Slice, Id), Rc<Reach>>,
}

impl Explain<'_, '_> {
    fn reach(&mut self, piece: Slice, class: Id) -> Reach {
        let class = self.search.egraph.find(class);
        if let Some(known) = self.known.get(&(piece, class)) {
            return (**known).clone();
        }
        let mut best =
            Reach { weight: 0, around: "_".to_owned(), hole: piece, class, why: Why::Absent };
        for shortcut in self.search.shortcuts(class).iter() {
            let mut equations = shortcut.equations.clone();
            if !self.search.fits(piece, shortcut.class, &mut equations) {
                continue;
            }
            for node in &self.search.egraph[shortcut.class].nodes {
                let next = match node.function() {
                    Some(Op::Compose) => self.chain(piece, node, class),
                    Some(op) if is_short(op) => self.short_for(piece, node),
                    Some(_) if piece.len() == 1 => self.part(piece, node, class),
                    _ => None,
                };
                if let Some(next) = next
                    && next.weight > best.weight
                {
                    best = next;
                }
            }
        }
        self.known.insert((piece, class), Rc::new(best.clone()));
        best
    }

    fn weight(&self, piece: Slice) -> usize {
        self.search.chains.get(piece).iter().map(Term::size).sum()
    }

    /// Returns the result for a piece whose parts are there with sizes that contradict each other.
    fn contradiction(&self, piece: Slice, class: Id, text: String) -> Reach {
        let weight = self.weight(piece).saturating_sub(1);
        Reach { weight, around: "_".to_owned(), hole: piece, class, why: Why::Sizes(text) }
    }

    fn chain(&mut self, piece: Slice, node: &Node, class: Id) -> Option<Reach> {
        let [f, g] = node.children[..] else { return None };
        let mut best: Option<Reach> = None;
        for count in 1..=self.search.heads(piece, f) {
            let (head, tail) = (piece.head(count), piece.tail(count));
            let (first, second) = (self.search.find(head, f), self.search.find(tail, g));
            let next = match (first.first(), second.first()) {
                (Some(a), Some(b)) => {
                    let text = self.search.symbols.conflict(&a.equations, &b.equations);
                    self.contradiction(piece, class, text)
                }
                (Some(_), None) => {
                    let mut inner = self.reach(tail, g);
                    inner.weight += self.weight(head);
                    inner.around = format!("{} . {}", self.search.chains.text(head), inner.around);
                    inner
                }
                (None, Some(_)) => {
                    let mut inner = self.reach(head, f);
                    inner.weight += self.weight(tail);
                    inner.around = format!("{} . {}", inner.around, self.search.chains.text(tail));
                    inner
                }
                (None, None) => {
                    let mut inner = self.reach(head, f);
                    if inner.weight == 0 {
                        continue;
                    }
                    inner.around = format!("{} . ...", inner.around);
                    inner
                }
            };
            if best.as_ref().is_none_or(|b| next.weight > b.weight) {
                best = Some(next);
            }
        }
        best
    }

    fn part(&mut self, piece: Slice, node: &Node, class: Id) -> Option<Reach> {
        let parts = self.search.chains.get(piece);
        let part = parts.first()?;
        if node.function() != Some(part.op()) {
            return None;
        }
        let mut equations = Equations::default();
        if !self.search.same_sizes(part, node, &mut equations) {
            let have = self.search.rooted(node).map(|t| shortened(&t.to_string()));
            let text = format!("the graph has `{}`", have.unwrap_or_else(|| node.to_string()));
            let why = Why::Sizes(text);
            return Some(Reach { weight: 1, around: "_".to_owned(), hole: piece, class, why });
        }
        let pieces: Vec<Slice> = part.args().iter().map(|a| self.search.argument(a)).collect();
        let there: Vec<_> =
            pieces.iter().zip(node.args()).map(|(p, c)| self.search.find(*p, *c)).collect();
        let weight: usize = 1
            + (0..pieces.len())
                .filter(|i| !there[*i].is_empty())
                .map(|i| self.weight(pieces[i]))
                .sum::<usize>();
        let Some(bad) = there.iter().position(|ways| ways.is_empty()) else {
            let mut all = equations;
            for ways in &there {
                let way = ways.first()?;
                let before = all.clone();
                if !self.search.symbols.join(&mut all, &way.equations) {
                    let text = self.search.symbols.conflict(&before, &way.equations);
                    return Some(self.contradiction(piece, class, text));
                }
            }
            return None;
        };
        let mut inner = self.reach(pieces[bad], node.args()[bad]);
        inner.weight += weight;
        // The text of the part, with the argument replaced.
        let own = self.search.chains.text(piece);
        let argument = part.args()[bad].to_string();
        let (found, replaced) = (own.find(&argument), inner.around.clone());
        inner.around = match found {
            Some(at) => format!("{}{replaced}{}", &own[..at], &own[at + argument.len()..]),
            None => replaced,
        };
        Some(inner)
    }

    /// Returns what is missing of an argument of a short form whose definition matches otherwise.
    fn short_for(&mut self, piece: Slice, node: &Node) -> Option<Reach> {
        let mut best: Option<Reach> = None;
        for laid in self.search.laid(piece, node) {
            let taken = laid.holes.iter().zip(node.args());
            let taken: Vec<_> = taken.filter_map(|(s, c)| s.map(|s| (s, *c))).collect();
            let absent = taken.iter().find(|(s, c)| self.search.find(*s, *c).is_empty());
            let Some((hole, class)) = absent.copied() else { continue };
            let mut inner = self.reach(hole, class);
            inner.weight += self.weight(piece).saturating_sub(self.weight(hole));
            let (own, inside) = (self.search.chains.text(piece), self.search.chains.text(hole));
            inner.around = own.replacen(&inside, &inner.around, 1);
            if best.as_ref().is_none_or(|b| inner.weight > b.weight) {
                best = Some(inner);
            }
        }
        best
    }
}

/// Returns a small member of a class for each outermost operator, and the number of operators left out.
/// Members without tunables come first: they are nearest to what a person writes.
fn members(search: &Search, class: Id) -> (Vec<String>, usize) {
    let mut heads: IndexMap<String, (bool, usize, String)> = IndexMap::new();
    let mut add = |head: &Node, whole: Option<Term>| {
        let Some(whole) = whole else { return };
        let mut tuned = false;
        whole.visit(&mut |t| {
            tuned |= t.sizes().iter().flat_map(Size::factors).any(|(s, _)| s.is_chosen());
        });
        let this = (tuned, whole.size(), whole.to_string());
        let least = heads.entry(head.to_string()).or_insert_with(|| this.clone());
        if this < *least {
            *least = this;
        }
    };
    for node in &search.egraph[class].nodes {
        match (node.function(), node.args()) {
            (Some(Op::Compose), [f, g]) => {
                for head in &search.egraph[*f].nodes {
                    if head.function() != Some(&Op::Compose)
                        && let (Some(first), Some(rest)) =
                            (search.rooted(head), search.any_term(*g))
                    {
                        add(head, first.after(&rest).ok());
                    }
                }
            }
            _ => add(node, search.rooted(node)),
        }
    }
    let mut texts: Vec<_> = heads.into_values().collect();
    texts.sort();
    texts.dedup();
    let more = texts.len().saturating_sub(SHOWN);
    (texts.into_iter().take(SHOWN).map(|(.., t)| shortened(&t)).collect(), more)
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(WIDTH) {
        None => text.to_owned(),
        Some((at, _)) => format!("{} ...", text[..at].trim_end()),
    }
}

/// Returns the longest tail of a chain that some class holds.
fn elsewhere(search: &mut Search, piece: Slice) -> Option<(String, Id)> {
    let mut classes: Vec<Id> = search.egraph.classes().map(|c| c.id).collect();
    classes.sort_unstable();
    for skip in 0..piece.len() {
        let end = piece.tail(skip);
        for class in &classes {
            let mut equations = Equations::default();
            if search.fits(end, *class, &mut equations) && !search.find(end, *class).is_empty() {
                return Some((search.chains.text(end), *class));
            }
        }
    }
    None
}
