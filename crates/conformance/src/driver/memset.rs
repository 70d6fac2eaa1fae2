//! Setting device bytes.

use crate::outcome::check_eq;
use crate::pattern::check_bytes;
use crate::rig::HostKind;
use crate::{Case, Outcome, TestDevice};

pub(super) const CASES: &[Case] = &[
    Case::new("memset/every-value", every_value),
    Case::new("memset/odd-sizes-and-places", odd_sizes),
    Case::new("memset/large", large),
    Case::new("memset/in-stream-order", in_stream_order),
    Case::new("memset/on-the-default-stream", on_default_stream),
];

fn every_value(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let memory = rig.device(256 * 8)?;
    for value in 0..=255u8 {
        rig.memset(memory.span(8 * usize::from(value), 8), value, stream)?;
    }
    rig.driver().stream_synchronize(stream)?;
    let expected: Vec<u8> = (0..=255).flat_map(|value| [value; 8]).collect();
    check_bytes(&rig.download(memory.all())?, &expected, "all values")?;
    rig.close()
}

fn odd_sizes(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let memory = rig.device(70_000)?;
    for bytes in [1, 2, 3, 5, 127, 4095, 4097, 65_537] {
        for offset in [0, 1, 2, 63] {
            rig.memset(memory.all(), 0x11, stream)?;
            rig.memset(memory.span(offset, bytes), 0xee, stream)?;
            rig.driver().stream_synchronize(stream)?;
            let mut expected = vec![0x11; 70_000];
            expected[offset..offset + bytes].fill(0xee);
            let what = format!("{bytes} bytes at {offset}");
            check_bytes(&rig.download(memory.all())?, &expected, &what)?;
        }
    }
    rig.close()
}

fn large(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let bytes = (16 << 20) + 3;
    let memory = rig.device(bytes)?;
    rig.memset(memory.all(), 0x5a, stream)?;
    rig.driver().stream_synchronize(stream)?;
    check_bytes(&rig.download(memory.all())?, &vec![0x5a; bytes], "16 MiB")?;
    rig.close()
}

fn in_stream_order(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let memory = rig.device(1000)?;
    let target = rig.host(HostKind::Pinned, 50_000)?;
    for value in 0..50u8 {
        rig.memset(memory.all(), value, stream)?;
        let at = 1000 * usize::from(value);
        rig.copy_async(target.span(at, 1000), memory.all(), stream)?;
    }
    rig.driver().stream_synchronize(stream)?;
    let expected: Vec<u8> = (0..50).flat_map(|value| [value; 1000]).collect();
    check_bytes(&target.read_all(), &expected, "what was read in between")?;
    rig.close()
}

fn on_default_stream(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.driver().default_stream();
    let memory = rig.device(333)?;
    rig.memset(memory.all(), 0x21, stream)?;
    rig.driver().stream_synchronize(stream)?;
    check_eq!(rig.download(memory.all())?, vec![0x21; 333], "bytes");
    rig.close()
}
