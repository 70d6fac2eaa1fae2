//! Known bugs of other projects, put into our own code one at a time: a test must fail for each.
//!
//! The list is `mutants.toml`. A copy of the tree is mutated, never the tree itself.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

use crate::plan::{Done, Result};
use crate::process::{cargo, program, root, target};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutant: Vec<Mutant>,
}

/// One bug.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutant {
    /// What goes wrong.
    name: String,
    /// The file that it is put into.
    file: PathBuf,
    /// Text that occurs there exactly once.
    find: String,
    /// What stands there instead.
    replace: String,
    /// The package whose test must fail,
    package: String,
    /// and the test target: a name, or `lib`.
    test: String,
    /// Only tests whose name holds this.
    #[serde(default)]
    filter: String,
}

impl Mutant {
    /// Which tests it is up against.
    fn tests(&self) -> String {
        format!("{} {} {}", self.package, self.test, self.filter)
    }
}

/// How long a test may take on the tree as it is.
const PATIENCE: Duration = Duration::from_secs(600);

/// How a test binary ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Passed,
    Failed,
    TimedOut,
}

/// All mutants whose name holds `filter`.
pub(crate) fn run(filter: &str) -> Result {
    let path = root().join("xtask/mutants.toml");
    let text = fs::read_to_string(&path).context("xtask/mutants.toml cannot be read")?;
    let list: List = toml::from_str(&text).context("xtask/mutants.toml is not valid")?;
    let tree = copy_tree().context("the tree cannot be copied")?;
    // Tests that pass without any mutant, and how long they take.
    let mut sound = HashMap::new();
    let (mut killed, mut wrong) = (0, Vec::new());
    for mutant in list
        .mutant
        .iter()
        .filter(|mutant| mutant.name.contains(filter))
    {
        match try_mutant(&tree, mutant, &mut sound) {
            Ok(how) => {
                println!("killed    {} ({how})", mutant.name);
                killed += 1;
            }
            Err(error) => {
                println!("SURVIVED  {}: {error:#}", mutant.name);
                wrong.push(mutant.name.as_str());
            }
        }
    }
    ensure!(wrong.is_empty(), "not killed: {}", wrong.join(", "));
    ensure!(killed > 0, "no mutant is called like `{filter}`");
    println!("{killed} mutants killed");
    Ok(Done::Passed)
}

/// A copy of all files that git knows or would add, in a folder of its own.
fn copy_tree() -> anyhow::Result<PathBuf> {
    let tree = target().join("mutants/tree");
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    let listed = program(
        "git",
        [
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ],
    )
    .output()
    .context("git does not start")?;
    ensure!(listed.status.success(), "git ls-files failed");
    for name in String::from_utf8(listed.stdout)?.split_terminator('\0') {
        let (from, to) = (root().join(name), tree.join(name));
        // Listed but deleted in the work tree.
        if !from.exists() {
            continue;
        }
        fs::create_dir_all(to.parent().expect("a file lies in a folder"))?;
        fs::copy(&from, &to).with_context(|| format!("copying {name}"))?;
    }
    Ok(tree)
}

/// How the mutant was killed. An error when it was not, or could not be tried.
fn try_mutant(
    tree: &Path,
    mutant: &Mutant,
    sound: &mut HashMap<String, Duration>,
) -> anyhow::Result<&'static str> {
    let path = tree.join(&mutant.file);
    let whole = fs::read_to_string(&path)
        .with_context(|| format!("{} cannot be read", mutant.file.display()))?;
    let count = whole.matches(&mutant.find).count();
    ensure!(count == 1, "`find` occurs {count} times, not once");
    let usual = match sound.get(&mutant.tests()) {
        Some(usual) => *usual,
        None => {
            let usual = run_sound(tree, mutant).context("without the mutant")?;
            *sound.entry(mutant.tests()).or_insert(usual)
        }
    };
    fs::write(&path, whole.replace(&mutant.find, &mutant.replace))?;
    // A test that takes ten times as long as usual hangs.
    let mutated = run_test(tree, mutant, usual * 10 + Duration::from_secs(20));
    fs::write(&path, whole)?;
    match mutated? {
        Ended::Failed => Ok("a test failed"),
        Ended::TimedOut => Ok("a test hung"),
        Ended::Passed => bail!("all tests passed"),
    }
}

/// A test that fails anyway kills nothing: how long it takes to pass on the tree as it is.
fn run_sound(tree: &Path, mutant: &Mutant) -> anyhow::Result<Duration> {
    build_test(tree, mutant)?;
    let start = Instant::now();
    match run_test(tree, mutant, PATIENCE)? {
        Ended::Passed => Ok(start.elapsed()),
        Ended::Failed => bail!("the test fails:\n{}", end_of(&output_file())?),
        Ended::TimedOut => bail!("the test takes longer than {} s", PATIENCE.as_secs()),
    }
}

/// Builds the test and runs its binary itself, so that one that hangs can be ended.
fn run_test(tree: &Path, mutant: &Mutant, patience: Duration) -> anyhow::Result<Ended> {
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
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .with_context(|| format!("{} does not start", binary.display()))?;
    wait(child, patience)
}

/// Where the test that ran last has printed to.
fn output_file() -> PathBuf {
    target().join("mutants/output.txt")
}

/// The last lines of a test's output: its failures, and what they said.
fn end_of(output: &Path) -> anyhow::Result<String> {
    let bytes = fs::read(output).context("the test's output cannot be read")?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(40)..].join("\n"))
}

fn build_test(tree: &Path, mutant: &Mutant) -> anyhow::Result<PathBuf> {
    let mut command = cargo([
        "test",
        "--no-run",
        "--color",
        "never",
        "-p",
        &mutant.package,
    ]);
    match mutant.test.as_str() {
        "lib" => command.arg("--lib"),
        name => command.args(["--test", name]),
    };
    let built = command
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", target().join("mutants/target"))
        .output()
        .context("cargo does not start")?;
    let said = String::from_utf8_lossy(&built.stderr);
    ensure!(built.status.success(), "it does not compile:\n{said}");
    // Cargo says `Executable tests/name.rs (path)`.
    let path = said
        .lines()
        .filter(|line| line.trim_start().starts_with("Executable "))
        .find_map(|line| line.rsplit_once('(')?.1.strip_suffix(')'))
        .context("cargo names no test binary")?;
    Ok(tree.join(path))
}

/// The folder of a package, in which cargo would run its tests.
fn package_folder(tree: &Path, package: &str) -> anyhow::Result<PathBuf> {
    let line = format!("name = \"{package}\"");
    for entry in fs::read_dir(tree.join("crates"))? {
        let folder = entry?.path();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        if manifest.lines().any(|found| found == line) {
            return Ok(folder);
        }
    }
    bail!("no package is called {package}")
}

/// Waits for the process, and ends it when it takes too long.
fn wait(mut child: Child, patience: Duration) -> anyhow::Result<Ended> {
    let deadline = Instant::now() + patience;
    loop {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(Ended::Passed),
            Some(_) => return Ok(Ended::Failed),
            None if Instant::now() >= deadline => {
                child.kill()?;
                child.wait()?;
                return Ok(Ended::TimedOut);
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}
