use pinlane::{Device, DeviceBuf, Stream};

fn job(device: &Device, stream: &Stream, source: &[u8], mut target: DeviceBuf<u8>) {
    let _ = device.scope(|scope| {
        scope.upload(stream, source, &mut target)?;
        Ok(())
    });
}

fn main() {}
