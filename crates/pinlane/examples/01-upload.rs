//! Copy memory to the GPU without waiting, do something else, and get the buffer back.

use pinlane::{Device, Result};

fn main() -> Result<()> {
    let name = std::env::args().nth(1).unwrap_or("sim:h200".into());
    let device = Device::named(&name)?;
    println!("{}", device.info().name);
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
