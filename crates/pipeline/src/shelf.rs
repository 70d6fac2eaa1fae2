//! Buffers that a pipeline keeps between runs.

use std::ops::RangeInclusive;
use std::sync::Mutex;

use pinlane_core::internal::{exact_pool, keep_stray_error, lock, take_idle};
use pinlane_core::{Device, DeviceBuf, Error, PinnedPool, PoolBuf, Result};

/// Idle buffers. Device memory may still be in use when it comes back: copies into it wait for that by
/// themselves. Pinned memory comes back by being dropped.
#[derive(Debug)]
pub(super) struct Shelf {
    device: Device,
    device_buffers: Mutex<Vec<DeviceBuf<u8>>>,
    pinned_pool: PinnedPool,
}

impl Shelf {
    pub(super) fn new(device: &Device) -> Self {
        Self {
            device: device.clone(),
            device_buffers: Mutex::default(),
            pinned_pool: exact_pool(device),
        }
    }

    /// Device memory of at least so many bytes.
    pub(super) fn device(&self, bytes: usize) -> Result<DeviceBuf<u8>> {
        match take(&self.device_buffers, bytes, DeviceBuf::len) {
            Some(buffer) => Ok(buffer),
            None => self.device.alloc(bytes),
        }
    }

    /// Pinned memory of at least so many bytes.
    pub(super) fn pinned(&self, bytes: usize) -> Result<PoolBuf<u8>> {
        if let Some(buffer) = take_idle(&self.pinned_pool, fitting(bytes)) {
            return Ok(buffer);
        }
        self.pinned_pool.trim(0);
        self.pinned_pool.take(bytes)
    }

    pub(super) fn put_device(&self, buffer: DeviceBuf<u8>) {
        if buffer.is_stranded() {
            return; // of no use to anybody any more
        }
        lock(&self.device_buffers).push(buffer);
    }

    /// A buffer could not be made, and fewer will do: the error is kept where others are.
    pub(super) fn note(&self, error: Error) {
        keep_stray_error(&self.device, error);
    }

    /// Free all idle buffers.
    pub(super) fn clear(&self) {
        let device = std::mem::take(&mut *lock(&self.device_buffers));
        drop(device); // outside of the lock, since it calls the driver
        self.pinned_pool.trim(0);
    }
}

/// Sizes of buffers that may be used for so many bytes.
fn fitting(bytes: usize) -> RangeInclusive<usize> {
    bytes..=bytes.saturating_mul(2)
}

/// The smallest that is large enough, since the others may fit another input or output. Where none
/// fits what is asked for now, all are freed: the next run will ask for the same.
fn take<B>(shelf: &Mutex<Vec<B>>, bytes: usize, len: impl Fn(&B) -> usize) -> Option<B> {
    let mut buffers = lock(shelf);
    let lens = buffers.iter().map(len).enumerate();
    let at = lens
        .filter(|(_, len)| fitting(bytes).contains(len))
        .min_by_key(|&(_, len)| len);
    let taken = at.map(|(at, _)| buffers.swap_remove(at));
    let misfits = match taken {
        Some(_) => Vec::new(),
        None => std::mem::take(&mut *buffers),
    };
    drop(buffers);
    drop(misfits);
    taken
}
