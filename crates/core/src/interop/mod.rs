//! Memory and streams shared with other libraries, without copying.
//!
//! ```text
//!   their stream    Stream::from_raw
//!   their memory    DeviceBuf::from_raw, for good; LentBuf, for a while
//!   pinned memory   LentPinned: its owner is kept until the copy is done
//!   our memory, on streams that are not known here    Device::release_when_idle
//!   cudarc          memory both ways, safely, and our streams for it; feature `cudarc`
//! ```

#[cfg(feature = "cudarc")]
pub mod cudarc;
mod lent_memory;
mod lent_pinned;

pub use lent_memory::LentBuf;
pub use lent_pinned::LentPinned;

use crate::Error;
use crate::device::Shared;
use crate::driver_handles::StreamRef;
use crate::fence::DeviceFence;
use crate::submit::{abort_over_borrowed, settle_borrowed};

/// Makes a stream of the owner wait for our uses of its memory.
fn wait_for_all(stream: StreamRef<'_>, uses: &[DeviceFence]) -> pinlane_driver::Result<()> {
    let mut running = uses.iter().filter(|fence| !fence.known_done());
    running.try_for_each(|fence| stream.wait_for(fence.event()))
}

/// Waits for our uses of memory that returns to its owner, because the owner's stream could not be made to
/// wait. Aborts the process if there is no way to tell when they end (`uses` is `None`).
fn wait_on_host(shared: &Shared, uses: Option<&[DeviceFence]>, error: &Error) {
    match (error, uses) {
        // A dead device uses nothing.
        (Error::Driver(error), _) if error.is_fatal() => {}
        (_, Some(uses)) => {
            for error in uses.iter().filter_map(|fence| settle_borrowed(fence).err()) {
                shared.core.keep_stray(error);
            }
        }
        (error, None) => abort_over_borrowed(error),
    }
}
