//! Pinned host memory, allocated or registered.

use pinlane_driver::{HostFlags, RegisterFlags};

use crate::allocations::Kind;
use crate::c_pointers::{Host, Out};
use crate::context::current;
use crate::error::{INVALID_VALUE, Outcome, ensure};
use crate::export_macros::exports;
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
    let known = PORTABLE | DEVICE_MAP | WRITE_COMBINED;
    ensure(flags & !known == 0, INVALID_VALUE)?;
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
    context.insert_block(base, bytes, Kind::Pinned(flags))?;
    Ok(base)
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
    fn cuMemFreeHost(host: Host) {
        let context = current()?;
        let Some(ptr) = host.optional() else { return Ok(()) };
        machine()?.allocations.remove_by(host.address(), |_| {
            // SAFETY: the simulator checks that no work uses the memory, and refuses and reports an
            // address that is not a pinned block.
            Ok(unsafe { context.driver.host_free(ptr) }?)
        })
    }

    /// Page-locks memory in place. Flag 4, I/O memory of other devices, is not supported.
    fn cuMemHostRegister_v2(host: Host, bytes: usize, flags: u32) {
        let context = current()?;
        let ptr = host.required()?;
        let known = PORTABLE | DEVICE_MAP | READ_ONLY;
        ensure(bytes > 0 && flags & !known == 0, INVALID_VALUE)?;
        let wanted = RegisterFlags {
            portable: flags & PORTABLE != 0,
            mapped: true,
            read_only: flags & READ_ONLY != 0,
        };
        // SAFETY: the program guarantees that the range is its memory until it unregisters it.
        unsafe { context.driver.host_register(ptr, bytes, wanted)? };
        context.insert_block(host.address(), bytes, Kind::Registered(flags))
    }

    /// Undoes a registration.
    fn cuMemHostUnregister(host: Host) {
        let context = current()?;
        let ptr = host.required()?;
        machine()?.allocations.remove_by(host.address(), |_| {
            // SAFETY: the simulator checks that no work uses the range, and refuses and reports an
            // address that is not the base of a registration.
            Ok(unsafe { context.driver.host_unregister(ptr) }?)
        })
    }

    /// The device address of mapped memory.
    fn cuMemHostGetDevicePointer_v2(address: Out<u64>, host: Host, flags: u32) {
        let context = current()?;
        address.set_with(|| {
            ensure(flags == 0, INVALID_VALUE)?;
            Ok(context.driver.host_device_ptr(host.required()?)?.0)
        })
    }

    /// The flags of pinned memory.
    fn cuMemHostGetFlags(flags: Out<u32>, host: Host) {
        current()?;
        let block = machine()?.allocations.find(host.address());
        flags.set_with(|| match block.map(|block| block.kind) {
            Some(Kind::Pinned(flags) | Kind::Registered(flags)) => Ok(flags),
            _ => Err(INVALID_VALUE),
        })
    }
}
