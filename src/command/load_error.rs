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
        WeightsError::Mlx(_) => Diagnostic::new(Code::MlxFailed, message),
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
