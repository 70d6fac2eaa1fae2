//! PTX modules and kernel launches.

use std::ffi::{CStr, CString, c_void};
use std::ptr;

use cudarc::driver::sys::CUjit_option::{
    CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
};
use pinlane_driver::{
    Error, ErrorKind, FunctionHandle, KernelArg, LaunchShape, ModuleHandle, Result, StreamHandle,
};

use crate::handles::{raw_function, raw_module, raw_stream};
use crate::open_device::{CudaDevice, device_call};

/// Room for the log of the driver's PTX compiler.
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
        // The size is passed as a pointer.
        let mut values: [*mut c_void; 2] = [
            log.as_mut_ptr().cast(),
            ptr::without_provenance_mut(LOG_BYTES),
        ];
        let mut module = ptr::null_mut();
        // SAFETY: the image ends with a zero, the log has the given size, every option has a value,
        // and all outlive the call.
        let code = unsafe {
            (self.calls().cuModuleLoadDataEx)(
                &mut module,
                image.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        let loaded = self.library.check(call, code);
        loaded.map_err(|error| with_log(error, &log))?;
        // SAFETY: the driver just created it.
        Ok(unsafe { ModuleHandle::from_raw(module.expose_provenance() as u64) })
    }

    pub(crate) unsafe fn module_unload(&self, module: ModuleHandle) -> Result<()> {
        // SAFETY: the caller guarantees that no kernel of the module is running or used again.
        unsafe { device_call!(self.cuModuleUnload(raw_module(module))) }
    }

    pub(crate) unsafe fn module_function(
        &self,
        module: ModuleHandle,
        name: &str,
    ) -> Result<FunctionHandle> {
        let named = |error: Error| {
            let detail = format!("kernel {name:?}: {}", error.detail);
            error.with_detail(detail)
        };
        let text = CString::new(name).map_err(|error| {
            let error_text = error.to_string();
            named(Error::new(ErrorKind::NotFound, "cuModuleGetFunction").with_detail(error_text))
        })?;
        let (module, text) = (raw_module(module), text.as_ptr());
        let mut function = ptr::null_mut();
        // SAFETY: the caller passes a live module. The name ends with a zero, and all outlive the call.
        unsafe { device_call!(self.cuModuleGetFunction(&mut function, module, text)) }
            .map_err(named)?;
        // SAFETY: the driver just created it.
        Ok(unsafe { FunctionHandle::from_raw(function.expose_provenance() as u64) })
    }

    pub(crate) unsafe fn launch(
        &self,
        function: FunctionHandle,
        shape: LaunchShape,
        args: &[KernelArg],
        stream: StreamHandle,
    ) -> Result<()> {
        let ([grid_x, grid_y, grid_z], [x, y, z]) = (shape.grid, shape.block);
        let (shared_bytes, stream) = (shape.shared_bytes, raw_stream(stream));
        let mut params: Vec<*mut c_void> = args.iter().map(address_of_value).collect();
        let (function, params) = (raw_function(function), params.as_mut_ptr());
        let no_options = ptr::null_mut();
        // SAFETY: every parameter has a pointer to its value, which the driver copies before the
        // call returns. The caller guarantees that they match the kernel, and the memory that it
        // accesses.
        unsafe {
            device_call!(self.cuLaunchKernel(
                function,
                grid_x,
                grid_y,
                grid_z,
                x,
                y,
                z,
                shared_bytes,
                stream,
                params,
                no_options
            ))
        }
    }
}

/// The address of an argument's value, which the driver only reads.
fn address_of_value(arg: &KernelArg) -> *mut c_void {
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

/// Adds the compiler's log to the error.
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
                *address_of_value(&args[0]).cast::<u64>(),
                *address_of_value(&args[1]).cast::<u32>(),
                *address_of_value(&args[2]).cast::<f64>(),
            )
        };
        assert_eq!(values, (0x1234, 7, 0.5));
    }

    #[test]
    fn the_compilers_log_is_part_of_the_error() {
        let error = Error::new(ErrorKind::InvalidPtx, "cuModuleLoadDataEx").with_detail("218");
        let silent = with_log(error.clone(), &[0; 4]);
        assert_eq!(silent.detail, "218");
        let logged = with_log(error.clone(), b"line 1; fatal\n\0rest");
        assert_eq!(logged.detail, "218\nline 1; fatal");
        let full = with_log(error, b"cut off");
        assert_eq!(full.detail, "218\ncut off");
    }
}
