//! Equality saturation: the e-graph language, its typed analysis, compiled rules, the run and its report.

mod analysis;
mod changes;
mod compile;
pub mod explain;
pub mod export;
mod guard;
mod language;
pub mod lookup;
pub(crate) mod run;
mod subpatterns;

pub use crate::rules::Facts;
pub use analysis::{Data, Typed};
pub use language::{Kind, Node, NodeOp, add_term};
pub use lookup::{Found, Missing, lookup, lookup_anywhere, lookup_from};
pub use run::{Iteration, Report, RuleStat, Saturated, StopReason, saturate, saturate_apart};

pub use egg::Id as ClassId;

/// The e-graph of terms.
pub type EGraph = egg::EGraph<Node, Typed>;
