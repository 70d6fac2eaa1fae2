//! Loads the same tensors once or several times.

use std::task::Poll;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use pinlane::Device;
use pinlane::load::{
    LoadConfig, LoadError, LoadLimit, LoadStats, Plan, PlanOptions, RankSharing, Tensor,
    TensorInfo, Weights,
};
use pinlane_model::{Direction, HostKind, Profile};
use pinlane_report::{
    Load, LoadConversion, LoadCopies, LoadHost, LoadJob, LoadLimitedBy, LoadLocalRank, LoadMemory,
    LoadRun, LoadShard, LoadSharing, LoadTimes, short_size,
};
use pinlane_sim::{Sim, SpanKind};

use super::{Args, explain, file_count, is_out_of_memory, out_of_memory};
use crate::clock::duration_ns;
use crate::device::{self, Backend};
use crate::input_error::When;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::system;

/// How often to check for an interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

pub(super) struct Runs<'a> {
    args: &'a Args,
    device: &'a Device,
    /// A simulated machine and its profile.
    sim: Option<(&'a Sim, &'a Profile)>,
    interrupt: &'a Interrupt,
    config: LoadConfig,
    /// The tensors on the device, in the order of the files.
    pub(super) loaded: Option<(Weights, Vec<Tensor>)>,
}

impl<'a> Runs<'a> {
    pub(super) fn new(
        args: &'a Args,
        backend: &'a Backend,
        device: &'a Device,
        interrupt: &'a Interrupt,
    ) -> Self {
        // Copies are slow right after device memory is freed.
        device.keep_device_memory(u64::MAX);
        Self {
            args,
            device,
            sim: backend.sim.as_ref().zip(backend.profile.as_ref()),
            interrupt,
            config: args.config(device),
            loaded: None,
        }
    }

    /// Runs everything. `weights` were opened in the time `headers`. Stops early on an interrupt; the report
    /// is then incomplete.
    pub(super) fn run_all(&mut self, weights: Weights, headers: Duration) -> anyhow::Result<Load> {
        self.check_host_memory(&weights)?;
        let mut report = Load::new(device::origin(self.device.info()), self.job(&weights));
        let mut opened = Some((weights, headers));
        for number in 1..=self.args.repeat {
            // Frees the tensors of the previous run.
            self.loaded = None;
            let (weights, headers) = match opened.take() {
                Some(first) => first,
                None => self.reopen()?,
            };
            let Some((run, tensors)) = self.run_once(&weights, headers, number)? else {
                return Ok(report);
            };
            report.push(run);
            report.memory = Some(self.memory());
            report.conversion = self.conversion(&tensors);
            self.loaded = Some((weights, tensors));
        }
        report.complete = true;
        Ok(report)
    }

    fn reopen(&self) -> anyhow::Result<(Weights, Duration)> {
        let start = Instant::now();
        let opened = self.args.open();
        let weights = opened.map_err(|error| explain(error, self.args, When::Loading))?;
        Ok((weights, start.elapsed()))
    }

    /// Loads once. `None` if interrupted.
    fn run_once(
        &self,
        weights: &Weights,
        headers: Duration,
        number: u64,
    ) -> anyhow::Result<Option<(LoadRun, Vec<Tensor>)>> {
        let label = match self.args.repeat {
            1 => "loading".to_owned(),
            runs => format!("run {number} of {runs}"),
        };
        let progress = Progress::bytes(label, total_bytes(weights.tensors()));
        let position = self.sim.map_or(0, |(sim, _)| sim.timeline().len());
        let context = match number {
            1 => self.create_context()?,
            _ => Duration::ZERO,
        };
        let start = Instant::now();
        let loaded = self.load(weights, &progress);
        let elapsed = start.elapsed();
        drop(progress);
        let Some((mut tensors, stats)) = loaded? else {
            return Ok(None);
        };
        // In file order, not in order of completion.
        tensors.sort_by_key(|tensor| (tensor.info().file(), tensor.info().bytes().start));
        let is_simulated = self.device.info().simulated.is_some();
        let sim = self.sim;
        let simulated_copies = sim.map(|(sim, profile)| copies_since(position, sim, profile));
        let run = LoadRun {
            times: (!is_simulated).then(|| times(headers, context, elapsed, &stats)),
            simulated_copies,
            host: is_simulated.then(|| host(headers, &stats)),
            local_rank: local_rank(&stats),
        };
        Ok(Some((run, tensors)))
    }

    /// Creates the context, which the first call to a device does. Returns the time.
    fn create_context(&self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        self.device.synchronize()?;
        Ok(start.elapsed())
    }

    /// `None` if interrupted.
    fn load(
        &self,
        weights: &Weights,
        progress: &Progress,
    ) -> anyhow::Result<Option<(Vec<Tensor>, LoadStats)>> {
        let explain = |error| self.explain(error, weights);
        let mut config = self.config.clone();
        if !progress.is_hidden() {
            let progress = progress.clone();
            config = config.on_progress(move |loaded| progress.set(loaded.bytes));
        }
        let mut stream = weights.start(self.device, &config).map_err(explain)?;
        let mut tensors = Vec::with_capacity(weights.tensors().len());
        loop {
            if self.interrupt.is_raised() {
                return Ok(None);
            }
            match stream.next_within(POLL_INTERVAL) {
                Poll::Pending => {}
                Poll::Ready(Some(tensor)) => tensors.push(tensor.map_err(explain)?),
                Poll::Ready(None) => return Ok(Some((tensors, stream.stats()))),
            }
        }
    }

    fn explain(&self, error: LoadError, weights: &Weights) -> anyhow::Error {
        match is_out_of_memory(&error) {
            true => out_of_memory(error, self.device, device_bytes(self.args, weights)),
            false => explain(error, self.args, When::Loading),
        }
    }

    /// Checks that a simulated device, whose memory is host memory, can hold the tensors.
    fn check_host_memory(&self, weights: &Weights) -> anyhow::Result<()> {
        if self.device.info().simulated.is_none() {
            return Ok(());
        }
        let needed_bytes = device_bytes(self.args, weights)
            .context("too large for any device; select fewer tensors with --select")?;
        let free_bytes = system::available_bytes();
        if needed_bytes > system::usable_bytes(free_bytes) {
            bail!(
                "a simulated device uses host memory: {} needed, {} available; select fewer tensors with \
                 --select",
                short_size(needed_bytes),
                short_size(free_bytes)
            );
        }
        Ok(())
    }

    fn job(&self, weights: &Weights) -> LoadJob {
        LoadJob {
            files: file_count(weights),
            tensors: weights.tensors().len() as u64,
            bytes: total_bytes(weights.tensors()),
            shard: self.args.shard.map(|shard| LoadShard {
                rank: shard.rank() as u64,
                world: shard.world() as u64,
            }),
            repeat: self.args.repeat,
            verify: self.args.verify,
        }
    }

    fn memory(&self) -> LoadMemory {
        let stats = self.device.stats();
        let simulated = self.device.info().simulated.is_some();
        LoadMemory {
            pinned_bytes: (!simulated).then_some(stats.pinned_bytes),
            device_bytes: stats.device_bytes - stats.kept_bytes,
        }
    }

    fn conversion(&self, tensors: &[Tensor]) -> Option<LoadConversion> {
        let to = self.config.convert?;
        let count = |matches: &dyn Fn(&Tensor) -> bool| {
            tensors.iter().filter(|tensor| matches(tensor)).count() as u64
        };
        Some(LoadConversion {
            to: to.to_string(),
            converted: count(&|tensor| tensor.dtype() != tensor.info().dtype()),
            already: count(&|tensor| tensor.info().dtype() == to),
            left: count(&|tensor| tensor.dtype() != to),
        })
    }
}

fn total_bytes(tensors: &[TensorInfo]) -> u64 {
    tensors.iter().map(TensorInfo::len_bytes).sum()
}

fn device_bytes(args: &Args, weights: &Weights) -> Option<u64> {
    let plan = Plan::converting(weights.tensors(), args.dtype, PlanOptions::default()).ok()?;
    Some(plan.allocations().iter().sum())
}

fn local_rank(stats: &LoadStats) -> Option<LoadLocalRank> {
    let sharing = match stats.sharing {
        RankSharing::Alone => return None,
        RankSharing::PageCache => LoadSharing::PageCache,
        RankSharing::OwnRows => LoadSharing::OwnRows,
        RankSharing::Direct => LoadSharing::Direct,
        _ => LoadSharing::NoRoom,
    };
    Some(LoadLocalRank {
        rank: stats.local_rank.rank() as u64,
        world: stats.local_rank.world() as u64,
        sharing,
    })
}

/// The real times of a load to a simulated device.
fn host(headers: Duration, stats: &LoadStats) -> LoadHost {
    LoadHost {
        headers_ns: duration_ns(headers),
        threads: stats.threads as u64,
        reading_ns: duration_ns(stats.reading),
        converting_ns: duration_ns(stats.converting),
        page_cache_bytes: stats.buffered_bytes,
        direct_bytes: stats.direct_bytes,
    }
}

fn times(headers: Duration, context: Duration, load: Duration, stats: &LoadStats) -> LoadTimes {
    let total_ns = duration_ns(headers + context + load);
    LoadTimes {
        headers_ns: duration_ns(headers),
        context_ns: duration_ns(context),
        load_ns: duration_ns(load),
        total_ns,
        // Bytes per nanosecond are GB/s.
        gb_per_s: stats.bytes() as f64 / total_ns.max(1) as f64,
        threads: stats.threads as u64,
        page_cache_bytes: stats.buffered_bytes,
        direct_bytes: stats.direct_bytes,
        reading_ns: duration_ns(stats.reading),
        blocked_ns: duration_ns(stats.blocked),
        converting_ns: duration_ns(stats.converting),
        waiting_ns: duration_ns(stats.waiting),
        limit: match stats.limit() {
            LoadLimit::Disk => LoadLimitedBy::Disk,
            LoadLimit::Cpu => LoadLimitedBy::Cpu,
            _ => LoadLimitedBy::Link,
        },
    }
}

/// The copies after a position of the simulator's timeline, each with the time that it takes alone. The clock
/// also counts switches between streams, which depend on how this machine scheduled the threads.
fn copies_since(position: usize, sim: &Sim, profile: &Profile) -> LoadCopies {
    let (mut count, mut bytes, mut ns) = (0, 0, 0u64);
    for span in sim.timeline().get(position..).unwrap_or(&[]) {
        if span.kind == SpanKind::HostToDevice {
            let (up, pinned) = (Direction::HostToDevice, HostKind::Pinned);
            count += 1;
            bytes += span.bytes;
            ns = ns.saturating_add(profile.copy_ns(up, pinned, span.bytes));
        }
    }
    LoadCopies { count, bytes, ns }
}
