//! Checks the structure of the workspace: no crate or top-level module uses one above it in
//! `layers.toml`, ARCHITECTURE.md lists the modules that exist, and no crate gives two types the same
//! name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::Deserialize;

use crate::parse_crate::{CrateSource, Import};
use crate::run_program::{cargo, root};
use crate::step_runner::{Outcome, StepResult};

/// Type names that a crate may use more than once.
const COMMON_NAMES: [&str; 3] = ["Args", "Inner", "State"];

/// Share of a crate's types that may have the name of another one, in percent.
const REPEATED_NAMES_PERCENT_MAX: usize = 2;

/// `layers.toml`. An order lists rows from the bottom up; the names in a row are separated by
/// spaces. They do not use each other unless the row is in parentheses: `(device memory stream)`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Layers {
    /// The order of the crates.
    crates: Vec<String>,
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
        let folder = self.manifest_path.parent();
        CrateSource::read(folder.expect("a manifest is in a folder"))
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
    let crates = packages.iter().map(|package| package.name.clone());
    let mut wrong = check_order(&layers.crates, &crates.collect(), &dependencies(&packages));
    wrong.extend(check_crates(&packages, |package, source| {
        let order = layers.modules.get(package).map_or(&[][..], |rows| rows);
        check_order(order, &source.modules(), &source.imports())
    })?);
    let wrong = wrong.join("\n");
    ensure!(
        wrong.is_empty(),
        "the layers differ from xtask/layers.toml:\n{wrong}"
    );
    Ok(Outcome::Passed)
}

/// What `check` finds wrong with the crates.
fn check_crates(
    packages: &[Package],
    check: impl Fn(&str, &CrateSource) -> Vec<String>,
) -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    for package in packages {
        let problems = check(&package.name, &package.source()?).into_iter();
        wrong.extend(problems.map(|problem| format!("{}: {problem}", package.name)));
    }
    Ok(wrong)
}

/// Fails if a tree of modules in ARCHITECTURE.md differs from the modules of the crate.
pub(crate) fn check_architecture() -> StepResult {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md"))?;
    let mut wrong = Vec::new();
    for package in read()?.1 {
        let folder = package.name.trim_start_matches("pinlane-");
        if let Some(listed) = listed_modules(&text, folder) {
            let modules = package.source()?.modules();
            let missing = modules.difference(&listed);
            let unknown = listed.difference(&modules);
            wrong.extend(missing.map(|name| format!("crates/{folder}: `{name}` is not listed")));
            wrong.extend(unknown.map(|name| format!("crates/{folder}: no module `{name}`")));
        }
    }
    let wrong = wrong.join("\n");
    ensure!(wrong.is_empty(), "ARCHITECTURE.md is out of date:\n{wrong}");
    Ok(Outcome::Passed)
}

/// The modules in the tree below a crate's heading: names at the start of a line, up to two spaces.
/// Submodules are indented.
fn listed_modules(text: &str, folder: &str) -> Option<BTreeSet<String>> {
    let heading = format!("### `crates/{folder}/src`");
    let (_, section) = text.split_once(&heading)?;
    let (_, tree) = section.split_once("```text\n")?;
    let lines = tree.lines().take_while(|line| *line != "```");
    let rows = lines.filter_map(|line| line.strip_prefix(' ')?.split("  ").next());
    let names = rows.flat_map(|row| row.split([',', ' ', '/']));
    let modules = names.filter(|name| !["", "lib", "main"].contains(name));
    Some(modules.map(str::to_owned).collect())
}

/// The dependencies between crates of the workspace, without dev-dependencies.
fn dependencies(packages: &[Package]) -> BTreeSet<Import> {
    let names: BTreeSet<&String> = packages.iter().map(|package| &package.name).collect();
    let imports = packages.iter().flat_map(|package| {
        let used = package.dependencies.iter().filter(|dependency| {
            dependency.kind.as_deref() != Some("dev") && names.contains(&dependency.name)
        });
        used.map(|dependency| Import {
            importer: package.name.clone(),
            imported: dependency.name.clone(),
            file: "Cargo.toml".into(),
        })
    });
    imports.collect()
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
        let cyclic = names.starts_with('(') && names.ends_with(')');
        for name in names.trim_matches(['(', ')']).split_whitespace() {
            if rows.insert(name, (row, cyclic)).is_some() {
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
        let (Some(&(from, cyclic)), to) = (rows.get(&**importer), rows.get(&**imported)) else {
            continue;
        };
        if !to.is_some_and(|&(to, _)| to < from || (to == from && cyclic)) {
            let file = file.display();
            wrong.push(format!(
                "`{importer}` uses `{imported}`, which is not below it ({file})"
            ));
        }
    }
    wrong
}

/// Prints the order of a crate's modules for `layers.toml`, and the imports in cycles to stderr.
pub(crate) fn print_order(package: &str) -> StepResult {
    let (_, packages) = read()?;
    let found = packages.iter().find(|found| found.name == package);
    let source = found
        .with_context(|| format!("no package `{package}`"))?
        .source()?;
    let (modules, imports) = (source.modules(), source.imports());
    let order = find_order(modules.clone(), &imports);
    let acyclic = order.iter().map(|row| row.replace(['(', ')'], ""));
    for problem in check_order(&acyclic.collect::<Vec<_>>(), &modules, &imports) {
        eprintln!("{problem}");
    }
    println!("{package} = {order:#?}");
    Ok(Outcome::Passed)
}

/// Rows of nodes, each as far down as its imports allow. A cycle is a row in parentheses.
fn find_order(mut nodes: BTreeSet<String>, imports: &BTreeSet<Import>) -> Vec<String> {
    let reach = |node: &String| {
        let mut reached = BTreeSet::from([node]);
        let mut next = vec![node];
        while let Some(node) = next.pop() {
            for import in imports.iter().filter(|import| import.importer == *node) {
                if nodes.contains(&import.imported) && reached.insert(&import.imported) {
                    next.push(&import.imported);
                }
            }
        }
        (node.clone(), reached.into_iter().cloned().collect())
    };
    let reached: BTreeMap<String, BTreeSet<String>> = nodes.iter().map(reach).collect();
    let mut rows = Vec::new();
    while !nodes.is_empty() {
        // A node can come next if it is reached from all that it still reaches.
        let groups: BTreeSet<Vec<String>> = nodes
            .iter()
            .map(|node| (node, &reached[node] & &nodes))
            .filter(|(node, group)| group.iter().all(|other| reached[other].contains(*node)))
            .map(|(_, group)| group.into_iter().collect())
            .collect();
        nodes.retain(|node| !groups.iter().any(|group| group.contains(node)));
        let (single, cycles): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|group| group.len() == 1);
        if !single.is_empty() {
            rows.push(single.concat().join(" "));
        }
        rows.extend(cycles.iter().map(|group| format!("({})", group.join(" "))));
    }
    rows
}

/// Fails if too many types of a crate share their names.
pub(crate) fn check_type_names() -> StepResult {
    let (_, packages) = read()?;
    let wrong = check_crates(&packages, |_, source| repeated_names(&source.types()))?;
    ensure!(
        wrong.is_empty(),
        "types share a name:\n{}",
        wrong.join("\n")
    );
    Ok(Outcome::Passed)
}

/// The names that several types have, if there are too many of these types.
fn repeated_names(types: &[(String, &Path)]) -> Vec<String> {
    let mut files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, file) in types {
        if !COMMON_NAMES.contains(&name.as_str()) {
            let files = files.entry(name).or_default();
            files.push(file.display().to_string());
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
        let order = ["low", "left right", "top"];
        let nodes = ["low", "left", "right", "top"];
        let down = [("top", "left"), ("top", "low"), ("left", "low")];
        assert_eq!(check(&order, &nodes, &down), [""; 0]);
        let unknown = ("top", "unknown");
        for wrong in [("low", "left"), ("low", "top"), ("left", "right"), unknown] {
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
    fn modules_in_parentheses_may_use_each_other_but_nothing_higher() {
        let (order, nodes) = (["(a b)", "c d"], ["a", "b", "c", "d"]);
        let allowed = [("a", "b"), ("b", "a"), ("c", "a")];
        assert_eq!(check(&order, &nodes, &allowed), [""; 0]);
        for wrong in [("a", "c"), ("c", "d")] {
            assert_eq!(check(&order, &nodes, &[wrong]).len(), 1);
        }
    }

    #[test]
    fn an_order_is_found() {
        let find = |pairs| find_order(set(&["a", "b", "c", "d"]), &imports(pairs));
        assert_eq!(find(&[("a", "b"), ("b", "c")]), ["c d", "b", "a"]);
        let one_cycle = [("a", "b"), ("b", "a"), ("c", "b"), ("a", "d")];
        assert_eq!(find(&one_cycle), ["d", "(a b)", "c"]);
        let two_cycles = [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"), ("d", "a")];
        assert_eq!(find(&two_cycles), ["(a b)", "(c d)"]);
    }

    #[test]
    fn trees_of_modules_are_read() {
        let text = "### `crates/a/src`\n\n```text\n main, one, two/   text, more\n   deep/    inside\n \
                    three     text\n```\n### `crates/b/src`\n```text\n four\n```\n";
        let listed = |folder| listed_modules(text, folder);
        assert_eq!(listed("a"), Some(set(&["one", "two", "three"])));
        assert_eq!(listed("b"), Some(set(&["four"])));
        assert_eq!(listed("c"), None);
    }

    #[test]
    fn two_percent_of_the_types_may_share_names() {
        let types = |twins: usize, all: usize| -> Vec<(String, &'static Path)> {
            let name = |at| match at < twins {
                true => "Twin".to_owned(),
                false => format!("Type{at}"),
            };
            (0..all).map(|at| (name(at), Path::new("a.rs"))).collect()
        };
        assert_eq!(repeated_names(&types(2, 100)), [""; 0]);
        assert_eq!(repeated_names(&types(2, 99)), ["Twin in a.rs, a.rs"]);
        let common = ["a.rs", "b.rs"].map(|file| ("State".to_owned(), Path::new(file)));
        assert_eq!(repeated_names(&common), [""; 0]);
    }
}
