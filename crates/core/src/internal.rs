//! Shared by Pinlane's own crates. Not part of the public API: it changes without notice.

pub use crate::clock_aware_threads::{HostThread, HostThreads, Receiver, Sender};
pub use crate::helper_threads::cpus;
pub use crate::local_ranks::{is_srun_task, local_rank, local_world_size};
pub use crate::memory::{Touch, available_bytes, check_align, page_bytes};
pub use crate::normalize::Kernels as NormalizeKernels;
pub use crate::parse_number::{NumberError, parse_size, parse_whole};
pub use crate::sync::lock;
pub use crate::transfer_protocol::{Claim, SharedSlot, SlotMemory, Stride};

use std::ops::RangeInclusive;
use std::ptr::NonNull;

use crate::{Device, Error, PinnedPool, PinnedTarget, PoolBuf, Stream};

/// Keeps an error that no call can return, for [`Device::take_stray_errors`].
pub fn keep_stray_error(device: &Device, error: Error) {
    device.shared.core.keep_stray_error(error);
}

/// The device's pool of reusable pinned buffers. Blocks have exactly the requested size. [`Device::trim`]
/// frees idle ones, and so does an allocation that the budget rejects.
pub fn pinned_store(device: &Device) -> &PinnedPool {
    &device.shared.pinned_store
}

/// The smallest idle block whose size is in the range `bytes`.
pub fn take_idle(pool: &PinnedPool, bytes: RangeInclusive<usize>) -> Option<PoolBuf<u8>> {
    pool.take_idle(bytes)
}

/// A pool whose blocks have exactly the requested size and are freed with it.
pub fn exact_pool(device: &Device) -> PinnedPool {
    PinnedPool::exact(device)
}

/// The device of a stream.
pub fn device_of(stream: &Stream) -> Device {
    let shared = stream.shared().clone();
    Device { shared }
}

/// Whether both are the same stream, as far as the library knows.
pub fn same_stream(one: &Stream, other: &Stream) -> bool {
    one.id() == other.id()
}

/// Makes later work on `stream` wait for all work on `other` so far. Both are streams of one device.
pub fn follow(stream: &Stream, other: &Stream) -> Result<(), Error> {
    match std::sync::Arc::ptr_eq(stream.shared(), other.shared()) {
        true => stream.follow(other),
        false => Err(Error::WrongDevice),
    }
}

/// Whether a copy of so many bytes of pageable memory would use the express lane now, rather than the driver's own
/// copy.
pub fn prefers_express_lane(stream: &Stream, bytes: usize) -> bool {
    stream.prefers_express_lane(bytes)
}

/// Waits for all work on the stream. Returns whether the device is certainly finished with it.
pub fn drained(stream: &Stream) -> bool {
    stream.live().drains()
}

// SAFETY: `PinnedTarget` promises the same.
unsafe impl<B: PinnedTarget<u8>> SlotMemory for B {
    fn memory(&mut self) -> (NonNull<u8>, usize) {
        let start = NonNull::new(self.start_mut()).expect("pinned memory is never null");
        (start, self.len())
    }
}
