use pinlane::WriteCombinedBuf;

fn job(buffer: &WriteCombinedBuf<u8>) -> u8 {
    buffer[0]
}

fn main() {}
