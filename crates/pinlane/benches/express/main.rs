//! The express lane, fast pinning and the pool, side by side with the plain driver in one run.
//!
//! `cargo bench -p pinlane --bench express [-- SECTION…]`, on a machine with a GPU. Sections: copies,
//! patterns, fresh, many, both, pinning, convert, integrity, threads, capture; tune and limit only where named.
//! Every figure is a median, GB/s are 1e9 bytes a second, and what is compared is measured in turns.

mod capture;
mod convert;
mod copies;
mod integrity;
mod many;
mod memory_limit;
mod memory_reuse_patterns;
mod pinning;
mod small;
mod support;
mod threads;
mod tune;

use support::Bench;

type Section = (&'static str, fn(&Bench) -> pinlane::Result<()>);

const SECTIONS: [Section; 13] = [
    ("copies", copies::sizes),
    ("patterns", memory_reuse_patterns::run),
    ("fresh", copies::fresh),
    ("both", copies::both_ways),
    ("many", many::run),
    ("pinning", pinning::run),
    ("convert", convert::run),
    ("integrity", integrity::run),
    ("threads", threads::run),
    ("capture", capture::run),
    ("small", small::run),
    ("tune", tune::run),
    ("limit", memory_limit::run),
];

fn main() -> pinlane::Result<()> {
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
    for (name, run) in SECTIONS {
        let chosen = words.iter().any(|word| word == name);
        if chosen || words.is_empty() && !["small", "tune", "limit"].contains(&name) {
            let bench = Bench::new(&platform)?;
            println!("\n== {name} ({})", bench.device.info().name);
            run(&bench)?;
        }
    }
    Ok(())
}
