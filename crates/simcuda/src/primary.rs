//! The primary context of a device: one that all users share and count.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::context::Context;
use crate::error::{INVALID_CONTEXT, INVALID_VALUE, Outcome};
use crate::ffi::Out;
use crate::shim::exports;
use crate::state::machine;

/// The primary context of one device.
#[derive(Default)]
pub struct Primary {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    context: Option<Arc<Context>>,
    users: u32,
    flags: u32,
}

/// Schedule, mapping and dump flags that a primary context may have.
const FLAGS_KNOWN: u32 = 0xff;

impl Primary {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One user more; the first makes the context.
fn retain(context: Out<usize>, device: i32) -> Outcome<()> {
    let machine = machine()?;
    let device = machine.device(device)?;
    let slot = context.required()?;
    let mut primary = device.primary.lock();
    let made = match &primary.context {
        Some(context) => context.clone(),
        None => Context::create(machine, device, primary.flags, true)?,
    };
    slot.put(made.handle);
    primary.context = Some(made);
    primary.users += 1;
    Ok(())
}

/// One user less; the last ends the context.
fn release(device: i32) -> Outcome<()> {
    let machine = machine()?;
    let mut primary = machine.device(device)?.primary.lock();
    primary.users = primary.users.checked_sub(1).ok_or(INVALID_CONTEXT)?;
    if primary.users == 0
        && let Some(context) = primary.context.take()
    {
        context.destroy(machine);
    }
    Ok(())
}

/// Ends the context, whoever uses it.
fn reset(device: i32) -> Outcome<()> {
    let machine = machine()?;
    let mut primary = machine.device(device)?.primary.lock();
    primary.users = 0;
    if let Some(context) = primary.context.take() {
        context.destroy(machine);
    }
    Ok(())
}

fn set_flags(device: i32, flags: u32) -> Outcome<()> {
    let device = machine()?.device(device)?;
    if flags & !FLAGS_KNOWN != 0 {
        return Err(INVALID_VALUE);
    }
    device.primary.lock().flags = flags;
    Ok(())
}

exports! { through guard;
    /// The primary context, made for its first user.
    fn cuDevicePrimaryCtxRetain(context: Out<usize>, device: i32) { retain(context, device) }

    /// Gives the primary context back.
    fn cuDevicePrimaryCtxRelease_v2(device: i32) { release(device) }

    /// Gives the primary context back: the older name.
    fn cuDevicePrimaryCtxRelease(device: i32) { release(device) }

    /// Ends the primary context.
    fn cuDevicePrimaryCtxReset_v2(device: i32) { reset(device) }

    /// Ends the primary context: the older name.
    fn cuDevicePrimaryCtxReset(device: i32) { reset(device) }

    /// Flags that the primary context will have.
    fn cuDevicePrimaryCtxSetFlags_v2(device: i32, flags: u32) { set_flags(device, flags) }

    /// Flags that the primary context will have: the older name.
    fn cuDevicePrimaryCtxSetFlags(device: i32, flags: u32) { set_flags(device, flags) }

    /// The flags, and whether the context exists.
    fn cuDevicePrimaryCtxGetState(device: i32, flags: Out<u32>, active: Out<i32>) {
        let (flags, active) = (flags.required()?, active.required()?);
        let primary = machine()?.device(device)?.primary.lock();
        flags.put(primary.flags);
        active.put(i32::from(primary.context.is_some()));
        Ok(())
    }
}
