//! What Pinlane's own crates share. Not part of the public interface: it changes without notice.

pub use crate::helpers::cpus;
pub use crate::memory::{Touch, check_align, local_world_size, page_bytes};
pub use crate::normalize::Kernels as NormalizeKernels;
pub use crate::protocol::{Claim, SharedSlot, SlotMemory, Stride};
pub use crate::sync::lock;

use std::ops::RangeInclusive;

use crate::{Device, Error, PinnedPool, PoolBuf};

/// Keep an error that no call can return. [`Device::take_stray_errors`] returns it.
pub fn keep_stray_error(device: &Device, error: Error) {
    if let Error::Driver(error) = error {
        device.shared.core.keep_stray(error);
    }
}

/// The device's store of pinned buffers for reuse. Its blocks have exactly the size that was asked for.
/// [`Device::trim`] frees those that are idle, and so does an allocation that the budget refuses.
pub fn pinned_store(device: &Device) -> &PinnedPool {
    &device.shared.pinned_store
}

/// The smallest idle block that holds the first number of bytes and has at most the last.
pub fn take_idle(pool: &PinnedPool, bytes: RangeInclusive<usize>) -> Option<PoolBuf<u8>> {
    pool.take_idle(bytes)
}

/// A pool whose blocks have exactly the size that was asked for, and go when it is dropped.
pub fn exact_pool(device: &Device) -> PinnedPool {
    PinnedPool::exact(device)
}
