//! An open device.

use std::sync::Arc;

use pinlane_driver::{DeviceInfo, Error, ErrorKind, MemoryInfo, Result};

use crate::context::{CurrentContext, DeviceContext};
use crate::error;
use crate::library::Library;
use crate::symbol_table::Calls;

/// An open device. Closing it releases the primary context if it was used.
///
/// Its methods are in one file per topic; `driver.rs` implements the trait with them. An unsafe one
/// has the contract of the trait's method.
pub(crate) struct CudaDevice {
    pub(crate) info: DeviceInfo,
    pub(crate) library: Arc<Library>,
    context: DeviceContext,
}

/// Calls libcuda with the device's context current. An error names the call.
macro_rules! device_call {
    ($device:ident.$name:ident($($arg:expr),* $(,)?)) => {{
        let _current = $device.enter()?;
        $crate::library::call!($device.library, $name($($arg),*))
    }};
}
pub(crate) use device_call;

impl CudaDevice {
    /// Uses a device in `context`. Creates nothing.
    pub(crate) fn new(library: Arc<Library>, context: DeviceContext, info: DeviceInfo) -> Self {
        Self {
            info,
            context,
            library,
        }
    }

    pub(crate) fn calls(&self) -> &Calls {
        &self.library.calls
    }

    /// Makes the context current on this thread until the guard is dropped.
    pub(crate) fn enter(&self) -> Result<CurrentContext<'_>> {
        self.context.enter()
    }

    /// Whether the work that a query asked about is done.
    pub(crate) fn check_done(&self, call: &'static str, code: u32) -> Result<bool> {
        if code == error::NOT_READY {
            return Ok(false);
        }
        self.library.check(call, code).map(|()| true)
    }

    /// A call that older drivers lack.
    pub(crate) fn optional<F>(&self, call: Option<F>, symbol: &'static str) -> Result<F> {
        call.ok_or_else(|| Error::new(ErrorKind::MissingSymbol { symbol }, symbol))
    }

    pub(crate) fn memory_info(&self) -> Result<MemoryInfo> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both outlive the call.
        unsafe { device_call!(self.cuMemGetInfo_v2(&mut free, &mut total)) }?;
        Ok(MemoryInfo {
            free_bytes: free as u64,
            total_bytes: total as u64,
        })
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        // SAFETY: takes no arguments.
        unsafe { device_call!(self.cuCtxSynchronize()) }
    }
}
