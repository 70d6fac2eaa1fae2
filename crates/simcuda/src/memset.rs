//! Fills of device memory with items of one, two or four bytes.

use std::ptr::NonNull;

use pinlane_driver::{CopyOp, DevicePtr, Place};

use crate::error::{INVALID_VALUE, Outcome, ensure};
use crate::export_macros::exports_by_default_stream;
use crate::stream::StreamRef;

/// Fills `count` items from `address` with the bytes of one item.
fn fill(address: u64, item: &[u8], count: usize, stream: &StreamRef) -> Outcome<()> {
    let bytes = item.len().checked_mul(count).ok_or(INVALID_VALUE)?;
    if bytes == 0 {
        return Ok(());
    }
    let is_aligned = address.is_multiple_of(item.len() as u64);
    ensure(address != 0 && is_aligned, INVALID_VALUE)?;
    let target = DevicePtr(address);
    let driver = stream.driver();
    if item.iter().all(|byte| *byte == item[0]) {
        // SAFETY: the simulator checks the device range.
        return Ok(unsafe { driver.memset_async(target, item[0], bytes, stream.handle) }?);
    }
    // The simulated device fills with single bytes only. A copy from pageable memory has read its
    // source when the call returns, so the pattern may be dropped then.
    ensure(bytes as u64 <= driver.info().memory_bytes, INVALID_VALUE)?;
    let pattern = item.repeat(count);
    let copy = CopyOp {
        target: Place::Device(target),
        source: Place::Host(NonNull::from(pattern.as_slice()).cast()),
        bytes,
    };
    // SAFETY: the pattern is `bytes` long and read before the call returns; the simulator checks
    // the device range.
    Ok(unsafe { driver.copy_async(copy, stream.handle) }?)
}

/// Fills rows of `width` items that begin `pitch_bytes` apart.
fn fill_rows(
    address: u64,
    pitch_bytes: usize,
    item: &[u8],
    (width, rows): (usize, usize),
    stream: &StreamRef,
) -> Outcome<()> {
    let row_bytes = width.checked_mul(item.len()).ok_or(INVALID_VALUE)?;
    ensure(rows <= 1 || pitch_bytes >= row_bytes, INVALID_VALUE)?;
    for row in 0..rows {
        let offset = row.checked_mul(pitch_bytes).ok_or(INVALID_VALUE)?;
        let start = address.checked_add(offset as u64).ok_or(INVALID_VALUE)?;
        fill(start, item, width, stream)?;
    }
    Ok(())
}

/// Exports the four fills with items of one type: plain and by rows, each also in stream order.
macro_rules! fills {
    ($($type:ty: $plain:ident, $plain_ptds:ident, $rows:ident, $rows_ptds:ident,
        $plain_async:ident, $plain_ptsz:ident, $rows_async:ident, $rows_ptsz:ident;)*) => {
        exports_by_default_stream! { $(
            fn $plain, $plain_ptds(address: u64, value: $type, count: usize) [stream = 0] {
                fill(address, &value.to_ne_bytes(), count, &stream)
            }

            fn $rows, $rows_ptds(
                address: u64, pitch: usize, value: $type, width: usize, rows: usize,
            ) [stream = 0] {
                fill_rows(address, pitch, &value.to_ne_bytes(), (width, rows), &stream)
            }

            fn $plain_async, $plain_ptsz(
                address: u64, value: $type, count: usize, stream: usize,
            ) [stream = stream] {
                fill(address, &value.to_ne_bytes(), count, &stream)
            }

            fn $rows_async, $rows_ptsz(
                address: u64, pitch: usize, value: $type, width: usize, rows: usize, stream: usize,
            ) [stream = stream] {
                fill_rows(address, pitch, &value.to_ne_bytes(), (width, rows), &stream)
            }
        )* }
    };
}

fills! {
    u8: cuMemsetD8_v2, cuMemsetD8_v2_ptds, cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds,
        cuMemsetD8Async, cuMemsetD8Async_ptsz, cuMemsetD2D8Async, cuMemsetD2D8Async_ptsz;
    u16: cuMemsetD16_v2, cuMemsetD16_v2_ptds, cuMemsetD2D16_v2, cuMemsetD2D16_v2_ptds,
        cuMemsetD16Async, cuMemsetD16Async_ptsz, cuMemsetD2D16Async, cuMemsetD2D16Async_ptsz;
    u32: cuMemsetD32_v2, cuMemsetD32_v2_ptds, cuMemsetD2D32_v2, cuMemsetD2D32_v2_ptds,
        cuMemsetD32Async, cuMemsetD32Async_ptsz, cuMemsetD2D32Async, cuMemsetD2D32Async_ptsz;
}
