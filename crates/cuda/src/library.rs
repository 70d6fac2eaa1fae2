//! libcuda: found, opened and initialised, or the reason why not.

use std::error::Error as _;
use std::ffi::{CStr, c_char, c_int};
use std::mem::ManuallyDrop;
use std::ptr;

use cudarc::driver::sys::CUdevice;
use pinlane_driver::{Error, ErrorKind, Result, Version};

use crate::calls::{Calls, symbol};
use crate::error::{self, SUCCESS};
use crate::fork;

/// The oldest interface that is accepted: the built-in kernels are PTX 8.0, which came with it.
const OLDEST: Version = Version {
    major: 12,
    minor: 0,
};

/// The interface that brought batch copies.
const BATCH_SINCE: Version = Version {
    major: 12,
    minor: 8,
};

/// Where libcuda is on nearly every Linux machine, out of the names that are tried.
const USUAL_NAMES: [&str; 2] = ["libcuda.so", "libcuda.so.1"];

/// Not in the table of calls: it is made before the rest is looked for.
type DriverGetVersion = unsafe extern "C" fn(*mut c_int) -> u32;

/// What simcuda, and no other libcuda, exports: the name of the profile that a device follows.
type SimulatedProfile = unsafe extern "C" fn(CUdevice, *mut c_char, c_int) -> u32;

/// libcuda, ready to be called.
pub(crate) struct Library {
    /// Its calls.
    pub calls: Calls,
    /// Interface version of the driver.
    pub version: Version,
    /// There when the library is a simulated one.
    pub simulated_profile: Option<SimulatedProfile>,
    /// Never unloaded: threads of the driver run in it until the process ends.
    _library: ManuallyDrop<libloading::Library>,
}

impl Library {
    /// Finds libcuda, checks that it has what is needed, and initialises it.
    pub(crate) fn load() -> Result<Self> {
        fork::watch()?;
        fork::check("cuInit")?;
        let library = ManuallyDrop::new(open()?);
        // SAFETY: this is libcuda. The version goes first: a driver that is too old lacks calls
        // too, and its age is the better reason to name.
        let version = unsafe { driver_version(&library) }?;
        if version < OLDEST {
            let kind = ErrorKind::DriverTooOld {
                found: version,
                needed: OLDEST,
            };
            return Err(Error::new(kind, "cuDriverGetVersion"));
        }
        let library = Self {
            // SAFETY: this is libcuda, and it is never unloaded.
            calls: unsafe { Calls::resolve(&library) }?,
            // SAFETY: only simcuda exports this name, with this type.
            simulated_profile: unsafe { symbol(&library, "pinlane_simcuda_profile") }.ok(),
            version,
            _library: library,
        };
        // SAFETY: takes no pointers; 0 is the only value allowed.
        let code = unsafe { (library.calls.cuInit)(0) };
        library.check("cuInit", code)?;
        Ok(library)
    }

    /// Whether batch copies can be made.
    pub(crate) fn has_batch_copy(&self) -> bool {
        self.version >= BATCH_SINCE && self.calls.cuMemcpyBatchAsync.is_some()
    }

    /// Whether the calls of stream-ordered allocation are there.
    pub(crate) fn has_async_alloc(&self) -> bool {
        self.calls.cuMemAllocAsync.is_some() && self.calls.cuMemFreeAsync.is_some()
    }

    /// `Ok` for a call that succeeded.
    pub(crate) fn check(&self, call: &'static str, code: u32) -> Result<()> {
        self.check_as(call, code, error::kind)
    }

    /// The same with another meaning of the codes.
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

    /// The driver's own name and words for a code.
    fn describe(&self, code: u32) -> String {
        let text = |call: unsafe extern "C" fn(u32, *mut *const c_char) -> u32| {
            let mut text = ptr::null();
            // SAFETY: `text` is written before the call returns, with null for an unknown code.
            let found = unsafe { call(code, &mut text) };
            (found == SUCCESS && !text.is_null())
                // SAFETY: the driver gave a string of its own, which lives as long as it does.
                .then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy())
        };
        let name = text(self.calls.cuGetErrorName).unwrap_or("an unknown code".into());
        match text(self.calls.cuGetErrorString) {
            Some(words) => format!("{name} ({code}), {words}"),
            None => format!("{name} ({code})"),
        }
    }
}

/// The names under which libcuda is looked for, in cudarc's order, so that both open the same.
fn names() -> Vec<String> {
    let mut names = Vec::new();
    for stem in ["cuda", "nvcuda"] {
        for name in cudarc::get_lib_name_candidates(stem) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// Opens the first of the names that is there.
fn open() -> Result<libloading::Library> {
    let names = names();
    let mut refused = Vec::new();
    for name in &names {
        // SAFETY: loading runs the library's initialisers; libcuda's are made for that.
        match unsafe { libloading::Library::new(name) } {
            Ok(library) => return Ok(library),
            Err(error) => refused.push(words_of(&error)),
        }
    }
    Err(Error::new(ErrorKind::NoDriver, "dlopen").with_detail(why_none(&names, &refused)))
}

/// What the system said. The error itself says only which call failed.
fn words_of(error: &libloading::Error) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string)
}

/// Which names were tried; and if a file was there that did not load, why.
fn why_none(names: &[String], refused: &[String]) -> String {
    let (usual, others): (Vec<_>, Vec<_>) = names
        .iter()
        .map(String::as_str)
        .partition(|name| USUAL_NAMES.contains(name));
    let tried = format!(
        "tried {} and {} other names",
        usual.join(", "),
        others.len()
    );
    let there = |words: &&String| !words.contains("No such file or directory");
    match refused.iter().find(there) {
        Some(words) => format!("{words}; {tried}"),
        None => tried,
    }
}

/// Asks for the interface version, which works before initialisation.
///
/// # Safety
/// `library` is libcuda.
unsafe fn driver_version(library: &libloading::Library) -> Result<Version> {
    let mut number = 0;
    // SAFETY: the type is that of the call, and `number` outlives it.
    let code = unsafe {
        let call: DriverGetVersion = symbol(library, "cuDriverGetVersion")?;
        call(&mut number)
    };
    if code != SUCCESS {
        return Err(Error::new(error::kind(code), "cuDriverGetVersion"));
    }
    Ok(version_of(number))
}

/// 12080 is 12.8.
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
    fn versions_are_read_from_the_drivers_number() {
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
    fn a_file_that_does_not_load_is_told_from_none() {
        let names = ["libcuda.so", "libcuda64.so", "libcuda.so.1"].map(String::from);
        let missing = "libcuda.so: cannot open shared object file: No such file or directory";
        let broken = "libcuda.so.1: invalid ELF header";
        let refused = [missing, missing, missing].map(String::from);
        assert_eq!(
            why_none(&names, &refused),
            "tried libcuda.so, libcuda.so.1 and 1 other names"
        );
        let refused = [missing, missing, broken].map(String::from);
        assert_eq!(
            why_none(&names, &refused),
            "libcuda.so.1: invalid ELF header; tried libcuda.so, libcuda.so.1 and 1 other names"
        );
    }

    #[test]
    fn the_systems_words_are_kept() {
        // SAFETY: there is no such library, so nothing runs.
        let error = unsafe { libloading::Library::new("libpinlane-no-such.so") }
            .expect_err("it does not exist");
        assert!(words_of(&error).contains("libpinlane-no-such.so"));
    }

    #[test]
    fn loading_never_panics_and_names_the_library_that_is_missing() {
        match Library::load() {
            Ok(library) => assert!(library.version >= OLDEST),
            Err(error) if error.kind == ErrorKind::NoDriver => {
                assert!(error.detail.contains("libcuda.so.1") || error.call != "dlopen");
            }
            Err(error) => assert_ne!(error.call, "dlopen", "{error}"),
        }
    }
}
