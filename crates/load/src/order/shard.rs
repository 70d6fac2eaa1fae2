//! Which part of all samples a process has.

use std::env;

use super::{OrderError, launcher};

/// One rank of a world of ranks that share the samples.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shard {
    rank: usize,
    world: usize,
}

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

    /// The rank that a launcher has given to this process, or `None` if there is no launcher. The
    /// first of these that has set both of its variables counts:
    ///
    /// | launcher | rank | world |
    /// |---|---|---|
    /// | torchrun | `RANK` | `WORLD_SIZE` |
    /// | Open MPI | `OMPI_COMM_WORLD_RANK` | `OMPI_COMM_WORLD_SIZE` |
    /// | PMI (MPICH, Intel MPI) | `PMI_RANK` | `PMI_SIZE` |
    /// | SLURM, started by `srun` | `SLURM_PROCID` | `SLURM_STEP_NUM_TASKS`, else `SLURM_NTASKS` |
    ///
    /// SLURM sets such variables in the shell of `salloc` and in a batch script, too, where they speak
    /// of tasks that nobody has started. So they count only where `SLURM_STEP_ID` (or `SLURM_STEPID`)
    /// is the number of a step that `srun` started; anywhere else a process has all samples.
    ///
    /// # Errors
    /// [`OrderError::MissingVariable`] where a launcher has set one of the two and no other has set
    /// both, and [`OrderError::BadVariable`] for anything but a rank less than the world.
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
        launcher::shard(vars)
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
