//! PTX modules and typed launches.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Pod;
use pinlane_driver::{DevicePtr, Driver, FunctionHandle, KernelArg, LaunchShape, ModuleHandle};

use crate::core::{Access, Extent, Fence, Ledger};
use crate::device::Shared;
use crate::fence::DeviceFence;
use crate::link::Link;
use crate::memory::{DeviceSlice, DeviceSliceMut, Touch};
use crate::stream::SubmitError;
use crate::{Device, Error, Result, Stream};

/// A loaded PTX module. It is unloaded when it, its kernels and their launches are gone.
#[derive(Clone)]
pub struct Module {
    inner: Arc<Loaded>,
}

struct Loaded {
    shared: Arc<Shared>,
    /// Taken out once, by `drop`.
    code: ManuallyDrop<Code>,
    /// The last launch on each stream.
    launches: Mutex<Ledger<DeviceFence>>,
    /// A launch whose end nobody can tell uses it: never to be unloaded.
    stranded: AtomicBool,
}

/// Code on the device, unloaded on drop.
pub(crate) struct Code {
    link: Arc<Link>,
    handle: ModuleHandle,
}

impl Code {
    pub(crate) fn load(link: &Arc<Link>, ptx: &str) -> Result<Self> {
        Ok(Self {
            handle: link.driver.module_load(ptx)?,
            link: Arc::clone(link),
        })
    }

    pub(crate) fn handle(&self) -> ModuleHandle {
        self.handle
    }

    pub(crate) fn driver(&self) -> &dyn Driver {
        &*self.link.driver
    }
}

/// A kernel whose parameters are the tuple `A`.
///
/// `A` names scalars as they are, and memory as [`In`] or [`Out`]:
///
/// ```
/// # fn main() -> pinlane::Result<()> {
/// # let sim = pinlane_sim::Sim::new(pinlane_model::Profile::builtin("pcie3-x16").unwrap());
/// # let device = pinlane::Device::open(&sim, 0)?;
/// # let stream = device.stream()?;
/// use pinlane::{LaunchShape, kernel::{In, Out}};
///
/// let module = device.load_ptx(pinlane_kernels::PTX)?;
/// let saxpy = module.kernel::<(u64, f32, In<f32>, Out<f32>)>("pinlane_saxpy_f32")?;
///
/// let (mut x, mut y) = (device.alloc::<f32>(1000)?, device.alloc::<f32>(1000)?);
/// stream.copy_to_device(&[1.0; 1000], &mut x)?;
/// stream.copy_to_device(&[2.0; 1000], &mut y)?;
/// // SAFETY: the kernel has these parameters and stays inside of the 1000 elements.
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

/// A parameter that is device memory, read by the kernel.
pub struct In<T>(PhantomData<T>);

/// A parameter that is device memory, written by the kernel, or read and written.
pub struct Out<T>(PhantomData<T>);

/// A parameter of a kernel, and what a launch passes for it.
pub trait Param {
    /// What a launch passes.
    type Value<'a>: Argument<'a>;
}

/// A value that a launch passes to a kernel.
pub trait Argument<'a> {
    /// As the driver wants it.
    fn as_arg(&self) -> KernelArg;

    #[doc(hidden)]
    fn push_touch(&self, _touches: &mut Touches<'a>) {}
}

#[doc(hidden)]
#[derive(Default)]
pub struct Touches<'a>(Vec<Touch<'a>>);

/// All parameters of a kernel.
pub trait Params {
    /// What a launch passes.
    type Values<'a>;

    #[doc(hidden)]
    fn collect<'a>(values: &Self::Values<'a>) -> (Vec<KernelArg>, Touches<'a>);
}

impl Device {
    /// Load a PTX module.
    pub fn load_ptx(&self, ptx: &str) -> Result<Module> {
        let code = Code::load(&self.shared.link, ptx)?;
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
    /// The kernel of this name. That its parameters are `A` is vouched for at the launch.
    pub fn kernel<A: Params>(&self, name: &str) -> Result<Kernel<A>> {
        let driver = &self.inner.shared.link.driver;
        Ok(Kernel {
            handle: driver.module_function(self.inner.code.handle, name)?,
            module: self.clone(),
            params: PhantomData,
        })
    }
}

impl Stream {
    /// Run a kernel in stream order, behind every earlier use of the memory it is given.
    ///
    /// # Safety
    /// The kernel's parameters are `A`. It reads and writes nothing but the slices that it is
    /// given, as [`In`] and [`Out`] say, and memory behind raw addresses, which stays valid and is
    /// used by nobody else until it is done.
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

    /// The same for a kernel that reaches device memory beside its slices, by addresses that it
    /// reads: `beside`.
    ///
    /// # Safety
    /// As for [`launch`](Self::launch), with `beside` among the slices.
    pub(crate) unsafe fn launch_touching<'a, A: Params>(
        &self,
        kernel: &Kernel<A>,
        shape: LaunchShape,
        values: &A::Values<'a>,
        beside: &[Touch<'a>],
    ) -> std::result::Result<DeviceFence, SubmitError> {
        let loaded = &*kernel.module.inner;
        if !Arc::ptr_eq(&loaded.shared, self.shared()) {
            return Err(SubmitError::Refused(Error::WrongDevice));
        }
        let (args, mut touches) = A::collect(values);
        touches.0.extend_from_slice(beside);
        // Should the driver panic, nobody can tell any more whether the kernel runs.
        let unmarked = StrandOnUnwind(&loaded.stranded);
        let submitted = self.submit_and_enter(
            &touches.0,
            // SAFETY: the caller vouches for parameters and accesses; the memory is kept by its
            // books, the code by `launches`.
            |driver, stream| unsafe { driver.launch(kernel.handle, shape, &args, stream) },
            |fence| loaded.launched(self.id(), fence.clone()),
        );
        std::mem::forget(unmarked);
        if let Err(SubmitError::Stranded(_)) = &submitted {
            loaded.stranded.store(true, Ordering::Relaxed);
        }
        submitted
    }
}

/// Gives code up when it is dropped, which only a panic does.
struct StrandOnUnwind<'a>(&'a AtomicBool);

impl Drop for StrandOnUnwind<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Loaded {
    /// A later launch of a stream stands for its earlier ones.
    fn launched(&self, stream: u64, fence: DeviceFence) {
        let access = Access {
            stream,
            extent: Extent::One(0..1),
            writes: false,
        };
        let mut launches = self.launches.lock().unwrap_or_else(PoisonError::into_inner);
        launches.record(access, fence);
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if *self.stranded.get_mut() {
            return;
        }
        // SAFETY: taken here only, and never used again.
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
            self.shared.lot.park(running, Box::new(code));
        }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: its owner dropped it when no launch was running any more.
        self.link
            .give_back(|driver| unsafe { driver.module_unload(self.handle) });
    }
}

macro_rules! scalars {
    ($($scalar:ty => $variant:ident,)*) => {$(
        impl Param for $scalar {
            type Value<'a> = $scalar;
        }
        impl Argument<'_> for $scalar {
            fn as_arg(&self) -> KernelArg {
                KernelArg::$variant(*self)
            }
        }
    )*};
}

scalars! {
    u32 => U32,
    i32 => I32,
    u64 => U64,
    i64 => I64,
    f32 => F32,
    f64 => F64,
    DevicePtr => Ptr,
}

impl<T: Pod> Param for In<T> {
    type Value<'a> = DeviceSlice<'a, T>;
}

impl<T: Pod> Param for Out<T> {
    type Value<'a> = DeviceSliceMut<'a, T>;
}

impl<'a, T: Pod> Argument<'a> for DeviceSlice<'a, T> {
    fn as_arg(&self) -> KernelArg {
        KernelArg::Ptr(self.device_ptr())
    }

    fn push_touch(&self, touches: &mut Touches<'a>) {
        touches.0.push(self.touch());
    }
}

impl<'a, T: Pod> Argument<'a> for DeviceSliceMut<'a, T> {
    fn as_arg(&self) -> KernelArg {
        KernelArg::Ptr(self.device_ptr())
    }

    fn push_touch(&self, touches: &mut Touches<'a>) {
        touches.0.push(self.touch());
    }
}

macro_rules! params {
    ($($name:ident)*) => {
        impl<$($name: Param),*> Params for ($($name,)*) {
            type Values<'a> = ($($name::Value<'a>,)*);

            #[allow(non_snake_case, unused_mut)]
            fn collect<'a>(values: &Self::Values<'a>) -> (Vec<KernelArg>, Touches<'a>) {
                let ($($name,)*) = values;
                let mut touches = Touches::default();
                $($name.push_touch(&mut touches);)*
                (vec![$($name.as_arg()),*], touches)
            }
        }
    };
}

params!(A);
params!(A B);
params!(A B C);
params!(A B C D);
params!(A B C D E);
params!(A B C D E F);
params!(A B C D E F G);
params!(A B C D E F G H);

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Module")
            .field(&self.inner.code.handle.raw())
            .finish()
    }
}

impl<A> fmt::Debug for Kernel<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kernel").field(&self.handle.raw()).finish()
    }
}
