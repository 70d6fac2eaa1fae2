use pinlane::driver::{Driver, Result, StreamFlags};

fn job(one: &dyn Driver, other: &dyn Driver) -> Result<()> {
    let stream = other.stream_create(StreamFlags::default())?;
    one.stream_synchronize(stream)
}

fn main() {}
