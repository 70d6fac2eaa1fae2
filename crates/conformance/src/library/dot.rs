//! The dot product: the same bits on every device.

use pinlane::{Builtin, Device, Error, Result};

use crate::pattern::vectors;

/// The dot product of vectors that start at these elements.
fn on_device(
    device: &Device,
    kernels: &Builtin,
    [x, y]: &[Vec<f32>; 2],
    behind: [usize; 2],
) -> Result<f64> {
    let stream = device.stream()?;
    let place = |behind: usize| behind..behind + x.len();
    let there = |vector: &[f32], behind| {
        let mut target = device.alloc::<f32>(vector.len() + 4)?;
        stream.copy_to_device(vector, target.range_mut(place(behind)))?;
        Ok::<_, Error>(target)
    };
    let (on_x, on_y) = (there(x, behind[0])?, there(y, behind[1])?);
    let mut partials = device.alloc::<f64>(Builtin::dot_partials(x.len()))?;
    let mut result = device.alloc::<f64>(1)?;
    stream.fill_bytes(&mut result, 0xff)?;
    let (x, y) = (on_x.range(place(behind[0])), on_y.range(place(behind[1])));
    kernels.dot(&stream, x, y, &mut partials, &mut result)?;
    Ok(stream.copy_to_vec(&result)?[0])
}

pub(super) fn same_bits(device: &Device) -> Result<()> {
    let kernels = Builtin::load(device)?;
    for n in [0, 1, 3, 1025, 5003] {
        let vectors = vectors(n);
        let expected = pinlane_kernels::dot(&vectors[0], &vectors[1]);
        let found = on_device(device, &kernels, &vectors, [0, 0])?;
        assert_eq!(found.to_bits(), expected.to_bits(), "{n} elements");
    }
    let vectors = vectors(5003);
    let expected = pinlane_kernels::dot(&vectors[0], &vectors[1]);
    for behind in [[1, 2], [3, 3]] {
        let found = on_device(device, &kernels, &vectors, behind)?;
        assert_eq!(found.to_bits(), expected.to_bits(), "behind {behind:?}");
    }
    Ok(())
}

pub(super) fn atomic(device: &Device) -> Result<()> {
    let kernels = Builtin::load(device)?;
    let stream = device.stream()?;
    let mut result = device.alloc::<f32>(1)?;
    for n in [0u32, 1, 1000] {
        // Small whole numbers: exact in any order.
        let ones: Vec<f32> = (0..n).map(|i| (i % 7) as f32).collect();
        let mut x = device.alloc::<f32>(n as usize)?;
        stream.copy_to_device(&ones, &mut x)?;
        kernels.dot_atomic(&stream, &x, &x, &mut result)?;
        let expected: u32 = (0..n).map(|i| (i % 7) * (i % 7)).sum();
        assert_eq!(stream.copy_to_vec(&result)?, [expected as f32], "{n}");
    }
    Ok(())
}

/// Mismatched lengths are refused, and nothing is launched.
pub(super) fn refusals(device: &Device) -> Result<()> {
    let kernels = Builtin::load(device)?;
    let stream = device.stream()?;
    let (x, y) = (device.alloc::<f32>(2000)?, device.alloc::<f32>(1999)?);
    let mut partials = device.alloc::<f64>(2)?;
    let mut result = device.alloc::<f64>(2)?;
    let mut single = device.alloc::<f32>(2)?;
    let differs = |found: Result<()>, source_len, target_len| {
        let expected = Error::LengthMismatch {
            source_len,
            target_len,
        };
        assert_eq!(found, Err(expected));
    };
    let one = || 0..1;
    let dotted = kernels.dot(&stream, &x, &y, &mut partials, result.range_mut(one()));
    differs(dotted, 2000, 1999);
    let short = partials.range_mut(one());
    let dotted = kernels.dot(&stream, &x, &x, short, result.range_mut(one()));
    differs(dotted, 2, 1);
    let dotted = kernels.dot(&stream, &x, &x, &mut partials, &mut result);
    differs(dotted, 1, 2);
    let dotted = kernels.dot_atomic(&stream, &x, &y, single.range_mut(one()));
    differs(dotted, 2000, 1999);
    differs(kernels.dot_atomic(&stream, &x, &x, &mut single), 1, 2);
    Ok(())
}
