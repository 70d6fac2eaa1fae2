//! A stream beside the caller's.
//!
//! Copies into scratch memory need not wait for what the caller's stream is at: scratch memory is
//! ours. On a stream of their own they follow each other without a gap, while the kernels that
//! bring the bytes to their places run on the caller's stream.

use std::sync::Arc;

use pinlane_driver::{CopyOp, StreamFlags, StreamHandle};

use super::ring::Slot;
use crate::device_core::DeviceCore;
use crate::{Result, Stream};

/// The stream, destroyed on drop.
pub(crate) struct Side {
    link: Arc<DeviceCore>,
    handle: StreamHandle,
}

impl Side {
    pub(crate) fn open(link: &Arc<DeviceCore>) -> Result<Self> {
        let flags = StreamFlags {
            non_blocking: true,
            ..StreamFlags::default()
        };
        Ok(Self {
            handle: link.driver.stream_create(flags)?,
            link: Arc::clone(link),
        })
    }

    /// Copy between the slot and its scratch memory here, and let all later work of `stream` wait
    /// for it. On an error the copy is over, or the slot is given up.
    ///
    /// # Safety
    /// The slot and its scratch memory are used by nothing else until work of `stream` that is
    /// submitted behind this is done.
    pub(crate) unsafe fn copy_ahead_of(
        &self,
        stream: &Stream,
        slot: &mut Slot,
        copy: CopyOp,
    ) -> Result<()> {
        let fence = stream.shared().events.claim()?;
        let driver = &self.link.driver;
        // SAFETY: the caller's.
        unsafe { driver.copy_async(copy, self.handle)? };
        let joined = fence
            .record(self.handle)
            .and_then(|fence| driver.stream_wait_event(stream.handle(), fence.event()));
        if let Err(error) = joined {
            if !error.is_fatal() && !self.link.drains(self.handle) {
                slot.give_up();
            }
            return Err(error.into());
        }
        Ok(())
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // SAFETY: created by `open`, and nobody submits to it any more. What is in it still runs.
        self.link
            .give_back(|driver| unsafe { driver.stream_destroy(self.handle) });
    }
}
