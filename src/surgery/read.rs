//! Reading a surgery file without trusting it: a regular file, and not more of it than one may have.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::checkpoint::neighbour;
use crate::diagnostic::{Code, Diagnostic, bytes, system};

/// The largest surgery file, in bytes.
pub(super) const MAX_SIZE: u64 = 4 << 20;

/// The file's bytes.
///
/// # Errors
/// `file_unreadable`, for whatever reason.
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
                "restore the file it points to",
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
        // Opening a pipe may wait for ever, and a device may have no end.
        return refuse(format!("`{shown}` is not a regular file"), "write the YAML to a file");
    }
    if metadata.len() > MAX_SIZE {
        return refuse(too_large(path, metadata.len()), "a surgery file has at most 4 MiB (4.19 MB)");
    }
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(MAX_SIZE + 1).read_to_end(&mut bytes)) {
        Ok(_) if bytes.len() as u64 > MAX_SIZE => {
            refuse(too_large(path, bytes.len() as u64), "a surgery file has at most 4 MiB (4.19 MB)")
        }
        Ok(_) => Ok(bytes),
        Err(error) => unreadable(&error),
    }
}

pub(super) fn too_large(path: &Path, size: u64) -> String {
    format!("`{}` has {}, too much for a surgery file", path.display(), bytes(size))
}
