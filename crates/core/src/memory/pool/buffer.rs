//! A block of a pool, for elements of one type.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use bytemuck::Pod;

use super::store::{ShardRef, TakenBlock};
use crate::memory::buffer_traits::slice_like;
use crate::memory::{PinnedFor, PinnedSource, PinnedTarget};

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
    fn first(&self) -> NonNull<T> {
        match &self.taken {
            Some(taken) => taken.piece.start.cast(),
            None => NonNull::dangling(),
        }
    }
}

slice_like!(PoolBuf);

impl<T> Drop for PoolBuf<T> {
    fn drop(&mut self) {
        if let Some(taken) = self.taken.take() {
            self.shard_ref.store.give_back(taken);
        }
    }
}

impl<T> Deref for PoolBuf<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` initialised, aligned elements; writing needs `&mut self` or ownership. All
        // page-locked memory is initialised, and any bytes are valid elements.
        unsafe { std::slice::from_raw_parts(self.first().as_ptr(), self.len) }
    }
}

impl<T> DerefMut for PoolBuf<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `&mut self` excludes all other access.
        unsafe { std::slice::from_raw_parts_mut(self.first().as_ptr(), self.len) }
    }
}

// SAFETY: the block is page-locked, does not move with the value, and has no other user until the value is
// dropped.
unsafe impl<T: Pod + Send> PinnedSource<T> for PoolBuf<T> {
    fn start(&self) -> *const T {
        self.first().as_ptr()
    }

    fn len(&self) -> usize {
        self.len
    }

    fn pinned_for(&self) -> PinnedFor<'_> {
        PinnedFor {
            core: &self.shard_ref.store.core,
            portable: true,
        }
    }
}

// SAFETY: as above; it is ordinary writable memory.
unsafe impl<T: Pod + Send> PinnedTarget<T> for PoolBuf<T> {
    fn start_mut(&mut self) -> *mut T {
        self.first().as_ptr()
    }
}

impl<T: fmt::Debug> fmt::Debug for PoolBuf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
