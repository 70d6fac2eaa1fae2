use pinlane::{Device, DeviceBuf, PinnedBuf, Stream};

fn job(device: &Device, stream: &Stream, source: DeviceBuf<u8>, mut pinned: PinnedBuf<u8>) {
    let _ = device.scope(|scope| {
        let transfer = scope.download(stream, &source, &mut pinned)?;
        let early = pinned[0];
        transfer.wait()?;
        Ok(early)
    });
}

fn main() {}
