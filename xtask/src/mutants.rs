//! Known bugs of other projects, put into our code one at a time: a test must fail for each.
//!
//! `mutants.toml` lists them. They go into a copy of the tree, never into the tree itself.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

use crate::run_program::{cargo, program, root, target_dir};
use crate::simcuda::copy;
use crate::step_runner::{Outcome, StepResult};
use crate::test_steps::FULL;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MutantList {
    mutant: Vec<Mutant>,
}

/// One bug.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutant {
    /// What goes wrong.
    name: String,
    /// The file to change.
    file: PathBuf,
    /// Text that occurs exactly once in the file.
    find: String,
    /// What replaces it.
    replace: String,
    /// The package whose test must fail.
    package: String,
    /// The test target: a name, or `lib`.
    test: String,
    /// Runs only the tests whose name contains this.
    #[serde(default)]
    filter: String,
}

impl Mutant {
    /// Identifies the tests that must detect the mutant.
    fn tests(&self) -> String {
        format!("{} {} {}", self.package, self.test, self.filter)
    }

    /// The file's text, in which `find` occurs exactly once.
    fn source(&self, tree: &Path) -> anyhow::Result<String> {
        let source = fs::read_to_string(tree.join(&self.file))
            .with_context(|| format!("cannot read {}", self.file.display()))?;
        let count = source.matches(&self.find).count();
        ensure!(
            count == 1,
            "`find` must occur once in {}, not {count} times",
            self.file.display()
        );
        Ok(source)
    }
}

/// Time limit of a test on the unchanged tree.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// How a test binary ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TestResult {
    Passed,
    Failed,
    TimedOut,
}

fn read_list() -> anyhow::Result<Vec<Mutant>> {
    let path = root().join("xtask/mutants.toml");
    let text = fs::read_to_string(&path).context("cannot read xtask/mutants.toml")?;
    let list: MutantList = toml::from_str(&text).context("xtask/mutants.toml is not valid")?;
    Ok(list.mutant)
}

/// Checks that every mutant can be applied, without building anything.
pub(crate) fn check_list() -> StepResult {
    let mut wrong = Vec::new();
    for mutant in read_list()? {
        if let Err(error) = mutant.source(root()) {
            wrong.push(format!("{}: {error:#}", mutant.name));
        }
    }
    ensure!(wrong.is_empty(), "mutants.toml:\n{}", wrong.join("\n"));
    Ok(Outcome::Passed)
}

/// Tries all mutants whose name contains `filter`.
pub(crate) fn run(filter: &str) -> StepResult {
    let tree = copy_tree().context("cannot copy the tree")?;
    // How long each test takes on the unchanged tree.
    let mut baselines = HashMap::new();
    let mut survivors = Vec::new();
    let mut mutants = read_list()?;
    mutants.retain(|mutant| mutant.name.contains(filter));
    ensure!(!mutants.is_empty(), "no mutant matches `{filter}`");
    for mutant in &mutants {
        match try_mutant(&tree, mutant, &mut baselines) {
            Ok(how) => println!("killed    {} ({how})", mutant.name),
            Err(error) => {
                println!("SURVIVED  {}: {error:#}", mutant.name);
                survivors.push(&*mutant.name);
            }
        }
    }
    ensure!(survivors.is_empty(), "not killed: {}", survivors.join(", "));
    println!("{} mutants killed", mutants.len());
    Ok(Outcome::Passed)
}

/// Copies all files that git tracks or would add.
fn copy_tree() -> anyhow::Result<PathBuf> {
    let tree = target_dir().join("mutants/tree");
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    let list = "ls-files -z --cached --others --exclude-standard";
    let listed = program("git", list.split(' ')).output();
    let listed = listed.context("cannot start git")?;
    ensure!(listed.status.success(), "git ls-files failed");
    for name in String::from_utf8(listed.stdout)?.split_terminator('\0') {
        let (source, target) = (root().join(name), tree.join(name));
        // Git also lists files that were deleted from the work tree.
        if source.exists() {
            fs::create_dir_all(target.parent().expect("the tree is a folder"))?;
            copy(&source, &target)?;
        }
    }
    Ok(tree)
}

/// How the mutant was killed. An error if it survived or could not be tried.
fn try_mutant(
    tree: &Path,
    mutant: &Mutant,
    baselines: &mut HashMap<String, Duration>,
) -> anyhow::Result<&'static str> {
    let source = mutant.source(tree)?;
    let baseline = match baselines.get(&mutant.tests()) {
        Some(baseline) => *baseline,
        None => {
            let baseline = run_unchanged(tree, mutant).context("without the mutant")?;
            *baselines.entry(mutant.tests()).or_insert(baseline)
        }
    };
    let path = tree.join(&mutant.file);
    fs::write(&path, source.replace(&mutant.find, &mutant.replace))?;
    // A test that takes ten times as long hangs.
    let result = run_test(tree, mutant, baseline * 10 + Duration::from_secs(20));
    fs::write(&path, source)?;
    match result? {
        TestResult::Failed => Ok("a test failed"),
        TestResult::TimedOut => Ok("a test hung"),
        TestResult::Passed => bail!("all tests passed"),
    }
}

/// How long the test takes on the unchanged tree, where it must pass.
fn run_unchanged(tree: &Path, mutant: &Mutant) -> anyhow::Result<Duration> {
    build_test(tree, mutant)?;
    let start = Instant::now();
    match run_test(tree, mutant, TIME_LIMIT)? {
        TestResult::Passed => Ok(start.elapsed()),
        TestResult::Failed => bail!("the test fails:\n{}", last_output()?),
        TestResult::TimedOut => bail!("the test takes more than {} s", TIME_LIMIT.as_secs()),
    }
}

/// Runs the test's binary directly, so that one that hangs can be killed.
fn run_test(tree: &Path, mutant: &Mutant, limit: Duration) -> anyhow::Result<TestResult> {
    let binary = build_test(tree, mutant)?;
    let mut command = Command::new(&binary);
    if !mutant.filter.is_empty() {
        command.arg(&mutant.filter);
    }
    let package = package_folder(tree, &mutant.package)?;
    let output = File::create(output_file())?;
    let child = command
        .current_dir(&package)
        .env("CARGO_MANIFEST_DIR", &package)
        .env("RUST_BACKTRACE", "0")
        .env(FULL.0, FULL.1)
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .with_context(|| format!("cannot start {}", binary.display()))?;
    wait(child, limit)
}

fn output_file() -> PathBuf {
    target_dir().join("mutants/output.txt")
}

/// The end of the last test's output, where its failures are.
fn last_output() -> anyhow::Result<String> {
    let bytes = fs::read(output_file()).context("cannot read the test's output")?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(40)..].join("\n"))
}

fn build_test(tree: &Path, mutant: &Mutant) -> anyhow::Result<PathBuf> {
    let mut command = cargo("test --no-run --color never -p");
    command.arg(&mutant.package);
    match mutant.test.as_str() {
        "lib" => command.arg("--lib"),
        name => command.args(["--test", name]),
    };
    let built = command
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", target_dir().join("mutants/target"))
        .output()
        .context("cannot start cargo")?;
    let messages = String::from_utf8_lossy(&built.stderr);
    ensure!(built.status.success(), "it does not compile:\n{messages}");
    // Cargo prints `Executable tests/name.rs (path)`.
    let path = messages
        .lines()
        .filter(|line| line.trim_start().starts_with("Executable "))
        .find_map(|line| line.rsplit_once('(')?.1.strip_suffix(')'))
        .context("cargo printed no test binary")?;
    Ok(tree.join(path))
}

/// The folder of a package, where cargo would run its tests.
fn package_folder(tree: &Path, package: &str) -> anyhow::Result<PathBuf> {
    let line = format!("name = \"{package}\"");
    for entry in fs::read_dir(tree.join("crates"))? {
        let folder = entry?.path();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        if manifest.lines().any(|found| found == line) {
            return Ok(folder);
        }
    }
    bail!("no package is named `{package}`")
}

/// Waits for the process, and kills it at the limit.
fn wait(mut child: Child, limit: Duration) -> anyhow::Result<TestResult> {
    let deadline = Instant::now() + limit;
    loop {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(TestResult::Passed),
            Some(_) => return Ok(TestResult::Failed),
            None if Instant::now() >= deadline => {
                child.kill()?;
                child.wait()?;
                return Ok(TestResult::TimedOut);
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}
