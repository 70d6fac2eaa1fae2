//! Fault injection.

use std::collections::BTreeMap;

use crate::rng::Rng;

/// A kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FaultKind {
    /// An allocation of device or pinned memory fails.
    OutOfMemory,
    /// A registration is refused.
    RefusedRegistration,
    /// A submission, or the creation of a stream or event, fails without effect.
    FailedSubmit,
    /// An operation ends with an asynchronous error, which makes the device unusable.
    LateError,
    /// The device is lost during a call.
    LostDevice,
    /// An operation hangs until the watchdog ends it after 10 virtual seconds, which makes the
    /// device unusable.
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

/// The probability of each kind of fault, in thousandths.
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

    /// The same probability for every kind.
    #[must_use]
    pub fn all(per_mille: u16) -> Self {
        Self {
            per_mille: [per_mille; FaultKind::ALL.len()],
        }
    }

    /// Sets the probability of one kind.
    #[must_use]
    pub fn with(mut self, kind: FaultKind, per_mille: u16) -> Self {
        self.per_mille[kind as usize] = per_mille;
        self
    }

    /// The probability of a kind.
    #[must_use]
    pub fn per_mille(&self, kind: FaultKind) -> u16 {
        self.per_mille[kind as usize]
    }
}

/// Draws faults and counts them.
pub(crate) struct Injector {
    faults: Faults,
    rng: Rng,
    pub(crate) hits: BTreeMap<FaultKind, u64>,
}

impl Injector {
    pub(crate) fn new(faults: Faults, seed: u64) -> Self {
        Self {
            faults,
            rng: Rng::new(seed, 2),
            hits: BTreeMap::new(),
        }
    }

    /// Whether this fault happens now.
    pub(crate) fn hit(&mut self, kind: FaultKind) -> bool {
        let per_mille = self.faults.per_mille(kind);
        if per_mille == 0 || self.rng.below(1000) >= u64::from(per_mille) {
            return false;
        }
        *self.hits.entry(kind).or_default() += 1;
        true
    }
}
