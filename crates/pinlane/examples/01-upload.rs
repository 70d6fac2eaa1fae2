//! Copy memory to the GPU without waiting, do something else, and get the buffer back.

use pinlane::{Device, Result};
use pinlane_model::Profile;
use pinlane_sim::Sim;

fn main() -> Result<()> {
    let sim = Sim::new(Profile::builtin("pcie4-x16").expect("built in"));
    let device = Device::open(&sim, 0)?;
    println!("SIMULATED: {}", device.info().name);
    let stream = device.stream()?;

    let mut on_device = device.alloc::<f32>(1 << 20)?;
    let mut buffer = device.pinned::<f32>(1 << 20)?;
    buffer.fill(1.5);

    let transfer = stream.upload(buffer, &mut on_device)?;
    println!("on its way, done yet: {}", transfer.is_done()?);
    // Touching `buffer` here would not compile: the transfer owns it.
    let buffer = transfer.wait()?;
    println!(
        "there, and the buffer is ours again: {} elements",
        buffer.len()
    );
    Ok(())
}
