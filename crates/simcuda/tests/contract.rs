//! The driver API's contract: order of calls, contexts, handles, injected failures.

mod support;

use std::ffi::{c_int, c_void};
use std::ptr;

use cudarc::driver::sys::{self, CUresult};
use support::api::{SUCCESS, cu, enter, leave, made};
use support::{complaints, in_child, whole};

const INVALID_VALUE: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
const INVALID_CONTEXT: CUresult = CUresult::CUDA_ERROR_INVALID_CONTEXT;
const INVALID_HANDLE: CUresult = CUresult::CUDA_ERROR_INVALID_HANDLE;

/// A forged pointer.
fn forged<T>() -> *mut T {
    ptr::without_provenance_mut(0xdead_beef_0000)
}

#[test]
fn calls_out_of_order_are_refused() {
    let program = || {
        let mut count = 0;
        assert_eq!(
            cu!(cuDeviceGetCount(&mut count)),
            CUresult::CUDA_ERROR_NOT_INITIALIZED
        );
        assert_eq!(cu!(cuInit(1)), INVALID_VALUE);
        assert_eq!(cu!(cuInit(0)), SUCCESS);
        assert_eq!(cu!(cuDeviceGetCount(&mut count)), SUCCESS);
        assert_eq!(count, 1);
        let mut address = 0;
        assert_eq!(cu!(cuMemAlloc_v2(&mut address, 64)), INVALID_CONTEXT);
        assert_eq!(cu!(cuStreamSynchronize(ptr::null_mut())), INVALID_CONTEXT);
        assert_eq!(cu!(cuCtxPopCurrent_v2(ptr::null_mut())), INVALID_CONTEXT);
        enter(0);
        address = made!(cuMemAlloc_v2(64));
        assert_eq!(cu!(cuMemFree_v2(address)), SUCCESS);
        leave(0);
        assert_eq!(
            cu!(cuCtxSynchronize()),
            CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
        );
    };
    let Some(report) = in_child(whole, "calls_out_of_order_are_refused", &[], program) else {
        return;
    };
    assert_eq!(complaints(&report), [""; 0]);
}

#[test]
fn forged_handles_and_null_are_refused() {
    let program = || {
        enter(0);
        assert_eq!(cu!(cuStreamSynchronize(forged())), INVALID_HANDLE);
        assert_eq!(cu!(cuStreamDestroy_v2(forged())), INVALID_HANDLE);
        assert_eq!(cu!(cuEventQuery(forged())), INVALID_HANDLE);
        assert_eq!(
            cu!(cuEventRecord(forged(), ptr::null_mut())),
            INVALID_HANDLE
        );
        assert_eq!(cu!(cuModuleUnload(forged())), INVALID_HANDLE);
        assert_eq!(cu!(cuCtxSetCurrent(forged())), INVALID_CONTEXT);
        let stream: sys::CUstream = made!(cuStreamCreate(1));
        assert_eq!(
            cu!(cuEventQuery(stream.cast())),
            INVALID_HANDLE,
            "a stream is no event"
        );
        assert_eq!(cu!(cuStreamDestroy_v2(stream)), SUCCESS);
        assert_eq!(cu!(cuStreamDestroy_v2(stream)), INVALID_HANDLE);

        assert_eq!(cu!(cuMemAlloc_v2(ptr::null_mut(), 64)), INVALID_VALUE);
        assert_eq!(cu!(cuStreamCreate(ptr::null_mut(), 0)), INVALID_VALUE);
        assert_eq!(cu!(cuMemHostAlloc(ptr::null_mut(), 64, 0)), INVALID_VALUE);
        assert_eq!(cu!(cuMemcpyHtoD_v2(0, ptr::null(), 8)), INVALID_VALUE);
        assert_eq!(cu!(cuMemcpyHtoD_v2(0, ptr::null(), 0)), SUCCESS);
        assert_eq!(cu!(cuMemFree_v2(0)), SUCCESS);
        assert_eq!(cu!(cuMemFreeHost(ptr::null_mut())), SUCCESS);
        leave(0);
    };
    let Some(report) = in_child(whole, "forged_handles_and_null_are_refused", &[], program) else {
        return;
    };
    assert_eq!(complaints(&report), [""; 0]);
}

#[test]
fn contexts_stack_and_only_used_devices_get_one() {
    let program = || {
        assert_eq!(cu!(cuInit(0)), SUCCESS);
        let count: c_int = made!(cuDeviceGetCount());
        assert_eq!(count, 3);
        for device in 0..count {
            let bytes: usize = made!(cuDeviceTotalMem_v2(device));
            assert!(bytes > 0);
        }
        let primary = enter(1);
        let created: sys::CUcontext = made!(cuCtxCreate_v2(0, 1));
        let current: sys::CUcontext = made!(cuCtxGetCurrent());
        assert_eq!(current, created);
        let device: c_int = made!(cuCtxGetDevice());
        assert_eq!(device, 1);
        assert_eq!(cu!(cuCtxDestroy_v2(created)), SUCCESS);
        let current: sys::CUcontext = made!(cuCtxGetCurrent());
        assert_eq!(current, primary);
        leave(1);
    };
    let name = "contexts_stack_and_only_used_devices_get_one";
    let Some(report) = in_child(whole, name, &[("DEVICES", "3")], program) else {
        return;
    };
    let expected = [
        "context: device 1, created, 1 time",
        "context: device 1, primary, 1 time",
    ];
    assert_eq!(report, expected);
}

#[test]
fn a_machine_without_devices_reports_no_device() {
    let program = || assert_eq!(cu!(cuInit(0)), CUresult::CUDA_ERROR_NO_DEVICE);
    in_child(
        whole,
        "a_machine_without_devices_reports_no_device",
        &[("DEVICES", "0")],
        program,
    );
}

#[test]
fn a_busy_device_gives_no_context() {
    let program = || {
        assert_eq!(cu!(cuInit(0)), SUCCESS);
        let mut context = ptr::null_mut();
        let refused = cu!(cuDevicePrimaryCtxRetain(&mut context, 0)) as u32;
        assert_eq!(refused, 46);
    };
    let Some(report) = in_child(
        whole,
        "a_busy_device_gives_no_context",
        &[("FAIL", "busy")],
        program,
    ) else {
        return;
    };
    assert_eq!(report, [""; 0]);
}

#[test]
fn a_lost_device_fails_every_call() {
    let program = || {
        enter(0); // two calls that count
        let address: u64 = made!(cuMemAlloc_v2(64));
        let lost = CUresult::CUDA_ERROR_ECC_UNCORRECTABLE;
        assert_eq!(cu!(cuMemFree_v2(address)), lost);
        assert_eq!(cu!(cuCtxSynchronize()), lost);
        let mut name = ptr::null();
        assert_eq!(cu!(cuGetErrorName(lost, &mut name)), SUCCESS);
    };
    let Some(report) = in_child(
        whole,
        "a_lost_device_fails_every_call",
        &[("FAIL", "lost:3")],
        program,
    ) else {
        return;
    };
    assert_eq!(
        complaints(&report),
        [""; 0],
        "a lost device cannot be tidied up"
    );
}

#[test]
fn threads_have_their_own_default_streams() {
    const PER_THREAD: usize = 2;
    let program = || {
        let context = enter(0) as usize;
        let device: u64 = made!(cuMemAlloc_v2(4096));
        let work = move |value: u8, offset: u64| {
            let stream = ptr::without_provenance_mut(PER_THREAD);
            assert_eq!(cu!(cuCtxSetCurrent(context as sys::CUcontext)), SUCCESS);
            assert_eq!(
                cu!(cuMemsetD8Async(device + offset, value, 2048, stream)),
                SUCCESS
            );
            assert_eq!(cu!(cuStreamSynchronize(stream)), SUCCESS);
        };
        std::thread::spawn(move || work(1, 0)).join().unwrap();
        work(2, 2048);
        let mut bytes = [0u8; 4096];
        let target: *mut c_void = bytes.as_mut_ptr().cast();
        assert_eq!(cu!(cuMemcpyDtoH_v2(target, device, 4096)), SUCCESS);
        assert!(bytes[..2048].iter().all(|byte| *byte == 1));
        assert!(bytes[2048..].iter().all(|byte| *byte == 2));
        assert_eq!(cu!(cuMemFree_v2(device)), SUCCESS);
        leave(0);
    };
    let name = "threads_have_their_own_default_streams";
    let Some(report) = in_child(whole, name, &[], program) else {
        return;
    };
    assert_eq!(complaints(&report), [""; 0]);
}

#[test]
fn a_kernel_without_twin_is_found_but_not_launched() {
    let program = || {
        enter(0);
        let ptx = c".version 7.0\n.target sm_52\n.visible .entry foreign_kernel()\n{\nret;\n}\n";
        let module: sys::CUmodule = made!(cuModuleLoadData(ptx.as_ptr().cast()));
        let function: sys::CUfunction =
            made!(cuModuleGetFunction(module, c"foreign_kernel".as_ptr()));
        let mut none = ptr::null_mut();
        let missing = cu!(cuModuleGetFunction(&mut none, module, c"no_such".as_ptr()));
        assert_eq!(missing, CUresult::CUDA_ERROR_NOT_FOUND);
        let (stream, none) = (ptr::null_mut(), ptr::null_mut());
        let launched = cu!(cuLaunchKernel(
            function, 1, 1, 1, 1, 1, 1, 0, stream, none, none
        ));
        assert_eq!(launched, CUresult::CUDA_ERROR_NOT_SUPPORTED);
        let cubin = b"\x7fELF\x02\x01\x01\0";
        let mut module_2 = ptr::null_mut();
        let refused = cu!(cuModuleLoadData(&mut module_2, cubin.as_ptr().cast()));
        assert_eq!(refused, CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU);
        assert_eq!(cu!(cuModuleUnload(module)), SUCCESS);
        leave(0);
    };
    let name = "a_kernel_without_twin_is_found_but_not_launched";
    let Some(report) = in_child(whole, name, &[], program) else {
        return;
    };
    assert_eq!(
        complaints(&report),
        ["unsupported: launch of foreign_kernel, 1 call"]
    );
}

#[test]
fn pinned_memory_is_mapped_and_free_waits_as_with_unified_addressing() {
    let name = "pinned_memory_is_mapped_and_free_waits_as_with_unified_addressing";
    let program = || {
        enter(0);
        let host: *mut c_void = made!(cuMemHostAlloc(4096, 0));
        let mut seen = 0;
        assert_eq!(
            cu!(cuMemHostGetDevicePointer_v2(&mut seen, host, 0)),
            SUCCESS
        );
        // Work in flight when its source is freed still runs.
        let (a, b): (u64, u64) = (made!(cuMemAlloc_v2(1 << 20)), made!(cuMemAlloc_v2(1 << 20)));
        assert_eq!(cu!(cuMemsetD8_v2(a, 5, 1 << 20)), SUCCESS);
        let stream: sys::CUstream = made!(cuStreamCreate(1));
        // Slow work first, so that the copy is still queued when its source is freed.
        let slow: *mut c_void = made!(cuMemHostAlloc(16 << 20, 0));
        let large: u64 = made!(cuMemAlloc_v2(16 << 20));
        assert_eq!(
            cu!(cuMemcpyDtoHAsync_v2(slow, large, 16 << 20, stream)),
            SUCCESS
        );
        assert_eq!(cu!(cuMemcpyDtoDAsync_v2(b, a, 1 << 20, stream)), SUCCESS);
        assert_eq!(cu!(cuMemFree_v2(a)), SUCCESS);
        let mut last = 0u8;
        assert_eq!(
            cu!(cuMemcpyDtoH_v2(
                (&raw mut last).cast(),
                b + (1 << 20) - 1,
                1
            )),
            SUCCESS
        );
        assert_eq!(last, 5);
        assert_eq!(
            cu!(cuMemsetD32_v2(b, 0x0102_0304, 1 << 44)),
            INVALID_VALUE,
            "more than there is"
        );
        assert_eq!(cu!(cuStreamDestroy_v2(stream)), SUCCESS);
        assert_eq!(cu!(cuMemFree_v2(b)), SUCCESS);
        assert_eq!(cu!(cuMemFree_v2(large)), SUCCESS);
        assert_eq!(cu!(cuMemFreeHost(slow)), SUCCESS);
        assert_eq!(cu!(cuMemFreeHost(host)), SUCCESS);
        leave(0);
    };
    if let Some(report) = in_child(whole, name, &[], program) {
        assert_eq!(complaints(&report), [""; 0]);
    }
}
