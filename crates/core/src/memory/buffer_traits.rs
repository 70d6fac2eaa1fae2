//! Common API of all pinned buffers.

/// Defines `part`, `range` and the conversion to a [`PinnedSlice`](super::PinnedSlice).
macro_rules! read_by_transfers {
    ($buffer:ident) => {
        impl<T: Pod + Send> $buffer<T> {
            /// An owned sub-range, for partial transfers. [`Part::into_whole`](crate::Part::into_whole)
            /// returns the buffer.
            ///
            /// # Panics
            /// If the range is out of bounds.
            pub fn part(self, range: impl std::ops::RangeBounds<usize>) -> crate::Part<Self> {
                crate::Part::new(self, range)
            }

            /// A borrowed sub-range for transfers of a [`scope`](crate::Device::scope) to read.
            ///
            /// # Panics
            /// If the range is out of bounds.
            pub fn range(
                &self,
                range: impl std::ops::RangeBounds<usize>,
            ) -> crate::PinnedSlice<'_, T> {
                crate::PinnedSlice::from(self).range(range)
            }
        }

        impl<'a, T: Pod + Send> From<&'a $buffer<T>> for crate::PinnedSlice<'a, T> {
            fn from(buffer: &'a $buffer<T>) -> Self {
                Self::of(buffer)
            }
        }
    };
}

/// Like `read_by_transfers`, for buffers that read and write like a slice: adds `range_mut` and the slice
/// traits.
macro_rules! slice_like {
    ($buffer:ident) => {
        crate::memory::buffer_traits::read_by_transfers!($buffer);

        impl<T: Pod + Send> $buffer<T> {
            /// A borrowed sub-range for transfers of a [`scope`](crate::Device::scope) to write.
            ///
            /// # Panics
            /// If the range is out of bounds.
            pub fn range_mut(
                &mut self,
                range: impl std::ops::RangeBounds<usize>,
            ) -> crate::PinnedSliceMut<'_, T> {
                crate::PinnedSliceMut::from(self).range(range)
            }
        }

        impl<'a, T: Pod + Send> From<&'a mut $buffer<T>> for crate::PinnedSliceMut<'a, T> {
            fn from(buffer: &'a mut $buffer<T>) -> Self {
                Self::of(buffer)
            }
        }

        crate::memory::buffer_traits::slice_traits!($buffer<T>, T, [T], [T]);
    };
}

/// Implements the traits that `Vec` has. The last two arguments are the generics for shared and for
/// exclusive access.
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

pub(crate) use {read_by_transfers, slice_like, slice_traits};
