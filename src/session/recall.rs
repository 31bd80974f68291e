//! Generates kernels again from the tuning store, which holds their terms and tunables as text.

use super::Session;
use super::optimize::Best;
use super::program::{Program, Sizes};
use crate::calculus::elaborate;
use crate::calculus::term::Term;
use crate::calculus::text::{Context, read_term};
use crate::calculus::ty::Ty;
use crate::device::DeviceInfo;
use crate::device::cost_model::CostModel;
use crate::diag::{Code, Diagnostic, Result, Source};
use crate::extract::{assigned, refitted};
use crate::kernel::Generator;
use crate::tune::event::{Event, Observer};
use crate::tune::store::{Fate, Key, Ranked, Record, Store};
use crate::tune::variant::Variant;
use crate::tune::worker::FailureClass;
use std::sync::Arc;

/// How many stored sizes are tried before a search.
const NEIGHBOURS: usize = 4;
/// How many stored candidates are tried before a search.
const IMPORTED: usize = 4;

/// Kernels that were tuned for exactly this key.
pub(super) struct Known {
    pub variant: Variant,
    /// Whether they were measured or checked here. If not, they were imported and must be checked before use.
    pub verified: bool,
    /// Their median time when they were tuned, in microseconds.
    pub median_us: Option<f64>,
}

/// Kernels that were tuned for other sizes.
pub(super) struct Neighbour {
    pub variant: Variant,
    /// The sizes that they were tuned for.
    pub sizes: Sizes,
}

/// Reads a term of a program; `None` when this version of patsat cannot read it, or its result does not have the type
/// of the program's result.
pub(super) fn term(text: &str, program: &elaborate::Program) -> Option<Term> {
    let inputs = program.inputs.iter().map(|(n, _, t)| (n.clone(), t.clone())).collect();
    let context = Context { inputs, variables: None };
    let term = read_term(&Source::new("the tuning store", text), &Ty::Unit, &context).ok()?;
    (term.ty().cod == program.result_ty).then_some(term)
}

impl Session {
    /// Generates the kernels of a stored candidate again; `None` when they differ from those that were measured.
    pub(super) fn again(
        &self,
        elaborated: &elaborate::Program,
        record: &Record,
        device: &DeviceInfo,
        model: &CostModel,
    ) -> Option<Variant> {
        let term_ = term(&record.term, elaborated)?;
        let env = assigned(&term_, &elaborated.env, &record.tunables)?;
        let options = self.options(&elaborated.name, device);
        let skeleton = record.skeleton.as_deref().unwrap_or_default();
        let made = Variant::new(&term_, &env, skeleton, &Generator::new(&options), model);
        let variant = made.ok().filter(|v| v.hash == record.plan)?;
        let compact = record.compact.as_ref().and_then(|text| term(text, elaborated));
        Some(Variant { compact, ..variant })
    }

    /// Opens the store for reading, if there is one and [`Session::anew`] is not set.
    pub(super) fn look(&self) -> Result<Option<Store>> {
        let path = self.store.as_ref().filter(|path| !self.anew && path.exists());
        path.map(|path| Store::open(path)).transpose()
    }

    /// Returns the best kernels in the store whose hash is not in `refused`, if their term still gives the same
    /// kernels.
    pub(super) fn known(
        &self,
        program: &Program,
        sizes: &Sizes,
        device: &DeviceInfo,
        refused: &[String],
    ) -> Result<Option<Known>> {
        let Some(store) = self.look()? else { return Ok(None) };
        let records = store.measured(&self.key(program, sizes, device))?;
        let timed = records.iter().take_while(|r| r.fate == Fate::Timed);
        let model = self.cost_model_for(device)?.model;
        let elaborated = program.elaborate(sizes)?;
        for record in timed.filter(|r| !refused.contains(&r.plan)).take(IMPORTED) {
            let made = self.again(&elaborated, record, device, &model);
            match made {
                Some(variant) => {
                    let (verified, median_us) = (record.verified, record.median_us);
                    return Ok(Some(Known { variant, verified, median_us }));
                }
                // If a verified candidate gives other kernels now, the code generator has changed, so the others are
                // no better. An imported candidate may be bad for other reasons, so it is skipped.
                None if record.verified => return Ok(None),
                None => {}
            }
        }
        Ok(None)
    }

    /// Records in the store whether imported kernels were right when they were first used. If they were `wrong`, also
    /// warns the observer.
    pub(super) fn judge(
        &self,
        (program, sizes): (&Program, &Sizes),
        device: &DeviceInfo,
        variant: &Variant,
        wrong: Option<String>,
        observer: &mut dyn Observer,
    ) {
        let key = self.key(program, sizes, device);
        if let Some(path) = &self.store {
            // If the store cannot be written, the kernels are checked again next time.
            let _ = Store::open(path).and_then(|mut store| match &wrong {
                None => store.verify(&key, &variant.hash),
                Some(log) => {
                    let fate = Fate::Failed(FailureClass::Wrong);
                    let record = Record { log: Some(log.clone()), ..Record::of(variant, fate) };
                    store.record(&key, &record)
                }
            });
        }
        if let Some(what) = wrong {
            let text = format!(
                "kernels for `{}` that were imported into the tuning store are not used",
                program.entry.name
            );
            let d = Diagnostic::warning(Code::Unverified, text).note(what);
            observer.event(&Event::Warning(&d));
        }
    }

    /// Generates kernels for these sizes from the term and tunables of the nearest stored sizes, if these fit. The
    /// kernels are neither measured nor checked.
    pub(super) fn neighbour(
        &self,
        program: &Program,
        sizes: &Sizes,
        device: &DeviceInfo,
    ) -> Result<Option<Neighbour>> {
        let Some(store) = self.look()? else { return Ok(None) };
        let elaborated = program.elaborate(sizes)?;
        let model = self.cost_model_for(device)?.model;
        let options = self.options(&elaborated.name, device);
        let made = |key: &Key, record: &Record| -> Option<Neighbour> {
            let tuned: Sizes = key.sizes.iter().map(|(n, v)| (n.clone(), *v)).collect();
            let before = program.elaborate(&tuned).ok()?;
            let term_ = term(&record.term, &elaborated)?;
            let from = assigned(&term_, &before.env, &record.tunables)?;
            let env = refitted(&term_, &from, &elaborated.env)?;
            let skeleton = record.skeleton.as_deref().unwrap_or_default();
            let variant =
                Variant::new(&term_, &env, skeleton, &Generator::new(&options), &model).ok()?;
            Some(Neighbour { variant, sizes: tuned })
        };
        for key in store.nearest(&self.key(program, sizes, device))?.iter().take(NEIGHBOURS) {
            if let Some(found) = store.best(key)?.and_then(|record| made(key, &record)) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// Returns an entry of a stored ranking with its stored kernels, without generating them again; `None` when they
/// cannot be read.
pub(super) fn ranked(
    elaborated: &elaborate::Program,
    place: &Ranked,
    record: Record,
) -> Option<Best> {
    let term_ = term(&record.term, elaborated)?;
    let env = assigned(&term_, &elaborated.env, &record.tunables)?;
    let variant = Variant {
        compact: record.compact.and_then(|text| term(&text, elaborated)),
        term: term_,
        env,
        skeleton: record.skeleton.unwrap_or_default(),
        plan: Arc::new(record.host?.plan(record.source)),
        hash: record.plan,
        predicted_us: record.predicted_us?,
        kernels: place.kernels.clone(),
        bound: record.bound.unwrap_or_default(),
    };
    Some(best(Arc::new(variant), place))
}

/// Returns a variant with the times of its entry in a stored ranking.
pub(super) fn best(variant: Arc<Variant>, place: &Ranked) -> Best {
    let (summary, max_rel_err) = (Some(place.times), Some(place.max_rel_err));
    Best { variant, summary, kernels_us: place.kernels_us.clone(), max_rel_err }
}
