//! The dot product on the CPU, added in the same order as on the GPU.
//!
//! There are 2^20 lanes. Lane `l` adds the products `l`, `l + 2^20`, `l + 2 · 2^20`, … one after the
//! other, in `f64`; the lanes are then added as a tree: each with its neighbour, each pair with the
//! pair beside it, and so on. So the result depends on the numbers alone.

use pinlane_driver::LaunchShape;

/// Threads of a block; the kernels rely on it.
const THREADS: usize = 256;

/// Lanes of a block, which together make one partial sum.
const BLOCK_LANES: usize = 4 * THREADS;

/// Blocks at most, and so partial sums.
const BLOCKS: usize = 1024;

const LANES: usize = BLOCKS * BLOCK_LANES;

/// The one NaN that a result may be.
const NAN: f64 = f64::from_bits(0x7ff8_0000_0000_0000);

/// Partial sums that the kernels leave for vectors of `items` elements: at most 1024.
///
/// ```
/// # use pinlane_kernels::dot_partials;
/// assert_eq!([0, 1, 1024, 1025].map(dot_partials), [0, 1, 1, 2]);
/// assert_eq!(dot_partials(usize::MAX), 1024);
/// ```
#[must_use]
pub const fn dot_partials(items: usize) -> usize {
    let blocks = items.div_ceil(BLOCK_LANES);
    if blocks < BLOCKS { blocks } else { BLOCKS }
}

/// How `pinlane_dot_partials_f32` is launched so that each block makes one partial sum. Any number
/// of blocks gives the same bits; any other number of threads a wrong result.
#[must_use]
pub fn dot_partials_shape(items: usize) -> LaunchShape {
    blocks(dot_partials(items).max(1))
}

/// How `pinlane_dot_sum_f64` is launched.
#[must_use]
pub fn dot_sum_shape() -> LaunchShape {
    blocks(1)
}

fn blocks(count: usize) -> LaunchShape {
    LaunchShape {
        grid: [count as u32, 1, 1],
        block: [THREADS as u32, 1, 1],
        shared_bytes: 0,
    }
}

/// The dot product, with the bits that the kernels give. A NaN is always the same one.
///
/// ```
/// assert_eq!(pinlane_kernels::dot(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), 32.0);
/// ```
///
/// # Panics
/// When the lengths differ.
#[must_use]
pub fn dot(x: &[f32], y: &[f32]) -> f64 {
    assert_eq!(x.len(), y.len(), "vectors of one length");
    let mut lanes = Lanes::new(x.len());
    lanes.add(x, y);
    sum_of_partials(&lanes.partials())
}

/// What the second kernel makes of the partial sums.
pub(crate) fn sum_of_partials(partials: &[f64]) -> f64 {
    let mut all = [0.0; BLOCKS];
    all[..partials.len()].copy_from_slice(partials);
    let sum = tree(&mut all);
    if sum.is_nan() { NAN } else { sum }
}

/// All lanes, to which products are added in the order of the vectors.
pub(crate) struct Lanes {
    sums: Vec<f64>,
    next: usize,
}

impl Lanes {
    /// Lanes for so many products.
    pub(crate) fn new(items: usize) -> Self {
        Self {
            sums: vec![0.0; dot_partials(items) * BLOCK_LANES],
            next: 0,
        }
    }

    /// The next products, each to its lane.
    pub(crate) fn add(&mut self, x: &[f32], y: &[f32]) {
        let (mut x, mut y) = (x, y);
        while !x.is_empty() {
            let items = x.len().min(LANES - self.next);
            let lanes = &mut self.sums[self.next..self.next + items];
            for ((lane, x), y) in lanes.iter_mut().zip(x).zip(y) {
                // The product is exact, so that fused or not makes no difference.
                *lane += f64::from(*x) * f64::from(*y);
            }
            self.next = (self.next + items) % LANES;
            (x, y) = (&x[items..], &y[items..]);
        }
    }

    /// What the first kernel leaves.
    pub(crate) fn partials(mut self) -> Vec<f64> {
        self.sums.chunks_exact_mut(BLOCK_LANES).map(tree).collect()
    }
}

/// The sum of a power of two of numbers, neighbours first. What was there is lost.
fn tree(numbers: &mut [f64]) -> f64 {
    let mut len = numbers.len();
    while len > 1 {
        len /= 2;
        for i in 0..len {
            numbers[i] = numbers[2 * i] + numbers[2 * i + 1];
        }
    }
    numbers[0]
}
