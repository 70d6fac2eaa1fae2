//! Common API of pinned buffers and of slices.

/// Implements `PinnedSource` and `part` for a buffer. The generics are in brackets.
///
/// The buffer's `raw` returns all its elements, which are page-locked and initialised, do not move with the
/// value, and are only reachable through it.
macro_rules! pinned_source {
    ($buffer:ty, $element:ty, [$($generics:tt)*]) => {
        impl<$($generics)*> crate::Sealed for $buffer {}

        impl<$($generics)*> $buffer {
            /// An owned sub-range, for partial transfers. [`Part::into_whole`](crate::Part::into_whole)
            /// returns the buffer.
            ///
            /// # Panics
            /// If the range is out of bounds.
            pub fn part(self, range: impl std::ops::RangeBounds<usize>) -> crate::Part<Self> {
                crate::Part::new::<$element>(self, range)
            }
        }

        // SAFETY: guaranteed by `raw`.
        unsafe impl<$($generics)*> crate::memory::PinnedSource<$element> for $buffer {
            fn start(&self) -> *const $element {
                self.raw().start.as_ptr()
            }

            fn len(&self) -> usize {
                self.raw().len
            }

            fn pinned_for(&self) -> crate::memory::PinnedFor<'_> {
                self.raw().pinned_for
            }
        }
    };
}

/// Implements `PinnedTarget` for a `pinned_source` whose elements may be written.
macro_rules! pinned_target {
    ($buffer:ty, $element:ty, [$($generics:tt)*]) => {
        // SAFETY: as for `PinnedSource`, and the elements may be written.
        unsafe impl<$($generics)*> crate::memory::PinnedTarget<$element> for $buffer {
            fn start_mut(&mut self) -> *mut $element {
                self.raw().start.as_ptr()
            }
        }
    };
}

/// Defines `range` and the conversion to a [`PinnedSlice`](crate::PinnedSlice) for a `pinned_source`.
macro_rules! borrowed_by_scopes {
    ($buffer:ty, $element:ty, [$($generics:tt)*]) => {
        impl<$($generics)*> $buffer {
            /// A borrowed sub-range for transfers of a [`scope`](crate::Device::scope) to read.
            ///
            /// # Panics
            /// If the range is out of bounds.
            pub fn range(
                &self,
                range: impl std::ops::RangeBounds<usize>,
            ) -> crate::PinnedSlice<'_, $element> {
                self.raw().range(range)
            }
        }

        impl<'buffer, $($generics)*> From<&'buffer $buffer> for crate::PinnedSlice<'buffer, $element> {
            fn from(buffer: &'buffer $buffer) -> Self {
                buffer.raw()
            }
        }
    };
}

/// Implements everything above, and slices, for a buffer that reads and writes like a slice. The generics
/// are those of the slice traits, then those of transfers, each for shared and for exclusive access.
macro_rules! slice_like {
    (
        $buffer:ty, $element:ty,
        [$($shared:tt)*], [$($exclusive:tt)*], [$($source:tt)*], [$($target:tt)*]
    ) => {
        crate::memory::buffer_macros::pinned_source!($buffer, $element, [$($source)*]);
        crate::memory::buffer_macros::borrowed_by_scopes!($buffer, $element, [$($source)*]);
        crate::memory::buffer_macros::pinned_target!($buffer, $element, [$($target)*]);

        impl<$($target)*> $buffer {
            /// A borrowed sub-range for transfers of a [`scope`](crate::Device::scope) to write.
            ///
            /// # Panics
            /// If the range is out of bounds.
            pub fn range_mut(
                &mut self,
                range: impl std::ops::RangeBounds<usize>,
            ) -> crate::PinnedSliceMut<'_, $element> {
                crate::PinnedSliceMut::from(self).range(range)
            }
        }

        impl<'buffer, $($target)*> From<&'buffer mut $buffer>
            for crate::PinnedSliceMut<'buffer, $element>
        {
            fn from(buffer: &'buffer mut $buffer) -> Self {
                Self::new(buffer.raw())
            }
        }

        crate::memory::buffer_macros::raw_slice!(
            $buffer, $element, [$($shared)*], [$($exclusive)*]
        );
    };
}

/// Implements slices for a value whose `raw` returns its elements. Only its owner writes them.
macro_rules! raw_slice {
    ($buffer:ty, $element:ty, [$($shared:tt)*], [$($exclusive:tt)*]) => {
        impl<$($shared)*> std::ops::Deref for $buffer {
            type Target = [$element];

            fn deref(&self) -> &[$element] {
                let raw = self.raw();
                // SAFETY: `raw` returns `len` initialised, aligned elements, and nothing writes to them
                // while the value is borrowed.
                unsafe { std::slice::from_raw_parts(raw.start.as_ptr(), raw.len) }
            }
        }

        impl<$($exclusive)*> std::ops::DerefMut for $buffer {
            fn deref_mut(&mut self) -> &mut [$element] {
                let raw = self.raw();
                // SAFETY: as in `deref`, and `&mut self` excludes all other access.
                unsafe { std::slice::from_raw_parts_mut(raw.start.as_ptr(), raw.len) }
            }
        }

        impl<$($shared)*> std::fmt::Debug for $buffer
        where
            $element: std::fmt::Debug,
        {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self[..].fmt(f)
            }
        }

        crate::memory::buffer_macros::slice_traits!(
            $buffer, $element, [$($shared)*], [$($exclusive)*]
        );
    };
}

/// Implements the traits that `Vec` has for a value that derefs to a slice. The last two arguments are the
/// generics for shared and for exclusive access.
macro_rules! slice_traits {
    ($buffer:ty, $element:ty, [$($shared:tt)*], [$($exclusive:tt)*]) => {
        impl<$($shared)*> AsRef<[$element]> for $buffer {
            fn as_ref(&self) -> &[$element] {
                self
            }
        }

        impl<$($exclusive)*> AsMut<[$element]> for $buffer {
            fn as_mut(&mut self) -> &mut [$element] {
                self
            }
        }

        impl<'buffer, $($shared)*> IntoIterator for &'buffer $buffer {
            type Item = &'buffer $element;
            type IntoIter = std::slice::Iter<'buffer, $element>;

            fn into_iter(self) -> Self::IntoIter {
                self.iter()
            }
        }

        impl<'buffer, $($exclusive)*> IntoIterator for &'buffer mut $buffer {
            type Item = &'buffer mut $element;
            type IntoIter = std::slice::IterMut<'buffer, $element>;

            fn into_iter(self) -> Self::IntoIter {
                self.iter_mut()
            }
        }
    };
}

/// Defines `range` for a slice type whose `sub` returns a sub-range that is in bounds. With `mut` also
/// `split_at` and `chunks`, whose results do not overlap.
macro_rules! sub_slices {
    ($slice:ident) => {
        impl<T: Pod> $slice<'_, T> {
            /// A sub-range.
            ///
            /// # Panics
            /// If the range is out of bounds.
            #[must_use]
            pub fn range(self, range: impl std::ops::RangeBounds<usize>) -> Self {
                self.sub(crate::memory::resolve(range, self.len()))
            }
        }
    };
    (mut $slice:ident) => {
        crate::memory::buffer_macros::sub_slices!($slice);

        impl<T: Pod> $slice<'_, T> {
            /// Splits in two at element `at`.
            ///
            /// # Panics
            /// If `at` is out of bounds.
            #[must_use]
            pub fn split_at(self, at: usize) -> (Self, Self) {
                let tail = crate::memory::resolve(at.., self.len());
                (self.sub(0..at), self.sub(tail))
            }

            /// Splits into chunks of `len` elements each; the last may be shorter.
            ///
            /// # Panics
            /// If `len` is 0.
            pub fn chunks(self, len: usize) -> impl Iterator<Item = Self> {
                assert!(len > 0, "chunks of no elements");
                let all = self.len();
                (0..all)
                    .step_by(len)
                    .map(move |start| self.sub(start..start + len.min(all - start)))
            }
        }
    };
}

pub(crate) use {borrowed_by_scopes, pinned_source, pinned_target};
pub(crate) use {raw_slice, slice_like, slice_traits, sub_slices};
