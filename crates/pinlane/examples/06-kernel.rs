//! Load PTX, launch a kernel with typed parameters, and time it with events.

use pinlane::kernel::{In, Out};
use pinlane::{Device, LaunchShape, Result};
use pinlane_model::Profile;
use pinlane_sim::Sim;

fn main() -> Result<()> {
    let sim = Sim::new(Profile::builtin("pcie4-x16").expect("built in"));
    let device = Device::open(&sim, 0)?;
    println!("SIMULATED: {}", device.info().name);
    let stream = device.stream()?;
    let module = device.load_ptx(pinlane_kernels::PTX)?;
    let saxpy = module.kernel::<(u64, f32, In<f32>, Out<f32>)>("pinlane_saxpy_f32")?;

    let items = 1 << 20;
    let (mut x, mut y) = (device.alloc::<f32>(items)?, device.alloc::<f32>(items)?);
    stream.copy_to_device(&vec![1.0; items], &mut x)?;
    stream.copy_to_device(&vec![2.0; items], &mut y)?;

    let (start, end) = (device.event_with_timing()?, device.event_with_timing()?);
    stream.record(&start)?;
    // SAFETY: these are the kernel's parameters, and it stays inside of `items` elements.
    unsafe {
        let values = (items as u64, 3.0, x.whole(), y.whole_mut());
        stream.launch(&saxpy, LaunchShape::for_items(items), values)?;
    }
    stream.record(&end)?;
    end.synchronize()?;

    let mut result = vec![0.0; items];
    stream.copy_to_host(&y, &mut result)?;
    println!(
        "3 * 1 + 2 = {}, in {} ns of virtual time",
        result[0],
        start.elapsed_ns(&end)?
    );
    Ok(())
}
