//! Binds a program's parameters and sizes to values: from files, from the command line, or generated.
//!
//! Sizes are determined first, from the request and from the shapes of arrays, so that every mismatch is reported
//! before large arrays are allocated.

mod names;

use super::futhark;
use super::generate::{Generator, generate, generate_shaped};
use super::npy::NpyArray;
use super::program::{Program, Sizes, components};
use crate::calculus::interp;
use crate::calculus::scalar::Lit;
use crate::calculus::value::Value;
use crate::diag::{Code, Diagnostic, Failure, Result, Span};
use crate::lang::size::{EXACT, Size, SizeError};
use crate::lang::typed::Param;
use crate::lang::types::{ScalarType, Type};
use crate::opencl::host::{HostArray, Inputs};
use indexmap::IndexMap;
use names::{how_to_give, known, list, missing, no_size};
use std::collections::BTreeMap;

/// Where a parameter's value comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// An array (without dimensions for a scalar parameter), and its name for messages.
    Array(NpyArray, String),
    /// The text of a number or boolean, for a scalar parameter.
    Text(String),
    /// Generated.
    Made(Generator),
}

/// The values that the caller gives for a program's parameters and sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Values of size parameters. The others follow from the shapes of arrays.
    pub sizes: Sizes,
    /// Values by parameter, or by `PARAMETER.K` for component `K` of a parameter that holds tuples, or by
    /// `PARAMETER.FIELD` of one that holds records.
    pub values: IndexMap<String, Given>,
    /// The generator for values that are neither given nor described by the program's comment. If `None`, they are an
    /// error.
    pub default: Option<Generator>,
    /// Seed of all generated values.
    pub seed: u64,
}

impl Request {
    /// Gives values to the parameters of a program, in order: one value for each parameter, or for each component of
    /// one that holds tuples, and a number for each size that stands among the parameters. `name` is for messages.
    ///
    /// # Errors
    /// When there are more or fewer values, a value for a size is no whole number, or a name has a value already.
    pub fn in_order(&mut self, program: &Program, values: Vec<NpyArray>, name: &str) -> Result<()> {
        let entry = &program.entry;
        let names = names_of(program, values.len(), name)?;
        for (i, ((param, is_size), value)) in names.into_iter().zip(values).enumerate() {
            let from = format!("value {} of {name}", i + 1);
            let twice = || Diagnostic::error(Code::Usage, format!("`{param}` is given twice"));
            if !is_size {
                let given = Given::Array(value, from);
                if self.values.insert(param.clone(), given).is_some() {
                    return Err(twice().into());
                }
                continue;
            }
            let n = Some(&value.data).filter(|_| value.shape.is_empty());
            let Some(Ok(n)) = n.and_then(|n| futhark::converted(n, ScalarType::U64)) else {
                let text = format!("{from} is no length, which the size `{param}` must have");
                return Err(Diagnostic::error(Code::InputType, text)
                    .at(&program.source, entry.span, "")
                    .help("a length is a whole number that is not negative, such as `1024i64`")
                    .into());
            };
            let n = n.to_vec::<u64>().unwrap_or_default().first().copied().unwrap_or_default();
            if self.sizes.insert(param.clone(), n).is_some_and(|old| old != n) {
                return Err(twice().into());
            }
        }
        Ok(())
    }
}

/// Returns the name of each value that a program takes, in order, and whether it is that of a size. `name` is the origin
/// of the `have` values, for messages.
pub(super) fn names_of(program: &Program, have: usize, name: &str) -> Result<Vec<(String, bool)>> {
    let entry = &program.entry;
    let mut sizes = entry.size_params.iter().peekable();
    let mut names = vec![];
    for i in 0..=entry.params.len() {
        while let Some((_, size)) = sizes.next_if(|(before, _)| *before == i) {
            names.push((size.clone(), true));
        }
        let Some(param) = entry.params.get(i) else { break };
        names.extend(match components(&param.ty).len() {
            1 => vec![(param.name.clone(), false)],
            n => (0..n).map(|k| (format!("{}.{}", param.name, param.label(k)), false)).collect(),
        });
    }
    if names.len() != have {
        let want = names.len();
        let text =
            format!("{name} has {have} value{}, `{}` takes {want}", plural(have), entry.name);
        let names: Vec<_> = names.iter().map(|(name, _)| name).collect();
        return Err(Diagnostic::error(Code::InputShape, text)
            .at(&program.source, entry.span, "")
            .note(format!("its parameters, in order: {}", list(&names)))
            .into());
    }
    Ok(names)
}

/// Values for all parameters and sizes of a program.
#[derive(Clone, Debug)]
pub struct Bound {
    /// Every size parameter.
    pub sizes: Sizes,
    /// The inputs in the form for devices.
    pub inputs: Inputs,
    /// The inputs in the form for the interpreter, one for each parameter.
    pub values: Vec<Value>,
    /// Warnings for the user: NaN or infinity in given data.
    pub warnings: Vec<Diagnostic>,
}

/// One component of one parameter.
pub(super) struct Slot<'a> {
    pub param: &'a Param,
    pub component: usize,
    pub ty: ScalarType,
    dims: Vec<Size>,
    given: Given,
}

impl Slot<'_> {
    /// Returns the name for messages.
    fn name(&self) -> &str {
        &self.param.name
    }

    /// Returns the error for a value of another type; `from` is its origin.
    pub fn wrong_type(&self, program: &Program, from: &str, ty: ScalarType) -> Diagnostic {
        let text = format!("{from} holds {ty}, `{}` {}", self.name(), self.ty);
        let help = format!(
            "convert it, in NumPy with `a.astype(\"{}\")`, or write the type behind the numbers of a text: `1{}`",
            numpy(self.ty),
            self.ty
        );
        Diagnostic::error(Code::InputType, text)
            .at(
                &program.source,
                self.param.span,
                format!("of type `{}`", program.entry.shown_type(self.param)),
            )
            .help(help)
    }
}

/// Returns every size of a program, from the request and from the shapes of the given arrays.
///
/// # Errors
/// When a name is unknown, two arrays disagree, or a size has no value.
pub fn sizes(program: &Program, request: &Request) -> Result<Sizes> {
    sizes_of(program, request, &slots(program, request)?)
}

pub(super) fn sizes_of(program: &Program, request: &Request, slots: &[Slot]) -> Result<Sizes> {
    let entry = &program.entry;
    // Each value with its origin, for messages.
    let mut known: BTreeMap<&str, (u64, String)> = BTreeMap::new();
    for (name, &value) in &request.sizes {
        let Some(name) = entry.sizes.iter().find(|n| *n == name) else {
            return Err(no_size(program, name, value).into());
        };
        if i64::try_from(value).is_err() {
            let text = format!("the size `{name}` is {value}, more than any array can have");
            return Err(Diagnostic::error(Code::SizeRange, text).into());
        }
        known.insert(name, (value, format!("`--size {name}={value}`")));
    }
    let arrays = || {
        slots.iter().filter_map(|s| match &s.given {
            Given::Array(array, name) => Some((s, array, name)),
            Given::Text(_) | Given::Made(_) => None,
        })
    };
    for (slot, array, name) in arrays() {
        if array.shape.len() != slot.dims.len() {
            let (have, want) = (array.shape.len(), slot.dims.len());
            let text = format!(
                "{name} has {have} dimension{}, `{}` has {want}",
                plural(have),
                slot.name()
            );
            return Err(mismatch(program, slot, text).into());
        }
        for (dim, &length) in slot.dims.iter().zip(&array.shape) {
            let Some(var) = dim.as_var() else { continue };
            let from = format!("the shape {:?} of {name}", array.shape);
            match known.get(var) {
                Some((value, _)) if *value == length as u64 => {}
                Some((value, source)) => {
                    let text = format!("`{var}` would be both {value} and {length}");
                    let d = mismatch(program, slot, text);
                    return Err(d
                        .note(format!("{value} from {source}"))
                        .note(format!("{length} from {from}"))
                        .into());
                }
                None => {
                    if let Some(var) = entry.sizes.iter().find(|n| *n == var) {
                        known.insert(var, (length as u64, from));
                    }
                }
            }
        }
    }
    solve(program, arrays(), &mut known)?;
    usual(program, &mut known)?;
    solve(program, arrays(), &mut known)?;
    let missing: Vec<&String> =
        entry.sizes.iter().filter(|n| !known.contains_key(n.as_str())).collect();
    if let Some(first) = missing.first() {
        let text = format!("the size{} {} no value", plural(missing.len()), {
            let have = if missing.len() == 1 { "has" } else { "have" };
            format!("{} {have}", list(&missing))
        });
        let mut d = Diagnostic::error(Code::SizeUnknown, text)
            .at(&program.source, entry.span, "")
            .help(format!("give one with `--size {first}=1048576`, or an array with `--input`"));
        for (slot, array, name) in arrays() {
            let open = |dim: &&Size| missing.iter().any(|n| dim.mentions(n));
            for dim in slot.dims.iter().filter(open) {
                let shape = &array.shape;
                let text = format!("the shape {shape:?} of {name} gives `{dim}`, not its parts");
                d = d.note(text);
            }
        }
        return Err(d.into());
    }
    let all: Sizes =
        entry.sizes.iter().filter_map(|n| Some((n.clone(), known.get(n.as_str())?.0))).collect();
    for (slot, array, name) in arrays() {
        for (dim, &length) in slot.dims.iter().zip(&array.shape) {
            let expected = value(program, slot.param.span, dim, &all)?;
            if expected != length as u64 {
                let text =
                    format!("{name} has shape {:?}, where `{dim}` is {expected}", array.shape);
                return Err(mismatch(program, slot, text).into());
            }
        }
    }
    Ok(all)
}

/// Gives sizes without a value those of the program's comment, which may mention other sizes.
fn usual<'p>(program: &'p Program, known: &mut BTreeMap<&'p str, (u64, String)>) -> Result<()> {
    let mut open: Vec<_> =
        program.usual.iter().filter(|(name, _)| !known.contains_key(name.as_str())).collect();
    while !open.is_empty() {
        let values: Sizes = known.iter().map(|(n, (value, _))| ((*n).to_owned(), *value)).collect();
        let ready = open.iter().position(|(_, (bound, _))| bound.value(&values).is_ok());
        let (name, (bound, place)) = open.remove(ready.unwrap_or(0));
        let at = |d: Diagnostic| d.at(&program.source, *place, "");
        let value = bound
            .value(&values)
            .map_err(|Failure(ds)| Failure(ds.into_iter().map(at).collect()))?;
        let Some(n) = value.integer::<i64>().filter(|n| *n >= 0) else {
            let text = format!("the size `{name}` would be {value}");
            return Err(at(Diagnostic::error(Code::SizeRange, text)).into());
        };
        known.insert(name, (n.unsigned_abs(), format!("`gen: {name}=const:{bound}`")));
    }
    Ok(())
}

/// Solves lengths such as `2*h` for sizes, one after the other, as long as one equation has a single unknown and is linear
/// in it.
fn solve<'p, 'a: 'p>(
    program: &'p Program,
    arrays: impl Iterator<Item = (&'a Slot<'a>, &'a NpyArray, &'a String)>,
    known: &mut BTreeMap<&'p str, (u64, String)>,
) -> Result<()> {
    let mut open: Vec<_> = arrays
        .flat_map(|(slot, array, name)| {
            slot.dims.iter().zip(&array.shape).map(move |(dim, n)| (slot, array, name, dim, *n))
        })
        .collect();
    loop {
        let before = known.len();
        let mut failure = None;
        open.retain(|(slot, array, name, dim, length)| {
            let put = |v: &str| {
                let value = i64::try_from(known.get(v)?.0).ok()?;
                Some(Size::constant(value))
            };
            let (dividend, divisor) = dim.substitute(&put).ratio();
            let Ok(length) = i64::try_from(*length) else { return true };
            let equation = dividend.sub(&divisor.mul(&Size::constant(length)));
            let unknowns = equation.variables();
            let var = unknowns.first().and_then(|v| program.entry.sizes.iter().find(|n| *n == v));
            let (1, Some(var)) = (unknowns.len(), var) else { return !unknowns.is_empty() };
            let Some((factor, rest)) = equation.as_linear(var) else { return true };
            match rest.checked_neg().filter(|r| r % factor == 0).map(|r| r / factor) {
                Some(value) if value >= 0 => {
                    let from =
                        format!("the shape {:?} of {name}, where {length} is `{dim}`", array.shape);
                    known.insert(var, (value.unsigned_abs(), from));
                }
                _ => {
                    let shape = &array.shape;
                    let text = format!(
                        "{name} has shape {shape:?}, but `{dim}` is {length} for no `{var}`"
                    );
                    failure.get_or_insert(mismatch(program, slot, text));
                }
            }
            false
        });
        if let Some(d) = failure {
            return Err(d.into());
        }
        if known.len() == before {
            return Ok(());
        }
    }
}

/// Binds every parameter and size to its value.
///
/// # Errors
/// When a value is missing or does not fit, or the inputs take more memory than is available.
pub fn bind(program: &Program, request: &Request) -> Result<Bound> {
    bind_with(program, request, &mut |slot, made| {
        generate_shaped(made, slot.ty, slot.shape, slot.sizes, request.seed, slot.stream)
    })
}

/// An array to generate.
pub(super) struct Wanted<'a> {
    /// The parameter.
    pub param: &'a str,
    /// Which component of it.
    pub component: usize,
    /// The type of its elements.
    pub ty: ScalarType,
    /// Its dimensions.
    pub shape: &'a [usize],
    /// Value of each size.
    pub sizes: &'a Sizes,
    /// Its number among all arrays, which selects the random stream.
    pub stream: u64,
}

/// As [`bind`], but generates arrays with `make`.
///
/// # Errors
/// Those of [`bind`] and of `make`.
pub(super) fn bind_with(
    program: &Program,
    request: &Request,
    make: &mut dyn FnMut(&Wanted, &Generator) -> Result<HostArray>,
) -> Result<Bound> {
    let slots = slots(program, request)?;
    let sizes = sizes_of(program, request, &slots)?;
    let bytes = input_bytes(program, &sizes)?;
    super::memory::check(bytes, "the inputs")?;
    let mut bound = Bound { sizes, inputs: Inputs::default(), values: vec![], warnings: vec![] };
    for (stream, slot) in slots.into_iter().enumerate() {
        let array = fill(program, &slot, &bound.sizes, stream as u64, make)?;
        if let Given::Array(..) | Given::Text(_) = slot.given
            && let Some(what) = not_finite(&array)
        {
            let text = format!("`{}` holds {what}", slot.name());
            bound.warnings.push(Diagnostic::warning(Code::NotFinite, text));
        }
        bound.inputs.insert(slot.name(), slot.component, array);
    }
    for param in &program.entry.params {
        let shape = program.placed(interp::shape(&param.ty, &bound.sizes))?;
        let buffers: Vec<&[u8]> = (0..components(&param.ty).len())
            .filter_map(|k| Some(bound.inputs.get(&param.name, k)?.bytes()))
            .collect();
        let broken = |text| Diagnostic::error(Code::Internal, format!("`{}`: {text}", param.name));
        bound.values.push(Value::from_bytes(&shape, &buffers).map_err(broken)?);
    }
    Ok(bound)
}

/// The values of scalar parameters, by parameter and component.
pub type Expected = BTreeMap<(String, usize), Lit>;

/// Returns the values that the request, or the program's comment, gives to scalar parameters.
pub(super) fn expected(program: &Program, request: &Request) -> Result<Expected> {
    let mut out = Expected::new();
    for slot in slots(program, request)?.iter().filter(|s| s.dims.is_empty()) {
        // What is drawn at random says nothing about other values.
        if matches!(&slot.given, Given::Made(how) if !matches!(how, Generator::Const(_))) {
            continue;
        }
        let made = &mut |w: &Wanted, how: &Generator| {
            generate_shaped(how, w.ty, w.shape, w.sizes, request.seed, w.stream)
        };
        // A constant may be a size that only follows from arrays. Errors are reported when values are bound.
        if let Ok(array) = fill(program, slot, &request.sizes, 0, made)
            && let Some(value) = literal(&array)
        {
            out.insert((slot.name().to_owned(), slot.component), value);
        }
    }
    Ok(out)
}

/// Returns the first element of an array.
fn literal(array: &HostArray) -> Option<Lit> {
    let (ty, bytes) = (array.ty(), array.ty().bytes());
    let mut word = [0; 8];
    word.get_mut(..bytes)?.copy_from_slice(array.bytes().get(..bytes)?);
    let (bits, above) = (u64::from_le_bytes(word), 64 - 8 * bytes);
    let extended = (bits << above).cast_signed() >> above;
    let is_signed = ty.is_integer() && ty.is_signed();
    Some(Lit { ty, bits: if is_signed { extended.cast_unsigned() } else { bits } })
}

/// Returns the total size of all parameters in bytes.
///
/// # Errors
/// When the total does not fit in 64 bits.
pub fn input_bytes(program: &Program, sizes: &Sizes) -> Result<u64> {
    program.entry.params.iter().try_fold(0u64, |sum, p| {
        let too_large = || {
            let text = format!("`{}` would be larger than any memory", p.name);
            let d = Diagnostic::error(Code::SizeRange, text);
            Failure::from(d.at(&program.source, p.span, ""))
        };
        sum.checked_add(bytes_of(program, (&p.ty, p.span), sizes)?.ok_or_else(too_large)?)
            .ok_or_else(too_large)
    })
}

/// Returns the size of a value of the type that stands at a place in bytes; `None` when it is too large for 63 bits.
pub(super) fn bytes_of(
    program: &Program,
    (ty, span): (&Type, Span),
    sizes: &Sizes,
) -> Result<Option<u64>> {
    let mut sum = Some(0u64);
    for (scalar, dims) in components(ty) {
        let mut bytes = Some(scalar.bytes() as u64);
        for dim in &dims {
            let n = value(program, span, dim, sizes)?;
            bytes = bytes.and_then(|b| b.checked_mul(n)).filter(|b| i64::try_from(*b).is_ok());
        }
        sum = sum.zip(bytes).and_then(|(a, b)| a.checked_add(b));
    }
    Ok(sum)
}

/// Pairs every component of every parameter with its given value, or with a generator.
pub(super) fn slots<'a>(program: &'a Program, request: &Request) -> Result<Vec<Slot<'a>>> {
    let entry = &program.entry;
    for name in request.values.keys() {
        known(program, name)?;
    }
    // A value under the wrong option is a better explanation than a parameter without one.
    if let Some((name, value)) = request.sizes.iter().find(|(n, _)| !entry.sizes.contains(n)) {
        return Err(no_size(program, name, *value).into());
    }
    let mut used: Vec<&str> = vec![];
    let mut slots = vec![];
    for param in &entry.params {
        let parts = components(&param.ty);
        let count = parts.len();
        for (component, (ty, dims)) in parts.into_iter().enumerate() {
            let named = request
                .values
                .get_key_value(&format!("{}.{component}", param.name))
                .or_else(|| {
                    let label = format!("{}.{}", param.name, param.label(component));
                    request.values.get_key_value(&label)
                })
                .or_else(|| {
                    let whole = request.values.get_key_value(&param.name)?;
                    // An array given by the parameter's name stands for its only component; a generator applies to all
                    // components.
                    (count == 1 || matches!(whole.1, Given::Made(_))).then_some(whole)
                });
            let described = || {
                let own = program.samples.get(&format!("{}.{component}", param.name));
                own.or_else(|| program.samples.get(&param.name)).or(request.default.as_ref())
            };
            let given = if let Some((name, given)) = named {
                used.push(name);
                given.clone()
            } else if let Some(generator) = described() {
                Given::Made(generator.clone())
            } else {
                return Err(missing(program, param, count, component).into());
            };
            slots.push(Slot { param, component, ty, dims, given });
        }
    }
    if let Some(name) = request.values.keys().find(|n| !used.contains(&n.as_str())) {
        let text = format!("`{name}` is given twice: whole, and by components");
        return Err(Diagnostic::error(Code::Usage, text).help("leave out one of them").into());
    }
    Ok(slots)
}

fn mismatch(program: &Program, slot: &Slot, text: String) -> Diagnostic {
    Diagnostic::error(Code::InputShape, text).at(
        &program.source,
        slot.param.span,
        format!("of type `{}`", program.entry.shown_type(slot.param)),
    )
}

/// Returns the value of a size in the type that stands at a place.
fn value(program: &Program, span: Span, size: &Size, sizes: &Sizes) -> Result<u64> {
    let n = size.eval(&|n| sizes.get(n).and_then(|&v| i64::try_from(v).ok()));
    n.map(i64::unsigned_abs).map_err(|e| {
        let (code, help) = match e {
            SizeError::NotExact(..) => (Code::NotDivisible, EXACT),
            _ => (Code::SizeRange, "choose other sizes with `--size`"),
        };
        Diagnostic::error(code, format!("`{size}`: {e}"))
            .at(&program.source, span, "")
            .help(help)
            .into()
    })
}

pub(super) fn fill(
    program: &Program,
    slot: &Slot,
    sizes: &Sizes,
    stream: u64,
    make: &mut dyn FnMut(&Wanted, &Generator) -> Result<HostArray>,
) -> Result<HostArray> {
    let too_large = || Diagnostic::error(Code::SizeRange, "an array larger than any memory");
    let mut shape: Vec<usize> = vec![];
    for dim in &slot.dims {
        shape.push(
            value(program, slot.param.span, dim, sizes)?.try_into().map_err(|_| too_large())?,
        );
    }
    shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d)).ok_or_else(too_large)?;
    match &slot.given {
        Given::Made(generator) => {
            let (param, component, ty) = (slot.name(), slot.component, slot.ty);
            let wanted = Wanted { param, component, ty, shape: &shape, sizes, stream };
            make(&wanted, generator).map_err(|Failure(ds)| {
                let place = format!("of type `{}`", program.entry.shown_type(slot.param));
                let at = |d: Diagnostic| d.at(&program.source, slot.param.span, place.clone());
                Failure(ds.into_iter().map(at).collect())
            })
        }
        Given::Array(array, _) if array.data.ty() == slot.ty => Ok(array.data.clone()),
        Given::Array(array, name) => {
            let wrong = |text: String| {
                let place = format!("of type `{}`", program.entry.shown_type(slot.param));
                Diagnostic::error(Code::InputType, text).at(&program.source, slot.param.span, place)
            };
            match futhark::converted(&array.data, slot.ty) {
                Some(Ok(data)) => Ok(data),
                Some(Err(n)) => {
                    let text = format!("{name} holds {n}, which is no value of type {}", slot.ty);
                    Err(wrong(text).into())
                }
                None => Err(slot.wrong_type(program, name, array.data.ty()).into()),
            }
        }
        Given::Text(text) => {
            if !slot.dims.is_empty() {
                let message = format!("`{}` is an array, not a number", slot.name());
                return Err(mismatch(program, slot, message)
                    .help(format!("fill it with `--gen {}=const:{text}`", slot.name()))
                    .into());
            }
            let no_value = || {
                let message = format!("`{text}` is no value of type {}", slot.ty);
                Diagnostic::error(Code::InputType, message)
                    .at(
                        &program.source,
                        slot.param.span,
                        format!("of type `{}`", program.entry.shown_type(slot.param)),
                    )
                    .help(how_to_give(slot.param, slot.component, None))
            };
            let generator: Generator = format!("const:{text}").parse().map_err(|_| no_value())?;
            generate(&generator, slot.ty, 1, 0, 0).map_err(|_| no_value().into())
        }
    }
}

/// Returns which non-finite values an array holds, in words.
fn not_finite(array: &HostArray) -> Option<&'static str> {
    let (mut nan, mut infinite) = (false, false);
    let mut see = |x: f64| {
        nan |= x.is_nan();
        infinite |= x.is_infinite();
    };
    match array.ty() {
        ScalarType::F32 => array.to_vec::<f32>()?.into_iter().for_each(|x| see(f64::from(x))),
        ScalarType::F64 => array.to_vec::<f64>()?.into_iter().for_each(&mut see),
        ScalarType::F16 => array.to_vec::<half::f16>()?.into_iter().for_each(|x| see(x.to_f64())),
        ScalarType::BF16 => array.to_vec::<half::bf16>()?.into_iter().for_each(|x| see(x.to_f64())),
        _ => {}
    }
    match (nan, infinite) {
        (true, true) => Some("NaN and infinity"),
        (true, false) => Some("NaN"),
        (false, true) => Some("infinity"),
        (false, false) => None,
    }
}

fn numpy(ty: ScalarType) -> String {
    match ty {
        ScalarType::F16 => "float16".into(),
        ScalarType::BF16 => "bfloat16".into(),
        ScalarType::F32 => "float32".into(),
        ScalarType::F64 => "float64".into(),
        ScalarType::Bool => "bool".into(),
        other => other.name().replace('i', "int").replace('u', "uint"),
    }
}

fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Source;

    /// Returns the sizes of an entry with these parameters, of which `a` is given with the shape.
    fn solved(params: &str, shape: &[usize]) -> std::result::Result<Vec<u64>, Diagnostic> {
        let text = format!("entry f {params} : i32 = 1");
        let program = Program::check(&Source::new("f.pat", text), None).expect("a program");
        let data = HostArray::zeros(ScalarType::F32, shape.iter().product());
        let given = Given::Array(NpyArray { shape: shape.to_vec(), data }, "`a.npy`".to_owned());
        let values = IndexMap::from([("a".to_owned(), given)]);
        let request = Request { values, ..Request::default() };
        let sizes = sizes(&program, &request).map_err(|Failure(mut ds)| ds.remove(0))?;
        Ok(sizes.values().copied().collect())
    }

    #[test]
    fn lengths_are_solved_for_sizes() {
        let sizes = |params, shape: &[usize]| solved(params, shape).expect("lengths that fit");
        assert_eq!(sizes("[h][w] (a: [2*h][w-1]f32)", &[6, 3]), [3, 4]);
        assert_eq!(sizes("[n] (a: [n/4]f32)", &[3]), [12]);
        // Each equation may need the solution of another, in any order.
        assert_eq!(sizes("[n][m][k] (a: [m*n + k][n*m][n]f32)", &[13, 10, 5]), [5, 2, 3]);
        assert_eq!(sizes("[n] (a: [n][2*n]f32)", &[4, 8]), [4]);
    }

    #[test]
    fn lengths_that_have_no_solution() {
        let fails = |params, shape: &[usize]| solved(params, shape).expect_err("no solution");
        let odd = fails("[h] (a: [2*h]f32)", &[5]);
        assert_eq!(odd.code, Code::InputShape);
        assert!(odd.message.contains("`2*h` is 5 for no `h`"), "{}", odd.message);
        assert_eq!(fails("[h] (a: [h + 3]f32)", &[2]).code, Code::InputShape);
        assert_eq!(fails("[n] (a: [n][2*n]f32)", &[4, 9]).code, Code::InputShape);
        let product = fails("[k][n] (a: [k*n]f32)", &[6]);
        assert_eq!(product.code, Code::SizeUnknown);
        assert!(product.notes[0].contains("gives `k*n`, not its parts"), "{:?}", product.notes);
        assert_eq!(fails("[n] (a: [n*n]f32)", &[9]).code, Code::SizeUnknown);
    }

    #[test]
    fn components_of_records_have_names() {
        let text = "-- gen: ps.at.y=const:3 ps=iota\n\
            entry f [n] (ps: [n]{mass: f32, at: {x: f32, y: f32}}) : [n]f32 = map (\\p -> p.at.y) ps";
        let program = Program::check(&Source::new("f.pat", text), None).expect("a program");
        let sizes = Sizes::from([("n".to_owned(), 2)]);
        let values = [("ps.mass", "const:7"), ("ps.0", "const:5")];
        let made = |how: &str| Given::Made(how.parse().expect("a generator"));
        let values = values.map(|(name, how)| (name.to_owned(), made(how)));
        let default = Some(Generator::Iota);
        let request = Request { sizes, values: values.into_iter().collect(), default, seed: 0 };
        let bound = bind(&program, &request).expect("every input can be made up");
        let first = |k| bound.inputs.get("ps", k).expect("a component").to_vec::<f32>();
        assert_eq!([0, 1, 2].map(|k| first(k).expect("floats")[0]), [5.0, 3.0, 7.0]);
        let request = Request {
            values: [("ps.weight".to_owned(), Given::Text(String::new()))].into(),
            ..request
        };
        let d = bind(&program, &request).expect_err("no such field").0.remove(0);
        assert!(d.help[0].contains("`ps.at.x`, `ps.at.y`, `ps.mass`"), "{:?}", d.help);
    }
}
