//! From a copy as the caller names it to pieces that can move.

use pinlane_driver::{Call, Copy2d, CopyOp, Error, ErrorKind, Place, Result};
use pinlane_model::{Direction, HostKind};

use crate::calls::name;
use crate::device_memory::{BlockState, device_of};
use crate::finding::FindingKind;
use crate::host_bytes::HostBytes;
use crate::host_memory::Coverage;
use crate::op::{End, Moment, Piece, Transfer};
use crate::state::State;
use crate::timeline::SpanKind;

/// A copy, ready to be queued.
pub(crate) struct Plan {
    pub(crate) transfer: Transfer,
    /// The caller's thread copies the source out of the way before it goes on.
    pub(crate) pageable_source: bool,
    /// The caller's thread waits until the bytes are there.
    pub(crate) pageable_target: bool,
}

/// What one end of a copy turned out to be.
enum Found {
    Device(u64),
    Pinned(HostBytes),
    Pageable(HostBytes),
}

/// Bytes by what they need, in the order of [`KINDS`].
#[derive(Default)]
struct Totals {
    bytes: [u64; KINDS.len()],
    pageable: [bool; KINDS.len()],
}

const KINDS: [SpanKind; 4] = [
    SpanKind::HostToDevice,
    SpanKind::DeviceToHost,
    SpanKind::DeviceToDevice,
    SpanKind::HostToHost,
];

/// The rows of a 2-D copy; one copy where they follow each other without a gap.
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
    /// Resolves the places of some copies that run as one operation. `None` if there is nothing
    /// to copy.
    ///
    /// # Safety
    /// What the driver's copy calls ask for, for each of the copies.
    pub(crate) unsafe fn plan(
        &mut self,
        device: usize,
        call: Call,
        copies: &[CopyOp],
    ) -> Result<Option<Plan>> {
        let mut totals = Totals::default();
        let mut pieces = Vec::with_capacity(copies.len());
        let (mut pageable_source, mut pageable_target) = (false, false);
        for copy in copies.iter().filter(|copy| copy.bytes > 0) {
            // SAFETY: passed on to our caller.
            let source = unsafe { self.resolve(device, call, copy.source, copy.bytes, false)? };
            // SAFETY: passed on to our caller.
            let target = unsafe { self.resolve(device, call, copy.target, copy.bytes, true)? };
            totals.add(&source, &target, copy.bytes);
            pageable_source |= matches!(source, Found::Pageable(_));
            pageable_target |= matches!(target, Found::Pageable(_));
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
        Ok(Some(Plan {
            transfer,
            pageable_source,
            pageable_target,
        }))
    }

    /// A device range that a memset may write.
    ///
    /// # Safety
    /// What the driver's memset asks for.
    pub(crate) unsafe fn plan_fill(
        &mut self,
        device: usize,
        call: Call,
        address: u64,
        bytes: usize,
    ) -> Result<End> {
        let place = Place::Device(pinlane_driver::DevicePtr(address));
        // SAFETY: passed on to our caller.
        match unsafe { self.resolve(device, call, place, bytes, true)? } {
            Found::Device(address) => Ok(End::Device(address)),
            Found::Pinned(range) | Found::Pageable(range) => Ok(End::Pinned(range)),
        }
    }

    /// Finds out what kind of memory a place is.
    ///
    /// # Safety
    /// A host place is valid as the driver's copy calls ask for.
    unsafe fn resolve(
        &mut self,
        device: usize,
        call: Call,
        place: Place,
        bytes: usize,
        write: bool,
    ) -> Result<Found> {
        let address = match place {
            Place::Host(ptr) => {
                // SAFETY: passed on to our caller.
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
                Ok(Found::Device(address))
            }
            found => {
                let freed = found.is_some()
                    || memory.is_some_and(|memory| {
                        memory.was_issued(address) && memory.find(address, 0).is_none()
                    });
                let detail =
                    format!("{bytes} bytes at {address:#x} are no memory of device {device}");
                if freed {
                    self.report(FindingKind::UseAfterFree, name(call), detail.clone());
                }
                Err(Error::new(ErrorKind::InvalidValue, name(call)).with_detail(detail))
            }
        }
    }

    fn resolve_host(&mut self, call: Call, range: HostBytes, write: bool) -> Result<Found> {
        let refused =
            |detail: &str| Err(Error::new(ErrorKind::InvalidValue, name(call)).with_detail(detail));
        match self.host.coverage(range.address(), range.len()) {
            Coverage::Partly => refused("host memory that is page-locked in part"),
            Coverage::Pinned(pin) if write && pin.read_only => {
                refused("a copy into memory that was registered read-only")
            }
            Coverage::Pinned(pin) => {
                let offset = range.address() - pin.range.address();
                let id = pin.id;
                self.trace.add(id);
                self.trace.add(offset as u64);
                Ok(Found::Pinned(range))
            }
            Coverage::Pageable => Ok(Found::Pageable(range)),
            Coverage::Freed => {
                let detail = format!("{} bytes of freed pinned memory", range.len());
                self.report(FindingKind::UseAfterFree, name(call), detail);
                refused("freed pinned memory")
            }
        }
    }

    /// A device address that is mapped host memory.
    fn resolve_mapped(
        &mut self,
        call: Call,
        address: u64,
        bytes: usize,
        write: bool,
    ) -> Result<Found> {
        let start = usize::try_from(address).unwrap_or(usize::MAX);
        if let Coverage::Pinned(pin) = self.host.coverage(start, bytes)
            && pin.mapped
        {
            let range = pin.range.part(start - pin.range.address(), bytes);
            return self.resolve_host(call, range, write);
        }
        let detail = format!("{address:#x} is no device address");
        Err(Error::new(ErrorKind::InvalidValue, name(call)).with_detail(detail))
    }

    /// Makes the piece of a copy, or two where the adversary breaks it.
    fn add_pieces(&mut self, pieces: &mut Vec<Piece>, source: Found, target: Found, bytes: usize) {
        let at = match (&mut self.adversary, &source, &target) {
            (None, ..) | (_, Found::Pageable(_), _) | (_, _, Found::Pageable(_)) => 0,
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

    fn add_piece(&mut self, pieces: &mut Vec<Piece>, source: Found, target: Found, bytes: usize) {
        let source = match source {
            Found::Device(address) => End::Device(address),
            Found::Pinned(range) => End::Pinned(range),
            Found::Pageable(range) => {
                let mut staged = vec![0; bytes].into_boxed_slice();
                range.read(0, &mut staged);
                End::Staged(staged)
            }
        };
        let target = match target {
            Found::Device(address) => End::Device(address),
            Found::Pinned(range) => End::Pinned(range),
            Found::Pageable(range) => End::Waiting(range),
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

    /// When a new operation touches memory: at its end, unless an adversary decides.
    pub(crate) fn moment(&mut self) -> Moment {
        match &mut self.adversary {
            Some(adversary) => adversary.moment(),
            None => Moment::End,
        }
    }

    /// Engine time of a copy that has the link for itself.
    fn alone_ns(&self, totals: &Totals) -> u64 {
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
                // The host's own memory is as fast as its staging.
                SpanKind::HostToHost => {
                    profile.copy_ns(Direction::HostToDevice, HostKind::Pageable, bytes)
                }
                _ => profile.device_copy_ns(bytes),
            });
        }
        sum_ns
    }
}

impl Found {
    fn part(&self, offset: usize, bytes: usize) -> Self {
        match self {
            Self::Device(address) => Self::Device(address + offset as u64),
            Self::Pinned(range) => Self::Pinned(range.part(offset, bytes)),
            Self::Pageable(range) => Self::Pageable(range.part(offset, bytes)),
        }
    }
}

impl Totals {
    fn add(&mut self, source: &Found, target: &Found, bytes: usize) {
        let index = match (source, target) {
            (Found::Device(_), Found::Device(_)) => 2,
            (Found::Device(_), _) => 1,
            (_, Found::Device(_)) => 0,
            _ => 3,
        };
        let pageable = matches!(source, Found::Pageable(_)) || matches!(target, Found::Pageable(_));
        self.bytes[index] += bytes as u64;
        self.pageable[index] |= pageable;
    }

    /// The kind with the most bytes.
    fn main_kind(&self) -> SpanKind {
        let index = (0..KINDS.len()).max_by_key(|&index| (self.bytes[index], KINDS.len() - index));
        KINDS[index.unwrap_or(0)]
    }
}
