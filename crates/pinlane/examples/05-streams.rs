//! Three streams share one device buffer. No event is written by hand: the buffer knows.

use pinlane::{Builtin, Device, Result};
use pinlane_model::Profile;
use pinlane_sim::Sim;

fn main() -> Result<()> {
    let sim = Sim::new(Profile::builtin("pcie4-x16").expect("built in"));
    let device = Device::open(&sim, 0)?;
    println!("SIMULATED: {}", device.info().name);
    let (up, compute, down) = (device.stream()?, device.stream()?, device.stream()?);
    let kernels = Builtin::load(&device)?;

    let mut on_device = device.alloc::<u32>(1 << 20)?;
    let there = up.upload(device.pinned_from(&vec![40; 1 << 20])?, &mut on_device)?;
    kernels.add(&compute, 2, &mut on_device)?; // waits for the upload
    let back = down.download(&on_device, device.pinned::<u32>(1 << 20)?)?; // waits for the kernel
    println!("the answer is {}", back.wait()?[0]);
    drop(there.wait()?);
    for span in sim.timeline() {
        println!("{span:?}");
    }
    Ok(())
}
