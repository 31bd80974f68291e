//! Definitions of [`Op::Chunked`], [`Op::Packed`] and the operators of tiling.
//!
//! A product of all pairs is `map (map e) . cross`; a map over rows with their partners is `map f . cross`.
//! `tiled` and `tiledRows` cut the dimensions into tiles, `blocked` and `blockedRows` carry accumulators over
//! blocks of a reduction, `spread` shares a tile out to work-items, and `sliced` shares out the slices of
//! neighbouring elements. In the e-graph, each of them is one operator with holes for the parts that may be
//! rewritten, so that rules on chains do not take it apart.

use super::flow::Flow;
use super::op::products::Products;
use super::scalar::Lit;
use super::size::Size;
use super::term::{Op, Term, TypeError};
use super::text::{Context, read_term};
use super::ty::Ty;
use crate::diag::Source;
use crate::lang::types::ScalarType;

type Built<T> = Result<T, TypeError>;

fn no<T>(text: impl Into<String>) -> Built<T> {
    Err(TypeError(text.into()))
}

/// Returns the number of parts of `t` in `n`.
fn parts(n: &Size, t: &Size) -> Built<Size> {
    if t.as_constant() == Some(0) { no(format!("no parts of 0 in {n}")) } else { Ok(n.div(t)) }
}

/// Whether an operator has a [`definition`].
pub(super) fn is_defined(op: &Op) -> bool {
    matches!(
        op,
        Op::Chunked
            | Op::Packed
            | Op::Tiled(_)
            | Op::TiledRows
            | Op::Turned
            | Op::Blocked(_)
            | Op::BlockedRows
            | Op::Spread(_)
            | Op::SpreadRows
            | Op::Sliced
    )
}

/// Returns the definition of an operator; `None` for an operator without one.
pub(super) fn definition(t: &Term) -> Built<Option<Term>> {
    written(t, false)
}

/// Returns what kernels compute for an operator. It equals the [`definition`], which does not depend on the arguments.
///
/// Instructions on matrices read no flags. What they take past the end of a row is therefore zero, so that it may be
/// added, where the definition tests flags.
pub(super) fn lowered(t: &Term) -> Built<Option<Term>> {
    let tiles = matches!(t.op(), Op::Tiled(_) | Op::Blocked(_));
    written(t, tiles && t.contains(&Op::SumProducts))
}

/// Writes an operator out, with `zeros` or other elements past the end of rows.
fn written(t: &Term, zeros: bool) -> Built<Option<Term>> {
    if !is_defined(t.op()) {
        return Ok(None);
    }
    let (dom, args) = (&t.ty().dom, t.args());
    let flow = Flow::from(dom);
    let out = match (t.op(), t.sizes(), args) {
        (Op::Chunked, [n, k, r], [h]) => flow.pad_last(r)?.split(k)?.then(h)?.join()?.take(n)?,
        (Op::Packed, [n, w, r], [h]) => {
            flow.pad_last(r)?.as_vector(w)?.then(h)?.as_scalar(w)?.take(n)?
        }
        (Op::Tiled(with), [n, m, t, u, r, q], [pa, pb, h]) => {
            let whole = |x: Flow, n: &Size| if zeros { pad_zeros(x, n) } else { x.pad_last(n) };
            let pairs = |x: Flow| {
                x.both(|a| whole(a, r)?.split(t)?.then(pa), |b| whole(b, q)?.split(u)?.then(pb))?
                    .cross()
            };
            let tiles = |x: Flow| {
                x.pad_last(r)?
                    .map(|row| row.pad_last(q))?
                    .split(t)?
                    .map(|x| x.map(|row| row.split(u))?.transpose())
            };
            if *with { flow.both(pairs, tiles)?.zip()?.map(Flow::zip)? } else { pairs(flow)? }
                .then(h)?
                .map(|row| row.transpose()?.map(Flow::join))?
                .join()?
                .map(|row| row.take(m))?
                .take(n)?
        }
        (Op::TiledRows, [n, _, t, r], [h]) => {
            flow.first(|a| a.pad_last(r)?.split(t))?.distr()?.then(h)?.join()?.take(n)?
        }
        (Op::Turned, [n, m, t, u, r, q], [h]) => flow
            .pad_last(r)?
            .map(|row| row.pad_last(q))?
            .split(t)?
            .map(|x| x.map(|row| row.split(u))?.transpose())?
            .then(h)?
            .transpose()?
            .map(|row| row.transpose()?.map(Flow::join))?
            .join()?
            .map(|row| row.take(n))?
            .take(m)?,
        (Op::Blocked(with), [n, m, _, t, r], [sa, sb, u, z, f]) => {
            let zero = Flow::from(&Ty::Unit).then(z)?.replicate(m)?.replicate(n)?.term();
            let whole = |x: Flow| match zeros && is_copy(sa) && is_copy(sb) {
                true => x.fork(|x| all_true(x, r), |x| pad_zeros(x, r))?.zip(),
                false => x.mask(r),
            };
            let reduced = |x: Flow| {
                whole(x.both(Flow::transpose, Flow::transpose)?.zip()?)?
                    .split(t)?
                    .map(|block| block.unzip()?.second(Flow::unzip))?
                    .reduce_seq(
                        |x| {
                            x.second(|x| x.second(|x| x.both(|a| a.then(sa), |b| b.then(sb))))?
                                .second(|x| weave(x)?.map(Flow::transpose))?
                                .zip()?
                                .map(Flow::zip)?
                                .then(u)
                        },
                        zero,
                    )
            };
            if *with { flow.first(reduced)? } else { reduced(flow)? }.then(f)?
        }
        (Op::BlockedRows, [n, _, t, r], [s, u, z, f]) => {
            let zero = Flow::from(&Ty::Unit).then(z)?.replicate(n)?.term();
            flow.second(|b| b.mask(r)?.split(t)?.map(Flow::unzip))?
                .distl()?
                .reduce_seq(
                    |x| {
                        // From `(c, (as, (flags, bs)))` to rows of `(c, [t](flag, (a, b)))`.
                        x.second(|x| {
                            x.second(|x| x.second(|b| b.then(s))?.zip())?
                                .cross()?
                                .map(|row| row.map(shuffle))
                        })?
                        .zip()?
                        .then(u)
                    },
                    zero,
                )?
                .then(f)?
        }
        (Op::Spread(shares), [n, m, t, u, v, w], [h]) => {
            let (rows, columns) = (parts(n, t)?, parts(m, u)?);
            let block = shares.block().map(|block| block.map(Size::constant));
            let apart = |x: Flow| -> Built<Flow> {
                let x =
                    runs(x, t, v)?.map(|row| row.map(|x| runs(x, u, w)))?.map(Flow::transpose)?;
                let Some([a, b]) = &block else { return x.join() };
                x.split(a)?
                    .map(|x| x.map(|row| row.split(b))?.transpose()?.map(Flow::join)?.join())?
                    .join()
            };
            let together = |x: Flow| -> Built<Flow> {
                let x = match &block {
                    Some([a, b]) => x
                        .split(&a.mul(&columns))?
                        .map(|x| {
                            x.split(&a.mul(b))?.map(|x| x.split(b))?.transpose()?.map(Flow::join)
                        })?
                        .join()?,
                    None => x.split(&columns)?,
                };
                let x = x.map(Flow::transpose)?.map(|row| row.map(|x| gather_runs(x, u, w)))?;
                gather_runs(x, t, v)
            };
            debug_assert!(rows.mul(t) == *n);
            together(apart(flow)?.then(h)?)?
        }
        (Op::SpreadRows, [n, t], [h]) => {
            let parts = parts(n, t)?;
            flow.split(&parts)?.transpose()?.then(h)?.transpose()?.join()?
        }
        (Op::Sliced, [n, _], [w, h, f]) => {
            let slices =
                |x: Flow| x.map(|x| x.then(w))?.transpose()?.join()?.then(h)?.split(n)?.transpose();
            flow.fork(slices, Ok)?.zip()?.then(f)?
        }
        _ => return Ok(None),
    };
    Ok(Some(out.term()))
}

/// Whether this is the identity, perhaps with a copy.
fn is_copy(t: &Term) -> bool {
    match t.op() {
        Op::Id => true,
        Op::ToMem(_) => t.args().iter().all(is_copy),
        _ => false,
    }
}

/// Pads an array with zeros.
fn pad_zeros(x: Flow, n: &Size) -> Built<Flow> {
    match x.ty() {
        Ty::Array(_, element) => {
            let zero = zero(element)?;
            x.pad_to(n, zero)
        }
        t => no(format!("an element of `{t}`")),
    }
}

/// Returns what gives zero of a type.
fn zero(t: &Ty) -> Built<Term> {
    let unit = || Flow::from(&Ty::Unit);
    match t {
        Ty::Scalar(s) if s.is_float() => unit().op(Op::Lit(Lit::float(*s, 0.0)), &[]),
        Ty::Scalar(s) => unit().op(Op::Lit(Lit::int(*s, 0)), &[]),
        Ty::Array(n, t) => unit().then(&zero(t)?)?.replicate(n),
        Ty::Pair(a, b) => unit().fork(|x| x.then(&zero(a)?), |x| x.then(&zero(b)?)),
        t => no(format!("no zero of `{t}`")),
    }
    .map(Flow::term)
}

/// `n` flags that hold, whatever the argument.
fn all_true(x: Flow, n: &Size) -> Built<Flow> {
    let yes = Lit::int(ScalarType::Bool, 1);
    x.op(Op::Bang, &[])?.op(Op::Lit(yes), &[])?.replicate(n)
}

/// Returns what [`Op::SumProducts`] computes, from its argument type.
pub(super) fn sums_of_products(dom: &Ty) -> Built<Term> {
    let Some(of) = Products::of(dom) else { return no("no products that are summed") };
    let (from, to) = (of.operand(), of.sum());
    let product = match from == to {
        true => "(*)".to_owned(),
        false => format!("(\\(a, b) -> {to}.{from} a * {to}.{from} b)"),
    };
    let text =
        format!("map (map (foldSeq (cond (fst . snd) ((+) . bimap id ({product} . snd)) fst)))");
    read_term(&Source::new("sumProducts", &text), dom, &Context::default())
        .map_err(|e| TypeError(e.to_string()))
}

/// From `([t]flag, ([t][n]a, [t][m]b))` to `[n][t][m](flag, (a, b))`, one step before `[n][m][t]`.
fn weave(x: Flow) -> Built<Flow> {
    x.second(|x| x.zip()?.map(Flow::cross))?
        .zip()?
        .map(|x| x.distl()?.map(Flow::distl))?
        .transpose()
}

/// From `(a, (flag, b))` to `(flag, (a, b))`.
fn shuffle(x: Flow) -> Built<Flow> {
    let whole = x.ty().clone();
    let proj = |op: Op, of: &Ty| Term::on(op, &[], of, vec![]);
    let second = proj(Op::Snd, &whole)?;
    let rest = &second.ty().cod;
    let (flag, b) = (proj(Op::Fst, rest)?.after(&second)?, proj(Op::Snd, rest)?.after(&second)?);
    let fork = |f: Term, g: Term| Term::new(Op::Fork, vec![], vec![], vec![f, g]);
    let out = fork(flag, fork(proj(Op::Fst, &whole)?, b)?)?;
    x.then(&out)
}

/// From `[n]x` to `[n/t][t]x`: part `i` has runs of `v` from all over, the `q`-th one from `q*n*v/t + i*v`
/// on.
fn runs(x: Flow, t: &Size, v: &Size) -> Built<Flow> {
    let Ty::Array(n, _) = x.ty().clone() else { return no("no array") };
    if v == t {
        return x.split(t);
    }
    x.split(&parts(&n.mul(v), t)?)?.map(|x| x.split(v))?.transpose()?.map(Flow::join)
}

/// The inverse of [`runs`].
fn gather_runs(x: Flow, t: &Size, v: &Size) -> Built<Flow> {
    if v == t {
        return x.join();
    }
    x.map(|x| x.split(v))?.transpose()?.map(Flow::join)?.join()
}

#[cfg(test)]
mod tests {
    use crate::calculus::eval::{self, Inputs};
    use crate::calculus::size::SizeEnv;
    use crate::calculus::term::Term;
    use crate::calculus::text::{Context, parse_type, read_term};
    use crate::calculus::value::Value;
    use crate::diag::{Result, Source};
    use crate::lang::types::ScalarType;

    fn term(text: &str, dom: &str) -> Result<Term> {
        let dom = parse_type(&Source::new("t", dom), 0..dom.len())?;
        read_term(&Source::new("f", text), &dom, &Context::default())
    }

    /// Returns the part that each element of a matrix of `n` by `m` is in.
    fn shares(name: &str, n: usize, m: usize, [t, u, v, w]: [usize; 4]) -> Vec<Vec<i64>> {
        let parts = n / t * (m / u);
        let number = "map (map fst) . map distl . distl";
        let text =
            format!("{name} {t} {u} {v} {w} (map ({number}) . zip . fork (iota {parts} i32) id)");
        let f = term(&text, &format!("[{n}][{m}]i32")).expect("a term");
        let x = Value::ints(ScalarType::I32, &[n, m], &vec![0; n * m]);
        let y = eval::apply(&f, &SizeEnv::default(), &Inputs::new(), &x).expect("a value");
        let shape = eval::shape(&f.ty().cod, &SizeEnv::default()).expect("a shape");
        let text = shape.show(&y).replace(['[', ']', ' '], "");
        let all: Vec<i64> = text.split(',').map(|s| s.parse().expect("a number")).collect();
        all.chunks(m).map(<[i64]>::to_vec).collect()
    }

    #[test]
    fn parts_have_runs_from_all_over() {
        let rows = shares("spread", 4, 4, [2, 2, 1, 1]);
        assert_eq!(rows, [[0, 1, 0, 1], [2, 3, 2, 3], [0, 1, 0, 1], [2, 3, 2, 3]]);
        let rows = shares("spread", 4, 4, [2, 2, 2, 2]);
        assert_eq!(rows, [[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3], [2, 2, 3, 3]]);
        let rows = shares("spread", 2, 8, [1, 4, 1, 2]);
        assert_eq!(rows, [[0, 0, 1, 1, 0, 0, 1, 1], [2, 2, 3, 3, 2, 2, 3, 3]]);
    }

    #[test]
    fn parts_have_rows_from_all_over() {
        let number = "map (map fst) . map distl . zip . fork (iota 3 i32) id";
        let f = term(&format!("spreadRows 2 ({number})"), "[6]i32").expect("a term");
        let x = Value::ints(ScalarType::I32, &[6], &[0; 6]);
        let y = eval::apply(&f, &SizeEnv::default(), &Inputs::new(), &x).expect("a value");
        assert_eq!(y.to_ints(), [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn slices_at_one_place_are_neighbours() {
        // Numbers all slices in the order of `h`, and checks where each ends up.
        let number = "map fst . zip . fork (iota 6 i32) id";
        let f = term(&format!("join . sliced (split 4) ({number}) (map fst)"), "[3][8]i32");
        let x = Value::ints(ScalarType::I32, &[3, 8], &[0; 24]);
        let f = f.expect("a term");
        let y = eval::apply(&f, &SizeEnv::default(), &Inputs::new(), &x).expect("a value");
        assert_eq!(y.to_ints(), [0, 3, 1, 4, 2, 5]);
    }

    /// Checks that a warp has `a` rows of `b` parts, of `2*a` by `2*b` parts.
    fn check_blocks(name: &str, [a, b]: [usize; 2]) {
        let rows = shares(name, 2 * a, 2 * b, [1, 1, 1, 1]);
        for (i, row) in rows.iter().enumerate() {
            for (j, part) in row.iter().enumerate() {
                let warp = i / a * 2 + j / b;
                assert_eq!(usize::try_from(*part), Ok(warp * 32 + i % a * b + j % b));
            }
        }
    }

    #[test]
    fn warps_have_blocks_of_parts() {
        check_blocks("spreadWarps", [4, 8]);
    }

    #[test]
    fn fragments_are_blocks_of_eight_by_four() {
        check_blocks("spreadFragments", [8, 4]);
    }

    #[test]
    fn parts_of_nothing_are_refused() {
        let pairs = "([4]i32, [4]i32)";
        assert!(term("tiled 0 2 4 4 id id (map (map (map (map (+)) . cross)))", pairs).is_err());
        assert!(term("tiledRows 0 4 (map (map (map (+)) . cross))", pairs).is_err());
        assert!(term("spread 0 2 1 1 (map (map (map abs)))", "[4][4]i32").is_err());
        assert!(term("spreadRows 0 (map (map abs))", "[4]i32").is_err());
        // `spread` of an empty matrix is well-typed, but has no definition: there are no parts.
        let none = term("spread 2 2 1 1 (map (map (map abs)))", "[0][4]i32").expect("a term");
        assert!(none.definition().is_err());
    }
}
