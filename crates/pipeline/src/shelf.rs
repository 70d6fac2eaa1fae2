//! Buffers that a pipeline keeps between runs.

use std::sync::{Mutex, PoisonError};

use pinlane_core::{Device, DeviceBuf, Error, PinnedBuf, Result};

/// Idle buffers. One that has come back may still be used by the device; who takes it waits for
/// that by its own books (device memory), or has waited before (pinned memory).
#[derive(Debug)]
pub(super) struct Shelf {
    device: Device,
    device_buffers: Mutex<Vec<DeviceBuf<u8>>>,
    pinned_buffers: Mutex<Vec<PinnedBuf<u8>>>,
}

impl Shelf {
    pub(super) fn new(device: &Device) -> Self {
        Self {
            device: device.clone(),
            device_buffers: Mutex::default(),
            pinned_buffers: Mutex::default(),
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
    pub(super) fn pinned(&self, bytes: usize) -> Result<PinnedBuf<u8>> {
        match take(&self.pinned_buffers, bytes, |buffer| buffer.len()) {
            Some(buffer) => Ok(buffer),
            None => self.device.pinned(bytes),
        }
    }

    pub(super) fn put_device(&self, buffer: DeviceBuf<u8>) {
        if buffer.is_stranded() {
            return; // of no use to anybody any more
        }
        lock(&self.device_buffers).push(buffer);
    }

    pub(super) fn put_pinned(&self, buffer: PinnedBuf<u8>) {
        lock(&self.pinned_buffers).push(buffer);
    }

    /// A buffer could not be made, and fewer will do: the error is kept where others are.
    pub(super) fn note(&self, error: Error) {
        pinlane_core::internal::keep_stray_error(&self.device, error);
    }

    /// Free them all.
    pub(super) fn clear(&self) {
        let device = std::mem::take(&mut *lock(&self.device_buffers));
        let pinned = std::mem::take(&mut *lock(&self.pinned_buffers));
        drop((device, pinned)); // outside of the locks, since it calls the driver
    }
}

/// The smallest that is large enough, since the others may fit another input or output. Where none
/// fits what is asked for now, all are freed: the next run will ask for the same.
fn take<B>(shelf: &Mutex<Vec<B>>, bytes: usize, len: impl Fn(&B) -> usize) -> Option<B> {
    let mut buffers = lock(shelf);
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

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
