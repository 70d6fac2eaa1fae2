//! Device memory, also in stream order.

use pinlane_driver::DevicePtr;

use crate::allocations::Kind;
use crate::c_pointers::Out;
use crate::context::current;
use crate::error::{INVALID_VALUE, Outcome, ensure};
use crate::export_macros::{exports, exports_by_default_stream};
use crate::machine::machine;
use crate::stream::StreamRef;

/// Alignment of rows of pitched memory.
const PITCH_BYTES: usize = 512;

/// Allocates device memory in the current context.
fn alloc(bytes: usize) -> Outcome<u64> {
    let context = current()?;
    ensure(bytes > 0, INVALID_VALUE)?;
    let ptr = context.driver.device_alloc(bytes)?;
    context.insert_block(ptr.0, bytes, Kind::Device)?;
    Ok(ptr.0)
}

/// Allocates device memory in stream order.
pub fn alloc_async(bytes: usize, stream: &StreamRef) -> Outcome<u64> {
    ensure(bytes > 0, INVALID_VALUE)?;
    let ptr = stream.alloc(bytes)?;
    let context = &stream.context;
    context.insert_block(ptr.0, bytes, Kind::DeviceAsync)?;
    Ok(ptr.0)
}

/// Frees device memory. Memory that was allocated in stream order is freed in order of the default
/// stream.
fn free(address: u64) -> Outcome<()> {
    let context = current()?;
    if address == 0 {
        return Ok(());
    }
    let machine = machine()?;
    machine.allocations.remove_by(address, |block| {
        let device = machine.device(block.map_or(context.ordinal, |block| block.ordinal))?;
        let driver = machine.driver(device)?;
        let ptr = DevicePtr(address);
        if block.is_some_and(|block| block.kind == Kind::DeviceAsync) {
            // SAFETY: the block is allocated and not freed. The simulator checks that the program no
            // longer uses it.
            return Ok(unsafe { driver.device_free_async(ptr, driver.default_stream()) }?);
        }
        driver.synchronize()?; // as cuMemFree does, because work in flight may use it
        // SAFETY: as above. The simulator refuses and reports an address that is not a block.
        Ok(unsafe { driver.device_free(ptr) }?)
    })
}

exports! { through guard;
    /// Allocates device memory.
    fn cuMemAlloc_v2(address: Out<u64>, bytes: usize) {
        machine()?;
        address.set_with(|| alloc(bytes))
    }

    /// Allocates rows, and stores their pitch.
    fn cuMemAllocPitch_v2(
        address: Out<u64>, pitch: Out<usize>, width: usize, rows: usize, element: u32,
    ) {
        machine()?;
        let (address, pitch) = (address.required()?, pitch.required()?);
        ensure(width > 0 && rows > 0 && matches!(element, 4 | 8 | 16), INVALID_VALUE)?;
        let row_bytes = width.checked_next_multiple_of(PITCH_BYTES).ok_or(INVALID_VALUE)?;
        address.put(alloc(row_bytes.checked_mul(rows).ok_or(INVALID_VALUE)?)?);
        pitch.put(row_bytes);
        Ok(())
    }

    /// Frees device memory.
    fn cuMemFree_v2(address: u64) { free(address) }

    /// Free and total memory.
    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) {
        let context = current()?;
        let (free, total) = (free.required()?, total.required()?);
        let info = context.driver.memory_info()?;
        free.put(info.free_bytes as usize);
        total.put(info.total_bytes as usize);
        Ok(())
    }
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
}
