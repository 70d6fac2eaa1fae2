//! What the release workflow needs: a check of the versions, and the archive with the tool.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::run_program::{program, root, run, target_dir};
use crate::step_runner::{Outcome, StepResult};

/// Fails unless the tag, the manifests and the changelog name the same version.
pub(crate) fn check(tag: &str) -> StepResult {
    let read = |name: &str| fs::read_to_string(root().join(name)).context(name.to_owned());
    check_texts(
        tag,
        &read("Cargo.toml")?,
        &read("pyproject.toml")?,
        &read("CHANGELOG.md")?,
    )?;
    Ok(Outcome::Passed)
}

fn check_texts(tag: &str, cargo: &str, pyproject: &str, changelog: &str) -> anyhow::Result<()> {
    let cargo: toml::Table = cargo.parse().context("Cargo.toml")?;
    let version = cargo["workspace"]["package"]["version"].as_str();
    let version = version.context("Cargo.toml has no workspace.package.version")?;
    ensure!(
        tag == format!("v{version}"),
        "the tag is {tag}, but Cargo.toml has version {version}"
    );
    let pyproject: toml::Table = pyproject.parse().context("pyproject.toml")?;
    let project = pyproject.get("project").context("no [project]")?;
    match project.get("version").and_then(toml::Value::as_str) {
        Some(python) => ensure!(
            python == version,
            "pyproject.toml has version {python}, Cargo.toml {version}"
        ),
        // Maturin takes it from Cargo.toml.
        None => {
            let dynamic = project.get("dynamic").and_then(toml::Value::as_array);
            let names = dynamic.into_iter().flatten();
            ensure!(
                names
                    .into_iter()
                    .any(|name| name.as_str() == Some("version")),
                "pyproject.toml states no version and does not list it as dynamic"
            );
        }
    }
    let heading = format!("## {version}");
    let is_heading = |line: &str| {
        let rest = line.strip_prefix(&heading);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    ensure!(
        changelog.lines().any(is_heading),
        "CHANGELOG.md has no section `{heading}`"
    );
    Ok(())
}

/// Packs a built tool with its completions, manual pages and licences. `tool` must run on this machine.
pub(crate) fn archive(tool: &Path, target: &str) -> StepResult {
    let version = env!("CARGO_PKG_VERSION");
    let name = format!("pinlane-{version}-{target}");
    let out = target_dir().join("archive");
    let folder = out.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(folder.join("completions"))?;
    fs::copy(tool, folder.join("pinlane")).with_context(|| tool.display().to_string())?;
    let tool: PathBuf = folder.join("pinlane");
    run(program("strip", ["--strip-all"]).arg(&tool))?;
    for (shell, file) in [
        ("bash", "pinlane.bash"),
        ("fish", "pinlane.fish"),
        ("zsh", "_pinlane"),
    ] {
        let output = program(&tool, ["completions", shell]).output()?;
        ensure!(
            output.status.success(),
            "pinlane completions {shell} failed"
        );
        fs::write(folder.join("completions").join(file), output.stdout)?;
    }
    run(program(&tool, ["man", "--output"]).arg(folder.join("man")))?;
    for file in ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "CHANGELOG.md"] {
        fs::copy(root().join(file), folder.join(file))?;
    }
    // The same bytes whoever packs it, apart from times.
    run(program("tar", ["--sort=name", "--owner=0", "--group=0"])
        .args(["--numeric-owner", "-czf"])
        .arg(out.join(format!("{name}.tar.gz")))
        .arg("-C")
        .args([&out, Path::new(&name)]))
}

#[cfg(test)]
mod tests {
    use super::check_texts;

    const CARGO: &str = "[workspace.package]\nversion = \"1.2.0\"";
    const DYNAMIC: &str = "[project]\ndynamic = [\"version\"]";

    #[test]
    fn versions_that_agree_pass() {
        let stated = "[project]\nversion = \"1.2.0\"";
        for python in [DYNAMIC, stated] {
            check_texts("v1.2.0", CARGO, python, "## 1.2.0 (2026-01-02)\n").expect(python);
        }
    }

    #[test]
    fn each_difference_is_found() {
        let other = "[project]\nversion = \"1.1.0\"";
        let log = "## 1.2.0\n";
        for (tag, python, log, expected) in [
            ("v1.2.1", DYNAMIC, log, "the tag is v1.2.1"),
            ("1.2.0", DYNAMIC, log, "the tag is 1.2.0"),
            ("v1.2.0", other, log, "pyproject.toml has version 1.1.0"),
            ("v1.2.0", "[project]", log, "pyproject.toml states no"),
            ("v1.2.0", DYNAMIC, "## 1.2.01\n", "CHANGELOG.md has no"),
        ] {
            let error = check_texts(tag, CARGO, python, log).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }
}
