//! `dlsym`, for the whole process.
//!
//! The real one must see the caller's return address, since `RTLD_NEXT` means "behind the library that calls". So the
//! wrapper is a few instructions: it asks [`choose`], and either returns its answer or jumps to the real function with
//! registers and stack as they were.

use std::arch::naked_asm;
use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

use super::wrapped;

pub(crate) type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// The real function; null until [`real_dlsym`] was called.
static REAL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// `dlsym` as every library of the process calls it.
///
/// # Safety
/// As for the C library's.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8", // aligns the stack for the call
        "mov rdx, [rsp + 24]", // the return address
        "call {choose}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jnz 2f",
        "jmp qword ptr [rip + {real}]", // `choose` has found it
        "2:",
        "cmp rax, {nothing}",
        "jne 3f",
        "xor eax, eax",
        "3:",
        "ret",
        choose = sym choose,
        real = sym REAL,
        nothing = const NOTHING,
    )
}

/// Stands for null as an answer. No function is there.
const NOTHING: usize = 1;

/// The wrapper to return, [`NOTHING`], or null for the real function's answer.
unsafe extern "C" fn choose(
    handle: *mut c_void,
    name: *const c_char,
    caller: *const c_void,
) -> *mut c_void {
    const NO: *mut c_void = ptr::null_mut();
    let real = real_dlsym();
    if name.is_null() || is_own_code(caller) {
        return NO;
    }
    // SAFETY: the caller's, who passes a name that ends with a zero.
    let name = unsafe { CStr::from_ptr(name) };
    // Most names end here. No allocation: memory allocators look for symbols, too.
    if !name.to_bytes().starts_with(b"cu") {
        return NO;
    }
    let Some(call) = wrapped(name) else {
        return NO;
    };
    // The loader knows who comes next behind whom.
    if handle == libc::RTLD_NEXT {
        return NO;
    }
    // SAFETY: the caller's handle and name.
    let Some(found) = NonNull::new(unsafe { real(handle, name.as_ptr()) }) else {
        return NO;
    };
    if found.as_ptr().cast_const() == call.wrapper {
        // The exported one. Without libcuda there is no such function.
        return match call.real() {
            Some(_) => NO,
            None => ptr::without_provenance_mut(NOTHING),
        };
    }
    // libcuda's own code gets libcuda's own functions.
    if same_library(caller, found.as_ptr()) {
        return NO;
    }
    match call.known() {
        // Another library in front of libcuda, which looks for what comes behind it; or another libcuda.
        Some(real) if real != found || same_library(caller, real.as_ptr()) => NO,
        _ => {
            call.found(found);
            call.wrapper.cast_mut()
        }
    }
}

/// The C library's `dlsym`, or that of another preloaded library behind this one.
pub(crate) fn real_dlsym() -> Dlsym {
    let mut real = REAL.load(Ordering::Acquire);
    if real.is_null() {
        // `dlsym` has moved from libdl to libc, with a new version.
        for version in [c"GLIBC_2.34", c"GLIBC_2.2.5"] {
            // SAFETY: name and version end with zeros. Nobody wraps `dlvsym` here.
            real = unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) };
            if !real.is_null() {
                break;
            }
        }
        if real.is_null() {
            // There is no way to go on: every caller waits for an address.
            std::process::abort();
        }
        REAL.store(real, Ordering::Release);
    }
    // SAFETY: the address of `dlsym`.
    unsafe { std::mem::transmute::<*mut c_void, Dlsym>(real) }
}

/// Whether both addresses are in one library.
fn same_library(one: *const c_void, other: *const c_void) -> bool {
    let base = |address| {
        let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: any address will do, and `found` is large enough.
        let known = unsafe { libc::dladdr(address, found.as_mut_ptr()) };
        // SAFETY: all-zero is a valid value, whether or not the call filled it in.
        (known != 0).then(|| unsafe { found.assume_init() }.dli_fbase)
    };
    base(one).is_some_and(|library| base(other) == Some(library))
}

/// Whether an address is in this library, whose calls get libcuda's own functions.
pub(crate) fn is_own_code(address: *const c_void) -> bool {
    unsafe extern "C" {
        /// First and last byte of this library, by the linker.
        static __ehdr_start: u8;
        static _end: u8;
    }
    let start = (&raw const __ehdr_start).addr();
    let end = (&raw const _end).addr();
    (start..end).contains(&address.addr())
}
