//! Contiguous copies: every direction, every kind of host memory, odd sizes.

use bytemuck::cast_slice;

use crate::Outcome;
use crate::case::cases;
use crate::pattern::{check_bytes, pattern};
use crate::rig::MemoryKind::{self, Device, Pageable, Pinned, Registered, WriteCombined};
use crate::rig::Rig;

cases! {
    "copies/h2d-pageable" => |rig| any_size(rig, Pageable, Device, Mode::Wait),
    "copies/h2d-pageable-async" => |rig| any_size(rig, Pageable, Device, Mode::Async),
    "copies/h2d-pinned" => |rig| any_size(rig, Pinned, Device, Mode::Wait),
    "copies/h2d-pinned-async" => |rig| any_size(rig, Pinned, Device, Mode::Async),
    "copies/h2d-registered" => |rig| any_size(rig, Registered, Device, Mode::Wait),
    "copies/h2d-registered-async" => |rig| any_size(rig, Registered, Device, Mode::Async),
    "copies/h2d-write-combined" => |rig| any_size(rig, WriteCombined, Device, Mode::Wait),
    "copies/h2d-write-combined-async" => |rig| any_size(rig, WriteCombined, Device, Mode::Async),
    "copies/d2h-pageable" => |rig| any_size(rig, Device, Pageable, Mode::Wait),
    "copies/d2h-pageable-async" => |rig| any_size(rig, Device, Pageable, Mode::Async),
    "copies/d2h-pinned" => |rig| any_size(rig, Device, Pinned, Mode::Wait),
    "copies/d2h-pinned-async" => |rig| any_size(rig, Device, Pinned, Mode::Async),
    "copies/d2h-registered" => |rig| any_size(rig, Device, Registered, Mode::Wait),
    "copies/d2h-registered-async" => |rig| any_size(rig, Device, Registered, Mode::Async),
    "copies/d2d" => |rig| any_size(rig, Device, Device, Mode::Wait),
    "copies/d2d-async" => |rig| any_size(rig, Device, Device, Mode::Async),
    "copies/h2h-pageable" => |rig| any_size(rig, Pageable, Pageable, Mode::Wait),
    "copies/h2h-pinned" => |rig| any_size(rig, Pinned, Pinned, Mode::Wait),
    "copies/h2h-pinned-async" => |rig| any_size(rig, Pinned, Pinned, Mode::Async),
    "copies/large-both-ways" => |rig| rig.round_trip(&pattern(41, 24 << 20), rig.stream()?),
    "copies/both-directions-at-once" => both_at_once,
    "copies/many-in-one-stream" => many_in_one_stream,
    "copies/pageable-copy-sees-earlier-work" => pageable_is_ordered,
    "copies/on-the-default-stream" => on_default_stream,
}

const SMALL: [usize; 11] = [1, 2, 3, 63, 255, 256, 257, 4095, 4097, 65_535, 65_537];
const LARGE: [usize; 3] = [(1 << 20) + 1, (8 << 20) - 1, LARGEST];
const LARGEST: usize = (8 << 20) + 1;
/// Odd offsets in the source and in the target.
const OFFSETS: [(usize, usize); 3] = [(0, 0), (1, 7), (13, 4)];
/// Bytes around the target that must not change.
const GUARD: usize = 16;

/// Whether the call itself waits, or the case waits for the stream.
#[derive(Clone, Copy)]
enum Mode {
    Wait,
    Async,
}

/// Copies small sizes with all offsets, and each large one with one pair of them.
fn any_size(rig: &Rig, source: MemoryKind, target: MemoryKind, mode: Mode) -> Outcome {
    if [source, target].contains(&Registered) {
        rig.needs_registration()?;
    }
    let stream = rig.stream()?;
    let data = pattern(40, LARGEST);
    let source = rig.memory(source, LARGEST + GUARD)?;
    let target = rig.memory(target, LARGEST + 2 * GUARD)?;
    let small = SMALL
        .iter()
        .flat_map(|bytes| OFFSETS.map(|at| (*bytes, at)));
    for (bytes, (from, to)) in small.chain(LARGE.into_iter().zip(OFFSETS)) {
        let around = target.span(0, bytes + 2 * GUARD);
        let (target, source) = (around.part(to, bytes), source.span(from, bytes));
        rig.write(source, &data[..bytes])?;
        rig.write(around, &vec![0xa5; bytes + 2 * GUARD])?;
        match mode {
            Mode::Wait => rig.copy(target, source)?,
            Mode::Async => {
                rig.copy_async(target, source, stream)?;
                rig.stream_synchronize(stream)?;
            }
        }
        let found = rig.read(around)?;
        let (before, rest) = found.split_at(to);
        let (copy, after) = rest.split_at(bytes);
        let (what, guard) = (format!("{bytes} bytes"), [0xa5; 2 * GUARD]);
        check_bytes(before, &guard[..to], &format!("{what}, before the target"))?;
        check_bytes(copy, &data[..bytes], &what)?;
        check_bytes(after, &guard[to..], &format!("{what}, after the target"))?;
    }
    Ok(())
}

fn both_at_once(rig: &Rig) -> Outcome {
    let (up, down) = (rig.stream()?, rig.stream()?);
    let (rising, falling) = (pattern(42, 4 << 20), pattern(43, 4 << 20));
    let (source, target) = (rig.pinned_from(&rising)?, rig.pinned(falling.len())?);
    let (into, out_of) = (rig.device(rising.len())?, rig.upload(&falling)?);
    for part in 0..16 {
        let (at, bytes) = (part * (256 << 10), 256 << 10);
        rig.copy_async(into.span(at, bytes), source.span(at, bytes), up)?;
        rig.copy_async(target.span(at, bytes), out_of.span(at, bytes), down)?;
    }
    rig.stream_synchronize(up)?;
    rig.stream_synchronize(down)?;
    rig.check(into.all(), &rising, "upload")?;
    rig.check(target.all(), &falling, "download")
}

fn many_in_one_stream(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let data = pattern(44, 500 * 100);
    let (source, target) = (rig.pinned_from(&data)?, rig.pinned(data.len())?);
    let device = rig.device(data.len())?;
    for at in (0..data.len()).step_by(100) {
        rig.copy_async(device.span(at, 100), source.span(at, 100), stream)?;
        rig.copy_async(target.span(at, 100), device.span(at, 100), stream)?;
    }
    rig.stream_synchronize(stream)?;
    rig.check(target.all(), &data, "all pieces")
}

fn pageable_is_ordered(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let (source, target) = (rig.pageable(4000, 24), rig.pageable(4000, 24));
    source.write(0, cast_slice(&[5u32; 1000]));
    let device = rig.upload(&[0xff; 4000])?;
    rig.spin(kernels, 1_000_000, stream)?;
    rig.add_u32(kernels, device.all(), 1, stream)?;
    rig.copy_async(device.all(), source.all(), stream)?;
    rig.add_u32(kernels, device.all(), 2, stream)?;
    rig.copy_async(target.all(), device.all(), stream)?;
    rig.stream_synchronize(stream)?;
    rig.check_words(target.all(), &[7; 1000], "result")
}

fn on_default_stream(rig: &Rig) -> Outcome {
    rig.round_trip(&pattern(45, 10_001), rig.default_stream())
}
