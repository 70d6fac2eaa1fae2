//! One allocation of device memory.

use std::sync::Arc;

use pinlane_driver::{DevicePtr, Result, StreamHandle};

use crate::link::Link;

/// Device memory, freed the way it was allocated. Its owner sees to it that nothing uses it when
/// it is dropped.
pub(crate) struct DeviceMemory {
    link: Arc<Link>,
    ptr: DevicePtr,
    bytes: usize,
    origin: Origin,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// No bytes: the driver was not asked for nothing.
    Nothing,
    Plain,
    StreamOrdered,
    /// Freed already, in stream order.
    Gone,
}

impl DeviceMemory {
    pub(crate) fn plain(link: &Arc<Link>, bytes: usize) -> Result<Self> {
        Self::allocate(link, bytes, Origin::Plain, || {
            link.driver.device_alloc(bytes)
        })
    }

    pub(crate) fn ordered(link: &Arc<Link>, bytes: usize, stream: StreamHandle) -> Result<Self> {
        Self::allocate(link, bytes, Origin::StreamOrdered, || {
            link.driver.device_alloc_async(bytes, stream)
        })
    }

    fn allocate(
        link: &Arc<Link>,
        bytes: usize,
        origin: Origin,
        call: impl FnOnce() -> Result<DevicePtr>,
    ) -> Result<Self> {
        let (ptr, origin) = match bytes {
            0 => (DevicePtr(0), Origin::Nothing),
            _ => (call()?, origin),
        };
        link.books.device_bytes.add(bytes);
        Ok(Self {
            link: Arc::clone(link),
            ptr,
            bytes,
            origin,
        })
    }

    pub(crate) fn ptr(&self) -> DevicePtr {
        self.ptr
    }

    pub(crate) fn is_ordered(&self) -> bool {
        self.origin == Origin::StreamOrdered
    }

    /// Free behind all work that `stream` holds now; all uses come before that. Gives the memory
    /// back where the driver refuses.
    pub(crate) fn free_on(mut self, stream: StreamHandle) -> std::result::Result<(), Self> {
        debug_assert!(self.is_ordered());
        let ptr = self.ptr;
        // SAFETY: it came from `device_alloc_async`, was not freed, and the caller has ordered
        // `stream` behind all uses.
        let freed = self
            .link
            .give_back(|driver| unsafe { driver.device_free_async(ptr, stream) });
        if !freed {
            return Err(self);
        }
        self.origin = Origin::Gone;
        Ok(())
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        let ptr = self.ptr;
        let freed = match self.origin {
            Origin::Nothing | Origin::Gone => true,
            // SAFETY: it came from `device_alloc`, was not freed, and its owner drops it only when
            // nothing uses it any more.
            Origin::Plain => self
                .link
                .give_back(|driver| unsafe { driver.device_free(ptr) }),
            // SAFETY: as above, from `device_alloc_async`; no use is left to be ordered with.
            Origin::StreamOrdered => self.link.give_back(|driver| unsafe {
                driver.device_free_async(ptr, driver.default_stream())
            }),
        };
        if freed {
            self.link.books.device_bytes.subtract(self.bytes);
        }
    }
}
