//! `pinlane dot`: a dot product with its vectors in pageable memory, in pinned memory, and in pageable memory
//! copied by the express lane.

mod capacity;
mod runner;
mod vectors;

use anyhow::Context;
use pinlane::internal::{NumberError, parse_whole};
use pinlane::{Device, PinnedBuf};
use pinlane_model::{Direction, Profile};
use pinlane_report::{Dot, DotJob, DotKernel, DotResult, DotTimes, DotTree, DotWay, DotWays};

use crate::clock::HostClock;
use crate::command_context::CommandContext;
use crate::device::{self, Backend};
use crate::driver_or_express_copy::Copier;
use crate::median::median_by_key;
use crate::output;
use crate::parse::{number, one_of};
use runner::{DotRun, DotRunner, Way};
use vectors::Reference;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Elements of each vector, such as 10000000, 10_000_000 or 1e7
    #[arg(short = 'n', default_value = "10000000", value_name = "N", value_parser = parse_items, allow_hyphen_values = true)]
    items: usize,

    /// How to add the products
    #[arg(long, default_value = "tree", value_parser = one_of(&[DotKernel::Tree, DotKernel::Atomic], kernel_text))]
    kernel: DotKernel,

    /// Runs of each variant; the median run is shown; 1 on a simulated device
    #[arg(long, default_value_t = 9, value_name = "N", value_parser = number::up_to(1000))]
    repeat: u32,

    /// Seed of the random elements, which lie between 0 and 1
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = number::within::<u64>(0..=u64::MAX))]
    seed: u64,
}

fn kernel_text(kernel: DotKernel) -> &'static str {
    match kernel {
        DotKernel::Tree => "tree: A tree in double precision; the result is always the same",
        DotKernel::Atomic => {
            "atomic: Atomic additions in single precision; shows their cost and error"
        }
    }
}

fn parse_items(text: &str) -> Result<usize, String> {
    let items = match parse_whole(text) {
        Ok(items) => usize::try_from(items).ok(),
        Err(NumberError::TooLarge) => None,
        Err(_) => {
            return Err(
                "not a whole number; use one such as 10000000, 10_000_000 or 1e7".to_owned(),
            );
        }
    };
    items
        // Two vectors of four bytes per element.
        .filter(|items| *items <= isize::MAX as usize / 8)
        .ok_or_else(|| "too large for memory; use fewer elements".to_owned())
}

pub(crate) fn run(args: &Args, context: &CommandContext<'_>) -> anyhow::Result<bool> {
    let backend = context.device.open_for_timing()?;
    let device = backend.device()?;
    let simulated = device.info().simulated.is_some();
    let job = DotJob {
        items: args.items as u64,
        seed: args.seed,
        kernel: args.kernel,
        // All runs of a simulated device take the same time.
        repeat: if simulated { 1 } else { args.repeat },
    };
    let report = match args.items {
        0 => empty(&device, job),
        _ => measure(&backend, &device, job)?,
    };
    context.report(
        |environment| report.to_json(environment),
        || report.to_text(),
    )?;
    if !report.is_good() {
        output::complain("error: the same job gave different results; do not trust this device");
    }
    Ok(report.is_good())
}

/// The dot product of empty vectors is 0; nothing has to run.
fn empty(device: &Device, job: DotJob) -> Dot {
    let way = DotWay {
        times: Some(DotTimes::new(0, 0, 0)),
        result: DotResult::new(0.0, 0.0),
    };
    let ways = DotWays {
        standard: way.clone(),
        pinned: way.clone(),
        express: way,
    };
    Dot::new(device::origin(device.info()), job, None, 0.0, ways, true)
}

fn measure(backend: &Backend, device: &Device, job: DotJob) -> anyhow::Result<Dot> {
    let items = usize::try_from(job.items)?;
    capacity::check(device, items)?;
    let (pinned, pinned_ns) = allocate_pinned(backend, device, items)?;
    let pageable = vectors::random(items, job.seed)?;
    let reference = Reference::of(&pageable[0], &pageable[1]);
    let mut runner = DotRunner::new(device, job.kernel, pinned, pageable)?;
    let mut values = Vec::new();
    let result = |run: &DotRun| DotResult::new(run.value, reference.relative_error(run.value));
    let mut way = |way: Way| -> anyhow::Result<DotWay> {
        let runs = runner.runs(job.repeat, way)?;
        values.extend(runs.iter().map(|run| run.value.to_bits()));
        let run = median(runs);
        Ok(DotWay {
            times: Some(run.times),
            result: result(&run),
        })
    };
    let mut ways = DotWays {
        standard: way(|runner| runner.pageable(Copier::Driver))?,
        pinned: way(|runner| runner.pinned())?,
        express: way(|runner| runner.pageable(Copier::Express))?,
    };
    if device.info().simulated.is_some() {
        ways.express.times = modelled_express(&ways, job.items, backend.profile_of(device));
    }
    let same_bits = values.iter().all(|bits| *bits == values[0]);
    let origin = device::origin(device.info());
    let mut report = Dot::new(origin, job, pinned_ns, reference.value, ways, same_bits);
    if job.kernel == DotKernel::Atomic {
        let run = median(runner.kernel_alone(DotKernel::Tree, job.repeat)?);
        report.tree = Some(DotTree {
            kernel_ns: run.times.kernel_ns,
            result: result(&run),
        });
    }
    Ok(report)
}

fn median(runs: Vec<DotRun>) -> DotRun {
    median_by_key(runs, |run| run.times.total_ns)
}

/// Allocates pinned memory for both vectors. Also returns the time it took, if known.
fn allocate_pinned(
    backend: &Backend,
    device: &Device,
    items: usize,
) -> anyhow::Result<([PinnedBuf<f32>; 2], Option<u64>)> {
    let clock = HostClock::of(backend);
    let start_ns = clock.now_ns();
    let allocate = || {
        let context = "cannot pin the vectors; use a smaller -n";
        device.pinned::<f32>(items).context(context)
    };
    let both = [allocate()?, allocate()?];
    let elapsed_ns = clock.now_ns().saturating_sub(start_ns);
    // The clock of a simulated libcuda cannot be read.
    let known = backend.sim.is_some() || device.info().simulated.is_none();
    Ok((both, known.then_some(elapsed_ns)))
}

/// A simulated clock does not time the threads of the express lane. Its copies take what the profile says,
/// but never longer than the driver's, which the express lane uses for small copies.
fn modelled_express(ways: &DotWays, items: u64, profile: Option<Profile>) -> Option<DotTimes> {
    let lane_ns = profile?.express?.ns(Direction::HostToDevice, items * 4);
    let (express, standard) = (ways.express.times?, ways.standard.times?);
    let copy_ns = lane_ns.saturating_mul(2).min(standard.copy_ns);
    Some(DotTimes::new(copy_ns, express.kernel_ns, express.result_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_elements_fit_into_memory() {
        assert_eq!(parse_items("10_000_000"), Ok(10_000_000));
        assert_eq!(parse_items("1e7"), Ok(10_000_000));
        let error = parse_items("9223372036854775807").expect_err("too many");
        assert!(error.contains("fewer"), "{error}");
        assert!(parse_items("-1").is_err());
    }
}
