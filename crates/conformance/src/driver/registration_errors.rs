//! Registrations that must be refused without side effects.

use pinlane_driver::{ErrorKind, HostPtr, PointerKind, RegisterFlags, Result};

use super::pointer_attributes::check_kinds;
use crate::Outcome;
use crate::case::cases;
use crate::outcome::check_error;
use crate::pattern::pattern;
use crate::rig::{Memory, PAGE_BYTES, Rig};

cases! {
    misuse;
    needs Rig::needs_registration;
    "registered/same-range-twice-is-refused" => |rig| overlap(rig, 4, 8),
    "registered/overlap-at-the-front-is-refused" => |rig| overlap(rig, 2, 4),
    "registered/overlap-at-the-end-is-refused" => |rig| overlap(rig, 11, 3),
    "registered/range-inside-is-refused" => |rig| overlap(rig, 6, 2),
    "registered/range-around-is-refused" => |rig| overlap(rig, 2, 12),
    "registered/works-after-a-refusal" => works_after_refusal,
    "registered/other-base-is-refused" => other_base,
    "registered/unregister-twice-is-refused" => twice,
    "registered/never-registered-is-refused" => never_registered,
}

/// With pages 4 to 12 registered, registers `pages` at page `first`, too.
fn overlap(rig: &Rig, first: usize, pages: usize) -> Outcome {
    let memory = rig.pageable(16 * PAGE_BYTES, 0);
    let register = |first, pages| {
        let flags = RegisterFlags::default();
        rig.register_part(&memory, first * PAGE_BYTES, pages * PAGE_BYTES, flags)
    };
    let registered = register(4, 8)?;
    for _ in 0..2 {
        check_error!(register(first, pages), ErrorKind::AlreadyRegistered);
    }
    // The first registration and the memory around it are unchanged.
    for (pages, kind) in [
        ([4, 11], PointerKind::Registered),
        ([3, 12], PointerKind::Pageable),
    ] {
        let offsets = pages.map(|page| page * PAGE_BYTES);
        check_kinds(rig, memory.address(0), offsets, kind)?;
    }
    still_works(rig)?;
    rig.unregister(registered)?;
    Ok(rig.unregister(register(0, 16)?)?)
}

/// No sticky error: copies, kernels and waits succeed.
fn still_works(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let memory = rig.upload(&[0; 64])?;
    rig.add_u32(kernels, memory.all(), 3, stream)?;
    rig.stream_synchronize(stream)?;
    rig.synchronize()?;
    rig.check_words(memory.all(), &[3; 16], "a kernel afterwards")?;
    let data = pattern(1, 5000);
    let copied = rig.upload(&data)?;
    rig.check(copied.all(), &data, "a copy afterwards")
}

fn works_after_refusal(rig: &Rig) -> Outcome {
    let memory = rig.pageable(8 * PAGE_BYTES, 0);
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let counter = rig.upload(&[0; 16])?;
    let _registered = rig.register(&memory)?;
    for _ in 0..5 {
        check_error!(rig.register(&memory), ErrorKind::AlreadyRegistered);
        rig.add_u32(kernels, counter.all(), 1, stream)?;
    }
    rig.stream_synchronize(stream)?;
    rig.check_words(counter.all(), &[5; 4], "kernels between refusals")
}

fn unregister(rig: &Rig, memory: &Memory<'_>, offset: usize) -> Result<()> {
    let base = HostPtr::new(memory.all().host().as_ptr().wrapping_add(offset)).expect("not 0");
    // SAFETY: no work in flight uses the memory. The case tests that the address is refused.
    unsafe { rig.host_unregister(base) }
}

fn other_base(rig: &Rig) -> Outcome {
    let memory = rig.pageable(8 * PAGE_BYTES, 0);
    let registered = rig.register(&memory)?;
    for offset in [PAGE_BYTES, 7 * PAGE_BYTES] {
        let refused = unregister(rig, &registered, offset);
        check_error!(refused, ErrorKind::NotRegistered);
        check_kinds(rig, memory.address(0), [offset], PointerKind::Registered)?;
    }
    still_works(rig)?;
    Ok(rig.unregister(registered)?)
}

fn twice(rig: &Rig) -> Outcome {
    let memory = rig.pageable(8 * PAGE_BYTES, 0);
    let registered = rig.register(&memory)?;
    rig.unregister(registered)?;
    check_error!(unregister(rig, &memory, 0), ErrorKind::NotRegistered);
    still_works(rig)
}

fn never_registered(rig: &Rig) -> Outcome {
    let memory = rig.pageable(PAGE_BYTES, 0);
    check_error!(unregister(rig, &memory, 0), ErrorKind::NotRegistered);
    still_works(rig)
}
