use pinlane::Registered;

fn job(mut registered: Registered<Vec<u8>>) {
    registered.push(1);
}

fn main() {}
