//! PTX modules and kernel launches.

use std::ffi::{CStr, CString, c_void};
use std::ptr;

use cudarc::driver::sys::CUjit_option::{
    CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
};
use cudarc::driver::sys::{CUfunction, CUmodule};
use pinlane_driver::{
    Error, ErrorKind, FunctionHandle, KernelArg, LaunchShape, ModuleHandle, Result, StreamHandle,
};

use crate::device::CudaDevice;
use crate::stream::raw_stream;

/// Room for what the compiler in the driver says about bad PTX.
const LOG_BYTES: usize = 8 << 10;

impl CudaDevice {
    pub(crate) fn module_load(&self, ptx: &str) -> Result<ModuleHandle> {
        let call = "cuModuleLoadDataEx";
        let image = CString::new(ptx).map_err(|error| {
            Error::new(ErrorKind::InvalidPtx, call).with_detail(error.to_string())
        })?;
        let _current = self.enter()?;
        let mut log = vec![0_u8; LOG_BYTES];
        let mut options = [CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        // The size travels in the place of a pointer.
        let mut values: [*mut c_void; 2] = [
            log.as_mut_ptr().cast(),
            ptr::without_provenance_mut(LOG_BYTES),
        ];
        let mut module = ptr::null_mut();
        // SAFETY: the image ends with a zero, the log is as long as said, one value an option, and
        // all outlive the call.
        let code = unsafe {
            (self.calls().cuModuleLoadDataEx)(
                &mut module,
                image.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        self.check(call, code)
            .map_err(|error| with_log(error, &log))?;
        // SAFETY: the driver just gave it out.
        Ok(unsafe { ModuleHandle::from_raw(module.expose_provenance() as u64) })
    }

    /// # Safety
    /// As for the trait's method.
    pub(crate) unsafe fn module_unload(&self, module: ModuleHandle) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the caller vouches that nothing of the module runs or is used again.
        let code = unsafe { (self.calls().cuModuleUnload)(raw_module(module)) };
        self.check("cuModuleUnload", code)
    }

    pub(crate) fn module_function(
        &self,
        module: ModuleHandle,
        name: &str,
    ) -> Result<FunctionHandle> {
        let call = "cuModuleGetFunction";
        let named = |error: Error| {
            let detail = format!("kernel {name:?}: {}", error.detail);
            error.with_detail(detail)
        };
        let text = CString::new(name).map_err(|error| {
            named(Error::new(ErrorKind::NotFound, call).with_detail(error.to_string()))
        })?;
        let _current = self.enter()?;
        let mut function = ptr::null_mut();
        // SAFETY: the name ends with a zero, and all outlive the call.
        let code = unsafe {
            (self.calls().cuModuleGetFunction)(&mut function, raw_module(module), text.as_ptr())
        };
        self.check(call, code).map_err(named)?;
        // SAFETY: the driver just gave it out.
        Ok(unsafe { FunctionHandle::from_raw(function.expose_provenance() as u64) })
    }

    /// # Safety
    /// As for the trait's method.
    pub(crate) unsafe fn launch(
        &self,
        function: FunctionHandle,
        shape: LaunchShape,
        args: &[KernelArg],
        stream: StreamHandle,
    ) -> Result<()> {
        let _current = self.enter()?;
        let mut params: Vec<*mut c_void> = args.iter().map(value_of).collect();
        // SAFETY: one pointer to a value for each parameter, copied before the call returns; the
        // caller vouches that they fit the kernel, and for the memory that it touches.
        let code = unsafe {
            (self.calls().cuLaunchKernel)(
                raw_function(function),
                shape.grid[0],
                shape.grid[1],
                shape.grid[2],
                shape.block[0],
                shape.block[1],
                shape.block[2],
                shape.shared_bytes,
                raw_stream(stream),
                params.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        self.check("cuLaunchKernel", code)
    }
}

fn raw_module(module: ModuleHandle) -> CUmodule {
    ptr::with_exposed_provenance_mut(module.raw() as usize)
}

fn raw_function(function: FunctionHandle) -> CUfunction {
    ptr::with_exposed_provenance_mut(function.raw() as usize)
}

/// Where the argument's value lies. The driver only reads there.
fn value_of(arg: &KernelArg) -> *mut c_void {
    let value: *const c_void = match arg {
        KernelArg::Ptr(value) => ptr::from_ref(&value.0).cast(),
        KernelArg::U32(value) => ptr::from_ref(value).cast(),
        KernelArg::I32(value) => ptr::from_ref(value).cast(),
        KernelArg::U64(value) => ptr::from_ref(value).cast(),
        KernelArg::I64(value) => ptr::from_ref(value).cast(),
        KernelArg::F32(value) => ptr::from_ref(value).cast(),
        KernelArg::F64(value) => ptr::from_ref(value).cast(),
    };
    value.cast_mut()
}

/// The error with what the compiler wrote.
fn with_log(error: Error, log: &[u8]) -> Error {
    let text = CStr::from_bytes_until_nul(log).map_or_else(
        |_| String::from_utf8_lossy(log),
        |text| text.to_string_lossy(),
    );
    if text.trim().is_empty() {
        return error;
    }
    let detail = format!("{}\n{}", error.detail, text.trim_end());
    error.with_detail(detail)
}

#[cfg(test)]
mod tests {
    use pinlane_driver::DevicePtr;

    use super::*;

    #[test]
    fn arguments_are_passed_by_address() {
        let args = [
            KernelArg::Ptr(DevicePtr(0x1234)),
            KernelArg::U32(7),
            KernelArg::F64(0.5),
        ];
        // SAFETY: each points to the value inside `args`, of the type that it was made with.
        let values = unsafe {
            (
                *value_of(&args[0]).cast::<u64>(),
                *value_of(&args[1]).cast::<u32>(),
                *value_of(&args[2]).cast::<f64>(),
            )
        };
        assert_eq!(values, (0x1234, 7, 0.5));
    }

    #[test]
    fn the_compilers_words_are_kept() {
        let error = Error::new(ErrorKind::InvalidPtx, "cuModuleLoadDataEx").with_detail("218");
        let silent = with_log(error.clone(), &[0; 4]);
        assert_eq!(silent.detail, "218");
        let talking = with_log(error.clone(), b"line 1; fatal\n\0rest");
        assert_eq!(talking.detail, "218\nline 1; fatal");
        let full = with_log(error, b"cut off");
        assert_eq!(full.detail, "218\ncut off");
    }
}
