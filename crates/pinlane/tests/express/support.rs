//! What these tests share: small rings, patterns, and drivers that are watched or fail.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pinlane::{Budget, Device, Stream};
use pinlane_driver::{Call, Error, ErrorKind, Hook, Intercepted, Result};
use pinlane_sim::{Sim, SpanKind};

pub const KIB: usize = 1 << 10;

/// Copies up to this size have slots of their own.
pub const POCKET_BYTES: usize = 16 * KIB;

/// The smallest chunk, so that copies of a few hundred KiB go round the ring.
pub const CHUNK_BYTES: usize = 64 * KIB;

/// Between the size of a pocket and that of a chunk.
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
    let sim = super::common::sim();
    let device = super::common::open(&sim);
    set_up(&device, lanes, ring_chunks);
    let stream = device.stream().expect("a stream");
    (sim, device, stream)
}

/// Numbers that depend on a seed alone (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Bytes that are different in every place.
pub fn pattern(bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut pattern = Vec::with_capacity(bytes + 8);
    while pattern.len() < bytes {
        pattern.extend_from_slice(&random.next().to_le_bytes());
    }
    pattern.truncate(bytes);
    pattern
}

/// Numbers that are different in every place.
pub fn words(len: usize, seed: u64) -> Vec<u32> {
    let bytes = pattern(len * 4, seed);
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

/// Fails with the place of the first difference, not with a dump of all bytes.
#[track_caller]
pub fn assert_same<T: PartialEq + std::fmt::Debug>(found: &[T], expected: &[T], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}: length");
    if found == expected {
        return; // much faster than the search
    }
    if let Some(at) = found.iter().zip(expected).position(|(f, e)| f != e) {
        let (found, must) = (&found[at], &expected[at]);
        panic!("{what}: element {at} is {found:?}, must be {must:?}");
    }
}

/// Copies over the link so far, in bytes each, towards the device or from it.
pub fn copies(sim: &Sim, kind: SpanKind) -> Vec<usize> {
    let spans = sim.timeline().into_iter();
    let spans = spans.filter(|span| span.kind == kind);
    spans.map(|span| span.bytes as usize).collect()
}

/// Findings that break a promise, whatever was left behind.
pub fn misuse(sim: &Sim) -> Vec<String> {
    let findings = sim.finish().into_iter();
    let misuse = findings.filter(|finding| !finding.kind.is_leak());
    misuse.map(|finding| finding.to_string()).collect()
}

/// What a trap does when it springs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spring {
    Fail,
    Panic,
}

/// Which call of which kind fails or panics, and what was called since.
#[derive(Clone)]
pub struct Trap {
    inner: Arc<Inner>,
}

struct Inner {
    armed: AtomicBool,
    set: Mutex<Option<(Call, u64, Spring)>>,
    sprung: AtomicU64,
    calls: Mutex<Vec<Call>>,
}

pub const INJECTED: ErrorKind = ErrorKind::Other { code: 4242 };

impl Trap {
    /// A device of `sim` with a trap in its driver, which lets all calls through as yet. It has a
    /// budget of its own, in which tests beside it do not count.
    pub fn under(sim: &Sim) -> (Device, Self) {
        let trap = Self {
            inner: Arc::new(Inner {
                armed: AtomicBool::new(false),
                set: Mutex::new(None),
                sprung: AtomicU64::new(0),
                calls: Mutex::default(),
            }),
        };
        let driver = Intercepted::new(sim.driver(), trap.clone());
        let budget = Budget::with_limit(u64::MAX);
        (Device::with_budget(Arc::new(driver), &budget), trap)
    }

    /// From now on note all calls.
    pub fn watch(&self) {
        self.inner.armed.store(true, Ordering::SeqCst);
        self.lock_calls().clear();
    }

    /// From now on note all calls; number `at` of this kind, from 0, springs.
    pub fn set(&self, call: Call, at: u64, spring: Spring) {
        *self.lock_set() = Some((call, at, spring));
        self.watch();
    }

    /// From now on every call of this kind fails.
    pub fn refuse_all(&self, call: Call) {
        self.set(call, u64::MAX, Spring::Fail);
    }

    /// From now on let everything through. How often it sprang.
    pub fn disarm(&self) -> u64 {
        self.inner.armed.store(false, Ordering::SeqCst);
        *self.lock_set() = None;
        self.inner.sprung.swap(0, Ordering::SeqCst)
    }

    /// Calls since it was set.
    pub fn calls(&self) -> Vec<Call> {
        self.lock_calls().clone()
    }

    fn lock_calls(&self) -> std::sync::MutexGuard<'_, Vec<Call>> {
        let calls = self.inner.calls.lock();
        calls.unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_set(&self) -> std::sync::MutexGuard<'_, Option<(Call, u64, Spring)>> {
        let set = self.inner.set.lock();
        set.unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: its only error is not fatal.
unsafe impl Hook for Trap {
    fn before(&self, call: Call) -> Result<()> {
        if !self.inner.armed.load(Ordering::SeqCst) {
            return Ok(());
        }
        let before = {
            let mut calls = self.lock_calls();
            calls.push(call);
            calls.iter().filter(|&&earlier| earlier == call).count() as u64 - 1
        };
        let set = *self.lock_set();
        match set {
            Some((trapped, at, spring)) if trapped == call && (at == before || at == u64::MAX) => {
                self.inner.sprung.fetch_add(1, Ordering::SeqCst);
                assert!(spring == Spring::Fail, "on purpose");
                Err(Error::new(INJECTED, "trap").with_detail(format!("{call:?}")))
            }
            _ => Ok(()),
        }
    }
}

/// Whether it is the error of a trap.
pub fn is_injected(error: &pinlane::Error) -> bool {
    matches!(error, pinlane::Error::Driver(error) if error.kind == INJECTED)
}
