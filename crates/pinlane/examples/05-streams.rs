//! Three streams share one device buffer. The buffer knows who uses it, so no event is written by hand.
//! A recorder draws what ran when.

use pinlane::record::Recorder;
use pinlane::{Builtin, Device, Result};

fn main() -> Result<()> {
    let name = std::env::args().nth(1).unwrap_or("sim:h200".into());
    let (device, recorder) = Recorder::new(&Device::named(&name)?);
    println!("{}", device.info().name);
    let (up, compute, down) = (device.stream()?, device.stream()?, device.stream()?);
    let kernels = Builtin::load(&device)?;

    let (source, target) = (
        device.pinned_from(&vec![40; 1 << 20])?,
        device.pinned::<u32>(1 << 20)?,
    );
    let mut on_device = device.alloc::<u32>(1 << 20)?;
    let there = up.upload(source, &mut on_device)?;
    kernels.add(&compute, 2, &mut on_device)?; // waits for the upload
    let back = down.download(&on_device, target)?; // waits for the kernel
    println!("the answer is {}", back.wait()?[0]);
    drop(there.wait()?);
    println!("{}", recorder.finish("Up, compute, down")?);
    Ok(())
}
