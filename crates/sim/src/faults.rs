//! Faults that are injected on demand.

use std::collections::BTreeMap;

use crate::rng::Rng;

/// A kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FaultKind {
    /// An allocation of device or pinned memory fails.
    OutOfMemory,
    /// Memory cannot be registered.
    RefusedRegistration,
    /// A submission, or the creation of a stream or event, fails, and nothing was queued.
    FailedSubmit,
    /// An operation ends with an asynchronous error; the device is unusable from then on.
    LateError,
    /// The device is lost in the middle of any call.
    LostDevice,
    /// An operation does not end until the watchdog (10 virtual seconds) ends it, and the device
    /// with it.
    StuckCompletion,
}

impl FaultKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::OutOfMemory,
        Self::RefusedRegistration,
        Self::FailedSubmit,
        Self::LateError,
        Self::LostDevice,
        Self::StuckCompletion,
    ];
}

/// How often each kind of fault happens where it can, in thousandths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    per_mille: [u16; FaultKind::ALL.len()],
}

impl Faults {
    /// No faults.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Every kind, this often.
    #[must_use]
    pub fn all(per_mille: u16) -> Self {
        Self {
            per_mille: [per_mille; FaultKind::ALL.len()],
        }
    }

    /// The same, with this kind this often.
    #[must_use]
    pub fn with(mut self, kind: FaultKind, per_mille: u16) -> Self {
        self.per_mille[kind as usize] = per_mille;
        self
    }

    /// How often a kind happens.
    #[must_use]
    pub fn per_mille(&self, kind: FaultKind) -> u16 {
        self.per_mille[kind as usize]
    }
}

/// Draws faults and counts them.
pub(crate) struct Injector {
    faults: Faults,
    rng: Rng,
    hits: BTreeMap<FaultKind, u64>,
}

impl Injector {
    pub(crate) fn new(faults: Faults, seed: u64) -> Self {
        Self {
            faults,
            rng: Rng::new(seed, 2),
            hits: BTreeMap::new(),
        }
    }

    /// Whether this fault happens here.
    pub(crate) fn hit(&mut self, kind: FaultKind) -> bool {
        let per_mille = self.faults.per_mille(kind);
        if per_mille == 0 || self.rng.below(1000) >= u64::from(per_mille) {
            return false;
        }
        *self.hits.entry(kind).or_default() += 1;
        true
    }

    pub(crate) fn hits(&self) -> &BTreeMap<FaultKind, u64> {
        &self.hits
    }
}
