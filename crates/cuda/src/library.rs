//! Finds, opens and initialises libcuda.

use std::error::Error as _;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use cudarc::driver::sys::CUdevice;
use pinlane_driver::{Error, ErrorKind, Result, Version};

use crate::error::{self, SUCCESS};
use crate::fork;
use crate::symbol_table::{Calls, SymbolLookup, symbol};

/// The oldest supported interface: it introduced PTX 8.0, which the built-in kernels use.
const OLDEST: Version = Version {
    major: 12,
    minor: 0,
};

/// The interface that introduced batch copies.
const BATCH_SINCE: Version = Version {
    major: 12,
    minor: 8,
};

/// The names of libcuda on nearly every Linux machine.
const USUAL_NAMES: [&str; 2] = ["libcuda.so", "libcuda.so.1"];

/// Not in the table of calls, since it is called before the table is resolved.
type DriverGetVersion = unsafe extern "C" fn(*mut c_int) -> u32;

/// Returns the name of a simulated device's profile. Only simcuda exports it.
type SimulatedProfile = unsafe extern "C" fn(CUdevice, *mut c_char, c_int) -> u32;

/// libcuda, ready to be called.
pub(crate) struct Library {
    pub calls: Calls,
    /// Version of the driver's interface.
    pub version: Version,
    /// Present if the library is simcuda.
    pub simulated_profile: Option<SimulatedProfile>,
}

/// Calls libcuda without changing the context. An error names the call.
macro_rules! call {
    ($library:expr, $name:ident($($arg:expr),* $(,)?)) => {
        $library.check(stringify!($name), ($library.calls.$name)($($arg),*))
    };
}
pub(crate) use call;

impl Library {
    /// Finds libcuda, checks its version and its symbols, and initialises it.
    pub(crate) fn load() -> Result<Self> {
        fork::check("cuInit")?;
        // Never unloaded, since the driver's threads run until the process ends.
        let library = ManuallyDrop::new(open()?);
        // SAFETY: this is libcuda. The lookup returns its symbols, or nothing.
        unsafe {
            Self::resolve(&|name| {
                let symbol = library.get::<*mut c_void>(name);
                symbol.ok().and_then(|symbol| NonNull::new(*symbol))
            })
        }
    }

    /// Uses a libcuda that is loaded already, by a lookup of its symbols.
    ///
    /// # Safety
    /// `lookup` returns the addresses of libcuda's functions by name, and that libcuda is never unloaded.
    pub(crate) unsafe fn resolve(lookup: &SymbolLookup<'_>) -> Result<Self> {
        fork::watch()?;
        fork::check("cuInit")?;
        // The version first: an old driver also lacks symbols, and its age is the better error.
        // SAFETY: this is libcuda.
        let version = unsafe { driver_version(lookup) }?;
        if version < OLDEST {
            let kind = ErrorKind::DriverTooOld {
                found: version,
                needed: OLDEST,
            };
            return Err(Error::new(kind, "cuDriverGetVersion"));
        }
        let library = Self {
            // SAFETY: this is libcuda, and it is never unloaded.
            calls: unsafe { Calls::resolve(lookup) }?,
            // SAFETY: only simcuda exports this symbol, with this type.
            simulated_profile: unsafe { symbol(lookup, "pinlane_simcuda_profile") }.ok(),
            version,
        };
        // SAFETY: takes no pointers.
        unsafe { call!(library, cuInit(0)) }?;
        Ok(library)
    }

    /// Whether the driver supports batch copies.
    pub(crate) fn has_batch_copy(&self) -> bool {
        self.version >= BATCH_SINCE && self.calls.cuMemcpyBatchAsync.is_some()
    }

    /// Whether the driver supports stream-ordered allocation.
    pub(crate) fn has_async_alloc(&self) -> bool {
        self.calls.cuMemAllocAsync.is_some() && self.calls.cuMemFreeAsync.is_some()
    }

    /// Turns a result code into a `Result`.
    pub(crate) fn check(&self, call: &'static str, code: u32) -> Result<()> {
        self.check_as(call, code, error::kind)
    }

    /// Like [`check`](Self::check), with another meaning of the codes.
    pub(crate) fn check_as(
        &self,
        call: &'static str,
        code: u32,
        meaning: fn(u32) -> ErrorKind,
    ) -> Result<()> {
        if code == SUCCESS {
            return Ok(());
        }
        Err(Error::new(meaning(code), call).with_detail(self.describe(code)))
    }

    /// The driver's name and description of a code.
    fn describe(&self, code: u32) -> String {
        let text = |call: unsafe extern "C" fn(u32, *mut *const c_char) -> u32| {
            let mut text = ptr::null();
            // SAFETY: the call writes `text` before it returns, null for an unknown code.
            let found = unsafe { call(code, &mut text) };
            (found == SUCCESS && !text.is_null())
                // SAFETY: the string is a constant of the driver, which is never unloaded.
                .then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy())
        };
        let name = text(self.calls.cuGetErrorName).unwrap_or("unknown error code".into());
        match text(self.calls.cuGetErrorString) {
            Some(description) => format!("{name} ({code}), {description}"),
            None => format!("{name} ({code})"),
        }
    }
}

/// The names to try for libcuda, in cudarc's order, so that both open the same library.
fn names() -> Vec<String> {
    let mut names = Vec::new();
    for name in ["cuda", "nvcuda"]
        .into_iter()
        .flat_map(cudarc::get_lib_name_candidates)
    {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Opens the first library that exists.
fn open() -> Result<libloading::Library> {
    let names = names();
    let mut errors = Vec::new();
    for name in &names {
        // SAFETY: loading runs libcuda's initialisers, which have no preconditions.
        match unsafe { libloading::Library::new(name) } {
            Ok(library) => return Ok(library),
            Err(error) => errors.push(message_of(&error)),
        }
    }
    Err(Error::new(ErrorKind::NoDriver, "dlopen").with_detail(describe_failures(&names, &errors)))
}

/// The loader's message. The error itself only says which call failed.
fn message_of(error: &libloading::Error) -> String {
    let source = error.source();
    source.map_or_else(|| error.to_string(), ToString::to_string)
}

/// Which names were tried, and why a file that exists did not load.
fn describe_failures(names: &[String], errors: &[String]) -> String {
    let names = names.iter().map(String::as_str);
    let (usual, others): (Vec<_>, Vec<_>) = names.partition(|name| USUAL_NAMES.contains(name));
    let (usual, others) = (usual.join(", "), others.len());
    let tried = format!("tried {usual} and {others} other names");
    let exists = |error: &&String| !error.contains("No such file or directory");
    match errors.iter().find(exists) {
        Some(error) => format!("{error}; {tried}"),
        None => tried,
    }
}

/// The version of the driver's interface. Works before initialisation.
///
/// # Safety
/// `lookup` finds libcuda's functions.
unsafe fn driver_version(lookup: &SymbolLookup<'_>) -> Result<Version> {
    let mut number = 0;
    // SAFETY: the type is correct, and `number` outlives the call.
    let code = unsafe {
        let call: DriverGetVersion = symbol(lookup, "cuDriverGetVersion")?;
        call(&mut number)
    };
    if code != SUCCESS {
        return Err(Error::new(error::kind(code), "cuDriverGetVersion"));
    }
    Ok(version_of(number))
}

/// Decodes 12080 as 12.8.
fn version_of(number: c_int) -> Version {
    let number = number.unsigned_abs();
    Version {
        major: number / 1000,
        minor: number % 1000 / 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_decoded() {
        assert_eq!(version_of(12080), BATCH_SINCE);
        assert_eq!(version_of(12000), OLDEST);
        assert!(version_of(11080) < OLDEST);
        assert!(version_of(13000) > BATCH_SINCE);
    }

    #[test]
    fn the_usual_names_are_tried_once_each() {
        let names = names();
        for name in USUAL_NAMES {
            assert_eq!(names.iter().filter(|found| *found == name).count(), 1);
        }
    }

    #[test]
    fn a_file_that_does_not_load_is_reported() {
        let names = ["libcuda.so", "libcuda64.so", "libcuda.so.1"].map(String::from);
        let missing = "libcuda.so: cannot open shared object file: No such file or directory";
        let broken = "libcuda.so.1: invalid ELF header";
        let errors = [missing, missing, missing].map(String::from);
        assert_eq!(
            describe_failures(&names, &errors),
            "tried libcuda.so, libcuda.so.1 and 1 other names"
        );
        let errors = [missing, missing, broken].map(String::from);
        assert_eq!(
            describe_failures(&names, &errors),
            "libcuda.so.1: invalid ELF header; tried libcuda.so, libcuda.so.1 and 1 other names"
        );
    }

    #[test]
    fn the_loaders_message_is_kept() {
        // SAFETY: the library does not exist, so nothing runs.
        let error = unsafe { libloading::Library::new("libpinlane-no-such.so") }
            .expect_err("it does not exist");
        assert!(message_of(&error).contains("libpinlane-no-such.so"));
    }

    #[test]
    fn loading_never_panics_and_names_a_missing_library() {
        match Library::load() {
            Ok(library) => assert!(library.version >= OLDEST),
            Err(error) if error.kind == ErrorKind::NoDriver => {
                assert!(error.detail.contains("libcuda.so.1") || error.call != "dlopen");
            }
            Err(error) => assert_ne!(error.call, "dlopen", "{error}"),
        }
    }
}
