//! Host memory that kernels can access.

use bytemuck::cast_slice;
use pinlane_driver::{HostFlags, RegisterFlags};

use crate::Outcome;
use crate::case::cases;
use crate::outcome::check_eq;
use crate::pattern::pattern;
use crate::rig::{Memory, PAGE_BYTES, Rig};

cases! {
    needs Rig::needs_mapping;
    "mapped/pinned-read-by-a-kernel" => |rig| pinned(rig, MAPPED, read_by_kernel),
    "mapped/pinned-written-by-a-kernel" => |rig| pinned(rig, MAPPED, written_by_kernel),
    "mapped/pinned-changed-in-place" => pinned_changed,
    "mapped/write-combined-read-by-a-kernel" => |rig| pinned(rig, COMBINED, read_by_kernel),
    "mapped/registered-read-by-a-kernel" => |rig| registered(rig, read_by_kernel),
    "mapped/registered-written-by-a-kernel" => |rig| registered(rig, written_by_kernel),
    "mapped/same-address-each-time" => same_address,
}

const MAPPED: HostFlags = HostFlags {
    portable: true,
    mapped: true,
    write_combined: false,
};

const COMBINED: HostFlags = HostFlags {
    write_combined: true,
    ..MAPPED
};

/// A copy by a kernel to or from host memory.
type Work = fn(&Rig, &Memory<'_>) -> Outcome;

/// A kernel copies mapped memory to the device.
fn read_by_kernel(rig: &Rig, memory: &Memory<'_>) -> Outcome {
    let data = pattern(11, memory.bytes());
    memory.write(0, &data);
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let target = rig.device(memory.bytes())?;
    rig.copy_u8(kernels, rig.mapped(memory)?, target.all(), stream)?;
    rig.stream_synchronize(stream)?;
    rig.check(target.all(), &data, "what the kernel read")
}

/// A kernel copies device memory to mapped memory.
fn written_by_kernel(rig: &Rig, memory: &Memory<'_>) -> Outcome {
    let data = pattern(12, memory.bytes());
    memory.fill(0);
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let source = rig.upload(&data)?;
    rig.copy_u8(kernels, source.all(), rig.mapped(memory)?, stream)?;
    rig.stream_synchronize(stream)?;
    rig.check(memory.all(), &data, "what the kernel wrote")
}

fn pinned(rig: &Rig, flags: HostFlags, work: Work) -> Outcome {
    work(rig, &rig.pinned_with(3 * PAGE_BYTES + 1, flags)?)
}

fn pinned_changed(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let words: Vec<u32> = (0..1000).collect();
    let memory = rig.pinned_with(4000, MAPPED)?;
    memory.write(0, cast_slice(&words));
    for _ in 0..3 {
        rig.add_u32(kernels, rig.mapped(&memory)?, 100, stream)?;
    }
    rig.stream_synchronize(stream)?;
    let expected: Vec<u32> = (300..1300).collect();
    rig.check_words(memory.all(), &expected, "words")
}

fn registered(rig: &Rig, work: Work) -> Outcome {
    rig.needs_registration()?;
    let flags = RegisterFlags {
        mapped: true,
        ..RegisterFlags::default()
    };
    let memory = rig.pageable(4 * PAGE_BYTES, 0);
    let registered = rig.register_part(&memory, 0, memory.bytes(), flags)?;
    work(rig, &registered)?;
    Ok(rig.unregister(registered)?)
}

fn same_address(rig: &Rig) -> Outcome {
    let memory = rig.pinned_with(PAGE_BYTES, MAPPED)?;
    let host = memory.all().host();
    let first = rig.host_device_ptr(host)?;
    let second = rig.host_device_ptr(host)?;
    check_eq!(second, first, "second query of the address");
    Ok(())
}
