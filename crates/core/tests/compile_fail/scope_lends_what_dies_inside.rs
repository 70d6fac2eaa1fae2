use pinlane::{Device, DeviceBuf, Stream};

fn job(device: &Device, stream: &Stream, mut target: DeviceBuf<u8>) {
    let _ = device.scope(|scope| {
        let pinned = device.pinned::<u8>(16)?;
        scope.upload(stream, &pinned, &mut target)?;
        Ok(())
    });
}

fn main() {}
