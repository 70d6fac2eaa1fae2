use pinlane::{Device, DeviceBuf, PinnedBuf, Stream};

fn job(device: &Device, stream: &Stream, pinned: &PinnedBuf<u8>, mut target: DeviceBuf<u8>) {
    let transfer = device.scope(|scope| scope.upload(stream, pinned, &mut target));
    let _ = transfer;
}

fn main() {}
