//! Rows that a work-group copies. If each work-item copied a row, neighbours would access places that are a row apart: in global
//! memory each in a sector of its own, in local memory often in the same bank. So the work-items share out the elements of all rows.

use super::dest::Dest;
use super::irregular::bytes;
use super::leaf::Emit;
use super::lowerer::Lowerer;
use super::view::{Shape, Step, View};
use crate::kernel::ir::index::Index;
use crate::kernel::ir::{Expr, Mem};

/// Fewest bytes of such a row: a sector of memory, which a work-item can load by itself.
const ROW: usize = 32;

impl Lowerer {
    /// Copies `n` rows of this shape, which `row` gives, if they are stored one after the other in memory that the group shares, and
    /// `from` does not have them beside each other. Returns whether it did.
    pub fn copy_rows(
        &mut self,
        (n, t): (i64, &Shape),
        from: Option<&View>,
        dest: &Dest,
        row: &mut dyn FnMut(&mut Lowerer, &Index) -> Step<View>,
    ) -> Step<bool> {
        let Shape::Array(m, element) = t else { return Ok(false) };
        let Some(all) = n.checked_mul(*m) else { return Ok(false) };
        let stored = |r: i64, c: i64| stored(&dest.at(&r.into()).ok()?.at(&c.into()).ok()?);
        let loaded = |r: i64, c: i64| loaded(&from?.at(&r.into()).ok()?.at(&c.into()).ok()?);
        let is_row = n > 1
            && *m > 1
            && element.is_element()
            && bytes(t) >= ROW
            && by_rows(&stored) == Some(true)
            && by_rows(&loaded) != Some(false);
        if !is_row || self.kernel.group[0] <= 1 {
            return Ok(false);
        }
        let mark = self.mark();
        self.begin();
        let done = self.on_trial(Step::is_ok, |me| {
            me.local(0, all, false, &mut |me, i| {
                let (r, c) = i.div_mod(*m);
                let v = row(me, &r)?.at(&c)?;
                me.store(&v, &dest.at(&r)?.at(&c)?, element)
            })
        });
        if done.is_err() {
            // A work-item does not have the rows of others.
            self.back_to(mark);
            return Ok(false);
        }
        self.end().into_iter().try_for_each(|s| self.put(s))?;
        Ok(true)
    }
}

/// Whether the elements of a row, whose places are given, are nearer to each other than those of a column.
fn by_rows(place: &dyn Fn(i64, i64) -> Option<(Mem, Index)>) -> Option<bool> {
    let ((_, first), (_, next), (_, below)) = (place(0, 0)?, place(0, 1)?, place(1, 0)?);
    let [along, down] = [next.sub(&first).as_constant()?, below.sub(&first).as_constant()?];
    Some(along.abs() < down.abs())
}

/// Returns where an element, or its first component, is stored, if it is in memory that the group shares.
fn stored(d: &Dest) -> Option<(Mem, Index)> {
    match d {
        Dest::Mem(m @ (Mem::Global(_) | Mem::Local(_)), _, i) => Some((*m, i.clone())),
        Dest::Guarded(_, d) => stored(d),
        Dest::Pair(a, _) => stored(a),
        _ => None,
    }
}

/// Returns where an element, or its first component, is loaded.
fn loaded(v: &View) -> Option<(Mem, Index)> {
    match v {
        View::Elem(Expr::Load(m, _, i)) => Some((*m, i.clone())),
        View::Pair(a, _) => loaded(a),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::calculus::size::SizeEnv;
    use crate::kernel::ir::{Mem, Stmt};
    use crate::kernel::lower;
    use crate::kernel::lower::testing::{options, term};

    /// Returns by how much the places differ at which neighbours store in the result of a function of matrices in work-groups.
    fn strides(f: &str, matrices: &str) -> Vec<i64> {
        let term = term(&format!("mapWrg 0 ({f}) . xs"), &[("xs", matrices)]);
        let program = lower(&term, &SizeEnv::default(), &options()).expect("lowers");
        let mut out = vec![];
        for s in &program.kernels[0].body {
            s.visit(&mut |s| {
                let Stmt::Store(Mem::Global(_), i, _) = s else { return };
                i.visit_vars(&mut |v| {
                    if &*v.name == "l0"
                        && let Some((stride, _)) = i.linear_in(v.id)
                    {
                        out.push(stride);
                    }
                });
            });
        }
        out.dedup();
        out
    }

    #[test]
    fn neighbours_copy_neighbours() {
        let place = "(\\i -> if i == 3 then 5 else i) . snd";
        let rows =
            format!("mapLcl 0 (index . fork fst ({place})) . distl . fork id (iota 64 i32 . bang)");
        assert_eq!(strides(&rows, "[4][64][32]f32"), [1]);
        // Columns are beside each other as they are.
        let columns = format!("transpose . {rows} . transpose");
        assert_eq!(strides(&columns, "[4][32][64]f32"), [1]);
    }
}
