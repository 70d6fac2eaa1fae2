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

/// Whoever frees memory of another library, by being dropped.
#[cfg(feature = "cudarc")]
pub(crate) type Owner = Box<dyn std::any::Any + Send + Sync>;

enum Origin {
    /// No bytes: the driver was not asked for nothing.
    Nothing,
    Plain,
    StreamOrdered,
    /// Another library's. It goes back by dropping its owner.
    #[cfg(feature = "cudarc")]
    Foreign(Owner),
    /// Freed already, in stream order, or given up.
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

    /// Memory of another library, which `owner` frees when it is dropped.
    #[cfg(feature = "cudarc")]
    pub(crate) fn foreign(link: &Arc<Link>, ptr: DevicePtr, bytes: usize, owner: Owner) -> Self {
        link.books.device_bytes.add(bytes);
        Self {
            link: Arc::clone(link),
            ptr,
            bytes,
            origin: Origin::Foreign(owner),
        }
    }

    /// The owner of another library's memory.
    #[cfg(feature = "cudarc")]
    pub(crate) fn owner_mut(&mut self) -> Option<&mut Owner> {
        match &mut self.origin {
            Origin::Foreign(owner) => Some(owner),
            _ => None,
        }
    }

    /// Give another library's memory up, without freeing it.
    #[cfg(feature = "cudarc")]
    pub(crate) fn take_owner(&mut self) -> Option<Owner> {
        match std::mem::replace(&mut self.origin, Origin::Gone) {
            Origin::Foreign(owner) => {
                let bytes = std::mem::take(&mut self.bytes);
                self.link.books.device_bytes.subtract(bytes);
                Some(owner)
            }
            origin => {
                self.origin = origin;
                None
            }
        }
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
        matches!(self.origin, Origin::StreamOrdered)
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
            #[cfg(feature = "cudarc")]
            Origin::Foreign(_) => true,
        };
        if freed {
            self.link.books.device_bytes.subtract(self.bytes);
        }
    }
}
