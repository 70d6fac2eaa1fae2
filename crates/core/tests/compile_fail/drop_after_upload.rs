use pinlane::{DeviceBuf, PinnedBuf, Stream};

fn job(stream: &Stream, source: PinnedBuf<u8>, mut target: DeviceBuf<u8>) {
    let transfer = stream.upload(source, &mut target).unwrap();
    drop(source);
    transfer.wait().unwrap();
}

fn main() {}
