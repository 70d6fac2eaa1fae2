//! Arguments of a kernel launch.

use crate::DevicePtr;

/// Grid, block and dynamic shared memory of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaunchShape {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads per block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory per block.
    pub shared_bytes: u32,
}

impl LaunchShape {
    /// One thread per item in blocks of 256, and at least one block.
    ///
    /// # Panics
    /// If `items` needs more than 2^31 - 1 blocks.
    #[must_use]
    pub fn for_items(items: usize) -> Self {
        let blocks = items.div_ceil(256).max(1);
        assert!(blocks <= i32::MAX as usize, "too many items for one launch");
        Self {
            grid: [blocks as u32, 1, 1],
            block: [256, 1, 1],
            shared_bytes: 0,
        }
    }
}

/// Defines [`KernelArg`] and [`ParamKind`], which have the same variants.
macro_rules! parameters {
    ($($(#[$doc:meta])* $name:ident($type:ty),)*) => {
        /// A kernel argument with its type.
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub enum KernelArg {
            $($(#[$doc])* $name($type),)*
        }

        /// The type of a kernel parameter.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum ParamKind {
            $($(#[$doc])* $name,)*
        }

        impl KernelArg {
            /// The type of the argument.
            #[must_use]
            pub fn kind(&self) -> ParamKind {
                match self {
                    $(Self::$name(_) => ParamKind::$name,)*
                }
            }
        }
    };
}

parameters! {
    /// A device address.
    Ptr(DevicePtr),
    /// `unsigned int`
    U32(u32),
    /// `int`
    I32(i32),
    /// `unsigned long long`
    U64(u64),
    /// `long long`
    I64(i64),
    /// `float`
    F32(f32),
    /// `double`
    F64(f64),
}
