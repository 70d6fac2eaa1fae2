//! A kernel of one's own: PTX for a GPU, and a few lines of Rust that do the same on a simulated one.

use std::error::Error;

use pinlane::driver::{KernelArg, ParamKind};
use pinlane::kernel::Out;
use pinlane::sim::{Kernel, Sim};
use pinlane::{Device, LaunchShape};

/// What the simulated GPU runs for `square_and_scale` of square.cu, and what it costs.
const SQUARE_AND_SCALE: Kernel = Kernel {
    name: "square_and_scale",
    params: &[ParamKind::U64, ParamKind::F32, ParamKind::Ptr],
    run: |memory, _shape, args| {
        let [
            KernelArg::U64(n),
            KernelArg::F32(scale),
            KernelArg::Ptr(data),
        ] = *args
        else {
            unreachable!("the arguments match `params`");
        };
        let mut values = vec![0f32; n as usize];
        memory.read(data, bytemuck::cast_slice_mut(&mut values))?;
        for value in &mut values {
            *value = *value * *value * scale;
        }
        memory.write(data, bytemuck::cast_slice(&values))
    },
    bytes_touched: |args| match args[0] {
        KernelArg::U64(n) => 2 * 4 * n, // each element is read and written
        _ => 0,
    },
    fixed_ns: |_| 0,
    tail_ns: |_| 0,
};

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).unwrap_or("sim:h200".into());
    let device = match name.strip_prefix("sim:") {
        Some(profile) => {
            let sim = Sim::builder().profile_named(profile)?;
            Device::open(&sim.kernel(SQUARE_AND_SCALE).build(), 0)?
        }
        None => Device::named(&name)?,
    };
    println!("{}", device.info().name);
    let stream = device.stream()?;
    let module = device.load_ptx(include_str!("square.ptx"))?;
    let square = module.kernel::<(u64, f32, Out<f32>)>("square_and_scale")?;

    let items = 1 << 20;
    let mut data = device.alloc::<f32>(items)?;
    stream.copy_to_device(&vec![3.0; items], &mut data)?;

    let (start, end) = (device.event_with_timing()?, device.event_with_timing()?);
    stream.record(&start)?;
    // SAFETY: these are the kernel's parameters, and it stays within `items` elements.
    unsafe {
        let values = (items as u64, 0.5, data.whole_mut());
        stream.launch(&square, LaunchShape::for_items(items), values)?;
    }
    stream.record(&end)?;

    let result = stream.copy_to_vec(&data)?;
    assert_eq!(result, vec![4.5; items]);
    println!(
        "3 * 3 * 0.5 = {}, in {} ns on the device",
        result[0],
        start.elapsed_ns(&end)?
    );
    Ok(())
}
