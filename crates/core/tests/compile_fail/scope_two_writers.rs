use pinlane::{Device, DeviceBuf, PinnedBuf, Stream};

fn job(device: &Device, stream: &Stream, source: DeviceBuf<u8>, mut pinned: PinnedBuf<u8>) {
    let _ = device.scope(|scope| {
        let one = scope.download(stream, &source, &mut pinned)?;
        let two = scope.download(stream, &source, &mut pinned)?;
        let _ = (one, two);
        Ok(())
    });
}

fn main() {}
