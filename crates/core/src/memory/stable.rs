//! Memory of others that can be page-locked in place.

use bytemuck::Pod;

/// Memory with an address that does not change while its owner is moved about.
///
/// # Safety
/// `parts()` gives the same initialised, aligned elements every time until the value is dropped,
/// at the same address wherever the value is moved, and nobody else writes them meanwhile.
pub unsafe trait StableMemory: Send + 'static {
    /// What it holds.
    type Element: Pod + Send;

    /// First element and number of elements.
    fn parts(&self) -> (*const Self::Element, usize);

    /// Whether the process may only read it.
    fn is_read_only(&self) -> bool {
        false
    }
}

/// Memory as [`StableMemory`] that may be written, too.
///
/// # Safety
/// As for [`StableMemory`], and the elements may be written through a pointer from `parts_mut`.
pub unsafe trait StableMemoryMut: StableMemory {
    /// First element and number of elements.
    fn parts_mut(&mut self) -> (*mut Self::Element, usize);
}

// SAFETY: the elements live on the heap; moving the `Vec` does not move them, and nothing here
// resizes it.
unsafe impl<T: Pod + Send> StableMemory for Vec<T> {
    type Element = T;

    fn parts(&self) -> (*const T, usize) {
        (self.as_ptr(), self.len())
    }
}

// SAFETY: as above, through `&mut`.
unsafe impl<T: Pod + Send> StableMemoryMut for Vec<T> {
    fn parts_mut(&mut self) -> (*mut T, usize) {
        (self.as_mut_ptr(), self.len())
    }
}

// SAFETY: the elements live on the heap; moving the box does not move them.
unsafe impl<T: Pod + Send> StableMemory for Box<[T]> {
    type Element = T;

    fn parts(&self) -> (*const T, usize) {
        (self.as_ptr(), self.len())
    }
}

// SAFETY: as above, through `&mut`.
unsafe impl<T: Pod + Send> StableMemoryMut for Box<[T]> {
    fn parts_mut(&mut self) -> (*mut T, usize) {
        (self.as_mut_ptr(), self.len())
    }
}

#[cfg(feature = "mmap")]
// SAFETY: a mapping stays where it is until it is dropped. Whoever made it vouched that the file
// does not change.
unsafe impl StableMemory for memmap2::Mmap {
    type Element = u8;

    fn parts(&self) -> (*const u8, usize) {
        (self.as_ptr(), self.len())
    }

    fn is_read_only(&self) -> bool {
        true
    }
}

#[cfg(feature = "mmap")]
// SAFETY: as above.
unsafe impl StableMemory for memmap2::MmapMut {
    type Element = u8;

    fn parts(&self) -> (*const u8, usize) {
        (self.as_ptr(), self.len())
    }
}

#[cfg(feature = "mmap")]
// SAFETY: as above; the mapping is writable.
unsafe impl StableMemoryMut for memmap2::MmapMut {
    fn parts_mut(&mut self) -> (*mut u8, usize) {
        (self.as_mut_ptr(), self.len())
    }
}

/// Memory that the device may only read, whatever its owner could do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadOnly<M>(pub M);

// SAFETY: what holds for `M` holds for it in here.
unsafe impl<M: StableMemory> StableMemory for ReadOnly<M> {
    type Element = M::Element;

    fn parts(&self) -> (*const M::Element, usize) {
        self.0.parts()
    }

    fn is_read_only(&self) -> bool {
        self.0.is_read_only()
    }
}
