//! Lists and opens the devices of libcuda.

use std::fmt;
use std::sync::Arc;

use cudarc::driver::sys::CUdevice;
use pinlane_driver::{DeviceInfo, Driver, Error, ErrorKind, Platform, Result, Version};

use crate::cuda_device::CudaDevice;
use crate::library::{Library, call};
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
        let cuda = Self {
            library: Arc::new(Library::load()?),
        };
        if cuda.count()? == 0 {
            return Err(Error::new(ErrorKind::NoDevice, "cuDeviceGetCount"));
        }
        Ok(cuda)
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
        Ok(Arc::new(CudaDevice::new(library, device, info)))
    }
}
