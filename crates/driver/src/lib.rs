//! The interface between Pinlane and a GPU.
//!
//! ```text
//!   library  (pinlane)            owns buffers, proves that nothing in flight is touched
//!      |  Arc<dyn Driver>
//!   driver   (this crate)         one trait, plain handles, typed errors, no policy
//!      |              |
//!   cuda (libcuda)   sim (a simulated GPU)
//! ```
//!
//! A [`Platform`] lists devices and opens one; an open device is a [`Driver`]. The trait is
//! object-safe so that the device can be chosen at run time. Dynamic dispatch costs nothing that
//! can be measured: a driver call takes a microsecond or more on any GPU.
//!
//! **Validation.** A driver assumes valid calls; the library validates them once, above. Calls that
//! take a handle, or can touch memory which the caller does not own, are `unsafe` and state their contract.
//!
//! [`Intercepted`] wraps a driver and asks a [`Hook`] before each call. Tests use it to fail the
//! k-th call or to count calls, with any backend.

mod copy;
mod driver;
mod error;
mod flags;
mod handle;
mod hooked_driver;
mod info;
mod launch;
mod thread_clocks;

pub use copy::{Copy2d, CopyOp, Place};
pub use driver::{Driver, HostCallback, Platform};
pub use error::{Error, ErrorKind, Result};
pub use flags::{EventFlags, HostFlags, RegisterFlags, StreamFlags};
pub use handle::{
    DevicePtr, EventHandle, FunctionHandle, HostPtr, ModuleHandle, StreamHandle, StreamKind,
};
pub use hooked_driver::{Call, Hook, Intercepted, StreamWork};
pub use info::{DeviceInfo, MemoryInfo, PciAddress, PointerKind, Version};
pub use launch::{KernelArg, LaunchShape, ParamKind};
#[doc(hidden)]
pub use thread_clocks::ThreadClocks;
