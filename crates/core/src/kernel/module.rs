//! Code on the device, loaded until its last launch is done.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use pinlane_driver::{Driver, ModuleHandle};

use super::{Kernel, Params};
use crate::device::Shared;
use crate::device_core::DeviceCore;
use crate::fence::DeviceFence;
use crate::protocol::{Access, Extent, Fence, Ledger};
use crate::sync::lock;
use crate::{Device, Result};

/// A loaded PTX module. Unloaded once it, its kernels and their launches are gone.
#[derive(Clone)]
pub struct Module {
    pub(super) inner: Arc<Loaded>,
}

/// Shared by a module and its kernels.
pub(super) struct Loaded {
    pub(super) shared: Arc<Shared>,
    /// Taken once, by `drop`.
    code: ManuallyDrop<Code>,
    /// The last launch on each stream.
    launches: Mutex<Ledger<DeviceFence>>,
    /// In use by a launch that can never be waited for, so it must never be unloaded.
    pub(super) stranded: AtomicBool,
}

/// Code on the device, unloaded on drop.
pub(crate) struct Code {
    core: Arc<DeviceCore>,
    handle: ModuleHandle,
}

impl Code {
    pub(crate) fn load(core: &Arc<DeviceCore>, ptx: &str) -> Result<Self> {
        Ok(Self {
            handle: core.driver.module_load(ptx)?,
            core: Arc::clone(core),
        })
    }

    pub(crate) fn handle(&self) -> ModuleHandle {
        self.handle
    }

    pub(crate) fn driver(&self) -> &dyn Driver {
        &*self.core.driver
    }
}

impl Device {
    /// Loads a PTX module.
    pub fn load_ptx(&self, ptx: &str) -> Result<Module> {
        let code = Code::load(&self.shared.core, ptx)?;
        Ok(Module {
            inner: Arc::new(Loaded {
                shared: Arc::clone(&self.shared),
                code: ManuallyDrop::new(code),
                launches: Mutex::new(Ledger::new()),
                stranded: AtomicBool::new(false),
            }),
        })
    }
}

impl Module {
    /// Looks up a kernel by name. The caller of `launch` vouches that its parameters are `A`.
    pub fn kernel<A: Params>(&self, name: &str) -> Result<Kernel<A>> {
        let driver = &self.inner.shared.core.driver;
        Ok(Kernel {
            handle: driver.module_function(self.inner.code.handle, name)?,
            module: self.clone(),
            params: PhantomData,
        })
    }
}

impl Loaded {
    /// Records a launch. It replaces earlier launches on the same stream.
    pub(super) fn launched(&self, stream: u64, fence: DeviceFence) {
        let access = Access {
            stream,
            extent: Extent::One(0..1),
            writes: false,
        };
        let mut launches = lock(&self.launches);
        launches.record(access, fence);
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if *self.stranded.get_mut() {
            return;
        }
        // SAFETY: taken only here, and never used again.
        let code = unsafe { ManuallyDrop::take(&mut self.code) };
        let launches = self
            .launches
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let running: Vec<_> = launches
            .fences()
            .filter(|fence| !fence.has_let_go())
            .cloned()
            .collect();
        if running.is_empty() {
            drop(code);
        } else {
            self.shared.deferred.defer(running, Box::new(code));
        }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: its owner dropped it only once no launch was running.
        self.core
            .give_back(|driver| unsafe { driver.module_unload(self.handle) });
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Module")
            .field(&self.inner.code.handle.raw())
            .finish()
    }
}
