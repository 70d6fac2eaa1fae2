//! Caller-owned memory that can be page-locked in place.

use bytemuck::Pod;

/// Memory whose address does not change when its owner is moved.
///
/// # Safety
/// Until the value is dropped, `parts()` returns the same initialised, aligned elements every time, at the
/// same address wherever the value is moved, and nothing else writes to them.
pub unsafe trait StableMemory: Send + 'static {
    /// Type of the elements.
    type Element: Pod + Send;

    /// First element and number of elements.
    fn parts(&self) -> (*const Self::Element, usize);

    /// Whether the process can only read the memory.
    fn is_read_only(&self) -> bool {
        false
    }
}

/// [`StableMemory`] that may also be written.
///
/// # Safety
/// As for [`StableMemory`], and the elements may be written through a pointer from `parts_mut`.
pub unsafe trait StableMemoryMut: StableMemory {
    /// First element and number of elements.
    fn parts_mut(&mut self) -> (*mut Self::Element, usize);
}

/// Implements both traits for memory that does not move with its owner and that nothing here resizes.
macro_rules! stable_memory {
    ($memory:ty, $element:ty, $($generics:tt)*) => {
        // SAFETY: the elements are on the heap or mapped; moving the owner does not move them. The
        // creator of a mapping guaranteed that nothing else changes the file.
        unsafe impl $($generics)* StableMemory for $memory {
            type Element = $element;

            fn parts(&self) -> (*const $element, usize) {
                (self.as_ptr(), self.len())
            }
        }

        // SAFETY: as above, through `&mut`.
        unsafe impl $($generics)* StableMemoryMut for $memory {
            fn parts_mut(&mut self) -> (*mut $element, usize) {
                (self.as_mut_ptr(), self.len())
            }
        }
    };
}

stable_memory!(Vec<T>, T, <T: Pod + Send>);
stable_memory!(Box<[T]>, T, <T: Pod + Send>);
#[cfg(feature = "mmap")]
stable_memory!(memmap2::MmapMut, u8,);

#[cfg(feature = "mmap")]
// SAFETY: a mapping stays in place until it is dropped. Its creator guaranteed that the file does not
// change.
unsafe impl StableMemory for memmap2::Mmap {
    type Element = u8;

    fn parts(&self) -> (*const u8, usize) {
        (self.as_ptr(), self.len())
    }

    fn is_read_only(&self) -> bool {
        true
    }
}

/// Memory that the device may only read, whatever its owner may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadOnly<M>(pub M);

// SAFETY: the contract of `M` carries over.
unsafe impl<M: StableMemory> StableMemory for ReadOnly<M> {
    type Element = M::Element;

    fn parts(&self) -> (*const M::Element, usize) {
        self.0.parts()
    }

    fn is_read_only(&self) -> bool {
        self.0.is_read_only()
    }
}
