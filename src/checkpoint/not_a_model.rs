//! Help for an error about a path that should be a model: what a model is, and which models are near.

use std::path::Path;

use super::quoted::{Quoted, listed};
use super::suggest_path::{as_listed, is_model, models_beside_strays, models_in, models_inside, neighbour};
use super::{ReadError, ReadErrorKind};

/// What `--model` takes.
const A_MODEL: &str = "a model is a directory with `config.json` and safetensors weights";

impl ReadError {
    /// Help for a model that does not exist: what a model is and which models are near, unless there is better help.
    pub(super) fn or_models_near(self, dir: &Path) -> Self {
        if self.kind != ReadErrorKind::NotFound {
            return self;
        }
        let meant = match &self.help {
            // The suggestion may be a file of weights, which is not a model.
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

    /// Help for a directory that is not a model: the models in it.
    pub(super) fn or_models_inside(self, dir: &Path) -> Self {
        match models_inside(dir) {
            Some(meant) => self.help(meant),
            None => self,
        }
    }

    /// Help for a file: what a model is, and the model that the file belongs to.
    pub(super) fn or_model_around(self, file: &Path) -> Self {
        let dir = file.parent().filter(|dir| is_model(dir));
        let help = match dir {
            Some(dir) => format!("did you mean {}? {A_MODEL}", Quoted(&as_listed(dir).to_string_lossy())),
            None => A_MODEL.to_owned(),
        };
        self.help(help)
    }
}

/// Refuses a directory that contains models but is not one itself, although a weight file of another name is beside them:
/// such a file is a donor, never a model.
///
/// # Errors
/// An error that names the models.
pub(crate) fn not_above_models(dir: &Path) -> Result<(), ReadError> {
    let Some(meant) = models_beside_strays(dir) else { return Ok(()) };
    let reason = "not a checkpoint, but a directory of models with a file of weights beside them";
    Err(ReadError::unreadable(dir, reason).help(format!("to use that file, name it; {meant}")))
}
