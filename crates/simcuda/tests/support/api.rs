//! Short forms of driver API calls.

use std::ffi::c_int;

use cudarc::driver::sys::{self, CUresult};

/// No error.
pub const SUCCESS: CUresult = CUresult::CUDA_SUCCESS;

/// Calls a function of the driver API.
macro_rules! cu {
    ($name:ident($($arg:expr),* $(,)?)) => {
        // SAFETY: the tests pass valid pointers or null. The simulated driver refuses forged handles
        // and addresses.
        unsafe { cudarc::driver::sys::$name($($arg),*) }
    };
}

/// Calls a function that stores one result through its first argument.
macro_rules! made {
    ($name:ident($($arg:expr),* $(,)?)) => {{
        let mut made = std::mem::MaybeUninit::zeroed();
        let result = $crate::support::api::cu!($name(made.as_mut_ptr() $(, $arg)*));
        assert_eq!(result, $crate::support::api::SUCCESS, stringify!($name));
        // SAFETY: zeroed is a valid number or pointer, and the call succeeded.
        unsafe { made.assume_init() }
    }};
}

pub(crate) use {cu, made};

/// Makes the primary context of a device current.
pub fn enter(device: c_int) -> sys::CUcontext {
    assert_eq!(cu!(cuInit(0)), SUCCESS);
    let context: sys::CUcontext = made!(cuDevicePrimaryCtxRetain(device));
    assert_eq!(cu!(cuCtxSetCurrent(context)), SUCCESS);
    context
}

/// Releases the primary context of a device.
pub fn leave(device: c_int) {
    assert_eq!(cu!(cuDevicePrimaryCtxRelease_v2(device)), SUCCESS);
}
