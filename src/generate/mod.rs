//! What is said: a prompt in, tokens and text out.
//!
//! ```text
//! messages ─ template ─▶ prompt ─ tokenizer ─▶ tokens ─ model ─▶ logits ─ sampler ─▶ token ─ text stream ─ stop ─▶ text
//! ```
//!
//! [`Sequence`] holds one answer in the making and computes nothing; [`Generation`] runs a model for one of them.
//! Nothing here prints, opens a weight or knows of surgery.

mod compare;
mod config;
mod error;
mod generation;
mod limits;
mod random;
mod sampler;
mod score;
mod sequence;
mod spelling;
mod stop;
mod template;
mod tokenizer;

pub use compare::{Position, compare};
pub use config::{Defaults, MAX_TOKENS};
pub use error::{Error, LONGEST_TEXT, read_text};
pub use generation::Generation;
pub use limits::Limits;
pub use sampler::{Sampler, Sampling};
pub use score::{Score, log_sum, score};
pub use sequence::{FinishReason, Piece, Request, Sequence};
pub use stop::StopStrings;
pub use template::{ChatTemplate, Extra, Message, message};
pub use tokenizer::{Start, TextStream, Tokenizer};
