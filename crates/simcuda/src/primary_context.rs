//! The primary context of a device, which is shared and reference-counted.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::context::Context;
use crate::error::{INVALID_CONTEXT, INVALID_VALUE, Outcome};
use crate::exports::exports;
use crate::ffi::Out;
use crate::machine::{lock, machine};

/// The primary context of one device.
#[derive(Default)]
pub struct PrimaryContext {
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

impl PrimaryContext {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }
}

/// Adds a user; the first one creates the context.
fn retain(context: Out<usize>, device: i32) -> Outcome<()> {
    let machine = machine()?;
    let device = machine.device(device)?;
    let slot = context.required()?;
    let mut primary = device.primary.lock();
    let context = match &primary.context {
        Some(context) => context.clone(),
        None => Context::create(machine, device, primary.flags, true)?,
    };
    slot.put(context.handle);
    primary.context = Some(context);
    primary.users += 1;
    Ok(())
}

/// Removes a user; the last one destroys the context.
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

/// Destroys the context, regardless of users.
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
    /// Retains the primary context, which its first user creates.
    fn cuDevicePrimaryCtxRetain(context: Out<usize>, device: i32) { retain(context, device) }

    /// Releases the primary context.
    fn cuDevicePrimaryCtxRelease_v2(device: i32) { release(device) }

    /// Older name of the same.
    fn cuDevicePrimaryCtxRelease(device: i32) { release(device) }

    /// Destroys the primary context.
    fn cuDevicePrimaryCtxReset_v2(device: i32) { reset(device) }

    /// Older name of the same.
    fn cuDevicePrimaryCtxReset(device: i32) { reset(device) }

    /// Sets the flags of the primary context.
    fn cuDevicePrimaryCtxSetFlags_v2(device: i32, flags: u32) { set_flags(device, flags) }

    /// Older name of the same.
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
