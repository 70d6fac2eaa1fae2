//! `pinlane plan`: the best way to run a job, by the model.
//!
//! ```text
//!   args            the flags
//!   profile_source  which profile
//!   job             the job and its limits, and errors that name the flags
//!   given_shape     the best shape with what the user fixed
//!   report          the model's answer as a report
//!   timeline        schedules as timelines
//! ```

mod args;
mod given_shape;
mod job;
mod profile_source;
mod report;
mod timeline;

use pinlane_model::pipeline::Job;
use pinlane_model::schedule::schedule;
use pinlane_model::search::best;
use pinlane_report::{Plan, PlanRun};

use crate::cli::Cli;
use crate::terminal;
pub(crate) use args::Args;
use profile_source::ProfileSource;
use report::Subject;

pub(crate) fn run(args: &Args, cli: &mut Cli<'_>) -> anyhow::Result<bool> {
    let job = job::job(args)?;
    let profile = args.profile.as_ref().and_then(|it| it.file.as_deref());
    args.files
        .check(cli.device.file().into_iter().chain(profile))?;
    let source = ProfileSource::find(cli.device, args)?;
    let mut plan = plan(args, &job, &source)?;
    args.files.write(&plan.timeline)?;
    for path in args.files.all().into_iter().flatten() {
        plan.written.push(path.display().to_string());
    }
    cli.report(|| plan.to_json(), || plan.to_text(&terminal::chart_look()))?;
    Ok(true)
}

fn plan(args: &Args, job: &Job, source: &ProfileSource) -> anyhow::Result<Plan> {
    let profile = &source.profile;
    let limits = job::limits(args, profile);
    let refused = |error| job::refusal(&error, args);
    job::check_profile(job, profile)?;
    let best = best(job, profile, &limits).map_err(refused)?;
    job::check_time(best.predicted_ns, "--in, --out, --profile")?;
    let given = given_shape::find(args, job, profile, &limits, &best.shape)?;
    let subject = Subject {
        job,
        profile,
        limits: &limits,
    };
    let serial = job.serial(profile).map_err(refused)?;
    let given_shape = given.as_ref().map(|(shape, _)| shape);
    let timeline = subject.chart(&source.origin, given_shape, &best.shape)?;
    let (job, serial_ns) = (subject.job()?, schedule(profile, &serial)?.end_ns);
    let run = |shape, ns| {
        let shape = subject.shape(&shape)?;
        anyhow::Ok(PlanRun::new(shape, ns, &job, serial_ns))
    };
    let advice = subject.advice(&best, given.map(|(_, ns)| ns));
    Ok(Plan {
        origin: source.origin.clone(),
        profile_file: source.file.clone(),
        serial_ns,
        given: given.map(|(shape, ns)| run(shape, ns)).transpose()?,
        best: run(best.shape, best.predicted_ns)?,
        bottleneck: report::bottleneck(&best),
        advice,
        advice_text: advice.sentence(best.predicted_ns),
        alternatives: subject.alternatives(&best)?,
        timeline,
        written: Vec::new(),
        job,
    })
}
