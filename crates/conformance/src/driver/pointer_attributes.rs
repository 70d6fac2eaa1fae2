//! The kind of memory that an address belongs to.

use pinlane_driver::PointerKind::{self, Device, Pageable, Pinned, Registered};
use pinlane_driver::RegisterFlags;

use crate::Outcome;
use crate::case::cases;
use crate::outcome::check_eq;
use crate::rig::{PAGE_BYTES, Rig};

cases! {
    "pointers/heap-is-pageable" => heap,
    "pointers/stack-is-pageable" => stack,
    "pointers/static-is-pageable" => a_static,
    "pointers/unknown-address-is-pageable" => |rig| check_kinds(rig, 0, [0, 64, 1 << 20], Pageable),
    "pointers/pinned-from-first-to-last" => pinned,
    "pointers/registered-from-first-to-last" => registered_range,
    "pointers/device-from-first-to-last" => device,
    "pointers/stream-ordered-memory-is-device" => stream_ordered,
    "pointers/freed-memory-is-pageable" => freed,
    "pointers/asking-leaves-no-error" => leaves_no_error,
}

/// Fails the case unless the bytes at these offsets from an address are of this kind.
pub(super) fn check_kinds<const N: usize>(
    rig: &Rig,
    base: u64,
    offsets: [usize; N],
    expected: PointerKind,
) -> Outcome {
    for at in offsets {
        let found = rig.pointer_kind(base + at as u64)?;
        check_eq!(found, expected, "kind of byte {at} from {base:#x}");
    }
    Ok(())
}

fn heap(rig: &Rig) -> Outcome {
    let heap = vec![0u8; 100_000];
    check_kinds(
        rig,
        heap.as_ptr().addr() as u64,
        [0, 50_000, 99_999],
        Pageable,
    )
}

fn stack(rig: &Rig) -> Outcome {
    let local = 0u64;
    check_kinds(rig, (&raw const local).addr() as u64, [0], Pageable)
}

fn a_static(rig: &Rig) -> Outcome {
    static BYTES: [u8; 64] = [7; 64];
    check_kinds(rig, BYTES.as_ptr().addr() as u64, [0], Pageable)
}

fn pinned(rig: &Rig) -> Outcome {
    let memory = rig.pinned(10 * PAGE_BYTES)?;
    let offsets = [0, 1, 5 * PAGE_BYTES + 3, 10 * PAGE_BYTES - 1];
    check_kinds(rig, memory.address(0), offsets, Pinned)
}

fn registered_range(rig: &Rig) -> Outcome {
    rig.needs_registration()?;
    let memory = rig.pageable(12 * PAGE_BYTES, 0);
    let (start, end) = (2 * PAGE_BYTES, 10 * PAGE_BYTES);
    let range = rig.register_part(&memory, start, end - start, RegisterFlags::default())?;
    let inside = [start, 6 * PAGE_BYTES + 9, end - 1];
    check_kinds(rig, memory.address(0), inside, Registered)?;
    let outside = [0, start - 1, end, 12 * PAGE_BYTES - 1];
    check_kinds(rig, memory.address(0), outside, Pageable)?;
    Ok(rig.unregister(range)?)
}

fn device(rig: &Rig) -> Outcome {
    let memory = rig.device(100_000)?;
    check_kinds(rig, memory.address(0), [0, 1, 50_000, 99_999], Device)
}

fn stream_ordered(rig: &Rig) -> Outcome {
    rig.needs_stream_memory()?;
    let stream = rig.stream()?;
    let memory = rig.device_async(10_000, stream)?;
    rig.stream_synchronize(stream)?;
    check_kinds(rig, memory.address(0), [0], Device)
}

fn freed(rig: &Rig) -> Outcome {
    // Large enough that the driver does not keep it for the next small allocation.
    let device = rig.device(64 << 20)?;
    let pinned = rig.pinned(8 << 20)?;
    let addresses = [device.address(0), pinned.address(0)];
    rig.free_memory(device)?;
    rig.free_memory(pinned)?;
    for address in addresses {
        check_kinds(rig, address, [0], Pageable)?;
    }
    Ok(())
}

fn leaves_no_error(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let memory = rig.upload(&[0; 40])?;
    let stream = rig.default_stream();
    for address in [0, 1, 4096, memory.address(0)] {
        rig.pointer_kind(address)?;
        rig.add_u32(kernels, memory.all(), 1, stream)?;
        rig.stream_synchronize(stream)?;
    }
    Ok(rig.synchronize()?)
}
