//! The driver's descriptions of copies of rows and blocks.

use std::ffi::c_void;

use super::host_memory;

/// One end of a copy.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Host(u64),
    Device(u64),
    /// Whatever the driver knows about the address.
    Any(u64),
    Unknown,
}

impl Side {
    /// By the driver's `CUmemorytype`.
    fn new(memory_type: u32, host: *const c_void, device: u64) -> Self {
        match memory_type {
            1 => Self::Host(host.addr() as u64),
            2 => Self::Device(device),
            // Arrays have no address.
            3 => Self::Device(0),
            4 => Self::Any(device),
            _ => Self::Unknown,
        }
    }

    /// Asks the driver about [`Any`](Self::Any).
    pub(super) fn found(self) -> Self {
        match self {
            Self::Any(address) => match host_memory::is_on_host(address) {
                Some(true) => Self::Host(address),
                Some(false) => Self::Device(address),
                None => Self::Unknown,
            },
            known => known,
        }
    }
}

/// `CUDA_MEMCPY2D`
#[repr(C)]
pub(super) struct CopyRows {
    source_x: usize,
    source_y: usize,
    source_type: u32,
    source_host: *const c_void,
    source_device: u64,
    source_array: *const c_void,
    source_pitch: usize,
    target_x: usize,
    target_y: usize,
    target_type: u32,
    target_host: *const c_void,
    target_device: u64,
    target_array: *const c_void,
    target_pitch: usize,
    pub(super) width_bytes: usize,
    pub(super) height: usize,
}

const _: () = assert!(size_of::<CopyRows>() == 128);

impl CopyRows {
    pub(super) fn source(&self) -> Side {
        Side::new(self.source_type, self.source_host, self.source_device)
    }

    pub(super) fn target(&self) -> Side {
        Side::new(self.target_type, self.target_host, self.target_device)
    }
}

/// `CUDA_MEMCPY3D`
#[repr(C)]
pub(super) struct CopyBlock {
    source_origin: [usize; 4],
    source_type: u32,
    source_host: *const c_void,
    source_device: u64,
    source_array: *const c_void,
    source_reserved: *const c_void,
    source_pitch: usize,
    source_height: usize,
    target_origin: [usize; 4],
    target_type: u32,
    target_host: *const c_void,
    target_device: u64,
    target_array: *const c_void,
    target_reserved: *const c_void,
    target_pitch: usize,
    target_height: usize,
    pub(super) width_bytes: usize,
    pub(super) height: usize,
    pub(super) depth: usize,
}

const _: () = assert!(size_of::<CopyBlock>() == 200);

impl CopyBlock {
    pub(super) fn source(&self) -> Side {
        Side::new(self.source_type, self.source_host, self.source_device)
    }

    pub(super) fn target(&self) -> Side {
        Side::new(self.target_type, self.target_host, self.target_device)
    }
}
