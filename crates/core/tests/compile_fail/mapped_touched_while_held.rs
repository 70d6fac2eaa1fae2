use pinlane::{MappedBuf, Stream};

fn job(stream: &Stream, mapped: MappedBuf<u8>) -> u8 {
    let held = stream.hold(mapped).unwrap();
    let early = mapped[0];
    held.wait().unwrap();
    early
}

fn main() {}
