//! Ordinary memory at the speed of pinned memory, many pieces at once, and a change of type on the way.

use pinlane::{Device, F32ToBf16, U8ToF32};

fn main() -> pinlane::Result<()> {
    let name = std::env::args().nth(1).unwrap_or("sim:h200".into());
    let device = Device::named(&name)?;
    println!("{}", device.info().name);
    let stream = device.stream()?;

    // Any memory. The call returns when it may be reused; the bytes arrive in stream order.
    let mut weights = vec![0.25f32; 1 << 22];
    let mut on_device = device.alloc::<f32>(weights.len())?;
    stream.copy_to_device(&weights, &mut on_device)?;
    weights.fill(0.0); // this is fine
    assert_eq!(stream.copy_to_vec(&on_device)?[12345], 0.25);

    // Thousands of small pieces travel as a few large copies.
    let rows: Vec<Vec<u32>> = (0..5000).map(|row| vec![row; 10]).collect();
    let mut table = device.alloc::<u32>(5000 * 16)?;
    let places = table.whole_mut().chunks(16).map(|place| place.range(..10));
    stream.upload_many(rows.iter().map(Vec::as_slice).zip(places))?;

    // Half, or a quarter, of the bytes over the link.
    let mut narrow = device.alloc::<half::bf16>(1000)?;
    stream.upload_as(F32ToBf16, &[1.5; 1000], &mut narrow)?;
    let mut pixels = device.alloc::<f32>(3 * 224 * 224)?;
    let normalise = U8ToF32 {
        scale: 1.0 / 127.5,
        offset: -1.0,
    };
    stream.upload_as(normalise, &[255; 3 * 224 * 224], &mut pixels)?;
    assert_eq!(stream.copy_to_vec(&pixels)?[0], 1.0);

    let held = device.stats().express_bytes;
    println!("done; the lane keeps {held} pinned bytes for the next copy");
    device.trim();
    assert_eq!(device.stats().express_bytes, 0);
    Ok(())
}
