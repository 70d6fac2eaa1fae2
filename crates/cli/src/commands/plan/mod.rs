//! `pinlane plan`: the best way to run a job, by the model.
//!
//! ```text
//!   args               the flags, the job they describe, and errors that name them
//!   given_shape        the best shape with what the user fixed
//!   report             the model's answer as a report
//!   schedule_timeline  schedules as timelines
//! ```

mod args;
mod given_shape;
mod report;
mod schedule_timeline;

use pinlane_model::Profile;
use pinlane_model::pipeline::Job;
use pinlane_model::planner::best;
use pinlane_model::schedule::schedule;
use pinlane_report::{Environment, Origin, Plan, PlanBottleneck, PlanRun};

use crate::calibrated_profiles;
use crate::command_context::CommandContext;
use crate::device::DeviceChoice;
use crate::input_error::UsageError;
use crate::output;
use crate::profile::ProfileFile;
use crate::terminal;
pub(crate) use args::Args;
use report::Subject;

/// How profiles that were measured on a simulated device name it.
const SIMULATED_NAME: &str = "Simulated GPU";

pub(crate) fn run(args: &Args, context: &CommandContext<'_>) -> anyhow::Result<bool> {
    let job = args.job()?;
    let profile = args.profile.as_ref().and_then(|it| it.file.as_deref());
    let inputs = context.device.file().into_iter().chain(profile);
    args.files.check(inputs)?;
    if let Some(job) = args.default_job() {
        output::complain(&format!("no job given; planning {job}"));
    }
    let (profile, simulated) = find_profile(context.device, args)?;
    let mut plan = plan(args, &job, &profile, simulated)?;
    let environment = |environment: Environment| match args.profile {
        // The plan may be for another machine than this one.
        Some(_) => environment.without_device(),
        None => environment,
    };
    let of_page = || environment(context.environment());
    args.files.write(&plan.timeline, of_page)?;
    let written = args.files.all().into_iter().flatten();
    plan.written = written.map(|path| path.display().to_string()).collect();
    let json = |found: &Environment| plan.to_json(&environment(found.clone()));
    context.report(json, || plan.to_text(&terminal::chart_look()))?;
    Ok(true)
}

/// The profile of `--profile`, of the simulated device, or of the calibrated GPU, and whether the device is
/// known to be simulated.
fn find_profile(choice: &DeviceChoice, args: &Args) -> anyhow::Result<(ProfileFile, bool)> {
    if let Some(named) = &args.profile {
        return Ok((named.clone(), false));
    }
    let backend = choice.open_for_timing()?;
    let (known, file) = (backend.profile, None);
    if let Some(profile) = known {
        return Ok((ProfileFile { profile, file }, true));
    }
    let mut devices = backend.platform.devices()?;
    let info = devices.swap_remove(backend.ordinal as usize);
    let Some(profile) = &info.simulated else {
        return Ok((calibrated_profiles::read_cached(&info)?, false));
    };
    // A simulated libcuda reports only the name of its profile.
    let name = &info.name;
    let unknown = || format!("the profile of {name} is not built in; pass --profile");
    let profile = Profile::builtin(profile).ok_or_else(|| UsageError(unknown()))?;
    Ok((ProfileFile { profile, file }, true))
}

fn plan(args: &Args, job: &Job, named: &ProfileFile, simulated: bool) -> anyhow::Result<Plan> {
    let profile = &named.profile;
    let device = &profile.device.name;
    let simulated = simulated || device.starts_with(SIMULATED_NAME);
    let origin = Origin::computed(device, &profile.name, simulated);
    let limits = args.limits(profile);
    args::check_profile(job, profile)?;
    let best = best(job, profile, &limits).map_err(|error| args.refusal(error))?;
    args::check_time(best.predicted_ns, "--in, --out, --profile")?;
    let given = given_shape::find(args, job, profile, &limits, &best.shape)?;
    let subject = Subject {
        job,
        profile,
        limits: &limits,
    };
    let serial = job.serial(profile).map_err(|error| args.refusal(error))?;
    let timeline = subject.chart(&origin, given.map(|(shape, _)| shape), &best.shape)?;
    let (plan_job, serial_ns) = (subject.job()?, schedule(profile, &serial)?.end_ns);
    let run = |shape, ns| {
        let shape = subject.shape(job, &shape)?;
        anyhow::Ok(PlanRun::new(shape, ns, &plan_job, serial_ns))
    };
    let advice = subject.advice(&best, given.map(|(_, ns)| ns));
    Ok(Plan {
        origin,
        profile_file: named.file.as_ref().map(|path| path.display().to_string()),
        serial_ns,
        given: given.map(|(shape, ns)| run(shape, ns)).transpose()?,
        best: run(best.shape, best.predicted_ns)?,
        bottleneck: PlanBottleneck {
            part: best.bottleneck.resource,
            busy_share: best.bottleneck.busy_permille as f64 / 1000.0,
        },
        advice,
        advice_text: advice.sentence(best.predicted_ns),
        alternatives: subject.alternatives(&best)?,
        timeline,
        written: Vec::new(),
        job: plan_job,
    })
}
