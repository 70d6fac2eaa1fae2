//! PTX modules and typed launches.

mod launch;
mod module;
mod params;

use std::fmt;
use std::marker::PhantomData;

use pinlane_driver::FunctionHandle;

pub(crate) use self::module::Code;
pub use self::module::Module;
pub use self::params::{Argument, In, Out, Param, Params, Touches};

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
