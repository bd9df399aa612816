//! Constrained decoding: [`Guide`] keeps an answer to a JSON schema. The only folder that names llguidance.

mod compiler;
mod error;
mod matcher;
mod schema_limits;
mod vocabulary;

pub(super) use compiler::GuideCompiler;
pub(super) use error::GuideError;
pub(super) use matcher::Guide;
