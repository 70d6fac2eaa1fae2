//! Host memory that kernels can access.

use pinlane_driver::{HostFlags, RegisterFlags};

use crate::outcome::{check_eq, needs};
use crate::pattern::{bytes_of_u32, check_bytes, pattern, u32_of_bytes};
use crate::rig::{HostMem, PAGE_BYTES, Rig};
use crate::{Case, NotPassed, Outcome, TestDevice};

pub(super) const CASES: &[Case] = &[
    Case::new("mapped/pinned-read-by-a-kernel", pinned_read),
    Case::new("mapped/pinned-written-by-a-kernel", pinned_written),
    Case::new("mapped/pinned-changed-in-place", pinned_changed),
    Case::new("mapped/write-combined-read-by-a-kernel", write_combined),
    Case::new("mapped/registered-read-by-a-kernel", registered_read),
    Case::new("mapped/registered-written-by-a-kernel", registered_written),
    Case::new("mapped/same-address-each-time", same_address),
];

const MAPPED: HostFlags = HostFlags {
    portable: true,
    mapped: true,
    write_combined: false,
};

fn rig(test: &TestDevice<'_>) -> Result<Rig, NotPassed> {
    let rig = test.rig()?;
    needs(rig.driver().info().can_map_host, "no mapped host memory")?;
    Ok(rig)
}

/// A kernel copies mapped memory to the device.
fn read_by_kernel(rig: &Rig, memory: &HostMem<'_>) -> Outcome {
    let data = pattern(11, memory.bytes());
    memory.write(0, &data);
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let target = rig.device(memory.bytes())?;
    rig.copy_u8(kernels, rig.mapped(memory)?, target.all(), stream)?;
    rig.driver().stream_synchronize(stream)?;
    check_bytes(&rig.download(target.all())?, &data, "what the kernel read")
}

/// A kernel copies device memory to mapped memory.
fn written_by_kernel(rig: &Rig, memory: &HostMem<'_>) -> Outcome {
    let data = pattern(12, memory.bytes());
    memory.fill(0);
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let source = rig.upload(&data)?;
    rig.copy_u8(kernels, source.all(), rig.mapped(memory)?, stream)?;
    rig.driver().stream_synchronize(stream)?;
    check_bytes(&memory.read_all(), &data, "what the kernel wrote")
}

fn pinned_read(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let memory = rig.pinned(3 * PAGE_BYTES + 1, MAPPED)?;
    read_by_kernel(&rig, &memory)?;
    rig.close()
}

fn pinned_written(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let memory = rig.pinned(3 * PAGE_BYTES + 1, MAPPED)?;
    written_by_kernel(&rig, &memory)?;
    rig.close()
}

fn pinned_changed(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let words: Vec<u32> = (0..1000).collect();
    let memory = rig.pinned(4000, MAPPED)?;
    memory.write(0, &bytes_of_u32(&words));
    for _ in 0..3 {
        rig.add_u32(kernels, rig.mapped(&memory)?, 100, stream)?;
    }
    rig.driver().stream_synchronize(stream)?;
    let expected: Vec<u32> = (300..1300).collect();
    check_eq!(u32_of_bytes(&memory.read_all()), expected, "words");
    rig.close()
}

fn write_combined(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let flags = HostFlags {
        write_combined: true,
        ..MAPPED
    };
    let memory = rig.pinned(2 * PAGE_BYTES, flags)?;
    read_by_kernel(&rig, &memory)?;
    rig.close()
}

/// Runs `work` on registered, mapped memory.
fn registered(test: &TestDevice<'_>, work: fn(&Rig, &HostMem<'_>) -> Outcome) -> Outcome {
    let rig = rig(test)?;
    needs(rig.driver().info().can_register, "no registration")?;
    let flags = RegisterFlags {
        mapped: true,
        ..RegisterFlags::default()
    };
    let memory = rig.pageable(4 * PAGE_BYTES, 0);
    let registered = rig.register(&memory, 0, memory.bytes(), flags)?;
    work(&rig, &registered)?;
    rig.unregister(registered)?;
    rig.close()
}

fn registered_read(test: &TestDevice<'_>) -> Outcome {
    registered(test, read_by_kernel)
}

fn registered_written(test: &TestDevice<'_>) -> Outcome {
    registered(test, written_by_kernel)
}

fn same_address(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let memory = rig.pinned(PAGE_BYTES, MAPPED)?;
    let first = rig.driver().host_device_ptr(memory.base())?;
    let second = rig.driver().host_device_ptr(memory.base())?;
    check_eq!(second, first, "second query of the address");
    rig.close()
}
