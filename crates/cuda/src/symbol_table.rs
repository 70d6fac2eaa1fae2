//! The table of libcuda's calls.

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};
use std::ptr::NonNull;

use cudarc::driver::sys::{
    self, CUDA_MEMCPY2D, CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUfunction,
    CUjit_option, CUmemcpyAttributes, CUmodule, CUpointer_attribute, CUresult, CUstream,
    CUstreamCaptureStatus,
};
use pinlane_driver::{Error, ErrorKind, Result};

/// The function that libcuda calls when a stream reaches a host callback.
pub(crate) type StreamCallback = unsafe extern "C" fn(CUstream, u32, *mut c_void);

/// Declares the table: for each call a field, its lookup by name, and a check of its signature.
macro_rules! calls {
    (
        needed { $($name:ident($($arg:ty),*);)* }
        needed_with_plain_results { $($plain:ident($($plain_arg:ty),*);)* }
        optional { $($maybe:ident($($maybe_arg:ty),*);)* }
    ) => {
        /// libcuda's calls by name. A result is the plain number of a `CUresult`.
        #[allow(non_snake_case)] // the driver's names
        pub(crate) struct Calls {
            $(pub $name: unsafe extern "C" fn($($arg),*) -> u32,)*
            $(pub $plain: unsafe extern "C" fn($($plain_arg),*) -> u32,)*
            $(pub $maybe: Option<unsafe extern "C" fn($($maybe_arg),*) -> u32>,)*
        }

        impl Calls {
            /// Resolves all calls.
            ///
            /// # Safety
            /// `lookup` finds the functions of libcuda, which outlives the table.
            pub(crate) unsafe fn resolve(lookup: &SymbolLookup<'_>) -> Result<Self> {
                // SAFETY: each field has the type of its call, checked below against cudarc's
                // bindings. The result is a 32-bit enum there and a number of that size here.
                unsafe {
                    Ok(Self {
                        $($name: symbol(lookup, stringify!($name))?,)*
                        $($plain: symbol(lookup, stringify!($plain))?,)*
                        $($maybe: symbol(lookup, stringify!($maybe)).ok(),)*
                    })
                }
            }
        }

        /// Does not compile if a parameter differs from cudarc's binding.
        const _SIGNATURES: () = {
            $(let _: unsafe fn($($arg),*) -> CUresult = sys::$name;)*
            $(let _: unsafe fn($($maybe_arg),*) -> CUresult = sys::$maybe;)*
        };

        /// Every name in the table.
        #[cfg(test)]
        pub(crate) const NAMES: &[&str] = &[
            $(stringify!($name),)*
            $(stringify!($plain),)*
            $(stringify!($maybe),)*
        ];
    };
}

calls! {
    needed {
        cuInit(c_uint);
        cuDeviceGetCount(*mut c_int);
        cuDeviceGet(*mut CUdevice, c_int);
        cuDeviceGetName(*mut c_char, c_int, CUdevice);
        cuDeviceTotalMem_v2(*mut usize, CUdevice);
        cuDeviceGetAttribute(*mut c_int, CUdevice_attribute, CUdevice);
        cuDevicePrimaryCtxRetain(*mut CUcontext, CUdevice);
        cuDevicePrimaryCtxRelease_v2(CUdevice);
        cuCtxGetCurrent(*mut CUcontext);
        cuCtxSetCurrent(CUcontext);
        cuCtxSynchronize();
        cuCtxGetStreamPriorityRange(*mut c_int, *mut c_int);
        cuMemGetInfo_v2(*mut usize, *mut usize);
        cuMemAlloc_v2(*mut CUdeviceptr, usize);
        cuMemFree_v2(CUdeviceptr);
        cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
        cuMemFreeHost(*mut c_void);
        cuMemHostRegister_v2(*mut c_void, usize, c_uint);
        cuMemHostUnregister(*mut c_void);
        cuMemHostGetDevicePointer_v2(*mut CUdeviceptr, *mut c_void, c_uint);
        cuPointerGetAttributes(c_uint, *mut CUpointer_attribute, *mut *mut c_void, CUdeviceptr);
        cuStreamCreateWithPriority(*mut CUstream, c_uint, c_int);
        cuStreamDestroy_v2(CUstream);
        cuStreamQuery(CUstream);
        cuStreamIsCapturing(CUstream, *mut CUstreamCaptureStatus);
        cuStreamSynchronize(CUstream);
        cuStreamWaitEvent(CUstream, CUevent, c_uint);
        cuEventCreate(*mut CUevent, c_uint);
        cuEventDestroy_v2(CUevent);
        cuEventRecord(CUevent, CUstream);
        cuEventQuery(CUevent);
        cuEventSynchronize(CUevent);
        cuEventElapsedTime(*mut f32, CUevent, CUevent);
        cuMemcpyAsync(CUdeviceptr, CUdeviceptr, usize, CUstream);
        cuMemcpyHtoD_v2(CUdeviceptr, *const c_void, usize);
        cuMemcpyHtoDAsync_v2(CUdeviceptr, *const c_void, usize, CUstream);
        cuMemcpyDtoH_v2(*mut c_void, CUdeviceptr, usize);
        cuMemcpyDtoHAsync_v2(*mut c_void, CUdeviceptr, usize, CUstream);
        cuMemcpyDtoD_v2(CUdeviceptr, CUdeviceptr, usize);
        cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, usize, CUstream);
        cuMemcpy2DUnaligned_v2(*const CUDA_MEMCPY2D);
        cuMemcpy2DAsync_v2(*const CUDA_MEMCPY2D, CUstream);
        cuMemsetD8Async(CUdeviceptr, c_uchar, usize, CUstream);
        cuModuleLoadDataEx(*mut CUmodule, *const c_void, c_uint, *mut CUjit_option, *mut *mut c_void);
        cuModuleUnload(CUmodule);
        cuModuleGetFunction(*mut CUfunction, CUmodule, *const c_char);
        cuLaunchKernel(CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void, *mut *mut c_void);
    }
    needed_with_plain_results {
        // These take a result code, which cudarc's enum may lack.
        cuGetErrorName(u32, *mut *const c_char);
        cuGetErrorString(u32, *mut *const c_char);
        cuStreamAddCallback(CUstream, Option<StreamCallback>, *mut c_void, c_uint);
    }
    optional {
        cuMemAllocAsync(*mut CUdeviceptr, usize, CUstream);
        cuMemFreeAsync(CUdeviceptr, CUstream);
        cuMemcpyBatchAsync(*mut CUdeviceptr, *mut CUdeviceptr, *mut usize, usize, *mut CUmemcpyAttributes, *mut usize, usize, *mut usize, CUstream);
    }
}

/// Finds the address of a function of libcuda by its name.
pub(crate) type SymbolLookup<'a> = dyn Fn(&str) -> Option<NonNull<c_void>> + 'a;

/// Looks up a call.
///
/// # Safety
/// `lookup` finds the functions of a libcuda that outlives the result; `F` is a function pointer of the call's type.
pub(crate) unsafe fn symbol<F: Copy>(lookup: &SymbolLookup<'_>, name: &'static str) -> Result<F> {
    const { assert!(size_of::<F>() == size_of::<NonNull<c_void>>()) };
    let missing = ErrorKind::MissingSymbol { symbol: name };
    let address = lookup(name).ok_or_else(|| Error::new(missing, "dlsym"))?;
    // SAFETY: the caller guarantees the type, a function pointer, which is as large as a pointer.
    Ok(unsafe { std::mem::transmute_copy(&address) })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::NAMES;

    #[test]
    fn no_call_is_listed_twice() {
        let unique: HashSet<_> = NAMES.iter().collect();
        assert_eq!(unique.len(), NAMES.len());
    }

    #[test]
    fn no_call_has_a_newer_version_in_the_table() {
        for name in NAMES {
            assert!(!NAMES.contains(&&*format!("{name}_v2")), "{name}");
        }
    }
}
