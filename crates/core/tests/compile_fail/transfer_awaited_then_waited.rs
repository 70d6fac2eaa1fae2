use pinlane::{PinnedBuf, Transfer};

async fn job(transfer: Transfer<PinnedBuf<u8>>) {
    transfer.await.unwrap();
    transfer.wait().unwrap();
}

fn main() {}
