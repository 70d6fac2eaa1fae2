//! What the normalising kernels and those who launch them agree on.

use pinlane_driver::LaunchShape;

/// Channels that `pinlane_normalize_u8_f32` and `pinlane_normalize_u8_bf16` take at most; their
/// source says the same.
pub const MAX_CHANNELS: usize = 16;

/// Elements that one thread takes at a time, at least.
const GROUP_ITEMS: usize = 4;
const THREADS: usize = 256;

/// Blocks that keep any GPU busy. More would spend their time on finding where they begin.
const MAX_BLOCKS: usize = 1024;

/// How the normalising kernels are launched for so many elements. Any other shape gives the same
/// bits.
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
