//! Pinned memory to take and give back without asking the driver each time.
//!
//! ```text
//!   PinnedPool       what users hold                                       (this file)
//!   buffer           PoolBuf: one block, returned to the pool when dropped
//!   host_buf         HostBuf: a block, or pageable memory
//!   store            takes, grows, trims
//!     shard          free blocks behind one lock; each thread has its own shard
//!     slabs          the memory that blocks are cut from; the pool with all shards locked
//!     block_sizes    which sizes there are
//! ```
//!
//! A thread takes from its own shard and returns to it, so threads do not contend. Only if that shard is
//! empty are the others searched, and only if all are empty is memory pinned. Taking and returning write
//! nothing else: statistics are kept per shard and summed on request.

mod block_sizes;
mod buffer;
mod host_buf;
mod shard;
mod slabs;
mod store;
#[cfg(test)]
mod tests;

pub use buffer::PoolBuf;
pub use host_buf::HostBuf;

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytemuck::Pod;

use self::store::{BlockSizes, Clock, Limits, ShardRefs, Store};
use super::{bytes_of, check_align};
use crate::device::Shared;
use crate::device_core::DeviceCore;
use crate::{Device, Result};

/// Pinned memory that is reused. Cheap to clone; all clones are the same pool.
///
/// Pinning takes milliseconds, taking a block that is there well under a microsecond, also when
/// many threads do. Blocks come in sizes with eight steps from each power of two to the next, so that at most an eighth of a
/// block is wasted; the smallest is a cache line of 64 bytes, and up to 512 bytes the sizes are
/// whole lines. Small blocks are cut from slabs of 2 MiB, those above 256 KiB are pinned singly.
/// They are aligned to 64 bytes, or to more where the elements need it, and portable: every device
/// of the process may use them.
///
/// A block that is in flight when it is dropped comes back when it has landed, never before.
///
/// ```
/// # fn main() -> pinlane::Result<()> {
/// # let device = pinlane::Device::sim("pcie3-x16")?;
/// # let stream = device.stream()?;
/// use pinlane::PinnedPool;
///
/// let pool = PinnedPool::new(&device);
/// let mut on_device = device.alloc::<f32>(1000)?;
/// for batch in 0..10 {
///     let mut buffer = pool.take::<f32>(1000)?; // values are unspecified
///     buffer.fill(batch as f32);
///     drop(stream.upload(buffer, &mut on_device)?); // comes back by itself
/// }
/// # stream.synchronize()?;
/// assert_eq!(pool.stats().hits + pool.stats().misses, 10);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PinnedPool {
    shard_refs: Arc<ShardRefs>,
}

/// What a pool holds, and how it did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct PoolStats {
    /// Blocks that are out, in bytes.
    pub in_use_bytes: u64,
    /// Blocks that are idle, in bytes.
    pub cached_bytes: u64,
    /// The most that was out at a time, in bytes.
    pub high_water_bytes: u64,
    /// Blocks that were there when they were asked for.
    pub hits: u64,
    /// Times that memory had to be pinned.
    pub misses: u64,
    /// Memory that the pool has page-locked: whole pages.
    pub pinned_bytes: u64,
}

/// Sets up a pool.
#[derive(Debug)]
#[must_use = "a pool is made by `build`"]
pub struct PoolBuilder<'a> {
    device: &'a Device,
    limits: Limits,
}

impl PoolBuilder<'_> {
    /// No more than this much stays idle. What is more is freed when a block comes back, as far
    /// as whole slabs are idle.
    pub fn idle_bytes_max(mut self, bytes: u64) -> Self {
        self.limits.idle_bytes_max = Some(bytes);
        self
    }

    /// Memory that was idle for longer is freed when next a block is taken or given back.
    pub fn idle_time_max(mut self, time: Duration) -> Self {
        self.limits.idle_time_max = Some(time);
        self
    }

    /// The pool. Nothing is pinned yet.
    #[must_use]
    pub fn build(self) -> PinnedPool {
        self.build_with(clock())
    }

    fn build_with(self, clock: Clock) -> PinnedPool {
        let shared = &self.device.shared;
        PinnedPool::from_store(Store::new(
            &shared.core,
            Arc::downgrade(shared),
            BlockSizes::Rounded,
            self.limits,
            clock,
        ))
    }
}

impl PinnedPool {
    /// A pool that keeps what it has until it is trimmed, dropped, or in need of room itself.
    #[must_use]
    pub fn new(device: &Device) -> Self {
        Self::builder(device).build()
    }

    /// A pool with limits on idle memory.
    pub fn builder(device: &Device) -> PoolBuilder<'_> {
        PoolBuilder {
            device,
            limits: Limits::default(),
        }
    }

    /// A block for `len` elements. Their values are unspecified.
    ///
    /// Where there is none, memory is pinned. Where that would go over the budget, idle memory of
    /// the device and of the pool is freed first; if that is not enough the error is
    /// [`OverBudget`](crate::Error::OverBudget).
    pub fn take<T: Pod>(&self, len: usize) -> Result<PoolBuf<T>> {
        check_align::<T>()?;
        let shard_ref = self.shard_refs.own();
        let taken = match bytes_of::<T>(len)? {
            0 => None,
            // A size that is a multiple of the alignment has blocks that are, too.
            bytes => Some(shard_ref.store.take(bytes)?),
        };
        Ok(PoolBuf::new(Arc::clone(shard_ref), taken, len))
    }

    /// As [`take`](Self::take), but over the budget wait up to `timeout` for a block to come back
    /// or for others to unpin memory.
    pub fn take_within<T: Pod>(&self, len: usize, timeout: Duration) -> Result<PoolBuf<T>> {
        let budget = &self.store().core.budget;
        budget.retry_within(timeout, || self.take(len))
    }

    /// As [`take`](Self::take), but ordinary memory where no more can be pinned: over the budget,
    /// or when the driver is out of memory. The first time in a process, a warning is logged.
    pub fn take_or_pageable<T: Pod>(&self, len: usize) -> Result<HostBuf<T>> {
        HostBuf::or_pageable(self.take(len), len)
    }

    /// Frees idle memory until at most `keep_bytes` of it are left, longest idle first. Slabs go
    /// when all their blocks are idle.
    pub fn trim(&self, keep_bytes: u64) {
        self.store().trim(keep_bytes);
    }

    /// What the pool holds right now, and how it did so far.
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        self.store().stats()
    }

    /// A pool whose blocks have exactly the size that was asked for.
    pub(crate) fn exact(device: &Device) -> Self {
        let shared = &device.shared;
        Self::of_device(&shared.core, Arc::downgrade(shared))
    }

    /// The device's own pool. Blocks have exactly the size that was asked for.
    pub(crate) fn of_device(core: &Arc<DeviceCore>, device: Weak<Shared>) -> Self {
        let limits = Limits::default();
        Self::from_store(Store::new(core, device, BlockSizes::Exact, limits, clock()))
    }

    fn from_store(store: Store) -> Self {
        Self {
            shard_refs: Arc::new(ShardRefs::new(store)),
        }
    }

    /// An idle block for at least as many bytes as the range starts with, and at most as many as it
    /// ends with.
    pub(crate) fn take_idle(&self, bytes: RangeInclusive<usize>) -> Option<PoolBuf<u8>> {
        let shard_ref = self.shard_refs.own();
        let len = *bytes.start();
        let taken = shard_ref.store.take_idle(bytes)?;
        Some(PoolBuf::new(Arc::clone(shard_ref), Some(taken), len))
    }

    /// Free all idle blocks. How many bytes.
    pub(crate) fn free_idle(&self) -> u64 {
        self.store().free_idle(u64::MAX)
    }

    fn store(&self) -> &Arc<Store> {
        &self.shard_refs.own().store
    }
}

/// Nanoseconds since now.
fn clock() -> Clock {
    let start = Instant::now();
    Box::new(move || start.elapsed().as_nanos() as u64)
}

impl fmt::Debug for PinnedPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PinnedPool").field(&self.stats()).finish()
    }
}
