//! Builds the saturated e-graph of a program.

use super::generate::Generator;
use super::optimize::not_saturated;
use super::program::{Program, Sizes};
use super::{Request, Session, inputs};
use crate::calculus::elaborate;
use crate::device::DeviceInfo;
use crate::diag::{Code, Diagnostic, Result};
use crate::saturate::{Saturated, StopReason, saturate, saturate_apart};

/// A program and its saturated e-graph.
pub struct Graph {
    /// The program as a term, with the values of its dimensions.
    pub program: elaborate::Program,
    /// The e-graph.
    pub saturated: Saturated,
    /// Warnings if forms were left out, or saturation stopped early.
    pub warnings: Vec<Diagnostic>,
}

impl Session {
    /// Rewrites a program by the rules that apply to the session's device.
    ///
    /// # Errors
    /// When the program or its sizes are wrong, a rule is unsound, or there is no such device.
    pub fn graph(&self, program: &Program, request: &Request) -> Result<Graph> {
        // Saturation does not depend on the data, so missing inputs are no error.
        let default = request.default.clone().or(Some(Generator::Normal));
        let sizes = inputs::sizes(program, &Request { default, ..request.clone() })?;
        self.graph_for(program, &sizes, &self.target()?.0, true)
    }

    /// Builds the graph for a device, with the program's forms merged into one class, or each in its own.
    pub(super) fn graph_for(
        &self,
        program: &Program,
        sizes: &Sizes,
        device: &DeviceInfo,
        merged: bool,
    ) -> Result<Graph> {
        let elaborated = program.elaborate(sizes)?;
        let rules = self.rules.offered(&device.capabilities.names());
        let run = if merged { saturate } else { saturate_apart };
        let saturated = run(&self.float.forms(&elaborated), &rules, &self.limits)?;
        let left_out = |reason: &String| {
            let text = format!("a form of the program was left out: {reason}");
            Diagnostic::warning(Code::Internal, text)
                .note("the program compiles without it, but its kernels may be slower")
        };
        let mut warnings: Vec<Diagnostic> = elaborated.lost.iter().map(left_out).collect();
        if saturated.report.stop_reason != StopReason::Saturated {
            warnings.push(not_saturated(&saturated.report, &self.limits));
        }
        Ok(Graph { program: elaborated, saturated, warnings })
    }
}
