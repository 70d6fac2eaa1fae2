//! Registrations that must be refused without side effects.

use pinlane_driver::{ErrorKind, HostPtr, PointerKind, RegisterFlags};

use super::registered::rig;
use crate::outcome::{check_eq, check_error};
use crate::pattern::{check_bytes, pattern, u32_of_bytes};
use crate::rig::{HostMem, PAGE_BYTES, Rig};
use crate::{Case, Outcome, TestDevice};

pub(super) const CASES: &[Case] = &[
    Case::misuse("registered/same-range-twice-is-refused", |test| {
        overlap(test, 4, 8)
    }),
    Case::misuse("registered/overlap-at-the-front-is-refused", |test| {
        overlap(test, 2, 4)
    }),
    Case::misuse("registered/overlap-at-the-end-is-refused", |test| {
        overlap(test, 11, 3)
    }),
    Case::misuse("registered/range-inside-is-refused", |test| {
        overlap(test, 6, 2)
    }),
    Case::misuse("registered/range-around-is-refused", |test| {
        overlap(test, 2, 12)
    }),
    Case::misuse("registered/works-after-a-refusal", works_after_refusal),
    Case::misuse("registered/other-base-is-refused", other_base),
    Case::misuse("registered/unregister-twice-is-refused", twice),
    Case::misuse("registered/never-registered-is-refused", never_registered),
];

/// With pages 4 to 12 registered, registers `pages` at page `first`, too.
fn overlap(test: &TestDevice<'_>, first: usize, pages: usize) -> Outcome {
    let rig = rig(test)?;
    let memory = rig.pageable(16 * PAGE_BYTES, 0);
    let flags = RegisterFlags::default();
    let registered = rig.register(&memory, 4 * PAGE_BYTES, 8 * PAGE_BYTES, flags)?;
    for _ in 0..2 {
        check_error!(
            rig.register(&memory, first * PAGE_BYTES, pages * PAGE_BYTES, flags)
                .map(|other| other.base()),
            ErrorKind::AlreadyRegistered
        );
    }
    // The first registration and the memory around it are unchanged.
    for (page, expected) in [
        (3, PointerKind::Pageable),
        (4, PointerKind::Registered),
        (11, PointerKind::Registered),
        (12, PointerKind::Pageable),
    ] {
        check_eq!(
            rig.driver()
                .pointer_kind(memory.address(page * PAGE_BYTES))?,
            expected,
            "kind of page {page}"
        );
    }
    still_works(&rig)?;
    rig.unregister(registered)?;
    let all = rig.register(&memory, 0, memory.bytes(), flags)?;
    rig.unregister(all)?;
    rig.close()
}

/// No sticky error: copies, kernels and waits succeed.
fn still_works(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let memory = rig.upload(&[0; 64])?;
    rig.add_u32(kernels, memory.all(), 3, stream)?;
    rig.driver().stream_synchronize(stream)?;
    rig.driver().synchronize()?;
    check_eq!(
        u32_of_bytes(&rig.download(memory.all())?),
        vec![3; 16],
        "a kernel afterwards"
    );
    let data = pattern(1, 5000);
    let copied = rig.upload(&data)?;
    check_bytes(&rig.download(copied.all())?, &data, "a copy afterwards")
}

fn works_after_refusal(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let memory = rig.pageable(8 * PAGE_BYTES, 0);
    let flags = RegisterFlags::default();
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let counter = rig.upload(&[0; 16])?;
    let _registered = rig.register(&memory, 0, memory.bytes(), flags)?;
    for _ in 0..5 {
        check_error!(
            rig.register(&memory, 0, memory.bytes(), flags)
                .map(|other| other.base()),
            ErrorKind::AlreadyRegistered
        );
        rig.add_u32(kernels, counter.all(), 1, stream)?;
    }
    rig.driver().stream_synchronize(stream)?;
    check_eq!(
        u32_of_bytes(&rig.download(counter.all())?),
        vec![5; 4],
        "kernels between refusals"
    );
    rig.close()
}

fn unregister(rig: &Rig, memory: &HostMem<'_>, offset: usize) -> pinlane_driver::Result<()> {
    let base = HostPtr::new(memory.base().as_ptr().wrapping_add(offset)).expect("not 0");
    // SAFETY: no work in flight uses the memory. The case tests that the address is refused.
    unsafe { rig.driver().host_unregister(base) }
}

fn other_base(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let memory = rig.pageable(8 * PAGE_BYTES, 0);
    let registered = rig.register(&memory, 0, memory.bytes(), RegisterFlags::default())?;
    for offset in [PAGE_BYTES, 7 * PAGE_BYTES] {
        check_error!(
            unregister(&rig, &registered, offset),
            ErrorKind::NotRegistered
        );
        check_eq!(
            rig.driver().pointer_kind(registered.address(offset))?,
            PointerKind::Registered,
            "kind of byte {offset} after the refusal"
        );
    }
    still_works(&rig)?;
    rig.unregister(registered)?;
    rig.close()
}

fn twice(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let memory = rig.pageable(8 * PAGE_BYTES, 0);
    let registered = rig.register(&memory, 0, memory.bytes(), RegisterFlags::default())?;
    rig.unregister(registered)?;
    check_error!(unregister(&rig, &memory, 0), ErrorKind::NotRegistered);
    still_works(&rig)?;
    rig.close()
}

fn never_registered(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let memory = rig.pageable(PAGE_BYTES, 0);
    check_error!(unregister(&rig, &memory, 0), ErrorKind::NotRegistered);
    still_works(&rig)?;
    rig.close()
}
