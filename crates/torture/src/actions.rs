//! The actions of a program, and the loop that takes them.

use std::future::Future;
use std::ops::Range;
use std::pin::pin;
use std::task::{Context, Waker};

use pinlane::{PinnedBuf, PinnedSource, Transfer};

use crate::expected_memory::Shadow;
use crate::program_state::{AnyTransfer, InFlight, MOST_WORDS, Program};
use crate::virtual_time_executor::block_on;

/// Above this number, the program waits for the oldest one.
const MOST_IN_FLIGHT: usize = 24;

impl Program<'_> {
    /// Acts until `transfers` have been submitted, then releases everything.
    pub(crate) fn run(&mut self, transfers: u64) -> Result<(), String> {
        self.configure_express();
        while self.transfers < transfers && !self.died {
            self.create_missing();
            if !self.died && !self.streams.is_empty() && !self.memory.is_empty() {
                self.act()?;
            }
            while self.in_flight.len() > MOST_IN_FLIGHT {
                let in_flight = self.in_flight.remove(0);
                self.complete(in_flight)?;
            }
        }
        while let Some(in_flight) = self.in_flight.pop() {
            self.complete(in_flight)?;
        }
        self.release_all()
    }

    /// Takes a random action.
    pub(crate) fn act(&mut self) -> Result<(), String> {
        match self.random.below(29) {
            0..=4 => self.upload(),
            5..=8 => self.download(),
            9 => self.upload_registered(),
            10..=11 => self.copy_on_device(),
            12..=13 => self.add(),
            14 => self.fill(),
            15..=16 => return self.copy_one(MOST_WORDS),
            17 => return self.scope(),
            18 => return self.wait_for_one(),
            19 => return self.await_one(),
            20 => self.drop_one(),
            21 => self.cancel_one(),
            22 => self.drop_buffer(),
            23 => self.drop_stream(),
            24..=27 => return self.express_action(),
            _ => self.synchronize(),
        }
        Ok(())
    }

    fn pinned(&mut self, words: &[u32]) -> Option<PinnedBuf<u32>> {
        let buffer = self.device.pinned_from(words);
        self.ok_or_note(buffer)
    }

    fn upload(&mut self) {
        let (at, words) = self.any_range(MOST_WORDS);
        let values = self.any_words(words.len());
        let source = self.device.pinned_from(&values);
        self.upload_from(source, at, words, &values, AnyTransfer::Pinned);
    }

    fn upload_registered(&mut self) {
        let (at, words) = self.any_range(MOST_WORDS);
        let values = self.any_words(words.len());
        let source = self.device.register(values.clone()).map_err(Into::into);
        self.upload_from(source, at, words, &values, AnyTransfer::Registered);
    }

    fn upload_from<B: PinnedSource<u32>>(
        &mut self,
        source: pinlane::Result<B>,
        at: usize,
        words: Range<usize>,
        values: &[u32],
        any: fn(Transfer<B>) -> AnyTransfer,
    ) {
        let Some(source) = self.ok_or_note(source) else {
            return;
        };
        let stream = self.any_stream();
        let submitted = stream.upload(source, self.memory[at].0.range_mut(words.clone()));
        let submitted = submitted.map_err(|failed| failed.error);
        let content = Shadow::of(values);
        if let Some(transfer) = self.wrote(submitted, at, words, &content) {
            self.add_in_flight(any(transfer), content);
        }
    }

    fn download(&mut self) {
        let (at, words) = self.any_range(MOST_WORDS);
        let before = self.any_words(words.len());
        let Some(target) = self.pinned(&before) else {
            return;
        };
        let stream = self.any_stream();
        let submitted = stream.download(self.memory[at].0.range(words.clone()), target);
        match submitted {
            Ok(transfer) => {
                let expected = self.memory[at].1.part(words);
                self.add_in_flight(AnyTransfer::Pinned(transfer), expected);
            }
            Err(failed) => self.note(&failed.error),
        }
    }

    fn add_in_flight(&mut self, transfer: AnyTransfer, expected: Shadow) {
        self.transfers += 1;
        self.in_flight.push(InFlight { transfer, expected });
    }

    fn copy_on_device(&mut self) {
        let (from, words) = self.any_range(MOST_WORDS);
        let to = self.random.index(self.memory.len());
        if from == to || self.memory[to].0.len() < words.len() {
            return;
        }
        let start = self.random.index(self.memory[to].0.len() - words.len() + 1);
        let target = start..start + words.len();
        let stream = self.any_stream();
        let Ok([(source, shadow), (written, _)]) = self.memory.get_disjoint_mut([from, to]) else {
            unreachable!("the indices differ");
        };
        let content = shadow.part(words.clone());
        let result = stream.copy_on_device(source.range(words), written.range_mut(target.clone()));
        self.wrote(result, to, target, &content);
    }

    fn add(&mut self) {
        let Some(kernels) = self.kernels.take() else {
            return;
        };
        let (at, words) = self.any_range(MOST_WORDS);
        let value = self.random.next_u64() as u32;
        let stream = self.any_stream();
        let (buffer, shadow) = &mut self.memory[at];
        let sums = shadow.part(words.clone()).plus(value);
        let result = kernels.add(&stream, value, buffer.range_mut(words.clone()));
        self.wrote(result, at, words, &sums);
        // Sometimes the module is dropped while its kernels run.
        if self.random.below(8) > 0 {
            self.kernels = Some(kernels);
        }
    }

    fn fill(&mut self) {
        let (at, words) = self.any_range(MOST_WORDS);
        let value = self.random.next_u64() as u8;
        let stream = self.any_stream();
        let result = stream.fill_bytes(self.memory[at].0.range_mut(words.clone()), value);
        let content = Shadow::of(&vec![value; words.len() * 4]);
        self.wrote(result, at, words, &content);
    }

    /// An upload and a download of borrowed memory, which only the scope waits for.
    fn scope(&mut self) -> Result<(), String> {
        let (at, words) = self.any_range(MOST_WORDS);
        let values = self.any_words(words.len());
        let (Some(source), Some(mut target)) = (self.pinned(&values), self.pinned(&values)) else {
            return Ok(());
        };
        let (one, two) = (self.any_stream(), self.any_stream());
        let device = self.device.clone();
        let buffer = &mut self.memory[at].0;
        self.transfers += 2;
        let result = device.scope(|scope| {
            scope.upload(&one, &source, buffer.range_mut(words.clone()))?;
            scope.download(&two, buffer.range(words.clone()), &mut target)?;
            Ok(())
        });
        let content = Shadow::of(&values);
        match self.wrote(result, at, words, &content) {
            Some(()) => self.check(&content, &target),
            None => Ok(()),
        }
    }

    fn take_one(&mut self) -> Option<InFlight> {
        if self.in_flight.is_empty() {
            return None;
        }
        let at = self.random.index(self.in_flight.len());
        Some(self.in_flight.swap_remove(at))
    }

    fn wait_for_one(&mut self) -> Result<(), String> {
        let taken = self.take_one();
        taken.map_or(Ok(()), |in_flight| self.complete(in_flight))
    }

    fn await_one(&mut self) -> Result<(), String> {
        let Some(InFlight { transfer, expected }) = self.take_one() else {
            return Ok(());
        };
        match transfer {
            AnyTransfer::Pinned(transfer) => {
                let result = block_on(&self.sim, transfer)?;
                self.completed(result, &expected)
            }
            AnyTransfer::Registered(transfer) => {
                let result = block_on(&self.sim, transfer)?;
                self.completed(result, &expected)
            }
        }
    }

    /// Polls a transfer once and drops it, as `select!` does.
    fn cancel_one(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        match self.take_one().map(|in_flight| in_flight.transfer) {
            Some(AnyTransfer::Pinned(transfer)) => drop(pin!(transfer).poll(&mut context)),
            Some(AnyTransfer::Registered(transfer)) => drop(pin!(transfer).poll(&mut context)),
            None => {}
        }
    }

    fn drop_one(&mut self) {
        drop(self.take_one());
    }

    fn drop_buffer(&mut self) {
        let at = self.random.index(self.memory.len());
        self.memory.swap_remove(at);
    }

    fn drop_stream(&mut self) {
        let at = self.random.index(self.streams.len());
        self.streams.swap_remove(at);
    }

    fn synchronize(&mut self) {
        let result = match self.random.below(3) {
            0 => self.device.synchronize(),
            _ => self.any_stream().synchronize(),
        };
        self.ok_or_note(result);
    }
}
