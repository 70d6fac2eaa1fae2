//! `cargo xtask`: checks, tests and other tasks of development.

#![forbid(unsafe_code)]

mod layers;
mod module_maps;
mod mutants;
mod parse_crate;
mod publishable_crates;
mod python;
mod release;
mod run_program;
mod setup;
mod simcuda;
mod step_runner;
mod test_steps;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use run_program::{cargo, program, run};
use step_runner::{Outcome, StepResult, Steps};

/// Check, test and maintain Pinlane
#[derive(Parser)]
#[command(bin_name = "cargo xtask", disable_help_subcommand = true)]
enum Task {
    /// Check format, lints, docs and structure, and run the fast tests
    Check(StepFilter),
    /// Run every check and every test in full; install what that needs
    Test(StepFilter),
    /// Build the Python extension and run its tests
    Python {
        /// Arguments for pytest
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Put known bugs into a copy of the tree; a test must fail for each
    Mutants {
        /// Try only the mutants whose name contains this text
        #[arg(default_value = "", hide_default_value = true)]
        filter: String,
    },
    /// Print the order of a crate's modules for xtask/layers.toml
    Layers {
        /// The crate, such as pinlane-driver
        package: String,
    },
    /// Run random programs on the simulated GPU, one per seed
    Seeds {
        /// Number of seeds [default: 1000000]
        #[arg(long, value_name = "N")]
        count: Option<u64>,
        /// First seed [default: 0]
        #[arg(long, value_name = "N")]
        first: Option<u64>,
        /// Run only this seed
        #[arg(long, value_name = "N")]
        seed: Option<u64>,
    },
    /// Compile the CUDA kernels to PTX (requires nvidia-cuda-nvrtc from PyPI)
    Kernels,
    /// Check that a release's tag, manifests and changelog name the same version
    ReleaseCheck {
        /// The tag, such as v0.1.0
        tag: String,
    },
    /// Pack the tool with completions, manual pages and licences into target/archive
    Archive {
        /// The tool, built in the profile release
        tool: PathBuf,
        /// What it was built for, such as x86_64-unknown-linux-gnu
        target: String,
    },
}

#[derive(clap::Args)]
struct StepFilter {
    /// Run only the steps whose name contains this text
    #[arg(default_value = "", hide_default_value = true)]
    filter: String,
}

fn main() -> ExitCode {
    let result = match Task::parse() {
        Task::Check(StepFilter { filter }) => Ok(check(&filter)),
        Task::Test(StepFilter { filter }) => Ok(test(&filter)),
        Task::Python { arguments } => succeeded(python::tests(&arguments)),
        Task::Mutants { filter } => succeeded(mutants::run(&filter)),
        Task::Layers { package } => succeeded(layers::print_order(&package)),
        Task::Seeds { count, first, seed } => succeeded(seeds(count, first, seed)),
        Task::Kernels => succeeded(run(&mut program("python3", ["crates/kernels/compile.py"]))),
        Task::ReleaseCheck { tag } => succeeded(release::check(&tag)),
        Task::Archive { tool, target } => succeeded(release::archive(&tool, &target)),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn succeeded(result: StepResult) -> anyhow::Result<bool> {
    Ok(matches!(result?, Outcome::Passed))
}

fn seeds(count: Option<u64>, first: Option<u64>, seed: Option<u64>) -> StepResult {
    let mut command = cargo("run --release -p pinlane-torture --bin seeds --");
    for (option, value) in [("--count", count), ("--first", first), ("--seed", seed)] {
        if let Some(value) = value {
            command.arg(option).arg(value.to_string());
        }
    }
    run(&mut command)
}

/// What a contributor runs after an edit.
fn check(filter: &str) -> bool {
    let mut steps = Steps::new(filter);
    lint(&mut steps);
    steps.run("fast tests", cargo_step("test --workspace"));
    steps.finish()
}

/// The whole proof, cheap steps first.
fn test(filter: &str) -> bool {
    let mut steps = Steps::new(filter);
    lint(&mut steps);
    let cudarc = "clippy -p pinlane-core --features cudarc --all-targets -- -D warnings";
    steps.run("clippy, feature cudarc", cargo_step(cudarc));
    steps.run("cargo package", publishable_crates::pack);
    steps.run("build simcuda", simcuda::build);
    steps.run("set up Python", setup::python);
    steps.run("set up a browser", setup::install_browser);
    steps.run("tests", test_steps::full);
    steps.run("tests, feature cudarc", test_steps::feature_cudarc);
    steps.run("Python package", || python::tests(&[]));
    steps.run("loom models", test_steps::loom);
    steps.run("conformance over simcuda", simcuda::conformance);
    steps.run("random programs", test_steps::random_programs);
    steps.run("mutants", || mutants::run(""));
    steps.run("miri", test_steps::miri);
    steps.finish()
}

/// The steps that run no tests.
fn lint(steps: &mut Steps<'_>) {
    steps.run("format", cargo_step("fmt --all --check"));
    steps.run("layers", layers::check);
    steps.run("ARCHITECTURE.md", layers::check_architecture);
    steps.run("module maps", module_maps::check);
    steps.run("type names", layers::check_type_names);
    steps.run("mutant list", mutants::check_list);
    steps.run("packages", publishable_crates::check);
    let clippy = "clippy --workspace --all-targets -- -D warnings";
    steps.run("clippy", cargo_step(clippy));
    steps.run("docs", || {
        // A broken link is an error.
        run(cargo("doc --workspace --no-deps --quiet").env("RUSTDOCFLAGS", "-D warnings"))
    });
}

fn cargo_step(args: &str) -> impl FnOnce() -> StepResult {
    move || run(&mut cargo(args))
}
