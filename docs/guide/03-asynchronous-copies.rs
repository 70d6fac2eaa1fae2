//! An asynchronous copy returns at once. The transfer owns the buffer until the copy is done.

use pinlane::{Device, Result};

fn main() -> Result<()> {
    let device = Device::sim("pcie3-x16")?;
    let stream = device.stream()?;
    let mut on_device = device.alloc::<f32>(16 << 20)?;

    let buffer = device.pinned_from(&vec![2.0; 16 << 20])?;
    let transfer = stream.upload(buffer, &mut on_device)?;
    println!("done when upload returns: {}", transfer.is_done()?);

    let sum: u64 = (1..=1000).sum(); // the host works meanwhile
    println!("the host computed {sum}");

    let mut buffer = transfer.wait()?;
    buffer[0] = 3.0; // ours again
    println!("after wait the buffer is ours: {}", buffer[0]);
    Ok(())
}
