//! Arrays that stay on the device between runs.

use super::prepared::{Outputs, bytes_of, internal};
use super::{Built, Bytes, DeviceInputs, RunTimes, Runtime};
use crate::diag::Result;
use crate::lang::types::ScalarType;
use crate::opencl::host::{HostArray, Slot};
use std::sync::Arc;

/// An array on a device. Clones share its memory, which nothing writes to once the array is made.
#[derive(Clone)]
pub struct DeviceArray {
    pub(super) ty: ScalarType,
    pub(super) len: usize,
    pub(super) bytes: Arc<Bytes>,
}

impl DeviceArray {
    /// Returns the type of its elements.
    pub fn ty(&self) -> ScalarType {
        self.ty
    }

    /// Returns the number of its elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Runtime {
    /// Copies an array to the device.
    ///
    /// # Errors
    /// When the device has too little memory, and when the driver fails.
    pub fn put(&self, array: &HostArray) -> Result<DeviceArray> {
        let (ty, len) = (array.ty(), array.len());
        let size = bytes_of(ty, len).ok_or_else(|| internal("the size overflows".into()))?;
        let bytes = self.allocate(size)?;
        self.write(&bytes, array.bytes())?;
        Ok(DeviceArray { ty, len, bytes })
    }

    /// Copies an array from the device.
    ///
    /// # Errors
    /// When the driver fails.
    pub fn get(&self, array: &DeviceArray) -> Result<HostArray> {
        let mut data = vec![0; array.len * array.ty.bytes()];
        self.read(&array.bytes, &mut data)?;
        let whole = HostArray::from_bytes(array.ty, data);
        Ok(whole.ok_or_else(|| internal("an array of half an element".into()))?)
    }

    /// Adds an array that is on this device already to the inputs of a program.
    ///
    /// # Errors
    /// When the driver fails.
    pub fn add(&self, inputs: &mut DeviceInputs, slot: Slot, array: &DeviceArray) -> Result<()> {
        if array.len == 1 {
            // It may be the value of a scalar parameter.
            inputs.host.insert(slot.clone(), self.get(array)?);
        }
        inputs.buffers.insert(slot, (array.ty, array.len, array.bytes.clone()));
        Ok(())
    }

    /// Runs a built plan, and returns the outputs in order, as new arrays on the device.
    ///
    /// # Errors
    /// [`Code::Eval`](crate::diag::Code::Eval) when a kernel finds that the program has no value on the inputs;
    /// otherwise when inputs are missing, memory does not suffice, or the driver fails.
    pub fn call(
        &self,
        built: &Built,
        inputs: &DeviceInputs,
    ) -> Result<(RunTimes, Vec<DeviceArray>)> {
        self.prepare_with(built, inputs, Outputs::Own)?.call(self)
    }
}
