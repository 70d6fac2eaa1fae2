//! Copies between ordinary memory and a device, over the express lane.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::time::Instant;

use pinlane_boost_files::{Counter, Direction, PlainReason, size_class};
use pinlane_core::interop::LentBuf;
use pinlane_core::{DevicePtr, Stream, internal};

use crate::calls::SUCCESS;
use crate::captures::NoCapture;
use crate::contexts::{Context, Functions, functions};
use crate::process;

/// Below this size no copy is ever faster over the express lane.
const LEAST_BYTES: usize = 128 << 10;

/// The default stream of the calling thread, as a handle.
pub(crate) const PER_THREAD: u64 = 2;

/// A copy that the program has asked for.
#[derive(Clone, Copy)]
pub(crate) struct HostCopy {
    pub direction: Direction,
    pub host: u64,
    pub device: u64,
    pub bytes: usize,
    /// The driver's handle; 0 for the default stream of the device.
    pub stream: u64,
    /// Whether the call is synchronous: then an upload reads its source behind earlier work of the stream.
    pub is_synchronous: bool,
}

/// Copies over the express lane, or by `plain`.
///
/// # Safety
/// As for the driver's call.
pub(crate) unsafe fn copy(copy: HostCopy, plain: impl FnOnce() -> u32) -> u32 {
    let start = Instant::now();
    // SAFETY: the caller's.
    let boosted = catch_unwind(AssertUnwindSafe(|| unsafe { boost(copy) }));
    let reason = match boosted {
        Ok(Ok(())) => {
            count_boosted(copy, start);
            return SUCCESS;
        }
        Ok(Err(reason)) => reason,
        Err(_) => PlainReason::ExpressFailed,
    };
    count_plain(copy, reason);
    plain()
}

/// `cuMemcpy`: copies between addresses of any kind.
///
/// # Safety
/// As for the driver's call.
pub(crate) unsafe fn copy_any(
    target: u64,
    source: u64,
    bytes: usize,
    stream: u64,
    is_synchronous: bool,
    plain: impl FnOnce() -> u32,
) -> u32 {
    let kinds = functions()
        .and_then(|functions| Some((kind(functions, target)?, kind(functions, source)?)));
    let (direction, host, device) = match kinds {
        Some((Kind::Device { .. }, Kind::Pageable | Kind::PageLocked)) => {
            (Direction::Upload, source, target)
        }
        Some((Kind::Pageable | Kind::PageLocked, Kind::Device { .. })) => {
            (Direction::Download, target, source)
        }
        _ => {
            process::counters().add(Counter::OtherCopies, 1);
            return plain();
        }
    };
    let host_copy = HostCopy {
        direction,
        host,
        device,
        bytes,
        stream,
        is_synchronous,
    };
    // SAFETY: the caller's.
    unsafe { copy(host_copy, plain) }
}

/// Copies over the express lane, or says why not. On an error the driver's own copy does everything again.
///
/// # Safety
/// As for the driver's call.
unsafe fn boost(copy: HostCopy) -> Result<(), PlainReason> {
    if copy.bytes < LEAST_BYTES {
        return Err(PlainReason::Small);
    }
    if !process::is_on() {
        return Err(PlainReason::NotUnderstood);
    }
    let no_capture = NoCapture::check().ok_or(PlainReason::Capturing)?;
    let functions = functions().ok_or(PlainReason::NotUnderstood)?;
    copy.check_memory(functions)?;
    let context = Context::current().ok_or(PlainReason::NotUnderstood)?;
    let info = context.device.info();
    if info.integrated || info.coherent {
        return Err(PlainReason::CoherentDevice);
    }
    // SAFETY: the program's stream, or one of the default streams. It outlives the call.
    let stream = unsafe { Stream::from_raw(&context.device, copy.stream) };
    if !internal::prefers_express_lane(&stream, copy.bytes) {
        return Err(PlainReason::Small);
    }
    // SAFETY: the caller's: both places hold as many bytes, which nothing else uses during the call.
    let copied = unsafe { run(&context, &stream, copy) };
    drop(no_capture);
    copied.map_err(|_| PlainReason::ExpressFailed)
}

/// Runs the copy in the order of the program's stream.
///
/// # Safety
/// Both places hold as many bytes, which nothing else uses during the call.
unsafe fn run(context: &Context, stream: &Stream, copy: HostCopy) -> pinlane_core::Result<()> {
    let host = ptr::with_exposed_provenance_mut::<u8>(copy.host as usize);
    let device = DevicePtr(copy.device);
    if copy.is_synchronous && copy.direction == Direction::Upload {
        stream.synchronize()?;
    }
    // SAFETY: memory of the program, which uses it on this stream, or ordered with it.
    let mut lent = unsafe { LentBuf::<u8>::new(stream, device, copy.bytes) }?;
    let mut on = |stream: &Stream| match copy.direction {
        Direction::Upload => {
            // SAFETY: the program's memory, which it does not change during the call.
            let source = unsafe { std::slice::from_raw_parts(host, copy.bytes) };
            stream.copy_to_device(source, lent.whole_mut())
        }
        Direction::Download => {
            // SAFETY: the program's memory, which it does not use during the call.
            let target = unsafe { std::slice::from_raw_parts_mut(host, copy.bytes) };
            stream.copy_to_host(lent.whole(), target)
        }
    };
    // Helpers submit chunks, and on their threads that handle is another stream.
    let copied = match copy.stream {
        PER_THREAD => context.on_own_stream(on)?,
        _ => on(stream),
    };
    let returned = lent.give_back();
    copied.and(returned)
}

impl HostCopy {
    /// Whether the host memory is pageable, and the device's is what it seems.
    fn check_memory(&self, functions: &Functions) -> Result<(), PlainReason> {
        // No memory is at 0, and none is larger than half of the address space.
        if self.host == 0 || isize::try_from(self.bytes).is_err() {
            return Err(PlainReason::NotUnderstood);
        }
        let last = (self.bytes - 1) as u64;
        let ends = |address: u64| [Some(address), address.checked_add(last)];
        for end in ends(self.host) {
            match end.and_then(|end| kind(functions, end)) {
                Some(Kind::Pageable) => (),
                Some(Kind::PageLocked) => return Err(PlainReason::PageLocked),
                _ => return Err(PlainReason::NotUnderstood),
            }
        }
        // The driver refuses a copy beyond the end of an allocation as a whole.
        let fits = match kind(functions, self.device) {
            Some(Kind::Device { end }) => self.device.checked_add(last).is_some_and(|at| at < end),
            _ => false,
        };
        fits.then_some(()).ok_or(PlainReason::NotUnderstood)
    }
}

/// What kind of memory an address belongs to.
pub(crate) enum Kind {
    Pageable,
    /// Pinned or registered.
    PageLocked,
    /// Of a device, with the end of the allocation.
    Device {
        end: u64,
    },
    Managed,
}

/// Asks the driver; `None` if it does not answer.
pub(crate) fn kind(functions: &Functions, address: u64) -> Option<Kind> {
    const MEMORY_TYPE: u32 = 2;
    const IS_MANAGED: u32 = 8;
    const RANGE_START: u32 = 11;
    const RANGE_SIZE: u32 = 12;
    const HOST: u32 = 1;
    const DEVICE: u32 = 2;

    let (mut memory_type, mut managed) = (0_u32, 0_u32);
    let (mut start, mut size) = (0_u64, 0_usize);
    let mut attributes = [MEMORY_TYPE, IS_MANAGED, RANGE_START, RANGE_SIZE];
    let mut values: [*mut c_void; 4] = [
        ptr::from_mut(&mut memory_type).cast(),
        ptr::from_mut(&mut managed).cast(),
        ptr::from_mut(&mut start).cast(),
        ptr::from_mut(&mut size).cast(),
    ];
    // SAFETY: every attribute has a place of its size, and all outlive the call.
    let code = unsafe {
        (functions.attributes)(
            attributes.len() as u32,
            attributes.as_mut_ptr(),
            values.as_mut_ptr(),
            address,
        )
    };
    if code != SUCCESS {
        return None;
    }
    Some(match memory_type {
        _ if managed != 0 => Kind::Managed,
        HOST => Kind::PageLocked,
        DEVICE => Kind::Device {
            end: start.checked_add(size as u64)?,
        },
        0 => Kind::Pageable,
        _ => return None,
    })
}

fn count_boosted(copy: HostCopy, start: Instant) {
    let (counters, class) = (process::counters(), size_class(copy.bytes));
    let ns = start.elapsed().as_nanos() as u64;
    counters.add(Counter::BoostedCopies(copy.direction, class), 1);
    counters.add(
        Counter::BoostedBytes(copy.direction, class),
        copy.bytes as u64,
    );
    counters.add(Counter::BoostedNs(copy.direction, class), ns);
}

fn count_plain(copy: HostCopy, reason: PlainReason) {
    let counters = process::counters();
    counters.add(Counter::PlainCopies(copy.direction, reason), 1);
    counters.add(
        Counter::PlainBytes(copy.direction, reason),
        copy.bytes as u64,
    );
}
