//! An express lane with a small ring, so that copies of a few hundred KiB go round it.

use pinlane::sim::Sim;
use pinlane::{Device, Stream};

/// 1024 bytes.
pub const KIB: usize = 1 << 10;

/// Copies up to this size have small slots of their own.
pub const SMALL_SLOT_BYTES: usize = 16 * KIB;

/// The smallest chunk, so that copies of a few hundred KiB go round the ring.
pub const CHUNK_BYTES: usize = 64 * KIB;

/// Between the size of a small slot and that of a chunk.
pub const THRESHOLD_BYTES: usize = 48 * KIB;

/// How many lanes and chunks the tests go through.
pub const SETUPS: [(usize, usize); 9] = [
    (1, 1),
    (1, 2),
    (1, 3),
    (2, 1),
    (2, 2),
    (2, 3),
    (4, 1),
    (4, 2),
    (4, 3),
];

/// Set the express lane of a device up with small chunks.
pub fn set_up(device: &Device, lanes: usize, ring_chunks: usize) {
    let mut config = device.express_config();
    (config.lanes, config.converting_lanes) = (lanes, lanes);
    config.chunk_bytes = CHUNK_BYTES;
    config.ring_chunks = ring_chunks;
    config.threshold_bytes = THRESHOLD_BYTES;
    config.threshold_asleep_bytes = THRESHOLD_BYTES;
    device.set_express_config(config).expect("a valid setup");
}

/// A simulated machine, its device with small chunks, and a stream.
pub fn small(lanes: usize, ring_chunks: usize) -> (Sim, Device, Stream) {
    let sim = crate::sim::sim();
    let device = crate::sim::open(&sim);
    set_up(&device, lanes, ring_chunks);
    let stream = device.stream().expect("a stream");
    (sim, device, stream)
}
