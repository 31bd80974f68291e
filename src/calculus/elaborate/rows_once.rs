//! Rows and what a map computes of them are one map, in the functions of maps.
//!
//! Steps that move parts of a function elsewhere may leave `map f . zip . fork id (map (reduce max z))`: the maximum of each row of a matrix, and
//! then a function of the row and its maximum. In a batch, `map (f . fork id (reduce max z))` is better: a row is read once and kept. Outside of
//! maps, a form may have reductions of rows apart on purpose.

use super::build::{self, Built};
use crate::calculus::term::{MapKind, Op, Term, TypeError};

/// Returns the term in which such maps are one, in the functions of maps.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn in_batches(t: &Term) -> Result<Term, TypeError> {
    within(t, false)
}

fn within(t: &Term, batch: bool) -> Built {
    let (mut done, mut made) = (Term::id(&t.ty().dom), false);
    for f in t.chain().into_iter().rev() {
        let is_map = *f.op() == Op::Map(MapKind::Plain);
        let f = build::each_arg(&f, |a| within(a, batch || is_map))?;
        let rows = if batch && *f.op() == Op::Zip { of_rows(&done)? } else { None };
        if let Some(rows) = rows {
            (done, made) = (rows, true);
            continue;
        }
        done = match done.op() {
            // What follows takes the row and what was computed of it.
            Op::Compose | Op::Map(_) if made && is_map => {
                let first = done.chain().swap_remove(0);
                let both = build::compose(&f.args()[0], &first.args()[0])?;
                let map = build::map(MapKind::Plain, &f.sizes()[0], &both)?;
                build::compose(&map, &build::rest(&done)?)?
            }
            _ => build::compose(&f, &done)?,
        };
        made = false;
    }
    Ok(done)
}

/// Returns what ends with maps of the same rows side by side as one map, which gives pairs.
fn of_rows(sides: &Term) -> Result<Option<Term>, TypeError> {
    let chain = sides.chain();
    let [fork, before @ ..] = &chain[..] else { return Ok(None) };
    if *fork.op() != Op::Fork {
        return Ok(None);
    }
    let of = |side: &Term| -> Result<(Term, Term), TypeError> {
        let chain = side.chain();
        let (_, row) = build::elements(&side.ty().cod)?;
        let maps = chain.iter().take_while(|f| *f.op() == Op::Map(MapKind::Plain)).count();
        let (maps, rest) = chain.split_at(maps);
        let rest = match rest {
            [] => Term::id(&side.ty().dom),
            rest => Term::of_chain(rest)?,
        };
        let functions: Vec<Term> = maps.iter().map(|f| f.args()[0].clone()).collect();
        let function = match &functions[..] {
            [] => Term::id(&row),
            functions => Term::of_chain(functions)?.flat()?,
        };
        Ok((function, rest))
    };
    let ((f, a), (g, b)) = (of(&fork.args()[0])?, of(&fork.args()[1])?);
    let reduces = build::reduces(&f) || build::reduces(&g);
    if a != b || !reduces {
        return Ok(None);
    }
    let (n, _) = build::elements(&a.ty().cod)?;
    let rows = build::map(MapKind::Plain, &n, &build::fork(&f, &g)?)?;
    let rows = build::compose(&rows, &a)?;
    match before {
        [] => Ok(Some(rows)),
        before => build::compose(&rows, &Term::of_chain(before)?).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::super::texts::elaborated;

    /// Returns the forms of attention whose second product has this element.
    fn attention(element: &str) -> Vec<String> {
        let text = format!(
            "entry f [h][s][d] (q: [h][s][d]f32) (k: [h][s][d]f32) (v: [h][s][d]f32) : [h][s][d]f32 =
              map3 (\\q k v ->
                map (\\r ->
                  let t = map (\\c -> reduce (+) 0 (map2 (*) r c)) k
                  let m = reduce max f32.lowest t
                  let e = map (\\x -> exp (x - m)) t
                  let z = reduce (+) 0 e in
                  map (\\c -> {element}) (transpose v)) q) q k v"
        );
        elaborated(300, &text).forms().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rows_of_a_product_are_read_once() {
        for element in
            ["reduce (+) 0 (map2 (\\p x -> p / z * x) e c)", "reduce (+) 0 (map2 (*) e c) / z"]
        {
            let forms = attention(element);
            let once = |form: &String| {
                form.matches("cross").count() == 2 && !form.contains("fork id (map (reduce max")
            };
            assert!(forms.iter().any(once), "{forms:#?}");
        }
    }

    #[test]
    fn products_are_computed_once() {
        // The rows of the second product and their sums are read by two maps.
        for form in attention("reduce (+) 0 (map2 (*) e c) / z") {
            assert!(form.matches("cross").count() <= 2, "{form}");
        }
    }
}
