//! The state of a random program, and what its actions share.

use std::ops::{Deref, Range};

use pinlane::{Builtin, Device, DeviceBuf, PinnedBuf, Registered, Stream, Transfer, TransferError};
use pinlane_model::SplitMix64;
use pinlane_sim::Sim;

use crate::expected_memory::Shadow;

/// The state of a program.
pub(crate) struct Program<'a> {
    pub(crate) random: &'a mut SplitMix64,
    pub(crate) sim: Sim,
    pub(crate) device: Device,
    pub(crate) kernels: Option<Builtin>,
    pub(crate) streams: Vec<Stream>,
    /// Buffers of u32, with their shadows.
    pub(crate) memory: Vec<(DeviceBuf<u32>, Shadow)>,
    /// A buffer for converting copies.
    pub(crate) floats: Option<(DeviceBuf<f32>, Shadow)>,
    pub(crate) in_flight: Vec<InFlight>,
    pub(crate) transfers: u64,
    pub(crate) bytes_checked: u64,
    pub(crate) died: bool,
}

/// A transfer in flight, with the expected content of its buffer.
pub(crate) struct InFlight {
    pub(crate) transfer: AnyTransfer,
    pub(crate) expected: Shadow,
}

/// A transfer of any kind of host buffer.
pub(crate) enum AnyTransfer {
    Pinned(Transfer<PinnedBuf<u32>>),
    Registered(Transfer<Registered<Vec<u32>>>),
}

/// The smallest allowed chunk of the express lane.
pub(crate) const CHUNK_BYTES: usize = 64 << 10;
/// Number of device buffers.
const BUFFERS: usize = 4;
const STREAMS: usize = 4;
/// Most words of small buffers and transfers.
pub(crate) const MOST_WORDS: usize = 64;
/// Most words of large buffers, which take several rounds of the ring.
pub(crate) const LARGE_WORDS: usize = 4 * CHUNK_BYTES / 4;
/// One in this many buffers is large.
const LARGE_ONE_IN: u64 = 5;

impl<'a> Program<'a> {
    pub(crate) fn new(sim: &Sim, device: Device, random: &'a mut SplitMix64) -> Self {
        Self {
            random,
            sim: sim.clone(),
            device,
            kernels: None,
            streams: Vec::new(),
            memory: Vec::new(),
            floats: None,
            in_flight: Vec::new(),
            transfers: 0,
            bytes_checked: 0,
            died: false,
        }
    }

    /// Creates missing objects. What fails is tried again in the next step.
    pub(crate) fn create_missing(&mut self) {
        if self.streams.len() < STREAMS {
            let stream = self.device.stream();
            let stream = self.ok_or_note(stream);
            self.streams.extend(stream);
        }
        if self.kernels.is_none() {
            let kernels = Builtin::load(&self.device);
            self.kernels = self.ok_or_note(kernels);
        }
        if self.memory.len() < BUFFERS && !self.streams.is_empty() {
            let large = self.random.below(LARGE_ONE_IN) == 0;
            let most = if large { LARGE_WORDS } else { MOST_WORDS };
            let words = 1 + self.random.index(most);
            let buffer = if self.random.below(2) == 0 {
                self.device.alloc(words)
            } else {
                let stream = self.random.index(self.streams.len());
                self.streams[stream].alloc(words)
            };
            if let Some(buffer) = self.ok_or_note(buffer) {
                self.memory.push((buffer, Shadow::unknown(words)));
            }
        }
        if self.floats.is_none() {
            let len = 1 + self.random.index(LARGE_WORDS);
            let buffer = self.device.alloc(len);
            let buffer = self.ok_or_note(buffer);
            self.floats = buffer.map(|buffer| (buffer, Shadow::unknown(len)));
        }
    }

    pub(crate) fn any_stream(&mut self) -> Stream {
        self.random.pick(&self.streams).clone()
    }

    /// A buffer and a range of up to `most` words in it.
    pub(crate) fn any_range(&mut self, most: usize) -> (usize, Range<usize>) {
        let at = self.random.index(self.memory.len());
        let words = random_range(self.random, self.memory[at].0.len(), most);
        (at, words)
    }

    pub(crate) fn any_words(&mut self, len: usize) -> Vec<u32> {
        (0..len).map(|_| self.random.next_u64() as u32).collect()
    }

    /// Applies a write to the shadow.
    pub(crate) fn wrote<T>(
        &mut self,
        result: pinlane::Result<T>,
        at: usize,
        words: Range<usize>,
        content: &Shadow,
    ) -> Option<T> {
        self.memory[at].1.write(words, content, result.is_ok());
        self.ok_or_note(result)
    }

    /// Waits for a transfer and checks its data.
    pub(crate) fn complete(&mut self, in_flight: InFlight) -> Result<(), String> {
        let expected = &in_flight.expected;
        match in_flight.transfer {
            AnyTransfer::Pinned(transfer) => self.completed(transfer.wait(), expected),
            AnyTransfer::Registered(transfer) => self.completed(transfer.wait(), expected),
        }
    }

    /// Checks the data of a completed transfer.
    pub(crate) fn completed<B: Deref<Target = [u32]>>(
        &mut self,
        result: Result<B, TransferError<B>>,
        expected: &Shadow,
    ) -> Result<(), String> {
        match result {
            Ok(buffer) => self.check(expected, &buffer),
            Err(failed) => {
                self.note(&failed.error);
                Ok(())
            }
        }
    }

    pub(crate) fn check(&mut self, expected: &Shadow, words: &[u32]) -> Result<(), String> {
        self.check_bytes(expected, bytemuck::cast_slice(words))
    }

    pub(crate) fn check_bytes(&mut self, expected: &Shadow, bytes: &[u8]) -> Result<(), String> {
        let compared = expected.compare(bytes);
        self.bytes_checked +=
            compared.map_err(|wrong| format!("after {} transfers: {wrong}", self.transfers))?;
        Ok(())
    }

    /// The value, or `None` after an injected fault.
    pub(crate) fn ok_or_note<T>(&mut self, result: pinlane::Result<T>) -> Option<T> {
        result.map_err(|error| self.note(&error)).ok()
    }

    /// Notes an injected error; a fatal one ends the device.
    pub(crate) fn note(&mut self, error: &pinlane::Error) {
        if matches!(error, pinlane::Error::Driver(error) if error.is_fatal()) {
            self.died = true;
        }
    }

    /// Drops everything, and checks that nothing is left.
    pub(crate) fn release_all(&mut self) -> Result<(), String> {
        self.memory.clear();
        self.floats = None;
        self.kernels = None;
        self.streams.clear();
        // Twice: the first call may meet an injected fault.
        let _ = self.device.synchronize();
        let _ = self.device.synchronize();
        self.device.trim(); // what the express lane keeps is not a leak
        let stats = self.device.stats();
        if stats != pinlane::DeviceStats::default() {
            return Err(format!("something is left in the end: {stats:?}"));
        }
        Ok(())
    }
}

/// A range of 1 to `most` elements in a buffer of `len`.
pub(crate) fn random_range(random: &mut SplitMix64, len: usize, most: usize) -> Range<usize> {
    let start = random.index(len);
    let end = start + 1 + random.index(most.min(len - start));
    start..end
}
