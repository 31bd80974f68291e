//! Kernels from what the tuning store says of them: a term and its tunables as text.

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
use crate::tune::event::{Event, Observer};
use crate::tune::store::{Fate, Key, Ranked, Record, Store};
use crate::tune::variant::Variant;
use crate::tune::worker::FailureClass;
use std::sync::Arc;

/// Stored sizes that are tried before a search is made.
const NEIGHBOURS: usize = 4;
/// Stored candidates that are looked at before a search is made.
const IMPORTED: usize = 4;

/// Kernels that were tuned for just this.
pub(super) struct Known {
    pub variant: Variant,
    /// Whether they were measured or checked here, and not only taken in from elsewhere.
    pub verified: bool,
}

/// Kernels that were tuned for other sizes.
pub(super) struct Neighbour {
    pub variant: Variant,
    /// The sizes that they were tuned for.
    pub sizes: Sizes,
}

/// A term of a program from its text; `None` when this version of patsat does not read it, or it gives what the program
/// does not.
pub(super) fn term(text: &str, program: &elaborate::Program) -> Option<Term> {
    let inputs = program.inputs.iter().map(|(n, _, t)| (n.clone(), t.clone())).collect();
    let context = Context { inputs, variables: None };
    let term = read_term(&Source::new("the tuning store", text), &Ty::Unit, &context).ok()?;
    (term.ty().cod == program.result_ty).then_some(term)
}

impl Session {
    /// The kernels of a stored candidate, generated again; `None` when they have changed since it was measured.
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
        let made = Variant::new(&term_, &env, skeleton, &options, model);
        let variant = made.ok().filter(|v| v.hash == record.plan)?;
        let compact = record.compact.as_ref().and_then(|text| term(text, elaborated));
        Some(Variant { compact, ..variant })
    }

    /// The store, if there is one and it may be looked into.
    pub(super) fn look(&self) -> Result<Option<Store>> {
        let path = self.store.as_ref().filter(|path| !self.anew && path.exists());
        path.map(|path| Store::open(path)).transpose()
    }

    /// The best kernels that the store knows, without those of `refused` hashes, if they are what would be generated
    /// now.
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
                Some(variant) => return Ok(Some(Known { variant, verified: record.verified })),
                // Others are no better; but what was taken in from elsewhere is passed over.
                None if record.verified => return Ok(None),
                None => {}
            }
        }
        Ok(None)
    }

    /// Notes how imported kernels came out when they were first used: that they are right, or else what they did
    /// wrong, which a person is told of.
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
            // What cannot be noted is checked again next time.
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

    /// Kernels for these sizes by the term and the tunables of the nearest sizes that the store knows, if
    /// they can be had for these: not measured, and not checked yet.
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
            let variant = Variant::new(&term_, &env, skeleton, &options, &model).ok()?;
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

/// A place in a ranking as it was stored, its kernels as they were measured; `None` when they cannot be read.
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
        bound: record.bound.unwrap_or_default(),
    };
    Some(best(Arc::new(variant), place))
}

/// A variant with the times that it was ranked by.
pub(super) fn best(variant: Arc<Variant>, place: &Ranked) -> Best {
    Best { variant, summary: Some(place.times), max_rel_err: Some(place.max_rel_err) }
}
