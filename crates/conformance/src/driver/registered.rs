//! Pageable memory that is page-locked in place.

use std::fs::File;
use std::io::Write;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use pinlane_driver::{CopyOp, HostPtr, Place, PointerKind, RegisterFlags, Result};

use super::pointer_attributes::check_kinds;
use crate::Outcome;
use crate::case::cases;
use crate::outcome::needs;
use crate::pattern::{check_bytes, pattern};
use crate::rig::{Memory, PAGE_BYTES, Rig};

cases! {
    needs Rig::needs_registration;
    "registered/plain" => |rig| flags(rig, false, false),
    "registered/portable" => |rig| flags(rig, true, false),
    "registered/mapped" => |rig| flags(rig, false, true),
    "registered/portable-mapped" => |rig| flags(rig, true, true),
    "registered/read-only-flag" => read_only_flag,
    "registered/read-only-mapping-of-a-file" => read_only_mapping,
    "registered/a-vec" => a_vec,
    "registered/whole-pages" => |rig| range(rig, 0, 16 * PAGE_BYTES),
    "registered/part-of-a-page" => |rig| range(rig, 100, 900),
    "registered/from-the-middle-of-a-page" => |rig| range(rig, 1001, 3 * PAGE_BYTES + 77),
    "registered/many-ranges" => many_ranges,
    "registered/large-range" => |rig| range(rig, 0, 16 << 20),
    "registered/again-after-unregister" => again,
    "registered/contents-stay" => contents_stay,
}

const READ_ONLY: RegisterFlags = RegisterFlags {
    portable: true,
    mapped: false,
    read_only: true,
};

fn needs_read_only(rig: &Rig) -> Outcome {
    let can = rig.info().can_register_read_only;
    needs(can, "no read-only registration")
}

/// A round trip through the device from registered memory.
fn round_trip(rig: &Rig, memory: &Memory<'_>, seed: u64) -> Outcome {
    let data = pattern(seed, memory.bytes());
    let stream = rig.stream()?;
    let device = rig.device(data.len())?;
    memory.write(0, &data);
    rig.copy_async(device.all(), memory.all(), stream)?;
    rig.stream_synchronize(stream)?;
    memory.fill(0);
    rig.copy_async(memory.all(), device.all(), stream)?;
    rig.stream_synchronize(stream)?;
    rig.check(memory.all(), &data, "round trip")
}

fn flags(rig: &Rig, portable: bool, mapped: bool) -> Outcome {
    if mapped {
        rig.needs_mapping()?;
    }
    let memory = rig.pageable(5 * PAGE_BYTES, 0);
    let flags = RegisterFlags {
        portable,
        mapped,
        read_only: false,
    };
    let registered = rig.register_part(&memory, 0, memory.bytes(), flags)?;
    round_trip(rig, &registered, 3)?;
    Ok(rig.unregister(registered)?)
}

fn read_only_flag(rig: &Rig) -> Outcome {
    needs_read_only(rig)?;
    let memory = rig.pageable(3 * PAGE_BYTES, 0);
    let data = pattern(4, memory.bytes());
    memory.write(0, &data);
    let registered = rig.register_part(&memory, 0, memory.bytes(), READ_ONLY)?;
    let device = rig.device(data.len())?;
    rig.copy(device.all(), registered.all())?;
    rig.check(device.all(), &data, "what was read")?;
    Ok(rig.unregister(registered)?)
}

fn read_only_mapping(rig: &Rig) -> Outcome {
    needs_read_only(rig)?;
    let data = pattern(5, 4 * PAGE_BYTES);
    let mapping = map_file(&data)?;
    read_in_place(rig, &mapping, READ_ONLY)?;
    check_bytes(&mapping, &data, "the mapping itself")
}

/// Registers memory that is not the rig's, copies it to the device and unregisters it.
fn read_in_place(rig: &Rig, memory: &[u8], flags: RegisterFlags) -> Outcome {
    let bytes = memory.len();
    let base: HostPtr = NonNull::from_ref(memory).cast();
    let device = rig.device(bytes)?;
    let copy = CopyOp {
        target: Place::Device(device.all().device()),
        source: Place::Host(base),
        bytes,
    };
    // SAFETY: the memory is borrowed for longer than its registration, both places hold `bytes`
    // bytes, and the copy, which only reads the memory, is done before the range is unregistered.
    let copied = unsafe {
        rig.host_register(base, bytes, flags)?;
        let copied = (**rig).copy(copy);
        rig.host_unregister(base)?;
        copied
    };
    copied?;
    rig.check(device.all(), memory, "what was read")
}

/// A read-only mapping of a new file that no other process can open.
fn map_file(data: &[u8]) -> std::io::Result<memmap2::Mmap> {
    static FILES: AtomicU32 = AtomicU32::new(0); // cases may run on several threads at once
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let name = format!("pinlane-conformance-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    // A killed process with the same id may have left the file.
    let _ = std::fs::remove_file(&path);
    File::create_new(&path)?.write_all(data)?;
    let file = File::open(&path)?;
    std::fs::remove_file(&path)?;
    // SAFETY: the file has no name, so no other process can truncate it while it is mapped.
    unsafe { memmap2::Mmap::map(&file) }
}

fn a_vec(rig: &Rig) -> Outcome {
    for bytes in [100, 5_000, 1_000_000] {
        let data = pattern(6, bytes);
        let vec = data.clone();
        read_in_place(rig, &vec, RegisterFlags::default())?;
        check_bytes(&vec, &data, "the vector itself")?;
    }
    Ok(())
}

/// Registers `bytes` at `offset` into a page, and copies with them.
fn range(rig: &Rig, offset: usize, bytes: usize) -> Outcome {
    let memory = rig.pageable(bytes, offset);
    let registered = rig.register(&memory)?;
    round_trip(rig, &registered, 7)?;
    Ok(rig.unregister(registered)?)
}

fn many_ranges(rig: &Rig) -> Outcome {
    let memory = rig.pageable(64 * PAGE_BYTES, 0);
    let flags = RegisterFlags::default();
    // Every other page, so that no two ranges are adjacent.
    let starts = (0..64).step_by(2).map(|page| page * PAGE_BYTES);
    let ranges = starts.map(|at| rig.register_part(&memory, at, PAGE_BYTES, flags));
    let ranges = ranges.collect::<Result<Vec<_>>>()?;
    for (seed, range) in (0u64..).zip(&ranges) {
        round_trip(rig, range, seed)?;
    }
    // Unregistered in another order.
    let ranges = ranges.into_iter().enumerate();
    let (odd, even): (Vec<_>, Vec<_>) = ranges.partition(|(i, _)| i % 2 == 1);
    for (_, range) in odd.into_iter().chain(even) {
        rig.unregister(range)?;
    }
    Ok(())
}

fn again(rig: &Rig) -> Outcome {
    let memory = rig.pageable(4 * PAGE_BYTES, 0);
    for round in 0..10 {
        let bytes = (1 + round as usize % 4) * PAGE_BYTES;
        let registered = rig.register_part(&memory, 0, bytes, RegisterFlags::default())?;
        round_trip(rig, &registered, round)?;
        rig.unregister(registered)?;
        check_kinds(rig, memory.address(0), [0], PointerKind::Pageable)?;
    }
    Ok(())
}

fn contents_stay(rig: &Rig) -> Outcome {
    let memory = rig.pageable(6 * PAGE_BYTES, 0);
    let data = pattern(8, memory.bytes());
    memory.write(0, &data);
    let registered = rig.register(&memory)?;
    rig.check(registered.all(), &data, "while registered")?;
    rig.unregister(registered)?;
    rig.check(memory.all(), &data, "afterwards")
}
