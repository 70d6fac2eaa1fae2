use pinlane::{DeviceBuf, PinnedBuf, Stream};

fn job(stream: &Stream, mut source: PinnedBuf<u8>, mut target: DeviceBuf<u8>) {
    let transfer = stream.upload(source, &mut target).unwrap();
    source[0] = 1;
    transfer.wait().unwrap();
}

fn main() {}
