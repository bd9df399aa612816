//! Recognizes files that are not safetensors.

/// A format that is recognized by its first bytes, with an error message and help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Format {
    pub(super) reason: &'static str,
    pub(super) help: &'static str,
}

const fn format(reason: &'static str, help: &'static str) -> Format {
    Format { reason, help }
}

const LFS: Format = format(
    "a Git LFS pointer, not the weights themselves",
    "run `git lfs pull` in the repository it came from, or download the file",
);
const GGUF: Format = format(
    "a GGUF file, which is not safetensors",
    "use the model's safetensors: GGUF keeps other names, layouts and quantizations",
);
const ZIP: Format = format(
    "a zip archive (PyTorch `.bin` or `.pt`, or NumPy `.npz`), not safetensors",
    "convert it to safetensors, or download the model's `.safetensors` files",
);
const PICKLE: Format = format("a Python pickle (an old PyTorch file), not safetensors", ZIP.help);
const HTML: Format = format(
    "an HTML page, not safetensors",
    "use the URL of the file itself; the download gave a web page (a login or an error)",
);
const XML: Format = format("an XML text, not safetensors", HTML.help);
const JSON: Format = format(
    "a JSON text, not safetensors",
    "an index file must be named `*.index.json`; a failed download may have left an error message",
);
const YAML: Format = format(
    "a YAML text (a surgery file?), not safetensors",
    "weights are a `.safetensors` file, a directory of such files, or an index file",
);
const TEXT: Format = format("a text file, not safetensors", YAML.help);
const NUMPY: Format = format("a NumPy array, not safetensors", ZIP.help);
const IMAGE: Format = format("an image, not safetensors", YAML.help);
const HDF5: Format = format("an HDF5 file, not safetensors", ZIP.help);
const GZIP: Format = format("a gzip archive, not safetensors", "unpack it first");

/// Recognizes a format that is often given in place of safetensors, by a file's first bytes.
pub(super) fn sniff(start: &[u8]) -> Option<Format> {
    let starts: [(&[u8], Format); 11] = [
        (b"version https://git-lfs", LFS),
        (b"GGUF", GGUF),
        (b"PK\x03\x04", ZIP),
        (b"PK\x05\x06", ZIP),
        (b"\x89HDF\r\n\x1a\n", HDF5),
        (b"\x93NUMPY", NUMPY),
        (b"\x89PNG\r\n\x1a\n", IMAGE),
        (b"\xff\xd8\xff", IMAGE),
        (b"\x1f\x8b", GZIP),
        (b"\x80\x02", PICKLE),
        (b"\x80\x04", PICKLE),
    ];
    if let Some((_, format)) = starts.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Some(*format);
    }
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    let begins = |word: &str| text.get(..word.len()).is_some_and(|t| t.eq_ignore_ascii_case(word.as_bytes()));
    match text {
        _ if begins("<!doctype html") || begins("<html") || begins("<head") => Some(HTML),
        _ if begins("<?xml") => Some(XML),
        [b'{' | b'[', next, ..] if next.is_ascii_whitespace() || matches!(next, b'"' | b'{' | b'}') => {
            Some(JSON)
        }
        // The length of a header is a number of eight bytes, and its highest bytes are 0.
        _ if text.len() >= 8 && is_text(text) => {
            let yaml = text.split(|byte| *byte == b'\n').any(|line| {
                [b"version:".as_slice(), b"operations:"].iter().any(|field| line.starts_with(field))
            });
            Some(if yaml { YAML } else { TEXT })
        }
        _ => None,
    }
}

/// Whether bytes are readable text, the last character perhaps cut.
fn is_text(bytes: &[u8]) -> bool {
    let text = match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or("\0")
        }
        Err(_) => return false,
    };
    text.chars().all(|sign| !sign.is_control() || matches!(sign, '\n' | '\r' | '\t'))
}
