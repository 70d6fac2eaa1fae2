//! Buffers that a pipeline keeps between runs.

use std::sync::Mutex;

use pinlane_core::internal::lock;
use pinlane_core::{Device, DeviceBuf, Error, PinnedBuf, Result};

/// Idle buffers. The device may still use one: device buffers track that themselves, pinned buffers are
/// returned only after their copy is done.
#[derive(Debug)]
pub(super) struct BufferCache {
    device: Device,
    device_buffers: Mutex<Vec<DeviceBuf<u8>>>,
    pinned_buffers: Mutex<Vec<PinnedBuf<u8>>>,
}

impl BufferCache {
    pub(super) fn new(device: &Device) -> Self {
        Self {
            device: device.clone(),
            device_buffers: Mutex::default(),
            pinned_buffers: Mutex::default(),
        }
    }

    /// A device buffer of at least this many bytes.
    pub(super) fn device(&self, bytes: usize) -> Result<DeviceBuf<u8>> {
        match take(&self.device_buffers, bytes, DeviceBuf::len) {
            Some(buffer) => Ok(buffer),
            None => self.device.alloc(bytes),
        }
    }

    /// A pinned buffer of at least this many bytes.
    pub(super) fn pinned(&self, bytes: usize) -> Result<PinnedBuf<u8>> {
        match take(&self.pinned_buffers, bytes, |buffer| buffer.len()) {
            Some(buffer) => Ok(buffer),
            None => self.device.pinned(bytes),
        }
    }

    pub(super) fn put_device(&self, buffer: DeviceBuf<u8>) {
        if buffer.is_stranded() {
            return; // unusable from now on
        }
        lock(&self.device_buffers).push(buffer);
    }

    pub(super) fn put_pinned(&self, buffer: PinnedBuf<u8>) {
        lock(&self.pinned_buffers).push(buffer);
    }

    /// Keeps the error of an allocation that the run can do without.
    pub(super) fn note(&self, error: Error) {
        pinlane_core::internal::keep_stray_error(&self.device, error);
    }

    /// Frees all idle buffers.
    pub(super) fn clear(&self) {
        let device = std::mem::take(&mut *lock(&self.device_buffers));
        let pinned = std::mem::take(&mut *lock(&self.pinned_buffers));
        drop((device, pinned)); // after unlocking, since this calls the driver
    }
}

/// Takes the smallest buffer that fits: the others may fit another input or output. If none fits, frees
/// them all, since the next run will want the same sizes as this one.
fn take<B>(cache: &Mutex<Vec<B>>, bytes: usize, len: impl Fn(&B) -> usize) -> Option<B> {
    let mut buffers = lock(cache);
    let fits = |len: &usize| (bytes..=bytes.saturating_mul(2)).contains(len);
    let lens = buffers.iter().map(len).enumerate();
    let at = lens
        .filter(|(_, len)| fits(len))
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
