//! One allocation of device memory.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use pinlane_driver::{DevicePtr, ErrorKind, Result, StreamHandle};

use super::cache::Block;
use crate::device_core::DeviceCore;

/// Device memory, freed the way it was allocated. Its owner sees to it that nothing uses it when
/// it is dropped.
pub(crate) struct DeviceMemory {
    core: Arc<DeviceCore>,
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
    /// Memory that was kept, or new one.
    pub(crate) fn plain(core: &Arc<DeviceCore>, bytes: usize) -> Result<Self> {
        if let Some(Block { ptr, bytes }) = core.device_cache.take(bytes) {
            return Ok(Self {
                core: Arc::clone(core),
                ptr,
                bytes,
                origin: Origin::Plain,
            });
        }
        Self::allocate(core, bytes, Origin::Plain, || {
            core.driver.device_alloc(bytes)
        })
    }

    pub(crate) fn ordered(
        core: &Arc<DeviceCore>,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<Self> {
        Self::allocate(core, bytes, Origin::StreamOrdered, || {
            core.driver.device_alloc_async(bytes, stream)
        })
    }

    /// Memory of another library, which `owner` frees when it is dropped.
    #[cfg(feature = "cudarc")]
    pub(crate) fn foreign(
        core: &Arc<DeviceCore>,
        ptr: DevicePtr,
        bytes: usize,
        owner: Owner,
    ) -> Self {
        core.counters.device_bytes.add(bytes);
        Self {
            core: Arc::clone(core),
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
                self.core.counters.device_bytes.subtract(bytes);
                Some(owner)
            }
            origin => {
                self.origin = origin;
                None
            }
        }
    }

    fn allocate(
        core: &Arc<DeviceCore>,
        bytes: usize,
        origin: Origin,
        call: impl Fn() -> Result<DevicePtr>,
    ) -> Result<Self> {
        let (ptr, origin) = match bytes {
            0 => (DevicePtr(0), Origin::Nothing),
            _ => (or_without_cache(core, call)?, origin),
        };
        core.counters.device_bytes.add(bytes);
        Ok(Self {
            core: Arc::clone(core),
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
            .core
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
            Origin::Plain => {
                let bytes = self.bytes;
                let excess = self.core.device_cache.put(Block { ptr, bytes });
                // SAFETY: it came from `device_alloc`, was not freed, and its owner drops it only when
                // nothing uses it any more; that holds for all that was kept.
                unsafe { self.core.free_blocks(excess) };
                return;
            }
            // SAFETY: as above, from `device_alloc_async`; no use is left to be ordered with.
            Origin::StreamOrdered => self.core.give_back(|driver| unsafe {
                driver.device_free_async(ptr, driver.default_stream())
            }),
            #[cfg(feature = "cudarc")]
            Origin::Foreign(_) => true,
        };
        if freed {
            self.core.counters.device_bytes.subtract(self.bytes);
        }
    }
}

/// Memory is kept for speed: where there is none left, what was kept goes back first.
fn or_without_cache(core: &DeviceCore, call: impl Fn() -> Result<DevicePtr>) -> Result<DevicePtr> {
    let is_full = |result: &Result<DevicePtr>| {
        let error = result.as_ref().err();
        error.is_some_and(|error| error.kind == ErrorKind::OutOfMemory)
    };
    let mut result = call();
    // Another thread may have freed it meanwhile, so it is tried again whoever did; and while some comes
    // back, more may.
    let mut freed = usize::from(core.device_cache.is_allowed());
    while freed > 0 && is_full(&result) {
        freed = core.free_cached();
        result = call();
    }
    result
}

/// Memory that is kept, given back to the driver.
impl DeviceCore {
    /// Keep so much from now on. How much it was before.
    pub(crate) fn set_cache_limit(&self, at_most_bytes: u64) -> u64 {
        let (before, excess) = self.device_cache.limit(at_most_bytes);
        // SAFETY: what is kept came from `device_alloc` and is nobody's.
        unsafe { self.free_blocks(excess) };
        before
    }

    /// Free all that is kept now. How many bytes.
    pub(crate) fn free_cached(&self) -> usize {
        // SAFETY: what is kept came from `device_alloc` and is nobody's.
        self.device_cache
            .empty(|all| unsafe { self.free_blocks(all) })
    }

    /// How many bytes the driver took back. A panic of the driver's does not keep the others from being
    /// freed; the first goes on when all are.
    ///
    /// # Safety
    /// They came from `device_alloc`, were not freed, and nobody uses them.
    unsafe fn free_blocks(&self, blocks: Vec<Block>) -> usize {
        let (mut freed, mut panicked) = (0, None);
        for Block { ptr, bytes } in blocks {
            // SAFETY: the caller promises it.
            let free = || self.give_back(|driver| unsafe { driver.device_free(ptr) });
            match catch_unwind(AssertUnwindSafe(free)) {
                Ok(true) => {
                    self.counters.device_bytes.subtract(bytes);
                    freed += bytes;
                }
                Ok(false) => {}
                Err(panic) => {
                    panicked.get_or_insert(panic);
                }
            }
        }
        if let Some(panic) = panicked {
            resume_unwind(panic);
        }
        freed
    }
}
