use std::marker::PhantomData;

use pinlane::{DeviceBuf, PinnedBuf, Stream};

#[derive(Clone, Copy)]
struct Local(PhantomData<*const u8>);

// SAFETY: it has no bytes.
unsafe impl bytemuck::Zeroable for Local {}
// SAFETY: it has no bytes.
unsafe impl bytemuck::Pod for Local {}

fn job(stream: &Stream, source: PinnedBuf<Local>, mut target: DeviceBuf<Local>) {
    let _ = stream.upload(source, &mut target);
}

fn main() {}
