//! Listing, opening and describing devices.

use std::sync::Arc;

use pinlane_driver::ErrorKind;

use crate::outcome::{check, check_eq, check_error};
use crate::pattern::{check_bytes, pattern};
use crate::{Case, Outcome, TestDevice};

pub(super) const CASES: &[Case] = &[
    Case::new("device/list-holds-the-device", list_holds_the_device),
    Case::new("device/ordinals-count-from-zero", ordinals_count_from_zero),
    Case::new("device/open-device-is-the-listed-one", open_is_the_listed),
    Case::new("device/properties-are-sane", properties_are_sane),
    Case::new("device/versions-are-told", versions_are_told),
    Case::new("device/unknown-ordinal-is-refused", unknown_ordinal),
    Case::new("device/listing-twice-gives-the-same", listing_twice),
    Case::new("device/open-twice-at-once", open_twice_at_once),
    Case::new("device/reopen-after-close", reopen_after_close),
    Case::new("device/close-without-use", close_without_use),
    Case::new("device/memory-info-is-sane", memory_info_is_sane),
    Case::new("device/synchronize-when-idle", synchronize_when_idle),
    Case::new(
        "device/synchronize-waits-for-every-stream",
        synchronize_waits_for_every_stream,
    ),
];

fn list_holds_the_device(test: &TestDevice<'_>) -> Outcome {
    let devices = test.platform().devices()?;
    check!(
        devices.iter().any(|info| info.ordinal == test.ordinal()),
        "no device {} among {}",
        test.ordinal(),
        devices.len()
    );
    Ok(())
}

fn ordinals_count_from_zero(test: &TestDevice<'_>) -> Outcome {
    for (expected, info) in (0u32..).zip(test.platform().devices()?) {
        check_eq!(info.ordinal, expected, "number of {}", info.name);
    }
    Ok(())
}

fn open_is_the_listed(test: &TestDevice<'_>) -> Outcome {
    let devices = test.platform().devices()?;
    let driver = test.open()?;
    check_eq!(
        *driver.info(),
        devices[test.ordinal() as usize],
        "properties of the opened device"
    );
    Ok(())
}

fn properties_are_sane(test: &TestDevice<'_>) -> Outcome {
    let driver = test.open()?;
    let info = driver.info();
    check!(!info.name.is_empty(), "the device has no name");
    check!(
        info.memory_bytes >= 1 << 20,
        "{} bytes of memory",
        info.memory_bytes
    );
    check!(info.multiprocessors >= 1, "no multiprocessor");
    check!(
        info.compute_capability.0 >= 1,
        "compute capability {:?}",
        info.compute_capability
    );
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
    let count = test.platform().devices()?.len() as u32;
    for ordinal in [count, u32::MAX] {
        let opened = test.platform().open(ordinal).map(|_| "opened");
        check_eq!(
            opened.map_err(|error| error.kind),
            Err(ErrorKind::NoSuchDevice { ordinal, count }),
            "opening device {ordinal}"
        );
    }
    Ok(())
}

fn listing_twice(test: &TestDevice<'_>) -> Outcome {
    let (first, second) = (test.platform().devices()?, test.platform().devices()?);
    check_eq!(second, first, "second list");
    Ok(())
}

fn open_twice_at_once(test: &TestDevice<'_>) -> Outcome {
    let data = pattern(1, 1000);
    let (one, other) = (test.rig()?, test.rig()?);
    let (a, b) = (one.upload(&data)?, other.upload(&data)?);
    check!(a.base() != b.base(), "both got the same device memory");
    check_bytes(&one.download(a.all())?, &data, "first")?;
    check_bytes(&other.download(b.all())?, &data, "second")?;
    one.close()?;
    let again = other.upload(&data)?;
    check_bytes(
        &other.download(again.all())?,
        &data,
        "second after the first closed",
    )?;
    other.close()
}

fn reopen_after_close(test: &TestDevice<'_>) -> Outcome {
    let data = pattern(2, 4096);
    for round in 0..3 {
        let rig = test.rig()?;
        let memory = rig.upload(&data)?;
        check_bytes(
            &rig.download(memory.all())?,
            &data,
            &format!("round {round}"),
        )?;
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
    check!(memory.total_bytes > 0, "the total memory is 0");
    check!(
        memory.free_bytes <= memory.total_bytes,
        "{} bytes free of {}",
        memory.free_bytes,
        memory.total_bytes
    );
    check!(
        memory.total_bytes <= driver.info().memory_bytes,
        "{} bytes in total, but the device has {}",
        memory.total_bytes,
        driver.info().memory_bytes
    );
    Ok(())
}

fn synchronize_when_idle(test: &TestDevice<'_>) -> Outcome {
    let driver = test.open()?;
    for _ in 0..3 {
        driver.synchronize()?;
    }
    // A failed open has no effect.
    check_error!(
        test.platform().open(u32::MAX).map(|_| ()),
        ErrorKind::NoSuchDevice { .. }
    );
    driver.synchronize()?;
    Ok(())
}

fn synchronize_waits_for_every_stream(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let memory = rig.upload(&[0; 4 * 16])?;
    let streams = (0..4)
        .map(|_| rig.stream())
        .collect::<Result<Vec<_>, _>>()?;
    for (at, stream) in streams.iter().enumerate() {
        rig.spin(kernels, 2_000_000, *stream)?;
        rig.add_u32(kernels, memory.span(16 * at, 16), at as u32 + 1, *stream)?;
    }
    rig.driver().synchronize()?;
    for stream in &streams {
        check!(
            rig.driver().stream_query(*stream)?,
            "a stream still has work"
        );
    }
    let words = crate::pattern::u32_of_bytes(&rig.download(memory.all())?);
    let expected: Vec<u32> = (0..16).map(|i| i / 4 + 1).collect();
    check_eq!(words, expected, "what the streams wrote");
    rig.close()
}
