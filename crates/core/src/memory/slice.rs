//! Borrowed pieces of pinned memory, for scopes.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, RangeBounds};
use std::ptr::NonNull;
use std::sync::Arc;

use bytemuck::Pod;

use super::buffer_traits::slice_traits;
use super::{
    PinnedFor, PinnedSource, PinnedTarget, Registered, StableMemory, StableMemoryMut, resolve,
};
use crate::device_core::DeviceCore;

/// Pinned memory borrowed for the device to read. Its owner may read it at the same time.
#[derive(Clone, Copy)]
pub struct PinnedSlice<'a, T> {
    start: NonNull<T>,
    len: usize,
    pinned_for: PinnedFor<'a>,
    borrow: PhantomData<&'a T>,
}

/// Pinned memory borrowed for the device to write. Nothing else can access it until the borrow ends.
pub struct PinnedSliceMut<'a, T> {
    start: NonNull<T>,
    len: usize,
    pinned_for: PinnedFor<'a>,
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

impl<'a, T: Pod> PinnedSlice<'a, T> {
    /// Wraps registered memory that the caller has borrowed for `'a`.
    pub(crate) fn registered(memory: &'a [T], core: &'a Arc<DeviceCore>) -> Self {
        Self {
            start: NonNull::from(memory).cast(),
            len: memory.len(),
            pinned_for: PinnedFor::registered(core),
            borrow: PhantomData,
        }
    }

    pub(super) fn of(source: &'a impl PinnedSource<T>) -> Self {
        Self {
            start: NonNull::new(source.start().cast_mut()).expect("pinned memory is never at 0"),
            len: source.len(),
            pinned_for: source.pinned_for(),
            borrow: PhantomData,
        }
    }

    /// A sub-range.
    ///
    /// # Panics
    /// If the range is out of bounds.
    #[must_use]
    pub fn range(self, range: impl RangeBounds<usize>) -> Self {
        let range = resolve(range, self.len);
        Self {
            // SAFETY: `resolve` checked the bounds.
            start: unsafe { self.start.add(range.start) },
            len: range.len(),
            ..self
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

impl<'a, T: Pod> PinnedSliceMut<'a, T> {
    /// Wraps registered memory.
    pub(crate) fn registered(memory: &'a mut [T], core: &'a Arc<DeviceCore>) -> Self {
        Self {
            len: memory.len(),
            start: NonNull::from(memory).cast(),
            pinned_for: PinnedFor::registered(core),
            borrow: PhantomData,
        }
    }

    pub(super) fn of(target: &'a mut impl PinnedTarget<T>) -> Self {
        let start = NonNull::new(target.start_mut()).expect("pinned memory is never at 0");
        let target = &*target;
        Self {
            start,
            len: target.len(),
            pinned_for: target.pinned_for(),
            borrow: PhantomData,
        }
    }

    /// A sub-range.
    ///
    /// # Panics
    /// If the range is out of bounds.
    #[must_use]
    pub fn range(self, range: impl RangeBounds<usize>) -> Self {
        let range = resolve(range, self.len);
        Self {
            // SAFETY: `resolve` checked the bounds.
            start: unsafe { self.start.add(range.start) },
            len: range.len(),
            ..self
        }
    }

    /// Splits in two at element `at`.
    ///
    /// # Panics
    /// If `at` is out of bounds.
    #[must_use]
    pub fn split_at(self, at: usize) -> (Self, Self) {
        let tail = resolve(at.., self.len);
        let second = Self {
            // SAFETY: `resolve` checked that `at` is at most `len`.
            start: unsafe { self.start.add(tail.start) },
            len: tail.len(),
            ..self
        };
        let first = Self { len: at, ..self };
        (first, second)
    }

    /// Splits into pieces of `len` elements each; the last may be shorter.
    ///
    /// # Panics
    /// If `len` is 0.
    pub fn pieces(self, len: usize) -> impl Iterator<Item = Self> {
        assert!(len > 0, "pieces of no elements");
        let mut rest = Some(self);
        std::iter::from_fn(move || {
            let all = rest.take().filter(|rest| !rest.is_empty())?;
            let at = len.min(all.len);
            let (first, second) = all.split_at(at);
            rest = Some(second);
            Some(first)
        })
    }

    /// The same memory as bytes.
    #[doc(hidden)]
    pub fn into_bytes(self) -> PinnedSliceMut<'a, u8> {
        PinnedSliceMut {
            start: self.start.cast(),
            len: self.len * size_of::<T>(),
            pinned_for: self.pinned_for,
            borrow: PhantomData,
        }
    }

    pub(crate) fn start(&mut self) -> NonNull<T> {
        self.start
    }

    pub(crate) fn pinned_for(&self) -> PinnedFor<'a> {
        self.pinned_for
    }
}

impl<T> fmt::Debug for PinnedSlice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedSlice")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl<T: fmt::Debug> fmt::Debug for PinnedSliceMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

slice_traits!(PinnedSliceMut<'_, T>, T, [T], [T]);

impl<T> Deref for PinnedSliceMut<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the memory is borrowed exclusively, and a transfer that writes to it owns the value.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for PinnedSliceMut<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<'a, M: StableMemory> From<&'a Registered<M>> for PinnedSlice<'a, M::Element> {
    fn from(buffer: &'a Registered<M>) -> Self {
        Self::of(buffer)
    }
}

impl<'a, M: StableMemoryMut> From<&'a mut Registered<M>> for PinnedSliceMut<'a, M::Element> {
    fn from(buffer: &'a mut Registered<M>) -> Self {
        Self::of(buffer)
    }
}
