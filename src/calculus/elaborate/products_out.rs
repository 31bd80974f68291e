//! Moves products of matrices out of maps over batches (loop fission).
//!
//! `map2 (\r a -> map2 (map2 (+)) r (product a w)) rs as` becomes
//! `map2 (\r p -> map2 (map2 (+)) r p) rs (map (\a -> product a w) as)`.
//!
//! A map whose function is one product, with scalar functions of its results, is a batch of products, which the rules cut into
//! tiles. With anything else in the function, one work-group would compute all of it for an element of the batch. Here,
//! each product gets a batch of its own in front of the map, whether it has a name in the function or not, and so does what the
//! function computes before it. Inner maps come first, so that products also leave batches of batches.
//!
//! This is done in all forms of a program. In the form where `fission` moves products out of nests of rows, they leave batches, too, and
//! products of few rows with a matrix that the whole batch shares are one product of all rows, also if the function of the batch computes
//! the rows: these are stored then. So are small products of a function that computes more, such as the quadratic forms of a few rows.
//!
//! Nothing moves out of a branch or a loop.

use super::batches::HELD;
use super::core::{Ex, Kind, Layout, Var, Vars};
use super::cut::Cut;
use super::epilogues;
use super::fission::{flattened, parts_that_reduce, reduced, takes_arrays};
use crate::calculus::size::SizeEnv;
use crate::calculus::ty::Ty;
use crate::lang::typed::Prim;

/// Fewest elements of a row for which tiles may pay.
const LENGTH: u64 = 8;

/// Fewest results of a small product that becomes a part of one product of a whole batch.
const SMALL: u64 = 64;

/// Fewer rows than this leave tiles of each product of a batch partly empty.
const SHORT: u64 = 256;

/// Returns the program with its products outside of batches that compute more; `None` if there are none.
pub(super) fn out_of_batches(e: &Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let mut out = e.clone();
    ProductsOut { env, fresh, one: false }.walk(&mut out).then_some(out)
}

/// The same, where products of few rows with a matrix that the batch shares are one product, too.
pub(super) fn in_one_product(e: &Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let mut out = e.clone();
    ProductsOut { env, fresh, one: true }.walk(&mut out).then_some(out)
}

/// Returns the program with what follows its products element by element as a part of their nests, also outside of batches;
/// `None` if nothing does.
pub(super) fn with_epilogues(e: &Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let mut out = e.clone();
    epilogues::everywhere(&mut out, &|e| is_product(e, env), fresh).then_some(out)
}

struct ProductsOut<'a> {
    env: &'a SizeEnv,
    fresh: &'a mut dyn FnMut() -> Var,
    /// Whether products of few rows with the same matrix become one product.
    one: bool,
}

impl ProductsOut<'_> {
    /// Changes all batches in an expression, the inner ones first. Returns whether there were any.
    fn walk(&mut self, e: &mut Ex) -> bool {
        // The program itself has chosen what a low-level map computes.
        if matches!(e.kind, Kind::Map(p, ..) if p != Prim::Map) {
            return false;
        }
        let mut changed = false;
        for part in e.parts_mut() {
            changed |= self.walk(part);
        }
        changed | self.batch(e)
    }

    /// Moves the products in the function of a map in front of the map, one after the other.
    fn batch(&mut self, e: &mut Ex) -> bool {
        let env = self.env;
        let product = |part: &Ex| is_product(part, env);
        let Kind::Map(Prim::Map, f, _) = &mut e.kind else { return false };
        let last = f.body.behind_lets().clone();
        if !contains(&f.body, &product) {
            let moves = |part: &Ex| is_small_product(part, env) && *part != last;
            let rest = if self.one { self.small_apart(e, &moves) } else { None };
            let Some(rest) = rest else { return self.one_product(e) };
            *e = rest;
            return true;
        }
        let mut changed = epilogues::in_one_nest(&mut f.body, &product);
        // The product that is all that the function gives stays: the map is its batch.
        let last = f.body.behind_lets().clone();
        let moves = |part: &Ex| product(part) && *part != last;
        if let Some(rest) = self.apart(e, &moves) {
            *e = rest;
            changed = true;
        }
        changed | self.one_product(e)
    }

    /// Returns a map whose function computes a product with the first product in front of it.
    fn apart(&mut self, e: &Ex, moves: &dyn Fn(&Ex) -> bool) -> Option<Ex> {
        let (cut, product) = Cut::at(e, moves, self.fresh)?;
        let mut products = cut.array(product, self.fresh)?;
        self.batch(&mut products);
        let mut rest = cut.with(vec![products], false, self.fresh)?;
        self.batch(rest.behind_lets_mut());
        Some(rest)
    }

    /// The same for a product that a group may hold, if all of the batch are one product.
    fn small_apart(&mut self, e: &Ex, moves: &dyn Fn(&Ex) -> bool) -> Option<Ex> {
        let (cut, product) = Cut::at(e, moves, self.fresh)?;
        let mut products = cut.array(product, self.fresh)?;
        if !self.one_product(&mut products) {
            return None;
        }
        cut.with(vec![products], false, self.fresh)
    }

    /// Makes one product of a batch of products of few rows with the same matrix.
    fn one_product(&mut self, e: &mut Ex) -> bool {
        let is_short = |e: &Ex| e.length().and_then(|n| n.eval(self.env).ok()) < Some(SHORT);
        let Kind::Map(Prim::Map, f, _) = &e.kind else { return false };
        if !self.one || !is_short(&f.body) {
            return false;
        }
        let one = flattened(e, &Vars::new()).or_else(|| of_computed_rows(e, self.fresh));
        let Some(one) = one else { return false };
        let is_one = one.parts().iter().any(|(_, all)| is_product(all, self.env));
        if is_one {
            *e = one;
        }
        is_one
    }
}

/// Whether an expression has such a part.
fn contains(e: &Ex, part: &dyn Fn(&Ex) -> bool) -> bool {
    part(e) || e.parts().iter().any(|(_, inner)| contains(inner, part))
}

/// Returns a batch of products of rows that each function computes as one product of all these rows:
/// `map (\x -> map (\m -> let d = x - m in map (\w -> dot w d) ws) ms) xs` has the rows `join (map (\x -> map (\m -> x - m) ms) xs)`.
fn of_computed_rows(e: &Ex, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let Kind::Map(Prim::Map, f, args) = &e.kind else { return None };
    let Kind::Map(Prim::Map, h, inner) = &f.body.kind else { return None };
    let (mut lets, product) = (*h.body).clone().apart_from_lets();
    let (name, row) = lets.pop()?;
    let names = lets.iter().flat_map(|(p, _)| p.vars()).map(|(v, _)| v);
    let others: Vars = f.own().into_iter().chain(h.own()).chain(names).collect();
    if !matches!(name, Layout::Var(_, Ty::Array(..))) || !product.free().is_disjoint(&others) {
        return None;
    }
    let row = row.behind(lets.iter(), fresh);
    let rows = Ex::map_of(row, h.params.iter().zip(inner), fresh)?;
    let rows = Ex::map_of(rows, f.params.iter().zip(args), fresh)?.join()?;
    let (Ty::Array(n, _), Ty::Array(m, _)) = (&e.ty, &f.body.ty) else { return None };
    Ex::map_of(product, [(&name, &rows)], fresh)?.split(n, m)
}

/// Whether an expression computes large matrices by reductions, each of a row and of a partner that other rows meet, too.
fn is_product(e: &Ex, env: &SizeEnv) -> bool {
    results(e, env, false).is_some_and(|n| n > HELD)
}

/// Whether an expression computes a matrix in this way, of which a group may hold the results. Its rows may be computed, too.
fn is_small_product(e: &Ex, env: &SizeEnv) -> bool {
    results(e, env, true).is_some_and(|n| n >= SMALL)
}

/// Returns the number of results of each product that an expression computes; `None` if it computes none. With `computed`, the rows
/// may be those that the functions of the maps compute.
fn results(e: &Ex, env: &SizeEnv, computed: bool) -> Option<u64> {
    let (mut levels, mut lengths): (Vec<Vars>, Vec<u64>) = (vec![], vec![]);
    let mut body = e;
    while let (Kind::Map(Prim::Map, f, _), Ty::Array(n, _)) = (&body.kind, &body.ty) {
        let mut own = f.own();
        lengths.push(n.eval(env).unwrap_or(1));
        body = &f.body;
        while let Kind::Let(p, _, rest) = &body.kind {
            if computed {
                own.extend(p.vars().into_iter().map(|(v, _)| v));
            }
            body = rest;
        }
        levels.push(own);
    }
    let ([outer @ .., own], [.., n, m]) = (&levels[..], &lengths[..]) else { return None };
    let rows: Vars = outer.iter().flatten().copied().collect();
    let is_product = body.ty.components().iter().all(|(dims, _)| dims.is_empty())
        && parts_that_reduce(body).iter().any(|sum| {
            reduced(sum, env) >= LENGTH && takes_arrays(sum, own) && takes_arrays(sum, &rows)
        });
    is_product.then(|| n.saturating_mul(*m))
}

#[cfg(test)]
mod tests {
    use super::super::tests::show;
    use super::super::texts::elaborated;

    const PRODUCT: &str = "map (map (reduce {Add(_1, _2)} {0} . map {Mul(_1, _2)} . zip))";

    const HEAD: &str = "
        def mm [n][m][k] (x: [n][k]f32) (y: [m][k]f32) : [n][m]f32 = map (\\r -> map (\\c -> reduce (+) 0 (map2 (*) r c)) y) x
        def add [n][m] (x: [n][m]f32) (y: [n][m]f32) : [n][m]f32 = map2 (map2 (+)) x y
        def scaled [n][m] (x: [n][m]f32) : [n][m]f32 = map (\\r -> let s = reduce max 0 r in map (/ s) r) x
        entry f [b][h][n][m][d] (x: [b][n][m]f32) (u: [b][n][d]f32) (v: [b][m][d]f32) (w: [m][d]f32)
          (us: [b][h][n][d]f32) (vs: [b][h][m][d]f32) ";

    /// Returns the forms of a program, all of whose size parameters are `n`.
    fn forms(n: u64, body: &str) -> Vec<String> {
        elaborated(n, &format!("{HEAD}{body}")).forms().iter().map(show).collect()
    }

    #[track_caller]
    fn has(n: u64, body: &str, part: &str) {
        let forms = forms(n, body);
        assert!(forms.iter().any(|f| f.contains(part)), "no `{part}` in {forms:#?}");
    }

    #[test]
    fn products_leave_batches() {
        // Rows of a product, in a line and with a name.
        let batch = format!("map ({PRODUCT} . cross) . zip . fork u v");
        has(300, ": [b][n][m]f32 = map2 (\\u v -> scaled (mm u v)) u v", &batch);
        let named = ": [b][n][m]f32 = map3 (\\x u v ->
            let g = mm u v in map2 (\\r s -> let t = reduce (+) 0 (map2 (*) r s) in map (* t) s) x g) x u v";
        has(300, named, &batch);
        // Two of them, of which one meets the other.
        let chain = ": [b][n][d]f32 = map2 (\\u v -> mm (scaled (mm u v)) (transpose v)) u v";
        has(300, chain, &batch);
        // Batches of batches.
        let inner = format!("map (map ({PRODUCT} . cross) . zip) . zip . fork us vs");
        let heads =
            ": [b][h][n][m]f32 = map2 (\\us vs -> map2 (\\u v -> scaled (mm u v)) us vs) us vs";
        has(300, heads, &inner);
    }

    #[test]
    fn what_follows_a_product_element_by_element_is_its_epilogue() {
        let forms = forms(300, ": [b][n][m]f32 = map2 (\\x u -> add x (mm u w)) x u");
        let direct = ": [b][n][m]f32 =
            map2 (map2 (\\r q -> map2 (\\c k -> c + reduce (+) 0 (map2 (*) q k)) r w)) x u";
        let direct = show(&elaborated(300, &format!("{HEAD}{direct}")).term);
        assert!(forms.contains(&direct), "no `{direct}` in {forms:#?}");
        // Of two products, one is in front.
        let both = ": [b][n][m]f32 = map3 (\\x u v -> add (add x (mm u w)) (mm v w)) x u v";
        let front = format!("map ({PRODUCT} . cross . fork id w) . v");
        let head = HEAD.replace("(v: [b][m][d]f32)", "(v: [b][n][d]f32)");
        let forms: Vec<String> =
            elaborated(300, &format!("{head}{both}")).forms().iter().map(show).collect();
        assert!(forms.iter().any(|f| f.contains(&front)), "no `{front}` in {forms:#?}");
    }

    #[test]
    fn what_follows_a_product_outside_of_batches_is_its_epilogue() {
        let direct = ": [n][d]f32 = map (\\q -> map2 (\\k c -> max 0 (c + reduce (+) 0 (map2 (*) q k))) w z) y";
        let head =
            HEAD.replace("(w: [m][d]f32)", "(w: [d][m]f32) (y: [n][m]f32) (z: [d]f32) (t: [n]f32)");
        let forms = |body: &str| -> Vec<String> {
            elaborated(300, &format!("{head}{body}")).forms().iter().map(show).collect()
        };
        let product = format!("fork ({}", &PRODUCT[10..PRODUCT.len() - 2]);
        assert!(forms(direct)[0].contains(&product), "{:?}", forms(direct));
        for after in [
            "map (map (max 0)) (map (map2 (+) z) (mm y w))",
            "map2 (\\r c -> map2 (\\v b -> v * c + b) r z) (transpose (mm w y)) t",
        ] {
            let all = forms(&format!(": [n][d]f32 = {after}"));
            assert!(!all[0].contains(&product), "{all:?}");
            assert!(all.iter().any(|f| f.contains(&product)), "{after}: {all:#?}");
        }
    }

    #[test]
    fn short_products_with_one_matrix_are_one() {
        let body = ": [b][n][m]f32 = map (\\u -> scaled (mm u w)) u";
        has(64, body, &format!("{PRODUCT} . cross . fork (join . u) w"));
        has(300, body, &format!("map ({PRODUCT} . cross . fork id w) . u"));
    }

    #[test]
    fn small_products_stay() {
        let body = ": [b][n][m]f32 = map2 (\\u v -> scaled (mm u v)) u v";
        let forms = forms(12, body);
        let apart = format!("map ({PRODUCT} . cross) . zip . fork u v");
        assert!(!forms.iter().any(|f| f.contains(&apart)), "{forms:#?}");
    }
}
