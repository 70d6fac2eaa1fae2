//! `pinlane plan`
//!
//! ```text
//!   words      the flags
//!   source     which profile
//!   job        the job and its limits, and refusals in the words of the flags
//!   given      a shape of which the user chose some parts
//!   report     what the model says, as a report
//!   predicted  schedules as timelines
//! ```

mod given;
mod job;
mod predicted;
mod report;
mod source;
mod words;

use pinlane_model::schedule::schedule;
use pinlane_model::search::best;
use pinlane_report::timeline::{Exporter, Html, Svg, Trace};
use pinlane_report::{Plan, PlanParts};

use crate::device::Choice;
use crate::output::Output;
use crate::{file, terminal};
use report::Subject;
use source::Source;
pub(crate) use words::Args;

pub(crate) fn run(
    choice: &Choice,
    args: &Args,
    json: bool,
    output: &mut Output,
) -> anyhow::Result<bool> {
    let job = job::job(args)?;
    let profile = args.profile.as_ref().and_then(|it| it.file.as_deref());
    file::check(
        &[
            ("--svg", &args.svg),
            ("--html", &args.html),
            ("--trace", &args.trace),
        ],
        choice.file().into_iter().chain(profile),
    )?;
    let source = source::find(choice, args)?;
    let mut plan = plan(args, &job, &source)?;
    export(args, &mut plan)?;
    output.print(&if json {
        plan.to_json()
    } else {
        plan.to_text(&terminal::chart_look())
    })?;
    Ok(true)
}

fn plan(args: &Args, job: &pinlane_model::pipeline::Job, source: &Source) -> anyhow::Result<Plan> {
    let profile = &source.profile;
    let limits = job::limits(args, profile);
    let refused = |error| job::refusal(&error, args);
    job::check_profile(job, profile)?;
    let best = best(job, profile, &limits).map_err(refused)?;
    job::check_time(best.predicted_ns, "--in, --out, --profile")?;
    let given = given::shape(args, job, profile, &limits, &best.shape)?;
    let subject = Subject {
        job,
        profile,
        limits: &limits,
    };
    let serial = job.serial(profile).map_err(refused)?;
    let timeline = subject.chart(
        &source.origin,
        given.as_ref().map(|(shape, _)| shape),
        &best.shape,
    )?;
    let given = match given {
        Some((shape, ns)) => Some((subject.shape(&shape)?, ns)),
        None => None,
    };
    Ok(Plan::new(PlanParts {
        origin: source.origin.clone(),
        profile_file: source.file.clone(),
        job: subject.job()?,
        serial_ns: schedule(profile, &serial)?.end_ns,
        advice: subject.advice(&best, given.as_ref().map(|(_, ns)| *ns)),
        given,
        best: (subject.shape(&best.shape)?, best.predicted_ns),
        bottleneck: report::bottleneck(&best),
        alternatives: subject.alternatives(&best)?,
        timeline,
    }))
}

fn export(args: &Args, plan: &mut Plan) -> anyhow::Result<()> {
    let wanted: [(_, &dyn Exporter); 3] = [
        (&args.svg, &Svg),
        (&args.html, &Html),
        (&args.trace, &Trace),
    ];
    for (path, exporter) in wanted {
        if let Some(path) = path {
            file::write(path, |out| exporter.export(&plan.timeline, out))?;
            plan.written.push(path.display().to_string());
        }
    }
    Ok(())
}
