use pinlane::{PinnedBuf, Transfer};

fn job(transfer: Transfer<PinnedBuf<u8>>) {
    transfer.wait().unwrap();
    transfer.wait().unwrap();
}

fn main() {}
