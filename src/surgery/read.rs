//! Reading a surgery file without trusting it: only regular files, only up to a size.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::checkpoint::neighbour;
use crate::diagnostic::{Code, Diagnostic, bytes, system};

/// Bytes of the largest surgery file.
pub(super) const MAX_SIZE: u64 = 4 << 20;

/// The file's bytes.
///
/// # Errors
/// `file_unreadable`, with the reason.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Diagnostic> {
    let shown = path.display();
    let refuse = |message: String, help: &str| Err(Diagnostic::new(Code::FileUnreadable, message).help(help));
    let unreadable = |error: &io::Error| {
        refuse(format!("cannot read `{shown}`: {}", system::says(error)), system::reading(error))
    };
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.is_symlink() => {
            return refuse(
                format!("`{shown}` is a link to a file that does not exist"),
                "restore the file that it points to",
            );
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let help = neighbour(path, &["yaml", "yml", "json"]);
            let help = help.as_deref().unwrap_or("check the path; it is relative to the current directory");
            return refuse(format!("`{shown}` does not exist"), help);
        }
        Err(error) => return unreadable(&error),
    };
    if metadata.is_dir() {
        return refuse(format!("`{shown}` is a directory"), "name the YAML file in it");
    }
    if !metadata.is_file() {
        // Opening a pipe may block forever, and a device may have no end.
        return refuse(format!("`{shown}` is not a regular file"), "write the YAML to a file");
    }
    if metadata.len() > MAX_SIZE {
        return Err(too_large(path, metadata.len()));
    }
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(MAX_SIZE + 1).read_to_end(&mut bytes)) {
        Ok(_) if bytes.len() as u64 > MAX_SIZE => Err(too_large(path, bytes.len() as u64)),
        Ok(_) => Ok(bytes),
        Err(error) => unreadable(&error),
    }
}

/// The refusal of a file of `size` bytes.
pub(super) fn too_large(path: &Path, size: u64) -> Diagnostic {
    let message = format!("`{}` has {}, more than the limit of 4 MiB (4.19 MB)", path.display(), bytes(size));
    Diagnostic::new(Code::FileUnreadable, message)
        .help("match tensors with wildcards instead of listing them, or split the file")
}
