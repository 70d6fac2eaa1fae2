use pinlane::{DeviceBuf, PinnedBuf, Stream};

fn job(stream: &Stream, source: DeviceBuf<u8>, target: PinnedBuf<u8>) -> u8 {
    let transfer = stream.download(&source, target).unwrap();
    let early = target[0];
    transfer.wait().unwrap();
    early
}

fn main() {}
