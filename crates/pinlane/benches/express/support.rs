//! What every section needs: a device, raw driver copies, a clock, memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pinlane::driver::{CopyOp, Driver, HostPtr, Place, StreamHandle};
use pinlane::{Device, DevicePtr, Platform, Result, Stream};

pub const KIB: usize = 1 << 10;
pub const MIB: usize = 1 << 20;
pub const GIB: usize = 1 << 30;

pub struct Bench {
    pub device: Device,
    pub stream: Stream,
    pub driver: Arc<dyn Driver>,
    /// A stream of the driver's own, for copies that the library has no part in.
    pub plain: StreamHandle,
}

impl Bench {
    pub fn new(platform: &dyn Platform) -> Result<Self> {
        let device = Device::open(platform, 0)?;
        // SAFETY: only used for copies on streams that live as long as they are used; no pinned memory.
        let driver = Arc::clone(unsafe { pinlane::raw::driver(&device) });
        let flags = pinlane::StreamFlags {
            non_blocking: true,
            priority: 0,
        };
        Ok(Self {
            stream: device.stream()?,
            plain: driver.stream_create(flags)?,
            driver,
            device,
        })
    }

    /// The driver's asynchronous copy and a wait for the stream.
    pub fn plain_async(&self, copy: CopyOp) {
        // SAFETY: the callers pass memory that they hold for the time of the call.
        unsafe { self.driver.copy_async(copy, self.plain) }.expect("a copy");
        // SAFETY: created in `new`, and never destroyed.
        unsafe { self.driver.stream_synchronize(self.plain) }.expect("a wait");
    }

    /// The driver's synchronous copy.
    pub fn plain_sync(&self, copy: CopyOp) {
        // SAFETY: as above.
        unsafe { self.driver.copy(copy) }.expect("a copy");
    }
}

pub fn up(source: &[u8], target: DevicePtr) -> CopyOp {
    CopyOp {
        source: Place::Host(host_ptr(source.as_ptr())),
        target: Place::Device(target),
        bytes: source.len(),
    }
}

pub fn down(source: DevicePtr, target: &mut [u8]) -> CopyOp {
    CopyOp {
        source: Place::Device(source),
        target: Place::Host(host_ptr(target.as_ptr())),
        bytes: target.len(),
    }
}

fn host_ptr(start: *const u8) -> HostPtr {
    HostPtr::new(start.cast_mut().cast()).expect("not at 0")
}

pub fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// Medians of works that are done in turns, `rounds` times, after a round that does not count. Each
/// turn is three runs, the first of which does not count either: it finds caches and lanes as the
/// others left them.
pub fn in_turns<const N: usize>(rounds: usize, mut works: [&mut dyn FnMut(); N]) -> [Duration; N] {
    let mut times: [Vec<Duration>; N] = std::array::from_fn(|_| Vec::new());
    for round in 0..rounds.div_ceil(2) + 1 {
        for (times, work) in times.iter_mut().zip(&mut works) {
            work();
            let turn = [timed(&mut *work), timed(&mut *work)];
            if round > 0 {
                times.extend(turn);
            }
        }
    }
    times.map(median)
}

pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

pub fn rate(bytes: usize, time: Duration) -> f64 {
    bytes as f64 / time.as_secs_f64() / 1e9
}

/// How many times faster.
pub fn times_faster(slow: Duration, fast: Duration) -> f64 {
    slow.as_secs_f64() / fast.as_secs_f64()
}

pub fn size(bytes: usize) -> String {
    match bytes {
        GIB.. => format!("{} GiB", bytes / GIB),
        MIB.. => format!("{} MiB", bytes / MIB),
        _ => format!("{} KiB", bytes / KIB),
    }
}

/// Bytes that differ from place to place, all pages touched.
pub fn recognisable(bytes: usize, seed: u64) -> Vec<u8> {
    let mut words = Random::new(seed);
    let mut data = Vec::with_capacity(bytes.next_multiple_of(8));
    while data.len() < bytes {
        data.extend_from_slice(&words.next().to_le_bytes());
    }
    data.truncate(bytes);
    data
}

/// A small generator, the same on every machine.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}
