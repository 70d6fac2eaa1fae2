//! Resolves the addresses of copies, and cuts them into pieces.

use pinlane_driver::{Call, Copy2d, CopyOp, DevicePtr, Place, Result};
use pinlane_model::{Direction, HostKind};

use crate::calls::{invalid, name};
use crate::checks::FindingKind;
use crate::memory::HostBytes;
use crate::memory::device::{BlockState, device_of};
use crate::memory::host::Coverage;
use crate::operation::{Endpoint, Moment, Piece, Transfer};
use crate::state::State;
use crate::timeline::SpanKind;

/// A copy that is ready to be queued.
pub(crate) struct CopyPlan {
    pub(crate) transfer: Transfer,
    /// The calling thread is blocked while the source is staged.
    pub(crate) pageable_source: bool,
    /// The calling thread is blocked until the copy is done.
    pub(crate) pageable_target: bool,
}

/// Source or target of a copy, with its kind of memory.
enum Resolved {
    Device(u64),
    Pinned(HostBytes),
    Pageable(HostBytes),
}

/// Bytes by kind of copy, in the order of [`KINDS`].
#[derive(Default)]
struct BytesByKind {
    bytes: [u64; KINDS.len()],
    pageable: [bool; KINDS.len()],
}

const KINDS: [SpanKind; 4] = [
    SpanKind::HostToDevice,
    SpanKind::DeviceToHost,
    SpanKind::DeviceToDevice,
    SpanKind::HostToHost,
];

/// The rows of a 2-D copy; a single one if they are contiguous.
pub(crate) fn rows(copy: &Copy2d) -> Vec<CopyOp> {
    let Copy2d {
        row_bytes, rows, ..
    } = *copy;
    let dense = copy.target_pitch_bytes == row_bytes && copy.source_pitch_bytes == row_bytes;
    let (count, bytes) = if dense {
        (1, row_bytes * rows)
    } else {
        (rows, row_bytes)
    };
    (0..count)
        .map(|row| CopyOp {
            target: copy.target.offset(row * copy.target_pitch_bytes),
            source: copy.source.offset(row * copy.source_pitch_bytes),
            bytes,
        })
        .collect()
}

impl State {
    /// Plans copies that run as one operation. `None` if there is nothing to copy.
    ///
    /// # Safety
    /// As for the driver's copy calls, for each of the copies.
    pub(crate) unsafe fn plan(
        &mut self,
        device: usize,
        call: Call,
        copies: &[CopyOp],
    ) -> Result<Option<CopyPlan>> {
        let mut totals = BytesByKind::default();
        let mut pieces = Vec::with_capacity(copies.len());
        let (mut pageable_source, mut pageable_target) = (false, false);
        for copy in copies.iter().filter(|copy| copy.bytes > 0) {
            // SAFETY: passed on to the caller.
            let source = unsafe { self.resolve(device, call, copy.source, copy.bytes, false)? };
            // SAFETY: passed on to the caller.
            let target = unsafe { self.resolve(device, call, copy.target, copy.bytes, true)? };
            totals.add(&source, &target, copy.bytes);
            pageable_source |= matches!(source, Resolved::Pageable(_));
            pageable_target |= matches!(target, Resolved::Pageable(_));
            self.add_pieces(&mut pieces, source, target, copy.bytes);
        }
        if pieces.is_empty() {
            return Ok(None);
        }
        let transfer = Transfer {
            kind: totals.main_kind(),
            bytes: totals.bytes.iter().sum(),
            alone_ns: self.alone_ns(&totals),
            pieces,
        };
        Ok(Some(CopyPlan {
            transfer,
            pageable_source,
            pageable_target,
        }))
    }

    /// The target of a memset.
    ///
    /// # Safety
    /// As for the driver's memset.
    pub(crate) unsafe fn plan_fill(
        &mut self,
        device: usize,
        call: Call,
        address: u64,
        bytes: usize,
    ) -> Result<Endpoint> {
        let place = Place::Device(DevicePtr(address));
        // SAFETY: passed on to the caller.
        match unsafe { self.resolve(device, call, place, bytes, true)? } {
            Resolved::Device(address) => Ok(Endpoint::Device(address)),
            Resolved::Pinned(range) | Resolved::Pageable(range) => Ok(Endpoint::Pinned(range)),
        }
    }

    /// Determines the kind of memory at a place.
    ///
    /// # Safety
    /// A host place is valid as required by the driver's copy calls.
    unsafe fn resolve(
        &mut self,
        device: usize,
        call: Call,
        place: Place,
        bytes: usize,
        write: bool,
    ) -> Result<Resolved> {
        let address = match place {
            Place::Host(ptr) => {
                // SAFETY: passed on to the caller.
                let range = unsafe { HostBytes::new(ptr, bytes) };
                return self.resolve_host(call, range, write);
            }
            Place::Device(ptr) => ptr.0,
        };
        let Some(owner) = device_of(address) else {
            return self.resolve_mapped(call, address, bytes, write);
        };
        let memory = self.devices.get(owner).map(|device| &device.memory);
        match memory.and_then(|memory| memory.find(address, bytes as u64)) {
            Some((_, block)) if block.state != BlockState::FreeQueued => {
                self.trace.add(address);
                Ok(Resolved::Device(address))
            }
            found => {
                let freed = found.is_some()
                    || memory.is_some_and(|memory| {
                        memory.was_issued(address) && memory.find(address, 0).is_none()
                    });
                let detail =
                    format!("{bytes} bytes at {address:#x} are not memory of device {device}");
                if freed {
                    self.report(FindingKind::UseAfterFree, name(call), detail.clone());
                }
                Err(invalid(call, detail))
            }
        }
    }

    fn resolve_host(&mut self, call: Call, range: HostBytes, write: bool) -> Result<Resolved> {
        let refused = |detail: &str| Err(invalid(call, detail));
        match self.host.coverage(range.address(), range.len()) {
            Coverage::Partly => refused("only part of the host memory is page-locked"),
            Coverage::Pinned(pin) if write && pin.read_only => {
                refused("the target was registered read-only")
            }
            Coverage::Pinned(pin) => {
                let (id, offset) = (pin.id, range.address() - pin.range.address());
                self.trace.add(id);
                self.trace.add(offset as u64);
                Ok(Resolved::Pinned(range))
            }
            Coverage::Pageable => Ok(Resolved::Pageable(range)),
            Coverage::Freed => {
                let detail = format!("{} bytes of freed pinned memory", range.len());
                self.report(FindingKind::UseAfterFree, name(call), detail);
                refused("freed pinned memory")
            }
        }
    }

    /// Resolves a device address outside of device memory: mapped host memory, or nothing.
    fn resolve_mapped(
        &mut self,
        call: Call,
        address: u64,
        bytes: usize,
        write: bool,
    ) -> Result<Resolved> {
        let start = usize::try_from(address).unwrap_or(usize::MAX);
        if let Coverage::Pinned(pin) = self.host.coverage(start, bytes)
            && pin.mapped
        {
            let range = pin.range.part(start - pin.range.address(), bytes);
            return self.resolve_host(call, range, write);
        }
        Err(invalid(
            call,
            format!("{address:#x} is not a device address"),
        ))
    }

    /// Adds the piece of a copy, or two if the adversary splits it.
    fn add_pieces(
        &mut self,
        pieces: &mut Vec<Piece>,
        source: Resolved,
        target: Resolved,
        bytes: usize,
    ) {
        let at = match (&mut self.adversary, &source, &target) {
            (None, ..) | (_, Resolved::Pageable(_), _) | (_, _, Resolved::Pageable(_)) => 0,
            (Some(adversary), ..) => adversary.split(bytes),
        };
        if at > 0 {
            self.add_piece(pieces, source.part(0, at), target.part(0, at), at);
            let rest = bytes - at;
            self.add_piece(pieces, source.part(at, rest), target.part(at, rest), rest);
        } else {
            self.add_piece(pieces, source, target, bytes);
        }
    }

    fn add_piece(
        &mut self,
        pieces: &mut Vec<Piece>,
        source: Resolved,
        target: Resolved,
        bytes: usize,
    ) {
        let source = match source {
            Resolved::Device(address) => Endpoint::Device(address),
            Resolved::Pinned(range) => Endpoint::Pinned(range),
            Resolved::Pageable(range) => {
                let mut staged = vec![0; bytes].into_boxed_slice();
                range.read(0, &mut staged);
                Endpoint::Staged(staged)
            }
        };
        let target = match target {
            Resolved::Device(address) => Endpoint::Device(address),
            Resolved::Pinned(range) => Endpoint::Pinned(range),
            Resolved::Pageable(range) => Endpoint::Waiting(range),
        };
        let mut piece = Piece {
            source,
            target,
            bytes,
            moment: self.moment(),
            moved: false,
            hash: None,
        };
        piece.hash = self.hash_of(&piece);
        pieces.push(piece);
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
        let mut sum_ns = 0_u64;
        for (index, kind) in KINDS.into_iter().enumerate() {
            let bytes = totals.bytes[index];
            if bytes == 0 {
                continue;
            }
            let host = if totals.pageable[index] {
                HostKind::Pageable
            } else {
                HostKind::Pinned
            };
            sum_ns = sum_ns.saturating_add(match kind {
                SpanKind::HostToDevice => profile.copy_ns(Direction::HostToDevice, host, bytes),
                SpanKind::DeviceToHost => profile.copy_ns(Direction::DeviceToHost, host, bytes),
                // As fast as staging.
                SpanKind::HostToHost => {
                    profile.copy_ns(Direction::HostToDevice, HostKind::Pageable, bytes)
                }
                _ => profile.device_copy_ns(bytes),
            });
        }
        sum_ns
    }
}

impl Resolved {
    fn part(&self, offset: usize, bytes: usize) -> Self {
        match self {
            Self::Device(address) => Self::Device(address + offset as u64),
            Self::Pinned(range) => Self::Pinned(range.part(offset, bytes)),
            Self::Pageable(range) => Self::Pageable(range.part(offset, bytes)),
        }
    }
}

impl BytesByKind {
    fn add(&mut self, source: &Resolved, target: &Resolved, bytes: usize) {
        let index = match (source, target) {
            (Resolved::Device(_), Resolved::Device(_)) => 2,
            (Resolved::Device(_), _) => 1,
            (_, Resolved::Device(_)) => 0,
            _ => 3,
        };
        let pageable =
            matches!(source, Resolved::Pageable(_)) || matches!(target, Resolved::Pageable(_));
        self.bytes[index] += bytes as u64;
        self.pageable[index] |= pageable;
    }

    /// The kind with the most bytes.
    fn main_kind(&self) -> SpanKind {
        let index = (0..KINDS.len()).max_by_key(|&index| (self.bytes[index], KINDS.len() - index));
        KINDS[index.unwrap_or(0)]
    }
}
