//! From the engine's events to the JSON of a response, whole or in chunks. Knows nothing of HTTP.

mod builder;
mod choice;
mod envelope;
mod logprobs;
#[cfg(test)]
mod tests;

pub(super) use builder::ResponseBuilder;
