use pinlane::{DeviceBuf, Stream};

fn job(stream: &Stream, buffer: DeviceBuf<u8>) {
    let _ = stream.hold(buffer);
}

fn main() {}
