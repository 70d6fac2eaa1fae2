use pinlane::{Device, DeviceBuf, PinnedBuf, Stream};

fn job(device: &Device, stream: &Stream, pinned: &PinnedBuf<u8>, mut target: DeviceBuf<u8>) {
    let mut escaped = None;
    let _ = device.scope(|scope| {
        escaped = Some(scope.upload(stream, pinned, &mut target)?);
        Ok(())
    });
}

fn main() {}
