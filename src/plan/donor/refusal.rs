//! Why weights cannot be read, as diagnostics.

use std::fmt::Write as _;
use std::path::Path;

use crate::checkpoint::{ReadError, ReadErrorKind, elsewhere, neighbour};
use crate::diagnostic::{Code, Diagnostic};
use crate::surgery::SurgeryFile;

/// A donor's configuration cannot be read: nothing then says how the donor is quantized.
pub(super) fn unread_config(error: &ReadError, written: &str) -> Diagnostic {
    let message = format!("`config.json` of donor `{written}` cannot be read: {}", error.reason);
    Diagnostic::new(Code::DonorConfig, message).help(
        "repair the file, or remove it if the donor is not quantized: without it, bits and group size are not compared \
         with the base's",
    )
}

/// Why a donor cannot be read, with paths as the surgery file has them.
pub(super) fn refusal(error: &ReadError, source: &Path, written: &str, file: &SurgeryFile) -> Diagnostic {
    match error.kind {
        ReadErrorKind::NotFound if error.path == source && !source.is_symlink() => {
            let near = neighbour(source, &["safetensors"]).map(|near| as_written(&near, file));
            let mut help = near.map_or_else(String::new, |near| format!("{near} "));
            help.push_str("relative paths are resolved against the directory of the surgery file");
            if file.dir.as_os_str().is_empty() {
                help.push_str(", `.`");
            } else if source.starts_with(&file.dir) {
                let _ = write!(help, ": this one is `{}`", source.display());
            }
            if written.starts_with('~') || written.contains('$') {
                help.push_str("; write the path out: `~` and `$VAR` are not expanded");
            } else if let Some(elsewhere) = elsewhere(Path::new(written)) {
                let _ = write!(help, "; {elsewhere}");
            }
            Diagnostic::new(Code::DonorNotFound, format!("donor `{written}` does not exist")).help(help)
        }
        ReadErrorKind::NotFound if error.path == source => with_help(Code::DonorNotFound, error),
        ReadErrorKind::NotFound | ReadErrorKind::Unreadable | ReadErrorKind::Forbidden => {
            let mut diagnostic = with_help(Code::DonorUnreadable, error);
            // Paths in the help are relative, as in the surgery file.
            diagnostic.help = diagnostic.help.map(|help| as_written(&help, file));
            diagnostic
        }
        ReadErrorKind::BadIndex => with_help(Code::BadShardIndex, error),
    }
}

/// A help with its paths relative to the surgery file's directory.
fn as_written(help: &str, file: &SurgeryFile) -> String {
    if file.dir.as_os_str().is_empty() {
        return help.to_owned();
    }
    help.replace(&format!("`{}/", file.dir.display()), "`")
}

/// A refusal of weights that were named outside of a surgery file.
pub(in crate::plan) fn named_refusal(path: &Path, error: &ReadError) -> Diagnostic {
    let code = match error.kind {
        ReadErrorKind::NotFound if error.path == path => Code::DonorNotFound,
        ReadErrorKind::NotFound | ReadErrorKind::Unreadable | ReadErrorKind::Forbidden => {
            Code::DonorUnreadable
        }
        ReadErrorKind::BadIndex => Code::BadShardIndex,
    };
    with_help(code, error)
}

/// A refusal of the base, as a diagnostic without a place in the YAML.
pub(in crate::plan) fn base_refusal(error: &ReadError) -> Diagnostic {
    let code = match error.kind {
        ReadErrorKind::NotFound | ReadErrorKind::Unreadable | ReadErrorKind::Forbidden => {
            Code::ModelUnreadable
        }
        ReadErrorKind::BadIndex => Code::BadShardIndex,
    };
    with_help(code, error)
}

fn with_help(code: Code, error: &ReadError) -> Diagnostic {
    let diagnostic = Diagnostic::new(code, error.to_string());
    match &error.help {
        Some(help) => diagnostic.help(help.clone()),
        None => diagnostic,
    }
}
