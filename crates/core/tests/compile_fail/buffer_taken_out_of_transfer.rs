use pinlane::{PinnedBuf, Transfer};

fn job(transfer: Transfer<PinnedBuf<u8>>) -> u8 {
    transfer.flight.load.unwrap().0[0]
}

fn main() {}
