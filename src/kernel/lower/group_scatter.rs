//! Updates of arrays at computed places by the work-items of a group. The arrays are in local memory.
//!
//! A single element is stored by the first work-item. All others share the elements of a row, or the places, out.

use super::dest::Dest;
use super::irregular::known;
use super::lowerer::Lowerer;
use super::scatter::Scattered;
use super::view::{Shape, Step, View};
use crate::calculus::term::Space;
use crate::kernel::ir::index::Index;

impl Lowerer {
    /// Stores the values of a scatter.
    pub fn store_in_group(&mut self, scattered: Scattered, dest: &Dest) -> Step<()> {
        let Scattered { n, m, places, values, elem } = scattered;
        let first = Index::from(0);
        if m == 1 && !elem.is_element() {
            return self.at_only_place(places, &first, n, &mut |me, i| {
                me.copy(&values.at(&first)?, &dest.at(i)?, elem)
            });
        }
        if m == 1 {
            return self.local(0, 1, false, &mut |me, _| {
                me.at_only_place(places, &first, n, &mut |me, i| {
                    me.store(&values.at(&first)?, &dest.at(i)?, elem)
                })
            });
        }
        let store = &mut |me: &mut Lowerer, j: &Index| {
            me.at_place(places, j, n, &mut |me, i| me.store(&values.at(j)?, &dest.at(i)?, elem))
        };
        match n {
            // Nothing in the index of a single element tells the verifier that the program chose it: one work-item stores.
            1 => self.local(0, 1, false, &mut |me, _| me.repeat(m, false, store)),
            _ => self.local(0, m, false, store),
        }
    }

    /// As [`Lowerer::store_in_group`], behind the update around. Until then, the group keeps what the update changes.
    pub fn group_scatter_later(&mut self, scattered: Scattered, dest: &Dest) -> Step<()> {
        let Scattered { m, places, values, elem, .. } = scattered;
        let place = Shape::Elem(places.at(&Index::from(0))?.expr()?.ty());
        // One work-item stores a single element, and only that one needs it.
        let alone = m == 1 && elem.is_element();
        let all_known = m == 1 && known(places, &Index::from(0)).is_some();
        let places = match all_known {
            true => places.clone(),
            false => self.kept(places, m, &place, m == 1, alone)?,
        };
        let values = self.kept(values, m, elem, alone, alone)?;
        let kept = Scattered { places: &places, values: &values, ..scattered };
        self.afterwards(|me| me.store_in_group(kept, dest))
    }

    /// Returns `m` values as they are before the stores of the update around: in registers, or else in local memory, unless no
    /// store changes them. The registers are those of the first work-item, if it is `alone`.
    fn kept(&mut self, v: &View, m: i64, elem: &Shape, registers: bool, alone: bool) -> Step<View> {
        let shape = Shape::Array(m, Box::new(elem.clone()));
        let Some(owned) = self.later.as_ref().map(|l| l.owned.clone()) else {
            return Ok(v.clone());
        };
        if !self.changes(v, &shape, &owned)? {
            return Ok(v.clone());
        }
        let space = if registers { Space::Private } else { Space::Local };
        let kept = self.in_front(|me| me.allocate(&shape, Some(space)))?;
        self.undeferred(|me| match alone {
            true => me.local(0, 1, false, &mut |me, _| me.store(v, &kept.dest, &shape)),
            false if registers => me.store(v, &kept.dest, &shape),
            false if m == 1 => {
                let first = Index::from(0);
                me.copy(&v.at(&first)?, &kept.dest.at(&first)?, elem)
            }
            false => me.copy(v, &kept.dest, &shape),
        })?;
        Ok(kept.view)
    }
}
