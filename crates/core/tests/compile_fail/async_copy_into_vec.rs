use pinlane::{DeviceBuf, Stream};

fn job(stream: &Stream, source: DeviceBuf<u8>, target: Vec<u8>) {
    let _ = stream.download(&source, target);
}

fn main() {}
