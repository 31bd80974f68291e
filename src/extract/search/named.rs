//! The terms of choices for the whole program, and the names of the values between their stages.
//!
//! Choices share most of their parts, so the term of each part is built once.

use super::choice::Choice;
use super::{Found, skeleton_text};
use crate::calculus::term::{Op, Space, Term, TypeError};
use crate::extract::{Reason, cost, stages, written_out};
use crate::saturate::{ClassId, Data, EGraph};
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::rc::Rc;

/// The term of a choice for the whole program, as it stands in the graph.
pub(super) struct Named {
    pub compact: Term,
    pub form: usize,
    /// The names of the values between its stages: the same for all choices.
    names: HashMap<Term, String>,
}

impl Named {
    pub fn written(&self) -> Result<Found, Reason> {
        let term = written_out(&self.compact)?;
        let skeleton = skeleton_text(&term);
        let name = |value: &Term| match self.names.get(value) {
            Some(name) => name.clone(),
            None => value.to_string(),
        };
        let values = stages::values(&self.compact).map_err(|_| Reason::IllTyped)?;
        let stages = values.iter().map(|(read, given)| stages::Passed {
            read: read.as_ref().map(name),
            given: name(given),
        });
        let stages = stages.collect();
        Ok(Found { term, compact: self.compact.clone(), skeleton, form: self.form, stages })
    }
}

/// The terms of choices and of their parts.
pub(super) struct Terms<'a> {
    egraph: &'a EGraph,
    /// By the address of the choice.
    known: FxHashMap<*const Choice, Of>,
    /// Terms [`Terms::without_stored`].
    without: FxHashMap<Term, Term>,
}

/// The term of a choice, and the class of its node.
#[derive(Clone)]
struct Of {
    term: Term,
    class: Option<ClassId>,
    /// Keeps the address.
    _choice: Rc<Choice>,
}

impl Terms<'_> {
    pub fn of(egraph: &EGraph) -> Terms<'_> {
        Terms { egraph, known: FxHashMap::default(), without: FxHashMap::default() }
    }

    // Errors cannot occur: every class has one type, so no combination is ill-typed.
    pub fn named(&mut self, choice: &Rc<Choice>, form: usize) -> Result<Named, Reason> {
        let term = self.term(choice).ok_or(Reason::IllTyped)?.term;
        let compact = self.without_stored(&term).map_err(|_| Reason::IllTyped)?;
        let mut names = HashMap::new();
        self.name_values(choice, None, &compact, &mut names).map_err(|_| Reason::IllTyped)?;
        Ok(Named { compact, form, names })
    }

    /// Returns the term of a choice.
    fn term(&mut self, c: &Rc<Choice>) -> Option<Of> {
        if let Some(known) = self.known.get(&Rc::as_ptr(c)) {
            return Some(known.clone());
        }
        let op = c.node.function()?;
        let args = c.args.iter().map(|a| Some(self.term(a)?.term)).collect::<Option<Vec<_>>>()?;
        let (mut sizes, mut tys) = (vec![], vec![]);
        for child in &c.node.children {
            match &self.egraph[*child].data {
                Data::Size(s) => sizes.push(s.clone()),
                Data::Ty(t) => tys.push(t.clone()),
                Data::Fn(..) | Data::Broken => {}
            }
        }
        let term = Term::new(op.clone(), sizes, tys, args).ok()?;
        let class = self.egraph.lookup((*c.node).clone()).map(|class| self.egraph.find(class));
        let of = Of { term, class, _choice: c.clone() };
        self.known.insert(Rc::as_ptr(c), of.clone());
        Some(of)
    }

    /// Names the values of a choice and of its parts outside kernels by their classes. `before` is the name of what is applied
    /// before it, if anything is, and `whole` is the choice's term after that, [`Terms::without_stored`], as are all names' terms.
    /// Returns the name of `whole`. Chains are nested to the right.
    fn name_values(
        &mut self,
        choice: &Rc<Choice>,
        before: Option<&str>,
        whole: &Term,
        names: &mut HashMap<Term, String>,
    ) -> Result<String, TypeError> {
        let Some(Of { term, class, .. }) = self.term(choice) else { return Ok(String::new()) };
        let name = match (class, before) {
            (Some(class), None) => format!("class {class}"),
            (Some(class), Some(before)) => format!("class {class} after {before}"),
            (None, _) => whole.to_string(),
        };
        names.insert(whole.clone(), name.clone());
        match (term.op(), choice.args.as_slice(), term.args()) {
            (Op::Compose, [f, g], [outer, _]) => {
                let own = self.without_stored(outer)?;
                let rest = behind(whole, factors(&own));
                let rest = self.name_values(g, before, rest, names)?;
                if *outer.op() == Op::ToMem(Space::Global) {
                    self.name_values(f, Some(&rest), whole, names)?;
                } else {
                    self.name_values(f, None, &own, names)?;
                }
            }
            (Op::ToMem(Space::Global), [f], [stored]) if cost::computes(stored) => {
                self.name_values(f, before, whole, names)?;
            }
            (Op::ToMem(Space::Global), [f], [stored]) => {
                let own = self.without_stored(stored)?;
                let whole = match before {
                    Some(_) => Term::of_chain(&[own.chain(), behind(whole, 1).chain()].concat())?,
                    None => own,
                };
                self.name_values(f, before, &whole, names)?;
            }
            (Op::Fork | Op::Bimap | Op::Fold | Op::While, choices, terms) => {
                for (c, t) in choices.iter().zip(terms) {
                    let own = self.without_stored(t)?;
                    self.name_values(c, None, &own, names)?;
                }
            }
            _ => {}
        }
        Ok(name)
    }

    /// Returns a term without `toGlobal` around what its kernels compute: they store results in global memory in any case.
    fn without_stored(&mut self, t: &Term) -> Result<Term, TypeError> {
        if let Some(known) = self.without.get(t) {
            return Ok(known.clone());
        }
        let mut factors = vec![];
        for f in t.chain() {
            match f.op() {
                Op::ToMem(Space::Global) if cost::computes(&f.args()[0]) => {
                    factors.extend(self.without_stored(&f.args()[0])?.chain());
                }
                Op::Fork | Op::Bimap | Op::Fold | Op::While | Op::Cond => {
                    let args = f.args().iter().map(|a| self.without_stored(a));
                    factors.push(f.with_args(args.collect::<Result<Vec<_>, _>>()?)?);
                }
                _ => factors.push(f),
            }
        }
        let out = Term::of_chain(&factors)?;
        self.without.insert(t.clone(), out.clone());
        Ok(out)
    }
}

/// Returns the number of factors of a chain that is nested to the right.
fn factors(t: &Term) -> usize {
    let (mut count, mut rest) = (1, t);
    while *rest.op() == Op::Compose {
        (count, rest) = (count + 1, &rest.args()[1]);
    }
    count
}

/// Returns what a chain that is nested to the right applies before its last `count` factors.
fn behind(t: &Term, count: usize) -> &Term {
    let mut rest = t;
    for _ in 0..count {
        if *rest.op() == Op::Compose {
            rest = &rest.args()[1];
        }
    }
    rest
}
