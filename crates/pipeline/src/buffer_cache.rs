//! Buffers that a pipeline keeps between runs.

use std::ops::RangeInclusive;
use std::sync::Mutex;

use pinlane_core::internal::{exact_pool, keep_stray_error, lock, take_idle};
use pinlane_core::{Device, DeviceBuf, Error, PinnedPool, PoolBuf, Result};

/// Idle buffers. The device may still use a device buffer, which tracks that itself.
#[derive(Debug)]
pub(super) struct BufferCache {
    device: Device,
    device_buffers: Mutex<Vec<DeviceBuf<u8>>>,
    pinned_pool: PinnedPool,
}

impl BufferCache {
    pub(super) fn new(device: &Device) -> Self {
        Self {
            device: device.clone(),
            device_buffers: Mutex::default(),
            pinned_pool: exact_pool(device),
        }
    }

    /// A device buffer of at least this many bytes: the smallest that fits, since the others may fit
    /// another input or output. If none fits, frees them all: the next run will want these sizes.
    pub(super) fn device(&self, bytes: usize) -> Result<DeviceBuf<u8>> {
        let mut buffers = lock(&self.device_buffers);
        let fitting = (0..buffers.len()).filter(|at| fitting(bytes).contains(&buffers[*at].len()));
        if let Some(at) = fitting.min_by_key(|at| buffers[*at].len()) {
            return Ok(buffers.swap_remove(at));
        }
        drop(buffers);
        self.clear_device();
        self.device.alloc(bytes)
    }

    /// A pinned buffer of at least this many bytes.
    pub(super) fn pinned(&self, bytes: usize) -> Result<PoolBuf<u8>> {
        if let Some(buffer) = take_idle(&self.pinned_pool, fitting(bytes)) {
            return Ok(buffer);
        }
        self.pinned_pool.trim(0);
        self.pinned_pool.take(bytes)
    }

    /// Another pinned buffer, beside the `taken` ones, of which there may be `at_most`. `None` if there are
    /// enough, or if no more memory can be pinned, which the run can do without: `at_most` is lowered then.
    pub(super) fn another_pinned(
        &self,
        bytes: usize,
        taken: usize,
        at_most: &mut usize,
    ) -> Option<PoolBuf<u8>> {
        if taken >= *at_most {
            return None;
        }
        let made = self.pinned(bytes).map_err(|error| {
            self.note(error);
            *at_most = taken;
        });
        made.ok()
    }

    pub(super) fn put_device(&self, buffer: DeviceBuf<u8>) {
        if buffer.is_stranded() {
            return; // unusable from now on
        }
        lock(&self.device_buffers).push(buffer);
    }

    /// Keeps the error of an allocation that the run can do without.
    pub(super) fn note(&self, error: Error) {
        keep_stray_error(&self.device, error);
    }

    /// Frees all idle buffers.
    pub(super) fn clear(&self) {
        self.clear_device();
        self.pinned_pool.trim(0);
    }

    fn clear_device(&self) {
        let buffers = std::mem::take(&mut *lock(&self.device_buffers));
        drop(buffers); // after unlocking, since this calls the driver
    }
}

/// Sizes of buffers that may serve for this many bytes.
fn fitting(bytes: usize) -> RangeInclusive<usize> {
    bytes..=bytes.saturating_mul(2)
}
