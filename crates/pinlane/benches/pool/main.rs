//! Pinned memory that is reused: blocks of a pool, and buffers of the device beside the driver's own allocation.
//!
//! `cargo bench -p pinlane --bench pool [-- SECTION…]`. Sections: blocks, pinned. `pinned` measures the first
//! GPU, and the simulated one where there is none. Every figure is a median, and what is compared is measured
//! in turns.

mod blocks;
mod pinned;

type Section = (&'static str, fn() -> pinlane::Result<()>);

const SECTIONS: [Section; 2] = [("blocks", blocks::run), ("pinned", pinned::run)];

fn main() -> pinlane::Result<()> {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    for (name, run) in SECTIONS {
        if words.is_empty() || words.iter().any(|word| word == name) {
            println!("\n== {name}");
            run()?;
        }
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
