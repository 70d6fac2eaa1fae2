//! Device memory with the ledger of its uses.

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use pinlane_driver::DevicePtr;

use crate::device::Shared;
use crate::fence::DeviceFence;
use crate::memory::DeviceMemory;
use crate::sync::lock;
use crate::transfer_protocol::{Access, Extent, Ledger};
use crate::{Error, Result};

/// Device memory with its ledger. Sub-ranges record their uses in the ledger of the whole.
pub(crate) struct DeviceRegion {
    pub(super) shared: Arc<Shared>,
    /// Taken once, by `drop`.
    pub(super) memory: ManuallyDrop<DeviceMemory>,
    ledger: Mutex<Ledger<DeviceFence>>,
    /// In use by work that can never be waited for, so it must never be freed.
    stranded: AtomicBool,
}

impl DeviceRegion {
    pub(super) fn new(shared: &Arc<Shared>, memory: DeviceMemory) -> Self {
        Self {
            shared: Arc::clone(shared),
            memory: ManuallyDrop::new(memory),
            ledger: Mutex::new(Ledger::new()),
            stranded: AtomicBool::new(false),
        }
    }

    /// Address of the first byte.
    pub(crate) fn ptr(&self) -> DevicePtr {
        self.memory.ptr()
    }

    /// Checks that streams of this device may use the memory.
    pub(crate) fn may_be_used_by(&self, shared: &Arc<Shared>) -> Result<()> {
        if !Arc::ptr_eq(&self.shared, shared) {
            Err(Error::WrongDevice)
        } else if self.is_stranded() {
            Err(Error::Stranded)
        } else {
            Ok(())
        }
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger<DeviceFence>> {
        lock(&self.ledger)
    }

    /// Marks the memory as used by work that can never be waited for.
    pub(crate) fn strand(&self) {
        self.stranded.store(true, Ordering::Relaxed);
    }

    /// Whether there is earlier work on the memory that can never be waited for.
    pub(super) fn is_stranded(&self) -> bool {
        self.stranded.load(Ordering::Relaxed)
    }

    /// Starts a new ledger without uses, for memory of another library.
    pub(super) fn forget_uses(&mut self) {
        *self.ledger() = Ledger::new();
        *self.stranded.get_mut() = false;
    }
}

impl fmt::Debug for DeviceRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DeviceRegion").field(&self.ptr()).finish()
    }
}

impl Drop for DeviceRegion {
    fn drop(&mut self) {
        if self.is_stranded() {
            return;
        }
        // SAFETY: taken only here, and never used again.
        let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
        let uses = self.ledger().fences().cloned().collect();
        self.shared.return_memory(memory, uses);
    }
}

/// One use of device memory by work that is about to be submitted.
#[derive(Clone, Debug)]
pub struct Touch<'a> {
    pub(crate) region: &'a DeviceRegion,
    pub(crate) extent: Extent,
    pub(crate) writes: bool,
}

impl Touch<'_> {
    pub(crate) fn access(&self, stream: u64) -> Access {
        Access {
            stream,
            extent: self.extent.clone(),
            writes: self.writes,
        }
    }
}
