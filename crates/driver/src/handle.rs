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

/// A stream of device work, run in order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StreamHandle(pub u64);

/// A point in a stream that can be waited for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EventHandle(pub u64);

/// A loaded PTX module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ModuleHandle(pub u64);

/// A kernel inside a loaded module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FunctionHandle(pub u64);
