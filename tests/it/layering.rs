//! The rules of docs/architecture.md, read off the sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The modules in pipeline order, as `lib.rs` lists them.
fn order() -> Vec<String> {
    let face = fs::read_to_string(sources().join("lib.rs")).unwrap();
    let module = |line: &str| {
        let line = line.strip_prefix("pub ").unwrap_or(line);
        Some(line.strip_prefix("mod ")?.strip_suffix(';')?.to_owned())
    };
    face.lines().filter_map(module).collect()
}

/// Every source file with the module it belongs to (empty for `lib.rs` and `main.rs`) and its code without comments.
fn files() -> Vec<(PathBuf, String, String)> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let mut paths = Vec::new();
    walk(&sources(), &mut paths);
    let read = |path: PathBuf| {
        let inside = path.strip_prefix(sources()).unwrap();
        let first = inside.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        let module = first.strip_suffix(".rs").unwrap_or(&first).to_owned();
        let module = if matches!(module.as_str(), "lib" | "main") { String::new() } else { module };
        let text = fs::read_to_string(&path).unwrap();
        let code = text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>();
        (path, module, code.join("\n"))
    };
    paths.into_iter().map(read).collect()
}

/// The names after each `crate::`, including groups in braces.
fn uses(code: &str) -> BTreeSet<String> {
    let word = |text: &str| {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
    };
    let mut names = BTreeSet::new();
    for (place, _) in code.match_indices("crate::") {
        if code[..place].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let rest = &code[place + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => {
                names.insert(word(rest));
            }
            Some(group) => {
                let (mut depth, mut start) = (0, 0);
                for (at, c) in group.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth > 0 => depth -= 1,
                        ',' | '}' if depth == 0 => {
                            names.insert(word(&group[start..at]));
                            start = at + 1;
                            if c == '}' {
                                break;
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    names
}

#[test]
fn a_module_uses_only_modules_above_it() {
    let order = order();
    let place = |module: &str| order.iter().position(|other| other == module);
    let mut wrong = Vec::new();
    for (path, module, code) in files() {
        let Some(own) = place(&module) else { continue };
        for used in uses(&code) {
            match place(&used) {
                Some(other) if other <= own => {}
                Some(_) => wrong.push(format!("{} uses `{used}`, which is below it", path.display())),
                // A macro belongs to no module.
                None if used == "export_sgemm" => {}
                // The short names of the public face would hide which module is meant.
                None => wrong.push(format!("{} uses `crate::{used}`, not a module", path.display())),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn only_one_module_names_the_bindings_of_mlx() {
    for (path, module, code) in files() {
        if code.contains("mlx_rs") || code.contains("mlx_sys") {
            assert_eq!(module, "mlx", "{}", path.display());
        }
    }
}

#[test]
fn the_feature_is_asked_for_in_two_files_only() {
    let allowed = [sources().join("lib.rs"), sources().join("command/mod.rs")];
    for (path, _, code) in files() {
        assert!(!code.contains("feature = \"mlx\"") || allowed.contains(&path), "{}", path.display());
    }
}

#[test]
fn models_are_built_in_one_place() {
    for (path, module, code) in files() {
        // Neither models nor the weights that they are built of.
        let builds = code.contains("model::build(") && module != "model";
        if builds || (code.contains("WeightMap::open(") && module != "weights") {
            assert_eq!(path, sources().join("load.rs"));
        }
    }
}

#[test]
fn the_reader_of_uses_sees_groups_and_nested_groups() {
    let found = uses("use crate::{a::{b, c}, d, e::f};\nuse crate::g::h; $crate::no; x_crate::no");
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["a", "d", "e", "g"]);
}
