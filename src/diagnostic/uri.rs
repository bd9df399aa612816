//! Paths for machines: relative ones without `./`, separators as slashes, percent-encoded where they become URIs.

use std::fmt::Write;
use std::path::{Component, Path};

/// The path with slashes and without `.` components; relative if it lies in the current directory.
pub(super) fn plain(path: &Path) -> String {
    slashes(local(path))
}

/// An absolute path within the current directory is better named from there: so do those who show annotations.
fn local(path: &Path) -> &Path {
    let here = std::env::current_dir().ok();
    let inside =
        here.and_then(|here| path.strip_prefix(here).ok().filter(|rest| !rest.as_os_str().is_empty()));
    inside.unwrap_or(path)
}

fn slashes(path: &Path) -> String {
    let mut text = String::new();
    for component in path.components() {
        match component {
            Component::CurDir => continue,
            Component::RootDir => {
                text.push('/');
                continue;
            }
            _ => {}
        }
        if !text.is_empty() && !text.ends_with('/') {
            text.push('/');
        }
        text.push_str(&component.as_os_str().to_string_lossy());
    }
    text
}

/// A relative reference for a relative path, a `file:` URI for an absolute one (RFC 3986, RFC 8089).
pub(super) fn uri(path: &Path) -> String {
    let path = local(path);
    let plain = slashes(path);
    let mut uri = String::new();
    if path.is_absolute() {
        uri.push_str(if plain.starts_with('/') { "file://" } else { "file:///" });
    }
    for byte in plain.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_stay_relative_and_odd_signs_are_encoded() {
        assert_eq!(uri(Path::new("./a b/ü%.yaml")), "a%20b/%C3%BC%25.yaml");
        assert_eq!(uri(Path::new("../c:d.yaml")), "../c%3Ad.yaml");
        assert_eq!(uri(Path::new("/x/y.yaml")), "file:///x/y.yaml");
        let here = std::env::current_dir().unwrap();
        assert_eq!(uri(&here.join("a/b.yaml")), "a/b.yaml");
    }
}
