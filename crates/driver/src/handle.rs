//! Plain handles. They own nothing: the caller destroys what it created, through the driver.

use std::fmt;
use std::ptr::NonNull;

/// A host address.
pub type HostPtr = NonNull<u8>;

/// A device address. Never dereferenced on the host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DevicePtr(pub u64);

impl DevicePtr {
    /// The address `bytes` further.
    ///
    /// # Panics
    /// If the address overflows.
    #[must_use]
    pub fn offset(self, bytes: usize) -> Self {
        let address = self.0.checked_add(bytes as u64);
        Self(address.expect("device address overflows"))
    }
}

impl fmt::Debug for DevicePtr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DevicePtr({:#x})", self.0)
    }
}

/// Defines handles. Their value is private, so that safe code cannot make one up. It can still hold one of
/// another driver, or of something destroyed: see [`Driver`](crate::Driver).
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub struct $name(u64);

        impl $name {
            /// The handle with this value.
            ///
            /// # Safety
            /// The driver that will use the handle created it, and it is still valid.
            #[must_use]
            pub const unsafe fn from_raw(raw: u64) -> Self {
                Self(raw)
            }

            /// The driver's value.
            #[must_use]
            pub const fn raw(self) -> u64 {
                self.0
            }
        }
    )*};
}

/// What kind of stream a handle stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StreamKind {
    /// A stream that somebody created.
    Created,
    /// The default stream of the device.
    Default,
    /// The default stream of whichever thread uses it: another stream on every thread.
    PerThread,
}

handles! {
    /// A queue of device work that runs in order.
    StreamHandle
    /// A point in a stream that can be waited for.
    EventHandle
    /// A loaded PTX module.
    ModuleHandle
    /// A kernel in a loaded module.
    FunctionHandle
}
