//! A pool of pinned memory that avoids driver calls.
//!
//! ```text
//!   PinnedPool       what users hold                                       (this file)
//!   buffer           PoolBuf: one block, returned to the pool when dropped; HostBuf: that, or pageable
//!   pool_state       takes, grows, trims
//!     shard          free blocks behind one lock; each thread has its own shard
//!     slabs          the memory that blocks are cut from; the pool with all shards locked
//!     block_sizes    the available block sizes
//! ```
//!
//! A thread takes from its own shard and returns to it, so threads do not contend. Only if that shard is
//! empty are the others searched, and only if all are empty is memory pinned. Taking and returning write
//! nothing else: statistics are kept per shard and summed on request.

mod block_sizes;
mod buffer;
mod pool_state;
mod shard;
mod slabs;
#[cfg(test)]
mod tests;

pub use buffer::{HostBuf, PoolBuf};
pub(crate) use pool_state::{DeviceStore, MakeRoom};

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytemuck::Pod;

use self::pool_state::{BlockSizes, Clock, Limits, ShardRefs, Store};
use super::{bytes_of, check_align};
use crate::device::Shared;
use crate::device_core::DeviceCore;
use crate::{Device, Result};

/// A pool of reusable pinned memory. Cheap to clone; all clones are the same pool.
///
/// Pinning takes milliseconds; taking an idle block takes well under a microsecond, even with many threads.
/// Block sizes have eight steps from each power of two to the next, so at most an eighth of a block is
/// wasted. The smallest is a cache line of 64 bytes, and sizes up to 512 bytes are whole cache lines. Small
/// blocks are cut from slabs of 2 MiB; those above 256 KiB are pinned individually. Blocks are aligned to
/// 64 bytes, or to the element type's alignment if that is larger, and portable: every device of the
/// process may use them.
///
/// A block dropped while in flight returns to the pool once its transfer is done, never earlier.
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
///     drop(stream.upload(buffer, &mut on_device)?); // the block returns to the pool on its own
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

/// Current contents and counters of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct PoolStats {
    /// Size of the blocks in use, in bytes.
    pub in_use_bytes: u64,
    /// Size of the idle blocks, in bytes.
    pub cached_bytes: u64,
    /// The most that was ever in use at once, in bytes.
    pub high_water_bytes: u64,
    /// Requests served by an idle block.
    pub hits: u64,
    /// Requests for which memory had to be pinned.
    pub misses: u64,
    /// Memory the pool has page-locked, in whole pages.
    pub pinned_bytes: u64,
}

/// Configures a pool.
#[derive(Debug)]
#[must_use = "a pool is made by `build`"]
pub struct PoolBuilder<'a> {
    device: &'a Device,
    limits: Limits,
}

impl PoolBuilder<'_> {
    /// Limits idle memory. Any excess is freed when a block is returned, in whole idle slabs.
    pub fn idle_bytes_max(mut self, bytes: u64) -> Self {
        self.limits.idle_bytes_max = Some(bytes);
        self
    }

    /// Limits how long memory stays idle. Older memory is freed the next time a block is taken or returned.
    pub fn idle_time_max(mut self, time: Duration) -> Self {
        self.limits.idle_time_max = Some(time);
        self
    }

    /// Builds the pool. Nothing is pinned yet.
    #[must_use]
    pub fn build(self) -> PinnedPool {
        self.build_with(clock())
    }

    fn build_with(self, clock: Clock) -> PinnedPool {
        let shared = &self.device.shared;
        PinnedPool::from_store(&Arc::new(Store::new(
            &shared.core,
            Arc::downgrade(shared),
            BlockSizes::Rounded,
            self.limits,
            clock,
        )))
    }
}

impl PinnedPool {
    /// Creates a pool that keeps its memory until it is trimmed or dropped, or needs room for itself.
    #[must_use]
    pub fn new(device: &Device) -> Self {
        Self::builder(device).build()
    }

    /// Configures a pool with limits on idle memory.
    pub fn builder(device: &Device) -> PoolBuilder<'_> {
        PoolBuilder {
            device,
            limits: Limits::default(),
        }
    }

    /// Takes a block for `len` elements. Their values are unspecified.
    ///
    /// Pins memory if no block is idle. If that would exceed the budget, frees idle memory of the device
    /// and of the pool first; if there is too little of it, waits for what is
    /// [about to be released](Device::release_when_idle) or returns [`OverBudget`](crate::Error::OverBudget).
    pub fn take<T: Pod>(&self, len: usize) -> Result<PoolBuf<T>> {
        self.take_making_room(len, MakeRoom::AllIdleOrWait)
    }

    fn take_making_room<T: Pod>(&self, len: usize, make_room: MakeRoom) -> Result<PoolBuf<T>> {
        check_align::<T>()?;
        let shard_ref = self.shard_refs.own();
        let taken = match bytes_of::<T>(len)? {
            0 => None,
            // A size that is a multiple of the alignment yields aligned blocks.
            bytes => Some(shard_ref.store.take(bytes, make_room)?),
        };
        Ok(PoolBuf::new(Arc::clone(shard_ref), taken, len))
    }

    /// Like [`take`](Self::take), but if over budget, waits up to `timeout` for a block to return or for
    /// memory to be unpinned.
    pub fn take_within<T: Pod>(&self, len: usize, timeout: Duration) -> Result<PoolBuf<T>> {
        let budget = &self.store().core.budget;
        budget.retry_within(timeout, || self.take_making_room(len, MakeRoom::AllIdle))
    }

    /// Like [`take`](Self::take), but falls back to pageable memory if no more can be pinned: over budget,
    /// or the driver is out of memory. Logs a warning the first time in a process.
    pub fn take_or_pageable<T: Pod>(&self, len: usize) -> Result<HostBuf<T>> {
        HostBuf::or_pageable(self.take(len), len)
    }

    /// Frees idle memory, longest idle first, until at most `keep_bytes` are left. A slab is freed once all
    /// its blocks are idle.
    pub fn trim(&self, keep_bytes: u64) {
        self.store().trim(keep_bytes);
    }

    /// Current contents and counters of the pool.
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        self.store().stats()
    }

    /// A pool whose blocks have exactly the requested size.
    pub(crate) fn exact(device: &Device) -> Self {
        let shared = &device.shared;
        let limits = Limits::default();
        Self::of_exact_blocks(&shared.core, Arc::downgrade(shared), limits)
    }

    /// A pool of the device itself. Blocks have exactly the requested size. Whatever the budget refuses may
    /// free its idle memory.
    pub(crate) fn of_device(
        core: &Arc<DeviceCore>,
        device: Weak<Shared>,
        kept: DeviceStore,
    ) -> Self {
        Self::from_store(&Store::of_device(core, device, kept, clock()))
    }

    /// A pool whose blocks have exactly the requested size and are freed when they return, for users that
    /// reuse their blocks themselves.
    pub(crate) fn uncached(core: &Arc<DeviceCore>, device: Weak<Shared>) -> Self {
        let limits = Limits {
            idle_bytes_max: Some(0),
            ..Limits::default()
        };
        Self::of_exact_blocks(core, device, limits)
    }

    fn of_exact_blocks(core: &Arc<DeviceCore>, device: Weak<Shared>, limits: Limits) -> Self {
        let store = Store::new(core, device, BlockSizes::Exact, limits, clock());
        Self::from_store(&Arc::new(store))
    }

    fn from_store(store: &Arc<Store>) -> Self {
        Self {
            shard_refs: Arc::new(ShardRefs::new(store)),
        }
    }

    /// Takes a block of `bytes`, which is not 0.
    pub(crate) fn take_slot(&self, bytes: usize, make_room: MakeRoom) -> Result<PoolBuf<u8>> {
        let shard_ref = self.shard_refs.own();
        let taken = shard_ref.store.take(bytes, make_room)?;
        Ok(PoolBuf::new(Arc::clone(shard_ref), Some(taken), bytes))
    }

    /// Takes an idle block whose size is in the range `bytes`.
    pub(crate) fn take_idle(&self, bytes: RangeInclusive<usize>) -> Option<PoolBuf<u8>> {
        let shard_ref = self.shard_refs.own();
        let len = *bytes.start();
        let taken = shard_ref.store.take_idle(bytes)?;
        Some(PoolBuf::new(Arc::clone(shard_ref), Some(taken), len))
    }

    /// Limits idle memory from now on. Returns the limit before.
    pub(crate) fn keep(&self, at_most_bytes: u64) -> u64 {
        self.store().keep(at_most_bytes)
    }

    /// Frees all idle blocks and returns how many bytes.
    pub(crate) fn free_idle(&self) -> u64 {
        self.store().free_idle(u64::MAX)
    }

    fn store(&self) -> &Arc<Store> {
        &self.shard_refs.own().store
    }
}

/// A clock in nanoseconds that starts now.
fn clock() -> Clock {
    let start = Instant::now();
    Box::new(move || start.elapsed().as_nanos() as u64)
}

impl fmt::Debug for PinnedPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PinnedPool").field(&self.stats()).finish()
    }
}
