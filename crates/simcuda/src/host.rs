//! Pinned host memory: allocated by the driver, or registered in place.

use pinlane_driver::{HostFlags, RegisterFlags};

use crate::current::current;
use crate::error::{INVALID_VALUE, Outcome};
use crate::ffi::{Host, Out};
use crate::ledger::{Block, Kind};
use crate::memory::restore_unless;
use crate::shim::exports;
use crate::state::machine;

/// Portable: pinned for every context.
const PORTABLE: u32 = 1;
/// Mapped: kernels see it.
const DEVICE_MAP: u32 = 2;
/// Of `cuMemHostAlloc`: write-combined.
const WRITE_COMBINED: u32 = 4;
/// Of `cuMemHostRegister`: the device only reads it.
const READ_ONLY: u32 = 8;

/// Allocates pinned memory in the current context. No bytes are no memory, and no error.
fn alloc(bytes: usize, flags: u32) -> Outcome<u64> {
    let context = current()?;
    if flags & !(PORTABLE | DEVICE_MAP | WRITE_COMBINED) != 0 {
        return Err(INVALID_VALUE);
    }
    if bytes == 0 {
        return Ok(0);
    }
    let wanted = HostFlags {
        portable: flags & PORTABLE != 0,
        // With unified addressing all pinned memory is mapped, asked for or not.
        mapped: true,
        write_combined: flags & WRITE_COMBINED != 0,
    };
    let ptr = context.driver.host_alloc(bytes, wanted)?;
    let base = ptr.as_ptr().expose_provenance() as u64;
    machine()?.ledger.enter(Block {
        base,
        bytes,
        kind: Kind::Pinned(flags),
        ordinal: context.ordinal,
        context: context.handle,
    });
    Ok(base)
}

/// Frees pinned memory.
fn free(host: Host) -> Outcome<()> {
    let context = current()?;
    let Some(ptr) = host.optional() else {
        return Ok(());
    };
    let block = machine()?.ledger.strike(host.address());
    // SAFETY: the program vouches that it is done with the memory; the simulator checks that, and
    // refuses and reports an address that is no pinned block.
    let freed = unsafe { context.driver.host_free(ptr) };
    restore_unless(freed, block)
}

/// Page-locks memory in place.
fn register(host: Host, bytes: usize, flags: u32) -> Outcome<()> {
    let context = current()?;
    let ptr = host.required()?;
    // I/O memory (4) is for memory of other devices, which there is none of.
    if bytes == 0 || flags & !(PORTABLE | DEVICE_MAP | READ_ONLY) != 0 {
        return Err(INVALID_VALUE);
    }
    let wanted = RegisterFlags {
        portable: flags & PORTABLE != 0,
        mapped: true,
        read_only: flags & READ_ONLY != 0,
    };
    // SAFETY: the program vouches that the range is its memory until it is unregistered.
    unsafe { context.driver.host_register(ptr, bytes, wanted)? };
    machine()?.ledger.enter(Block {
        base: host.address(),
        bytes,
        kind: Kind::Registered(flags),
        ordinal: context.ordinal,
        context: context.handle,
    });
    Ok(())
}

/// Undoes a registration.
fn unregister(host: Host) -> Outcome<()> {
    let context = current()?;
    let ptr = host.required()?;
    let block = machine()?.ledger.strike(host.address());
    // SAFETY: the program vouches that no work uses the range; the simulator checks that, and
    // refuses and reports an address that is no base of a registration.
    let undone = unsafe { context.driver.host_unregister(ptr) };
    restore_unless(undone, block)
}

exports! { through guard;
    /// Allocates pinned memory with flags.
    fn cuMemHostAlloc(host: Out<u64>, bytes: usize, flags: u32) {
        machine()?;
        let slot = host.required()?;
        slot.put(alloc(bytes, flags)?);
        Ok(())
    }

    /// Allocates pinned memory.
    fn cuMemAllocHost_v2(host: Out<u64>, bytes: usize) {
        machine()?;
        let slot = host.required()?;
        slot.put(alloc(bytes, 0)?);
        Ok(())
    }

    /// Frees pinned memory.
    fn cuMemFreeHost(host: Host) { free(host) }

    /// Page-locks memory in place.
    fn cuMemHostRegister_v2(host: Host, bytes: usize, flags: u32) { register(host, bytes, flags) }

    /// Undoes a registration.
    fn cuMemHostUnregister(host: Host) { unregister(host) }

    /// The address under which kernels see mapped memory.
    fn cuMemHostGetDevicePointer_v2(address: Out<u64>, host: Host, flags: u32) {
        let context = current()?;
        let slot = address.required()?;
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        slot.put(context.driver.host_device_ptr(host.required()?)?.0);
        Ok(())
    }

    /// The flags that pinned memory was allocated with.
    fn cuMemHostGetFlags(flags: Out<u32>, host: Host) {
        current()?;
        let slot = flags.required()?;
        match machine()?.ledger.find(host.address()).map(|block| block.kind) {
            Some(Kind::Pinned(flags) | Kind::Registered(flags)) => slot.put(flags),
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }
}
