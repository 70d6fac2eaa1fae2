use pinlane::{DeviceBuf, PinnedBuf, Stream};

fn job(one: &Stream, two: &Stream, source: PinnedBuf<u8>, mut a: DeviceBuf<u8>, mut b: DeviceBuf<u8>) {
    let first = one.upload(source, &mut a);
    let second = two.upload(source, &mut b);
    let _ = (first, second);
}

fn main() {}
