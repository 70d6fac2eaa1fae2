//! Listing, opening and describing devices.

use std::sync::Arc;

use pinlane_driver::ErrorKind;

use crate::case::cases;
use crate::outcome::{check, check_eq, check_error};
use crate::pattern::pattern;
use crate::rig::Rig;
use crate::{Outcome, TestDevice};

cases! {
    @test "device/list-holds-the-device" => list_holds_the_device,
    @test "device/ordinals-count-from-zero" => ordinals_count_from_zero,
    @test "device/open-device-is-the-listed-one" => open_is_the_listed,
    @test "device/properties-are-sane" => properties_are_sane,
    @test "device/versions-are-told" => versions_are_told,
    @test "device/unknown-ordinal-is-refused" => unknown_ordinal,
    @test "device/listing-twice-gives-the-same" => listing_twice,
    @test "device/open-twice-at-once" => open_twice_at_once,
    @test "device/reopen-after-close" => reopen_after_close,
    @test "device/close-without-use" => close_without_use,
    @test "device/memory-info-is-sane" => memory_info_is_sane,
    @test "device/synchronize-when-idle" => synchronize_when_idle,
    "device/synchronize-waits-for-every-stream" => synchronize_waits_for_every_stream,
}

fn list_holds_the_device(test: &TestDevice<'_>) -> Outcome {
    let devices = test.platform.devices()?;
    let (ordinal, count) = (test.ordinal, devices.len());
    let listed = devices.iter().any(|info| info.ordinal == ordinal);
    check!(listed, "no device {ordinal} among {count}");
    Ok(())
}

fn ordinals_count_from_zero(test: &TestDevice<'_>) -> Outcome {
    for (expected, info) in (0u32..).zip(test.platform.devices()?) {
        check_eq!(info.ordinal, expected, "number of {}", info.name);
    }
    Ok(())
}

fn open_is_the_listed(test: &TestDevice<'_>) -> Outcome {
    let devices = test.platform.devices()?;
    let driver = test.open()?;
    let listed = &devices[test.ordinal as usize];
    check_eq!(driver.info(), listed, "properties of the opened device");
    Ok(())
}

fn properties_are_sane(test: &TestDevice<'_>) -> Outcome {
    let driver = test.open()?;
    let info = driver.info();
    check!(!info.name.is_empty(), "the device has no name");
    let (bytes, capability) = (info.memory_bytes, info.compute_capability);
    check!(bytes >= 1 << 20, "{bytes} bytes of memory");
    check!(info.multiprocessors >= 1, "no multiprocessor");
    check!(capability.0 >= 1, "compute capability {capability:?}");
    check!(
        info.can_register || !info.can_register_read_only,
        "read-only registration without registration"
    );
    if let Some(pci) = info.pci {
        check!(pci.bus <= 0xff && pci.device <= 0x1f, "PCI address {pci}");
    }
    Ok(())
}

fn versions_are_told(test: &TestDevice<'_>) -> Outcome {
    let driver = test.open()?;
    let version = driver.info().driver_version;
    check!(version.major >= 1, "driver version {version}");
    Ok(())
}

fn unknown_ordinal(test: &TestDevice<'_>) -> Outcome {
    let count = test.platform.devices()?.len() as u32;
    for ordinal in [count, u32::MAX] {
        let opened = test.platform.open(ordinal).map(|_| "opened");
        let expected = Err(ErrorKind::NoSuchDevice { ordinal, count });
        let found = opened.map_err(|error| error.kind);
        check_eq!(found, expected, "opening device {ordinal}");
    }
    Ok(())
}

fn listing_twice(test: &TestDevice<'_>) -> Outcome {
    let (first, second) = (test.platform.devices()?, test.platform.devices()?);
    check_eq!(second, first, "second list");
    Ok(())
}

fn open_twice_at_once(test: &TestDevice<'_>) -> Outcome {
    let data = pattern(1, 1000);
    let (one, other) = (test.rig()?, test.rig()?);
    let (a, b) = (one.upload(&data)?, other.upload(&data)?);
    check!(
        a.address(0) != b.address(0),
        "both got the same device memory"
    );
    one.check(a.all(), &data, "first")?;
    other.check(b.all(), &data, "second")?;
    one.close()?;
    let again = other.upload(&data)?;
    other.check(again.all(), &data, "second after the first closed")?;
    other.close()
}

fn reopen_after_close(test: &TestDevice<'_>) -> Outcome {
    let data = pattern(2, 4096);
    for round in 0..3 {
        let rig = test.rig()?;
        let memory = rig.upload(&data)?;
        rig.check(memory.all(), &data, &format!("round {round}"))?;
        rig.close()?;
    }
    Ok(())
}

fn close_without_use(test: &TestDevice<'_>) -> Outcome {
    let driver = test.open()?;
    let weak = Arc::downgrade(&driver);
    drop(driver);
    check!(weak.upgrade().is_none(), "the closed device still works");
    test.rig()?.close()
}

fn memory_info_is_sane(test: &TestDevice<'_>) -> Outcome {
    let driver = test.open()?;
    let memory = driver.memory_info()?;
    let (free, total) = (memory.free_bytes, memory.total_bytes);
    let physical = driver.info().memory_bytes;
    check!(total > 0, "the total memory is 0");
    check!(free <= total, "{free} bytes free of {total}");
    check!(
        total <= physical,
        "{total} bytes in total, but the device has {physical}"
    );
    Ok(())
}

fn synchronize_when_idle(test: &TestDevice<'_>) -> Outcome {
    let driver = test.open()?;
    for _ in 0..3 {
        driver.synchronize()?;
    }
    // A failed open has no effect.
    let opened = test.platform.open(u32::MAX).map(|_| ());
    check_error!(opened, ErrorKind::NoSuchDevice { .. });
    Ok(driver.synchronize()?)
}

fn synchronize_waits_for_every_stream(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let memory = rig.upload(&[0; 4 * 16])?;
    let streams = rig.streams(4)?;
    for (at, stream) in streams.iter().enumerate() {
        rig.spin(kernels, 2_000_000, *stream)?;
        rig.add_u32(kernels, memory.span(16 * at, 16), at as u32 + 1, *stream)?;
    }
    rig.synchronize()?;
    for stream in &streams {
        check!(rig.stream_query(*stream)?, "a stream still has work");
    }
    let expected: Vec<u32> = (0..16).map(|i| i / 4 + 1).collect();
    rig.check_words(memory.all(), &expected, "what the streams wrote")
}
