//! Updates of a value in place: the accumulator of a reduction, the state of a loop.

use super::dest::Dest;
use super::irregular::known;
use super::leaf::Emit;
use super::lowerer::{Context, Lowerer};
use super::scatter::Scattered;
use super::view::{Shape, Step, View};
use crate::calculus::term::Term;
use crate::kernel::analysis::hazard::{self, Later, Owned};
use crate::kernel::analysis::unchanged::Update;
use crate::kernel::ir::index::Index;
use crate::kernel::ir::{Block, Expr, Stmt};

/// Emits what one outcome of a test runs.
type Side<'a> = &'a mut dyn FnMut(&mut Lowerer) -> Step<()>;

impl Lowerer {
    /// Stores `op(arg)` over a value that `arg` may read. The store is in place unless it would
    /// then read elements that are already overwritten.
    pub fn update(
        &mut self,
        op: &[Term],
        arg: &View,
        dest: &Dest,
        owned: &Owned,
        shape: &Shape,
    ) -> Step<()> {
        if self.in_place(op, arg, dest, owned)? {
            return Ok(());
        }
        let fresh = self.allocate(shape, None)?;
        self.write(op, arg, &fresh.dest)?;
        self.copy(&fresh.view, dest, shape)
    }

    /// Stores `op(arg)`, and returns true, unless that would read what is already overwritten. If stores at once would be
    /// read, they are deferred.
    pub fn in_place(&mut self, op: &[Term], arg: &View, dest: &Dest, owned: &Owned) -> Step<bool> {
        if self.update_with(op, arg, dest, owned, None)? {
            return Ok(true);
        }
        if self.context != Context::Item {
            return Ok(false);
        }
        let later = Later { owned: owned.clone(), declared: vec![], stores: vec![] };
        self.update_with(op, arg, dest, owned, Some(later))
    }

    /// As [`Lowerer::in_place`], at once or with deferred stores.
    pub fn update_with(
        &mut self,
        op: &[Term],
        arg: &View,
        dest: &Dest,
        owned: &Owned,
        later: Option<Later>,
    ) -> Step<bool> {
        self.on_trial(
            |done| matches!(done, Ok(true)),
            |me| {
                let around = std::mem::replace(&mut me.later, later);
                me.begin();
                let done = me.write(op, arg, dest);
                let block = me.end();
                let later = std::mem::replace(&mut me.later, around);
                done?;
                if hazard::reads_what_it_wrote(&block, owned) {
                    return Ok(false);
                }
                let block = changes_alone(block, owned);
                let (before, after) = later.map_or((vec![], vec![]), |l| (l.declared, l.stores));
                [before, block, after].into_iter().flatten().try_for_each(|s| me.put(s))?;
                Ok(true)
            },
        )
    }

    /// Runs `body` without deferring its stores, which may depend on variables of a loop or a guard.
    pub fn undeferred<T>(&mut self, body: impl FnOnce(&mut Lowerer) -> T) -> T {
        let later = self.later.take();
        let done = body(self);
        self.later = later;
        done
    }

    /// Whether stores to elements of this array are deferred.
    pub fn defers(&self, dest: &Dest) -> Step<bool> {
        fn owns(owned: &Owned, dest: &Dest) -> Step<bool> {
            Ok(match dest {
                Dest::Mem(m, ..) => owned.has_memory(*m),
                Dest::Reg(r) => owned.has_register(r),
                Dest::Pair(a, b) => owns(owned, a)? && owns(owned, b)?,
                Dest::Array(_) => owns(owned, &dest.at(&Index::from(0))?)?,
                Dest::Nowhere
                | Dest::Lane(..)
                | Dest::Guarded(..)
                | Dest::Lanes(_)
                | Dest::Either(..)
                | Dest::Placed(..) => false,
            })
        }
        self.later.as_ref().map_or(Ok(false), |l| owns(&l.owned, dest))
    }

    /// Defers the store of an element.
    pub fn store_later(&mut self, e: Expr, dest: &Dest) -> Step<()> {
        let kept = self.in_front(|me| me.declare(e.ty(), None))?;
        self.emit(Stmt::Set(kept.clone(), e))?;
        let shape = Shape::Elem(kept.ty);
        self.afterwards(|me| me.store(&View::Elem(Expr::Reg(kept)), dest, &shape))
    }

    /// Defers the stores of a scatter. Places and values are computed at once, as every read of the update is.
    pub fn scatter_later(&mut self, scattered: Scattered, dest: &Dest) -> Step<()> {
        if self.context == Context::Group {
            return self.group_scatter_later(scattered, dest);
        }
        let Scattered { n, m, places, values, elem } = scattered;
        let first = places.at(&Index::from(0))?;
        let place = Shape::Elem(first.expr()?.ty());
        let array = |t: &Shape| Shape::Array(m, Box::new(t.clone()));
        let Some(owned) = self.later.as_ref().map(|l| l.owned.clone()) else { return Ok(()) };
        let all_known = m == 1 && known(places, &Index::from(0)).is_some();
        let keep_places = !all_known && self.changes(places, &array(&place), &owned)?;
        let keep_values = self.changes(values, &array(elem), &owned)?;
        let mut kept = |needed: bool, t: &Shape| {
            needed.then(|| self.in_front(|me| me.allocate(&array(t), None))).transpose()
        };
        let (kept_places, kept) = (kept(keep_places, &place)?, kept(keep_values, elem)?);
        let at = kept_places.as_ref().map_or(places, |kept| &kept.view);
        let new = kept.as_ref().map_or(values, |kept| &kept.view);
        if keep_places || keep_values {
            self.undeferred(|me| {
                me.repeat(m, false, &mut |me, j| {
                    if let Some(kept) = &kept_places {
                        me.store(&places.at(j)?, &kept.dest.at(j)?, &place)?;
                    }
                    let Some(kept) = &kept else { return Ok(()) };
                    me.at_only_place(at, j, n, &mut |me, _| {
                        me.store(&values.at(j)?, &kept.dest.at(j)?, elem)
                    })
                })
            })?;
        }
        self.afterwards(|me| {
            me.repeat(m, false, &mut |me, j| {
                me.at_only_place(at, j, n, &mut |me, i| me.store(&new.at(j)?, &dest.at(i)?, elem))
            })
        })
    }

    /// Whether a view is no longer the same behind the update around: it reads memory that the update stores to, or registers of the
    /// update.
    pub fn changes(&mut self, v: &View, shape: &Shape, owned: &Owned) -> Step<bool> {
        Ok(match shape {
            Shape::Unit => false,
            Shape::Elem(_) => {
                let e = v.expr()?;
                let mut in_register = false;
                e.visit(&mut |e| in_register |= matches!(e, Expr::Reg(_)));
                in_register || owned.is_read_by(&e)
            }
            Shape::Pair(a, b) => {
                self.changes(&v.fst()?, a, owned)? || self.changes(&v.snd()?, b, owned)?
            }
            Shape::Array(n, t) => {
                let any = self.any(*n);
                match v.at(&any) {
                    Ok(element) => self.changes(&element, t, owned)?,
                    // The elements are in registers, each in those of its work-item.
                    Err(_) => true,
                }
            }
        })
    }

    /// A choice between arrays, in one work-item. Stores that a side defers are made if it was chosen.
    pub fn choice(&mut self, c: Expr, sides: [&Term; 2], x: &View, dest: &Dest) -> Step<()> {
        let c = match self.later {
            None => c,
            Some(_) => {
                let kept = self.in_front(|me| me.declare(c.ty(), None))?;
                self.emit(Stmt::Set(kept.clone(), c))?;
                Expr::Reg(kept)
            }
        };
        let [mut a, mut b] =
            sides.map(|t| move |me: &mut Lowerer| me.write(std::slice::from_ref(t), x, dest));
        self.on_sides(&|a, b| Stmt::Branch(c.clone(), a, b), [&mut a, &mut b])
    }

    /// Emits both sides of a test. Stores that a side defers are made if the test chose it.
    pub fn on_sides(&mut self, test: &dyn Fn(Block, Block) -> Stmt, sides: [Side; 2]) -> Step<()> {
        let mut side = |body: Side| {
            let before = self.later.as_mut().map(|l| std::mem::take(&mut l.stores));
            self.begin();
            let done = body(self);
            let block = self.end();
            let later = match (&mut self.later, before) {
                (Some(l), Some(before)) => std::mem::replace(&mut l.stores, before),
                _ => vec![],
            };
            done.map(|()| (block, later))
        };
        let [a, b] = sides;
        let (a, b) = (side(a)?, side(b)?);
        if !(a.0.is_empty() && b.0.is_empty()) {
            self.emit(test(a.0, b.0))?;
        }
        if let Some(later) = &mut self.later
            && !(a.1.is_empty() && b.1.is_empty())
        {
            later.stores.push(test(a.1, b.1));
        }
        Ok(())
    }

    /// Emits declarations in front of the update.
    pub fn in_front<T>(&mut self, declare: impl FnOnce(&mut Lowerer) -> Step<T>) -> Step<T> {
        self.begin();
        let done = declare(self);
        let block = self.end();
        if let Some(later) = &mut self.later {
            later.declared.extend(block);
        }
        done
    }

    /// Emits stores behind the update.
    pub fn afterwards(&mut self, store: impl FnOnce(&mut Lowerer) -> Step<()>) -> Step<()> {
        self.begin();
        let done = self.undeferred(store);
        let block = self.end();
        if let Some(later) = &mut self.later {
            later.stores.extend(block);
        }
        done
    }
}

/// Returns an update without the stores of elements that stay as they are.
fn changes_alone(block: Block, owned: &Owned) -> Block {
    hazard::read_before_written(&block, owned).into_iter().fold(block, |block, m| {
        let update = Update::of(&block, m, m);
        update.without_kept(&update.by_side(&block))
    })
}

#[cfg(test)]
mod tests {
    use crate::calculus::size::SizeEnv;
    use crate::kernel::generator::lowered;
    use crate::kernel::ir::{Mem, Stmt};
    use crate::kernel::lower::testing::{options, term};

    /// Returns the number of private arrays, and of loops and stores to such arrays in the step of a loop over `u`, of
    /// which each of 64 work-items runs one.
    fn step(op: &str, start: &str, result: &str) -> (usize, usize, usize) {
        let text = format!("mapGlb 0 ({result} . foldSeq ({op}) . fork {start} id) . u");
        let term = term(&text, &[("u", "[64][100]f32")]);
        let (program, ..) = lowered(&term, &SizeEnv::default(), &options(), false).expect("lowers");
        let kernel = &program.kernels[0];
        let (mut loops, mut stores) = (0, 0);
        for s in &kernel.body {
            s.visit(&mut |s| {
                let Stmt::Loop { var, body, .. } = s else { return };
                if var.hi != 99 {
                    return;
                }
                body.iter().for_each(|s| {
                    s.visit(&mut |s| match s {
                        Stmt::Loop { .. } => loops += 1,
                        Stmt::Store(Mem::Private(_), ..) => stores += 1,
                        _ => {}
                    });
                });
            });
        }
        (kernel.privates.len(), loops, stores)
    }

    /// A state that is too long for registers.
    const ZEROS: &str = "(replicate 500 . 0.0 . bang)";
    const AT: &str = "(\\x -> i32.f32 x)";

    #[test]
    fn an_element_is_stored_where_the_state_is() {
        // The state is read at another place than the one that is stored.
        let value = "replicate 1 . (+) . fork (index . bimap id (\\x -> 499 - i32.f32 x)) snd";
        let op = format!("scatter . fork fst (fork (replicate 1 . {AT} . snd) ({value}))");
        assert_eq!(step(&op, ZEROS, "id"), (1, 0, 1));
    }

    #[test]
    fn stores_follow_all_reads_of_the_step() {
        // Each of two arrays gets an element of the other one.
        let side = |own: &str, other: &str| {
            let value = format!("replicate 1 . index . bimap {other} {AT}");
            format!("(scatter . fork ({own} . fst) (fork (replicate 1 . {AT} . snd) ({value})))")
        };
        let op = format!("fork {} {}", side("fst", "snd"), side("snd", "fst"));
        let start = format!("(fork {ZEROS} {ZEROS})");
        assert_eq!(step(&op, &start, "id"), (2, 0, 2));
    }

    #[test]
    fn a_choice_stores_on_the_chosen_side_alone() {
        let value = "replicate 1 . index . bimap id (\\x -> 7 - i32.f32 x)";
        let update = format!("scatter . fork fst (fork (replicate 1 . {AT} . snd) ({value}))");
        let op = format!("cond ((\\x -> x > 0.0) . snd) ({update}) fst");
        assert_eq!(step(&op, ZEROS, "id"), (1, 0, 1));
    }

    #[test]
    fn elements_are_stored_where_they_were_read() {
        // Four elements at a time are read, then stored.
        let op = "join . mapSeq (mapUnroll (\\x -> x * 0.5)) . split 4 . fst";
        assert_eq!(step(op, ZEROS, "id"), (1, 1, 4));
    }

    #[test]
    fn elements_that_stay_are_not_stored() {
        let choice = "cond ((\\x -> x > 3.0) . fst) ((\\(e, x) -> x * e) . id) snd";
        let op = format!("join . mapSeq (mapUnroll ({choice})) . split 4 . distl . fork snd fst");
        assert_eq!(step(&op, ZEROS, "id"), (1, 1, 4));
        let never = "join . mapSeq (mapUnroll (\\x -> x)) . split 4 . fst";
        assert_eq!(step(never, ZEROS, "id").2, 0);
    }

    #[test]
    fn what_a_loop_of_the_step_stores_is_computed_beside_the_state() {
        // All elements change, and each is computed from the one opposite.
        let op = "mapSeq ((+) . bimap id id) . zip . fork fst (reverse . fst)";
        let (arrays, loops, _) = step(op, ZEROS, "id");
        assert_eq!(arrays, 2);
        assert!(loops >= 2, "{loops}");
    }
}
