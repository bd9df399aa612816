//! Help for an error about a path that should be a model: what a model is, and which models are near.

use std::path::Path;

use super::quoted::{Quoted, listed};
use super::suggest_path::{as_listed, is_model, models_beside_strays, models_in, models_inside, neighbour};
use super::{ReadError, ReadErrorKind};

/// What `--model` takes.
const A_MODEL: &str = "a model is a directory with `config.json` and safetensors weights";

impl ReadError {
    /// Says of a model that is not there what a model is, and which are near, where nothing better is known.
    pub(super) fn or_models_near(self, dir: &Path) -> Self {
        if self.kind != ReadErrorKind::NotFound {
            return self;
        }
        let meant = match &self.help {
            // A file of weights would be no model.
            Some(help) if help.starts_with("did you mean") => neighbour(dir, &[]),
            Some(_) => return self,
            None => None,
        };
        let near = || match models_in(dir.parent().unwrap_or(Path::new(""))).as_slice() {
            [] => A_MODEL.to_owned(),
            [one] => format!("{A_MODEL}, such as {}", Quoted(one)),
            more => format!("{A_MODEL}; there are {}", listed(more)),
        };
        let help = meant.map_or_else(near, |meant| format!("{meant} {A_MODEL}"));
        self.help(help)
    }

    /// Says of a directory that is no model which models are in it.
    pub(super) fn or_models_inside(self, dir: &Path) -> Self {
        match models_inside(dir) {
            Some(meant) => self.help(meant),
            None => self,
        }
    }

    /// Says of a file what a model is, and whether it is a part of one.
    pub(super) fn or_model_around(self, file: &Path) -> Self {
        let dir = file.parent().filter(|dir| is_model(dir));
        let help = match dir {
            Some(dir) => format!("did you mean {}? {A_MODEL}", Quoted(&as_listed(dir).to_string_lossy())),
            None => A_MODEL.to_owned(),
        };
        self.help(help)
    }
}

/// Refuses a directory that is no checkpoint by its names but holds some, though weights of another name stand beside
/// them: those are taken for a donor, never for a model.
///
/// # Errors
/// Names the models.
pub fn not_above_models(dir: &Path) -> Result<(), ReadError> {
    let Some(meant) = models_beside_strays(dir) else { return Ok(()) };
    let reason = "not a checkpoint, but a directory of models with a file of weights beside them";
    Err(ReadError::unreadable(dir, reason).help(format!("name the file itself if that is meant; {meant}")))
}
