//! How a program gets wrappers instead of libcuda's functions.
//!
//! ```text
//!   linked with libcuda          the wrappers are exported under libcuda's names, and preloaded libraries come first
//!   dlopen, then dlsym           dlsym.rs returns the wrapper for a name of the table
//!   cuGetProcAddress             proc_address.rs replaces an address of the table by its wrapper
//! ```

mod dlsym;
mod proc_address;

use std::ffi::{CStr, c_void};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use pinlane_boost_files::Counter;

use crate::calls::TABLE;
use crate::process;
pub(crate) use dlsym::{is_own_code, real_dlsym};
pub(crate) use proc_address::replace_address;

/// A function of libcuda that is wrapped.
pub(crate) struct WrappedCall {
    name: &'static CStr,
    wrapper: *const c_void,
    /// Of libcuda, or of another preloaded library in front of it; null until it is known.
    real: AtomicPtr<c_void>,
}

// SAFETY: the wrapper is the address of a function.
unsafe impl Sync for WrappedCall {}

impl WrappedCall {
    pub(crate) const fn new(name: &'static CStr, wrapper: *const c_void) -> Self {
        Self {
            name,
            wrapper,
            real: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The address of the real function, if it was needed before.
    fn known(&self) -> Option<NonNull<c_void>> {
        NonNull::new(self.real.load(Ordering::Acquire))
    }

    /// The address of the real function.
    pub(crate) fn real(&self) -> Option<NonNull<c_void>> {
        self.known().or_else(|| {
            let dlsym = real_dlsym();
            // SAFETY: the name ends with a zero. For a linked program this finds what it would call without us.
            let next = unsafe { dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
            let found = NonNull::new(next).or_else(|| lookup(self.name));
            // The program gets none of our errors.
            // SAFETY: only clears the thread's last error.
            unsafe { libc::dlerror() };
            found.inspect(|found| self.found(*found))
        })
    }

    /// Notes the address of the real function. The first one counts.
    fn found(&self, real: NonNull<c_void>) {
        let null = ptr::null_mut();
        let order = Ordering::AcqRel;
        let _ = self
            .real
            .compare_exchange(null, real.as_ptr(), order, Ordering::Acquire);
        process::counters().set(Counter::FoundDriver, 1);
    }
}

/// The wrapped call of this name.
fn wrapped(name: &CStr) -> Option<&'static WrappedCall> {
    TABLE.iter().find(|call| call.name == name)
}

/// The address of a function of the libcuda that the process has loaded.
pub(crate) fn lookup(name: &CStr) -> Option<NonNull<c_void>> {
    let library = libcuda()?;
    let dlsym = real_dlsym();
    // SAFETY: the handle is never closed, and the name ends with a zero.
    NonNull::new(unsafe { dlsym(library.as_ptr(), name.as_ptr()) })
}

/// The loader's handle of libcuda, once the program has loaded it. It is kept, so libcuda is never unloaded.
fn libcuda() -> Option<NonNull<c_void>> {
    static LIBRARY: OnceLock<usize> = OnceLock::new();
    let known = LIBRARY.get().copied().or_else(|| {
        // By its name, under which the loader finds it wherever it was loaded from.
        // SAFETY: RTLD_NOLOAD only looks for a library that is loaded.
        let found = unsafe {
            libc::dlopen(
                c"libcuda.so.1".as_ptr(),
                libc::RTLD_LAZY | libc::RTLD_NOLOAD,
            )
        };
        (!found.is_null()).then(|| *LIBRARY.get_or_init(|| found.expose_provenance()))
    })?;
    NonNull::new(ptr::with_exposed_provenance_mut(known))
}
