//! A remembered list of the devices. Some drivers take longer to list devices than all other steps of an answer
//! from the tuning store.
//!
//! The list is valid as long as nothing has changed that determines the drivers' answer: the boot of the machine,
//! the files that name drivers or are drivers, the environment, and the devices that the system shows. Commands
//! that run kernels query the drivers themselves.

use crate::device::DeviceInfo;
use crate::diag::Result;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Default folder in which loaders look for drivers.
const VENDORS: &str = "/etc/OpenCL/vendors";
/// Environment variables with these prefixes may change the drivers' answer.
const PREFIXES: [&str; 10] =
    ["OCL", "OPENCL", "CL_", "POCL", "CUDA", "NVIDIA", "INTEL", "ROC", "GPU", "LD_"];

/// A list of devices, and a hash of the state that it depends on.
#[derive(Serialize, Deserialize)]
struct Remembered {
    state: String,
    devices: Vec<DeviceInfo>,
}

/// Returns every device: from the file if that is up to date, else from `list`, whose result is then written to the
/// file.
///
/// # Errors
/// As `list`. A file that cannot be read counts as missing.
pub fn remembered_devices(
    file: &Path,
    list: impl FnOnce() -> Result<Vec<DeviceInfo>>,
) -> Result<Vec<DeviceInfo>> {
    recall(file, state(), list)
}

fn recall(
    file: &Path,
    state: Option<String>,
    list: impl FnOnce() -> Result<Vec<DeviceInfo>>,
) -> Result<Vec<DeviceInfo>> {
    let Some(state) = state else { return list() };
    let read = || serde_json::from_slice::<Remembered>(&fs::read(file).ok()?).ok();
    if let Some(known) = read().filter(|r| r.state == state) {
        return Ok(known.devices);
    }
    let devices = list()?;
    let new = Remembered { state, devices };
    let write = || -> std::io::Result<()> {
        let folder = file.parent().unwrap_or(Path::new("."));
        let mut whole = tempfile::NamedTempFile::new_in(folder)?;
        whole.write_all(&serde_json::to_vec(&new)?)?;
        whole.persist(file)?;
        Ok(())
    };
    // If the file cannot be written, the next call queries the drivers again.
    let _ = write();
    Ok(new.devices)
}

/// Returns a hash of everything that determines the drivers' answer; `None` if the system does not provide it.
fn state() -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    let mut add = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    add(env!("CARGO_PKG_VERSION").as_bytes());
    add(&fs::read("/proc/sys/kernel/random/boot_id").ok()?);
    add(&std::thread::available_parallelism().ok()?.get().to_le_bytes());
    let mut variables: Vec<(OsString, OsString)> = std::env::vars_os()
        .filter(|(k, _)| PREFIXES.iter().any(|p| k.as_encoded_bytes().starts_with(p.as_bytes())))
        .collect();
    variables.sort();
    for (k, v) in variables {
        add(k.as_encoded_bytes());
        add(v.as_encoded_bytes());
    }
    let vendors = std::env::var_os("OCL_ICD_VENDORS").unwrap_or(VENDORS.into());
    let vendors = PathBuf::from(vendors);
    let named = match vendors.is_dir() {
        true => entries(&vendors),
        false => vec![vendors],
    };
    for icd in named {
        add(icd.as_os_str().as_encoded_bytes());
        add(stamp(&icd).as_bytes());
        // A library named without a folder is found through the loader's cache, which updates of the library renew.
        for library in fs::read_to_string(&icd).unwrap_or_default().lines() {
            add(library.as_bytes());
            add(stamp(Path::new(library.trim())).as_bytes());
        }
    }
    add(stamp(Path::new("/etc/ld.so.cache")).as_bytes());
    add(&fs::read("/proc/driver/nvidia/version").unwrap_or_default());
    for folder in ["/dev", "/dev/dri"] {
        let mut shown = entries(Path::new(folder));
        shown.retain(|p| folder != "/dev" || p.to_string_lossy().starts_with("/dev/nvidia"));
        shown.iter().for_each(|p| add(p.as_os_str().as_encoded_bytes()));
    }
    Some(hasher.finalize().to_hex().to_string())
}

/// Returns the contents of a folder in order; nothing if the folder cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).into_iter().flatten();
    let mut found: Vec<PathBuf> = read.filter_map(|e| Some(e.ok()?.path())).collect();
    found.sort();
    found
}

/// Returns the time of a file's last change, and its length.
fn stamp(file: &Path) -> String {
    let Ok(about) = fs::metadata(file) else { return String::new() };
    let changed = about.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    format!("{changed:?} {}", about.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceKind;
    use crate::device::tests::device;
    use crate::diag::{Code, Diagnostic};
    use crate::opencl::runtime::devices;

    #[test]
    fn a_list_is_good_until_something_changes() {
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let file = folder.path().join("devices");
        let list = |name: &str| Ok(vec![device(0, "P", name, DeviceKind::Cpu)]);
        let never = || Err(Diagnostic::error(Code::Driver, "asked").into());
        let name = |found: Result<Vec<DeviceInfo>>| found.expect("a list")[0].name.clone();
        let state = |s: &str| Some(s.to_owned());
        assert_eq!(name(recall(&file, state("1"), || list("a"))), "a");
        assert_eq!(name(recall(&file, state("1"), never)), "a");
        // The state has changed, the state is unknown, or the file is damaged.
        assert_eq!(name(recall(&file, state("2"), || list("b"))), "b");
        assert_eq!(name(recall(&file, None, || list("c"))), "c");
        assert_eq!(name(recall(&file, state("2"), never)), "b");
        fs::write(&file, "{").expect("a file");
        assert_eq!(name(recall(&file, state("2"), || list("d"))), "d");
        // A failure is not remembered, and a file that cannot be written is not a failure.
        assert!(recall(&file, state("3"), never).is_err());
        assert_eq!(name(recall(Path::new("/no/such/folder/x"), state("3"), || list("e"))), "e");
    }

    #[test]
    fn what_is_remembered_is_what_drivers_say() {
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let file = folder.path().join("devices");
        let asked = devices().expect("a device");
        assert_eq!(remembered_devices(&file, devices).expect("a device"), asked);
        assert_eq!(remembered_devices(&file, devices).expect("a device"), asked);
        assert_eq!(state(), state());
    }
}
