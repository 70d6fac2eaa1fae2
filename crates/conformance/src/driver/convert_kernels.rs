//! The kernels that convert numbers. On a GPU, the cases compare its bits with those of the CPU.

use bytemuck::cast_slice;
use pinlane_driver::{LaunchShape, Result};
use pinlane_kernels::convert;

use crate::Outcome;
use crate::case::cases;
use crate::outcome::check_eq;
use crate::pattern::pattern;
use crate::rig::{Rig, blocks};

cases! {
    "kernels/f32-to-bf16-to-the-last-bit" => |rig| narrow_many(rig, NARROW[0]),
    "kernels/f32-to-f16-to-the-last-bit" => |rig| narrow_many(rig, NARROW[1]),
    "kernels/f32-to-16-bits-known-values" => known_values,
    "kernels/u8-to-f32-rounds-twice" => u8_to_f32,
    "kernels/conversion-from-any-element-to-any" => any_start,
    "kernels/conversion-in-any-shape" => any_shape,
}

type Narrow = fn(&[f32], &mut [u16]);

const NARROW: [(&str, Narrow); 2] = [
    ("pinlane_f32_to_bf16", convert::f32_to_bf16),
    ("pinlane_f32_to_f16", convert::f32_to_f16),
];

/// An odd number of threads, few enough that each loops several times.
const SMALL: LaunchShape = blocks(3, 33);

/// Every upper half with lower halves that are a tie, next to a tie, or neither.
fn narrow_many(rig: &Rig, (name, on_cpu): (&str, Narrow)) -> Outcome {
    const LOWER_HALVES: [u32; 8] = [
        0x0000, 0x0001, 0x0fff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001,
    ];
    let numbers: Vec<f32> = LOWER_HALVES
        .iter()
        .flat_map(|lower| (0..0x1_0000).map(move |upper| f32::from_bits(upper << 16 | lower)))
        .collect();
    let mut expected = vec![0; numbers.len()];
    on_cpu(&numbers, &mut expected);
    let found = narrow(rig, name, &numbers)?;
    let wrong = (0..found.len()).find(|i| found[*i] != expected[*i]);
    let told = wrong.map(|i| (numbers[i].to_bits(), found[i], expected[i]));
    check_eq!(told, None, "first mismatch (number, found, expected)");
    Ok(())
}

fn known_values(rig: &Rig) -> Outcome {
    // One, a tie, the largest f16, above it, infinity, half of the smallest f16 and a little more,
    // a denormal, a signalling and a quiet NaN.
    let bits = [
        0x3f80_0000,
        0x3f80_8000,
        0x477f_e000,
        0x477f_f000,
        0xff80_0000,
        0x3300_0000,
        0xb300_0001,
        0x0001_8000,
        0x7f80_0001,
        0xffc1_2345,
    ];
    let numbers = bits.map(f32::from_bits);
    let bf16 = [
        0x3f80, 0x3f80, 0x4780, 0x4780, 0xff80, 0x3300, 0xb300, 0x0002, 0x7fc0, 0xffc1,
    ];
    let f16 = [
        0x3c00, 0x3c04, 0x7bff, 0x7c00, 0xfc00, 0x0000, 0x8001, 0x0000, 0x7e00, 0xfe09,
    ];
    for ((name, _), expected) in NARROW.into_iter().zip([bf16, f16]) {
        let found = narrow(rig, name, &numbers)?;
        check_eq!(found, expected, "{name}");
    }
    Ok(())
}

fn u8_to_f32(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let kernel = rig.function("pinlane_u8_to_f32")?;
    let bytes: Vec<u8> = (0..=255).cycle().take(1000).collect();
    let source = rig.upload(&bytes)?;
    let target = rig.device(4 * bytes.len())?;
    // The second gives denormals, the third infinities.
    for (scale, offset) in [(1.0 / 255.0, -0.485), (1e-44, -1e-43), (1e37, 1e38)] {
        let shape = LaunchShape::for_items(bytes.len());
        let (from, to) = (source.all(), target.all());
        rig.scale_u8(kernel, (scale, offset), from, to, shape, stream)?;
        rig.stream_synchronize(stream)?;
        let expected = bytes.iter().map(|x| f32::from(*x) * scale + offset);
        let expected: Vec<f32> = expected.collect();
        let what = format!("x * {scale} + {offset}");
        rig.check(target.all(), cast_slice(&expected), &what)?;
    }
    Ok(())
}

/// Source and target start at every element of a group of four and end anywhere.
fn any_start(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let numbers: Vec<f32> = (0..100).map(|i| 1.0 + i as f32 / 1000.0).collect();
    let bytes = pattern(81, 100);
    let (source_f32, source_u8) = (rig.upload(cast_slice(&numbers))?, rig.upload(&bytes)?);
    let (target_u16, target_f32) = (rig.device(2 * 100)?, rig.device(4 * 100)?);
    let scaling = rig.function("pinlane_u8_to_f32")?;
    for (name, on_cpu) in NARROW {
        let kernel = rig.function(name)?;
        for (from, to, count) in starts_and_counts() {
            rig.memset(target_u16.all(), 0x5a, stream)?;
            let source = source_f32.span(4 * from, 4 * count);
            let target = target_u16.span(2 * to, 2 * count);
            rig.narrow(kernel, source, target, SMALL, stream)?;
            rig.stream_synchronize(stream)?;
            let mut expected = [0x5a5a; 100];
            on_cpu(&numbers[from..from + count], &mut expected[to..to + count]);
            let what = format!("{name}: {count} from {from} to {to}");
            rig.check(target_u16.all(), cast_slice(&expected), &what)?;
        }
    }
    for (from, to, count) in starts_and_counts() {
        rig.memset(target_f32.all(), 0, stream)?;
        let source = source_u8.span(from, count);
        let target = target_f32.span(4 * to, 4 * count);
        rig.scale_u8(scaling, (0.5, 3.0), source, target, SMALL, stream)?;
        rig.stream_synchronize(stream)?;
        let mut expected = [0.0; 100];
        for i in 0..count {
            expected[to + i] = f32::from(bytes[from + i]) * 0.5 + 3.0;
        }
        let what = format!("u8 to f32: {count} from {from} to {to}");
        rig.check(target_f32.all(), cast_slice(&expected), &what)?;
    }
    Ok(())
}

/// First element of the source and of the target, and the number of elements.
fn starts_and_counts() -> impl Iterator<Item = (usize, usize, usize)> {
    (0..16).flat_map(|starts| [0, 1, 3, 5, 70].map(|count| (starts % 4, 4 + starts / 4, count)))
}

fn any_shape(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let numbers: Vec<f32> = (0..5001).map(|i| (i as f32).sqrt()).collect();
    let source = rig.upload(cast_slice(&numbers))?;
    let target = rig.device(2 * numbers.len())?;
    for (name, on_cpu) in NARROW {
        let kernel = rig.function(name)?;
        let mut expected = vec![0; numbers.len()];
        on_cpu(&numbers, &mut expected);
        for (grid, block) in [(1, 1), (1, 1000), (7, 32), (5001, 1), (100, 256)] {
            rig.memset(target.all(), 0xff, stream)?;
            let shape = blocks(grid, block);
            rig.narrow(kernel, source.all(), target.all(), shape, stream)?;
            rig.stream_synchronize(stream)?;
            let what = format!("{name}, {grid} blocks of {block}");
            rig.check(target.all(), cast_slice(&expected), &what)?;
        }
    }
    Ok(())
}

/// The numbers, converted on the device.
fn narrow(rig: &Rig, name: &str, numbers: &[f32]) -> Result<Vec<u16>> {
    let stream = rig.stream()?;
    let source = rig.upload(cast_slice(numbers))?;
    let target = rig.device(2 * numbers.len())?;
    let shape = LaunchShape::for_items(numbers.len().div_ceil(4));
    let kernel = rig.function(name)?;
    rig.narrow(kernel, source.all(), target.all(), shape, stream)?;
    rig.stream_synchronize(stream)?;
    let bytes = rig.read(target.all())?;
    let (halves, _) = bytes.as_chunks::<2>();
    Ok(halves.iter().copied().map(u16::from_le_bytes).collect())
}
