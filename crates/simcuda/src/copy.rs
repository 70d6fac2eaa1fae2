//! Copies: of contiguous bytes, of rows, and in batches.

use pinlane_driver::{Copy2d, CopyOp, DevicePtr, Place};

use crate::c_pointers::{Host, In, Out};
use crate::error::{Code, INVALID_VALUE, NOT_SUPPORTED, Outcome, ensure};
use crate::export_macros::exports_by_default_stream;
use crate::machine::machine;
use crate::stream::StreamRef;

/// The place of a device address. With unified addressing, that may be pinned host memory.
fn device_place(address: u64) -> Outcome<Place> {
    ensure(address != 0, INVALID_VALUE)?;
    match machine()?.allocations.find(address) {
        Some(block) if !block.kind.is_device() => Ok(Place::Host(Host::at(address).required()?)),
        // The simulator rejects addresses that are not allocated.
        _ => Ok(Place::Device(DevicePtr(address))),
    }
}

/// The place of a host address. A device address is refused, because it would be dereferenced.
fn host_place(host: Host) -> Outcome<Place> {
    let is_device = machine()?.allocations.is_or_was_device(host.address());
    ensure(!is_device, INVALID_VALUE)?;
    Ok(Place::Host(host.required()?))
}

/// The place of an address of either kind.
fn any_place(address: u64) -> Outcome<Place> {
    if machine()?.allocations.is_or_was_device(address) {
        return Ok(Place::Device(DevicePtr(address)));
    }
    Ok(Place::Host(Host::at(address).required()?))
}

/// A copy of contiguous bytes; `None` if it is empty, which is valid with any addresses.
fn contiguous(
    target: Outcome<Place>,
    source: Outcome<Place>,
    bytes: usize,
) -> Outcome<Option<CopyOp>> {
    if bytes == 0 {
        return Ok(None);
    }
    Ok(Some(CopyOp {
        target: target?,
        source: source?,
        bytes,
    }))
}

/// Submits a copy.
fn submit(copy: Option<CopyOp>, stream: &StreamRef) -> Outcome<()> {
    let Some(copy) = copy else { return Ok(()) };
    // SAFETY: the program guarantees that its host memory is valid until the copy is done. The
    // simulator checks device addresses and pinned memory.
    Ok(unsafe { stream.driver().copy_async(copy, stream.handle) }?)
}

/// Copies, and waits until that is done.
fn copy_and_wait(copy: Option<CopyOp>, stream: &StreamRef) -> Outcome<()> {
    if let Some(copy) = copy
        && stream.is_legacy
    {
        // SAFETY: as in `submit`.
        return Ok(unsafe { stream.driver().copy(copy) }?);
    }
    submit(copy, stream)?;
    stream.synchronize()
}

/// Exports a copy between two kinds of places, and the same in stream order. The first one uses the
/// default stream, and waits if it says so.
macro_rules! copies {
    ($($target:ident($to:ty) from $source:ident($from:ty): $now:ident $plain:ident, $plain_ptds:ident,
        $in_order:ident, $in_order_ptsz:ident;)*) => {
        exports_by_default_stream! { $(
            fn $plain, $plain_ptds(target: $to, source: $from, bytes: usize) [stream = 0] {
                $now(contiguous($target(target), $source(source), bytes)?, &stream)
            }

            fn $in_order, $in_order_ptsz(
                target: $to, source: $from, bytes: usize, stream: usize,
            ) [stream = stream] {
                submit(contiguous($target(target), $source(source), bytes)?, &stream)
            }
        )* }
    };
}

copies! {
    any_place(u64) from any_place(u64): copy_and_wait cuMemcpy, cuMemcpy_ptds,
        cuMemcpyAsync, cuMemcpyAsync_ptsz;
    device_place(u64) from host_place(Host): copy_and_wait cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds,
        cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz;
    host_place(Host) from device_place(u64): copy_and_wait cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds,
        cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz;
    // Inside the device always asynchronous to the host, as on a real GPU.
    device_place(u64) from device_place(u64): submit cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds,
        cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz;
}

/// Source or target of a 2-D copy, in C layout.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Side {
    x_bytes: usize,
    y: usize,
    memory_type: u32,
    host: Host,
    device: u64,
    array: usize,
    pitch_bytes: usize,
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Rows {
    source: Side,
    target: Side,
    width_bytes: usize,
    rows: usize,
}

const HOST: u32 = 1;
const DEVICE: u32 = 2;
const ARRAY: u32 = 3;
const UNIFIED: u32 = 4;

impl Side {
    /// Where the first row begins.
    fn place(&self) -> Outcome<Place> {
        let base = match self.memory_type {
            HOST => host_place(self.host)?,
            DEVICE => device_place(self.device)?,
            UNIFIED => any_place(self.device)?,
            ARRAY => return Err(NOT_SUPPORTED),
            _ => return Err(INVALID_VALUE),
        };
        let rows = self.y.checked_mul(self.pitch_bytes).ok_or(INVALID_VALUE)?;
        let skipped = rows.checked_add(self.x_bytes).ok_or(INVALID_VALUE)?;
        Ok(base.offset(skipped))
    }

    /// Distance between rows. A single row needs no pitch.
    fn pitch(&self, width_bytes: usize, rows: usize) -> Outcome<usize> {
        let needed = self.x_bytes.checked_add(width_bytes).ok_or(INVALID_VALUE)?;
        match self.pitch_bytes {
            0 if rows == 1 && self.y == 0 => Ok(needed),
            pitch if pitch >= needed => Ok(pitch),
            _ => Err(INVALID_VALUE),
        }
    }
}

/// Copies rows, by the driver's call with or without a stream.
fn copy_rows(rows: &In<Rows>, stream: &StreamRef, wait: bool) -> Outcome<()> {
    let Rows {
        source,
        target,
        width_bytes,
        rows,
    } = rows.read()?;
    let now = wait && stream.is_legacy;
    if width_bytes > 0 && rows > 0 {
        let copy = Copy2d {
            target: target.place()?,
            target_pitch_bytes: target.pitch(width_bytes, rows)?,
            source: source.place()?,
            source_pitch_bytes: source.pitch(width_bytes, rows)?,
            row_bytes: width_bytes,
            rows,
        };
        let driver = stream.driver();
        // SAFETY: as in `submit`.
        unsafe {
            match now {
                true => driver.copy_2d(copy)?,
                false => driver.copy_2d_async(copy, stream.handle)?,
            }
        }
    }
    if wait && !now {
        stream.synchronize()
    } else {
        Ok(())
    }
}

exports_by_default_stream! {
    /// Copies rows; the second pair, rows of any pitch.
    fn cuMemcpy2D_v2, cuMemcpy2D_v2_ptds(rows: In<Rows>),
        also cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds
    [stream = 0] {
        copy_rows(&rows, &stream, true)
    }

    /// Copies rows in stream order.
    fn cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz(rows: In<Rows>, stream: usize) [stream = stream] {
        copy_rows(&rows, &stream, false)
    }
}

/// `CUmemcpyAttributes`, as C lays it out.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Attributes {
    source_access_order: u32,
    source_hint: [u32; 2],
    target_hint: [u32; 2],
    flags: u32,
}

/// Access orders: in stream order, during the call, any.
const ACCESS_ORDERS: std::ops::RangeInclusive<u32> = 1..=3;

/// The arrays of a batch.
struct Lists {
    targets: In<u64>,
    sources: In<u64>,
    sizes: In<usize>,
    count: usize,
    attributes: In<Attributes>,
    attribute_starts: In<usize>,
    attribute_count: usize,
}

/// Why a batch was refused: the code, and the index of the copy that caused it.
type Refusal = (Code, usize);

impl Lists {
    /// Each copy belongs to the last attribute that starts at or before it.
    fn check_attributes(&self) -> Outcome<()> {
        let starts = self.attribute_starts.list(self.attribute_count)?;
        let in_order = starts.is_sorted_by(|a, b| a < b) && self.attribute_count <= self.count;
        ensure(starts.first() == Some(&0) && in_order, INVALID_VALUE)?;
        let attributes = self.attributes.list(self.attribute_count)?;
        let known = |one: &Attributes| ACCESS_ORDERS.contains(&one.source_access_order);
        ensure(attributes.iter().all(known), INVALID_VALUE)
    }

    fn copy(&self, index: usize) -> Outcome<CopyOp> {
        let bytes = self.sizes.read_at(index)?;
        ensure(bytes > 0, INVALID_VALUE)?;
        Ok(CopyOp {
            target: any_place(self.targets.read_at(index)?)?,
            source: any_place(self.sources.read_at(index)?)?,
            bytes,
        })
    }

    fn submit(&self, stream: &StreamRef) -> Result<(), Refusal> {
        let whole = |code: Code| (code, usize::MAX);
        ensure(!stream.is_legacy && self.count > 0, INVALID_VALUE).map_err(whole)?;
        self.check_attributes().map_err(whole)?;
        let copies = (0..self.count)
            .map(|index| self.copy(index).map_err(|code| (code, index)))
            .collect::<Result<Vec<_>, _>>()?;
        // SAFETY: as in `submit` above; the program also guarantees that the copies do not conflict.
        unsafe { stream.driver().copy_batch(&copies, stream.handle) }
            .map_err(|error| whole(error.into()))
    }
}

exports_by_default_stream! {
    /// Submits a batch of copies; stores the index of the one that was refused.
    fn cuMemcpyBatchAsync, cuMemcpyBatchAsync_ptsz(
        targets: In<u64>, sources: In<u64>, sizes: In<usize>, count: usize,
        attributes: In<Attributes>, attribute_starts: In<usize>, attribute_count: usize,
        failed: Out<usize>, stream: usize,
    ) [stream = stream] {
        let lists = Lists {
            targets, sources, sizes, count, attributes, attribute_starts, attribute_count,
        };
        lists.submit(&stream).map_err(|(code, index)| {
            failed.set_optional(index);
            code
        })
    }

    /// Submits a batch of copies.
    fn cuMemcpyBatchAsync_v2, cuMemcpyBatchAsync_v2_ptsz(
        targets: In<u64>, sources: In<u64>, sizes: In<usize>, count: usize,
        attributes: In<Attributes>, attribute_starts: In<usize>, attribute_count: usize,
        stream: usize,
    ) [stream = stream] {
        let lists = Lists {
            targets, sources, sizes, count, attributes, attribute_starts, attribute_count,
        };
        lists.submit(&stream).map_err(|(code, _)| code)
    }
}
