//! The trait, implemented with the methods in the files by topic.

use std::time::Duration;

use pinlane_driver::*;

use crate::handles::{self, DEFAULT_STREAM};
use crate::open_device::CudaDevice;

/// Forwards each listed method to the inherent one of the same name.
macro_rules! forward {
    ($($call:ident: $safety:ident $name:ident $args:tt -> $result:ty $([$($more:tt)*])?;)*) => {
        $(forward!(@$safety $name $args -> $result);)*
    };
    (@safe $name:ident($($arg:ident: $type:ty),*) -> $result:ty) => {
        fn $name(&self, $($arg: $type),*) -> Result<$result> {
            CudaDevice::$name(self, $($arg),*)
        }
    };
    (@unsafe $name:ident($($arg:ident: $type:ty),*) -> $result:ty) => {
        unsafe fn $name(&self, $($arg: $type),*) -> Result<$result> {
            // SAFETY: the caller keeps the same contract.
            unsafe { CudaDevice::$name(self, $($arg),*) }
        }
    };
}

/// The one libcuda of the process pins for all its devices. Simulated machines count from 1.
const PIN_DOMAIN: u64 = 0;

// SAFETY: libcuda makes the same promises about memory and events, and `error.rs` treats as fatal
// only the errors that end the context.
unsafe impl Driver for CudaDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn pin_domain(&self) -> u64 {
        PIN_DOMAIN
    }

    fn default_stream(&self) -> StreamHandle {
        DEFAULT_STREAM
    }

    fn stream_kind(&self, raw: u64) -> StreamKind {
        handles::stream_kind(raw)
    }

    pinlane_driver::driver_calls!(forward);
}
