//! Batches of a dataset, read ahead by worker threads, normalised on the device, and resumed after a restart.

use pinlane::load::dataset::{Field, from_fn};
use pinlane::load::{DeviceTransform, Dtype, Loader, LoaderConfig};
use pinlane::{Device, Normalize, Result};

const PIXELS: usize = 32 * 32;

fn main() -> Result<()> {
    let name = std::env::args().nth(1).unwrap_or("sim:h200".into());
    let device = Device::named(&name)?;
    println!("{}", device.info().name);
    let stream = device.stream()?;

    // 1000 images of three channels, and their labels. A closure stands in for files; worker threads call it.
    let fields = [
        Field::fixed("image", Dtype::U8, [3, 32, 32]),
        Field::fixed("label", Dtype::U32, []),
    ];
    let images = from_fn(1000, fields, |index, sample| {
        sample.write("image", &[index as u8; 3 * PIXELS])?;
        sample.write("label", &[index as u32])
    });

    // Bytes go over the link; a kernel turns them into floats on the device.
    let normalize = DeviceTransform::Normalize {
        normalize: Normalize::mean_std(&[0.5; 3], &[0.25; 3], PIXELS)?,
        to: Dtype::F32,
    };
    let config = LoaderConfig::default()
        .batch(64)
        .shuffle(true)
        .seed(7)
        .device_transform("image", normalize);
    let loader = Loader::new(&device, images, config)?;

    let mut state = None;
    for (number, batch) in loader.epoch(0)?.enumerate() {
        let batch = batch?;
        // Any stream may use the batch: it waits for the copy.
        let labels = batch.field("label").expect("a field").typed::<u32>()?;
        let images = batch.field("image").expect("a field").typed::<f32>()?;
        let (labels, images) = (stream.copy_to_vec(labels)?, stream.copy_to_vec(images)?);
        for (label, image) in labels.iter().zip(images.chunks(3 * PIXELS)) {
            let expected = (f32::from(*label as u8) / 255.0 - 0.5) / 0.25;
            assert!((image[0] - expected).abs() < 1e-5);
        }
        if number == 9 {
            state = Some(loader.state()); // as if the program stopped here
            println!("stopped after batch 9, labels {:?}…", &labels[..4]);
            break;
        }
    }

    // A new program restores the state, and goes on with batch 10.
    let rest: Vec<usize> = loader
        .restore(&state.expect("ten batches"))?
        .map(|batch| Ok(batch?.len()))
        .collect::<Result<_>>()?;
    println!(
        "{} samples in the other {} batches",
        rest.iter().sum::<usize>(),
        rest.len()
    );
    assert_eq!(rest.iter().sum::<usize>(), 1000 - 10 * 64);
    Ok(())
}
