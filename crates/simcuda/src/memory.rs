//! Device memory: plain, in stream order, and how much there is.

use pinlane_driver::DevicePtr;

use crate::current::current;
use crate::error::{INVALID_VALUE, Outcome};
use crate::ffi::Out;
use crate::ledger::{Block, Kind};
use crate::shim::{exports, exports_by_default_stream};
use crate::state::machine;
use crate::stream::Lane;

/// Rows of pitched memory begin at multiples of this.
const PITCH_BYTES: usize = 512;

/// Allocates device memory in the current context.
fn alloc(bytes: usize) -> Outcome<u64> {
    let context = current()?;
    if bytes == 0 {
        return Err(INVALID_VALUE);
    }
    let ptr = context.driver.device_alloc(bytes)?;
    machine()?.ledger.enter(Block {
        base: ptr.0,
        bytes,
        kind: Kind::Device,
        ordinal: context.ordinal,
        context: context.handle,
    });
    Ok(ptr.0)
}

/// Allocates device memory in stream order.
pub fn alloc_async(bytes: usize, lane: &Lane) -> Outcome<u64> {
    if bytes == 0 {
        return Err(INVALID_VALUE);
    }
    let ptr = lane.driver().device_alloc_async(bytes, lane.stream)?;
    machine()?.ledger.enter(Block {
        base: ptr.0,
        bytes,
        kind: Kind::DeviceAsync,
        ordinal: lane.context.ordinal,
        context: lane.context.handle,
    });
    Ok(ptr.0)
}

/// Frees device memory. Memory that was allocated in stream order may be freed so too, and is then
/// freed in the order of the default stream.
fn free(address: u64) -> Outcome<()> {
    let context = current()?;
    if address == 0 {
        return Ok(());
    }
    let machine = machine()?;
    let block = machine.ledger.strike(address);
    let device = machine.device(block.map_or(context.ordinal, |block| block.ordinal))?;
    let driver = machine.driver(device)?;
    let ptr = DevicePtr(address);
    let freed = match block.map(|block| block.kind) {
        // SAFETY: the block is in the ledger, hence allocated and not freed; the program vouches
        // that it is done with it, and the simulator checks that.
        Some(Kind::DeviceAsync) => unsafe {
            driver.device_free_async(ptr, driver.default_stream())
        },
        // SAFETY: as above; an address that is no block of device memory is refused and reported
        // by the simulator.
        _ => driver
            .synchronize() // as cuMemFree does: work in flight may still use it
            .and_then(|()| unsafe { driver.device_free(ptr) }),
    };
    restore_unless(freed, block)
}

/// Frees device memory in stream order.
fn free_async(address: u64, lane: &Lane) -> Outcome<()> {
    if address == 0 {
        return Ok(());
    }
    let block = machine()?.ledger.strike(address);
    // SAFETY: the program vouches that all its work on the block comes before; the simulator
    // checks that, and refuses what is no block in stream order.
    let freed = unsafe {
        lane.driver()
            .device_free_async(DevicePtr(address), lane.stream)
    };
    restore_unless(freed, block)
}

/// Enters the block again where freeing it failed.
pub fn restore_unless(freed: pinlane_driver::Result<()>, block: Option<Block>) -> Outcome<()> {
    if freed.is_err()
        && let Some(block) = block
    {
        machine()?.ledger.enter(block);
    }
    Ok(freed?)
}

exports! { through guard;
    /// Allocates.
    fn cuMemAlloc_v2(address: Out<u64>, bytes: usize) {
        machine()?;
        let slot = address.required()?;
        slot.put(alloc(bytes)?);
        Ok(())
    }

    /// Allocates rows, and says how far apart they are.
    fn cuMemAllocPitch_v2(
        address: Out<u64>, pitch: Out<usize>, width: usize, rows: usize, element: u32,
    ) {
        machine()?;
        let (address, pitch) = (address.required()?, pitch.required()?);
        if width == 0 || rows == 0 || !matches!(element, 4 | 8 | 16) {
            return Err(INVALID_VALUE);
        }
        let row_bytes = width.checked_next_multiple_of(PITCH_BYTES).ok_or(INVALID_VALUE)?;
        address.put(alloc(row_bytes.checked_mul(rows).ok_or(INVALID_VALUE)?)?);
        pitch.put(row_bytes);
        Ok(())
    }

    /// Frees.
    fn cuMemFree_v2(address: u64) { free(address) }

    /// Free memory, and all of it.
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
    ) |mode| {
        let lane = Lane::find(stream, mode)?;
        let slot = address.required()?;
        slot.put(alloc_async(bytes, &lane)?);
        Ok(())
    }

    /// Frees in stream order.
    fn cuMemFreeAsync, cuMemFreeAsync_ptsz(address: u64, stream: usize) |mode| {
        free_async(address, &Lane::find(stream, mode)?)
    }
}
