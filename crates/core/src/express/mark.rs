//! Work of the device on a slot, and the fence behind it.

use std::mem::ManuallyDrop;

use super::ring::Slot;
use super::share::Share;
use crate::{Result, Stream};

/// Enqueue work that uses `slot`, and give the slot back with the fence behind that work. On an
/// error the slot has gone back to the share, or was left alone for good if nobody can tell whether
/// the device still uses it.
pub(crate) fn mark(
    stream: &Stream,
    share: &Share<'_>,
    slot: Slot,
    enqueue: impl FnOnce(&mut Slot) -> Result<()>,
) -> Result<Slot> {
    let mut slot = ManuallyDrop::new(slot); // kept by a panic of the driver's
    let counted = share.lost_on_unwind();
    let fence = match stream.shared().events.claim() {
        Ok(fence) => fence,
        Err(error) => {
            std::mem::forget(counted);
            share.put(ManuallyDrop::into_inner(slot));
            return Err(error.into());
        }
    };
    let enqueued = enqueue(&mut slot);
    let recorded = fence.record(stream.handle());
    std::mem::forget(counted);
    let mut slot = ManuallyDrop::into_inner(slot);
    let error = match (enqueued, recorded) {
        (enqueued, Ok(fence)) => {
            slot.in_use_until(fence);
            match enqueued {
                Ok(()) => return Ok(slot),
                Err(error) => error,
            }
        }
        (enqueued, Err(unmarked)) => {
            let let_go = unmarked.is_fatal() || stream.drains();
            let error = match enqueued {
                Ok(()) => unmarked.into(),
                Err(error) => {
                    stream.shared().core.keep_stray(unmarked);
                    error
                }
            };
            if !let_go {
                slot.give_up();
            }
            error
        }
    };
    if slot.is_given_up() {
        std::mem::forget(slot);
        share.lost_one();
    } else {
        share.put(slot);
    }
    Err(error)
}
