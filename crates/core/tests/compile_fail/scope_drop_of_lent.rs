use pinlane::{Device, DeviceBuf, PinnedBuf, Stream};

fn job(device: &Device, stream: &Stream, pinned: PinnedBuf<u8>, mut target: DeviceBuf<u8>) {
    let _ = device.scope(|scope| {
        scope.upload(stream, &pinned, &mut target)?;
        drop(pinned);
        Ok(())
    });
}

fn main() {}
