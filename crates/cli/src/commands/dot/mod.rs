//! `pinlane dot`: the dot product with its vectors in standard memory, in pinned memory, and in
//! standard memory by the express lane.

mod bench;
mod count;
mod reference;
mod room;
mod vectors;
mod work;

use std::time::Instant;

use anyhow::Context;
use pinlane::{Device, PinnedBuf};
use pinlane_model::{Direction, Profile};
use pinlane_report::{
    Dot, DotJob, DotKernel, DotResult, DotTimes, DotTree, DotWay, DotWays, Origin,
};

use crate::device::{self, Choice, Target};
use crate::output::{self, Output};
use bench::{Bench, Way, median};
use reference::Reference;

/// The words of `pinlane dot`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Elements of each vector, such as 10000000 or 10_000_000
    #[arg(
        short = 'n',
        default_value = "10000000",
        value_name = "N",
        value_parser = count::parse,
        allow_hyphen_values = true
    )]
    items: usize,

    /// How the products are added: as a tree in double precision, always with the same bits, or by
    /// atomic additions in single precision, to see what that costs and how wrong it is
    #[arg(long, value_enum, default_value = "tree")]
    kernel: Kernel,

    /// Runs of each way, of which the median one is shown; a simulated device needs one
    #[arg(
        long,
        default_value_t = 9,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    repeat: u32,

    /// Seed of the numbers, which lie between 0 and 1
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Kernel {
    Tree,
    Atomic,
}

impl From<Kernel> for DotKernel {
    fn from(kernel: Kernel) -> Self {
        match kernel {
            Kernel::Tree => Self::Tree,
            Kernel::Atomic => Self::Atomic,
        }
    }
}

pub(crate) fn run(
    choice: &Choice,
    args: &Args,
    json: bool,
    output: &mut Output,
) -> anyhow::Result<bool> {
    let (target, profile) = device::start_to_measure(choice)?;
    let device = Device::open(target.platform(), target.ordinal())?;
    let simulated = device.info().simulated.clone();
    // A simulated device may also be behind the name of a real one.
    let profile = profile.or_else(|| Profile::builtin(simulated.as_ref()?));
    let job = DotJob {
        items: args.items as u64,
        seed: args.seed,
        kernel: args.kernel.into(),
        // A simulated device gives the same again and again.
        repeat: if simulated.is_some() { 1 } else { args.repeat },
    };
    let report = match args.items {
        0 => nothing(&device, job),
        _ => measure(&target, &device, job, profile.as_ref())?,
    };
    output.print(&if json {
        report.to_json()
    } else {
        report.to_text()
    })?;
    if !report.is_good() {
        output::complain("error: the same job gave different bits; the device cannot be trusted");
    }
    Ok(report.is_good())
}

/// The dot product of no elements is 0, and nothing has to be done for it.
fn nothing(device: &Device, job: DotJob) -> Dot {
    let way = DotWay {
        times: Some(DotTimes::new(0, 0, 0)),
        result: DotResult::new(0.0, 0.0),
    };
    let ways = DotWays {
        standard: way.clone(),
        pinned: way.clone(),
        express: way,
    };
    Dot::new(origin(device), job, None, 0.0, ways, true)
}

fn measure(
    target: &Target,
    device: &Device,
    job: DotJob,
    profile: Option<&Profile>,
) -> anyhow::Result<Dot> {
    let items = usize::try_from(job.items)?;
    room::check(device, items)?;
    let (pinned, pinned_ns) = pinned(target, device, items)?;
    let ordinary = vectors::make(items, job.seed)?;
    let reference = Reference::of(&ordinary[0], &ordinary[1]);
    let mut bench = Bench::new(device, job.kernel, pinned, ordinary)?;
    let mut values = Vec::new();
    let mut way = |way| -> anyhow::Result<DotWay> {
        let runs = bench.runs(way, job.repeat)?;
        values.extend(runs.iter().map(|run| run.value.to_bits()));
        let run = median(&runs);
        Ok(DotWay {
            times: Some(run.times),
            result: DotResult::new(run.value, reference.distance(run.value)),
        })
    };
    let mut ways = DotWays {
        standard: way(Way::Standard)?,
        pinned: way(Way::Pinned)?,
        express: way(Way::Express)?,
    };
    if device.info().simulated.is_some() {
        let seen = ways.express.times.zip(ways.standard.times);
        ways.express.times = seen
            .zip(profile)
            .and_then(|((express, standard), profile)| {
                modelled(express, standard, job.items, profile)
            });
    }
    let same_bits = values.iter().all(|bits| *bits == values[0]);
    let mut report = Dot::new(
        origin(device),
        job,
        pinned_ns,
        reference.value,
        ways,
        same_bits,
    );
    if job.kernel == DotKernel::Atomic {
        let run = median(&bench.kernel_alone(DotKernel::Tree, job.repeat)?);
        report.tree = Some(DotTree {
            kernel_ns: run.times.kernel_ns,
            result: DotResult::new(run.value, reference.distance(run.value)),
        });
    }
    Ok(report)
}

/// Pinned memory for both vectors, and what it took.
fn pinned(
    target: &Target,
    device: &Device,
    items: usize,
) -> anyhow::Result<([PinnedBuf<f32>; 2], Option<u64>)> {
    let began = Instant::now();
    let now_ns = || match target.sim() {
        Some(sim) => sim.now_ns(),
        None => u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
    };
    let start_ns = now_ns();
    let get = || {
        let advice = "the memory cannot be pinned; choose a smaller -n";
        device.pinned::<f32>(items).context(advice)
    };
    let both = [get()?, get()?];
    let took_ns = now_ns().saturating_sub(start_ns);
    // The clock of a simulated device behind the name of a real one cannot be read from here.
    let known = target.sim().is_some() || device.info().simulated.is_none();
    Ok((both, known.then_some(took_ns)))
}

/// The express lane's threads are real, and a simulated clock does not see them: its copies take what
/// the profile says, where it says so, and never longer than the driver's, which small ones are.
fn modelled(
    express: DotTimes,
    standard: DotTimes,
    items: u64,
    profile: &Profile,
) -> Option<DotTimes> {
    let lane = profile.express.as_ref()?;
    let lane_ns = lane.ns(Direction::HostToDevice, items * 4);
    Some(DotTimes::new(
        lane_ns.saturating_mul(2).min(standard.copy_ns),
        express.kernel_ns,
        express.result_ns,
    ))
}

fn origin(device: &Device) -> Origin {
    let info = device.info();
    Origin::new(&info.name, info.simulated.clone())
}
