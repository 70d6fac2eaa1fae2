use pinlane::{Device, DeviceBuf, PinnedBuf, Stream};

fn job(device: &Device, stream: &Stream, mut on_device: DeviceBuf<u8>, mut pinned: PinnedBuf<u8>) {
    let _ = device.scope(|scope| {
        scope.download(stream, &on_device, &mut pinned)?;
        scope.upload(stream, &pinned, &mut on_device)?;
        Ok(())
    });
}

fn main() {}
