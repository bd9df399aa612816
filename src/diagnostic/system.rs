//! System errors: the message, and the help for a file that cannot be read or written.

use std::io::{self, ErrorKind};

use rustix::io::Errno;

/// The system's message as a lowercase fragment without its number.
#[must_use]
pub(crate) fn says(error: &io::Error) -> String {
    if error.kind() == ErrorKind::UnexpectedEof {
        return "the file ends too early".to_owned();
    }
    // Only the system's own errors end with a number, and a path may follow it.
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}

/// The help for something that cannot be read.
#[must_use]
pub(crate) fn reading(error: &io::Error) -> &'static str {
    match number(error) {
        Some(Errno::ACCESS | Errno::PERM) => "allow reading it (`chmod u+r`)",
        Some(Errno::IO | Errno::NODATA | Errno::ILSEQ) => {
            "I/O error while reading; check the disk or fetch the file again"
        }
        Some(Errno::NOMEM) => "not enough memory; close other programs and retry",
        Some(number) => of_path(number).unwrap_or("check the file and its disk"),
        None if error.kind() == ErrorKind::UnexpectedEof => {
            "wait until the file is completely written, then retry"
        }
        None if error.kind() == ErrorKind::InvalidInput => "check the path",
        None => "check the file and its disk",
    }
}

/// The help for something that cannot be written.
#[must_use]
pub(crate) fn writing(error: &io::Error) -> &'static str {
    match number(error) {
        Some(Errno::ACCESS | Errno::PERM) => {
            "allow writing in the directory (`chmod u+wx`) or choose another one"
        }
        Some(Errno::ROFS) => "choose a directory on a writable disk",
        Some(Errno::NOSPC) => {
            "the disk is full; free some space or choose another disk (nothing was left behind)"
        }
        Some(Errno::DQUOT) => {
            "the disk quota is used up; free some space or choose another disk (nothing was left behind)"
        }
        Some(Errno::FBIG) => {
            "raise the file size limit (`ulimit -f`) or choose another disk (nothing was left behind)"
        }
        Some(Errno::IO) => "I/O error while writing; check the disk or choose another one",
        Some(number) => of_path(number).unwrap_or("check the directory and its disk"),
        None => "check the directory and its disk",
    }
}

/// The help for a path that cannot be reached, for reading or writing.
fn of_path(number: Errno) -> Option<&'static str> {
    Some(match number {
        Errno::NAMETOOLONG => "shorten the path: the limit is 255 bytes per name and 4,096 bytes in all",
        Errno::LOOP => "check the path: its symbolic links form a loop",
        Errno::NOTDIR => "check the path: a parent component of the path is a file, not a directory",
        Errno::NOENT => "check the path: a parent directory does not exist",
        Errno::STALE | Errno::TIMEDOUT | Errno::HOSTDOWN | Errno::HOSTUNREACH | Errno::NOTCONN => {
            "the network file system does not respond; retry or remount it"
        }
        Errno::MFILE | Errno::NFILE => "raise the limit of open files (`ulimit -n 4096`)",
        _ => return None,
    })
}

/// The system's error number, or one of the same kind if the error was wrapped to name its path.
fn number(error: &io::Error) -> Option<Errno> {
    Errno::from_io_error(error).or(match error.kind() {
        ErrorKind::PermissionDenied => Some(Errno::ACCESS),
        ErrorKind::ReadOnlyFilesystem => Some(Errno::ROFS),
        ErrorKind::StorageFull => Some(Errno::NOSPC),
        ErrorKind::QuotaExceeded => Some(Errno::DQUOT),
        ErrorKind::FileTooLarge => Some(Errno::FBIG),
        ErrorKind::InvalidFilename => Some(Errno::NAMETOOLONG),
        ErrorKind::NotADirectory => Some(Errno::NOTDIR),
        ErrorKind::NotFound => Some(Errno::NOENT),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_end_without_number_and_path() {
        assert_eq!(says(&io::Error::from(Errno::NAMETOOLONG)), "file name too long");
        let parent = tempfile::tempdir().unwrap();
        let wrapped = tempfile::tempdir_in(parent.path().join("missing")).unwrap_err();
        assert_eq!(says(&wrapped), "no such file or directory");
        assert_eq!(writing(&wrapped), of_path(Errno::NOENT).unwrap());
        assert_eq!(says(&io::Error::other("Own words")), "own words");
    }

    #[test]
    fn help_fits_the_error() {
        for (number, word) in [
            (Errno::NAMETOOLONG, "255 bytes"),
            (Errno::LOOP, "form a loop"),
            (Errno::NOTDIR, "is a file"),
            (Errno::STALE, "network file system"),
            (Errno::MFILE, "ulimit -n"),
        ] {
            assert!(reading(&number.into()).contains(word) && writing(&number.into()).contains(word));
        }
        for (number, read, write) in [
            (Errno::ACCESS, "chmod u+r", "chmod u+wx"),
            (Errno::IO, "check the disk", "check the disk"),
            (Errno::ROFS, "check the file", "writable"),
            (Errno::NOSPC, "check the file", "full"),
        ] {
            assert!(reading(&number.into()).contains(read), "{number:?}");
            assert!(writing(&number.into()).contains(write), "{number:?}");
        }
    }
}
