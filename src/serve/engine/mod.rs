//! The engine: one thread that owns the models and runs everything that MLX computes.
//!
//! ```text
//! handlers ─ Job ─▶ queue ─ admit ─▶ prefill (a chunk of one prompt) ─▶ slots (a decode step of all) ─ Event ─▶ handlers
//! ```
//!
//! Prefill chunks and decode steps alternate, so that a long prompt does not stall running answers. Events go through
//! unbounded channels, whose length the number of tokens bounds: a client that reads slowly does not stall the others.
//! A client that disconnects drops its channel, and its answers end before the next step.

mod batch_policy;
mod event;
mod fair_queue;
mod handle;
mod job;
mod logit_adjustments;
mod logprob;
mod prefill;
mod prefix_cache;
mod slot;
mod worker;

pub(super) use event::{Event, Failure, TokenDelta};
pub(super) use handle::{Engine, Rejection};
pub(super) use job::{ChoiceJob, Command, Job};
pub(super) use logit_adjustments::LogitAdjustments;
pub(super) use logprob::TokenLogprob;
pub(super) use worker::{BatchLimits, Worker};
