use pinlane::Registered;

fn job(registered: Registered<Vec<u8>>) -> u8 {
    let vec = registered.into_inner().unwrap();
    drop(vec);
    registered[0]
}

fn main() {}
