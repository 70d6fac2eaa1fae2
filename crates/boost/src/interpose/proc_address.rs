//! `cuGetProcAddress`, by which the CUDA runtime finds libcuda's functions.

use std::ffi::c_void;
use std::ptr::NonNull;

use crate::calls::TABLE;

/// Replaces the address that `cuGetProcAddress` has stored by its wrapper, if it has one. The driver chooses the
/// symbol by name, version and kind of default stream; all of that shows in the address.
///
/// # Safety
/// `address` is null or points to the result of a successful `cuGetProcAddress`.
pub(crate) unsafe fn replace_address(address: *mut *mut c_void) {
    // SAFETY: the caller's.
    let Some(found) = (unsafe { address.as_ref() }).and_then(|found| NonNull::new(*found)) else {
        return;
    };
    if let Some(call) = TABLE.iter().find(|call| call.real() == Some(found)) {
        // SAFETY: the caller's.
        unsafe { *address = call.wrapper.cast_mut() };
    }
}
