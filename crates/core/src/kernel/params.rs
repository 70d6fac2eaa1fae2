//! Kernel parameters and the values that launches pass for them.

use std::marker::PhantomData;

use bytemuck::Pod;
use pinlane_driver::{DevicePtr, KernelArg};

use crate::Sealed;
use crate::memory::{DeviceSlice, DeviceSliceMut, Touch};

/// A device memory parameter that the kernel reads.
#[derive(Debug)]
pub struct In<T>(PhantomData<T>);

/// A device memory parameter that the kernel writes, or reads and writes.
#[derive(Debug)]
pub struct Out<T>(PhantomData<T>);

/// A kernel parameter, and the type of value that a launch passes for it.
pub trait Param: Sealed {
    /// Type of the value.
    type Value<'a>: Argument<'a>;
}

/// A value that a launch passes to a kernel.
pub trait Argument<'a>: Sealed {
    /// Converts to the driver's representation.
    fn as_arg(&self) -> KernelArg;

    #[doc(hidden)]
    fn push_touch(&self, _touches: &mut Touches<'a>) {}
}

#[doc(hidden)]
#[derive(Default, Debug)]
pub struct Touches<'a>(pub(super) Vec<Touch<'a>>);

/// All parameters of a kernel.
pub trait Params: Sealed {
    /// Types of the values that a launch passes.
    type Values<'a>;

    #[doc(hidden)]
    fn collect<'a>(values: &Self::Values<'a>) -> (Vec<KernelArg>, Touches<'a>);
}

macro_rules! scalars {
    ($($scalar:ty => $variant:ident,)*) => {$(
        impl Sealed for $scalar {}
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

macro_rules! slices {
    ($($param:ident => $slice:ident,)*) => {$(
        impl<T: Pod> Sealed for $param<T> {}
        impl<T: Pod> Sealed for $slice<'_, T> {}
        impl<T: Pod> Param for $param<T> {
            type Value<'a> = $slice<'a, T>;
        }
        impl<'a, T: Pod> Argument<'a> for $slice<'a, T> {
            fn as_arg(&self) -> KernelArg {
                KernelArg::Ptr(self.device_ptr())
            }

            fn push_touch(&self, touches: &mut Touches<'a>) {
                touches.0.push(self.touch());
            }
        }
    )*};
}

slices! {
    In => DeviceSlice,
    Out => DeviceSliceMut,
}

/// Parameters that are known only when the program runs: a launch passes a list of values of any length.
///
/// ```
/// # fn main() -> pinlane::Result<()> {
/// # let device = pinlane::Device::sim("pcie3-x16")?;
/// # let stream = device.stream()?;
/// use pinlane::{LaunchShape, kernel::AnyParams};
///
/// let saxpy = device.load_ptx(pinlane_kernels::PTX)?.kernel::<AnyParams>("pinlane_saxpy_f32")?;
/// let (x, mut y) = (device.alloc::<f32>(1000)?, device.alloc::<f32>(1000)?);
/// // SAFETY: the kernel has these parameters and stays within the 1000 elements.
/// unsafe {
///     let values: AnyValues = vec![
///         Box::new(1000_u64),
///         Box::new(3.0_f32),
///         Box::new(x.whole()),
///         Box::new(y.whole_mut()),
///     ];
///     stream.launch(&saxpy, LaunchShape::for_items(1000), values)?;
/// }
/// # use pinlane::kernel::AnyValues;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AnyParams(());

/// What a launch passes for [`AnyParams`].
pub type AnyValues<'a> = Vec<Box<dyn Argument<'a> + Send + 'a>>;

impl Sealed for AnyParams {}
impl Params for AnyParams {
    type Values<'a> = AnyValues<'a>;

    fn collect<'a>(values: &Self::Values<'a>) -> (Vec<KernelArg>, Touches<'a>) {
        let mut touches = Touches::default();
        values
            .iter()
            .for_each(|value| value.push_touch(&mut touches));
        (values.iter().map(|value| value.as_arg()).collect(), touches)
    }
}

macro_rules! params {
    ($($name:ident)+) => {
        impl<$($name: Param),*> Sealed for ($($name,)*) {}
        impl<$($name: Param),*> Params for ($($name,)*) {
            type Values<'a> = ($($name::Value<'a>,)*);

            #[allow(non_snake_case)]
            fn collect<'a>(values: &Self::Values<'a>) -> (Vec<KernelArg>, Touches<'a>) {
                let ($($name,)*) = values;
                let mut touches = Touches::default();
                $($name.push_touch(&mut touches);)*
                (vec![$($name.as_arg()),*], touches)
            }
        }
        params!(@without_first $($name)+);
    };
    (@without_first $first:ident $($rest:ident)+) => {
        params!($($rest)+);
    };
    (@without_first $last:ident) => {};
}

params!(A B C D E F G H);
