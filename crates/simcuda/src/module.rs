//! Modules: PTX text, whose kernels run where they have a CPU twin.

use std::sync::Arc;

use pinlane_driver::{Error, ErrorKind, FunctionHandle, ModuleHandle};

use crate::context::Context;
use crate::current::current;
use crate::error::{Code, FILE_NOT_FOUND, INVALID_VALUE, NO_BINARY_FOR_GPU, Outcome};
use crate::ffi::{In, Opaque, Out, Text};
use crate::shim::exports;
use crate::state::machine;

/// A loaded module.
pub struct Module {
    /// Where it was loaded.
    pub context: Arc<Context>,
    module: ModuleHandle,
}

/// A kernel of a module.
pub struct Function {
    /// Where its module was loaded.
    pub context: Arc<Context>,
    /// The handle of its module.
    pub module: usize,
    /// Its name.
    pub name: String,
    /// What to launch. `None` where the kernel has no CPU twin: it can be found, not launched.
    pub twin: Option<FunctionHandle>,
}

/// First bytes of images that are machine code: ELF, and the two kinds of containers.
const BINARY_MAGIC: [[u8; 4]; 3] = [
    *b"\x7fELF",
    [0x50, 0xed, 0x55, 0xba],
    [0xb1, 0x43, 0x62, 0x46],
];

/// Options of the compiler that have a meaning here.
const ERROR_LOG_BUFFER: u32 = 5;
const ERROR_LOG_BUFFER_BYTES: u32 = 6;

/// Loads the PTX and enters the module.
fn load(target: Out<usize>, image: &[u8]) -> Result<(), Error> {
    let refused = |kind, why: &str| Error::new(kind, "cuModuleLoadData").with_detail(why);
    let invalid = |_| refused(ErrorKind::InvalidValue, "no module to be stored");
    let unusable = |code: Code| refused(ErrorKind::Other { code: code.0 }, "no usable context");
    let context = current().map_err(unusable)?;
    let slot = target.required().map_err(invalid)?;
    let text = std::str::from_utf8(image);
    let text = text.map_err(|_| refused(ErrorKind::InvalidPtx, "the PTX is not UTF-8"))?;
    let module = context.driver.module_load(text)?;
    let machine = machine().map_err(unusable)?;
    let (handle, _) = machine
        .modules
        .insert(|_| Arc::new(Module { context, module }));
    slot.put(handle);
    Ok(())
}

/// The image's text. Machine code cannot be simulated.
fn text_of(image: &In<u8>) -> Outcome<Vec<u8>> {
    for magic in BINARY_MAGIC {
        // Byte by byte, since a short text may end before the fourth.
        let matches = |(index, byte): (usize, u8)| image.read_at(index) == Ok(byte);
        if magic.into_iter().enumerate().all(matches) {
            return Err(NO_BINARY_FOR_GPU);
        }
    }
    image.text_bytes()
}

/// Writes why the PTX was refused where the program asked for it.
fn write_error_log(options: &[(u32, Opaque)], why: &str) -> Outcome<()> {
    let option = |wanted| {
        options
            .iter()
            .find(|option| option.0 == wanted)
            .map(|option| option.1)
    };
    let (Some(buffer), Some(bytes)) = (option(ERROR_LOG_BUFFER), option(ERROR_LOG_BUFFER_BYTES))
    else {
        return Ok(());
    };
    let capacity = i32::try_from(bytes.number()).unwrap_or(i32::MAX);
    if capacity == 0 {
        return Ok(());
    }
    buffer.text_out().put_text(capacity, why)
}

/// Finds a kernel in a module; asking twice gives the same handle.
fn function(module: usize, name: String) -> Outcome<usize> {
    let machine = machine()?;
    let known = |function: &Arc<Function>| function.module == module && function.name == name;
    let loaded = machine.modules.find(module)?;
    if let Some(handle) = machine.functions.position(known) {
        return Ok(handle);
    }
    let twin = match loaded.context.driver.module_function(loaded.module, &name) {
        Ok(twin) => Some(twin),
        Err(error) if error.kind == ErrorKind::NotSupported => None,
        Err(error) => return Err(error.into()),
    };
    let context = loaded.context.clone();
    let (handle, _) = machine.functions.insert(|_| {
        Arc::new(Function {
            context,
            module,
            name,
            twin,
        })
    });
    Ok(handle)
}

exports! { through guard;
    /// Loads PTX text.
    fn cuModuleLoadData(module: Out<usize>, image: In<u8>) {
        current()?;
        Ok(load(module, &text_of(&image)?)?)
    }

    /// Loads PTX text, with options for the compiler.
    fn cuModuleLoadDataEx(
        module: Out<usize>, image: In<u8>, count: u32, keys: In<u32>, values: In<Opaque>,
    ) {
        current()?;
        let count = count as usize;
        let options: Vec<_> = keys.list(count)?.into_iter().zip(values.list(count)?).collect();
        let text = text_of(&image)?;
        if let Err(error) = load(module, &text) {
            write_error_log(&options, &error.to_string())?;
            return Err(error.into());
        }
        Ok(())
    }

    /// Loads PTX text from a file.
    fn cuModuleLoad(module: Out<usize>, path: Text) {
        current()?;
        let image = std::fs::read(path.read()?).map_err(|_| FILE_NOT_FOUND)?;
        if BINARY_MAGIC.iter().any(|magic| image.starts_with(magic)) {
            return Err(NO_BINARY_FOR_GPU);
        }
        Ok(load(module, &image)?)
    }

    /// Unloads a module; its kernels are unknown from then on.
    fn cuModuleUnload(module: usize) {
        let machine = machine()?;
        let unloaded = machine.modules.remove(module)?;
        machine.functions.retain(|function| function.module != module);
        // SAFETY: `load` made it, it has just left the only table that names it, and the program
        // vouches that none of its kernels run.
        unsafe { unloaded.context.driver.module_unload(unloaded.module) }.map_err(Code::from)
    }

    /// A kernel by name.
    fn cuModuleGetFunction(target: Out<usize>, module: usize, name: Text) {
        machine()?;
        let slot = target.required()?;
        slot.put(function(module, name.read()?)?);
        Ok(())
    }

    /// Whether kernels are loaded when first used: they are loaded at once.
    fn cuModuleGetLoadingMode(mode: Out<u32>) {
        machine()?;
        mode.required()?.put(1);
        Ok(())
    }

    /// The module that a kernel belongs to.
    fn cuFuncGetModule(module: Out<usize>, function: usize) {
        let function = machine()?.functions.find(function)?;
        module.required()?.put(function.module);
        Ok(())
    }

    /// One of a kernel's attributes. A CPU twin uses no registers and no shared memory.
    fn cuFuncGetAttribute(value: Out<i32>, attribute: u32, function: usize) {
        const MAX_THREADS_PER_BLOCK: u32 = 0;
        const LAST: u32 = 15;
        machine()?.functions.find(function)?;
        let slot = value.required()?;
        match attribute {
            MAX_THREADS_PER_BLOCK => slot.put(1024),
            1..=LAST => slot.put(0),
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }
}
