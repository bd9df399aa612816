//! [`Checkpoint`]: a model directory, the base of a surgery.

use std::path::{Path, PathBuf};

use super::{ModelConfig, ReadError, ReadErrorKind, ReadErrors, Shard, Weights, sanitize};

/// A model directory: its weights and its `config.json`.
#[derive(Debug)]
pub struct Checkpoint {
    /// The directory as it was named.
    pub dir: PathBuf,
    /// `config.json`.
    #[doc(hidden)]
    pub config: ModelConfig,
    /// The files and every tensor, with the tied head restored (`Origin::Tied`).
    #[doc(hidden)]
    pub weights: Weights,
}

impl Checkpoint {
    /// Opens a model directory.
    ///
    /// # Errors
    /// Every error found, each with its file.
    pub fn open(dir: &Path) -> Result<Self, ReadErrors> {
        Self::read(dir).map_err(ReadErrors::from)
    }

    fn read(dir: &Path) -> Result<Self, Vec<ReadError>> {
        let metadata =
            dir.metadata().map_err(|error| vec![ReadError::io(dir, &error).or_models_near(dir)])?;
        if !metadata.is_dir() {
            return Err(vec![not_a_directory(dir)]);
        }
        let config = ModelConfig::read(&dir.join("config.json"));
        match (config, Weights::open(dir)) {
            (Ok(config), Ok(mut weights)) => {
                weights.index = sanitize(weights.index, &config);
                Ok(Self { dir: dir.to_owned(), config, weights })
            }
            (Err(error), Ok(_)) if error.kind == ReadErrorKind::NotFound => {
                Err(vec![error.or_models_inside(dir)])
            }
            (Err(error), Ok(_)) => Err(vec![error]),
            (Ok(_), Err(errors)) => Err(errors),
            // Neither exists, or the directory cannot be read: one error.
            (Err(config), Err(errors))
                if config.kind == ReadErrorKind::NotFound || errors.iter().any(|error| error.path == dir) =>
            {
                Err(errors)
            }
            // Missing permissions usually concern all files at once: one error. Other errors concern one file each.
            (Err(config), Err(errors))
                if config.kind == ReadErrorKind::Forbidden
                    && errors.iter().all(|error| error.reason == config.reason) =>
            {
                let refused = ReadError::unreadable(dir, format!("{} for all files in it", config.reason));
                Err(vec![refused.help("allow reading the directory and its files (`chmod -R u+rX`)")])
            }
            (Err(config), Err(errors)) => Err(std::iter::once(config).chain(errors).collect()),
        }
    }
}

/// The error for a file in place of a model directory, which says what the file is.
fn not_a_directory(path: &Path) -> ReadError {
    let error = match Shard::open(path) {
        Ok(_) => ReadError::unreadable(path, "a file of weights, not a model directory"),
        Err(error) => ReadError { reason: format!("not a model directory: {}", error.reason), ..error },
    };
    error.or_model_around(path)
}
