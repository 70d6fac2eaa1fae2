//! Pageable memory through the express lane: above its threshold, in many pieces, with conversion.

use half::{bf16, f16};
use pinlane::{Device, F32ToBf16, F32ToF16, Result, Stream, U8ToF32};

use super::numbers;

/// The smallest chunk. Under miri less than one chunk is copied.
const CHUNK_BYTES: usize = 64 << 10;

/// Words of a copy of three chunks, one more than a copy may use of a ring of three.
const WORDS: u32 = if cfg!(miri) { 5000 } else { 36_001 };

/// A stream of a device with a small ring and one lane, so that the order of driver calls is fixed.
fn set_up(device: &Device) -> Result<Stream> {
    let mut config = device.express_config();
    (config.lanes, config.converting_lanes) = (1, 1);
    config.chunk_bytes = CHUNK_BYTES;
    config.ring_chunks = 3;
    config.threshold_bytes = 0;
    config.threshold_asleep_bytes = 0;
    device.set_express_config(config)?;
    device.stream()
}

pub(super) fn there_and_back(device: &Device) -> Result<()> {
    let stream = set_up(device)?;
    let mut values = numbers(WORDS);
    let mut on_device = device.alloc::<u32>(values.len() + 2)?;
    stream.fill_bytes(&mut on_device, 0xff)?;
    stream.copy_to_device(&values, on_device.range_mut(1..=values.len()))?;
    values.fill(0); // it may be reused, wherever the device is
    let back = stream.copy_to_vec(&on_device)?;
    assert!(back[1..back.len() - 1] == numbers(WORDS)[..]);
    assert_eq!((back[0], back[back.len() - 1]), (u32::MAX, u32::MAX));
    Ok(())
}

pub(super) fn on_two_streams(device: &Device) -> Result<()> {
    let (one, two) = (set_up(device)?, device.stream()?);
    let values = numbers(WORDS);
    let half = values.len() / 2;
    let mut on_device = device.alloc::<u32>(values.len())?;
    one.copy_to_device(&values, &mut on_device)?;
    // Overwrites a part of it, ordered after the first copy.
    two.copy_to_device(&values[half..half + 500], on_device.range_mut(..500))?;
    let mut back = vec![0; values.len()];
    one.copy_to_host(&on_device, &mut back)?;
    assert!(back[..500] == values[half..half + 500] && back[500..] == values[500..]);
    Ok(())
}

pub(super) fn many_pieces(device: &Device) -> Result<()> {
    let stream = set_up(device)?;
    let values = numbers(WORDS / 3);
    let mut on_device = device.alloc::<u32>(2 * values.len())?;
    stream.fill_bytes(&mut on_device, 0)?;
    // Each piece of 100 words goes to the first half of 200.
    let places = on_device.whole_mut().chunks(200).map(|place| {
        let len = place.len() / 2;
        place.range(..len)
    });
    stream.upload_many(values.chunks(100).zip(places))?;
    let mut back = vec![0; values.len()];
    let mut start = 0;
    let pieces = back.chunks_mut(100).map(|target| {
        let piece = (on_device.range(start..start + target.len()), target);
        start += 200;
        piece
    });
    stream.download_many(pieces)?;
    assert!(back == values);
    // Nothing was written between them.
    let between = stream.copy_to_vec(on_device.range(100..200))?;
    assert_eq!(between, [0; 100]);
    Ok(())
}

/// The device widens on upload and narrows on download.
pub(super) fn converted_by_the_device(device: &Device) -> Result<()> {
    let stream = set_up(device)?;
    let pixels = pixels();
    let mut wide = device.alloc::<f32>(pixels.len())?;
    stream.upload_as(NORMALISE, &pixels, &mut wide)?;
    let mut narrow = vec![bf16::ZERO; pixels.len()];
    stream.download_as(F32ToBf16, &wide, &mut narrow)?;
    let same = |(&x, found): (&u8, &bf16)| bf16::from_f32(normalised(x)) == *found;
    assert!(pixels.iter().zip(&narrow).all(same));
    Ok(())
}

/// The host narrows while it stages.
pub(super) fn narrowed_by_the_host(device: &Device) -> Result<()> {
    let stream = set_up(device)?;
    let floats: Vec<f32> = numbers(WORDS).into_iter().map(f32::from_bits).collect();
    let mut short = device.alloc::<f16>(floats.len())?;
    stream.upload_as(F32ToF16, &floats, &mut short)?;
    let short = stream.copy_to_vec(&short)?;
    let same = |(&x, found): (&f32, &f16)| f16::from_f32(x).to_bits() == found.to_bits();
    assert!(floats.iter().zip(&short).all(same));
    Ok(())
}

/// The host widens after the download.
pub(super) fn widened_by_the_host(device: &Device) -> Result<()> {
    let stream = set_up(device)?;
    let pixels = pixels();
    let mut on_device = device.alloc::<u8>(pixels.len())?;
    stream.copy_to_device(&pixels, &mut on_device)?;
    let mut wide = vec![0.0; pixels.len()];
    stream.download_as(NORMALISE, &on_device, &mut wide)?;
    let same = |(&x, found): (&u8, &f32)| normalised(x) == *found;
    assert!(pixels.iter().zip(&wide).all(same));
    Ok(())
}

fn pixels() -> Vec<u8> {
    numbers(2 * WORDS).into_iter().map(|x| x as u8).collect()
}

const NORMALISE: U8ToF32 = U8ToF32 {
    scale: 2.0 / 255.0,
    offset: -1.0,
};

/// Rounds after each step.
fn normalised(x: u8) -> f32 {
    f32::from(x) * NORMALISE.scale + NORMALISE.offset
}
