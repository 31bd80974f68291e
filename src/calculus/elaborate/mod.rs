//! Elaboration: turns the typed surface core into a closed, point-free term.
//!
//! Sizes are translated and checked against their values ([`sizes`]). The program is translated into a
//! smaller core ([`enter`], [`intervals`], [`scan_ends`], [`selected`], [`networks`], [`recurrences`], [`elements`], [`hoist`], [`tables`], [`invariant`], [`partners`], [`products_out`],
//! [`interchange`], [`scan_fusion`]), maps side by side become one ([`beside`], [`inward`]), and bracket abstraction removes its variables ([`bracket`],
//! [`patterns`], [`leaf`], [`build`], [`lift`]). Then the term is brought into a normal form, for which the rewrite rules are
//! written: maps move behind views ([`natural`]), reductions of the same elements become one ([`together`]), batches of
//! composed products are cut ([`batches`]), rows are read once ([`rows_once`]), and views move out of nests of maps ([`nests`]). Operands of mixed products are converted ([`mixed`]). Programs with few rows have a
//! second form ([`apart`]), and so have products with few results of long rows ([`parts`]), reductions of long columns in maps ([`column_sums`]), convolutions and other contractions
//! ([`contractions`]), loops that fold ([`folds`]), products among other work ([`fission`]), also of rows that are computed ([`operand_rows`]), reductions in branches ([`branches`]), histograms of rows ([`flat`]), counting sorts with many buckets ([`digits`]), loops with long states in maps ([`loops_out`]), irregular operations of long rows ([`irregular`]), results of the same rows ([`beside`]), arrays that are cheap to compute again ([`again`]), scalars of rows ([`row_scalars`]), also of few, long ones ([`long_rows`]), results of states ([`states_apart`]), functions of columns ([`whole_rows`]), operands that are computed where they are read ([`on_read`]) or converted where they are multiplied ([`widened`]) and stages of large elements ([`distributed`]). Elaboration never evaluates a program,
//! never chooses how it runs, and knows nothing of rewriting. Forms that differ by rounding stand apart ([`approx`]).

mod again;
#[cfg(test)]
mod agreement;
mod ahead;
mod apart;
mod approx;
mod batches;
mod beside;
mod block;
mod bracket;
mod branches;
mod build;
mod by_sort;
mod capture;
mod choices;
mod column_sums;
mod columns;
mod common;
mod contractions;
mod copies;
mod core;
mod counting;
mod cut;
mod deep;
mod digits;
mod distributed;
mod elements;
mod enter;
mod epilogues;
mod fission;
mod flat;
mod folds;
mod group_loops;
mod hoist;
mod in_steps;
mod interchange;
mod intervals;
mod invariant;
mod inward;
mod irregular;
mod leaf;
mod leaves;
mod lift;
mod long_rows;
mod loops_out;
mod mixed;
mod natural;
mod nests;
mod networks;
mod on_read;
mod operand_rows;
mod outward;
mod pairs_apart;
mod partners;
mod parts;
mod passed_on;
mod patterns;
mod products_out;
mod pulled;
mod ranges;
mod recurrences;
mod row_names;
mod row_scalars;
mod row_sums;
mod rows_once;
mod same_pass;
mod scan_ends;
mod scan_fusion;
mod selected;
mod shared_rows;
mod shifts;
mod sides;
mod sizes;
mod states_apart;
mod stored;
mod tables;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod texts;
mod together;
mod unused;
mod views;
mod whole_rows;
mod widened;
mod windows;

use self::core::{Ex, Var};
use self::distributed::Cut;
use super::size::SizeEnv;
use super::term::{Term, TypeError};
use super::ty::Ty;
use crate::diag::{Code, Diagnostic, Failure, Label, Result, Span, on_own_stack};
use crate::lang::typed::Entry;
use crate::lang::types::Type;
use approx::Approx;
use beside::Scope;
use indexmap::{IndexMap, IndexSet};

/// A program as a term.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The entry's name.
    pub name: String,
    /// The term, from unit to the result.
    pub term: Term,
    /// Other forms of the program, where they may pay: with the reductions of rows apart, with long products of few
    /// results in parts, with contractions as products, with reductions in front of branches, with products in nests of their own, with histograms of
    /// elements in place of rows, with counting sorts by digits, with loops and irregular operations outside of maps, with results of the same rows side by side, with cheap arrays computed for each use, with the scalars of rows in arrays, with what is made of states behind scans, with functions of columns as functions of rows,
    /// with the stages of large elements apart, with the outer maps of deep nests together, with operands of products computed where they are read, or converted where they are multiplied.
    pub others: Vec<Term>,
    /// Terms that differ from it by rounding only, such as sums in another order. If there are any, they are a relaxed
    /// program's other forms in place of `others`: each of them is made like one of these.
    pub relaxed: Vec<Term>,
    /// Why other forms were left out that do not type-check: defects of elaboration.
    pub lost: Vec<String>,
    /// The value of every dimension in the term and the inputs' types. A sum such as `n + 2` is a
    /// dimension of its own.
    pub env: SizeEnv,
    /// The entry's parameters: name, type in the language, type in the calculus.
    pub inputs: Vec<(String, Type, Ty)>,
    /// The result's type in the language.
    pub result: Type,
    /// The result's type in the calculus.
    pub result_ty: Ty,
}

impl Program {
    /// Returns the term and what is equal to it.
    pub fn forms(&self) -> Vec<Term> {
        std::iter::once(&self.term).chain(&self.others).cloned().collect()
    }

    /// As [`Program::forms`]; if `relaxed`, the forms may differ from the term by rounding.
    pub fn forms_if(&self, relaxed: bool) -> Vec<Term> {
        if self.relaxed.is_empty() || !relaxed {
            return self.forms();
        }
        std::iter::once(&self.term).chain(&self.relaxed).cloned().collect()
    }
}

/// A step that gives another form of a body; `None` if the body has nothing to change.
type Step = fn(&Ex, &SizeEnv, &mut dyn FnMut() -> Var, &mut Approx) -> Option<Ex>;
type OutOfMaps = fn(&Ex, &SizeEnv, &mut dyn FnMut() -> Var) -> Option<Ex>;

/// The steps that lead to one other form, each from what the steps before it give.
const STEPS: [Step; 10] = [
    |e, _, fresh, _| shared_rows::in_nests(e, fresh),
    |e, env, fresh, _| branches::reductions_first(e, env, fresh),
    |e, _, fresh, approx| contractions::sums::apart(e, fresh, approx),
    |e, env, fresh, _| operand_rows::in_arrays(e, env, fresh),
    |e, env, fresh, _| products_out::with_epilogues(e, env, fresh),
    contractions::as_products,
    |e, env, fresh, _| {
        let ahead = fission::products_of_steps_apart(e, env, fresh)
            .and_then(|apart| ahead::again(&apart, env, fresh));
        ahead.or_else(|| fission::products_apart(e, env, fresh))
    },
    |e, env, fresh, _| products_out::in_one_product(e, env, fresh),
    |e, env, fresh, _| flat::histograms(e, env, fresh),
    |e, env, fresh, _| digits::sorts_by_digits(e, env, fresh),
];

/// Returns the closed term of an entry with the given values of its size parameters.
///
/// # Errors
/// When a size has no value or an impossible one (E0308, E0309, E0303), or the program uses a construct that
/// has no closed form yet (E0701). Labels have spans but no source; the caller knows the source.
pub fn elaborate(entry: &Entry, values: &IndexMap<String, u64>) -> Result<Program> {
    // A program is as deep as its iterates are long, so use a stack of its own.
    on_own_stack(|| elaborate_here(entry, values))?
}

fn elaborate_here(entry: &Entry, values: &IndexMap<String, u64>) -> Result<Program> {
    let mut sizes = sizes::Sizes::new(values);
    for name in &entry.sizes {
        sizes.size(&crate::lang::size::Size::var(name), entry.span)?;
    }
    for (whole, part, span) in &entry.divides {
        let of_entry =
            |s: &crate::lang::size::Size| s.variables().iter().all(|v| entry.sizes.contains(v));
        // Conditions on the lengths inside an iterate are checked when its steps are unrolled.
        if of_entry(whole) && of_entry(part) {
            sizes.check_divides(whole, part, *span)?;
        }
    }
    let mut enter = enter::Enter::new(&mut sizes);
    let mut inputs = vec![];
    for p in &entry.params {
        let ty = enter.input(p)?;
        inputs.push((p.name.clone(), p.ty.clone(), ty));
    }
    let body = enter.expr(&entry.body)?;
    let short = enter.with_more_short(&entry.body)?;
    let mut next = enter.names();
    let mut fresh = || {
        next += 1;
        Var(next - 1)
    };
    let body = intervals::counted(body, &mut fresh);
    let short = short.map(|e| intervals::counted(e, &mut fresh));
    let mut exact = Approx::new(false);
    let bodies = bodies(&body, short.as_ref(), &mut sizes, &mut exact, &mut fresh);
    let relaxed = match exact.was_wanted() {
        true => {
            let mut approx = Approx::new(true);
            self::bodies(&body, short.as_ref(), &mut sizes, &mut approx, &mut fresh)
        }
        false => vec![],
    };
    let result_ty = sizes.ty(&entry.body.ty, entry.body.span)?;
    let mut env = sizes.into_env();
    let mut lost = vec![];
    let mut others = terms(bodies, &mut env, &mut lost, &mut fresh)?;
    let term = others.shift_remove_index(0).expect("invariant: a program has a first form");
    let relaxed = match relaxed.is_empty() {
        true => IndexSet::new(),
        false => terms(relaxed, &mut env, &mut lost, &mut fresh)?,
    };
    if term.ty().cod != result_ty {
        let text = format!("the term gives `{}`, the program `{result_ty}`", term.ty().cod);
        return Err(inner_problem(&text, entry.body.span));
    }
    Ok(Program {
        name: entry.name.clone(),
        term,
        others: others.into_iter().collect(),
        relaxed: relaxed.into_iter().collect(),
        lost,
        env,
        inputs,
        result: entry.body.ty.clone(),
        result_ty,
    })
}

/// Returns the forms of a body, the one that is nearest to it first. Some of them may differ from it by rounding, if `approx` allows it.
fn bodies(
    body: &Ex,
    short: Option<&Ex>,
    sizes: &mut sizes::Sizes,
    approx: &mut Approx,
    fresh: &mut dyn FnMut() -> Var,
) -> Vec<Ex> {
    let folded = folds::as_reductions(short.unwrap_or(body), sizes.env(), approx, fresh);
    let mut prepared = |body: Ex| {
        let body = scan_ends::of_chunks(body, sizes.env(), fresh);
        let body = selected::of_sorted(body, sizes.env_mut(), fresh);
        let body = common::computed_once(body, fresh);
        let body = same_pass::together(body, sizes.env(), fresh);
        let body = networks::of_short_sorts(body, sizes.env(), fresh);
        let body = recurrences::as_scans(body, sizes.env_mut(), fresh);
        let body = ahead::of_loops(body, sizes.env(), fresh);
        let body = windows::by_slide(body, sizes.env_mut(), fresh);
        let body = choices::by_element(in_steps::where_read(body, fresh), sizes.env(), fresh);
        let body = elements::by_element(body, sizes.env(), fresh);
        let body = tables::tables(hoist::hoist(body, fresh), sizes.env(), fresh);
        let body = partners::with_rows(invariant::rows(body, fresh), fresh);
        match products_out::out_of_batches(&body, sizes.env(), fresh) {
            Some(body) => ahead::again(&body, sizes.env(), fresh).unwrap_or(body),
            None => body,
        }
    };
    let body = prepared(body.clone());
    let mut other = folded.or_else(|| short.cloned()).map(prepared);
    let env = sizes.env();
    for step in STEPS {
        let changed = step(other.as_ref().unwrap_or(&body), env, fresh, approx);
        other = changed.or(other);
    }
    let mut bodies: Vec<Ex> = std::iter::once(body).chain(other).collect();
    let outside: [OutOfMaps; 2] = [loops_out::out_of_maps, irregular::out_of_maps];
    for step in outside {
        let next = step(&bodies[bodies.len() - 1], env, fresh);
        bodies.extend(next);
    }
    let last = bodies.len() - 1;
    let again = again::computed_again(&bodies[last], env, fresh);
    let sorted = by_sort::histograms(&bodies[last], env, fresh);
    let whole = whole_rows::columns_at_once(&bodies[last], env, fresh);
    let scalars = row_scalars::in_arrays(&bodies[last], env, fresh);
    let long = long_rows::scalars_in_arrays(&bodies[last], env, fresh);
    let long = long.map(|e| row_scalars::in_arrays(&e, env, fresh).unwrap_or(e));
    let states = states_apart::results_apart(&bodies[last], fresh);
    let pulled = pulled::by_place(&bodies[last], env, fresh);
    bodies.extend(pulled);
    bodies.extend(
        again.into_iter().chain(sorted).chain(whole).chain(scalars).chain(long).chain(states),
    );
    bodies
}

/// Returns the terms of bodies, without duplicates: the normal form of the first one first.
fn terms(
    bodies: Vec<Ex>,
    env: &mut SizeEnv,
    lost: &mut Vec<String>,
    fresh: &mut dyn FnMut() -> Var,
) -> Result<IndexSet<Term>> {
    let (mut forms, mut apart, mut rows): (Vec<Term>, Vec<Term>, Option<Ex>) =
        (vec![], vec![], None);
    for mut body in bodies {
        unused::dropped(&mut body);
        let body = scan_fusion::fused(interchange::interchange(body, fresh), fresh);
        let mut one = body.clone();
        let changed = beside::together(&mut one, Scope::Elements, env, fresh);
        let made = forms_of(&body, env, fresh);
        let Some(mut terms) = kept(made, forms.is_empty(), lost)? else { continue };
        // A form that differs from another one only in what is put together is none.
        if changed && apart.contains(&terms[0]) {
            continue;
        }
        apart.push(terms[0].clone());
        if changed {
            let made = forms_of(&one, env, fresh);
            terms = kept(made, forms.is_empty(), lost)?.unwrap_or(terms);
        }
        forms.append(&mut terms);
        rows.get_or_insert(one);
    }
    let mut rows = rows.expect("invariant: a program has a first form");
    if beside::together(&mut rows, Scope::Rows, env, fresh) {
        let made = forms_of(&rows, env, fresh);
        forms.extend(kept(made, false, lost)?.into_iter().flatten());
    }
    Ok(forms.into_iter().collect())
}

/// Returns the terms of a form. One that does not type-check is left out, with the reason in `lost`, unless it is the first: the
/// program compiles without it. In tests it is an error.
fn kept(made: Result<Vec<Term>>, first: bool, lost: &mut Vec<String>) -> Result<Option<Vec<Term>>> {
    match made {
        Err(Failure(ds)) if !first && !cfg!(debug_assertions) => {
            lost.extend(ds.into_iter().map(|d| d.message));
            Ok(None)
        }
        made => made.map(Some),
    }
}

/// Returns the terms of a body: its normal form first.
fn forms_of(body: &Ex, env: &mut SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Result<Vec<Term>> {
    let term = bracket::Bracket::new(fresh().0).term(body, &core::Layout::Unit)?;
    normal_forms(&term, env).map_err(|e| inner_problem(&e.0, body.span))
}

/// Returns the normal form of a term, and its forms for few rows, for long products, for scans of long columns,
/// for loops with a small state and for deep nests.
fn normal_forms(term: &Term, env: &mut SizeEnv) -> std::result::Result<Vec<Term>, TypeError> {
    let term = row_sums::flat(term)
        .and_then(|t| natural::views_first(&t))
        .and_then(|t| rows_once::in_batches(&t))
        .and_then(|t| together::reductions_together(&t))
        .and_then(|t| natural::views_first(&t))
        .and_then(|t| batches::cut(&t, env))
        .and_then(|t| nests::perfect(&t))
        .and_then(|t| leaves::together(&t))
        .and_then(|t| passed_on::not_stored(&t, env))
        .and_then(|t| row_names::rows_named(&t, env))
        .and_then(copies::copied)?;
    let widened = widened::operands(&term)?;
    let converted = widened.is_some().then(|| term.clone());
    let term = mixed::converted(&widened.unwrap_or(term), env)?;
    let apart = apart::reductions_apart(&term, env)?;
    let whole = apart.as_ref().unwrap_or(&term);
    let on_read = on_read::operands(whole, on_read::FEW, env)?;
    let on_read_parts = match &on_read {
        Some(on_read) => parts::turned_in_parts(on_read, env)?,
        None => None,
    };
    // What meets one tile of rows is computed once in any case.
    let stored =
        on_read_parts.is_none() || on_read != on_read::operands(whole, on_read::FEWEST, env)?;
    let parts = if stored { parts::turned_in_parts(whole, env)? } else { None };
    let columns = match columns::scans_in_parts(&term, env)? {
        Some(columns) => parts::products_in_parts(&columns, env)?.or(Some(columns)),
        None => None,
    };
    let column_sums = column_sums::in_parts(whole, env)?;
    let in_groups = group_loops::in_groups(&term, env)?;
    let by_rows = row_sums::by_rows(&term, env)?;
    let by_rows = apart::reductions_apart(&by_rows, env)?.unwrap_or(by_rows);
    let distributed = |t: &Term, cut| match distributed::stages_apart(t, cut, env)? {
        Some(stages) => nests::rows(&nests::perfect(&natural::views_first(&stages)?)?).map(Some),
        None => Ok(None),
    };
    let (passed, loops) = match distributed(&by_rows, Cut::Passed)? {
        None => (None, distributed(&by_rows, Cut::Loops)?),
        stages => (stages, None),
    };
    let computed = distributed(&term, Cut::Computed)?.filter(|t| Some(t) != passed.as_ref());
    let stages = passed.as_ref().or(apart.as_ref()).unwrap_or(&term);
    let stored = stored::stages_stored(stages, env)?;
    let computed_stored = match &computed {
        Some(stages) => stored::stages_stored(stages, env)?,
        None => None,
    };
    let pairs = pairs_apart::results_in_front(&term, env)?;
    let deep = deep::outer_maps_together(&term)?;
    let others = [
        apart,
        parts,
        on_read,
        on_read_parts,
        converted,
        columns,
        column_sums,
        in_groups,
        passed,
        loops,
        stored,
        computed,
        computed_stored,
        pairs,
        deep,
    ];
    let others = others.into_iter().flatten();
    Ok(std::iter::once(term).chain(others).collect())
}

/// An error at a place.
fn problem(code: Code, message: impl Into<String>, span: Span) -> Diagnostic {
    let mut out = Diagnostic::error(code, message);
    out.labels.push(Label { span, text: String::new(), primary: true });
    out
}

/// An internal error at a place.
fn inner_problem(message: &str, span: Span) -> Failure {
    problem(Code::Internal, message, span).into()
}
