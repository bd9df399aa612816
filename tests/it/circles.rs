//! No two source files need each other. The imports are read off the sources, name by name: a name that a module
//! re-exports belongs to the file that defines it, and a re-export itself is no import.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A module's path below the crate, such as `["plan", "digest"]`.
type ModulePath = Vec<String>;

/// A module with a file of its own.
#[derive(Default)]
struct Module {
    /// Its file, relative to `src/`.
    file: String,
    /// The items that it defines.
    items: BTreeSet<String>,
    /// Local names and the paths that they mean, re-exports included.
    names: BTreeMap<String, ModulePath>,
    /// The modules whose every name it has by `use …::*`.
    globs: Vec<ModulePath>,
    /// The paths that it needs: private imports, and paths written out where they are used.
    needs: Vec<ModulePath>,
}

struct Tree {
    modules: BTreeMap<ModulePath, Module>,
}

impl Tree {
    /// Reads every file under `src`, test modules excepted.
    fn read(src: &Path) -> Self {
        let mut modules = BTreeMap::new();
        let mut dirs = vec![src.to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(&dir).unwrap() {
                let path = entry.unwrap().path();
                let inside = path.strip_prefix(src).unwrap().with_extension("");
                let mut name: ModulePath =
                    inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
                if name.iter().any(|part| matches!(part.as_str(), "tests" | "testing")) {
                    continue;
                }
                if path.is_dir() {
                    dirs.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    if matches!(name.last().map(String::as_str), Some("mod" | "lib" | "main")) {
                        let last = name.pop().unwrap();
                        if last == "main" {
                            continue;
                        }
                    }
                    let file = path.strip_prefix(src).unwrap().display().to_string();
                    modules.insert(name, (file, fs::read_to_string(&path).unwrap()));
                }
            }
        }
        Self::new(modules)
    }

    /// Takes file names and sources by module path.
    fn new(sources: BTreeMap<ModulePath, (String, String)>) -> Self {
        let mut modules = BTreeMap::new();
        for (path, (file, text)) in sources {
            let mut module = Module { file, ..Module::default() };
            let tokens = text.parse::<TokenStream>().unwrap();
            module.scan(&tokens.into_iter().collect::<Vec<_>>(), &path, true);
            modules.insert(path, module);
        }
        Self { modules }
    }

    /// The file that defines what a path names; `None` for other crates and prelude names.
    fn file_of(&self, path: &[String], depth: usize) -> Option<&str> {
        let modules = |path: &[String]| self.modules.get(path);
        let known = (0..=path.len()).rev().find(|&n| modules(&path[..n]).is_some())?;
        let module = &self.modules[&path[..known]];
        let Some(name) = path.get(known) else { return Some(&module.file) };
        if depth > 16 || module.items.contains(name) {
            return Some(&module.file);
        }
        let follow = |target: &ModulePath, rest: &[String]| {
            self.file_of(&[target.as_slice(), rest].concat(), depth + 1)
        };
        if let Some(target) = module.names.get(name) {
            return follow(target, &path[known + 1..]);
        }
        let by_glob = module.globs.iter().find(|glob| {
            modules(glob).is_some_and(|other| other.items.contains(name) || other.names.contains_key(name))
        });
        match by_glob {
            Some(glob) => follow(glob, &path[known..]),
            // What a macro defines. At the root of the crate the first name is a crate's.
            None => (known > 0).then_some(module.file.as_str()),
        }
    }

    /// For each file, the files that it needs.
    fn needs(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut needs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for module in self.modules.values() {
            let needed = needs.entry(&module.file).or_default();
            needed.extend(module.needs.iter().filter_map(|path| self.file_of(path, 0)));
            needed.remove(module.file.as_str());
        }
        needs
    }

    /// The groups of files that need each other, directly or by way of others.
    fn circles(&self) -> Vec<Vec<&str>> {
        let needs = self.needs();
        let reach = |from: &str| {
            let mut reached = BTreeSet::new();
            let mut left: Vec<&str> = needs[from].iter().copied().collect();
            while let Some(file) = left.pop() {
                if reached.insert(file) {
                    left.extend(needs.get(file).into_iter().flatten());
                }
            }
            reached
        };
        let reached: BTreeMap<&str, BTreeSet<&str>> = needs.keys().map(|file| (*file, reach(file))).collect();
        let mut circles: BTreeSet<Vec<&str>> = BTreeSet::new();
        for (file, others) in &reached {
            if others.contains(file) {
                circles
                    .insert(others.iter().copied().filter(|other| reached[other].contains(file)).collect());
            }
        }
        circles.into_iter().collect()
    }
}

impl Module {
    /// Gathers items, names and needs of a stretch of code. `top` says that items in it are the module's own.
    fn scan(&mut self, tokens: &[TokenTree], path: &ModulePath, top: bool) {
        let mut at = 0;
        let (mut exported, mut for_tests) = (false, false);
        while let Some(token) = tokens.get(at) {
            match token {
                TokenTree::Ident(word) => match word.to_string().as_str() {
                    "pub" => {
                        exported = true;
                        at += 1;
                        if matches!(tokens.get(at), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis)
                        {
                            at += 1;
                        }
                        continue;
                    }
                    // Not the bounds of an `impl Trait + use<'a>`.
                    "use" if !tokens.get(at + 1).is_some_and(|token| is_punct(token, '<')) => {
                        let end = at + tokens[at..].iter().position(|token| is_punct(token, ';')).unwrap();
                        if !for_tests {
                            self.import(&tokens[at + 1..end], path, &[], exported);
                        }
                        at = end;
                        (exported, for_tests) = (false, false);
                    }
                    "mod" if for_tests => {
                        // Skip the body, or the semicolon.
                        at += 2;
                        (exported, for_tests) = (false, false);
                    }
                    "fn" | "struct" | "enum" | "trait" | "const" | "static" | "type" | "union" | "mod" => {
                        if let (true, Some(TokenTree::Ident(name))) = (top, tokens.get(at + 1)) {
                            self.items.insert(name.to_string());
                        }
                        if let (true, "mod", Some(token)) =
                            (top, word.to_string().as_str(), tokens.get(at + 2))
                            && is_punct(token, ';')
                        {
                            self.items.remove(&tokens[at + 1].to_string());
                        }
                        (exported, for_tests) = (false, false);
                    }
                    _ => {
                        let mut segments = vec![word.to_string()];
                        while let (Some(a), Some(b), Some(TokenTree::Ident(next))) =
                            (tokens.get(at + 1), tokens.get(at + 2), tokens.get(at + 3))
                            && is_punct(a, ':')
                            && is_punct(b, ':')
                        {
                            segments.push(next.to_string());
                            at += 3;
                        }
                        if segments.len() > 1 {
                            self.needs.push(absolute(&segments, path));
                        }
                    }
                },
                TokenTree::Group(group) => {
                    let inner: Vec<_> = group.stream().into_iter().collect();
                    let text = group.stream().to_string();
                    if group.delimiter() == Delimiter::Bracket && text.starts_with("cfg (test)")
                        || text.starts_with("cfg(test)")
                    {
                        for_tests = true;
                    } else {
                        self.scan(&inner, path, false);
                        if group.delimiter() == Delimiter::Brace {
                            (exported, for_tests) = (false, false);
                        }
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            at += 1;
        }
    }

    /// Takes in a tree of imports.
    fn import(&mut self, tree: &[TokenTree], path: &ModulePath, prefix: &[String], exported: bool) {
        let mut segments = prefix.to_vec();
        let mut alias = None;
        let mut at = 0;
        while let Some(token) = tree.get(at) {
            match token {
                TokenTree::Ident(word) if *word == "as" => {
                    alias = tree.get(at + 1).map(ToString::to_string);
                    at += 1;
                }
                TokenTree::Ident(word) => segments.push(word.to_string()),
                TokenTree::Group(group) => {
                    let inner: Vec<_> = group.stream().into_iter().collect();
                    for branch in
                        inner.split(|token| is_punct(token, ',')).filter(|branch| !branch.is_empty())
                    {
                        self.import(branch, path, &segments, exported);
                    }
                    return;
                }
                TokenTree::Punct(punct) if punct.as_char() == '*' => {
                    let target = absolute(&segments, path);
                    if !exported {
                        self.needs.push(target.clone());
                    }
                    self.globs.push(target);
                    return;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            at += 1;
        }
        if segments.last().is_some_and(|last| last == "self") {
            segments.pop();
        }
        let target = absolute(&segments, path);
        let local = alias.unwrap_or_else(|| segments.last().cloned().unwrap_or_default());
        // A module imported whole is needed where one of its names is used.
        if !exported {
            self.needs.push(target.clone());
        }
        self.names.insert(local, target);
    }
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

/// A path as it is counted from the crate. What begins with no keyword begins in the module itself.
fn absolute(segments: &[String], module: &ModulePath) -> ModulePath {
    let mut base = module.clone();
    let mut rest = segments;
    match rest.first().map(String::as_str) {
        Some("crate") => {
            base.clear();
            rest = &rest[1..];
        }
        Some("self") => rest = &rest[1..],
        _ => {
            while let Some("super") = rest.first().map(String::as_str) {
                base.pop();
                rest = &rest[1..];
            }
        }
    }
    base.extend(rest.iter().cloned());
    base
}

#[test]
fn no_files_need_each_other() {
    let tree = Tree::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let needs = tree.needs();
    let mut found = Vec::new();
    for circle in tree.circles() {
        for file in &circle {
            let needed: Vec<_> = needs[file].iter().filter(|other| circle.contains(other)).collect();
            found.push(format!("{file} needs {needed:?}"));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[cfg(test)]
mod reader {
    use super::*;

    #[track_caller]
    fn check(sources: &[(&str, &str)], circles: &[&[&str]]) {
        let module = |file: &str| -> ModulePath {
            let name = file.trim_end_matches(".rs").trim_end_matches("/mod");
            if name == "lib" { Vec::new() } else { name.split('/').map(str::to_owned).collect() }
        };
        let sources =
            sources.iter().map(|(file, text)| (module(file), ((*file).to_owned(), (*text).to_owned())));
        assert_eq!(Tree::new(sources.collect()).circles(), circles);
    }

    #[test]
    fn re_exports_are_followed_and_need_nothing() {
        let parent = ("a/mod.rs", "mod b; mod c; pub use b::B; pub(crate) use c::*;");
        check(&[parent, ("a/b.rs", "pub struct B;"), ("a/c.rs", "use super::B; fn c() {}")], &[]);
        check(
            &[
                parent,
                ("a/b.rs", "pub struct B; fn f() { super::c() }"),
                ("a/c.rs", "use super::B; fn c() {}"),
            ],
            &[&["a/b.rs", "a/c.rs"]],
        );
    }

    #[test]
    fn a_parent_that_calls_its_child_must_not_define_what_the_child_needs() {
        let child = ("a/b.rs", "use super::{Shared as S}; pub fn run(_: S) {}");
        check(&[("a/mod.rs", "mod b; pub struct Shared; pub use b::run;"), child], &[]);
        check(
            &[("a/mod.rs", "mod b; pub struct Shared; fn f() { b::run() }"), child],
            &[&["a/b.rs", "a/mod.rs"]],
        );
    }

    #[test]
    fn paths_in_macros_count_and_tests_do_not() {
        let a = ("a.rs", "fn f() { println!(\"{}\", crate::b::X) }");
        check(
            &[("lib.rs", "mod a; mod b;"), a, ("b.rs", "use crate::a; pub const X: u8 = a::f();")],
            &[&["a.rs", "b.rs"]],
        );
        check(
            &[
                ("lib.rs", "mod a; mod b;"),
                a,
                ("b.rs", "pub const X: u8 = 1; #[cfg(test)] mod tests { use crate::a::f; }"),
            ],
            &[],
        );
    }
}
