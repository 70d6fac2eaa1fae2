//! Stream-ordered memory, and the pools that it comes from: each device has a default one.

use std::sync::atomic::{AtomicU64, Ordering};

use pinlane_driver::DevicePtr;

use crate::allocations::Kind;
use crate::c_pointers::{Opaque, Out, put_untyped, read_untyped};
use crate::error::{INVALID_VALUE, NOT_SUPPORTED, Outcome, ensure};
use crate::export_macros::{exports, exports_by_default_stream};
use crate::machine::{Device, machine};
use crate::stream::StreamRef;

/// The default pool of a device.
pub struct Pool {
    /// The program's handle.
    pub handle: usize,
    /// The three reuse policies: by events, opportunistic, with internal dependencies.
    reuse: [AtomicU64; 3],
    /// Unused bytes that it keeps.
    release_threshold: AtomicU64,
    /// Most bytes in use, as seen by queries.
    used_high: AtomicU64,
}

/// Attributes of a pool.
const REUSE_FIRST: u32 = 1;
const REUSE_LAST: u32 = 3;
const RELEASE_THRESHOLD: u32 = 4;
const RESERVED_CURRENT: u32 = 5;
const RESERVED_HIGH: u32 = 6;
const USED_CURRENT: u32 = 7;
const USED_HIGH: u32 = 8;

/// Base of pool handles, different from those of the tables.
const HANDLE_BASE: usize = 0x5180 << 32;

impl Pool {
    /// The default pool of device `ordinal`.
    pub fn new(ordinal: u32) -> Self {
        Self {
            handle: HANDLE_BASE + (ordinal as usize + 1) * 0x40,
            reuse: [1, 1, 1].map(AtomicU64::new),
            release_threshold: AtomicU64::new(0),
            used_high: AtomicU64::new(0),
        }
    }

    /// The value of an attribute, and whether it is an `int`.
    fn attribute(&self, attribute: u32, used: u64) -> Outcome<(u64, bool)> {
        let high = self.used_high.fetch_max(used, Ordering::Relaxed).max(used);
        match attribute {
            REUSE_FIRST..=REUSE_LAST => {
                let index = (attribute - REUSE_FIRST) as usize;
                Ok((self.reuse[index].load(Ordering::Relaxed), true))
            }
            RELEASE_THRESHOLD => Ok((self.release_threshold.load(Ordering::Relaxed), false)),
            // The simulated pool reserves only what is in use.
            RESERVED_CURRENT | USED_CURRENT => Ok((used, false)),
            RESERVED_HIGH | USED_HIGH => Ok((high, false)),
            _ => Err(INVALID_VALUE),
        }
    }

    fn set(&self, attribute: u32, value: Opaque) -> Outcome<()> {
        match attribute {
            REUSE_FIRST..=REUSE_LAST => {
                let index = (attribute - REUSE_FIRST) as usize;
                let value = u64::from(read_untyped::<i32>(value)? != 0);
                self.reuse[index].store(value, Ordering::Relaxed);
            }
            RELEASE_THRESHOLD => {
                let bytes = read_untyped(value)?;
                self.release_threshold.store(bytes, Ordering::Relaxed);
            }
            // Writing 0 resets the high-water marks.
            RESERVED_HIGH | USED_HIGH if read_untyped::<u64>(value)? == 0 => {
                self.used_high.store(0, Ordering::Relaxed);
            }
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }
}

/// The device of a pool.
fn owner(pool: usize) -> Outcome<&'static Device> {
    let mut devices = machine()?.devices.iter();
    devices
        .find(|device| device.pool.handle == pool)
        .ok_or(INVALID_VALUE)
}

/// Allocates in stream order.
fn alloc_async(bytes: usize, stream: &StreamRef) -> Outcome<u64> {
    ensure(bytes > 0, INVALID_VALUE)?;
    let ptr = stream.alloc(bytes)?;
    let context = &stream.context;
    context.insert_block(ptr.0, bytes, Kind::DeviceAsync)?;
    Ok(ptr.0)
}

exports! { through guard;
    /// The default pool of a device, which is also the current one.
    fn cuDeviceGetMemPool(pool: Out<usize>, device: i32), also cuDeviceGetDefaultMemPool {
        pool.set(machine()?.device(device)?.pool.handle)
    }

    /// Sets the current pool of a device; only the default one exists.
    fn cuDeviceSetMemPool(device: i32, pool: usize) {
        let device = machine()?.device(device)?;
        ensure(owner(pool)?.info.ordinal == device.info.ordinal, NOT_SUPPORTED)
    }

    /// An attribute of a pool.
    fn cuMemPoolGetAttribute(pool: usize, attribute: u32, value: Opaque) {
        let device = owner(pool)?;
        let used = machine()?.allocations.async_bytes(device.ordinal());
        match device.pool.attribute(attribute, used)? {
            (number, true) => put_untyped(value, number as i32),
            (number, false) => put_untyped(value, number),
        }
    }

    /// Sets an attribute of a pool.
    fn cuMemPoolSetAttribute(pool: usize, attribute: u32, value: Opaque) {
        owner(pool)?.pool.set(attribute, value)
    }

    /// Releases unused memory of a pool: there is none.
    fn cuMemPoolTrimTo(pool: usize) { owner(pool).map(|_| ()) }
}

exports_by_default_stream! {
    /// Allocates in stream order.
    fn cuMemAllocAsync, cuMemAllocAsync_ptsz(
        address: Out<u64>, bytes: usize, stream: usize,
    ) [stream = stream] {
        address.set_with(|| alloc_async(bytes, &stream))
    }

    /// Frees in stream order.
    fn cuMemFreeAsync, cuMemFreeAsync_ptsz(address: u64, stream: usize) [stream = stream] {
        if address == 0 {
            return Ok(());
        }
        let (driver, ptr) = (stream.driver(), DevicePtr(address));
        machine()?.allocations.remove_by(address, |_| {
            // SAFETY: the simulator checks that no later work uses the block, and refuses an address
            // that is not a stream-ordered block.
            Ok(unsafe { driver.device_free_async(ptr, stream.handle) }?)
        })
    }

    /// Allocates from a pool, in stream order.
    fn cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz(
        address: Out<u64>, bytes: usize, pool: usize, stream: usize,
    ) [stream = stream] {
        address.set_with(|| {
            ensure(owner(pool)?.ordinal() == stream.context.ordinal, NOT_SUPPORTED)?;
            alloc_async(bytes, &stream)
        })
    }
}
