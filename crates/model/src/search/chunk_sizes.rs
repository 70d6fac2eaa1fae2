//! Which chunk sizes are tried.

/// Smallest and largest size of the grid.
const LEAST: u64 = 256 << 10;
const MOST: u64 = 256 << 20;

/// Chunks start at page boundaries, unless they divide the job evenly.
const PAGE: u64 = 4096;

/// A job is also tried in 1 to this many equal parts.
const PARTS_MAX: u64 = 4;

/// Steps from one size of the grid to the next when the search is refined.
const FINE_STEPS: u64 = 6;

/// Chunk sizes of the search that are powers of two, in rising order.
pub fn power_of_two_chunks() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(LEAST), |size| Some(size * 2)).take_while(|size| *size <= MOST)
}

/// Sizes in steps of √2, each also rounded so that it divides the job evenly; sorted, unique.
pub(super) fn grid(bytes_in: u64) -> Vec<u64> {
    let mut sizes = Vec::new();
    for size in power_of_two_chunks() {
        // Times √2, rounded down to a page.
        let between = (size as u128 * 1_414_213 / 1_000_000) as u64 / PAGE * PAGE;
        for chunk in [size, between] {
            if chunk < bytes_in && chunk <= MOST {
                sizes.push(chunk);
                sizes.push(even(bytes_in, chunk));
            }
        }
    }
    let parts = (1..=PARTS_MAX).map(|parts| bytes_in.div_ceil(parts));
    sizes.extend(parts.filter(|&chunk| chunk > 0 && (chunk <= MOST || chunk == bytes_in)));
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Sizes that divide the job evenly, between the grid's neighbours of one size.
pub(super) fn around(bytes_in: u64, chunk_bytes: u64) -> Vec<u64> {
    let most = chunk_bytes.saturating_mul(3) / 2;
    let least = chunk_bytes * 2 / 3;
    let step = ((most - least) / (2 * FINE_STEPS)).max(1);
    let mut sizes: Vec<_> = (0..=2 * FINE_STEPS)
        .map(|index| even(bytes_in, least + index * step))
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The size nearest to this one that divides the job evenly.
fn even(bytes_in: u64, chunk_bytes: u64) -> u64 {
    let chunk_bytes = chunk_bytes.clamp(1, bytes_in);
    let parts = (bytes_in + chunk_bytes / 2) / chunk_bytes;
    bytes_in.div_ceil(parts.max(1))
}
