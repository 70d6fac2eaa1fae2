//! What launchers say about a process, in variables of the environment.

use super::{OrderError, Shard};

/// The variables of a launcher.
struct Launcher {
    rank: &'static str,
    /// How many ranks there are: the first that is set counts.
    worlds: &'static [&'static str],
    /// Numbers the step that a process was started in. Variables of processes that are in none are not
    /// about them.
    steps: &'static [&'static str],
}

/// The first that is set completely counts.
const LAUNCHERS: [Launcher; 4] = [
    Launcher {
        rank: "RANK", // torchrun
        worlds: &["WORLD_SIZE"],
        steps: &[],
    },
    Launcher {
        rank: "OMPI_COMM_WORLD_RANK", // Open MPI
        worlds: &["OMPI_COMM_WORLD_SIZE"],
        steps: &[],
    },
    Launcher {
        rank: "PMI_RANK", // MPICH, Intel MPI
        worlds: &["PMI_SIZE"],
        steps: &[],
    },
    Launcher {
        rank: "SLURM_PROCID", // srun
        worlds: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"],
        steps: &["SLURM_STEP_ID", "SLURM_STEPID"],
    },
];

/// The last number of a step that `srun` starts. Those behind it are for batch scripts, shells and the
/// like, which are one process however many tasks there are to be.
const STEP_MAX: usize = 0xffff_fff0;

/// The rank that these variables give; `None` if no launcher has set any.
pub(super) fn shard(vars: impl Fn(&str) -> Option<String>) -> Result<Option<Shard>, OrderError> {
    let mut incomplete = None;
    for launcher in LAUNCHERS.iter().filter(|launcher| launcher.started(&vars)) {
        let set = |name: &&'static str| Some((*name, vars(name)?));
        let missing = match (set(&launcher.rank), launcher.worlds.iter().find_map(set)) {
            (None, None) => continue,
            (Some(rank), Some(world)) => return launched(rank, world).map(Some),
            (Some((set, _)), None) => (launcher.worlds[0], set),
            (None, Some((set, _))) => (launcher.rank, set),
        };
        incomplete.get_or_insert(missing);
    }
    match incomplete {
        Some((missing, set)) => Err(OrderError::MissingVariable { missing, set }),
        None => Ok(None),
    }
}

impl Launcher {
    /// Whether its variables are about this process.
    fn started(&self, vars: impl Fn(&str) -> Option<String>) -> bool {
        let step = self.steps.iter().find_map(|name| vars(name));
        let real = |step: String| number(&step).is_some_and(|step| step <= STEP_MAX);
        self.steps.is_empty() || step.is_some_and(real)
    }
}

fn launched(
    (rank_name, rank_value): (&'static str, String),
    (world_name, world_value): (&'static str, String),
) -> Result<Shard, OrderError> {
    let bad = |variable, value, expected| OrderError::BadVariable {
        variable,
        value,
        expected,
    };
    let world = match number(&world_value) {
        Some(world) if world > 0 => world,
        _ => {
            let expected = "a number of at least 1".to_owned();
            return Err(bad(world_name, world_value, expected));
        }
    };
    match number(&rank_value) {
        Some(rank) if rank < world => Shard::new(rank, world),
        _ => {
            let expected = format!("a number less than {world_name}, which is {world},");
            Err(bad(rank_name, rank_value, expected))
        }
    }
}

/// Digits and nothing else.
fn number(text: &str) -> Option<usize> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}
