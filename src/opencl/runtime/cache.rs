//! A cache of built programs that is shared between processes: one file for each program, named by everything that
//! determines the result of a build.
//!
//! No failure here is an error. If a file cannot be read, is incomplete, or is refused by the driver, the program
//! is built from source; if a file cannot be written, the program is not kept. The folder has a maximum size; the
//! least recently used files are removed first.

use crate::device::DeviceInfo;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The first bytes of a file. The hash of the binary and the binary follow.
const MAGIC: &[u8; 8] = b"patsatB1";

/// Maximum total size of the files, in bytes.
const MOST: u64 = 256 << 20;

/// When the folder exceeds its maximum, files are removed until the total is at most this, so that not every new
/// file removes another.
const LESS: u64 = MOST / 4 * 3;

/// A folder of binaries.
pub(super) struct Cache {
    folder: PathBuf,
    most: u64,
    less: u64,
}

impl Cache {
    pub(super) fn new(folder: &Path) -> Cache {
        Cache { folder: folder.to_owned(), most: MOST, less: LESS }
    }

    /// Returns the path of a program's file.
    pub(super) fn file(&self, device: &DeviceInfo, source: &str, options: &str) -> PathBuf {
        let mut hasher = blake3::Hasher::new();
        let DeviceInfo { platform, name, vendor, driver, opencl_version, .. } = device;
        for part in [platform, name, vendor, driver, opencl_version, options, source] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        self.folder.join(&hasher.finalize().to_hex()[..32])
    }

    /// Returns the binary in a file, if it is complete and unchanged.
    pub(super) fn get(file: &Path) -> Option<Vec<u8>> {
        let bytes = fs::read(file).ok()?;
        let Some(binary) = whole(&bytes) else {
            Cache::forget(file);
            return None;
        };
        // Mark the file as recently used. If that fails, it is only removed earlier.
        if let Ok(opened) = fs::File::options().append(true).open(file) {
            let _ = opened.set_modified(SystemTime::now());
        }
        Some(binary.to_vec())
    }

    /// Stores a binary. Other processes see either all of it or nothing.
    pub(super) fn put(&self, file: &Path, binary: &[u8]) {
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(&self.folder)?;
            let mut whole = tempfile::NamedTempFile::new_in(&self.folder)?;
            whole.write_all(MAGIC)?;
            whole.write_all(blake3::hash(binary).as_bytes())?;
            whole.write_all(binary)?;
            whole.persist(file)?;
            Ok(())
        };
        if !binary.is_empty() && write().is_ok() {
            self.shrink();
        }
    }

    /// Removes a file that cannot be used.
    pub(super) fn forget(file: &Path) {
        // Another process may have removed it already.
        let _ = fs::remove_file(file);
    }

    fn shrink(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter_map(|e| {
                let e = e.ok()?;
                let about = e.metadata().ok().filter(fs::Metadata::is_file)?;
                Some((about.modified().ok()?, about.len(), e.path()))
            })
            .collect();
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        if total <= self.most {
            return;
        }
        files.sort();
        for (_, bytes, path) in files {
            if total <= self.less {
                break;
            }
            Cache::forget(&path);
            total -= bytes;
        }
    }
}

/// Returns the binary in a file's contents, if it is complete and unchanged.
fn whole(bytes: &[u8]) -> Option<&[u8]> {
    let (hash, binary) = bytes.strip_prefix(MAGIC)?.split_at_checked(blake3::OUT_LEN)?;
    (blake3::hash(binary).as_bytes() == hash).then_some(binary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceKind;
    use crate::device::tests::device;

    #[test]
    fn files_are_whole_or_not_there() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let cache = Cache::new(&folder.path().join("new"));
        let d = device(0, "P", "D", DeviceKind::Cpu);
        let file = cache.file(&d, "kernel", "-O");
        assert_eq!(Cache::get(&file), None);
        cache.put(&file, b"binary");
        assert_eq!(Cache::get(&file).as_deref(), Some(&b"binary"[..]));
        // A file that is truncated, changed or of another kind is removed when it is read.
        let whole = fs::read(&file).expect("written");
        let mut changed = whole.clone();
        changed[45] ^= 1;
        for bytes in [&whole[..whole.len() - 1], &whole[..10], &changed, b"", &b"x".repeat(99)] {
            fs::write(&file, bytes).expect("written");
            assert_eq!(Cache::get(&file), None);
            assert!(!file.exists());
        }
    }

    #[test]
    fn everything_that_decides_a_build_names_it() {
        let cache = Cache::new(Path::new("c"));
        let d = device(0, "P", "D", DeviceKind::Cpu);
        let file = |d: &DeviceInfo, s, o| cache.file(d, s, o);
        let mut all = vec![
            file(&d, "s", "o"),
            file(&d, "so", ""),
            file(&d, "", "so"),
            file(&DeviceInfo { driver: "2".into(), ..d.clone() }, "s", "o"),
            file(&DeviceInfo { name: "E".into(), ..d.clone() }, "s", "o"),
            file(&DeviceInfo { platform: "Q".into(), ..d.clone() }, "s", "o"),
        ];
        // The position of the device in the list does not matter.
        assert_eq!(file(&DeviceInfo { index: 7, ..d.clone() }, "s", "o"), all[0]);
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 6);
    }

    #[test]
    fn what_was_not_used_for_longest_goes() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let cache = Cache { folder: folder.path().to_owned(), most: 1000, less: 600 };
        let path = |i: usize| folder.path().join(format!("{i}"));
        let second = |i: u64| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(i);
        for i in 0..4 {
            cache.put(&path(i), &[7; 200]);
            let opened = fs::File::options().append(true).open(path(i)).expect("there");
            opened.set_modified(second(i as u64)).expect("a time");
        }
        // Reading the file makes it recently used.
        assert!(Cache::get(&path(0)).is_some());
        cache.put(&path(4), &[7; 200]);
        let there: Vec<bool> = (0..5).map(|i| path(i).exists()).collect();
        assert_eq!(there, [true, false, false, false, true]);
    }
}
