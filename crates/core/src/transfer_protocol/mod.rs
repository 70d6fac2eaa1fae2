//! Who owns a buffer, and until when: the transfer protocol, independent of any GPU.
//!
//! ```text
//!   InFlight       a buffer and its fence: returns the buffer once the fence has fired
//!     | dropped before that
//!   DeferredFree   keeps the buffer until the fence has fired, at most until shutdown
//!   ReleaseQueue   keeps a value until a wait for the whole device that began after it was queued
//!   FreeList       idle events and streams, each claimed by one owner at a time
//!   Completion     notifies a task, once, that the fence has fired
//!   SharedSlot     a buffer that several threads fill; the last one gets it
//!   Ledger         last writer and all readers of each range of a device buffer
//! ```
//!
//! This code needs a [`Fence`] but no driver, so loom and miri can run it.

mod access_ledger;
mod completion;
mod deferred_free;
mod fence;
mod handle_free_list;
mod in_flight_buffer;
mod release_queue;
mod slot_filling;

#[cfg(all(test, loom))]
mod loom_models;
#[cfg(test)]
mod test_fence;
#[cfg(all(test, not(loom)))]
mod tests;

pub(crate) use access_ledger::{Access, Extent, Ledger};
pub(crate) use completion::Completion;
pub(crate) use deferred_free::DeferredFree;
pub(crate) use fence::{Fence, Settled};
pub(crate) use handle_free_list::FreeList;
pub(crate) use in_flight_buffer::{InFlight, Landed};
pub(crate) use release_queue::ReleaseQueue;
pub use slot_filling::{Claim, SharedSlot, SlotMemory, Stride};
