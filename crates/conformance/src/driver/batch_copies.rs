//! Batches of copies.

use bytemuck::cast_slice;
use pinlane_driver::{ErrorKind, StreamHandle};

use crate::Outcome;
use crate::case::cases;
use crate::outcome::{check_error, needs};
use crate::pattern::pattern;
use crate::rig::Rig;

cases! {
    "batch/absent-is-said-so" => absent,
    "batch/one-copy" => |rig| there_and_back(rig, rig.stream()?, &[1000]),
    "batch/many-small-copies" => |rig| there_and_back(rig, rig.stream()?, &[100; 256]),
    "batch/odd-sizes-and-places" => odd_sizes,
    "batch/inside-the-device" => inside_the_device,
    "batch/in-stream-order" => in_stream_order,
    "batch/on-the-default-stream" => on_default_stream,
    "batch/mixed-directions" => mixed_directions,
}

fn needs_batches(rig: &Rig) -> Outcome {
    needs(rig.info().batch_copy, "no batch copies")
}

fn absent(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let source = rig.pinned_from(&[1; 100])?;
    let device = rig.device(100)?;
    let result = rig.copy_batch(&[(device.all(), source.all())], stream);
    if rig.info().batch_copy {
        result?;
    } else {
        check_error!(result, ErrorKind::NotSupported);
    }
    Ok(rig.stream_synchronize(stream)?)
}

/// Uploads pieces of these sizes as one batch, and downloads them as another.
fn there_and_back(rig: &Rig, stream: StreamHandle, pieces: &[usize]) -> Outcome {
    needs_batches(rig)?;
    let total = pieces.iter().sum();
    let data = pattern(60, total);
    let (source, target) = (rig.pinned_from(&data)?, rig.pinned(total)?);
    let device = rig.device(total)?;
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
    rig.stream_synchronize(stream)?;
    rig.check(target.all(), &data, "all pieces")
}

fn odd_sizes(rig: &Rig) -> Outcome {
    let sizes = [1, 2, 3, 127, 4097, 65_535, 1, 1 << 20, 5];
    there_and_back(rig, rig.stream()?, &sizes)
}

fn on_default_stream(rig: &Rig) -> Outcome {
    there_and_back(rig, rig.default_stream(), &[100, 200, 300])
}

fn inside_the_device(rig: &Rig) -> Outcome {
    needs_batches(rig)?;
    let stream = rig.stream()?;
    let data = pattern(61, 64 * 100);
    let source = rig.upload(&data)?;
    let target = rig.device(data.len())?;
    // The pieces in reverse order.
    let copies: Vec<_> = (0..64)
        .map(|i| (target.span((63 - i) * 100, 100), source.span(i * 100, 100)))
        .collect();
    rig.copy_batch(&copies, stream)?;
    rig.stream_synchronize(stream)?;
    let expected: Vec<u8> = data.chunks(100).rev().flatten().copied().collect();
    rig.check(target.all(), &expected, "reversed pieces")
}

fn in_stream_order(rig: &Rig) -> Outcome {
    needs_batches(rig)?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let source = rig.pinned_from(cast_slice(&[10u32; 1000]))?;
    let (target, device) = (rig.pinned(4000)?, rig.device(4000)?);
    let up = [0, 2000].map(|at| (device.span(at, 2000), source.span(at, 2000)));
    let down = [0, 2000].map(|at| (target.span(at, 2000), device.span(at, 2000)));
    rig.memset(device.all(), 0xff, stream)?;
    rig.copy_batch(&up, stream)?;
    rig.add_u32(kernels, device.all(), 1, stream)?;
    rig.copy_batch(&down, stream)?;
    rig.add_u32(kernels, device.all(), 1, stream)?;
    rig.stream_synchronize(stream)?;
    rig.check_words(target.all(), &[11; 1000], "in between")?;
    rig.check_words(device.all(), &[12; 1000], "after all work")
}

fn mixed_directions(rig: &Rig) -> Outcome {
    needs_batches(rig)?;
    let stream = rig.stream()?;
    let (rising, falling) = (pattern(62, 3000), pattern(63, 2000));
    let (source, target) = (rig.pinned_from(&rising)?, rig.pinned(falling.len())?);
    let (into, out_of) = (rig.device(rising.len())?, rig.upload(&falling)?);
    let copy = rig.device(falling.len())?;
    let copies = [
        (into.all(), source.all()),
        (target.all(), out_of.all()),
        (copy.all(), out_of.all()),
    ];
    rig.copy_batch(&copies, stream)?;
    rig.stream_synchronize(stream)?;
    rig.check(into.all(), &rising, "upload")?;
    rig.check(target.all(), &falling, "download")?;
    rig.check(copy.all(), &falling, "inside the device")
}
