//! Launches of kernels whose parameters are known only at run time.

use pinlane::kernel::{AnyParams, AnyValues};
use pinlane::{Device, LaunchShape};
use pinlane_kernels::PTX;

const LEN: usize = 1000;

fn shape() -> LaunchShape {
    LaunchShape::for_items(LEN)
}

#[test]
fn a_list_of_values_launches_a_kernel_behind_earlier_uses_of_its_memory() {
    let sim = pinlane_testing::sim();
    let device = Device::open(&sim, 0).unwrap();
    let saxpy = device.load_ptx(PTX).unwrap();
    let saxpy = saxpy.kernel::<AnyParams>("pinlane_saxpy_f32").unwrap();
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    let mut x = device.alloc::<f32>(LEN).unwrap();
    let mut y = device.alloc::<f32>(LEN).unwrap();
    first.copy_to_device(&[1.0; LEN], &mut x).unwrap();
    let mut ones = device.pinned::<f32>(LEN).unwrap();
    ones.fill(1.0);
    // Still in flight when the kernel is launched, on another stream.
    let upload = first.upload(ones, &mut y).unwrap();
    // SAFETY: these are the kernel's parameters, and it stays within the elements.
    unsafe {
        let values: AnyValues<'_> = vec![
            Box::new(LEN as u64),
            Box::new(3.0_f32),
            Box::new(x.whole()),
            Box::new(y.whole_mut()),
        ];
        second.launch(&saxpy, shape(), values).unwrap();
    }
    assert_eq!(first.copy_to_vec(&y).unwrap(), [4.0; LEN]);
    upload.wait().unwrap();
    assert_eq!(pinlane_testing::misuse(&sim), Vec::<String>::new());
}

#[test]
fn one_buffer_may_be_passed_twice() {
    let device = Device::sim("pcie3-x16").unwrap();
    let module = device.load_ptx(PTX).unwrap();
    let saxpy = module.kernel::<AnyParams>("pinlane_saxpy_f32").unwrap();
    let stream = device.stream().unwrap();
    let mut y = device.alloc::<f32>(LEN).unwrap();
    stream.copy_to_device(&[1.0; LEN], &mut y).unwrap();
    // SAFETY: as above; the kernel reads an element before it writes it.
    unsafe {
        let values: AnyValues<'_> = vec![
            Box::new(LEN as u64),
            Box::new(3.0_f32),
            Box::new(y.shared_range_mut(0..LEN)),
            Box::new(y.shared_range_mut(0..LEN)),
        ];
        stream.launch(&saxpy, shape(), values).unwrap();
    }
    assert_eq!(stream.copy_to_vec(&y).unwrap(), [4.0; LEN]);
}

#[test]
fn a_list_that_does_not_fit_is_refused_by_the_simulator() {
    let device = Device::sim("pcie3-x16").unwrap();
    let module = device.load_ptx(PTX).unwrap();
    assert!(module.ptx().is_none());
    let saxpy = module.kernel::<AnyParams>("pinlane_saxpy_f32").unwrap();
    let stream = device.stream().unwrap();
    // SAFETY: the simulator checks the list before it runs the kernel.
    let refused = unsafe { stream.launch(&saxpy, shape(), vec![Box::new(1_u64)]) };
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("1 arguments for 4 parameters"),
        "{refused}"
    );
}
