use pinlane::{DeviceBuf, Stream, WriteCombinedBuf};

fn job(stream: &Stream, source: DeviceBuf<u8>, target: WriteCombinedBuf<u8>) {
    let _ = stream.download(&source, target);
}

fn main() {}
