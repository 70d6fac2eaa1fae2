//! The same program on a simulated and on a real GPU: pass `cuda:0` to use one.

use pinlane::{Device, Result};

fn main() -> Result<()> {
    let name = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "sim:h200".to_owned());
    let device = Device::named(&name)?;
    match &device.info().simulated {
        Some(profile) => println!("SIMULATED with the profile {profile}"),
        None => println!("measured on {}", device.info().name),
    }
    let stream = device.stream()?;
    let numbers: Vec<u32> = (0..1 << 20).collect();
    let mut on_device = device.alloc::<u32>(numbers.len())?;
    stream.copy_to_device(&numbers, &mut on_device)?;
    println!(
        "every byte arrived: {}",
        stream.copy_to_vec(&on_device)? == numbers
    );

    let error = Device::named("gpu").unwrap_err();
    println!("{error}");
    Ok(())
}
