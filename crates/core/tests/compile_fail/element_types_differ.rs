use pinlane::{DeviceBuf, PinnedBuf, Stream};

fn job(stream: &Stream, source: PinnedBuf<u32>, mut target: DeviceBuf<f32>) {
    let _ = stream.upload(source, &mut target);
}

fn main() {}
