use pinlane::{DeviceBuf, PinnedBuf, Stream};

fn job(stream: &Stream, source: PinnedBuf<u8>, mut target: DeviceBuf<u8>) {
    let _ = stream.upload(&source[..], &mut target);
}

fn main() {}
