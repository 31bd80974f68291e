//! The arguments of a call: values in the order of a program's parameters, on the host or on the device.

use super::inputs::{Given, Request, fill, names_of, sizes_of, slots};
use super::loaded::Resident;
use super::npy::NpyArray;
use super::program::{Program, Sizes};
use crate::diag::{Code, Diagnostic, Result};
use crate::opencl::host::{HostArray, Slot};
use crate::opencl::runtime::DeviceArray;
use std::collections::BTreeMap;

/// A value that a program is called with.
#[derive(Clone)]
pub enum Argument {
    /// An array of the host.
    Host(NpyArray),
    /// An array on the device.
    Device(Resident),
    /// The text of a number or boolean.
    Text(String),
}

/// A value of one component of a parameter.
pub(super) enum Element {
    /// On the host.
    Host(HostArray),
    /// On the device.
    Device(DeviceArray),
}

/// Arguments of a call, each with the component of a parameter that it is for.
pub(super) struct Arguments {
    /// Every size parameter.
    pub sizes: Sizes,
    /// The values.
    pub values: Vec<(Slot, Element)>,
    /// The same values as a request. Arrays on the device have no elements there: see `on_device`.
    pub request: Request,
    /// The arrays on the device, by the name that they have in the request.
    pub on_device: OnDevice,
}

/// Returns arguments as a request. Arrays on the device have no elements there.
///
/// # Errors
/// When there are more or fewer of them than the program has parameters.
pub fn request_of(program: &Program, sizes: Sizes, arguments: Vec<Argument>) -> Result<Request> {
    Ok(named(program, sizes, arguments)?.0)
}

/// Arrays on the device, by the name of their parameter, each with its origin for messages.
pub(super) type OnDevice = BTreeMap<String, (Resident, String)>;

/// Returns arguments by name.
fn named(program: &Program, sizes: Sizes, arguments: Vec<Argument>) -> Result<(Request, OnDevice)> {
    let names = names_of(program, arguments.len(), "the call")?;
    let mut request = Request { sizes, ..Request::default() };
    let mut on_device = BTreeMap::new();
    for (i, ((name, is_size), argument)) in names.into_iter().zip(arguments).enumerate() {
        let from = format!("argument {}", i + 1);
        let given = match argument {
            Argument::Host(array) => Given::Array(array, from),
            Argument::Text(text) if is_size => {
                let n = text.parse().map_err(|_| {
                    let text = format!("`{text}` is no length, which the size `{name}` must have");
                    Diagnostic::error(Code::InputType, text)
                })?;
                request.sizes.insert(name, n);
                continue;
            }
            Argument::Text(text) => Given::Text(text),
            Argument::Device(resident) => {
                let given = Given::Array(outline(&resident)?, from.clone());
                on_device.insert(name.clone(), (resident, from));
                given
            }
        };
        if is_size {
            let text = format!("argument {} is an array, and `{name}` is a size", i + 1);
            return Err(Diagnostic::error(Code::InputType, text).into());
        }
        request.values.insert(name, given);
    }
    Ok((request, on_device))
}

/// Pairs arguments with the parameters of a program, in order.
///
/// # Errors
/// When there are more or fewer of them, or they do not fit.
pub(super) fn bind_arguments(
    program: &Program,
    sizes: Sizes,
    arguments: Vec<Argument>,
) -> Result<Arguments> {
    let (request, on_device) = named(program, sizes, arguments)?;
    let slots = slots(program, &request)?;
    let sizes = sizes_of(program, &request, &slots)?;
    let mut values = vec![];
    for slot in &slots {
        let (param, component) = (slot.param.name.clone(), slot.component);
        let label = format!("{param}.{}", slot.param.label(component));
        let device = on_device.get(&param).or_else(|| on_device.get(&label));
        let element = match device {
            Some((resident, from)) if resident.array.ty() != slot.ty => {
                return Err(slot.wrong_type(program, from, resident.array.ty()).into());
            }
            Some((resident, _)) => Element::Device(resident.array.clone()),
            None => Element::Host(fill(program, slot, &sizes, 0, &mut |_, _| {
                Err(Diagnostic::error(Code::Internal, "a value is generated").into())
            })?),
        };
        values.push((Slot { param, component }, element));
    }
    Ok(Arguments { sizes, values, request, on_device })
}

/// Returns an array of the same shape without elements, of which only the shape and the type are looked at.
fn outline(resident: &Resident) -> Result<NpyArray> {
    let empty = HostArray::from_bytes(resident.array.ty(), vec![]);
    let broken = || Diagnostic::error(Code::Internal, "no array without elements");
    Ok(NpyArray { shape: resident.shape.clone(), data: empty.ok_or_else(broken)? })
}
