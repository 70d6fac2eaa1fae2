//! Images from memory through the loader, against the link's limit.
//!
//! `cargo bench -p pinlane --bench loader [-- SECTION…]`, on a machine with a GPU. Sections: rates,
//! idle.

mod idle;
mod images;
mod rates;

use pinlane::Device;

type Section = (&'static str, fn(&Device) -> anyhow::Result<()>);

const SECTIONS: [Section; 2] = [("rates", rates::run), ("idle", idle::run)];

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let platform = match pinlane_cuda::Cuda::load() {
        Ok(cuda) => cuda,
        Err(error) => {
            println!("nothing to measure: {error}");
            return Ok(());
        }
    };
    let device = Device::open(&platform, 0)?;
    for (name, run) in SECTIONS {
        if words.is_empty() || words.iter().any(|word| word == name) {
            println!("\n== {name} ({})", device.info().name);
            run(&device)?;
        }
    }
    Ok(())
}
