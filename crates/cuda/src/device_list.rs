//! Lists and opens the devices of libcuda.

use std::ffi::c_void;
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use cudarc::driver::sys::CUdevice;
use pinlane_driver::{DeviceInfo, Driver, Error, ErrorKind, Platform, Result, Version};

use crate::context::DeviceContext;
use crate::library::{Library, call};
use crate::open_device::CudaDevice;
use crate::{fork, info};

/// The CUDA driver of this machine.
pub struct Cuda {
    library: Arc<Library>,
}

impl Cuda {
    /// Loads and initialises the driver. Creates no context.
    ///
    /// # Errors
    /// [`NoDriver`](ErrorKind::NoDriver), [`NoDevice`](ErrorKind::NoDevice),
    /// [`DriverTooOld`](ErrorKind::DriverTooOld), [`MissingSymbol`](ErrorKind::MissingSymbol), and
    /// [`Forked`](ErrorKind::Forked) in a forked child of a process that had loaded it.
    pub fn load() -> Result<Self> {
        Self::new(Library::load()?)
    }

    /// Uses the libcuda that the process has loaded already, wherever from: `lookup` finds its functions by name.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    ///
    /// # Safety
    /// `lookup` returns addresses of libcuda's functions by their names, and that libcuda is never unloaded.
    pub unsafe fn from_loaded(lookup: &dyn Fn(&str) -> Option<NonNull<c_void>>) -> Result<Self> {
        // SAFETY: the caller's.
        Self::new(unsafe { Library::resolve(lookup) }?)
    }

    fn new(library: Library) -> Result<Self> {
        let library = Arc::new(library);
        let cuda = Self { library };
        if cuda.count()? == 0 {
            return Err(Error::new(ErrorKind::NoDevice, "cuDeviceGetCount"));
        }
        Ok(cuda)
    }

    /// Opens device number `ordinal` in a context of another library, a `CUcontext` as a number, instead of the
    /// device's primary context.
    ///
    /// # Errors
    /// As for [`Platform::open`].
    ///
    /// # Safety
    /// The context is one of that device, and lives until the last reference to the result is dropped.
    pub unsafe fn open_in_context(&self, ordinal: u32, context: u64) -> Result<Arc<dyn Driver>> {
        let info = self.info(ordinal)?;
        let context = ptr::with_exposed_provenance_mut(context as usize);
        let context = DeviceContext::foreign(Arc::clone(&self.library), context);
        let library = Arc::clone(&self.library);
        Ok(Arc::new(CudaDevice::new(library, context, info)))
    }

    /// The version of the driver's interface.
    #[must_use]
    pub fn driver_version(&self) -> Version {
        self.library.version
    }

    fn count(&self) -> Result<u32> {
        fork::check("cuDeviceGetCount")?;
        let mut count = 0;
        // SAFETY: `count` outlives the call.
        unsafe { call!(self.library, cuDeviceGetCount(&mut count)) }?;
        Ok(count.max(0) as u32)
    }

    /// The driver's handle of a device.
    fn device(&self, ordinal: u32) -> Result<CUdevice> {
        let count = self.count()?;
        if ordinal >= count {
            let kind = ErrorKind::NoSuchDevice { ordinal, count };
            return Err(Error::new(kind, "cuDeviceGet"));
        }
        let mut device = 0;
        // SAFETY: `device` outlives the call.
        unsafe { call!(self.library, cuDeviceGet(&mut device, ordinal as i32)) }?;
        Ok(device)
    }

    fn info(&self, ordinal: u32) -> Result<DeviceInfo> {
        info::read(&self.library, ordinal, self.device(ordinal)?)
    }
}

impl fmt::Debug for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Cuda");
        fields.field("driver_version", &self.driver_version());
        fields.finish_non_exhaustive()
    }
}

impl Platform for Cuda {
    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        (0..self.count()?)
            .map(|ordinal| self.info(ordinal))
            .collect()
    }

    fn open(&self, ordinal: u32) -> Result<Arc<dyn Driver>> {
        let device = self.device(ordinal)?;
        let info = self.info(ordinal)?;
        let library = Arc::clone(&self.library);
        let context = DeviceContext::primary(Arc::clone(&library), device);
        Ok(Arc::new(CudaDevice::new(library, context, info)))
    }
}
