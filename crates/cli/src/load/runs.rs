//! The same tensors, loaded once or several times.

use std::task::Poll;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use pinlane::Device;
use pinlane::load::{
    LoadConfig, LoadLimit, LoadStats, Plan, PlanOptions, Tensor, TensorInfo, Weights,
};
use pinlane_report::{
    Load, LoadConversion, LoadHost, LoadJob, LoadLimitedBy, LoadMemory, LoadRun, LoadShard,
    LoadTimes, Origin, amount,
};

use super::progress::Progress;
use super::simulated::Simulated;
use super::{Args, list, trouble};
use crate::doctor::facts;
use crate::interrupt::Interrupt;
use crate::source_file::When;

/// How often somebody looks whether to go on.
const PATIENCE: Duration = Duration::from_millis(100);

/// Runs of one job, and what the last one brought.
pub(super) struct Runs<'a> {
    args: &'a Args,
    device: &'a Device,
    simulated: Option<Simulated<'a>>,
    interrupt: &'a Interrupt,
    config: LoadConfig,
    loaded: Option<(Weights, Vec<Tensor>)>,
}

impl<'a> Runs<'a> {
    pub(super) fn new(
        args: &'a Args,
        device: &'a Device,
        simulated: Option<Simulated<'a>>,
        interrupt: &'a Interrupt,
    ) -> Self {
        // Right after memory was freed copies are slow.
        device.keep_device_memory(u64::MAX);
        Self {
            args,
            device,
            simulated,
            interrupt,
            config: args.config(device),
            loaded: None,
        }
    }

    /// What is on the device, in the order of the files.
    pub(super) fn loaded(&self) -> Option<(&Weights, &[Tensor])> {
        let (weights, tensors) = self.loaded.as_ref()?;
        Some((weights, tensors))
    }

    /// All runs. The first one begins with weights whose headers were read in this time. Ends early
    /// when the user wants it: the report says so.
    pub(super) fn all(&mut self, weights: Weights, headers: Duration) -> anyhow::Result<Load> {
        self.has_room(&weights)?;
        let mut report = Load::new(self.origin(), self.job(&weights));
        let mut opened = Some((weights, headers));
        for number in 1..=self.args.repeat {
            // What the run before has brought makes room.
            self.loaded = None;
            let (weights, headers) = match opened.take() {
                Some(first) => first,
                None => self.open()?,
            };
            let Some((run, tensors)) = self.once(&weights, headers, number)? else {
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

    /// Open again what was found good before.
    fn open(&self) -> anyhow::Result<(Weights, Duration)> {
        let began = Instant::now();
        let opened = self.args.open();
        let weights = opened.map_err(|error| trouble::told(error, self.args, When::Loading))?;
        Ok((weights, began.elapsed()))
    }

    /// One load. `None` when the user wants an end.
    fn once(
        &self,
        weights: &Weights,
        headers: Duration,
        number: u32,
    ) -> anyhow::Result<Option<(LoadRun, Vec<Tensor>)>> {
        let what = match self.args.repeat {
            1 => "loading".to_owned(),
            runs => format!("run {number} of {runs}"),
        };
        let bar = Progress::new(what, bytes_of(weights.tensors()));
        let ran = self.simulated.as_ref().map(Simulated::ran);
        let context = match number {
            1 => self.context()?,
            _ => Duration::ZERO,
        };
        let began = Instant::now();
        let went = self.land(weights, &bar);
        let took = began.elapsed();
        bar.end();
        let Some((mut tensors, stats)) = went? else {
            return Ok(None);
        };
        // As they lie in the files, whatever landed first.
        tensors.sort_by_key(|tensor| (tensor.info().file(), tensor.info().bytes().start));
        let is_simulated = self.device.info().simulated.is_some();
        let run = LoadRun {
            times: (!is_simulated).then(|| times(headers, context, took, &stats)),
            simulated_copies: self
                .simulated
                .as_ref()
                .zip(ran)
                .map(|(simulated, ran)| simulated.copies_since(ran)),
            host: is_simulated.then(|| host(headers, &stats)),
        };
        Ok(Some((run, tensors)))
    }

    /// The first call to a device makes the context of the process. How long that takes.
    fn context(&self) -> anyhow::Result<Duration> {
        let began = Instant::now();
        self.device.synchronize()?;
        Ok(began.elapsed())
    }

    fn land(
        &self,
        weights: &Weights,
        bar: &Progress,
    ) -> anyhow::Result<Option<(Vec<Tensor>, LoadStats)>> {
        let told = |error| self.told(error, weights);
        let mut config = self.config.clone();
        if !bar.is_hidden() {
            let bar = bar.clone();
            config = config.on_progress(move |progress| bar.reached(progress.bytes));
        }
        let mut landing = weights.start(self.device, &config).map_err(told)?;
        let mut tensors = Vec::with_capacity(weights.tensors().len());
        loop {
            if self.interrupt.is_raised() {
                return Ok(None);
            }
            match landing.next_within(PATIENCE) {
                Poll::Pending => {}
                Poll::Ready(Some(tensor)) => tensors.push(tensor.map_err(told)?),
                Poll::Ready(None) => return Ok(Some((tensors, landing.stats()))),
            }
        }
    }

    fn told(&self, error: pinlane::load::LoadError, weights: &Weights) -> anyhow::Error {
        match trouble::is_out_of_memory(&error) {
            true => trouble::full(error, self.device, on_device(self.args, weights)),
            false => trouble::told(error, self.args, When::Loading),
        }
    }

    /// The memory of a simulated device is this machine's.
    fn has_room(&self, weights: &Weights) -> anyhow::Result<()> {
        if self.device.info().simulated.is_none() {
            return Ok(());
        }
        let needed_bytes = on_device(self.args, weights)
            .with_context(|| "more than any device holds; choose some tensors with --select")?;
        let free_bytes = facts::available_bytes().unwrap_or(u64::MAX);
        if needed_bytes > free_bytes / 16 * 15 {
            bail!(
                "a simulated device has its memory on this machine, where {} of the {} needed are \
                 free; choose some tensors with --select",
                amount(free_bytes),
                amount(needed_bytes)
            );
        }
        Ok(())
    }

    fn origin(&self) -> Origin {
        let info = self.device.info();
        Origin::new(&info.name, info.simulated.clone())
    }

    fn job(&self, weights: &Weights) -> LoadJob {
        LoadJob {
            files: list::files_of(weights),
            tensors: weights.tensors().len() as u64,
            bytes: bytes_of(weights.tensors()),
            shard: self.args.shard.map(|shard| LoadShard {
                rank: shard.rank,
                world: shard.world,
            }),
            repeat: self.args.repeat.into(),
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
        let count = |is: &dyn Fn(&Tensor) -> bool| {
            let some = tensors.iter().filter(|tensor| is(tensor));
            some.count() as u64
        };
        Some(LoadConversion {
            to: to.to_string(),
            converted: count(&|tensor| tensor.dtype() != tensor.info().dtype()),
            already: count(&|tensor| tensor.info().dtype() == to),
            left: count(&|tensor| tensor.dtype() != to),
        })
    }
}

fn bytes_of(tensors: &[TensorInfo]) -> u64 {
    tensors.iter().map(TensorInfo::len_bytes).sum()
}

/// Bytes that the tensors take on the device.
fn on_device(args: &Args, weights: &Weights) -> Option<u64> {
    let plan = Plan::converting(weights.tensors(), args.dtype, PlanOptions::default()).ok()?;
    Some(plan.allocations().iter().sum())
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What is real of a load to a simulated device.
fn host(headers: Duration, stats: &LoadStats) -> LoadHost {
    LoadHost {
        headers_ns: ns(headers),
        threads: stats.threads as u64,
        reading_ns: ns(stats.reading),
        converting_ns: ns(stats.converting),
        page_cache_bytes: stats.buffered_bytes,
        direct_bytes: stats.direct_bytes,
    }
}

fn times(headers: Duration, context: Duration, load: Duration, stats: &LoadStats) -> LoadTimes {
    let total_ns = ns(headers + context + load);
    LoadTimes {
        headers_ns: ns(headers),
        context_ns: ns(context),
        load_ns: ns(load),
        total_ns,
        // Bytes a nanosecond are GB/s.
        gb_per_s: stats.bytes() as f64 / total_ns.max(1) as f64,
        threads: stats.threads as u64,
        page_cache_bytes: stats.buffered_bytes,
        direct_bytes: stats.direct_bytes,
        reading_ns: ns(stats.reading),
        blocked_ns: ns(stats.blocked),
        converting_ns: ns(stats.converting),
        waiting_ns: ns(stats.waiting),
        limit: match stats.limit() {
            LoadLimit::Disk => LoadLimitedBy::Disk,
            LoadLimit::Cpu => LoadLimitedBy::Cpu,
            _ => LoadLimitedBy::Link,
        },
    }
}
