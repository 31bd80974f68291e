//! Moves maps behind the views that follow them: `reverse . map f` becomes `map f . reverse` (naturality).
//!
//! Then the map meets the next map, and the two become one kernel without an array between them; and only the elements that
//! a view keeps are computed. Likewise,
//!
//! - what is computed of each row moves behind `cross`, if it is cheap: a loop over the row's partners computes it once;
//! - what is computed of the elements of one array moves behind its zip with another, if it is cheap;
//! - what a zip takes from the components of a pair comes in the order of the pair (`sides`), which is how the rules for
//!   products are written;
//! - a sequential reduction or scan of rows, element by element, becomes one of each column;
//! - windows of columns become windows of rows: neighbouring work-items then go through a row together.
//!
//! Each step is right in one direction, so this is done once, before rewriting: as rules, both forms of a reduction's
//! argument would be rewritten in the e-graph.

use super::{build, sides};
use crate::calculus::size::Size;
use crate::calculus::term::{MapKind, Op, ReduceKind, Term, TypeError};

/// Returns the term with its maps behind views.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn views_first(t: &Term) -> Result<Term, TypeError> {
    let mut done = vec![];
    for f in t.chain().into_iter().rev() {
        push(build::each_arg(&f, views_first)?, &mut done)?;
    }
    done.reverse();
    Term::of_chain(&done)
}

/// Adds a factor to a chain, given innermost first.
fn push(f: Term, chain: &mut Vec<Term>) -> Result<(), TypeError> {
    if let Some(factors) = columns(&f)? {
        return factors.into_iter().try_for_each(|t| push(t, chain));
    }
    if let Some((map, fork)) = sides::in_order(&f, chain)? {
        let zip = Term::on(Op::Zip, &[], &fork.ty().cod, vec![])?;
        chain.truncate(chain.len() - 2);
        chain.extend([fork, zip, map]);
        return Ok(());
    }
    if let [.., sides, zip] = &chain[..]
        && (f.op(), zip.op()) == (&Op::Map(MapKind::Plain), &Op::Zip)
        && matches!(sides.op(), Op::Fork | Op::Bimap)
        && let Some(factors) = behind_zip(zip, sides, true)?
    {
        chain.truncate(chain.len() - 2);
        chain.extend(factors);
    }
    if let Some((rows, map)) = views_of_rows(&f, chain)? {
        let cross = chain.pop();
        push(rows, chain)?;
        let (Some(cross), Some(fork)) = (cross, chain.last()) else { return Ok(()) };
        let cross = Term::on(cross.op().clone(), &[], &fork.ty().cod, vec![])?;
        push(cross, chain)?;
        return push(map, chain);
    }
    if let Some(map) = of_rows(&f, chain)? {
        chain.pop();
        chain.push(map);
        return Ok(());
    }
    if let Some(factors) = every_few(&f, chain)? {
        chain.truncate(chain.len() - 2);
        return factors.into_iter().try_for_each(|t| push(t, chain));
    }
    if let Some(factors) = windows_of_columns(&f, chain)? {
        chain.pop();
        return factors.into_iter().try_for_each(|t| push(t, chain));
    }
    let swapped = match chain.last() {
        Some(last) => swapped(&f, last)?,
        None => None,
    };
    let Some(factors) = swapped else {
        chain.push(f);
        return Ok(());
    };
    chain.pop();
    factors.into_iter().filter(|t| *t.op() != Op::Id).try_for_each(|t| push(t, chain))
}

/// Returns what a map and `join . slide 1 s` behind it become, innermost first: the map of every `s`-th element.
fn every_few(join: &Term, chain: &[Term]) -> Result<Option<[Term; 3]>, TypeError> {
    let [.., map, slide] = chain else { return Ok(None) };
    let (Op::Join, Op::Slide, [w, s, _, m]) = (join.op(), slide.op(), slide.sizes()) else {
        return Ok(None);
    };
    if *map.op() != Op::Map(MapKind::Plain) || w.as_constant() != Some(1) {
        return Ok(None);
    }
    let slide = Term::on(Op::Slide, &[w.clone(), s.clone(), m.clone()], &map.ty().dom, vec![])?;
    let join = Term::on(Op::Join, &[], &slide.ty().cod, vec![])?;
    let map = Term::on(Op::Map(MapKind::Plain), &[], &join.ty().cod, map.args().to_vec())?;
    Ok(Some([slide, join, map]))
}

/// Returns what `map (map f . slide w s . v) . transpose` becomes, innermost first, where `v` are views that only arrange
/// the elements of a column: `transpose . map (map f) . map transpose . slide w s . v`.
fn windows_of_columns(map: &Term, chain: &[Term]) -> Result<Option<Vec<Term>>, TypeError> {
    let Some(transpose) = chain.last().filter(|t| *t.op() == Op::Transpose) else {
        return Ok(None);
    };
    let plain = |t: &Term| *t.op() == Op::Map(MapKind::Plain);
    let arranges = |t: &Term| {
        use crate::lang::typed::PadMode::{Clamp, Mirror, Wrap};
        let arranged = [Op::Slide, Op::Take, Op::Drop, Op::Reverse, Op::Rotate];
        arranged.contains(t.op()) || [Clamp, Wrap, Mirror].map(Op::Pad).contains(t.op())
    };
    if !plain(map) {
        return Ok(None);
    }
    let column = map.args()[0].chain();
    let maps = column.iter().take_while(|t| plain(t)).count();
    let (maps, views) = column.split_at(maps);
    let slides = views.iter().filter(|t| *t.op() == Op::Slide).count();
    if maps.is_empty() || slides != 1 || !views.iter().all(arranges) {
        return Ok(None);
    }
    let mut out = vec![];
    let mut ty = transpose.ty().dom.clone();
    for view in views.iter().rev() {
        let written = match (view.op(), view.sizes()) {
            (Op::Slide, [w, s, _, m]) => vec![w.clone(), s.clone(), m.clone()],
            (Op::Pad(_), [l, _, m]) => vec![l.clone(), m.clone()],
            (Op::Reverse, _) => vec![],
            (_, sizes) => sizes[..1].to_vec(),
        };
        let view = Term::on(view.op().clone(), &written, &ty, vec![])?;
        ty = view.ty().cod.clone();
        out.push(view);
    }
    let (rows, windows) = build::elements(&ty)?;
    let turn = Term::on(Op::Transpose, &[], &windows, vec![])?;
    out.push(build::map(MapKind::Plain, &rows, &turn)?);
    let each: Vec<Term> = maps.iter().map(|t| t.args()[0].clone()).collect();
    let row = build::map(MapKind::Plain, &map.sizes()[0], &Term::of_chain(&each)?)?;
    out.push(build::map(MapKind::Plain, &rows, &row)?);
    let back = Term::on(Op::Transpose, &[], &out[out.len() - 1].ty().cod, vec![])?;
    out.push(back);
    Ok(Some(out))
}

/// Returns what a view and the factor before it become, innermost first; `None` if nothing moves.
fn swapped(view: &Term, before: &Term) -> Result<Option<Vec<Term>>, TypeError> {
    let again = |after: &Term, written: &[Size]| {
        Term::on(view.op().clone(), written, &after.ty().cod, vec![])
    };
    let mapped = |f: &Term, view: &Term| {
        Term::on(Op::Map(MapKind::Plain), &[], &view.ty().cod, vec![f.clone()])
    };
    match (view.op(), before.op()) {
        (Op::Reverse | Op::Rotate | Op::Take | Op::Drop, Op::Map(MapKind::Plain)) => {
            let written = if *view.op() == Op::Reverse { &[][..] } else { &view.sizes()[..1] };
            let view = again(&Term::id(&before.ty().dom), written)?;
            let map = mapped(&before.args()[0], &view)?;
            Ok(Some(vec![view, map]))
        }
        (Op::Join, Op::Map(MapKind::Plain)) => {
            let (inner, rest) = first(&before.args()[0])?;
            // The map of the results of a row's reduction stays with the row, and so do reductions of pairs of rows.
            let stays = build::reduces(&rest) || build::reduces(&inner);
            if *inner.op() != Op::Map(MapKind::Plain) || stays {
                return Ok(None);
            }
            let rest = match rest.op() {
                Op::Id => Term::id(&before.ty().dom),
                _ => Term::on(Op::Map(MapKind::Plain), &[], &before.ty().dom, vec![rest])?,
            };
            let view = again(&rest, &[])?;
            let map = mapped(&inner.args()[0], &view)?;
            Ok(Some(vec![rest, view, map]))
        }
        (Op::Index | Op::Gather, Op::Fork | Op::Bimap) => {
            let (map, rest) = first(&before.args()[0])?;
            // Gathered elements may be more than there are: what is dear is computed before.
            let cheap = |f: &Term| matches!(f.op(), Op::Scalar(f) if !f.body.has_loop());
            let moves = *map.op() == Op::Map(MapKind::Plain)
                && (*view.op() == Op::Index || map.args()[0].chain().iter().all(cheap));
            if !moves {
                return Ok(None);
            }
            let args = vec![rest, before.args()[1].clone()];
            let before = Term::on(before.op().clone(), &[], &before.ty().dom, args)?;
            let view = again(&before, &[])?;
            let f = match view.op() {
                Op::Index => map.args()[0].clone(),
                _ => mapped(&map.args()[0], &view)?,
            };
            Ok(Some(vec![before, view, f]))
        }
        (Op::Zip, Op::Fork | Op::Bimap) => behind_zip(view, before, false),
        (Op::Cross, Op::Fork) => {
            let (map, rows) = first(&before.args()[0])?;
            let partners = &before.args()[1];
            // A tile of rows that meet rows is copied: it then has what is computed.
            let scalars = build::elements(&partners.ty().cod)?.1.is_scalar();
            let moves = |f: &Term| is_cheap(f) || scalars && is_cheap_of_places(f);
            if *map.op() != Op::Map(MapKind::Plain) || !moves(&map.args()[0]) {
                return Ok(None);
            }
            let f = &map.args()[0];
            let fork = Term::new(Op::Fork, vec![], vec![], vec![rows, partners.clone()])?;
            let cross = again(&fork, &[])?;
            let (_, partner) = build::elements(&partners.ty().cod)?;
            let both = build::bimap(f, &Term::id(&partner))?;
            let (_, row) = build::elements(&cross.ty().cod)?;
            let inner = Term::on(Op::Map(MapKind::Plain), &[], &row, vec![both])?;
            let map = mapped(&inner, &cross)?;
            Ok(Some(vec![fork, cross, map]))
        }
        _ => Ok(None),
    }
}

/// Returns the last function of a chain, and what is before it.
fn first(t: &Term) -> Result<(Term, Term), TypeError> {
    let chain = t.chain();
    let rest = match &chain[1..] {
        [] => Term::id(&t.ty().dom),
        rest => Term::of_chain(rest)?,
    };
    Ok((chain[0].clone(), rest))
}

/// Returns what the zip of two sides, of which some are cheap maps, becomes: the maps are behind the zip. A map would copy rows that
/// are beside the computed elements. So this is not done then, unless another map follows (`followed`), which reads the rows.
fn behind_zip(zip: &Term, sides: &Term, followed: bool) -> Result<Option<Vec<Term>>, TypeError> {
    let taken = |side: &Term| -> Result<(Option<Term>, Term), TypeError> {
        let (map, rest) = first(side)?;
        let moves = *map.op() == Op::Map(MapKind::Plain) && is_cheap(&map.args()[0]);
        Ok(if moves { (Some(map.args()[0].clone()), rest) } else { (None, side.clone()) })
    };
    let ((f, a), (g, b)) = (taken(&sides.args()[0])?, taken(&sides.args()[1])?);
    if f.is_none() && g.is_none() {
        return Ok(None);
    }
    let sides = Term::new(sides.op().clone(), vec![], vec![], vec![a, b])?;
    let zip = Term::on(zip.op().clone(), &[], &sides.ty().cod, vec![])?;
    let (_, element) = build::elements(&zip.ty().cod)?;
    let (x, y) = build::halves(&element)?;
    let copies = f.is_none() && x.has_array() || g.is_none() && y.has_array();
    if copies && !followed {
        return Ok(None);
    }
    let both = build::bimap(&f.unwrap_or(Term::id(&x)), &g.unwrap_or(Term::id(&y)))?;
    let map = Term::on(Op::Map(MapKind::Plain), &[], &zip.ty().cod, vec![both])?;
    Ok(Some(vec![sides, zip, map]))
}

/// Returns `bimap (map p) (map q)` and `map (map f)` for `map (map (f . bimap p q)) . cross`, where `p` and `q` only
/// rearrange: the rows of a product are arranged in front of it.
fn views_of_rows(map: &Term, chain: &[Term]) -> Result<Option<(Term, Term)>, TypeError> {
    let plain = |t: &Term| *t.op() == Op::Map(MapKind::Plain);
    let Some(cross) = chain.last().filter(|f| *f.op() == Op::Cross) else { return Ok(None) };
    if !plain(map) || !plain(&map.args()[0]) {
        return Ok(None);
    }
    let inner = &map.args()[0].args()[0].chain();
    let Some((pair, user)) =
        inner.split_last().filter(|(f, user)| *f.op() == Op::Bimap && !user.is_empty())
    else {
        return Ok(None);
    };
    if !pair.args().iter().all(|f| f.chain().iter().all(Term::is_view)) {
        return Ok(None);
    }
    let (n, m) = (&cross.sizes()[0], &cross.sizes()[1]);
    let rows = build::map(MapKind::Plain, n, &pair.args()[0])?;
    let columns = build::map(MapKind::Plain, m, &pair.args()[1])?;
    let each = build::map(MapKind::Plain, m, &Term::of_chain(user)?)?;
    Ok(Some((build::bimap(&rows, &columns)?, build::map(MapKind::Plain, n, &each)?)))
}

/// Fuses a map with `map (map (bimap g id)) . cross`, which stands for what is computed of each row: `g` becomes a part of
/// the function that is mapped over the row's partners.
fn of_rows(f: &Term, chain: &[Term]) -> Result<Option<Term>, TypeError> {
    let [.., cross, rows] = chain else { return Ok(None) };
    let plain = |t: &Term| *t.op() == Op::Map(MapKind::Plain);
    if *cross.op() != Op::Cross || !plain(rows) || !plain(f) {
        return Ok(None);
    }
    let (inner, users) = (&rows.args()[0], f.args()[0].chain());
    let Some((user, users)) = users.split_last() else { return Ok(None) };
    if !plain(inner) || !plain(user) {
        return Ok(None);
    }
    let one = build::compose(&user.args()[0], &inner.args()[0])?;
    let one = build::map(MapKind::Plain, &user.sizes()[0], &one)?;
    let each = Term::of_chain(&[users, &[one]].concat())?;
    build::map(MapKind::Plain, &f.sizes()[0], &each).map(Some)
}

/// Whether a function only arranges and computes scalars without loops, and computes at least one.
fn is_cheap(f: &Term) -> bool {
    computed(f, false).is_some_and(|n| n > 0)
}

/// As [`is_cheap`], of scalars that may be at computed places.
fn is_cheap_of_places(f: &Term) -> bool {
    computed(f, true).is_some_and(|n| n > 0)
}

/// Returns how many scalars a function computes that only arranges otherwise and, if `reads`, reads elements at computed places.
fn computed(f: &Term, reads: bool) -> Option<usize> {
    f.chain().iter().try_fold(0, |sum, f| {
        Some(
            sum + match f.op() {
                Op::Scalar(f) if !f.body.has_loop() => 1,
                Op::Fork | Op::Bimap => {
                    computed(&f.args()[0], reads)? + computed(&f.args()[1], reads)?
                }
                Op::Id | Op::Fst | Op::Snd | Op::Lit(_) | Op::SizeValue(_) | Op::Input(_) => 0,
                Op::Index if reads && f.ty().cod.is_scalar() => 0,
                _ => return None,
            },
        )
    })
}

/// Returns a sequential reduction or a scan of rows by `map op . zip` as one of each column, innermost first.
/// (For reductions whose order is free, this is a rule: `reduce-columns`.)
fn columns(f: &Term) -> Result<Option<Vec<Term>>, TypeError> {
    if !matches!(f.op(), Op::Scan(_) | Op::Reduce(ReduceKind::Seq)) {
        return Ok(None);
    }
    let (op, start) = (f.args()[0].chain(), f.args()[1].chain());
    let ([map, zip], [replicate, z @ ..]) = (op.as_slice(), start.as_slice()) else {
        return Ok(None);
    };
    let by_element = *map.op() == Op::Map(MapKind::Plain)
        && *zip.op() == Op::Zip
        && *replicate.op() == Op::Replicate
        && !z.is_empty();
    if !by_element {
        return Ok(None);
    }
    let transpose = Term::on(Op::Transpose, &[], &f.ty().dom, vec![])?;
    let (_, column) = build::elements(&transpose.ty().cod)?;
    let args = vec![map.args()[0].clone(), Term::of_chain(z)?];
    let one = Term::on(f.op().clone(), &[], &column, args)?;
    let each = Term::on(Op::Map(MapKind::Plain), &[], &transpose.ty().cod, vec![one])?;
    let mut out = vec![transpose];
    if let Op::Scan(_) = f.op() {
        let back = Term::on(Op::Transpose, &[], &each.ty().cod, vec![])?;
        out.extend([each, back]);
    } else {
        out.push(each);
    }
    Ok(Some(out))
}
