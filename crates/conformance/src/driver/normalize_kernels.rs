//! The kernels that normalise bytes. On a GPU, the cases compare its bits with those of the CPU.

use bytemuck::cast_slice;
use pinlane_driver::{FunctionHandle, LaunchShape, Result, StreamHandle};
use pinlane_kernels::{convert, normalize_shape};

use crate::Outcome;
use crate::case::cases;
use crate::pattern::pattern;
use crate::rig::{Rig, blocks};

cases! {
    "kernels/normalize-to-the-last-bit" => to_the_last_bit,
    "kernels/normalize-from-any-byte-to-any" => any_start,
    "kernels/normalize-in-any-shape" => any_shape,
}

/// A kernel, and the size of an element of its target.
const KERNELS: [(&str, usize); 2] = [
    ("pinlane_normalize_u8_f32", 4),
    ("pinlane_normalize_u8_bf16", 2),
];

/// Consecutive elements of a channel, and channels: planes, rows that are shorter than what a thread
/// takes at a time, pixels, and one channel.
const LAYOUTS: [(usize, usize); 7] = [(1500, 3), (37, 4), (7, 2), (3, 5), (1, 3), (1, 16), (1, 1)];

/// Scale and offset of each channel. Rounding twice shows in the last bits; the sixth gives
/// denormals, the seventh infinities.
fn table(channels: usize) -> Vec<[f32; 2]> {
    let one = |channel| match channel {
        5 => [1e-44, -1e-43],
        6 => [f32::MAX, 0.5],
        _ => [1.0 / (58.0 + channel as f32), -2.1 + 0.3 * channel as f32],
    };
    (0..channels).map(one).collect()
}

/// The expected result, from the CPU.
fn expected(bytes: &[u8], inner: usize, table: &[[f32; 2]], item_bytes: usize) -> Vec<u8> {
    let number = |(i, byte): (usize, &u8)| {
        let [scale, offset] = table[i / inner % table.len()];
        f32::from(*byte) * scale + offset
    };
    let numbers: Vec<f32> = bytes.iter().enumerate().map(number).collect();
    if item_bytes == 4 {
        return cast_slice(&numbers).to_vec();
    }
    let mut halves = vec![0; numbers.len()];
    convert::f32_to_bf16(&numbers, &mut halves);
    cast_slice(&halves).to_vec()
}

/// One of the kernels, ready to launch.
struct Trial<'r> {
    rig: &'r Rig,
    stream: StreamHandle,
    function: FunctionHandle,
    item_bytes: usize,
}

impl<'r> Trial<'r> {
    /// One per kernel.
    fn all(rig: &'r Rig) -> Result<Vec<Self>> {
        let stream = rig.stream()?;
        let trial = |(name, item_bytes)| {
            Ok(Self {
                rig,
                stream,
                function: rig.function(name)?,
                item_bytes,
            })
        };
        KERNELS.into_iter().map(trial).collect()
    }

    /// The bytes start at offset `from`, their results at element `to`.
    fn check(
        &self,
        (inner, channels): (usize, usize),
        bytes: &[u8],
        (from, to): (usize, usize),
        shape: LaunchShape,
    ) -> Outcome {
        const BEHIND: usize = 20;
        let (rig, item_bytes) = (self.rig, self.item_bytes);
        let table = table(channels);
        let on_device = rig.upload(cast_slice(table.as_flattened()))?;
        let source = rig.upload(&[&vec![0x11; from], bytes, &[0x11; BEHIND]].concat())?;
        let target = rig.device(item_bytes * (to + bytes.len() + BEHIND))?;
        rig.memset(target.all(), 0x5a, self.stream)?;
        let place = item_bytes * to..item_bytes * (to + bytes.len());
        rig.normalize_u8(
            (self.function, item_bytes),
            (inner, on_device.all()),
            source.span(from, bytes.len()),
            target.span(place.start, place.len()),
            shape,
            self.stream,
        )?;
        rig.stream_synchronize(self.stream)?;
        let mut all = vec![0x5a; target.bytes()];
        all[place].copy_from_slice(&expected(bytes, inner, &table, item_bytes));
        let what = format!(
            "{} bytes from {from} to {to}, {channels} channels, {inner} in a row, elements of \
             {item_bytes} bytes, {shape:?}",
            bytes.len()
        );
        rig.check(target.all(), &all, &what)?;
        for memory in [on_device, source, target] {
            rig.free_memory(memory)?;
        }
        Ok(())
    }
}

fn to_the_last_bit(rig: &Rig) -> Outcome {
    let bytes = pattern(91, 10_007);
    for trial in Trial::all(rig)? {
        for layout in LAYOUTS {
            trial.check(layout, &bytes, (0, 0), normalize_shape(bytes.len()))?;
        }
    }
    Ok(())
}

/// Source and target start at every element of a group and end anywhere.
fn any_start(rig: &Rig) -> Outcome {
    let bytes = pattern(92, 70);
    for trial in Trial::all(rig)? {
        for starts in 0..64 {
            let starts = (starts % 8, starts / 8);
            for count in [0, 1, 5, 70] {
                trial.check((3, 4), &bytes[..count], starts, blocks(1, 3))?;
            }
        }
    }
    Ok(())
}

fn any_shape(rig: &Rig) -> Outcome {
    let bytes = pattern(93, 5001);
    for trial in Trial::all(rig)? {
        for (grid, block) in [(1, 1), (1, 1000), (7, 33), (5001, 1), (100, 256)] {
            for layout in LAYOUTS {
                // Groups start at the same element of both, but not at the first.
                trial.check(layout, &bytes, (1, 1), blocks(grid, block))?;
            }
        }
    }
    Ok(())
}
