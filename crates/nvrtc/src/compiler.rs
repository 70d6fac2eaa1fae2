//! Compiles CUDA C.

use std::ffi::{CString, c_char, c_int};
use std::fmt;
use std::ptr;
use std::sync::OnceLock;

use crate::NvrtcError;
use crate::kernel_names::{entries, source_name};
use crate::kernel_params::{PtxParam, params};
use crate::library::{COMPILATION_FAILED, INVALID_OPTION, Library, Program, SUCCESS};

/// NVIDIA's compiler library, loaded once per process.
pub struct Compiler {
    library: Library,
    version: (u32, u32),
    /// Compute capabilities that it compiles for, as 80 for 8.0; rising.
    architectures: Vec<u32>,
}

/// How to compile.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct CompileOptions {
    /// The compute capability of the GPU that will run the code, such as `(9, 0)`. The newest that the
    /// compiler knows and the GPU runs is used; without one, the oldest.
    pub compute_capability: Option<(u32, u32)>,
    /// Name of the source in the compiler's messages.
    pub name: Option<String>,
    /// Further options of the compiler, such as `--use_fast_math` or `-DSIZE=32`.
    pub flags: Vec<String>,
}

impl CompileOptions {
    /// Sets [`compute_capability`](field@Self::compute_capability).
    #[must_use]
    pub fn compute_capability(mut self, capability: (u32, u32)) -> Self {
        self.compute_capability = Some(capability);
        self
    }

    /// Sets [`name`](field@Self::name).
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds an option of the compiler.
    #[must_use]
    pub fn flag(mut self, flag: impl Into<String>) -> Self {
        self.flags.push(flag.into());
        self
    }
}

/// Compiled code.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Ptx {
    /// The PTX, for the driver.
    pub text: String,
    /// The compiler's warnings; empty if there are none.
    pub log: String,
}

impl Ptx {
    /// The name in the PTX of a kernel, by its name there or in the source: `fill` is found as `fill` if it
    /// is `extern "C"`, and as `_Z4fillPff` otherwise. `None` if no kernel has that name, or several do.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&str> {
        if let Some(exact) = entries(&self.text).find(|entry| *entry == name) {
            return Some(exact);
        }
        let mut found =
            entries(&self.text).filter(|entry| source_name(entry).as_deref() == Some(name));
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }

    /// The parameters of a kernel, by the name that [`entry`](Self::entry) takes. `None` if it has no such kernel.
    #[must_use]
    pub fn params(&self, name: &str) -> Option<Vec<PtxParam>> {
        params(&self.text, self.entry(name)?)
    }
}

impl Compiler {
    /// The compiler of this process. It is searched among the libraries that are loaded already and those
    /// that the system's loader knows, in the active Python environment (`VIRTUAL_ENV`, `CONDA_PREFIX`) and
    /// in CUDA's toolkit (`CUDA_PATH`, `CUDA_HOME`). `PINLANE_NVRTC` names another file or folder.
    ///
    /// # Errors
    /// [`NvrtcError::NotFound`]. A later call searches again.
    pub fn load() -> Result<&'static Self, NvrtcError> {
        static COMPILER: OnceLock<Compiler> = OnceLock::new();
        match COMPILER.get() {
            Some(compiler) => Ok(compiler),
            None => {
                let compiler = Self::open()?;
                Ok(COMPILER.get_or_init(|| compiler))
            }
        }
    }

    fn open() -> Result<Self, NvrtcError> {
        let library = Library::load()?;
        let functions = &library.functions;
        let (mut major, mut minor, mut count) = (0, 0, 0);
        // SAFETY: the numbers outlive the calls.
        unsafe {
            let result = (functions.nvrtcVersion)(&mut major, &mut minor);
            library.check("nvrtcVersion", result)?;
            let result = (functions.nvrtcGetNumSupportedArchs)(&mut count);
            library.check("nvrtcGetNumSupportedArchs", result)?;
        }
        let mut architectures = vec![0; count.unsigned_abs() as usize];
        // SAFETY: there is room for as many as the compiler has.
        let result = unsafe { (functions.nvrtcGetSupportedArchs)(architectures.as_mut_ptr()) };
        library.check("nvrtcGetSupportedArchs", result)?;
        let mut architectures: Vec<_> =
            architectures.into_iter().map(c_int::unsigned_abs).collect();
        architectures.sort_unstable();
        Ok(Self {
            library,
            version: (major.unsigned_abs(), minor.unsigned_abs()),
            architectures,
        })
    }

    /// Its version, such as `(13, 0)`. A driver older than the compiler may refuse its PTX.
    #[must_use]
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// Compiles a source to PTX.
    ///
    /// # Errors
    /// [`NvrtcError::Source`] with the compiler's log.
    pub fn compile(&self, source: &str, options: &CompileOptions) -> Result<Ptx, NvrtcError> {
        let name = options.name.as_deref().unwrap_or("source.cu");
        let program = OpenProgram::new(&self.library, source, name)?;
        let mut flags = options.flags.clone();
        let is_target = |flag: &String| {
            let targets = ["--gpu-architecture", "-arch"];
            targets.iter().any(|target| flag.starts_with(target))
        };
        if !flags.iter().any(is_target) {
            let target = best_target(&self.architectures, options.compute_capability);
            flags.extend(target.map(|target| format!("--gpu-architecture=compute_{target}")));
        }
        let result = program.compile(&flags)?;
        let log = program.log()?;
        if result == SUCCESS {
            let text = program.ptx()?;
            return Ok(Ptx { text, log });
        }
        if !log.is_empty() && [INVALID_OPTION, COMPILATION_FAILED].contains(&result) {
            return Err(NvrtcError::Source { log });
        }
        let failed = self.library.check("nvrtcCompileProgram", result);
        Err(failed.expect_err("it has failed").with_log(&log))
    }
}

impl fmt::Debug for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiler")
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// The newest architecture that a GPU runs, or the oldest of all.
fn best_target(architectures: &[u32], capability: Option<(u32, u32)>) -> Option<u32> {
    let runs =
        |target: &&u32| capability.is_some_and(|(major, minor)| **target <= 10 * major + minor);
    let newest = architectures.iter().rfind(runs);
    newest.or(architectures.first()).copied()
}

/// A program in the compiler's memory, destroyed on drop.
struct OpenProgram<'a> {
    library: &'a Library,
    program: Program,
}

type GetSize = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type GetText = unsafe extern "C" fn(Program, *mut c_char) -> c_int;

impl<'a> OpenProgram<'a> {
    fn new(library: &'a Library, source: &str, name: &str) -> Result<Self, NvrtcError> {
        let (source, name) = (c_string("the source", source)?, c_string("the name", name)?);
        let mut program = ptr::null_mut();
        // SAFETY: the strings and `program` outlive the call, which copies them. There are no headers.
        let result = unsafe {
            let create = library.functions.nvrtcCreateProgram;
            create(
                &mut program,
                source.as_ptr(),
                name.as_ptr(),
                0,
                ptr::null(),
                ptr::null(),
            )
        };
        library.check("nvrtcCreateProgram", result)?;
        Ok(Self { library, program })
    }

    /// Returns the compiler's own result: its log says more.
    fn compile(&self, flags: &[String]) -> Result<c_int, NvrtcError> {
        let flags = flags.iter().map(|flag| c_string("an option", flag));
        let flags: Vec<CString> = flags.collect::<Result<_, _>>()?;
        let pointers: Vec<_> = flags.iter().map(|flag| flag.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).expect("as many options as a person writes");
        let compile = self.library.functions.nvrtcCompileProgram;
        // SAFETY: the program is open, and the options outlive the call.
        Ok(unsafe { compile(self.program, count, pointers.as_ptr()) })
    }

    fn log(&self) -> Result<String, NvrtcError> {
        let functions = &self.library.functions;
        self.text(
            "nvrtcGetProgramLog",
            functions.nvrtcGetProgramLogSize,
            functions.nvrtcGetProgramLog,
        )
    }

    fn ptx(&self) -> Result<String, NvrtcError> {
        let functions = &self.library.functions;
        self.text(
            "nvrtcGetPTX",
            functions.nvrtcGetPTXSize,
            functions.nvrtcGetPTX,
        )
    }

    fn text(&self, call: &'static str, size: GetSize, get: GetText) -> Result<String, NvrtcError> {
        let mut bytes = 0;
        // SAFETY: the program is open, and `bytes` outlives the call.
        let result = unsafe { size(self.program, &mut bytes) };
        self.library.check(call, result)?;
        let mut text = vec![0u8; bytes];
        // SAFETY: there is room for as many bytes as the compiler has, its final NUL included.
        let result = unsafe { get(self.program, text.as_mut_ptr().cast()) };
        self.library.check(call, result)?;
        let text = String::from_utf8_lossy(&text);
        Ok(text.trim_end_matches('\0').trim_end().to_owned())
    }
}

impl Drop for OpenProgram<'_> {
    fn drop(&mut self) {
        // SAFETY: opened in `new`, destroyed once. A failure leaks it, which harms nothing.
        unsafe { (self.library.functions.nvrtcDestroyProgram)(&mut self.program) };
    }
}

fn c_string(what: &'static str, text: &str) -> Result<CString, NvrtcError> {
    CString::new(text).map_err(|_| NvrtcError::Nul { what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_compiled_for_the_newest_architecture_that_the_gpu_runs() {
        let known = [75, 80, 90, 100];
        for (capability, target) in [
            (None, 75),
            (Some((9, 0)), 90),
            (Some((8, 9)), 80),
            (Some((12, 0)), 100),
            (Some((5, 2)), 75), // too old: the driver will say so
        ] {
            assert_eq!(
                best_target(&known, capability),
                Some(target),
                "{capability:?}"
            );
        }
        assert_eq!(best_target(&[], Some((9, 0))), None);
    }
}
