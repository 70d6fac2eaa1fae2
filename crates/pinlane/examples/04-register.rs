//! Page-lock a `Vec` that you already have, copy from it at full speed, and get it back.

use pinlane::{Device, Result};

fn main() -> Result<()> {
    let name = std::env::args().nth(1).unwrap_or("sim:h200".into());
    let device = Device::named(&name)?;
    println!("{}", device.info().name);
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
