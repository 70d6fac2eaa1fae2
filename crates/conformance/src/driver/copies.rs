//! Contiguous copies: every direction, every kind of host memory, odd sizes.

use pinlane_driver::StreamHandle;

use crate::outcome::{check_eq, needs};
use crate::pattern::{bytes_of_u32, check_bytes, pattern, u32_of_bytes};
use crate::rig::{HostKind, Rig, Span};
use crate::{Case, Outcome, TestDevice};

pub(super) const CASES: &[Case] = &[
    Case::new("copies/h2d-pageable", |b| {
        up(b, HostKind::Pageable, Mode::Wait)
    }),
    Case::new("copies/h2d-pageable-async", |b| {
        up(b, HostKind::Pageable, Mode::Async)
    }),
    Case::new("copies/h2d-pinned", |b| up(b, HostKind::Pinned, Mode::Wait)),
    Case::new("copies/h2d-pinned-async", |b| {
        up(b, HostKind::Pinned, Mode::Async)
    }),
    Case::new("copies/h2d-registered", |b| {
        up(b, HostKind::Registered, Mode::Wait)
    }),
    Case::new("copies/h2d-registered-async", |b| {
        up(b, HostKind::Registered, Mode::Async)
    }),
    Case::new("copies/h2d-write-combined", |b| {
        up(b, HostKind::WriteCombined, Mode::Wait)
    }),
    Case::new("copies/h2d-write-combined-async", |b| {
        up(b, HostKind::WriteCombined, Mode::Async)
    }),
    Case::new("copies/d2h-pageable", |b| {
        down(b, HostKind::Pageable, Mode::Wait)
    }),
    Case::new("copies/d2h-pageable-async", |b| {
        down(b, HostKind::Pageable, Mode::Async)
    }),
    Case::new("copies/d2h-pinned", |b| {
        down(b, HostKind::Pinned, Mode::Wait)
    }),
    Case::new("copies/d2h-pinned-async", |b| {
        down(b, HostKind::Pinned, Mode::Async)
    }),
    Case::new("copies/d2h-registered", |b| {
        down(b, HostKind::Registered, Mode::Wait)
    }),
    Case::new("copies/d2h-registered-async", |b| {
        down(b, HostKind::Registered, Mode::Async)
    }),
    Case::new("copies/d2d", |b| across(b, Mode::Wait)),
    Case::new("copies/d2d-async", |b| across(b, Mode::Async)),
    Case::new("copies/h2h-pageable", |b| {
        host(b, HostKind::Pageable, Mode::Wait)
    }),
    Case::new("copies/h2h-pinned", |b| {
        host(b, HostKind::Pinned, Mode::Wait)
    }),
    Case::new("copies/h2h-pinned-async", |b| {
        host(b, HostKind::Pinned, Mode::Async)
    }),
    Case::new("copies/large-both-ways", large),
    Case::new("copies/both-directions-at-once", both_at_once),
    Case::new("copies/many-in-one-stream", many_in_one_stream),
    Case::new(
        "copies/pageable-copy-sees-earlier-work",
        pageable_is_ordered,
    ),
    Case::new("copies/on-the-default-stream", on_default_stream),
];

const SIZES: [usize; 14] = [
    1,
    2,
    3,
    63,
    255,
    256,
    257,
    4095,
    4097,
    65_535,
    65_537,
    (1 << 20) + 1,
    (8 << 20) - 1,
    (8 << 20) + 1,
];
const LARGEST: usize = (8 << 20) + 1;
/// Odd offsets in the source and in the target.
const OFFSETS: [(usize, usize); 3] = [(0, 0), (1, 7), (13, 4)];
/// Bytes around the target that must not change.
const GUARD: usize = 16;

/// Whether the call itself waits, or the case waits for the stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Wait,
    Async,
}

impl Mode {
    fn copy(
        self,
        rig: &Rig,
        stream: StreamHandle,
        target: Span<'_>,
        source: Span<'_>,
    ) -> pinlane_driver::Result<()> {
        match self {
            Self::Wait => rig.copy(target, source),
            Self::Async => {
                rig.copy_async(target, source, stream)?;
                rig.driver().stream_synchronize(stream)
            }
        }
    }
}

/// Calls `each(bytes, source offset, target offset, data)` for every size and offset.
fn for_sizes(mut each: impl FnMut(usize, usize, usize, &[u8]) -> Outcome) -> Outcome {
    let data = pattern(40, LARGEST + GUARD);
    for (at, bytes) in SIZES.into_iter().enumerate() {
        // Large copies use one pair of offsets, small ones all of them.
        let offsets = if bytes <= 65_537 {
            &OFFSETS[..]
        } else {
            &OFFSETS[at % 3..=at % 3]
        };
        for (from, to) in offsets {
            each(bytes, *from, *to, &data)?;
        }
    }
    Ok(())
}

/// The expected target: unchanged bytes around the copied ones.
fn check_target(found: &[u8], data: &[u8], to: usize, what: &str) -> Outcome {
    let (before, rest) = found.split_at(to);
    let (copy, after) = rest.split_at(data.len());
    check_bytes(
        before,
        &vec![0xa5; before.len()],
        &format!("{what}, before the target"),
    )?;
    check_bytes(copy, data, what)?;
    check_bytes(
        after,
        &vec![0xa5; after.len()],
        &format!("{what}, after the target"),
    )
}

fn up(test: &TestDevice<'_>, kind: HostKind, mode: Mode) -> Outcome {
    let rig = open(test, kind)?;
    let stream = rig.stream()?;
    let host = rig.host(kind, LARGEST + GUARD)?;
    let device = rig.device(LARGEST + 2 * GUARD)?;
    for_sizes(|bytes, from, to, data| {
        host.write(from, &data[..bytes]);
        let target = device.span(0, bytes + 2 * GUARD);
        rig.memset(target, 0xa5, stream)?;
        rig.driver().stream_synchronize(stream)?;
        mode.copy(&rig, stream, device.span(to, bytes), host.span(from, bytes))?;
        check_target(
            &rig.download(target)?,
            &data[..bytes],
            to,
            &format!("{bytes} bytes"),
        )
    })?;
    rig.close()
}

fn down(test: &TestDevice<'_>, kind: HostKind, mode: Mode) -> Outcome {
    let rig = open(test, kind)?;
    let stream = rig.stream()?;
    let device = rig.upload(&pattern(40, LARGEST + GUARD))?;
    let host = rig.host(kind, LARGEST + 2 * GUARD)?;
    for_sizes(|bytes, from, to, data| {
        host.write(0, &vec![0xa5; bytes + 2 * GUARD]);
        mode.copy(&rig, stream, host.span(to, bytes), device.span(from, bytes))?;
        let found = host.read(0, bytes + 2 * GUARD);
        check_target(
            &found,
            &data[from..from + bytes],
            to,
            &format!("{bytes} bytes"),
        )
    })?;
    rig.close()
}

fn across(test: &TestDevice<'_>, mode: Mode) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let source = rig.upload(&pattern(40, LARGEST + GUARD))?;
    let device = rig.device(LARGEST + 2 * GUARD)?;
    for_sizes(|bytes, from, to, data| {
        let target = device.span(0, bytes + 2 * GUARD);
        rig.memset(target, 0xa5, stream)?;
        rig.driver().stream_synchronize(stream)?;
        mode.copy(
            &rig,
            stream,
            device.span(to, bytes),
            source.span(from, bytes),
        )?;
        // A synchronous copy within the device returns only when the bytes have arrived.
        let found = rig.download(target)?;
        check_target(
            &found,
            &data[from..from + bytes],
            to,
            &format!("{bytes} bytes"),
        )
    })?;
    rig.close()
}

fn host(test: &TestDevice<'_>, kind: HostKind, mode: Mode) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let source = rig.host(kind, LARGEST + GUARD)?;
    source.write(0, &pattern(40, LARGEST + GUARD));
    let target = rig.host(kind, LARGEST + 2 * GUARD)?;
    for_sizes(|bytes, from, to, data| {
        target.write(0, &vec![0xa5; bytes + 2 * GUARD]);
        mode.copy(
            &rig,
            stream,
            target.span(to, bytes),
            source.span(from, bytes),
        )?;
        let found = target.read(0, bytes + 2 * GUARD);
        check_target(
            &found,
            &data[from..from + bytes],
            to,
            &format!("{bytes} bytes"),
        )
    })?;
    rig.close()
}

fn open(test: &TestDevice<'_>, kind: HostKind) -> Result<Rig, crate::NotPassed> {
    let rig = test.rig()?;
    if kind == HostKind::Registered {
        needs(rig.driver().info().can_register, "no registration")?;
    }
    Ok(rig)
}

fn large(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let data = pattern(41, 24 << 20);
    let source = rig.host(HostKind::Pinned, data.len())?;
    let target = rig.host(HostKind::Pinned, data.len())?;
    let device = rig.device(data.len())?;
    source.write(0, &data);
    rig.copy_async(device.all(), source.all(), stream)?;
    rig.copy_async(target.all(), device.all(), stream)?;
    rig.driver().stream_synchronize(stream)?;
    check_bytes(&target.read_all(), &data, "round trip of 24 MiB")?;
    rig.close()
}

fn both_at_once(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let (up, down) = (rig.stream()?, rig.stream()?);
    let (rising, falling) = (pattern(42, 4 << 20), pattern(43, 4 << 20));
    let source = rig.host(HostKind::Pinned, rising.len())?;
    let target = rig.host(HostKind::Pinned, falling.len())?;
    source.write(0, &rising);
    let (into, out_of) = (rig.device(rising.len())?, rig.upload(&falling)?);
    for part in 0..16 {
        let (at, bytes) = (part * (256 << 10), 256 << 10);
        rig.copy_async(into.span(at, bytes), source.span(at, bytes), up)?;
        rig.copy_async(target.span(at, bytes), out_of.span(at, bytes), down)?;
    }
    rig.driver().stream_synchronize(up)?;
    rig.driver().stream_synchronize(down)?;
    check_bytes(&rig.download(into.all())?, &rising, "upload")?;
    check_bytes(&target.read_all(), &falling, "download")?;
    rig.close()
}

fn many_in_one_stream(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let pieces = 500;
    let data = pattern(44, pieces * 100);
    let source = rig.host(HostKind::Pinned, data.len())?;
    let target = rig.host(HostKind::Pinned, data.len())?;
    source.write(0, &data);
    let device = rig.device(data.len())?;
    for piece in 0..pieces {
        let at = piece * 100;
        rig.copy_async(device.span(at, 100), source.span(at, 100), stream)?;
        rig.copy_async(target.span(at, 100), device.span(at, 100), stream)?;
    }
    rig.driver().stream_synchronize(stream)?;
    check_bytes(&target.read_all(), &data, "all pieces")?;
    rig.close()
}

fn pageable_is_ordered(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let source = rig.host(HostKind::Pageable, 4000)?;
    let target = rig.host(HostKind::Pageable, 4000)?;
    source.write(0, &bytes_of_u32(&[5; 1000]));
    let device = rig.upload(&[0xff; 4000])?;
    rig.spin(kernels, 1_000_000, stream)?;
    rig.add_u32(kernels, device.all(), 1, stream)?;
    rig.copy_async(device.all(), source.all(), stream)?;
    rig.add_u32(kernels, device.all(), 2, stream)?;
    rig.copy_async(target.all(), device.all(), stream)?;
    rig.driver().stream_synchronize(stream)?;
    check_eq!(u32_of_bytes(&target.read_all()), vec![7; 1000], "result");
    rig.close()
}

fn on_default_stream(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.driver().default_stream();
    let data = pattern(45, 10_001);
    let source = rig.host(HostKind::Pinned, data.len())?;
    let target = rig.host(HostKind::Pinned, data.len())?;
    let device = rig.device(data.len())?;
    source.write(0, &data);
    rig.copy_async(device.all(), source.all(), stream)?;
    rig.copy_async(target.all(), device.all(), stream)?;
    rig.driver().stream_synchronize(stream)?;
    check_bytes(&target.read_all(), &data, "round trip")?;
    rig.close()
}
