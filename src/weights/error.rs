//! [`WeightsError`]: why a checkpoint's tensors cannot be loaded or do not fit the model.

use std::io;
use std::path::PathBuf;

use super::LimitError;
use crate::checkpoint::{Dtype as Stored, Key};
use crate::execute::ExecuteError;
use crate::mlx::{self, Dtype};

/// Why a checkpoint's tensors cannot be loaded or do not fit the model. Tensors have their names in the checkpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// A limit of the process is smaller than what the weights need.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The system gave no memory for a tensor.
    #[error("no memory for `{key}` ({bytes} bytes): {source}")]
    NoMemory {
        /// The tensor.
        key: Key,
        /// Its size.
        bytes: usize,
        /// The system's reason.
        source: io::Error,
    },
    /// MLX failed.
    #[error("MLX cannot load the weights: {0}")]
    Mlx(#[from] mlx::Error),
    /// MLX cannot read a file.
    #[error("`{}`: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// MLX's reason.
        source: mlx::Error,
    },
    /// A tensor is not what the header said when the plan was made.
    #[error("`{key}` is not what its file's header described")]
    Changed {
        /// The tensor.
        key: Key,
    },
    /// The plan could not be executed.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    /// MLX has no such data type.
    #[error("MLX does not have the dtype {dtype} of `{key}`")]
    UnsupportedDtype {
        /// The tensor.
        key: Key,
        /// Its data type.
        dtype: Stored,
    },
    /// Two stored tensors have the same name in the text model.
    #[error("`{first}` and `{second}` are the same tensor of the text model")]
    SameTensor {
        /// One.
        first: Key,
        /// The other.
        second: Key,
    },
    /// The model needs a tensor that is not there.
    #[error("the model needs `{key}`, which the checkpoint lacks")]
    Missing {
        /// The tensor.
        key: String,
    },
    /// Tensors are left that the model does not use.
    #[error("the model does not use `{first}`{}", and_others(*others))]
    LeftOver {
        /// The first of them.
        first: String,
        /// The number of the others.
        others: usize,
    },
    /// A tensor's shape disagrees with `config.json`.
    #[error("`{key}` is {found:?}, but `config.json` asks for {wanted:?}")]
    Shape {
        /// The tensor.
        key: String,
        /// Its shape.
        found: Vec<i32>,
        /// The shape that the configuration implies.
        wanted: Vec<usize>,
    },
    /// A tensor is not float where the model needs floats.
    #[error("`{key}` holds {dtype:?}, but the model needs floats")]
    NotFloat {
        /// The tensor.
        key: String,
        /// Its data type.
        dtype: Dtype,
    },
    /// A packed module has scales and no biases: its method is not affine.
    #[error("`{module}` is packed with scales but without biases, which is not affine")]
    NoBiases {
        /// The module.
        module: String,
    },
    /// The experts of a layer are packed in different ways.
    #[error("`{first}` and the other experts of its layer are packed differently")]
    MixedExperts {
        /// The first expert's module.
        first: String,
    },
    /// Codes, scales and biases of a module do not belong together.
    #[error("`{module}`: {disagreement}")]
    Packing {
        /// The module.
        module: String,
        /// What disagrees.
        disagreement: Disagreement,
    },
}

/// What disagrees in a packed module. Arrays are described by dtype and shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Disagreement {
    /// Codes or scales have another shape than the weight.
    #[error("codes {codes:?} and scales {scales:?} do not fit a weight of shape {weight:?}")]
    Shapes {
        /// Shape of the codes.
        codes: Vec<i32>,
        /// Shape of the scales.
        scales: Vec<i32>,
        /// Shape of the weight that the configuration implies.
        weight: Vec<usize>,
    },
    /// Biases differ from scales in shape, or are not float.
    #[error("scales {scales} and biases {biases} do not belong together")]
    Biases {
        /// The scales.
        scales: String,
        /// The biases.
        biases: String,
    },
    /// Widths give no format that MLX has.
    #[error("codes {codes} and scales {scales} give no supported bits and group size for width {width}")]
    Format {
        /// The codes.
        codes: String,
        /// The scales.
        scales: String,
        /// Columns of the weight.
        width: usize,
    },
}

fn and_others(others: usize) -> String {
    match others {
        0 => String::new(),
        1 => " and another tensor".to_owned(),
        more => format!(" and {more} other tensors"),
    }
}
