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
