//! Opens the compiler and resolves its functions.

use std::env;
use std::error::Error as _;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use crate::NvrtcError;
use crate::library_search::{self, NAMES, VARIABLE};

/// NVRTC's result of a call that worked.
pub(crate) const SUCCESS: c_int = 0;

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
    /// Finds and opens the compiler.
    pub(crate) fn load() -> Result<Self, NvrtcError> {
        let mut failures = Vec::new();
        for path in candidates() {
            match open(&path) {
                Ok(library) => return Ok(library),
                Err(reason) => failures.push(reason),
            }
        }
        let detail = describe(&failures);
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
fn candidates() -> Vec<PathBuf> {
    if let Some(named) = env::var_os(VARIABLE) {
        return library_search::in_path(Path::new(&named));
    }
    let names = NAMES.map(PathBuf::from).into_iter();
    names
        .chain(library_search::files(|name| env::var_os(name)))
        .collect()
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
    let library = unsafe { libloading::Library::new(path) }.map_err(|error| message_of(&error))?;
    let library = ManuallyDrop::new(library);
    Ok(Library {
        // SAFETY: this is NVRTC, and it is never closed.
        functions: unsafe { Functions::resolve(&library) }?,
        _library: library,
    })
}

/// The loader's message. The error itself only says which call failed.
fn message_of(error: &libloading::Error) -> String {
    let source = error.source();
    source.map_or_else(|| error.to_string(), ToString::to_string)
}

/// Why a file that exists did not load, or where was searched.
fn describe(failures: &[String]) -> String {
    let missing = "No such file or directory";
    let exists = |failure: &&String| !failure.contains(missing);
    match (failures.iter().find(exists), env::var_os(VARIABLE)) {
        (Some(failure), _) => failure.clone(),
        (None, Some(named)) => format!("{VARIABLE} names {}", Path::new(&named).display()),
        (None, None) => {
            let names = NAMES.join(", ");
            format!("tried {names}, the active Python environment and CUDA_HOME")
        }
    }
}
