//! What is asked: strict request types. A field that nobody knows is refused, a field that is known but not supported
//! is refused at a value that matters, and either is named.

mod body;
mod chat;
mod common;
mod completion;
mod tokens;

pub(super) use body::{object, strict};
pub(super) use chat::ChatRequest;
pub(super) use common::{Common, STOPS, Wish};
pub(super) use completion::{CompletionRequest, Prompt};
pub(super) use tokens::{DetokenizeRequest, TokenizeRequest};
