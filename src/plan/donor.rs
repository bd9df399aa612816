//! [`Donor`]: a distinct source, opened once, by headers.

use crate::checkpoint::{ModelConfig, Weights};

/// An opened donor.
#[derive(Debug)]
pub struct Donor {
    /// As written in the YAML (for messages, plans and JSON).
    pub written: String,
    /// Its files and tensors.
    pub weights: Weights,
    /// `config.json` of a donor directory that has one.
    pub config: Option<ModelConfig>,
}
