//! Who owns what, and until when: the protocol of transfers, free of any GPU.
//!
//! ```text
//!   Flight   buffer + fence: gives the buffer back once the fence has fired
//!     | dropped before that
//!   Lot      keeps the buffer until the fence has fired, at the latest to shutdown
//!   Slots    numbered things claimed by one owner at a time (events)
//!   Completion   tells a task, once, that the fence has fired
//!   SharedSlot   a buffer that several threads fill; the last one gets it
//!   Ledger   last writer and all readers of each range of a device buffer
//! ```
//!
//! Nothing here knows a driver; a [`Fence`] is all it needs. That is why loom and miri can run it.

mod completion;
mod extent;
mod fence;
mod flight;
mod ledger;
mod lot;
mod shared_slot;
mod slots;

#[cfg(all(test, loom))]
mod loom_models;
#[cfg(test)]
mod test_fence;
#[cfg(all(test, not(loom)))]
mod tests;

pub(crate) use completion::Completion;
pub(crate) use extent::Extent;
pub(crate) use fence::{Fence, Settled};
pub(crate) use flight::{Flight, Landed};
pub(crate) use ledger::{Access, Ledger};
pub(crate) use lot::Lot;
pub use shared_slot::{Claim, SharedSlot, SlotMemory, Stride};
pub(crate) use slots::Slots;
