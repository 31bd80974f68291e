//! Shows result arrays, and writes them to files.

use super::args::DataArgs;
use super::out::{Out, Stop};
use super::output::{Output, is_stdout};
use crate::diag::{Code, Diagnostic};
use crate::lang::types::ScalarType;
use crate::opencl::host::HostArray;
use crate::session::Program;
use crate::session::files::Kind;
use crate::session::futhark;
use crate::session::npy::{self, NpyArray};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// How many elements of a long array are shown, from its start and from its end; and how many rows of a matrix.
const SHOWN: usize = 6;
const ROWS: usize = 3;

/// The longest array whose elements are listed in JSON.
const LISTED: usize = 1 << 16;

/// Returns each component with its type: a vector on one line, a matrix with a line for each row. Long dimensions are
/// shortened.
pub fn text(arrays: &[NpyArray]) -> String {
    let mut out = String::new();
    for (k, a) in arrays.iter().enumerate() {
        if arrays.len() > 1 {
            out.push_str(&format!("{k}: "));
        }
        if a.shape.is_empty() {
            out.push_str(&element(&a.data, 0));
        } else {
            let dims: String = a.shape.iter().map(|n| format!("[{n}]")).collect();
            let between = if a.shape.len() == 1 { ' ' } else { '\n' };
            out.push_str(&format!("{dims}{}{between}{}", a.data.ty(), rows(a, &a.shape, 0)));
        }
        out.push('\n');
    }
    out
}

/// Returns the part of an array that starts at an offset and has this shape, nested as in NumPy.
fn rows(array: &NpyArray, shape: &[usize], offset: usize) -> String {
    let Some((&length, inner)) = shape.split_first() else { return element(&array.data, offset) };
    let stride: usize = inner.iter().product();
    let edge = if inner.is_empty() { SHOWN } else { ROWS };
    let shown: Vec<usize> = match length > 2 * edge {
        true => (0..edge).chain(length - edge..length).collect(),
        false => (0..length).collect(),
    };
    let mut parts: Vec<String> =
        shown.iter().map(|i| rows(array, inner, offset + i * stride)).collect();
    if length > 2 * edge {
        parts.insert(edge, "...".into());
    }
    // Rows stand below each other, and blocks of rows apart.
    let between = match inner.len() {
        0 => ", ".to_owned(),
        n => format!(",{}{}", "\n".repeat(n), " ".repeat(array.shape.len() - n)),
    };
    format!("[{}]", parts.join(&between))
}

/// Formats an element exactly.
fn element(data: &HostArray, i: usize) -> String {
    let width = data.ty().bytes();
    let bytes = data.bytes().get(i * width..(i + 1) * width).unwrap_or_default().to_vec();
    let one = HostArray::from_bytes(data.ty(), bytes);
    let Some(one) = one.filter(|a| a.len() == 1) else { return String::new() };
    macro_rules! show {
        ($($ty:ident $t:ty,)*) => {
            match one.ty() { $(ScalarType::$ty => {
                one.to_vec::<$t>().and_then(|v| v.first().map(|x| format!("{x:?}")))
            })* }
        };
    }
    let shown = show! {
        F16 half::f16, BF16 half::bf16, F32 f32, F64 f64, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32,
        U64 u64, Bool bool,
    };
    shown.unwrap_or_default()
}

/// Returns the type, the shape and the elements of each component, in row-major order. A scalar's `value` is its
/// element, that of a long array is `null`. Elements are strings, since JSON numbers cannot represent NaN, infinity
/// and all 64-bit integers.
pub fn json(arrays: &[NpyArray]) -> Value {
    let describe = |a: &NpyArray| {
        let value = match a.data.len() {
            _ if a.shape.is_empty() => json!(element(&a.data, 0)),
            len if len <= LISTED => (0..len).map(|i| element(&a.data, i)).collect(),
            _ => Value::Null,
        };
        json!({"type": a.data.ty().name(), "shape": a.shape, "value": value})
    };
    json!(arrays.iter().map(describe).collect::<Vec<_>>())
}

/// The destinations of the components of a result.
pub enum Outputs {
    /// A file for each component.
    Each(Vec<Output>),
    /// One file of Futhark's values.
    Values(Output),
}

impl Outputs {
    /// Checks the destination of each component of a program's result.
    pub fn new(
        path: Option<&Path>,
        program: &Program,
        data: &DataArgs,
        force: bool,
        out: &mut Out,
    ) -> Result<Outputs, Stop> {
        let Some(path) = path else { return Ok(Outputs::Each(vec![])) };
        let mut inputs = data.files();
        inputs.push(PathBuf::from(&program.source.name));
        if futhark::named(path) {
            return Ok(Outputs::Values(Output::new(path, Kind::Values, &inputs, force, out)?));
        }
        let count = program.results();
        let paths: Vec<PathBuf> = match count {
            1 => vec![path.to_path_buf()],
            _ if is_stdout(path) => {
                let text = format!("the result has {count} arrays; the standard output takes one");
                let d = Diagnostic::error(Code::Usage, text);
                return Err(d.help("write them to files: `--output NAME.npy`").into());
            }
            _ => (0..count).map(|k| numbered(path, k)).collect(),
        };
        let open = |path: &PathBuf| Output::new(path, Kind::Array, &inputs, force, out);
        Ok(Outputs::Each(paths.iter().map(open).collect::<Result<_, Stop>>()?))
    }

    /// Writes a result, and returns the names of the files.
    pub fn write(&self, arrays: &[NpyArray], out: &mut Out) -> Result<Vec<String>, Stop> {
        match self {
            Outputs::Each(outputs) => {
                for (output, array) in outputs.iter().zip(arrays) {
                    output.write(out, |to| npy::write_to(to, array))?;
                }
                Ok(outputs.iter().map(Output::name).collect())
            }
            Outputs::Values(output) => {
                output.write(out, |to| futhark::write_to(to, arrays))?;
                Ok(vec![output.name()])
            }
        }
    }
}

/// Inserts a component's number into a file name: `y.npy` becomes `y.0.npy`.
fn numbered(path: &Path, k: usize) -> PathBuf {
    let extension = path.extension().map_or_else(|| "npy".into(), |e| e.to_string_lossy());
    path.with_extension(format!("{k}.{extension}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_numbered() {
        assert_eq!(numbered(Path::new("a/y.npy"), 1), Path::new("a/y.1.npy"));
        let xs = HostArray::from_slice(&(0u8..20).map(f32::from).collect::<Vec<_>>());
        let array = NpyArray { shape: vec![20], data: xs };
        let shown = text(std::slice::from_ref(&array));
        assert!(shown.starts_with("[20]f32 [0.0, 1.0") && shown.ends_with("19.0]\n"), "{shown}");
        let matrix = NpyArray { shape: vec![10, 2], ..array };
        let shown = "[10][2]f32\n[[0.0, 1.0],\n [2.0, 3.0],\n [4.0, 5.0],\n ...,\n [14.0, 15.0],\n \
                     [16.0, 17.0],\n [18.0, 19.0]]\n";
        assert_eq!(text(&[matrix]), shown);
        let scalar = NpyArray { shape: vec![], data: HostArray::from_slice(&[7i32]) };
        assert_eq!(text(&[scalar.clone(), scalar]), "0: 7\n1: 7\n");
    }
}
