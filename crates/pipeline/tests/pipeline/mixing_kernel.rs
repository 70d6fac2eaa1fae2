//! A kernel for any number and width of inputs, and the same on the host.

use pinlane::kernel::{In, Out};
use pinlane::{DeviceSlice, DeviceSliceMut, LaunchShape, Module, Pod, Result, Stream};
use pinlane_driver::{DevicePtr, KernelArg, ParamKind};
use pinlane_kernels::{Kernel, Memory, MemoryFault};

/// What a real device would be given.
pub const PTX: &str =
    ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry test_mix() { ret; }";

/// Bytes of an item of each input (0: there is none) and of the output, and how long it takes. One
/// that takes long only copies, so that it does not take long here.
#[derive(Clone, Copy, Default, Debug)]
pub struct Shape {
    pub inputs: [usize; 4],
    pub output: usize,
    pub cost_us: u64,
}

impl Shape {
    pub fn new(inputs: &[usize], output: usize) -> Self {
        let mut shape = Self {
            output,
            ..Self::default()
        };
        shape.inputs[..inputs.len()].copy_from_slice(inputs);
        shape
    }

    fn packed(&self) -> u64 {
        let widths = self.inputs.iter().chain([&self.output]);
        let widths = widths.fold(0, |packed, &width| {
            assert!(width < 256);
            packed << 8 | width as u64
        });
        widths | self.cost_us << 40
    }

    fn unpacked(packed: u64) -> Self {
        let byte = |at: u32| (packed >> (8 * at) & 255) as usize;
        Self {
            inputs: [byte(4), byte(3), byte(2), byte(1)],
            output: byte(0),
            cost_us: packed >> 40,
        }
    }

    /// What the kernel makes of all items.
    pub fn serial(&self, inputs: &[&[u8]]) -> Vec<u8> {
        if self.cost_us > 0 {
            return inputs[0].to_vec();
        }
        let items = inputs[0].len() / self.inputs[0];
        let mut output = Vec::with_capacity(items * self.output);
        for item in 0..items {
            for at in 0..self.output {
                let mut sum = at as u8;
                for (factor, (input, &width)) in inputs.iter().zip(&self.inputs).enumerate() {
                    if width > 0 {
                        let byte = input[item * width + at % width];
                        sum = sum.wrapping_mul(3).wrapping_add(byte ^ factor as u8);
                    }
                }
                output.push(sum);
            }
        }
        output
    }
}

fn u64_of(arg: &KernelArg) -> u64 {
    match arg {
        KernelArg::U64(value) => *value,
        other => panic!("{other:?}"),
    }
}

fn ptr_of(arg: &KernelArg) -> DevicePtr {
    match arg {
        KernelArg::Ptr(value) => *value,
        other => panic!("{other:?}"),
    }
}

fn run(
    memory: &mut dyn Memory,
    _: LaunchShape,
    args: &[KernelArg],
) -> std::result::Result<(), MemoryFault> {
    let (items, shape) = (u64_of(&args[0]) as usize, Shape::unpacked(u64_of(&args[1])));
    let mut inputs = Vec::new();
    for (arg, width) in args[2..6].iter().zip(shape.inputs) {
        let mut input = vec![0; items * width];
        if width > 0 {
            memory.read(ptr_of(arg), &mut input)?;
        }
        inputs.push(input);
    }
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    memory.write(ptr_of(&args[6]), &shape.serial(&inputs))
}

/// The kernel, for a simulated device.
pub fn kernel() -> Kernel {
    use ParamKind::{Ptr, U64};
    Kernel {
        name: "test_mix",
        params: &[U64, U64, Ptr, Ptr, Ptr, Ptr, Ptr],
        run,
        bytes_touched: |_| 0,
        fixed_ns: |args| Shape::unpacked(u64_of(&args[1])).cost_us * 1000,
        tail_ns: |_| 0,
    }
}

/// Launch it on one input.
pub fn launch_one<T: Pod, O: Pod>(
    module: &Module,
    stream: &Stream,
    shape: Shape,
    input: DeviceSlice<'_, T>,
    output: DeviceSliceMut<'_, O>,
) -> Result<()> {
    launch(module, stream, shape, (input, input, input, input), output)
}

/// Launch it on up to four inputs; where there are fewer, one stands in for those of no width.
pub fn launch<'s, A: Pod, B: Pod, C: Pod, D: Pod, O: Pod>(
    module: &Module,
    stream: &Stream,
    shape: Shape,
    (a, b, c, d): (
        DeviceSlice<'s, A>,
        DeviceSlice<'s, B>,
        DeviceSlice<'s, C>,
        DeviceSlice<'s, D>,
    ),
    output: DeviceSliceMut<'s, O>,
) -> Result<()> {
    type Parameters<A, B, C, D, O> = (u64, u64, In<A>, In<B>, In<C>, In<D>, Out<O>);
    let items = a.len() * size_of::<A>() / shape.inputs[0];
    assert_eq!(
        output.len() * size_of::<O>(),
        items * shape.output,
        "as many results as items"
    );
    let kernel = module.kernel::<Parameters<A, B, C, D, O>>("test_mix")?;
    let values = (items as u64, shape.packed(), a, b, c, d, output);
    // SAFETY: these are its parameters, and it touches that many items only.
    unsafe { stream.launch(&kernel, LaunchShape::for_items(items), values) }
}
