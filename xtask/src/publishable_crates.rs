//! Checks that the public crates can be published: what their manifests say and which files they carry.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use serde::Deserialize;

use crate::run_program::{cargo, root, run};
use crate::step_runner::{Outcome, StepResult};

/// What users install. These crates and all that they need are public.
const ROOTS: [&str; 2] = ["pinlane", "pinlane-cli"];

/// The address of the sources, once there is one. Manifests name no other.
const REPOSITORY: Option<&str> = None;

/// Files that a package may have beside those in `FOLDERS`.
const FILES: [&str; 7] = [
    ".cargo_vcs_info.json",
    "Cargo.lock",
    "Cargo.toml",
    "Cargo.toml.orig",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
];

const FOLDERS: [&str; 3] = ["src/", "examples/", "profiles/"];

/// What `cargo metadata` says about the workspace.
#[derive(Deserialize)]
struct WorkspaceMetadata {
    packages: Vec<Manifest>,
}

#[derive(Deserialize)]
struct Manifest {
    name: String,
    version: String,
    manifest_path: String,
    /// The registries that it may go to: `None` means any.
    publish: Option<Vec<String>>,
    description: Option<String>,
    license: Option<String>,
    repository: Option<String>,
    homepage: Option<String>,
    documentation: Option<String>,
    dependencies: Vec<Requirement>,
}

/// A dependency as a manifest states it.
#[derive(Deserialize)]
struct Requirement {
    name: String,
    req: String,
    kind: Option<String>,
}

/// Fails if a public crate could not be published, or a private one could.
pub(crate) fn check() -> StepResult {
    let packages = read()?;
    let public = public_crates(&packages);
    let mut wrong = wrong_manifests(&packages, &public);
    for package in packages.iter().filter(|p| public.contains(&*p.name)) {
        wrong.extend(wrong_files(package)?);
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(Outcome::Passed)
}

/// Packs the public crates, without the build that verifies them: the release workflow does that.
pub(crate) fn pack() -> StepResult {
    let packages = read()?;
    let mut package = cargo("package --no-verify --allow-dirty --quiet");
    for name in public_crates(&packages) {
        package.args(["--package", name]);
    }
    run(&mut package)
}

fn read() -> anyhow::Result<Vec<Manifest>> {
    let output = cargo("metadata --format-version 1 --no-deps").output()?;
    ensure!(output.status.success(), "cargo metadata failed");
    let metadata: WorkspaceMetadata = serde_json::from_slice(&output.stdout)?;
    Ok(metadata.packages)
}

/// The roots and every crate of the workspace that they need.
fn public_crates(packages: &[Manifest]) -> BTreeSet<&str> {
    let by_name: BTreeMap<&str, &Manifest> = packages.iter().map(|p| (&*p.name, p)).collect();
    let mut public = BTreeSet::new();
    let mut open = ROOTS.to_vec();
    while let Some(name) = open.pop() {
        let Some((name, package)) = by_name.get_key_value(name) else {
            continue;
        };
        if public.insert(*name) {
            let needed = package.dependencies.iter().filter(|d| !d.is_dev());
            open.extend(needed.map(|d| &*d.name));
        }
    }
    public
}

fn wrong_manifests(packages: &[Manifest], public: &BTreeSet<&str>) -> Vec<String> {
    let members: BTreeSet<&str> = packages.iter().map(|p| &*p.name).collect();
    let mut wrong = Vec::new();
    for package in packages {
        let name = &package.name;
        for address in [
            &package.repository,
            &package.homepage,
            &package.documentation,
        ] {
            if let Some(address) = address.as_deref().filter(|a| Some(*a) != REPOSITORY) {
                wrong.push(format!("{name}: {address} is not where Pinlane is"));
            }
        }
        if !public.contains(&**name) {
            if package.publish.as_ref().is_none_or(|to| !to.is_empty()) {
                wrong.push(format!(
                    "{name}: no public crate needs it; set publish = false"
                ));
            }
            continue;
        }
        if package.publish.is_some() {
            wrong.push(format!(
                "{name}: a public crate needs it; remove publish = false"
            ));
        }
        if package.description.is_none() || package.license.is_none() {
            wrong.push(format!("{name}: needs a description and a license"));
        }
        let inside = package.dependencies.iter();
        for dependency in inside.filter(|d| members.contains(&*d.name)) {
            let expected = match dependency.is_dev() {
                true => "*".to_owned(),
                false => format!("={}", package.version),
            };
            let Requirement {
                name: used, req, ..
            } = dependency;
            if *req != expected {
                wrong.push(format!(
                    "{name}: {used} has version {req}, expected {expected}"
                ));
            }
        }
    }
    wrong
}

impl Requirement {
    /// A dev-dependency has a path only, so that cargo leaves it out of the package.
    fn is_dev(&self) -> bool {
        self.kind.as_deref() == Some("dev")
    }
}

/// Files that a package should not have, and those that it lacks.
fn wrong_files(package: &Manifest) -> anyhow::Result<Vec<String>> {
    let name = &package.name;
    let output = cargo("package --list --allow-dirty --package")
        .arg(name)
        .output()?;
    ensure!(output.status.success(), "cargo package --list: {name}");
    let text = String::from_utf8(output.stdout)?;
    let files: BTreeSet<&str> = text.lines().collect();
    let folder = Path::new(&package.manifest_path).parent();
    let folder = folder.context("a manifest is in a folder")?;
    let mut wrong = Vec::new();
    for file in &files {
        if !FILES.contains(file) && !FOLDERS.iter().any(|folder| file.starts_with(folder)) {
            wrong.push(format!("{name}: {file} does not belong into the package"));
        }
        if file.ends_with(".rs") {
            for included in included_files(&fs::read_to_string(folder.join(file))?) {
                let path = join(file, included);
                if path.is_none_or(|path| !files.contains(&*path)) {
                    wrong.push(format!("{name}: {file} includes {included}, not packaged"));
                }
            }
        }
    }
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        if !files.contains(licence) {
            wrong.push(format!("{name}: lacks {licence}"));
        } else if fs::read(folder.join(licence))? != fs::read(root().join(licence))? {
            wrong.push(format!(
                "{name}: {licence} differs from the one at the root"
            ));
        }
    }
    Ok(wrong)
}

/// The paths in `include_str!("…")` and `include_bytes!("…")`.
fn included_files(source: &str) -> Vec<&str> {
    let after = ["include_str!(\"", "include_bytes!(\""];
    let found = after
        .into_iter()
        .flat_map(|call| source.split(call).skip(1));
    found.filter_map(|rest| rest.split('"').next()).collect()
}

/// The path of `included` as `file` names it; `None` if it is outside of the package.
fn join(file: &str, included: &str) -> Option<String> {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in included.split('/') {
        match part {
            ".." => drop(parts.pop()?),
            "." => (),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Manifests of `pinlane`, a crate that it needs and one that it does not.
    fn workspace(change: impl FnOnce(&mut Vec<Manifest>)) -> Vec<String> {
        let manifest = |name: &str, publish, needs: &[(&str, &str, Option<&str>)]| Manifest {
            name: name.to_owned(),
            version: "1.2.0".to_owned(),
            manifest_path: String::new(),
            publish,
            description: Some("text".to_owned()),
            license: Some("MIT".to_owned()),
            repository: None,
            homepage: None,
            documentation: None,
            dependencies: needs
                .iter()
                .map(|(name, req, kind)| Requirement {
                    name: (*name).to_owned(),
                    req: (*req).to_owned(),
                    kind: kind.map(str::to_owned),
                })
                .collect(),
        };
        let needs = [("a", "=1.2.0", None), ("b", "*", Some("dev"))];
        let mut packages = vec![
            manifest("pinlane", None, &needs),
            manifest("a", None, &[("libc", "^0.2", None)]),
            manifest("b", Some(Vec::new()), &[]),
        ];
        change(&mut packages);
        wrong_manifests(&packages, &public_crates(&packages))
    }

    #[test]
    fn manifests_that_can_be_published_pass() {
        assert_eq!(workspace(|_| ()), Vec::<String>::new());
    }

    #[test]
    fn each_defect_of_a_manifest_is_found() {
        type Change = fn(&mut Vec<Manifest>);
        let cases: [(Change, &str); 6] = [
            (|p| p[1].publish = Some(Vec::new()), "a: a public crate"),
            (|p| p[2].publish = None, "b: no public crate"),
            (|p| p[0].description = None, "pinlane: needs a description"),
            (
                |p| p[2].homepage = Some("https://example.com".to_owned()),
                "b: https://example.com",
            ),
            (
                |p| p[0].dependencies[0].req = "*".to_owned(),
                "pinlane: a has version *",
            ),
            (
                |p| p[0].dependencies[1].req = "=1.2.0".to_owned(),
                "pinlane: b has version =1.2.0",
            ),
        ];
        for (change, expected) in cases {
            let wrong = workspace(change);
            assert_eq!(wrong.len(), 1, "{expected}: {wrong:?}");
            assert!(wrong[0].starts_with(expected), "{wrong:?}");
        }
    }

    #[test]
    fn included_files_are_named_as_cargo_lists_them() {
        let source = r#"include_str!("../x.toml"), include_bytes!("y")"#;
        assert_eq!(included_files(source), ["../x.toml", "y"]);
        assert_eq!(
            join("src/a/b.rs", "../x.toml").as_deref(),
            Some("src/x.toml")
        );
        assert_eq!(join("src/b.rs", "../../x.toml"), None);
    }
}
