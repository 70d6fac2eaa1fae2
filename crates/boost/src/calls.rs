//! The wrapped calls: what each of them does, and the table by which programs get them.

use std::ffi::{c_int, c_void};
use std::mem;
use std::panic::catch_unwind;
use std::ptr::NonNull;

use pinlane_boost_files::Counter;
use pinlane_boost_files::Direction::{Download, Upload};
use pinlane_boost_files::trace::Operation;

use crate::contexts::{self, Gone};
use crate::copies::{self, HostCopy, PER_THREAD};
use crate::interpose::{WrappedCall, replace_address};
use crate::trace::{self, RecordedCall, described};
use crate::{captures, pinned, process};

/// A call's result if it succeeded.
pub(crate) const SUCCESS: u32 = 0;

/// The result if libcuda cannot be found: `CUDA_ERROR_NOT_INITIALIZED`.
const NOT_INITIALIZED: u32 = 3;

/// Defines the exported functions and their table. `plain` makes the driver's own call.
macro_rules! wrapped_calls {
    ($($name:ident($($arg:ident: $type:ty),*), $plain:ident => $body:expr;)*) => {
        $(
            /// Wraps libcuda's function.
            ///
            /// # Safety
            /// As for libcuda's.
            #[allow(non_snake_case)] // the driver's names
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $type),*) -> u32 {
                let Some(real) = TABLE[Place::$name as usize].real() else {
                    return NOT_INITIALIZED;
                };
                // SAFETY: libcuda's function of this name, which has this type.
                let real = unsafe {
                    mem::transmute::<NonNull<c_void>, unsafe extern "C" fn($($type),*) -> u32>(real)
                };
                // SAFETY: the caller's.
                let $plain = || unsafe { real($($arg),*) };
                // SAFETY: the caller's.
                #[allow(unused_unsafe)]
                let call = || unsafe { $body };
                // SAFETY: the caller's.
                #[allow(unused_unsafe)]
                trace::record(|| unsafe { described!($name($($arg),*)) }, call)
            }
        )*

        /// The place of each call in the table.
        #[allow(non_camel_case_types)] // the driver's names
        enum Place { $($name),* }

        /// Every wrapped call.
        pub(crate) static TABLE: [WrappedCall; [$(stringify!($name)),*].len()] = [
            $(WrappedCall::new(
                match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("one zero, at the end"),
                },
                $name as *const c_void,
            )),*
        ];
    };
}

/// The default stream of a device, as a handle.
pub(crate) const LEGACY: u64 = 0;

/// The stream of a call. A program is compiled either for one default stream or for one a thread.
fn stream_of(handle: *mut c_void, per_thread: bool) -> u64 {
    match handle.addr() as u64 {
        LEGACY if per_thread => PER_THREAD,
        handle => handle,
    }
}

/// The stream of a copy, and whether the call is synchronous.
#[derive(Clone, Copy)]
struct CopyStream {
    handle: u64,
    is_synchronous: bool,
}

/// A synchronous copy, on a default stream.
const fn at_once(handle: u64) -> CopyStream {
    CopyStream {
        handle,
        is_synchronous: true,
    }
}

/// A copy in the order of a stream.
fn in_order(stream: *mut c_void, per_thread: bool) -> CopyStream {
    CopyStream {
        handle: stream_of(stream, per_thread),
        is_synchronous: false,
    }
}

/// `cuMemcpy` and `cuMemcpyAsync`.
///
/// # Safety
/// As for the driver's call.
unsafe fn copy_any(
    target: u64,
    source: u64,
    bytes: usize,
    stream: CopyStream,
    plain: impl FnOnce() -> u32,
) -> u32 {
    let CopyStream {
        handle,
        is_synchronous,
    } = stream;
    // SAFETY: the caller's.
    unsafe { copies::copy_any(target, source, bytes, handle, is_synchronous, plain) }
}

fn upload(target: u64, source: *const c_void, bytes: usize, stream: CopyStream) -> HostCopy {
    HostCopy {
        direction: Upload,
        host: source.expose_provenance() as u64,
        device: target,
        bytes,
        stream: stream.handle,
        is_synchronous: stream.is_synchronous,
    }
}

fn download(target: *mut c_void, source: u64, bytes: usize, stream: CopyStream) -> HostCopy {
    HostCopy {
        direction: Download,
        host: target.expose_provenance() as u64,
        device: source,
        bytes,
        stream: stream.handle,
        is_synchronous: stream.is_synchronous,
    }
}

/// A copy that is left to the driver.
fn count_other(plain: impl FnOnce() -> u32) -> u32 {
    process::counters().add(Counter::OtherCopies, 1);
    plain()
}

/// A call that ends a context, or may.
fn destroying(gone: Gone, plain: impl FnOnce() -> u32) -> u32 {
    // A panic must not reach the program. The call is made either way.
    let _ = catch_unwind(|| contexts::forget(&gone));
    plain()
}

/// A call that returns the address of another one.
///
/// # Safety
/// `address` is where libcuda stores it.
unsafe fn finding(address: *mut *mut c_void, plain: impl FnOnce() -> u32) -> u32 {
    let code = plain();
    if code == SUCCESS {
        // SAFETY: the call has succeeded.
        unsafe { replace_address(address) };
    }
    code
}

wrapped_calls! {
    cuMemcpyHtoD_v2(target: u64, source: *const c_void, bytes: usize), plain =>
        copies::copy(upload(target, source, bytes, at_once(LEGACY)), plain);
    cuMemcpyHtoD_v2_ptds(target: u64, source: *const c_void, bytes: usize), plain =>
        copies::copy(upload(target, source, bytes, at_once(PER_THREAD)), plain);
    cuMemcpyHtoDAsync_v2(target: u64, source: *const c_void, bytes: usize, stream: *mut c_void), plain =>
        copies::copy(upload(target, source, bytes, in_order(stream, false)), plain);
    cuMemcpyHtoDAsync_v2_ptsz(target: u64, source: *const c_void, bytes: usize, stream: *mut c_void), plain =>
        copies::copy(upload(target, source, bytes, in_order(stream, true)), plain);
    cuMemcpyDtoH_v2(target: *mut c_void, source: u64, bytes: usize), plain =>
        copies::copy(download(target, source, bytes, at_once(LEGACY)), plain);
    cuMemcpyDtoH_v2_ptds(target: *mut c_void, source: u64, bytes: usize), plain =>
        copies::copy(download(target, source, bytes, at_once(PER_THREAD)), plain);
    cuMemcpyDtoHAsync_v2(target: *mut c_void, source: u64, bytes: usize, stream: *mut c_void), plain =>
        copies::copy(download(target, source, bytes, in_order(stream, false)), plain);
    cuMemcpyDtoHAsync_v2_ptsz(target: *mut c_void, source: u64, bytes: usize, stream: *mut c_void), plain =>
        copies::copy(download(target, source, bytes, in_order(stream, true)), plain);
    cuMemcpy(target: u64, source: u64, bytes: usize), plain =>
        copy_any(target, source, bytes, at_once(LEGACY), plain);
    cuMemcpy_ptds(target: u64, source: u64, bytes: usize), plain =>
        copy_any(target, source, bytes, at_once(PER_THREAD), plain);
    cuMemcpyAsync(target: u64, source: u64, bytes: usize, stream: *mut c_void), plain =>
        copy_any(target, source, bytes, in_order(stream, false), plain);
    cuMemcpyAsync_ptsz(target: u64, source: u64, bytes: usize, stream: *mut c_void), plain =>
        copy_any(target, source, bytes, in_order(stream, true), plain);

    cuMemcpy2D_v2(rows: *const c_void), plain => count_other(plain);
    cuMemcpy2D_v2_ptds(rows: *const c_void), plain => count_other(plain);
    cuMemcpy2DUnaligned_v2(rows: *const c_void), plain => count_other(plain);
    cuMemcpy2DUnaligned_v2_ptds(rows: *const c_void), plain => count_other(plain);
    cuMemcpy2DAsync_v2(rows: *const c_void, stream: *mut c_void), plain => count_other(plain);
    cuMemcpy2DAsync_v2_ptsz(rows: *const c_void, stream: *mut c_void), plain => count_other(plain);
    cuMemcpy3D_v2(block: *const c_void), plain => count_other(plain);
    cuMemcpy3D_v2_ptds(block: *const c_void), plain => count_other(plain);
    cuMemcpy3DAsync_v2(block: *const c_void, stream: *mut c_void), plain => count_other(plain);
    cuMemcpy3DAsync_v2_ptsz(block: *const c_void, stream: *mut c_void), plain => count_other(plain);

    cuMemHostAlloc(host: *mut *mut c_void, bytes: usize, flags: u32), plain =>
        pinned::alloc(host, bytes, flags, plain);
    cuMemAllocHost_v2(host: *mut *mut c_void, bytes: usize), plain =>
        pinned::alloc(host, bytes, 0, plain);
    cuMemFreeHost(host: *mut c_void), plain => pinned::free(host, plain);
    cuMemHostGetFlags(flags: *mut u32, host: *mut c_void), plain =>
        pinned::flags(flags, host, plain);
    cuMemHostUnregister(host: *mut c_void), plain => pinned::unregister(host, plain);

    cuStreamBeginCapture(stream: *mut c_void), plain => captures::begin(plain);
    cuStreamBeginCapture_ptsz(stream: *mut c_void), plain => captures::begin(plain);
    cuStreamBeginCapture_v2(stream: *mut c_void, mode: u32), plain => captures::begin(plain);
    cuStreamBeginCapture_v2_ptsz(stream: *mut c_void, mode: u32), plain => captures::begin(plain);
    cuStreamBeginCaptureToGraph(
        stream: *mut c_void, graph: *mut c_void, nodes: *const c_void, edges: *const c_void, count: usize, mode: u32
    ), plain => captures::begin(plain);
    cuStreamBeginCaptureToGraph_ptsz(
        stream: *mut c_void, graph: *mut c_void, nodes: *const c_void, edges: *const c_void, count: usize, mode: u32
    ), plain => captures::begin(plain);
    cuStreamEndCapture(stream: *mut c_void, graph: *mut c_void), plain => captures::end(plain);
    cuStreamEndCapture_ptsz(stream: *mut c_void, graph: *mut c_void), plain => captures::end(plain);

    cuCtxDestroy(context: *mut c_void), plain => destroying(Gone::Destroyed(context.addr() as u64), plain);
    cuCtxDestroy_v2(context: *mut c_void), plain => destroying(Gone::Destroyed(context.addr() as u64), plain);
    cuCtxDetach(context: *mut c_void), plain => destroying(Gone::Destroyed(context.addr() as u64), plain);
    cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int), plain =>
        contexts::retain(device, plain);
    cuDevicePrimaryCtxReset(device: c_int), plain => destroying(Gone::Reset(device), plain);
    cuDevicePrimaryCtxReset_v2(device: c_int), plain => destroying(Gone::Reset(device), plain);
    cuDevicePrimaryCtxRelease(device: c_int), plain => destroying(Gone::Released(device), plain);
    cuDevicePrimaryCtxRelease_v2(device: c_int), plain => destroying(Gone::Released(device), plain);

    cuGetProcAddress(name: *const c_void, address: *mut *mut c_void, version: c_int, flags: u64), plain => finding(address, plain);
    cuGetProcAddress_v2(
        name: *const c_void, address: *mut *mut c_void, version: c_int, flags: u64, status: *mut c_void
    ), plain => finding(address, plain);

    // Only traced.
    cuMemcpyDtoD_v2(target: u64, source: u64, bytes: usize), plain => count_other(plain);
    cuMemcpyDtoD_v2_ptds(target: u64, source: u64, bytes: usize), plain => count_other(plain);
    cuMemcpyDtoDAsync_v2(target: u64, source: u64, bytes: usize, stream: *mut c_void), plain => count_other(plain);
    cuMemcpyDtoDAsync_v2_ptsz(target: u64, source: u64, bytes: usize, stream: *mut c_void), plain =>
        count_other(plain);
    cuMemcpyBatchAsync(
        targets: *const u64, sources: *const u64, sizes: *const usize, count: usize, attributes: *const c_void,
        indices: *const c_void, attribute_count: usize, failed: *mut usize, stream: *mut c_void
    ), plain => count_other(plain);
    cuMemcpyBatchAsync_ptsz(
        targets: *const u64, sources: *const u64, sizes: *const usize, count: usize, attributes: *const c_void,
        indices: *const c_void, attribute_count: usize, failed: *mut usize, stream: *mut c_void
    ), plain => count_other(plain);
    cuMemcpyBatchAsync_v2(
        targets: *const u64, sources: *const u64, sizes: *const usize, count: usize, attributes: *const c_void,
        indices: *const c_void, attribute_count: usize, stream: *mut c_void
    ), plain => count_other(plain);
    cuMemcpyBatchAsync_v2_ptsz(
        targets: *const u64, sources: *const u64, sizes: *const usize, count: usize, attributes: *const c_void,
        indices: *const c_void, attribute_count: usize, stream: *mut c_void
    ), plain => count_other(plain);
    cuMemHostRegister_v2(host: *mut c_void, bytes: usize, flags: u32), plain => plain();
    cuStreamSynchronize(stream: *mut c_void), plain => plain();
    cuStreamSynchronize_ptsz(stream: *mut c_void), plain => plain();
    cuEventSynchronize(event: *mut c_void), plain => plain();
    cuCtxSynchronize(), plain => plain();
    cuCtxSynchronize_v2(context: *mut c_void), plain => plain();
    cuEventRecord(event: *mut c_void, stream: *mut c_void), plain => plain();
    cuEventRecord_ptsz(event: *mut c_void, stream: *mut c_void), plain => plain();
    cuEventRecordWithFlags(event: *mut c_void, stream: *mut c_void, flags: u32), plain => plain();
    cuEventRecordWithFlags_ptsz(event: *mut c_void, stream: *mut c_void, flags: u32), plain => plain();
    cuStreamWaitEvent(stream: *mut c_void, event: *mut c_void, flags: u32), plain => plain();
    cuStreamWaitEvent_ptsz(stream: *mut c_void, event: *mut c_void, flags: u32), plain => plain();
    cuEventQuery(event: *mut c_void), plain => plain();
    cuStreamQuery(stream: *mut c_void), plain => plain();
    cuStreamQuery_ptsz(stream: *mut c_void), plain => plain();
    cuStreamCreate(stream: *mut *mut c_void, flags: u32), plain => plain();
    cuStreamCreateWithPriority(stream: *mut *mut c_void, flags: u32, priority: c_int), plain => plain();

    cuLaunchKernel(
        kernel: *mut c_void, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32, shared: u32,
        stream: *mut c_void, parameters: *mut c_void, extra: *mut c_void
    ), plain => trace::count_launch(plain);
    cuLaunchKernel_ptsz(
        kernel: *mut c_void, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32, shared: u32,
        stream: *mut c_void, parameters: *mut c_void, extra: *mut c_void
    ), plain => trace::count_launch(plain);
    cuLaunchKernelEx(config: *const c_void, kernel: *mut c_void, parameters: *mut c_void, extra: *mut c_void), plain =>
        trace::count_launch(plain);
    cuLaunchKernelEx_ptsz(config: *const c_void, kernel: *mut c_void, parameters: *mut c_void, extra: *mut c_void), plain =>
        trace::count_launch(plain);
    cuMemsetD8Async(target: u64, value: u8, count: usize, stream: *mut c_void), plain =>
        trace::count_launch(plain);
    cuMemsetD16Async(target: u64, value: u16, count: usize, stream: *mut c_void), plain =>
        trace::count_launch(plain);
    cuMemsetD32Async(target: u64, value: u32, count: usize, stream: *mut c_void), plain =>
        trace::count_launch(plain);
    cuLaunchCooperativeKernel(
        kernel: *mut c_void, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32, shared: u32,
        stream: *mut c_void, parameters: *mut c_void
    ), plain => trace::count_launch(plain);
    cuLaunchHostFunc(stream: *mut c_void, function: *mut c_void, data: *mut c_void), plain =>
        trace::count_launch(plain);
    cuMemsetD8Async_ptsz(target: u64, value: u8, count: usize, stream: *mut c_void), plain =>
        trace::count_launch(plain);
    cuMemsetD16Async_ptsz(target: u64, value: u16, count: usize, stream: *mut c_void), plain =>
        trace::count_launch(plain);
    cuMemsetD32Async_ptsz(target: u64, value: u32, count: usize, stream: *mut c_void), plain =>
        trace::count_launch(plain);
    cuLaunchCooperativeKernel_ptsz(
        kernel: *mut c_void, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32, shared: u32,
        stream: *mut c_void, parameters: *mut c_void
    ), plain => trace::count_launch(plain);
    cuLaunchHostFunc_ptsz(stream: *mut c_void, function: *mut c_void, data: *mut c_void), plain =>
        trace::count_launch(plain);
    cuGraphLaunch(graph: *mut c_void, stream: *mut c_void), plain => trace::count_launch(plain);
    cuGraphLaunch_ptsz(graph: *mut c_void, stream: *mut c_void), plain => trace::count_launch(plain);
}
