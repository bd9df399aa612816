//! Text generation: a prompt in, tokens and text out.
//!
//! ```text
//! messages ─ template ─▶ prompt ─ tokenizer ─▶ tokens ─ model ─▶ logits ─ sampler ─▶ token ─ text stream ─ stop ─▶ text
//! ```
//!
//! [`Sequence`] holds one answer being generated and runs no model; [`Generation`] runs a model for one sequence.
//! Nothing here prints, opens a weight or knows of surgery.

mod compare;
mod config;
mod error;
mod files;
mod generation;
mod limits;
mod random;
mod sampler;
mod score;
mod sequence;
mod stop;
mod template;
mod token_bytes;
mod tokenizer;

pub use compare::{Position, compare};
pub use config::Defaults;
pub use error::{Error, PromptError};
pub use files::{MAX_TEXT_BYTES, read_text};
pub use generation::Generation;
pub use limits::Limits;
pub use sampler::Sampling;
pub use score::{Score, log_sum_exp, score};
pub use sequence::{FinishReason, Piece, Request, Sequence};
pub use template::{ChatTemplate, Message, TemplateInputs, message};
pub use tokenizer::{Start, TextStream, Tokenizer};
