//! Copies of consecutive bytes.

use pinlane_driver::{CopyOp, DevicePtr, Place};

use crate::error::{Code, INVALID_VALUE, Outcome};
use crate::ffi::Host;
use crate::shim::exports_by_default_stream;
use crate::state::machine;
use crate::stream::Lane;

/// The place that a program passes as a device address. With unified addressing that may also be
/// pinned host memory.
pub fn device_place(address: u64) -> Outcome<Place> {
    if address == 0 {
        return Err(INVALID_VALUE);
    }
    match machine()?.ledger.find(address) {
        Some(block) if !block.kind.is_device() => Ok(Place::Host(Host::at(address).required()?)),
        // An address that nobody allocated goes on as device memory, for the simulator to judge.
        _ => Ok(Place::Device(DevicePtr(address))),
    }
}

/// The place that a program passes as a host address. A device address there would be followed,
/// so it is refused.
pub fn host_place(host: Host) -> Outcome<Place> {
    if machine()?.ledger.is_or_was_device(host.address()) {
        return Err(INVALID_VALUE);
    }
    Ok(Place::Host(host.required()?))
}

/// The place that a program passes without saying which kind it is.
pub fn any_place(address: u64) -> Outcome<Place> {
    if machine()?.ledger.is_or_was_device(address) {
        return Ok(Place::Device(DevicePtr(address)));
    }
    Ok(Place::Host(Host::at(address).required()?))
}

/// Submits a copy. No bytes are no work, wherever they lie.
fn submit(
    target: Outcome<Place>,
    source: Outcome<Place>,
    bytes: usize,
    lane: &Lane,
) -> Outcome<()> {
    if bytes == 0 {
        return Ok(());
    }
    let copy = CopyOp {
        target: target?,
        source: source?,
        bytes,
    };
    // SAFETY: the program vouches for its host memory until the copy is done; the simulator checks
    // device addresses, and watches pinned memory.
    unsafe { lane.driver().copy_async(copy, lane.stream) }.map_err(Code::from)
}

/// Copies, and returns when the bytes are there.
fn finish(
    target: Outcome<Place>,
    source: Outcome<Place>,
    bytes: usize,
    lane: &Lane,
) -> Outcome<()> {
    if lane.is_legacy && bytes != 0 {
        let copy = CopyOp {
            target: target?,
            source: source?,
            bytes,
        };
        // SAFETY: as in `submit`.
        return unsafe { lane.driver().copy(copy) }.map_err(Code::from);
    }
    submit(target, source, bytes, lane)?;
    Ok(lane.driver().stream_synchronize(lane.stream)?)
}

exports_by_default_stream! {
    /// Copies between any two places.
    fn cuMemcpy, cuMemcpy_ptds(target: u64, source: u64, bytes: usize) |mode| {
        let lane = Lane::default(mode)?;
        finish(any_place(target), any_place(source), bytes, &lane)
    }

    /// Copies between any two places, in stream order.
    fn cuMemcpyAsync, cuMemcpyAsync_ptsz(
        target: u64, source: u64, bytes: usize, stream: usize,
    ) |mode| {
        let lane = Lane::find(stream, mode)?;
        submit(any_place(target), any_place(source), bytes, &lane)
    }

    /// Copies to the device.
    fn cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds(target: u64, source: Host, bytes: usize) |mode| {
        let lane = Lane::default(mode)?;
        finish(device_place(target), host_place(source), bytes, &lane)
    }

    /// Copies to the device, in stream order.
    fn cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz(
        target: u64, source: Host, bytes: usize, stream: usize,
    ) |mode| {
        let lane = Lane::find(stream, mode)?;
        submit(device_place(target), host_place(source), bytes, &lane)
    }

    /// Copies to the host.
    fn cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds(target: Host, source: u64, bytes: usize) |mode| {
        let lane = Lane::default(mode)?;
        finish(host_place(target), device_place(source), bytes, &lane)
    }

    /// Copies to the host, in stream order.
    fn cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz(
        target: Host, source: u64, bytes: usize, stream: usize,
    ) |mode| {
        let lane = Lane::find(stream, mode)?;
        submit(host_place(target), device_place(source), bytes, &lane)
    }

    /// Copies inside the device. It runs beside the host, as it does on a real GPU.
    fn cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds(target: u64, source: u64, bytes: usize) |mode| {
        let lane = Lane::default(mode)?;
        submit(device_place(target), device_place(source), bytes, &lane)
    }

    /// Copies inside the device, in stream order.
    fn cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz(
        target: u64, source: u64, bytes: usize, stream: usize,
    ) |mode| {
        let lane = Lane::find(stream, mode)?;
        submit(device_place(target), device_place(source), bytes, &lane)
    }
}
