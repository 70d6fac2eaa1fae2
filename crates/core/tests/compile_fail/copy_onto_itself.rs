use pinlane::{DeviceBuf, Stream};

fn job(stream: &Stream, mut buffer: DeviceBuf<u8>) {
    let _ = stream.copy_on_device(buffer.whole(), buffer.whole_mut());
}

fn main() {}
