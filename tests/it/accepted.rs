//! `fixtures/accepted/<model>/<case>.yaml` and, beside it, the plan on that model: `<case>.plan.txt`, and
//! `<case>.plan.json` where it exists. With `UPDATE_FIXTURES=1` they are written anew, to be read by eye.

use std::fs;
use std::path::Path;

use crate::fixture::{Directives, yaml_files};
use crate::program::mlxcel;
use crate::sparse::{self, fixtures};

#[test]
fn every_accepted_file_has_the_plan_that_is_kept_beside_it() {
    let root = fixtures("accepted");
    let mut differ = Vec::new();
    for model in folders(&root) {
        let stage = tempfile::tempdir().expect("a temporary directory");
        sparse::checkpoint(&model, &stage.path().join(&model));
        for yaml in yaml_files(&root.join(&model)) {
            differ.extend(plan_of(&model, &yaml, stage.path()));
        }
    }
    assert!(differ.is_empty(), "plans that differ:\n{}", differ.join("\n"));
}

fn folders(root: &Path) -> Vec<String> {
    let entries = fs::read_dir(root).expect("there are accepted fixtures");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("a folder").file_name().into_string().expect("a plain name"))
        .collect();
    names.sort();
    names
}

/// Plans one file in text and JSON; says what differs from what is kept.
fn plan_of(model: &str, yaml: &Path, stage: &Path) -> Vec<String> {
    let text = fs::read_to_string(yaml).expect("a fixture can be read");
    let case = yaml.file_stem().expect("a name").to_string_lossy().into_owned();
    let dir = stage.join(&case);
    fs::create_dir_all(&dir).expect("a directory can be made");
    fs::write(dir.join("surgery.yaml"), &text).expect("a file can be written");
    Directives::parse(text.lines().map_while(|line| line.strip_prefix('#'))).make_donors(&text, model, &dir);

    let mut differ = Vec::new();
    let plan = mlxcel(&dir, &format!("surgery plan surgery.yaml --model ../{model}"));
    assert_eq!(plan.code, 0, "{model}/{case}: {}", plan.stderr);
    differ.extend(compare(&yaml.with_extension("plan.txt"), &plan.stdout, true));
    let json = mlxcel(&dir, &format!("surgery plan surgery.yaml --model ../{model} --format json"));
    assert_eq!((json.code, json.stderr.as_str()), (0, ""), "{model}/{case}");
    differ.extend(compare(&yaml.with_extension("plan.json"), &json.stdout, false));
    differ
}

/// A kept file that is missing counts only if it is `required`.
fn compare(kept: &Path, seen: &str, required: bool) -> Option<String> {
    if !required && !kept.exists() {
        return None;
    }
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        fs::write(kept, seen).expect("a fixture can be written");
    }
    let expected = fs::read_to_string(kept).unwrap_or_default();
    (expected != seen).then(|| format!("{}:\n{seen}", kept.display()))
}
