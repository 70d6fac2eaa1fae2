//! Page-lock memory that exists already, use it, and get it back.

use pinlane::{Device, Result};

fn main() -> Result<()> {
    let device = Device::sim("pcie3-x16")?;
    let stream = device.stream()?;
    let mut on_device = device.alloc::<u32>(1 << 20)?;

    let numbers: Vec<u32> = (0..1 << 20).collect();
    let address = numbers.as_ptr();
    println!("before: {:?}", device.pointer_kind(&numbers)?);

    let registered = device.register(numbers)?; // page-locks the pages of the Vec
    println!("registered: {:?}", device.pointer_kind(&registered)?);

    let registered = stream.upload(registered, &mut on_device)?.wait()?;
    let numbers = registered.into_inner()?; // unlocks them
    println!("after: {:?}", device.pointer_kind(&numbers)?);
    println!("the same memory: {}", numbers.as_ptr() == address);
    Ok(())
}
