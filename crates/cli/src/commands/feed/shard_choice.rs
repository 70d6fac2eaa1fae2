//! The shard of the samples that this process reads.

use std::cell::RefCell;
use std::env;

use pinlane::load::{LoaderConfig, SampleOrder, Shard};
use pinlane_report::FeedShard;

use super::Args;
use crate::input_error::UsageError;

/// Without this variable, SLURM's other variables describe other processes.
const STEP: &str = "SLURM_STEP_ID";

pub(super) struct ShardChoice {
    pub(super) shard: Shard,
    /// The flag or variables.
    from: Vec<String>,
    pub(super) note: Option<String>,
}

/// The shard of the flag, or else of a launcher.
pub(super) fn choose(args: &Args) -> Result<ShardChoice, UsageError> {
    let Some(shard) = args.shard else {
        return from_launcher(|name| Some(env::var_os(name)?.to_string_lossy().into_owned()));
    };
    Ok(ShardChoice {
        shard,
        from: vec!["--shard".to_owned()],
        note: None,
    })
}

fn from_launcher(var: impl Fn(&str) -> Option<String>) -> Result<ShardChoice, UsageError> {
    let seen = RefCell::new(Vec::new());
    let found = Shard::from_vars(|name| {
        let value = var(name)?;
        seen.borrow_mut().push(name.to_owned());
        Some(value)
    });
    let found =
        found.map_err(|error| UsageError(format!("{error}; or pass --shard RANK/WORLD")))?;
    let seen = seen.into_inner();
    Ok(match found {
        Some(shard) => ShardChoice {
            shard,
            // Rank and world are looked up last.
            from: seen[seen.len().saturating_sub(2)..].to_vec(),
            note: None,
        },
        None => ShardChoice {
            shard: Shard::default(),
            from: Vec::new(),
            note: ignored_slurm_note(var),
        },
    })
}

/// Why SLURM's variables were ignored, if they would have counted in a step of `srun`.
fn ignored_slurm_note(var: impl Fn(&str) -> Option<String>) -> Option<String> {
    let in_a_step = Shard::from_vars(|name| match name {
        STEP => Some("0".to_owned()),
        name => var(name),
    });
    // A single task reads all samples anyway.
    if matches!(in_a_step, Ok(None)) || in_a_step.is_ok_and(|it| it == Some(Shard::whole())) {
        return None;
    }
    Some(format!(
        "SLURM's variables are ignored, because {STEP} does not name a step of srun: this process reads all \
         samples; start it with srun, or pass --shard RANK/WORLD"
    ))
}

impl ShardChoice {
    pub(super) fn report(&self, samples: usize, config: &LoaderConfig) -> FeedShard {
        let world = config.shard.world() as u64;
        // The loader reports an invalid order.
        let rank_samples =
            SampleOrder::new(samples, 0, &config.order()).map_or(0, |order| order.samples() as u64);
        FeedShard {
            rank: config.shard.rank() as u64,
            world,
            from: self.from.clone(),
            padding_samples: rank_samples
                .saturating_mul(world)
                .saturating_sub(samples as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(vars: &[(&str, &str)]) -> ShardChoice {
        let found = from_launcher(crate::test_variables(vars));
        found.unwrap_or_else(|error| panic!("{vars:?}: {error}"))
    }

    #[test]
    fn the_variables_used_are_reported() {
        let torch = ["RANK", "WORLD_SIZE"];
        let pmi = ["PMI_RANK", "PMI_SIZE"];
        let open_mpi = ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"];
        let slurm = ["SLURM_PROCID", "SLURM_NTASKS"];
        for (from, other) in [
            (torch, ("PMI_RANK", "0")),
            (pmi, ("RANK", "1")),
            (open_mpi, ("SLURM_JOB_ID", "7")),
            (slurm, ("SLURM_STEP_ID", "0")),
        ] {
            let vars = [(from[0], "1"), (from[1], "3"), other];
            assert_eq!(shard(&vars).from, from);
        }
        assert!(shard(&[]).from.is_empty());
    }

    #[test]
    fn slurm_variables_outside_of_a_step_are_noted() {
        let batch = ("SLURM_STEP_ID", "4294967291");
        for (vars, noted) in [
            (&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")][..], true),
            (&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4"), batch], true),
            (&[("SLURM_NTASKS", "4")], true),
            (&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")], false),
            (&[("SLURM_JOB_ID", "7")], false),
            (&[], false),
        ] {
            let found = shard(vars);
            assert_eq!(found.shard, Shard::whole());
            assert_eq!(found.note.is_some(), noted, "{vars:?}");
        }
    }
}
