//! Scans of long columns in parts. `map (scan op z) . transpose` becomes `transpose . take h . join . map (transpose . map (map op .
//! distl . bimap id (scan op z)) . zip . bimap id transpose) . zip . fork starts id . split m . padLast (p*m)`, where `starts` scans
//! the totals of the parts: `transpose . map (scanExclusive op z) . transpose . map (map (reduce op z) . transpose)`.
//!
//! The elements of a column are far apart, so neighbouring work-items take neighbouring columns. If there are fewer columns than a
//! device has work-items in flight, a work-item for each part of each column hides the time of the loads. The rules for
//! scans in parts cut each row for itself, and store nothing between kernels. The form is inserted into the e-graph as an
//! equal of the whole scans.

use super::build::{self, Built};
use super::parts::dimension;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::term::{MapKind, Op, ReduceKind, ScanKind, Term, TypeError};
use crate::calculus::ty::Ty;

/// Columns that are enough for a device.
const ENOUGH: u64 = 1 << 17;

/// The least length of a column that is cut.
const LONG: u64 = 1024;

/// The length of a part: a work-item loads this many elements one after the other.
const PART: u64 = 64;

/// Returns the term with its scans of long columns in parts, if it has any. The number of parts and their length become
/// dimensions of their own, whose values are added to the environment.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn scans_in_parts(t: &Term, env: &mut SizeEnv) -> Result<Option<Term>, TypeError> {
    let parted = within(t, env)?;
    Ok((parted != *t).then_some(parted))
}

fn within(t: &Term, env: &mut SizeEnv) -> Built {
    let mut done = Term::id(&t.ty().dom);
    for f in t.chain().into_iter().rev() {
        done = match f.op() {
            Op::Map(MapKind::Plain) => match in_parts(&f, &done, env)? {
                Some(parted) => parted,
                None => build::compose(&f, &done)?,
            },
            Op::Fork | Op::Bimap | Op::Fold | Op::While => {
                let f = build::each_arg(&f, |a| within(a, env))?;
                build::compose(&f, &done)?
            }
            _ => build::compose(&f, &done)?,
        };
    }
    Ok(done)
}

/// What a map computes of each column: `then . map after . scan . map of . first`.
#[derive(Clone)]
struct Columns {
    then: Vec<Term>,
    after: Vec<Term>,
    scan: Term,
    of: Vec<Term>,
    first: Vec<Term>,
}

impl Columns {
    /// Returns the parts of a map that follows `transpose`.
    fn of(map: &Term, before: &Term) -> Option<Columns> {
        if (map.op(), before.op()) != (&Op::Map(MapKind::Plain), &Op::Transpose) {
            return None;
        }
        let chain = map.args()[0].chain();
        let is_scan = |f: &Term| matches!(f.op(), Op::Scan(ScanKind::Assoc | ScanKind::Exclusive));
        let (results, behind) = chain.split_at(chain.iter().position(is_scan)?);
        let (scan, elements) = behind.split_first()?;
        let elementwise = |f: &&Term| {
            let function = f.args().first().map(Term::chain).unwrap_or_default();
            let scalar = function.iter().all(|f| matches!(f.op(), Op::Scalar(_)));
            *f.op() == Op::Map(MapKind::Plain) && scalar
        };
        let functions = |maps: &[Term]| maps.iter().map(|f| f.args()[0].clone()).collect();
        let after = results.iter().rev().take_while(elementwise).count();
        let (then, after) = results.split_at(results.len() - after);
        let of = elements.iter().take_while(elementwise).count();
        let (of, first) = elements.split_at(of);
        Some(Columns {
            then: then.to_vec(),
            after: functions(after),
            scan: scan.clone(),
            of: functions(of),
            first: first.to_vec(),
        })
    }

    /// Returns the rows of which a map over `n` columns of `before` scans the columns; `before` ends with `transpose`.
    fn rows(&self, n: &Size, before: &Term) -> Built {
        match self.first.as_slice() {
            [] => build::rest(before),
            first => build::view(Op::Transpose, &build::mapped(n, first, before)?),
        }
    }

    /// Returns the results for the columns of what `rows` computes, as rows and in parts; `None` if parts do not pay.
    fn in_parts(&self, rows: &Term, env: &mut SizeEnv) -> Result<Option<Term>, TypeError> {
        let (h, row) = build::elements(&rows.ty().cod)?;
        let (columns, element) = build::elements(&row)?;
        let (Ok(h), Ok(columns)) = (h.eval(env), columns.eval(env)) else { return Ok(None) };
        if h < LONG || columns > ENOUGH || element.has_array() {
            return Ok(None);
        }
        build::compose(&self.of_rows(&rows.ty().cod, env)?, rows).map(Some)
    }

    /// Returns the results for the columns of an array of rows. The totals of long columns are scanned likewise.
    fn of_rows(&self, rows: &Ty, env: &mut SizeEnv) -> Built {
        let each = |n: &Size, f: &Term| build::map(MapKind::Plain, n, f);
        let (h, row) = build::elements(rows)?;
        let (columns, _) = build::elements(&row)?;
        let Some(length) = h.eval(env).ok().filter(|h| *h >= LONG) else {
            let turned = Term::on(Op::Transpose, &[], rows, vec![])?;
            let scan = self.of_column(&build::elements(&turned.ty().cod)?.1, self.scan.op())?;
            let scanned = build::compose(&each(&columns, &scan)?, &turned)?;
            return build::view(Op::Transpose, &scanned);
        };
        let divides = |m: &u64| length.is_multiple_of(*m);
        let near = (PART / 2..=2 * PART).filter(divides).min_by_key(|m| m.abs_diff(PART));
        let part = near.unwrap_or(PART);
        let parts = dimension(&h, "parts", length.div_ceil(part), env);
        let part = dimension(&h, "part", part, env);
        let padded = part.mul(&parts);
        let cut = Term::on(Op::PadLast, std::slice::from_ref(&padded), rows, vec![])?;
        let cut = build::apply(Op::Split, std::slice::from_ref(&part), vec![], &cut)?;
        let turn = Term::on(Op::Transpose, &[], &build::elements(&cut.ty().cod)?.1, vec![])?;
        let column = build::elements(&turn.ty().cod)?.1;
        let plain = Columns { after: vec![], ..self.clone() };
        let total = plain.of_column(&column, &Op::Reduce(ReduceKind::Assoc))?;
        let totals = build::compose(&each(&columns, &total)?, &turn)?;
        let totals = build::compose(&each(&parts, &totals)?, &cut)?;
        let before = Columns {
            then: vec![],
            after: vec![],
            scan: Term::on(
                Op::Scan(ScanKind::Exclusive),
                &[],
                &Ty::array(&parts, &total.ty().cod),
                self.scan.args().to_vec(),
            )?,
            of: vec![],
            first: vec![],
        };
        let starts = build::compose(&before.of_rows(&totals.ty().cod, env)?, &totals)?;
        // Each part of a column is scanned from the total of the parts before it.
        let start = &total.ty().cod;
        let scan = plain.of_column(&column, self.scan.op())?;
        let of_part = build::view(Op::Distl, &build::bimap(&Term::id(start), &scan)?)?;
        let from = self
            .after
            .iter()
            .rev()
            .try_fold(self.scan.args()[0].clone(), |f, g| build::compose(g, &f))?;
        let of_part = build::compose(&each(&part, &from)?, &of_part)?;
        let of_block = build::bimap(&Term::id(&Ty::array(&columns, start)), &turn)?;
        let of_block = build::view(Op::Zip, &of_block)?;
        let of_block = build::compose(&each(&columns, &of_part)?, &of_block)?;
        let of_block = build::view(Op::Transpose, &of_block)?;
        let all = build::view(Op::Zip, &build::fork(&starts, &cut)?)?;
        let all = build::view(Op::Join, &build::compose(&each(&parts, &of_block)?, &all)?)?;
        build::apply(Op::Take, &[h], vec![], &all)
    }

    /// Returns `map after . op . map of` for a column of this type, where `op` scans or reduces.
    fn of_column(&self, column: &Ty, op: &Op) -> Built {
        let (n, _) = build::elements(column)?;
        let of = self.of.iter().rev().try_fold(Term::id(column), |done, f| {
            build::compose(&build::map(MapKind::Plain, &n, f)?, &done)
        })?;
        let done = build::apply(op.clone(), &[], self.scan.args().to_vec(), &of)?;
        self.after
            .iter()
            .rev()
            .try_fold(done, |done, f| build::compose(&build::map(MapKind::Plain, &n, f)?, &done))
    }
}

/// Returns what a map computes of `before` with its scans of columns in parts: a map over columns, or over matrices whose
/// columns are scanned.
fn in_parts(f: &Term, before: &Term, env: &mut SizeEnv) -> Result<Option<Term>, TypeError> {
    let n = &f.sizes()[0];
    if let Some(columns) = Columns::of(f, &before.chain()[0]) {
        let rows = columns.rows(n, before)?;
        let Some(scanned) = columns.in_parts(&rows, env)? else { return Ok(None) };
        let scanned = build::view(Op::Transpose, &scanned)?;
        return build::mapped(n, &columns.then, &scanned).map(Some);
    }
    // The matrices may be transposed by a map of its own.
    let last = &before.chain()[0];
    let (inner, before) = match last.op() {
        Op::Map(MapKind::Plain) => {
            ([f.args()[0].chain(), last.args()[0].chain()].concat(), build::rest(before)?)
        }
        _ => (f.args()[0].chain(), before.clone()),
    };
    let mut pairs = inner.windows(2).enumerate();
    let found = pairs.find_map(|(at, two)| Some((at, Columns::of(&two[0], &two[1])?)));
    let Some((at, columns)) = found else { return Ok(None) };
    let w = &inner[at].sizes()[0];
    let matrix = columns.rows(w, &Term::of_chain(&inner[at + 1..])?)?.chain();
    // The columns of all matrices are beside each other.
    let all = build::view(Op::Transpose, &build::mapped(n, &matrix, &before)?)?;
    let (h, row) = build::elements(&all.ty().cod)?;
    let rows = build::mapped(&h, &[Term::on(Op::Join, &[], &row, vec![])?], &all)?;
    let Some(scanned) = columns.in_parts(&rows, env)? else { return Ok(None) };
    let scanned = build::view(Op::Transpose, &scanned)?;
    let scanned = build::apply(Op::Split, std::slice::from_ref(w), vec![], &scanned)?;
    let results = build::elements(&scanned.ty().cod)?.1;
    let then = build::mapped(w, &columns.then, &Term::id(&results))?.chain();
    build::mapped(n, &[&inner[..at], &then[..]].concat(), &scanned).map(Some)
}
