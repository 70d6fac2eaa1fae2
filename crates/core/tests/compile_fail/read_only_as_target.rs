use pinlane::{DeviceBuf, ReadOnly, Registered, Stream};

fn job(stream: &Stream, source: DeviceBuf<u8>, target: Registered<ReadOnly<Vec<u8>>>) {
    let _ = stream.download(&source, target);
}

fn main() {}
