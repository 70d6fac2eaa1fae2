//! What operations do to memory.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pinlane_driver::ErrorKind;
use pinlane_kernels::MemoryFault;

use crate::checks::FindingKind;
use crate::memory::KernelView;
use crate::memory::device::{BlockState, DeviceMemory, device_of};
use crate::operation::{Endpoint, InjectedFailure, Launch, Moment, Operation, Piece, Work};
use crate::slab::Id;
use crate::state::State;

impl State {
    /// Carries out what the running operation of a stream does at this moment. Returns false if that
    /// made the device unusable.
    pub(crate) fn apply(&mut self, id: Id, device: usize, moment: Moment) -> bool {
        let stream = self.streams.get_mut(id).expect("an active stream");
        let work = stream.queue.front().map(|op| &op.work);
        if matches!(work, Some(Work::Record(..) | Work::Wait(..))) {
            return true;
        }
        let mut op = stream.queue.pop_front().expect("the running work");
        // Out of its queue meanwhile, so that checks of other work in flight do not include it.
        let result = self.effect(device, &mut op, moment);
        let stream = self.streams.get_mut(id).expect("an active stream");
        stream.queue.push_front(op);
        match result {
            Ok(()) => true,
            Err(detail) => {
                self.kill(device, ErrorKind::DeviceFault, detail);
                false
            }
        }
    }

    /// The effect of an operation, or why it made its device unusable.
    fn effect(&mut self, device: usize, op: &mut Operation, moment: Moment) -> Result<(), String> {
        if moment == Moment::End
            && let Some(failure) = op.failure
        {
            let how = match failure {
                InjectedFailure::LateError => "failed",
                InjectedFailure::Stuck => "was stuck until the watchdog ended it",
            };
            return Err(format!("{} {how} (injected)", op.describe()));
        }
        if op.cancelled {
            return Ok(());
        }
        match &op.work {
            Work::Transfer(_) => self.move_pieces(op, moment),
            Work::Kernel(launch) if launch.moment == moment => {
                return self.run_kernel(device, op, launch);
            }
            Work::Memset {
                target,
                value,
                bytes,
            } if moment == Moment::End => {
                let misuse = self.fill(target, *value, *bytes);
                self.report_unordered(misuse, op);
            }
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

    /// Moves the pieces of a copy whose moment has come, and checks those that have moved.
    fn move_pieces(&mut self, op: &mut Operation, moment: Moment) {
        let (mut changed, mut misuse) = (false, None);
        for piece in op.pieces_mut() {
            if piece.moved {
                changed |= moment == Moment::End && piece.has_changed();
            } else if piece.moment == moment {
                changed |= piece.has_changed();
                misuse = self.move_piece(piece).or(misuse);
                piece.moved = true;
            }
        }
        if changed {
            // One report is enough.
            op.pieces_mut().iter_mut().for_each(|it| it.hash = None);
            self.report_changed(vec![op.describe()]);
        }
        self.report_unordered(misuse, op);
    }

    /// Moves one piece; returns misuse of its device memory.
    fn move_piece(&mut self, piece: &mut Piece) -> Option<FindingKind> {
        let bytes = piece.bytes;
        let misuse = self
            .device_misuse(&piece.source, bytes)
            .or(self.device_misuse(&piece.target, bytes));
        if misuse == Some(FindingKind::UseAfterFree) {
            return misuse;
        }
        if let Some(range) = piece.target.pinned() {
            self.check_others(range.address(), range.end());
        }
        self.move_bytes(&piece.source, &piece.target, bytes);
        if let Some(range) = piece.target.pinned() {
            piece.hash = piece.hash.map(|_| range.hash());
            self.rehash_others(range.address(), range.end());
        }
        misuse
    }

    /// Copies bytes between checked endpoints.
    fn move_bytes(&mut self, source: &Endpoint, target: &Endpoint, bytes: usize) {
        let result = match (source, target) {
            (Endpoint::Device(source), Endpoint::Device(target)) => {
                let mut buffer = vec![0; bytes];
                let read = self.memory_of(*source).read_into(*source, &mut buffer);
                read.and_then(|()| self.memory_of(*target).write_from(*target, &buffer))
            }
            (Endpoint::Device(source), Endpoint::Pinned(host) | Endpoint::Pageable(host)) => {
                let memory = self.memory_of(*source);
                memory.read(*source, bytes, |at, part| host.write(at, part))
            }
            (Endpoint::Pinned(host) | Endpoint::Pageable(host), Endpoint::Device(target)) => {
                let memory = self.memory_of(*target);
                memory.write(*target, bytes, |at, part| host.read(at, part))
            }
            (Endpoint::Staged(staged), Endpoint::Device(target)) => {
                self.memory_of(*target).write_from(*target, staged)
            }
            (Endpoint::Staged(staged), Endpoint::Pinned(host) | Endpoint::Pageable(host)) => {
                host.write(0, staged);
                Ok(())
            }
            (
                Endpoint::Pinned(source) | Endpoint::Pageable(source),
                Endpoint::Pinned(target) | Endpoint::Pageable(target),
            ) => {
                let mut buffer = vec![0; bytes];
                source.read(0, &mut buffer);
                target.write(0, &buffer);
                Ok(())
            }
            (_, Endpoint::Staged(_)) => unreachable!("only sources are staged"),
        };
        result.expect("a checked range of device memory");
    }

    /// The memory that a checked device address belongs to.
    fn memory_of(&mut self, address: u64) -> &mut DeviceMemory {
        let owner = device_of(address).expect("a checked device address");
        &mut self.devices[owner].memory
    }

    fn report_unordered(&mut self, misuse: Option<FindingKind>, op: &Operation) {
        if let Some(kind) = misuse {
            let detail = "it is not ordered against the stream that allocates or frees";
            self.report(kind, op.describe(), detail);
        }
    }

    /// Misuse of the device memory of an endpoint.
    fn device_misuse(&self, end: &Endpoint, bytes: usize) -> Option<FindingKind> {
        let Endpoint::Device(address) = end else {
            return None;
        };
        let device = device_of(*address).and_then(|owner| self.devices.get(owner));
        let found = device.and_then(|device| device.memory.find(*address, bytes as u64));
        match found.map(|(_, block)| block.state) {
            None => Some(FindingKind::UseAfterFree),
            Some(BlockState::AllocQueued) => Some(FindingKind::UseBeforeAlloc),
            Some(_) => None,
        }
    }

    /// Fills memory; returns misuse of it.
    fn fill(&mut self, target: &Endpoint, value: u8, bytes: usize) -> Option<FindingKind> {
        let misuse = self.device_misuse(target, bytes);
        match target {
            _ if misuse == Some(FindingKind::UseAfterFree) => {}
            Endpoint::Device(address) => {
                let memory = self.memory_of(*address);
                let filled = memory.write(*address, bytes, |_, part| part.fill(value));
                filled.expect("a checked range of device memory");
            }
            Endpoint::Pinned(range) => {
                self.check_others(range.address(), range.end());
                range.write(0, &vec![value; bytes]);
                self.rehash_others(range.address(), range.end());
            }
            Endpoint::Staged(_) | Endpoint::Pageable(_) => {
                unreachable!("a memset has no pageable target")
            }
        }
        misuse
    }

    fn run_kernel(&mut self, device: usize, op: &Operation, launch: &Launch) -> Result<(), String> {
        let mapped = self.mapped_ranges(launch);
        for &(start, end) in &mapped {
            self.check_others(start, end);
        }
        let mut view = KernelView {
            device: &mut self.devices[device].memory,
            host: &self.host,
            touched_before_alloc: false,
        };
        // A panic of the twin would unwind through the machine's lock; it is a device fault.
        let run = || (launch.kernel.run)(&mut view, launch.shape, &launch.args);
        let result = catch_unwind(AssertUnwindSafe(run));
        let early = view.touched_before_alloc;
        for &(start, end) in &mapped {
            self.rehash_others(start, end);
        }
        if early {
            let detail = "the kernel does not wait for the stream that allocates";
            self.report(FindingKind::UseBeforeAlloc, op.describe(), detail);
        }
        let what = match result {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(MemoryFault { address, bytes })) => {
                if self.devices[device].memory.was_freed(address.0) {
                    let detail = format!("at {address:?}");
                    self.report(FindingKind::UseAfterFree, op.describe(), detail);
                }
                format!("illegal access to {bytes} bytes at {address:?}")
            }
            Err(_) => "its CPU twin panicked".to_owned(),
        };
        Err(format!("{}: {what}", op.describe()))
    }

    /// Mapped host ranges that a kernel's arguments point to.
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
