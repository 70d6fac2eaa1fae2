//! Loads weights from files to a GPU.
//!
//! `cargo bench -p pinlane --bench load -- SECTION PATH…`, on a machine with a GPU. Sections:
//!
//! - `once`: the first load of the process; five more that keep all tensors; five that free the tensors
//!   before the next load; and five of those with `Device::keep_device_memory`.
//! - `sweep`: threads and piece sizes.
//! - `io`: one load with the read mode in `$IO`. The caller controls the page cache.
//! - `convert`: to bf16, f16 and f32.
//! - `into`: into memory given per tensor, without and with a window, beside memory of the load's own.
//! - `small`: 20,000 small tensors into own and given memory on a simulated device that takes no time, for what the
//!   library itself costs. Needs no GPU and no files.
//!
//! Times are from opening the files to all tensors on the device.

use std::time::Instant;

use pinlane::load::{DeviceTarget, Dtype, Io, LoadConfig, Tensors, Weights};
use pinlane::{Device, DevicePtr};

const MIB: usize = 1 << 20;

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args
        .iter()
        .map(String::as_str)
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    let [section, paths @ ..] = &args[..] else {
        println!("nothing to measure: name a section and files");
        return Ok(());
    };
    if *section == "small" {
        return small();
    }
    let platform = match pinlane::cuda::Cuda::load() {
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
    // Creating the context is not part of any load.
    bench.device.synchronize()?;
    match *section {
        "once" => bench.once(),
        "sweep" => bench.sweep(),
        "io" => bench.each_io(),
        "convert" => bench.convert(),
        "into" => bench.given_memory(),
        _ => anyhow::bail!("unknown section {section}"),
    }
}

struct Bench<'a> {
    device: Device,
    paths: &'a [&'a str],
}

impl Bench<'_> {
    /// One load: tensors, GB/s, and a summary.
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

    /// Several loads. Unless tensors or their memory are kept, each load starts right after the memory of the
    /// previous one was freed, which slows it down.
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
        // The first load allocates, right after the memory of the last series was freed.
        self.load(&config)?;
        self.several("later, tensors freed, memory kept", &config, 5, false)
    }

    fn sweep(&self) -> anyhow::Result<()> {
        self.load(&LoadConfig::default())?;
        for threads in [8, 10, 12, 14, 16] {
            for piece in [4, 8, 16, 32] {
                let config = LoadConfig::default()
                    .threads(threads)
                    .piece_bytes(piece * MIB);
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
        let io = match name.as_str() {
            "buffered" => Io::Buffered,
            "direct" => Io::Direct,
            _ => Io::Auto,
        };
        println!("{io:?}: {}", self.load(&LoadConfig::default().io(io))?.2);
        Ok(())
    }

    fn convert(&self) -> anyhow::Result<()> {
        for dtype in [Dtype::Bf16, Dtype::F16, Dtype::F32] {
            self.several(
                dtype.name(),
                &LoadConfig::default().convert(dtype),
                3,
                false,
            )?;
        }
        Ok(())
    }

    fn given_memory(&self) -> anyhow::Result<()> {
        let stream = self.device.stream()?;
        self.device.keep_device_memory(u64::MAX);
        for window_bytes in [None, Some(2 << 30)] {
            let mut config = LoadConfig::default();
            config.device_bytes = window_bytes;
            for _ in 0..3 {
                let began = Instant::now();
                let weights = Weights::open_all(self.paths)?;
                let mut tensors = weights.start_into(&stream, &config, |tensor| {
                    let buffer = stream.alloc::<u8>(tensor.len_bytes())?;
                    Ok(DeviceTarget::buffer(buffer))
                })?;
                for tensor in tensors.by_ref() {
                    tensor?;
                }
                let gb_per_s = tensors.stats().bytes() as f64 / began.elapsed().as_nanos() as f64;
                println!("given memory, window {window_bytes:?}: {gb_per_s:5.1} GB/s");
            }
        }
        self.several("own memory", &LoadConfig::default(), 3, false)
    }
}

/// What the library costs per tensor, apart from device and disk.
fn small() -> anyhow::Result<()> {
    const TENSORS: usize = 20_000;
    const BYTES: usize = 1000;
    let entry = |number: usize| {
        let (start, end) = (number * BYTES, (number + 1) * BYTES);
        format!(
            "\"layers.{number}\":{{\"dtype\":\"U8\",\"shape\":[{BYTES}],\"data_offsets\":[{start},{end}]}}"
        )
    };
    let header = format!(
        "{{{}}}",
        (0..TENSORS).map(entry).collect::<Vec<_>>().join(",")
    );
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.resize(file.len() + TENSORS * BYTES, 7);
    let path =
        std::env::temp_dir().join(format!("pinlane-bench-{}.safetensors", std::process::id()));
    std::fs::write(&path, file)?;
    let device = Device::sim("null")?;
    let stream = device.stream()?;
    let weights = Weights::open(&path)?;
    // Stands for another library's allocator, which costs nothing here.
    let memory = device.alloc::<u8>(TENSORS * 1024)?;
    let DevicePtr(start) = memory.device_ptr();
    for round in 0..6 {
        let began = Instant::now();
        let own = weights.load(&device, &LoadConfig::default())?.len();
        let own_took = began.elapsed();
        let mut given_took = [None, Some(4 << 20)]
            .map(|window_bytes| {
                let mut config = LoadConfig::default();
                config.device_bytes = window_bytes;
                let began = Instant::now();
                let tensors = weights.start_into(&stream, &config, |tensor| {
                    let ptr = DevicePtr(start + 1024 * tensor.number() as u64);
                    // SAFETY: each tensor has its own part of `memory`, which nothing else uses.
                    Ok(unsafe { DeviceTarget::from_raw(&stream, ptr, tensor.len_bytes(), ()) })
                })?;
                let started = began.elapsed();
                let loaded = tensors.collect::<Result<Vec<_>, _>>()?.len();
                assert_eq!(loaded, own);
                anyhow::Ok((started, began.elapsed()))
            })
            .into_iter();
        let (all, window) = (given_took.next(), given_took.next());
        let (all, window) = (all.expect("two")?, window.expect("two")?);
        println!(
            "{round}: own memory {own_took:.2?}; given {:.2?} (asked for all after {:.2?}); with a window {:.2?}",
            all.1, all.0, window.1
        );
    }
    std::fs::remove_file(&path)?;
    Ok(())
}
