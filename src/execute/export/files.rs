//! Files of an export.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::ExportError;

/// Creates a file with this mode, less the process's umask, as `cp` does.
pub(super) fn create(path: &Path, mode: u32) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(mode).open(path)
}

/// Opens a file of the export to write into it.
pub(super) fn open(path: &Path) -> Result<File, ExportError> {
    File::options().write(true).open(path).map_err(ExportError::write(path))
}

/// Goes to an offset.
pub(super) fn seek(file: &mut File, path: &Path, offset: u64) -> Result<(), ExportError> {
    file.seek(SeekFrom::Start(offset)).map(drop).map_err(ExportError::write(path))
}
