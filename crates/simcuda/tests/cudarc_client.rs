//! Programs that use the cudarc crate: its safe layer correctly, and its thin layer wrongly.

mod support;

use cudarc::driver::sys::CUevent_flags::CU_EVENT_DEFAULT;
use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg, result, sys};
use cudarc::nvrtc::Ptx;
use support::{complaints, in_child, whole};

const ITEMS: usize = 1 << 20;

/// Upload, kernel and download with pinned memory on a stream, with timing.
fn add_on_the_device() {
    let context = CudaContext::new(0).unwrap();
    assert!(context.name().unwrap().contains("Simulated"));
    assert!(context.has_async_alloc());
    let stream = context.new_stream().unwrap();

    // SAFETY: every item is written before it is read.
    let mut input = unsafe { context.alloc_pinned::<u32>(ITEMS) }.unwrap();
    for (index, item) in input.as_mut_slice().unwrap().iter_mut().enumerate() {
        *item = index as u32;
    }
    let mut data = stream.alloc_zeros::<u32>(ITEMS).unwrap();

    let start = stream.record_event(Some(CU_EVENT_DEFAULT)).unwrap();
    stream.memcpy_htod(&input, &mut data).unwrap();
    let end = stream.record_event(Some(CU_EVENT_DEFAULT)).unwrap();
    // 4 MiB take 1e3 * 4.19e6 / 55e9 ms on the default profile's link, plus latency.
    let elapsed_ms = start.elapsed_ms(&end).unwrap();
    assert!((0.07..0.12).contains(&elapsed_ms), "{elapsed_ms} ms");

    let module = context
        .load_module(Ptx::from_src(pinlane_kernels::PTX))
        .unwrap();
    let kernel = module.load_function("pinlane_add_u32").unwrap();
    let (count, value) = (ITEMS as u64, 7u32);
    let mut launch = stream.launch_builder(&kernel);
    launch.arg(&count).arg(&value).arg(&mut data);
    // SAFETY: the arguments match the kernel: a count, a value, and that many items.
    unsafe { launch.launch(LaunchConfig::for_num_elems(ITEMS as u32)) }.unwrap();

    // SAFETY: every item is written by the copy before it is read.
    let mut output = unsafe { context.alloc_pinned::<u32>(ITEMS) }.unwrap();
    stream.memcpy_dtoh(&data, &mut output).unwrap();
    let output = output.as_slice().unwrap();
    assert!(
        output
            .iter()
            .enumerate()
            .all(|(index, item)| *item == index as u32 + 7)
    );

    // The same with ordinary memory on the default stream.
    let default = context.default_stream();
    let device = default.clone_htod(&[1.5f64; 1000]).unwrap();
    assert_eq!(default.clone_dtoh(&device).unwrap(), vec![1.5; 1000]);
}

#[test]
fn the_safe_layer_runs_and_leaves_nothing_behind() {
    let name = "the_safe_layer_runs_and_leaves_nothing_behind";
    let Some(report) = in_child(whole, name, &[], add_on_the_device) else {
        return;
    };
    assert_eq!(report, ["context: device 0, primary, 1 time"]);
}

#[test]
fn the_safe_layer_is_correct_under_any_legal_schedule() {
    let name = "the_safe_layer_is_correct_under_any_legal_schedule";
    let program = || {
        let context = CudaContext::new(0).unwrap();
        let (first, second) = (context.new_stream().unwrap(), context.new_stream().unwrap());
        let mut data = first.clone_htod(&vec![3u8; 4096]).unwrap();
        second.memcpy_htod(&vec![4u8; 4096], &mut data).unwrap();
        assert_eq!(first.clone_dtoh(&data).unwrap(), vec![4; 4096]);
    };
    for seed in ["1", "2", "3"] {
        let Some(report) = in_child(whole, name, &[("SEED", seed)], program) else {
            return;
        };
        assert_eq!(complaints(&report), [""; 0], "seed {seed}");
    }
}

/// Prepares a current context, a stream and 4096 bytes of each kind of memory.
fn prepare() -> (
    std::sync::Arc<CudaContext>,
    sys::CUstream,
    *mut u8,
    sys::CUdeviceptr,
) {
    let context = CudaContext::new(0).unwrap();
    let stream = result::stream::create(result::stream::StreamKind::NonBlocking).unwrap();
    // SAFETY: plain allocations in the current context.
    let (host, device) = unsafe {
        (
            result::malloc_host(4096, 0).unwrap().cast(),
            result::malloc_sync(4096).unwrap(),
        )
    };
    (context, stream, host, device)
}

/// Releases what `prepare` created.
fn tidy_up(stream: sys::CUstream, host: *mut u8, device: sys::CUdeviceptr) {
    // SAFETY: all work is done, and each is freed by the right function.
    unsafe {
        result::stream::synchronize(stream).unwrap();
        result::stream::destroy(stream).unwrap();
        result::free_host(host.cast()).unwrap();
        result::free_sync(device).unwrap();
    }
}

/// The beginner's loop: one pinned buffer, refilled while its copy is in flight.
#[test]
fn a_refill_in_flight_is_reported() {
    let program = || {
        let (_context, stream, host, device) = prepare();
        for round in 0..4u8 {
            // SAFETY: the memory is allocated. That it is in flight is what the test is about.
            unsafe {
                host.write_bytes(round, 4096);
                let bytes = std::slice::from_raw_parts(host, 4096);
                result::memcpy_htod_async(device, bytes, stream).unwrap();
            }
        }
        tidy_up(stream, host, device);
    };
    let Some(report) = in_child(whole, "a_refill_in_flight_is_reported", &[], program) else {
        return;
    };
    let complaints = complaints(&report);
    assert!(!complaints.is_empty(), "nothing was noticed");
    for line in complaints {
        assert!(
            line.starts_with("misuse: host memory changed while in flight"),
            "{line}"
        );
    }
}

#[test]
fn the_wrong_free_function_is_refused_and_reported() {
    let program = || {
        let (_context, stream, host, device) = prepare();
        // SAFETY: wrong functions on purpose; they are refused without effect.
        unsafe {
            let unregister = sys::cuMemHostUnregister(host.cast());
            assert_eq!(
                unregister,
                sys::CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
            );
            assert_ne!(
                sys::cuMemFreeAsync(device, stream),
                sys::CUresult::CUDA_SUCCESS
            );
        }
        tidy_up(stream, host, device);
    };
    let name = "the_wrong_free_function_is_refused_and_reported";
    let Some(report) = in_child(whole, name, &[], program) else {
        return;
    };
    let complaints = complaints(&report);
    assert_eq!(complaints.len(), 2, "{complaints:?}");
    for line in complaints {
        assert!(line.starts_with("misuse: wrong free function"), "{line}");
    }
}

#[test]
fn use_after_free_is_refused_and_reported() {
    let program = || {
        let (_context, stream, host, device) = prepare();
        // SAFETY: a fresh block, freed at once.
        let freed = unsafe {
            let freed = result::malloc_sync(4096).unwrap();
            result::free_sync(freed).unwrap();
            freed
        };
        // SAFETY: the simulated driver refuses a freed address in every call.
        unsafe {
            let plain = sys::cuMemcpyDtoHAsync_v2(host.cast(), freed, 4096, stream);
            assert_eq!(plain, sys::CUresult::CUDA_ERROR_INVALID_VALUE);
            let any = sys::cuMemcpyAsync(host as u64, freed, 4096, stream);
            assert_eq!(any, sys::CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        tidy_up(stream, host, device);
    };
    let name = "use_after_free_is_refused_and_reported";
    let Some(report) = in_child(whole, name, &[], program) else {
        return;
    };
    let complaints = complaints(&report);
    assert_eq!(complaints.len(), 2, "{complaints:?}");
    for line in complaints {
        assert!(line.starts_with("misuse: memory used after free"), "{line}");
    }
}

#[test]
fn leaks_are_reported() {
    let program = || {
        let (_context, ..) = prepare();
    };
    let Some(report) = in_child(whole, "leaks_are_reported", &[], program) else {
        return;
    };
    let complaints = complaints(&report);
    for leaked in [
        "device memory leaked",
        "pinned memory leaked",
        "stream leaked",
    ] {
        let line = format!("leak: {leaked}");
        assert!(
            complaints.iter().any(|said| said.starts_with(&line)),
            "{complaints:?}"
        );
    }
    assert_eq!(complaints.len(), 3, "{complaints:?}");
}
