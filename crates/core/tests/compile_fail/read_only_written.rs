use pinlane::{ReadOnly, Registered};

fn job(mut registered: Registered<ReadOnly<Vec<u8>>>) {
    registered[0] = 1;
}

fn main() {}
