//! Names of inputs that are wrong, and how inputs are given.

use crate::diag::{Code, Diagnostic, Result};
use crate::lang::meant;
use crate::lang::typed::Param;
use crate::lang::types::ScalarType;
use crate::session::generate::{Bound, Constant, Generator, generate};
use crate::session::program::{Program, components};

/// Refuses a name that is neither a parameter nor a component of one.
pub(super) fn known(program: &Program, name: &str) -> Result<()> {
    let params = &program.entry.params;
    if params.iter().any(|p| p.name == name) {
        return Ok(());
    }
    let entry = &program.entry.name;
    if let Some((whole, k)) = name.split_once('.')
        && let Some(param) = params.iter().find(|p| p.name == whole)
    {
        let count = components(&param.ty).len();
        if param.component(k).is_some_and(|k| k < count) {
            return Ok(());
        }
        let text = format!("`{whole}` of `{entry}` has no component `{k}`");
        return Err(Diagnostic::error(Code::UnknownName, text)
            .at(
                &program.source,
                param.span,
                format!("of type `{}`", program.entry.shown_type(param)),
            )
            .help(match count {
                1 => format!("give the parameter as `{whole}`"),
                _ if !param.labels.is_empty() => {
                    let labels = param.labels.iter().map(|l| format!("{whole}.{l}"));
                    format!("its components are {}", list(&labels.collect::<Vec<_>>()))
                }
                n => format!("its components are `{whole}.0` to `{whole}.{}`", n - 1),
            })
            .into());
    }
    let names: Vec<&String> = params.iter().map(|p| &p.name).collect();
    let text = format!("`{entry}` has no parameter `{name}`");
    let d = Diagnostic::error(Code::UnknownName, text)
        .at(&program.source, program.entry.span, "")
        .note(format!("its parameters: {}", list(&names)));
    let d = meant(d, name, names.iter().map(|n| n.as_str()));
    Err(match program.entry.sizes.iter().any(|size| size == name) {
        true => d.help(format!("it is a size: give it with `--size {name}=N`")).into(),
        false => d.into(),
    })
}

/// Returns the error for a value of a size that the entry does not have.
pub(super) fn no_size(program: &Program, name: &str, value: u64) -> Diagnostic {
    let entry = &program.entry;
    if let Some(param) = entry.params.iter().find(|p| p.name == name) {
        let text = format!("`{name}` is an argument of `{}`, not a size", entry.name);
        let place = format!("of type `{}`", program.entry.shown_type(param));
        return Diagnostic::error(Code::UnknownName, text)
            .at(&program.source, param.span, place)
            .help(how_to_give(param, 0, Some(value)));
    }
    let text = format!("`{}` has no size `{name}`", entry.name);
    let d = Diagnostic::error(Code::UnknownName, text).at(&program.source, entry.span, "");
    let d = d.note(format!("its sizes: {}", list(&entry.sizes)));
    meant(d, name, entry.sizes.iter().map(String::as_str))
}

/// Returns the error for a component of a parameter that has no value.
pub(super) fn missing(
    program: &Program,
    param: &Param,
    count: usize,
    component: usize,
) -> Diagnostic {
    let name = &param.name;
    let d = Diagnostic::error(Code::InputMissing, format!("`{name}` has no value")).at(
        &program.source,
        param.span,
        format!("of type `{}`", program.entry.shown_type(param)),
    );
    let d = match count {
        1 => d,
        _ => d.note(format!("its {count} components are separate values")),
    };
    d.help(how_to_give(param, component, None))
}

/// Returns which option gives a component of a parameter, with `number` as the value if it is one of a scalar's type.
pub(super) fn how_to_give(param: &Param, component: usize, number: Option<u64>) -> String {
    let (whole, parts) = (&param.name, components(&param.ty));
    let name = match parts.len() {
        1 => whole.clone(),
        _ => format!("{whole}.{}", param.label(component)),
    };
    match parts.get(component) {
        Some((ty, dims)) if dims.is_empty() => {
            format!("give it with `--arg {name}={}`", example(*ty, number))
        }
        _ => format!("give it with `--input {name}=FILE.npy`, or `--gen {whole}=normal`"),
    }
}

/// Returns the text of a value of a type: `number`, if it is one.
fn example(ty: ScalarType, number: Option<u64>) -> String {
    let fits = |n: &u64| {
        let made = Generator::Const(Bound::Number(Constant::Integer(i128::from(*n))));
        generate(&made, ty, 1, 0, 0).is_ok()
    };
    match number.filter(fits) {
        Some(n) => n.to_string(),
        None if ty == ScalarType::Bool => "true".to_owned(),
        None if ty.is_integer() => "2".to_owned(),
        None => "1.5".to_owned(),
    }
}

/// Returns names for a message.
pub(super) fn list<T: AsRef<str>>(names: &[T]) -> String {
    let names: Vec<String> = names.iter().map(|n| format!("`{}`", n.as_ref())).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
