//! Pinned memory, or pageable memory as a fallback.

use std::ops::{Deref, DerefMut};
use std::sync::Once;

use bytemuck::Pod;
use pinlane_driver::ErrorKind;

use super::PoolBuf;
use crate::memory::buffer_traits::slice_traits;
use crate::memory::bytes_of;
use crate::{Error, Result};

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
        warn_once(&error);
        let mut values = Vec::new();
        if bytes_of::<T>(len)? > 0 && values.try_reserve_exact(len).is_err() {
            return Err(error);
        }
        values.resize(len, T::zeroed());
        Ok(Self::Pageable(values))
    }
}

/// Logs once per process; repeating the warning adds nothing.
fn warn_once(error: &Error) {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        log::warn!("using pageable memory, copies will be slower: {error}");
    });
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
