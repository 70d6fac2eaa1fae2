//! Lend memory to transfers instead of giving it away. The scope ends when they have.

use pinlane::{Device, Result};

fn main() -> Result<()> {
    let name = std::env::args().nth(1).unwrap_or("sim:h200".into());
    let device = Device::named(&name)?;
    println!("{}", device.info().name);
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
