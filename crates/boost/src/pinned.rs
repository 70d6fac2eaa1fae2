//! Pinned memory of the program: page-locked by the library, which is several times as fast as the driver for large
//! blocks, and reused only when no copy is in flight.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pinlane_boost_files::Counter;
use pinlane_core::{Device, PinnedBuf, PointerKind};

use crate::calls::SUCCESS;
use crate::captures::NoCapture;
use crate::contexts::Context;
use crate::process;

/// Below this size the driver is as fast.
const LEAST_BYTES: usize = 1 << 20;

/// Larger blocks are not reused.
const REUSED_BYTES_AT_MOST: usize = 4 << 20;

/// Flags of the driver that change nothing where host and device share addresses: portable and mapped.
const HARMLESS_FLAGS: u32 = 1 | 2;

/// `CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED`
const NOT_REGISTERED: u32 = 713;

/// Set if the device does not use registered memory by its host address.
static IS_USELESS: AtomicBool = AtomicBool::new(false);

/// Memory that the program holds, by its address.
static BLOCKS: Mutex<BTreeMap<usize, Block>> = Mutex::new(BTreeMap::new());

/// Memory that the program has freed while a stream was being captured.
static FREED: Mutex<Vec<Block>> = Mutex::new(Vec::new());

struct Block {
    memory: PinnedBuf<u8>,
    device: Device,
    /// Handle of its context.
    context: u64,
    /// As the program gave them.
    flags: u32,
}

fn blocks() -> MutexGuard<'static, BTreeMap<usize, Block>> {
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `cuMemHostAlloc` and `cuMemAllocHost`.
///
/// # Safety
/// As for the driver's call.
pub(crate) unsafe fn alloc(
    host: *mut *mut c_void,
    bytes: usize,
    flags: u32,
    plain: impl FnOnce() -> u32,
) -> u32 {
    let block = match host.is_null() {
        true => None,
        false => catch_unwind(AssertUnwindSafe(|| pin(bytes, flags)))
            .ok()
            .flatten(),
    };
    let Some(mut block) = block else {
        return plain();
    };
    let start = block.memory.as_mut_ptr();
    blocks().insert(start.addr(), block);
    // SAFETY: the caller's: a place for the result.
    unsafe { *host = start.cast() };
    process::counters().add(Counter::PinnedAllocations, 1);
    process::counters().add(Counter::PinnedBytes, bytes as u64);
    SUCCESS
}

/// Pins memory, if the library may and can.
fn pin(bytes: usize, flags: u32) -> Option<Block> {
    let serves = process::is_on() && process::settings().pinning;
    let is_useful = bytes >= LEAST_BYTES && flags & !HARMLESS_FLAGS == 0;
    if !serves || !is_useful || IS_USELESS.load(Ordering::Relaxed) {
        return None;
    }
    let _no_capture = NoCapture::check()?;
    let context = Context::current()?;
    let info = context.device.info();
    if info.integrated || info.coherent {
        return None;
    }
    let mut memory = context.device.pinned::<u8>(bytes).ok()?;
    let is_pinned = matches!(
        context.device.pointer_kind(&memory),
        Ok(PointerKind::Pinned | PointerKind::Registered)
    );
    if !is_pinned || !has_one_address(&context.device, &mut memory) {
        IS_USELESS.store(true, Ordering::Relaxed);
        return None;
    }
    if bytes <= REUSED_BYTES_AT_MOST {
        // The driver's memory is always fresh.
        memory.fill(0);
    }
    Some(Block {
        memory,
        device: context.device.clone(),
        context: context.handle(),
        flags,
    })
}

/// Whether kernels use the memory by its host address, as they do with memory of `cuMemHostAlloc`.
fn has_one_address(device: &Device, memory: &mut PinnedBuf<u8>) -> bool {
    let Some(start) = NonNull::new(memory.as_mut_ptr()) else {
        return false;
    };
    // SAFETY: only asks for an address.
    let driver = unsafe { pinlane_core::raw::driver(device) };
    let on_device = driver.host_device_ptr(start);
    on_device.is_ok_and(|address| address.0 == start.addr().get() as u64)
}

/// `cuMemFreeHost`. As the driver's, it waits for work that may use the memory.
pub(crate) fn free(host: *mut c_void, plain: impl FnOnce() -> u32) -> u32 {
    // A forked child has no such memory.
    if process::is_forked() {
        return plain();
    }
    let Some(block) = blocks().remove(&host.addr()) else {
        return plain();
    };
    match NoCapture::check() {
        Some(_no_capture) => release(block),
        // A wait would end the capture. The next free behind it does this one, too.
        None => FREED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(block),
    }
    SUCCESS
}

/// Frees a block, and those that were freed during captures.
fn release(block: Block) {
    let mut freed = mem::take(&mut *FREED.lock().unwrap_or_else(PoisonError::into_inner));
    freed.push(block);
    for Block { memory, device, .. } in freed {
        // A device that fails does nothing more with the memory.
        let _ = device.synchronize();
        drop(memory);
    }
}

/// `cuMemHostGetFlags`.
///
/// # Safety
/// As for the driver's call.
pub(crate) unsafe fn flags(flags: *mut u32, host: *mut c_void, plain: impl FnOnce() -> u32) -> u32 {
    if process::is_forked() {
        return plain();
    }
    let blocks = blocks();
    let found = blocks.range(..=host.addr()).next_back();
    let inside = found.filter(|(start, block)| host.addr() - **start < block.memory.len());
    match inside {
        Some((_, block)) if !flags.is_null() => {
            // SAFETY: the caller's: a place for the result.
            unsafe { *flags = block.flags };
            SUCCESS
        }
        _ => {
            drop(blocks);
            plain()
        }
    }
}

/// `cuMemHostUnregister`, which allocated memory refuses.
pub(crate) fn unregister(host: *mut c_void, plain: impl FnOnce() -> u32) -> u32 {
    match !process::is_forked() && blocks().contains_key(&host.addr()) {
        true => NOT_REGISTERED,
        false => plain(),
    }
}

/// Frees the memory of a context that is about to be destroyed, as the driver does with its own.
pub(crate) fn forget(context: u64) {
    let gone: Vec<_> = blocks()
        .extract_if(.., |_, block| block.context == context)
        .collect();
    drop(gone); // not under the lock: this calls the driver
}
