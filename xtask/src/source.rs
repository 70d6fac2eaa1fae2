//! Reads the Rust source of a crate: its modules, what they import, the types they define.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A crate's modules without test code, the root first.
pub(crate) struct CrateSource {
    files: Vec<ModuleFile>,
}

/// A module in a file of its own.
struct ModuleFile {
    file: PathBuf,
    /// Empty for the root.
    path: Vec<String>,
    tokens: Vec<TokenTree>,
}

/// A top-level module that uses an item of another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Import {
    pub(crate) importer: String,
    pub(crate) imported: String,
    pub(crate) file: PathBuf,
}

/// The name under which an item defined in the crate root counts as a module.
pub(crate) const ROOT: &str = "the crate root";

impl CrateSource {
    /// Reads the crate in `folder`.
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Self> {
        let read = |file: &Path| fs::read_to_string(folder.join("src").join(file)).ok();
        Self::read_with(&read).with_context(|| format!("in {}", folder.display()))
    }

    /// Follows the `mod` items from `lib.rs` and `main.rs`. `read` returns a file of `src/`.
    fn read_with(read: &dyn Fn(&Path) -> Option<String>) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        for root in ["lib.rs", "main.rs"].map(Path::new) {
            if let Some(text) = read(root) {
                add_module(&mut files, read, root.to_owned(), Vec::new(), &text)?;
            }
        }
        if files.is_empty() {
            bail!("neither src/lib.rs nor src/main.rs exists");
        }
        Ok(Self { files })
    }

    /// The names of the top-level modules.
    pub(crate) fn modules(&self) -> BTreeSet<String> {
        let names = self.files.iter().filter_map(|file| file.path.first());
        names.cloned().collect()
    }

    /// What top-level modules use of each other, by `use` or by a path in the code.
    pub(crate) fn imports(&self) -> BTreeSet<Import> {
        let (modules, exports) = (self.modules(), self.root_exports());
        let mut imports = BTreeSet::new();
        for file in self.files.iter().filter(|file| !file.path.is_empty()) {
            let mut names = BTreeSet::new();
            collect_root_names(&file.tokens, file.path.len(), &mut names);
            let found = names.into_iter().flat_map(|name| {
                if modules.contains(&name) {
                    return vec![name];
                }
                match exports.get(&name) {
                    Some(modules) => modules.iter().cloned().collect(),
                    None if name == "*" => Vec::new(),
                    None => vec![ROOT.to_owned()],
                }
            });
            imports.extend(
                found
                    .filter(|module| *module != file.path[0])
                    .map(|imported| Import {
                        importer: file.path[0].clone(),
                        imported,
                        file: file.file.clone(),
                    }),
            );
        }
        imports
    }

    /// Maps the names in the crate root that modules define to these modules; `*` to all of them.
    /// Names of other crates map to none.
    fn root_exports(&self) -> BTreeMap<String, BTreeSet<String>> {
        let modules = self.modules();
        let mut exports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut add = |name: String, module: Option<&String>| {
            exports
                .entry("*".to_owned())
                .or_default()
                .extend(module.cloned());
            exports.entry(name).or_default().extend(module.cloned());
        };
        for file in &self.files {
            for (at, token) in file.tokens.iter().enumerate() {
                let rest = &file.tokens[at + 1..];
                if file.path.is_empty() && is_ident(token, "use") {
                    for (path, name) in use_paths(rest) {
                        let first = path
                            .iter()
                            .find(|part| !matches!(part.as_str(), "crate" | "self"));
                        add(name, first.filter(|first| modules.contains(*first)));
                    }
                } else if is_ident(token, "macro_rules")
                    && let [_, TokenTree::Ident(name), ..] = rest
                {
                    add(name.to_string(), file.path.first());
                }
            }
        }
        exports
    }

    /// Every struct, enum, trait, type alias and union at the top level of a file, with the file.
    pub(crate) fn types(&self) -> Vec<(String, &Path)> {
        let mut types = Vec::new();
        for file in &self.files {
            for pair in file.tokens.windows(2) {
                let [TokenTree::Ident(keyword), TokenTree::Ident(name)] = pair else {
                    continue;
                };
                let keyword = keyword.to_string();
                if ["struct", "enum", "trait", "type", "union"].contains(&keyword.as_str()) {
                    types.push((name.to_string(), file.file.as_path()));
                }
            }
        }
        types
    }
}

/// Adds a module and those that it declares.
fn add_module(
    files: &mut Vec<ModuleFile>,
    read: &dyn Fn(&Path) -> Option<String>,
    file: PathBuf,
    path: Vec<String>,
    text: &str,
) -> anyhow::Result<()> {
    let tokens: TokenStream = text
        .parse()
        .map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))?;
    let tokens = without_test_items(tokens);
    let declared: Vec<String> = tokens
        .windows(3)
        .filter_map(|tokens| match tokens {
            [keyword, TokenTree::Ident(name), end]
                if is_ident(keyword, "mod") && is_punct(end, ';') =>
            {
                Some(name.to_string())
            }
            _ => None,
        })
        .collect();
    let folder: PathBuf = path.iter().collect();
    files.push(ModuleFile {
        file,
        path: path.clone(),
        tokens,
    });
    for name in declared {
        let path: Vec<String> = path.iter().chain([&name]).cloned().collect();
        let candidates = [
            folder.join(format!("{name}.rs")),
            folder.join(&name).join("mod.rs"),
        ];
        let found = candidates
            .into_iter()
            .find_map(|file| read(&file).map(|text| (file, text)));
        let (file, text) =
            found.with_context(|| format!("no file for module {}", path.join("::")))?;
        add_module(files, read, file, path, &text)?;
    }
    Ok(())
}

fn is_ident(token: &TokenTree, text: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == text)
}

fn is_punct(token: &TokenTree, char: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == char)
}

/// What follows `::`, if the tokens start with it.
fn after_colons(tokens: &[TokenTree]) -> Option<&[TokenTree]> {
    match tokens {
        [first, second, rest @ ..] if is_punct(first, ':') && is_punct(second, ':') => Some(rest),
        _ => None,
    }
}

/// Removes items under `#[cfg(test)]`, or any `cfg` that names `test` without `not`.
fn without_test_items(tokens: TokenStream) -> Vec<TokenTree> {
    let mut kept = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_test = is_punct(&token, '#')
            && matches!(tokens.peek(), Some(TokenTree::Group(attribute)) if is_cfg_test(attribute.stream()));
        if !is_test {
            kept.push(token);
            continue;
        }
        for token in tokens.by_ref() {
            let is_body =
                matches!(&token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
            if is_body || is_punct(&token, ';') {
                break;
            }
        }
    }
    kept
}

fn is_cfg_test(attribute: TokenStream) -> bool {
    let text = attribute.to_string().replace(' ', "");
    text.starts_with("cfg(")
        && !text.contains("not(")
        && text
            .split(|char: char| !char.is_alphanumeric())
            .any(|word| word == "test")
}

/// Collects the first name behind each `crate::`, and behind each `super::` that reaches the root.
/// `depth` is the number of modules around the tokens.
fn collect_root_names(tokens: &[TokenTree], depth: usize, names: &mut BTreeSet<String>) {
    let mut at = 0;
    while at < tokens.len() {
        let mut rest = &tokens[at..];
        let mut supers = 0;
        while let [first, after @ ..] = rest
            && is_ident(first, "super")
            && let Some(after) = after_colons(after)
        {
            supers += 1;
            rest = after;
        }
        let rooted = match rest {
            _ if supers > 0 => (supers == depth).then_some(rest),
            [first, after @ ..] if is_ident(first, "crate") => after_colons(after),
            _ => None,
        };
        if let Some(path) = rooted {
            names.extend(
                use_paths(path)
                    .into_iter()
                    .filter_map(|(path, _)| path.into_iter().next()),
            );
        }
        if let TokenTree::Group(group) = &tokens[at] {
            let inline_module = at >= 2
                && is_ident(&tokens[at - 2], "mod")
                && group.delimiter() == Delimiter::Brace;
            let inner = without_test_items(group.stream());
            collect_root_names(&inner, depth + usize::from(inline_module), names);
        }
        at += 1 + 3 * supers;
    }
}

/// The paths at the start of the tokens, as after `use`: each with the name that it introduces.
fn use_paths(tokens: &[TokenTree]) -> Vec<(Vec<String>, String)> {
    let (mut path, mut rest) = (Vec::new(), tokens);
    loop {
        match rest {
            [TokenTree::Ident(part), after @ ..] => {
                path.push(part.to_string());
                rest = after;
            }
            [star, ..] if is_punct(star, '*') => path.push("*".to_owned()),
            [TokenTree::Group(group), ..] if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let mut paths = Vec::new();
                for tree in inner.split(|token| is_punct(token, ',')) {
                    for (tail, name) in use_paths(tree) {
                        paths.push(([&path[..], &tail[..]].concat(), name));
                    }
                }
                return paths;
            }
            _ => {}
        }
        match after_colons(rest) {
            Some(after) => rest = after,
            None => break,
        }
    }
    let name = match rest {
        [keyword, TokenTree::Ident(alias), ..] if is_ident(keyword, "as") => alias.to_string(),
        _ => path.last().cloned().unwrap_or_default(),
    };
    if path.is_empty() {
        Vec::new()
    } else {
        vec![(path, name)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(files: &[(&str, &str)]) -> CrateSource {
        let read = |wanted: &Path| {
            let found = files.iter().find(|(file, _)| Path::new(file) == wanted);
            found.map(|(_, text)| (*text).to_owned())
        };
        CrateSource::read_with(&read).expect("a valid crate")
    }

    fn imports(files: &[(&str, &str)]) -> Vec<String> {
        let imports = source(files).imports().into_iter();
        imports
            .map(|import| format!("{} {}", import.importer, import.imported))
            .collect()
    }

    /// What module `a` imports in a crate with modules `a`, `b` and `c`, where the root exports
    /// `b::Thing`.
    fn imports_of(a: &str) -> Vec<String> {
        imports(&[
            (
                "lib.rs",
                "mod a; mod b; mod c; pub use b::{Thing, Other as Renamed}; struct Own;",
            ),
            ("a.rs", a),
            ("b.rs", ""),
            ("c/mod.rs", ""),
        ])
    }

    #[test]
    fn every_kind_of_path_is_an_import() {
        for text in [
            "use crate::b;",
            "use crate::b::Thing;",
            "use crate::b::{self, Thing};",
            "use crate::{b::Thing};",
            "use super::b;",
            "pub(crate) use crate::b as other;",
            "fn f() { crate::b::g() }",
            "fn f() { let x = vec![crate::b::g()]; }",
            "type T = Vec<crate::b::Thing>;",
            "mod inner { use super::super::b; }",
            "use crate::Thing;",
            "use crate::{Renamed};",
            "use crate::*;",
        ] {
            assert_eq!(imports_of(text), ["a b"], "{text}");
        }
        assert_eq!(imports_of("use crate::{b, c::{D, E}};"), ["a b", "a c"]);
        assert_eq!(imports_of("use crate::Own;"), [format!("a {ROOT}")]);
    }

    #[test]
    fn text_tests_and_the_module_itself_are_not_imports() {
        for text in [
            "// use crate::b;",
            "/// See [`crate::b`].\nfn f() {}",
            "fn f() { print(\"crate::b\") }",
            "#[cfg(test)] mod tests { use crate::b; }",
            "#[cfg(test)] use crate::b;",
            "#[cfg(all(test, not_loom))] mod tests { use crate::b; }",
            "mod inner { #[cfg(test)] mod tests { use crate::b; } }",
            "use crate::a::Thing;",
            "pub(crate) fn f() {}",
            "mod inner { use super::b; }",
        ] {
            assert_eq!(imports_of(text), [""; 0], "{text}");
        }
        assert_eq!(imports_of("#[cfg(not(test))] use crate::b;"), ["a b"]);
    }

    #[test]
    fn files_count_for_their_top_level_module() {
        let files = [
            ("main.rs", "mod a; mod b; #[cfg(test)] mod missing;"),
            ("a/mod.rs", "mod deep;"),
            ("a/deep.rs", "mod deeper; use super::super::b;"),
            ("a/deep/deeper.rs", "use super::b;"),
            ("b.rs", "use crate::a::deep;"),
        ];
        assert_eq!(imports(&files), ["a b", "b a"]);
    }

    #[test]
    fn macros_belong_to_the_module_that_defines_them() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "fn f() { crate::shout!() }"),
            ("b.rs", "#[macro_export] macro_rules! shout { () => {} }"),
        ];
        assert_eq!(imports(&files), ["a b"]);
    }

    #[test]
    fn a_module_without_a_file_is_an_error() {
        let read = |file: &Path| (file == Path::new("lib.rs")).then(|| "mod a;".to_owned());
        let error = CrateSource::read_with(&read)
            .map(drop)
            .expect_err("no a.rs");
        assert_eq!(error.to_string(), "no file for module a");
    }

    #[test]
    fn types_are_found_at_the_top_level_only() {
        let text = "pub struct A; enum B {} impl Tr for A { type C = u8; } fn f() { struct D; }
                    pub(crate) trait E {} type F = u8; #[cfg(test)] struct G;";
        let source = source(&[("lib.rs", text)]);
        let names: Vec<String> = source.types().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["A", "B", "E", "F"]);
    }
}
