//! Suggestions: what a name that matches nothing may have meant. An index and a text in, help out; nothing here knows
//! what is planned.

mod components;
mod key_names;
mod misspelled;
mod no_match;
mod rewrite;

pub(super) use key_names::KeyNames;
pub(super) use no_match::{donor_help, help};
pub(super) use rewrite::range;
