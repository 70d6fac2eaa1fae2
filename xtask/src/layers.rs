//! Checks the structure of the workspace against `layers.toml`: no crate or top-level module uses
//! one above it, and no crate gives two types the same name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::Deserialize;

use crate::command::{cargo, root};
use crate::source::{CrateSource, Import};
use crate::steps::{Outcome, StepResult};

/// Type names that a crate may use more than once.
const COMMON_NAMES: [&str; 3] = ["Args", "Inner", "State"];

/// Share of a crate's types that may have the name of another one, in percent.
const REPEATED_NAMES_PERCENT_MAX: usize = 2;

/// `layers.toml`. An order lists rows from the bottom up; the names in a row are separated by
/// spaces and do not know each other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Layers {
    /// The order of the crates.
    crates: Vec<String>,
    /// Crates that have no order of modules yet, and whose type names may repeat.
    #[serde(default)]
    pending: BTreeSet<String>,
    /// For each crate the order of its top-level modules.
    modules: BTreeMap<String, Vec<String>>,
}

/// What `cargo metadata` says about the workspace.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// `None` for a normal dependency.
    kind: Option<String>,
}

impl Package {
    fn source(&self) -> anyhow::Result<CrateSource> {
        CrateSource::read(
            self.manifest_path
                .parent()
                .expect("a manifest is in a folder"),
        )
    }
}

fn read() -> anyhow::Result<(Layers, Vec<Package>)> {
    let text = fs::read_to_string(root().join("xtask/layers.toml"))?;
    let layers = toml::from_str(&text).context("xtask/layers.toml is not valid")?;
    let output = cargo("metadata --format-version 1 --no-deps").output();
    let output = output.context("cannot start cargo")?;
    ensure!(output.status.success(), "cargo metadata failed");
    let metadata: Metadata = serde_json::from_slice(&output.stdout)?;
    Ok((layers, metadata.packages))
}

/// Fails if a crate or a top-level module imports upwards.
pub(crate) fn check() -> StepResult {
    let (layers, packages) = read()?;
    let crates = packages
        .iter()
        .map(|package| package.name.clone())
        .collect();
    let mut wrong = check_order(&layers.crates, &crates, &dependencies(&packages));
    for package in &packages {
        if layers.pending.contains(&package.name) {
            continue;
        }
        let source = package.source()?;
        let order = layers
            .modules
            .get(&package.name)
            .map_or(&[][..], |rows| rows);
        let problems = check_order(order, &source.modules(), &source.imports());
        wrong.extend(
            problems
                .iter()
                .map(|problem| format!("{}: {problem}", package.name)),
        );
    }
    ensure!(
        wrong.is_empty(),
        "the layers differ from xtask/layers.toml:\n{}",
        wrong.join("\n")
    );
    Ok(Outcome::Passed)
}

/// The dependencies between crates of the workspace, without dev-dependencies.
fn dependencies(packages: &[Package]) -> BTreeSet<Import> {
    let names: BTreeSet<&String> = packages.iter().map(|package| &package.name).collect();
    let mut imports = BTreeSet::new();
    for package in packages {
        for dependency in &package.dependencies {
            if dependency.kind.as_deref() != Some("dev") && names.contains(&dependency.name) {
                imports.insert(Import {
                    importer: package.name.clone(),
                    imported: dependency.name.clone(),
                    file: "Cargo.toml".into(),
                });
            }
        }
    }
    imports
}

/// What is wrong with the imports among `nodes`, given the order.
fn check_order(
    order: &[String],
    nodes: &BTreeSet<String>,
    imports: &BTreeSet<Import>,
) -> Vec<String> {
    let mut rows = BTreeMap::new();
    let mut wrong = Vec::new();
    for (row, names) in order.iter().enumerate() {
        for name in names.split_whitespace() {
            if rows.insert(name, row).is_some() {
                wrong.push(format!("`{name}` is listed twice"));
            }
        }
    }
    let missing = nodes
        .iter()
        .filter(|node| !rows.contains_key(node.as_str()));
    wrong.extend(missing.map(|node| format!("`{node}` is not listed")));
    for Import {
        importer,
        imported,
        file,
    } in imports
    {
        let (Some(from), to) = (rows.get(importer.as_str()), rows.get(imported.as_str())) else {
            continue;
        };
        if to.is_none_or(|to| from <= to) {
            let file = file.display();
            wrong.push(format!(
                "`{importer}` uses `{imported}`, which is not below it ({file})"
            ));
        }
    }
    wrong
}

/// Prints an order of a crate's modules for `layers.toml`, or the cycles that prevent one.
pub(crate) fn print_order(package: &str) -> StepResult {
    let (_, packages) = read()?;
    let found = packages.iter().find(|found| found.name == package);
    let source = found
        .with_context(|| format!("no package `{package}`"))?
        .source()?;
    match find_order(source.modules(), &source.imports()) {
        Ok(rows) => println!("{package} = {rows:#?}"),
        Err(cycles) => anyhow::bail!("the modules import each other:\n{}", list(&cycles)),
    }
    Ok(Outcome::Passed)
}

/// Rows of nodes, each as far down as its imports allow. Fails with the imports that form cycles.
fn find_order(
    mut nodes: BTreeSet<String>,
    imports: &BTreeSet<Import>,
) -> Result<Vec<String>, Vec<String>> {
    let mut rows = Vec::new();
    while !nodes.is_empty() {
        let is_free = |node: &&String| {
            let mut imports = imports.iter().filter(|import| import.importer == **node);
            imports.all(|import| !nodes.contains(&import.imported))
        };
        let row: Vec<String> = nodes.iter().filter(is_free).cloned().collect();
        if row.is_empty() {
            return Err(describe_cycles(nodes, imports));
        }
        nodes.retain(|node| !row.contains(node));
        rows.push(row.join(" "));
    }
    Ok(rows)
}

/// The imports among nodes that reach each other, one line for each pair.
fn describe_cycles(mut nodes: BTreeSet<String>, imports: &BTreeSet<Import>) -> Vec<String> {
    loop {
        let inside = imports
            .iter()
            .filter(|import| nodes.contains(&import.importer) && nodes.contains(&import.imported));
        let imported: BTreeSet<String> = inside
            .clone()
            .map(|import| import.imported.clone())
            .collect();
        if imported == nodes {
            let mut files: BTreeMap<_, Vec<String>> = BTreeMap::new();
            for Import {
                importer,
                imported,
                file,
            } in inside
            {
                let files = files.entry((importer, imported)).or_default();
                files.push(file.display().to_string());
            }
            return files
                .into_iter()
                .map(|((importer, imported), files)| {
                    format!("`{importer}` uses `{imported}` ({})", files.join(", "))
                })
                .collect();
        }
        // A node that no other one uses only leads into the cycles.
        nodes = imported;
    }
}

/// Fails if too many types of a crate share their names.
pub(crate) fn check_type_names() -> StepResult {
    let (layers, packages) = read()?;
    let mut wrong = Vec::new();
    for package in &packages {
        if !layers.pending.contains(&package.name) {
            let source = package.source()?;
            let problems = repeated_names(&source.types());
            wrong.extend(
                problems
                    .iter()
                    .map(|problem| format!("{}: {problem}", package.name)),
            );
        }
    }
    ensure!(wrong.is_empty(), "types share a name:\n{}", list(&wrong));
    Ok(Outcome::Passed)
}

/// The names that several types have, if there are too many of these types.
fn repeated_names(types: &[(String, &Path)]) -> Vec<String> {
    let mut files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, file) in types {
        if !COMMON_NAMES.contains(&name.as_str()) {
            files
                .entry(name)
                .or_default()
                .push(file.display().to_string());
        }
    }
    let all: usize = files.values().map(Vec::len).sum();
    files.retain(|_, files| files.len() > 1);
    let repeated: usize = files.values().map(Vec::len).sum();
    if repeated * 100 <= all * REPEATED_NAMES_PERCENT_MAX {
        return Vec::new();
    }
    let describe = |(name, files): (&str, Vec<String>)| format!("{name} in {}", files.join(", "));
    files.into_iter().map(describe).collect()
}

fn list(lines: &[impl Display]) -> String {
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn imports(pairs: &[(&str, &str)]) -> BTreeSet<Import> {
        let import = |(importer, imported): &(&str, &str)| Import {
            importer: (*importer).to_owned(),
            imported: (*imported).to_owned(),
            file: "a.rs".into(),
        };
        pairs.iter().map(import).collect()
    }

    fn check(order: &[&str], nodes: &[&str], pairs: &[(&str, &str)]) -> Vec<String> {
        let order: Vec<String> = order.iter().map(|row| (*row).to_owned()).collect();
        check_order(&order, &set(nodes), &imports(pairs))
    }

    #[test]
    fn imports_may_only_point_down() {
        let (order, nodes) = (
            ["low", "left right", "top"],
            ["low", "left", "right", "top"],
        );
        let down = [("top", "left"), ("top", "low"), ("left", "low")];
        assert_eq!(check(&order, &nodes, &down), [""; 0]);
        for wrong in [
            ("low", "left"),
            ("low", "top"),
            ("left", "right"),
            ("top", "unknown"),
        ] {
            let (importer, imported) = wrong;
            let expected = format!("`{importer}` uses `{imported}`, which is not below it (a.rs)");
            assert_eq!(check(&order, &nodes, &[wrong]), [expected]);
        }
    }

    #[test]
    fn every_node_is_listed_once() {
        assert_eq!(check(&["a"], &["a", "b"], &[]), ["`b` is not listed"]);
        assert_eq!(
            check(&["a", "b a"], &["a", "b"], &[]),
            ["`a` is listed twice"]
        );
    }

    #[test]
    fn dev_dependencies_may_point_upwards() {
        let json = r#"{"packages": [
            {"name": "low", "manifest_path": "", "dependencies": [
                {"name": "top", "kind": "dev"}, {"name": "serde", "kind": null}]},
            {"name": "top", "manifest_path": "", "dependencies": [
                {"name": "low", "kind": null}]}
        ]}"#;
        let metadata: Metadata = serde_json::from_str(json).expect("valid");
        let found: Vec<Import> = dependencies(&metadata.packages).into_iter().collect();
        assert_eq!(found.len(), 1);
        assert_eq!((&*found[0].importer, &*found[0].imported), ("top", "low"));
    }

    #[test]
    fn an_order_is_found_unless_there_is_a_cycle() {
        let nodes = set(&["a", "b", "c", "d"]);
        let found = find_order(nodes.clone(), &imports(&[("a", "b"), ("b", "c")]));
        assert_eq!(
            found,
            Ok(vec!["c d".to_owned(), "b".to_owned(), "a".to_owned()])
        );
        let found = find_order(nodes, &imports(&[("a", "b"), ("b", "a"), ("c", "b")]));
        let cycle = ["`a` uses `b` (a.rs)", "`b` uses `a` (a.rs)"].map(str::to_owned);
        assert_eq!(found, Err(cycle.to_vec()));
    }

    #[test]
    fn two_percent_of_the_types_may_share_names() {
        let types = |twins: usize, all: usize| -> Vec<(String, &'static Path)> {
            let name = |at| {
                if at < twins {
                    "Twin".to_owned()
                } else {
                    format!("Type{at}")
                }
            };
            (0..all).map(|at| (name(at), Path::new("a.rs"))).collect()
        };
        assert_eq!(repeated_names(&types(2, 100)), [""; 0]);
        assert_eq!(repeated_names(&types(2, 99)), ["Twin in a.rs, a.rs"]);
        let common = [
            ("State".to_owned(), Path::new("a.rs")),
            ("State".to_owned(), Path::new("b.rs")),
        ];
        assert_eq!(repeated_names(&common), [""; 0]);
    }
}
