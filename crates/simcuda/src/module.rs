//! Modules: PTX text. Kernels with a CPU twin can run.

use std::sync::Arc;

use pinlane_driver::{Error, ErrorKind, FunctionHandle, ModuleHandle};

use crate::c_pointers::{In, Opaque, Out, Text};
use crate::context::{Context, current};
use crate::error::{Code, FILE_NOT_FOUND, INVALID_VALUE, NO_BINARY_FOR_GPU, Outcome, ensure};
use crate::export_macros::exports;
use crate::machine::machine;

/// A loaded module.
pub struct Module {
    /// Its context.
    pub context: Arc<Context>,
    module: ModuleHandle,
}

/// A kernel of a module.
pub struct Function {
    /// Its context.
    pub context: Arc<Context>,
    /// The handle of its module.
    pub module: usize,
    /// Its name.
    pub name: String,
    /// The kernel to launch; `None` without a CPU twin: it can be found, but not launched.
    pub twin: Option<FunctionHandle>,
}

/// First bytes of binary images: ELF, and two kinds of fat binaries.
const BINARY_MAGIC: [[u8; 4]; 3] = [
    *b"\x7fELF",
    [0x50, 0xed, 0x55, 0xba],
    [0xb1, 0x43, 0x62, 0x46],
];

/// Supported options of the PTX compiler.
const ERROR_LOG_BUFFER: u32 = 5;
const ERROR_LOG_BUFFER_BYTES: u32 = 6;

/// Loads PTX.
fn load(target: Out<usize>, image: &[u8]) -> Result<(), Error> {
    let refused = |kind, why: &str| Error::new(kind, "cuModuleLoadData").with_detail(why);
    let invalid = |_| refused(ErrorKind::InvalidValue, "the pointer to the module is null");
    let unusable = |code: Code| refused(ErrorKind::Other { code: code.0 }, "no usable context");
    let context = current().map_err(unusable)?;
    let slot = target.required().map_err(invalid)?;
    let text = std::str::from_utf8(image);
    let text = text.map_err(|_| refused(ErrorKind::InvalidPtx, "the PTX is not UTF-8"))?;
    let module = context.driver.module_load(text)?;
    let modules = &machine().map_err(unusable)?.modules;
    slot.put(modules.insert(Arc::new(Module { context, module })));
    Ok(())
}

/// The text of an image. Machine code cannot be simulated.
fn text_of(image: &In<u8>) -> Outcome<Vec<u8>> {
    // Byte by byte, because a short text may end before the fourth.
    let matches = |(index, byte): (usize, u8)| image.read_at(index) == Ok(byte);
    let is_binary = |magic: [u8; 4]| magic.into_iter().enumerate().all(matches);
    ensure(!BINARY_MAGIC.into_iter().any(is_binary), NO_BINARY_FOR_GPU)?;
    image.text_bytes()
}

/// Writes the error to the program's log buffer, if there is one.
fn write_error_log(options: &[(u32, Opaque)], why: &str) -> Outcome<()> {
    let option = |wanted| options.iter().find(|option| option.0 == wanted);
    let bytes = option(ERROR_LOG_BUFFER_BYTES).map_or(0, |bytes| bytes.1.number());
    match option(ERROR_LOG_BUFFER) {
        Some((_, buffer)) if bytes > 0 => {
            let capacity = i32::try_from(bytes).unwrap_or(i32::MAX);
            buffer.text_out().put_text(capacity, why)
        }
        _ => Ok(()),
    }
}

/// Looks up a kernel. Repeated calls return the same handle.
fn function(module: usize, name: String) -> Outcome<usize> {
    let machine = machine()?;
    let known = |function: &Arc<Function>| function.module == module && function.name == name;
    let loaded = machine.modules.find(module)?;
    if let Some(handle) = machine.functions.position(known) {
        return Ok(handle);
    }
    // SAFETY: the handle is one of this driver's, and the simulator refuses those of unloaded modules.
    let twin = unsafe { loaded.context.driver.module_function(loaded.module, &name) };
    let twin = match twin {
        Ok(twin) => Some(twin),
        Err(error) if error.kind == ErrorKind::NotSupported => None,
        Err(error) => return Err(error.into()),
    };
    Ok(machine.functions.insert(Arc::new(Function {
        context: loaded.context.clone(),
        module,
        name,
        twin,
    })))
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
        let is_binary = BINARY_MAGIC.iter().any(|magic| image.starts_with(magic));
        ensure(!is_binary, NO_BINARY_FOR_GPU)?;
        Ok(load(module, &image)?)
    }

    /// Unloads a module; the handles of its kernels become invalid.
    fn cuModuleUnload(module: usize) {
        let machine = machine()?;
        let unloaded = machine.modules.remove(module)?;
        machine.functions.retain(|function| function.module != module);
        // SAFETY: `load` created it, it has just been removed from the table, and the program
        // guarantees that none of its kernels run.
        Ok(unsafe { unloaded.context.driver.module_unload(unloaded.module) }?)
    }

    /// A kernel by name.
    fn cuModuleGetFunction(target: Out<usize>, module: usize, name: Text) {
        machine()?;
        target.set_with(|| function(module, name.read()?))
    }

    /// The loading mode of kernels: eager.
    fn cuModuleGetLoadingMode(mode: Out<u32>) {
        machine()?;
        mode.set(1)
    }

    /// The module of a kernel.
    fn cuFuncGetModule(module: Out<usize>, function: usize) {
        module.set(machine()?.functions.find(function)?.module)
    }

    /// An attribute of a kernel. A CPU twin uses neither registers nor shared memory.
    fn cuFuncGetAttribute(value: Out<i32>, attribute: u32, function: usize) {
        const MAX_THREADS_PER_BLOCK: u32 = 0;
        const LAST: u32 = 15;
        machine()?.functions.find(function)?;
        value.set_with(|| match attribute {
            MAX_THREADS_PER_BLOCK => Ok(1024),
            1..=LAST => Ok(0),
            _ => Err(INVALID_VALUE),
        })
    }
}
