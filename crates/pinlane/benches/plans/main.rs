//! Jobs drawn by a seed: what the planner predicts and chooses, beside what it takes and what other ways take.
//!
//! `cargo bench -p pinlane --bench plans -- SEED [JOBS]`, on a machine with a GPU; takes some minutes. Sizes
//! are 4 MiB to 2 GiB, kernels 50 us to 30 ms of three kinds, both log-uniform. One calibration; every time is
//! a median of wall-clock times from the call to its return, all ways of a job in turns. With `sim:h200` as
//! another argument it runs on a simulated device and its clock, with sizes to 64 MiB.

mod job;
mod kernel;
mod pipeline_shapes;

use std::time::{Duration, Instant};

use anyhow::Context;
use pinlane::Device;
use pinlane::calibrate::calibrate;
use pinlane::model::planner::{Limits, best};
use pinlane::model::{Profile, SplitMix64};
use pinlane::sim::Sim;

use job::{DrawnJob, MIB, Rig};
use pipeline_shapes::measure;

const JOBS: usize = 60;

/// After buffers were freed, copies are slow for a while.
const PAUSE: Duration = Duration::from_millis(100);

fn main() -> anyhow::Result<()> {
    let numbers: Vec<u64> = std::env::args()
        .filter_map(|word| word.parse().ok())
        .collect();
    let (seed, count) = match numbers[..] {
        [] => (1, JOBS),
        [seed] => (seed, JOBS),
        [seed, count, ..] => (seed, usize::try_from(count)?),
    };
    let sim = match std::env::args().find_map(|word| Some(word.strip_prefix("sim:")?.to_owned())) {
        Some(name) => Some(simulated(&name)?),
        None => None,
    };
    let device = match &sim {
        Some(sim) => Device::open(sim, 0),
        None => Device::cuda(0),
    };
    let device = match device {
        Ok(device) => device,
        Err(error) => {
            println!("nothing to measure: {error}");
            return Ok(());
        }
    };
    let began = Instant::now();
    let clock: Box<dyn Fn() -> u64> = match sim {
        Some(sim) => Box::new(move || sim.now_ns()),
        None => Box::new(move || began.elapsed().as_nanos() as u64),
    };
    println!("{}", device.info().name);
    let profile = calibrate(&device, &clock)?;
    println!(
        "calibrated in {:.1} s\n{}",
        began.elapsed().as_secs_f64(),
        profile.to_toml()
    );
    let mut rig = Rig::new(&device, profile, clock)?;
    let mut random = SplitMix64::new(seed);
    let mut results = Vec::new();
    println!("seed {seed}, {count} jobs\n");
    for number in 0..count {
        let drawn = DrawnJob::draw(&mut random, rig.input.len());
        results.push(run(&mut rig, number, &drawn)?);
    }
    sum_up(&results);
    println!("\n{:.0} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// A simulated machine. Its clock is the host's.
fn simulated(name: &str) -> anyhow::Result<Sim> {
    let profile = Profile::builtin(name).with_context(|| format!("no profile {name}"))?;
    Ok(Sim::builder().profile(profile).checks(false).build())
}

/// What was predicted and measured for one job.
struct JobResult {
    /// Error of the plan's prediction, in percent; positive if it was too high.
    error: f64,
    /// Errors of all other predictions.
    other_errors: Vec<f64>,
    /// Time of the plan, relative to the best other way.
    ratio: f64,
    what: String,
}

fn run(rig: &mut Rig, number: usize, drawn: &DrawnJob) -> anyhow::Result<JobResult> {
    let rounds = rig.rounds_for(drawn)?;
    let job = rig.job(drawn, rounds)?;
    let plan = best(&job, &rig.profile, &Limits::default())?;
    let ways = pipeline_shapes::all(&job, plan.shape);
    let measured_ns = measure(rig, drawn.kind, rounds, &job, &ways)?;
    let predicted = ways.iter().map(|way| way.predict_ns(&job, &rig.profile));
    let predicted_ns = predicted.collect::<anyhow::Result<Vec<u64>>>()?;
    let what = format!(
        "{number:2} {} {:.1} MiB, {rounds} rounds, {:.3} ms",
        drawn.kind.name(),
        job.bytes_in as f64 / MIB as f64,
        job.kernel.ns(job.bytes_in)? as f64 / 1e6
    );
    println!("{what}: {:?}", job.kernel);
    for ((way, predicted_ns), measured_ns) in ways.iter().zip(&predicted_ns).zip(&measured_ns) {
        println!(
            "    {:44} predicted {:9.3}, measured {:9.3} ms, {:+6.1}%",
            way.name(&job),
            *predicted_ns as f64 / 1e6,
            *measured_ns as f64 / 1e6,
            error(*predicted_ns, *measured_ns)
        );
    }
    let errors = predicted_ns.iter().zip(&measured_ns);
    let mut errors: Vec<f64> = errors.map(|(a, b)| error(*a, *b)).collect();
    let best_ns = measured_ns[1..].iter().min().expect("other ways");
    let (best_at, _) = measured_ns
        .iter()
        .enumerate()
        .skip(1)
        .min_by_key(|it| it.1)
        .expect("other ways");
    let result = JobResult {
        error: errors.remove(0),
        other_errors: errors,
        ratio: measured_ns[0] as f64 / *best_ns as f64,
        what,
    };
    println!(
        "  {}: plan {:+.1}% off, {:.3} of the best other way ({})",
        result.what,
        result.error,
        result.ratio,
        ways[best_at].name(&job)
    );
    if rig.device.info().simulated.is_none() {
        std::thread::sleep(PAUSE);
    }
    Ok(result)
}

fn error(predicted_ns: u64, measured_ns: u64) -> f64 {
    (predicted_ns as f64 / measured_ns as f64 - 1.0) * 100.0
}

fn sum_up(results: &[JobResult]) {
    println!("\n== summary");
    for result in results {
        println!(
            "{:44} {:+6.1}%  {:.3}",
            result.what, result.error, result.ratio
        );
    }
    print_errors("plans", results.iter().map(|result| result.error));
    let others = results.iter().flat_map(|result| &result.other_errors);
    print_errors("other ways", others.copied());
    let mut ratios: Vec<_> = results.iter().map(|result| result.ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let behind = ratios.iter().filter(|ratio| **ratio > 1.02).count();
    println!(
        "plan relative to the best other way: median {:.3}, worst {:.3}; more than 2% behind: {behind} of {}",
        ratios[ratios.len() / 2],
        ratios[ratios.len() - 1],
        ratios.len()
    );
}

fn print_errors(name: &str, errors: impl Iterator<Item = f64>) {
    let errors: Vec<_> = errors.collect();
    let low = errors.iter().filter(|error| **error < 0.0).count();
    let mut sizes: Vec<_> = errors.iter().map(|error| error.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    println!(
        "{name}: {} predictions, median error {:.1}%, 95th percentile {:.1}%, worst {:.1}%; {low} too low, {} too high",
        sizes.len(),
        sizes[sizes.len() / 2],
        sizes[(sizes.len() * 95 / 100).min(sizes.len() - 1)],
        sizes[sizes.len() - 1],
        sizes.len() - low
    );
}
