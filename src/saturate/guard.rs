//! What the type of an e-class says before a rule is searched from it.
//!
//! A class has one type. So a length in that type which a side condition does not allow is known before the search, which may find
//! ten thousands of matches below the class that all fail for this length.

use super::analysis::Data;
use crate::calculus::size::Sym;
use crate::calculus::ty::Ty;
use crate::rules::{Bindings, Condition, Facts, Rule};

/// What a rule demands of the type of the class that its left side matches.
#[derive(Default)]
pub struct Guard {
    result: Option<Ty>,
    /// `None` if a tail follows the left side in a chain: the class has the tail's argument.
    argument: Option<Ty>,
    when: Vec<Condition>,
}

impl Guard {
    /// Returns the guard of a rule, with or without a tail.
    pub fn of(rule: &Rule, tail: bool) -> Guard {
        let ty = rule.lhs.ty();
        let plain = |t: &Ty| is_plain(t).then(|| t.clone());
        Guard {
            result: plain(&ty.cod),
            argument: plain(&ty.dom).filter(|_| !tail),
            when: rule.when.clone(),
        }
    }

    /// Whether the rule may apply to a class. If not, no match from the class has values for the rule's variables that satisfy its
    /// conditions.
    pub fn admits(&self, class: &Data) -> bool {
        let Some(ty) = class.function() else { return true };
        let mut b = Bindings::default();
        let mut fits =
            |want: &Option<Ty>, got: &Ty| want.as_ref().is_none_or(|t| b.match_ty(t, got));
        fits(&self.result, &ty.cod)
            && fits(&self.argument, &ty.dom)
            && self.when.iter().all(|c| !c.is_decided(&b) || c.holds(&b, &|_| Facts::default()))
    }
}

/// Whether matching the type gives each of its variables the value that every match of the rule gives it: its lengths are single
/// variables, and it has no vectors, which may be pairs.
fn is_plain(t: &Ty) -> bool {
    match t {
        Ty::Unit | Ty::Scalar(_) | Ty::Meta(_) => true,
        Ty::Vector(..) => false,
        Ty::Pair(a, b) => is_plain(a) && is_plain(b),
        Ty::Array(n, t) => {
            (!n.has_meta() || matches!(n.as_sym(), Some(Sym::Meta(_)))) && is_plain(t)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::size::Size;
    use crate::calculus::ty::FnTy;
    use crate::lang::types::ScalarType;
    use crate::rules::RuleSet;

    #[test]
    fn a_length_that_no_condition_allows_is_known_from_the_type() {
        let rules = RuleSet::shipped().expect("shipped rules");
        // `slice-tile-then` wants two tiles: `map (map (h . reduce op z . map g . w))` on `[n][m]a`.
        let rule = rules.iter().find(|r| r.name == "slice-tile-then").expect("it is shipped");
        let (n, m) = (Size::dim("n"), Size::dim("m"));
        let f32 = Ty::Scalar(ScalarType::F32);
        let matrix = |n: &Size, m: &Size| Ty::array(n, &Ty::array(m, &f32));
        let class =
            |dom: &Ty, cod: &Ty| Data::Fn(FnTy::new(dom.clone(), cod.clone()), Facts::default());
        let tiles = matrix(&n.tile(), &m.tile());
        let whole = Guard::of(rule, false);
        assert!(whole.admits(&class(&tiles, &tiles)));
        assert!(!whole.admits(&class(&tiles, &matrix(&n.tile(), &m))), "another length");
        assert!(!whole.admits(&class(&matrix(&n, &m.tile()), &matrix(&n, &m.tile()))), "no tile");
        assert!(!whole.admits(&class(&tiles, &Ty::array(&n.tile(), &f32))), "no matrix");
        // With a tail, any argument goes.
        let chain = Guard::of(rule, true);
        assert!(chain.admits(&class(&Ty::Unit, &tiles)));
        assert!(!chain.admits(&class(&Ty::Unit, &matrix(&n, &m))));
        assert!(Guard::default().admits(&class(&Ty::Unit, &f32)));
    }
}
