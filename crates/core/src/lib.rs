//! Devices, streams, buffers, transfers and the express lane. Use them through the `pinlane` crate.
//!
//! Copies between host and GPU are fast from page-locked ("pinned") memory, and easy to get wrong:
//! a buffer refilled while its copy is in flight is silently corrupt. Here the compiler and the
//! types see to it that this cannot be written:
//!
//! - An asynchronous copy takes pinned or registered memory, never a plain slice.
//! - It owns the buffer ([`Transfer`]) and gives it back when it is done, on failure too; or it
//!   borrows it inside a closure that does not end before it ([`Device::scope`]).
//! - What was allocated is freed, what was registered is unregistered, once, after its last use.
//! - A [`DeviceBuf`] knows who reads and writes it, so that streams wait for each other where they
//!   must, and only there.
//! - Every error surfaces where it belongs.
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
//!   Device ── Stream ── Transfer<B> ── your buffer again
//!      │         └───── launch, copies, waits
//!      ├── PinnedBuf  Registered  WriteCombinedBuf  MappedBuf     host memory   (memory/)
//!      ├── PinnedPool ── PoolBuf                                  the same, reused
//!      ├── Budget                                                 how much may be page-locked
//!      └── DeviceBuf  DeviceSlice  DeviceSliceMut                 device memory (memory/)
//!   protocol/   the rules of all this, free of any GPU
//! ```

#![warn(missing_debug_implementations)]

mod builtin;
mod completed;
mod completion_notifier;
mod copy;
mod device;
mod device_core;
mod error;
mod event;
mod express;
mod fence;
mod helpers;
#[doc(hidden)]
pub mod internal;
#[cfg(feature = "cudarc")]
pub mod interop;
pub mod kernel;
mod mapped_copies;
pub mod memory;
mod normalize;
mod open;
mod protocol;
pub mod raw;
mod scope;
mod stopwatch;
mod stream;
mod submit;
mod sync;
mod transfer;
mod upload_pieces;

/// Keeps other crates from implementing traits that only have a meaning here.
mod sealed {
    pub trait Sealed {}
}

pub(crate) use sealed::Sealed;

pub use builtin::Builtin;
pub use bytemuck::Pod;
pub use completed::Completed;
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
