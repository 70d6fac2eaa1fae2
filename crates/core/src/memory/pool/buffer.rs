//! A block of a pool, for elements of one type.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use bytemuck::Pod;

use super::store::{ShardRef, TakenBlock};
use crate::memory::PinnedSlice;
use crate::memory::buffer_traits::slice_like;

/// Pinned memory from a [`PinnedPool`](super::PinnedPool), used like a slice. Returns to the pool on drop;
/// if it is in flight, once its transfer is done. It may outlive the pool's handles.
pub struct PoolBuf<T> {
    shard_ref: Arc<ShardRef>,
    /// `None` if there are no bytes.
    taken: Option<TakenBlock>,
    len: usize,
    elements: PhantomData<T>,
}

// SAFETY: it owns the block as a `Box<[T]>` owns its memory until it is returned, which any thread may do.
unsafe impl<T: Send> Send for PoolBuf<T> {}
// SAFETY: shared access only reads elements, as for `Box<[T]>`.
unsafe impl<T: Sync> Sync for PoolBuf<T> {}

impl<T: Pod> PoolBuf<T> {
    /// Wraps a block that holds `len` elements with their alignment.
    pub(super) fn new(shard_ref: Arc<ShardRef>, taken: Option<TakenBlock>, len: usize) -> Self {
        Self {
            shard_ref,
            taken,
            len,
            elements: PhantomData,
        }
    }
}

impl<T> PoolBuf<T> {
    fn raw(&self) -> PinnedSlice<'_, T> {
        let start = match &self.taken {
            Some(taken) => taken.piece.start.cast(),
            None => NonNull::dangling(),
        };
        PinnedSlice::new(start, self.len, &self.shard_ref.store.core, true)
    }
}

slice_like!(PoolBuf<T>, T, [T], [T], [T: Pod + Send], [T: Pod + Send]);

impl<T> Drop for PoolBuf<T> {
    fn drop(&mut self) {
        if let Some(taken) = self.taken.take() {
            self.shard_ref.store.give_back(taken);
        }
    }
}
