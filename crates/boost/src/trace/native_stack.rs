//! The native functions that led to a call.

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;

use pinlane_boost_files::trace::Frame;

use crate::interpose::is_own_code;

/// Frames that are kept.
const DEPTH: usize = 16;

/// Frames that tell call sites apart: enough to get out of a statically linked CUDA runtime.
const KEY_DEPTH: usize = 6;

/// Return addresses, innermost first.
pub(super) struct NativeStack {
    addresses: [usize; DEPTH],
    length: usize,
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        each: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        state: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

struct Walk {
    stack: NativeStack,
    limit: usize,
}

extern "C" fn add_frame(context: *mut c_void, walk: *mut c_void) -> c_int {
    const GO_ON: c_int = 0;
    const STOP: c_int = 4;
    // SAFETY: the unwinder's context.
    let address = unsafe { _Unwind_GetIP(context) };
    // SAFETY: `walk_stack` passes it, and uses it again only afterwards.
    let walk = unsafe { &mut *walk.cast::<Walk>() };
    let stack = &mut walk.stack;
    if address == 0 {
        return STOP;
    }
    if is_own_code(std::ptr::without_provenance(address)) {
        return GO_ON;
    }
    stack.addresses[stack.length] = address;
    stack.length += 1;
    if stack.length < walk.limit {
        GO_ON
    } else {
        STOP
    }
}

fn walk_stack(limit: usize) -> NativeStack {
    let mut walk = Walk {
        stack: NativeStack {
            addresses: [0; DEPTH],
            length: 0,
        },
        limit,
    };
    // SAFETY: the callback gets this state, which outlives the walk.
    unsafe { _Unwind_Backtrace(add_frame, (&raw mut walk).cast()) };
    walk.stack
}

impl NativeStack {
    /// The innermost frames, which tell call sites apart.
    pub(super) fn key() -> [usize; KEY_DEPTH] {
        let stack = walk_stack(KEY_DEPTH);
        let mut key = [0; KEY_DEPTH];
        key.copy_from_slice(&stack.addresses[..KEY_DEPTH]);
        key
    }

    /// The names of the caller's functions.
    pub(super) fn frames() -> Vec<Frame> {
        let stack = walk_stack(DEPTH);
        let addresses = stack.addresses[..stack.length].iter();
        addresses.map(|address| frame(*address)).collect()
    }
}

/// The function of a return address: `libx.so!f+0x10`, or `program+0x1234` without a symbol.
fn frame(address: usize) -> Frame {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // A return address may be the first byte of the next function.
    let inside: *const c_void = std::ptr::without_provenance(address - 1);
    // SAFETY: `info` outlives the call, which accepts any address.
    let found = unsafe { libc::dladdr(inside, info.as_mut_ptr()) } != 0;
    // SAFETY: zeroes are valid.
    let info = unsafe { info.assume_init() };
    if !found || info.dli_fname.is_null() {
        return Frame::named(format!("{address:#x}"));
    }
    let text = |text| {
        // SAFETY: the loader's, which ends with a zero.
        unsafe { CStr::from_ptr(text) }.to_string_lossy()
    };
    let path = text(info.dli_fname);
    let module = path.rsplit('/').next().unwrap_or_default();
    let name = match info.dli_sname.is_null() {
        true => format!("{module}+{:#x}", address - info.dli_fbase.addr()),
        false => format!(
            "{module}!{}+{:#x}",
            text(info.dli_sname),
            address - info.dli_saddr.addr()
        ),
    };
    Frame::Native {
        name,
        // The tool runs in another folder, perhaps.
        module: std::path::absolute(&*path)
            .map_or_else(|_| path.to_string(), |path| path.display().to_string()),
        offset: (inside.addr() - info.dli_fbase.addr()) as u64,
    }
}
