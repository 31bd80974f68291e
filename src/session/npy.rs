//! Reads and writes arrays as NumPy's `.npy` files.
//!
//! Reads every element type of the language in either byte order, and writes complete files or none. Knows nothing of
//! programs: the caller checks whether an array fits a parameter.

use crate::diag::{Code, Diagnostic, Result};
use crate::lang::types::ScalarType;
use crate::opencl::host::HostArray;
use npyz::{DType, Endianness, NpyHeader, Order, TypeChar, WriteOptions, WriterBuilder};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

/// An array with its shape. A scalar has no dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyArray {
    /// Length of each dimension, the slowest first.
    pub shape: Vec<usize>,
    /// The elements, in row-major order.
    pub data: HostArray,
}

/// Longest header accepted, in bytes. NumPy's own limit for headers it trusts is a sixth of it.
const HEADER_BYTES: usize = 1 << 16;

/// Deepest nesting of brackets accepted in a header. NumPy's plain headers nest twice, and those of structured elements three
/// times. The parser takes time that is exponential in the depth.
const HEADER_NESTING: usize = 3;

/// Reads a file.
pub fn read(path: &Path) -> Result<NpyArray> {
    let unreadable = |e: io::Error| -> Diagnostic {
        Diagnostic::error(Code::Io, format!("{} cannot be read: {e}", path.display()))
    };
    let file = File::open(path).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.is_dir() {
        return Err(unreadable(io::ErrorKind::IsADirectory.into()).into());
    }
    parse(BufReader::with_capacity(1 << 20, file), &path.display().to_string())
}

/// Reads from a stream; `name` is for messages.
pub fn parse(mut from: impl Read, name: &str) -> Result<NpyArray> {
    let bad = |what: String| Diagnostic::error(Code::InputFormat, format!("{name}: {what}"));
    let header = header(&mut from).map_err(|e| {
        bad(format!("not a readable .npy file: {e}")).help("write it with `numpy.save`")
    })?;
    let (ty, swap) = element(&header.dtype()).map_err(|what| {
        let types: Vec<_> = ScalarType::ALL.iter().map(|t| t.name()).collect();
        bad(what).help(format!("the element types are {}", types.join(", ")))
    })?;
    let too_large = || bad("the array is larger than memory can be".into());
    let shape: Vec<usize> = header
        .shape()
        .iter()
        .map(|&n| usize::try_from(n).map_err(|_| too_large()))
        .collect::<std::result::Result<_, _>>()?;
    // With one dimension (or none) longer than 1, both orders are the same.
    if header.order() == Order::Fortran && shape.iter().filter(|&&n| n > 1).count() > 1 {
        return Err(bad("the array is in Fortran (column-major) order".into())
            .help("write it with `numpy.save(FILE, numpy.ascontiguousarray(ARRAY))`")
            .into());
    }
    let expected = shape
        .iter()
        .try_fold(ty.bytes(), |bytes, &n| bytes.checked_mul(n))
        .filter(|&bytes| bytes < isize::MAX as usize)
        .ok_or_else(too_large)?;
    // Grows with the data: a damaged header must not cause a huge allocation.
    let mut data = vec![];
    let unreadable =
        |e: io::Error| Diagnostic::error(Code::Io, format!("{name} cannot be read: {e}"));
    from.by_ref().take(expected as u64).read_to_end(&mut data).map_err(unreadable)?;
    let rest = io::copy(&mut from, &mut io::sink()).map_err(unreadable)?;
    let found = data.len() as u64 + rest;
    if found != expected as u64 {
        let kind = if found < expected as u64 { "truncated" } else { "followed by other data" };
        return Err(bad(format!("the array is {kind}"))
            .note(format!("its header promises {expected} bytes of data; the file has {found}"))
            .into());
    }
    if swap {
        data.chunks_exact_mut(ty.bytes()).for_each(<[u8]>::reverse);
    }
    if ty == ScalarType::Bool {
        data.iter_mut().for_each(|b| *b = u8::from(*b != 0));
    }
    let data = HostArray::from_bytes(ty, data).ok_or_else(|| bad("half an element".into()))?;
    Ok(NpyArray { shape, data })
}

/// Reads the header, after checks that the parser of `npyz` does not make.
fn header(from: &mut impl Read) -> io::Result<NpyHeader> {
    let invalid = |what| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut head = vec![0; 8];
    from.read_exact(&mut head)?;
    let [magic @ .., major, _minor] = &head[..] else { return Err(invalid("no magic number")) };
    if magic != b"\x93NUMPY" {
        return Err(invalid("it does not begin with the magic number"));
    }
    // The first version has a length of two bytes, later ones of four.
    let length_bytes = if *major == 1 { 2 } else { 4 };
    head.resize(8 + length_bytes, 0);
    from.read_exact(&mut head[8..])?;
    let length = head[8..].iter().rev().fold(0usize, |n, &b| n << 8 | usize::from(b));
    if length > HEADER_BYTES {
        return Err(invalid("its header is too long"));
    }
    let start = head.len();
    head.resize(start + length, 0);
    from.read_exact(&mut head[start..])?;
    let text = String::from_utf8_lossy(&head[start..]);
    let mut depth = 0usize;
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > HEADER_NESTING {
            return Err(invalid("its header is nested too deeply"));
        }
    }
    // The parser multiplies the dimensions without a check for overflow. All numbers in the header are dimensions or
    // sizes of elements, so their product bounds the dimensions however the header is written.
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|s| !s.is_empty());
    let elements: f64 = numbers.map(|s| s.parse().unwrap_or(f64::INFINITY).max(1.0)).product();
    if elements > 1e18 {
        return Err(invalid("its shape is larger than memory can be"));
    }
    NpyHeader::from_reader(&head[..])
}

/// Returns the element type, and whether its bytes must be reversed.
fn element(dtype: &DType) -> std::result::Result<(ScalarType, bool), String> {
    let DType::Plain(ty) = dtype else {
        return Err("the array has structured elements; save each field as an array".into());
    };
    let scalar = match (ty.type_char(), ty.size_field()) {
        (TypeChar::Bool, 1) => ScalarType::Bool,
        (TypeChar::Float, 2) => ScalarType::F16,
        // As NumPy writes the type `bfloat16` of the package `ml_dtypes`.
        (TypeChar::RawData, 2) => ScalarType::BF16,
        (TypeChar::Float, 4) => ScalarType::F32,
        (TypeChar::Float, 8) => ScalarType::F64,
        (TypeChar::Int, 1) => ScalarType::I8,
        (TypeChar::Int, 2) => ScalarType::I16,
        (TypeChar::Int, 4) => ScalarType::I32,
        (TypeChar::Int, 8) => ScalarType::I64,
        (TypeChar::Uint, 1) => ScalarType::U8,
        (TypeChar::Uint, 2) => ScalarType::U16,
        (TypeChar::Uint, 4) => ScalarType::U32,
        (TypeChar::Uint, 8) => ScalarType::U64,
        _ => return Err(format!("elements of NumPy's type `{ty}` are not supported")),
    };
    let swap = match ty.endianness() {
        Endianness::Little => cfg!(target_endian = "big"),
        Endianness::Big => cfg!(target_endian = "little"),
        Endianness::Irrelevant => false,
    };
    Ok((scalar, swap && scalar.bytes() > 1))
}

/// Returns NumPy's name for an element type, in this machine's byte order.
fn type_str(ty: ScalarType) -> &'static str {
    const BIG: bool = cfg!(target_endian = "big");
    let pick = |little, big| if BIG { big } else { little };
    match ty {
        ScalarType::F16 => pick("<f2", ">f2"),
        ScalarType::BF16 => pick("<V2", ">V2"),
        ScalarType::F32 => pick("<f4", ">f4"),
        ScalarType::F64 => pick("<f8", ">f8"),
        ScalarType::I8 => "|i1",
        ScalarType::I16 => pick("<i2", ">i2"),
        ScalarType::I32 => pick("<i4", ">i4"),
        ScalarType::I64 => pick("<i8", ">i8"),
        ScalarType::U8 => "|u1",
        ScalarType::U16 => pick("<u2", ">u2"),
        ScalarType::U32 => pick("<u4", ">u4"),
        ScalarType::U64 => pick("<u8", ">u8"),
        ScalarType::Bool => "|b1",
    }
}

/// Writes a file completely or not at all. Devices and pipes are written directly.
pub fn write(path: &Path, array: &NpyArray) -> Result<()> {
    super::files::write(path, |to| write_to(to, array))
}

/// Writes an array to a stream.
///
/// # Errors
/// Those of the stream.
pub fn write_to(to: impl Write, array: &NpyArray) -> io::Result<()> {
    encode(to, array).map(drop)
}

fn encode<W: Write>(to: W, array: &NpyArray) -> io::Result<W> {
    let ty = type_str(array.data.ty()).parse().map_err(io::Error::other)?;
    let shape: Vec<u64> = array.shape.iter().map(|&n| n as u64).collect();
    let mut to = BufWriter::new(to);
    WriteOptions::new_header_only()
        .dtype(DType::new_scalar(ty))
        .shape(&shape)
        .writer(&mut to)
        .write_header_only()?;
    to.write_all(array.data.bytes())?;
    to.flush()?;
    to.into_inner().map_err(io::IntoInnerError::into_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Failure;
    use half::f16;

    /// A file as NumPy writes it.
    fn file(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
        let fortran = if fortran { "True" } else { "False" };
        let mut text =
            format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}");
        while (10 + text.len() + 1) % 64 != 0 {
            text.push(' ');
        }
        text.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend(u16::try_from(text.len()).expect("a short header").to_le_bytes());
        bytes.extend(text.bytes());
        bytes.extend(data);
        bytes
    }

    fn parse(bytes: &[u8]) -> Result<NpyArray> {
        super::parse(bytes, "x.npy")
    }

    fn format_error(result: Result<NpyArray>) -> Diagnostic {
        let Failure(mut ds) = result.unwrap_err();
        assert_eq!(ds[0].code, Code::InputFormat, "{}", ds[0]);
        ds.remove(0)
    }

    #[test]
    fn every_type_round_trips() {
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let path = folder.path().join("x.npy");
        for ty in ScalarType::ALL {
            for shape in [vec![], vec![0], vec![3], vec![2, 3], vec![2, 0, 3]] {
                let len = shape.iter().product();
                let data = crate::session::generate::generate(
                    &crate::session::generate::Generator::Iota,
                    ty,
                    len,
                    0,
                    0,
                );
                let array = NpyArray { shape, data: data.expect("the type has such values") };
                write(&path, &array).expect("it can be written");
                assert_eq!(read(&path).expect("it was written"), array);
            }
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn reads_what_numpy_writes() {
        let a = parse(&file("'<f4'", false, "(2,)", &[0, 0, 128, 63, 0, 0, 0, 64]))
            .expect("the file is well-formed");
        assert_eq!((a.shape, a.data.to_vec().expect("of that type")), (vec![2], vec![1.0f32, 2.0]));
        let a = parse(&file("'>i4'", false, "(1, 2)", &[0, 0, 0, 1, 0, 0, 0, 2]))
            .expect("the file is well-formed");
        assert_eq!((a.shape, a.data.to_vec().expect("of that type")), (vec![1, 2], vec![1i32, 2]));
        let a = parse(&file("'>f2'", false, "()", &[0x3c, 0])).expect("the file is well-formed");
        assert_eq!((a.shape, a.data.to_vec().expect("of that type")), (vec![], vec![f16::ONE]));
        // As the package `ml_dtypes` has it.
        let a = parse(&file("'<V2'", false, "(2,)", &[0x80, 0x3f, 0, 0xc0])).expect("well-formed");
        let [one, minus_two] = [1.0, -2.0].map(half::bf16::from_f32);
        assert_eq!(a.data.to_vec::<half::bf16>().expect("of that type"), [one, minus_two]);
        let a = parse(&file("'|b1'", false, "(2,)", &[0, 1])).expect("the file is well-formed");
        assert_eq!(a.data.to_vec::<bool>().expect("of that type"), [false, true]);
        // With one dimension, both orders are the same.
        assert!(parse(&file("'|u1'", true, "(3,)", &[1, 2, 3])).is_ok());
        assert!(parse(&file("'|u1'", true, "(3, 1)", &[1, 2, 3])).is_ok());
    }

    #[test]
    fn bad_files_say_what_is_wrong() {
        let d = format_error(parse(&file("'|u1'", true, "(2, 2)", &[1, 2, 3, 4])));
        assert!(d.help[0].contains("ascontiguousarray"));
        let d = format_error(parse(&file("'<f4'", false, "(2,)", &[0; 7])));
        assert!(d.notes[0].contains("8 bytes") && d.notes[0].contains("has 7"), "{:?}", d.notes);
        let d = format_error(parse(&file("'<f4'", false, "(2,)", &[0; 9])));
        assert!(d.notes[0].contains("has 9"), "{:?}", d.notes);
        for descr in
            ["'<c8'", "'<U4'", "'|O'", "'<M8[ns]'", "'<f16'", "[('a', '<f4')]", "'nonsense'"]
        {
            format_error(parse(&file(descr, false, "(2,)", &[])));
        }
        for bytes in [
            &b""[..],
            b"PK\x03\x04 a zip file",
            b"\x93NUMPY\x01\x00\xff\xff{",
            b"\x93NUMPY\x09\x00",
        ] {
            format_error(parse(bytes));
        }
        format_error(parse(&file("'<f4'", false, "(4611686018427387904, 4)", &[])));
        format_error(parse(&file("'<f4'", false, "(-1,)", &[])));
        format_error(parse(&file("'<f4'", false, "(1000000000000,)", &[])));
        format_error(parse(&file(&"(".repeat(9000), false, "(1,)", &[])));
    }

    #[test]
    fn damaged_files_are_read_or_refused() {
        let quoted = file("'<f4'", false, "(4611686018427387904, 4)", &[]);
        let quoted = String::from_utf8_lossy(&quoted[10..]).replace("'shape'", "\"shape\"");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend(u16::try_from(quoted.len()).expect("a short header").to_le_bytes());
        bytes.extend(quoted.bytes());
        format_error(parse(&bytes));
        let whole = file("'<f4'", false, "(2, 3)", &[7; 24]);
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for _ in 0..20_000 {
            let mut bytes = whole.clone();
            for _ in 0..=random(3) {
                let (at, pick) = (random(bytes.len()), random(4));
                match pick {
                    0 => bytes[at] = u8::try_from(random(256)).expect("a byte"),
                    1 => bytes[at] = b"0123456789(),:{}'\"-<>|fiub"[random(26)],
                    2 => bytes.truncate(at + 1),
                    _ => bytes.insert(at, b"0123456789(),:{}'\"-<>|fiub"[random(26)]),
                }
            }
            // It must neither panic nor exhaust the memory.
            drop(parse(&bytes));
        }
    }

    #[test]
    fn unusable_paths_are_io_errors() {
        let code = |f: Failure| f.0[0].code;
        assert_eq!(code(read(Path::new("/no/such.npy")).unwrap_err()), Code::Io);
        assert_eq!(code(read(Path::new("/")).unwrap_err()), Code::Io);
        let array = NpyArray { shape: vec![9], data: HostArray::zeros(ScalarType::F32, 9) };
        assert_eq!(code(write(Path::new("/no/such.npy"), &array).unwrap_err()), Code::Io);
        #[cfg(target_os = "linux")]
        {
            let failure = write(Path::new("/dev/full"), &array).unwrap_err();
            assert!(!failure.0[0].help.is_empty());
            assert_eq!(code(failure), Code::Io);
        }
    }
}
