//! The OpenAI-compatible HTTP server: one model in memory, and every response identifies its weights.
//!
//! ```text
//! connection ─ http ─▶ request ─ lower_request ─▶ submit ─▶ engine ─ events ─▶ response ─ http ─▶ JSON or SSE
//!                   (strict types)                      (model thread)
//! ```
//!
//! The plan is made and the files beside the weights are read before the port is bound. The engine's thread then loads
//! the weights; until they are loaded, requests get status 503. Handlers never touch a tensor; the engine never sees
//! HTTP or JSON.

mod api_keys;
mod app_state;
mod endpoint;
mod engine;
mod error;
mod guide;
mod http;
mod identity;
mod lower_request;
mod metrics;
mod openapi;
mod random_id;
mod request;
mod response;
mod service;
mod settings;
mod submit;
mod text_pipeline;
mod tool_calls;

pub(crate) use api_keys::ApiKeys;
pub(crate) use http::Address;
pub(crate) use identity::{ModelIdentity, SurgeryInfo};
pub(crate) use service::{LoadedModels, Service, StopReason};
pub(crate) use settings::Settings;
pub(crate) use text_pipeline::TextPipeline;
