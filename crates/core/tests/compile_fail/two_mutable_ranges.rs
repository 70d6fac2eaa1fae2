use pinlane::DeviceBuf;

fn job(mut buffer: DeviceBuf<u8>) {
    let one = buffer.range_mut(0..8);
    let two = buffer.range_mut(4..12);
    let _ = (one.len(), two.len());
}

fn main() {}
