//! PTX modules and typed launches. Code stays loaded until its last launch is done.

mod from_source;
mod params;

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pinlane_driver::{Driver, FunctionHandle, LaunchShape, ModuleHandle};

pub use self::params::{AnyParams, AnyValues, Argument, In, Out, Param, Params, Touches};
pub use pinlane_nvrtc::{CompileOptions, Compiler, NvrtcError, Ptx, PtxParam};

use crate::device::Shared;
use crate::device_core::DeviceCore;
use crate::fence::DeviceFence;
use crate::memory::Touch;
use crate::stream::SubmitError;
use crate::sync::lock;
use crate::transfer_protocol::{Access, Extent, Fence, Ledger};
use crate::unwind::on_unwind;
use crate::{Device, Error, Result, Stream};

/// A kernel whose parameters are the tuple `A`.
///
/// `A` lists scalars by their type, and memory as [`In`] or [`Out`]:
///
/// ```
/// # fn main() -> pinlane::Result<()> {
/// # let device = pinlane::Device::sim("pcie3-x16")?;
/// # let stream = device.stream()?;
/// use pinlane::{LaunchShape, kernel::{In, Out}};
///
/// let module = device.load_ptx(pinlane_kernels::PTX)?;
/// let saxpy = module.kernel::<(u64, f32, In<f32>, Out<f32>)>("pinlane_saxpy_f32")?;
///
/// let (mut x, mut y) = (device.alloc::<f32>(1000)?, device.alloc::<f32>(1000)?);
/// stream.copy_to_device(&[1.0; 1000], &mut x)?;
/// stream.copy_to_device(&[2.0; 1000], &mut y)?;
/// // SAFETY: the kernel has these parameters and stays within the 1000 elements.
/// unsafe {
///     stream.launch(&saxpy, LaunchShape::for_items(1000), (1000, 3.0, x.whole(), y.whole_mut()))?;
/// }
/// let mut result = [0.0; 1000];
/// stream.copy_to_host(&y, &mut result)?;
/// assert_eq!(result[999], 5.0);
/// # Ok(())
/// # }
/// ```
pub struct Kernel<A> {
    module: Module,
    handle: FunctionHandle,
    params: PhantomData<fn(A)>,
}

impl<A> fmt::Debug for Kernel<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kernel").field(&self.handle.raw()).finish()
    }
}

/// A loaded PTX module. Unloaded once it, its kernels and their launches are gone.
#[derive(Clone)]
pub struct Module {
    inner: Arc<Loaded>,
}

/// Shared by a module and its kernels.
struct Loaded {
    shared: Arc<Shared>,
    code: ManuallyDrop<Code>,
    /// What the compiler returned, if the module was compiled here.
    compiled: Option<Ptx>,
    /// The last launch on each stream.
    launches: Mutex<Ledger<DeviceFence>>,
    /// In use by a launch that can never be waited for, so it must never be unloaded.
    stranded: AtomicBool,
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

    pub(crate) fn driver(&self) -> &dyn Driver {
        &*self.core.driver
    }

    pub(crate) fn function(&self, name: &str) -> pinlane_driver::Result<FunctionHandle> {
        // SAFETY: loaded by this driver, and unloaded only when this is dropped.
        unsafe { self.driver().module_function(self.handle, name) }
    }
}

impl Device {
    /// Loads a PTX module. [`Module::from_source`] compiles CUDA C.
    pub fn load_ptx(&self, ptx: &str) -> Result<Module> {
        self.load_module(ptx, None)
    }

    fn load_module(&self, ptx: &str, compiled: Option<Ptx>) -> Result<Module> {
        let code = Code::load(&self.shared.core, ptx)?;
        Ok(Module {
            inner: Arc::new(Loaded {
                shared: Arc::clone(&self.shared),
                code: ManuallyDrop::new(code),
                compiled,
                launches: Mutex::new(Ledger::new()),
                stranded: AtomicBool::new(false),
            }),
        })
    }
}

impl Module {
    /// What the compiler returned, if [`from_source`](Self::from_source) compiled it.
    #[must_use]
    pub fn ptx(&self) -> Option<&Ptx> {
        self.inner.compiled.as_ref()
    }

    /// Looks up a kernel by name. The caller of `launch` vouches that its parameters are `A`.
    pub fn kernel<A: Params>(&self, name: &str) -> Result<Kernel<A>> {
        let compiled = self.inner.compiled.as_ref();
        let entry = compiled.and_then(|ptx| ptx.entry(name)).unwrap_or(name);
        Ok(Kernel {
            handle: self.inner.code.function(entry)?,
            module: self.clone(),
            params: PhantomData,
        })
    }
}

impl Loaded {
    /// Records a launch. It replaces earlier launches on the same stream.
    fn launched(&self, stream: u64, fence: DeviceFence) {
        let access = Access {
            stream,
            extent: Extent::One(0..1),
            writes: false,
        };
        lock(&self.launches).record(access, fence);
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if *self.stranded.get_mut() {
            return;
        }
        let launches = lock(&self.launches);
        let running = launches.fences().filter(|fence| !fence.has_let_go());
        let running: Vec<_> = running.cloned().collect();
        // Only now: if the driver panics above, the code is leaked, since it may be running.
        // SAFETY: taken only here, and never used again.
        let code = unsafe { ManuallyDrop::take(&mut self.code) };
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

impl Stream {
    /// Launches a kernel in stream order, behind every earlier use of the memory passed to it.
    ///
    /// # Safety
    /// The kernel's parameters are `A`. It accesses only the slices passed to it, as [`In`] and
    /// [`Out`] declare, and memory behind raw addresses, which must stay valid and unused by
    /// anything else until the kernel is done.
    pub unsafe fn launch<A: Params>(
        &self,
        kernel: &Kernel<A>,
        shape: LaunchShape,
        values: A::Values<'_>,
    ) -> Result<()> {
        // SAFETY: the caller vouches for parameters and accesses.
        unsafe { self.launch_touching(kernel, shape, &values, &[])? };
        Ok(())
    }

    /// Like [`launch`](Self::launch), for a kernel that also accesses the device memory in `beside`,
    /// through addresses that it reads.
    ///
    /// # Safety
    /// As for [`launch`](Self::launch), with `beside` among the slices.
    pub(crate) unsafe fn launch_touching<'a, A: Params>(
        &self,
        kernel: &Kernel<A>,
        shape: LaunchShape,
        values: &A::Values<'a>,
        beside: &[Touch<'a>],
    ) -> Result<DeviceFence, SubmitError> {
        let loaded = &*kernel.module.inner;
        if !Arc::ptr_eq(&loaded.shared, self.shared()) {
            return Err(SubmitError::Refused(Error::WrongDevice));
        }
        let (args, mut touches) = A::collect(values);
        touches.0.extend_from_slice(beside);
        let submit = || {
            self.submit_and_enter(
                &touches.0,
                // SAFETY: the caller vouches for parameters and accesses; the ledgers keep the memory,
                // and `launches` keeps the code.
                |driver, stream| unsafe { driver.launch(kernel.handle, shape, &args, stream) },
                |fence| loaded.launched(self.id(), fence.clone()),
            )
        };
        // If the driver panics, there is no way to tell whether the kernel runs.
        let strand = || loaded.stranded.store(true, Ordering::Relaxed);
        let submitted = on_unwind(strand, submit);
        if let Err(SubmitError::Stranded(_)) = &submitted {
            strand();
        }
        submitted
    }
}
