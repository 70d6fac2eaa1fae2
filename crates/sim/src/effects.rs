//! What operations do to memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pinlane_driver::ErrorKind;

use crate::checks::Changed;
use crate::device_memory::{BlockState, device_of};
use crate::finding::FindingKind;
use crate::kernel::KernelMemory;
use crate::op::{Doom, End, Launch, Moment, Op, Piece, Transfer, Work};
use crate::slab::Id;
use crate::state::State;

/// Why an operation took its device down.
struct Fault(String);

impl State {
    /// Carries out what the first operation of a stream does at this moment of its time. False if
    /// the device did not survive that.
    pub(crate) fn touch(&mut self, id: Id, device: usize, moment: Moment) -> bool {
        let stream = self.streams.get_mut(id).expect("an active stream");
        let work = stream.queue.front().map(|op| &op.work);
        if matches!(work, Some(Work::Record(..) | Work::Wait(..))) {
            return true;
        }
        let mut op = stream.queue.pop_front().expect("the running work");
        // The operation is out of its queue meanwhile, so that checks on the work in flight
        // do not meet it.
        let result = self.effect(device, &mut op, moment);
        let stream = self.streams.get_mut(id).expect("an active stream");
        stream.queue.push_front(op);
        match result {
            Ok(()) => true,
            Err(Fault(detail)) => {
                self.kill(device, ErrorKind::DeviceFault, detail);
                false
            }
        }
    }

    fn effect(&mut self, device: usize, op: &mut Op, moment: Moment) -> Result<(), Fault> {
        if moment == Moment::End
            && let Some(doom) = op.doom
        {
            let how = match doom {
                Doom::LateError => "failed",
                Doom::Stuck => "was stuck until the watchdog ended it",
            };
            return Err(Fault(format!("{} {how} (injected)", op.describe())));
        }
        if op.cancelled {
            return Ok(());
        }
        match &mut op.work {
            Work::Transfer(_) => self.move_pieces(op, moment),
            Work::Kernel(launch) if launch.moment == moment => {
                return self.run_kernel(device, op);
            }
            Work::Memset { .. } if moment == Moment::End => self.fill(op),
            Work::Alloc(address) => {
                if let Some(block) = self.devices[device].memory.at(*address)
                    && block.state == BlockState::AllocQueued
                {
                    block.state = BlockState::Live;
                }
            }
            Work::Free(address) => {
                self.devices[device].memory.remove(*address);
            }
            _ => {}
        }
        Ok(())
    }

    /// Moves the pieces of a copy whose moment has come, and looks after those that have moved.
    fn move_pieces(&mut self, op: &mut Op, moment: Moment) {
        let mut changed = Changed::default();
        let mut trouble = None;
        let Work::Transfer(Transfer { pieces, .. }) = &mut op.work else {
            return;
        };
        for piece in pieces {
            if piece.moved {
                if moment == Moment::End {
                    changed.check(piece);
                }
            } else if piece.moment == moment {
                changed.check(piece);
                trouble = self.move_piece(piece).or(trouble);
                piece.moved = true;
            }
        }
        if changed.any() {
            op.stop_checking();
            self.report_changed(op);
        }
        if let Some(kind) = trouble {
            self.report(
                kind,
                op.describe(),
                "its order against the other stream is not fixed",
            );
        }
    }

    /// Moves one piece; what is wrong with its device memory, if anything.
    fn move_piece(&mut self, piece: &mut Piece) -> Option<FindingKind> {
        let bytes = piece.bytes;
        let trouble = self
            .device_trouble(&piece.source, bytes)
            .or(self.device_trouble(&piece.target, bytes));
        if trouble == Some(FindingKind::UseAfterFree) {
            return trouble;
        }
        if let Some(range) = piece.target.pinned() {
            self.verify_others(range.address(), range.end());
        }
        self.move_bytes(&piece.source, &piece.target, bytes);
        if let Some(range) = piece.target.pinned() {
            piece.hash = piece.hash.map(|_| range.hash());
            self.rehash_others(range.address(), range.end());
        }
        trouble
    }

    /// Copies bytes from one end to the other. Both are known to be there.
    fn move_bytes(&mut self, source: &End, target: &End, bytes: usize) {
        let owner = |address: u64| device_of(address).expect("a checked device address");
        let inside = "a checked range of device memory";
        match (source, target) {
            (End::Device(source), End::Device(target)) => {
                let mut buffer = vec![0; bytes];
                let memory = &self.devices[owner(*source)].memory;
                memory
                    .read(*source, bytes, |at, part| {
                        buffer[at..at + part.len()].copy_from_slice(part)
                    })
                    .expect(inside);
                let memory = &mut self.devices[owner(*target)].memory;
                memory
                    .write(*target, bytes, |at, part| {
                        part.copy_from_slice(&buffer[at..at + part.len()])
                    })
                    .expect(inside);
            }
            (End::Device(source), End::Pinned(host) | End::Waiting(host)) => {
                let memory = &self.devices[owner(*source)].memory;
                memory
                    .read(*source, bytes, |at, part| host.write(at, part))
                    .expect(inside);
            }
            (End::Pinned(host) | End::Waiting(host), End::Device(target)) => {
                let memory = &mut self.devices[owner(*target)].memory;
                memory
                    .write(*target, bytes, |at, part| host.read(at, part))
                    .expect(inside);
            }
            (End::Staged(staged), End::Device(target)) => {
                let memory = &mut self.devices[owner(*target)].memory;
                memory
                    .write(*target, bytes, |at, part| {
                        part.copy_from_slice(&staged[at..at + part.len()])
                    })
                    .expect(inside);
            }
            (End::Staged(staged), End::Pinned(host) | End::Waiting(host)) => host.write(0, staged),
            (
                End::Pinned(source) | End::Waiting(source),
                End::Pinned(target) | End::Waiting(target),
            ) => {
                let mut buffer = vec![0; bytes];
                source.read(0, &mut buffer);
                target.write(0, &buffer);
            }
            (_, End::Staged(_)) => unreachable!("only sources are staged"),
        }
    }

    /// What is wrong with the device memory of one end.
    fn device_trouble(&self, end: &End, bytes: usize) -> Option<FindingKind> {
        let End::Device(address) = end else {
            return None;
        };
        let memory = device_of(*address).and_then(|owner| self.devices.get(owner));
        let found = memory.and_then(|device| device.memory.find(*address, bytes as u64));
        match found {
            None => Some(FindingKind::UseAfterFree),
            Some((_, block)) if block.state == BlockState::AllocQueued => {
                Some(FindingKind::UseBeforeAlloc)
            }
            Some(_) => None,
        }
    }

    fn fill(&mut self, op: &mut Op) {
        let Work::Memset {
            target,
            value,
            bytes,
        } = &op.work
        else {
            return;
        };
        let (value, bytes) = (*value, *bytes);
        let trouble = self.device_trouble(target, bytes);
        match target {
            _ if trouble == Some(FindingKind::UseAfterFree) => {}
            End::Device(address) => {
                let owner = device_of(*address).expect("a checked device address");
                let memory = &mut self.devices[owner].memory;
                memory
                    .write(*address, bytes, |_, part| part.fill(value))
                    .expect("a checked range of device memory");
            }
            End::Pinned(range) => {
                let range = *range;
                self.verify_others(range.address(), range.end());
                range.write(0, &vec![value; bytes]);
                self.rehash_others(range.address(), range.end());
            }
            End::Staged(_) | End::Waiting(_) => unreachable!("a memset has no pageable end"),
        }
        if let Some(kind) = trouble {
            self.report(
                kind,
                op.describe(),
                "its order against the other stream is not fixed",
            );
        }
    }

    fn run_kernel(&mut self, device: usize, op: &Op) -> Result<(), Fault> {
        let Work::Kernel(launch) = &op.work else {
            return Ok(());
        };
        let mapped = self.mapped_ranges(launch);
        for &(start, end) in &mapped {
            self.verify_others(start, end);
        }
        let kernel = Arc::clone(&launch.kernel);
        let memory = &mut self.devices[device].memory;
        let mut view = KernelMemory::new(memory, &self.host);
        // A twin that panics would leave the machine's lock behind: it is a fault like others.
        let run = || (kernel.run)(&mut view, launch.shape, &launch.args);
        let result = catch_unwind(AssertUnwindSafe(run));
        let early = view.touched_before_alloc();
        for &(start, end) in &mapped {
            self.rehash_others(start, end);
        }
        if early {
            let detail = "the kernel does not wait for the stream that allocates";
            self.report(FindingKind::UseBeforeAlloc, op.describe(), detail);
        }
        let fault = match result {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(fault)) => fault,
            Err(_) => return Err(Fault(format!("{}: its twin panicked", op.describe()))),
        };
        let (address, bytes) = (fault.address, fault.bytes);
        let detail = format!("{}: access of {bytes} bytes at {address:?}", op.describe());
        let memory = &self.devices[device].memory;
        if memory.was_issued(address.0) && memory.find(address.0, 0).is_none() {
            self.report(
                FindingKind::UseAfterFree,
                op.describe(),
                format!("at {address:?}"),
            );
        }
        Err(Fault(detail))
    }

    /// Page-locked ranges that the arguments of a kernel point into.
    fn mapped_ranges(&self, launch: &Launch) -> Vec<(usize, usize)> {
        launch
            .addresses()
            .filter(|&address| device_of(address).is_none())
            .filter_map(|address| self.host.find(usize::try_from(address).ok()?))
            .filter(|pin| pin.mapped)
            .map(|pin| (pin.range.address(), pin.range.end()))
            .collect()
    }
}
