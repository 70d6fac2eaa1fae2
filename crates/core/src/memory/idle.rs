//! Idle pinned buffers, kept for the next user.

use std::sync::Mutex;

use crate::PinnedBuf;
use crate::sync::lock;

/// Pinned buffers that are not in use. A device keeps one list, and frees it when the budget refuses
/// another buffer.
#[derive(Default, Debug)]
pub struct IdleBuffers(Mutex<Vec<PinnedBuf<u8>>>);

impl IdleBuffers {
    /// Takes a buffer of exactly this size.
    pub fn take(&self, bytes: usize) -> Option<PinnedBuf<u8>> {
        let mut idle = lock(&self.0);
        let at = idle.iter().position(|buffer| buffer.len() == bytes)?;
        Some(idle.swap_remove(at))
    }

    /// Keeps a buffer for the next user.
    pub fn put(&self, buffer: PinnedBuf<u8>) {
        lock(&self.0).push(buffer);
    }

    /// Bytes of all idle buffers.
    pub fn bytes(&self) -> u64 {
        lock(&self.0).iter().map(|buffer| buffer.len() as u64).sum()
    }

    /// Frees all idle buffers and returns their bytes.
    pub fn clear(&self) -> usize {
        let buffers = std::mem::take(&mut *lock(&self.0));
        buffers.iter().map(|buffer| buffer.len()).sum()
    }
}
