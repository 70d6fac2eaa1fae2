//! Plain handles. They own nothing: whoever created one destroys it through the driver.

use std::fmt;
use std::ptr::NonNull;

/// Address of host memory.
pub type HostPtr = NonNull<u8>;

/// Address of device memory, as the device sees it. Never dereferenced on the host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DevicePtr(pub u64);

impl DevicePtr {
    /// The address `bytes` further on.
    ///
    /// # Panics
    /// When the sum leaves the address space.
    #[must_use]
    pub fn offset(self, bytes: usize) -> Self {
        Self(
            self.0
                .checked_add(bytes as u64)
                .expect("device address overflows"),
        )
    }
}

impl fmt::Debug for DevicePtr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DevicePtr({:#x})", self.0)
    }
}

/// Defines handles. Their number is private: a driver follows a handle without looking, so one
/// that it did not give out must not come from safe code.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub struct $name(u64);

        impl $name {
            /// The handle of this number.
            ///
            /// # Safety
            /// The driver that it will be given to has given it out, and it is still valid there.
            #[must_use]
            pub const unsafe fn from_raw(raw: u64) -> Self {
                Self(raw)
            }

            /// The driver's own number.
            #[must_use]
            pub const fn raw(self) -> u64 {
                self.0
            }
        }
    )*};
}

handles! {
    /// A stream of device work, run in order.
    StreamHandle
    /// A point in a stream that can be waited for.
    EventHandle
    /// A loaded PTX module.
    ModuleHandle
    /// A kernel inside a loaded module.
    FunctionHandle
}
