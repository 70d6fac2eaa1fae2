use pinlane::WriteCombinedBuf;

fn job(buffer: &WriteCombinedBuf<u8>) -> u32 {
    buffer.iter().map(|&byte| u32::from(byte)).sum()
}

fn main() {}
