//! The primary context of a device, which is shared and reference-counted.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::c_pointers::Out;
use crate::context::{Context, check_flags};
use crate::error::{INVALID_CONTEXT, Outcome};
use crate::export_macros::exports;
use crate::machine::{lock, machine};

/// The primary context of one device.
pub type PrimaryContext = Mutex<Primary>;

/// A primary context, once it has a user.
#[derive(Default)]
pub struct Primary {
    context: Option<Arc<Context>>,
    users: u32,
    flags: u32,
}

/// The primary context of a device.
fn primary(device: i32) -> Outcome<MutexGuard<'static, Primary>> {
    Ok(lock(&machine()?.device(device)?.primary))
}

/// Removes the context, if it exists.
fn destroy(primary: &mut Primary) -> Outcome<()> {
    if let Some(context) = primary.context.take() {
        context.destroy(machine()?);
    }
    Ok(())
}

exports! { through guard;
    /// Adds a user of the primary context; the first one creates it.
    fn cuDevicePrimaryCtxRetain(context: Out<usize>, device: i32) {
        let machine = machine()?;
        let device = machine.device(device)?;
        context.set_with(|| {
            let mut primary = lock(&device.primary);
            let context = match &primary.context {
                Some(context) => context.clone(),
                None => Context::create(machine, device, primary.flags, true)?,
            };
            let handle = context.handle;
            primary.context = Some(context);
            primary.users += 1;
            Ok(handle)
        })
    }

    /// Removes a user; the last one destroys the context.
    fn cuDevicePrimaryCtxRelease_v2(device: i32), also cuDevicePrimaryCtxRelease {
        let mut primary = primary(device)?;
        primary.users = primary.users.checked_sub(1).ok_or(INVALID_CONTEXT)?;
        if primary.users == 0 { destroy(&mut primary) } else { Ok(()) }
    }

    /// Destroys the context, regardless of users.
    fn cuDevicePrimaryCtxReset_v2(device: i32), also cuDevicePrimaryCtxReset {
        let mut primary = primary(device)?;
        primary.users = 0;
        destroy(&mut primary)
    }

    /// Sets the flags of the primary context.
    fn cuDevicePrimaryCtxSetFlags_v2(device: i32, flags: u32), also cuDevicePrimaryCtxSetFlags {
        let mut primary = primary(device)?;
        check_flags(flags)?;
        primary.flags = flags;
        Ok(())
    }

    /// The flags, and whether the context exists.
    fn cuDevicePrimaryCtxGetState(device: i32, flags: Out<u32>, active: Out<i32>) {
        let (flags, active) = (flags.required()?, active.required()?);
        let primary = primary(device)?;
        flags.put(primary.flags);
        active.put(i32::from(primary.context.is_some()));
        Ok(())
    }
}
