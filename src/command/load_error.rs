//! The code and the help of everything that can go wrong while a model is loaded.

use crate::checkpoint::Family;
use crate::diagnostic::{Code, Diagnostic, bytes};
use crate::load::LoadError;
use crate::model::{ConfigError, ModelError};
use crate::weights::WeightsError;

impl From<&LoadError> for Diagnostic {
    fn from(error: &LoadError) -> Self {
        match error {
            LoadError::ForeignQuantization { .. } => {
                Self::new(Code::UnsupportedQuantization, error.to_string())
                    .help("use the unquantized checkpoint, or a conversion in one of MLX's formats")
            }
            LoadError::Changed { .. } => changed(error.to_string()),
            LoadError::Model(error) => of_model(error),
        }
    }
}

fn of_model(error: &ModelError) -> Diagnostic {
    let message = error.to_string();
    match error {
        ModelError::NoModelType | ModelError::UnsupportedType(_) => {
            let supported: Vec<String> = Family::supported_types().map(|name| format!("`{name}`")).collect();
            let list = supported.join(", ");
            Diagnostic::new(Code::UnsupportedModel, message)
                .help(format!("supported types are {list}; `mlxcel surgery` works with every type"))
        }
        ModelError::Config(error) => of_config(error, message),
        ModelError::Weights(error) => of_weights(error, message),
    }
}

fn of_config(error: &ConfigError, message: String) -> Diagnostic {
    match error {
        ConfigError::UnsupportedRope(_) => Diagnostic::new(Code::UnsupportedModel, message)
            .help("supported types are `default`, `linear`, `llama3`, `yarn` and `longrope`"),
        ConfigError::UnsupportedActivation { .. } => Diagnostic::new(Code::UnsupportedModel, message),
        ConfigError::Missing(_)
        | ConfigError::Wrong { .. }
        | ConfigError::Bidirectional
        | ConfigError::UnevenHeads { .. }
        | ConfigError::UndividedHidden { .. }
        | ConfigError::OddHeadDim(_)
        | ConfigError::PartialRotation { .. }
        | ConfigError::Length { .. }
        | ConfigError::TooFewExperts { .. } => Diagnostic::new(Code::ModelUnreadable, message),
    }
}

fn of_weights(error: &WeightsError, message: String) -> Diagnostic {
    match error {
        WeightsError::Execute(error) => error.into(),
        WeightsError::Changed { .. } => changed(message),
        WeightsError::Limit(limit) => {
            let (needed, option) = (limit.needed, limit.option);
            let (shown, kibibytes) = (bytes(needed), needed.div_ceil(1024));
            Diagnostic::new(Code::LimitExceeded, message)
                .help(format!("raise the limit to {shown} or more (`ulimit {option} {kibibytes}`)"))
        }
        WeightsError::NoMemory { .. } => Diagnostic::new(Code::OutOfMemory, message)
            .help("not enough memory; close other programs and retry"),
        WeightsError::Mlx(_) => Diagnostic::new(Code::MlxFailed, message)
            .help("retry with more free memory, or with `--dtype native`"),
        WeightsError::File { .. } | WeightsError::UnsupportedDtype { .. } | WeightsError::NotFloat { .. } => {
            Diagnostic::new(Code::ModelUnreadable, message)
        }
        WeightsError::SameTensor { .. } => Diagnostic::new(Code::ModelUnreadable, message)
            .help("remove the one that does not belong to the checkpoint"),
        WeightsError::Shape { .. } => Diagnostic::new(Code::ModelUnreadable, message)
            .help("head counts and sizes in `config.json` must agree with the tensors"),
        WeightsError::Missing { .. } => Diagnostic::new(Code::TensorMissing, message)
            .help("the checkpoint is incomplete, or its `config.json` belongs to another model"),
        WeightsError::LeftOver { .. } => Diagnostic::new(Code::TensorLeftOver, message)
            .help("`config.json` describes another architecture, or fewer layers than the checkpoint has"),
        WeightsError::NoBiases { .. } | WeightsError::MixedExperts { .. } => {
            Diagnostic::new(Code::UnsupportedQuantization, message)
        }
        WeightsError::Packing { .. } => Diagnostic::new(Code::IncompleteAffineSet, message),
    }
}

fn changed(message: String) -> Diagnostic {
    Diagnostic::new(Code::FileChanged, message).help("run again when nothing writes to the model")
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;

    use super::*;
    use crate::mlx;
    use crate::weights::LimitError;

    #[track_caller]
    fn check(error: impl Into<LoadError>, code: Code, mention: &str) {
        let diagnostic = Diagnostic::from(&error.into());
        assert_eq!(diagnostic.code, code, "{diagnostic:?}");
        let help = diagnostic.help.as_deref().unwrap_or_default();
        assert!(diagnostic.message.contains(mention) || help.contains(mention), "{diagnostic:?}");
    }

    #[test]
    fn failures_of_the_machine_are_not_blamed_on_the_model() {
        let source = io::Error::from(io::ErrorKind::OutOfMemory);
        check(
            WeightsError::NoMemory { key: "a.weight".into(), bytes: 8, source },
            Code::OutOfMemory,
            "a.weight",
        );
        let limit = LimitError { of: "data", option: "-d", limit: 1 << 20, needed: 1 << 30 };
        check(WeightsError::from(limit), Code::LimitExceeded, "`ulimit -d 1048576`");
        check(WeightsError::from(mlx::Error::new("no device".into())), Code::MlxFailed, "no device");
    }

    #[test]
    fn an_unsupported_family_is_answered_with_the_supported_ones() {
        check(ModelError::UnsupportedType("t5".into()), Code::UnsupportedModel, "`gemma3_text`");
        check(ModelError::NoModelType, Code::UnsupportedModel, "`llama`");
        check(ModelError::from(ConfigError::Missing("x".into())), Code::ModelUnreadable, "lacks `x`");
        check(LoadError::Changed { path: PathBuf::from("m") }, Code::FileChanged, "`m` changed");
    }
}
