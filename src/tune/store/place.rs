//! Where the store and its caches are, if the user names no other place.

use super::Store;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The folders of a user.
struct Folders {
    /// For data that must be kept.
    data: PathBuf,
    /// For what can be made again.
    cache: PathBuf,
}

impl Folders {
    /// Returns the folders of the XDG base directory specification; `None` if the environment does not tell them.
    fn of_user() -> Option<Folders> {
        let base = |variable: &str, below_home: &str| {
            // The specification demands that relative paths are ignored.
            let base = set(variable).filter(|path| path.is_absolute());
            Some(base.or_else(|| Some(set("HOME")?.join(below_home)))?.join("patsat"))
        };
        Some(Folders {
            data: base("XDG_DATA_HOME", ".local/share")?,
            cache: base("XDG_CACHE_HOME", ".cache")?,
        })
    }

    /// The usual place of the store.
    fn store(&self) -> PathBuf {
        self.data.join("store.sqlite")
    }

    /// Where earlier versions of patsat had the store. The caches that belong to the store still are beside this place.
    fn before(&self) -> PathBuf {
        self.cache.join("store.sqlite")
    }

    /// Returns whether the store is still to be moved.
    fn is_before(&self) -> bool {
        !self.store().exists() && self.before().is_file()
    }
}

/// Returns a variable of the environment that is not empty.
fn set(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// Returns the store's default path: `$PATSAT_STORE`, or else the usual place in the user's data folder. A store that
/// [`move_to_data`] has not moved yet is in the cache folder. `None` if the environment does not tell a place.
pub fn default_path() -> Option<PathBuf> {
    let usual = |folders: Folders| match folders.is_before() {
        true => folders.before(),
        false => folders.store(),
    };
    set("PATSAT_STORE").or_else(|| Folders::of_user().map(usual))
}

/// Returns the path of a cache that belongs to a store: beside the store, and for that at the usual place in the
/// user's cache folder.
pub fn cache_of(store: &Path, what: &str) -> PathBuf {
    let folders = Folders::of_user().filter(|folders| folders.store() == store);
    folders.map_or_else(|| store.to_path_buf(), |folders| folders.before()).with_extension(what)
}

/// Moves the store from the cache folder, where earlier versions of patsat had it, to the data folder, if it is there and
/// none is in the data folder. Returns both places if it was moved. A store that another process uses, or that cannot be
/// moved, stays where it is, and is used there. With `$PATSAT_STORE`, neither place is looked at.
pub fn move_to_data() -> Option<[PathBuf; 2]> {
    if set("PATSAT_STORE").is_some() {
        return None;
    }
    let folders = Folders::of_user().filter(Folders::is_before)?;
    let (from, to) = (folders.before(), folders.store());
    // When its last user closes a database, SQLite puts what is in the log into the file, and removes the log.
    drop(Store::open_within(&from, Duration::ZERO).ok()?);
    if super::open::log_of(&from).exists() {
        return None;
    }
    fs::create_dir_all(&folders.data).ok()?;
    match fs::rename(&from, &to) {
        Err(e) if e.kind() == ErrorKind::CrossesDevices => {
            // Half of a copy must not be taken for the store.
            let copy = to.with_extension("copy");
            fs::copy(&from, &copy).and_then(|_| fs::rename(&copy, &to)).ok()?;
            // What is left is not used any more.
            _ = fs::remove_file(&from);
        }
        renamed => renamed.ok()?,
    }
    Some([from, to])
}
