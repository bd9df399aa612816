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

pub(crate) use compare::{Position, compare};
pub(crate) use config::Defaults;
pub(crate) use error::{Error, PromptError};
pub(crate) use files::{MAX_TEXT_BYTES, read_text};
pub(crate) use generation::Generation;
pub(crate) use limits::Limits;
pub(crate) use sampler::Sampling;
pub(crate) use score::{Score, log_sum_exp, score};
pub(crate) use sequence::{FinishReason, Piece, Request, Sequence};
pub(crate) use template::{ChatTemplate, Message, TemplateInputs, message};
pub(crate) use tokenizer::{Start, TextStream, Tokenizer};
