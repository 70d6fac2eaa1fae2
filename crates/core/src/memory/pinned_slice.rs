//! Borrowed pieces of pinned memory, for scopes.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use bytemuck::Pod;

use super::PinnedFor;
use super::buffer_macros::{raw_slice, sub_slices};
use crate::device_core::DeviceCore;

/// Pinned memory borrowed for the device to read. Its owner may read it at the same time.
#[derive(Clone, Copy)]
pub struct PinnedSlice<'a, T> {
    pub(super) start: NonNull<T>,
    pub(super) len: usize,
    pub(super) pinned_for: PinnedFor<'a>,
    borrow: PhantomData<&'a T>,
}

/// Pinned memory borrowed for the device to write. Nothing else can access it until the borrow ends.
pub struct PinnedSliceMut<'a, T> {
    memory: PinnedSlice<'a, T>,
    borrow: PhantomData<&'a mut T>,
}

// SAFETY: like `&[T]`.
unsafe impl<T: Sync> Send for PinnedSlice<'_, T> {}
// SAFETY: like `&[T]`.
unsafe impl<T: Sync> Sync for PinnedSlice<'_, T> {}
// SAFETY: like `&mut [T]`.
unsafe impl<T: Send> Send for PinnedSliceMut<'_, T> {}
// SAFETY: like `&mut [T]`.
unsafe impl<T: Sync> Sync for PinnedSliceMut<'_, T> {}

impl<'a, T> PinnedSlice<'a, T> {
    /// All elements of a buffer that was pinned for this device, while it is borrowed.
    pub(super) fn new(
        start: NonNull<T>,
        len: usize,
        core: &'a Arc<DeviceCore>,
        portable: bool,
    ) -> Self {
        Self {
            start,
            len,
            pinned_for: PinnedFor { core, portable },
            borrow: PhantomData,
        }
    }
}

impl<'a, T: Pod> PinnedSlice<'a, T> {
    /// Wraps registered memory, which every device may use.
    pub(crate) fn registered(memory: &'a [T], core: &'a Arc<DeviceCore>) -> Self {
        Self::new(NonNull::from(memory).cast(), memory.len(), core, true)
    }

    /// Part of it. The caller has checked the bounds.
    fn sub(&self, range: Range<usize>) -> Self {
        debug_assert!(range.start <= range.end && range.end <= self.len);
        Self {
            // SAFETY: the range is inside.
            start: unsafe { self.start.add(range.start) },
            len: range.len(),
            ..*self
        }
    }

    /// The same memory as bytes.
    #[doc(hidden)]
    pub fn into_bytes(self) -> PinnedSlice<'a, u8> {
        PinnedSlice {
            start: self.start.cast(),
            len: self.len * size_of::<T>(),
            pinned_for: self.pinned_for,
            borrow: PhantomData,
        }
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn start(&self) -> NonNull<T> {
        self.start
    }

    pub(crate) fn pinned_for(&self) -> PinnedFor<'a> {
        self.pinned_for
    }
}

impl<'a, T> PinnedSliceMut<'a, T> {
    /// The caller has exclusive access to `memory` for `'a`.
    pub(super) fn new(memory: PinnedSlice<'a, T>) -> Self {
        Self {
            memory,
            borrow: PhantomData,
        }
    }

    fn raw(&self) -> &PinnedSlice<'a, T> {
        &self.memory
    }
}

impl<'a, T: Pod> PinnedSliceMut<'a, T> {
    /// Wraps registered memory.
    pub(crate) fn registered(memory: &'a mut [T], core: &'a Arc<DeviceCore>) -> Self {
        let len = memory.len();
        let start = NonNull::from(memory).cast();
        Self::new(PinnedSlice::new(start, len, core, true))
    }

    fn sub(&self, range: Range<usize>) -> Self {
        Self::new(self.memory.sub(range))
    }

    /// The same memory as bytes.
    #[doc(hidden)]
    pub fn into_bytes(self) -> PinnedSliceMut<'a, u8> {
        PinnedSliceMut::new(self.memory.into_bytes())
    }

    pub(crate) fn start(&mut self) -> NonNull<T> {
        self.memory.start
    }

    pub(crate) fn pinned_for(&self) -> PinnedFor<'a> {
        self.memory.pinned_for
    }
}

sub_slices!(PinnedSlice);
sub_slices!(mut PinnedSliceMut);
raw_slice!(PinnedSliceMut<'_, T>, T, [T], [T]);

impl<T> fmt::Debug for PinnedSlice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedSlice")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
