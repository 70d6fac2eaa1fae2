//! Small copies: the calling thread stages them alone, in one slot.

use pinlane_driver::DevicePtr;

use super::ring::{Ring, Slot};
use crate::driver_copy::{Direction, enqueue};
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
    touch: Touch<'_>,
    source: &[u8],
    target: DevicePtr,
) -> Result<()> {
    let bytes = source.len();
    // SAFETY: the slot holds as many bytes, and nothing else uses it.
    unsafe { source.as_ptr().copy_to_nonoverlapping(slot.at(0), bytes) };
    // SAFETY: both ends hold that many bytes. The slot is kept until the fence has fired, and the
    // ledger protects the device memory.
    let enqueue = unsafe { enqueue(Direction::Upload.copy(slot.at(0), target, bytes)) };
    let slot = submit(ring, slot, |slot| {
        slot.fence = Some(stream.submit(&[touch], enqueue)?);
        Ok(())
    })?;
    ring.give_back(slot);
    Ok(())
}

/// Copies into the slot, waits, and copies from there to `target`.
pub(super) fn download(
    ring: &Ring,
    slot: Slot,
    stream: &Stream,
    touch: Touch<'_>,
    source: DevicePtr,
    target: &mut [u8],
) -> Result<()> {
    let bytes = target.len();
    // SAFETY: both ends hold that many bytes, and are kept until the copy is done.
    let enqueue = unsafe { enqueue(Direction::Download.copy(slot.at(0), source, bytes)) };
    let slot = submit(ring, slot, |_| stream.submit_and_drain(&[touch], enqueue))?;
    let staged = slot.at(0);
    // SAFETY: the device has filled that many bytes and no longer uses them.
    unsafe { staged.copy_to_nonoverlapping(target.as_mut_ptr(), bytes) };
    ring.give_back(slot);
    Ok(())
}

/// Submits work on a slot. On an error the slot has returned to the ring, or is leaked if the device
/// may still use it.
fn submit(
    ring: &Ring,
    slot: Slot,
    call: impl FnOnce(&mut Slot) -> Result<(), SubmitError>,
) -> Result<Slot> {
    let (slot, submitted) = ring.with_slot(slot, call);
    match submitted {
        Ok(()) => Ok(slot),
        Err(SubmitError::Refused(error)) => {
            ring.give_back(slot);
            Err(error)
        }
        Err(SubmitError::Stranded(error)) => {
            ring.leak(slot);
            Err(error)
        }
    }
}
