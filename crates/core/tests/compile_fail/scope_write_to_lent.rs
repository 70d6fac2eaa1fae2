use pinlane::{Device, DeviceBuf, PinnedBuf, Stream};

fn job(device: &Device, stream: &Stream, mut pinned: PinnedBuf<u8>, mut target: DeviceBuf<u8>) {
    let _ = device.scope(|scope| {
        scope.upload(stream, &pinned, &mut target)?;
        pinned[0] = 1;
        Ok(())
    });
}

fn main() {}
