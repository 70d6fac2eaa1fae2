//! A slot that several threads write to at once, each its own samples.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use pinlane_core::PinnedTarget;

use super::slot::Slot;

/// A slot in which every sample has a place of its own, given out once.
pub(super) struct SharedSlot {
    /// Taken out once, when all samples are done. Nobody looks into it before.
    slot: Mutex<Option<Slot>>,
    start: NonNull<u8>,
    /// Bytes of each sample in each field, and where the first is.
    strides: Box<[Stride]>,
    samples: usize,
    /// Samples that were given out. Grows past `samples`.
    claimed: AtomicUsize,
    /// Samples that are not done.
    left: AtomicUsize,
}

/// The places of a field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stride {
    pub(super) start: usize,
    pub(super) bytes: usize,
}

// SAFETY: the pointer is to memory that `slot` owns, which may be sent.
unsafe impl Send for SharedSlot {}
// SAFETY: through `&self` the memory is reached by way of `claim` only, which gives every place to
// one thread; all else is locked or atomic.
unsafe impl Sync for SharedSlot {}

/// Some samples, given to one thread.
pub(super) struct Run<'a> {
    shared: &'a SharedSlot,
    next: usize,
    samples: Range<usize>,
}

/// The places of one sample.
pub(super) struct SamplePlaces<'r> {
    shared: &'r SharedSlot,
    sample: usize,
}

impl SharedSlot {
    /// # Panics
    /// When places overlap or are outside of the slot, or there are no samples.
    pub(super) fn new(mut slot: Slot, strides: Vec<Stride>, samples: usize) -> Self {
        assert!(samples > 0, "a batch of no samples is never done");
        let mut sorted: Vec<_> = strides.iter().filter(|stride| stride.bytes > 0).collect();
        sorted.sort_by_key(|stride| stride.start);
        let mut end = 0;
        for stride in sorted {
            assert!(stride.start >= end, "places overlap");
            let bytes = stride.bytes.checked_mul(samples).expect("too many bytes");
            end = stride.start.checked_add(bytes).expect("too many bytes");
        }
        assert!(end <= slot.buffer.len(), "places are outside of the slot");
        let start = NonNull::new(slot.buffer.start_mut()).expect("pinned memory is never at 0");
        Self {
            slot: Mutex::new(Some(slot)),
            start,
            strides: strides.into(),
            samples,
            claimed: AtomicUsize::new(0),
            left: AtomicUsize::new(samples),
        }
    }

    /// The slot, when nobody reads into it any more. `None` when somebody has it.
    pub(super) fn into_slot(self) -> Option<Slot> {
        self.slot
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there are samples that nobody has.
    pub(super) fn has_claims(&self) -> bool {
        self.claimed.load(Ordering::Relaxed) < self.samples
    }

    /// The next samples that nobody has, up to so many.
    pub(super) fn claim(&self, at_most: usize) -> Option<Run<'_>> {
        // Not counted up without end by those who only look.
        if !self.has_claims() {
            return None;
        }
        let at_most = at_most.clamp(1, self.samples);
        let first = self.claimed.fetch_add(at_most, Ordering::Relaxed);
        (first < self.samples).then(|| Run {
            shared: self,
            next: first,
            samples: first..self.samples.min(first + at_most),
        })
    }
}

impl Run<'_> {
    /// The places of the next sample.
    pub(super) fn next(&mut self) -> Option<SamplePlaces<'_>> {
        let sample = self.next;
        if sample >= self.samples.end {
            return None;
        }
        self.next += 1;
        Some(SamplePlaces {
            shared: self.shared,
            sample,
        })
    }

    /// Whether the middle of the batch is in it, which is so for one run of a batch.
    pub(super) fn has_middle(&self) -> bool {
        self.samples.contains(&(self.shared.samples / 2))
    }

    /// These samples are done. Whoever is the last gets the slot.
    pub(super) fn end(self) -> Option<Slot> {
        let done = self.samples.len();
        // What others wrote is seen by the last, which takes the slot.
        if self.shared.left.fetch_sub(done, Ordering::AcqRel) > done {
            return None;
        }
        let slot = self.shared.slot.lock();
        slot.unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<'r> SamplePlaces<'r> {
    /// Which sample of the batch it is.
    pub(super) fn sample(&self) -> usize {
        self.sample
    }

    /// The place in each field, in their order.
    pub(super) fn fields(self) -> impl Iterator<Item = &'r mut [u8]> {
        let Self { shared, sample } = self;
        shared.strides.iter().map(move |stride| {
            let at = stride.start + sample * stride.bytes;
            // SAFETY: inside of the slot and apart from every other place, as `new` checked; the slot's
            // own access is not used before all runs have ended. `claim` counts up, so this sample is in
            // one run only; the run counts up, so it is given out once; and this takes `self`. `'r`
            // borrows the run, and the memory stays until that has ended: a run that is dropped without
            // ending leaves the slot where it is, for as long as the borrow of `shared` lasts.
            unsafe { std::slice::from_raw_parts_mut(shared.start.as_ptr().add(at), stride.bytes) }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::{SharedSlot, Slot, Stride};
    use pinlane_core::Device;

    const SAMPLES: usize = 23;
    const STRIDES: [Stride; 3] = [
        Stride {
            start: 200,
            bytes: 3,
        },
        Stride { start: 0, bytes: 0 },
        Stride { start: 7, bytes: 5 },
    ];

    fn slot(bytes: usize) -> Slot {
        let profile = pinlane_model::Profile::builtin("pcie3-x16").expect("built in");
        let sim = pinlane_sim::Sim::new(profile);
        let device = Device::open(&sim, 0).expect("it opens");
        let pool = pinlane_core::PinnedPool::new(&device);
        Slot::new(&device, &pool, bytes, &Arc::default()).expect("enough memory")
    }

    /// Writes its samples, in runs of so many. The slot, if it is the last.
    fn write(shared: &SharedSlot, at_most: usize) -> Option<Slot> {
        let mut last = None;
        while let Some(mut run) = shared.claim(at_most) {
            while let Some(places) = run.next() {
                let sample = places.sample();
                for place in places.fields() {
                    place.fill(sample as u8);
                }
            }
            assert!(last.is_none(), "nobody ends a batch twice");
            last = run.end();
        }
        last
    }

    #[test]
    fn threads_write_their_own_samples_and_the_last_has_the_slot() {
        for at_most in [1, 2, 7, 100] {
            let shared = SharedSlot::new(slot(300), STRIDES.to_vec(), SAMPLES);
            let slots: Vec<Slot> = thread::scope(|scope| {
                let threads = [(); 3].map(|()| scope.spawn(|| write(&shared, at_most)));
                let ends = threads.map(|thread| thread.join().expect("no panic"));
                ends.into_iter().flatten().collect()
            });
            let [slot] = &slots[..] else {
                panic!("{} threads have the slot", slots.len());
            };
            for stride in STRIDES {
                let samples = &slot.buffer[stride.start..][..SAMPLES * stride.bytes];
                for (at, byte) in samples.iter().enumerate() {
                    assert_eq!(usize::from(*byte), at / stride.bytes);
                }
            }
            assert!(shared.claim(1).is_none() && shared.into_slot().is_none());
        }
    }

    #[test]
    fn a_run_that_is_dropped_keeps_the_slot() {
        let shared = SharedSlot::new(slot(300), STRIDES.to_vec(), SAMPLES);
        let _ = shared.claim(2);
        assert!(write(&shared, 4).is_none());
        assert!(shared.into_slot().is_some());
    }

    #[test]
    #[should_panic(expected = "places overlap")]
    fn places_that_overlap() {
        let strides = [0, 20].map(|start| Stride { start, bytes: 1 });
        SharedSlot::new(slot(300), strides.to_vec(), SAMPLES);
    }

    #[test]
    #[should_panic(expected = "places are outside of the slot")]
    fn places_outside() {
        SharedSlot::new(slot(268), STRIDES.to_vec(), SAMPLES);
    }
}
