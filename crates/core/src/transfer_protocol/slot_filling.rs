//! One buffer that several threads fill or empty together. The thread that finishes last gets it.
//!
//! ```text
//!   SharedSlot::new(buffer, …)            SharedSlot::unopened(units)
//!        |                                     | claim of unit 0: open(buffer)
//!        |                                     | other claims:    wait_until_open
//!        +------- claim -- work -- finish -----+
//!                                    | last one
//!                                  buffer
//! ```
//!
//! Work comes in numbered units. [`claim`](SharedSlot::claim) hands each unit to exactly one thread.
//! A claim that is dropped unfinished, by an error or a panic, keeps the buffer inside for good;
//! [`into_inner`](SharedSlot::into_inner) recovers it once no claims are left.

use std::fmt;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::sync::{AtomicUsize, Ordering, UnsafeCell, wait_until};

/// A buffer that several threads work on, each on its own units.
pub struct SharedSlot<B> {
    /// Written by `open` and taken by the last `finish`. Claims only read it in between.
    content: UnsafeCell<Option<Content<B>>>,
    /// 1 once `content` is there.
    open: AtomicUsize,
    strides: Box<[Stride]>,
    units: usize,
    /// Units claimed so far. May exceed `units`.
    claimed: AtomicUsize,
    /// Units not finished yet.
    unfinished: AtomicUsize,
}

struct Content<B> {
    buffer: B,
    /// First byte of the buffer's memory. Unused by slots without strides.
    start: NonNull<u8>,
}

/// An array inside the buffer. Unit `i` owns the `i`-th `unit_bytes` of `range`; the last unit may
/// be shorter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stride {
    /// Bytes of the buffer.
    pub range: Range<usize>,
    /// Bytes of each unit.
    pub unit_bytes: usize,
}

/// Memory that claims may hand out as disjoint slices.
///
/// # Safety
/// `memory` returns the start and length of initialised memory. Until the value is dropped it stays
/// valid and at the same address wherever the value is moved, and nothing accesses it except
/// through the value or the returned pointer.
pub unsafe trait SlotMemory {
    /// First byte and number of bytes.
    fn memory(&mut self) -> (NonNull<u8>, usize);
}

// SAFETY: the memory is that of `M`. `T` has no access to it.
unsafe impl<M: SlotMemory, T> SlotMemory for (M, T) {
    fn memory(&mut self) -> (NonNull<u8>, usize) {
        self.0.memory()
    }
}

/// Units that belong to one thread. `R` refers to the slot: a plain reference or an `Arc`.
#[must_use = "a claim that is dropped unfinished keeps the buffer inside the slot"]
#[derive(Debug)]
pub struct Claim<R> {
    slot: R,
    units: Range<usize>,
}

// SAFETY: the pointer refers to memory that the buffer owns, and the buffer may be sent.
unsafe impl<B: Send> Send for SharedSlot<B> {}
// SAFETY: every unit has one claim, and claims access only their own units' memory. The buffer
// itself is moved in by one claim and out by the last; `Claim::buffer` shares it only if it is
// `Sync`. All other fields are atomic or never change.
unsafe impl<B: Send> Sync for SharedSlot<B> {}

impl<B> fmt::Debug for SharedSlot<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unfinished = self.unfinished.load(Ordering::Relaxed);
        f.debug_struct("SharedSlot")
            .field("units", &self.units)
            .field("unfinished", &unfinished)
            .finish_non_exhaustive()
    }
}

impl<B> SharedSlot<B> {
    /// A slot whose claims hand out slices of its buffer.
    ///
    /// # Panics
    /// If there are no units, or the strides overlap, lie outside of the buffer, or have more or
    /// fewer units than the slot.
    pub fn new(mut buffer: B, units: usize, strides: Vec<Stride>) -> Self
    where
        B: SlotMemory,
    {
        let (start, len) = buffer.memory();
        check(&strides, units, len);
        Self {
            content: UnsafeCell::new(Some(Content { buffer, start })),
            open: AtomicUsize::new(1),
            strides: strides.into(),
            ..Self::unopened(units)
        }
    }

    /// A slot that gets its buffer from the claim of unit 0, through [`Claim::open`].
    ///
    /// # Panics
    /// If there are no units.
    pub fn unopened(units: usize) -> Self {
        assert!(units > 0, "a slot without units is never finished");
        Self {
            content: UnsafeCell::new(None),
            open: AtomicUsize::new(0),
            strides: Box::default(),
            units,
            claimed: AtomicUsize::new(0),
            unfinished: AtomicUsize::new(units),
        }
    }

    /// Number of units, claimed or not.
    pub fn units(&self) -> usize {
        self.units
    }

    /// Whether some units are still unclaimed.
    pub fn has_unclaimed(&self) -> bool {
        self.claimed.load(Ordering::Relaxed) < self.units
    }

    /// Claims the next units, at least one and at most `at_most`. `None` if all are claimed.
    pub fn claim(&self, at_most: usize) -> Option<Claim<&Self>> {
        let units = self.claim_units(at_most)?;
        Some(Claim { slot: self, units })
    }

    /// The same, with a claim that keeps the slot alive.
    pub fn claim_arc(slot: &Arc<Self>, at_most: usize) -> Option<Claim<Arc<Self>>> {
        let units = slot.claim_units(at_most)?;
        let slot = Arc::clone(slot);
        Some(Claim { slot, units })
    }

    fn claim_units(&self, at_most: usize) -> Option<Range<usize>> {
        // Threads that poll an exhausted slot must not make the counter overflow.
        if !self.has_unclaimed() {
            return None;
        }
        let at_most = at_most.clamp(1, self.units);
        let first = self.claimed.fetch_add(at_most, Ordering::Relaxed);
        (first < self.units).then(|| first..self.units.min(first + at_most))
    }

    /// The buffer, unless it was never there or the last claim took it.
    pub fn into_inner(self) -> Option<B> {
        self.content.into_inner().map(|content| content.buffer)
    }

    fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire) == 1
    }
}

impl<B, R: Deref<Target = SharedSlot<B>>> Claim<R> {
    /// The slot that the units belong to.
    pub fn slot(&self) -> &R {
        &self.slot
    }

    /// The claimed units.
    pub fn units(&self) -> Range<usize> {
        self.units.clone()
    }

    /// Whether this claim has to [`open`](Self::open) the slot: it has unit 0 of an unopened slot.
    pub fn must_open(&self) -> bool {
        self.units.start == 0 && !self.slot.is_open()
    }

    /// Provides the buffer, for all claims.
    ///
    /// # Panics
    /// If another claim has unit 0, or the slot is open already.
    pub fn open(&self, buffer: B) {
        assert!(self.must_open(), "only the claim of unit 0 opens, and once");
        let start = NonNull::dangling(); // never used, since there are no strides
        self.slot.content.with_mut(|content| {
            // SAFETY: one claim has unit 0, and it gets here once. Other claims do not access the
            // content before they have seen it open; the last `finish` comes after this claim's.
            unsafe { *content = Some(Content { buffer, start }) };
        });
        self.slot.open.store(1, Ordering::Release);
    }

    /// Waits until the slot is open. Returns false if `stopped` was true before that.
    pub fn wait_until_open(&self, stopped: impl Fn() -> bool) -> bool {
        wait_until(|| self.slot.is_open(), stopped)
    }

    /// The buffer of a slot without strides. Claims share it: they agree among themselves which
    /// unit accesses what.
    ///
    /// # Panics
    /// If the slot is not open or has strides.
    pub fn buffer(&self) -> &B
    where
        B: Sync,
    {
        assert!(self.slot.strides.is_empty(), "strides own the memory");
        &self.content().buffer
    }

    /// The memory of one claimed unit: a slice of each stride, in their order.
    ///
    /// # Panics
    /// If the unit belongs to another claim.
    pub fn slices_mut<'c>(&'c mut self, unit: usize) -> impl Iterator<Item = &'c mut [u8]>
    where
        B: 'c,
    {
        assert!(self.units.contains(&unit), "the unit is another claim's");
        let start = match self.slot.strides.is_empty() {
            true => NonNull::dangling(),
            false => self.content().start,
        };
        self.slot.strides.iter().map(move |stride| {
            let range = stride.range_of(unit);
            // SAFETY: inside of the buffer and disjoint from every other unit and stride, as `new`
            // has checked. The unit is in one claim only, which is borrowed exclusively, and each
            // stride comes once. The buffer stays inside until this claim has finished.
            unsafe {
                let first = start.add(range.start).as_ptr();
                std::slice::from_raw_parts_mut(first, range.len())
            }
        })
    }

    /// The claimed units are done. Returns the buffer if they were the last ones.
    pub fn finish(self) -> Option<B> {
        let done = self.units.len();
        // Release what this thread wrote, and acquire what all others wrote.
        if self.slot.unfinished.fetch_sub(done, Ordering::AcqRel) > done {
            return None;
        }
        let taken = self.slot.content.with_mut(|content| {
            // SAFETY: all units are finished, so no other claim is left.
            unsafe { (*content).take() }
        });
        taken.map(|content| content.buffer)
    }

    fn content(&self) -> &Content<B> {
        assert!(self.slot.is_open(), "the slot is not open yet");
        self.slot.content.with(|content| {
            // SAFETY: written before the slot was open, and not taken before this claim has
            // finished, which the borrow of `self` rules out.
            unsafe { (*content).as_ref() }.expect("an open slot has its buffer")
        })
    }
}

impl Stride {
    /// Bytes of the buffer that belong to `unit`.
    fn range_of(&self, unit: usize) -> Range<usize> {
        let Range { start, end } = self.range;
        if start == end {
            return start..start;
        }
        let start = start + unit * self.unit_bytes;
        start..end.min(start.saturating_add(self.unit_bytes))
    }
}

/// Panics unless every unit has memory of its own.
fn check(strides: &[Stride], units: usize, buffer_bytes: usize) {
    let mut sorted: Vec<_> = strides.iter().filter(|s| !s.range.is_empty()).collect();
    sorted.sort_by_key(|stride| stride.range.start);
    let mut end = 0;
    for Stride { range, unit_bytes } in sorted {
        assert!(
            range.start >= end,
            "strides overlap at byte {}",
            range.start
        );
        let count = (*unit_bytes > 0).then(|| range.len().div_ceil(*unit_bytes));
        assert_eq!(
            count,
            Some(units),
            "{range:?} in units of {unit_bytes} bytes"
        );
        end = range.end;
    }
    assert!(
        end <= buffer_bytes,
        "strides end at byte {end} of {buffer_bytes}"
    );
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    // SAFETY: the elements live on the heap, and nothing here resizes the vector.
    unsafe impl SlotMemory for Vec<u8> {
        fn memory(&mut self) -> (NonNull<u8>, usize) {
            let start = NonNull::new(self.as_mut_ptr()).expect("never null");
            (start, self.len())
        }
    }

    const UNITS: usize = 23;

    fn stride(start: usize, unit_bytes: usize) -> Stride {
        Stride {
            range: start..start + UNITS * unit_bytes,
            unit_bytes,
        }
    }

    fn strides() -> Vec<Stride> {
        vec![stride(200, 3), stride(0, 0), stride(7, 5)]
    }

    /// Fills what it can claim with the numbers of the units. The buffer, if it finishes last.
    fn fill(slot: &SharedSlot<Vec<u8>>, at_most: usize) -> Option<Vec<u8>> {
        let mut last = None;
        while let Some(mut claim) = slot.claim(at_most) {
            for unit in claim.units() {
                for slice in claim.slices_mut(unit) {
                    slice.fill(unit as u8);
                }
            }
            assert!(last.is_none(), "nothing is finished twice");
            last = claim.finish();
        }
        last
    }

    fn fill_on_three_threads(slot: &SharedSlot<Vec<u8>>, at_most: usize) -> Vec<u8> {
        let buffers: Vec<_> = thread::scope(|scope| {
            let threads = [(); 3].map(|()| scope.spawn(|| fill(slot, at_most)));
            let ends = threads.map(|thread| thread.join().expect("no panic"));
            ends.into_iter().flatten().collect()
        });
        let [buffer] = <[_; 1]>::try_from(buffers).expect("one thread gets the buffer");
        buffer
    }

    #[test]
    fn threads_fill_their_own_units_and_the_last_gets_the_buffer() {
        for at_most in [1, 2, 7, 100] {
            let slot = SharedSlot::new(vec![0xff; 300], UNITS, strides());
            let buffer = fill_on_three_threads(&slot, at_most);
            for Stride { range, unit_bytes } in strides() {
                for (at, byte) in buffer[range].iter().enumerate() {
                    assert_eq!(usize::from(*byte), at / unit_bytes);
                }
            }
            assert!(buffer[269..].iter().all(|byte| *byte == 0xff));
            assert!(slot.claim(1).is_none() && slot.into_inner().is_none());
        }
    }

    #[test]
    fn the_last_unit_may_be_shorter() {
        for (units, range, unit_bytes) in [
            (5, 10..19, 2),
            (1, 0..19, usize::MAX),
            (1, 19..20, 4096),
            (2, 0..20, 19),
        ] {
            let range_of = range.clone();
            let strides = vec![Stride { range, unit_bytes }];
            let slot = SharedSlot::new(vec![0xff; 20], units, strides);
            let buffer = fill_on_three_threads(&slot, 1);
            for (at, byte) in buffer.iter().enumerate() {
                let expected = match range_of.contains(&at) {
                    true => (at - range_of.start) / unit_bytes,
                    false => 0xff,
                };
                assert_eq!(usize::from(*byte), expected, "{range_of:?} at {at}");
            }
        }
    }

    #[test]
    fn a_dropped_claim_keeps_the_buffer_inside() {
        let slot = SharedSlot::new(vec![0; 300], UNITS, strides());
        let _ = slot.claim(2);
        assert!(fill(&slot, 4).is_none());
        assert!(slot.into_inner().is_some());
    }

    #[test]
    fn a_claim_can_keep_the_slot_alive() {
        let slot = Arc::new(SharedSlot::new(vec![0; 300], UNITS, strides()));
        let mut claim = SharedSlot::claim_arc(&slot, usize::MAX).expect("unclaimed");
        assert!(!slot.has_unclaimed() && SharedSlot::claim_arc(&slot, 1).is_none());
        assert!(Arc::into_inner(slot).is_none());
        assert_eq!(claim.slot().units(), UNITS);
        claim.slices_mut(22).for_each(|slice| slice.fill(1));
        assert_eq!(claim.finish().expect("the only claim")[268], 1);
    }

    #[test]
    fn other_claims_wait_for_the_one_that_opens() {
        let slot = SharedSlot::unopened(4);
        let first = slot.claim(1).expect("unclaimed");
        assert!(first.must_open());
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                let claim = slot.claim(3).expect("unclaimed");
                assert!(!claim.must_open() && claim.wait_until_open(|| false));
                assert_eq!(*claim.buffer(), 7);
                claim.finish()
            });
            first.open(7);
            assert!(!first.must_open());
            let taken = first.finish();
            let other = other.join().expect("no panic");
            assert_eq!(taken.or(other), Some(7));
        });
        assert_eq!(slot.into_inner(), None);
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let slot = SharedSlot::<u32>::unopened(2);
        let stopped = AtomicBool::new(false);
        let first = slot.claim(1).expect("unclaimed");
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                let claim = slot.claim(1).expect("unclaimed");
                claim.wait_until_open(|| stopped.load(Ordering::Relaxed))
            });
            drop(first);
            stopped.store(true, Ordering::Relaxed);
            assert!(!other.join().expect("no panic"));
        });
        assert_eq!(slot.into_inner(), None);
    }

    #[test]
    fn misuse_panics() {
        let slot = || SharedSlot::new(vec![0; 300], UNITS, strides());
        let of = |bytes, units, strides| drop(SharedSlot::new(vec![0; bytes], units, strides));
        let misuses: [(&str, &dyn Fn()); 6] = [
            ("strides overlap at byte 20", &|| {
                of(300, UNITS, vec![stride(0, 1), stride(20, 1)]);
            }),
            ("strides end at byte 269 of 268", &|| {
                of(268, UNITS, strides());
            }),
            ("in units of 5 bytes", &|| {
                of(300, UNITS - 1, vec![stride(0, 5)]);
            }),
            ("the unit is another claim's", &|| {
                let slot = slot();
                let mut claim = slot.claim(2).expect("unclaimed");
                let _ = claim.slices_mut(2).count();
            }),
            ("strides own the memory", &|| {
                slot().claim(2).expect("unclaimed").buffer();
            }),
            ("only the claim of unit 0 opens, and once", &|| {
                let slot = SharedSlot::unopened(2);
                let _first = slot.claim(1);
                slot.claim(1).expect("unclaimed").open(7);
            }),
        ];
        for (expected, misuse) in misuses {
            let panic = catch_unwind(AssertUnwindSafe(misuse)).expect_err(expected);
            let message = panic.downcast_ref::<String>().map(String::as_str);
            let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
            assert!(message.is_some_and(|message| message.contains(expected)));
        }
    }
}
