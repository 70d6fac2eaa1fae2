//! Reads the Rust source of a crate: its modules, what they import, the types they define.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, ensure};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A crate's modules without test code.
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

const TYPE_KEYWORDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

impl CrateSource {
    /// Reads the crate in `folder`.
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Self> {
        let read = |file: &Path| fs::read_to_string(folder.join("src").join(file)).ok();
        Self::read_with(&read).with_context(|| format!("in {}", folder.display()))
    }

    /// Follows the `mod` items from `lib.rs` and `main.rs`. `read` returns a file of `src/`.
    fn read_with(read: &dyn Fn(&Path) -> Option<String>) -> anyhow::Result<Self> {
        let mut source = Self { files: Vec::new() };
        for root in ["lib.rs", "main.rs"].map(Path::new) {
            if let Some(text) = read(root) {
                source.add_module(read, root.to_owned(), Vec::new(), &text)?;
            }
        }
        ensure!(
            !source.files.is_empty(),
            "neither src/lib.rs nor src/main.rs exists"
        );
        Ok(source)
    }

    /// Adds a module and those that it declares.
    fn add_module(
        &mut self,
        read: &dyn Fn(&Path) -> Option<String>,
        file: PathBuf,
        path: Vec<String>,
        text: &str,
    ) -> anyhow::Result<()> {
        let tokens = text.parse();
        let tokens = tokens.map_err(|error| anyhow!("{}: {error}", file.display()))?;
        let tokens = without_test_items(tokens);
        let declared = |tokens: &[TokenTree]| match tokens {
            [keyword, TokenTree::Ident(name), end]
                if is_ident(keyword, "mod") && is_punct(end, ';') =>
            {
                Some(name.to_string())
            }
            _ => None,
        };
        let declared: Vec<String> = tokens.windows(3).filter_map(declared).collect();
        let folder: PathBuf = path.iter().collect();
        for name in &declared {
            let path: Vec<String> = path.iter().chain([name]).cloned().collect();
            let mut candidates = [format!("{name}.rs"), format!("{name}/mod.rs")]
                .map(|file| folder.join(file))
                .into_iter();
            let found = candidates.find_map(|file| Some((read(&file)?, file)));
            let missing = || format!("no file for module {}", path.join("::"));
            let (text, file) = found.with_context(missing)?;
            self.add_module(read, file, path, &text)?;
        }
        self.files.push(ModuleFile { file, path, tokens });
        Ok(())
    }

    /// The names of the top-level modules.
    pub(crate) fn modules(&self) -> BTreeSet<String> {
        let names = self.files.iter().filter_map(|file| file.path.first());
        names.cloned().collect()
    }

    /// What top-level modules use of each other, by `use` or by a path in the code.
    pub(crate) fn imports(&self) -> BTreeSet<Import> {
        let exports = self.root_names();
        let mut imports = BTreeSet::new();
        for ModuleFile { file, path, tokens } in &self.files {
            let Some(importer) = path.first() else {
                continue;
            };
            let mut names = BTreeSet::new();
            collect_root_names(tokens, path.len(), &mut names);
            let root = || BTreeSet::from([ROOT.to_owned()]);
            let modules = |name| exports.get(&name).cloned().unwrap_or_else(root);
            let used = names.into_iter().flat_map(modules);
            imports.extend(used.filter(|used| used != importer).map(|imported| Import {
                importer: importer.clone(),
                imported,
                file: file.clone(),
            }));
        }
        imports
    }

    /// Maps the names in the crate root that modules define to these modules; `*` to all that it exports.
    /// Names of other crates map to none.
    fn root_names(&self) -> BTreeMap<String, BTreeSet<String>> {
        let modules = self.modules();
        let own = |name: &String| (name.clone(), BTreeSet::from([name.clone()]));
        let mut names: BTreeMap<_, BTreeSet<String>> = modules.iter().map(own).collect();
        names.insert("*".to_owned(), BTreeSet::new());
        let mut add = |name: String, module: Option<&String>| {
            for name in ["*".to_owned(), name] {
                names.entry(name).or_default().extend(module.cloned());
            }
        };
        for file in &self.files {
            for (at, token) in file.tokens.iter().enumerate() {
                let rest = &file.tokens[at + 1..];
                if file.path.is_empty() && is_ident(token, "use") {
                    for (path, name) in use_paths(rest) {
                        let mut parts = path.iter();
                        let first = parts.find(|part| !["crate", "self"].contains(&part.as_str()));
                        add(name, first.filter(|first| modules.contains(*first)));
                    }
                } else if is_ident(token, "macro_rules")
                    && let [_, TokenTree::Ident(name), ..] = rest
                {
                    add(name.to_string(), file.path.first());
                }
            }
        }
        names
    }

    /// Every struct, enum, trait, type alias and union at the top level of a file, with the file.
    pub(crate) fn types(&self) -> Vec<(String, &Path)> {
        let types = self.files.iter().flat_map(|file| {
            let pairs = file.tokens.windows(2);
            pairs.filter_map(|pair| match pair {
                [TokenTree::Ident(keyword), TokenTree::Ident(name)]
                    if TYPE_KEYWORDS.contains(&&*keyword.to_string()) =>
                {
                    Some((name.to_string(), file.file.as_path()))
                }
                _ => None,
            })
        });
        types.collect()
    }
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
    let mut words = text.split(|char: char| !char.is_alphanumeric());
    text.starts_with("cfg(") && !text.contains("not(") && words.any(|word| word == "test")
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
            let paths = use_paths(path).into_iter();
            names.extend(paths.filter_map(|(path, _)| path.into_iter().next()));
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
                let trees = inner.split(|token| is_punct(token, ','));
                let whole =
                    |(tail, name): (Vec<String>, String)| ([&path[..], &tail].concat(), name);
                return trees.flat_map(use_paths).map(whole).collect();
            }
            _ => {}
        }
        match after_colons(rest) {
            Some(after) => rest = after,
            None => break,
        }
    }
    let Some(last) = path.last() else {
        return Vec::new();
    };
    let name = match rest {
        [keyword, TokenTree::Ident(alias), ..] if is_ident(keyword, "as") => alias.to_string(),
        _ => last.clone(),
    };
    vec![(path, name)]
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

    /// What module `a` imports beside `b` and `c`, where the root exports `b::Thing`.
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
