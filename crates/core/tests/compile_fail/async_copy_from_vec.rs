use pinlane::{DeviceBuf, Stream};

fn job(stream: &Stream, source: Vec<u8>, mut target: DeviceBuf<u8>) {
    let _ = stream.upload(source, &mut target);
}

fn main() {}
