//! Pageable memory that is page-locked in place.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};

use pinlane_driver::{CopyOp, HostPtr, Place, PointerKind, RegisterFlags, Result};

use crate::outcome::{check_eq, needs};
use crate::pattern::{check_bytes, pattern};
use crate::rig::{HostMem, PAGE_BYTES, Rig};
use crate::{Case, NotPassed, Outcome, TestDevice};

pub(super) const CASES: &[Case] = &[
    Case::new("registered/plain", |test| flags(test, false, false)),
    Case::new("registered/portable", |test| flags(test, true, false)),
    Case::new("registered/mapped", |test| flags(test, false, true)),
    Case::new("registered/portable-mapped", |test| flags(test, true, true)),
    Case::new("registered/read-only-flag", read_only_flag),
    Case::new("registered/read-only-mapping-of-a-file", read_only_mapping),
    Case::new("registered/a-vec", a_vec),
    Case::new("registered/whole-pages", whole_pages),
    Case::new("registered/part-of-a-page", part_of_a_page),
    Case::new("registered/from-the-middle-of-a-page", from_the_middle),
    Case::new("registered/many-ranges", many_ranges),
    Case::new("registered/large-range", large_range),
    Case::new("registered/again-after-unregister", again),
    Case::new("registered/contents-stay", contents_stay),
];

pub(super) fn rig(test: &TestDevice<'_>) -> std::result::Result<Rig, NotPassed> {
    let rig = test.rig()?;
    needs(rig.driver().info().can_register, "no registration")?;
    Ok(rig)
}

/// A round trip through the device from registered memory.
fn round_trip(rig: &Rig, memory: &HostMem<'_>, seed: u64) -> Outcome {
    let data = pattern(seed, memory.bytes());
    let stream = rig.stream()?;
    let device = rig.device(data.len())?;
    memory.write(0, &data);
    rig.copy_async(device.all(), memory.all(), stream)?;
    rig.driver().stream_synchronize(stream)?;
    memory.fill(0);
    rig.copy_async(memory.all(), device.all(), stream)?;
    rig.driver().stream_synchronize(stream)?;
    check_bytes(&memory.read_all(), &data, "round trip")
}

fn flags(test: &TestDevice<'_>, portable: bool, mapped: bool) -> Outcome {
    let rig = rig(test)?;
    if mapped {
        needs(rig.driver().info().can_map_host, "no mapped host memory")?;
    }
    let memory = rig.pageable(5 * PAGE_BYTES, 0);
    let flags = RegisterFlags {
        portable,
        mapped,
        read_only: false,
    };
    let registered = rig.register(&memory, 0, memory.bytes(), flags)?;
    round_trip(&rig, &registered, 3)?;
    rig.unregister(registered)?;
    rig.close()
}

const READ_ONLY: RegisterFlags = RegisterFlags {
    portable: true,
    mapped: false,
    read_only: true,
};

fn read_only_flag(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    needs(
        rig.driver().info().can_register_read_only,
        "no read-only registration",
    )?;
    let memory = rig.pageable(3 * PAGE_BYTES, 0);
    let data = pattern(4, memory.bytes());
    memory.write(0, &data);
    let registered = rig.register(&memory, 0, memory.bytes(), READ_ONLY)?;
    let device = rig.device(data.len())?;
    rig.copy(device.all(), registered.all())?;
    check_bytes(&rig.download(device.all())?, &data, "what was read")?;
    rig.unregister(registered)?;
    rig.close()
}

fn read_only_mapping(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    needs(
        rig.driver().info().can_register_read_only,
        "no read-only registration",
    )?;
    let data = pattern(5, 4 * PAGE_BYTES);
    let device = rig.device(data.len())?;
    let mapping = map_file(&data)?;
    let base = HostPtr::new(mapping.as_ptr().cast_mut()).expect("a mapping is never at 0");
    let copy = CopyOp {
        target: Place::Device(device.base()),
        source: Place::Host(base),
        bytes: data.len(),
    };
    // SAFETY: the mapping outlives its registration, both places hold `data.len()` bytes, and the
    // copy, which only reads the mapping, is done before the range is unregistered.
    let copied = unsafe {
        rig.driver().host_register(base, data.len(), READ_ONLY)?;
        let copied = rig.driver().copy(copy);
        rig.driver().host_unregister(base)?;
        copied
    };
    copied?;
    check_bytes(&rig.download(device.all())?, &data, "what was read")?;
    rig.close()
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

fn a_vec(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    for bytes in [100, 5_000, 1_000_000] {
        let data = pattern(6, bytes);
        let mut vec = data.clone();
        let base = HostPtr::new(vec.as_mut_ptr()).expect("a vector's memory is never at 0");
        let device = rig.device(bytes)?;
        let copy = CopyOp {
            target: Place::Device(device.base()),
            source: Place::Host(base),
            bytes,
        };
        // SAFETY: the vector outlives its registration and is not touched meanwhile; the copy is
        // done before the range is unregistered.
        let copied = unsafe {
            rig.driver()
                .host_register(base, bytes, RegisterFlags::default())?;
            let copied = rig.driver().copy(copy);
            rig.driver().host_unregister(base)?;
            copied
        };
        copied?;
        check_bytes(&vec, &data, "the vector itself")?;
        check_bytes(&rig.download(device.all())?, &data, "what was read")?;
    }
    rig.close()
}

/// Registers `bytes` at `offset` into a page, and copies with them.
fn range(test: &TestDevice<'_>, offset: usize, bytes: usize) -> Outcome {
    let rig = rig(test)?;
    let memory = rig.pageable(bytes, offset);
    let registered = rig.register(&memory, 0, bytes, RegisterFlags::default())?;
    round_trip(&rig, &registered, 7)?;
    rig.unregister(registered)?;
    rig.close()
}

fn whole_pages(test: &TestDevice<'_>) -> Outcome {
    range(test, 0, 16 * PAGE_BYTES)
}

fn part_of_a_page(test: &TestDevice<'_>) -> Outcome {
    range(test, 100, 900)
}

fn from_the_middle(test: &TestDevice<'_>) -> Outcome {
    range(test, 1001, 3 * PAGE_BYTES + 77)
}

fn large_range(test: &TestDevice<'_>) -> Outcome {
    range(test, 0, 16 << 20)
}

fn many_ranges(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let memory = rig.pageable(64 * PAGE_BYTES, 0);
    // Every other page, so that no two ranges are adjacent.
    let ranges = (0..32)
        .map(|i| {
            rig.register(
                &memory,
                2 * i * PAGE_BYTES,
                PAGE_BYTES,
                RegisterFlags::default(),
            )
        })
        .collect::<Result<Vec<_>>>()?;
    for (seed, range) in (0u64..).zip(&ranges) {
        round_trip(&rig, range, seed)?;
    }
    // Unregistered in another order.
    let (odd, even): (Vec<_>, Vec<_>) = ranges
        .into_iter()
        .enumerate()
        .partition(|(i, _)| i % 2 == 1);
    for (_, range) in odd.into_iter().chain(even) {
        rig.unregister(range)?;
    }
    rig.close()
}

fn again(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let memory = rig.pageable(4 * PAGE_BYTES, 0);
    for round in 0..10 {
        let bytes = (1 + round as usize % 4) * PAGE_BYTES;
        let registered = rig.register(&memory, 0, bytes, RegisterFlags::default())?;
        round_trip(&rig, &registered, round)?;
        rig.unregister(registered)?;
        check_eq!(
            rig.driver().pointer_kind(memory.address(0))?,
            PointerKind::Pageable,
            "its kind after round {round}"
        );
    }
    rig.close()
}

fn contents_stay(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let memory = rig.pageable(6 * PAGE_BYTES, 0);
    let data = pattern(8, memory.bytes());
    memory.write(0, &data);
    let registered = rig.register(&memory, 0, memory.bytes(), RegisterFlags::default())?;
    check_bytes(&registered.read_all(), &data, "while registered")?;
    rig.unregister(registered)?;
    check_bytes(&memory.read_all(), &data, "afterwards")?;
    rig.close()
}
