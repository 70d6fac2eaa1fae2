//! Which part of all samples a process has.

use std::env;

use super::OrderError;

/// One rank of a world of ranks that share the samples.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shard {
    rank: usize,
    world: usize,
}

/// Variables of a launcher: this process's rank, and how many there are. The first that is set
/// counts.
const LAUNCHERS: [(&str, &str); 4] = [
    ("RANK", "WORLD_SIZE"),                           // torchrun
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), // Open MPI
    ("PMI_RANK", "PMI_SIZE"),                         // MPICH, Intel MPI
    ("SLURM_PROCID", "SLURM_NTASKS"),                 // srun
];

impl Shard {
    /// Rank `rank` of `world`, counted from 0.
    ///
    /// # Errors
    /// [`OrderError::WorldZero`], and [`OrderError::RankOutsideWorld`] where the rank is not less
    /// than the world.
    pub fn new(rank: usize, world: usize) -> Result<Self, OrderError> {
        match (rank, world) {
            (_, 0) => Err(OrderError::WorldZero),
            _ if rank >= world => Err(OrderError::RankOutsideWorld { rank, world }),
            _ => Ok(Self { rank, world }),
        }
    }

    /// The only rank, which has all samples.
    #[must_use]
    pub fn whole() -> Self {
        Self { rank: 0, world: 1 }
    }

    /// The rank that a launcher has given to this process, or `None` if there is no launcher:
    /// torchrun (`RANK`, `WORLD_SIZE`), Open MPI (`OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE`),
    /// PMI (`PMI_RANK`, `PMI_SIZE`), SLURM (`SLURM_PROCID`, `SLURM_NTASKS`), the first of these.
    ///
    /// SLURM sets its variables in a batch script, too, outside of `srun`, and there speaks of
    /// tasks that nobody has started: give the shard explicitly there.
    ///
    /// # Errors
    /// [`OrderError::MissingVariable`] where only one of the two is set, and
    /// [`OrderError::BadVariable`] for anything but a rank less than the world.
    pub fn from_env() -> Result<Option<Self>, OrderError> {
        let var = |name: &str| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        Self::from_vars(var)
    }

    /// As [`from_env`](Self::from_env), with variables from anywhere.
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
        for (rank, world) in LAUNCHERS {
            return match (vars(rank), vars(world)) {
                (None, None) => continue,
                (Some(_), None) => Err(missing(world, rank)),
                (None, Some(_)) => Err(missing(rank, world)),
                (Some(here), Some(all)) => launched((rank, here), (world, all)).map(Some),
            };
        }
        Ok(None)
    }

    /// Which of them this is.
    #[must_use]
    pub fn rank(self) -> usize {
        self.rank
    }

    /// How many there are.
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

fn missing(missing: &'static str, set: &'static str) -> OrderError {
    OrderError::MissingVariable { missing, set }
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
            return Err(bad(
                world_name,
                world_value,
                "a number of at least 1".to_owned(),
            ));
        }
    };
    match number(&rank_value) {
        Some(rank) if rank < world => Ok(Shard { rank, world }),
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
