//! Limits and launch shape of the normalising kernels.

use pinlane_driver::LaunchShape;

/// The maximum number of channels of `pinlane_normalize_u8_f32` and `pinlane_normalize_u8_bf16`. The
/// CUDA source has the same limit.
pub const MAX_CHANNELS: usize = 16;

/// Minimum number of elements that a thread takes at a time.
const GROUP_ITEMS: usize = 4;
const THREADS: usize = 256;

/// Blocks that keep any GPU busy. More would waste time on finding their start.
const MAX_BLOCKS: usize = 1024;

/// The launch shape of the normalising kernels for `items` elements. Any shape gives the same bits.
///
/// ```
/// # use pinlane_kernels::normalize_shape;
/// assert_eq!(normalize_shape(0).grid, [1, 1, 1]);
/// assert_eq!(normalize_shape(1025).grid, [2, 1, 1]);
/// assert_eq!(normalize_shape(usize::MAX).grid, [1024, 1, 1]);
/// ```
#[must_use]
pub fn normalize_shape(items: usize) -> LaunchShape {
    let blocks = items.div_ceil(GROUP_ITEMS * THREADS);
    LaunchShape {
        grid: [blocks.clamp(1, MAX_BLOCKS) as u32, 1, 1],
        block: [THREADS as u32, 1, 1],
        shared_bytes: 0,
    }
}
