//! Kernel launches. Arguments are untyped, and read by the parameter types of the CPU twin.

use pinlane_driver::{DevicePtr, KernelArg, LaunchShape, ParamKind};

use crate::c_pointers::{In, Opaque, read_untyped};
use crate::error::{INVALID_VALUE, NOT_SUPPORTED, Outcome, ensure};
use crate::export_macros::exports_by_default_stream;
use crate::machine::machine;
use crate::report;
use crate::stream::StreamRef;

/// Keys of the `extra` list.
const EXTRA_END: usize = 0;
const EXTRA_BUFFER: usize = 1;
const EXTRA_BUFFER_BYTES: usize = 2;

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Config {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    stream: usize,
    _attributes: usize,
    _attribute_count: u32,
}

/// The arguments of a launch, in one of two forms.
struct Arguments {
    pointers: In<Opaque>,
    extra: In<Opaque>,
}

impl Arguments {
    /// Reads the arguments by kind.
    fn read(&self, kinds: &[ParamKind]) -> Outcome<Vec<KernelArg>> {
        match (self.pointers.is_null(), self.extra.is_null()) {
            (_, true) => self.through_pointers(kinds),
            (true, false) => self.out_of_buffer(kinds),
            (false, false) => Err(INVALID_VALUE),
        }
    }

    /// The common form: a pointer to each argument.
    fn through_pointers(&self, kinds: &[ParamKind]) -> Outcome<Vec<KernelArg>> {
        let read = |(index, kind)| argument(kind, self.pointers.read_at(index)?);
        kinds.iter().copied().enumerate().map(read).collect()
    }

    /// The packed form: a buffer, each argument at the next multiple of its size.
    fn out_of_buffer(&self, kinds: &[ParamKind]) -> Outcome<Vec<KernelArg>> {
        let (buffer, buffer_bytes) = self.buffer()?;
        let mut offset = 0usize;
        let mut arguments = Vec::with_capacity(kinds.len());
        for kind in kinds.iter().copied() {
            offset = offset.next_multiple_of(bytes_of(kind));
            ensure(offset + bytes_of(kind) <= buffer_bytes, INVALID_VALUE)?;
            arguments.push(argument(kind, buffer.offset(offset))?);
            offset += bytes_of(kind);
        }
        Ok(arguments)
    }

    /// Buffer and length of the packed form, from the `extra` list.
    fn buffer(&self) -> Outcome<(Opaque, usize)> {
        let (mut buffer, mut bytes) = (None, None);
        for index in (0..).step_by(2) {
            let key = self.extra.read_at(index)?.number();
            if key == EXTRA_END {
                break;
            }
            let value = self.extra.read_at(index + 1)?;
            match key {
                EXTRA_BUFFER => buffer = Some(value),
                EXTRA_BUFFER_BYTES => bytes = Some(read_untyped::<usize>(value)?),
                _ => return Err(INVALID_VALUE),
            }
        }
        buffer.zip(bytes).ok_or(INVALID_VALUE)
    }
}

fn bytes_of(kind: ParamKind) -> usize {
    match kind {
        ParamKind::U32 | ParamKind::I32 | ParamKind::F32 => 4,
        ParamKind::Ptr | ParamKind::U64 | ParamKind::I64 | ParamKind::F64 => 8,
    }
}

/// Reads an argument.
fn argument(kind: ParamKind, from: Opaque) -> Outcome<KernelArg> {
    Ok(match kind {
        ParamKind::Ptr => KernelArg::Ptr(DevicePtr(read_untyped(from)?)),
        ParamKind::U32 => KernelArg::U32(read_untyped(from)?),
        ParamKind::I32 => KernelArg::I32(read_untyped(from)?),
        ParamKind::U64 => KernelArg::U64(read_untyped(from)?),
        ParamKind::I64 => KernelArg::I64(read_untyped(from)?),
        ParamKind::F32 => KernelArg::F32(read_untyped(from)?),
        ParamKind::F64 => KernelArg::F64(read_untyped(from)?),
    })
}

fn launch(
    function: usize,
    shape: LaunchShape,
    stream: &StreamRef,
    arguments: &Arguments,
) -> Outcome<()> {
    let function = machine()?.functions.find(function)?;
    let threads: u64 = shape.block.into_iter().map(u64::from).product();
    let is_valid = !shape.grid.contains(&0) && (1..=1024).contains(&threads);
    ensure(is_valid, INVALID_VALUE)?;
    let kernel = pinlane_kernels::find(&function.name);
    let (Some(twin), Some(kernel)) = (function.twin, kernel) else {
        report::note_unsupported(&format!("launch of {}", function.name));
        return Err(NOT_SUPPORTED);
    };
    let arguments = arguments.read(kernel.params)?;
    // SAFETY: the arguments have the kernel's parameter types. The simulator checks addresses when
    // the kernel runs.
    unsafe {
        let driver = stream.driver();
        Ok(driver.launch(twin, shape, &arguments, stream.handle)?)
    }
}

exports_by_default_stream! {
    /// Launches a kernel.
    fn cuLaunchKernel, cuLaunchKernel_ptsz(
        function: usize, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        shared_bytes: u32, stream: usize, pointers: In<Opaque>, extra: In<Opaque>,
    ) [stream = stream] {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let shape = LaunchShape { grid, block, shared_bytes };
        launch(function, shape, &stream, &Arguments { pointers, extra })
    }

    /// Launches a kernel with a configuration. CPU twins ignore its attributes.
    fn cuLaunchKernelEx, cuLaunchKernelEx_ptsz(
        config: In<Config>, function: usize, pointers: In<Opaque>, extra: In<Opaque>,
    ) [stream = config.read()?.stream] {
        let Config { grid, block, shared_bytes, .. } = config.read()?;
        let shape = LaunchShape { grid, block, shared_bytes };
        launch(function, shape, &stream, &Arguments { pointers, extra })
    }
}
