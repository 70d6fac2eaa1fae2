use pinlane::WriteCombinedBuf;

fn job(buffer: &WriteCombinedBuf<u8>) -> &[u8] {
    buffer
}

fn main() {}
