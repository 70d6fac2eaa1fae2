//! Ranks, given by hand or by a launcher.

use pinlane::load::{OrderError, Shard};

/// The shard given by these variables.
fn from(vars: &[(&str, &str)]) -> Result<Option<Shard>, OrderError> {
    Shard::from_vars(|name| {
        let found = vars.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

fn shard(rank: usize, world: usize) -> Shard {
    Shard::new(rank, world).expect("a rank")
}

#[test]
fn ranks_are_less_than_the_world() {
    assert_eq!(Shard::new(0, 0), Err(OrderError::WorldZero));
    let outside = OrderError::RankOutsideWorld { rank: 4, world: 4 };
    assert_eq!(Shard::new(4, 4), Err(outside));
    assert_eq!((shard(3, 4).rank(), shard(3, 4).world()), (3, 4));
    assert_eq!(Shard::whole(), shard(0, 1));
    assert_eq!(Shard::default(), Shard::whole());
}

#[test]
fn launchers_have_a_fixed_precedence() {
    let launchers = [
        ("RANK", "WORLD_SIZE"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
        ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ];
    let ranks = ["0", "1", "2", "3"];
    let vars: Vec<(&str, &str)> = launchers
        .iter()
        .zip(ranks)
        .flat_map(|((rank, world), value)| [(*rank, value), (*world, "4")])
        .collect();
    for first in 0..4 {
        let with_step = |vars: &[_]| from(&[vars, &[("SLURM_STEP_ID", "0")]].concat());
        assert_eq!(with_step(&vars[2 * first..]), Ok(Some(shard(first, 4))));
        assert_eq!(
            with_step(&vars[2 * first..][..2]),
            Ok(Some(shard(first, 4)))
        );
    }
    assert_eq!(from(&[]), Ok(None));
    assert_eq!(from(&[("LOCAL_RANK", "1")]), Ok(None));
}

#[test]
fn half_set_variables_name_the_other() {
    let missing = |missing, set| Err(OrderError::MissingVariable { missing, set });
    assert_eq!(from(&[("RANK", "0")]), missing("WORLD_SIZE", "RANK"));
    assert_eq!(from(&[("WORLD_SIZE", "2")]), missing("RANK", "WORLD_SIZE"));
    assert_eq!(from(&[("PMI_SIZE", "2")]), missing("PMI_RANK", "PMI_SIZE"));
    // The first of several is reported.
    let two = [("PMI_SIZE", "2"), ("OMPI_COMM_WORLD_RANK", "0")];
    assert_eq!(
        from(&two),
        missing("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK")
    );
    let step = ("SLURM_STEP_ID", "3");
    assert_eq!(
        from(&[step, ("SLURM_PROCID", "0")]),
        missing("SLURM_STEP_NUM_TASKS", "SLURM_PROCID")
    );
    assert_eq!(
        from(&[step, ("SLURM_NTASKS", "2")]),
        missing("SLURM_PROCID", "SLURM_NTASKS")
    );
    assert_eq!(from(&[step]), Ok(None));
}

#[test]
fn a_complete_launcher_wins_over_an_incomplete_one() {
    let pmi = [("PMI_RANK", "1"), ("PMI_SIZE", "2")];
    for half in [("RANK", "0"), ("WORLD_SIZE", "7"), ("RANK", "nonsense")] {
        assert_eq!(from(&[&[half][..], &pmi].concat()), Ok(Some(shard(1, 2))));
    }
    let srun = [
        ("PMI_RANK", "0"),
        ("SLURM_STEP_ID", "0"),
        ("SLURM_PROCID", "5"),
        ("SLURM_NTASKS", "6"),
    ];
    assert_eq!(from(&srun), Ok(Some(shard(5, 6))));
    // One with an invalid value does not.
    let nonsense = [&[("RANK", "0"), ("WORLD_SIZE", "zero")][..], &pmi].concat();
    assert!(matches!(
        from(&nonsense),
        Err(OrderError::BadVariable {
            variable: "WORLD_SIZE",
            ..
        })
    ));
}

#[test]
fn slurm_variables_count_only_in_srun_steps() {
    let tasks = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")];
    assert_eq!(from(&tasks), Ok(None), "a batch script");
    assert_eq!(from(&tasks[1..]), Ok(None), "the shell of salloc");
    let within = |step| from(&[&tasks[..], &[step]].concat());
    // An interactive shell, a batch script, an unknown step.
    for number in ["4294967290", "4294967291", "4294967295", "", "batch", "-5"] {
        assert_eq!(within(("SLURM_STEP_ID", number)), Ok(None), "{number:?}");
    }
    for number in ["0", "17", "4294967280"] {
        for name in ["SLURM_STEP_ID", "SLURM_STEPID"] {
            assert_eq!(within((name, number)), Ok(Some(shard(0, 8))), "{number}");
        }
    }
    // A step with fewer tasks than the job.
    let part = [
        &tasks[..],
        &[("SLURM_STEP_ID", "1"), ("SLURM_STEP_NUM_TASKS", "2")],
    ];
    assert_eq!(from(&part.concat()), Ok(Some(shard(0, 2))));
}

#[test]
fn invalid_values_name_the_variable() {
    let bad = |rank: &str, world: &str| {
        let error = from(&[("PMI_RANK", rank), ("PMI_SIZE", world)]).expect_err("nonsense");
        let words = error.to_string();
        match error {
            OrderError::BadVariable {
                variable, value, ..
            } => {
                assert!(words.contains(variable) && words.contains(&format!("{value:?}")));
                (variable, value)
            }
            other => panic!("{other}"),
        }
    };
    for value in [
        "",
        " 1",
        "-1",
        "+1",
        "one",
        "1.0",
        "99999999999999999999",
        "4",
        "5",
    ] {
        assert_eq!(bad(value, "4"), ("PMI_RANK", value.to_owned()));
    }
    for value in ["", "0", "-4", "four", "\u{fffd}"] {
        assert_eq!(bad("0", value), ("PMI_SIZE", value.to_owned()));
    }
}

#[test]
fn shards_are_written_as_rank_and_world() {
    for text in ["0/1", "7/8", " 7 / 8 "] {
        let parsed: Shard = text.parse().expect(text);
        assert_eq!(parsed.to_string(), text.replace(' ', ""));
    }
    for text in ["", "3", "1/2/3", "-1/2", "+1/2", "a/b", "1/"] {
        let bad = OrderError::BadShard {
            text: text.to_owned(),
        };
        assert_eq!(text.parse::<Shard>(), Err(bad));
    }
    assert_eq!("0/0".parse::<Shard>(), Err(OrderError::WorldZero));
    let outside = OrderError::RankOutsideWorld { rank: 2, world: 2 };
    assert_eq!("2/2".parse::<Shard>(), Err(outside));
}
