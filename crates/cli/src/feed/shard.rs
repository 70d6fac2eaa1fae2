//! Which part of the samples is for this process.

use std::cell::RefCell;
use std::env;

use pinlane::load::{LoaderConfig, SampleOrder, Shard};
use pinlane_report::FeedShard;

use super::Args;
use crate::output::UsageError;

/// What a launcher says that has started no step: its variables speak of other processes.
const STEP: &str = "SLURM_STEP_ID";

/// A part, and who says so.
pub(super) struct Part {
    pub(super) shard: Shard,
    from: Vec<String>,
    /// What the user should know of it.
    pub(super) note: Option<String>,
}

/// As the words say, or else a launcher.
pub(super) fn of(args: &Args) -> Result<Part, UsageError> {
    match args.rank.zip(args.world) {
        Some((rank, world)) => {
            let shard = Shard::new(rank, world).map_err(|error| {
                UsageError::new(format!("--rank {rank} --world {world}: {error}"))
            })?;
            Ok(Part {
                shard,
                from: ["--rank", "--world"].map(str::to_owned).into(),
                note: None,
            })
        }
        None => launched(|name| {
            let value = env::var_os(name)?;
            Some(value.to_string_lossy().into_owned())
        }),
    }
}

/// As variables say.
fn launched(var: impl Fn(&str) -> Option<String>) -> Result<Part, UsageError> {
    let seen = RefCell::new(Vec::new());
    let found = Shard::from_vars(|name| {
        let value = var(name)?;
        seen.borrow_mut().push(name.to_owned());
        Some(value)
    });
    let found =
        found.map_err(|error| UsageError::new(format!("{error}; or give --rank and --world")))?;
    let seen = seen.into_inner();
    Ok(match found {
        Some(shard) => Part {
            shard,
            // Those that counted were looked at last: rank and world.
            from: seen[seen.len().saturating_sub(2)..].to_vec(),
            note: None,
        },
        None => Part {
            shard: Shard::default(),
            from: Vec::new(),
            note: unheeded(var),
        },
    })
}

/// Why variables of SLURM were not heeded that would have counted in a step of `srun`.
fn unheeded(var: impl Fn(&str) -> Option<String>) -> Option<String> {
    let in_a_step = Shard::from_vars(|name| match name {
        STEP => Some("0".to_owned()),
        name => var(name),
    });
    // One task alone has all samples in any case.
    if matches!(in_a_step, Ok(None)) || in_a_step.is_ok_and(|it| it == Some(Shard::whole())) {
        return None;
    }
    Some(format!(
        "Variables of SLURM are set, but {STEP} is not that of a step of srun, so they were not heeded and \
         all samples are for this process; start it with srun, or give --rank and --world"
    ))
}

impl Part {
    /// For the report: so many samples, shared so.
    pub(super) fn told(&self, samples: usize, config: &LoaderConfig) -> FeedShard {
        let world = config.shard.world() as u64;
        // The loader says what is wrong with the order.
        let of_a_rank =
            SampleOrder::new(samples, 0, &config.order()).map_or(0, |order| order.samples() as u64);
        FeedShard {
            rank: config.shard.rank() as u64,
            world,
            from: self.from.clone(),
            padding_samples: of_a_rank
                .saturating_mul(world)
                .saturating_sub(samples as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(vars: &[(&str, &str)]) -> Part {
        let var = |name: &str| {
            let found = vars.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        launched(var).unwrap_or_else(|error| panic!("{vars:?}: {error}"))
    }

    #[test]
    fn the_variables_that_counted_are_told() {
        for (vars, from) in [
            (
                &[("RANK", "1"), ("WORLD_SIZE", "2"), ("PMI_RANK", "0")][..],
                ["RANK", "WORLD_SIZE"],
            ),
            (
                &[("RANK", "1"), ("PMI_RANK", "0"), ("PMI_SIZE", "3")],
                ["PMI_RANK", "PMI_SIZE"],
            ),
            (
                &[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "3")],
                ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
            ),
            (
                &[
                    ("SLURM_STEP_ID", "0"),
                    ("SLURM_PROCID", "1"),
                    ("SLURM_NTASKS", "2"),
                ],
                ["SLURM_PROCID", "SLURM_NTASKS"],
            ),
        ] {
            assert_eq!(part(vars).from, from);
        }
        assert!(part(&[]).from.is_empty());
    }

    #[test]
    fn variables_of_slurm_outside_of_a_step_are_told() {
        let batch = ("SLURM_STEP_ID", "4294967291");
        for (vars, told) in [
            (&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")][..], true),
            (&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4"), batch], true),
            (&[("SLURM_NTASKS", "4")], true),
            (&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")], false),
            (&[("SLURM_JOB_ID", "7")], false),
            (&[], false),
        ] {
            let found = part(vars);
            assert_eq!(found.shard, Shard::whole());
            assert_eq!(found.note.is_some(), told, "{vars:?}");
        }
    }
}
