//! Device buffers that track their uses.
//!
//! ```text
//!   buffer           DeviceBuf: a buffer, and ways to get one
//!   slice            DeviceSlice, DeviceSliceMut: sub-ranges, tracked with their buffer
//!   tracked_memory   the memory of a buffer with the ledger of its uses; a Touch is one use
//!   allocation       DeviceMemory: one allocation, freed the way it was made
//!   cache            memory of dropped buffers, kept for reuse
//! ```

mod allocation;
mod buffer;
mod cache;
mod slice;
mod tracked_memory;

pub(crate) use self::allocation::{DeviceMemory, Owner};
pub use self::buffer::DeviceBuf;
pub(crate) use self::cache::DeviceMemoryCache;
pub use self::slice::{DeviceSlice, DeviceSliceMut};
pub(crate) use self::tracked_memory::DeviceRegion;
pub use self::tracked_memory::Touch;
