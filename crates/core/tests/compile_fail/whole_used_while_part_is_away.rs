use pinlane::PinnedBuf;

fn job(buffer: PinnedBuf<u8>) -> u8 {
    let part = buffer.part(0..4);
    let byte = buffer[0];
    drop(part);
    byte
}

fn main() {}
