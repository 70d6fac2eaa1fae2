//! The dot product on the CPU, added in the same order as on the GPU.
//!
//! There are 2^20 lanes. Lane `l` adds the products `l`, `l + 2^20`, `l + 2 · 2^20`, … in order, in
//! `f64`. The lanes are then added as a binary tree, neighbours first. So the result depends only on
//! the numbers.

use pinlane_driver::LaunchShape;

/// Threads per block, which the kernels rely on.
const THREADS: usize = 256;

/// Lanes per block, which give one partial sum.
const BLOCK_LANES: usize = 4 * THREADS;

/// The maximum number of blocks, and so of partial sums.
const BLOCKS: usize = 1024;

const LANES: usize = BLOCKS * BLOCK_LANES;

/// The only NaN that a result can be.
const NAN: f64 = f64::from_bits(0x7ff8_0000_0000_0000);

/// The number of partial sums for vectors of `items` elements, at most 1024.
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

/// The launch shape of `pinlane_dot_partials_f32` with one block per partial sum. Any number of
/// blocks gives the same bits; any other number of threads gives a wrong result.
#[must_use]
pub fn dot_partials_shape(items: usize) -> LaunchShape {
    blocks(dot_partials(items).max(1))
}

/// The launch shape of `pinlane_dot_sum_f64`.
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

/// The dot product with the same bits as the kernels. A NaN is always the same one.
///
/// ```
/// assert_eq!(pinlane_kernels::dot(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), 32.0);
/// ```
///
/// # Panics
/// If the lengths differ.
#[must_use]
pub fn dot(x: &[f32], y: &[f32]) -> f64 {
    assert_eq!(x.len(), y.len(), "the vectors differ in length");
    let mut lanes = Lanes::new(x.len());
    lanes.add(x, y);
    sum_of_partials(&lanes.partials())
}

/// Adds the partial sums as the second kernel does.
pub(crate) fn sum_of_partials(partials: &[f64]) -> f64 {
    let mut all = [0.0; BLOCKS];
    all[..partials.len()].copy_from_slice(partials);
    let sum = tree(&mut all);
    if sum.is_nan() { NAN } else { sum }
}

/// All lanes. Products are added in the order of the vectors.
pub(crate) struct Lanes {
    sums: Vec<f64>,
    next: usize,
}

impl Lanes {
    /// Lanes for `items` products.
    pub(crate) fn new(items: usize) -> Self {
        Self {
            sums: vec![0.0; dot_partials(items) * BLOCK_LANES],
            next: 0,
        }
    }

    /// Adds the next products to their lanes.
    pub(crate) fn add(&mut self, x: &[f32], y: &[f32]) {
        let (mut x, mut y) = (x, y);
        while !x.is_empty() {
            let items = x.len().min(LANES - self.next);
            let lanes = &mut self.sums[self.next..self.next + items];
            for ((lane, x), y) in lanes.iter_mut().zip(x).zip(y) {
                // The product is exact, so fusing makes no difference.
                *lane += f64::from(*x) * f64::from(*y);
            }
            self.next = (self.next + items) % LANES;
            (x, y) = (&x[items..], &y[items..]);
        }
    }

    /// The partial sums that the first kernel writes.
    pub(crate) fn partials(mut self) -> Vec<f64> {
        self.sums.chunks_exact_mut(BLOCK_LANES).map(tree).collect()
    }
}

/// Adds numbers, neighbours first; overwrites them. Their count is a power of two.
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
