//! Programs that are called many times in one process: kernels are built once for each choice of sizes, and arrays stay
//! on the device between calls.

use super::arguments::{Argument, Element, bind_arguments};
use super::inputs::{Given, Request};
use super::npy::NpyArray;
use super::optimize::Optimized;
use super::program::{Program, Sizes};
use super::{Observer, Session, memory};
use crate::calculus::interp;
use crate::device::DeviceInfo;
use crate::diag::{Code, Result};
use crate::opencl::host::Inputs;
use crate::opencl::runtime::{Built, DeviceArray, Runtime};
use crate::tune::variant::Variant;
use std::collections::HashMap;
use std::sync::Arc;

/// An array on the device, with its shape. A scalar has no dimensions.
#[derive(Clone)]
pub struct Resident {
    /// Length of each dimension, the slowest first.
    pub shape: Vec<usize>,
    /// The elements, in row-major order.
    pub array: DeviceArray,
}

impl Resident {
    /// Copies an array to the device of a runtime.
    ///
    /// # Errors
    /// Those of [`Runtime::put`].
    pub fn put(runtime: &Runtime, array: &NpyArray) -> Result<Resident> {
        Ok(Resident { shape: array.shape.clone(), array: runtime.put(&array.data)? })
    }

    /// Copies the array from the device of a runtime.
    ///
    /// # Errors
    /// Those of [`Runtime::get`].
    pub fn get(&self, runtime: &Runtime) -> Result<NpyArray> {
        Ok(NpyArray { shape: self.shape.clone(), data: runtime.get(&self.array)? })
    }
}

/// A program with the kernels that it was called with so far, for the device of one runtime.
pub struct Loaded {
    /// How kernels are found.
    pub session: Session,
    /// The program.
    pub program: Program,
    built: HashMap<Key, (Arc<Variant>, Built)>,
}

/// Sizes, in the order of the program's.
type Key = Vec<(String, u64)>;

/// The result of a call.
pub struct Called {
    /// The components of the result, with tuples flattened from left to right.
    pub outputs: Vec<Resident>,
    /// Value of each size parameter.
    pub sizes: Sizes,
    /// The kernels that ran.
    pub variant: Arc<Variant>,
    /// Time by device events, in microseconds.
    pub device_us: f64,
}

impl Session {
    /// Returns the best kernels of a program that need no measurement now: the verified ones in the tuning store, or
    /// else what the search of this session finds, within its budget.
    ///
    /// # Errors
    /// Those of [`Session::optimize`].
    pub fn kernels(
        &self,
        program: &Program,
        request: &Request,
        sizes: &Sizes,
        device: &DeviceInfo,
        observer: &mut dyn Observer,
    ) -> Result<Arc<Variant>> {
        memory::check_device(program, sizes, device)?;
        match self.known(program, sizes, device, &[])? {
            Some(known) if known.verified => Ok(Arc::new(known.variant)),
            _ => Ok(self.optimize(program, request, observer)?.best.variant),
        }
    }
}

impl Loaded {
    /// Returns a program without kernels.
    pub fn new(session: Session, program: Program) -> Loaded {
        Loaded { session, program, built: HashMap::new() }
    }

    /// Uses the kernels of a search from now on, at its sizes.
    ///
    /// # Errors
    /// When the driver does not build them.
    pub fn adopt(&mut self, runtime: &Runtime, optimized: &Optimized) -> Result<()> {
        let variant = optimized.best.variant.clone();
        let built = runtime.build(&variant.plan)?;
        self.built.insert(key(&optimized.sizes), (variant, built));
        Ok(())
    }

    /// Calls the program with a value for each parameter, in order (for each component of one that holds tuples).
    /// `sizes` are those that do not follow from the shapes of arrays.
    ///
    /// # Errors
    /// When the arguments do not fit the program, no kernels are found, or they fail.
    pub fn call(
        &mut self,
        runtime: &Runtime,
        sizes: Sizes,
        arguments: Vec<Argument>,
        observer: &mut dyn Observer,
    ) -> Result<Called> {
        let (mut host, mut device) = (Inputs::default(), vec![]);
        let bound = bind_arguments(&self.program, sizes, arguments)?;
        for (slot, value) in bound.values {
            match value {
                Element::Device(array) => device.push((slot, array)),
                Element::Host(array) => drop(host.0.insert(slot, array)),
            }
        }
        let key = key(&bound.sizes);
        if !self.built.contains_key(&key) {
            let mut request = Request { sizes: bound.sizes.clone(), ..bound.request };
            // Candidates run in another process, which has no arrays of this one.
            for (name, (resident, from)) in bound.on_device {
                request.values.insert(name, Given::Array(resident.get(runtime)?, from));
            }
            let info = runtime.info();
            let variant =
                self.session.kernels(&self.program, &request, &bound.sizes, info, observer)?;
            let built = runtime.build(&variant.plan)?;
            self.built.insert(key.clone(), (variant, built));
        }
        let (variant, built) = &self.built[&key];
        let mut inputs = runtime.upload(&host)?;
        for (slot, array) in device {
            runtime.add(&mut inputs, slot, &array)?;
        }
        let (times, arrays) = runtime.call(built, &inputs).map_err(|mut failure| {
            for d in failure.0.iter_mut().filter(|d| d.code == Code::Eval) {
                let eval = "`patsat eval` on the same data shows the place in the program";
                d.help.push(eval.to_owned());
            }
            failure
        })?;
        let shape = interp::shape(&self.program.entry.body.ty, &bound.sizes);
        let shapes = self.program.placed(shape)?.components();
        let outputs = shapes.into_iter().zip(arrays);
        Ok(Called {
            outputs: outputs.map(|((_, shape), array)| Resident { shape, array }).collect(),
            sizes: bound.sizes,
            variant: variant.clone(),
            device_us: times.device_us,
        })
    }
}

fn key(sizes: &Sizes) -> Key {
    sizes.iter().map(|(name, n)| (name.clone(), *n)).collect()
}
