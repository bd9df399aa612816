//! Paths for machines: relative ones without `./`, percent-encoded where they become URIs.

use std::path::{Component, Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What is encoded in a path: everything but unreserved characters and slashes (RFC 3986).
const RESERVED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// The path without `.` components; relative if it lies in the current directory.
pub(super) fn plain(path: &Path) -> String {
    joined(local(path))
}

/// An absolute path within the current directory, relative to it: tools that show annotations expect that.
fn local(path: &Path) -> &Path {
    let here = std::env::current_dir().ok();
    let inside =
        here.and_then(|here| path.strip_prefix(here).ok().filter(|rest| !rest.as_os_str().is_empty()));
    inside.unwrap_or(path)
}

fn joined(path: &Path) -> String {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.collect::<PathBuf>().to_string_lossy().into_owned()
}

/// A relative reference for a relative path, a `file:` URI for an absolute one (RFC 3986, RFC 8089).
pub(super) fn uri(path: &Path) -> String {
    let path = local(path);
    let scheme = if path.is_absolute() { "file://" } else { "" };
    format!("{scheme}{}", utf8_percent_encode(&joined(path), RESERVED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_stay_relative_and_reserved_characters_are_encoded() {
        assert_eq!(uri(Path::new("./a b/ü%.yaml")), "a%20b/%C3%BC%25.yaml");
        assert_eq!(uri(Path::new("../c:d.yaml")), "../c%3Ad.yaml");
        assert_eq!(uri(Path::new("/x/y.yaml")), "file:///x/y.yaml");
        let here = std::env::current_dir().unwrap();
        assert_eq!(uri(&here.join("a/b.yaml")), "a/b.yaml");
    }
}
