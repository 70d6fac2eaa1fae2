//! `cargo xtask`: everything that proves the tree, and the few chores beside it.
//!
//! One file a group of steps; `plan.rs` runs steps and tells what became of them, `process.rs`
//! starts programs.

#![forbid(unsafe_code)]

mod chores;
mod lints;
mod miri;
mod mutants;
mod plan;
mod process;
mod python;
mod simcuda;
mod tests;

use std::process::ExitCode;

use plan::Plan;

const HELP: &str = "\
cargo xtask COMMAND

  test [TEXT]        everything that proves the tree, step by step
                     (TEXT: only the steps whose name holds it)
  mutants [TEXT]     put known bugs into a copy of the tree; a test must fail for each
                     (TEXT: only those whose name holds it)
  seeds [--count N]  random programs on the simulated GPU, a million unless told
                     (--first N: start there; --seed N: that one only)
  kernels            compile the CUDA kernels to PTX anew (needs nvidia-cuda-nvrtc from PyPI)
  help               this text
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["test"] => Ok(test("")),
        ["test", filter] => Ok(test(filter)),
        ["mutants"] => Ok(only("mutants", || mutants::run(""))),
        ["mutants", filter] => Ok(only("mutants", || mutants::run(filter))),
        ["seeds", ref words @ ..] => chores::seeds(words),
        ["kernels"] => chores::kernels(),
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(true)
        }
        _ => return wrong_words(),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(1)
        }
    }
}

fn wrong_words() -> ExitCode {
    eprint!("{HELP}");
    ExitCode::from(2)
}

/// All steps, cheap ones first. Each runs, whatever became of the ones before.
fn test(filter: &str) -> bool {
    let mut plan = Plan::new(filter);
    plan.step("format", lints::format);
    plan.step("clippy", lints::clippy);
    plan.step("clippy, feature cudarc", lints::clippy_cudarc);
    plan.step("docs", lints::docs);
    plan.step("stand-in for libcuda", simcuda::build);
    plan.step("python environment", python::prepare);
    plan.step("tests", tests::workspace);
    plan.step("tests, feature cudarc", tests::feature_cudarc);
    plan.step("loom models", tests::loom);
    plan.step("conformance over the stand-in", simcuda::conformance);
    plan.step("random programs", tests::torture);
    plan.step("mutants", || mutants::run(""));
    plan.step("miri", miri::run);
    plan.finish()
}

/// A single step, told in the same way.
fn only(name: &str, work: impl FnOnce() -> plan::Result) -> bool {
    let mut plan = Plan::new("");
    plan.step(name, work);
    plan.finish()
}
