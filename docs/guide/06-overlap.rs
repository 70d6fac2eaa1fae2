//! Six chunks in, through a kernel and out: one stream, then depth-first and breadth-first on three.

use pinlane::record::Recorder;
use pinlane::{Builtin, Device, PinnedBuf, Result};

const CHUNKS: usize = 6;
const LEN: usize = 1 << 20; // elements of a chunk

#[derive(Clone, Copy)]
enum Order {
    DepthFirst,
    BreadthFirst,
}

/// Runs all chunks and prints the chronogram.
fn run(title: &str, stream_count: usize, order: Order) -> Result<()> {
    let (device, recorder) = Recorder::new(&Device::sim("pcie3-x16")?);
    let kernels = Builtin::load(&device)?;
    let streams = (0..stream_count)
        .map(|_| device.stream())
        .collect::<Result<Vec<_>>>()?;
    let input = device.pinned_from(&vec![1u32; CHUNKS * LEN])?;
    let mut output: PinnedBuf<u32> = device.pinned(CHUNKS * LEN)?;
    let mut on_device = (0..CHUNKS)
        .map(|_| device.alloc::<u32>(LEN))
        .collect::<Result<Vec<_>>>()?;

    device.scope(|scope| {
        let mut results = output.range_mut(..).chunks(LEN);
        let stream = |chunk: usize| &streams[chunk % stream_count];
        let source = |chunk: usize| input.range(chunk * LEN..(chunk + 1) * LEN);
        match order {
            Order::DepthFirst => {
                for (chunk, buffer) in on_device.iter_mut().enumerate() {
                    scope.upload(stream(chunk), source(chunk), &mut *buffer)?;
                    kernels.churn(stream(chunk), 4_000, &mut *buffer)?;
                    let result = results.next().expect("as many as chunks");
                    scope.download(stream(chunk), &*buffer, result)?;
                }
            }
            Order::BreadthFirst => {
                for (chunk, buffer) in on_device.iter_mut().enumerate() {
                    scope.upload(stream(chunk), source(chunk), buffer)?;
                }
                for (chunk, buffer) in on_device.iter_mut().enumerate() {
                    kernels.churn(stream(chunk), 4_000, buffer)?;
                }
                for (chunk, buffer) in on_device.iter().enumerate() {
                    let result = results.next().expect("as many as chunks");
                    scope.download(stream(chunk), buffer, result)?;
                }
            }
        }
        Ok(())
    })?;
    println!("{}", recorder.finish(title)?);
    Ok(())
}

fn main() -> Result<()> {
    run("One stream", 1, Order::DepthFirst)?;
    run("Three streams, depth-first", 3, Order::DepthFirst)?;
    run("Three streams, breadth-first", 3, Order::BreadthFirst)
}
