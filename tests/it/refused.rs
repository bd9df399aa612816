//! `fixtures/refused/<code>` or `<code>-<variant>`: a surgery file that is refused, and `stderr.txt`, all that
//! `mlxcel surgery plan` says of it, or the command in a file `command` beside it. With `UPDATE_FIXTURES=1` the texts are
//! written anew, to be read by eye.
//!
//! The model is `tiny-tales/base`, or what a file `model` names: a folder of `fixtures/models` or of `fixtures/headers`. A
//! folder `model` is the model itself, its weights as a list in `headers.txt`. Where there is a file `changes`, the file that
//! it names changes between planning and exporting. Comments of the surgery file that begin
//! with `#:` are directives for donors (see `stage`). What else lies in the folder is there when the file is planned.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use mlxcel::internals::diagnostic::{Look, render};
use mlxcel::{Checkpoint, Code, Diagnostic, Severity, Stop, SurgeryFile, export};

use crate::fixture::Directives;
use crate::program::mlxcel;
use crate::sparse::{self, fixtures};

#[test]
fn every_refused_file_is_answered_with_the_text_that_is_kept_beside_it() {
    let mut differ = Vec::new();
    for case in cases().into_iter().filter(|case| cfg!(feature = "mlx") || !needs_mlx(case)) {
        let name = case.file_name().expect("a name").to_string_lossy().into_owned();
        let seen = answer(&case, &name);
        let kept = case.join("stderr.txt");
        if std::env::var_os("UPDATE_FIXTURES").is_some() {
            fs::write(&kept, &seen).expect("a fixture can be written");
        }
        if fs::read_to_string(&kept).unwrap_or_default() != seen {
            differ.push(format!("{name}:\n{seen}"));
        }
    }
    assert!(differ.is_empty(), "texts that differ:\n{}", differ.join("\n"));
}

#[test]
fn every_error_has_a_refused_file() {
    let cases = cases();
    let names: Vec<_> =
        cases.iter().filter_map(|case| case.file_name()?.to_str()?.split('-').next()).collect();
    // No file can make the machine fail.
    let errors =
        Code::ALL.iter().filter(|code| code.severity() == Severity::Error && code.namespace() != "system");
    let without: Vec<&str> = errors.map(|code| code.name()).filter(|code| !names.contains(code)).collect();
    assert_eq!(without, [""; 0]);
}

fn cases() -> Vec<PathBuf> {
    let entries = fs::read_dir(fixtures("refused")).expect("there are refused fixtures");
    let mut cases: Vec<PathBuf> = entries.map(|entry| entry.expect("a case").path()).collect();
    cases.sort();
    cases
}

/// Whether a case is of the loader, which is there with MLX only.
fn needs_mlx(case: &Path) -> bool {
    fs::read_to_string(case.join("command")).is_ok_and(|command| command.starts_with("generate"))
}

/// What is said of a case; the code that it is named after must be among it.
fn answer(case: &Path, name: &str) -> String {
    let stage = tempfile::tempdir().expect("a temporary directory");
    let dir = stage.path().join("case");
    copy(case, &dir);
    let model = place_model(case, &dir);
    if let Ok(changes) = fs::read_to_string(case.join("changes")) {
        return changed(&dir, &model, changes.trim());
    }
    let command =
        fs::read_to_string(case.join("command")).unwrap_or_else(|_| "surgery plan surgery.yaml".to_owned());
    let run = mlxcel(&dir, &format!("{command} --model {model}"));
    let code = Code::named(name.split('-').next().unwrap_or_default()).expect("a case is named after a code");
    assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{name}: {}", run.stderr);
    assert!(run.stderr.contains(&format!("[{code}]: ")), "{name}: {}", run.stderr);
    families_left_out(run.stderr)
}

/// The list of families grows, and no fixture with it.
fn families_left_out(text: String) -> String {
    let list = text
        .split_once("supported types are ")
        .and_then(|(before, rest)| Some((before, rest.split_once(';')?.1)));
    match list {
        Some((before, after)) => {
            let after: Vec<&str> = after.split_whitespace().collect();
            format!("{before}supported types are …; {}\n\n", after.join(" "))
        }
        None => text,
    }
}

/// What is said when a file changes between planning and exporting, which no command line can bring about.
fn changed(dir: &Path, model: &str, changes: &str) -> String {
    let file = SurgeryFile::read(&dir.join("surgery.yaml"));
    let plan = mlxcel::plan(&file, Checkpoint::open(&dir.join(model)).expect("a model")).expect("a plan");
    let mut donor = fs::OpenOptions::new().append(true).open(dir.join(changes)).expect("a file that changes");
    donor.write_all(&[0; 4]).expect("a file can grow");
    let error = export(&plan, &dir.join("new"), &mut |_, _| {}, &Stop::new()).expect_err("a change is seen");
    let text = render(&[Diagnostic::from(&error)], Some(&file.source), Look::PLAIN);
    text.replace(&*dir.to_string_lossy(), "CASE")
}

/// Puts the model and the directed donors where the file is planned; returns the model's place as seen from there.
fn place_model(case: &Path, dir: &Path) -> String {
    let own = dir.join("model");
    if own.is_dir() {
        let list = own.join("headers.txt");
        let tensors = fs::read_to_string(&list).expect("a model has a list of headers");
        fs::remove_file(list).expect("a copy can be removed");
        sparse::write(&own.join("model.safetensors"), &tensors);
        return "model".to_owned();
    }
    let model = fs::read_to_string(case.join("model")).unwrap_or_else(|_| "tiny-tales/base".to_owned());
    let (model, stage) = (model.trim(), dir.parent().expect("a case stands on a stage"));
    let real = fixtures("models").join(model);
    if real.is_dir() {
        copy(&real, &stage.join(model));
    } else {
        sparse::checkpoint(model, &stage.join(model));
        let text = fs::read_to_string(case.join("surgery.yaml")).unwrap_or_default();
        let directives = Directives::parse(text.lines().filter_map(|line| line.strip_prefix("#:")));
        directives.make_donors(&text, model, dir);
    }
    format!("../{model}")
}

/// Copies a folder with all that is in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory can be made");
    for entry in fs::read_dir(from).expect("a directory can be read") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("a file can be copied");
        }
    }
}
