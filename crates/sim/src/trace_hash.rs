//! A hash of everything that happened, to compare runs.

use pinlane_driver::{Error, Result};
use pinlane_model::SplitMix64;
use xxhash_rust::xxh3::xxh3_64;

use crate::timeline::{Engine, Span};

/// The hash so far. It excludes host addresses, which differ between runs.
#[derive(Default)]
pub(crate) struct Trace {
    hash: u64,
}

impl Trace {
    pub(crate) fn hash(&self) -> u64 {
        SplitMix64::mix(self.hash)
    }

    /// Adds a number. Cheap, because every call adds several.
    pub(crate) fn add(&mut self, value: u64) {
        let mixed = self.hash.rotate_left(26) ^ value;
        self.hash = mixed.wrapping_add(1).wrapping_mul(SplitMix64::STEP);
    }

    /// Adds the result of a call.
    pub(crate) fn outcome<T>(&mut self, result: &Result<T>) {
        match result {
            Ok(_) => self.add(1),
            Err(Error { kind, .. }) => self.add(xxh3_64(format!("{kind:?}").as_bytes())),
        }
    }

    /// Adds an operation.
    pub(crate) fn span(&mut self, span: &Span) {
        let engine = match span.engine {
            Engine::HostToDevice(index) => u64::from(index) << 2,
            Engine::DeviceToHost(index) => (u64::from(index) << 2) | 1,
            Engine::Compute => 2,
        };
        for value in [
            engine,
            span.stream,
            span.bytes,
            span.start_ns,
            span.end_ns,
            span.sequence,
        ] {
            self.add(value);
        }
    }
}
