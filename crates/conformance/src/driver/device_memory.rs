//! Plain device memory.

use pinlane_driver::ErrorKind;

use crate::Outcome;
use crate::case::cases;
use crate::outcome::{check, check_eq, check_error};
use crate::pattern::pattern;
use crate::rig::Rig;

const BIG_BYTES: usize = 64 << 20;

cases! {
    "memory/alloc-of-any-size" => alloc_of_any_size,
    "memory/alloc-is-aligned" => alloc_is_aligned,
    "memory/allocations-do-not-overlap" => do_not_overlap,
    "memory/contents-stay" => contents_stay,
    "memory/free-and-alloc-again" => free_and_alloc_again,
    "memory/info-follows-alloc-and-free" => info_follows,
    "memory/too-much-is-out-of-memory" => too_much,
    "memory/works-after-out-of-memory" => works_after_too_much,
    "memory/free-after-work-on-it" => free_after_work,
}

fn alloc_of_any_size(rig: &Rig) -> Outcome {
    for bytes in [1, 2, 255, 256, 257, 4096, 1 << 20, (1 << 20) + 1, BIG_BYTES] {
        let memory = rig.device(bytes)?;
        check!(memory.address(0) != 0, "{bytes} bytes at address 0");
        rig.free_memory(memory)?;
    }
    Ok(())
}

fn alloc_is_aligned(rig: &Rig) -> Outcome {
    for bytes in [1, 3, 100, 257, 5000, 1 << 20] {
        let memory = rig.device(bytes)?;
        check_eq!(memory.address(0) % 256, 0, "alignment of {bytes} bytes");
    }
    Ok(())
}

fn do_not_overlap(rig: &Rig) -> Outcome {
    let mut ranges = Vec::new();
    for i in 0..64usize {
        let memory = rig.device(1 + 97 * i)?;
        ranges.push((memory.address(0), memory.address(0) + memory.bytes() as u64));
    }
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        check!(pair[0].1 <= pair[1].0, "{:x?} overlap", pair);
    }
    Ok(())
}

fn contents_stay(rig: &Rig) -> Outcome {
    let data: Vec<_> = (0..16).map(|i| pattern(i, 1000 + i as usize)).collect();
    let memory = data.iter().map(|bytes| rig.upload(bytes));
    let memory = memory.collect::<Result<Vec<_>, _>>()?;
    for (at, (memory, data)) in memory.iter().zip(&data).enumerate() {
        rig.check(memory.all(), data, &format!("allocation {at}"))?;
    }
    Ok(())
}

fn free_and_alloc_again(rig: &Rig) -> Outcome {
    for round in 0..50 {
        let data = pattern(round, 3000);
        let memory = rig.upload(&data)?;
        rig.check(memory.all(), &data, &format!("round {round}"))?;
        rig.free_memory(memory)?;
    }
    Ok(())
}

fn info_follows(rig: &Rig) -> Outcome {
    // The driver may reserve memory for itself at the first allocation.
    let first = rig.device(1)?;
    let before = rig.memory_info()?.free_bytes;
    let memory = rig.device(BIG_BYTES)?;
    let during = rig.memory_info()?.free_bytes;
    check!(
        during + BIG_BYTES as u64 <= before,
        "{during} bytes free after {BIG_BYTES} were taken from {before}"
    );
    rig.free_memory(memory)?;
    let after = rig.memory_info()?.free_bytes;
    check!(
        after >= during + BIG_BYTES as u64,
        "{after} bytes free after {BIG_BYTES} came back to {during}"
    );
    Ok(rig.free_memory(first)?)
}

fn too_much(rig: &Rig) -> Outcome {
    let total = rig.memory_info()?.total_bytes;
    for factor in [2, 16] {
        let bytes = total as usize * factor;
        check_error!(rig.device(bytes), ErrorKind::OutOfMemory);
    }
    Ok(())
}

fn works_after_too_much(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let memory = rig.upload(&[0; 400])?;
    let total = rig.memory_info()?.total_bytes;
    for _ in 0..3 {
        let refused = rig.device(total as usize * 2).is_err();
        check!(refused, "an allocation of twice the memory succeeded");
        rig.add_u32(kernels, memory.all(), 7, stream)?;
        rig.stream_synchronize(stream)?;
        rig.synchronize()?;
    }
    rig.check_words(memory.all(), &[21; 100], "what the kernels wrote")?;
    Ok(rig.free_memory(rig.device(1)?)?)
}

fn free_after_work(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let event = rig.event()?;
    for value in 0..20 {
        let memory = rig.device(10_000)?;
        rig.memset(memory.all(), value, stream)?;
        rig.record_and_wait(event, stream)?;
        rig.free_memory(memory)?;
    }
    Ok(())
}
