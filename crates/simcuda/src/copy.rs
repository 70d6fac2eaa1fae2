//! Copies of contiguous bytes.

use pinlane_driver::{CopyOp, DevicePtr, Place};

use crate::error::{Code, INVALID_VALUE, Outcome};
use crate::exports::exports_by_default_stream;
use crate::ffi::Host;
use crate::machine::machine;
use crate::stream::StreamRef;

/// The place of a device address. With unified addressing, that may be pinned host memory.
pub fn device_place(address: u64) -> Outcome<Place> {
    if address == 0 {
        return Err(INVALID_VALUE);
    }
    match machine()?.allocations.find(address) {
        Some(block) if !block.kind.is_device() => Ok(Place::Host(Host::at(address).required()?)),
        // The simulator rejects addresses that are not allocated.
        _ => Ok(Place::Device(DevicePtr(address))),
    }
}

/// The place of a host address. A device address is refused, because it would be dereferenced.
pub fn host_place(host: Host) -> Outcome<Place> {
    if machine()?.allocations.is_or_was_device(host.address()) {
        return Err(INVALID_VALUE);
    }
    Ok(Place::Host(host.required()?))
}

/// The place of an address of either kind.
pub fn any_place(address: u64) -> Outcome<Place> {
    if machine()?.allocations.is_or_was_device(address) {
        return Ok(Place::Device(DevicePtr(address)));
    }
    Ok(Place::Host(Host::at(address).required()?))
}

/// Submits a copy. An empty one is valid with any addresses.
fn submit(
    target: Outcome<Place>,
    source: Outcome<Place>,
    bytes: usize,
    stream: &StreamRef,
) -> Outcome<()> {
    if bytes == 0 {
        return Ok(());
    }
    let copy = CopyOp {
        target: target?,
        source: source?,
        bytes,
    };
    // SAFETY: the program guarantees that its host memory is valid until the copy is done. The
    // simulator checks device addresses and pinned memory.
    unsafe { stream.driver().copy_async(copy, stream.handle) }.map_err(Code::from)
}

/// Copies, and waits until that is done.
fn copy_and_wait(
    target: Outcome<Place>,
    source: Outcome<Place>,
    bytes: usize,
    stream: &StreamRef,
) -> Outcome<()> {
    if stream.is_legacy && bytes != 0 {
        let copy = CopyOp {
            target: target?,
            source: source?,
            bytes,
        };
        // SAFETY: as in `submit`.
        return unsafe { stream.driver().copy(copy) }.map_err(Code::from);
    }
    submit(target, source, bytes, stream)?;
    Ok(stream.driver().stream_synchronize(stream.handle)?)
}

exports_by_default_stream! {
    /// Copies between any two places.
    fn cuMemcpy, cuMemcpy_ptds(target: u64, source: u64, bytes: usize) |mode| {
        let stream = StreamRef::default(mode)?;
        copy_and_wait(any_place(target), any_place(source), bytes, &stream)
    }

    /// Copies between any two places, in stream order.
    fn cuMemcpyAsync, cuMemcpyAsync_ptsz(
        target: u64, source: u64, bytes: usize, stream: usize,
    ) |mode| {
        let stream = StreamRef::find(stream, mode)?;
        submit(any_place(target), any_place(source), bytes, &stream)
    }

    /// Copies to the device.
    fn cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds(target: u64, source: Host, bytes: usize) |mode| {
        let stream = StreamRef::default(mode)?;
        copy_and_wait(device_place(target), host_place(source), bytes, &stream)
    }

    /// Copies to the device, in stream order.
    fn cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz(
        target: u64, source: Host, bytes: usize, stream: usize,
    ) |mode| {
        let stream = StreamRef::find(stream, mode)?;
        submit(device_place(target), host_place(source), bytes, &stream)
    }

    /// Copies to the host.
    fn cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds(target: Host, source: u64, bytes: usize) |mode| {
        let stream = StreamRef::default(mode)?;
        copy_and_wait(host_place(target), device_place(source), bytes, &stream)
    }

    /// Copies to the host, in stream order.
    fn cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz(
        target: Host, source: u64, bytes: usize, stream: usize,
    ) |mode| {
        let stream = StreamRef::find(stream, mode)?;
        submit(host_place(target), device_place(source), bytes, &stream)
    }

    /// Copies inside the device; asynchronous to the host, as on a real GPU.
    fn cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds(target: u64, source: u64, bytes: usize) |mode| {
        let stream = StreamRef::default(mode)?;
        submit(device_place(target), device_place(source), bytes, &stream)
    }

    /// Copies inside the device, in stream order.
    fn cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz(
        target: u64, source: u64, bytes: usize, stream: usize,
    ) |mode| {
        let stream = StreamRef::find(stream, mode)?;
        submit(device_place(target), device_place(source), bytes, &stream)
    }
}
