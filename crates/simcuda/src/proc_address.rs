//! `cuGetProcAddress`: finds a function by name and version.
//!
//! `api.txt` lists, for every function of the driver API, its exported symbols, the version that
//! introduced each, the symbol for programs with per-thread default streams, and whether it is
//! supported. It matches a driver of CUDA 13.0.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_void};
use std::sync::OnceLock;

use crate::c_pointers::{Out, Text};
use crate::error::{INVALID_VALUE, NOT_FOUND, Outcome, UNKNOWN};
use crate::export_macros::exports;
use crate::settings::{Settings, settings};

/// Flag: stream 0 is the legacy default stream.
const LEGACY: u64 = 1;
/// Flag: stream 0 is the thread's own default stream.
const PER_THREAD: u64 = 2;

/// The result of a search, as in the driver API.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
enum Status {
    Found = 0,
    NotFound = 1,
    VersionNotSufficient = 2,
}

/// A line of the list.
struct Row {
    since: u32,
    symbol: &'static str,
    /// `None` for versions without per-thread default streams.
    per_thread: Option<&'static str>,
}

/// The list, by name.
fn rows() -> &'static HashMap<&'static str, Vec<Row>> {
    static ROWS: OnceLock<HashMap<&str, Vec<Row>>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let mut rows: HashMap<&str, Vec<Row>> = HashMap::new();
        let lines = include_str!("api.txt").lines();
        for line in lines.filter(|line| !line.starts_with('#')) {
            let words: Vec<_> = line.split_whitespace().collect();
            if let [name, since, symbol, per_thread, ..] = words[..] {
                rows.entry(name).or_default().push(Row {
                    since: since.parse().expect("api.txt: the version is a number"),
                    symbol,
                    per_thread: (per_thread != "-").then_some(per_thread),
                });
            }
        }
        rows
    })
}

/// The newest symbol of `name` up to `version`.
fn search(
    settings: &Settings,
    name: &str,
    version: u32,
    per_thread: bool,
) -> Result<&'static str, Status> {
    let hidden = |symbol: &str| settings.omit.contains(symbol);
    let known = rows()
        .get(name)
        .filter(|_| !hidden(name))
        .ok_or(Status::NotFound)?;
    let offered = |row: &&Row| row.since <= settings.version && !hidden(row.symbol);
    let mut rows = known.iter().filter(offered).peekable();
    rows.peek().ok_or(Status::NotFound)?;
    let fitting = rows.rfind(|row| row.since <= version);
    let symbol = fitting.and_then(|row| match per_thread {
        true => row.per_thread.filter(|symbol| !hidden(symbol)),
        false => Some(row.symbol),
    });
    symbol.ok_or(Status::VersionNotSufficient)
}

/// The address of a symbol of this library.
fn address_of(symbol: &str) -> Option<usize> {
    static LIBRARY: OnceLock<usize> = OnceLock::new();
    let library = *LIBRARY.get_or_init(|| own_library().expose_provenance());
    if library == 0 {
        return None;
    }
    let library = std::ptr::with_exposed_provenance_mut(library);
    let symbol = CString::new(symbol).ok()?;
    // SAFETY: the handle came from dlopen and is never closed. The name is NUL-terminated.
    let address = unsafe { libc::dlsym(library, symbol.as_ptr()) };
    (!address.is_null()).then(|| address.expose_provenance())
}

/// The loader's handle of this library, or null.
fn own_library() -> *mut c_void {
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the address is that of a function, and `found` is large enough.
    let known = unsafe { libc::dladdr(address_of as *const c_void, found.as_mut_ptr()) };
    // SAFETY: all-zero is a valid `Dl_info`, whether or not the call filled it in.
    let found = unsafe { found.assume_init() };
    if known == 0 || found.dli_fname.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: the loader's copy of the name lives as long as the library.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    // SAFETY: RTLD_NOLOAD only looks up a loaded library.
    unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) }
}

/// The address of a function, or why there is none.
fn find(name: Text, version: i32, flags: u64) -> Outcome<Result<usize, Status>> {
    let settings = settings().map_err(|_| UNKNOWN)?;
    let name = name.read()?;
    let version = u32::try_from(version).map_err(|_| INVALID_VALUE)?;
    if version > settings.version || flags & !(LEGACY | PER_THREAD) != 0 {
        return Err(INVALID_VALUE);
    }
    let symbol = search(settings, &name, version, flags & PER_THREAD != 0);
    Ok(symbol.and_then(|symbol| address_of(symbol).ok_or(Status::NotFound)))
}

exports! { through always;
    /// Finds a function. If there is none, returns an error and leaves the address unchanged.
    fn cuGetProcAddress(name: Text, address: Out<usize>, version: i32, flags: u64) {
        address.set_with(|| find(name, version, flags)?.map_err(|_| NOT_FOUND))
    }

    /// Finds a function. If there is none, stores null and a status that says why.
    fn cuGetProcAddress_v2(
        name: Text, address: Out<usize>, version: i32, flags: u64, status: Out<u32>,
    ) {
        address.set_with(|| {
            let found = find(name, version, flags)?;
            status.set_optional(found.err().unwrap_or(Status::Found) as u32);
            Ok(found.unwrap_or(0))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::settings::Fail;

    fn settings(version: u32, omit: &[&str]) -> Settings {
        Settings {
            profile: pinlane_model::Profile::builtin("null").unwrap(),
            devices: 1,
            version,
            omit: omit.iter().map(|name| (*name).to_owned()).collect(),
            fail: Fail::Never,
            seed: None,
        }
    }

    const MISSING: Result<&str, Status> = Err(Status::NotFound);
    const TOO_OLD: Result<&str, Status> = Err(Status::VersionNotSufficient);

    #[test]
    fn the_version_selects_the_symbol() {
        let all = settings(13000, &[]);
        let find = |name, version| search(&all, name, version, false);
        assert_eq!(find("cuMemAlloc", 2000), Ok("cuMemAlloc"));
        assert_eq!(find("cuMemAlloc", 13000), Ok("cuMemAlloc_v2"));
        assert_eq!(find("cuMemcpyBatchAsync", 12080), Ok("cuMemcpyBatchAsync"));
        let newest = find("cuMemcpyBatchAsync", 13000);
        assert_eq!(newest, Ok("cuMemcpyBatchAsync_v2"));
        assert_eq!(find("cuMemcpyBatchAsync", 12000), TOO_OLD);
        assert_eq!(find("cuMemAlloc_v2", 13000), MISSING);
    }

    #[test]
    fn per_thread_functions_exist_since_7_0() {
        let all = settings(13000, &[]);
        let find = |name, version| search(&all, name, version, true);
        assert_eq!(find("cuMemcpyHtoD", 13000), Ok("cuMemcpyHtoD_v2_ptds"));
        assert_eq!(find("cuMemAlloc", 13000), Ok("cuMemAlloc_v2"));
        assert_eq!(find("cuMemcpyHtoD", 6050), TOO_OLD);
    }

    #[test]
    fn an_older_driver_does_not_know_newer_names() {
        let old = settings(11020, &[]);
        let find = |name| search(&old, name, 11020, false);
        assert_eq!(find("cuMemcpyBatchAsync"), MISSING);
        assert_eq!(find("cuCtxCreate"), Ok("cuCtxCreate_v2"));
    }

    #[test]
    fn names_and_symbols_can_be_omitted() {
        let without = settings(13000, &["cuMemAllocAsync", "cuMemcpyBatchAsync_v2"]);
        let find = |name| search(&without, name, 13000, false);
        assert_eq!(find("cuMemAllocAsync"), MISSING);
        assert_eq!(find("cuMemcpyBatchAsync"), Ok("cuMemcpyBatchAsync"));
    }

    #[test]
    fn the_list_is_complete() {
        let names: BTreeSet<_> = rows().keys().collect();
        assert!(names.len() > 400, "{}", names.len());
        for rows in rows().values() {
            assert!(rows.is_sorted_by(|a, b| a.since < b.since));
        }
    }
}
