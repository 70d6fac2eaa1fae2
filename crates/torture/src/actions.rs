//! The actions of a program.

use std::future::Future;
use std::ops::Range;
use std::pin::pin;
use std::task::{Context, Waker};

use bytemuck::cast_slice;
use pinlane::{PinnedBuf, TransferError};

use crate::executor::block_on;
use crate::program::{AnyTransfer, InFlight, MOST_WORDS, Program, random_range};
use crate::shadow::Shadow;

impl Program<'_> {
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

    pub(crate) fn any_stream(&mut self) -> pinlane::Stream {
        let at = self.random.index(self.streams.len());
        self.streams[at].clone()
    }

    /// A buffer and a range of words in it.
    fn any_range(&mut self) -> (usize, Range<usize>) {
        let at = self.random.index(self.memory.len());
        let words = random_range(self.random, self.memory[at].0.len(), MOST_WORDS);
        (at, words)
    }

    pub(crate) fn any_words(&mut self, len: usize) -> Vec<u32> {
        (0..len).map(|_| self.random.next_u64() as u32).collect()
    }

    fn pinned(&mut self, words: &[u32]) -> Option<PinnedBuf<u32>> {
        let buffer = self.device.pinned_from(words);
        self.ok_or_note(buffer)
    }

    fn upload(&mut self) {
        let (at, words) = self.any_range();
        let values = self.any_words(words.len());
        let Some(source) = self.pinned(&values) else {
            return;
        };
        let stream = self.any_stream();
        let submitted = stream.upload(source, self.memory[at].0.range_mut(words.clone()));
        if let Some(transfer) = self.wrote(submitted, at, words, &values) {
            self.add_in_flight(AnyTransfer::Pinned(transfer), known(&values));
        }
    }

    fn upload_registered(&mut self) {
        let (at, words) = self.any_range();
        let values = self.any_words(words.len());
        let registered = self.device.register(values.clone()).map_err(Into::into);
        let Some(source) = self.ok_or_note(registered) else {
            return;
        };
        let stream = self.any_stream();
        let submitted = stream.upload(source, self.memory[at].0.range_mut(words.clone()));
        if let Some(transfer) = self.wrote(submitted, at, words, &values) {
            self.add_in_flight(AnyTransfer::Registered(transfer), known(&values));
        }
    }

    fn download(&mut self) {
        let (at, words) = self.any_range();
        let before = self.any_words(words.len());
        let Some(target) = self.pinned(&before) else {
            return;
        };
        let stream = self.any_stream();
        let submitted = stream.download(self.memory[at].0.range(words.clone()), target);
        match submitted {
            Ok(transfer) => {
                let expected = self.memory[at].1.part(bytes(words));
                self.add_in_flight(AnyTransfer::Pinned(transfer), expected);
            }
            Err(failed) => self.note(&failed.error),
        }
    }

    fn add_in_flight(&mut self, transfer: AnyTransfer, expected: Shadow) {
        self.transfers += 1;
        self.in_flight.push(InFlight { transfer, expected });
    }

    /// Applies a write to the shadow. If it failed, the content is unknown.
    pub(crate) fn wrote<T, B>(
        &mut self,
        submitted: Result<T, TransferError<B>>,
        at: usize,
        words: Range<usize>,
        values: &[u32],
    ) -> Option<T> {
        let shadow = &mut self.memory[at].1;
        match submitted {
            Ok(transfer) => {
                shadow.write(bytes(words), cast_slice(values));
                Some(transfer)
            }
            Err(failed) => {
                shadow.forget(bytes(words));
                self.note(&failed.error);
                None
            }
        }
    }

    fn copy_on_device(&mut self) {
        let (from, words) = self.any_range();
        let to = self.random.index(self.memory.len());
        if from == to || self.memory[to].0.len() < words.len() {
            return;
        }
        let start = self.random.index(self.memory[to].0.len() - words.len() + 1);
        let target = start..start + words.len();
        let stream = self.any_stream();
        let Ok([(source, shadow), (written, target_shadow)]) =
            self.memory.get_disjoint_mut([from, to])
        else {
            unreachable!("the indices differ");
        };
        let result = stream.copy_on_device(
            source.range(words.clone()),
            written.range_mut(target.clone()),
        );
        if result.is_ok() {
            target_shadow.overwrite(bytes(target), &shadow.part(bytes(words)));
        } else {
            target_shadow.forget(bytes(target));
        }
        self.ok_or_note(result);
    }

    fn add(&mut self) {
        let Some(kernels) = self.kernels.take() else {
            return;
        };
        let (at, words) = self.any_range();
        let value = self.random.next_u64() as u32;
        let stream = self.any_stream();
        let (buffer, shadow) = &mut self.memory[at];
        let result = kernels.add(&stream, value, buffer.range_mut(words.clone()));
        if result.is_ok() {
            let mut part = shadow.part(bytes(words.clone()));
            part.add(value);
            shadow.overwrite(bytes(words), &part);
        } else {
            shadow.forget(bytes(words));
        }
        self.ok_or_note(result);
        // Sometimes the module is dropped while its kernels run.
        if self.random.below(8) > 0 {
            self.kernels = Some(kernels);
        }
    }

    fn fill(&mut self) {
        let (at, words) = self.any_range();
        let value = self.random.next_u64() as u8;
        let stream = self.any_stream();
        let (buffer, shadow) = &mut self.memory[at];
        let result = stream.fill_bytes(buffer.range_mut(words.clone()), value);
        if result.is_ok() {
            shadow.write(bytes(words.clone()), &vec![value; words.len() * 4]);
        } else {
            shadow.forget(bytes(words));
        }
        self.ok_or_note(result);
    }

    /// An upload and a download of borrowed memory, which only the scope waits for.
    fn scope(&mut self) -> Result<(), String> {
        let (at, words) = self.any_range();
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
        match self.wrote(result.map_err(without_buffer), at, words, &values) {
            Some(()) => self.check(&known(&values), &target),
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
        match self.take_one() {
            Some(in_flight) => self.complete(in_flight),
            None => Ok(()),
        }
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

/// A range of words, in bytes.
pub(crate) fn bytes(words: Range<usize>) -> Range<usize> {
    words.start * 4..words.end * 4
}

/// The error of a transfer that owns no buffer.
pub(crate) fn without_buffer(error: pinlane::Error) -> TransferError<()> {
    TransferError {
        error,
        buffer: None,
    }
}

fn known(words: &[u32]) -> Shadow {
    Shadow::of(cast_slice(words))
}
