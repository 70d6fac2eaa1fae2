//! Weights from files to a GPU.
//!
//! `cargo bench -p pinlane --bench load -- SECTION PATH…`, on a machine with a GPU. Sections: `once`
//! (the first load of this process, five later ones while the tensors of all earlier ones are kept, five
//! that begin when those of the one before have just been freed, and five where the device keeps the memory
//! of those), `sweep` (threads and pieces), `io` (one load
//! with each way of reading; what is in the page cache is up to the caller), `convert` (to bf16).
//! Every time is from opening the files to all tensors on the device.

use std::time::Instant;

use pinlane::Device;
use pinlane::load::{Dtype, Io, LoadConfig, Tensors, Weights};

const MIB: usize = 1 << 20;

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|word| !word.starts_with("--"))
        .collect();
    let [section, paths @ ..] = &words[..] else {
        println!("nothing to measure: name a section and files");
        return Ok(());
    };
    let platform = match pinlane_cuda::Cuda::load() {
        Ok(cuda) => cuda,
        Err(error) => {
            println!("nothing to measure: {error}");
            return Ok(());
        }
    };
    let bench = Bench {
        device: Device::open(&platform, 0)?,
        paths,
    };
    // The first call of a context is part of nobody's load.
    bench.device.synchronize()?;
    match *section {
        "once" => bench.once(),
        "sweep" => bench.sweep(),
        "io" => bench.each_io(),
        "convert" => bench.convert(),
        _ => anyhow::bail!("{section}: no such section"),
    }
}

struct Bench<'a> {
    device: Device,
    paths: &'a [&'a str],
}

impl Bench<'_> {
    /// One load: its tensors, GB/s, and a line about it.
    fn load(&self, config: &LoadConfig) -> anyhow::Result<(Tensors, f64, String)> {
        let began = Instant::now();
        let weights = Weights::open_all(self.paths)?;
        let opened = began.elapsed();
        let tensors = weights.load(&self.device, config)?;
        let took = began.elapsed();
        let stats = *tensors.stats();
        let gb_per_s = stats.bytes() as f64 / took.as_nanos() as f64;
        let share = |time: std::time::Duration| {
            100.0 * time.as_secs_f64() / stats.elapsed.as_secs_f64() / stats.threads as f64
        };
        let line = format!(
            "{gb_per_s:5.1} GB/s: {} tensors, {:.2} GB in {:.1} ms (headers {:.1}, room {:.1}); {} threads: reading {:.0}% (blocked {:.0}%), waiting {:.0}%, converting {:.0}%; {:.2} GB direct; limit: {}; {} MiB pinned",
            tensors.len(),
            stats.bytes() as f64 / 1e9,
            took.as_secs_f64() * 1e3,
            opened.as_secs_f64() * 1e3,
            (took - opened).saturating_sub(stats.elapsed).as_secs_f64() * 1e3,
            stats.threads,
            share(stats.reading),
            share(stats.blocked),
            share(stats.waiting),
            share(stats.converting),
            stats.direct_bytes as f64 / 1e9,
            stats.limit(),
            self.device.stats().pinned_bytes / MIB as u64,
        );
        Ok((tensors, gb_per_s, line))
    }

    /// Several loads. Where neither tensors nor their memory are kept, memory of the load before has just been
    /// freed when the next one begins, which slows it.
    fn several(
        &self,
        name: &str,
        config: &LoadConfig,
        count: usize,
        keep: bool,
    ) -> anyhow::Result<()> {
        let mut kept = Vec::new();
        let mut rates = Vec::new();
        let mut last = String::new();
        for _ in 0..count {
            let (tensors, rate, line) = self.load(config)?;
            rates.push(rate);
            last = line;
            kept.extend(keep.then_some(tensors));
        }
        let each: Vec<_> = rates.iter().map(|rate| format!("{rate:.1}")).collect();
        rates.sort_by(f64::total_cmp);
        println!(
            "{name}: median {:5.1} GB/s of {}; the last: {last}",
            rates[count / 2],
            each.join(" ")
        );
        Ok(())
    }

    fn once(&self) -> anyhow::Result<()> {
        let config = LoadConfig::default();
        let (tensors, _, line) = self.load(&config)?;
        println!("first: {line}");
        self.several("later, tensors kept", &config, 5, true)?;
        drop(tensors);
        self.several("later, tensors freed", &config, 5, false)?;
        self.device.keep_device_memory(u64::MAX);
        // The first one has to allocate, right after memory of the series before was freed.
        self.load(&config)?;
        self.several("later, tensors freed, memory kept", &config, 5, false)
    }

    fn sweep(&self) -> anyhow::Result<()> {
        let mut config = LoadConfig::default();
        self.load(&config)?;
        for threads in [8, 10, 12, 14, 16] {
            for piece in [4, 8, 16, 32] {
                config.threads = Some(threads);
                config.piece_bytes = Some(piece * MIB);
                self.device.trim();
                self.several(
                    &format!("{threads} threads, {piece} MiB"),
                    &config,
                    3,
                    false,
                )?;
            }
        }
        Ok(())
    }

    fn each_io(&self) -> anyhow::Result<()> {
        let name = std::env::var("IO").unwrap_or_default();
        let mut config = LoadConfig::default();
        config.io = match name.as_str() {
            "buffered" => Io::Buffered,
            "direct" => Io::Direct,
            _ => Io::Auto,
        };
        println!("{:?}: {}", config.io, self.load(&config)?.2);
        Ok(())
    }

    fn convert(&self) -> anyhow::Result<()> {
        let mut config = LoadConfig::default();
        for dtype in [Dtype::Bf16, Dtype::F16, Dtype::F32] {
            config.convert = Some(dtype);
            self.several(dtype.name(), &config, 3, false)?;
        }
        Ok(())
    }
}
