//! Copies of ordinary memory in fresh pinned memory.

use std::sync::Mutex;

use bytemuck::Pod;

use super::PinnedBuf;
use crate::helper_threads;
use crate::sync::lock;
use crate::{Device, Result, Sealed};

/// Below this size, one thread finishes before others have woken up.
const PARALLEL_FROM_BYTES: usize = 4 << 20;

/// How much one thread copies at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Memory that can be copied into pinned memory. To page-lock memory in place, see
/// [`Device::pin`](crate::Device::pin).
///
/// ```
/// # fn main() -> pinlane::Result<()> {
/// # let device = pinlane::Device::sim("pcie3-x16")?;
/// use pinlane::ToPinned;
///
/// let from_vec = vec![1u32, 2, 3].to_pinned(&device)?;
/// let from_array = [1u32, 2, 3].to_pinned(&device)?;
/// assert_eq!(from_vec[..], from_array[..]);
/// # Ok(())
/// # }
/// ```
pub trait ToPinned: Sealed {
    /// Type of the elements.
    type Element: Pod;

    /// Copies into fresh pinned memory, on several threads if it is large.
    fn to_pinned(&self, device: &Device) -> Result<PinnedBuf<Self::Element>>;
}

impl<T: Pod> Sealed for [T] {}

/// Also covers arrays, `Vec`s and boxed slices.
impl<T: Pod> ToPinned for [T] {
    type Element = T;

    fn to_pinned(&self, device: &Device) -> Result<PinnedBuf<T>> {
        device.pinned_from(self)
    }
}

/// Copies `source` to `target`, which has the same length, on several threads if that pays off.
pub(super) fn copy<T: Pod>(source: &[T], target: &mut [T]) {
    let bytes = size_of_val(source);
    if bytes < PARALLEL_FROM_BYTES {
        target.copy_from_slice(source);
        return;
    }
    let helpers = helper_threads::helpers_at_most().min(bytes / PIECE_BYTES - 1);
    // As bytes, which can be shared between threads whatever the element type is.
    let source: &[u8] = bytemuck::cast_slice(source);
    let target: &mut [u8] = bytemuck::cast_slice_mut(target);
    assert_eq!(source.len(), target.len());
    let targets = target.chunks_mut(PIECE_BYTES);
    let pieces = Mutex::new(source.chunks(PIECE_BYTES).zip(targets));
    let next = || lock(&pieces).next();
    helper_threads::run(helpers, &|_| {
        while let Some((source, target)) = next() {
            target.copy_from_slice(source);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_copied_whatever_the_size() {
        let large = PARALLEL_FROM_BYTES / 4;
        let sizes = [0, 1, 1000, large, large + 12_345];
        for len in sizes.into_iter().take(if cfg!(miri) { 3 } else { 5 }) {
            let source: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(77)).collect();
            let mut target = vec![0; len];
            copy(&source, &mut target);
            assert!(source == target, "{len}");
        }
    }
}
