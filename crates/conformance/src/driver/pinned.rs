//! Pinned memory that the driver allocates.

use pinlane_driver::{ErrorKind, HostFlags, PointerKind};

use super::pointer_attributes::check_kinds;
use crate::Outcome;
use crate::case::cases;
use crate::outcome::{check_eq, check_error};
use crate::pattern::pattern;
use crate::rig::{PAGE_BYTES, Rig};

cases! {
    "pinned/plain" => |rig| flags(rig, 0),
    "pinned/portable" => |rig| flags(rig, PORTABLE),
    "pinned/mapped" => |rig| flags(rig, MAPPED),
    "pinned/portable-mapped" => |rig| flags(rig, PORTABLE | MAPPED),
    "pinned/write-combined" => |rig| flags(rig, WRITE_COMBINED),
    "pinned/portable-write-combined" => |rig| flags(rig, PORTABLE | WRITE_COMBINED),
    "pinned/mapped-write-combined" => |rig| flags(rig, MAPPED | WRITE_COMBINED),
    "pinned/portable-mapped-write-combined" => |rig| flags(rig, PORTABLE | MAPPED | WRITE_COMBINED),
    "pinned/alloc-of-any-size" => alloc_of_any_size,
    "pinned/every-page-is-writable" => every_page_is_writable,
    "pinned/allocations-do-not-overlap" => do_not_overlap,
    "pinned/free-and-alloc-again" => free_and_alloc_again,
    "pinned/too-much-is-out-of-memory" => too_much,
}

const PORTABLE: u8 = 1;
const MAPPED: u8 = 2;
const WRITE_COMBINED: u8 = 4;

/// A round trip through the device from memory with these flags.
fn flags(rig: &Rig, bits: u8) -> Outcome {
    let flags = HostFlags {
        portable: bits & PORTABLE != 0,
        mapped: bits & MAPPED != 0,
        write_combined: bits & WRITE_COMBINED != 0,
    };
    if flags.mapped {
        rig.needs_mapping()?;
    }
    let data = pattern(u64::from(bits), 3 * PAGE_BYTES + 5);
    let memory = rig.pinned_with(data.len(), flags)?;
    memory.write(0, &data);
    rig.check(memory.all(), &data, "what the host wrote")?;
    let device = rig.device(data.len())?;
    rig.copy(device.all(), memory.all())?;
    memory.fill(0);
    rig.copy(memory.all(), device.all())?;
    rig.check(memory.all(), &data, "what came back")?;
    check_kinds(rig, memory.address(0), [0], PointerKind::Pinned)?;
    Ok(rig.free_memory(memory)?)
}

fn alloc_of_any_size(rig: &Rig) -> Outcome {
    for bytes in [1, 2, 4095, 4096, 4097, 1 << 20, (16 << 20) + 1] {
        let memory = rig.pinned(bytes)?;
        let place = memory.address(0) % PAGE_BYTES as u64;
        check_eq!(place, 0, "place in its page of {bytes} bytes");
        memory.write(bytes - 1, &[0x77]);
        let what = format!("last of {bytes} bytes");
        rig.check(memory.span(bytes - 1, 1), &[0x77], &what)?;
        rig.free_memory(memory)?;
    }
    Ok(())
}

fn every_page_is_writable(rig: &Rig) -> Outcome {
    let pages = 512;
    let memory = rig.pinned(pages * PAGE_BYTES)?;
    for page in 0..pages {
        memory.write(page * PAGE_BYTES, &(page as u32).to_le_bytes());
    }
    for page in 0..pages {
        let place = memory.span(page * PAGE_BYTES, 4);
        rig.check_words(place, &[page as u32], &format!("page {page}"))?;
    }
    Ok(())
}

fn do_not_overlap(rig: &Rig) -> Outcome {
    // Small ones, too: a driver may place several in a page.
    let bytes = |i: u8| 1 + 1000 * usize::from(i / 2);
    let memory = (0..32u8).map(|i| rig.pinned_from(&vec![i; bytes(i)]));
    let memory = memory.collect::<Result<Vec<_>, _>>()?;
    for (i, memory) in (0u8..).zip(&memory) {
        let place = memory.address(0) % PAGE_BYTES as u64;
        check_eq!(place, 0, "place of allocation {i} in its page");
        let what = format!("allocation {i} was overwritten");
        rig.check(memory.all(), &vec![i; memory.bytes()], &what)?;
    }
    Ok(())
}

fn free_and_alloc_again(rig: &Rig) -> Outcome {
    for round in 0..20 {
        let memory = rig.pinned_from(&[round; 100_000])?;
        rig.check(memory.span(99_999, 1), &[round], &format!("round {round}"))?;
        rig.free_memory(memory)?;
    }
    Ok(())
}

fn too_much(rig: &Rig) -> Outcome {
    // As much as a process can address.
    let bytes = 1usize << 47;
    for _ in 0..2 {
        check_error!(rig.pinned(bytes), ErrorKind::OutOfMemory);
    }
    let data = pattern(9, 10_000);
    let device = rig.upload(&data)?;
    rig.synchronize()?;
    rig.check(device.all(), &data, "a copy afterwards")?;
    rig.pinned_from(&[1; 100])?;
    Ok(())
}
