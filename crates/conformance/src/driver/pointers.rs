//! The kind of memory that an address belongs to.

use pinlane_driver::{HostFlags, PointerKind, RegisterFlags};

use super::registered;
use crate::outcome::{check_eq, needs};
use crate::rig::PAGE_BYTES;
use crate::{Case, Outcome, TestDevice};

pub(super) const CASES: &[Case] = &[
    Case::new("pointers/heap-is-pageable", heap),
    Case::new("pointers/stack-is-pageable", stack),
    Case::new("pointers/static-is-pageable", a_static),
    Case::new("pointers/unknown-address-is-pageable", unknown),
    Case::new("pointers/pinned-from-first-to-last", pinned),
    Case::new("pointers/registered-from-first-to-last", registered_range),
    Case::new("pointers/device-from-first-to-last", device),
    Case::new("pointers/stream-ordered-memory-is-device", stream_ordered),
    Case::new("pointers/freed-memory-is-pageable", freed),
    Case::new("pointers/asking-leaves-no-error", leaves_no_error),
];

fn heap(test: &TestDevice<'_>) -> Outcome {
    let driver = test.open()?;
    let heap = vec![0u8; 100_000];
    for at in [0, 50_000, 99_999] {
        let address = std::ptr::from_ref(&heap[at]).addr() as u64;
        check_eq!(
            driver.pointer_kind(address)?,
            PointerKind::Pageable,
            "kind of byte {at}"
        );
    }
    Ok(())
}

fn stack(test: &TestDevice<'_>) -> Outcome {
    let driver = test.open()?;
    let local = 0u64;
    let address = std::ptr::from_ref(&local).addr() as u64;
    check_eq!(driver.pointer_kind(address)?, PointerKind::Pageable, "kind");
    Ok(())
}

fn a_static(test: &TestDevice<'_>) -> Outcome {
    static BYTES: [u8; 64] = [7; 64];
    let driver = test.open()?;
    let address = BYTES.as_ptr().addr() as u64;
    check_eq!(driver.pointer_kind(address)?, PointerKind::Pageable, "kind");
    Ok(())
}

fn unknown(test: &TestDevice<'_>) -> Outcome {
    let driver = test.open()?;
    for address in [0, 64, 1 << 20] {
        check_eq!(
            driver.pointer_kind(address)?,
            PointerKind::Pageable,
            "kind of address {address:#x}"
        );
    }
    Ok(())
}

fn pinned(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let memory = rig.pinned(10 * PAGE_BYTES, HostFlags::default())?;
    for at in [0, 1, 5 * PAGE_BYTES + 3, 10 * PAGE_BYTES - 1] {
        check_eq!(
            rig.driver().pointer_kind(memory.address(at))?,
            PointerKind::Pinned,
            "kind of byte {at}"
        );
    }
    rig.close()
}

fn registered_range(test: &TestDevice<'_>) -> Outcome {
    let rig = registered::rig(test)?;
    let memory = rig.pageable(12 * PAGE_BYTES, 0);
    let range = rig.register(
        &memory,
        2 * PAGE_BYTES,
        8 * PAGE_BYTES,
        RegisterFlags::default(),
    )?;
    for (at, expected) in [
        (0, PointerKind::Pageable),
        (2 * PAGE_BYTES - 1, PointerKind::Pageable),
        (2 * PAGE_BYTES, PointerKind::Registered),
        (6 * PAGE_BYTES + 9, PointerKind::Registered),
        (10 * PAGE_BYTES - 1, PointerKind::Registered),
        (10 * PAGE_BYTES, PointerKind::Pageable),
        (12 * PAGE_BYTES - 1, PointerKind::Pageable),
    ] {
        check_eq!(
            rig.driver().pointer_kind(memory.address(at))?,
            expected,
            "kind of byte {at}"
        );
    }
    rig.unregister(range)?;
    rig.close()
}

fn device(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let memory = rig.device(100_000)?;
    for at in [0, 1, 50_000, 99_999] {
        check_eq!(
            rig.driver().pointer_kind(memory.base().offset(at).0)?,
            PointerKind::Device,
            "kind of byte {at}"
        );
    }
    rig.close()
}

fn stream_ordered(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    needs(
        rig.driver().info().stream_ordered_alloc,
        "no stream-ordered allocation",
    )?;
    let stream = rig.stream()?;
    let memory = rig.device_async(10_000, stream)?;
    rig.driver().stream_synchronize(stream)?;
    check_eq!(
        rig.driver().pointer_kind(memory.base().0)?,
        PointerKind::Device,
        "kind"
    );
    rig.close()
}

fn freed(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    // Large enough that the driver does not keep it for the next small allocation.
    let device = rig.device(64 << 20)?;
    let pinned = rig.pinned(8 << 20, HostFlags::default())?;
    let addresses = [device.base().0, pinned.address(0)];
    rig.free_device(device)?;
    rig.free_pinned(pinned)?;
    for address in addresses {
        check_eq!(
            rig.driver().pointer_kind(address)?,
            PointerKind::Pageable,
            "kind after the free"
        );
    }
    rig.close()
}

fn leaves_no_error(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let memory = rig.upload(&[0; 40])?;
    let stream = rig.driver().default_stream();
    for address in [0, 1, 4096, memory.base().0] {
        rig.driver().pointer_kind(address)?;
        rig.add_u32(kernels, memory.all(), 1, stream)?;
        rig.driver().stream_synchronize(stream)?;
    }
    rig.driver().synchronize()?;
    rig.close()
}
