//! Devices, streams, buffers, transfers and the express lane. Use them through the `pinlane` crate.
//!
//! Copies between host and GPU are fast from page-locked ("pinned") memory, and easy to get wrong: refilling
//! a buffer while its copy is in flight silently corrupts the data. Here such code does not compile:
//!
//! - An asynchronous copy takes pinned or registered memory, never a plain slice.
//! - It owns the buffer ([`Transfer`]) and returns it when it is done, on failure too; or it borrows the
//!   buffer inside a closure that outlives the copy ([`Device::scope`]).
//! - Every allocation is freed and every registration undone exactly once, after its last use.
//! - A [`DeviceBuf`] tracks its readers and writers, so streams wait for each other only where they must.
//! - Every error is returned by the call it belongs to.
//!
//! ```
//! # fn main() -> pinlane::Result<()> {
//! use pinlane::Device;
//!
//! let device = Device::sim("pcie3-x16")?; // a simulated GPU; `Device::cuda(0)?` opens a real one
//! let stream = device.stream()?;
//!
//! let mut on_device = device.alloc::<u32>(1 << 20)?;
//! let numbers = device.pinned_from(&(0..1 << 20).collect::<Vec<u32>>())?;
//! let there = stream.upload(numbers, &mut on_device)?; // returns at once
//! // … the CPU is free for other work here …
//! let numbers = there.wait()?; // the buffer is ours again
//!
//! let back = stream.download(&on_device, numbers)?.wait()?;
//! assert_eq!(back[12345], 12345);
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//!   Device ── Stream ── Transfer<B> ── your buffer, returned
//!      │         └───── launch, copies, waits
//!      ├── PinnedBuf  Registered  WriteCombinedBuf  MappedBuf     host memory   (memory/)
//!      ├── PinnedPool ── PoolBuf                                  reusable host memory
//!      ├── Budget                                                 how much may be page-locked
//!      └── DeviceBuf  DeviceSlice  DeviceSliceMut                 device memory (memory/)
//!   transfer_protocol/   ownership rules, independent of any GPU
//! ```

#![warn(missing_debug_implementations)]

mod builtin_kernels;
mod clock_aware_threads;
mod completion_future;
mod completion_notifier;
mod device;
mod device_core;
mod driver_copy;
mod driver_handles;
mod error;
mod event;
mod express;
mod fence;
mod fork;
mod helper_threads;
#[doc(hidden)]
pub mod internal;
pub mod interop;
pub mod kernel;
mod local_ranks;
mod logging;
mod mapped_copies;
pub mod memory;
mod normalize;
mod open;
mod parse_number;
pub mod raw;
mod release_when_idle;
mod scope;
mod signal_mask;
mod stopwatch;
mod stream;
mod submit;
mod sync;
mod transfer;
mod transfer_protocol;
mod unwind;
mod wake_threads;

/// Keeps other crates from implementing traits that only make sense here.
mod sealed {
    pub trait Sealed {}
}

pub(crate) use sealed::Sealed;

pub use builtin_kernels::Builtin;
pub use bytemuck::Pod;
pub use completion_future::Completed;
pub use device::{Device, DeviceStats};
pub use error::{Error, ErrorKind, RegisterError, Result, TransferError};
pub use event::Event;
pub use express::{Conversion, ExpressConfig, F32ToBf16, F32ToF16, U8ToF32};
pub use kernel::{Kernel, Module};
pub use mapped_copies::MappedCopies;
pub use memory::{
    Budget, DeviceBuf, DeviceSlice, DeviceSliceMut, HostBuf, MappedBuf, Part, PinnedBuf,
    PinnedPool, PinnedSlice, PinnedSliceMut, PinnedSource, PinnedTarget, PoolBuf, PoolBuilder,
    PoolStats, ReadOnly, Registered, Reservation, StableMemory, StableMemoryMut, ToPinned,
    WriteCombinedBuf, WriteCombinedSink,
};
pub use normalize::{Normalize, NormalizeTarget, Normalizer};
pub use pinlane_driver::{
    DeviceInfo, DevicePtr, LaunchShape, MemoryInfo, PciAddress, Platform, PointerKind, StreamFlags,
};
pub use scope::{Scope, ScopedTransfer};
pub use stopwatch::{Stopwatch, Timed};
pub use stream::Stream;
pub use transfer::Transfer;
