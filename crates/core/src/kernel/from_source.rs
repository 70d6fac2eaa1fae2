//! Modules of CUDA C, compiled at run time.

use pinlane_nvrtc::{CompileOptions, Compiler};

use super::Module;
use crate::{Device, Result};

impl Module {
    /// Compiles CUDA C for this device and loads it. Needs NVIDIA's compiler library NVRTC at run time, which
    /// PyTorch and CuPy bring along; see [`Compiler::load`] for where it is searched.
    ///
    /// A kernel is found by its name in the source, with or without `extern "C"`.
    ///
    /// ```no_run
    /// # fn main() -> pinlane::Result<()> {
    /// use pinlane::kernel::Out;
    /// use pinlane::{Device, LaunchShape, Module};
    ///
    /// let device = Device::cuda(0)?;
    /// let module = Module::from_source(
    ///     &device,
    ///     "__global__ void fill(float* out, float value, unsigned n) {
    ///          unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    ///          if (i < n) out[i] = value;
    ///      }",
    /// )?;
    /// let fill = module.kernel::<(Out<f32>, f32, u32)>("fill")?;
    /// let mut target = device.alloc::<f32>(1000)?;
    /// // SAFETY: these are the kernel's parameters, and it stays within 1000 elements.
    /// unsafe {
    ///     let values = (target.whole_mut(), 2.5, 1000);
    ///     device.stream()?.launch(&fill, LaunchShape::for_items(1000), values)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Compile`](crate::Error::Compile) with the compiler's log, or with where it was searched.
    pub fn from_source(device: &Device, source: &str) -> Result<Self> {
        Self::from_source_with(device, source, &CompileOptions::default())
    }

    /// Like [`from_source`](Self::from_source), with options. Without a compute capability among them, the
    /// device's is used.
    ///
    /// # Errors
    /// As for [`from_source`](Self::from_source).
    pub fn from_source_with(
        device: &Device,
        source: &str,
        options: &CompileOptions,
    ) -> Result<Self> {
        let mut options = options.clone();
        let capability = device.info().compute_capability;
        options.compute_capability.get_or_insert(capability);
        let ptx = Compiler::load()?.compile(source, &options)?;
        if !ptx.log.is_empty() {
            log::warn!("{}", ptx.log);
        }
        let code = ptx.text.clone();
        device.load_module(&code, Some(ptx))
    }
}
