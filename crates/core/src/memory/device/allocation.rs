//! One allocation of device memory.

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use pinlane_driver::{DevicePtr, Driver, ErrorKind, Result};

use super::cache::Block;
use crate::device_core::DeviceCore;
use crate::driver_handles::StreamRef;

/// Device memory, freed the way it was allocated. Its owner drops it only when nothing uses it.
pub(crate) struct DeviceMemory {
    core: Arc<DeviceCore>,
    ptr: DevicePtr,
    bytes: usize,
    origin: Origin,
}

/// Owner of another library's memory; dropping it frees the memory.
pub(crate) type Owner = Box<dyn std::any::Any + Send + Sync>;

enum Origin {
    Plain,
    StreamOrdered,
    /// Another library's memory, freed by dropping its owner.
    Foreign(Owner),
    /// Nothing to free: zero bytes, already freed in stream order, or given up.
    Nothing,
}

impl DeviceMemory {
    /// Takes cached memory or allocates.
    pub(crate) fn plain(core: &Arc<DeviceCore>, bytes: usize) -> Result<Self> {
        if let Some(Block { ptr, bytes }) = core.device_cache.take(bytes) {
            return Ok(Self::new(core, ptr, bytes, Origin::Plain));
        }
        Self::allocate(core, bytes, Origin::Plain, || {
            core.driver.device_alloc(bytes)
        })
    }

    pub(crate) fn ordered(stream: StreamRef<'_>, bytes: usize) -> Result<Self> {
        let alloc = || stream.alloc(bytes);
        Self::allocate(stream.core(), bytes, Origin::StreamOrdered, alloc)
    }

    /// Wraps another library's memory, which is freed by dropping `owner`.
    pub(crate) fn foreign(
        core: &Arc<DeviceCore>,
        ptr: DevicePtr,
        bytes: usize,
        owner: Owner,
    ) -> Self {
        core.counters.device_bytes.add(bytes);
        Self::new(core, ptr, bytes, Origin::Foreign(owner))
    }

    /// The owner of another library's memory.
    #[cfg(feature = "cudarc")]
    pub(crate) fn owner_mut(&mut self) -> Option<&mut Owner> {
        match &mut self.origin {
            Origin::Foreign(owner) => Some(owner),
            _ => None,
        }
    }

    /// Gives up another library's memory without freeing it.
    pub(crate) fn take_owner(&mut self) -> Option<Owner> {
        match std::mem::replace(&mut self.origin, Origin::Nothing) {
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
        Ok(Self::new(core, ptr, bytes, origin))
    }

    fn new(core: &Arc<DeviceCore>, ptr: DevicePtr, bytes: usize, origin: Origin) -> Self {
        let core = Arc::clone(core);
        Self {
            core,
            ptr,
            bytes,
            origin,
        }
    }

    pub(crate) fn ptr(&self) -> DevicePtr {
        self.ptr
    }

    pub(crate) fn is_ordered(&self) -> bool {
        matches!(self.origin, Origin::StreamOrdered)
    }

    /// Frees the memory behind all work submitted to `stream`, which must include all uses. Returns the
    /// memory if the driver refuses.
    pub(crate) fn free_on(self, stream: StreamRef<'_>) -> std::result::Result<(), Self> {
        debug_assert!(self.is_ordered());
        let mut memory = ManuallyDrop::new(self); // leaked if the driver panics
        let ptr = memory.ptr;
        // SAFETY: from `device_alloc_async`, not freed, and `stream` is live and behind all uses.
        let free = |driver: &dyn Driver| unsafe { driver.device_free_async(ptr, stream.handle()) };
        let freed = memory.core.give_back(free);
        if freed {
            memory.origin = Origin::Nothing;
        }
        let memory = ManuallyDrop::into_inner(memory);
        if freed { Ok(()) } else { Err(memory) }
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        let ptr = self.ptr;
        let freed = match self.origin {
            Origin::Nothing => true,
            Origin::Plain => {
                let bytes = self.bytes;
                let excess = self.core.device_cache.put(Block { ptr, bytes });
                // SAFETY: it came from `device_alloc`, was not freed, and its owner drops it only when
                // nothing uses it; the same holds for all cached blocks.
                unsafe { self.core.free_blocks(excess) };
                return;
            }
            // SAFETY: as above, from `device_alloc_async`; no uses are left to order against.
            Origin::StreamOrdered => self.core.give_back(|driver| unsafe {
                driver.device_free_async(ptr, driver.default_stream())
            }),
            Origin::Foreign(_) => true,
        };
        if freed {
            self.core.counters.device_bytes.subtract(self.bytes);
        }
    }
}

/// Calls `call`, and if the device is out of memory, frees the cache and retries.
fn or_without_cache(core: &DeviceCore, call: impl Fn() -> Result<DevicePtr>) -> Result<DevicePtr> {
    let is_full = |result: &Result<DevicePtr>| {
        let error = result.as_ref().err();
        error.is_some_and(|error| error.kind == ErrorKind::OutOfMemory)
    };
    let mut result = call();
    // Another thread may have freed the cache in the meantime, so retry in any case, and keep retrying as
    // long as something is freed.
    let mut freed = usize::from(core.device_cache.is_allowed());
    while freed > 0 && is_full(&result) {
        freed = core.free_cached();
        result = call();
    }
    result
}

/// Returning cached memory to the driver.
impl DeviceCore {
    /// Sets the cache limit in bytes and returns the previous one.
    pub(crate) fn set_cache_limit(&self, at_most_bytes: u64) -> u64 {
        let (before, excess) = self.device_cache.limit(at_most_bytes);
        // SAFETY: cached blocks came from `device_alloc` and have no user.
        unsafe { self.free_blocks(excess) };
        before
    }

    /// Frees all cached memory and returns how many bytes.
    pub(crate) fn free_cached(&self) -> usize {
        // SAFETY: cached blocks came from `device_alloc` and have no user.
        self.device_cache
            .empty(|all| unsafe { self.free_blocks(all) })
    }

    /// Frees blocks and returns how many bytes the driver took back. If the driver panics, the remaining
    /// blocks are still freed before the first panic resumes.
    ///
    /// # Safety
    /// They came from `device_alloc`, were not freed, and nothing uses them.
    unsafe fn free_blocks(&self, blocks: Vec<Block>) -> usize {
        let (mut freed, mut panicked) = (0, None);
        for Block { ptr, bytes } in blocks {
            // SAFETY: guaranteed by the caller.
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
