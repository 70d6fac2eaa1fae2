//! Small copies: the caller stages them alone, in one slot.

use std::mem::ManuallyDrop;

use pinlane_driver::{CopyOp, DevicePtr};

use super::dock;
use super::haul::{Haul, Stores};
use super::ring::{LostOnUnwind, Ring, Slot};
use crate::memory::Touch;
use crate::stream::SubmitError;
use crate::{Result, Stream};

/// Copies up to this size have slots of their own, so that a few bytes do not pin megabytes.
pub(crate) const POCKET_BYTES: usize = 16 << 10;

/// Uploads in flight, before one waits for another.
pub(crate) const POCKETS: usize = 64;

/// Stage `source` and submit its copy. Returns once the source may be reused, whatever the stream
/// still has to do.
pub(crate) fn upload(
    ring: &Ring,
    slot: Slot,
    stream: &Stream,
    touch: &Touch<'_>,
    source: &[u8],
    target: DevicePtr,
) -> Result<()> {
    // SAFETY: the slot holds as many bytes, and nobody else uses it.
    unsafe { Haul::Copy.carry(source.as_ptr(), slot.start(), source.len(), Stores::Cached) };
    let copy = dock::to_device(slot.start(), target, source.len());
    let mut slot = ManuallyDrop::new(slot); // kept by a panic of the driver's
    let counted = LostOnUnwind(ring);
    let submitted = stream.submit(std::slice::from_ref(touch), |driver, stream| {
        // SAFETY: both ends hold that many bytes; the slot is kept until the fence has fired, the
        // device memory by its books.
        unsafe { driver.copy_async(copy, stream) }
    });
    std::mem::forget(counted);
    let submitted = submitted.map(|fence| slot.in_use_until(fence));
    back_to(ring, slot, submitted).map(|slot| ring.give_back(slot))
}

/// Copy into the slot, wait, and copy from there to `target`.
pub(crate) fn download(
    ring: &Ring,
    slot: Slot,
    stream: &Stream,
    touch: &Touch<'_>,
    source: DevicePtr,
    target: &mut [u8],
) -> Result<()> {
    let copy: CopyOp = dock::to_host(source, slot.start(), target.len());
    let slot = ManuallyDrop::new(slot); // kept by a panic of the driver's
    let counted = LostOnUnwind(ring);
    let done = stream.submit_and_drain(std::slice::from_ref(touch), |driver, stream| {
        // SAFETY: both ends hold that many bytes, and are kept until the copy is done.
        unsafe { driver.copy_async(copy, stream) }
    });
    std::mem::forget(counted);
    let slot = back_to(ring, slot, done)?;
    let (start, bytes) = (target.as_mut_ptr(), target.len());
    // SAFETY: the device has filled that many bytes and let go of them.
    unsafe { Haul::Copy.carry(slot.start(), start, bytes, Stores::Cached) };
    ring.give_back(slot);
    Ok(())
}

/// The slot after a submission. On an error it has gone back to the ring, or stays where it is for
/// good if nobody can tell whether the device still uses it.
fn back_to(
    ring: &Ring,
    slot: ManuallyDrop<Slot>,
    submitted: std::result::Result<(), SubmitError>,
) -> Result<Slot> {
    match submitted {
        Ok(()) => Ok(ManuallyDrop::into_inner(slot)),
        Err(SubmitError::Refused(error)) => {
            ring.give_back(ManuallyDrop::into_inner(slot));
            Err(error)
        }
        Err(SubmitError::Stranded(error)) => {
            ring.lost_one();
            Err(error)
        }
    }
}
