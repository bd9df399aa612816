//! Strict request types: unknown fields are rejected, unsupported fields are rejected unless their value has no effect,
//! and the error names the field.

mod body;
mod chat;
mod common;
mod completion;
mod generation_params;
mod tokens;
mod unsupported;

pub(super) use body::{parse_strict, read_object};
pub(super) use chat::ChatRequest;
pub(super) use common::CommonFields;
pub(super) use completion::{CompletionRequest, Prompt};
pub(super) use generation_params::{GenerationParams, MAX_STOP_STRINGS};
pub(super) use tokens::{DetokenizeRequest, TokenizeRequest};
