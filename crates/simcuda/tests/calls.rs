//! 2-D copies, batches, fills, callbacks, pointer attributes, pools, and forms of kernel arguments.

mod support;

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use cudarc::driver::sys::{self, CUresult};
use support::api::{SUCCESS, cu, enter, leave, made};
use support::{complaints, in_child, whole};

const INVALID_VALUE: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

/// Runs a program on device 0 and expects nothing to be reported.
fn on_device(name: &str, program: impl FnOnce()) {
    let whole_program = || {
        enter(0);
        program();
        leave(0);
    };
    if let Some(report) = in_child(whole, name, &[], whole_program) {
        assert_eq!(complaints(&report), [""; 0]);
    }
}

/// The bytes at a device address.
fn read(device: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0u8; count];
    assert_eq!(
        cu!(cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), device, count)),
        SUCCESS
    );
    bytes
}

#[test]
fn rows_are_copied_with_their_pitches_and_offsets() {
    on_device("rows_are_copied_with_their_pitches_and_offsets", || {
        let mut pitch = 0usize;
        let mut device = 0u64;
        assert_eq!(
            cu!(cuMemAllocPitch_v2(&mut device, &mut pitch, 100, 4, 4)),
            SUCCESS
        );
        assert!(pitch >= 100 && pitch.is_multiple_of(512));
        let source: Vec<u8> = (0..=255).collect();
        let mut copy = sys::CUDA_MEMCPY2D {
            srcXInBytes: 2,
            srcY: 1,
            srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_HOST,
            srcHost: source.as_ptr().cast(),
            srcDevice: 0,
            srcArray: ptr::null_mut(),
            srcPitch: 16,
            dstXInBytes: 8,
            dstY: 0,
            dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstHost: ptr::null_mut(),
            dstDevice: device,
            dstArray: ptr::null_mut(),
            dstPitch: pitch,
            WidthInBytes: 4,
            Height: 3,
        };
        assert_eq!(cu!(cuMemcpy2D_v2(&copy)), SUCCESS);
        for row in 0..3 {
            let first = (row as u8 + 1) * 16 + 2;
            let bytes = read(device + (row * pitch) as u64 + 8, 4);
            assert_eq!(bytes, [first, first + 1, first + 2, first + 3]);
        }
        copy.srcPitch = 5;
        assert_eq!(
            cu!(cuMemcpy2D_v2(&copy)),
            INVALID_VALUE,
            "rows would overlap"
        );
        copy.srcMemoryType = sys::CUmemorytype::CU_MEMORYTYPE_ARRAY;
        assert_eq!(
            cu!(cuMemcpy2D_v2(&copy)),
            CUresult::CUDA_ERROR_NOT_SUPPORTED
        );
        assert_eq!(cu!(cuMemFree_v2(device)), SUCCESS);
    });
}

#[test]
fn a_batch_copies_all_or_names_the_refused_copy() {
    on_device("a_batch_copies_all_or_names_the_refused_copy", || {
        let stream: sys::CUstream = made!(cuStreamCreate(1));
        let device: u64 = made!(cuMemAlloc_v2(64));
        let host: *mut c_void = made!(cuMemHostAlloc(64, 0));
        // SAFETY: 64 bytes that nothing uses yet.
        unsafe { host.cast::<u8>().write_bytes(9, 64) };
        let mut targets = [device, device + 32];
        let mut sources = [host as u64, host as u64 + 8];
        let mut sizes = [8usize, 16];
        // SAFETY: zero is a valid value of each field.
        let mut attributes: sys::CUmemcpyAttributes = unsafe { std::mem::zeroed() };
        attributes.srcAccessOrder = sys::CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
        let (mut start, mut blamed) = (0usize, 77usize);
        let mut submit = |sizes: &mut [usize; 2], stream| {
            let (targets, sources) = (targets.as_mut_ptr(), sources.as_mut_ptr());
            let (sizes, blamed) = (sizes.as_mut_ptr(), &mut blamed);
            cu!(cuMemcpyBatchAsync(
                targets,
                sources,
                sizes,
                2,
                &mut attributes,
                &mut start,
                1,
                blamed,
                stream
            ))
        };
        assert_eq!(submit(&mut sizes, stream), SUCCESS);
        assert_eq!(cu!(cuStreamSynchronize(stream)), SUCCESS);
        assert_eq!(read(device, 8), [9; 8]);
        assert_eq!(read(device + 32, 16), [9; 16]);
        assert_eq!(
            submit(&mut sizes, ptr::null_mut()),
            INVALID_VALUE,
            "not on stream 0"
        );
        sizes[1] = 0;
        assert_eq!(submit(&mut sizes, stream), INVALID_VALUE);
        assert_eq!(blamed, 1);
        assert_eq!(cu!(cuMemFreeHost(host)), SUCCESS);
        assert_eq!(cu!(cuMemFree_v2(device)), SUCCESS);
        assert_eq!(cu!(cuStreamDestroy_v2(stream)), SUCCESS);
    });
}

#[test]
fn memory_is_filled_with_wider_values_and_by_rows() {
    on_device("memory_is_filled_with_wider_values_and_by_rows", || {
        let device: u64 = made!(cuMemAlloc_v2(64));
        assert_eq!(cu!(cuMemsetD8_v2(device, 0xee, 64)), SUCCESS);
        assert_eq!(cu!(cuMemsetD16_v2(device, 0x0102, 2)), SUCCESS);
        assert_eq!(cu!(cuMemsetD32_v2(device + 4, 0x0304_0506, 1)), SUCCESS);
        assert_eq!(cu!(cuMemsetD2D8_v2(device + 16, 8, 7, 2, 2)), SUCCESS);
        assert_eq!(read(device, 8), [2, 1, 2, 1, 6, 5, 4, 3]);
        let expected = [7, 7, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 7, 7, 0xee];
        assert_eq!(read(device + 16, 11), expected);
        assert_eq!(
            cu!(cuMemsetD32_v2(device + 1, 0, 1)),
            INVALID_VALUE,
            "not aligned"
        );
        assert_eq!(cu!(cuMemFree_v2(device)), SUCCESS);
    });
}

static CALLS: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn count_status(_: sys::CUstream, status: CUresult, data: *mut c_void) {
    if status == SUCCESS && data.addr() == 5 {
        CALLS.fetch_add(1, Ordering::SeqCst);
    }
}

unsafe extern "C" fn count(data: *mut c_void) {
    if data.addr() == 6 {
        CALLS.fetch_add(10, Ordering::SeqCst);
    }
}

#[test]
fn callbacks_run_in_stream_order() {
    on_device("callbacks_run_in_stream_order", || {
        let stream: sys::CUstream = made!(cuStreamCreate(0));
        let (five, six) = (
            ptr::without_provenance_mut(5),
            ptr::without_provenance_mut(6),
        );
        assert_eq!(
            cu!(cuStreamAddCallback(stream, Some(count_status), five, 0)),
            SUCCESS
        );
        assert_eq!(cu!(cuLaunchHostFunc(stream, Some(count), six)), SUCCESS);
        assert_eq!(
            cu!(cuStreamAddCallback(stream, None, five, 0)),
            INVALID_VALUE
        );
        assert_eq!(cu!(cuStreamSynchronize(stream)), SUCCESS);
        assert_eq!(CALLS.load(Ordering::SeqCst), 11);
        assert_eq!(cu!(cuStreamDestroy_v2(stream)), SUCCESS);
    });
}

/// Memory type, ordinal and base of an address, by one query.
fn describe(address: u64) -> (u32, c_int, u64) {
    use sys::CUpointer_attribute as Attribute;
    let mut which = [
        Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
    ];
    let (mut kind, mut ordinal, mut base) = (u32::MAX, c_int::MAX, u64::MAX);
    let mut targets: [*mut c_void; 3] = [
        (&raw mut kind).cast(),
        (&raw mut ordinal).cast(),
        (&raw mut base).cast(),
    ];
    let asked = cu!(cuPointerGetAttributes(
        3,
        which.as_mut_ptr(),
        targets.as_mut_ptr(),
        address
    ));
    assert_eq!(asked, SUCCESS);
    (kind, ordinal, base)
}

#[test]
fn addresses_are_described() {
    on_device("addresses_are_described", || {
        let device: u64 = made!(cuMemAlloc_v2(64));
        let host: *mut c_void = made!(cuMemHostAlloc(64, 2));
        let ordinary = Box::new(0u8);
        assert_eq!(describe(device + 10), (2, 0, device));
        assert_eq!(describe(host as u64 + 10), (1, 0, host as u64));
        assert_eq!(describe(&raw const *ordinary as u64), (0, -2, 0));
        let mut kind = 0u32;
        let which = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
        let unknown = &raw const *ordinary as u64;
        let asked = cu!(cuPointerGetAttribute(
            (&raw mut kind).cast(),
            which,
            unknown
        ));
        assert_eq!(asked, INVALID_VALUE);
        let (mut base, mut bytes) = (0, 0);
        assert_eq!(
            cu!(cuMemGetAddressRange_v2(&mut base, &mut bytes, device + 63)),
            SUCCESS
        );
        assert_eq!((base, bytes), (device, 64));
        let mapped: u64 = made!(cuMemHostGetDevicePointer_v2(host, 0));
        assert_eq!(cu!(cuMemsetD8_v2(device, 3, 64)), SUCCESS);
        assert_eq!(cu!(cuMemcpy(mapped, device, 64)), SUCCESS);
        // SAFETY: the synchronous copy has filled the 64 bytes.
        assert_eq!(unsafe { host.cast::<[u8; 64]>().read() }, [3; 64]);
        assert_eq!(
            cu!(cuMemcpyHtoD_v2(device, device as *const c_void, 8)),
            INVALID_VALUE
        );
        assert_eq!(cu!(cuMemFreeHost(host)), SUCCESS);
        assert_eq!(cu!(cuMemFree_v2(device)), SUCCESS);
    });
}

#[test]
fn the_default_pool_counts_what_is_in_use() {
    on_device("the_default_pool_counts_what_is_in_use", || {
        let pool: sys::CUmemoryPool = made!(cuDeviceGetDefaultMemPool(0));
        let used = || {
            let mut value = u64::MAX;
            let which = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
            let asked = cu!(cuMemPoolGetAttribute(pool, which, (&raw mut value).cast()));
            assert_eq!(asked, SUCCESS);
            value
        };
        let mut keep = 1u64 << 30;
        let which = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        assert_eq!(
            cu!(cuMemPoolSetAttribute(pool, which, (&raw mut keep).cast())),
            SUCCESS
        );
        let mut kept = 0u64;
        assert_eq!(
            cu!(cuMemPoolGetAttribute(pool, which, (&raw mut kept).cast())),
            SUCCESS
        );
        assert_eq!(kept, keep);
        let block: u64 = made!(cuMemAllocFromPoolAsync(4096, pool, ptr::null_mut()));
        assert_eq!(used(), 4096);
        // Stream-ordered memory may also be freed by cuMemFree.
        assert_eq!(cu!(cuMemFree_v2(block)), SUCCESS);
        assert_eq!(used(), 0);
        let refused = cu!(cuMemPoolTrimTo(ptr::without_provenance_mut(8), 0));
        assert_eq!(refused, INVALID_VALUE);
    });
}

#[test]
fn a_launch_takes_packed_arguments() {
    on_device("a_launch_takes_packed_arguments", || {
        let device: u64 = made!(cuMemAlloc_v2(16));
        assert_eq!(cu!(cuMemsetD8_v2(device, 0, 16)), SUCCESS);
        let ptx = std::ffi::CString::new(pinlane_kernels::PTX).unwrap();
        let module: sys::CUmodule = made!(cuModuleLoadData(ptx.as_ptr().cast()));
        let kernel: sys::CUfunction =
            made!(cuModuleGetFunction(module, c"pinlane_add_u32".as_ptr()));
        // count: u64, value: u32, 4 bytes of padding, data: address
        let packed: [u64; 3] = [4, 5, device];
        let launch = |mut bytes: usize| {
            let mut extra = [
                ptr::without_provenance_mut(1),
                packed.as_ptr().cast_mut().cast::<c_void>(),
                ptr::without_provenance_mut(2),
                (&raw mut bytes).cast(),
                ptr::null_mut(),
            ];
            let (stream, none) = (ptr::null_mut(), ptr::null_mut());
            let extra = extra.as_mut_ptr();
            cu!(cuLaunchKernel(
                kernel, 1, 1, 1, 32, 1, 1, 0, stream, none, extra
            ))
        };
        assert_eq!(launch(24), SUCCESS);
        assert_eq!(launch(16), INVALID_VALUE, "the buffer ends too early");
        assert_eq!(
            read(device, 16),
            [5, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0]
        );
        let (stream, none) = (ptr::null_mut(), ptr::null_mut());
        let empty = cu!(cuLaunchKernel(
            kernel, 0, 1, 1, 32, 1, 1, 0, stream, none, none
        ));
        assert_eq!(empty, INVALID_VALUE);
        assert_eq!(cu!(cuModuleUnload(module)), SUCCESS);
        assert_eq!(cu!(cuMemFree_v2(device)), SUCCESS);
    });
}

#[test]
fn the_error_log_says_why_ptx_was_refused() {
    on_device("the_error_log_says_why_ptx_was_refused", || {
        let mut log = [0u8; 256];
        let mut keys = [
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        let mut values = [
            log.as_mut_ptr().cast::<c_void>(),
            ptr::without_provenance_mut(log.len()),
        ];
        let (keys, values) = (keys.as_mut_ptr(), values.as_mut_ptr());
        let image = c"this is no PTX".as_ptr().cast();
        let mut module = ptr::null_mut();
        let loaded = cu!(cuModuleLoadDataEx(&mut module, image, 2, keys, values));
        assert_eq!(loaded, CUresult::CUDA_ERROR_INVALID_PTX);
        let end = log
            .iter()
            .position(|byte| *byte == 0)
            .expect("the log ends");
        let text = std::str::from_utf8(&log[..end]).unwrap();
        assert!(text.contains("PTX"), "{text}");
    });
}

#[test]
fn a_program_can_tell_that_the_device_is_simulated() {
    type Profile = unsafe extern "C" fn(c_int, *mut c_char, c_int) -> u32;
    on_device("a_program_can_tell_that_the_device_is_simulated", || {
        let mut name = [0u8; 64];
        // SAFETY: the type is that of the function, and the buffer has the given length.
        let result = unsafe {
            let library = libloading::Library::new("libcuda.so.1").unwrap();
            let profile = library.get::<Profile>("pinlane_simcuda_profile").unwrap();
            profile(0, name.as_mut_ptr().cast(), 64)
        };
        assert_eq!(result, 0);
        assert!(name.starts_with(b"h200\0"));
    });
}
