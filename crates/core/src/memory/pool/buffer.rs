//! A block of a pool, for elements of one type, or pageable memory as a fallback.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytemuck::Pod;
use pinlane_driver::ErrorKind;

use super::pool_state::{ShardRef, TakenBlock};
use crate::device_core::DeviceCore;
use crate::logging::warn_once;
use crate::memory::buffer_macros::{slice_like, slice_traits};
use crate::memory::{PinnedSlice, bytes_of, extend_with_zeros};
use crate::{Error, Result};

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
    pub(in crate::memory) fn core(&self) -> &Arc<DeviceCore> {
        &self.shard_ref.store.core
    }

    pub(in crate::memory) fn raw(&self) -> PinnedSlice<'_, T> {
        let start = match &self.taken {
            Some(taken) => taken.piece.start.cast(),
            None => NonNull::dangling(),
        };
        PinnedSlice::new(start, self.len, self.core(), true)
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

/// Host memory that is pinned if there was room for it. Used like a slice.
#[derive(Debug)]
pub enum HostBuf<T> {
    /// From the pool. Asynchronous copies accept it.
    Pinned(PoolBuf<T>),
    /// Ordinary memory. Copies from and to it are slower, and block.
    Pageable(Vec<T>),
}

impl<T> HostBuf<T> {
    /// Whether it is pinned.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        matches!(self, Self::Pinned(_))
    }
}

impl<T: Pod> HostBuf<T> {
    pub(super) fn or_pageable(pinned: Result<PoolBuf<T>>, len: usize) -> Result<Self> {
        let error = match pinned {
            Ok(buffer) => return Ok(Self::Pinned(buffer)),
            Err(error) => error,
        };
        let no_room = match &error {
            Error::OverBudget { .. } => true,
            Error::Driver(error) => error.kind == ErrorKind::OutOfMemory,
            _ => false,
        };
        if !no_room {
            return Err(error);
        }
        static WARNED: AtomicBool = AtomicBool::new(false);
        let warning = "using pageable memory, copies will be slower";
        warn_once(&WARNED, format_args!("{warning}: {error}"));
        let mut values = Vec::new();
        if bytes_of::<T>(len)? > 0 && values.try_reserve_exact(len).is_err() {
            return Err(error);
        }
        extend_with_zeros(&mut values, len);
        Ok(Self::Pageable(values))
    }
}

slice_traits!(HostBuf<T>, T, [T], [T]);

impl<T> Deref for HostBuf<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Pinned(buffer) => buffer,
            Self::Pageable(values) => values,
        }
    }
}

impl<T> DerefMut for HostBuf<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Pinned(buffer) => buffer,
            Self::Pageable(values) => values,
        }
    }
}
