//! Device memory.

use pinlane_driver::{DevicePtr, Result, StreamHandle};

use crate::handles::raw_stream;
use crate::open_device::{CudaDevice, device_call};

impl CudaDevice {
    pub(crate) fn device_alloc(&self, bytes: usize) -> Result<DevicePtr> {
        let mut ptr = 0;
        // SAFETY: `ptr` outlives the call.
        unsafe { device_call!(self.cuMemAlloc_v2(&mut ptr, bytes)) }?;
        Ok(DevicePtr(ptr))
    }

    pub(crate) unsafe fn device_free(&self, ptr: DevicePtr) -> Result<()> {
        // SAFETY: the caller gives up an allocation that nothing uses.
        unsafe { device_call!(self.cuMemFree_v2(ptr.0)) }
    }

    pub(crate) unsafe fn device_alloc_async(
        &self,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<DevicePtr> {
        let alloc = self.optional(self.calls().cuMemAllocAsync, "cuMemAllocAsync")?;
        let _current = self.enter()?;
        let mut ptr = 0;
        // SAFETY: the caller passes a live stream. `ptr` outlives the call, which returns the address before the memory exists.
        let code = unsafe { alloc(&mut ptr, bytes, raw_stream(stream)) };
        self.library.check("cuMemAllocAsync", code)?;
        Ok(DevicePtr(ptr))
    }

    pub(crate) unsafe fn device_free_async(
        &self,
        ptr: DevicePtr,
        stream: StreamHandle,
    ) -> Result<()> {
        let free = self.optional(self.calls().cuMemFreeAsync, "cuMemFreeAsync")?;
        let _current = self.enter()?;
        // SAFETY: the caller gives up an allocation that no later work in the stream uses.
        let code = unsafe { free(ptr.0, raw_stream(stream)) };
        self.library.check("cuMemFreeAsync", code)
    }

    pub(crate) unsafe fn memset_async(
        &self,
        ptr: DevicePtr,
        value: u8,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<()> {
        let stream = raw_stream(stream);
        // SAFETY: the caller owns the bytes until the work is done.
        unsafe { device_call!(self.cuMemsetD8Async(ptr.0, value, bytes, stream)) }
    }
}
