//! Data of any size through a kernel, chunk by chunk: reading, both directions of the link, the GPU and
//! writing are all busy at once.

use std::fs::File;
use std::io::{BufWriter, Read, Write};

use pinlane::pipeline::{Input, Output, Pipeline, PipelineConfig, StageKind};
use pinlane::{Builtin, Device};

const NUMBERS: usize = 2_500_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or("sim:h200".into());
    let device = Device::named(&name)?;
    println!("{}", device.info().name);
    let kernels = Builtin::load(&device)?;

    // From a file through the GPU into another. Neither needs to fit into any memory.
    let folder = std::env::temp_dir().join(format!("pinlane-example-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (from, to) = (folder.join("numbers"), folder.join("results"));
    let mut file = BufWriter::new(File::create(&from)?);
    for number in 0..NUMBERS as u32 {
        file.write_all(&number.to_le_bytes())?;
    }
    file.into_inner()?;

    let mut config = PipelineConfig::default();
    config.chunk_bytes = 1 << 20;
    let pipeline = Pipeline::new(&device, config)?;
    let input = Input::<u32>::reader(File::open(&from)?);
    let output = Output::writer(File::create(&to)?);
    let flow = pipeline.run_in_place(input, output, |stage, data| {
        kernels.add(stage.stream(), 1000, data)
    })?;
    println!("{} numbers in {} chunks", flow.items, flow.chunks);
    let mut results = Vec::new();
    File::open(&to)?.read_to_end(&mut results)?;
    let (results, _) = results.as_chunks::<4>();
    assert!(
        results
            .iter()
            .map(|bytes| u32::from_le_bytes(*bytes))
            .eq(1000..1000 + NUMBERS as u32)
    );
    std::fs::remove_dir_all(&folder)?;

    // Prepare the next batch while the GPU works on this one: three lines, and no race.
    let mut sums = Vec::new();
    let batches = Input::batches((1..=5u32).map(|number| vec![number; 1000]));
    let output = Output::each(|done: &[u32]| {
        sums.push(done.iter().sum::<u32>());
        Ok(())
    });
    pipeline.run_in_place(batches, output, |stage, data| {
        kernels.add(stage.stream(), 1, data)
    })?;
    println!("sums of the batches: {sums:?}");
    assert_eq!(sums, [2000, 3000, 4000, 5000, 6000]);

    // With pinned memory at both ends, one chunk is copied in while another is computed and a third is copied out.
    let mut config = pipeline.config().clone();
    config.record = true;
    let recorded = Pipeline::new(&device, config)?;
    let source = device.pinned_from(&vec![1u32; 1 << 20])?;
    let mut target = device.pinned::<u32>(1 << 20)?;
    let flow = recorded.run_in_place(&source, &mut target, |stage, data| {
        kernels.add(stage.stream(), 1, data)
    })?;
    for span in &flow.spans {
        println!(
            "  chunk {}, {:8} {:4} to {:4} us",
            span.chunk,
            span.stage,
            span.start_ns / 1000,
            span.end_ns / 1000
        );
    }

    // An error says which chunk, and in which stage.
    let torn = Input::<u32>::reader(&[1, 2, 3, 4, 5][..]);
    let error = pipeline.run_in_place(torn, Output::writer(std::io::sink()), |_, _| Ok(()));
    let error = error.expect_err("five bytes are no whole number of u32");
    println!("as it should be: {error}");
    assert_eq!(error.place, Some((0, StageKind::Read)));
    Ok(())
}
