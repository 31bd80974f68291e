//! Reads and writes values in the formats of Futhark's data files, text and binary.
//!
//! The formats are those of Futhark's manual, section "Value syntax" and "Binary data format". Values of both may stand in
//! one file, one after the other. Knows nothing of programs: the caller checks whether a value fits a parameter.

use super::npy::NpyArray;
use crate::diag::{Code, Diagnostic, Result};
use crate::lang::types::ScalarType;
use crate::opencl::host::HostArray;
use half::{bf16, f16};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Deepest nesting of brackets, and most dimensions in the binary form.
const DIMENSIONS: usize = 64;

/// Longest number, in characters.
const NUMBER: usize = 1 << 10;

/// Returns whether a file is one of Futhark values by its name: it ends in `.in` or `.out`.
pub fn named(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "in" || e == "out")
}

/// Returns whether text that begins in this way may be Futhark values.
pub fn begins(head: &[u8]) -> bool {
    let mut reader = Reader { bytes: head, at: 0, name: "" };
    reader.blank();
    matches!(reader.peek(), None | Some(b'[' | b'-' | b'0'..=b'9'))
        || head[reader.at..].starts_with(b"b\x02")
        || ["true", "false", "empty", "f16.", "f32.", "f64."].iter().any(|w| reader.sees(w))
}

/// Reads all values of a file, in order.
///
/// # Errors
/// [`Code::Io`] when it cannot be read, and those of [`parse`].
pub fn read(path: &Path) -> Result<Vec<NpyArray>> {
    let bytes = std::fs::read(path).map_err(|e| {
        Diagnostic::error(Code::Io, format!("{} cannot be read: {e}", path.display()))
    })?;
    parse(&bytes, &path.display().to_string())
}

/// Reads all values, in order. `name` is for messages.
///
/// # Errors
/// [`Code::InputFormat`], with line and column, when this is not a sequence of values.
pub fn parse(bytes: &[u8], name: &str) -> Result<Vec<NpyArray>> {
    let mut reader = Reader { bytes, at: 0, name };
    let mut values = vec![];
    loop {
        reader.blank();
        if reader.peek().is_none() {
            return Ok(values);
        }
        values.push(if reader.peek() == Some(b'b') { reader.binary()? } else { reader.value()? });
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    name: &'a str,
}

/// One element: its type, and its bytes in this machine's order.
type Element = (ScalarType, [u8; 8]);

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn sees(&self, text: &str) -> bool {
        self.bytes[self.at..].starts_with(text.as_bytes())
    }

    fn takes(&mut self, text: &str) -> bool {
        let sees = self.sees(text);
        self.at += if sees { text.len() } else { 0 };
        sees
    }

    /// Skips white space and comments.
    fn blank(&mut self) {
        loop {
            match self.peek() {
                Some(c) if c.is_ascii_whitespace() => self.at += 1,
                Some(b'-') if self.sees("--") => {
                    let rest = &self.bytes[self.at..];
                    self.at += rest.iter().position(|&c| c == b'\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    /// Returns a diagnostic at a place. Columns count bytes.
    fn bad(&self, at: usize, what: &str) -> Diagnostic {
        let before = &self.bytes[..at.min(self.bytes.len())];
        let line = before.split(|&c| c == b'\n').count();
        let column = 1 + before.iter().rev().take_while(|&&c| c != b'\n').count();
        Diagnostic::error(Code::InputFormat, format!("{}:{line}:{column}: {what}", self.name))
    }

    /// Describes what stands at the current place.
    fn found(&self) -> String {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().take(20).position(|c| !(0x21..0x7f).contains(c) || *c == b',');
        match rest {
            [] => "the end of the file".into(),
            _ => format!("`{}`", rest[..end.unwrap_or(rest.len().min(20)).max(1)].escape_ascii()),
        }
    }

    fn expected(&self, what: &str) -> Diagnostic {
        self.bad(self.at, &format!("expected {what}, found {}", self.found()))
    }

    /// Reads a value in text form.
    fn value(&mut self) -> Result<NpyArray> {
        if self.peek() == Some(b'e') {
            return self.empty();
        }
        let mut elements = Elements::default();
        // The length of each dimension, as far as it is known, and how many elements each open array has.
        let mut shape: Vec<Option<usize>> = vec![];
        let mut open: Vec<usize> = vec![];
        // The depth of the elements, from the first one on.
        let mut depth = None;
        loop {
            self.blank();
            let at = self.at;
            if self.takes("[") {
                if depth == Some(open.len()) {
                    return Err(self.bad(at, "an array stands where others are elements").into());
                }
                if open.len() == DIMENSIONS {
                    let text = format!("the array has more than {DIMENSIONS} dimensions");
                    return Err(self.bad(at, &text).into());
                }
                open.push(0);
                if shape.len() < open.len() {
                    shape.push(None);
                }
                self.blank();
                if self.peek() == Some(b']') {
                    let help = "write an array without elements as `empty([0]f32)`";
                    return Err(self.bad(self.at, "an array without elements").help(help).into());
                }
                continue;
            }
            let element = self.element()?;
            if *depth.get_or_insert(open.len()) != open.len() {
                return Err(self.bad(at, "an element stands where others are arrays").into());
            }
            let ty = elements.push(element);
            if ty != element.0 {
                let text = format!("an element of type {} in an array of {ty}", element.0);
                return Err(self.bad(at, &text).help("give all elements one type").into());
            }
            // The element ends; perhaps arrays end with it.
            loop {
                let Some(count) = open.last_mut() else {
                    let lengths = shape.into_iter().flatten().collect();
                    return self.array(at, elements.ty, lengths, elements.data);
                };
                *count += 1;
                let count = *count;
                self.blank();
                if self.takes(",") {
                    break;
                }
                if !self.takes("]") {
                    return Err(self.expected("`,` or `]`").into());
                }
                open.pop();
                let length = shape[open.len()].get_or_insert(count);
                if *length != count {
                    let text =
                        format!("this row has {count} elements, the ones before it {length}");
                    return Err(self.bad(self.at - 1, &text).into());
                }
            }
        }
    }

    /// Reads `empty([0][3]f32)`.
    fn empty(&mut self) -> Result<NpyArray> {
        let start = self.at;
        if !self.takes("empty") {
            return Err(self.expected("a value").into());
        }
        self.blank();
        if !self.takes("(") {
            return Err(self.expected("`(`").into());
        }
        let mut shape = vec![];
        loop {
            self.blank();
            if !self.takes("[") {
                break;
            }
            self.blank();
            let at = self.at;
            let digits = self.word();
            let text = String::from_utf8_lossy(digits);
            let text = text.strip_suffix("i64").unwrap_or(&text).replace('_', "");
            let Ok(length) = text.parse() else {
                return Err(self.bad(at, "expected a length").into());
            };
            if shape.len() == DIMENSIONS {
                let text = format!("the array has more than {DIMENSIONS} dimensions");
                return Err(self.bad(at, &text).into());
            }
            shape.push(length);
            self.blank();
            if !self.takes("]") {
                return Err(self.expected("`]`").into());
            }
        }
        let at = self.at;
        let ty =
            scalar(self.word()).ok_or_else(|| self.bad(at, "expected the type of elements"))?;
        self.blank();
        if !self.takes(")") {
            return Err(self.expected("`)`").into());
        }
        if !shape.contains(&0) {
            return Err(self.bad(start, "none of the lengths of an empty array is 0").into());
        }
        self.array(start, Some(ty), shape, vec![])
    }

    /// Reads letters, digits, dots, and the sign of an exponent.
    fn word(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        let hexadecimal = rest.starts_with(b"0x") || rest.starts_with(b"0X");
        let mut end = 0;
        while let Some(&c) = rest.get(end) {
            let exponent = end > 0 && !hexadecimal && matches!(rest[end - 1], b'e' | b'E');
            let digit = rest[0].is_ascii_digit();
            let sign = matches!(c, b'+' | b'-') && exponent && digit;
            if !(c.is_ascii_alphanumeric() || c == b'.' || c == b'_' || sign) {
                break;
            }
            end += 1;
        }
        self.at += end;
        &rest[..end]
    }

    /// Reads a number or a truth value.
    fn element(&mut self) -> Result<Element> {
        let start = self.at;
        let negative = self.takes("-");
        let word = self.word();
        let failure = |reader: &mut Self, what: &str| {
            reader.at = start;
            reader.bad(start, &format!("{what}, found {}", reader.found()))
        };
        match word {
            b"true" if !negative => return Ok((ScalarType::Bool, [1, 0, 0, 0, 0, 0, 0, 0])),
            b"false" if !negative => return Ok((ScalarType::Bool, [0; 8])),
            _ => {}
        }
        let text = std::str::from_utf8(word).ok().filter(|t| t.len() <= NUMBER);
        let Some(text) = text.filter(|t| t.starts_with(|c: char| c.is_ascii_digit() || c == 'f'))
        else {
            return Err(failure(self, "expected a value").into());
        };
        let special = match text.split_once('.') {
            Some((ty, "nan")) => Some((ty, f64::NAN)),
            Some((ty, "inf")) => Some((ty, f64::INFINITY)),
            _ => None,
        };
        if let Some((ty, x)) = special
            && let Some(ty) = scalar(ty.as_bytes()).filter(|t| t.is_float())
        {
            return Ok((ty, float(ty, if negative { -x } else { x })));
        }
        let cleaned;
        let text = match text.contains('_') {
            true => {
                cleaned = text.replace('_', "");
                &cleaned
            }
            false => text,
        };
        let radix = match text.get(..2) {
            Some("0x" | "0X") => 16,
            Some("0b" | "0B") => 2,
            _ => 10,
        };
        let split = |ty: &ScalarType| Some((text.strip_suffix(ty.name())?, *ty));
        let types = ScalarType::ALL.iter().filter(|t| t.is_integer() || radix == 10);
        // `bf16` ends in `f16`.
        let suffixes = types.filter(|t| **t != ScalarType::Bool).filter_map(split);
        let (digits, ty) = match suffixes.min_by_key(|(digits, _)| digits.len()) {
            Some((digits, ty)) => (digits, Some(ty)),
            None => (text, None),
        };
        let plain = radix != 10 || digits.bytes().all(|c| c.is_ascii_digit());
        let ty = ty.unwrap_or(if plain { ScalarType::I32 } else { ScalarType::F64 });
        if ty.is_float() {
            // Rust also reads words such as `inf`.
            let shaped =
                digits.bytes().all(|c| matches!(c, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
            let bytes = match shaped && digits.starts_with(|c: char| c.is_ascii_digit()) {
                true => parse_float(ty, digits, negative),
                false => None,
            };
            return match bytes {
                Some(bytes) => Ok((ty, bytes)),
                None => Err(failure(self, "expected a number").into()),
            };
        }
        let digits = if radix == 10 { digits } else { digits.get(2..).unwrap_or_default() };
        let Ok(magnitude) = i128::from_str_radix(digits, radix) else {
            return Err(failure(self, "expected a number").into());
        };
        if digits.starts_with(['+', '-']) {
            return Err(failure(self, "expected a number").into());
        }
        let value = if negative { -magnitude } else { magnitude };
        // Numbers in hexadecimal and binary are bits, too: `0xffffffffi32` is -1.
        let bits = if radix == 10 { None } else { wrapped(value, ty) };
        match integer(value, ty).or(bits) {
            Some(bytes) => Ok((ty, bytes)),
            None => {
                let what = format!("the number is outside of the type {ty}");
                Err(failure(self, &what)
                    .help("write another type behind the number, as in `3i64`")
                    .into())
            }
        }
    }

    /// Reads a value in binary form.
    fn binary(&mut self) -> Result<NpyArray> {
        let start = self.at;
        let header: Option<&[u8]> = self.bytes[start..].get(..7);
        let Some(&[_, version, rank, ref tag @ ..]) = header else {
            return Err(self.bad(start, "expected a value").into());
        };
        if version != 2 {
            let text = format!("a binary value of version {version}; only version 2 is known");
            return Err(self.bad(start, &text).into());
        }
        let Some(ty) = scalar(tag.trim_ascii_start()).filter(|_| tag.len() == 4) else {
            let text = format!("a binary value of the unknown type `{}`", tag.escape_ascii());
            return Err(self.bad(start, &text).into());
        };
        let rank = usize::from(rank);
        if rank > DIMENSIONS {
            let text = format!("the array has more than {DIMENSIONS} dimensions");
            return Err(self.bad(start, &text).into());
        }
        let truncated = || self.bad(start, "this binary value is truncated");
        let rest = &self.bytes[start + 7..];
        let lengths = rest.get(..8 * rank).ok_or_else(truncated)?;
        let shape: Vec<usize> = lengths
            .as_chunks::<8>()
            .0
            .iter()
            .map(|&c| usize::try_from(u64::from_le_bytes(c)).unwrap_or(usize::MAX))
            .collect();
        let count = shape.iter().try_fold(ty.bytes(), |n, &d| n.checked_mul(d));
        let count = if shape.contains(&0) { Some(0) } else { count };
        let data = count.and_then(|n| rest[8 * rank..].get(..n)).ok_or_else(truncated)?;
        self.at = start + 7 + 8 * rank + data.len();
        let mut data = data.to_vec();
        if cfg!(target_endian = "big") {
            data.chunks_exact_mut(ty.bytes()).for_each(<[u8]>::reverse);
        }
        if ty == ScalarType::Bool {
            data.iter_mut().for_each(|b| *b = u8::from(*b != 0));
        }
        self.array(start, Some(ty), shape, data)
    }

    fn array(
        &self,
        at: usize,
        ty: Option<ScalarType>,
        shape: Vec<usize>,
        data: Vec<u8>,
    ) -> Result<NpyArray> {
        // The product of all lengths but those that are 0 must be a length, too.
        let fits = shape.iter().try_fold(8usize, |n, &d| n.checked_mul(d.max(1)));
        let data = ty.and_then(|ty| HostArray::from_bytes(ty, data));
        match (data, fits.filter(|&n| n < isize::MAX as usize)) {
            (Some(data), Some(_)) => Ok(NpyArray { shape, data }),
            _ => Err(self.bad(at, "the array is larger than memory can be").into()),
        }
    }
}

/// The elements of an array so far.
#[derive(Default)]
struct Elements {
    ty: Option<ScalarType>,
    data: Vec<u8>,
}

impl Elements {
    /// Adds an element and returns the type of the first one.
    fn push(&mut self, (ty, bytes): Element) -> ScalarType {
        self.data.extend(&bytes[..ty.bytes()]);
        *self.ty.get_or_insert(ty)
    }
}

/// Returns the type with this name.
fn scalar(name: &[u8]) -> Option<ScalarType> {
    ScalarType::ALL.into_iter().find(|t| t.name().as_bytes() == name)
}

fn bytes<const N: usize>(of: [u8; N]) -> [u8; 8] {
    let mut all = [0; 8];
    all[..N].copy_from_slice(&of);
    all
}

#[expect(clippy::cast_possible_truncation, reason = "the nearest float is meant")]
fn float(ty: ScalarType, x: f64) -> [u8; 8] {
    match ty {
        ScalarType::F16 => bytes(f16::from_f64(x).to_ne_bytes()),
        ScalarType::BF16 => bytes(bf16::from_f64(x).to_ne_bytes()),
        ScalarType::F32 => bytes((x as f32).to_ne_bytes()),
        _ => bytes(x.to_ne_bytes()),
    }
}

/// Reads the nearest float of a type; rounding to `f64` first could give another.
fn parse_float(ty: ScalarType, digits: &str, negative: bool) -> Option<[u8; 8]> {
    if ty == ScalarType::F32 {
        let x: f32 = digits.parse().ok()?;
        return Some(bytes(if negative { -x } else { x }.to_ne_bytes()));
    }
    let x: f64 = digits.parse().ok()?;
    Some(float(ty, if negative { -x } else { x }))
}

/// Returns the bytes of an integer, if the type has it.
fn integer(value: i128, ty: ScalarType) -> Option<[u8; 8]> {
    macro_rules! convert {
        ($($name:ident $t:ty,)*) => {
            match ty {
                $(ScalarType::$name => <$t>::try_from(value).ok().map(|n| bytes(n.to_ne_bytes())),)*
                _ => None,
            }
        };
    }
    convert! { I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, }
}

/// Returns the bytes of a signed number that is written as the bits of its type.
fn wrapped(value: i128, ty: ScalarType) -> Option<[u8; 8]> {
    let bits = 8 * ty.bytes();
    (ty.is_signed() && value >= 0 && value >> bits == 0)
        .then(|| integer(value - (1 << bits), ty))
        .flatten()
}

/// Returns an array of integers as one of another integer type, or the first number that this type does not have.
/// `None` if one of the types is no integer type.
pub fn converted(
    data: &HostArray,
    to: ScalarType,
) -> Option<std::result::Result<HostArray, String>> {
    macro_rules! read {
        ($($name:ident $t:ty,)*) => {
            match data.ty() {
                $(ScalarType::$name => {
                    data.to_vec::<$t>()?.into_iter().map(i128::from).collect::<Vec<_>>()
                })*
                _ => return None,
            }
        };
    }
    if !to.is_integer() {
        return None;
    }
    let values = read! { I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, };
    let mut all = Vec::with_capacity(values.len() * to.bytes());
    for value in values {
        match integer(value, to) {
            Some(bytes) => all.extend(&bytes[..to.bytes()]),
            None => return Some(Err(value.to_string())),
        }
    }
    HostArray::from_bytes(to, all).map(Ok)
}

/// Writes values in text form, each on a line of its own.
///
/// # Errors
/// Those of the stream.
pub fn write_to(to: impl Write, values: &[NpyArray]) -> io::Result<()> {
    let mut to = BufWriter::new(to);
    for value in values {
        write_value(&mut to, value)?;
        writeln!(to)?;
    }
    to.flush()
}

fn write_value(to: &mut impl Write, value: &NpyArray) -> io::Result<()> {
    let ty = value.data.ty();
    if value.data.is_empty() {
        write!(to, "empty(")?;
        for length in &value.shape {
            write!(to, "[{length}]")?;
        }
        return write!(to, "{ty})");
    }
    macro_rules! elements {
        ($($name:ident $t:ty,)*) => {
            match ty {
                $(ScalarType::$name => {
                    let all = value.data.to_vec::<$t>().unwrap_or_default();
                    nested(to, &value.shape, &all, &|to, x| write!(to, "{x:?}{ty}"))
                })*
                ScalarType::Bool => {
                    let all = value.data.to_vec::<bool>().unwrap_or_default();
                    nested(to, &value.shape, &all, &|to, x| write!(to, "{x}"))
                }
                ScalarType::F16 => {
                    let all = value.data.to_vec::<f16>().unwrap_or_default();
                    nested(to, &value.shape, &all, &|to, x| write_float(to, ty, f64::from(*x), x))
                }
                ScalarType::BF16 => {
                    let all = value.data.to_vec::<bf16>().unwrap_or_default();
                    nested(to, &value.shape, &all, &|to, x| write_float(to, ty, f64::from(*x), x))
                }
                ScalarType::F32 => {
                    let all = value.data.to_vec::<f32>().unwrap_or_default();
                    nested(to, &value.shape, &all, &|to, x| write_float(to, ty, f64::from(*x), x))
                }
                ScalarType::F64 => {
                    let all = value.data.to_vec::<f64>().unwrap_or_default();
                    nested(to, &value.shape, &all, &|to, x| write_float(to, ty, *x, x))
                }
            }
        };
    }
    elements! { I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, }
}

fn write_float(
    to: &mut impl Write,
    ty: ScalarType,
    x: f64,
    shown: &impl std::fmt::Debug,
) -> io::Result<()> {
    match x {
        x if x.is_nan() => write!(to, "{ty}.nan"),
        f64::INFINITY => write!(to, "{ty}.inf"),
        f64::NEG_INFINITY => write!(to, "-{ty}.inf"),
        _ => write!(to, "{shown:?}{ty}"),
    }
}

/// Writes elements in nested brackets. An array of at least one element has at most as many dimensions as a file.
fn nested<T, W: Write>(
    to: &mut W,
    shape: &[usize],
    elements: &[T],
    write: &dyn Fn(&mut W, &T) -> io::Result<()>,
) -> io::Result<()> {
    let Some((_, inner)) = shape.split_first() else {
        return elements.iter().try_for_each(|x| write(to, x));
    };
    let row = inner.iter().product::<usize>().max(1);
    write!(to, "[")?;
    for (i, part) in elements.chunks(row).enumerate() {
        if i > 0 {
            write!(to, ", ")?;
        }
        nested(to, inner, part, write)?;
    }
    write!(to, "]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &[u8]) -> Vec<NpyArray> {
        parse(text, "x.in").unwrap_or_else(|f| panic!("{f}"))
    }

    fn message(text: &[u8]) -> String {
        let failure = parse(text, "x.in").expect_err("not a value");
        assert_eq!(failure.0[0].code, Code::InputFormat);
        failure.0[0].message.clone()
    }

    #[test]
    fn text_is_read() {
        let all = values(
            b"-- all\n1i32 -2i64 0xff 0b101u8 1_000 0.5f32 2f32 1.5 1e-2f64 -f32.inf true [[1f32, 2e1f32],[3f32,-4.f32]]\n\
              empty([0][3]f32) 0xffff_ffffi32 -- end",
        );
        let show = |a: &NpyArray| (a.data.ty().name(), a.shape.clone(), a.data.as_f64(0));
        let expected = [
            ("i32", vec![], Some(1.0)),
            ("i64", vec![], Some(-2.0)),
            ("i32", vec![], Some(255.0)),
            ("u8", vec![], Some(5.0)),
            ("i32", vec![], Some(1000.0)),
            ("f32", vec![], Some(0.5)),
            ("f32", vec![], Some(2.0)),
            ("f64", vec![], Some(1.5)),
            ("f64", vec![], Some(0.01)),
            ("f32", vec![], Some(f64::NEG_INFINITY)),
            ("bool", vec![], Some(1.0)),
            ("f32", vec![2, 2], Some(1.0)),
            ("f32", vec![0, 3], None),
            ("i32", vec![], Some(-1.0)),
        ];
        assert_eq!(all.iter().map(show).collect::<Vec<_>>(), expected);
        assert_eq!(all[11].data.to_vec::<f32>(), Some(vec![1.0, 20.0, 3.0, -4.0]));
        assert!(values(b" \n-- nothing").is_empty());
        assert!(values(b"f32.nan")[0].data.as_f64(0).is_some_and(f64::is_nan));
    }

    #[test]
    fn binary_is_read() {
        let mut file = b"b\x02\x02 i16".to_vec();
        file.extend(2u64.to_le_bytes());
        file.extend(1u64.to_le_bytes());
        file.extend([1, 0, 255, 255]);
        file.extend(b" b\x02\x00bool\x07\n3u8");
        let all = values(&file);
        assert_eq!(
            (all[0].shape.as_slice(), all[0].data.to_vec()),
            (&[2, 1][..], Some(vec![1i16, -1]))
        );
        assert_eq!(all[1].data.to_vec(), Some(vec![true]));
        assert_eq!(all[2].data.to_vec(), Some(vec![3u8]));
        for length in 1..20 {
            assert!(parse(&file[..length], "x.in").is_err(), "{length}");
        }
        for head in
            ["b\x02\x01 i16", "b\x03\x00 i16", "b\x02\x00 i15", "b\x02\x41 i16", "b\x02\x00i16 "]
        {
            let huge: Vec<u8> = head.bytes().chain([255; 9]).collect();
            assert!(message(&huge).starts_with("x.in:1:1: "), "{head}");
        }
    }

    #[test]
    fn bad_text_has_a_place() {
        for (text, place, what) in [
            ("1\n [1, x]", "2:6", "expected a value, found `x]`"),
            ("[1, 2", "1:6", "expected `,` or `]`, found the end of the file"),
            ("[[1, 2], [3]]", "1:12", "this row has 1 elements, the ones before it 2"),
            ("[[1], 2]", "1:7", "an element stands where others are arrays"),
            ("[1, [2]]", "1:5", "an array stands where others are elements"),
            ("[1, 2f32]", "1:5", "an element of type f32 in an array of i32"),
            ("[]", "1:2", "an array without elements"),
            ("[1,]", "1:4", "expected a value, found `]`"),
            ("empty([2]f32)", "1:1", "none of the lengths"),
            ("empty([0]f31)", "1:10", "expected the type of elements"),
            ("empty([0]f32", "1:13", "expected `)`, found the end of the file"),
            ("3000000000", "1:1", "the number is outside of the type i32"),
            ("-1u8", "1:1", "the number is outside of the type u8"),
            ("1.5i32", "1:1", "expected a number"),
            ("1e", "1:1", "expected a number"),
            ("--x\n-", "2:1", "expected a value"),
            ("bx", "1:1", "expected a value"),
            ("\"text\"", "1:1", "expected a value"),
            ("empty([0][18446744073709551615]f32)", "1:1", "larger than memory"),
        ] {
            let message = message(text.as_bytes());
            assert!(
                message.starts_with(&format!("x.in:{place}: ")) && message.contains(what),
                "{text}: {message}"
            );
        }
        assert!(message("[".repeat(100_000).as_bytes()).contains("more than 64 dimensions"));
        assert!(message("1".repeat(100_000).as_bytes()).contains("expected a value"));
    }

    #[test]
    fn written_values_are_read_back() {
        for ty in ScalarType::ALL {
            for shape in [vec![], vec![0], vec![3], vec![2, 3], vec![2, 0, 3], vec![1, 2, 2]] {
                let len = shape.iter().product();
                let how = crate::session::generate::Generator::Iota;
                let data = crate::session::generate::generate(&how, ty, len, 0, 0).expect("values");
                let array = NpyArray { shape, data };
                let mut text = vec![];
                write_to(&mut text, &[array.clone(), array.clone()]).expect("into memory");
                assert!(begins(&text), "{}", String::from_utf8_lossy(&text));
                assert_eq!(values(&text), [array.clone(), array]);
            }
        }
        let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-7, f32::MAX, -0.0];
        let array = NpyArray { shape: vec![6], data: HostArray::from_slice(&special) };
        let mut text = vec![];
        write_to(&mut text, &[array]).expect("into memory");
        let again = values(&text)[0].data.to_vec::<f32>().expect("floats");
        let bits = |xs: &[f32]| xs.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&again), bits(&special));
    }

    #[test]
    fn integers_are_converted_if_they_fit() {
        let wide = HostArray::from_slice(&[1i64, -1, i64::from(i32::MAX)]);
        let narrow = converted(&wide, ScalarType::I32).expect("integers").expect("they fit");
        assert_eq!(narrow.to_vec(), Some(vec![1, -1, i32::MAX]));
        assert_eq!(converted(&wide, ScalarType::U64), Some(Err("-1".into())));
        assert_eq!(converted(&wide, ScalarType::F32), None);
        assert_eq!(converted(&HostArray::from_slice(&[1f32]), ScalarType::I32), None);
    }
}
