//! Load weights from safetensors files: all of them, or the part that one rank needs, converted on the way.

use std::error::Error;
use std::path::Path;
use std::{env, fs, process};

use pinlane::Device;
use pinlane::load::{Dtype, LoadConfig, Selection, Weights};

fn main() -> Result<(), Box<dyn Error>> {
    let name = env::args().nth(1).unwrap_or("sim:h200".into());
    let device = Device::named(&name)?;
    println!("{}", device.info().name);
    let stream = device.stream()?;

    let path = env::temp_dir().join(format!("pinlane-example-{}.safetensors", process::id()));
    write_model(&path)?;

    // Only headers are read here.
    let weights = Weights::open(&path)?;
    for tensor in weights.tensors() {
        println!("{}: {} {:?}", tensor.name(), tensor.dtype(), tensor.shape());
    }

    // All tensors, bit for bit; `verify` compares one with the file again.
    let tensors = weights.load(&device, &LoadConfig::default())?;
    let bias = tensors["head.bias"]
        .elements::<f32>()
        .expect("they are f32");
    assert_eq!(stream.copy_to_vec(bias)?, [0.0, 1.0, 2.0, 3.0]);
    weights.verify(&device, &tensors["head.bias"])?;

    // The rows of rank 1 of 2, as bf16. Tensors arrive in any order, each as soon as it is complete.
    let layers = weights
        .select(&Selection::new().glob("layers.*")?)?
        .shard(1, 2)?;
    for tensor in layers.start(&device, &LoadConfig::default().convert(Dtype::Bf16))? {
        let tensor = tensor?;
        println!(
            "arrived: {} {} {:?}",
            tensor.name(),
            tensor.dtype(),
            tensor.shape()
        );
    }
    fs::remove_file(path)?;
    Ok(())
}

/// A safetensors file: the length of the header, the header, and the elements of all tensors.
fn write_model(path: &Path) -> std::io::Result<()> {
    let shapes = [
        ("layers.0.weight", [4, 8]),
        ("layers.1.weight", [4, 8]),
        ("head.bias", [1, 4]),
    ];
    let (mut header, mut data) = (Vec::new(), Vec::new());
    for (name, shape) in shapes {
        let start = data.len();
        let elements = (0..shape[0] * shape[1]).map(|number| number as f32);
        data.extend(elements.flat_map(f32::to_le_bytes));
        let offsets = [start, data.len()];
        header.push(format!(
            r#""{name}":{{"dtype":"F32","shape":{shape:?},"data_offsets":{offsets:?}}}"#
        ));
    }
    let header = format!("{{{}}}", header.join(","));
    let length = (header.len() as u64).to_le_bytes();
    fs::write(path, [&length, header.as_bytes(), &data].concat())
}
