//! Why a checkpoint cannot be read.

use std::fmt::{self, Write as _};
use std::io;
use std::path::{Path, PathBuf};

use crate::diagnostic::system;

/// A refusal: the file and what is wrong with it.
#[derive(Debug, thiserror::Error)]
#[error("`{}`: {reason}", path.display())]
pub struct ReadError {
    /// The file (or directory) refused.
    pub path: PathBuf,
    /// A lowercase fragment with the tensor and the numbers.
    pub reason: String,
    /// Which family of mistakes it is; the planner turns it into a code.
    pub kind: ReadErrorKind,
    /// What to do about it.
    pub help: Option<String>,
}

/// The families of refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadErrorKind {
    /// Nothing there (or a dangling link).
    NotFound,
    /// There, but not a readable checkpoint.
    Unreadable,
    /// The index file and the shards disagree.
    BadIndex,
}

/// An oddity that does not prevent reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadWarning {
    /// A shard holds a tensor that the index file does not list.
    UnlistedTensor {
        /// The shard.
        path: PathBuf,
        /// The tensor.
        key: super::Key,
    },
    /// Bytes after the last tensor.
    TrailingBytes {
        /// The file.
        path: PathBuf,
        /// How many.
        bytes: u64,
    },
}

impl ReadError {
    pub(super) fn unreadable(path: &Path, reason: impl Into<String>) -> Self {
        Self { path: path.to_owned(), reason: reason.into(), kind: ReadErrorKind::Unreadable, help: None }
    }

    pub(super) fn bad_index(path: &Path, reason: impl Into<String>) -> Self {
        Self { kind: ReadErrorKind::BadIndex, ..Self::unreadable(path, reason) }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// What the system said when the file at `path` was opened or read.
    pub(super) fn io(path: &Path, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound {
            return Self::not_found(path);
        }
        Self::unreadable(path, system::says(error)).help(system::reading(error))
    }

    fn not_found(path: &Path) -> Self {
        let missing = |reason: String| Self {
            path: path.to_owned(),
            reason,
            kind: ReadErrorKind::NotFound,
            help: None,
        };
        if let Ok(target) = path.read_link() {
            return missing(format!("a link to `{}`, which does not exist", target.display()))
                .help("download the file again: model caches delete the files behind their links");
        }
        let shell = path.components().any(|part| {
            let part = part.as_os_str().as_encoded_bytes();
            part.starts_with(b"~") || part.contains(&b'$')
        });
        let refused = missing("no such file or directory".into());
        let help = if shell {
            Some("`~` and `$VAR` are not expanded: write the path out".to_owned())
        } else {
            elsewhere(path).or_else(|| neighbour(path))
        };
        match help {
            Some(help) => refused.help(help),
            None => refused,
        }
    }
}

/// What `--model` takes.
pub(super) const A_MODEL: &str = "a model is a directory with `config.json` and safetensors weights";

/// Names looked at in one directory; it may have millions.
const LOOKED_AT: usize = 1000;

impl ReadError {
    /// Says of a model that is not there what a model is, and which are near, where nothing better is known.
    pub(super) fn or_models_near(self, dir: &Path) -> Self {
        let meant = match &self.help {
            _ if self.kind != ReadErrorKind::NotFound => return self,
            Some(help) if help.starts_with("did you mean") => format!("{help} {A_MODEL}"),
            Some(_) => return self,
            None => match models_beside(dir).as_slice() {
                [] => A_MODEL.to_owned(),
                [one] => format!("{A_MODEL}, such as {}", Quoted(one)),
                more => format!("{A_MODEL}; there are {}", listed(more)),
            },
        };
        self.help(meant)
    }
}

/// The model directories that stand where a path looks for one.
fn models_beside(path: &Path) -> Vec<String> {
    let parent = path.parent().unwrap_or(Path::new(""));
    let listed = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let names = listed.read_dir().into_iter().flatten().take(LOOKED_AT).flatten();
    let models = names.filter(|entry| entry.path().join("config.json").is_file());
    let mut models: Vec<String> =
        models.map(|entry| parent.join(entry.file_name()).to_string_lossy().into_owned()).collect();
    models.sort_unstable();
    models
}

/// What to say of a path that looks like an address or a name on a model hub.
#[must_use]
pub fn elsewhere(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    let hub_name = || {
        let (owner, name) = text.split_once('/')?;
        let plain = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphanumeric())
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        };
        // A file of a directory that is there is only misspelt.
        (plain(owner) && plain(name) && !name.contains(".safetensors") && !Path::new(owner).exists())
            .then_some(())
    };
    (text.contains("://") || text.contains(":/") || hub_name().is_some()).then(|| {
        "nothing is downloaded here: a model of a hub or web site must be fetched first, then name its directory".to_owned()
    })
}

/// The name in the same directory that was probably meant.
#[must_use]
pub fn neighbour(path: &Path) -> Option<String> {
    let wanted = path.file_name()?.to_str().filter(|name| name.len() <= 255)?;
    let parent = path.parent()?;
    let listed = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let names = listed
        .read_dir()
        .ok()?
        .take(LOOKED_AT)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let (distance, name) = names.map(|name| (strsim::damerau_levenshtein(wanted, &name), name)).min()?;
    (distance <= (wanted.chars().count() / 3).max(1))
        .then(|| format!("did you mean `{}`?", parent.join(name).display()))
}

/// A name from a file, fit for a message: control characters escaped, its middle left out when it is very long.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 200;
        const KEPT: usize = 80;
        f.write_char('`')?;
        let length = self.0.chars().count();
        let head = if length > LONGEST { KEPT } else { length };
        escape(f, self.0.chars().take(head))?;
        if head < length {
            f.write_char('…')?;
            escape(f, self.0.chars().skip(length - KEPT))?;
        }
        f.write_char('`')
    }
}

fn escape(f: &mut fmt::Formatter<'_>, text: impl Iterator<Item = char>) -> fmt::Result {
    for c in text {
        if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
            write!(f, "{}", c.escape_default())?;
        } else {
            f.write_char(c)?;
        }
    }
    Ok(())
}

/// `a`, `b` and 3 more.
pub(super) fn listed(names: &[impl AsRef<str>]) -> String {
    const SHOWN: usize = 3;
    let shown = if names.len() == SHOWN + 1 { SHOWN + 1 } else { SHOWN };
    let mut text = String::new();
    for (place, name) in names.iter().take(shown).enumerate() {
        let last = place + 1 == names.len();
        let before = if place == 0 {
            ""
        } else if last {
            " and "
        } else {
            ", "
        };
        let _ = write!(text, "{before}{}", Quoted(name.as_ref()));
    }
    if names.len() > shown {
        let _ = write!(text, " and {} more", names.len() - shown);
    }
    text
}
