//! One opened device.

use std::sync::Arc;

use cudarc::driver::sys::CUdevice;
use pinlane_driver::{DeviceInfo, Error, ErrorKind, MemoryInfo, Result};

use crate::calls::Calls;
use crate::context::{Current, Primary};
use crate::error;
use crate::library::Library;

/// One opened device. Closing it releases the primary context, if it was ever used.
///
/// The methods are in the file of their topic; `driver.rs` gives them the trait's face.
pub(crate) struct CudaDevice {
    pub(crate) info: DeviceInfo,
    primary: Primary,
    library: Arc<Library>,
}

impl CudaDevice {
    /// Opens `device`. Creates nothing on it.
    pub(crate) fn new(library: Arc<Library>, device: CUdevice, info: DeviceInfo) -> Self {
        Self {
            info,
            primary: Primary::new(Arc::clone(&library), device),
            library,
        }
    }

    /// libcuda's calls.
    pub(crate) fn calls(&self) -> &Calls {
        &self.library.calls
    }

    /// Makes the context current on this thread until the guard is dropped.
    pub(crate) fn enter(&self) -> Result<Current<'_>> {
        self.primary.enter()
    }

    /// `Ok` for a call on the context that succeeded.
    pub(crate) fn check(&self, call: &'static str, code: u32) -> Result<()> {
        self.check_as(call, code, error::kind)
    }

    /// The same with another meaning of the codes.
    pub(crate) fn check_as(
        &self,
        call: &'static str,
        code: u32,
        meaning: fn(u32) -> ErrorKind,
    ) -> Result<()> {
        self.library.check_as(call, code, meaning)
    }

    /// Whether what a query asked for is done.
    pub(crate) fn check_done(&self, call: &'static str, code: u32) -> Result<bool> {
        if code == error::NOT_READY {
            return Ok(false);
        }
        self.check(call, code).map(|()| true)
    }

    /// A call that not every driver has.
    pub(crate) fn optional<F>(&self, call: Option<F>, symbol: &'static str) -> Result<F> {
        call.ok_or_else(|| Error::new(ErrorKind::MissingSymbol { symbol }, symbol))
    }

    pub(crate) fn memory_info(&self) -> Result<MemoryInfo> {
        let _current = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both outlive the call.
        let code = unsafe { (self.calls().cuMemGetInfo_v2)(&mut free, &mut total) };
        self.check("cuMemGetInfo_v2", code)?;
        Ok(MemoryInfo {
            free_bytes: free as u64,
            total_bytes: total as u64,
        })
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: takes nothing; the context is current.
        let code = unsafe { (self.calls().cuCtxSynchronize)() };
        self.check("cuCtxSynchronize", code)
    }
}
