//! Small copies: the caller stages them alone, in a slot of their own size.

use std::mem::ManuallyDrop;

use pinlane_driver::{CopyOp, DevicePtr};

use super::Express;
use super::dock;
use super::haul::{Haul, Stores};
use super::ring::Slot;
use crate::memory::Touch;
use crate::stream::SubmitError;
use crate::{Result, Stream};

/// Copies up to this size. Uploads are as fast as the driver's own, and do not wait for what the
/// stream holds; downloads are a little faster.
pub(crate) const POCKET_BYTES: usize = 16 << 10;

/// Uploads in flight, before one waits for the oldest.
pub(crate) const POCKETS: usize = 64;

impl Express {
    /// Returns once the source may be reused.
    pub(crate) fn upload_small(
        &self,
        slot: Slot,
        stream: &Stream,
        touch: &Touch<'_>,
        source: &[u8],
        target: DevicePtr,
    ) -> Result<()> {
        // SAFETY: the slot holds as many bytes, and nobody else uses it.
        unsafe { Haul::Copy.carry(source.as_ptr(), slot.start(), source.len(), Stores::Cached) };
        let copy = dock::to_device(slot.start(), target, source.len());
        let slot = self.send_pocket(slot, stream, touch, copy)?;
        self.pockets.give_back(slot);
        Ok(())
    }

    /// Returns once the bytes are there.
    pub(crate) fn download_small(
        &self,
        slot: Slot,
        stream: &Stream,
        touch: &Touch<'_>,
        source: DevicePtr,
        target: &mut [u8],
    ) -> Result<()> {
        let copy = dock::to_host(source, slot.start(), target.len());
        let slot = self.send_pocket(slot, stream, touch, copy)?;
        let slot = self.pockets.settled(slot)?;
        let stores = Stores::Cached;
        // SAFETY: the device has filled that many bytes and let go of them.
        unsafe { Haul::Copy.carry(slot.start(), target.as_mut_ptr(), target.len(), stores) };
        self.pockets.give_back(slot);
        Ok(())
    }

    /// Submit a copy between a pocket and the device. The pocket comes back with its fence; on an
    /// error it has gone back to the others, or stays where it is for good.
    fn send_pocket(
        &self,
        slot: Slot,
        stream: &Stream,
        touch: &Touch<'_>,
        copy: CopyOp,
    ) -> Result<Slot> {
        let mut slot = ManuallyDrop::new(slot); // kept by a panic of the driver's
        let submitted = stream.submit(std::slice::from_ref(touch), |driver, stream| {
            // SAFETY: both ends hold that many bytes; the slot is kept until the fence has fired,
            // the device memory by its books.
            unsafe { driver.copy_async(copy, stream) }
        });
        match submitted {
            Ok(fence) => {
                slot.in_use_until(fence);
                Ok(ManuallyDrop::into_inner(slot))
            }
            Err(SubmitError::Refused(error)) => {
                self.pockets.give_back(ManuallyDrop::into_inner(slot));
                Err(error)
            }
            Err(SubmitError::Stranded(error)) => {
                self.pockets.lost_one(); // and its memory stays
                Err(error)
            }
        }
    }
}
