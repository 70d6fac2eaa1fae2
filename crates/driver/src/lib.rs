//! The seam between Pinlane and a GPU.
//!
//! ```text
//!   library  (pinlane)            owns buffers, proves that nothing in flight is touched
//!      |  Arc<dyn Driver>
//!   driver   (this crate)         one trait, plain handles, typed errors, no policy
//!      |              |
//!   cuda (libcuda)   sim (a simulated GPU)
//! ```
//!
//! A [`Platform`] lists devices and opens one; an opened device is a [`Driver`]. The trait is
//! object-safe: a driver call costs a microsecond or more on any GPU, so dynamic dispatch is free
//! and the device can be chosen at run time.
//!
//! **Validation.** A driver assumes valid calls. The library validates once, above. Calls that
//! can touch memory that the caller does not own are `unsafe` and state what must hold.
//!
//! [`Intercepted`] wraps any driver and asks a [`Hook`] before each call: that is how tests fail
//! the k-th call or count calls without touching a backend.

mod copy;
mod error;
mod flags;
mod handle;
mod info;
mod intercept;
mod kernel;
mod traits;

pub use copy::{Copy2d, CopyOp, Place};
pub use error::{Error, ErrorKind, Result};
pub use flags::{EventFlags, HostFlags, RegisterFlags, StreamFlags};
pub use handle::{DevicePtr, EventHandle, FunctionHandle, HostPtr, ModuleHandle, StreamHandle};
pub use info::{DeviceInfo, MemoryInfo, PciAddress, PointerKind, Version};
pub use intercept::{Call, Hook, Intercepted};
pub use kernel::{KernelArg, LaunchShape, ParamKind};
pub use traits::{Driver, HostCallback, Platform};
