//! Copies of bytes and of rows, synchronous and in stream order, single and in batches.

use std::ptr;

use cudarc::driver::sys::CUmemorytype::{CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST};
use cudarc::driver::sys::{
    CUDA_MEMCPY2D, CUdeviceptr, CUmemLocation, CUmemLocationType, CUmemcpyAttributes,
    CUmemcpySrcAccessOrder,
};
use pinlane_driver::{Copy2d, CopyOp, Error, ErrorKind, Place, Result, StreamHandle};

use crate::handles::{DEFAULT_STREAM, raw_stream};
use crate::open_device::{CudaDevice, device_call};

impl CudaDevice {
    pub(crate) unsafe fn copy(&self, copy: CopyOp) -> Result<()> {
        if copy.bytes == 0 {
            return Ok(());
        }
        let bytes = copy.bytes;
        // SAFETY: the caller guarantees both places until the copy is done, which is before this
        // function returns.
        unsafe {
            match (copy.target, copy.source) {
                (Place::Device(target), Place::Host(source)) => {
                    device_call!(self.cuMemcpyHtoD_v2(target.0, source.as_ptr().cast(), bytes))
                }
                (Place::Host(target), Place::Device(source)) => {
                    let target = target.as_ptr().cast();
                    return device_call!(self.cuMemcpyDtoH_v2(target, source.0, bytes));
                }
                (Place::Device(target), Place::Device(source)) => {
                    device_call!(self.cuMemcpyDtoD_v2(target.0, source.0, bytes))
                }
                // In the default stream, as the calls above.
                (Place::Host(_), Place::Host(_)) => self.copy_async(copy, DEFAULT_STREAM),
            }
        }?;
        // A copy from pageable memory returns once the source is staged, and one within the device
        // at once: the bytes have arrived when the stream is empty.
        // SAFETY: the default stream always exists.
        unsafe { self.stream_synchronize(DEFAULT_STREAM) }
    }

    pub(crate) unsafe fn copy_async(&self, copy: CopyOp, stream: StreamHandle) -> Result<()> {
        if copy.bytes == 0 {
            return Ok(());
        }
        let (bytes, stream) = (copy.bytes, raw_stream(stream));
        // SAFETY: the caller guarantees both places until the copy is done.
        unsafe {
            match (copy.target, copy.source) {
                (Place::Device(target), Place::Host(source)) => {
                    let source = source.as_ptr().cast();
                    device_call!(self.cuMemcpyHtoDAsync_v2(target.0, source, bytes, stream))
                }
                (Place::Host(target), Place::Device(source)) => {
                    let target = target.as_ptr().cast();
                    device_call!(self.cuMemcpyDtoHAsync_v2(target, source.0, bytes, stream))
                }
                (Place::Device(target), Place::Device(source)) => {
                    device_call!(self.cuMemcpyDtoDAsync_v2(target.0, source.0, bytes, stream))
                }
                (Place::Host(_), Place::Host(_)) => {
                    let (target, source) = (address_of(copy.target), address_of(copy.source));
                    device_call!(self.cuMemcpyAsync(target, source, bytes, stream))
                }
            }
        }
    }

    pub(crate) unsafe fn copy_2d(&self, copy: Copy2d) -> Result<()> {
        if copy.row_bytes == 0 || copy.rows == 0 {
            return Ok(());
        }
        // SAFETY: the caller guarantees every row until the copy is done, which is before this
        // function returns. This variant takes any pitch.
        unsafe { device_call!(self.cuMemcpy2DUnaligned_v2(&rows_of(copy))) }?;
        // As in `copy`, the call may return early.
        // SAFETY: the default stream always exists.
        unsafe { self.stream_synchronize(DEFAULT_STREAM) }
    }

    pub(crate) unsafe fn copy_2d_async(&self, copy: Copy2d, stream: StreamHandle) -> Result<()> {
        if copy.row_bytes == 0 || copy.rows == 0 {
            return Ok(());
        }
        // SAFETY: the caller guarantees every row until the copy is done. The driver reads the
        // description before the call returns.
        unsafe { device_call!(self.cuMemcpy2DAsync_v2(&rows_of(copy), raw_stream(stream))) }
    }

    pub(crate) unsafe fn copy_batch(&self, copies: &[CopyOp], stream: StreamHandle) -> Result<()> {
        let call = "cuMemcpyBatchAsync";
        let batch = match self.calls().cuMemcpyBatchAsync {
            Some(batch) if self.info.batch_copy => batch,
            _ => return Err(Error::new(ErrorKind::NotSupported, call)),
        };
        if stream == DEFAULT_STREAM {
            // The driver accepts no batch in this stream.
            return copies.iter().try_for_each(|copy| {
                // SAFETY: the caller guarantees every copy.
                unsafe { self.copy_async(*copy, stream) }
            });
        }
        let copies: Vec<&CopyOp> = copies.iter().filter(|copy| copy.bytes != 0).collect();
        if copies.is_empty() {
            return Ok(());
        }
        let mut targets: Vec<_> = copies.iter().map(|copy| address_of(copy.target)).collect();
        let mut sources: Vec<_> = copies.iter().map(|copy| address_of(copy.source)).collect();
        let mut sizes: Vec<_> = copies.iter().map(|copy| copy.bytes).collect();
        // One set of attributes, which applies from the first copy on.
        let (mut attributes, mut first, mut failed) = (in_stream_order(), 0, usize::MAX);
        let _current = self.enter()?;
        // SAFETY: the caller guarantees every copy until it is done. The lists have one entry per
        // copy, and the driver reads them before the call returns.
        let code = unsafe {
            batch(
                targets.as_mut_ptr(),
                sources.as_mut_ptr(),
                sizes.as_mut_ptr(),
                sizes.len(),
                &mut attributes,
                &mut first,
                1,
                &mut failed,
                raw_stream(stream),
            )
        };
        self.library.check(call, code).map_err(|error| {
            let Some(copy) = copies.get(failed) else {
                return error;
            };
            let detail = format!("{}; at {copy:?}", error.detail);
            error.with_detail(detail)
        })
    }
}

/// The address of a place. Host and device share an address space.
fn address_of(place: Place) -> CUdeviceptr {
    match place {
        Place::Host(ptr) => ptr.as_ptr().expose_provenance() as u64,
        Place::Device(ptr) => ptr.0,
    }
}

/// Attributes of a batch that reads its sources in stream order.
fn in_stream_order() -> CUmemcpyAttributes {
    let nowhere = CUmemLocation {
        type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_INVALID,
        id: 0,
    };
    CUmemcpyAttributes {
        srcAccessOrder: CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
        srcLocHint: nowhere,
        dstLocHint: nowhere,
        flags: 0,
    }
}

/// libcuda's description of a copy of rows.
fn rows_of(copy: Copy2d) -> CUDA_MEMCPY2D {
    let parts = |place| match place {
        Place::Host(host) => (CU_MEMORYTYPE_HOST, host.as_ptr(), 0),
        Place::Device(device) => (CU_MEMORYTYPE_DEVICE, ptr::null_mut(), device.0),
    };
    let (source_type, source_host, source_device) = parts(copy.source);
    let (target_type, target_host, target_device) = parts(copy.target);
    CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: source_type,
        srcHost: source_host.cast_const().cast(),
        srcDevice: source_device,
        srcArray: ptr::null_mut(),
        srcPitch: copy.source_pitch_bytes,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: target_type,
        dstHost: target_host.cast(),
        dstDevice: target_device,
        dstArray: ptr::null_mut(),
        dstPitch: copy.target_pitch_bytes,
        WidthInBytes: copy.row_bytes,
        Height: copy.rows,
    }
}
