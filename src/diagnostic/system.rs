//! What the system says of a file that cannot be read or written, and what to do about it.

use std::io::{self, ErrorKind};

use rustix::io::Errno;

/// The system's words, in our case and without its number.
#[must_use]
pub fn says(error: &io::Error) -> String {
    if error.kind() == ErrorKind::UnexpectedEof {
        return "the file ends too early".to_owned();
    }
    // Only the system's own errors have a number behind their words; a path may follow it.
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut signs = text.chars();
    signs.next().map_or_else(String::new, |first| first.to_lowercase().chain(signs).collect())
}

/// What to do about something that cannot be read.
#[must_use]
pub fn reading(error: &io::Error) -> &'static str {
    match number(error) {
        Some(Errno::ACCESS | Errno::PERM) => "allow reading it (`chmod u+r`)",
        Some(Errno::IO | Errno::NODATA | Errno::ILSEQ) => {
            "the disk does not give it out: check the disk, and get the file again"
        }
        Some(Errno::NOMEM) => "end what else takes memory, and try again",
        Some(number) => of_path(number).unwrap_or("check the file and its disk"),
        None if error.kind() == ErrorKind::UnexpectedEof => {
            "something writes to the file: try again when it is done"
        }
        None if error.kind() == ErrorKind::InvalidInput => "check the path",
        None => "check the file and its disk",
    }
}

/// What to do about something that cannot be written.
#[must_use]
pub fn writing(error: &io::Error) -> &'static str {
    match number(error) {
        Some(Errno::ACCESS | Errno::PERM) => {
            "allow writing in the directory (`chmod u+wx`), or choose another one"
        }
        Some(Errno::ROFS) => "choose a directory on a disk that can be written",
        Some(Errno::NOSPC) => {
            "the disk is full, and nothing is left behind: free some space, or choose another disk"
        }
        Some(Errno::DQUOT) => {
            "your share of the disk is used up, and nothing is left behind: free some space, or choose another disk"
        }
        Some(Errno::FBIG) => {
            "the file is larger than the system allows (`ulimit -f`), and nothing is left behind: raise that limit, or \
             choose another disk"
        }
        Some(Errno::IO) => "the disk does not take it: check the disk, or choose another one",
        Some(number) => of_path(number).unwrap_or("check the directory and its disk"),
        None => "check the directory and its disk",
    }
}

/// What is wrong with a path, whatever it was for.
fn of_path(number: Errno) -> Option<&'static str> {
    Some(match number {
        Errno::NAMETOOLONG => {
            "check the path: the system takes 255 bytes for a name and 4,096 for all of them together"
        }
        Errno::LOOP => "check the path: links on its way lead to each other",
        Errno::NOTDIR => "check the path: what stands before a `/` is a file",
        Errno::NOENT => "check the path: a directory on its way is missing",
        Errno::STALE | Errno::TIMEDOUT | Errno::HOSTDOWN | Errno::HOSTUNREACH | Errno::NOTCONN => {
            "it is on another machine, which does not answer: try again, or mount the disk anew"
        }
        Errno::MFILE | Errno::NFILE => {
            "raise the limit of files that may be open at a time (`ulimit -n 4096`)"
        }
        _ => return None,
    })
}

/// The system's number, or one of its kind where the error has been wrapped to name its path.
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
    fn words_have_no_number_and_no_path_behind_them() {
        assert_eq!(says(&io::Error::from(Errno::NAMETOOLONG)), "file name too long");
        let parent = tempfile::tempdir().unwrap();
        let wrapped = tempfile::tempdir_in(parent.path().join("missing")).unwrap_err();
        assert_eq!(says(&wrapped), "no such file or directory");
        assert_eq!(writing(&wrapped), of_path(Errno::NOENT).unwrap());
        assert_eq!(says(&io::Error::other("Own words")), "own words");
    }

    #[test]
    fn help_is_for_what_happened() {
        for (number, word) in [
            (Errno::NAMETOOLONG, "255 bytes"),
            (Errno::LOOP, "links"),
            (Errno::NOTDIR, "is a file"),
            (Errno::STALE, "another machine"),
            (Errno::MFILE, "ulimit -n"),
        ] {
            assert!(reading(&number.into()).contains(word) && writing(&number.into()).contains(word));
        }
        for (number, read, write) in [
            (Errno::ACCESS, "chmod u+r", "chmod u+wx"),
            (Errno::IO, "check the disk", "check the disk"),
            (Errno::ROFS, "check the file", "can be written"),
            (Errno::NOSPC, "check the file", "full"),
        ] {
            assert!(reading(&number.into()).contains(read), "{number:?}");
            assert!(writing(&number.into()).contains(write), "{number:?}");
        }
    }
}
