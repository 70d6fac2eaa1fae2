//! One input, one kernel, one output, compared with the serial computation.

use pinlane::Pod;
use pinlane::pipeline::{Pipeline, PipelineError, RunSummary};

use super::input_and_output_kinds::{From, Source, Target, To};
use super::mixing_kernel::{self, Shape};
use super::rig::Rig;
use pinlane_testing::pattern;

/// So many items of so many elements each, from here to there.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub from: From,
    pub to: To,
    pub items: usize,
    pub width_in: usize,
    pub width_out: usize,
    pub seed: u64,
}

/// Elements that are different in every place.
pub fn elements<T: Pod>(len: usize, seed: u64) -> Vec<T> {
    let bytes = pattern(len * size_of::<T>(), seed);
    let elements = bytes.chunks_exact(size_of::<T>());
    elements.map(bytemuck::pod_read_unaligned).collect()
}

impl Job {
    /// Items that a chunk of a pipeline holds.
    fn chunk_items<T, O>(&self, pipeline: &Pipeline) -> usize {
        let widest = (self.width_in * size_of::<T>()).max(self.width_out * size_of::<O>());
        (pipeline.config().chunk_bytes / widest).max(1)
    }

    /// Through the kernel of these tests. What arrived, and what should have.
    pub fn run<T: Pod + Send, O: Pod + Send>(
        &self,
        rig: &Rig,
        pipeline: &Pipeline,
    ) -> Result<(RunSummary, Vec<u8>, Vec<u8>), PipelineError> {
        let elements: Vec<T> = elements(self.items * self.width_in, self.seed);
        let source = Source::new(self.from, &rig.device, &elements)?;
        let mut target = Target::<O>::new(self.to, &rig.device, self.items * self.width_out)?;
        let shape = Shape::new(
            &[self.width_in * size_of::<T>()],
            self.width_out * size_of::<O>(),
        );
        let input = source.input(self.width_in, self.chunk_items::<T, O>(pipeline), self.seed);
        let flow = pipeline.run(
            input,
            target.output(self.width_out),
            |stage, input, output| {
                assert_eq!(
                    input.len(),
                    stage.items() * self.width_in,
                    "the chunk of the input"
                );
                mixing_kernel::launch_one(&rig.module, stage.stream(), shape, input, output)
            },
        )?;
        let found = target.bytes(&rig.device)?;
        Ok((
            flow,
            found,
            shape.serial(&[bytemuck::cast_slice(&elements)]),
        ))
    }

    /// In place, through a kernel that adds the number of the item before the chunk.
    pub fn run_in_place(
        &self,
        rig: &Rig,
        pipeline: &Pipeline,
    ) -> Result<(RunSummary, Vec<u8>, Vec<u8>), PipelineError> {
        let mut elements: Vec<u32> = elements(self.items * self.width_in, self.seed);
        let source = Source::new(self.from, &rig.device, &elements)?;
        let mut target = Target::new(self.to, &rig.device, elements.len())?;
        let input = source.input(
            self.width_in,
            self.chunk_items::<u32, u32>(pipeline),
            self.seed,
        );
        let mut chunks = Vec::new();
        let flow = pipeline.run_in_place(input, target.output(self.width_in), |stage, data| {
            let value = stage.first_item() as u32 * 1000 + stage.chunk() as u32;
            chunks.push((data.len(), value));
            rig.kernels.add(stage.stream(), value, data)
        })?;
        let mut rest = &mut elements[..];
        for (len, value) in chunks {
            let (chunk, later) = rest.split_at_mut(len);
            chunk
                .iter_mut()
                .for_each(|word| *word = word.wrapping_add(value));
            rest = later;
        }
        assert!(rest.is_empty(), "all elements were seen");
        let found = target.bytes(&rig.device)?;
        Ok((flow, found, bytemuck::cast_slice(&elements).to_vec()))
    }
}
