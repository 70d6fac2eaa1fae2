//! Bytes normalised on the device.

use half::bf16;
use pinlane::{Builtin, Device, Error, Normalize, Result};

use super::numbers;

/// Bytes of images, the last one incomplete.
fn pixels() -> Vec<u8> {
    numbers(5003).into_iter().map(|x| (x >> 24) as u8).collect()
}

/// The expected numbers.
fn expected(pixels: &[u8], normalize: &Normalize) -> Vec<f32> {
    let number = |(i, pixel): (usize, &u8)| {
        let channel = i / normalize.inner() % normalize.channels();
        let [scale, offset] = normalize.factors()[channel];
        f32::from(*pixel) * scale + offset
    };
    pixels.iter().enumerate().map(number).collect()
}

/// Planes to f32 on one stream and pixels to bf16 on another, without waiting in between.
pub(super) fn same_bits(device: &Device) -> Result<()> {
    let kernels = Builtin::load(device)?;
    let (one, two) = (device.stream()?, device.stream()?);
    let (mean, std) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    let planes = Normalize::mean_std(&mean, &std, 20 * 30)?;
    let by_pixel = Normalize::mean_std(&mean, &std, 1)?;
    let (on_planes, on_pixels) = (planes.upload(&one)?, by_pixel.upload(&one)?);
    let pixels = pixels();
    let mut source = device.alloc::<u8>(pixels.len() + 1)?;
    one.copy_to_device(&pixels, source.range_mut(1..))?;
    let mut wide = device.alloc::<f32>(pixels.len())?;
    let mut narrow = device.alloc::<bf16>(pixels.len())?;
    kernels.normalize(&one, &on_planes, source.range(1..), &mut wide)?;
    kernels.normalize(&two, &on_pixels, source.range(1..), &mut narrow)?;
    // Their memory lives until the kernels are done.
    drop((on_planes, on_pixels));
    assert!(one.copy_to_vec(&wide)? == expected(&pixels, &planes));
    let rounded = expected(&pixels, &by_pixel).into_iter().map(bf16::from_f32);
    assert!(two.copy_to_vec(&narrow)?.into_iter().eq(rounded));
    Ok(())
}

/// Mismatched lengths are refused, and nothing is launched. Without elements there is nothing to do.
pub(super) fn refusals(device: &Device) -> Result<()> {
    let kernels = Builtin::load(device)?;
    let stream = device.stream()?;
    let normalizer = Normalize::new(&[1.0], &[0.0], 1)?.upload(&stream)?;
    let source = device.alloc::<u8>(100)?;
    let mut target = device.alloc::<f32>(99)?;
    let different = Error::LengthMismatch {
        source_len: 100,
        target_len: 99,
    };
    let refused = kernels.normalize(&stream, &normalizer, &source, &mut target);
    assert_eq!(refused, Err(different));
    let nothing = target.range_mut(..0);
    kernels.normalize(&stream, &normalizer, source.range(..0), nothing)
}
