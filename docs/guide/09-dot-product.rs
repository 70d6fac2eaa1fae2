//! The dot product of two vectors: summed in double precision, and how long each part takes.

use pinlane::record::Recorder;
use pinlane::{Builtin, Device, Result};

const LEN: usize = 1 << 20;

fn main() -> Result<()> {
    let (device, recorder) = Recorder::new(&Device::sim("h200")?);
    let stream = device.stream()?;
    let kernels = Builtin::load(&device)?;

    let (mut x, mut y) = (device.alloc::<f32>(LEN)?, device.alloc::<f32>(LEN)?);
    let x_host = device.pinned_from(&vec![0.5; LEN])?;
    let y_host = device.pinned_from(&vec![3.0; LEN])?;
    let sum = device.pinned::<f64>(1)?;
    let mut partials = device.alloc::<f64>(Builtin::dot_partials(LEN))?;
    let mut result = device.alloc::<f64>(1)?;

    // Everything is submitted before anything is waited for.
    let x_copy = stream.upload(x_host, &mut x)?;
    let y_copy = stream.upload(y_host, &mut y)?;
    kernels.dot(&stream, &x, &y, &mut partials, &mut result)?;
    let sum = stream.download(&result, sum)?.wait()?;
    println!("x · y = {}", sum[0]);
    x_copy.wait()?;
    y_copy.wait()?;
    print!("{}", recorder.finish("Dot product")?);
    Ok(())
}
