//! The files around a surgery file in a test: a checkpoint and the donors that the file names.

use std::fs;
use std::path::Path;

use crate::sparse;

/// What a surgery file's comments say about its test.
#[derive(Debug, Default)]
pub(crate) struct Directives {
    /// `on MODEL`: a name in `fixtures/headers`, or a directory of the repository.
    pub on: Option<String>,
    /// `refused CODE`: the error that is expected.
    pub refused: Option<String>,
    /// `donor PATH` and the header lines below it.
    donors: Vec<(String, String)>,
}

impl Directives {
    /// Reads directives, one per line; a donor's header lines follow it.
    pub(crate) fn parse<'t>(lines: impl Iterator<Item = &'t str>) -> Self {
        let mut directives = Self::default();
        for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
            match (line.split_once(' '), directives.donors.last_mut()) {
                (Some(("on", model)), _) => directives.on = Some(model.trim().to_owned()),
                (Some(("refused", code)), _) => directives.refused = Some(code.trim().to_owned()),
                (Some(("donor", path)), _) => {
                    let path = path.trim().trim_start_matches("./");
                    directives.donors.push((path.to_owned(), String::new()));
                }
                (_, Some((_, list))) => list.extend([line, "\n"]),
                _ => panic!("no directive: {line}"),
            }
        }
        directives
    }

    /// Makes the donors that a surgery file names, relative to `dir`: as directed, else with the tensors of `model`.
    pub(crate) fn make_donors(&self, yaml: &str, model: &str, dir: &Path) {
        for written in sources(yaml) {
            let path = dir.join(&written);
            let list = self.donors.iter().find(|(donor, _)| *donor == written).map(|(_, list)| list.clone());
            if path.exists() {
                continue;
            }
            if written.ends_with(".safetensors") {
                sparse::write(&path, &list.unwrap_or_else(|| sparse::list(model)));
            } else {
                assert!(list.is_none(), "a donor directory has the base's tensors");
                sparse::checkpoint(model, &path);
            }
        }
        let named: Vec<String> = sources(yaml);
        assert!(self.donors.iter().all(|(donor, _)| named.contains(donor)), "every directed donor is used");
    }
}

/// The donors named in a surgery file, found by their fields.
fn sources(yaml: &str) -> Vec<String> {
    let fields = ["source:", "source_a:", "source_b:"];
    let value = |line: &str| {
        let line = line.trim_start_matches([' ', '-']);
        let value = fields.iter().find_map(|field| line.strip_prefix(field))?;
        let value = value.trim().trim_matches(['"', '\'']);
        Some(value.strip_prefix("./").unwrap_or(value).to_owned())
    };
    yaml.lines().filter_map(value).collect()
}

/// The YAML files of a folder and its subfolders, in order.
pub(crate) fn yaml_files(dir: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.expect("a folder can be listed").path();
        if path.is_dir() {
            files.extend(yaml_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// A temporary directory with `surgery.yaml`, a sparse `model/` and the donors that the file names.
#[derive(Debug)]
pub(crate) struct Fixture(tempfile::TempDir);

impl Fixture {
    pub(crate) fn new(model: &str, yaml: &str) -> Self {
        let stage = Self(tempfile::tempdir().expect("a temporary directory"));
        sparse::checkpoint(model, &stage.dir().join("model"));
        fs::write(stage.dir().join("surgery.yaml"), yaml).expect("a file can be written");
        stage
    }

    pub(crate) fn dir(&self) -> &Path {
        self.0.path()
    }
}
