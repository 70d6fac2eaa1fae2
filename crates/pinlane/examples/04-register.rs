//! Page-lock a `Vec` that you already have, copy from it at full speed, and get it back.

use pinlane::{Device, Result};
use pinlane_model::Profile;
use pinlane_sim::Sim;

fn main() -> Result<()> {
    let sim = Sim::new(Profile::builtin("pcie4-x16").expect("built in"));
    let device = Device::open(&sim, 0)?;
    println!("SIMULATED: {}", device.info().name);
    let stream = device.stream()?;

    let vec = vec![7u16; 100_000];
    println!("before: {:?}", device.pointer_kind(&vec)?);
    let registered = device.register(vec)?;
    println!("registered: {:?}", device.pointer_kind(&registered)?);
    let mut on_device = device.alloc::<u16>(100_000)?;
    let registered = stream.upload(registered, &mut on_device)?.wait()?;
    let vec = registered.into_inner()?;
    println!(
        "given back: {:?}, {} elements",
        device.pointer_kind(&vec)?,
        vec.len()
    );
    Ok(())
}
