//! Throughput of the loader with images in memory, compared with the link's limit.
//!
//! `cargo bench -p pinlane --bench loader [-- SECTION…]`, on a machine with a GPU. Sections: rates,
//! idle.

mod gpu_idle_time;
mod images;
mod rates;

use pinlane::Device;

type Section = (&'static str, fn(&Device) -> anyhow::Result<()>);

const SECTIONS: [Section; 2] = [("rates", rates::run), ("idle", gpu_idle_time::run)];

fn main() -> anyhow::Result<()> {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let platform = match pinlane::cuda::Cuda::load() {
        Ok(cuda) => cuda,
        Err(error) => {
            println!("nothing to measure: {error}");
            return Ok(());
        }
    };
    let device = Device::open(&platform, 0)?;
    for (name, run) in SECTIONS {
        if wanted.is_empty() || wanted.iter().any(|section| section == name) {
            println!("\n== {name} ({})", device.info().name);
            run(&device)?;
        }
    }
    Ok(())
}
