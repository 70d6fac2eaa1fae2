//! Batches of copies.

use pinlane_driver::ErrorKind;

use crate::outcome::{check_error, needs};
use crate::pattern::{bytes_of_u32, check_bytes, pattern};
use crate::rig::{HostKind, Rig};
use crate::{Case, NotPassed, Outcome, TestDevice};

pub(super) const CASES: &[Case] = &[
    Case::new("batch/absent-is-said-so", absent),
    Case::new("batch/one-copy", |test| there_and_back(test, 1, 1000)),
    Case::new("batch/many-small-copies", |test| {
        there_and_back(test, 256, 100)
    }),
    Case::new("batch/odd-sizes-and-places", odd_sizes),
    Case::new("batch/inside-the-device", inside_the_device),
    Case::new("batch/in-stream-order", in_stream_order),
    Case::new("batch/on-the-default-stream", on_default_stream),
    Case::new("batch/mixed-directions", mixed_directions),
];

fn rig(test: &TestDevice<'_>) -> Result<Rig, NotPassed> {
    let rig = test.rig()?;
    needs(rig.driver().info().batch_copy, "no batch copies")?;
    Ok(rig)
}

fn absent(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let source = rig.host(HostKind::Pinned, 100)?;
    source.fill(1);
    let device = rig.device(100)?;
    let result = rig.copy_batch(&[(device.all(), source.all())], stream);
    if rig.driver().info().batch_copy {
        result?;
    } else {
        check_error!(result, ErrorKind::NotSupported);
    }
    rig.driver().stream_synchronize(stream)?;
    rig.close()
}

/// Uploads `pieces` of `bytes` each as one batch, and downloads them as another.
fn there_and_back(test: &TestDevice<'_>, pieces: usize, bytes: usize) -> Outcome {
    let rig = rig(test)?;
    let stream = rig.stream()?;
    pieces_there_and_back(&rig, stream, &vec![bytes; pieces])?;
    rig.close()
}

fn pieces_there_and_back(
    rig: &Rig,
    stream: pinlane_driver::StreamHandle,
    pieces: &[usize],
) -> Outcome {
    let total = pieces.iter().sum();
    let data = pattern(60, total);
    let source = rig.host(HostKind::Pinned, total)?;
    let target = rig.host(HostKind::Pinned, total)?;
    let device = rig.device(total)?;
    source.write(0, &data);
    target.fill(0);
    let (mut up, mut down, mut at) = (Vec::new(), Vec::new(), 0);
    for bytes in pieces {
        up.push((device.span(at, *bytes), source.span(at, *bytes)));
        down.push((target.span(at, *bytes), device.span(at, *bytes)));
        at += bytes;
    }
    // In no particular order: the driver may reorder them.
    down.reverse();
    rig.copy_batch(&up, stream)?;
    rig.copy_batch(&down, stream)?;
    rig.driver().stream_synchronize(stream)?;
    check_bytes(&target.read_all(), &data, "all pieces")
}

fn odd_sizes(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let stream = rig.stream()?;
    pieces_there_and_back(&rig, stream, &[1, 2, 3, 127, 4097, 65_535, 1, 1 << 20, 5])?;
    rig.close()
}

fn on_default_stream(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    pieces_there_and_back(&rig, rig.driver().default_stream(), &[100, 200, 300])?;
    rig.close()
}

fn inside_the_device(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let stream = rig.stream()?;
    let data = pattern(61, 64 * 100);
    let source = rig.upload(&data)?;
    let target = rig.device(data.len())?;
    // The pieces in reverse order.
    let copies: Vec<_> = (0..64)
        .map(|i| (target.span((63 - i) * 100, 100), source.span(i * 100, 100)))
        .collect();
    rig.copy_batch(&copies, stream)?;
    rig.driver().stream_synchronize(stream)?;
    let expected: Vec<u8> = data.chunks(100).rev().flatten().copied().collect();
    check_bytes(&rig.download(target.all())?, &expected, "reversed pieces")?;
    rig.close()
}

fn in_stream_order(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let source = rig.host(HostKind::Pinned, 4000)?;
    let target = rig.host(HostKind::Pinned, 4000)?;
    source.write(0, &bytes_of_u32(&[10; 1000]));
    let device = rig.device(4000)?;
    let halves = [(0, 2000), (2000, 2000)];
    let up = halves.map(|(at, bytes)| (device.span(at, bytes), source.span(at, bytes)));
    let down = halves.map(|(at, bytes)| (target.span(at, bytes), device.span(at, bytes)));
    rig.memset(device.all(), 0xff, stream)?;
    rig.copy_batch(&up, stream)?;
    rig.add_u32(kernels, device.all(), 1, stream)?;
    rig.copy_batch(&down, stream)?;
    rig.add_u32(kernels, device.all(), 1, stream)?;
    rig.driver().stream_synchronize(stream)?;
    check_bytes(&target.read_all(), &bytes_of_u32(&[11; 1000]), "in between")?;
    check_bytes(
        &rig.download(device.all())?,
        &bytes_of_u32(&[12; 1000]),
        "after all work",
    )?;
    rig.close()
}

fn mixed_directions(test: &TestDevice<'_>) -> Outcome {
    let rig = rig(test)?;
    let stream = rig.stream()?;
    let (rising, falling) = (pattern(62, 3000), pattern(63, 2000));
    let source = rig.host(HostKind::Pinned, rising.len())?;
    let target = rig.host(HostKind::Pinned, falling.len())?;
    source.write(0, &rising);
    target.fill(0);
    let (into, out_of) = (rig.device(rising.len())?, rig.upload(&falling)?);
    let copy = rig.device(falling.len())?;
    rig.copy_batch(
        &[
            (into.all(), source.all()),
            (target.all(), out_of.all()),
            (copy.all(), out_of.all()),
        ],
        stream,
    )?;
    rig.driver().stream_synchronize(stream)?;
    check_bytes(&rig.download(into.all())?, &rising, "upload")?;
    check_bytes(&target.read_all(), &falling, "download")?;
    check_bytes(&rig.download(copy.all())?, &falling, "inside the device")?;
    rig.close()
}
