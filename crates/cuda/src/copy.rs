//! Copies: one or many, of bytes or of rows, finished or in stream order.

use std::ptr;

use cudarc::driver::sys::CUmemorytype::{CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST};
use cudarc::driver::sys::{
    CUDA_MEMCPY2D, CUdeviceptr, CUmemLocation, CUmemLocationType, CUmemcpyAttributes,
    CUmemcpySrcAccessOrder, CUmemorytype,
};
use pinlane_driver::{Copy2d, CopyOp, Error, ErrorKind, Place, Result, StreamHandle};

use crate::device::CudaDevice;
use crate::stream::{DEFAULT_STREAM, raw_stream};

impl CudaDevice {
    /// # Safety
    /// As for the trait's method.
    pub(crate) unsafe fn copy(&self, copy: CopyOp) -> Result<()> {
        if copy.bytes == 0 {
            return Ok(());
        }
        let _current = self.enter()?;
        let (calls, bytes) = (self.calls(), copy.bytes);
        // SAFETY: the caller vouches for both places until the copy is done, which is before this
        // function returns.
        let (call, code) = unsafe {
            match (copy.target, copy.source) {
                (Place::Device(target), Place::Host(source)) => (
                    "cuMemcpyHtoD_v2",
                    (calls.cuMemcpyHtoD_v2)(target.0, source.as_ptr().cast(), bytes),
                ),
                (Place::Host(target), Place::Device(source)) => (
                    "cuMemcpyDtoH_v2",
                    (calls.cuMemcpyDtoH_v2)(target.as_ptr().cast(), source.0, bytes),
                ),
                (Place::Device(target), Place::Device(source)) => (
                    "cuMemcpyDtoD_v2",
                    (calls.cuMemcpyDtoD_v2)(target.0, source.0, bytes),
                ),
                // In the default stream as its siblings, so that it has their order.
                (Place::Host(_), Place::Host(_)) => {
                    return self
                        .copy_async(copy, DEFAULT_STREAM)
                        .and_then(|()| self.stream_synchronize(DEFAULT_STREAM));
                }
            }
        };
        self.check(call, code)?;
        // From pageable memory the call returns once the source is staged, and between places on
        // the device at once: the bytes are there only when the stream is empty.
        match copy.target {
            Place::Device(_) => self.stream_synchronize(DEFAULT_STREAM),
            Place::Host(_) => Ok(()),
        }
    }

    /// # Safety
    /// As for the trait's method.
    pub(crate) unsafe fn copy_async(&self, copy: CopyOp, stream: StreamHandle) -> Result<()> {
        if copy.bytes == 0 {
            return Ok(());
        }
        let _current = self.enter()?;
        let (calls, bytes, stream) = (self.calls(), copy.bytes, raw_stream(stream));
        // SAFETY: the caller vouches for both places until the copy is done.
        let (call, code) = unsafe {
            match (copy.target, copy.source) {
                (Place::Device(target), Place::Host(source)) => (
                    "cuMemcpyHtoDAsync_v2",
                    (calls.cuMemcpyHtoDAsync_v2)(target.0, source.as_ptr().cast(), bytes, stream),
                ),
                (Place::Host(target), Place::Device(source)) => (
                    "cuMemcpyDtoHAsync_v2",
                    (calls.cuMemcpyDtoHAsync_v2)(target.as_ptr().cast(), source.0, bytes, stream),
                ),
                (Place::Device(target), Place::Device(source)) => (
                    "cuMemcpyDtoDAsync_v2",
                    (calls.cuMemcpyDtoDAsync_v2)(target.0, source.0, bytes, stream),
                ),
                (Place::Host(_), Place::Host(_)) => (
                    "cuMemcpyAsync",
                    (calls.cuMemcpyAsync)(
                        address_of(copy.target),
                        address_of(copy.source),
                        bytes,
                        stream,
                    ),
                ),
            }
        };
        self.check(call, code)
    }

    /// # Safety
    /// As for the trait's method.
    pub(crate) unsafe fn copy_2d(&self, copy: Copy2d) -> Result<()> {
        if copy.row_bytes == 0 || copy.rows == 0 {
            return Ok(());
        }
        let _current = self.enter()?;
        let rows = rows_of(copy);
        // SAFETY: the caller vouches for every row until the copy is done, which is before this
        // function returns. This variant takes any pitch.
        let code = unsafe { (self.calls().cuMemcpy2DUnaligned_v2)(&rows) };
        self.check("cuMemcpy2DUnaligned_v2", code)?;
        // As for `copy`: the call may return early.
        self.stream_synchronize(DEFAULT_STREAM)
    }

    /// # Safety
    /// As for the trait's method.
    pub(crate) unsafe fn copy_2d_async(&self, copy: Copy2d, stream: StreamHandle) -> Result<()> {
        if copy.row_bytes == 0 || copy.rows == 0 {
            return Ok(());
        }
        let _current = self.enter()?;
        let rows = rows_of(copy);
        // SAFETY: the caller vouches for every row until the copy is done; the description is
        // read before the call returns.
        let code = unsafe { (self.calls().cuMemcpy2DAsync_v2)(&rows, raw_stream(stream)) };
        self.check("cuMemcpy2DAsync_v2", code)
    }

    /// # Safety
    /// As for the trait's method.
    pub(crate) unsafe fn copy_batch(&self, copies: &[CopyOp], stream: StreamHandle) -> Result<()> {
        let call = "cuMemcpyBatchAsync";
        let batch = match self.calls().cuMemcpyBatchAsync {
            Some(batch) if self.info.batch_copy => batch,
            _ => return Err(Error::new(ErrorKind::NotSupported, call)),
        };
        if stream == DEFAULT_STREAM {
            // The driver takes no batch in this stream.
            return copies.iter().try_for_each(|copy| {
                // SAFETY: the caller vouches for every copy.
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
        // One set of attributes, which holds from the first copy on.
        let (mut attributes, mut first, mut failed) = (in_stream_order(), 0, usize::MAX);
        let _current = self.enter()?;
        // SAFETY: the caller vouches for every copy until it is done; the lists have one entry a
        // copy and are read before the call returns.
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
        self.check(call, code).map_err(|error| {
            let Some(copy) = copies.get(failed) else {
                return error;
            };
            let detail = format!("{}; at {copy:?}", error.detail);
            error.with_detail(detail)
        })
    }
}

/// The address of a place. Host and device share one address space.
fn address_of(place: Place) -> CUdeviceptr {
    match place {
        Place::Host(ptr) => ptr.as_ptr().expose_provenance() as u64,
        Place::Device(ptr) => ptr.0,
    }
}

/// Attributes of a batch whose sources are read when the stream gets there.
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

/// The driver's description of a copy of rows.
fn rows_of(copy: Copy2d) -> CUDA_MEMCPY2D {
    let kind_of = |place| -> CUmemorytype {
        match place {
            Place::Host(_) => CU_MEMORYTYPE_HOST,
            Place::Device(_) => CU_MEMORYTYPE_DEVICE,
        }
    };
    let host_of = |place| match place {
        Place::Host(ptr) => ptr.as_ptr(),
        Place::Device(_) => ptr::null_mut(),
    };
    let device_of = |place| match place {
        Place::Host(_) => 0,
        Place::Device(ptr) => ptr.0,
    };
    CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: kind_of(copy.source),
        srcHost: host_of(copy.source).cast_const().cast(),
        srcDevice: device_of(copy.source),
        srcArray: ptr::null_mut(),
        srcPitch: copy.source_pitch_bytes,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: kind_of(copy.target),
        dstHost: host_of(copy.target).cast(),
        dstDevice: device_of(copy.target),
        dstArray: ptr::null_mut(),
        dstPitch: copy.target_pitch_bytes,
        WidthInBytes: copy.row_bytes,
        Height: copy.rows,
    }
}
