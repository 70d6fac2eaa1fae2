//! Plain device memory.

use pinlane_driver::ErrorKind;

use crate::outcome::{check, check_eq, check_error};
use crate::pattern::{check_bytes, pattern};
use crate::{Case, Outcome, TestDevice};

const BIG_BYTES: usize = 64 << 20;

pub(super) const CASES: &[Case] = &[
    Case::new("memory/alloc-of-any-size", alloc_of_any_size),
    Case::new("memory/alloc-is-aligned", alloc_is_aligned),
    Case::new("memory/allocations-do-not-overlap", do_not_overlap),
    Case::new("memory/contents-stay", contents_stay),
    Case::new("memory/free-and-alloc-again", free_and_alloc_again),
    Case::new("memory/info-follows-alloc-and-free", info_follows),
    Case::new("memory/too-much-is-out-of-memory", too_much),
    Case::new("memory/works-after-out-of-memory", works_after_too_much),
    Case::new("memory/free-after-work-on-it", free_after_work),
];

fn alloc_of_any_size(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    for bytes in [1, 2, 255, 256, 257, 4096, 1 << 20, (1 << 20) + 1, BIG_BYTES] {
        let memory = rig.device(bytes)?;
        check!(memory.base().0 != 0, "{bytes} bytes at address 0");
        rig.free_device(memory)?;
    }
    rig.close()
}

fn alloc_is_aligned(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    for bytes in [1, 3, 100, 257, 5000, 1 << 20] {
        let memory = rig.device(bytes)?;
        check_eq!(memory.base().0 % 256, 0, "alignment of {bytes} bytes");
    }
    rig.close()
}

fn do_not_overlap(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let mut ranges = Vec::new();
    for i in 0..64usize {
        let memory = rig.device(1 + 97 * i)?;
        ranges.push((memory.base().0, memory.base().0 + memory.bytes() as u64));
    }
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        check!(pair[0].1 <= pair[1].0, "{:x?} overlap", pair);
    }
    rig.close()
}

fn contents_stay(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let data: Vec<_> = (0..16).map(|i| pattern(i, 1000 + i as usize)).collect();
    let memory = data
        .iter()
        .map(|bytes| rig.upload(bytes))
        .collect::<Result<Vec<_>, _>>()?;
    for (at, (memory, data)) in memory.iter().zip(&data).enumerate() {
        check_bytes(
            &rig.download(memory.all())?,
            data,
            &format!("allocation {at}"),
        )?;
    }
    rig.close()
}

fn free_and_alloc_again(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    for round in 0..50 {
        let data = pattern(round, 3000);
        let memory = rig.upload(&data)?;
        check_bytes(
            &rig.download(memory.all())?,
            &data,
            &format!("round {round}"),
        )?;
        rig.free_device(memory)?;
    }
    rig.close()
}

fn info_follows(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    // The driver may reserve memory for itself at the first allocation.
    let first = rig.device(1)?;
    let before = rig.driver().memory_info()?.free_bytes;
    let memory = rig.device(BIG_BYTES)?;
    let during = rig.driver().memory_info()?.free_bytes;
    check!(
        during + BIG_BYTES as u64 <= before,
        "{during} bytes free after {BIG_BYTES} were taken from {before}"
    );
    rig.free_device(memory)?;
    let after = rig.driver().memory_info()?.free_bytes;
    check!(
        after >= during + BIG_BYTES as u64,
        "{after} bytes free after {BIG_BYTES} came back to {during}"
    );
    rig.free_device(first)?;
    rig.close()
}

fn too_much(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let total = rig.driver().memory_info()?.total_bytes;
    for factor in [2, 16] {
        let bytes = total as usize * factor;
        check_error!(
            rig.device(bytes).map(|memory| memory.base()),
            ErrorKind::OutOfMemory
        );
    }
    rig.close()
}

fn works_after_too_much(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let memory = rig.upload(&[0; 400])?;
    let total = rig.driver().memory_info()?.total_bytes;
    for _ in 0..3 {
        check!(
            rig.device(total as usize * 2).is_err(),
            "an allocation of twice the memory succeeded"
        );
        rig.add_u32(kernels, memory.all(), 7, stream)?;
        rig.driver().stream_synchronize(stream)?;
        rig.driver().synchronize()?;
    }
    let words = crate::pattern::u32_of_bytes(&rig.download(memory.all())?);
    check_eq!(words, vec![21; 100], "what the kernels wrote");
    let small = rig.device(1)?;
    rig.free_device(small)?;
    rig.close()
}

fn free_after_work(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let event = rig.event()?;
    for value in 0..20 {
        let memory = rig.device(10_000)?;
        rig.memset(memory.all(), value, stream)?;
        rig.driver().event_record(event, stream)?;
        rig.driver().event_synchronize(event)?;
        rig.free_device(memory)?;
    }
    rig.close()
}
