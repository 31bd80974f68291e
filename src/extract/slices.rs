//! Values for the tunables of [`Op::Sliced`]: how many elements a work-group takes, and into how many slices
//! it cuts each.

use super::tunables::{COUNT, Target};
use crate::calculus::size::{Size, Sym};
use crate::calculus::term::{Op, Term};
use indexmap::IndexMap;

/// The tunables of a term with slices, by purpose.
#[derive(Clone, Debug)]
pub(super) struct Slices {
    /// Tiles whose product is the number of elements of a group. The innermost comes last: neighbours in it
    /// are neighbours in memory.
    elements: Vec<Sym>,
    /// The length of a slice, if that is a tile.
    slice: Option<Sym>,
}

impl Slices {
    /// Returns the slices of a term as it stands in the graph; `None` when it has none.
    pub(super) fn of(compact: &Term) -> Option<Slices> {
        let tiles = |s: &Size, sign: i32| -> Vec<Sym> {
            s.factors()
                .filter(|(sym, e)| matches!(sym, Sym::Tile(_)) && e.signum() == sign)
                .map(|(sym, _)| sym.clone())
                .collect()
        };
        let (mut out, mut columns): (Option<Slices>, Option<Sym>) = (None, None);
        compact.visit(&mut |t| match (t.op(), t.sizes()) {
            (Op::Sliced, [n, c]) => {
                out = Some(Slices { elements: tiles(n, 1), slice: tiles(c, -1).pop() });
            }
            (Op::Tiled(_), s) => columns = s[3].as_sym().cloned(),
            _ => {}
        });
        let mut out = out?;
        out.elements.sort_by_key(|s| Some(s) == columns.as_ref());
        Some(out)
    }

    /// Returns the values to try for a symbol; `None` when it is not one of these tiles.
    pub(super) fn options(&self, s: &Sym) -> Option<Vec<u64>> {
        if self.slice.as_ref() == Some(s) {
            return Some([2, 4, 8, 16, 32].map(|n| n | COUNT).to_vec());
        }
        let place = self.elements.iter().position(|e| e == s)?;
        Some(if place + 1 == self.elements.len() { vec![32, 64, 128] } else { vec![1, 2, 4, 8] })
    }

    /// Whether a group has neither too few nor too many work-items for the device.
    pub(super) fn fits(&self, picked: &IndexMap<Sym, u64>, target: &Target) -> bool {
        let value = |s: &Sym| picked.get(s).map_or(1, |v| v & !COUNT);
        let items = self.elements.iter().chain(&self.slice).map(value).product::<u64>();
        let [fewest, most] = target.search.slice_items;
        (fewest..=most.min(target.max_group)).contains(&items)
    }
}
