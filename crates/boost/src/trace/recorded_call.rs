//! A call as its arguments describe it.

use std::ffi::c_void;

use pinlane_boost_files::trace::{HostMemory, Operation};

use super::copy_structs::{CopyBlock, CopyRows, Side};
use super::{Route, host_memory};
use crate::calls::LEGACY;

/// A call, before it is made.
#[derive(Clone, Copy)]
pub(crate) struct RecordedCall {
    pub(super) operation: Operation,
    pub(super) route: Route,
    pub(super) memory: HostMemory,
    pub(super) is_async: bool,
    pub(super) bytes: u64,
    pub(super) stream: u64,
    pub(super) host: u64,
    pub(super) other: u64,
    /// Of an allocation: flags, and where the driver stores the address.
    pub(super) flags: u32,
    pub(super) result_at: *mut *mut c_void,
}

impl RecordedCall {
    pub(crate) fn new(operation: Operation) -> Self {
        Self {
            operation,
            route: Route::Unknown,
            memory: HostMemory::Unknown,
            is_async: false,
            bytes: 0,
            stream: LEGACY,
            host: 0,
            other: 0,
            flags: 0,
            result_at: std::ptr::null_mut(),
        }
    }

    pub(crate) fn upload(device: u64, host: *const c_void, bytes: usize) -> Self {
        Self {
            route: Route::Upload,
            host: host.addr() as u64,
            other: device,
            bytes: bytes as u64,
            ..Self::new(Operation::Copy)
        }
    }

    pub(crate) fn download(host: *mut c_void, device: u64, bytes: usize) -> Self {
        Self {
            route: Route::Download,
            ..Self::upload(device, host, bytes)
        }
    }

    pub(crate) fn on_device(target: u64, bytes: usize) -> Self {
        Self {
            route: Route::OnDevice,
            other: target,
            bytes: bytes as u64,
            ..Self::new(Operation::Copy)
        }
    }

    /// A copy between addresses of any kind.
    pub(crate) fn any(target: u64, source: u64, bytes: usize) -> Self {
        Self {
            bytes: bytes as u64,
            ..Self::new(Operation::Copy)
        }
        .between(Side::Any(target), Side::Any(source))
    }

    /// # Safety
    /// `rows` is null or points to the driver's `CUDA_MEMCPY2D`.
    pub(crate) unsafe fn rows(rows: *const c_void) -> Option<Self> {
        // SAFETY: the caller's.
        let rows = unsafe {
            let rows = rows.cast::<CopyRows>();
            (!rows.is_null()).then(|| rows.read_unaligned())
        }?;
        let call = Self {
            bytes: (rows.width_bytes as u64).saturating_mul(rows.height as u64),
            ..Self::new(Operation::CopyRows)
        };
        Some(call.between(rows.target(), rows.source()))
    }

    /// # Safety
    /// `block` is null or points to the driver's `CUDA_MEMCPY3D`.
    pub(crate) unsafe fn block(block: *const c_void) -> Option<Self> {
        // SAFETY: the caller's.
        let block = unsafe {
            let block = block.cast::<CopyBlock>();
            (!block.is_null()).then(|| block.read_unaligned())
        }?;
        let layer = (block.width_bytes as u64).saturating_mul(block.height as u64);
        let call = Self {
            bytes: layer.saturating_mul(block.depth as u64),
            ..Self::new(Operation::CopyBlock)
        };
        Some(call.between(block.target(), block.source()))
    }

    /// Several copies. The first one stands for the addresses of all.
    ///
    /// # Safety
    /// The lists have `count` entries.
    pub(crate) unsafe fn batch(
        targets: *const u64,
        sources: *const u64,
        sizes: *const usize,
        count: usize,
    ) -> Option<Self> {
        // The driver refuses more, and has not looked at the lists yet.
        const MOST: usize = 1 << 20;
        if count == 0 || count > MOST || targets.is_null() || sources.is_null() || sizes.is_null() {
            return None;
        }
        // SAFETY: the caller's.
        let (sizes, target, source) =
            unsafe { (std::slice::from_raw_parts(sizes, count), *targets, *sources) };
        let call = Self {
            bytes: sizes
                .iter()
                .map(|size| *size as u64)
                .fold(0, u64::saturating_add),
            ..Self::new(Operation::CopyBatch)
        };
        Some(call.between(Side::Any(target), Side::Any(source)))
    }

    pub(crate) fn allocate(result_at: *mut *mut c_void, bytes: usize, flags: u32) -> Self {
        Self {
            bytes: bytes as u64,
            flags,
            result_at,
            ..Self::new(Operation::Allocate)
        }
    }

    /// A call about host memory.
    pub(crate) fn host(operation: Operation, host: *mut c_void, bytes: usize) -> Self {
        Self {
            host: host.addr() as u64,
            bytes: bytes as u64,
            ..Self::new(operation)
        }
    }

    /// The creation of a stream with these flags.
    pub(crate) fn create_stream(flags: u32) -> Self {
        Self {
            other: u64::from(flags),
            ..Self::new(Operation::CreateStream)
        }
    }

    /// A call about an event.
    pub(crate) fn event(operation: Operation, event: *mut c_void) -> Self {
        Self {
            other: event.addr() as u64,
            ..Self::new(operation)
        }
    }

    /// On this stream, without waiting for it.
    pub(crate) fn on(self, stream: u64) -> Self {
        Self {
            stream,
            is_async: true,
            ..self
        }
    }

    /// On this stream, until it is done.
    pub(crate) fn blocking_on(self, stream: u64) -> Self {
        Self { stream, ..self }
    }

    /// Finds out what a copy is between.
    fn between(self, target: Side, source: Side) -> Self {
        let [target, source] = [target, source].map(Side::found);
        let (route, host, other) = match (target, source) {
            (Side::Host(host), Side::Device(device)) => (Route::Download, host, device),
            (Side::Device(device), Side::Host(host)) => (Route::Upload, host, device),
            (Side::Device(device), Side::Device(_)) => (Route::OnDevice, 0, device),
            (Side::Host(target), Side::Host(_)) => (Route::OnHost, target, 0),
            _ => (Route::Unknown, 0, 0),
        };
        Self {
            route,
            host,
            other,
            ..self
        }
    }

    /// Adds the kind of a copy's host memory.
    pub(super) fn with_memory_kind(self) -> Self {
        let has_host = matches!(self.route, Route::Upload | Route::Download);
        match self.operation.is_copy() && has_host && self.bytes > 0 {
            true => Self {
                memory: host_memory::kind(self.host),
                ..self
            },
            false => self,
        }
    }
}
