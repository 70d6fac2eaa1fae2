//! Resolves the addresses of copies, and cuts them into pieces.

use pinlane_driver::{Copy2d, CopyOp, Place, Result};
use pinlane_model::{Direction, HostKind};

use crate::calls::DeviceCall;
use crate::checks::FindingKind;
use crate::memory::HostBytes;
use crate::memory::device::{BlockState, device_of};
use crate::memory::host::Coverage;
use crate::operation::{Endpoint, Moment, Piece, Transfer};
use crate::timeline::SpanKind;

/// Bytes of each kind of copy, and the slowest kind of host memory that they use.
type BytesByKind = [(SpanKind, HostKind, u64); 4];

const NO_BYTES: BytesByKind = [
    (SpanKind::HostToDevice, HostKind::Pinned, 0),
    (SpanKind::DeviceToHost, HostKind::Pinned, 0),
    (SpanKind::DeviceToDevice, HostKind::Pinned, 0),
    (SpanKind::HostToHost, HostKind::Pinned, 0),
];

/// Adds the bytes of a copy.
fn add_bytes(totals: &mut BytesByKind, source: &Endpoint, target: &Endpoint, bytes: usize) {
    let index = match (source, target) {
        (Endpoint::Device(_), Endpoint::Device(_)) => 2,
        (Endpoint::Device(_), _) => 1,
        (_, Endpoint::Device(_)) => 0,
        _ => 3,
    };
    let (_, host, total) = &mut totals[index];
    *total += bytes as u64;
    if source.is_pageable() || target.is_pageable() {
        *host = HostKind::Pageable;
    }
}

/// The rows of a 2-D copy; a single one if they are contiguous.
pub(crate) fn rows(copy: &Copy2d) -> Vec<CopyOp> {
    let Copy2d {
        row_bytes, rows, ..
    } = *copy;
    let dense = copy.target_pitch_bytes == row_bytes && copy.source_pitch_bytes == row_bytes;
    let (count, bytes) = match dense {
        true => (1, row_bytes * rows),
        false => (rows, row_bytes),
    };
    (0..count)
        .map(|row| CopyOp {
            target: copy.target.offset(row * copy.target_pitch_bytes),
            source: copy.source.offset(row * copy.source_pitch_bytes),
            bytes,
        })
        .collect()
}

impl DeviceCall<'_> {
    /// Plans copies that run as one operation. `None` if there is nothing to copy.
    ///
    /// # Safety
    /// As for the driver's copy calls, for each of the copies.
    pub(crate) unsafe fn plan(&mut self, copies: &[CopyOp]) -> Result<Option<Transfer>> {
        let mut totals = NO_BYTES;
        let mut pieces = Vec::with_capacity(copies.len());
        for copy in copies.iter().filter(|copy| copy.bytes > 0) {
            // SAFETY: passed on to the caller.
            let source = unsafe { self.resolve(copy.source, copy.bytes, false)? };
            // SAFETY: passed on to the caller.
            let target = unsafe { self.resolve(copy.target, copy.bytes, true)? };
            add_bytes(&mut totals, &source, &target, copy.bytes);
            self.add_pieces(&mut pieces, source, target, copy.bytes);
        }
        // Of equal kinds, the first.
        let most = totals.iter().rev().max_by_key(|total| total.2);
        let transfer = most.filter(|_| !pieces.is_empty()).map(|most| Transfer {
            kind: most.0,
            bytes: totals.iter().map(|total| total.2).sum(),
            alone_ns: self.alone_ns(&totals),
            pieces,
        });
        Ok(transfer)
    }

    /// Determines the kind of memory at a place.
    ///
    /// # Safety
    /// A host place is valid as required by the driver's copy calls.
    pub(crate) unsafe fn resolve(
        &mut self,
        place: Place,
        bytes: usize,
        write: bool,
    ) -> Result<Endpoint> {
        let address = match place {
            Place::Host(ptr) => {
                // SAFETY: passed on to the caller.
                let range = unsafe { HostBytes::new(ptr, bytes) };
                return self.resolve_host(range, write);
            }
            Place::Device(ptr) => ptr.0,
        };
        let Some(owner) = device_of(address) else {
            return self.resolve_mapped(address, bytes, write);
        };
        let memory = self.devices.get(owner).map(|device| &device.memory);
        let found = memory.and_then(|memory| memory.find(address, bytes as u64));
        if found.is_some_and(|(_, block)| block.state != BlockState::FreeQueued) {
            self.trace.add(address);
            return Ok(Endpoint::Device(address));
        }
        let is_freed = found.is_some() || memory.is_some_and(|memory| memory.was_freed(address));
        let device = self.device;
        let detail = format!("{bytes} bytes at {address:#x} are not memory of device {device}");
        if is_freed {
            self.report_misuse(FindingKind::UseAfterFree, detail.clone());
        }
        Err(self.invalid(detail))
    }

    fn resolve_host(&mut self, range: HostBytes, write: bool) -> Result<Endpoint> {
        let refused = match self.host.coverage(range.address(), range.len()) {
            Coverage::Partly => "only part of the host memory is page-locked",
            Coverage::Pinned(pin) if write && pin.read_only => {
                "the target was registered read-only"
            }
            Coverage::Pinned(pin) => {
                let (id, offset) = (pin.id, range.address() - pin.range.address());
                self.trace.add(id);
                self.trace.add(offset as u64);
                return Ok(Endpoint::Pinned(range));
            }
            Coverage::Pageable => return Ok(Endpoint::Pageable(range)),
            Coverage::Freed => {
                let detail = format!("{} bytes of freed pinned memory", range.len());
                self.report_misuse(FindingKind::UseAfterFree, detail);
                "freed pinned memory"
            }
        };
        Err(self.invalid(refused))
    }

    /// Resolves a device address outside of device memory: mapped host memory, or nothing.
    fn resolve_mapped(&mut self, address: u64, bytes: usize, write: bool) -> Result<Endpoint> {
        let start = usize::try_from(address).unwrap_or(usize::MAX);
        match self.host.coverage(start, bytes) {
            Coverage::Pinned(pin) if pin.mapped => {
                let range = pin.range.part(start - pin.range.address(), bytes);
                self.resolve_host(range, write)
            }
            _ => Err(self.invalid(format!("{address:#x} is not a device address"))),
        }
    }

    /// Adds the piece of a copy, or two if the adversary splits it.
    fn add_pieces(
        &mut self,
        pieces: &mut Vec<Piece>,
        source: Endpoint,
        target: Endpoint,
        bytes: usize,
    ) {
        let at = match &mut self.adversary {
            Some(adversary) if !source.is_pageable() && !target.is_pageable() => {
                adversary.split(bytes)
            }
            _ => 0,
        };
        if at > 0 {
            pieces.push(self.piece(source.part(0, at), target.part(0, at), at));
        }
        let rest = bytes - at;
        pieces.push(self.piece(source.part(at, rest), target.part(at, rest), rest));
    }

    fn piece(&mut self, mut source: Endpoint, target: Endpoint, bytes: usize) -> Piece {
        if let Endpoint::Pageable(range) = source {
            let mut staged = vec![0; bytes].into_boxed_slice();
            range.read(0, &mut staged);
            source = Endpoint::Staged(staged);
        }
        let mut piece = Piece {
            source,
            target,
            bytes,
            moment: self.moment(),
            moved: false,
            hash: None,
        };
        piece.hash = self.hash_of(&piece);
        piece
    }

    /// When a new operation accesses memory: at its end, unless an adversary decides.
    pub(crate) fn moment(&mut self) -> Moment {
        match &mut self.adversary {
            Some(adversary) => adversary.moment(),
            None => Moment::End,
        }
    }

    /// Engine time of a copy that has the link to itself.
    fn alone_ns(&self, totals: &BytesByKind) -> u64 {
        let profile = &self.config.profile;
        let used = totals.iter().filter(|total| total.2 > 0);
        let parts_ns = used.map(|&(kind, host, bytes)| match kind {
            SpanKind::HostToDevice => profile.copy_ns(Direction::HostToDevice, host, bytes),
            SpanKind::DeviceToHost => profile.copy_ns(Direction::DeviceToHost, host, bytes),
            // As fast as staging.
            SpanKind::HostToHost => {
                profile.copy_ns(Direction::HostToDevice, HostKind::Pageable, bytes)
            }
            _ => profile.device_copy_ns(bytes),
        });
        parts_ns.fold(0, u64::saturating_add)
    }
}
