//! Buffers. Each is freed exactly once, the way it was allocated, after its last use.
//!
//! ```text
//!   budget       Budget       limit on page-locked memory
//!   pinning      Block        page-locked memory, allocated the fastest way
//!   pinned       PinnedBuf    a block for elements of one type; reads and writes like a slice
//!     write_combined          written by the CPU, never read
//!     mapped     MappedBuf    also accessible to kernels
//!   pool         PinnedPool   reusable pinned memory, without driver calls
//!   to_pinned    ToPinned     copies into fresh pinned memory
//!   registered   Registered   ordinary memory, page-locked in place
//!   stable_memory             contract for memory to be page-locked in place
//!   part         Part         an owned sub-range, for partial transfers
//!   pinned_slice PinnedSlice  a borrowed sub-range, for scopes
//!   device       DeviceBuf    device memory, and its typed sub-ranges
//!   buffer_traits             contracts for buffers to take part in a transfer
//!   buffer_macros             what pinned buffers and slices have in common
//!   prefault                  faults in the caller's memory before it is written
//! ```

mod budget;
mod buffer_macros;
mod buffer_traits;
mod device;
mod mapped;
mod part;
mod pinned;
mod pinned_slice;
mod pinning;
mod pool;
mod prefault;
mod registered;
mod stable_memory;
mod to_pinned;
mod write_combined;

pub(crate) use budget::PendingMemory;
#[doc(hidden)]
pub use budget::available_bytes;
pub use budget::{Budget, ControlGroups, GroupMemory, Reservation};
pub use buffer_traits::{PinnedFor, PinnedSource, PinnedTarget};
#[cfg(feature = "cudarc")]
pub(crate) use device::Owner;
#[doc(hidden)]
pub use device::Touch;
pub use device::{DeviceBuf, DeviceSlice, DeviceSliceMut};
pub(crate) use device::{DeviceMemory, DeviceMemoryCache, DeviceRegion};
pub use mapped::MappedBuf;
pub use part::Part;
pub use pinned::PinnedBuf;
pub use pinned_slice::{PinnedSlice, PinnedSliceMut};
pub(crate) use pool::{DeviceStore, MakeRoom};
pub use pool::{HostBuf, PinnedPool, PoolBuf, PoolBuilder, PoolStats};
pub(crate) use prefault::{is_fresh, prefault, prefer_huge_pages};
pub use registered::Registered;
pub use stable_memory::{ReadOnly, StableMemory, StableMemoryMut};
pub use to_pinned::ToPinned;
pub use write_combined::{WriteCombinedBuf, WriteCombinedSink};

use std::ops::{Bound, Range, RangeBounds};
use std::sync::LazyLock;

use crate::{Error, Result};

/// Alignment of pinned memory: the smallest page size.
pub(crate) const PAGE_BYTES: usize = 4096;

/// The system's page size, the unit of page-locking. Larger than 4096 on some systems.
#[doc(hidden)]
pub fn page_bytes() -> usize {
    static PAGE: LazyLock<usize> = LazyLock::new(|| {
        // SAFETY: `sysconf` only queries.
        let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(bytes).unwrap_or(0).max(PAGE_BYTES)
    });
    *PAGE
}

/// Checks that page-aligned memory is aligned enough for elements of this type.
#[doc(hidden)]
pub fn check_align<T>() -> Result<()> {
    let align = align_of::<T>();
    if align > PAGE_BYTES {
        return Err(Error::TooAligned { align });
    }
    Ok(())
}

/// Size of `len` elements in bytes, if it fits the address space.
pub(crate) fn bytes_of<T>(len: usize) -> Result<usize> {
    let element_bytes = size_of::<T>();
    len.checked_mul(element_bytes)
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or(Error::TooLarge { len, element_bytes })
}

/// Extends `values` with zeros to `len` elements.
pub(crate) fn extend_with_zeros<T: bytemuck::Pod>(values: &mut Vec<T>, len: usize) {
    if size_of::<T>() > 0 {
        return values.resize(len, T::zeroed());
    }
    // `resize` would count to `len`, which may be `usize::MAX`.
    // SAFETY: elements of no bytes have room for any number, and nothing that could be uninitialised.
    unsafe { values.set_len(len) };
}

/// Resolves a range of a buffer of `len` elements.
///
/// # Panics
/// If the range is out of bounds.
pub(crate) fn resolve(range: impl RangeBounds<usize>, len: usize) -> Range<usize> {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&start) => start.checked_add(1).expect("range overflows"),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&end) => end.checked_add(1).expect("range overflows"),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => len,
    };
    assert!(
        start <= end && end <= len,
        "range {start}..{end} of a buffer of {len}"
    );
    start..end
}
