//! Device memory.

use pinlane_driver::{DevicePtr, Result, StreamHandle};

use crate::device::CudaDevice;
use crate::stream::raw_stream;

impl CudaDevice {
    pub(crate) fn device_alloc(&self, bytes: usize) -> Result<DevicePtr> {
        let _current = self.enter()?;
        let mut ptr = 0;
        // SAFETY: `ptr` outlives the call.
        let code = unsafe { (self.calls().cuMemAlloc_v2)(&mut ptr, bytes) };
        self.check("cuMemAlloc_v2", code)?;
        Ok(DevicePtr(ptr))
    }

    /// # Safety
    /// As for the trait's method.
    pub(crate) unsafe fn device_free(&self, ptr: DevicePtr) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the caller gives up an allocation that nothing uses.
        let code = unsafe { (self.calls().cuMemFree_v2)(ptr.0) };
        self.check("cuMemFree_v2", code)
    }

    pub(crate) fn device_alloc_async(
        &self,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<DevicePtr> {
        let alloc = self.optional(self.calls().cuMemAllocAsync, "cuMemAllocAsync")?;
        let _current = self.enter()?;
        let mut ptr = 0;
        // SAFETY: `ptr` outlives the call: the address is known at once, the memory comes later.
        let code = unsafe { alloc(&mut ptr, bytes, raw_stream(stream)) };
        self.check("cuMemAllocAsync", code)?;
        Ok(DevicePtr(ptr))
    }

    /// # Safety
    /// As for the trait's method.
    pub(crate) unsafe fn device_free_async(
        &self,
        ptr: DevicePtr,
        stream: StreamHandle,
    ) -> Result<()> {
        let free = self.optional(self.calls().cuMemFreeAsync, "cuMemFreeAsync")?;
        let _current = self.enter()?;
        // SAFETY: the caller gives up an allocation that nothing later in the stream uses.
        let code = unsafe { free(ptr.0, raw_stream(stream)) };
        self.check("cuMemFreeAsync", code)
    }

    /// # Safety
    /// As for the trait's method.
    pub(crate) unsafe fn memset_async(
        &self,
        ptr: DevicePtr,
        value: u8,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the caller owns the bytes until the work is done.
        let code =
            unsafe { (self.calls().cuMemsetD8Async)(ptr.0, value, bytes, raw_stream(stream)) };
        self.check("cuMemsetD8Async", code)
    }
}
