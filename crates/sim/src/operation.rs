//! Operations of streams: what they do, and which memory they access.

use pinlane_driver::{Call, HostCallback, KernelArg, LaunchShape};
use pinlane_kernels::Kernel;
use pinlane_model::engine_rules::EngineKind;

use crate::memory::HostBytes;
use crate::slab::Id;
use crate::stream::{RecordedStart, StreamPoint};
use crate::timeline::SpanKind;

/// When an operation accesses memory while it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moment {
    Start,
    Middle,
    End,
}

/// Source or target of a piece.
#[derive(Debug)]
pub(crate) enum Endpoint {
    Device(u64),
    /// Page-locked memory, which the caller must not touch until the copy is done.
    Pinned(HostBytes),
    /// Bytes of a pageable source, copied at submission.
    Staged(Box<[u8]>),
    /// Pageable memory of a caller that is blocked in the call.
    Pageable(HostBytes),
}

impl Endpoint {
    /// A part of it. It is not staged yet.
    pub(crate) fn part(&self, offset: usize, bytes: usize) -> Self {
        match self {
            Self::Device(address) => Self::Device(address + offset as u64),
            Self::Pinned(range) => Self::Pinned(range.part(offset, bytes)),
            Self::Pageable(range) => Self::Pageable(range.part(offset, bytes)),
            Self::Staged(_) => unreachable!("pieces are staged after they are cut"),
        }
    }

    pub(crate) fn is_pageable(&self) -> bool {
        matches!(self, Self::Pageable(_))
    }

    pub(crate) fn pinned(&self) -> Option<HostBytes> {
        match self {
            Self::Pinned(range) => Some(*range),
            _ => None,
        }
    }
}

/// Contiguous bytes that move at once.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) source: Endpoint,
    pub(crate) target: Endpoint,
    pub(crate) bytes: usize,
    pub(crate) moment: Moment,
    pub(crate) moved: bool,
    /// Expected hash of the page-locked end until the copy is done, if it is checked.
    pub(crate) hash: Option<u64>,
}

impl Piece {
    /// The page-locked end.
    pub(crate) fn pinned(&self) -> Option<HostBytes> {
        self.source.pinned().or(self.target.pinned())
    }
}

/// A copy of one or more pieces.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) kind: SpanKind,
    pub(crate) bytes: u64,
    /// Engine time when the link is otherwise idle.
    pub(crate) alone_ns: u64,
    pub(crate) pieces: Vec<Piece>,
}

/// A kernel with its arguments.
pub(crate) struct Launch {
    pub(crate) kernel: Kernel,
    pub(crate) shape: LaunchShape,
    pub(crate) args: Vec<KernelArg>,
    pub(crate) moment: Moment,
}

impl Launch {
    /// Pointers among the arguments.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = u64> {
        self.args.iter().filter_map(|arg| match arg {
            KernelArg::Ptr(ptr) => Some(ptr.0),
            _ => None,
        })
    }
}

/// What an operation does.
pub(crate) enum Work {
    Transfer(Transfer),
    Memset {
        target: Endpoint,
        value: u8,
        bytes: usize,
    },
    Kernel(Box<Launch>),
    /// Fires an event.
    Record(Id, RecordedStart),
    /// Blocks the stream until a point in another one is passed.
    Wait(StreamPoint, RecordedStart),
    Callback(HostCallback),
    /// A callback that has not returned.
    CallbackRunning,
    /// Stream-ordered allocation of the block at this address.
    Alloc(u64),
    /// Stream-ordered free of the block at this address.
    Free(u64),
}

impl Work {
    /// The kind of engine that it needs, if any.
    pub(crate) fn engine_kind(&self) -> Option<EngineKind> {
        match self {
            Self::Transfer(transfer) => Some(match transfer.kind {
                SpanKind::HostToDevice => EngineKind::HostToDevice,
                SpanKind::DeviceToHost => EngineKind::DeviceToHost,
                _ => EngineKind::Compute,
            }),
            Self::Memset { .. } | Self::Kernel(_) => Some(EngineKind::Compute),
            _ => None,
        }
    }

    /// Time that it takes, alone on the device, beyond that on its engine.
    pub(crate) fn tail_ns(&self) -> u64 {
        match self {
            Self::Kernel(launch) => (launch.kernel.tail_ns)(&launch.args),
            _ => 0,
        }
    }
}

/// How an operation will fail, if a fault was injected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InjectedFailure {
    LateError,
    Stuck,
}

/// An operation of a stream.
pub(crate) struct Operation {
    /// Number in order of submission, over all streams.
    pub(crate) sequence: u64,
    /// By the clock of the thread that submitted it, which may be ahead of the device.
    pub(crate) submitted_ns: u64,
    pub(crate) call: Call,
    pub(crate) work: Work,
    pub(crate) failure: Option<InjectedFailure>,
    /// Its memory was freed: it runs, but accesses nothing.
    pub(crate) cancelled: bool,
}

impl Operation {
    /// Description for findings.
    pub(crate) fn describe(&self) -> String {
        let (call, sequence) = (self.call.name(), self.sequence);
        match &self.work {
            Work::Transfer(transfer) => {
                let direction = match transfer.kind {
                    SpanKind::HostToDevice => "host to device",
                    SpanKind::DeviceToHost => "device to host",
                    SpanKind::HostToHost => "host to host",
                    _ => "device to device",
                };
                format!("{call} #{sequence} ({} bytes, {direction})", transfer.bytes)
            }
            Work::Memset { bytes, .. } => format!("{call} #{sequence} ({bytes} bytes)"),
            Work::Kernel(launch) => format!("{call} #{sequence} ({})", launch.kernel.name),
            _ => format!("{call} #{sequence}"),
        }
    }

    /// The pieces of a copy; empty for other work.
    pub(crate) fn pieces_mut(&mut self) -> &mut [Piece] {
        match &mut self.work {
            Work::Transfer(transfer) => &mut transfer.pieces,
            _ => &mut [],
        }
    }

    /// Its description, if the host memory of one of these pieces changed. That is reported once.
    pub(crate) fn check_pieces(&mut self, these: &dyn Fn(&Piece) -> bool) -> Option<String> {
        let pieces = self.pieces_mut();
        if !pieces.iter().any(|it| these(it) && it.has_changed()) {
            return None;
        }
        pieces.iter_mut().for_each(|piece| piece.hash = None);
        Some(self.describe())
    }

    /// Whether it accesses these device addresses.
    pub(crate) fn uses_device(&self, start: u64, end: u64) -> bool {
        let hit = |address: u64, bytes: usize| address < end && start < address + bytes as u64;
        let end_hit = |end: &Endpoint, bytes: usize| match end {
            Endpoint::Device(address) => hit(*address, bytes),
            _ => false,
        };
        match &self.work {
            Work::Transfer(transfer) => transfer.pieces.iter().any(|piece| {
                end_hit(&piece.source, piece.bytes) || end_hit(&piece.target, piece.bytes)
            }),
            Work::Memset { target, bytes, .. } => end_hit(target, *bytes),
            Work::Kernel(launch) => launch.addresses().any(|address| hit(address, 1)),
            _ => false,
        }
    }

    /// Whether it accesses these page-locked host addresses.
    pub(crate) fn uses_host(&self, start: usize, end: usize) -> bool {
        let hit = |range: Option<HostBytes>| range.is_some_and(|range| range.overlaps(start, end));
        let addresses = start as u64..end as u64;
        match &self.work {
            Work::Transfer(transfer) => {
                let mut pieces = transfer.pieces.iter();
                pieces.any(|piece| hit(piece.source.pinned()) || hit(piece.target.pinned()))
            }
            Work::Memset { target, .. } => hit(target.pinned()),
            Work::Kernel(launch) => launch.addresses().any(|it| addresses.contains(&it)),
            _ => false,
        }
    }
}
