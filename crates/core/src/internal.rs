//! What Pinlane's own crates share. Not part of the public interface: it changes without notice.

pub use crate::core::{Claim, SharedSlot, SlotMemory, Stride};
pub use crate::crew::cpus;
pub use crate::memory::{IdleBuffers, Touch, check_align, local_world_size, page_bytes};
pub use crate::normalize::Kernels as NormalizeKernels;
pub use crate::sync::lock;

use crate::{Device, Error};

/// Keep an error that no call can return. [`Device::take_stray_errors`] returns it.
pub fn keep_stray_error(device: &Device, error: Error) {
    if let Error::Driver(error) = error {
        device.shared.link.keep_stray(error);
    }
}

/// Pinned buffers of the device that no load uses now.
pub fn idle_buffers(device: &Device) -> &IdleBuffers {
    &device.shared.idle_buffers
}
