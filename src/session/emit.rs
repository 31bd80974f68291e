//! Emits kernels for use elsewhere: a directory with the kernels of a plan, and with host programs in C and in Rust
//! that do not depend on patsat.

use super::files;
use super::generate::generate_shaped;
use super::inputs::bind_with;
use super::plan::Plan;
use super::recipe::{recipe, seed};
use super::{Program, Request, Session, Sizes};
use crate::diag::{Code, Diagnostic, Result};
use crate::opencl::emit::numbers::fill;
use crate::opencl::emit::{
    About, Emission, Expected, Input, MARK, Origin, files as emitted, type_of,
};
use crate::opencl::host::{HostArray, Slot};
use crate::opencl::plan::{HostPlan, Role};
use crate::tune::reference::{Wanted, wanted};
use crate::tune::variant::Variant;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The largest number of elements that are checked in a component of the result.
const CHECKED: usize = 1 << 16;

/// What was emitted.
pub struct Emitted {
    /// Names of the files.
    pub files: Vec<String>,
    /// The kernels.
    pub variant: Variant,
    /// Value of each size parameter.
    pub sizes: Sizes,
    /// How many elements of the result the host programs check, and how many elements the result has.
    pub checked: (usize, usize),
    /// Warnings for the user.
    pub warnings: Vec<Diagnostic>,
}

/// Checks that files may be emitted to a directory: the directory does not exist, is empty, was emitted before, or
/// `force` is set.
///
/// # Errors
/// [`Code::WouldReplace`] when the directory holds other files, [`Code::Io`] when the path cannot be read as a
/// directory.
pub fn check_directory(path: &Path, force: bool) -> Result<()> {
    let failed = |e: std::io::Error| {
        Diagnostic::error(Code::Io, format!("{} cannot be written to: {e}", path.display()))
    };
    let mut entries = match fs::read_dir(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(failed)?,
    };
    let own = || fs::read(path.join("README.md")).is_ok_and(|t| t.starts_with(MARK.as_bytes()));
    if entries.next().is_none() || force || own() {
        return Ok(());
    }
    let text = format!("{} is not empty, and was not emitted", path.display());
    Err(Diagnostic::error(Code::WouldReplace, text)
        .help("choose another directory, or write into this one with `--force`")
        .into())
}

impl Session {
    /// Writes the kernels of a plan into a directory, with host programs in C and in Rust that generate inputs, run
    /// the kernels and compare the result with the interpreter's. The request decides the inputs; generated inputs
    /// have the same distribution and range as those of other commands, but other values, or are stored.
    ///
    /// `force` writes into directories that hold other files, and accepts kernels that differ from those that the plan
    /// was made from.
    ///
    /// # Errors
    /// Those of [`Session::planned`], or when the program has no value on the inputs, or the files cannot be
    /// written.
    pub fn emit(
        &self,
        program: &Program,
        plan: &Plan,
        request: &Request,
        directory: &Path,
        force: bool,
    ) -> Result<Emitted> {
        check_directory(directory, force)?;
        let (sizes, request) = plan.sizes_for(program, request)?;
        let planned = self.planned(program, plan, &sizes, force)?;
        let (variant, mut warnings) = (planned.variant, planned.warnings);
        let mut recipes = BTreeMap::new();
        let bound = bind_with(program, &request, &mut |array, generator| {
            let Some(recipe) = recipe(generator, array)? else {
                let (ty, shape, sizes) = (array.ty, array.shape, array.sizes);
                return generate_shaped(generator, ty, shape, sizes, request.seed, array.stream);
            };
            let made = (recipe, seed(request.seed, array.stream));
            let slot = Slot { param: array.param.to_owned(), component: array.component };
            recipes.insert(slot, made);
            let length = array.shape.iter().product();
            let bytes = fill(made.0, type_of(array.ty), length, made.1);
            let broken = || Diagnostic::error(Code::Internal, "a recipe makes half an element");
            Ok(HostArray::from_bytes(array.ty, bytes).ok_or_else(broken)?)
        })?;
        warnings.extend(bound.warnings);
        let expected = wanted(&program.entry, &sizes, &bound.values, &self.limits);
        let expected: Vec<Vec<Expected>> =
            program.placed(expected)?.iter().map(|component| spread(component)).collect();
        let inputs = bound.inputs.0.into_iter().filter(|(slot, _)| reads(&variant.plan, slot));
        let inputs = inputs.map(|(slot, array)| Input {
            ty: array.ty(),
            length: array.len(),
            origin: match recipes.get(&slot) {
                Some((recipe, seed)) => Origin::Made(*recipe, *seed),
                None => Origin::Stored(array.into_bytes()),
            },
            slot,
        });
        let is_output = |b: &&crate::opencl::plan::Buffer| matches!(b.role, Role::Output(_));
        let all = variant.plan.buffers.iter().filter(is_output).map(|b| b.len).sum();
        let checked = (expected.iter().map(Vec::len).sum(), all);
        let emission = Emission {
            name: &program.entry.name,
            plan: &variant.plan,
            inputs: inputs.collect(),
            expected,
            about: about(plan, &sizes),
        };
        let mut list: Vec<(String, Vec<u8>)> =
            emitted(&emission)?.into_iter().map(|f| (f.name, f.contents)).collect();
        list.push(("program.pat".to_owned(), program.source.text.clone().into_bytes()));
        list.push(("kernels.plan".to_owned(), plan.to_text()?.into_bytes()));
        let inputs = [program.source.name.as_str(), plan.file_name()].map(PathBuf::from);
        files::write_folder(directory, &list, &inputs, force)?;
        let files = list.into_iter().map(|(name, _)| name).collect();
        Ok(Emitted { files, variant, sizes, checked, warnings })
    }
}

/// Returns whether the kernels read an input.
fn reads(plan: &HostPlan, slot: &Slot) -> bool {
    let buffer =
        |role: &Role| matches!(role, Role::Input(p, c) if (p, c) == (&slot.param, &slot.component));
    plan.buffers.iter().any(|b| buffer(&b.role))
        || plan.scalars.iter().any(|s| (&s.param, s.component) == (&slot.param, slot.component))
}

/// Returns the elements to check: at most [`CHECKED`], evenly spread.
fn spread(elements: &[Wanted]) -> Vec<Expected> {
    let (n, most) = (elements.len(), elements.len().min(CHECKED));
    (0..most)
        .filter_map(|k| elements.get(k * n.saturating_sub(1) / most.saturating_sub(1).max(1)))
        .map(|w| Expected { index: w.index, bits: w.cell.bits, slack: w.slack })
        .collect()
}

fn about(plan: &Plan, sizes: &Sizes) -> About {
    let sizes: Vec<String> = sizes.iter().map(|(n, v)| format!("{n}={v}")).collect();
    About {
        file: plan.file.clone(),
        sizes: sizes.join(" "),
        float: plan.float.clone(),
        device: match plan.driver.as_str() {
            "" => plan.device.clone(),
            driver => format!("{}, driver {driver}", plan.device),
        },
        time: match &plan.measured {
            Some(s) => format!(
                "{:.2} us there (the median of {} runs, spread {:.2} us)",
                s.median_us, s.runs, s.spread_us
            ),
            None => format!("not measured; {:.2} us by the cost model", plan.predicted_us),
        },
        term: plan.term_text(),
        tunables: plan.tunables_text(),
        version: plan.version.clone(),
    }
}
