//! Converting on the way, against copying first and converting on the GPU.

use half::bf16;
use pinlane::kernel::{In, Out};
use pinlane::{F32ToBf16, F32ToF16, LaunchShape, Result, U8ToF32};

use crate::support::{Bench, GIB, in_turns, rate, times_faster};

pub fn run(bench: &Bench) -> Result<()> {
    let items = GIB / 4;
    let source: Vec<f32> = (0..items).map(|item| (item as f32).sin()).collect();
    let mut wide = bench.device.alloc::<f32>(items)?;
    let mut narrow = bench.device.alloc::<bf16>(items)?;
    let mut on_the_way = bench.device.alloc::<bf16>(items)?;
    let module = bench.device.load_ptx(pinlane_kernels::PTX)?;
    let cast = module.kernel::<(u64, In<f32>, Out<bf16>)>("pinlane_f32_to_bf16")?;
    let stream = &bench.stream;
    let [first, converted] = in_turns(
        9,
        [
            &mut || {
                stream
                    .copy_to_device(&source, &mut wide)
                    .expect("an upload");
                let values = (items as u64, wide.whole(), narrow.whole_mut());
                // SAFETY: the kernel's parameters; it stays inside of so many items.
                unsafe { stream.launch(&cast, LaunchShape::for_items(items / 4), values) }
                    .expect("a launch");
                stream.synchronize().expect("a wait");
            },
            &mut || {
                stream
                    .upload_as(F32ToBf16, &source, &mut on_the_way)
                    .expect("an upload");
                stream.synchronize().expect("a wait");
            },
        ],
    );
    assert!(
        stream.copy_to_vec(&narrow)? == stream.copy_to_vec(&on_the_way)?,
        "the two ways differ"
    );
    println!(
        "1 GiB of f32 to bf16: upload then cast {:.2} ms, on the way {:.2} ms ({:.1} GB/s of f32), {:.2}x",
        first.as_secs_f64() * 1e3,
        converted.as_secs_f64() * 1e3,
        rate(GIB, converted),
        times_faster(first, converted)
    );
    let mut halves = bench.device.alloc::<half::f16>(items)?;
    let bytes = vec![200u8; items];
    let scaled = U8ToF32 {
        scale: 1.0 / 255.0,
        offset: -0.5,
    };
    let [f16, u8] = in_turns(
        5,
        [
            &mut || {
                stream
                    .upload_as(F32ToF16, &source, &mut halves)
                    .expect("an upload");
                stream.synchronize().expect("a wait");
            },
            &mut || {
                stream
                    .upload_as(scaled, &bytes, &mut wide)
                    .expect("an upload");
                stream.synchronize().expect("a wait");
            },
        ],
    );
    println!(
        "1 GiB of f32 to f16: {:.1} GB/s of f32; 256 MiB of u8 to f32: {:.1} GB/s of u8",
        rate(GIB, f16),
        rate(items, u8)
    );
    Ok(())
}
