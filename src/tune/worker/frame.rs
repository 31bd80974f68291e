//! Frames on a byte stream: a mark, two lengths, a JSON header and raw bytes.
//!
//! The mark lets the reader skip whatever a driver (or a kernel's `printf`) wrote between frames.

use serde::{Serialize, de::DeserializeOwned};
use std::io::{self, Read, Write};

/// Starts every frame. Its first byte occurs in no UTF-8 text, and nowhere else in the mark.
const MARK: [u8; 8] = *b"\xffpatsat\n";

/// Longest accepted header, in bytes. A program's source with its launches is far shorter.
const HEADER_BYTES: u32 = 1 << 26;

/// Writes one frame.
pub(super) fn write(
    to: &mut impl Write,
    header: &impl Serialize,
    bulk: &[&[u8]],
) -> io::Result<()> {
    let header = serde_json::to_vec(header)?;
    let length = u32::try_from(header.len()).map_err(io::Error::other)?;
    let bulk_length: usize = bulk.iter().map(|b| b.len()).sum();
    to.write_all(&MARK)?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(&(bulk_length as u64).to_le_bytes())?;
    to.write_all(&header)?;
    bulk.iter().try_for_each(|b| to.write_all(b))?;
    to.flush()
}

/// Reads one frame with at most `most` raw bytes, and skips everything before it. Returns `None` at the end of the
/// stream.
pub(super) fn read<T: DeserializeOwned>(
    from: &mut impl Read,
    most: impl Fn() -> u64,
) -> io::Result<Option<(T, Vec<u8>)>> {
    let mut matched = 0;
    while matched < MARK.len() {
        let mut byte = [0];
        if from.read(&mut byte)? == 0 {
            return Ok(None);
        }
        // The mark's first byte occurs in it only once, so after a mismatch a mark can begin only at this byte.
        matched = match byte[0] {
            b if b == MARK[matched] => matched + 1,
            b if b == MARK[0] => 1,
            _ => 0,
        };
    }
    let mut lengths = [0; 12];
    from.read_exact(&mut lengths)?;
    let [a, b, c, d, rest @ ..] = lengths;
    let length = u32::from_le_bytes([a, b, c, d]);
    let bulk_length = u64::from_le_bytes(rest);
    if length > HEADER_BYTES || bulk_length > most() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is too long"));
    }
    let header = exactly(from, u64::from(length))?;
    let bulk = exactly(from, bulk_length)?;
    Ok(Some((serde_json::from_slice(&header)?, bulk)))
}

/// Reads exactly `length` bytes. Memory grows as bytes arrive, so that a large length alone allocates nothing.
fn exactly(from: &mut impl Read, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![];
    if from.take(length).read_to_end(&mut bytes)? as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_noise() {
        let mut stream = b"driver says \xff\xffpat hello\n".to_vec();
        write(&mut stream, &("a", 1), &[b"xy", b"z"]).expect("a vector takes all that is written");
        stream.extend_from_slice(b"more noise");
        write(&mut stream, &("b", 2), &[]).expect("a vector takes all that is written");
        let mut from = &stream[..];
        let (header, bulk) = read::<(String, i32)>(&mut from, || 3)
            .expect("a whole frame is there")
            .expect("a frame is there");
        assert_eq!((header, bulk), (("a".into(), 1), b"xyz".to_vec()));
        let (header, bulk) = read::<(String, i32)>(&mut from, || 3)
            .expect("a whole frame is there")
            .expect("a frame is there");
        assert_eq!((header, bulk), (("b".into(), 2), vec![]));
        assert!(read::<(String, i32)>(&mut from, || 3).expect("a whole frame is there").is_none());
    }

    #[test]
    fn truncated_frames_are_errors() {
        let mut stream = vec![];
        write(&mut stream, &1, &[b"data"]).expect("a vector takes all that is written");
        stream.pop();
        assert!(read::<i32>(&mut &stream[..], || 4).is_err());
    }

    #[test]
    fn long_frames_are_refused_before_they_are_read() {
        let mut stream = vec![];
        write(&mut stream, &1, &[b"data"]).expect("a vector takes all that is written");
        assert!(read::<i32>(&mut &stream[..], || 4).is_ok());
        assert!(read::<i32>(&mut &stream[..], || 3).is_err());
        for lengths in [[0xff; 12], [0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0]] {
            stream.truncate(MARK.len());
            stream.extend(lengths);
            assert!(read::<i32>(&mut &stream[..], || 1 << 40).is_err());
        }
    }
}
