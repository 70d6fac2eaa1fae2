//! Pinned memory that the driver allocates.

use pinlane_driver::{ErrorKind, HostFlags, PointerKind};

use crate::outcome::{check, check_eq, check_error, needs};
use crate::pattern::{check_bytes, pattern};
use crate::rig::PAGE_BYTES;
use crate::{Case, Outcome, TestDevice};

pub(super) const CASES: &[Case] = &[
    Case::new("pinned/plain", |test| flags(test, 0)),
    Case::new("pinned/portable", |test| flags(test, PORTABLE)),
    Case::new("pinned/mapped", |test| flags(test, MAPPED)),
    Case::new("pinned/portable-mapped", |test| {
        flags(test, PORTABLE | MAPPED)
    }),
    Case::new("pinned/write-combined", |test| flags(test, WRITE_COMBINED)),
    Case::new("pinned/portable-write-combined", |test| {
        flags(test, PORTABLE | WRITE_COMBINED)
    }),
    Case::new("pinned/mapped-write-combined", |test| {
        flags(test, MAPPED | WRITE_COMBINED)
    }),
    Case::new("pinned/portable-mapped-write-combined", |test| {
        flags(test, PORTABLE | MAPPED | WRITE_COMBINED)
    }),
    Case::new("pinned/alloc-of-any-size", alloc_of_any_size),
    Case::new("pinned/every-page-is-writable", every_page_is_writable),
    Case::new("pinned/allocations-do-not-overlap", do_not_overlap),
    Case::new("pinned/free-and-alloc-again", free_and_alloc_again),
    Case::new("pinned/too-much-is-out-of-memory", too_much),
];

const PORTABLE: u8 = 1;
const MAPPED: u8 = 2;
const WRITE_COMBINED: u8 = 4;

/// A round trip through the device from memory with these flags.
fn flags(test: &TestDevice<'_>, bits: u8) -> Outcome {
    let rig = test.rig()?;
    let flags = HostFlags {
        portable: bits & PORTABLE != 0,
        mapped: bits & MAPPED != 0,
        write_combined: bits & WRITE_COMBINED != 0,
    };
    if flags.mapped {
        needs(rig.driver().info().can_map_host, "no mapped host memory")?;
    }
    let data = pattern(u64::from(bits), 3 * PAGE_BYTES + 5);
    let memory = rig.pinned(data.len(), flags)?;
    memory.write(0, &data);
    check_bytes(&memory.read_all(), &data, "what the host wrote")?;
    let device = rig.device(data.len())?;
    rig.copy(device.all(), memory.all())?;
    memory.fill(0);
    rig.copy(memory.all(), device.all())?;
    check_bytes(&memory.read_all(), &data, "what came back")?;
    check_eq!(
        rig.driver().pointer_kind(memory.address(0))?,
        PointerKind::Pinned,
        "its kind"
    );
    rig.free_pinned(memory)?;
    rig.close()
}

fn alloc_of_any_size(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    for bytes in [1, 2, 4095, 4096, 4097, 1 << 20, (16 << 20) + 1] {
        let memory = rig.pinned(bytes, HostFlags::default())?;
        check_eq!(
            memory.address(0) % PAGE_BYTES as u64,
            0,
            "place in its page of {bytes} bytes"
        );
        memory.write(bytes - 1, &[0x77]);
        check_eq!(memory.read(bytes - 1, 1), [0x77], "last of {bytes} bytes");
        rig.free_pinned(memory)?;
    }
    rig.close()
}

fn every_page_is_writable(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let pages = 512;
    let memory = rig.pinned(pages * PAGE_BYTES, HostFlags::default())?;
    for page in 0..pages {
        memory.write(page * PAGE_BYTES, &(page as u32).to_le_bytes());
    }
    for page in 0..pages {
        check_eq!(
            memory.read(page * PAGE_BYTES, 4),
            (page as u32).to_le_bytes(),
            "page {page}"
        );
    }
    rig.close()
}

fn do_not_overlap(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let memory = (0..32u8)
        .map(|i| {
            // Small ones, too: a driver may place several in a page.
            let bytes = 1 + 1000 * usize::from(i / 2);
            let memory = rig.pinned(bytes, HostFlags::default())?;
            memory.fill(i);
            Ok(memory)
        })
        .collect::<pinlane_driver::Result<Vec<_>>>()?;
    for (i, memory) in (0u8..).zip(&memory) {
        let place = memory.address(0) % PAGE_BYTES as u64;
        check_eq!(place, 0, "place of allocation {i} in its page");
        check!(
            memory.read_all().iter().all(|byte| *byte == i),
            "allocation {i} was overwritten"
        );
    }
    rig.close()
}

fn free_and_alloc_again(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    for round in 0..20 {
        let memory = rig.pinned(100_000, HostFlags::default())?;
        memory.fill(round);
        check_eq!(memory.read(99_999, 1), [round], "round {round}");
        rig.free_pinned(memory)?;
    }
    rig.close()
}

fn too_much(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    // As much as a process can address.
    let bytes = 1usize << 47;
    for _ in 0..2 {
        check_error!(
            rig.pinned(bytes, HostFlags::default())
                .map(|memory| memory.base()),
            ErrorKind::OutOfMemory
        );
    }
    let data = pattern(9, 10_000);
    let device = rig.upload(&data)?;
    rig.driver().synchronize()?;
    check_bytes(&rig.download(device.all())?, &data, "a copy afterwards")?;
    let small = rig.pinned(100, HostFlags::default())?;
    small.fill(1);
    rig.close()
}
