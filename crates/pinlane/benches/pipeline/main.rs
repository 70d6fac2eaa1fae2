//! Pipelines against the link's limit, and the model against what was measured, in one run.
//!
//! `cargo bench -p pinlane --bench pipeline [-- SECTION…]`, on a machine with a GPU. Sections: rates,
//! predict, sweep, slots. Every figure is a median of wall-clock times, from the call to its return.

mod plan_against_best;
mod predict;
mod rates;
mod slots;
mod support;

use support::Bench;

type Section = (&'static str, fn(&mut Bench) -> anyhow::Result<()>);

const SECTIONS: [Section; 4] = [
    ("rates", rates::run),
    ("predict", predict::run),
    ("sweep", plan_against_best::run),
    ("slots", slots::run),
];

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let platform = match pinlane::cuda::Cuda::load() {
        Ok(cuda) => cuda,
        Err(error) => {
            println!("nothing to measure: {error}");
            return Ok(());
        }
    };
    let mut bench = Bench::new(&platform)?;
    for (name, run) in SECTIONS {
        if words.is_empty() || words.iter().any(|word| word == name) {
            println!("\n== {name} ({})", bench.device.info().name);
            run(&mut bench)?;
        }
    }
    Ok(())
}
