//! Oddities of a checkpoint's files, as warnings.

use crate::checkpoint::ReadWarning;
use crate::diagnostic::{Code, Diagnostic};

/// An oddity of a base or a donor, as a warning.
pub(in crate::plan) fn oddity(warning: &ReadWarning) -> Diagnostic {
    match warning {
        ReadWarning::UnlistedTensor { path, key } => Diagnostic::new(
            Code::UnlistedTensor,
            format!("`{}` holds `{key}`, which the index file does not list", path.display()),
        )
        .help("list it in the index file, or remove it from the shard; until then it is used"),
        ReadWarning::TrailingBytes { path, bytes } => {
            let follow = if *bytes == 1 { "1 byte follows".into() } else { format!("{bytes} bytes follow") };
            let message = format!("{follow} the last tensor of `{}`", path.display());
            Diagnostic::new(Code::TrailingBytes, message)
                .help("they are ignored; write the file again if it was written twice or joined with another")
        }
    }
}
