//! A random program: its state, and how a run goes.

use pinlane::{Builtin, Device, DeviceBuf, PinnedBuf, Registered, Stream, Transfer, TransferError};
use pinlane_sim::Sim;

use crate::choice::Choice;
use crate::express::CHUNK_BYTES;
use crate::shadow::Shadow;

/// Everything that the program holds.
pub(crate) struct Program<'a> {
    pub(crate) choice: &'a mut Choice,
    pub(crate) sim: Sim,
    pub(crate) device: Device,
    pub(crate) kernels: Option<Builtin>,
    pub(crate) streams: Vec<Stream>,
    /// Buffers of u32, with their bytes' shadow.
    pub(crate) memory: Vec<(DeviceBuf<u32>, Shadow)>,
    /// A buffer for copies that convert.
    pub(crate) floats: Option<(DeviceBuf<f32>, Shadow)>,
    pub(crate) flying: Vec<Flying>,
    pub(crate) transfers: u64,
    pub(crate) bytes_checked: u64,
    died: bool,
}

/// A transfer with what its buffer must hold in the end.
pub(crate) struct Flying {
    pub(crate) transfer: Held,
    pub(crate) must: Shadow,
}

/// The kinds of buffers that fly.
pub(crate) enum Held {
    Pinned(Transfer<PinnedBuf<u32>>),
    Registered(Transfer<Registered<Vec<u32>>>),
}

/// Buffers that the program keeps on the device.
const BUFFERS: usize = 4;
const STREAMS: usize = 4;
/// Words of most buffers, and of most transfers.
pub(crate) const MOST_WORDS: usize = 64;
/// Words of the large buffers: they take a ring of small chunks round and round.
pub(crate) const LARGE_WORDS: usize = 4 * CHUNK_BYTES / 4;
/// One of so many buffers is large.
const LARGE_ONE_OF: usize = 5;
/// More than this many at a time are waited for.
const MOST_FLYING: usize = 24;

impl<'a> Program<'a> {
    pub(crate) fn new(sim: &Sim, device: Device, choice: &'a mut Choice) -> Self {
        Self {
            choice,
            sim: sim.clone(),
            device,
            kernels: None,
            streams: Vec::new(),
            memory: Vec::new(),
            floats: None,
            flying: Vec::new(),
            transfers: 0,
            bytes_checked: 0,
            died: false,
        }
    }

    pub(crate) fn died(&self) -> bool {
        self.died
    }

    /// Act until `transfers` were submitted, then give everything back.
    pub(crate) fn run(&mut self, transfers: u64) -> Result<(), String> {
        self.set_up_express();
        while self.transfers < transfers && !self.died {
            self.stock_up();
            if !self.died && !self.streams.is_empty() && !self.memory.is_empty() {
                self.act()?;
            }
            while self.flying.len() > MOST_FLYING {
                let flying = self.flying.remove(0);
                self.land(flying)?;
            }
        }
        while let Some(flying) = self.flying.pop() {
            self.land(flying)?;
        }
        self.give_everything_back()
    }

    /// Make what is missing. What is refused is missing until the next step.
    fn stock_up(&mut self) {
        if self.streams.len() < STREAMS {
            let stream = self.device.stream();
            let stream = self.survive(stream);
            self.streams.extend(stream);
        }
        if self.kernels.is_none() {
            let kernels = Builtin::load(&self.device);
            self.kernels = self.survive(kernels);
        }
        if self.memory.len() < BUFFERS && !self.streams.is_empty() {
            let large = self.choice.below(LARGE_ONE_OF) == 0;
            let most = if large { LARGE_WORDS } else { MOST_WORDS };
            let words = 1 + self.choice.below(most);
            let buffer = if self.choice.below(2) == 0 {
                self.device.alloc(words)
            } else {
                let stream = self.choice.below(self.streams.len());
                self.streams[stream].alloc(words)
            };
            if let Some(buffer) = self.survive(buffer) {
                self.memory.push((buffer, Shadow::unknown(words * 4)));
            }
        }
        if self.floats.is_none() {
            let len = 1 + self.choice.below(LARGE_WORDS);
            let buffer = self.device.alloc(len);
            let buffer = self.survive(buffer);
            self.floats = buffer.map(|buffer| (buffer, Shadow::unknown(len * 4)));
        }
    }

    /// Wait for a transfer and compare what it brought.
    pub(crate) fn land(&mut self, flying: Flying) -> Result<(), String> {
        match flying.transfer {
            Held::Pinned(transfer) => {
                let landed = transfer.wait();
                self.landed(landed, &flying.must, |buffer| &buffer[..])
            }
            Held::Registered(transfer) => {
                let landed = transfer.wait();
                self.landed(landed, &flying.must, |buffer| &buffer[..])
            }
        }
    }

    pub(crate) fn landed<B>(
        &mut self,
        landed: Result<B, TransferError<B>>,
        must: &Shadow,
        words: impl Fn(&B) -> &[u32],
    ) -> Result<(), String> {
        match landed {
            Ok(buffer) => self.check(must, words(&buffer)),
            Err(failed) => {
                self.note(&failed.error);
                Ok(())
            }
        }
    }

    pub(crate) fn check(&mut self, must: &Shadow, words: &[u32]) -> Result<(), String> {
        self.check_bytes(must, bytemuck::cast_slice(words))
    }

    pub(crate) fn check_bytes(&mut self, must: &Shadow, bytes: &[u8]) -> Result<(), String> {
        let compared = must.compare(bytes);
        self.bytes_checked +=
            compared.map_err(|wrong| format!("after {} transfers: {wrong}", self.transfers))?;
        Ok(())
    }

    /// The value, or nothing after an injected fault.
    pub(crate) fn survive<T>(&mut self, result: pinlane::Result<T>) -> Option<T> {
        result.map_err(|error| self.note(&error)).ok()
    }

    /// Errors are injected; a fatal one ends the program.
    pub(crate) fn note(&mut self, error: &pinlane::Error) {
        if matches!(error, pinlane::Error::Driver(error) if error.is_fatal()) {
            self.died = true;
        }
    }

    /// Drop all, and look at the books.
    fn give_everything_back(&mut self) -> Result<(), String> {
        self.memory.clear();
        self.floats = None;
        self.kernels = None;
        self.streams.clear();
        // Twice: the first may be the one that meets an injected fault.
        let _ = self.device.synchronize();
        let _ = self.device.synchronize();
        self.device.trim(); // what the express lane keeps is no leak
        let stats = self.device.stats();
        if stats != pinlane::DeviceStats::default() {
            return Err(format!("the books say that something is left: {stats:?}"));
        }
        Ok(())
    }
}
