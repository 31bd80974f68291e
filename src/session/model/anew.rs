//! Predicts the candidates of the tuning store again, with the present model of kernels.

use crate::calculus::elaborate;
use crate::device::DeviceInfo;
use crate::device::cost_model::CostModel;
use crate::diag::{Result, Source, on_all_cores};
use crate::extract::assigned;
use crate::kernel::{Generator, Options};
use crate::opencl::runtime::{self, Runtime};
use crate::session::program::Sizes;
use crate::session::{Float, Program, Session, recall};
use crate::tune::store::{Key, Record, Store};
use crate::tune::variant::Variant;
use std::collections::BTreeMap;

/// How many candidates were left out, by reason.
pub(super) type Reasons = BTreeMap<&'static str, usize>;

/// The state for predicting candidates again.
pub(super) struct Anew<'a> {
    store: &'a Store,
    session: Session,
    /// The cost model that the caller asks for; `None` chooses one for each device.
    model: Option<&'a CostModel>,
    /// Devices by label; `None` for a device that is neither described in the store nor present.
    devices: BTreeMap<String, Option<DeviceInfo>>,
}

/// One program at one size on one device.
struct Subject {
    elaborated: elaborate::Program,
    options: Options,
    model: CostModel,
}

impl<'a> Anew<'a> {
    /// # Errors
    /// When the store cannot be read.
    pub fn new(store: &'a Store, model: Option<&'a CostModel>) -> Result<Anew<'a>> {
        let mut devices = BTreeMap::new();
        // The answer of every complete search describes its device.
        for entry in store.list()? {
            for answer in store.answers(&entry.key)? {
                let told = answer.summary.get("device").cloned().unwrap_or_default();
                if let Ok(device) = serde_json::from_value::<DeviceInfo>(told) {
                    devices.entry(entry.key.device.clone()).or_insert(Some(device));
                }
            }
        }
        Ok(Anew { store, session: Session::new()?, model, devices })
    }

    /// Returns the records with new predictions and bounds, and how many records have no prediction, by reason.
    ///
    /// # Errors
    /// When the store cannot be read, or a shipped cost model is wrong.
    pub fn predict(&mut self, key: &Key, records: Vec<Record>) -> Result<(Vec<Record>, Reasons)> {
        if records.is_empty() {
            return Ok((records, Reasons::new()));
        }
        let subject = match self.subject(key)? {
            Ok(subject) => subject,
            Err(reason) => return Ok((vec![], Reasons::from([(reason, records.len())]))),
        };
        let made = on_all_cores(&records, |r| subject.predict(r));
        let (mut out, mut reasons) = (vec![], Reasons::new());
        for (record, made) in records.into_iter().zip(made) {
            match made {
                Ok((us, bound)) => {
                    out.push(Record { predicted_us: Some(us), bound: Some(bound), ..record });
                }
                Err(reason) => *reasons.entry(reason).or_default() += 1,
            }
        }
        Ok((out, reasons))
    }

    fn subject(&mut self, key: &Key) -> Result<std::result::Result<Subject, &'static str>> {
        let Some(about) = self.store.about(key)? else {
            return Ok(Err("an older version of patsat did not keep the program"));
        };
        let Some(device) = self.device(&key.device) else {
            return Ok(Err("the device is neither described in the store nor present"));
        };
        let sizes: Sizes = key.sizes.iter().map(|(n, v)| (n.clone(), *v)).collect();
        let program = Program::check(&Source::new(about.file, about.text), Some(&key.entry));
        let Ok(elaborated) = program.and_then(|p| p.elaborate(&sizes)) else {
            return Ok(Err("this version of patsat does not accept its program"));
        };
        let model = match self.model {
            Some(model) => model.clone(),
            None => CostModel::choose(&device)?.model,
        };
        self.session.float = Float::named(&key.float);
        let options = self.session.options(&key.entry, &device);
        Ok(Ok(Subject { elaborated, options, model }))
    }

    /// Returns the description of a device, from the store or from this machine.
    fn device(&mut self, label: &str) -> Option<DeviceInfo> {
        let here = || -> Option<DeviceInfo> {
            let listed = runtime::devices().ok()?;
            let found = listed.iter().find(|d| d.label() == label)?;
            Some(Runtime::open(Some(&format!("#{}", found.index))).ok()?.info().clone())
        };
        self.devices.entry(label.to_owned()).or_insert_with(here).clone()
    }
}

impl Subject {
    /// Predicts the time and the bound of a candidate. Fails if its kernels are not those that were measured.
    fn predict(&self, record: &Record) -> std::result::Result<(f64, String), &'static str> {
        let term = recall::term(&record.term, &self.elaborated)
            .ok_or("this version of patsat does not accept its term")?;
        let env = assigned(&term, &self.elaborated.env, &record.tunables)
            .ok_or("its tunables do not fit its term any more")?;
        let made = Variant::new(&term, &env, "", &Generator::new(&self.options), &self.model)
            .map_err(|_| "no kernels are generated for it any more")?;
        if made.hash != record.plan {
            return Err("other kernels are generated for it now");
        }
        Ok((made.predicted_us, made.bound))
    }
}
