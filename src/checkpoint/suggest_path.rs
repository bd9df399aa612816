//! Suggestions for a path that does not exist or is not a model: the path that was probably meant.

use std::path::Path;

use super::INDEX_FILE;
use super::quoted::{Quoted, listed};

/// Maximum number of names read from one directory; it may have millions.
const MAX_NAMES: usize = 1000;

/// Endings that name a file format, and so do not belong to the name proper.
const ENDINGS: [&str; 13] =
    ["yaml", "yml", "json", "safetensors", "bin", "pt", "pth", "ckpt", "npz", "gguf", "txt", "md", "jinja"];

/// Help for a directory with models in it that is not one itself: it has no configuration, no index file and no
/// `model*.safetensors`.
#[must_use]
pub(crate) fn models_beside_strays(dir: &Path) -> Option<String> {
    let is_own = |name: &str| {
        name == "config.json"
            || name == INDEX_FILE
            || (name.starts_with("model") && name.ends_with(".safetensors"))
    };
    let mut names = dir.read_dir().ok()?.flatten().map(|entry| entry.file_name());
    if names.any(|name| name.to_str().is_some_and(is_own)) { None } else { models_inside(dir) }
}

/// Help for a directory that is not a model: the models in it, or in its `snapshots` (a hub's cache has those).
pub(super) fn models_inside(dir: &Path) -> Option<String> {
    let models = match models_in(dir) {
        models if models.is_empty() => models_in(&dir.join("snapshots")),
        models => models,
    };
    match models.as_slice() {
        [] => None,
        [one] => Some(format!("did you mean {}?", Quoted(one))),
        more => Some(format!("it contains models: {}", listed(more))),
    }
}

/// Paths of the model directories in a directory.
pub(super) fn models_in(dir: &Path) -> Vec<String> {
    let names = as_listed(dir).read_dir().into_iter().flatten().take(MAX_NAMES).flatten();
    let paths = names.map(|entry| dir.join(entry.file_name()));
    let mut models: Vec<String> =
        paths.filter(|path| is_model(path)).map(|path| path.to_string_lossy().into_owned()).collect();
    models.sort_unstable();
    models
}

/// Whether a directory has a configuration and weights.
pub(super) fn is_model(dir: &Path) -> bool {
    let names = || as_listed(dir).read_dir().into_iter().flatten().take(MAX_NAMES).flatten();
    dir.join("config.json").is_file()
        && names().any(|entry| entry.file_name().as_encoded_bytes().ends_with(b".safetensors"))
}

/// A directory in a form that can be listed: the empty path is the current directory.
pub(super) fn as_listed(dir: &Path) -> &Path {
    if dir.as_os_str().is_empty() { Path::new(".") } else { dir }
}

/// Help for a path that looks like a URL or the name of a model on a hub.
#[must_use]
pub(crate) fn elsewhere(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    let hub_name = || {
        let (owner, name) = text.split_once('/')?;
        let plain = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphanumeric())
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        };
        // In a directory that exists, the file name is misspelled.
        (plain(owner) && plain(name) && !name.contains(".safetensors") && !Path::new(owner).exists())
            .then_some(())
    };
    (text.contains("://") || text.contains(":/") || hub_name().is_some())
        .then(|| "mlxcel does not download; fetch the model first, then name its directory".to_owned())
}

/// Help for a path that does not exist: a name in the same directory with a similar spelling, or with another ending (or
/// none) of those that the file may have.
#[must_use]
pub(crate) fn neighbour(path: &Path, endings: &[&str]) -> Option<String> {
    let wanted = path.file_name()?.to_str().filter(|name| name.len() <= 255)?;
    let parent = path.parent()?;
    let names = as_listed(parent)
        .read_dir()
        .ok()?
        .take(MAX_NAMES)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let (_, name) = names.filter_map(|name| Some((distance(wanted, &name, endings)?, name))).min()?;
    Some(format!("did you mean `{}`?", parent.join(name).display()))
}

/// Distance between the given name and an existing one, if that may have been meant: similar spellings come first, then
/// other endings, in their order.
fn distance(wanted: &str, name: &str, endings: &[&str]) -> Option<(usize, usize)> {
    let apart = |wanted: &str, name: &str, most: usize| {
        // Letter case is easily confused.
        let apart = strsim::damerau_levenshtein(&wanted.to_lowercase(), &name.to_lowercase());
        (apart <= most).then_some(apart)
    };
    // At least one letter, but never the whole name.
    let most = match wanted.chars().count() {
        0 | 1 => 0,
        n => (n / 3).max(1),
    };
    let whole = apart(wanted, name, most).map(|apart| (apart, 0));
    let ((stem, _), (other, ending)) = (split(wanted), split(name));
    let place = match ending {
        Some(ending) => endings.iter().position(|known| ending.eq_ignore_ascii_case(known)),
        None => Some(endings.len()),
    };
    let other_ending =
        place.and_then(|place| Some((apart(stem, other, stem.chars().count() / 3)?, 1 + place)));
    whole.into_iter().chain(other_ending).min()
}

/// A name without its ending, if that is a known one, and the ending.
fn split(name: &str) -> (&str, Option<&str>) {
    match name.rsplit_once('.') {
        Some((stem, ending))
            if !stem.is_empty() && ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)) =>
        {
            (stem, Some(ending))
        }
        _ => (name, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: &[&str], wanted: &str, endings: &[&str], expected: &str) {
        let dir = tempfile::tempdir().unwrap();
        for name in names {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let expected = (!expected.is_empty())
            .then(|| format!("did you mean `{}`?", dir.path().join(expected).display()));
        assert_eq!(neighbour(&dir.path().join(wanted), endings), expected, "{wanted} among {names:?}");
    }

    #[test]
    fn an_ending_that_is_missing_or_another_is_offered() {
        const YAML: [&str; 3] = ["yaml", "yml", "json"];
        check(&["joy.yaml", "sad.yaml"], "joy", &YAML, "joy.yaml");
        check(&["boy.yml", "joy.yaml"], "joy.yml", &YAML, "joy.yaml");
        check(&["joy.json", "joy.yml"], "joy", &YAML, "joy.yml");
        check(&["joy.yaml"], "Joy.YML", &YAML, "joy.yaml");
        check(&["joy"], "joy.yaml", &YAML, "joy");
        check(&["happiness.yaml"], "hapiness", &YAML, "happiness.yaml");
        check(&["donor.safetensors"], "donor.bin", &["safetensors"], "donor.safetensors");
        check(&["donor.v2.safetensors"], "donor.v2", &["safetensors"], "donor.v2.safetensors");
    }

    #[test]
    fn a_file_of_another_kind_is_not() {
        check(&["joy.md", "joy.safetensors"], "joy", &["yaml"], "");
        check(&["a.safetensors"], "b", &["safetensors"], "");
        // Text after a dot need not be an ending.
        check(&["qwen2.5-vl-7b"], "qwen2.1", &["safetensors"], "");
    }

    #[test]
    fn a_misspelt_name_is_offered_whatever_its_ending() {
        check(&["notes.txt", "zzz"], "nots.txt", &[], "notes.txt");
        check(&["BASE", "other"], "base", &[], "BASE");
        check(&["zzz"], "base", &[], "");
        check(&["q", "ab"], "x", &[], "");
        check(&["X"], "x", &[], "X");
    }
}
