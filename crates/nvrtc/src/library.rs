//! Opens the compiler and resolves its functions.

use std::env;
use std::error::Error as _;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use crate::NvrtcError;
use crate::library_search::{self, NAMES, VARIABLE};

/// NVRTC's result of a call that worked.
pub(crate) const SUCCESS: c_int = 0;

/// NVRTC's results for an option or a source that is wrong.
pub(crate) const INVALID_OPTION: c_int = 5;
pub(crate) const COMPILATION_FAILED: c_int = 6;

/// A program in NVRTC's memory.
pub(crate) type Program = *mut c_void;

/// Declares the functions that are used, and resolves them.
macro_rules! functions {
    ($($name:ident($($arg:ty),* $(,)?) -> $result:ty;)*) => {
        /// The functions of NVRTC that are used.
        #[allow(non_snake_case)]
        pub(crate) struct Functions {
            $(pub(crate) $name: unsafe extern "C" fn($($arg),*) -> $result,)*
        }

        impl Functions {
            /// # Safety
            /// `library` is NVRTC and is never closed.
            unsafe fn resolve(library: &libloading::Library) -> Result<Self, String> {
                Ok(Self {
                    $($name: {
                        // SAFETY: the caller's; the types are those of NVRTC's header.
                        let found = unsafe { library.get(stringify!($name)) };
                        *found.map_err(|error| message_of(&error))?
                    },)*
                })
            }
        }
    };
}

functions! {
    nvrtcVersion(*mut c_int, *mut c_int) -> c_int;
    nvrtcGetNumSupportedArchs(*mut c_int) -> c_int;
    nvrtcGetSupportedArchs(*mut c_int) -> c_int;
    nvrtcGetErrorString(c_int) -> *const c_char;
    nvrtcCreateProgram(*mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char) -> c_int;
    nvrtcCompileProgram(Program, c_int, *const *const c_char) -> c_int;
    nvrtcGetProgramLogSize(Program, *mut usize) -> c_int;
    nvrtcGetProgramLog(Program, *mut c_char) -> c_int;
    nvrtcGetPTXSize(Program, *mut usize) -> c_int;
    nvrtcGetPTX(Program, *mut c_char) -> c_int;
    nvrtcDestroyProgram(*mut Program) -> c_int;
}

/// The compiler, loaded for the rest of the process.
pub(crate) struct Library {
    pub(crate) functions: Functions,
    /// Never closed: its functions are called until the process ends.
    _library: ManuallyDrop<libloading::Library>,
}

impl Library {
    fn new(library: libloading::Library) -> Result<Self, String> {
        let library = ManuallyDrop::new(library);
        Ok(Self {
            // SAFETY: this is NVRTC, and it is never closed.
            functions: unsafe { Functions::resolve(&library) }?,
            _library: library,
        })
    }

    /// Finds and opens the compiler.
    pub(crate) fn load() -> Result<Self, NvrtcError> {
        let named = env::var_os(VARIABLE).filter(|named| !named.is_empty());
        if named.is_none()
            && let Some(library) = loaded_already()
        {
            return Ok(library);
        }
        let mut failures = Vec::new();
        for path in candidates(named.as_deref()) {
            match open(&path) {
                Ok(library) => return Ok(library),
                Err(reason) => failures.push((path, reason)),
            }
        }
        let detail = describe(&failures, named.as_deref());
        Err(NvrtcError::NotFound { detail })
    }

    /// Turns a result into an error that names the call.
    pub(crate) fn check(&self, call: &'static str, result: c_int) -> Result<(), NvrtcError> {
        if result == SUCCESS {
            return Ok(());
        }
        // SAFETY: returns a constant string for any number.
        let reason = unsafe { CStr::from_ptr((self.functions.nvrtcGetErrorString)(result)) };
        let reason = reason.to_string_lossy().into_owned();
        Err(NvrtcError::Call { call, reason })
    }
}

/// What to try to open, in this order.
fn candidates(named: Option<&OsStr>) -> Vec<PathBuf> {
    if let Some(named) = named {
        return library_search::in_path(Path::new(named));
    }
    let names = NAMES.map(PathBuf::from).into_iter();
    let files = library_search::files(|name| env::var_os(name));
    names.chain(files).collect()
}

/// The compiler that another library of this process has loaded, such as PyTorch. It fits that one's driver.
fn loaded_already() -> Option<Library> {
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
    NAMES.into_iter().find_map(|name| {
        // SAFETY: it is loaded already, so nothing runs.
        let library = unsafe { libloading::os::unix::Library::open(Some(name), flags) };
        Library::new(library.ok()?.into()).ok()
    })
}

fn open(path: &Path) -> Result<Library, String> {
    if path.is_absolute() {
        for builtins in library_search::builtins_beside(path) {
            // SAFETY: data that the compiler reads; it has no initialisers with preconditions. A failure
            // does not matter: the compiler then says what it lacks.
            if let Ok(builtins) = unsafe { libloading::Library::new(builtins) } {
                std::mem::forget(builtins);
            }
        }
    }
    // SAFETY: loading runs NVRTC's initialisers, which have no preconditions.
    let library = unsafe { libloading::Library::new(path) };
    Library::new(library.map_err(|error| message_of(&error))?)
}

/// The loader's message. The error itself only says which call failed.
fn message_of(error: &libloading::Error) -> String {
    let source = error.source();
    source.map_or_else(|| error.to_string(), ToString::to_string)
}

/// Why a file that exists did not load, or where was searched.
fn describe(failures: &[(PathBuf, String)], named: Option<&OsStr>) -> String {
    // A missing library is named at the start. A library that it needs would be, too.
    let is_missing = |(path, reason): &(PathBuf, String)| {
        let start = format!("{}: ", path.display());
        reason.starts_with(&start) && reason.contains("No such file or directory")
    };
    let broken = failures.iter().find(|failure| !is_missing(failure));
    match (broken, named) {
        (Some((_, reason)), _) => reason.clone(),
        (None, Some(named)) => format!("{VARIABLE} names {}", Path::new(named).display()),
        (None, None) => {
            let names = NAMES.join(", ");
            format!("tried {names}, the active Python environment and CUDA_HOME")
        }
    }
}
