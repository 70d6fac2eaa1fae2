//! Which of several processes of this machine this one is, from the environment variables of launchers.

/// Looks up an environment variable.
type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Variables of a launcher: the rank of the process on its machine, and the number of ranks there. Most reliable
/// first: torchrun, Open MPI, Intel MPI and MPICH.
const LAUNCHERS: [(&str, &str); 3] = [
    ("LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
];

/// More processes than any machine has GPUs and CPUs for. A larger value is a mistake.
const LOCAL_WORLD_SIZE_MAX: u64 = 4096;

/// The last step number that `srun` assigns. Higher ones mark batch scripts, interactive shells and the like.
const SLURM_STEP_MAX: u64 = 0xffff_fff0;

/// Number of processes that share this machine; 1 if unknown.
pub fn local_world_size(variable: impl Fn(&str) -> Option<String>) -> u64 {
    let variable: Variable<'_> = &variable;
    let sizes = LAUNCHERS.iter().map(|(_, size)| number(variable, size));
    let sizes = sizes.chain([slurm_local_size(variable)]);
    sizes.flatten().find(is_sane).unwrap_or(1)
}

/// Rank of this process among those of its machine, and their number. `None` without a launcher that says both.
pub fn local_rank(variable: impl Fn(&str) -> Option<String>) -> Option<(u64, u64)> {
    let variable: Variable<'_> = &variable;
    let pairs = LAUNCHERS.iter().map(|(rank, size)| {
        let rank = number(variable, rank)?;
        Some((rank, number(variable, size)?))
    });
    let slurm = || {
        Some((
            number(variable, "SLURM_LOCALID")?,
            slurm_local_size(variable)?,
        ))
    };
    let pairs = pairs.chain(std::iter::once_with(slurm));
    let valid = |(rank, size): &(u64, u64)| is_sane(size) && rank < size;
    pairs.flatten().find(valid)
}

/// Whether this is a task that `srun` started. SLURM sets its variables in the shell of `salloc` and in batch scripts
/// too, for tasks that have not been started.
pub fn is_srun_task(variable: impl Fn(&str) -> Option<String>) -> bool {
    let step = variable("SLURM_STEP_ID").or_else(|| variable("SLURM_STEPID"));
    step.and_then(|step| parse(&step))
        .is_some_and(|step| step <= SLURM_STEP_MAX)
}

/// Tasks of a step of `srun` on this machine. SLURM lists them by machine; `SLURM_NTASKS_PER_NODE` is only there
/// if the user asked for a number.
fn slurm_local_size(variable: Variable<'_>) -> Option<u64> {
    if !is_srun_task(variable) {
        return None;
    }
    let listed = || {
        let node = number(variable, "SLURM_NODEID")?;
        let tasks = variable("SLURM_STEP_TASKS_PER_NODE");
        tasks_of_node(&tasks.or_else(|| variable("SLURM_TASKS_PER_NODE"))?, node)
    };
    listed().or_else(|| number(variable, "SLURM_NTASKS_PER_NODE"))
}

/// The entry of a machine in a list such as `4(x2),3`: two machines with four tasks, and one with three.
fn tasks_of_node(list: &str, node: u64) -> Option<u64> {
    let mut left = node;
    for entry in list.trim().split(',') {
        let (tasks, nodes) = match entry.split_once("(x") {
            Some((tasks, nodes)) => (tasks, parse(nodes.strip_suffix(')')?)?),
            None => (entry, 1),
        };
        if left < nodes {
            return parse(tasks);
        }
        left -= nodes;
    }
    None
}

fn number(variable: Variable<'_>, name: &str) -> Option<u64> {
    parse(&variable(name)?)
}

/// Parses digits only: no sign.
fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

fn is_sane(size: &u64) -> bool {
    (1..=LOCAL_WORLD_SIZE_MAX).contains(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars<'a>(set: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| {
            let found = set.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        }
    }

    #[test]
    fn the_first_sane_world_size_counts() {
        let size = |set: &[(&str, &str)]| local_world_size(vars(set));
        assert_eq!(size(&[]), 1);
        assert_eq!(size(&[("LOCAL_WORLD_SIZE", "8")]), 8);
        let both = [
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
            ("MPI_LOCALNRANKS", "3"),
        ];
        assert_eq!(size(&both), 2);
        for insane in ["0", "-4", "+4", "many", "", "1000000"] {
            let set = [("LOCAL_WORLD_SIZE", insane), ("MPI_LOCALNRANKS", "3")];
            assert_eq!(size(&set), 3, "{insane:?}");
        }
    }

    #[test]
    fn every_launcher_gives_rank_and_size() {
        let rank = |set: &[(&str, &str)]| local_rank(vars(set));
        assert_eq!(rank(&[]), None);
        for (ranks, sizes) in LAUNCHERS {
            assert_eq!(rank(&[(ranks, "1"), (sizes, " 4 ")]), Some((1, 4)));
            assert_eq!(rank(&[(ranks, "1")]), None, "{sizes} is missing");
            assert_eq!(rank(&[(sizes, "4")]), None, "{ranks} is missing");
            assert_eq!(rank(&[(ranks, "4"), (sizes, "4")]), None);
        }
        // One that makes no sense leaves it to the next.
        let set = [
            ("LOCAL_RANK", "7"),
            ("LOCAL_WORLD_SIZE", "2"),
            ("MPI_LOCALRANKID", "2"),
            ("MPI_LOCALNRANKS", "3"),
        ];
        assert_eq!(rank(&set), Some((2, 3)));
    }

    #[test]
    fn slurm_counts_in_tasks_of_srun_only() {
        let with = |more: &[(&'static str, &'static str)]| {
            let base = [("SLURM_LOCALID", "1"), ("SLURM_NTASKS_PER_NODE", "4")];
            let set: Vec<_> = base.into_iter().chain(more.iter().copied()).collect();
            (local_rank(vars(&set)), local_world_size(vars(&set)))
        };
        assert_eq!(with(&[]), (None, 1), "a shell of salloc");
        assert_eq!(with(&[("SLURM_STEP_ID", "0")]), (Some((1, 4)), 4));
        assert_eq!(with(&[("SLURM_STEPID", "7")]), (Some((1, 4)), 4));
        assert_eq!(with(&[("SLURM_STEP_ID", "4294967291")]), (None, 1), "batch");
        // What the step has on this machine is better than what was asked for.
        let step = [
            ("SLURM_STEP_ID", "0"),
            ("SLURM_NODEID", "2"),
            ("SLURM_STEP_TASKS_PER_NODE", "8(x2),3"),
            ("SLURM_TASKS_PER_NODE", "9(x3)"),
        ];
        assert_eq!(with(&step), (Some((1, 3)), 3));
        assert_eq!(with(&[step[0], step[1], step[3]]), (Some((1, 9)), 9));
    }

    #[test]
    fn lists_of_tasks_are_read_by_machine() {
        for (list, node, tasks) in [
            ("4", 0, Some(4)),
            ("4(x2),3", 1, Some(4)),
            ("4(x2),3", 2, Some(3)),
            ("4(x2),3", 3, None),
            ("2,1(x18446744073709551615)", 5, Some(1)),
            ("x(x2", 0, None),
            ("", 0, None),
        ] {
            assert_eq!(tasks_of_node(list, node), tasks, "{list:?} {node}");
        }
    }
}
