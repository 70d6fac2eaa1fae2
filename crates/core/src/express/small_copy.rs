//! Small copies: the calling thread stages them alone, in one slot.

use std::mem::ManuallyDrop;

use pinlane_driver::DevicePtr;

use super::ring::{LostOnUnwind, Ring, Slot};
use super::staged_copy::{download_op, upload_op};
use crate::memory::Touch;
use crate::stream::SubmitError;
use crate::{Result, Stream};

/// Copies up to this size use small slots, so that a few bytes do not pin megabytes.
pub(super) const SMALL_SLOT_BYTES: usize = 16 << 10;

/// Small uploads in flight before one waits for another.
pub(super) const SMALL_SLOTS: usize = 64;

/// Stages `source` and submits its copy. Returns once the source may be reused, whatever the stream
/// still has to do.
pub(super) fn upload(
    ring: &Ring,
    slot: Slot,
    stream: &Stream,
    touch: &Touch<'_>,
    source: &[u8],
    target: DevicePtr,
) -> Result<()> {
    let bytes = source.len();
    // SAFETY: the slot holds as many bytes, and nothing else uses it.
    unsafe { source.as_ptr().copy_to_nonoverlapping(slot.at(0), bytes) };
    let copy = upload_op(slot.at(0), target, bytes);
    let mut slot = ManuallyDrop::new(slot); // leaked if the driver panics
    let counted = LostOnUnwind(ring);
    let submitted = stream.submit(std::slice::from_ref(touch), |driver, stream| {
        // SAFETY: both ends hold that many bytes. The slot is kept until the fence has fired, and
        // the ledger protects the device memory.
        unsafe { driver.copy_async(copy, stream) }
    });
    std::mem::forget(counted);
    let submitted = submitted.map(|fence| slot.in_use_until(fence));
    after_submission(ring, slot, submitted).map(|slot| ring.give_back(slot))
}

/// Copies into the slot, waits, and copies from there to `target`.
pub(super) fn download(
    ring: &Ring,
    slot: Slot,
    stream: &Stream,
    touch: &Touch<'_>,
    source: DevicePtr,
    target: &mut [u8],
) -> Result<()> {
    let bytes = target.len();
    let copy = download_op(source, slot.at(0), bytes);
    let slot = ManuallyDrop::new(slot); // leaked if the driver panics
    let counted = LostOnUnwind(ring);
    let done = stream.submit_and_drain(std::slice::from_ref(touch), |driver, stream| {
        // SAFETY: both ends hold that many bytes, and are kept until the copy is done.
        unsafe { driver.copy_async(copy, stream) }
    });
    std::mem::forget(counted);
    let slot = after_submission(ring, slot, done)?;
    // SAFETY: the device has filled that many bytes and no longer uses them.
    unsafe {
        slot.at(0)
            .copy_to_nonoverlapping(target.as_mut_ptr(), bytes)
    };
    ring.give_back(slot);
    Ok(())
}

/// The slot after a submission. On an error it has returned to the ring, or is leaked if the device
/// may still use it.
fn after_submission(
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
