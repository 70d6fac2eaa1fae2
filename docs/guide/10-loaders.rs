//! Weights from a file, and batches of a dataset, read ahead by several threads.

use pinlane::load::dataset::{Field, from_fn};
use pinlane::load::{Dtype, LoadConfig, Loader, LoaderConfig, Weights};
use pinlane::{Device, Result};

fn main() -> Result<()> {
    let device = Device::sim("h200")?;
    let stream = device.stream()?;

    // A small safetensors file: the length of the header, the header, the bytes of the tensors.
    let header = r#"{"scale":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend([1.5f32, 2.5].iter().flat_map(|value| value.to_le_bytes()));
    let path =
        std::env::temp_dir().join(format!("pinlane-guide-{}.safetensors", std::process::id()));
    std::fs::write(&path, file).expect("a temporary file");

    let tensors = Weights::open(&path)?.load(&device, &LoadConfig::default())?;
    let scale = tensors["scale"].elements::<f32>().expect("they are f32");
    println!("scale = {:?}", stream.copy_to_vec(scale)?);
    std::fs::remove_file(&path).expect("it was there");

    // A dataset: ten samples, each the square of its number.
    let fields = [Field::fixed("square", Dtype::U32, [])];
    let squares = from_fn(10, fields, |index, sample| {
        sample.write("square", &[(index * index) as u32])
    });
    let config = LoaderConfig::default().batch(4).shuffle(true).seed(7);
    let loader = Loader::new(&device, squares, config)?;
    for batch in loader.epoch(0)? {
        let batch = batch?;
        let square = batch.field("square").expect("a field of the dataset");
        println!(
            "{:?}: {:?}",
            batch.indices(),
            stream.copy_to_vec(square.typed::<u32>()?)?
        );
    }
    Ok(())
}
