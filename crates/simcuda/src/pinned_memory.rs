//! Pinned host memory, allocated or registered.

use pinlane_driver::{HostFlags, RegisterFlags};

use crate::allocations::{Block, Kind};
use crate::context_stack::current;
use crate::device_memory::restore_unless;
use crate::error::{INVALID_VALUE, Outcome};
use crate::exports::exports;
use crate::ffi::{Host, Out};
use crate::machine::machine;

/// Portable: pinned for every context.
const PORTABLE: u32 = 1;
/// Mapped: kernels can access it.
const DEVICE_MAP: u32 = 2;
/// Of `cuMemHostAlloc`: write-combined.
const WRITE_COMBINED: u32 = 4;
/// Of `cuMemHostRegister`: read-only for the device.
const READ_ONLY: u32 = 8;

/// Allocates pinned memory in the current context. 0 bytes give a null pointer and no error.
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
        // With unified addressing, all pinned memory is mapped.
        mapped: true,
        write_combined: flags & WRITE_COMBINED != 0,
    };
    let ptr = context.driver.host_alloc(bytes, wanted)?;
    let base = ptr.as_ptr().expose_provenance() as u64;
    machine()?.allocations.insert(Block {
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
    let block = machine()?.allocations.remove(host.address());
    // SAFETY: the simulator checks that no work uses the memory, and refuses and reports an address
    // that is not a pinned block.
    let freed = unsafe { context.driver.host_free(ptr) };
    restore_unless(freed, block)
}

/// Page-locks memory in place.
fn register(host: Host, bytes: usize, flags: u32) -> Outcome<()> {
    let context = current()?;
    let ptr = host.required()?;
    // Flag 4, I/O memory of other devices, is not supported.
    if bytes == 0 || flags & !(PORTABLE | DEVICE_MAP | READ_ONLY) != 0 {
        return Err(INVALID_VALUE);
    }
    let wanted = RegisterFlags {
        portable: flags & PORTABLE != 0,
        mapped: true,
        read_only: flags & READ_ONLY != 0,
    };
    // SAFETY: the program guarantees that the range is its memory until it unregisters it.
    unsafe { context.driver.host_register(ptr, bytes, wanted)? };
    machine()?.allocations.insert(Block {
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
    let block = machine()?.allocations.remove(host.address());
    // SAFETY: the simulator checks that no work uses the range, and refuses and reports an address
    // that is not the base of a registration.
    let undone = unsafe { context.driver.host_unregister(ptr) };
    restore_unless(undone, block)
}

exports! { through guard;
    /// Allocates pinned memory with flags.
    fn cuMemHostAlloc(host: Out<u64>, bytes: usize, flags: u32) {
        machine()?;
        host.set_with(|| alloc(bytes, flags))
    }

    /// Allocates pinned memory.
    fn cuMemAllocHost_v2(host: Out<u64>, bytes: usize) {
        machine()?;
        host.set_with(|| alloc(bytes, 0))
    }

    /// Frees pinned memory.
    fn cuMemFreeHost(host: Host) { free(host) }

    /// Page-locks memory in place.
    fn cuMemHostRegister_v2(host: Host, bytes: usize, flags: u32) { register(host, bytes, flags) }

    /// Undoes a registration.
    fn cuMemHostUnregister(host: Host) { unregister(host) }

    /// The device address of mapped memory.
    fn cuMemHostGetDevicePointer_v2(address: Out<u64>, host: Host, flags: u32) {
        let context = current()?;
        let slot = address.required()?;
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        slot.put(context.driver.host_device_ptr(host.required()?)?.0);
        Ok(())
    }

    /// The flags of pinned memory.
    fn cuMemHostGetFlags(flags: Out<u32>, host: Host) {
        current()?;
        let slot = flags.required()?;
        match machine()?.allocations.find(host.address()).map(|block| block.kind) {
            Some(Kind::Pinned(flags) | Kind::Registered(flags)) => slot.put(flags),
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }
}
