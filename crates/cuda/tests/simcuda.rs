//! The CUDA backend over simcuda: every problem of a driver or a GPU is a typed error, never a panic.

use std::ops::ControlFlow;
use std::sync::Arc;

use pinlane_conformance::Verdict;
use pinlane_cuda::Cuda;
use pinlane_driver::{Driver, ErrorKind, HostFlags, Platform, Version};
use pinlane_simcuda::testing::{Stage, complaints, in_child};

fn whole() -> Stage {
    Stage::new().expect("simcuda is built beside the test")
}

fn without(symbols: &'static [&'static str]) -> impl FnOnce() -> Stage {
    move || Stage::without(symbols).expect("simcuda is built beside the test")
}

fn load_error() -> ErrorKind {
    Cuda::load().map(drop).expect_err("loading fails").kind
}

fn open(ordinal: u32) -> Arc<dyn Driver> {
    let cuda = Cuda::load().expect("simcuda loads");
    cuda.open(ordinal).expect("the device exists")
}

#[test]
fn simcuda_reports_that_it_is_simulated() {
    let report = in_child(whole, "simcuda_reports_that_it_is_simulated", &[], || {
        let device = open(0);
        assert_eq!(device.info().simulated.as_deref(), Some("h200"));
    });
    // The device was not used, so no context was created.
    assert!(report.is_none_or(|report| report.is_empty()));
}

#[test]
fn no_gpu_is_reported() {
    let name = "no_gpu_is_reported";
    in_child(whole, name, &[("DEVICES", "0")], || {
        assert_eq!(load_error(), ErrorKind::NoDevice);
    });
}

#[test]
fn an_old_driver_is_refused_with_the_required_version() {
    let name = "an_old_driver_is_refused_with_the_required_version";
    in_child(whole, name, &[("VERSION", "11020")], || {
        let ErrorKind::DriverTooOld { found, needed } = load_error() else {
            panic!("it is too old");
        };
        assert_eq!(
            found,
            Version {
                major: 11,
                minor: 2
            }
        );
        assert!(needed > found);
    });
}

#[test]
fn a_missing_symbol_is_named() {
    let stage = without(&["cuMemHostRegister_v2"]);
    in_child(stage, "a_missing_symbol_is_named", &[], || {
        let symbol = "cuMemHostRegister_v2";
        assert_eq!(load_error(), ErrorKind::MissingSymbol { symbol });
    });
}

#[test]
fn missing_optional_symbols_are_reported_and_not_called() {
    let name = "missing_optional_symbols_are_reported_and_not_called";
    let stage = without(&["cuMemcpyBatchAsync", "cuMemAllocAsync", "cuMemFreeAsync"]);
    in_child(stage, name, &[], || {
        let device = open(0);
        assert!(!device.info().batch_copy);
        assert!(!device.info().stream_ordered_alloc);
        let stream = device.default_stream();
        // SAFETY: the default stream always exists.
        let refused = unsafe { device.device_alloc_async(16, stream) };
        let refused = refused.expect_err("the symbol is missing");
        assert!(matches!(
            refused.kind,
            ErrorKind::NotSupported | ErrorKind::MissingSymbol { .. }
        ));
        // SAFETY: no copies, so no places.
        let refused = unsafe { device.copy_batch(&[], stream) };
        assert!(refused.is_err());
        device.synchronize().expect("no sticky error");
    });
}

#[test]
fn the_suite_passes_without_the_optional_symbols() {
    let name = "the_suite_passes_without_the_optional_symbols";
    let stage = without(&["cuMemcpyBatchAsync", "cuMemAllocAsync", "cuMemFreeAsync"]);
    in_child(stage, name, &[], || {
        let cuda = Cuda::load().expect("simcuda loads");
        let summary = pinlane_conformance::run(&cuda, 0, None, &mut |result| {
            if let Verdict::Failed(reason) = &result.verdict {
                panic!("{}: {reason}", result.name);
            }
            ControlFlow::Continue(())
        });
        assert!(summary.skipped > 0 && summary.passed > 200, "{summary:?}");
    });
}

#[test]
fn a_busy_gpu_is_reported() {
    in_child(whole, "a_busy_gpu_is_reported", &[("FAIL", "busy")], || {
        let device = open(0);
        let refused = device.memory_info().expect_err("another process holds it");
        assert_eq!(refused.kind, ErrorKind::DeviceBusy);
    });
}

#[test]
fn a_lost_gpu_stays_lost() {
    in_child(
        whole,
        "a_lost_gpu_stays_lost",
        &[("FAIL", "lost:40")],
        || {
            let device = open(0);
            let error = (0..200)
                .find_map(|_| device.memory_info().err())
                .expect("it is lost after 40 calls");
            assert_eq!(error.kind, ErrorKind::DeviceLost);
            assert!(error.is_fatal());
            let later = device.host_alloc(16, HostFlags::default());
            assert_eq!(later.expect_err("still lost").kind, ErrorKind::DeviceLost);
        },
    );
}

#[test]
fn only_the_opened_gpu_gets_a_context() {
    let name = "only_the_opened_gpu_gets_a_context";
    let report = in_child(whole, name, &[("DEVICES", "3")], || {
        let cuda = Cuda::load().expect("simcuda loads");
        assert_eq!(cuda.devices().expect("a list").len(), 3);
        let device = cuda.open(1).expect("the second");
        let pinned = device
            .host_alloc(4096, HostFlags::default())
            .expect("pinned");
        // SAFETY: just allocated, and used by nothing.
        unsafe { device.host_free(pinned) }.expect("freed");
        assert!(matches!(
            cuda.open(7).map(drop).expect_err("no such device").kind,
            ErrorKind::NoSuchDevice {
                ordinal: 7,
                count: 3
            }
        ));
    });
    if let Some(report) = report {
        assert_eq!(complaints(&report), [""; 0]);
        assert_eq!(report.len(), 1, "{report:?}");
        assert!(report[0].starts_with("context: device 1"), "{report:?}");
    }
}

#[test]
fn two_gpus_work_on_any_thread() {
    let name = "two_gpus_work_on_any_thread";
    in_child(whole, name, &[("DEVICES", "2")], || {
        let (one, two) = (open(0), open(1));
        one.memory_info().expect("the first");
        two.memory_info().expect("the second");
        one.synchronize().expect("the first again");
        // Any thread may call.
        std::thread::scope(|scope| {
            scope.spawn(|| two.memory_info().expect("on another thread"));
        });
    });
}
