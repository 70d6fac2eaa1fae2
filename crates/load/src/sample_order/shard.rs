//! The part of all samples that a process reads, given by hand or by a launcher's environment variables.

use std::str::FromStr;
use std::{env, fmt};

use super::OrderError;
use pinlane_core::internal::{is_srun_task, local_rank};

/// One rank of several that share the samples, or a machine. Written as `rank/world`: `0/4` is the first of four.
///
/// ```
/// use pinlane::load::Shard;
///
/// let shard: Shard = "0/4".parse()?;
/// assert_eq!(shard, Shard::new(0, 4)?);
/// assert_eq!(shard.to_string(), "0/4");
/// # Ok::<(), pinlane::load::OrderError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shard {
    rank: usize,
    world: usize,
}

impl Shard {
    /// Rank `rank` of `world`, counted from 0.
    ///
    /// # Errors
    /// [`OrderError::WorldZero`]; [`OrderError::RankOutsideWorld`] if the rank is not less than the world.
    pub fn new(rank: usize, world: usize) -> Result<Self, OrderError> {
        match (rank, world) {
            (_, 0) => Err(OrderError::WorldZero),
            _ if rank >= world => Err(OrderError::RankOutsideWorld { rank, world }),
            _ => Ok(Self { rank, world }),
        }
    }

    /// The only rank, which reads all samples.
    #[must_use]
    pub fn whole() -> Self {
        Self { rank: 0, world: 1 }
    }

    /// The rank that a launcher gave this process, or `None` without a launcher. The first launcher that
    /// set both of its variables wins:
    ///
    /// | launcher | rank | world |
    /// |---|---|---|
    /// | torchrun | `RANK` | `WORLD_SIZE` |
    /// | Open MPI | `OMPI_COMM_WORLD_RANK` | `OMPI_COMM_WORLD_SIZE` |
    /// | PMI (MPICH, Intel MPI) | `PMI_RANK` | `PMI_SIZE` |
    /// | SLURM, started by `srun` | `SLURM_PROCID` | `SLURM_STEP_NUM_TASKS`, else `SLURM_NTASKS` |
    ///
    /// SLURM also sets them in the shell of `salloc` and in batch scripts, for tasks that have not been
    /// started. They therefore count only if `SLURM_STEP_ID` (or `SLURM_STEPID`) is a step of `srun`.
    ///
    /// # Errors
    /// [`OrderError::MissingVariable`] if a launcher set one of its two variables and no launcher set both;
    /// [`OrderError::BadVariable`] if the values are not a rank less than the world.
    pub fn from_env() -> Result<Option<Self>, OrderError> {
        Self::from_vars(|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    /// Like [`from_env`](Self::from_env), with variables looked up by `vars`.
    ///
    /// ```
    /// use pinlane::load::Shard;
    ///
    /// let vars = |name: &str| match name {
    ///     "RANK" => Some("3".to_owned()),
    ///     "WORLD_SIZE" => Some("8".to_owned()),
    ///     _ => None,
    /// };
    /// assert_eq!(Shard::from_vars(vars)?, Some(Shard::new(3, 8)?));
    /// assert_eq!(Shard::from_vars(|_| None)?, None);
    /// # Ok::<(), pinlane::load::OrderError>(())
    /// ```
    ///
    /// # Errors
    /// As [`from_env`](Self::from_env).
    pub fn from_vars(vars: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, OrderError> {
        let mut incomplete = Ok(None);
        for (ranks, worlds, in_steps) in LAUNCHERS {
            if in_steps && !is_srun_task(&vars) {
                continue;
            }
            let set = |name: &&'static str| Some((*name, vars(name)?));
            let (missing, set) = match (ranks.iter().find_map(set), worlds.iter().find_map(set)) {
                (None, None) => continue,
                (Some(rank), Some(world)) => return from_variables(rank, world).map(Some),
                (Some((set, _)), None) => (worlds[0], set),
                (None, Some((set, _))) => (ranks[0], set),
            };
            incomplete = incomplete.and(Err(OrderError::MissingVariable { missing, set }));
        }
        incomplete
    }

    /// The rank of this process among those of its machine, or `None` if no launcher gave one:
    ///
    /// | launcher | rank | ranks of this machine |
    /// |---|---|---|
    /// | torchrun, Ray Train | `LOCAL_RANK` | `LOCAL_WORLD_SIZE` |
    /// | Open MPI | `OMPI_COMM_WORLD_LOCAL_RANK` | `OMPI_COMM_WORLD_LOCAL_SIZE` |
    /// | Intel MPI, MPICH | `MPI_LOCALRANKID` | `MPI_LOCALNRANKS` |
    /// | SLURM, started by `srun` | `SLURM_LOCALID` | `SLURM_STEP_TASKS_PER_NODE`, else `SLURM_NTASKS_PER_NODE` |
    ///
    /// It only decides how ranks share a machine, so variables that make no sense are ignored.
    #[must_use]
    pub fn local_from_env() -> Option<Self> {
        let (rank, world) = local_rank(|name| env::var(name).ok())?;
        Self::new(usize::try_from(rank).ok()?, usize::try_from(world).ok()?).ok()
    }

    /// The rank, counted from 0.
    #[must_use]
    pub fn rank(self) -> usize {
        self.rank
    }

    /// The number of ranks.
    #[must_use]
    pub fn world(self) -> usize {
        self.world
    }
}

impl Default for Shard {
    fn default() -> Self {
        Self::whole()
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.rank, self.world)
    }
}

impl FromStr for Shard {
    type Err = OrderError;

    fn from_str(text: &str) -> Result<Self, OrderError> {
        let parts = text
            .split_once('/')
            .and_then(|(rank, world)| Some((number(rank.trim())?, number(world.trim())?)));
        let Some((rank, world)) = parts else {
            let text = text.to_owned();
            return Err(OrderError::BadShard { text });
        };
        Self::new(rank, world)
    }
}

/// Variables of which the first that is set counts.
type Variables = &'static [&'static str];

/// For each launcher, the variables of the rank and of the number of ranks, and whether they count only in a step
/// of `srun`.
const LAUNCHERS: [(Variables, Variables, bool); 4] = [
    (&["RANK"], &["WORLD_SIZE"], false), // torchrun
    (&["OMPI_COMM_WORLD_RANK"], &["OMPI_COMM_WORLD_SIZE"], false), // Open MPI
    (&["PMI_RANK"], &["PMI_SIZE"], false), // MPICH, Intel MPI
    (
        &["SLURM_PROCID"], // srun
        &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"],
        true,
    ),
];

fn from_variables(
    (rank_name, rank_value): (&'static str, String),
    (world_name, world_value): (&'static str, String),
) -> Result<Shard, OrderError> {
    let (rank, world) = (number(&rank_value), number(&world_value));
    let (variable, value, expected) = match (rank, world) {
        (_, None | Some(0)) => (world_name, world_value, "a number of at least 1".to_owned()),
        (Some(rank), Some(world)) if rank < world => return Shard::new(rank, world),
        (_, Some(world)) => {
            let expected = format!("a number less than {world_name} ({world})");
            (rank_name, rank_value, expected)
        }
    };
    Err(OrderError::BadVariable {
        variable,
        value,
        expected,
    })
}

/// Parses digits only: no sign, no spaces.
fn number(text: &str) -> Option<usize> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}
