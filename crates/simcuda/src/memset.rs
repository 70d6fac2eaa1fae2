//! Filling device memory with a value of one, two or four bytes.

use std::ptr::NonNull;

use pinlane_driver::{CopyOp, DevicePtr, Place};

use crate::error::{Code, INVALID_VALUE, Outcome};
use crate::shim::exports_by_default_stream;
use crate::stream::Lane;

/// Fills `count` items from `address` on with the bytes of one item.
fn fill(address: u64, item: &[u8], count: usize, lane: &Lane) -> Outcome<()> {
    let bytes = item.len().checked_mul(count).ok_or(INVALID_VALUE)?;
    if bytes == 0 {
        return Ok(());
    }
    if address == 0 || !address.is_multiple_of(item.len() as u64) {
        return Err(INVALID_VALUE);
    }
    let target = DevicePtr(address);
    if item.iter().all(|byte| *byte == item[0]) {
        // SAFETY: the simulator checks the device range.
        return unsafe {
            lane.driver()
                .memset_async(target, item[0], bytes, lane.stream)
        }
        .map_err(Code::from);
    }
    // The simulated device fills with single bytes only. A copy from ordinary memory has read its
    // source when the call returns, so the pattern may go then.
    if bytes as u64 > lane.driver().info().memory_bytes {
        return Err(INVALID_VALUE);
    }
    let pattern = item.repeat(count);
    let copy = CopyOp {
        target: Place::Device(target),
        source: Place::Host(NonNull::from(pattern.as_slice()).cast()),
        bytes,
    };
    // SAFETY: the pattern is `bytes` long and read before the call returns; the simulator checks
    // the device range.
    unsafe { lane.driver().copy_async(copy, lane.stream) }.map_err(Code::from)
}

/// Fills rows of `width` items that begin `pitch_bytes` apart.
fn fill_rows(
    address: u64,
    pitch_bytes: usize,
    item: &[u8],
    (width, rows): (usize, usize),
    lane: &Lane,
) -> Outcome<()> {
    let row_bytes = width.checked_mul(item.len()).ok_or(INVALID_VALUE)?;
    if rows > 1 && pitch_bytes < row_bytes {
        return Err(INVALID_VALUE);
    }
    for row in 0..rows {
        let offset = row.checked_mul(pitch_bytes).ok_or(INVALID_VALUE)?;
        let start = address.checked_add(offset as u64).ok_or(INVALID_VALUE)?;
        fill(start, item, width, lane)?;
    }
    Ok(())
}

exports_by_default_stream! {
    /// Fills with bytes.
    fn cuMemsetD8_v2, cuMemsetD8_v2_ptds(address: u64, value: u8, count: usize) |mode| {
        fill(address, &[value], count, &Lane::default(mode)?)
    }

    /// Fills with 16-bit values.
    fn cuMemsetD16_v2, cuMemsetD16_v2_ptds(address: u64, value: u16, count: usize) |mode| {
        fill(address, &value.to_ne_bytes(), count, &Lane::default(mode)?)
    }

    /// Fills with 32-bit values.
    fn cuMemsetD32_v2, cuMemsetD32_v2_ptds(address: u64, value: u32, count: usize) |mode| {
        fill(address, &value.to_ne_bytes(), count, &Lane::default(mode)?)
    }

    /// Fills rows with bytes.
    fn cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds(
        address: u64, pitch: usize, value: u8, width: usize, rows: usize,
    ) |mode| {
        fill_rows(address, pitch, &[value], (width, rows), &Lane::default(mode)?)
    }

    /// Fills rows with 16-bit values.
    fn cuMemsetD2D16_v2, cuMemsetD2D16_v2_ptds(
        address: u64, pitch: usize, value: u16, width: usize, rows: usize,
    ) |mode| {
        fill_rows(address, pitch, &value.to_ne_bytes(), (width, rows), &Lane::default(mode)?)
    }

    /// Fills rows with 32-bit values.
    fn cuMemsetD2D32_v2, cuMemsetD2D32_v2_ptds(
        address: u64, pitch: usize, value: u32, width: usize, rows: usize,
    ) |mode| {
        fill_rows(address, pitch, &value.to_ne_bytes(), (width, rows), &Lane::default(mode)?)
    }

    /// Fills with bytes, in stream order.
    fn cuMemsetD8Async, cuMemsetD8Async_ptsz(
        address: u64, value: u8, count: usize, stream: usize,
    ) |mode| {
        fill(address, &[value], count, &Lane::find(stream, mode)?)
    }

    /// Fills with 16-bit values, in stream order.
    fn cuMemsetD16Async, cuMemsetD16Async_ptsz(
        address: u64, value: u16, count: usize, stream: usize,
    ) |mode| {
        fill(address, &value.to_ne_bytes(), count, &Lane::find(stream, mode)?)
    }

    /// Fills with 32-bit values, in stream order.
    fn cuMemsetD32Async, cuMemsetD32Async_ptsz(
        address: u64, value: u32, count: usize, stream: usize,
    ) |mode| {
        fill(address, &value.to_ne_bytes(), count, &Lane::find(stream, mode)?)
    }

    /// Fills rows with bytes, in stream order.
    fn cuMemsetD2D8Async, cuMemsetD2D8Async_ptsz(
        address: u64, pitch: usize, value: u8, width: usize, rows: usize, stream: usize,
    ) |mode| {
        fill_rows(address, pitch, &[value], (width, rows), &Lane::find(stream, mode)?)
    }

    /// Fills rows with 16-bit values, in stream order.
    fn cuMemsetD2D16Async, cuMemsetD2D16Async_ptsz(
        address: u64, pitch: usize, value: u16, width: usize, rows: usize, stream: usize,
    ) |mode| {
        fill_rows(address, pitch, &value.to_ne_bytes(), (width, rows), &Lane::find(stream, mode)?)
    }

    /// Fills rows with 32-bit values, in stream order.
    fn cuMemsetD2D32Async, cuMemsetD2D32Async_ptsz(
        address: u64, pitch: usize, value: u32, width: usize, rows: usize, stream: usize,
    ) |mode| {
        fill_rows(address, pitch, &value.to_ne_bytes(), (width, rows), &Lane::find(stream, mode)?)
    }
}
