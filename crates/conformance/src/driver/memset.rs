//! Setting device bytes.

use crate::Outcome;
use crate::case::cases;
use crate::rig::Rig;

cases! {
    "memset/every-value" => every_value,
    "memset/odd-sizes-and-places" => odd_sizes,
    "memset/large" => large,
    "memset/in-stream-order" => in_stream_order,
    "memset/on-the-default-stream" => on_default_stream,
}

fn every_value(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let memory = rig.device(256 * 8)?;
    for value in 0..=255u8 {
        rig.memset(memory.span(8 * usize::from(value), 8), value, stream)?;
    }
    rig.stream_synchronize(stream)?;
    let expected: Vec<u8> = (0..=255).flat_map(|value| [value; 8]).collect();
    rig.check(memory.all(), &expected, "all values")
}

fn odd_sizes(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let memory = rig.device(70_000)?;
    for bytes in [1, 2, 3, 5, 127, 4095, 4097, 65_537] {
        for offset in [0, 1, 2, 63] {
            rig.memset(memory.all(), 0x11, stream)?;
            rig.memset(memory.span(offset, bytes), 0xee, stream)?;
            rig.stream_synchronize(stream)?;
            let mut expected = vec![0x11; 70_000];
            expected[offset..offset + bytes].fill(0xee);
            let what = format!("{bytes} bytes at {offset}");
            rig.check(memory.all(), &expected, &what)?;
        }
    }
    Ok(())
}

fn large(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let bytes = (16 << 20) + 3;
    let memory = rig.device(bytes)?;
    rig.memset(memory.all(), 0x5a, stream)?;
    rig.stream_synchronize(stream)?;
    rig.check(memory.all(), &vec![0x5a; bytes], "16 MiB")
}

fn in_stream_order(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let memory = rig.device(1000)?;
    let target = rig.pinned(50_000)?;
    // From 1, since both memories may be zero before.
    for value in 1..=50u8 {
        rig.memset(memory.all(), value, stream)?;
        let at = 1000 * usize::from(value - 1);
        rig.copy_async(target.span(at, 1000), memory.all(), stream)?;
    }
    rig.stream_synchronize(stream)?;
    let expected: Vec<u8> = (1..=50).flat_map(|value| [value; 1000]).collect();
    rig.check(target.all(), &expected, "what was read in between")
}

fn on_default_stream(rig: &Rig) -> Outcome {
    let stream = rig.default_stream();
    let memory = rig.device(333)?;
    rig.memset(memory.all(), 0x21, stream)?;
    rig.stream_synchronize(stream)?;
    rig.check(memory.all(), &[0x21; 333], "bytes")
}
