//! Ways to get device memory.

use std::sync::Arc;

use bytemuck::Pod;

use super::DeviceBuf;
use crate::memory::{DeviceMemory, bytes_of};
use crate::stream::SubmitError;
use crate::{Device, Result, Stream};

impl Device {
    /// Device memory for `len` elements. Their values are unspecified.
    pub fn alloc<T: Pod>(&self, len: usize) -> Result<DeviceBuf<T>> {
        self.shared.lot.reclaim();
        let memory = DeviceMemory::plain(&self.shared.link, bytes_of::<T>(len)?)?;
        Ok(DeviceBuf::new(&self.shared, memory, len))
    }
}

impl Stream {
    /// Device memory for `len` elements, allocated in stream order: faster than
    /// [`Device::alloc`], and usable on other streams all the same. Their values are unspecified.
    pub fn alloc<T: Pod>(&self, len: usize) -> Result<DeviceBuf<T>> {
        let shared = self.shared();
        if !shared.link.driver.info().stream_ordered_alloc {
            return Device {
                shared: Arc::clone(shared),
            }
            .alloc(len);
        }
        shared.lot.reclaim();
        let bytes = bytes_of::<T>(len)?;
        let mut memory = None;
        let submitted = self.submit(&[], |_, stream| {
            memory = Some(DeviceMemory::ordered(&shared.link, bytes, stream)?);
            Ok(())
        });
        let fence = match submitted {
            Ok(fence) => fence,
            Err(SubmitError::Refused(error)) => return Err(error),
            Err(SubmitError::Stranded(error)) => {
                // Nobody can tell when it could be freed.
                std::mem::forget(memory);
                return Err(error);
            }
        };
        let memory = memory.expect("allocated by the submission");
        let mut buffer = DeviceBuf::new(shared, memory, len);
        // Other streams may use it only after this stream has got to the allocation.
        let access = buffer.whole_mut().touch().access(self.id());
        buffer.region.ledger().record(access, fence);
        Ok(buffer)
    }
}
