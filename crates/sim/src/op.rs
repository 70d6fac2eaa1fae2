//! One operation in a stream.

use std::sync::{Arc, OnceLock};

use pinlane_driver::{Call, HostCallback, KernelArg, LaunchShape};
use pinlane_kernels::Kernel;
use pinlane_model::engine::{EarliestStart, EngineKind};

use crate::calls::name;
use crate::host_bytes::HostBytes;
use crate::slab::Id;
use crate::timeline::SpanKind;

/// A place in a stream: passed once everything up to this sequence number is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Point {
    pub(crate) stream: Id,
    pub(crate) sequence: u64,
}

/// What a recorded event comes behind, known once it has fired. Shared by the recording and all
/// waits for it, which may outlive the event.
pub(crate) type Mark = Arc<OnceLock<EarliestStart>>;

/// When, during the time that it runs, an operation touches memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moment {
    Start,
    Middle,
    End,
}

/// One end of a piece of a copy.
#[derive(Debug)]
pub(crate) enum End {
    Device(u64),
    /// Page-locked memory, which the caller leaves alone until the copy is done.
    Pinned(HostBytes),
    /// Bytes of a pageable source, taken when the copy was submitted.
    Staged(Box<[u8]>),
    /// Pageable memory of a caller that waits inside the call.
    Waiting(HostBytes),
}

impl End {
    /// The page-locked memory, if it is that.
    pub(crate) fn pinned(&self) -> Option<HostBytes> {
        match self {
            Self::Pinned(range) => Some(*range),
            _ => None,
        }
    }
}

/// Consecutive bytes that move at one moment.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) source: End,
    pub(crate) target: End,
    pub(crate) bytes: usize,
    pub(crate) moment: Moment,
    pub(crate) moved: bool,
    /// Hash that the page-locked end must have until the copy is done, where it is checked.
    pub(crate) hash: Option<u64>,
}

impl Piece {
    /// The page-locked end.
    pub(crate) fn pinned(&self) -> Option<HostBytes> {
        self.source.pinned().or(self.target.pinned())
    }
}

/// A copy: one piece, or many that move as one operation.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) kind: SpanKind,
    pub(crate) bytes: u64,
    /// Time on its engine when the link is otherwise idle.
    pub(crate) alone_ns: u64,
    pub(crate) pieces: Vec<Piece>,
}

/// A kernel with its arguments.
pub(crate) struct Launch {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) shape: LaunchShape,
    pub(crate) args: Vec<KernelArg>,
    pub(crate) moment: Moment,
}

impl Launch {
    /// Addresses among the arguments.
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
        target: End,
        value: u8,
        bytes: usize,
    },
    Kernel(Box<Launch>),
    /// Fires an event.
    Record(Id, Mark),
    /// Holds the stream until a place in another one is passed.
    Wait(Point, Mark),
    Callback(HostCallback),
    /// A callback that was handed out and has not returned.
    CallbackRunning,
    /// Stream-ordered allocation of the block at this address.
    Alloc(u64),
    /// Stream-ordered free of the block at this address.
    Free(u64),
}

impl Work {
    /// The kind of engine that it needs; none for what takes no time on the device.
    pub(crate) fn need(&self) -> Option<EngineKind> {
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
}

/// How an operation will fail, where a fault was injected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Doom {
    LateError,
    Stuck,
}

/// One operation in a stream.
pub(crate) struct Op {
    /// Its place in the order of submission over all streams.
    pub(crate) sequence: u64,
    pub(crate) call: Call,
    pub(crate) work: Work,
    pub(crate) doom: Option<Doom>,
    /// Its memory was taken away: it runs, but touches nothing.
    pub(crate) cancelled: bool,
}

impl Op {
    /// Words for a finding.
    pub(crate) fn describe(&self) -> String {
        let (call, sequence) = (name(self.call), self.sequence);
        match &self.work {
            Work::Transfer(transfer) => {
                let way = match transfer.kind {
                    SpanKind::HostToDevice => "host to device",
                    SpanKind::DeviceToHost => "device to host",
                    SpanKind::HostToHost => "host to host",
                    _ => "device to device",
                };
                format!("{call} #{sequence} ({} bytes, {way})", transfer.bytes)
            }
            Work::Memset { bytes, .. } => format!("{call} #{sequence} ({bytes} bytes)"),
            Work::Kernel(launch) => format!("{call} #{sequence} ({})", launch.kernel.name),
            _ => format!("{call} #{sequence}"),
        }
    }

    /// Its host memory changed, and that was told: once is enough.
    pub(crate) fn stop_checking(&mut self) {
        if let Work::Transfer(transfer) = &mut self.work {
            for piece in &mut transfer.pieces {
                piece.hash = None;
            }
        }
    }

    /// Whether it touches a byte of these device addresses.
    pub(crate) fn uses_device(&self, start: u64, end: u64) -> bool {
        let hit = |address: u64, bytes: usize| address < end && start < address + bytes as u64;
        let end_hit = |end: &End, bytes: usize| match end {
            End::Device(address) => hit(*address, bytes),
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

    /// Whether it touches a byte of these page-locked host addresses.
    pub(crate) fn uses_host(&self, start: usize, end: usize) -> bool {
        let hit = |range: Option<HostBytes>| range.is_some_and(|range| range.overlaps(start, end));
        match &self.work {
            Work::Transfer(transfer) => transfer
                .pieces
                .iter()
                .any(|piece| hit(piece.source.pinned()) || hit(piece.target.pinned())),
            Work::Memset { target, .. } => hit(target.pinned()),
            Work::Kernel(launch) => launch
                .addresses()
                .any(|address| (start as u64..end as u64).contains(&address)),
            _ => false,
        }
    }
}
