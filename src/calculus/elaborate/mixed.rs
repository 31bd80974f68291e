//! Operands of mixed products, converted in front of the products.
//!
//! Matrix instructions multiply elements of one type. A product may multiply numbers of two types: weights in `f32` by values in `f16`, or
//! `f16` by `i8`. Here the matrix of the narrower numbers is converted first, to the type of the others, or to the type of the sum if there
//! is no other for which there are instructions. Every conversion is exact. It is made where the matrix meets many rows: each element is then
//! converted once, and multiplied often.

use super::build::{self, Built};
use super::widened;
use crate::calculus::scalar::{SExpr, ScalarFn};
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::term::{MapKind, Op, Term, TypeError};
use crate::calculus::ty::Ty;
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType::{self, BF16, F16, F32, I8, U8};

/// Fewest rows that a converted matrix meets.
const ROWS: u64 = 64;

/// What elements are converted from, and to.
#[derive(Clone, Copy)]
struct Conversion {
    from: ScalarType,
    to: ScalarType,
}

/// Returns the term with the operands of its mixed products converted in front of them.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn converted(t: &Term, env: &SizeEnv) -> Built {
    let mut narrow = false;
    t.visit(&mut |t| narrow |= matches!(t.op(), Op::Scalar(f) if converts(&f.body)));
    if !narrow {
        return Ok(t.clone());
    }
    widened::each_product(t, &|sides, element, sizes| product(sides, element, sizes, env))
}

/// Whether an expression converts a narrow number to `f32`.
fn converts(e: &SExpr) -> bool {
    match e {
        SExpr::Op(ScalarOp::Cast(from), F32, _) if is_narrow(*from) => true,
        SExpr::Op(_, _, es) => es.iter().any(converts),
        _ => false,
    }
}

fn is_narrow(t: ScalarType) -> bool {
    matches!(t, F16 | BF16 | I8 | U8)
}

/// Returns the sides and the element of a product with one of the sides converted, and then the other; `None` if neither is.
fn product(
    sides: &Term,
    element: &Term,
    sizes: [&Size; 2],
    env: &SizeEnv,
) -> Result<Option<[Term; 2]>, TypeError> {
    let (mut args, mut element) = (sides.args().to_vec(), element.clone());
    let mut changed = false;
    for k in 0..2 {
        if sizes[1 - k].eval(env).unwrap_or(0) < ROWS {
            continue;
        }
        let pairs = [F16, BF16, I8, U8].map(|from| [F16, BF16, F32].map(|to| (from, to)));
        for (from, to) in pairs.into_iter().flatten().filter(|(from, to)| from != to) {
            let conversion = Conversion { from, to };
            let Some(side) = conversion.of_side(&args[k])? else { continue };
            let row = |t: &Term| build::elements(&t.ty().cod).map(|(_, row)| row);
            let other = row(&args[1 - k])?;
            let own = row(&side)?;
            let dom = if k == 0 { Ty::pair(&own, &other) } else { Ty::pair(&other, &own) };
            if let Some(f) = conversion.of_function(&element, &dom)? {
                (args[k], element, changed) = (side, f, true);
                break;
            }
        }
    }
    let [a, b] = &args[..] else { return Ok(None) };
    let sides = match sides.op() {
        Op::Fork => build::fork(a, b)?,
        _ => build::bimap(a, b)?,
    };
    Ok(changed.then_some([sides, element]))
}

/// Returns what is multiplied in place of numbers of type `t`, whose partners have the type `other`.
fn in_place_of(t: ScalarType, other: ScalarType) -> Option<ScalarType> {
    match (t, other) {
        (F16, F16) | (BF16, BF16) | (F16 | BF16, I8 | U8) => None,
        (I8 | U8, F16 | BF16) => Some(other),
        (_, F32) => Some(F32),
        (_, other) => is_narrow(other).then_some(F32),
    }
}

impl Conversion {
    /// Returns an array with its numbers converted, in front of the views that end it; `None` if its rows are not of such numbers.
    fn of_side(self, side: &Term) -> Result<Option<Term>, TypeError> {
        let chain = side.chain();
        if let [zip, pair, rest @ ..] = &chain[..]
            && *zip.op() == Op::Zip
            && matches!(pair.op(), Op::Fork | Op::Bimap)
        {
            // Rows with something besides.
            let Some(rows) = self.of_side(&pair.args()[0])? else { return Ok(None) };
            let pair = match pair.op() {
                Op::Fork => build::fork(&rows, &pair.args()[1])?,
                _ => build::bimap(&rows, &pair.args()[1])?,
            };
            let zipped = build::view(Op::Zip, &pair)?;
            return match rest {
                [] => Ok(Some(zipped)),
                rest => build::compose(&zipped, &Term::of_chain(rest)?).map(Some),
            };
        }
        let is_ours = |t: &Ty| depth(t).is_some_and(|(dims, of)| dims > 1 && of == self.from);
        if !is_ours(&side.ty().cod) {
            return Ok(None);
        }
        let views = chain.iter().take_while(|f| f.is_view() && depth(&f.ty().dom).is_some());
        let (views, rest) = chain.split_at(views.count());
        let before = match rest {
            [] => Term::id(&side.ty().dom),
            rest => Term::of_chain(rest)?,
        };
        let cast = SExpr::Op(ScalarOp::Cast(self.from), self.to, vec![SExpr::Arg]);
        let (dom, cod) = (Ty::Scalar(self.from), Ty::Scalar(self.to));
        let mut all = Term::scalar(ScalarFn { dom, cod, body: cast });
        let (mut lengths, mut of) = (vec![], before.ty().cod.clone());
        while let Ty::Array(n, row) = of {
            lengths.push(n);
            of = (*row).clone();
        }
        for n in lengths.iter().rev() {
            all = build::map(MapKind::Plain, n, &all)?;
        }
        let start = build::compose(&all, &before)?;
        let views = views.iter().rev();
        views.into_iter().try_fold(start, |t, f| build::compose(&self.of_view(f)?, &t)).map(Some)
    }

    /// Returns a view of an array of converted numbers.
    fn of_view(self, f: &Term) -> Built {
        let args = f.args().iter().map(|a| self.of_view(a)).collect::<Result<Vec<_>, _>>()?;
        let tys = f.tys().iter().map(|t| self.of_type(t)).collect();
        Term::new(f.op().clone(), f.sizes().to_vec(), tys, args)
    }

    fn of_type(self, t: &Ty) -> Ty {
        match t {
            Ty::Scalar(s) if *s == self.from => Ty::Scalar(self.to),
            Ty::Array(n, row) => Ty::array(n, &self.of_type(row)),
            t => t.clone(),
        }
    }

    /// Returns a function of rows, of which some are converted before: its domain is `dom`. `None` if it needs the rows as they were, or if
    /// no product gains by the conversion.
    fn of_function(self, f: &Term, dom: &Ty) -> Result<Option<Term>, TypeError> {
        if f.ty().dom == *dom {
            return Ok(Some(f.clone()));
        }
        let both = |a: &Ty, b: &Ty| -> Result<Option<[Term; 2]>, TypeError> {
            let first = self.of_function(&f.args()[0], a)?;
            Ok(first.zip(self.of_function(&f.args()[1], b)?).map(|(a, b)| [a, b]))
        };
        match f.op() {
            Op::Compose => {
                let Some(first) = self.of_function(&f.args()[1], dom)? else { return Ok(None) };
                let last = self.of_function(&f.args()[0], &first.ty().cod)?;
                last.map(|last| build::compose(&last, &first)).transpose()
            }
            Op::Id => Ok(Some(Term::id(dom))),
            Op::Fst | Op::Snd | Op::Zip | Op::Unzip | Op::Transpose | Op::Distl => {
                Term::on(f.op().clone(), &[], dom, vec![]).map(Some)
            }
            Op::Fork => both(dom, dom)?.map(|[a, b]| build::fork(&a, &b)).transpose(),
            Op::Bimap => {
                let (a, b) = build::halves(dom)?;
                both(&a, &b)?.map(|[a, b]| build::bimap(&a, &b)).transpose()
            }
            Op::Map(MapKind::Plain) => {
                let (n, element) = build::elements(dom)?;
                let g = match f.args()[0].op() {
                    Op::Scalar(g) => self.of_product(g, &element).map(Term::scalar),
                    _ => self.of_function(&f.args()[0], &element)?,
                };
                g.map(|g| build::map(MapKind::Plain, &n, &g)).transpose()
            }
            _ => Ok(None),
        }
    }

    /// Returns a product of two numbers, one of which is converted before.
    fn of_product(self, f: &ScalarFn, dom: &Ty) -> Option<ScalarFn> {
        let (Ty::Pair(a, b), Ty::Pair(x, y)) = (&f.dom, dom) else { return None };
        let ours = |was: &Ty, is: &Ty| *was == Ty::Scalar(self.from) && *is == Ty::Scalar(self.to);
        let (second, other) = match (ours(a, x), ours(b, y)) {
            (true, false) => (false, b),
            (false, true) => (true, a),
            _ => return None,
        };
        let Ty::Scalar(other) = &**other else { return None };
        let SExpr::Op(ScalarOp::Mul, F32, _) = &f.body else { return None };
        (in_place_of(self.from, *other) == Some(self.to)).then_some(())?;
        let body = self.of_expression(&f.body, second)?;
        Some(ScalarFn { dom: dom.clone(), cod: f.cod.clone(), body })
    }

    /// Returns an expression in which the component is converted before; `None` if it is not converted everywhere.
    fn of_expression(self, e: &SExpr, second: bool) -> Option<SExpr> {
        let ours = SExpr::Arg.proj(second);
        match e {
            SExpr::Op(ScalarOp::Cast(_), F32, of) if of[..] == [ours.clone()] => {
                Some(match self.to {
                    F32 => ours,
                    to => SExpr::Op(ScalarOp::Cast(to), F32, vec![ours]),
                })
            }
            SExpr::Op(op, t, es) => {
                let es = es.iter().map(|e| self.of_expression(e, second));
                Some(SExpr::Op(*op, *t, es.collect::<Option<_>>()?))
            }
            SExpr::Proj(of, part) => (**of == SExpr::Arg && *part != second).then(|| e.clone()),
            SExpr::Lit(_) | SExpr::Input(..) | SExpr::Size(..) => Some(e.clone()),
            _ => None,
        }
    }
}

/// Returns how many dimensions an array of scalars has, and their type.
fn depth(t: &Ty) -> Option<(usize, ScalarType)> {
    match t {
        Ty::Scalar(s) => Some((0, *s)),
        Ty::Array(_, row) => depth(row).map(|(n, s)| (n + 1, s)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::texts::elaborated;

    /// Returns the form of products of the rows of `x` and `w`, of these types, at this length of all dimensions.
    fn product(n: u64, x: &str, w: &str, element: &str) -> String {
        let text = format!(
            "entry f [n][m][k] (x: [n][k]{x}) (w: [m][k]{w}) : [n][m]f32 =
               map (\\r -> map (\\c -> reduce (+) 0 (map2 (\\a b -> {element}) r c)) w) x"
        );
        elaborated(n, &text).term.to_string()
    }

    #[test]
    fn narrow_numbers_are_converted_in_front_of_the_product() {
        let weights = product(300, "f32", "f16", "a * f32.f16 b");
        assert!(weights.contains("map (*) . zip"), "{weights}");
        assert!(weights.contains("map (map (\\x -> f32.f16 x))"), "{weights}");
        let bytes = product(300, "f16", "i8", "f32.f16 a * f32.i8 b");
        assert!(bytes.contains("f32.f16 a * f32.f16 b"), "{bytes}");
        assert!(bytes.contains("map (map (\\x -> f16.i8 x))"), "{bytes}");
    }

    #[test]
    fn sides_of_a_batch_are_converted_in_front_of_it() {
        let text = "
            entry f [h][n][m][k] (p: [h][n][k]f32) (v: [h][m][k]f16) : [h][n][m]f32 =
              map2 (\\p v -> map (\\r -> map (\\c -> reduce (+) 0 (map2 (\\a b -> a * f32.f16 b) r c)) v) p) p v";
        let batch = elaborated(300, text).term.to_string();
        assert!(batch.contains("map (map (map (\\x -> f32.f16 x)))"), "{batch}");
    }

    #[test]
    fn conversions_have_maps_of_their_own() {
        let text = "
            entry f [b][h][n][m][k][d] (q: [b][h][n][d]f32) (w: [b][h][m][d]f32) (v: [b][h][m][k]f16) : [b][h][n][k]f32 =
              map3 (map3 (\\q w v -> map (\\r ->
                let s = map (\\c -> reduce (+) 0 (map2 (*) r c)) w
                let m = reduce max 0 s
                let e = map (\\x -> exp (x - m)) s
                in map (\\c -> reduce (+) 0 (map2 (\\a b -> a * f32.f16 b) e c)) (transpose v)) q)) q w v";
        let forms = elaborated(300, text).forms();
        let count = |part: &str| -> usize {
            forms.iter().map(|f| f.to_string().matches(part).count()).sum()
        };
        // Nowhere in the function that computes the rows of a head.
        let all = count("\\x -> f32.f16 x");
        assert!(all > 0, "{forms:#?}");
        assert_eq!(count("map (map (map (\\x -> f32.f16 x"), all, "{forms:#?}");
    }

    #[test]
    fn others_stay() {
        for (n, x, element) in [(300, "f16", "f32.f16 a * f32.f16 b"), (12, "f32", "a * f32.f16 b")]
        {
            let stays = product(n, x, "f16", element);
            assert!(stays.contains(element), "{stays}");
        }
    }
}
