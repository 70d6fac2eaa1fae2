//! Lend memory to transfers instead of giving it away. The scope ends when they have.

use pinlane::{Device, Result};
use pinlane_model::Profile;
use pinlane_sim::Sim;

fn main() -> Result<()> {
    let sim = Sim::new(Profile::builtin("pcie4-x16").expect("built in"));
    let device = Device::open(&sim, 0)?;
    println!("SIMULATED: {}", device.info().name);
    let stream = device.stream()?;

    let source = device.pinned_from(&[1u8, 2, 3, 4, 5, 6, 7, 8])?;
    let mut target = device.pinned_from(&[0u8; 4])?;
    let mut on_device = device.alloc::<u8>(8)?;
    device.scope(|scope| {
        scope.upload(&stream, &source, &mut on_device)?;
        scope.download(&stream, on_device.range(2..6), &mut target)?;
        println!(
            "both on their way; reading {} is fine, writing would not compile",
            source[0]
        );
        Ok(())
    })?;
    println!("done: {:?}", &target[..]);
    Ok(())
}
